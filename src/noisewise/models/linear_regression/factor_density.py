"""The posterior density of the sums behind a regression with factors, parameters integrated out.

A table of cells N, then every numeric column w in order, given those before it: with its design D,
D'D = L L', described by e = L⁻¹ D'w and its residual sum of squares R. *Every* (e, R) with R > 0 is
valid, D'w = L e and Σw² = |e|² + R. If w | D ~ N(Dβ, σ²), (β, σ²) normal-inverse-gamma,

    log p(e, ½ log R | D) = ½(n - k) log R + ½ log|Λ0| - ½ log|Λn| - an log bn + c(n),
    Λn = Λ0 + D'D,  an = a0 + n/2,  bn = b² + ½ [R + δ'Λ0(δ - Λn⁻¹Λ0δ)],  δ = L⁻ᵀ e,
    c(n) = log Γ(an) - log Γ((n - k)/2) - ½ n log 2,

since |L| from D'w = L e cancels that of the normal density of D'w. Next column: its e and √R are a
further row of L. Covariates are described within every stratum (``factor_structure.py``), the
response by its own design of atoms.

*Priors.* Constants flat. Effects of a term's levels N(0, τ²σ²) about their mean, log τ ~ N(0, 1),
learnt. Slopes N(0, gσ²/a²) with a² the variance that levels and other covariates leave of the
covariate, g/3 ~ BetaPrime(½, ½); those of one covariate in several strata differ by N(0, τ²σ²/a²).
σ² ~ InverseGamma(1, b²), b² ~ BetaPrime as in ``scale_free.py``: no bound enters but as the unit.
Cells: ``latent_cell_counts.py``. Means within cells lie in the box.

R is moved in units of its noise, as in ``scale_free.py``: R = noise · log(1 + exp t). Where the
noise hides R, e is as small as √R: a funnel. So e is moved in units of what is known of it before,
about √(R (1/n + τ²)), or of its noise, whichever is smaller.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jax.scipy.special import gammaln

from noisewise.inference import hmc
from noisewise.models.linear_regression.factor_prior import (
    FARTHEST,
    MAX_AT_ONCE,
    covariate_prior,
    each_stratum,
    log_beta_prime,
    log_scale_density,
    log_spreads,
    prior_spreads,
    response_prior,
    scale_names,
    softplus,
)
from noisewise.models.linear_regression.factor_structure import Structure, cells_from_columns
from noisewise.models.linear_regression.latent_cell_counts import (
    BEYOND,
    LatentCounts,
    latent_counts_at,
    number_of_coordinates,
)
from noisewise.models.linear_regression.scale_free import (
    COVARIATE_SCALE,
    ERROR_SCALE,
    ERROR_SHAPE,
)

INFORMATION_SHARE = 0.6
"""As in ``exact.py``."""


class FactorData(NamedTuple):
    """One group's released sums, their noise scale and its (public or first) number of records."""

    z: jax.Array
    noise: jax.Array
    n: jax.Array


class Layout(NamedTuple):
    """Slices of a coordinate vector."""

    tables: slice
    log_n: slice
    x: tuple[tuple[int, int], ...]
    y: slice
    scales: slice
    size: int


class Moments(NamedTuple):
    """Sums at a point: products of atoms (atom, atom), y last; cells; the log density.

    ``sums`` are those released, block by block; ``prior`` and ``rate`` are those of y: precision
    Λ0 of its atoms and b²; ``tau`` the spread of every term of y.
    """

    gram: jax.Array
    sums: jax.Array
    log_density: jax.Array
    precision: jax.Array
    rate: jax.Array
    n: jax.Array
    tau: jax.Array


Scales = dict[tuple[str, int, int], jax.Array]
"""Logarithms of unknown scales by (kind, column, term)."""


class Covariates(NamedTuple):
    """The sums of the covariates at a point: all but those of the response.

    ``tables`` of records; ``factor`` and ``whole`` (stratum, …), the Gram matrix of level columns
    and covariates and its factor; ``gram`` that of the atoms; ``n``; the log density.
    """

    tables: LatentCounts
    factor: jax.Array
    whole: jax.Array
    gram: jax.Array
    n: jax.Array
    log_density: jax.Array


