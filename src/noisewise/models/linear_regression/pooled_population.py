"""The population of pooled groups: its hyperprior and its coordinates.

Hyperprior, in the box: B ~ N(0, 3²) each; T, w², Ω (and F_c F_cᵀ) by A. Huang, M. P. Wand, "Simple
marginally noninformative prior distributions for covariance matrices" (Bayesian Analysis 8, 2013):
T | a ~ InverseWishart(ν_t + p - 1, 2 ν_t diag(1/a)), a_k ~ InverseGamma(½, A⁻²), ν_t = 2, A = ½, so
that every deviation is half-t with two degrees of freedom, flat at zero, and

    p(T) ∝ |T|^(-(ν_t + 2p)/2) Π_k (ν_t (T⁻¹)_kk + A⁻²)^(-(ν_t + p)/2);

l₀ ~ N(log 0.1, 2²); μ₀ ~ N(0, 1); Σ₀ ~ Wishart(d + 3, 0.1 I/(d + 3)), which is zero at zero;
log(ν - d - 1) uniform on 0 … log 300.

*Coordinates* φ of ψ: B; the rows of factors in polar form (deviation, direction g), deviations
themselves for T, F_c, w and Ω, whose density is flat at zero; their logarithms for Σ₀;
η = log(ν - d - 1). For a p × p factor F of T with rows of length s_j,

    dT = 2^p Π_j F_jj^(p+1) / s_j  ds dg      (without 1/s_j for log s_j).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.models.linear_regression.pooled_density import (
    PopulationLaw,
)
from noisewise.numerics.distributions import (
    draw_bartlett_factors,
    draw_inverse_wishart_factors,
)
from noisewise.numerics.matrices import (
    Matrix,
    entries,
    log_determinant,
    solve_lower,
)

DEGREES = 2.0
"""ν_t: deviations are half-t with two degrees of freedom (chosen)."""
LEVEL = (np.log(0.1), 2.0)
"""Mean and deviation of l₀ (chosen)."""
X_MEAN_SD = 1.0
"""Deviation of μ₀ (chosen)."""
X_SCALE = 0.1
"""Mean of Σ₀ (chosen: as ``default_covariates``)."""
MOST_DEGREES = 300.0
"""The largest ν - d - 1; the least is 1 (chosen)."""


class PopulationPrior(NamedTuple):
    """Scales of the hyperprior in the box: A of T's deviations, and the deviations of B."""

    spread: jax.Array
    coefficients: jax.Array


def default_prior(p: int) -> PopulationPrior:
    """Return the hyperprior where none is given."""
    return PopulationPrior(jnp.full((p, 1, 1), 0.5), jnp.full((p, 1, 1), 3.0))


