"""The grid of one parameter: where its posterior lies, before any of it is computed exactly.

The parameter is stretched to the real line, v = log θ or log θ/(1-θ), where densities are smooth
and the trapezoidal rule converges fast. Prior times a rough likelihood (the central limit theorem
for the sum, with the noise) says where to put the grid. The exact likelihood then has the last
word (``exact.py``).

**No mode is lost.** With many records the posterior may be a thousand times narrower than any first
grid, and where records outside the interval were dropped it may have several modes. But what it is
made of is smooth: the expected sum n m(v), whose roots n m(v) = z are where the likelihood has its
peaks, and the log prior, which is concave. So every cell of a grid has an upper bound,

    max of log prior (tangents from the neighbouring cells)
        + log likelihood at the least |z - n m| (zero where its sign changes, less the curvature),

and the search splits cells, most of them at once, until no cell can hold more than its ends show,
unless that is negligible beside the peak: branch and bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.models.exponential_family.family import Conjugate, Family
from noisewise.models.exponential_family.problem import FamilyProblem
from noisewise.models.exponential_family.truncation import Interval, joint_moments
from noisewise.numerics.distributions import noisy_normal_log_density

SEARCH_POINTS = 1024
"""Points on which each step of the search looks at the rough posterior (chosen)."""
CHUNK_POINTS = 512
"""Points at a time (chosen): grids of any size share one compilation."""
GRID_DEPTH = 32.0
"""Logarithms below the peak that are still looked at: e^-32 is rounding beside 1."""
DOMAIN_ENDS = {"unit": (-34.0, 34.0), "positive": (-300.0, 300.0), "real": (-1e6, 1e6)}
"""Where v ends: beyond, 1 - θ (unit), θ or 1/θ (positive) is lost in float64; chosen for real."""
EDGE_REACH = 1.0
"""In v, on either side of where the mean record is at an end of the interval (chosen): there the
expected sum turns, within 1/√upper for a Poisson, so the search begins with a fine grid."""
MAX_ROUNDS = 40
"""Rounds of splitting cells, at most (chosen): each divides them by two or more."""
MAX_HIDDEN, MAX_CELL_DROP = 0.25, 2.0
"""Logarithms by which a cell's bound may exceed its ends, and by which its ends may differ, where
the posterior is not negligible (chosen)."""
VALLEY_DEVIATIONS = 2.0
"""Length of a gap between two stretches, where the posterior is negligible (chosen)."""


@dataclass(frozen=True)
class Span:
    """A stretch of v, how many posterior deviations it counts up to each point, and the least
    spread of one record's contribution where the posterior is.

    A sum over an interval may fit two values of the parameter: deviations are local, so that a
    narrow mode is resolved far from another one. ``stretches`` are the (low, high) that are not
    negligible, in order.
    """

    v: np.ndarray
    length: np.ndarray
    spread: float
    stretches: tuple[tuple[float, float], ...]

    @property
    def deviations(self) -> float:
        """Return the length of the stretch in posterior deviations."""
        return float(self.length[-1])

    def points(self, number: int) -> np.ndarray:
        """Return as many points, evenly spaced in deviations."""
        even = np.linspace(0, self.length[-1], number)
        return np.asarray(np.interp(even, self.length, self.v))

    def widened(self) -> Span:
        """Return a stretch that is half as long again on either side, coarsely."""
        reach, more = 0.5 * (self.v[-1] - self.v[0]), self.length[-1] / 4
        v = np.concatenate([[self.v[0] - reach], self.v, [self.v[-1] + reach]])
        length = np.concatenate([[0.0], self.length + more, [self.length[-1] + 2 * more]])
        ends = ((float(v[0]), float(v[-1])),)
        return Span(v, length, self.spread, ends if len(self.stretches) == 1 else self.stretches)


class PointMoments(NamedTuple):
    """At each point v: log prior density, η, mean and variance of one record's contribution, and
    the mean of the record itself."""

    log_prior: np.ndarray
    eta: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    record_mean: np.ndarray


def parameter(family: Family, v: jax.Array) -> jax.Array:
    """Return θ of v."""
    domain = family.domains[0]
    return jax.nn.sigmoid(v) if domain == "unit" else jnp.exp(v) if domain == "positive" else v


@partial(jax.jit, static_argnums=0)
def _raw_point_moments(
    family: Family, interval: Interval, v: jax.Array, prior: Conjugate
) -> tuple[jax.Array, ...]:
    """Return the fields of ``PointMoments`` as they are computed."""

    def natural(v: jax.Array) -> jax.Array:
        return family.natural(parameter(family, v)[None])

    def one(v: jax.Array) -> tuple[jax.Array, ...]:
        eta, slope = natural(v), jax.jacfwd(natural)(v)
        weighed = prior.sums[0] * eta[0] - prior.counts[0] * family.log_partition(eta)
        law = joint_moments(family, interval, eta)
        log_prior = weighed + jnp.log(jnp.abs(slope[0]))
        return log_prior, eta, law.mean[0], jnp.maximum(law.covariance[0, 0], 0.0), law.mean[-1]

    return jax.vmap(one)(v)


def chunks(size: int) -> range:
    """Return where chunks begin; sizes are multiples of ``CHUNK_POINTS``."""
    return range(0, size, CHUNK_POINTS)


def point_moments(problem: FamilyProblem, v: np.ndarray) -> PointMoments:
    """Return prior and moments at points v; where rounding spoils them, the prior is zero."""
    prior = problem.conjugate
    parts = [
        _raw_point_moments(
            problem.family, problem.interval, jnp.asarray(v[i : i + CHUNK_POINTS]), prior
        )
        for i in chunks(len(v))
    ]
    log_prior, eta, mean, variance, record_mean = map(np.concatenate, zip(*parts, strict=True))
    bad = ~(np.isfinite(log_prior) & np.isfinite(eta[:, 0]) & np.isfinite(mean))
    bad |= ~np.isfinite(variance)
    return PointMoments(
        np.where(bad, -np.inf, log_prior),
        np.where(bad[:, None], eta[~bad][:1], eta),
        np.where(bad, 0.0, mean),
        np.where(bad, 0.0, variance),
        record_mean,
    )


def rough_log_likelihood(
    problem: FamilyProblem, z: float | np.ndarray, n: float, mean: np.ndarray, variance: np.ndarray
) -> np.ndarray:
    """Return the log density of z where the sum is normal, generously spread."""
    v = 1.5 * n * variance + 1e-12 * problem.scale**2
    if problem.counted is not None:
        v = v + 8 * (mean * problem.count_scale) ** 2
    return noisy_normal_log_density(z - n * mean, v, problem.scale, problem.mechanism)


def locate(problem: FamilyProblem, z: float, n: float) -> Span:
    """Return the span of v where the rough posterior is, with all of its modes."""
    found = _branch_and_bound(problem, z, n)
    zoomed = _zoomed(problem, z, n)
    runs = found.runs
    if _shows_all(zoomed, found):
        v, at, total = zoomed.v, zoomed.at, zoomed.total - zoomed.total.max()
        length = _deviations(problem, n, v, total, at.mean, at.variance)
        ends = [(v[0], v[-1])] if len(runs) == 1 else [(found.v[a], found.v[b]) for a, b in runs]
    else:
        ends = [(found.v[a], found.v[b]) for a, b in runs]
        length = _run_lengths(problem, n, found, runs)
        kept = np.concatenate([np.arange(a, b + 1) for a, b in runs])
        v, total = found.v[kept], found.total[kept] - found.total.max()
        at = PointMoments(*(a[kept] for a in found.at))
    spread = float(np.sqrt(at.variance[total > -8].min()))
    return Span(v, length, spread, tuple((float(a), float(b)) for a, b in ends))


class RoughPosterior(NamedTuple):
    """The log of the rough posterior at points v, and what it is made of."""

    v: np.ndarray
    at: PointMoments
    total: np.ndarray

    @property
    def runs(self) -> list[tuple[int, int]]:
        """Return first and last point of every stretch that is not negligible, in order."""
        near = np.flatnonzero(self.total > self.total.max() - GRID_DEPTH)
        cuts = np.flatnonzero(np.diff(near) > 2) + 1
        last = len(self.v) - 1
        return [(max(r[0] - 1, 0), min(r[-1] + 1, last)) for r in np.split(near, cuts)]

    def joined(self, other: RoughPosterior) -> RoughPosterior:
        """Return the points of both, in order."""
        v, order = np.unique(np.concatenate([self.v, other.v]), return_index=True)
        pairs = zip(self.at, other.at, strict=True)
        at = PointMoments(*(np.concatenate(pair)[order] for pair in pairs))
        return RoughPosterior(v, at, np.concatenate([self.total, other.total])[order])


def _rough_posterior(problem: FamilyProblem, z: float, n: float, v: np.ndarray) -> RoughPosterior:
    """Return the rough posterior at these points."""
    at = point_moments(problem, v)
    total = at.log_prior + rough_log_likelihood(problem, z, n, at.mean, at.variance)
    return RoughPosterior(v, at, total)


def _zoomed(problem: FamilyProblem, z: float, n: float) -> RoughPosterior:
    """Return an even grid about the highest peak that narrowing the whole range comes upon."""
    low, high = DOMAIN_ENDS[problem.family.domains[0]]
    for _ in range(12):
        here = _rough_posterior(problem, z, n, np.linspace(low, high, SEARCH_POINTS))
        near = np.flatnonzero(here.total > here.total.max() - GRID_DEPTH)
        first, last = max(near[0] - 1, 0), min(near[-1] + 1, SEARCH_POINTS - 1)
        narrowed = here.v[last] - here.v[first] < 0.5 * (high - low)
        low, high = here.v[first], here.v[last]
        if not narrowed:
            break
    return here


def _shows_all(even: RoughPosterior, found: RoughPosterior) -> bool:
    """Tell whether an even grid shows every peak that was found, to half a logarithm."""
    padded = np.pad(found.total, 1, constant_values=-np.inf)
    peak = (found.total >= padded[:-2]) & (found.total >= padded[2:])
    peak &= found.total > found.total.max() - GRID_DEPTH / 2
    shown = np.interp(found.v[peak], even.v, even.total, left=-np.inf, right=-np.inf)
    return bool((shown > found.total[peak] - 0.5).all())


def _branch_and_bound(problem: FamilyProblem, z: float, n: float) -> RoughPosterior:
    """Split cells until none can hold much more than its ends show; return all points."""
    here = _rough_posterior(
        problem, z, n, np.linspace(*DOMAIN_ENDS[problem.family.domains[0]], SEARCH_POINTS)
    )
    here = here.joined(_rough_posterior(problem, z, n, _edge_points(problem, here)))
    for _ in range(MAX_ROUNDS):
        cells = _unresolved(problem, z, n, here)
        if len(cells) == 0:
            break
        size = CHUNK_POINTS * -(-len(cells) // CHUNK_POINTS)
        inner = np.arange(1, 1 + size // len(cells)) / (1 + size // len(cells))
        left, width = here.v[cells, None], np.diff(here.v)[cells, None]
        fresh = (left + inner * width).ravel()
        # Always a multiple of CHUNK_POINTS, so that nothing is compiled again.
        fresh = np.pad(fresh, (0, size - len(fresh)), mode="edge")
        here = here.joined(_rough_posterior(problem, z, n, fresh))
    return here


def _edge_points(problem: FamilyProblem, here: RoughPosterior) -> np.ndarray:
    """Return points about those v where the mean record is at an end of the interval."""
    record = here.at.record_mean
    usable = np.isfinite(here.at.log_prior) & np.isfinite(record)
    order = np.argsort(record[usable], kind="stable")
    ends = np.array([problem.interval.lower, problem.interval.upper], float)
    centres = np.interp(ends, record[usable][order], here.v[usable][order])
    about = centres[:, None] + np.linspace(-EDGE_REACH, EDGE_REACH, CHUNK_POINTS // 2)
    return np.asarray(np.clip(about.ravel(), here.v[0], here.v[-1]))


def _unresolved(problem: FamilyProblem, z: float, n: float, here: RoughPosterior) -> np.ndarray:
    """Return the cells that may hold more than their ends show, or are steep, near the peak."""
    v, total = here.v, here.total
    width = np.diff(v)
    residual = z - n * here.at.mean
    slope = np.diff(residual) / width
    bend = np.abs(np.diff(slope))
    bend = np.maximum(np.append(bend, 0.0), np.append(0.0, bend)) * width
    ends = np.stack([residual[:-1], residual[1:]])
    least = np.maximum(np.abs(ends).min(axis=0) - bend, 0.0)
    least = np.where(np.sign(ends[0]) == np.sign(ends[1]), least, 0.0)
    likelihood = [
        rough_log_likelihood(problem, least + n * at_mean, n, at_mean, variance)
        for at_mean, variance in (
            (here.at.mean[:-1], here.at.variance[:-1]), (here.at.mean[1:], here.at.variance[1:]),
        )
    ]  # fmt: skip
    shown, lowest = np.maximum(total[1:], total[:-1]), np.minimum(total[1:], total[:-1])
    bound = _prior_bound(v, here.at.log_prior) + np.max(likelihood, axis=0)
    floor = total.max() - GRID_DEPTH
    hidden = (bound > floor) & (bound > shown + MAX_HIDDEN)
    steep = (shown > floor) & (lowest < shown - MAX_CELL_DROP)
    wide = width > 1e-12 * (1 + np.abs(v[1:]))
    return np.flatnonzero((hidden | steep) & wide)


def _prior_bound(v: np.ndarray, log_prior: np.ndarray) -> np.ndarray:
    """Return in every cell the most that a concave log prior can be: chords of its neighbours."""
    width = np.diff(v)
    # Where the prior is zero, slopes are infinite or unknown: then the ends are all there is.
    with np.errstate(invalid="ignore"):
        slope = np.diff(log_prior) / width
        from_left = log_prior[:-1] + width * np.maximum(np.append(np.inf, slope[:-1]), 0.0)
        from_right = log_prior[1:] + width * np.maximum(-np.append(slope[1:], -np.inf), 0.0)
        bound = np.fmin(from_left, from_right)
    shown = np.maximum(log_prior[:-1], log_prior[1:])
    return np.asarray(np.where(np.isfinite(bound), np.maximum(bound, shown), shown))


def _run_lengths(
    problem: FamilyProblem, n: float, found: RoughPosterior, runs: list[tuple[int, int]]
) -> np.ndarray:
    """Return the lengths of all runs in local deviations, one after the other."""
    total = found.total - found.total.max()
    parts: list[np.ndarray] = []
    for a, b in runs:
        run = slice(a, b + 1)
        mean, variance = found.at.mean[run], found.at.variance[run]
        begin = parts[-1][-1] + VALLEY_DEVIATIONS if parts else 0.0
        parts.append(begin + _deviations(problem, n, found.v[run], total[run], mean, variance))
    return np.concatenate(parts)


def _deviations(
    problem: FamilyProblem, n: float, v: np.ndarray, total: np.ndarray, mean: np.ndarray,
    variance: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Return the length from the left end in local deviations; tails and valleys count less."""
    blur = n * variance + problem.scale**2
    if problem.counted is not None:
        blur = blur + (mean * problem.count_scale) ** 2
    local = np.abs(n * np.gradient(mean, v)) / np.sqrt(blur)
    weight = np.exp(total - total.max()) * np.gradient(v)
    centre = (weight @ v) / weight.sum()
    overall = np.sqrt(weight @ (v - centre) ** 2 / weight.sum())
    # Laplace noise has long tails: what holds less than e^-10 of the peak needs no fine grid.
    share = np.where(total > -10, 1.0, np.where(total > -GRID_DEPTH, 0.25, 0.05))
    per_unit = share * local + 1 / max(overall, 1e-12)
    steps = np.diff(v) * (per_unit[1:] + per_unit[:-1]) / 2
    return np.concatenate([[0.0], np.cumsum(steps)])


def has_gap(spans: list[Span]) -> bool:
    """Tell whether a release between those of the spans, in order, may have a mode off all of them.

    As a release's sum grows, each of its modes moves from where it is in one span to where it is in
    the next; it passes no gap where their stretches overlap, one by one.
    """
    if len({len(s.stretches) for s in spans}) > 1:
        return True
    sides = pairwise(spans)
    pairs = [pair for a, b in sides for pair in zip(a.stretches, b.stretches, strict=True)]
    return any(max(a[0], b[0]) > min(a[1], b[1]) for a, b in pairs)


def union(spans: list[Span]) -> Span:
    """Return one stretch for several releases, everywhere as fine as the finest of them."""
    low, high = min(s.v[0] for s in spans), max(s.v[-1] for s in spans)
    v = np.unique(np.concatenate([s.v for s in spans] + [[low, high]]))
    steps = [np.diff(np.interp(v, s.v, s.length)) for s in spans]
    length = np.concatenate([[0.0], np.cumsum(np.maximum(np.max(steps, axis=0), 1e-9))])
    stretches = tuple(sorted({ends for s in spans for ends in s.stretches}))
    return Span(v, length, min(s.spread for s in spans), stretches)
