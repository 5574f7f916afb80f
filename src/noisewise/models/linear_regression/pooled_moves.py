"""Moves of the population of pooled groups; each leaves p(ψ, v, ξ, ζ | z) as it is.

- ``conjugate_moves``: θ_g is drawn given its group, then T given θ; l₀, w given log σ²; μ₀, Ω given
  μ; F_c given what parents add. Alone they are slow where the noise leaves θ_g open.
- ``draw_coefficients`` and ``draw_parents``: B and ω given t, with θ integrated out.
- ``random_walk`` over some of φ, while the groups keep something fixed. They keep the statistic s
  itself in ``fixed_fit`` of (B, T, F_c, γ) and ``fixed_covariates`` of (Σ₀, ν). Otherwise records
  are carried along (Y. Yu, X.-L. Meng, "To center or not to center", JCGS 20, 2011):

  ``carried_level`` (l₀, w): ξ, RSS/σ² and y = K⁻¹(t - Cᵀm), K Kᵀ = V, are kept; s follows.
  ``carried_covariates`` (μ₀, Ω, Σ₀, ν): ζ, y, RSS and records standardised by μ and Σ₀ are kept,
  but for their size: with e^r the d-th root of |W|, W = L_Σ⁻¹ (L_x L_xᵀ + (x̄-μ)(x̄-μ)ᵀ) L_Σ⁻ᵀ, what
  is kept is u = (r - E(r; ν)) / sd(ν), since r depends on ν through χ²(n) / χ²(ν).
  ``fixed_groups`` (log a, log b, log g): no group reads the units of the hyperprior.
  ``carried_units`` (log a): records of x in units of a, ℓ, RSS and slopes times a are kept.
  ``carried_fit`` (B, T, F_c, γ): y given z is about N(M⁻¹Eᵀg, M⁻¹), E = C K, with M and g from a
  normal approximation of the noise at each sum of x y and of y: these are linear in y. Kept is the
  standardised y, so that the move comes near to one with all records integrated out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln

from noisewise.inference.population import SIZE_EFFECT
from noisewise.models.linear_regression import pooled_density as density
from noisewise.models.linear_regression.coordinates import Shape
from noisewise.models.linear_regression.pooled_density import (
    GroupData,
    GroupStatistic,
    PopulationLaw,
)
from noisewise.models.linear_regression.pooled_population import (
    DEGREES,
    LOG_VARIANCE_SD,
    LOG_VARIANCE_SPREAD,
    X_MEAN_SD,
    PopulationPrior,
    PopulationShape,
    fit_scales,
    inverse_diagonal,
    law_of,
    log_fit_prior,
    log_hyperprior,
    x_spread_scale,
)
from noisewise.numerics.distributions import gamma
from noisewise.numerics.matrices import (
    Matrix,
    cholesky,
    dot,
    each,
    entries,
    listed,
    log_determinant,
    scaled,
    solve_lower,
    solve_upper,
    stacked,
    times,
    times_transposed,
)

FARTHEST = 30.0
"""Limit of a negative argument of Mills' ratio, below which exp(x²/2) would overflow (chosen)."""
LEAST_VARIANCE = 1e-12
"""Least variance of a sum in units of the noise's, so that a group without records has one
(chosen)."""


class Groups(NamedTuple):
    """The state of all groups beside the population: statistic, ξ, ζ and ω (p, chain, parent)."""

    at: GroupStatistic
    xi: jax.Array
    zeta: Matrix
    parents: jax.Array


class Setting(NamedTuple):
    """What is the same in all sweeps: shapes, noise, and what was released."""

    shape: Shape
    population: PopulationShape
    mechanisms: tuple[str, ...]


def _stay(before: jax.Array, after: jax.Array) -> jax.Array:
    return after