@lru_cache(maxsize=64)
def layout(structure: Structure) -> Layout:
    """Return where everything is in a coordinate vector.

    ``x`` holds start and length of each covariate's (e, t), all strata together.
    """
    strata, place = len(structure.stratum_levels), number_of_coordinates(structure)
    tables, log_n = slice(0, place), slice(place, place + structure.noisy_n)
    place = log_n.stop
    parts = []
    for j in range(structure.covariates):
        length = strata * (len(structure.x_columns) + j + 1)
        parts.append((place, length))
        place += length
    atoms = len(structure.y_columns) + structure.covariates * strata
    y = slice(place, place + atoms + 1)
    scales = slice(y.stop, y.stop + len(scale_names(structure)))
    return Layout(tables, log_n, tuple(parts), y, scales, scales.stop)


@lru_cache(maxsize=64)
def observation(structure: Structure) -> tuple[tuple[str, tuple[int, ...], np.ndarray], ...]:
    """Return how each block is read: its kind, its columns, and a matrix to its cells."""
    read = []
    d = structure.covariates
    for block in structure.blocks:
        product, within = block
        if not product:
            read.append(("count", product, np.eye(math.prod(structure.sizes[f] for f in within))))
        elif product == (d,):
            matrix = cells_from_columns(within, structure.y_columns, structure.sizes)
            read.append(("response", product, matrix))
        elif len(product) == 1:
            inner = tuple(f for f in within if f not in structure.strata)
            matrix = cells_from_columns(inner, structure.x_columns, structure.sizes)
            read.append(("covariate", product, _interleaved(structure, within, matrix)))
        else:
            cells = math.prod(structure.sizes[f] for f in within)
            read.append(("product", product, np.eye(cells)))
    return tuple(read)


def _interleaved(structure: Structure, within: tuple[int, ...], matrix: np.ndarray) -> np.ndarray:
    """Return (cell, stratum · column) for a block of a covariate, its factors in their order."""
    strata = structure.strata
    inner = tuple(f for f in within if f not in strata)
    shape = [structure.sizes[f] for f in strata + inner]
    cells = np.kron(np.eye(len(structure.stratum_levels)), matrix)
    order = [(strata + inner).index(f) for f in within]
    places = np.arange(len(cells)).reshape(shape).transpose(order).ravel()
    return np.asarray(cells[places])


