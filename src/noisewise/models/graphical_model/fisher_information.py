"""Fisher information of noisy tables, and the sandwich correction for noise that cells share.

``bayes`` multiplies the densities of single cells. Privacy noise is independent from cell to cell;
sampling noise is not: one person sits in a cell of every table. With G = N ∇²A = ∂(Nμ)/∂θ, P the
prior's precision and w_i the Fisher information of cell i about its own mean, to first order

    H = Gᵀ diag(w) G + P              the information that the product of densities claims,
    J = Gᵀ K G + P,                   the variance that its score has, where
    K_ii = w_i,   K_ij = w_i w_j N (∇²A)_ij,

because N ∇²A is the covariance of the exact tables. Draws θ have variance H⁻¹, their centre errs by
H⁻¹ J H⁻¹. With J U = H U Λ and Uᵀ H U = 1, the map Ω = U √Λ Uᵀ H turns one into the other, and is
the identity wherever privacy noise or the prior dominates:

    θ ← θ̄ + Ω (θ - θ̄).

It is the "open-faced sandwich" of composite likelihoods (B. Shaby, JCGS 23, 2014) with a prior.

The matrices' size is the square of the number of cells, so they are for models of a few thousand.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp

from noisewise.models.graphical_model.marginal_oracle import Oracle
from noisewise.numerics.distributions import normal_laplace_log_density

MAX_DENSE_CELLS = 5000
"""Cells up to which matrices over all of them are made: 200 MB each (chosen)."""
BATCH = 32
"""Columns of a matrix computed at a time (chosen)."""
GRID_POINTS = 401
"""Points of the sum that stands for the integral over the noise (chosen; tests use quadrature)."""
NEGLIGIBLE_SHARE = 0.01
"""Share of sampling noise in the noisiest cell's variance below which nothing is corrected
(chosen)."""


def cell_weights(mechanism: str, g: jax.Array, scale: jax.Array) -> jax.Array:
    """Return each cell's Fisher information on its mean; ``g`` is the exact tables' covariance."""
    sampling = jnp.maximum(jnp.diag(g), 0.0)
    if mechanism == "laplace":
        return normal_laplace_information(sampling, scale)
    weight: jax.Array = 1 / (sampling + scale**2)
    return weight


def cell_covariance(oracle: Oracle, theta: jax.Array) -> jax.Array:
    """Return ∇²A(θ), the covariance of one record's cell indicators."""

    def column(direction: jax.Array) -> jax.Array:
        change: jax.Array = jax.jvp(oracle.marginals, (theta,), (direction,))[1]
        return change

    hessian: jax.Array = jax.lax.map(column, jnp.eye(len(theta)), batch_size=BATCH)
    symmetric: jax.Array = (hessian + hessian.T) / 2
    return symmetric


def normal_laplace_information(variance: jax.Array, scale: jax.Array) -> jax.Array:
    """Return the information of an observation on its mean, under normal plus Laplace noise.

    1/b² without normal noise, 1/variance without Laplace noise; between, a sum over a grid.
    """
    ratio = jnp.maximum(variance / scale**2, 1e-12)

    def one(r: jax.Array) -> jax.Array:
        # Cubed, the grid is fine around zero, where little normal noise leaves a kink.
        u = jnp.linspace(-1, 1, GRID_POINTS)
        density = jax.value_and_grad(lambda x: normal_laplace_log_density(x, r, jnp.ones(())))
        level, slope = jax.vmap(density)(u**3 * (30 + 8 * jnp.sqrt(r)))
        p = jnp.exp(level) * u**2
        mean: jax.Array = (slope**2 * p).sum() / p.sum()
        return mean

    relative = jax.lax.map(one, ratio, batch_size=BATCH)
    weight: jax.Array = relative / scale**2
    return weight


def sampling_noise_matters(mu: jax.Array, n: float, variance: float) -> bool:
    """Return whether sampling noise can be seen behind privacy noise of that variance."""
    sampling = float((n * mu * (1 - mu)).max())
    return sampling > NEGLIGIBLE_SHARE * (sampling + variance)


@partial(jax.jit, static_argnums=(0, 1))
def sandwich_correction(
    oracle: Oracle, mechanism: str, theta: jax.Array, n: jax.Array, scale: jax.Array, tau: jax.Array
) -> jax.Array:
    """Return Ω at potentials ``theta``, whose prior standard deviation is ``tau``."""
    g = n * cell_covariance(oracle, theta)
    weight = cell_weights(mechanism, g, scale)
    shared = g * weight[:, None] * weight
    shared = shared - jnp.diag(jnp.diag(shared)) + jnp.diag(weight)
    prior = jnp.eye(len(theta)) / tau**2
    claimed = g.T @ (weight[:, None] * g) + prior
    actual = g.T @ shared @ g + prior
    # λ(J, H) through the Cholesky factor of H, which P keeps away from singular.
    factor = jnp.linalg.cholesky(claimed)
    half = jax.scipy.linalg.solve_triangular(factor, actual, lower=True)
    whole = jax.scipy.linalg.solve_triangular(factor, half.T, lower=True)
    size, turned = jnp.linalg.eigh((whole + whole.T) / 2)
    u = jax.scipy.linalg.solve_triangular(factor.T, turned, lower=False)
    # √Λ - 1, so that what is not corrected stays exactly as it was.
    change = jnp.sqrt(jnp.maximum(size, 0.0)) - 1
    omega: jax.Array = jnp.eye(len(theta)) + (u * change) @ (factor @ turned).T
    return omega
