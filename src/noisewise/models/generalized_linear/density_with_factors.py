"""The posterior density of a generalized linear model of sums within the levels of factors.

Coordinates: those of the covariates' sums and the logarithms of their scales
(``linear_regression.factor_density``); then, as in ``density.py``, the predictor a at the records'
mean, b on the whitened columns, and η of every released sum of the response where noise is Laplace.
With G the products of the design's atoms, G / n = M Mᵀ, the response's sums are N(n M m, n M R Mᵀ)
and what was released of them is linear in these (``problem_with_factors.py``).

Prior: a ~ N(a₀, s_a²). A number's slope per standard deviation is N(0, s²/q), q the number of
numbers and factors. Effects of a factor's levels are N(0, τ²) about their mean, τ² (1 - Σ p_l²) =
s²/q with p the shares of the levels: whichever level is the reference, and however many levels
there are, each term gives the predictor a variance of s²/q among the records. With two levels this
is the prior of a column of 0 and 1.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular

from noisewise.inference import hmc
from noisewise.models.generalized_linear.links import LINKS
from noisewise.models.generalized_linear.response_moments import (
    NodeArrays,
    node_sums,
    normal_sums,
)
from noisewise.models.linear_regression import factor_density
from noisewise.models.linear_regression.factor_prior import (
    FARTHEST,
    log_scale_density,
    scale_names,
)
from noisewise.models.linear_regression.factor_structure import Structure

INFORMATION_SHARE = 0.6
"""As in ``density.py``."""
LEAST_SPREAD = 1e-4
"""Least 1 - Σ p² of a factor, where nearly all records have one level (chosen)."""


class Layout(NamedTuple):
    """What a program is compiled for: structure, link, noise, atoms and rows, and if by nodes."""

    structure: Structure
    link: str
    mechanism: str
    chosen: tuple[int, ...]
    sizes: tuple[int, ...]
    released: int
    nodes: bool

    @property
    def scale_names(self) -> tuple[tuple[str, int, int], ...]:
        """Return the names of the covariates' unknown scales."""
        d = self.structure.covariates
        names = scale_names(self.structure)
        return tuple(n for n in names if n[0] == "association" or n[1] < d)

    @property
    def covariates(self) -> int:
        """Return the number of coordinates of the covariates' sums."""
        return int(factor_density.layout(self.structure).y.start)

    @property
    def level(self) -> int:
        """Return where the predictor's coordinate is; b follows, then η."""
        return self.covariates + len(self.scale_names)

    @property
    def dimension(self) -> int:
        """Return the length of a coordinate vector."""
        return self.level + len(self.chosen) + self.released * (self.mechanism == "laplace")


class DensityData(NamedTuple):
    """One group's sums, how the response's follow from the atoms', noise, prior and nodes."""

    z: jax.Array
    noise: jax.Array
    n: jax.Array
    response: jax.Array
    of_covariates: jax.Array
    of_response: jax.Array
    cells: jax.Array
    level: jax.Array
    level_sd: jax.Array
    slope_sd: jax.Array
    nodes: NodeArrays | None


class Parts(NamedTuple):
    """What a coordinate vector stands for.

    ``sums`` are those released of the covariates, ``root`` M, ``theta`` the coefficients of the
    atoms, the constant first; ``log_density`` that of covariates and prior.
    """

    sums: jax.Array
    root: jax.Array
    n: jax.Array
    level: jax.Array
    white: jax.Array
    eta: jax.Array
    theta: jax.Array
    log_density: jax.Array


def parts(v: jax.Array, data: DensityData, layout: Layout) -> Parts:
    """Return what coordinates v stand for."""
    structure, k = layout.structure, len(layout.chosen)
    logs = v[layout.covariates : layout.level]
    scales = dict(zip(layout.scale_names, jnp.clip(logs, -FARTHEST, FARTHEST), strict=True))
    own = factor_density.FactorData(data.z, data.noise, data.n)
    at = factor_density.covariates_at(v, scales, own, structure)
    value = at.log_density + log_scale_density(scales) - 1e10 * (jnp.abs(logs) > FARTHEST).sum()
    sums, wall = jnp.zeros(0), jnp.zeros(())
    if structure.blocks:
        sums, wall = factor_density.released_sums(
            structure, at.tables, at.whole, at.gram, data.noise
        )
    chosen = np.array(layout.chosen)
    second = at.gram[np.ix_(chosen, chosen)] / at.gram[0, 0]
    root = jnp.linalg.cholesky(second)
    level, white = v[layout.level], v[layout.level + 1 : layout.level + k]
    slopes = solve_triangular(root[1:, 1:], white, lower=True, trans=1)
    value = value + wall + _log_prior(level, slopes, second, data, layout)
    value = value - jnp.log(jnp.diagonal(root)[1:]).sum()
    theta = jnp.append(level - slopes @ root[1:, 0], slopes)
    return Parts(
        sums, root, at.gram[0, 0], level, white, v[layout.level + k : layout.dimension], theta,
        value,
    )  # fmt: skip


