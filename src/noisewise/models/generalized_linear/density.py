"""The posterior density of the covariates' sums and of a generalized linear model's coefficients.

Coordinates: those of the covariates (``covariate_density.py``); the predictor a at the records'
mean; b, the predictor's coefficients on the whitened covariates, t = a + bᵀz; and, for Laplace
noise, η_j of every response sum, whose noise is a normal one of variance 2 s² exp(η_j), exp(η_j)
being exponential. With x̄ and L behind the covariates' sums,

    (Σ y, Σ y x) = n M m,   covariance n M R Mᵀ,   M = [[1, 0], [x̄, L]]

with m and R of ``response_moments.py``. What was released of y is (y - c) / h, so that the noisy
sums are

    N( n/h (M m - c (1, x̄)),  n/h² M R Mᵀ + diag(noise) ).

Prior: a ~ N(a₀, s_a²), γ_j ~ N(0, s²/d) for the slope per standard deviation of column j among the
records, b_k = Σ_j γ_j L_jk / sd_j. It depends on the covariates through the records alone. The
sampler moves b, which the sums determine; γ given them moves with every correlation (twice the
steps for as many effective draws on the real tables of the study).
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.inference import hmc
from noisewise.models.generalized_linear import covariate_density
from noisewise.models.generalized_linear.links import LINKS
from noisewise.models.generalized_linear.response_moments import (
    NodeArrays,
    SumMoments,
    node_sums,
    normal_sums,
)
from noisewise.models.linear_regression.coordinates import Point, released
from noisewise.numerics.gram_packing import number_of_sums
from noisewise.numerics.matrices import (
    UNROLLED,
    Matrix,
    cholesky,
    constant,
    dot,
    each,
    entries,
    is_entries,
    joined,
    listed,
    log_determinant,
    scaled,
    solve_lower,
    solve_upper,
    times,
    times_transposed,
)

INFORMATION_SHARE = 0.6
"""Share of the squared slope of the covariates' residuals that is taken for curvature (that of
``linear_regression.exact``)."""


class Layout(NamedTuple):
    """Covariates d, whether n is secret, the link, the noise, and whether x is given by nodes."""

    d: int
    noisy_n: bool
    link: str
    mechanism: str
    nodes: bool

    @property
    def covariates(self) -> int:
        """Return the number of coordinates of the covariates."""
        return covariate_density.dimension(self.d, noisy_n=self.noisy_n)

    @property
    def noise_variables(self) -> int:
        """Return the number of variables η."""
        return (self.d + 1) * (self.mechanism == "laplace")

    @property
    def dimension(self) -> int:
        """Return the length of a coordinate vector."""
        return self.covariates + self.d + 1 + self.noise_variables


class DensityData(NamedTuple):
    """Data as the density reads them: trailing axes (chain, group), or none where looped.

    ``response`` holds (Σ y, Σ y x) in the box, ``centre`` c and ``half`` h of its bounds, ``level``
    a₀, ``level_sd`` s_a and ``slope_sd`` s/√d the prior.
    """

    covariates: jax.Array
    response: jax.Array
    n: jax.Array
    noise: jax.Array
    unit: jax.Array
    centre: jax.Array
    half: jax.Array
    level: jax.Array
    level_sd: jax.Array
    slope_sd: jax.Array
    nodes: NodeArrays | None


class Parts(NamedTuple):
    """What a coordinate vector stands for.

    ``base`` holds the log density of the covariates and the volume of γ in units of b; ``white`` is
    b, ``slopes`` γ.
    """

    at: Point
    base: jax.Array
    level: jax.Array
    white: Matrix
    slopes: Matrix
    eta: Matrix


def parts(v: Matrix, data: DensityData, layout: Layout) -> Parts:
    """Return what coordinates v stand for."""
    d, first = layout.d, layout.covariates
    unit = entries(data.unit, 1) if is_entries(v) else data.unit
    at, base = covariate_density.covariates(v[:first], d, data.n, unit, noisy_n=layout.noisy_n)
    white = v[first + 1 : first + 1 + d]
    size = each(jnp.sqrt, (at.factor**2).sum(axis=1))
    slopes = solve_upper(at.factor / size[:, None], white)
    volume = each(jnp.log, size).sum() - at.log_diagonal.sum()
    return Parts(at, base + volume, v[first], white, slopes, v[first + 1 + d :])


def moments(p: Parts, data: DensityData, layout: Layout) -> SumMoments:
    """Return mean and covariance of (y, yz) for one record."""
    link = LINKS[layout.link]
    if data.nodes is None:
        return normal_sums(link, p.level, p.white)
    return node_sums(link, p.level, p.white, data.nodes)


def _response(p: Parts, data: DensityData, layout: Layout) -> tuple[Matrix, Matrix]:
    """Return mean and covariance of the response's sums, in the box and without noise."""
    m, covariance = moments(p, data, layout)
    whole = _unwhitening(p.at)
    one = joined(constant(np.ones(1), p.at.mean), p.at.mean)
    mean = scaled(p.at.n / data.half, times(whole, m) - scaled(data.centre, one))
    spread = times_transposed(_product(whole, covariance), whole)
    return mean, scaled(p.at.n / data.half**2, spread)


