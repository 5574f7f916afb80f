"""Groups of one parameter drawn from a population: exact likelihoods, integrals, draws.

    z_g | θ_g  as in ``exact.py``,   θ_g ~ Beta(μ_g κ_g, (1-μ_g) κ_g)    shares, link = log odds,
    link(μ_g) = βᵀu_g + 0.4 λ ζ h_g,  θ_g ~ Gamma(κ_g, κ_g/μ_g)          rates, link = log,
    κ_g = κ (n_g / n̄)^γ,

with public features u_g, the constant first, n̄ the geometric mean of the groups' sizes, and h_g the
standardised log size, whose effect ζ is in units of the deviation λ between groups on the link's
scale, ω / √(μ(1-μ)) of shares with average features and ω of rates. The
spread ω says how much groups of size n̄ differ: of shares ω² = 1/(κ+1), so that sd(θ) is
ω √(μ(1-μ)), and ω = 1 is the most there can be; of rates ω² = 1/κ, so that sd(θ) = ω μ. ω → 0 is
complete pooling. Where γ is above zero, small groups differ more than large ones.

The likelihood of each group does not depend on the population. It is computed once, on an even grid
of the stretched parameter v = link(θ), and its logarithm is interpolated. Given ψ = (β, ζ, γ, ω),
what a group contributes is one integral over v,

    ∫ p(z_g | v) p(v | ψ) dv,

by the trapezoidal rule in two rounds: points over where the likelihood is, and over where the
population is, say where their product is; an even grid over that does the rest. Either may be
thousands of times narrower than the other. The same grid's CDF gives draws of v.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import betaln, gammaln

from noisewise.inference.population import SIZE_EFFECT
from noisewise.models.base import Progress
from noisewise.models.exponential_family import exact, parameter_grid
from noisewise.models.exponential_family.family import Domain
from noisewise.models.exponential_family.problem import FamilyProblem
from noisewise.numerics import one_blas_thread

TABLE_POINTS = 1024
"""Points of a group's tabulated likelihood (chosen): 13 per scale of Laplace noise or more."""
TABLE_DEPTH = 24.0
"""Logarithms below its peak to which a likelihood is tabulated: e^-24 is 4e-11."""
LEAST_LOG_LIKELIHOOD = -80.0
"""Below the peak, what zero counts as: between two modes a logarithm must be finite (chosen)."""
WINDOW_DEPTH = 11.0
"""Logarithms below the peak that count in an integral: e^-11 is 2e-5, and beyond are straight tails
(chosen: with 14, integrals of very unlike groups had steps too wide for their likelihoods)."""
COARSE_POINTS, FINE_POINTS = 48, 128
"""Points over each of likelihood and population, and over their product (chosen: with them
integrals are right to 2e-4 over the prior of populations)."""
MAX_V = 200.0
"""Where the grid of v ends; beyond, the integrand is a straight line in logarithms."""
NOTHING_LEFT = 1e30
"""The slope of a tail that has no mass."""
FARTHEST_DRAW = 700.0
"""Where draws of v end: beyond, a share or rate would be zero in float64."""
POINTS_AT_ONCE, MAX_BLOCK = 2**18, 64
"""Points of integrands, and populations, that are held in memory together (chosen)."""
LARGEST_HALF = 5.0
"""Half of the log odds beyond which the deviation of log odds is taken as there (chosen)."""
MAX_CONCENTRATION = 1e8
"""κ beyond which groups are taken for alike: their relative spread is below 1e-4 (chosen), and the
logarithms of gamma functions are still right to 1e-6."""


class LikelihoodTable(NamedTuple):
    """Log likelihoods (group, point) at v = start + step · point; their peaks are 0."""

    start: jax.Array
    step: jax.Array
    values: jax.Array

    def at(self, v: jax.Array) -> jax.Array:
        """Return the log likelihood at v (group, point), linear between points and beyond them.

        Beyond, it may fall and may not rise: a likelihood that is level at the end of its grid has
        reached what it is at θ = 0, or ∞.
        """
        last = self.values.shape[-1] - 2
        place = (v - self.start[:, None]) / self.step[:, None]
        cell = jnp.clip(jnp.floor(place), 0, last).astype(int)
        left = jnp.take_along_axis(self.values, cell, axis=-1)
        right = jnp.take_along_axis(self.values, cell + 1, axis=-1)
        inside = left + (right - left) * jnp.clip(place - cell, 0.0, 1.0)
        first = jnp.maximum(self.values[:, 1] - self.values[:, 0], 0.0)[:, None]
        final = jnp.minimum(self.values[:, -1] - self.values[:, -2], 0.0)[:, None]
        below, above = jnp.minimum(place, 0.0), jnp.maximum(place - (last + 1), 0.0)
        return inside + first * below + final * above


