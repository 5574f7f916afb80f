"""The population of pooled groups: its hyperprior and its coordinates.

The hyperprior knows no units, like the default prior of one regression (``scale_free.py``): every
covariate has an unknown scale a_j, the response's error b, and slopes an unknown size √g,

    a_j² ~ BetaPrime(0.15, ½),   b² ~ BetaPrime(½, ½),   g/3 ~ BetaPrime(½, ½),

in the box, each between 1e-4 and 1e4. Given these, with θ the slopes and the level at μ₀,

    B ~ N(0, g b²/a_j²) of slopes, N(0, 3²) of the level; its last row, the effect of the groups'
    sizes, ~ N(0, 0.4² T);   l₀ ~ N(log b², 1);   μ₀ ~ N(0, 1);
    Σ₀ ~ Wishart(d + 3, diag(a²)/(d + 3)), which is zero at zero;
    log(ν - d - 1) uniform on 0 … log 300;   γ ~ N(0.3, 0.45²);
    T, w², Ω (and F_c F_cᵀ) by a mixture of inverse Wishart laws of scales A: √g b/a_j and b for T,
    ½ for w, a_j for Ω, with ν_t = 2:
    T | r ~ InverseWishart(ν_t + p - 1, 2 ν_t diag(1/r)),   r_k ~ InverseGamma(1, 2 A_k⁻²),

so that every variance v has A²/(A² + v) uniform on (0, 1) (uniform shrinkage, M. Daniels, Canadian
Journal of Statistics 27, 1999, as for shares and rates), its deviation the median A, and

    p(T) ∝ |T|^(-(ν_t + 2p)/2) Π_k A_k⁻² (ν_t (T⁻¹)_kk + 2 A_k⁻²)^(-(ν_t + p + 1)/2).

(The construction of A. Huang and M. P. Wand, Bayesian Analysis 8, 2013, has r_k of shape ½ and
deviations that are flat at zero; where noise hides how much groups differ, these were too small.)

With scales in units of the box, groups whose columns use a small part of their bounds were drawn to
a wrong population, and intervals missed (docs/evidence-small-areas.md).

γ says how much more small groups differ than large ones (``pooled_density.py``). Where the noise
hides small groups its prior speaks for them: it is that of 57 groupings of real tables without
noise (docs/evidence-small-areas.md). With one spread for all sizes, intervals of the smaller half
of the groups of real tables held about half of their lines.

*Coordinates* φ of ψ: B; the rows of factors in polar form (deviation, direction g), deviations
themselves for T, F_c, w and Ω, which may be zero; their logarithms for Σ₀;
η = log(ν - d - 1); log a, log b, log g; γ. For a p × p factor F of T with rows of length s_j,

    dT = 2^p Π_j F_jj^(p+1) / s_j  ds dg      (without 1/s_j for log s_j).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.inference.population import SIZE_EFFECT, SIZE_POWER, SIZE_POWER_SD
from noisewise.models.linear_regression.pooled_density import PopulationLaw
from noisewise.models.linear_regression.scale_free import (
    COVARIATE_SCALE,
    ERROR_SCALE,
    SLOPE_SCALE,
    SLOPE_UNIT,
    draw_scales,
)
from noisewise.numerics.distributions import (
    draw_bartlett_factors,
    draw_inverse_wishart_factors,
)
from noisewise.numerics.matrices import (
    Matrix,
    dot,
    entries,
    log_determinant,
    solve_lower,
)

DEGREES = 2.0
"""ν_t, which makes shrinkage uniform (chosen)."""
LOG_VARIANCE_SD = 1.0
"""Deviation of l₀ about log b² (chosen)."""
LOG_VARIANCE_SPREAD = 0.5
"""Scale A of w (chosen)."""
X_MEAN_SD = 1.0
"""Deviation of μ₀ (chosen)."""
RESPONSE_LEVEL_SD = 3.0
"""Deviation of B's part for the level (chosen: levels lie in the box)."""
MOST_DEGREES = 300.0
"""The largest ν - d - 1; the least is 1 (chosen)."""
FARTHEST_UNIT = np.log(1e4)
"""Limit of |log a|, |log b| and |log g| (chosen): the lattice, of 2⁻¹⁵, would round away what is
narrower."""


class PopulationPrior(NamedTuple):
    """Scales of the hyperprior in the box: A of T's deviations, and the deviations of B.

    Not a number: in units of the unknown scales.
    """

    spread: jax.Array
    coefficients: jax.Array


def default_prior(p: int) -> PopulationPrior:
    """Return the hyperprior where none is given."""
    return PopulationPrior(jnp.full((p, 1, 1), jnp.nan), jnp.full((p, 1, 1), jnp.nan))