def _residual_squares(t: jax.Array, noise: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return R and the log of d(½ log R)/dt, up to a constant."""
    soft = softplus(jnp.maximum(t, -60.0))
    beyond = jnp.where(t < -60.0, 1e10, 0.0)
    return noise * soft, -softplus(-t) - jnp.log(soft) - beyond


def column_units(
    diagonal: jax.Array,
    residual: jax.Array,
    spread: jax.Array,
    n: jax.Array,
    noise: jax.Array,
) -> jax.Array:
    """Return the units in which a column's e is moved.

    Args:
        diagonal: of the factor of its design's Gram matrix.
        residual: its R.
        spread: as ``prior_spreads`` returns it.
        n: records in all.
        noise: scale of the noise.
    """
    known = jnp.arange(len(spread)) > 0
    before = jnp.where(known, 1 / (residual * (1 / n + spread)), 0.0)
    return 1 / jnp.sqrt(before + 1 / n + (diagonal / noise) ** 2)


def _column(
    n: jax.Array,
    factor: jax.Array,
    e: jax.Array,
    residual: jax.Array,
    precision: jax.Array,
    rate: jax.Array,
) -> jax.Array:
    """Return log p(e, ½ log R | D), but for the normaliser of the prior."""
    k = e.shape[-1]
    delta = solve_triangular(factor, e, lower=True, trans=1)
    chol = jnp.linalg.cholesky(precision + factor @ factor.T)
    pull = precision @ delta
    half = solve_triangular(chol, pull, lower=True)
    shape = ERROR_SHAPE - 0.5 + n / 2
    bn = rate + 0.5 * (residual + delta @ pull - half @ half)
    free = jnp.maximum(n - k, 1.0)
    return (
        0.5 * free * jnp.log(residual)
        - jnp.log(jnp.diagonal(chol)).sum()
        - shape * jnp.log(bn)
        + gammaln(shape)
        - gammaln(free / 2)
        - 0.5 * n * jnp.log(2.0)
    )


def covariates_at(
    v: jax.Array, scales: Scales, data: FactorData, structure: Structure
) -> Covariates:
    """Return the covariates' sums and their log density, but for that of the scales.

    Args:
        v: coordinates, of which those of tables, log n and the covariates are read.
        scales: logarithms of the covariates' scales, by name.
        data: noise and number of records.
        structure: of the sums.
    """
    at = layout(structure)
    strata, d = len(structure.stratum_levels), structure.covariates
    n = jnp.exp(v[at.log_n][0]) if structure.noisy_n else data.n
    spreads = jnp.array([s for (kind, _, _), s in scales.items() if kind == "association"])
    tables = latent_counts_at(v[at.tables], n, data.noise, spreads, structure)
    value = tables.log_density
    if structure.noisy_n:
        value = value + jnp.log(n)
    sizes = tables.x_gram[:, 0, 0]
    factor = each_stratum(jnp.linalg.cholesky, tables.x_gram)
    for j in range(d):
        start, length = at.x[j]
        own = v[start : start + length].reshape(strata, -1)
        residual, volume = _residual_squares(own[:, -1], data.noise)
        units = jax.vmap(column_units, in_axes=(0, 0, None, None, None))(
            jnp.diagonal(factor, axis1=1, axis2=2), residual, prior_spreads(structure, scales, j),
            n, data.noise,
        )  # fmt: skip
        e = units * own[:, :-1]
        value = value + jnp.log(units).sum()
        log_b = scales["error", j, 0] + 0.5 * jnp.log(residual.sum() / n)
        precision, log_det = covariate_prior(structure, scales, j, factor, sizes)
        rate = jnp.broadcast_to(jnp.exp(2 * log_b), strata)
        value = value + each_stratum(_column, sizes, factor, e, residual, precision, rate).sum()
        value = value + log_det + volume.sum() + strata * 2 * ERROR_SHAPE * log_b
        value = value + log_beta_prime(2 * log_b, COVARIATE_SCALE)
        row = jnp.concatenate([e, jnp.sqrt(residual)[:, None]], axis=1)[:, None]
        factor = jnp.concatenate([jnp.pad(factor, ((0, 0), (0, 0), (0, 1))), row], axis=1)
    whole = jnp.einsum("skl,sml->skm", factor, factor)
    return Covariates(tables, factor, whole, atoms_gram(structure, tables.y_gram, whole), n, value)


def moments(v: jax.Array, data: FactorData, structure: Structure) -> Moments:
    """Return sums and log density at a coordinate vector, noise left out."""
    at, d = layout(structure), structure.covariates
    scales = dict(zip(scale_names(structure), jnp.clip(v[at.scales], -FARTHEST, FARTHEST),
                      strict=True))  # fmt: skip
    tables, factor, whole, gram, n, value = covariates_at(v, scales, data, structure)
    value = value - 1e10 * (jnp.abs(v[at.scales]) > FARTHEST).sum()
    chol = jnp.linalg.cholesky(gram)
    residual, volume = _residual_squares(v[at.y][-1], data.noise)
    spread = prior_spreads(structure, scales, d)
    units = column_units(jnp.diagonal(chol), residual, spread, n, data.noise)
    e = units * v[at.y][:-1]
    value = value + jnp.log(units).sum()
    log_b = scales["error", d, 0] + 0.5 * jnp.log(residual / n)
    precision, log_det = response_prior(structure, scales, factor, n)
    rate = jnp.exp(2 * log_b)
    value = value + _column(n, chol, e, residual, precision, rate)
    value = (
        value + log_det + volume + 2 * ERROR_SHAPE * log_b + log_beta_prime(2 * log_b, ERROR_SCALE)
    )
    value = value + log_scale_density(scales)
    cross = chol @ e
    gram = jnp.block([[gram, cross[:, None]], [cross[None], (e @ e + residual)[None, None]]])
    sums, wall = released_sums(structure, tables, whole, gram, data.noise)
    tau = jnp.exp(log_spreads(scales, d, len(structure.y_terms)))
    return Moments(gram, sums, value + wall, precision, rate, n, tau)


def atoms_gram(structure: Structure, first: jax.Array, whole: jax.Array) -> jax.Array:
    """Return the Gram matrix of the response's design, from that of its level columns.

    These come first, then each covariate in every stratum.
    """
    strata, d = len(structure.stratum_levels), structure.covariates
    levels, x_levels = len(structure.y_columns), len(structure.x_columns)
    if not d:
        return first
    cross = jnp.einsum("syx,sxj->yjs", structure.within_stratum, whole[:, :x_levels, x_levels:])
    inner = jnp.einsum("sij,st->isjt", whole[:, x_levels:, x_levels:], jnp.eye(strata))
    inner = inner.reshape(d * strata, d * strata)
    cross = cross.reshape(levels, d * strata)
    return jnp.block([[first, cross], [cross.T, inner]])


def released_sums(
    structure: Structure, tables: LatentCounts, whole: jax.Array, gram: jax.Array, noise: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return the released sums, block by block, and the wall around means within cells."""
    d, strata = structure.covariates, len(structure.stratum_levels)
    levels, x_levels = len(structure.y_columns), len(structure.x_columns)
    parts: list[jax.Array] = []
    wall = jnp.zeros(())
    for (kind, product, matrix), block in zip(
        observation(structure), structure.blocks, strict=True
    ):
        if kind == "count":
            parts.append(tables.cells(block.within))
            continue
        if kind == "product":
            i, j = product
            if i == d:
                parts.append(gram[-1, -1][None])
            elif j == d:
                place = levels + i * strata + np.arange(strata)
                parts.append(gram[place, -1])
            else:
                parts.append(whole[:, x_levels + i, x_levels + j])
            continue
        if kind == "response":
            cells = jnp.asarray(matrix) @ gram[:levels, -1]
        else:
            cells = jnp.asarray(matrix) @ whole[:, :x_levels, x_levels + product[0]].reshape(-1)
        beyond = jnp.maximum(jnp.abs(cells) - tables.cells(block.within), 0.0)
        wall = wall - 0.5 * ((beyond / (BEYOND * noise)) ** 2).sum()
        parts.append(cells)
    return jnp.concatenate(parts), wall


MAX_FACTORED = 100_000
"""Multiplications, about, of the factorings that groups side by side may ask for at once (chosen:
from half a million on jaxlib gives batches of matrices to threads that may wait for ever)."""
MAX_OF_CHAINS = 300_000
"""The same of the chains of one group, which are else evaluated one after the other (chosen)."""


def factored(structure: Structure) -> int:
    """Return the cubes of rows, summed, of the matrices that are factored at once at a point."""
    strata, d = len(structure.stratum_levels), structure.covariates
    atoms = len(structure.y_columns) + d * strata
    return max(atoms**3, strata * (len(structure.x_columns) + d) ** 3)


@lru_cache(maxsize=64)
def target(structure: Structure, mechanism: str, positions: int = 4) -> hmc.Target:
    """Return the distribution of the coordinates, for the sampler; cached as compiled code is.

    Args:
        structure: of the sums.
        mechanism: of the noise.
        positions: how many are evaluated at once, those of all chains and groups.
    """
    components = sum(len(matrix) for _, _, matrix in observation(structure))
    knee = min(0.5, (1.5 / components) ** (1 / 3))

    def density(v: jax.Array, g: FactorData, heat: jax.Array) -> tuple[jax.Array, jax.Array]:
        at = moments(v, g, structure)
        r = (at.sums - g.z) / (g.noise * heat)
        if mechanism == "gaussian":
            value = at.log_density - 0.5 * r @ r
            return value, value
        huber = jnp.where(jnp.abs(r) < knee, r**2 / (2 * knee) + knee / 2, jnp.abs(r))
        return at.log_density - huber.sum(), at.log_density - jnp.abs(r).sum()

    def residual(v: jax.Array, g: FactorData, heat: jax.Array) -> jax.Array:
        at = moments(v, g, structure)
        return jnp.sqrt(INFORMATION_SHARE) * (at.sums - g.z) / (g.noise * heat)

    # No two points mirror each other: the only reflection is none.
    still: tuple[tuple[float, ...], ...] = ((1.0,) * layout(structure).size,)
    few = len(structure.stratum_levels) <= MAX_AT_ONCE
    few = few and positions * factored(structure) <= MAX_OF_CHAINS
    return hmc.Target(density, residual, still, looped=True, side_by_side=few)