def likelihood_table(problem: FamilyProblem, progress: Progress | None = None) -> LikelihoodTable:
    """Tabulate the exact likelihood of every group; it is level where there is no record.

    Args:
        problem: with a weak prior, which says where to look and is divided out again.
        progress: called with groups done and in all.
    """
    groups = len(problem.z)
    start, step = np.full(groups, -1.0), np.full(groups, 2.0 / (TABLE_POINTS - 1))
    values = np.zeros((groups, TABLE_POINTS))
    there = np.flatnonzero(problem.n > 0)
    some = _of_groups(problem, there)
    done = 0
    with one_blas_thread():
        for rows in exact.rows_by_size(some) if len(there) else []:
            for part, density in exact.densities(some, rows):
                log_prior = parameter_grid.point_moments(some, density.v).log_prior
                for group, row in zip(there[part], density.values, strict=True):
                    start[group], step[group], values[group] = _row(density.v, row, log_prior)
                done += len(part)
                if progress is not None:
                    progress(done, groups)
    return LikelihoodTable(*map(jnp.asarray, (start, step, values)))


def _of_groups(problem: FamilyProblem, rows: np.ndarray) -> FamilyProblem:
    counted = None if problem.counted is None else problem.counted[rows]
    return replace(problem, z=problem.z[rows], n=problem.n[rows], counted=counted)


def _row(
    v: np.ndarray, density: np.ndarray, log_prior: np.ndarray
) -> tuple[float, float, np.ndarray]:
    """Return start, step and values of one group's table."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(density) - log_prior
    usable = np.isfinite(log_prior)
    logs = np.where(np.isfinite(logs), logs, -np.inf)[usable]
    v = v[usable]
    logs = np.maximum(logs - logs.max(), LEAST_LOG_LIKELIHOOD)
    near = np.flatnonzero(logs > -TABLE_DEPTH)
    low, high = v[max(near[0] - 1, 0)], v[min(near[-1] + 1, len(v) - 1)]
    even = np.linspace(low, high, TABLE_POINTS)
    return float(low), float(even[1] - even[0]), np.interp(even, v, logs)


# -- the population --------------------------------------------------------------------------------


class GroupLaw(NamedTuple):
    """What the population says of each group: link(μ_g) and κ_g."""

    centre: jax.Array
    concentration: jax.Array


class PublicGroups(NamedTuple):
    """What is public of the groups: features (group, k), log n_g / n̄ and h (group)."""

    features: jax.Array
    log_size: jax.Array
    standard_size: jax.Array


def concentration(domain: Domain, spread: jax.Array) -> jax.Array:
    """Return κ of ω."""
    size = 1 / jnp.maximum(spread, 1e-12) ** 2
    return size - 1 if domain == "unit" else size


def group_law(domain: Domain, psi: jax.Array, groups: PublicGroups) -> GroupLaw:
    """Return the law of every group's parameter, given the population, a row (β…, ζ, γ, log ω)."""
    kappa = concentration(domain, jnp.exp(psi[-1])) * jnp.exp(psi[-2] * groups.log_size)
    centre = groups.features @ psi[:-3] + size_effect(domain, psi) * groups.standard_size
    return GroupLaw(centre, jnp.clip(kappa, 1e-6, MAX_CONCENTRATION))


def size_effect(domain: Domain, psi: Any) -> Any:
    """Return what h adds to the link of a group's mean; populations along the last axis of psi."""
    spread = jnp.exp(psi[..., -1])
    if domain == "unit":
        # 1/√(μ(1-μ)) = 2 cosh(link/2); far out, where shares are 0 or 1, it would overflow.
        spread = spread * 2 * jnp.cosh(jnp.clip(psi[..., 0] / 2, -LARGEST_HALF, LARGEST_HALF))
    return SIZE_EFFECT * spread * psi[..., -3]


def log_density(domain: Domain, law: GroupLaw, v: jax.Array) -> jax.Array:
    """Return log p(v | population) for v (group, point)."""
    centre, k = law.centre[:, None], law.concentration[:, None]
    if domain == "positive":
        d = v - centre
        return k * (d - jnp.exp(jnp.minimum(d, 500.0)) + jnp.log(k)) - gammaln(k)
    a, b = k * jax.nn.sigmoid(centre), k * jax.nn.sigmoid(-centre)
    return a * jax.nn.log_sigmoid(v) + b * jax.nn.log_sigmoid(-v) - betaln(a, b)