def fit_scales(law: PopulationLaw, prior: PopulationPrior) -> tuple[jax.Array, jax.Array]:
    """Return the scales A of T's deviations, and the deviations of B (p, chain, 1)."""
    log_a, log_b, log_g = law.log_units[:-2], law.log_units[-2], law.log_units[-1]
    slopes = jnp.exp(0.5 * log_g + log_b - log_a)
    level = jnp.full((1, *log_b.shape), RESPONSE_LEVEL_SD)
    own = jnp.concatenate([slopes, jnp.exp(log_b)[None]]), jnp.concatenate([slopes, level])
    spread, coefficients = (
        jnp.where(jnp.isnan(given), free, given) for given, free in zip(prior, own, strict=True)
    )
    return spread, coefficients


def x_spread_scale(law: PopulationLaw) -> jax.Array:
    """Return the scales A of Ω's deviations (d, chain, 1)."""
    return jnp.exp(law.log_units[:-2])


class PopulationShape(NamedTuple):
    """Covariates d, features k (constant and size among them), and whether groups have parents."""

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
        sizes |= {"x_units": d, "y_units": 2, "size_exponent": 1}
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
        log_units=jnp.concatenate([at["x_units"], at["y_units"]]),
        size_exponent=at["size_exponent"][0],
    )


def coordinates_of(law: PopulationLaw) -> jax.Array:
    """Return the coordinates φ (coordinate, chain) of a population."""
    d = len(law.x_mean)
    parts = [law.coefficients.reshape(-1, *law.level.shape), _polar(law.factor, logs=False)]
    if law.parent_factor is not None:
        parts.append(_polar(law.parent_factor, logs=False))
    parts += [law.level[None], law.level_sd[None], law.x_mean, _polar(law.x_spread, logs=False)]
    parts += [_polar(law.x_scale, logs=True), jnp.log(law.x_df - d - 1)[None]]
    parts += [law.log_units, law.size_exponent[None]]
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


def log_shrinkage(factor: jax.Array, scale: jax.Array | float) -> jax.Array:
    """Return the log density of T (chain, 1), for dT, given T's factor.

    Args:
        factor: of T (p, p, chain, 1).
        scale: A (p, chain, 1), or one number.
    """
    f, p = entries(factor, 2), len(factor)
    scales = jnp.broadcast_to(scale, (p, *factor.shape[2:]))
    value: jax.Array = -0.5 * (DEGREES + 2 * p) * log_determinant(f)
    for k, inverse in enumerate(inverse_diagonal(f)):
        value = value - 0.5 * (DEGREES + p + 1) * jnp.log(DEGREES * inverse + 2 * scales[k] ** -2)
        value = value - 2 * jnp.log(scales[k])
    return value


def log_fit_prior(law: PopulationLaw, prior: PopulationPrior) -> jax.Array:
    """Return the log density of B, T and F_c F_cᵀ (chain, 1)."""
    spread, coefficients = fit_scales(law, prior)
    features, size = law.coefficients[:-1], law.coefficients[-1]
    value = -0.5 * ((features / coefficients) ** 2).sum(axis=(0, 1))
    value = value - len(features) * jnp.log(coefficients).sum(axis=0)
    factor = entries(law.factor, 2)
    white = solve_lower(factor, entries(size / SIZE_EFFECT, 1))
    value = value - 0.5 * (dot(white, white) + log_determinant(factor))
    value = value + log_shrinkage(law.factor, spread)
    if law.parent_factor is not None:
        value = value + log_shrinkage(law.parent_factor, spread)
    return value


def _log_beta_prime(log_scale: jax.Array, exponents: tuple[float, float]) -> jax.Array:
    """Return the log density of log a, where a² is beta-prime."""
    low, high = exponents
    return 2 * low * log_scale - (low + high) * jnp.log1p(jnp.exp(2 * log_scale))


def log_units_prior(log_units: jax.Array) -> jax.Array:
    """Return the log density (chain, 1) of log a, log b and log g; -∞ beyond their limits."""
    log_a, log_b, log_g = log_units[:-2], log_units[-2], log_units[-1]
    value = _log_beta_prime(log_a, COVARIATE_SCALE).sum(axis=0)
    value = value + _log_beta_prime(log_b, ERROR_SCALE)
    value = value + _log_beta_prime(0.5 * (log_g - np.log(SLOPE_UNIT)), SLOPE_SCALE)
    inside = (jnp.abs(log_units) <= FARTHEST_UNIT).all(axis=0)
    return jnp.where(inside, value, -jnp.inf)


