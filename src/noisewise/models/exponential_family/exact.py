"""Method ``exact``: the posterior of one parameter without Monte Carlo (errata E19, E15).

Categories (``categorical_exact.py``) and the normal (``normal_exact.py``) have files of their own.

The likelihood of the released sum is a Fourier series where sums come near it and a closed form
where they do not (``fourier_likelihood.py``), for every n, for records dropped or clamped, for
Laplace and Gaussian noise. The posterior lives on a grid (``parameter_grid.py``); draws are
independent, by its inverse CDF. Releases are sorted by their sum and share grids.

Laplace noise forgets how far outside the possible sums a release lies: for z above every s,
exp(-|z-s|/b) ∝ exp(-|z'-s|/b) with z' the largest sum. So z is first clamped to the possible sums,
which changes nothing in the posterior and everything in the arithmetic.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from noisewise.artifact import ArgumentError
from noisewise.inference.results import Posterior
from noisewise.models.base import Progress
from noisewise.models.exponential_family import categorical_exact, normal_exact, parameter_grid
from noisewise.models.exponential_family.families import Categorical, Normal, find_family
from noisewise.models.exponential_family.family import TINY
from noisewise.models.exponential_family.fourier_likelihood import (
    GAUSSIAN_FREQUENCIES,
    MAX_TILTED_RANGE,
    NEGLIGIBLE_DEPTH,
    ContributionLaw,
    FourierSeries,
    bennett_reach,
    contribution_ends,
    contribution_law,
    noise_series,
    series_likelihood,
    sums_come_near,
    tilted_likelihood,
    unknown_n_likelihood,
)
from noisewise.models.exponential_family.parameter_grid import PointMoments, Span
from noisewise.models.exponential_family.posterior import assemble_posterior
from noisewise.models.exponential_family.problem import FamilyProblem
from noisewise.numerics import one_blas_thread

POINTS_PER_DEVIATION = 8
"""Grid points per posterior standard deviation, at least (chosen)."""
MAX_GRID_DEVIATIONS = 500.0
"""Posterior deviations one grid may span before its releases are split into two grids: 8 points
for each are about the largest grid, 4096."""
MAX_FREQUENCIES = 4096
"""Terms of a Fourier series, at most (chosen)."""
NODES = (64, 256, 1024, 4096)
"""Sizes of the Gauss-Legendre rule for one record: few, so that few shapes are compiled."""
RELATIVE_ROUNDING = 1e-13
"""Fourier sums are right to rounding: less than this, relative to the peak, is taken for zero."""
MAX_EDGE_DENSITY = 1e-7
"""Density at a grid's ends, relative to the peak, above which the grid is widened (chosen)."""
MAX_RELEASES_PER_GRID = 512
"""Releases that share a grid, at most (chosen): their densities stay in the cache."""
LAPLACE_COUNT_REACH = 45
"""Scales of a noisy count beyond which a larger n has weight e^-45: none."""


class GridDensity(NamedTuple):
    """Posterior densities (release, point) on a grid v of θ's stretched coordinate."""

    v: np.ndarray
    values: np.ndarray


def has_exact_method(distribution: object) -> bool:
    """Tell whether there is an exact method for the family of that name."""
    kind = find_family(distribution)
    return kind in (Categorical, Normal) or len(kind.parameters) == 1


def run(
    problem: FamilyProblem, seed: int, chains: int, draws: int, progress: Progress | None = None
) -> Posterior:
    """Draw independently from the exact posterior of every group."""
    if isinstance(problem.family, Categorical):
        return categorical_exact.run(problem, seed, chains, draws, progress)
    if isinstance(problem.family, Normal):
        return normal_exact.run(problem, seed, chains, draws, progress)
    if problem.family.dimension > 1:
        raise ArgumentError(
            f"method: there is no exact method for {problem.family.name}, which has several "
            "parameters; use method='gibbs'"
        )
    rng = np.random.default_rng(seed)
    groups = len(problem.z)
    drawn = np.empty((groups, chains * draws))
    # Every group has a stream of its own: its draws do not depend on who else is in the batch.
    uniforms = rng.random((groups, chains * draws))
    done = 0
    with one_blas_thread():
        for rows in rows_by_size(problem):
            for part, density in densities(problem, rows):
                drawn[part] = quantiles(density.v, density.values, uniforms[part])
                done += len(part)
                if progress is not None:
                    progress(done, groups)
    theta = np.asarray(parameter_grid.parameter(problem.family, jnp.asarray(drawn)))
    shaped = theta.reshape(groups, chains, draws)[..., None]
    return assemble_posterior(problem, shaped, "exact", problem.unknown_n_note)


def rows_by_size(problem: FamilyProblem) -> list[np.ndarray]:
    """Return groups with the same n together, sorted by z; a secret n is each group's own."""
    if problem.counted is not None:
        return [np.array([r]) for r in range(len(problem.z))]
    order = np.lexsort((problem.z[:, 0], problem.n))
    cuts = np.flatnonzero(np.diff(problem.n[order])) + 1
    return np.split(order, cuts)


