"""Sampling noise that cells share: a correction of draws made as if cells were independent.

``bayes`` multiplies the densities of single cells. Privacy noise is independent from cell to cell;
sampling noise is not: one person sits in a cell of every table. With G = N ∇²A = ∂(Nμ)/∂θ, P the
prior's precision and w_i the information of cell i about its own mean, to first order

    H = Gᵀ diag(w) G + P              what the product of densities believes,
    J = Gᵀ K G + P,                   what the score really varies by, where
    K_ii = w_i,   K_ij = w_i w_j N (∇²A)_ij,

because N ∇²A is the covariance of the exact tables. Draws θ are spread by H⁻¹, their centre errs by
H⁻¹ J H⁻¹. With J U = H U Λ and Uᵀ H U = 1, the map Ω = U √Λ Uᵀ H turns one into the other, and is
the identity wherever privacy noise or the prior dominates:

    θ ← θ̄ + Ω (θ - θ̄).

It is the "open-faced sandwich" of composite likelihoods (B. Shaby, JCGS 23, 2014) with a prior.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp

from noisewise.models.graphical_model.oracle import Oracle
from noisewise.models.graphical_model.telling import covariance, weights

NEGLIGIBLE = 0.01
"""Share of sampling noise in the noisiest cell's variance below which nothing is corrected."""


def matters(mu: jax.Array, n: float, variance: float) -> bool:
    """Whether sampling noise can be seen behind privacy noise of that variance."""
    most = float((n * mu * (1 - mu)).max())
    return most > NEGLIGIBLE * (most + variance)


@partial(jax.jit, static_argnums=(0, 1))
def correction(
    oracle: Oracle, mechanism: str, theta: jax.Array, n: jax.Array, scale: jax.Array, tau: jax.Array
) -> jax.Array:
    """Ω at potentials ``theta``, whose prior standard deviation is ``tau``."""
    g = n * covariance(oracle, theta)
    weight = weights(mechanism, g, scale)
    shared = g * weight[:, None] * weight
    shared = shared - jnp.diag(jnp.diag(shared)) + jnp.diag(weight)
    prior = jnp.eye(len(theta)) / tau**2
    believed = g.T @ (weight[:, None] * g) + prior
    real = g.T @ shared @ g + prior
    # λ(J, H) through the Cholesky factor of H, which P keeps away from singular.
    factor = jnp.linalg.cholesky(believed)
    half = jax.scipy.linalg.solve_triangular(factor, real, lower=True)
    whole = jax.scipy.linalg.solve_triangular(factor, half.T, lower=True)
    size, turned = jnp.linalg.eigh((whole + whole.T) / 2)
    u = jax.scipy.linalg.solve_triangular(factor.T, turned, lower=False)
    # √Λ - 1, so that what is not corrected stays exactly as it was.
    change = jnp.sqrt(jnp.maximum(size, 0.0)) - 1
    omega: jax.Array = jnp.eye(len(theta)) + (u * change) @ (factor @ turned).T
    return omega