class View(NamedTuple):
    """Groups under a random walk of ψ: what follows from ψ and from what is kept.

    ``log_density(law)`` (chain, group) of ψ given what is kept, up to a constant; ``groups(law)``
    the groups that ψ and what is kept make. ``followed(before, after)`` moves those coordinates φ
    that follow the ones that walk; ``log_volume(law)`` (chain) is what that does to volumes.
    """

    log_density: Callable[[PopulationLaw], jax.Array]
    groups: Callable[[PopulationLaw], Groups]
    followed: Callable[[jax.Array, jax.Array], jax.Array] = _stay
    log_volume: Callable[[PopulationLaw], jax.Array] = lambda law: jnp.zeros(())


def _centre(law: PopulationLaw, groups: Groups, data: GroupData) -> Matrix:
    return entries(density.centre_of(law, groups.parents, data), 1)


def fixed_fit(groups: Groups, law: PopulationLaw, data: GroupData, setting: Setting) -> View:
    """Return the groups with s, ξ and ω kept, for (B, T, F_c, γ): θ is integrated out."""
    c = density.design(groups.at, law)
    log_variance = density.log_variance_of(groups.xi, law)

    def log_density(law: PopulationLaw) -> jax.Array:
        root = density.response_factor(c, log_variance, density.group_factor(law, data))
        white = density.whitened_fit(groups.at, c, _centre(law, groups, data), root)
        value: jax.Array = -0.5 * (log_determinant(root) + dot(white, white))
        return value

    return View(log_density, lambda law: groups)


def fixed_covariates(groups: Groups, law: PopulationLaw, data: GroupData, setting: Setting) -> View:
    """Return the groups with s and μ kept, for (Σ₀, ν): τ² is integrated out."""
    mu = density.x_mean_of(groups.zeta, law)
    return View(lambda law: density.log_covariates(groups.at, mu, law), lambda law: groups)


def fixed_groups(groups: Groups, law: PopulationLaw, data: GroupData, setting: Setting) -> View:
    """Return the groups as they are, for the units of the hyperprior."""
    return View(lambda law: jnp.zeros((law.level.shape[0], 1)), lambda law: groups)


def carried_level(groups: Groups, law: PopulationLaw, data: GroupData, setting: Setting) -> View:
    """Return the groups with ξ, residuals in units of σ, and the whitened fit kept."""
    at, c = groups.at, density.design(groups.at, law)
    before = density.log_variance_of(groups.xi, law)
    centre = _centre(law, groups, data)
    root = density.response_factor(c, before, density.group_factor(law, data))
    white, base = density.whitened_fit(at, c, centre, root), times(c.T, centre)

    def carried(law: PopulationLaw) -> Groups:
        log_variance = density.log_variance_of(groups.xi, law)
        new = density.response_factor(c, log_variance, density.group_factor(law, data))
        fit, rss = base + times(new, white), at.rss * jnp.exp(log_variance - before)
        return groups._replace(at=at._replace(fit=fit, rss=rss))

    def log_density(law: PopulationLaw) -> jax.Array:
        after = carried(law).at
        residuals = density.noise_residuals(after, data, setting.shape, "response")
        return density.log_noise(residuals, setting.mechanisms)

    return View(log_density, carried)