def _unwhitening(at: Point) -> Matrix:
    """Return M = [[1, 0], [x̄, L]]."""
    d = len(at.mean)
    if not is_entries(at.mean):
        top = jnp.concatenate([jnp.ones(1), jnp.zeros(d)])
        return jnp.concatenate([top[None], jnp.column_stack([at.mean, at.factor])])
    rows = [[1.0, *[0.0] * d]]
    rows += [[at.mean[i], *at.factor[i]] for i in range(d)]
    return listed(rows)


def _product(a: Matrix, b: Matrix) -> Matrix:
    return times_transposed(a, b.T)


def _noise_variance(p: Parts, data: DensityData, layout: Layout, heat: jax.Array) -> Matrix:
    """Return the variance of the noise of every response sum."""
    square = (data.noise * heat) ** 2
    if layout.mechanism == "gaussian":
        return scaled(square, constant(np.ones(layout.d + 1), p.at.mean))
    return each(lambda e: 2 * square * jnp.exp(e), p.eta)


def residuals(
    v: Matrix, data: DensityData, layout: Layout, heat: jax.Array
) -> tuple[Parts, Matrix, Matrix, jax.Array]:
    """Return what v stands for, the residuals of both kinds of sums, and a log determinant."""
    p = parts(v, data, layout)
    sums = released(p.at, noisy_n=layout.noisy_n)
    wanted: Matrix = data.covariates
    seen: Matrix = data.response
    if is_entries(v):
        wanted, seen = entries(wanted, 1), entries(seen, 1)
    first = scaled(1 / (data.noise * heat), sums - wanted)
    mean, covariance = _response(p, data, layout)
    noise = _noise_variance(p, data, layout, heat)
    factor = cholesky(covariate_density.with_diagonal(covariance, noise))
    return p, first, solve_lower(factor, seen - mean), log_determinant(factor)


def log_prior(p: Parts, data: DensityData) -> jax.Array:
    """Return the log density of a and γ, up to a constant."""
    off = (p.level - data.level) / data.level_sd
    slopes = scaled(1 / data.slope_sd, p.slopes)
    return -0.5 * off**2 - 0.5 * dot(slopes, slopes)


@lru_cache(maxsize=64)
def target(layout: Layout) -> hmc.Target:
    """Return the distribution of the coordinates, for the sampler.

    Cached, because a compiled block is tied to the functions it was traced with.
    """
    d = layout.d
    components = number_of_sums(d) + layout.noisy_n
    # The Huber surrogate is off by knee/2 at most in every kink: the more kinks, the smaller.
    knee = min(0.5, (1.5 / components) ** (1 / 3))

    def density(v: Matrix, g: DensityData, heat: jax.Array) -> tuple[jax.Array, jax.Array]:
        p, first, second, determinant = residuals(v, g, layout, heat)
        base = p.base + log_prior(p, g) - 0.5 * dot(second, second) - 0.5 * determinant
        if layout.mechanism == "gaussian":
            value = base - 0.5 * dot(first, first)
            return value, value
        base = base + p.eta.sum() - each(jnp.exp, p.eta).sum()

        def huber(e: jax.Array) -> jax.Array:
            return jnp.where(jnp.abs(e) < knee, e**2 / (2 * knee) + knee / 2, jnp.abs(e))

        return base - each(huber, first).sum(), base - each(jnp.abs, first).sum()

    def residual(v: Matrix, g: DensityData, heat: jax.Array) -> Matrix:
        _, first, second, _ = residuals(v, g, layout, heat)
        return joined(scaled(np.sqrt(INFORMATION_SHARE), first), second)

    return hmc.Target(density, residual, _reflections(layout), d + 1 > UNROLLED)


def _reflections(layout: Layout) -> tuple[tuple[float, ...], ...]:
    """Return sign changes that map valid points to valid points: of slopes, and of one column."""
    first, signs = layout.covariates, np.ones((2, layout.dimension))
    signs[0, first + 1 : first + 1 + layout.d] = -1
    signs[1, : layout.d] = -1
    return tuple(map(tuple, signs.tolist()))