def densities(problem: FamilyProblem, rows: np.ndarray) -> list[tuple[np.ndarray, GridDensity]]:
    """Return grids and densities for groups of one n, sorted by z: as few as resolve them."""
    n = float(problem.n[rows[0]])
    z = clamped_to_possible(problem, problem.z[rows, 0], n)
    ends = sorted({0, len(rows) // 2, len(rows) - 1})
    single = [parameter_grid.locate(problem, float(z[e]), n) for e in ends]
    span = parameter_grid.union(single)
    # Two modes far apart are wide by themselves: splitting would not make them narrower.
    widest = max(s.deviations for s in single)
    too_wide = span.deviations > max(MAX_GRID_DEVIATIONS, 1.3 * widest)
    # Releases between those that were located must not fall into a gap between their grids.
    too_wide |= len(rows) > len(ends) and parameter_grid.has_gap(single)
    if (too_wide and z[0] < z[-1]) or len(rows) > MAX_RELEASES_PER_GRID:
        half = len(rows) // 2
        if too_wide:
            half = int(np.clip(np.searchsorted(z, (z[0] + z[-1]) / 2), 1, len(rows) - 1))
        return densities(problem, rows[:half]) + densities(problem, rows[half:])
    counted = None if problem.counted is None else float(problem.counted[rows[0]])
    for _ in range(4):
        density = _density_on_grid(problem, z, n, counted, span)
        edge = density.values[:, [0, -1]].max(axis=0) / density.values.max()
        if (edge < MAX_EDGE_DENSITY).all() or _reaches_domain_end(problem, span):
            break
        span = span.widened()
    return [(rows, density)]


def _reaches_domain_end(problem: FamilyProblem, span: Span) -> bool:
    low, high = parameter_grid.DOMAIN_ENDS[problem.family.domains[0]]
    return bool(span.v[0] <= low or span.v[-1] >= high)


def clamped_to_possible(problem: FamilyProblem, z: np.ndarray, n: float) -> np.ndarray:
    """Clamp z, where noise is Laplace, to the sums that n records (or any number) can have."""
    if problem.mechanism == "gaussian":
        return z
    low, high = contribution_ends(problem.family, problem.interval)
    if problem.counted is None:
        return np.asarray(np.clip(z, n * low, n * high))
    return np.asarray(np.clip(z, None if low < 0 else 0.0, None if high > 0 else 0.0))


def _density_on_grid(
    problem: FamilyProblem, z: np.ndarray, n: float, counted: float | None, span: Span
) -> GridDensity:
    """Return prior times likelihood of every z on a grid over this span."""
    size = math.ceil(POINTS_PER_DEVIATION * span.deviations)
    v = span.points(1 << max(9, min(12, (size - 1).bit_length())))
    at = parameter_grid.point_moments(problem, v)
    if counted is None:
        likelihood = _public_n_likelihood(problem, z, n, span, at)
    else:
        likelihood = _secret_n_likelihood(problem, z, n, counted, span, at)
    if (likelihood.max(axis=1) < 1e3 * RELATIVE_ROUNDING).any():
        raise ArgumentError(
            "prior: it contradicts the release so strongly that the likelihood vanishes wherever "
            "the prior does not; check the prior's units, or give a weaker one"
        )
    peak = likelihood.max(axis=1, keepdims=True)
    likelihood = np.where(likelihood > RELATIVE_ROUNDING * peak, likelihood, 0.0)
    return GridDensity(v, likelihood * np.exp(at.log_prior - at.log_prior.max()))


def _public_n_likelihood(
    problem: FamilyProblem, z: np.ndarray, n: float, span: Span, at: PointMoments
) -> np.ndarray:
    """Use the series for parameters whose sums may come near z, a closed form for the others."""
    family, b = problem.family, problem.scale
    low, high = ends = contribution_ends(family, problem.interval)
    near = sums_come_near(z, n, ends, at.mean, at.variance, b, problem.mechanism)
    some = np.flatnonzero(near.any(axis=0))
    if len(some) == 0:
        law = contribution_law(family, problem.interval, at.eta, NODES[0])
        return _far_likelihood(problem, law, at.mean, z, n)
    stray = bennett_reach(n * at.variance[some], high - low)
    highest = np.minimum(n * at.mean[some] + stray, n * high)
    lowest = np.maximum(n * at.mean[some] - stray, n * low)
    last = np.where(near, z[:, None], -np.inf).max(axis=0)[some]
    first = np.where(near, z[:, None], np.inf).min(axis=0)[some]
    reach = max((last - lowest).max(), (highest - first).max(), b * 1e-6)
    spread = max(span.spread, float(np.sqrt(at.variance[some].min())))
    noise = _series(problem, reach, _highest_frequency(spread, n, high - low))
    law = contribution_law(family, problem.interval, at.eta, _node_count(noise, high - low))
    close = series_likelihood(law.of(some), noise, z, n)
    if near.all():
        return close
    likelihood = _far_likelihood(problem, law, at.mean, z, n)
    likelihood[:, some] = np.where(near[:, some], close, likelihood[:, some])
    return likelihood


def _far_likelihood(
    problem: FamilyProblem, law: ContributionLaw, mean: np.ndarray, z: np.ndarray, n: float
) -> np.ndarray:
    """Return the likelihood where no sum comes near z: none if the noise has no density there."""
    low, high = contribution_ends(problem.family, problem.interval)
    if high - low > MAX_TILTED_RANGE * problem.scale:
        return np.zeros((len(z), len(mean)))
    return tilted_likelihood(law, mean, z, n, problem.scale, problem.mechanism)


def _secret_n_likelihood(
    problem: FamilyProblem, z: np.ndarray, n: float, counted: float, span: Span, at: PointMoments
) -> np.ndarray:
    """Use the series with n summed out, over every sum that some likely n can have."""
    low, high = contribution_ends(problem.family, problem.interval)
    away = LAPLACE_COUNT_REACH * problem.count_scale + 1
    most, least = max(counted, 0) + away, max(counted - away, 0)
    stray = bennett_reach(most * at.variance, high - low)
    highest = np.minimum(np.maximum(most * at.mean, least * at.mean) + stray, max(most * high, 0))
    lowest = np.maximum(np.minimum(most * at.mean, least * at.mean) - stray, min(most * low, 0))
    # Between two modes sums may be far from z: there the noise has no density, and no period is
    # wasted on them.
    tail = NEGLIGIBLE_DEPTH * problem.scale
    near = (lowest < z.max() + tail) & (highest > z.min() - tail)
    near |= not near.any()
    reach = max(z.max() - lowest[near].min(), highest[near].max() - z.min(), problem.scale * 1e-6)
    noise = _series(problem, reach, _highest_frequency(span.spread, n, high - low))
    law = contribution_law(problem.family, problem.interval, at.eta, _node_count(noise, high - low))
    likelihood = unknown_n_likelihood(
        law, noise, z, counted, problem.mechanism, problem.count_scale
    )  # fmt: skip
    return np.where(near, likelihood, 0.0)


def _series(problem: FamilyProblem, reach: float, frequency: float) -> FourierSeries:
    """Return the noise's series with only as many terms as count.

    Laplace: beyond, the noise's own coefficients add up to less than 1/(1000π) at its kink.
    Gaussian: beyond, they are less than e^-36; but not those of the kernel on whole numbers, which
    may have a kink half a period away.
    """
    whole = problem.family.whole and not problem.between
    if problem.mechanism == "laplace":
        frequency = min(frequency, 1000 / problem.scale)
    elif not whole:
        most = GAUSSIAN_FREQUENCIES / problem.scale
        # Whole sums seen from between them: φⁿ comes back at 2π, so quiet noise needs all its own.
        comes_back = problem.between and most > np.pi
        frequency = most if comes_back else min(frequency, most)
    noise = noise_series(reach, problem.scale, problem.mechanism, whole, frequency)
    return FourierSeries(*(a[:MAX_FREQUENCIES] for a in noise))


def _node_count(noise: FourierSeries, width: float) -> int:
    """Return a size of the rule that resolves the fastest oscillation over a record's range."""
    wanted = 0.6 * 1.5 * noise.frequency[-1] * width + 48
    return next((size for size in NODES if size >= wanted), NODES[-1])


def _highest_frequency(spread: float, n: float, width: float) -> float:
    """Return where φⁿ has died: like a normal's for many records, like a power for few."""
    decay = max(7.8 / math.sqrt(n), min(10 ** (15 / n), 200.0) if n > 0 else 200.0)
    return decay / max(spread, 1e-3 * width)


def quantiles(v: np.ndarray, density: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Invert the CDFs of densities (release, point), linear between points, at (release, draw)."""
    width = np.diff(v)
    cumulative = np.zeros_like(density)
    np.cumsum(width * (density[:, 1:] + density[:, :-1]) / 2, axis=1, out=cumulative[:, 1:])
    target = uniform * cumulative[:, -1:]
    at = np.stack([c.searchsorted(t, "right") for c, t in zip(cumulative, target, strict=True)])
    at = np.clip(at - 1, 0, len(width) - 1)
    below, left, right = (
        np.take_along_axis(a, i, axis=1)
        for a, i in ((cumulative, at), (density, at), (density, at + 1))
    )
    # The share x of a cell: left x + (right - left) x²/2 = rest, in cells of width 1.
    rest = (target - below) / width[at]
    root = np.sqrt(np.maximum(left**2 + 2 * (right - left) * rest, 0.0))
    share = np.clip(2 * rest / np.maximum(left + root, TINY), 0.0, 1.0)
    return np.asarray(v[at] + share * width[at])