def carried_covariates(
    groups: Groups, law: PopulationLaw, data: GroupData, setting: Setting
) -> View:
    """Return the groups with ζ, standardised records of x, and the whitened fit kept."""
    at, d = groups.at, len(groups.zeta)
    log_variance, centre = density.log_variance_of(groups.xi, law), _centre(law, groups, data)
    c = density.design(at, law)
    root = density.response_factor(c, log_variance, density.group_factor(law, data))
    white = density.whitened_fit(at, c, centre, root)
    scale = entries(law.x_scale, 2)
    off = solve_lower(scale, at.x_mean - density.x_mean_of(groups.zeta, law))
    columns = [solve_lower(scale, column) for column in at.x_factor.T]
    spread = np.tril(np.stack(columns, axis=1))
    # The size of records can be kept in units of its law only where their scatter is not singular.
    whole = at.n >= d + 2
    square = times_transposed(spread, spread) + off[:, None] * off[None]
    for j in range(d):
        square[j, j] = jnp.where(whole, square[j, j], 1.0)
        for k in range(d):
            square[j, k] = square[j, k] if j == k else jnp.where(whole, square[j, k], 0.0)
    size = log_determinant(cholesky(square)) / d
    mean, sd = _size_law(at.n, law.x_df, d)
    kept = (size - mean) / sd
    unit = jnp.exp(-0.5 * size)
    off, spread = scaled(unit, off), np.tril(scaled(unit, spread))
    shrunken = times_transposed(spread, spread) + off[:, None] * off[None]

    def sized(law: PopulationLaw) -> tuple[jax.Array, jax.Array]:
        mean, sd = _size_law(at.n, law.x_df, d)
        return jnp.where(whole, mean + sd * kept, 0.0), jnp.where(whole, jnp.log(sd), 0.0)

    def carried(law: PopulationLaw) -> Groups:
        stretch = jnp.exp(0.5 * sized(law)[0])
        scale = entries(law.x_scale, 2)
        mu = density.x_mean_of(groups.zeta, law)
        x_mean = mu + times(scale, scaled(stretch, off))
        x_factor = np.tril(scaled(stretch, times_transposed(scale, spread.T)))
        moved = at._replace(x_mean=x_mean, x_factor=x_factor)
        c = density.design(moved, law)
        root = density.response_factor(c, log_variance, density.group_factor(law, data))
        return groups._replace(at=moved._replace(fit=times(c.T, centre) + times(root, white)))

    def log_density(law: PopulationLaw) -> jax.Array:
        size, log_sd = sized(law)
        inner = scaled(at.n * jnp.exp(size), shrunken)
        for j in range(d):
            inner[j, j] = inner[j, j] + law.x_df
        degrees = law.x_df + at.n
        value: jax.Array = (
            0.5 * d * law.x_df * jnp.log(law.x_df)
            + sum(gammaln(0.5 * (degrees - j)) - gammaln(0.5 * (law.x_df - j)) for j in range(d))
            - 0.5 * degrees * log_determinant(cholesky(inner))
            + 0.5 * d * at.n * size
            + log_sd
        )
        residuals = density.noise_residuals(carried(law).at, data, setting.shape)
        return value + density.log_noise(residuals, setting.mechanisms)

    return View(log_density, carried)


def _size_law(n: jax.Array, df: jax.Array, d: int) -> tuple[jax.Array, jax.Array]:
    """Return about the mean and deviation of the log size of n standardised records."""
    n = jnp.maximum(n, d + 1.0)

    def log_mean(degrees: jax.Array) -> jax.Array:
        # Of log|W| / d, W ~ Wishart(degrees, I / degrees); asymptotic where that is accurate.
        return sum(_digamma(0.5 * (degrees - j)) for j in range(d)) / d - jnp.log(0.5 * degrees)

    return log_mean(n) - log_mean(df), jnp.sqrt(2 / df + 2 / n)


def _digamma(a: jax.Array) -> jax.Array:
    """Return about ψ(a), for a ≥ ½."""
    b = a + 1
    return jnp.log(b) - 1 / (2 * b) - 1 / (12 * b**2) - 1 / a


