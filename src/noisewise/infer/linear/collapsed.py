"""The exact noise-aware posterior of linear regression, all parameters integrated out.

Covariates x ~ N(μ, τ²), (μ, τ²) ~ NIW(μ0, κ0, Ψ0, ν0); response y | x ~ N(θᵀ(x, 1), σ²),
(θ, σ²) ~ NIG(m0, Λ0, a0, b0). Then (x, y) is jointly normal, its mean and scatter are exactly
normal and Wishart for every n (errata E12), and both priors are conjugate, so what is left is a
density of the statistic s alone:

    log π(s | z) = (n-1) Σ l_j - ½ log|Λn| - an log bn - ½ νn log|Ψn| + log p(z | s) + c(n)

in the coordinates of ``coordinates.py``; c(n) matters only where n is secret. With β̂ the
least-squares fit and δ = β̂ - m0, bn = b0 + ½ [RSS + δᵀ Λ0 (δ - Λn⁻¹ Λ0 δ)], which does not cancel
at large n, and RSS = n exp(2 l_q) because y is the last column.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln, multigammaln

from noisewise.infer.linear.coordinates import Point
from noisewise.numerics.triangular import cholesky, log_determinant, solve_lower, solve_upper


class Prior(NamedTuple):
    """Both priors in box units, as arrays."""

    mean: jax.Array
    precision: jax.Array
    shape: jax.Array
    rate: jax.Array
    x_mean: jax.Array
    x_kappa: jax.Array
    x_scale: jax.Array
    x_df: jax.Array


class Conjugate(NamedTuple):
    """The normal-inverse-gamma posterior of (θ, σ²) given s."""

    mean: jax.Array
    factor: jax.Array
    shape: jax.Array
    rate: jax.Array


def conjugate(p: Point, prior: Prior) -> Conjugate:
    """Eq. (1) of the paper, from the factor of the scatter."""
    d = p.mean.shape[0] - 1
    x_mean, x_factor = p.mean[:d], p.factor[:d, :d]
    slopes = solve_upper(x_factor, p.factor[d, :d])
    fit = jnp.append(slopes, p.mean[d] - slopes @ x_mean)
    design = jnp.append(x_mean, 1.0)
    scatter = jnp.zeros((d + 1, d + 1)).at[:d, :d].set(p.n * (x_factor @ x_factor.T))
    factor = cholesky(prior.precision + scatter + p.n * jnp.outer(design, design))
    delta = fit - prior.mean
    pull = prior.precision @ delta
    half = solve_lower(factor, pull)
    rss = p.n * jnp.exp(2 * p.log_diagonal[d])
    rate = prior.rate + 0.5 * (rss + delta @ pull - half @ half)
    return Conjugate(fit - solve_upper(factor, half), factor, prior.shape + p.n / 2, rate)


def covariate_factor(p: Point, prior: Prior) -> jax.Array:
    """Cholesky factor of Ψn."""
    d = p.mean.shape[0] - 1
    x_factor, off = p.factor[:d, :d], p.mean[:d] - prior.x_mean
    weight = prior.x_kappa * p.n / (prior.x_kappa + p.n)
    scatter = p.n * (x_factor @ x_factor.T)
    return cholesky(prior.x_scale + scatter + weight * jnp.outer(off, off))


def log_prior_predictive(p: Point, prior: Prior, *, noisy_n: bool) -> jax.Array:
    """log p(s), with respect to the coordinates, up to a constant (of n too, where n is known)."""
    posterior = conjugate(p, prior)
    value = (
        (p.n - 1) * jnp.sum(p.log_diagonal)
        - 0.5 * log_determinant(posterior.factor)
        - posterior.shape * jnp.log(posterior.rate)
        - 0.5 * (prior.x_df + p.n) * log_determinant(covariate_factor(p, prior))
    )
    return value + _terms_of_n(p, prior) if noisy_n else value


def _terms_of_n(p: Point, prior: Prior) -> jax.Array:
    """c(n): normalising constants of mean, Wishart and both conjugate integrals; dn = n d(log n).

    From p(w̄, S | law) = n^(q/2) π^((n-1)q/2) |S|^((n-q-2)/2) / Γ_q((n-1)/2) × Π p(record), with
    |S| = n^q Π exp(2 l_j) and dS = n^(q(q+1)/2) d(S/n); a flat prior on n.
    """
    q, n = p.mean.shape[0], p.n
    d = q - 1
    powers = q / 2 + q * (n - q - 2) / 2 + q * (q + 1) / 2 + 1
    return (
        powers * jnp.log(n)
        + 0.5 * (n - 1) * q * jnp.log(jnp.pi)
        - multigammaln(jnp.maximum((n - 1) / 2, (q - 1) / 2 + 1e-6), q)
        - 0.5 * n * jnp.log(2 * jnp.pi)
        + gammaln(prior.shape + n / 2)
        - 0.5 * n * d * jnp.log(jnp.pi)
        - 0.5 * d * jnp.log(prior.x_kappa + n)
        + multigammaln((prior.x_df + n) / 2, d)
    )


def draw_parameters(key: jax.Array, p: Point, prior: Prior) -> jax.Array:
    """(θ, σ²) | s: exact and independent; slopes, intercept, variance."""
    gamma, normal = jax.random.split(key)
    posterior = conjugate(p, prior)
    variance = posterior.rate / jax.random.gamma(gamma, posterior.shape)
    white = jax.random.normal(normal, posterior.mean.shape)
    coefficients = posterior.mean + jnp.sqrt(variance) * solve_upper(posterior.factor, white)
    return jnp.append(coefficients, variance)