def log_hyperprior(phi: jax.Array, shape: PopulationShape, prior: PopulationPrior) -> jax.Array:
    """Return log p(φ) (chain) up to a constant; -∞ where ν or a scale is out of range."""
    law, d = law_of(phi, shape), shape.d
    value = log_units_prior(law.log_units) + log_fit_prior(law, prior)
    for factor in (law.factor, law.parent_factor, law.x_spread):
        value = value if factor is None else value + _log_volume(entries(factor, 2))
    log_a, log_b = law.log_units[:-2], law.log_units[-2]
    value = value - 0.5 * ((law.level - 2 * log_b) / LOG_VARIANCE_SD) ** 2
    value = value + log_shrinkage(law.level_sd[None, None], LOG_VARIANCE_SPREAD)
    value = value + _log_volume(entries(law.level_sd[None, None], 2))
    value = value - 0.5 * (law.x_mean**2).sum(axis=0) / X_MEAN_SD**2
    value = value + log_shrinkage(law.x_spread, x_spread_scale(law))
    # The Wishart of Σ₀: |Σ₀|^((df-d-1)/2) with df = d + 3, in logs of its deviations.
    scale = entries(law.x_scale, 2)
    variances = (law.x_scale**2).sum(axis=1)
    value = value + log_determinant(scale)
    value = value - 0.5 * (d + 3) * (variances * jnp.exp(-2 * log_a)).sum(axis=0)
    value = value - (d + 3) * log_a.sum(axis=0)
    value = value + _log_volume(scale) + 0.5 * jnp.log(variances).sum(axis=0)
    value = value - 0.5 * ((law.size_exponent - SIZE_POWER) / SIZE_POWER_SD) ** 2
    eta = phi[shape.blocks()["x_df"][0]]
    inside = (eta >= 0) & (eta <= np.log(MOST_DEGREES))
    return jnp.where(inside, value[..., 0], -jnp.inf)


def draw_units(rng: np.random.Generator, d: int, number: int) -> np.ndarray:
    """Draw log a, log b and log g (number, d + 2) from their prior, within its limits."""
    drawn = np.full((number, d + 2), np.inf)
    while (far := ~(np.abs(drawn) <= FARTHEST_UNIT).all(axis=1)).any():
        a, b, g = draw_scales(rng, (int(far.sum()),), d)
        drawn[far] = np.log(np.column_stack([a, b, g]))
    return drawn


def draw_law(
    rng: np.random.Generator,
    shape: PopulationShape,
    prior: PopulationPrior,
    number: int,
    units: np.ndarray | None = None,
) -> PopulationLaw:
    """Draw populations from the hyperprior, as many as chains.

    Args:
        rng: the analyst's own randomness.
        shape: of the population.
        prior: the hyperprior.
        number: of populations.
        units: log a, log b and log g (number, d + 2), where these are known.
    """
    d, p = shape.d, shape.p

    def chains_last(array: np.ndarray) -> jax.Array:
        return jnp.asarray(np.moveaxis(array, 0, -1)[..., None])

    def covariance(scales: np.ndarray) -> jax.Array:
        size = scales.shape[1]
        r = 2 * scales**-2 / rng.standard_gamma(1.0, (number, size))
        root = np.eye(size) * np.sqrt(2 * DEGREES / r)[..., None]
        df = np.full(number, DEGREES + size - 1)
        return chains_last(draw_inverse_wishart_factors(rng, root, df))

    units = draw_units(rng, d, number) if units is None else units
    a, b = np.exp(units[:, :d]), np.exp(units[:, d])
    slopes = np.exp(0.5 * units[:, d + 1])[:, None] * b[:, None] / a
    given = [np.asarray(side)[:, 0, 0] for side in prior]
    level = np.full(number, RESPONSE_LEVEL_SD)
    own = np.column_stack([slopes, b]), np.column_stack([slopes, level])
    spread, sd = (np.where(np.isnan(g), o, g) for g, o in zip(given, own, strict=True))
    scatter = draw_bartlett_factors(rng, np.full(number, d + 3.0), d, d)
    coefficients = sd[:, None] * rng.standard_normal((number, shape.k, p))
    factor = covariance(spread)
    lower = np.moveaxis(np.asarray(factor)[..., 0], -1, 0)
    white = rng.standard_normal((number, p))
    coefficients[:, -1] = SIZE_EFFECT * np.einsum("cij,cj->ci", lower, white)
    return PopulationLaw(
        chains_last(coefficients),
        factor,
        covariance(spread) if shape.nested else None,
        chains_last(2 * np.log(b) + LOG_VARIANCE_SD * rng.standard_normal(number)),
        covariance(np.full((number, 1), LOG_VARIANCE_SPREAD))[0, 0],
        chains_last(X_MEAN_SD * rng.standard_normal((number, d))),
        covariance(a),
        chains_last(a[:, :, None] * scatter / np.sqrt(d + 3)),
        chains_last(np.exp(rng.uniform(0, np.log(MOST_DEGREES), number)) + d + 1),
        chains_last(units),
        chains_last(SIZE_POWER + SIZE_POWER_SD * rng.standard_normal(number)),
    )