def _population_window(domain: Domain, law: GroupLaw) -> tuple[jax.Array, jax.Array]:
    """Return ends in v beyond which the population's density is below e^-11 of its peak."""
    k = law.concentration
    if domain == "positive":
        slope_left, slope_right, curvature = k, k, k
    else:
        slope_left = k * jax.nn.sigmoid(law.centre)
        slope_right = k * jax.nn.sigmoid(-law.centre)
        curvature = slope_left * slope_right / k
    # Near the peak a parabola, far from it a line, whose slopes these are.
    near = jnp.sqrt(2 * WINDOW_DEPTH / curvature)
    low = law.centre - near - WINDOW_DEPTH / slope_left
    high = law.centre + near + WINDOW_DEPTH / slope_right
    return jnp.clip(low, -MAX_V, MAX_V), jnp.clip(high, -MAX_V, MAX_V)


class Integrand(NamedTuple):
    """Log of likelihood times population (group, point) on an even grid: first point and step.

    Beyond both ends the log falls in straight lines, whose slopes (group, 2) are those of the
    population and of the likelihood together: a population of very unlike groups has much of its
    mass where a share is zero for all that could be seen.
    """

    start: jax.Array
    step: jax.Array
    logs: jax.Array
    slopes: jax.Array

    def log_masses(self) -> jax.Array:
        """Return the logs of the masses (group, 3) below the grid, on it and above it."""
        inner = jnp.logaddexp(self.logs[:, 1:], self.logs[:, :-1])
        grid = jax.scipy.special.logsumexp(inner, axis=1) + jnp.log(self.step / 2)
        below, above = (self.logs[:, [0, -1]] - jnp.log(self.slopes)).T
        return jnp.stack([below, grid, above], axis=1)


def integrand(domain: Domain, table: LikelihoodTable, law: GroupLaw) -> Integrand:
    """Return the product of likelihood and population on a grid over where it is, by group."""

    def product(v: jax.Array) -> jax.Array:
        return table.at(v) + log_density(domain, law, v)

    low, high = _population_window(domain, law)
    share = jnp.linspace(0.0, 1.0, COARSE_POINTS)
    length = table.step * (table.values.shape[-1] - 1)
    own = table.start[:, None] + length[:, None] * share
    shared = low[:, None] + (high - low)[:, None] * share
    points = jnp.concatenate([own, shared], axis=1)
    gaps = _coarse_gaps(own, shared)
    logs = product(points)
    kept = logs > logs.max(axis=1, keepdims=True) - WINDOW_DEPTH
    first = jnp.where(kept, points - gaps, jnp.inf).min(axis=1)
    last = jnp.where(kept, points + gaps, -jnp.inf).max(axis=1)
    first, last = map(jax.lax.stop_gradient, (first, last))
    step = (last - first) / (FINE_POINTS - 1)
    logs = product(first[:, None] + step[:, None] * jnp.arange(FINE_POINTS))
    return Integrand(first, step, logs, _end_slopes(domain, table, law))


def _coarse_gaps(own: jax.Array, shared: jax.Array) -> jax.Array:
    """Return how far from each point of two even grids (group, point) the next one lies, at most.

    Where both grids are, the finer one decides: a point of a wide population's grid that happens to
    lie within a narrow likelihood must not make the window as wide as the population.
    """
    steps = jnp.stack([own[:, 1] - own[:, 0], shared[:, 1] - shared[:, 0]])[..., None]
    finest = steps.min(axis=0)

    def gaps(points: jax.Array, step: jax.Array, other: jax.Array) -> jax.Array:
        inside = (points >= other[:, :1]) & (points <= other[:, -1:])
        return jnp.where(inside, finest, step)

    return jnp.concatenate([gaps(own, steps[0], shared), gaps(shared, steps[1], own)], axis=1)


def _end_slopes(domain: Domain, table: LikelihoodTable, law: GroupLaw) -> jax.Array:
    """Return how steeply the product falls (group, 2) far below and far above."""
    left = jnp.maximum(table.values[:, 1] - table.values[:, 0], 0.0) / table.step
    right = jnp.maximum(table.values[:, -2] - table.values[:, -1], 0.0) / table.step
    k = law.concentration
    if domain == "positive":
        # Above, a gamma density falls doubly exponentially: nothing is left there.
        return jnp.stack([left + k, jnp.full_like(right, NOTHING_LEFT)], axis=1)
    a, b = k * jax.nn.sigmoid(law.centre), k * jax.nn.sigmoid(-law.centre)
    return jnp.stack([left + a, right + b], axis=1)


