"""The density of one group's records given the population that the groups are drawn from.

Records of group g, in the box: x ~ N(μ_g, τ_g²), y | x ~ N(θ_gᵀ(x, 1), σ_g²). The population, with
public features u_g (k numbers, 1 first and the standardised log size last) and, where groups lie
in parents, c = c(g):

    θ_g ~ N(Bᵀu_g + F_c ω_c, r_g² T)    log σ_g² = l₀ + w ξ_g    μ_g = μ₀ + L_Ω ζ_g
    τ_g² ~ InverseWishart(ν Σ₀, ν),    ω, ξ and ζ standard normal,

r_g² = (n_g / n̄)^(-γ) with n̄ the geometric mean of the groups' sizes: small groups may differ more
than large ones, and T is the covariance between groups of size n̄.

Here θ_g are the slopes and the *level*, the response where covariates have the population's mean
μ₀: in bounds that are far from the data, intercepts at zero would be all but a multiple of slopes.

Sampled per group are the coordinates v of its statistic (``coordinates.py``), ξ and ζ; θ_g and τ_g²
are integrated out. With S/n = L Lᵀ, the rows of L being (L_x, 0) and (ℓ, L_yy), and p = d + 1, let

    C = √n [L_x, x̄-μ₀; 0, 1] (p × p),   t = √n (ℓ, ȳ),   RSS = n L_yy².

With C₀ the same for μ₀ = 0, C₀ C₀ᵀ = X̃ᵀX̃ and C₀ t = X̃ᵀy: t | θ ~ N(Cᵀθ, σ²I), whatever the rank of
the scatter, so that

    t ~ N(Cᵀm, V),   V = σ²I + r²CᵀTC,   RSS ~ σ² χ²(n - p),   m = Bᵀu + F_c ω_c

without an inverse of T, of S or of X̃ᵀX̃: T may vanish, and a group may have one record or none. With
Ψn = νΣ₀ + n (L_x L_xᵀ + (x̄-μ)(x̄-μ)ᵀ) and m_v = min(q, n - 1) the rank of the scatter,

    log p(v, ξ, ζ | ψ) = (n-1) Σ_(j ≤ m_v) l_j
        - ½ log|V| - ½ (t - Cᵀm)ᵀ V⁻¹ (t - Cᵀm) - ½ (n-p) log σ² - RSS/2σ²
        + ½ ν log|νΣ₀| + logΓ_d((ν+n)/2) - logΓ_d(ν/2) - ½ (ν+n) log|Ψn| - ½ ξ² - ½ |ζ|² + c(n).

*Few records.* All groups have the coordinates of a full scatter. Rows of L beyond the rank hold
plain entries, as in ``coordinates.py``; coordinates that a group has no use for are standard normal
and touch nothing.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln

from noisewise.inference import hmc
from noisewise.models.linear_regression.coordinates import Shape, reflections
from noisewise.numerics.gram_packing import number_of_sums, pack_symmetric, product_pairs
from noisewise.numerics.matrices import (
    Matrix,
    cholesky,
    dot,
    each,
    entries,
    joined,
    log_determinant,
    scaled,
    single,
    solve_lower,
    stacked,
    strictly_lower,
    times,
    times_transposed,
)

INFORMATION_SHARE = 0.6
"""Share of the residuals' squared slope that is taken for the curvature of the data's part (as in
``exact.py``)."""
LEAST_DEGREES = 1e-6
"""How far (n - 1)/2 stays above the pole of the Wishart's constant, where n is secret (chosen)."""
OUTSIDE = 1e10
"""Taken off the log density where a secret n is too small for a scatter of full rank (chosen):
never accepted."""


class PopulationLaw(NamedTuple):
    """The population ψ in the box; every array ends with the axes (chain, 1).

    ``coefficients`` B (k, p), ``factor`` of T, ``parent_factor`` F_c (None without parents);
    ``level`` l₀ and ``level_sd`` w; ``x_mean`` μ₀, ``x_spread`` the factor of Ω, ``x_scale`` that
    of Σ₀, and ``x_df`` ν. ``log_units``: log a of every covariate, log b and log g, the scales that
    the hyperprior is in (``pooled_population.py``); no group reads them. ``size_exponent`` γ.
    """

    coefficients: jax.Array
    factor: jax.Array
    parent_factor: jax.Array | None
    level: jax.Array
    level_sd: jax.Array
    x_mean: jax.Array
    x_spread: jax.Array
    x_scale: jax.Array
    x_df: jax.Array
    log_units: jax.Array
    size_exponent: jax.Array