def carried_units(groups: Groups, law: PopulationLaw, data: GroupData, setting: Setting) -> View:
    """Return the groups with covariates and all that is in their units stretched by a.

    With a_j the law of covariate j (Σ₀, Ω, x - μ₀) becomes as much wider, and slopes on it smaller:
    t keeps its law, and only sums with x in them change. Where noise hides a covariate this is the
    direction in which ψ is open.
    """
    shape, at, d = setting.population, groups.at, len(groups.zeta)
    places = shape.blocks()
    wider = [places["x_scale"][:d], places["x_spread"][:d]]
    narrower = [places["factor"][:d], places["parent_factor"][:d]]
    slopes = places["coefficients"].reshape(shape.k, shape.p)[:, :d]
    centre = entries(law.x_mean, 1)

    def followed(before: jax.Array, after: jax.Array) -> jax.Array:
        change = after[places["x_units"]] - before[places["x_units"]]
        ratio = jnp.exp(change)
        after = after.at[wider[0]].add(change).at[wider[1]].multiply(ratio)
        for place in narrower:
            after = after.at[place].multiply(1 / ratio[: len(place)])
        return after.at[slopes].multiply(1 / ratio)

    def log_volume(new: PopulationLaw) -> jax.Array:
        # B's slopes and deviations of T and F_c shrink, those of Ω grow; those of Σ₀ are logs.
        power = 1 - shape.k - 1 - shape.nested
        change = new.log_units[:d] - law.log_units[:d]
        return power * change.sum(axis=0)[..., 0]

    def stretched(new: PopulationLaw) -> Groups:
        ratio = entries(jnp.exp(new.log_units[:d] - law.log_units[:d]), 1)
        x_mean = centre + ratio * (at.x_mean - centre)
        x_factor = np.tril(ratio[:, None] * at.x_factor)
        return groups._replace(at=at._replace(x_mean=x_mean, x_factor=x_factor))

    def log_density(new: PopulationLaw) -> jax.Array:
        residuals = density.noise_residuals(stretched(new).at, data, setting.shape)
        return density.log_noise(residuals, setting.mechanisms)

    return View(log_density, stretched, followed, log_volume)


def carried_fit(groups: Groups, law: PopulationLaw, data: GroupData, setting: Setting) -> View:
    """Return the groups with x, RSS, ξ, ω kept, and the fit in units of its law given z."""
    at, c, plain = groups.at, density.design(groups.at, law), density.design(groups.at)
    log_variance = density.log_variance_of(groups.xi, law)
    places = density.sum_positions(setting.shape)[1]
    # Σ y² is not linear in the fit; it follows Σ x y and comes before Σ y.
    linear = entries(data.z, 1)[np.delete(places, -2)]

    def given_noise(law: PopulationLaw) -> tuple[Matrix, Matrix, Matrix, Matrix]:
        root = density.response_factor(c, log_variance, density.group_factor(law, data))
        base = times(c.T, _centre(law, groups, data))
        along = times_transposed(plain, root.T)
        off = linear - times(plain, base)
        curvature, pull = _noise_at(off, (along**2).sum(axis=1), data, setting)
        m = times_transposed(along.T, (along * curvature[:, None]).T)
        for j in range(len(m)):
            m[j, j] = m[j, j] + 1.0
        inner = cholesky(m)
        return root, base, inner, solve_lower(inner, times(along.T, pull))

    root, base, inner, shift = given_noise(law)
    white = solve_lower(root, at.fit - base)
    kept = times(inner.T, white) - shift

    def carried(law: PopulationLaw) -> tuple[Groups, Matrix, Matrix]:
        root, base, inner, shift = given_noise(law)
        white = solve_upper(inner, kept + shift)
        return groups._replace(at=at._replace(fit=base + times(root, white))), white, inner

    def log_density(law: PopulationLaw) -> jax.Array:
        after, white, inner = carried(law)
        residuals = density.noise_residuals(after.at, data, setting.shape, "response")
        moved: jax.Array = dot(white, white) + log_determinant(inner)
        return density.log_noise(residuals, setting.mechanisms) - 0.5 * moved

    return View(log_density, lambda law: carried(law)[0])