def log_marginal(domain: Domain, table: LikelihoodTable, law: GroupLaw) -> jax.Array:
    """Return Σ_g log ∫ p(z_g | v) p(v | population) dv."""
    masses = integrand(domain, table, law).log_masses()
    return jax.scipy.special.logsumexp(masses, axis=1).sum()


def draw_groups(key: jax.Array, domain: Domain, table: LikelihoodTable, law: GroupLaw) -> jax.Array:
    """Draw v of every group given the population, by the inverse CDF; beyond the grid, tails."""
    within, beyond, part = jax.random.split(key, 3)
    product = integrand(domain, table, law)
    start, step, logs, slopes = product
    density = jnp.exp(logs - logs.max(axis=1, keepdims=True))
    cells = jnp.cumsum((density[:, 1:] + density[:, :-1]) / 2, axis=1)
    target = jax.random.uniform(within, (len(start), 1)) * cells[:, -1:]
    cell = jnp.minimum((cells <= target).sum(axis=1, keepdims=True), FINE_POINTS - 2)
    before = jnp.where(cell > 0, jnp.take_along_axis(cells, jnp.maximum(cell - 1, 0), axis=1), 0.0)
    left = jnp.take_along_axis(density, cell, axis=1)
    right = jnp.take_along_axis(density, cell + 1, axis=1)
    # The share x of a cell: left x + (right - left) x²/2 = rest.
    rest = target - before
    root = jnp.sqrt(jnp.maximum(left**2 + 2 * (right - left) * rest, 0.0))
    share = jnp.clip(2 * rest / jnp.maximum(left + root, 1e-300), 0.0, 1.0)
    v = start + step * (cell + share)[:, 0]
    far = jax.random.exponential(beyond, (len(start), 1)) / slopes
    which = jax.random.categorical(part, product.log_masses(), axis=1)
    end = start + step * (FINE_POINTS - 1)
    v = jnp.where(which == 0, start - far[:, 0], jnp.where(which == 2, end + far[:, 1], v))
    return jnp.clip(v, -FARTHEST_DRAW, FARTHEST_DRAW)


@partial(jax.jit, static_argnums=0)
def _log_marginals(
    domain: Domain, table: LikelihoodTable, groups: PublicGroups, psi: jax.Array
) -> jax.Array:
    def one(p: jax.Array) -> jax.Array:
        return log_marginal(domain, table, group_law(domain, p, groups))

    return jax.vmap(one)(psi)


@partial(jax.jit, static_argnums=1)
def _group_draws(
    key: jax.Array, domain: Domain, table: LikelihoodTable, groups: PublicGroups, psi: jax.Array
) -> jax.Array:
    def one(key: jax.Array, p: jax.Array) -> jax.Array:
        return draw_groups(key, domain, table, group_law(domain, p, groups))

    return jax.vmap(one)(jax.random.split(key, len(psi)), psi)


def _blocks(groups: int, psi: np.ndarray) -> list[np.ndarray]:
    """Return rows in blocks of one size, so that one shape is compiled; the last is filled up."""
    size = max(1, min(MAX_BLOCK, POINTS_AT_ONCE // (groups * FINE_POINTS)))
    filled = np.pad(psi, ((0, -len(psi) % size), (0, 0)), mode="edge")
    return np.split(filled, len(filled) // size)


def all_log_marginals(
    domain: Domain, table: LikelihoodTable, groups: PublicGroups, psi: np.ndarray
) -> np.ndarray:
    """Return the log marginal likelihood of each population, a row (β…, ζ, γ, log ω)."""
    blocks = _blocks(len(groups.features), psi)
    parts = [_log_marginals(domain, table, groups, jnp.asarray(b)) for b in blocks]
    return np.concatenate(parts)[: len(psi)]


def all_group_draws(
    key: jax.Array, domain: Domain, table: LikelihoodTable, groups: PublicGroups, psi: np.ndarray
) -> np.ndarray:
    """Draw v (population, group) given each population, a row (β…, ζ, γ, log ω)."""
    blocks = _blocks(len(groups.features), psi)
    keys = jax.random.split(key, len(blocks))
    pairs = zip(keys, blocks, strict=True)
    parts = [_group_draws(k, domain, table, groups, jnp.asarray(b)) for k, b in pairs]
    return np.concatenate(parts)[: len(psi)]