def _log_prior(
    level: jax.Array, slopes: jax.Array, second: jax.Array, data: DensityData, layout: Layout
) -> jax.Array:
    """Return the log density of a and of the slopes, given the covariates' moments."""
    value = -0.5 * ((level - data.level) / data.level_sd) ** 2
    place = 0
    for c in layout.sizes:
        share = second[0, place + 1 : place + c]
        share = jnp.concatenate([1 - share.sum()[None], share])
        spread = jnp.maximum(1 - share @ share, LEAST_SPREAD)
        effects = jnp.concatenate([jnp.zeros(1), slopes[place : place + c - 1]])
        off = effects - effects.mean()
        value = value - 0.5 * spread * (off @ off) / data.slope_sd**2
        value = value + 0.5 * (c - 1) * jnp.log(spread)
        place += c - 1
    variance = jnp.diagonal(second)[place + 1 :] - second[0, place + 1 :] ** 2
    numbers = slopes[place:] ** 2 * variance / data.slope_sd**2
    value = value - 0.5 * numbers.sum() + 0.5 * jnp.log(variance).sum()
    return jnp.asarray(value)


def residuals(
    v: jax.Array, data: DensityData, layout: Layout, heat: jax.Array
) -> tuple[Parts, jax.Array, jax.Array, jax.Array]:
    """Return what v stands for, the residuals of both kinds of sums, and a log determinant."""
    p = parts(v, data, layout)
    link = LINKS[layout.link]
    if data.nodes is None:
        of_one = normal_sums(link, p.level, p.white)
    else:
        of_one = node_sums(link, p.level, p.white, data.nodes)
    mean = p.n * (data.of_covariates @ p.root[:, 0] + data.of_response @ (p.root @ of_one.mean))
    wide = data.of_response @ p.root
    covariance = p.n * wide @ of_one.covariance @ wide.T
    square = (data.noise * heat) ** 2
    if layout.mechanism == "gaussian":
        variance = square * data.cells.sum(axis=1)
    else:
        variance = 2 * square * data.cells @ jnp.exp(p.eta)
    factor = jnp.linalg.cholesky(covariance + jnp.diag(variance))
    first = (p.sums - data.z) / (data.noise * heat)
    seen = data.cells @ data.response
    second = solve_triangular(factor, seen - mean, lower=True)
    return p, first, second, 2 * jnp.log(jnp.diagonal(factor)).sum()


@lru_cache(maxsize=64)
def target(layout: Layout) -> hmc.Target:
    """Return the distribution of the coordinates, for the sampler; cached as compiled code is."""
    components = max(1, sum(len(m) for _, _, m in factor_density.observation(layout.structure)))
    knee = min(0.5, (1.5 / components) ** (1 / 3))

    def density(v: jax.Array, g: DensityData, heat: jax.Array) -> tuple[jax.Array, jax.Array]:
        p, first, second, determinant = residuals(v, g, layout, heat)
        base = p.log_density - 0.5 * second @ second - 0.5 * determinant
        if layout.mechanism == "gaussian":
            value = base - 0.5 * first @ first
            return value, value
        base = base + (p.eta - jnp.exp(p.eta)).sum()
        size = jnp.abs(first)
        huber = jnp.where(size < knee, first**2 / (2 * knee) + knee / 2, size)
        return base - huber.sum(), base - size.sum()

    def residual(v: jax.Array, g: DensityData, heat: jax.Array) -> jax.Array:
        _, first, second, _ = residuals(v, g, layout, heat)
        return jnp.concatenate([np.sqrt(INFORMATION_SHARE) * first, second])

    signs = np.ones((1, layout.dimension))
    signs[0, layout.level + 1 : layout.level + len(layout.chosen)] = -1
    return hmc.Target(density, residual, tuple(map(tuple, signs.tolist())), True, True)