def _noise_at(
    off: Matrix, variance: Matrix, data: GroupData, setting: Setting
) -> tuple[Matrix, Matrix]:
    """Return curvature h and pull g of the noise at sums that are normal before it.

    By Tweedie's formula the mean and variance of such a sum after z are m - v s and v + v² s', with
    s the score of z. For Laplace noise, with R Mills' ratio, R± = R(√v/b ± (z-m)/√v),

        s = (R₊ - R₋) / (b (R₊ + R₋)),    s' = (1 - 2b / (√v (R₊ + R₋))) / b² - s².
    """
    b = data.noise
    variance = each(lambda e: e + LEAST_VARIANCE * b**2, variance)
    if setting.mechanisms[0] == "gaussian":
        flat = listed([jnp.ones_like(e) / b**2 for e in off])
        return flat, listed([e / b**2 for e in off])
    curvature: list[jax.Array] = []
    pull: list[jax.Array] = []
    for r, v in zip(off, variance, strict=True):
        s = jnp.sqrt(v)
        plus, minus = _mills(s / b + r / s), _mills(s / b - r / s)
        score = (plus - minus) / (b * (plus + minus))
        slope = (1 - 2 * b / (s * (plus + minus))) / b**2 - score**2
        left = jnp.clip(1 + v * slope, 1 / (1 + v / b**2 + s / b), 1.0)
        curvature.append((1 / left - 1) / v)
        pull.append(-score / left)
    return listed(curvature), listed(pull)


def _mills(x: jax.Array) -> jax.Array:
    """Return about Φ(-x) / φ(x), to three digits (A. V. Boyd's bound, 1959)."""
    size = jnp.minimum(jnp.abs(x), FARTHEST)
    upper = jnp.pi / ((jnp.pi - 1) * size + jnp.sqrt(size**2 + 2 * jnp.pi))
    far = jnp.pi / ((jnp.pi - 1) * jnp.abs(x) + jnp.sqrt(x**2 + 2 * jnp.pi))
    return jnp.where(x > 0, far, jnp.sqrt(2 * jnp.pi) * jnp.exp(0.5 * size**2) - upper)