def with_x_mean(law: PopulationLaw, x_mean: jax.Array) -> PopulationLaw:
    """Return a population of the same lines, whose levels are at another μ₀.

    A level is moved by slopes times the shift: a shear, of volume 1, that leaves factors triangular
    and their diagonals as they are.
    """
    shift = x_mean - law.x_mean

    def sheared(factor: jax.Array) -> jax.Array:
        """Return a factor (p, p, chain, 1) whose last row has moved."""
        return factor.at[-1].add((shift[:, None] * factor[:-1]).sum(axis=0))

    moved = (law.coefficients[:, :-1] * shift).sum(axis=1)
    return law._replace(
        x_mean=x_mean,
        coefficients=law.coefficients.at[:, -1].add(moved),
        factor=sheared(law.factor),
        parent_factor=None if law.parent_factor is None else sheared(law.parent_factor),
    )


class GroupData(NamedTuple):
    """What was released of every group, and what is public: axes (…, 1, group).

    ``others``: sums and noise scales of further releases of the same records. ``features`` (k, 1,
    group) have orthogonal rows. ``log_size`` (1, group): log n_g / n̄, or zero where the spread does
    not depend on sizes. ``parent`` (group): the place of its parent.
    """

    z: jax.Array
    n: jax.Array
    noise: jax.Array
    features: jax.Array
    log_size: jax.Array
    parent: jax.Array | None = None
    others: tuple[tuple[jax.Array, jax.Array], ...] = ()


class GroupStatistic(NamedTuple):
    """The statistic behind the coordinates, in entries over (chain, group).

    ``x_mean`` x̄, ``x_factor`` L_x, ``fit`` t, ``rss`` and ``n``.
    """

    x_mean: Matrix
    x_factor: Matrix
    fit: Matrix
    rss: jax.Array
    n: jax.Array


