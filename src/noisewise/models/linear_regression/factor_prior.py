"""The prior of a regression with factors, given its unknown scales, and the scales' own.

As ``factor_density.py`` says: exchangeable effects with a learnt spread, slopes in units of what
other columns leave of the covariate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular

from noisewise.models.linear_regression.factor_structure import Structure, penalties, rank
from noisewise.models.linear_regression.latent_cell_counts import LOG_ASSOCIATION, pairs
from noisewise.models.linear_regression.scale_free import SLOPE_SCALE, SLOPE_UNIT

MAX_AT_ONCE = 8
"""Strata whose matrices are factored at once, for all chains (chosen)."""
FARTHEST = 16.0
"""Limit of logarithms of scales (chosen)."""


@lru_cache(maxsize=64)
def scale_names(structure: Structure) -> tuple[tuple[str, int, int], ...]:
    """Return (kind, column, term) of every unknown scale; the response is the last column."""
    d, names = structure.covariates, []
    for j in range(d + 1):
        names.append(("error", j, 0))
        terms = structure.y_terms if j == d else structure.x_terms
        names += [("effects", j, t) for t in range(len(terms))]
        if j:
            names.append(("slopes", j, 0))
    if len(structure.stratum_levels) > 1:
        names += [("strata", d, j) for j in range(d)]
    if structure.pairwise:
        names += [("association", f, g) for f, g in pairs(structure)]
    return tuple(names)


def covariate_prior(
    structure: Structure,
    scales: dict[tuple[str, int, int], jax.Array],
    j: int,
    factor: jax.Array,
    sizes: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """Return Λ0 (stratum, column, column) of a covariate's coefficients, and ½ Σ log|Λ0|."""
    strata, levels = len(structure.stratum_levels), len(structure.x_columns)
    forms = penalties(structure, False)
    log_tau = log_spreads(scales, j, len(forms))
    effects = jnp.tensordot(jnp.exp(-2 * log_tau), forms, 1)
    ranks = np.array([rank(term, structure.sizes) for term in structure.x_terms])
    log_det = -strata * (ranks * log_tau).sum()
    precision = jnp.zeros((strata, levels + j, levels + j))
    precision = precision.at[:, :levels, :levels].set(effects)
    if j:
        log_g = scales["slopes", j, 0]
        inner = factor[:, levels:, levels:] / jnp.sqrt(sizes)[:, None, None]
        unique = each_stratum(_unique, inner)
        diagonal = levels + np.arange(j)
        precision = precision.at[:, diagonal, diagonal].set(unique * jnp.exp(-log_g))
        log_det = log_det + 0.5 * (jnp.log(unique) - log_g).sum()
    return precision, log_det


def response_prior(
    structure: Structure,
    scales: dict[tuple[str, int, int], jax.Array],
    factor: jax.Array,
    n: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """Return Λ0 of the atoms' coefficients and ½ log|Λ0|."""
    strata, d = len(structure.stratum_levels), structure.covariates
    levels, x_levels = len(structure.y_columns), len(structure.x_columns)
    forms = penalties(structure, True)
    log_tau = log_spreads(scales, d, len(forms))
    effects = jnp.tensordot(jnp.exp(-2 * log_tau), forms, 1)
    ranks = np.array([rank(term, structure.sizes) for term in structure.y_terms])
    log_det = -(ranks * log_tau).sum()
    precision = jnp.pad(effects, (0, d * strata))
    if d:
        log_g = scales["slopes", d, 0]
        inner = factor[:, x_levels:, x_levels:]
        pooled = jnp.linalg.cholesky(jnp.einsum("skl,sml->km", inner, inner) / n)
        unique = _unique(pooled)
        for j in range(d):
            place = levels + j * strata + np.arange(strata)
            block, half = _slopes(structure, scales, j, log_g)
            precision = precision.at[np.ix_(place, place)].set(unique[j] * block)
            log_det = log_det + half + 0.5 * strata * jnp.log(unique[j])
    return precision, log_det


def log_spreads(
    scales: dict[tuple[str, int, int], jax.Array], column: int, terms: int
) -> jax.Array:
    """Return the log spreads of all terms of a column's design."""
    return jnp.array([scales["effects", column, t] for t in range(terms)])


def _slopes(
    structure: Structure,
    scales: dict[tuple[str, int, int], jax.Array],
    j: int,
    log_g: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """Return the precision of one covariate's slopes in all strata, in units of a², and ½ log|·|.

    Their covariance is g 11' + τ² I.
    """
    strata = len(structure.stratum_levels)
    if strata == 1:
        return jnp.exp(-log_g)[None, None], -0.5 * log_g
    log_tau = scales["strata", structure.covariates, j]
    square, g = jnp.exp(2 * log_tau), jnp.exp(log_g)
    ones = jnp.ones((strata, strata))
    precision = (jnp.eye(strata) - g / (square + strata * g) * ones) / square
    return precision, -(strata - 1) * log_tau - 0.5 * jnp.log(square + strata * g)


def log_scale_density(scales: dict[tuple[str, int, int], jax.Array]) -> jax.Array:
    """Return the log density of spreads of effects and of slopes' sizes."""
    value = jnp.zeros(())
    for (kind, _, _), log_scale in scales.items():
        if kind in ("effects", "strata"):
            value = value - 0.5 * log_scale**2
        elif kind == "association":
            value = value - 0.5 * (log_scale - LOG_ASSOCIATION) ** 2
        elif kind == "slopes":
            value = value + log_beta_prime(log_scale - np.log(SLOPE_UNIT), SLOPE_SCALE)
    return value


def prior_spreads(
    structure: Structure, scales: Mapping[tuple[str, int, int], jax.Array], j: int
) -> jax.Array:
    """Return τ² or g of every coefficient of a column, those of one stratum; 0 for the constant."""
    d, response = structure.covariates, j == structure.covariates
    terms = structure.y_terms if response else structure.x_terms
    columns = structure.y_columns if response else structure.x_columns
    spread = [
        jnp.exp(2 * scales["effects", j, terms.index(c.term)]) if c.term else jnp.zeros(())
        for c in columns
    ]
    for i in range(j):
        slope = jnp.exp(scales["slopes", j, 0])
        strata = len(structure.stratum_levels) if response else 1
        if strata > 1:
            slope = slope + jnp.exp(2 * scales["strata", d, i])
        spread += [slope] * strata
    return jnp.stack(spread)


def log_beta_prime(log_square: jax.Array, exponents: tuple[float, float]) -> jax.Array:
    """Return the log density of log x, x ~ BetaPrime(low, high), up to a constant."""
    low, high = exponents
    return low * log_square - (low + high) * softplus(log_square)


def softplus(t: jax.Array) -> jax.Array:
    """Return log(1 + exp t)."""
    return jnp.maximum(t, 0.0) + jnp.log1p(jnp.exp(-jnp.abs(t)))


def _unique(factor: jax.Array) -> jax.Array:
    """Return the variance that other columns leave of each, from a factor of their Gram matrix."""
    inverse = solve_triangular(factor, jnp.eye(len(factor)), lower=True)
    return 1 / (inverse**2).sum(axis=0)


def each_stratum(f: Callable[..., jax.Array], *arguments: jax.Array) -> jax.Array:
    """Return f of every stratum: at once where they are few, else one after the other.

    Batched LAPACK calls of one program, if there are hundreds of matrices, may wait for each other
    for ever.
    """
    if len(arguments[0]) <= MAX_AT_ONCE:
        return jax.vmap(f)(*arguments)
    values: jax.Array = jax.lax.map(lambda own: f(*own), arguments)
    return values