class PopulationShape(NamedTuple):
    """Covariates d, features k (the constant among them), and whether groups have parents."""

    d: int
    k: int
    nested: bool = False

    @property
    def p(self) -> int:
        """Return the number of coefficients of a group."""
        return self.d + 1

    def blocks(self) -> dict[str, np.ndarray]:
        """Return where the coordinates of every part of ψ stand in φ."""
        p, d = self.p, self.d
        sizes = {"coefficients": self.k * p, "factor": p * (p + 1) // 2}
        sizes["parent_factor"] = sizes["factor"] * self.nested
        sizes |= {"level": 1, "level_sd": 1, "x_mean": d}
        sizes |= {"x_spread": d * (d + 1) // 2, "x_scale": d * (d + 1) // 2, "x_df": 1}
        ends = np.cumsum(list(sizes.values()))
        return {
            name: np.arange(end - size, end)
            for (name, size), end in zip(sizes.items(), ends, strict=True)
        }

    def block(self, *names: str) -> np.ndarray:
        """Return where several parts stand."""
        places = self.blocks()
        return np.concatenate([places[name] for name in names])

    @property
    def positive(self) -> np.ndarray:
        """Return which coordinates are deviations, which stay positive."""
        places, positive = self.blocks(), np.zeros(len(self), bool)
        positive[places["factor"][: self.p]] = True
        positive[places["parent_factor"][: self.p]] = True
        positive[places["x_spread"][: self.d]] = True
        positive[places["level_sd"]] = True
        return positive

    def __len__(self) -> int:
        return int(max(end[-1] for end in self.blocks().values() if len(end))) + 1


def _polar(factor: jax.Array, *, logs: bool) -> jax.Array:
    """Return deviations (or their logs) and directions of a factor (p, p, chain, 1)."""
    p = len(factor)
    size = jnp.sqrt((factor**2).sum(axis=1))
    below = [factor[j, k] / factor[j, j] for j in range(p) for k in range(j)]
    sizes = jnp.log(size) if logs else size
    return jnp.concatenate([sizes, jnp.stack(below)]) if below else sizes


def _factor(polar: jax.Array, p: int, *, logs: bool) -> jax.Array:
    """Return the factor (p, p, chain, 1) of deviations and directions."""
    sizes, place = jnp.exp(polar[:p]) if logs else polar[:p], p
    rows = []
    for j in range(p):
        direction = polar[place : place + j]
        place += j
        size = sizes[j] / jnp.sqrt(1 + (direction**2).sum(axis=0))
        zeros = jnp.zeros((p - 1 - j, *size.shape))
        rows.append(jnp.concatenate([direction * size, size[None], zeros]))
    return jnp.stack(rows)


def law_of(phi: jax.Array, shape: PopulationShape) -> PopulationLaw:
    """Return the population at coordinates φ (coordinate, chain)."""
    at = {name: phi[place][..., None] for name, place in shape.blocks().items()}
    p, d = shape.p, shape.d
    return PopulationLaw(
        coefficients=at["coefficients"].reshape(shape.k, p, *at["level"].shape[1:]),
        factor=_factor(at["factor"], p, logs=False),
        parent_factor=_factor(at["parent_factor"], p, logs=False) if shape.nested else None,
        level=at["level"][0],
        level_sd=at["level_sd"][0],
        x_mean=at["x_mean"],
        x_spread=_factor(at["x_spread"], d, logs=False),
        x_scale=_factor(at["x_scale"], d, logs=True),
        x_df=jnp.exp(at["x_df"][0]) + d + 1,
    )


def coordinates_of(law: PopulationLaw) -> jax.Array:
    """Return the coordinates φ (coordinate, chain) of a population."""
    d = len(law.x_mean)
    parts = [law.coefficients.reshape(-1, *law.level.shape), _polar(law.factor, logs=False)]
    if law.parent_factor is not None:
        parts.append(_polar(law.parent_factor, logs=False))
    parts += [law.level[None], law.level_sd[None], law.x_mean, _polar(law.x_spread, logs=False)]
    parts += [_polar(law.x_scale, logs=True), jnp.log(law.x_df - d - 1)[None]]
    return jnp.concatenate(parts)[..., 0]


def _log_volume(factor: Matrix) -> jax.Array:
    """Return log |dT / d(s, g)| of polar coordinates."""
    value = jnp.zeros(())
    for j, row in enumerate(factor):
        value = value + (len(factor) + 1) * jnp.log(row[j])
        value = value - 0.5 * jnp.log((row[: j + 1] ** 2).sum())
    return value


def inverse_diagonal(factor: Matrix) -> list[jax.Array]:
    """Return the diagonal of T⁻¹ given T's factor."""
    p = len(factor)
    columns = [solve_lower(factor[k:, k:], np.eye(p - k)[0].astype(object)) for k in range(p)]
    return [(column**2).sum() for column in columns]


def log_half_t(factor: jax.Array, scale: jax.Array | float) -> jax.Array:
    """Return the Huang-Wand log density of T in polar coordinates (deviations, not their logs)."""
    f, p = entries(factor, 2), len(factor)
    scales = jnp.broadcast_to(scale, (p, 1, 1))
    value: jax.Array = _log_volume(f) - 0.5 * (DEGREES + 2 * p) * log_determinant(f)
    for k, inverse in enumerate(inverse_diagonal(f)):
        value = value - 0.5 * (DEGREES + p) * jnp.log(DEGREES * inverse + scales[k] ** -2)
    return value


def log_hyperprior(phi: jax.Array, shape: PopulationShape, prior: PopulationPrior) -> jax.Array:
    """Return log p(φ) (chain) up to a constant; -∞ where ν is out of range."""
    law, d = law_of(phi, shape), shape.d
    value = -0.5 * ((law.coefficients / prior.coefficients) ** 2).sum(axis=(0, 1))
    value = value + log_half_t(law.factor, prior.spread)
    if law.parent_factor is not None:
        value = value + log_half_t(law.parent_factor, prior.spread)
    value = value - 0.5 * ((law.level - LEVEL[0]) / LEVEL[1]) ** 2
    value = value + log_half_t(law.level_sd[None, None], 0.5)
    value = value - 0.5 * (law.x_mean**2).sum(axis=0) / X_MEAN_SD**2
    value = value + log_half_t(law.x_spread, 0.5)
    # The Wishart of Σ₀: |Σ₀|^((df-d-1)/2) with df = d + 3, in logs of its deviations.
    scale = entries(law.x_scale, 2)
    trace = (law.x_scale**2).sum(axis=(0, 1))
    logs = 0.5 * jnp.log((law.x_scale**2).sum(axis=1)).sum(axis=0)
    value = value + log_determinant(scale) - 0.5 * (d + 3) / X_SCALE * trace
    value = value + _log_volume(scale) + logs
    eta = phi[shape.blocks()["x_df"][0]]
    inside = (eta >= 0) & (eta <= np.log(MOST_DEGREES))
    return jnp.where(inside, value[..., 0], -jnp.inf)


def draw_law(
    rng: np.random.Generator, shape: PopulationShape, prior: PopulationPrior, number: int
) -> PopulationLaw:
    """Draw populations from the hyperprior, as many as chains."""
    d, p = shape.d, shape.p
    spread, sd = (np.asarray(a)[:, 0, 0] for a in prior)

    def chains_last(array: np.ndarray) -> jax.Array:
        return jnp.asarray(np.moveaxis(array, 0, -1)[..., None])

    def covariance(scales: np.ndarray) -> jax.Array:
        size = len(scales)
        a = scales**-2 / rng.standard_gamma(0.5, (number, size))
        root = np.eye(size) * np.sqrt(2 * DEGREES / a)[..., None]
        df = np.full(number, DEGREES + size - 1)
        return chains_last(draw_inverse_wishart_factors(rng, root, df))

    half = np.full(d, 0.5)
    scatter = draw_bartlett_factors(rng, np.full(number, d + 3.0), d, d)
    return PopulationLaw(
        chains_last(sd * rng.standard_normal((number, shape.k, p))),
        covariance(spread),
        covariance(spread) if shape.nested else None,
        chains_last(LEVEL[0] + LEVEL[1] * rng.standard_normal(number)),
        covariance(half[:1])[0, 0],
        chains_last(X_MEAN_SD * rng.standard_normal((number, d))),
        covariance(half),
        chains_last(scatter * np.sqrt(X_SCALE / (d + 3))),
        chains_last(np.exp(rng.uniform(0, np.log(MOST_DEGREES), number)) + d + 1),
    )