def statistic(v: Matrix, shape: Shape, n: jax.Array) -> tuple[GroupStatistic, jax.Array]:
    """Return the statistic at coordinates v, and its log volume with the unused coordinates' part.

    Args:
        v: entries of the coordinates, of which the first ``shape.statistic`` are read.
        shape: with full rank; what groups of few records do not use of it is left out.
        n: records of every group, ignored where they are secret.
    """
    q = shape.q
    if shape.noisy_n:
        n = jnp.exp(v[shape.statistic - 1])
    rank = _rank(n, shape)
    there = [rank > j for j in range(q)]
    rho, below = v[q : 2 * q], strictly_lower(v[2 * q : 2 * q + q * (q - 1) // 2], q, q)
    some = n > 0
    unused = each(lambda e: jnp.where(some, 0.0, e**2), v[:q]).sum()
    volume = jnp.zeros(())
    factor = np.zeros((q, q)).astype(object)
    for j in range(q):
        log_l = rho[j] - 0.5 * jnp.log1p((below[j, :j] ** 2).sum()) if j else rho[j]
        size = jnp.where(there[j], jnp.exp(jnp.where(there[j], log_l, 0.0)), 1.0)
        factor[j, j] = jnp.where(there[j], size, 0.0)
        volume = volume + jnp.where(there[j], log_l, 0.0)
        unused = unused + jnp.where(there[j], 0.0, rho[j] ** 2)
        for k in range(j):
            factor[j, k] = jnp.where(there[k], below[j, k] * size, 0.0)
            unused = unused + jnp.where(there[k], 0.0, below[j, k] ** 2)
    mean = each(lambda e: jnp.where(some, e, 0.0), v[:q])
    d, root = q - 1, jnp.sqrt(n)
    fit = scaled(root, joined(factor[d, :d], mean[d:]))
    at = GroupStatistic(mean[:d], factor[:d, :d], fit, n * factor[d, d] ** 2, n)
    return at, (n - 1) * volume - 0.5 * unused


def coordinates_of(at: GroupStatistic, old: Matrix, shape: Shape) -> Matrix:
    """Return the coordinates of a statistic: the inverse of ``statistic``.

    Unused coordinates, and those after the statistic's, are taken from ``old``.
    """
    q, root = shape.q, jnp.sqrt(jnp.maximum(at.n, 1.0))
    d, some, rank = q - 1, at.n > 0, _rank(at.n, shape)
    last = joined(scaled(1 / root, at.fit[:d]), single(jnp.sqrt(at.rss) / root, at.fit))
    new = np.array(old)
    for j in range(d):
        new[j] = jnp.where(some, at.x_mean[j], old[j])
    new[d] = jnp.where(some, at.fit[d] / root, old[d])
    place = 2 * q
    for j in range(q):
        row = at.x_factor[j] if j < d else last
        there = rank > j
        size = jnp.where(there, row[j], 1.0)
        square = (row[: j + 1] ** 2).sum()
        new[q + j] = jnp.where(there, 0.5 * jnp.log(jnp.where(there, square, 1.0)), old[q + j])
        for k in range(j):
            new[place] = jnp.where(rank > k, row[k] / size, old[place])
            place += 1
    return new


def _rank(n: jax.Array, shape: Shape) -> jax.Array:
    """Return the rank of the scatter of n records; of a secret n, all columns."""
    return jnp.full((), shape.q) if shape.noisy_n else jnp.clip(n - 1, 0, shape.q)


def design(at: GroupStatistic, law: PopulationLaw | None = None) -> Matrix:
    """Return C, or C₀ without a population."""
    d, root = len(at.x_mean), jnp.sqrt(at.n)
    matrix = np.zeros((d + 1, d + 1)).astype(object)
    matrix[:d, :d] = np.tril(scaled(root, at.x_factor))
    off = at.x_mean if law is None else at.x_mean - entries(law.x_mean, 1)
    matrix[:d, d] = scaled(root, off)
    matrix[d, d] = root
    return matrix


def intercepts(theta: jax.Array, x_mean: jax.Array) -> jax.Array:
    """Return slopes and intercepts at zero (p, …) of slopes and levels at μ₀."""
    shift = (theta[:-1] * x_mean).sum(axis=0)
    return theta.at[-1].add(-shift)


def response_sums(at: GroupStatistic, c: Matrix) -> Matrix:
    """Return Σ x y, Σ y² and Σ y, as they stand in the packed sums."""
    cross = times(c, at.fit)
    return joined(cross[:-1], single(at.rss + dot(at.fit, at.fit), cross), cross[-1:])


def covariate_sums(at: GroupStatistic) -> Matrix:
    """Return Σ x xᵀ (upper triangle) and Σ x, and n where it is secret."""
    second = times_transposed(at.x_factor, at.x_factor) + at.x_mean[:, None] * at.x_mean[None]
    return joined(scaled(at.n, pack_symmetric(second)), scaled(at.n, at.x_mean))


def sum_positions(shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    """Return where the sums of covariates alone, and of the response, stand in the packed sums."""
    d = shape.q - 1
    columns = product_pairs(shape.q)[1]
    totals = len(columns) + np.arange(shape.q)
    of_x = [*np.flatnonzero(columns < d), *totals[:d]]
    if shape.noisy_n:
        of_x.append(number_of_sums(shape.q))
    return np.array(of_x), np.array([*np.flatnonzero(columns == d), totals[d]])


def noise_residuals(
    at: GroupStatistic, data: GroupData, shape: Shape, part: str = "all"
) -> list[Matrix]:
    """Return (sums - released sums) / noise scale, of every release.

    Args:
        at: the statistic.
        data: what was released.
        shape: of the statistic.
        part: ``"response"``: only of sums with y in them.
    """
    of_x, of_y = sum_positions(shape)
    sums, where = response_sums(at, design(at)), of_y
    if part == "all":
        n = [single(at.n, sums)] if shape.noisy_n else []
        sums, where = joined(covariate_sums(at), *n, sums), np.concatenate([of_x, of_y])
    return [
        scaled(1 / noise, sums - entries(z, 1)[where])
        for z, noise in ((data.z, data.noise), *data.others)
    ]


def log_noise(residuals: list[Matrix], mechanisms: tuple[str, ...]) -> jax.Array:
    """Return log p(z | s) up to a constant."""
    value = jnp.zeros(())
    for r, mechanism in zip(residuals, mechanisms, strict=True):
        gaussian = mechanism == "gaussian"
        value = value - (0.5 * dot(r, r) if gaussian else each(jnp.abs, r).sum())
    return value


def relative_spread(law: PopulationLaw, data: GroupData) -> jax.Array:
    """Return r (chain, group)."""
    return jnp.exp(-0.5 * law.size_exponent * data.log_size)


def group_factor(law: PopulationLaw, data: GroupData) -> jax.Array:
    """Return the factor (p, p, chain, group) of every group's covariance r²T."""
    return law.factor * relative_spread(law, data)


def response_factor(c: Matrix, log_variance: jax.Array, factor: jax.Array) -> Matrix:
    """Return the Cholesky factor of V."""
    spread = times_transposed(c.T, entries(factor, 2).T)
    covariance = times_transposed(spread, spread)
    variance = jnp.exp(log_variance)
    for j in range(len(covariance)):
        covariance[j, j] = covariance[j, j] + variance
    return cholesky(covariance)


def whitened_fit(at: GroupStatistic, c: Matrix, centre: Matrix, root: Matrix) -> Matrix:
    """Return K⁻¹ (t - Cᵀm), K the factor of V."""
    return solve_lower(root, at.fit - times(c.T, centre))


def log_response(
    at: GroupStatistic,
    centre: Matrix,
    log_variance: jax.Array,
    law: PopulationLaw,
    data: GroupData,
) -> jax.Array:
    """Return the part of t and RSS."""
    c = design(at, law)
    root = response_factor(c, log_variance, group_factor(law, data))
    white = whitened_fit(at, c, centre, root)
    free = at.n - len(at.fit)
    rss = at.rss * jnp.exp(-log_variance)
    value: jax.Array = -0.5 * (
        log_determinant(root) + dot(white, white) + free * log_variance + rss
    )
    return value


def log_covariates(at: GroupStatistic, mu: Matrix, law: PopulationLaw) -> jax.Array:
    """Return the part of x̄ and L_x, with the terms of n and of ν."""
    d = len(mu)
    scale = entries(law.x_scale, 2)
    off = at.x_mean - mu
    inner = times_transposed(at.x_factor, at.x_factor) + off[:, None] * off[None]
    prior = scaled(law.x_df, times_transposed(scale, scale))
    after = cholesky(prior + scaled(at.n, inner))
    degrees = law.x_df + at.n
    value: jax.Array = (
        0.5 * law.x_df * (d * jnp.log(law.x_df) + log_determinant(scale))
        + _log_gamma(0.5 * degrees, d)
        - _log_gamma(0.5 * law.x_df, d)
        - 0.5 * degrees * log_determinant(after)
    )
    return value


def _log_gamma(a: jax.Array, d: int) -> jax.Array:
    """Return log Γ_d(a) up to a constant."""
    return sum((gammaln(a - 0.5 * j) for j in range(d)), jnp.zeros(()))


def _terms_of_n(n: jax.Array, q: int) -> jax.Array:
    """Return c(n) of a secret n, with a flat prior above q, as ``collapsed.py`` derives it."""
    powers = q / 2 + q * (n - q - 2) / 2 + q * (q + 1) / 2 + 1
    least = (q - 1) / 2 + LEAST_DEGREES
    return (
        powers * jnp.log(n)
        - jnp.where(n < q + 1, OUTSIDE, 0.0)
        + 0.5 * (n - 1) * q * jnp.log(jnp.pi)
        - _log_gamma(jnp.maximum((n - 1) / 2, least), q)
        - 0.5 * n * jnp.log(2 * jnp.pi)
        - 0.5 * n * (q - 1) * jnp.log(jnp.pi)
    )


def log_variance_of(xi: jax.Array, law: PopulationLaw) -> jax.Array:
    """Return log σ²."""
    return law.level + law.level_sd * xi


def x_mean_of(zeta: Matrix, law: PopulationLaw) -> Matrix:
    """Return μ."""
    return entries(law.x_mean, 1) + times(entries(law.x_spread, 2), zeta)


def centre_of(law: PopulationLaw, white_parents: jax.Array, data: GroupData) -> jax.Array:
    """Return m (p, chain, group): Bᵀu, and what the parent adds.

    Args:
        law: the population.
        white_parents: ω (p, chain, parent).
        data: has the features and the parents.
    """
    features = law.coefficients.shape[0]
    centre = sum((law.coefficients[i] * data.features[i] for i in range(features)), jnp.zeros(()))
    if law.parent_factor is None or data.parent is None:
        return centre
    added = stacked(times(entries(law.parent_factor, 2), entries(white_parents, 1)))
    return centre + added[:, :, data.parent]


class PooledData(NamedTuple):
    """What a group's density reads: the release, the population, and m (p, chain, group)."""

    data: GroupData
    law: PopulationLaw
    centre: jax.Array


def position_parts(x: Matrix, shape: Shape) -> tuple[Matrix, jax.Array, Matrix]:
    """Return v, ξ and ζ of a position."""
    size = shape.statistic
    return x[:size], x[size], x[size + 1 :]


def log_prior_predictive(x: Matrix, pooled: PooledData, shape: Shape) -> jax.Array:
    """Return log p(v, ξ, ζ | ψ) up to a constant."""
    v, xi, zeta = position_parts(x, shape)
    at, value = statistic(v, shape, pooled.data.n)
    law = pooled.law
    value = value + log_response(
        at, entries(pooled.centre, 1), log_variance_of(xi, law), law, pooled.data
    )
    value = value + log_covariates(at, x_mean_of(zeta, law), law)
    if shape.noisy_n:
        value = value + _terms_of_n(at.n, shape.q)
    white: jax.Array = xi**2 + dot(zeta, zeta)
    return value - 0.5 * white


@lru_cache(maxsize=64)
def target(shape: Shape, mechanisms: tuple[str, ...]) -> hmc.Target:
    """Return the distribution of a group's coordinates given the population, for the sampler."""
    components = (number_of_sums(shape.q) + shape.noisy_n) * len(mechanisms)
    # The Huber surrogate is off by knee/2 at most in every kink: the more kinks, the smaller.
    knee = min(0.5, (1.5 / components) ** (1 / 3))

    def huber(e: jax.Array) -> jax.Array:
        return jnp.where(jnp.abs(e) < knee, e**2 / (2 * knee) + knee / 2, jnp.abs(e))

    def residuals(x: Matrix, pooled: PooledData, heat: jax.Array) -> list[Matrix]:
        at, _ = statistic(x, shape, pooled.data.n)
        return [scaled(1 / heat, r) for r in noise_residuals(at, pooled.data, shape)]

    def density(x: Matrix, pooled: PooledData, heat: jax.Array) -> tuple[jax.Array, jax.Array]:
        smooth = true = log_prior_predictive(x, pooled, shape)
        for r, mechanism in zip(residuals(x, pooled, heat), mechanisms, strict=True):
            if mechanism == "gaussian":
                both = 0.5 * dot(r, r)
                smooth, true = smooth - both, true - both
            else:
                smooth, true = smooth - each(huber, r).sum(), true - each(jnp.abs, r).sum()
        return smooth, true

    def residual(x: Matrix, pooled: PooledData, heat: jax.Array) -> Matrix:
        v, _, zeta = position_parts(x, shape)
        at, _ = statistic(v, shape, pooled.data.n)
        off = at.x_mean - x_mean_of(zeta, pooled.law)
        apart = scaled(jnp.sqrt(at.n), solve_lower(entries(pooled.law.x_scale, 2), off))
        return scaled(np.sqrt(INFORMATION_SHARE), joined(*residuals(x, pooled, heat), apart))

    return hmc.Target(density, residual, _signs(shape), looped=False)


def _signs(shape: Shape) -> tuple[tuple[float, ...], ...]:
    """Return the reflections of a statistic; ζ changes its sign with the means."""
    signs = reflections(shape)
    rows, d = len(signs), shape.q - 1
    extra = np.concatenate([np.ones((rows, 1)), np.repeat(signs[:, :1], d, axis=1)], axis=1)
    return tuple(map(tuple, np.concatenate([signs, extra], axis=1).tolist()))