def random_walk(
    white: jax.Array,
    log_uniform: jax.Array,
    phi: jax.Array,
    view: View,
    block: np.ndarray,
    step: jax.Array,
    prior: PopulationPrior,
    shape: PopulationShape,
) -> tuple[jax.Array, jax.Array]:
    """Return φ after Metropolis steps over some of its coordinates, and the mean acceptance.

    Args:
        white: standard normals (step, block, chain).
        log_uniform: logs of uniforms (step, chain).
        phi: coordinates (coordinate, chain).
        view: of the groups while they move.
        block: the coordinates that move.
        step: factor of the proposals' covariance (block, block, chain).
        prior: of the population.
        shape: of the population.
    """
    steps, _, chains = white.shape
    positive = jnp.asarray(shape.positive[block])[:, None]

    def log_target(phi: jax.Array) -> jax.Array:
        law = law_of(phi, shape)
        value = view.log_density(law)
        groups = jnp.broadcast_to(value, (chains, value.shape[-1])).sum(axis=-1)
        return groups + view.log_volume(law) + log_hyperprior(phi, shape, prior)

    def one(number: jax.Array, now: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        phi, before, accepted = now
        # The first round only computes the density where the walk begins: so it is compiled once.
        moving = number > 0
        fresh = jnp.where(moving, white[number - 1], 0.0)
        moved = phi[block] + (step * fresh[None]).sum(axis=1)
        # Turned down, not folded back: folding is symmetric for uncorrelated steps only.
        outside = (positive & (moved < 0)).any(axis=0)
        new = phi.at[block].set(jnp.where(positive, jnp.abs(moved), moved))
        new = view.followed(phi, new)
        after = jnp.where(outside, -jnp.inf, log_target(new))
        # Where arithmetic fails at the beginning, the chain stays.
        usable = jnp.isfinite(after) & (jnp.isfinite(before) | ~moving)
        change = jnp.where(usable, after - before, -jnp.inf)
        taken = log_uniform[number - 1] < change
        chance = jnp.where(moving, jnp.exp(jnp.minimum(change, 0.0)), 0.0)
        return (
            jnp.where(taken, new, phi),
            jnp.where(taken, after, before),
            accepted + chance / steps,
        )

    begin = phi, jnp.full(chains, -jnp.inf), jnp.zeros(chains)
    phi, _, accepted = jax.lax.fori_loop(0, steps + 1, one, begin)
    return phi, accepted


def draw_theta(key: jax.Array, groups: Groups, law: PopulationLaw, data: GroupData) -> jax.Array:
    """Draw θ (p, chain, group), slopes and level, given its group and the population.

    By Matheron's rule: a draw (θ, t) from the prior, moved by what t is off.
    """
    at, c = groups.at, density.design(groups.at, law)
    log_variance = density.log_variance_of(groups.xi, law)
    root = density.response_factor(c, log_variance, density.group_factor(law, data))
    p, batch = len(at.fit), root[0, 0].shape
    white = entries(jax.random.normal(key, (2 * p, *batch)), 1)
    factor = entries(density.group_factor(law, data), 2)
    centre = _centre(law, groups, data)
    theta = centre + times(factor, white[:p])
    off = at.fit - times(c.T, theta) - scaled(jnp.exp(0.5 * log_variance), white[p:])
    pulled = times(c, solve_upper(root, solve_lower(root, off)))
    return stacked(theta + times(factor, times(factor.T, pulled)))


def conjugate_moves(
    key: jax.Array,
    theta: jax.Array,
    groups: Groups,
    law: PopulationLaw,
    data: GroupData,
    prior: PopulationPrior,
) -> tuple[PopulationLaw, Groups]:
    """Draw T, F_c given θ; l₀, w given log σ²; μ₀, Ω given μ; ω, ξ and ζ follow.

    μ₀ is where levels are: its draw given μ is a proposal, in which lines stay where they are.
    """
    p, d, chains = len(theta), len(law.x_mean), theta.shape[1]
    nested = law.parent_factor is not None
    number = theta.shape[-1]
    numbers = [(p, number + 1), (1, number), (d, number)]
    numbers += [(p, groups.parents.shape[-1])] if nested else []
    variates = _covariance_variates(jax.random.fold_in(key, 0), numbers, chains)
    white = jax.random.normal(jax.random.fold_in(key, 1), (1 + d, chains, 1))
    log_variance = density.log_variance_of(groups.xi, law)
    mu = stacked(density.x_mean_of(groups.zeta, law))
    mu = jnp.broadcast_to(mu, (d, *theta.shape[1:]))
    spread, _ = fit_scales(law, prior)
    off = theta - density.centre_of(law, groups.parents, data)
    # The effect of sizes has T in its prior, like one more group.
    effect = law.coefficients[-1] / SIZE_EFFECT
    off = jnp.concatenate([off / density.relative_spread(law, data), effect], axis=-1)
    new = law._replace(factor=_draw_covariance(variates[0], off, law.factor, spread))
    values = jnp.broadcast_to(log_variance, theta.shape[1:])[None]
    level = _draw_mean(
        white[:1], values, law.level_sd[None, None], 2 * law.log_units[-2][None], LOG_VARIANCE_SD
    )
    level_sd = _draw_covariance(
        variates[1], values - level, law.level_sd[None, None],
        jnp.full((1, 1, 1), LOG_VARIANCE_SPREAD),
    )  # fmt: skip
    new = new._replace(level=level[0], level_sd=level_sd[0, 0])
    if law.parent_factor is not None:
        added = stacked(times(entries(law.parent_factor, 2), entries(groups.parents, 1)))
        parent_factor = _draw_covariance(variates[3], added, law.parent_factor, spread)
        parents = stacked(solve_lower(entries(parent_factor, 2), entries(added, 1)))
        new, groups = new._replace(parent_factor=parent_factor), groups._replace(parents=parents)
    x_mean = _draw_mean(white[-d:], mu, law.x_spread, jnp.zeros((d, 1, 1)), X_MEAN_SD)
    moved = density.with_x_mean(new, x_mean)
    uniform = jax.random.uniform(jax.random.fold_in(key, 2), (chains, 1))
    taken = jnp.log(uniform) < log_fit_prior(moved, prior) - log_fit_prior(new, prior)
    new = jax.tree.map(lambda a, b: jnp.where(taken, a, b), moved, new)
    x_spread = _draw_covariance(variates[2], mu - new.x_mean, law.x_spread, x_spread_scale(law))
    new = new._replace(x_spread=x_spread)
    xi = (log_variance - new.level) / new.level_sd
    zeta = solve_lower(entries(new.x_spread, 2), entries(mu - new.x_mean, 1))
    return new, groups._replace(xi=xi, zeta=zeta)


class CovarianceVariates(NamedTuple):
    """Gamma variates of the scales and of Bartlett's diagonal (p, chain, 1), and normals below."""

    scales: jax.Array
    half_squares: jax.Array
    below: jax.Array


def _covariance_variates(
    key: jax.Array, numbers: list[tuple[int, int]], chains: int
) -> list[CovarianceVariates]:
    """Draw the variates of several covariances together: one sampler is compiled, not eight.

    Args:
        key: the source of randomness.
        numbers: the size p of each, and the deviations that it is drawn given.
        chains: how many of each.
    """
    shapes = [
        np.concatenate([np.full(p, 0.5 * (DEGREES + p + 1)),
                        0.5 * (DEGREES + p - 1 + number - np.arange(p))])
        for p, number in numbers
    ]  # fmt: skip
    whole = jnp.asarray(np.concatenate(shapes))[:, None, None]
    first, second = jax.random.split(key)
    gammas = gamma(first, jnp.broadcast_to(whole, (len(whole), chains, 1)))
    pairs = [p * (p - 1) // 2 for p, _ in numbers]
    normals = jax.random.normal(second, (sum(pairs), chains, 1))
    drawn = []
    for i, (p, _) in enumerate(numbers):
        at, below = 2 * sum(q for q, _ in numbers[:i]), sum(pairs[:i])
        drawn.append(
            CovarianceVariates(
                gammas[at : at + p], gammas[at + p : at + 2 * p], normals[below : below + pairs[i]]
            )
        )
    return drawn


def _draw_mean(
    white: jax.Array,
    values: jax.Array,
    factor: jax.Array,
    prior_mean: jax.Array,
    prior_sd: float,
) -> jax.Array:
    """Draw the mean (p, chain, 1) of values ~ N(mean, T).

    Args:
        white: standard normals (p, chain, 1).
        values: (p, chain, group).
        factor: of T (p, p, chain, 1).
        prior_mean: of the mean (p, chain, 1).
        prior_sd: of the mean.
    """
    f = entries(factor, 2)
    inverse = [solve_lower(f, e) for e in np.eye(len(values)).astype(object)]
    rows = listed([list(c) for c in inverse])
    precision = times_transposed(rows, rows)
    right = times(precision, entries(values.sum(axis=-1, keepdims=True), 1))
    whole = scaled(float(values.shape[-1]), precision)
    for j in range(len(values)):
        whole[j, j] = whole[j, j] + prior_sd**-2
        right[j] = right[j] + prior_mean[j] * prior_sd**-2
    root = cholesky(whole)
    return stacked(solve_upper(root, solve_lower(root, right) + entries(white, 1)))


def _draw_covariance(
    variates: CovarianceVariates, off: jax.Array, factor: jax.Array, spread: jax.Array
) -> jax.Array:
    """Draw the factor of T given deviations (p, chain, group) ~ N(0, T), after its scales a."""
    p, chains, _ = off.shape
    inverse = jnp.stack(inverse_diagonal(entries(factor, 2)))
    scales = (DEGREES * inverse + 2 * spread**-2) / variates.scales
    products = [[(off[i] * off[j]).sum(axis=-1, keepdims=True) for j in range(p)] for i in range(p)]
    psi = listed(products)
    for j in range(p):
        psi[j, j] = psi[j, j] + 2 * DEGREES / scales[j]
    bartlett = np.zeros((p, p)).astype(object)
    bartlett[np.diag_indices(p)] = entries(jnp.sqrt(2 * variates.half_squares), 1)
    if p > 1:
        bartlett[np.tril_indices(p, -1)] = entries(variates.below, 1)
    # T = P (B Bᵀ)⁻¹ Pᵀ with P the factor of Ψ: rows of P B⁻ᵀ.
    root = cholesky(psi)
    rows = [solve_lower(bartlett, row) for row in root]
    product = times_transposed(listed([list(r) for r in rows]), listed([list(r) for r in rows]))
    new = cholesky(product)
    zeros = jnp.zeros((chains, 1))
    for place in zip(*np.triu_indices(p, 1), strict=True):
        new[place] = zeros
    return stacked(new)


def draw_coefficients(
    key: jax.Array, groups: Groups, law: PopulationLaw, data: GroupData, prior: PopulationPrior
) -> PopulationLaw:
    """Draw B given t, row after row, with θ integrated out."""
    information, score = _information(groups, law, data)
    (k, p), (_, sd) = law.coefficients.shape[:2], fit_scales(law, prior)

    inverse = [solve_lower(entries(law.factor, 2), e) for e in np.eye(p).astype(object)]
    rows = listed([list(c) for c in inverse])
    of_size = stacked(times_transposed(rows, rows)) / SIZE_EFFECT**2
    of_features = jnp.eye(p)[..., None, None] * sd**-2

    def one(i: jax.Array, now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        coefficients, score = now
        u = data.features[i]
        h = (information * u**2).sum(axis=-1, keepdims=True)
        right = (score * u).sum(axis=-1, keepdims=True) + (h * coefficients[i]).sum(axis=1)
        root = cholesky(entries(h + jnp.where(i < k - 1, of_features, of_size), 2))
        white = jax.random.normal(jax.random.fold_in(key, i), (p, *right.shape[1:]))
        drawn = stacked(solve_upper(root, solve_lower(root, entries(right, 1)) + entries(white, 1)))
        change = drawn - coefficients[i]
        score = score - (information * change).sum(axis=1) * u
        return coefficients.at[i].set(drawn), score

    coefficients, _ = jax.lax.fori_loop(0, k, one, (law.coefficients, score))
    return law._replace(coefficients=coefficients)


def draw_parents(key: jax.Array, groups: Groups, law: PopulationLaw, data: GroupData) -> Groups:
    """Draw ω of every parent given t, with θ integrated out."""
    parent = data.parent
    if law.parent_factor is None or parent is None:
        return groups
    information, score = _information(groups, law, data)
    p, chains, number = groups.parents.shape

    def gathered(values: jax.Array) -> jax.Array:
        flat = jnp.moveaxis(values, -1, 0)
        return jnp.moveaxis(jax.ops.segment_sum(flat, parent, number), 0, -1)

    f = entries(law.parent_factor, 2)
    h = entries(gathered(information), 2)
    inner = times_transposed(times_transposed(f.T, h.T), f.T)
    right = times(f.T, entries(gathered(score), 1)) + times(inner, entries(groups.parents, 1))
    for j in range(p):
        inner[j, j] = inner[j, j] + 1.0
    root = cholesky(inner)
    white = entries(jax.random.normal(key, (p, chains, number)), 1)
    drawn = solve_upper(root, solve_lower(root, right) + white)
    return groups._replace(parents=stacked(drawn))


def _information(
    groups: Groups, law: PopulationLaw, data: GroupData
) -> tuple[jax.Array, jax.Array]:
    """Return C V⁻¹ Cᵀ (p, p, chain, group) and C V⁻¹ (t - Cᵀm) (p, chain, group)."""
    at, c = groups.at, density.design(groups.at, law)
    log_variance = density.log_variance_of(groups.xi, law)
    root = density.response_factor(c, log_variance, density.group_factor(law, data))
    white = density.whitened_fit(at, c, _centre(law, groups, data), root)
    rows = listed([list(solve_lower(root, row)) for row in c])
    return stacked(times_transposed(rows, rows)), stacked(times(rows, white))
