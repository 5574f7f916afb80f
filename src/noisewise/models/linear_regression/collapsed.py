"""The prior predictive density of a regression's sums, all parameters integrated out.

Covariates x ~ N(μ, τ²), (μ, τ²) ~ NIW(μ0, κ0, Ψ0, ν0); response y | x ~ N(θᵀ(x, 1), σ²),
(θ, σ²) ~ NIG(m0, Λ0, a0, b0). Then (x, y) is jointly normal, its mean and scatter are exactly
normal and Wishart for every n (errata E12), and both priors are conjugate, so what is left is a
density of the statistic s alone:

    log π(s | z) = (n-1) Σ l_j - ½ log|Λn| - an log bn - ½ νn log|Ψn| + log p(z | s) + c(n)

in the coordinates of ``coordinates.py``; c(n) matters only where n is secret. All but the noise
term log p(z | s), which ``exact.py`` adds, is here. The prior is given, or, by default, that of
``scale_free.py`` given its scales. With β̂ the
least-squares fit and δ = β̂ - m0, bn = b0 + ½ [RSS + δᵀ Λ0 (δ - Λn⁻¹ Λ0 δ)], which does not cancel
at large n, and RSS = n exp(2 l_q) because y is the last column.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, multigammaln

from noisewise.models.linear_regression.coordinates import Point
from noisewise.numerics.distributions import gamma
from noisewise.numerics.matrices import (
    Matrix,
    cholesky,
    constant,
    dot,
    entries,
    is_entries,
    joined,
    log_determinant,
    scaled,
    single,
    solve_lower,
    solve_upper,
    stacked,
    times,
    times_transposed,
)


class BoxPrior(NamedTuple):
    """The priors of (θ, σ²) and of (μ, τ²) in box units, as arrays.

    ``mean`` m0, ``precision`` Λ0, ``shape`` a0, ``rate`` b0; ``x_mean`` μ0, ``x_kappa`` κ0,
    ``x_scale`` Ψ0, ``x_df`` ν0. Where m0 and Λ0 are of the slopes alone, the intercept is flat.
    """

    mean: Matrix
    precision: Matrix
    shape: jax.Array
    rate: jax.Array
    x_mean: Matrix
    x_kappa: jax.Array
    x_scale: Matrix
    x_df: jax.Array

    def entries(self) -> BoxPrior:
        """Return vectors and matrices as NumPy arrays of entries (``numerics.matrices``)."""
        fields: Any = (entries(f, f.ndim) if f.ndim else f for f in self)
        return BoxPrior(*fields)


class CoefficientPosterior(NamedTuple):
    """The normal-inverse-gamma posterior of (θ, σ²) given s; ``factor`` is that of Λn.

    Where the intercept is flat, both are of the slopes; the response's mean at the records' mean of
    x is then independent of them, with variance σ²/n.
    """

    mean: Matrix
    factor: Matrix
    shape: jax.Array
    rate: jax.Array


def conjugate(p: Point, prior: BoxPrior) -> CoefficientPosterior:
    """Return the posterior of (θ, σ²) given the statistic, from the factor of its scatter.

    Eq. (1) of G. Bernstein, D. Sheldon, "Differentially Private Bayesian Linear Regression"
    (NeurIPS 2019).
    """
    q, rank = p.factor.shape
    d = q - 1
    x_mean, x_factor = p.mean[:d], p.factor[:d, : min(d, rank)]
    flat = len(prior.mean) == d
    # About the records' mean, as a flat intercept allows: a column that hardly varies would vanish
    # beside the square of its mean.
    cross = scaled(p.n, times_transposed(x_factor, x_factor))
    if not flat:
        cross = _cross_products(x_mean, x_factor, p.n)
    factor = cholesky(prior.precision + cross)
    if rank < q:
        return _singular(p, prior, factor)
    slopes = solve_upper(x_factor, p.factor[d, :d])
    intercept = single(p.mean[d] - dot(slopes, x_mean), slopes)
    fit = slopes if flat else joined(slopes, intercept)
    delta = fit - prior.mean
    pull = times(prior.precision, delta)
    half = solve_lower(factor, pull)
    rss = p.n * jnp.exp(2 * p.log_diagonal[d])
    rate = prior.rate + 0.5 * (rss + dot(delta, pull) - dot(half, half))
    return CoefficientPosterior(
        fit - solve_upper(factor, half), factor, prior.shape + p.n / 2, rate
    )


def _cross_products(x_mean: Matrix, x_factor: Matrix, n: jax.Array) -> Matrix:
    """Return XᵀX, the intercept last."""
    design = joined(x_mean, constant(np.ones(1), x_mean))
    whole = joined(x_factor, constant(np.zeros((1, x_factor.shape[1])), x_factor))
    return scaled(n, times_transposed(whole, whole) + design[:, None] * design[None])


def _singular(p: Point, prior: BoxPrior, factor: Matrix) -> CoefficientPosterior:
    """Return the posterior where records are fewer than coefficients.

    There is no least-squares fit then, so residuals are taken about the prior mean. With
    e = y - Xm0: mn = m0 + Λn⁻¹ Xᵀe and bn = b0 + ½ (eᵀe - (Xᵀe)ᵀ Λn⁻¹ Xᵀe), which loses digits only
    where n is large, and here it is not.
    """
    d = len(p.mean) - 1
    x_mean, x_factor = p.mean[:d], p.factor[:d]
    off = p.factor[d] - times(x_factor.T, prior.mean[:d])
    both, level = times(x_factor, off), jnp.zeros(())
    if len(prior.mean) > d:
        level = p.mean[d] - dot(prior.mean[:d], x_mean) - prior.mean[d]
        both = joined(both + scaled(level, x_mean), single(level, x_mean))
    half = solve_lower(factor, scaled(p.n, both))
    rate = prior.rate + 0.5 * (p.n * (dot(off, off) + level**2) - dot(half, half))
    return CoefficientPosterior(
        prior.mean + solve_upper(factor, half), factor, prior.shape + p.n / 2, rate
    )


def covariate_factor(p: Point, prior: BoxPrior) -> Matrix:
    """Return the Cholesky factor of Ψn."""
    d = len(p.mean) - 1
    x_factor, off = p.factor[:d, :d], p.mean[:d] - prior.x_mean
    weight = prior.x_kappa * p.n / (prior.x_kappa + p.n)
    scatter = scaled(p.n, times_transposed(x_factor, x_factor))
    return cholesky(prior.x_scale + scatter + scaled(weight, off[:, None] * off[None]))


def log_prior_predictive(p: Point, prior: BoxPrior, *, noisy_n: bool) -> jax.Array:
    """Return log p(s) with respect to the coordinates, up to a constant.

    Terms of n alone count only where n is secret (``noisy_n``); otherwise they are constant too.
    """
    posterior = conjugate(p, prior)
    value: jax.Array = (
        (p.n - 1) * p.log_diagonal.sum()
        - 0.5 * log_determinant(posterior.factor)
        - posterior.shape * jnp.log(posterior.rate)
        - 0.5 * (prior.x_df + p.n) * log_determinant(covariate_factor(p, prior))
    )
    if not noisy_n:
        return value
    flat = len(prior.mean) < len(p.mean)
    return value + _terms_of_n(p, prior) - (0.5 * jnp.log(p.n) if flat else 0.0)


def _terms_of_n(p: Point, prior: BoxPrior) -> jax.Array:
    """Return c(n): normalising constants of mean, Wishart and both conjugate integrals.

    From p(w̄, S | law) = n^(q/2) π^((n-1)q/2) |S|^((n-q-2)/2) / Γ_q((n-1)/2) × Π p(record), with
    |S| = n^q Π exp(2 l_j) dS = n^(q(q+1)/2) d(S/n) and dn = n d(log n); a flat prior on n.
    """
    q, n = len(p.mean), p.n
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


def draw_parameters(key: jax.Array, p: Point, prior: BoxPrior, batch: tuple[int, ...]) -> jax.Array:
    """Draw (θ, σ²) given s: slopes, intercept, variance, then the batch axes."""
    chi, normal = jax.random.split(key)
    posterior = conjugate(p, prior)
    variance = posterior.rate / gamma(chi, jnp.broadcast_to(posterior.shape, batch))
    white: Matrix = jax.random.normal(normal, (len(p.mean), *batch))
    if is_entries(p.mean):
        white = entries(white, 1)
    size = len(posterior.mean)
    spread = scaled(jnp.sqrt(variance), solve_upper(posterior.factor, white[:size]))
    theta = posterior.mean + spread
    if size < len(p.mean):
        level = p.mean[-1] + jnp.sqrt(variance / p.n) * white[-1]
        theta = joined(theta, single(level - dot(theta, p.mean[:size]), theta))
    drawn = joined(theta, single(variance, p.mean))
    return stacked(drawn) if is_entries(drawn) else drawn
