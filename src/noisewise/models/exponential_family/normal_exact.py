"""Exact posterior of a normal's mean and variance: the likelihood of ``normal_likelihood.py``.

Coordinates: x₁ = log σ² and x₂ = (mean - m₀)√κ/σ, in which the prior is a product of two laws with
light tails; then whitened by the posterior's own covariance. A rough likelihood (either sum normal,
with its noise; not their correlation) is known everywhere, its kinks included. What it lacks,
log exact - log rough, is smooth: it is computed on a grid of a few hundred points, interpolated by
cubic splines, and checked at draws from the result; where the check fails, on a finer grid. Draws
are independent, from cells of a fine grid.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.interpolate import RectBivariateSpline
from scipy.ndimage import distance_transform_edt, maximum_filter
from scipy.optimize import minimize

from noisewise.artifact import ArgumentError
from noisewise.artifact.user_warnings import warn_user
from noisewise.inference.results import Posterior
from noisewise.models.base import Progress
from noisewise.models.exponential_family.normal_likelihood import (
    BoxInterval,
    NoisySums,
    contribution_moments,
    contributions,
    log_likelihood,
)
from noisewise.models.exponential_family.posterior import assemble_posterior
from noisewise.models.exponential_family.problem import FamilyProblem
from noisewise.numerics import one_blas_thread
from noisewise.numerics.distributions import noisy_normal_log_density

COARSE_POINTS, FINE_CELLS = 64, 128
"""In either direction: points of the search's grids, and cells that draws come from (chosen)."""
CORRECTION_GRIDS = (21, 41, 81)
"""Points in either direction where the exact likelihood is computed: the next if not enough."""
CHECKED_DRAWS = 32
"""Draws at which the interpolation is compared with the exact likelihood (chosen)."""
MAX_INTERPOLATION_ERROR = 0.02
"""Error of the log-likelihood, at posterior draws, that calls for a finer grid (chosen)."""
WARNED_INTERPOLATION_ERROR = 0.1
"""Error that calls for a warning, on the finest grid (chosen)."""
SEARCH_DEPTH = 16.0
"""Logarithms below the peak that are looked at (chosen): e^-16 is about 1e-7."""

MAX_MISSED_DEPTH = 1.0
"""Logarithms by which a summit may exceed the grid's best point, and yet be resolved (chosen)."""
MISSED_MODE_DEPTH = 6.0
"""Logarithms below the highest summit from which a missed one is no matter (chosen)."""
MAX_CLIMBS = 4
"""Peaks of the blurred posterior that are climbed, at most (chosen)."""
UNRESOLVED = (
    "method: exact cannot resolve this posterior, which is too narrow for its grids, or has narrow "
    "modes far apart; use method='gibbs', whose approximation is best where there are many "
    "records, but which may show one mode of several where records were dropped (a release with "
    "outside='clamp' would tell them apart)"
)
"""What is said where no grid holds the posterior."""
CONTRADICTED = {
    True: "family: no normal distribution clamped to these bounds has sums near those released; "
    "this column is not normal; a release by another family would describe it better",
    False: "family: no normal distribution whose values outside the bounds are dropped has sums "
    "near those released; this column is not normal, and a release with outside='clamp' or another "
    "family would describe it better",
}
"""What is said where the likelihood vanishes everywhere, by whether records were clamped."""


class NormalBoxPrior(NamedTuple):
    """The normal-inverse-gamma prior, in the box of the release."""

    mean: float
    kappa: float
    shape: float
    rate: float

    def parameters(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance at points (…, 2)."""
        variance = np.exp(x[..., 0])
        return self.mean + x[..., 1] * np.sqrt(variance / self.kappa), variance

    def coordinates(self, mean: float, variance: float) -> np.ndarray:
        """Return the point (2,) of a mean and a variance."""
        return np.array([np.log(variance), (mean - self.mean) / np.sqrt(variance / self.kappa)])

    def log_density(self, x: np.ndarray) -> np.ndarray:
        """Return the log density of points (…, 2), up to a constant."""
        lv, y = x[..., 0], x[..., 1]
        return np.asarray(-self.shape * lv - self.rate * np.exp(-lv) - y**2 / 2)


class WhitenedGrid(NamedTuple):
    """A rectangle in whitened coordinates, x = centre + axes @ w, with places along either side.

    Places are close together where the posterior is.
    """

    centre: np.ndarray
    axes: np.ndarray
    first: np.ndarray
    second: np.ndarray

    def lines(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Return that many places along either side."""
        even = np.linspace(0, 1, number)
        a, b = (np.interp(even, np.linspace(0, 1, len(v)), v) for v in (self.first, self.second))
        return a, b

    def points(self, number: int) -> np.ndarray:
        """Return a grid (number, number, 2) of x."""
        return self.of(mesh(self.lines(number)))

    def of(self, w: np.ndarray) -> np.ndarray:
        """Return x of w (…, 2)."""
        return np.asarray(self.centre + w @ self.axes.T)


def mesh(lines: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Return all pairs (…, …, 2)."""
    return np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1)


def run(
    problem: FamilyProblem, seed: int, chains: int, draws: int, progress: Progress | None = None
) -> Posterior:
    """Draw independently from the exact posterior of every group."""
    if problem.counted is not None:
        raise ArgumentError(
            "method: exact for a normal column needs a public number of records "
            "(neighbours='replace-one'); use method='gibbs'"
        )
    prior = _box_prior(problem)
    ends = problem.family.to_standard(np.array([problem.interval.lower, problem.interval.upper]))
    cut = BoxInterval(float(ends[0]), float(ends[1]), problem.interval.outside == "clamp")
    groups = len(problem.z)
    drawn = np.empty((groups, chains * draws, 2))
    errors = np.empty(groups)
    with one_blas_thread():
        for group in range(groups):
            n = float(problem.n[group])
            z = problem.z[group]
            if problem.mechanism == "laplace":
                z = np.clip(z, *(n * np.array(e) for e in zip(*cut.ends, strict=True)))
            given = NoisySums(z, n, problem.scale, problem.mechanism, cut, SEARCH_DEPTH)
            rng = np.random.default_rng([seed, group])
            drawn[group], errors[group] = sample(rng, given, prior, chains * draws)
            if progress is not None:
                progress(group + 1, groups)
    if errors.max() > WARNED_INTERPOLATION_ERROR:
        warn_user(
            f"exact: the interpolated log-likelihood is off by {errors.max():.2f} in group "
            f"{errors.argmax()}; compare with method='gibbs', or give a stronger prior"
        )
    theta = problem.family.from_standard(drawn.reshape(groups, chains, draws, 2))
    return assemble_posterior(
        problem, theta, "exact", {"log_likelihood_error": float(errors.max())}
    )


def _box_prior(problem: FamilyProblem) -> NormalBoxPrior:
    """Return the prior in the box, from its λ."""
    sums, counts = (np.asarray(a, float) for a in problem.conjugate)
    m = sums[0] / counts[0]
    return NormalBoxPrior(m, counts[0], counts[1] / 2, (sums[1] - counts[0] * m * m) / 2)


def rough_log_likelihood(
    given: NoisySums, mean: np.ndarray, variance: np.ndarray, inflated: float
) -> np.ndarray:
    """Return the log-likelihood with either sum normal by itself, and its noise."""
    centre, spread = contribution_moments(
        contributions(mean.ravel(), variance.ravel(), given.interval)
    )
    total = np.zeros(mean.size)
    for j in range(2):
        v = inflated * given.n * spread[:, j] + 1e-12 * given.scale**2
        r = given.z[j] - given.n * centre[:, j]
        total += noisy_normal_log_density(r, v, given.scale, given.mechanism)
    return total.reshape(mean.shape)


def locate(given: NoisySums, prior: NormalBoxPrior) -> WhitenedGrid:
    """Narrow what the prior allows down to where the rough posterior is; whiten and return it."""
    frame = _zoomed(given, prior, _widest_frame(prior))
    missed = _missed_peaks(given, prior, frame)
    if len(missed):
        frame = _zoomed(given, prior, _frame_about(given, prior, missed))
        if len(_missed_peaks(given, prior, frame)):
            raise ArgumentError(UNRESOLVED)
    frame = _whitened(frame, _rough_posterior(given, prior, frame))
    frame = _narrowed(frame, _rough_posterior(given, prior, frame))
    return _concentrated(frame, _rough_posterior(given, prior, frame))


def _widest_frame(prior: NormalBoxPrior) -> WhitenedGrid:
    """Return all that the prior allows."""
    typical = np.log(prior.rate / prior.shape)
    return WhitenedGrid(
        np.array([typical, 0.0]), np.eye(2), np.linspace(-40, 80, 2), np.linspace(-12, 12, 2)
    )


def _zoomed(given: NoisySums, prior: NormalBoxPrior, frame: WhitenedGrid) -> WhitenedGrid:
    """Return the rectangle that is left when narrowing it no longer helps."""
    for _ in range(16):
        smaller = _narrowed(frame, _rough_posterior(given, prior, frame))
        kept = [np.ptp(b) / np.ptp(a) for a, b in zip(frame[2:], smaller[2:], strict=True)]
        frame = smaller
        if min(kept) > 0.7:
            break
    return frame


def _missed_peaks(given: NoisySums, prior: NormalBoxPrior, frame: WhitenedGrid) -> np.ndarray:
    """Return peaks (peak, 2) of the rough posterior that the grid does not show.

    A posterior that is narrower than a cell of the first, wide grid can slip through it, and where
    records were dropped there may be several modes. So the rough posterior is climbed from the
    grid's best point, from the moments of the sums as they are, and from wherever the expected sums
    come near the released ones; a summit well above the points of the grid about it was missed.
    """

    def depth(x: np.ndarray) -> float:
        value = float(_rough_at(given, prior, x[None])[0])
        return -value if np.isfinite(value) else 1e300

    total = _rough_posterior(given, prior, frame)
    best = frame.points(COARSE_POINTS)[np.unravel_index(total.argmax(), total.shape)]
    mean = given.z[0] / given.n
    variance = max(given.z[1] / given.n - mean**2, 1e-6)
    starts = [best, prior.coordinates(mean, variance), prior.coordinates(mean, 1e-3)]
    if not given.interval.clamp:
        starts.extend(_blurred_peaks(given, prior))
    options = {"xatol": 1e-10, "fatol": 1e-6, "maxiter": 4000}
    climbed = [minimize(depth, s, method="Nelder-Mead", options=options) for s in starts]
    highest = max(-c.fun for c in climbed)
    summits = [c.x for c in climbed if -c.fun > highest - MISSED_MODE_DEPTH]
    heights = [-c.fun for c in climbed if -c.fun > highest - MISSED_MODE_DEPTH]
    shown = [_shown_about(frame, total, x) for x in summits]
    if all(s > h - MAX_MISSED_DEPTH for s, h in zip(shown, heights, strict=True)):
        return np.empty((0, 2))
    return np.array([c.x for c in climbed if -c.fun > highest - SEARCH_DEPTH])


def _blurred_peaks(given: NoisySums, prior: NormalBoxPrior) -> np.ndarray:
    """Return the peaks (peak, 2) on a wide grid of the rough posterior, blurred by its cells.

    Expected sums are smooth even where the posterior is narrow: with the change of a sum across a
    cell as a further deviation of it, no cell in which the sums fit looks impossible.
    """
    frame = _widest_frame(prior)
    x = frame.points(COARSE_POINTS)
    mean, variance = prior.parameters(x)
    law = contributions(mean.ravel(), variance.ravel(), given.interval)
    centre, spread = contribution_moments(law)
    total = prior.log_density(x)
    for j in range(2):
        expected = given.n * centre[:, j].reshape(mean.shape)
        change = np.abs(np.gradient(expected)).sum(axis=0)
        v = given.n * spread[:, j].reshape(mean.shape) + 2 * given.scale**2 + change**2
        total = total - (given.z[j] - expected) ** 2 / (2 * v)
    total = np.where(np.isfinite(total), total, -np.inf)
    peak = (total == maximum_filter(total, 3)) & (total > total.max() - SEARCH_DEPTH)
    order = np.argsort(-total[peak])[:MAX_CLIMBS]
    return np.asarray(x[peak][order])


def _shown_about(frame: WhitenedGrid, total: np.ndarray, x: np.ndarray) -> float:
    """Return the most that the grid shows at the four points about x; -inf off the grid."""
    w = np.linalg.solve(frame.axes, x - frame.centre)
    lines = frame.lines(len(total))
    at = [int(np.searchsorted(line, p)) for line, p in zip(lines, w, strict=True)]
    if any(a == 0 or a == len(line) for a, line in zip(at, lines, strict=True)):
        return -np.inf
    return float(total[at[0] - 1 : at[0] + 1, at[1] - 1 : at[1] + 1].max())


def _frame_about(given: NoisySums, prior: NormalBoxPrior, peaks: np.ndarray) -> WhitenedGrid:
    """Return a rectangle about the peaks, wide enough for all that is not far below them."""
    centre = (peaks.min(axis=0) + peaks.max(axis=0)) / 2
    reach = np.ptp(peaks, axis=0) / 2 + np.abs(centre) * 1e-9 + 1e-9
    for _ in range(100):
        frame = WhitenedGrid(centre, np.eye(2), *(np.array([-r, r]) for r in reach))
        total = _rough_posterior(given, prior, frame)
        near = total > total.max() - SEARCH_DEPTH
        edges = np.array([near[[0, -1]].any(), near[:, [0, -1]].any()])
        if not edges.any():
            break
        reach = np.where(edges, 2 * reach, reach)
    return frame


def _rough_at(given: NoisySums, prior: NormalBoxPrior, x: np.ndarray) -> np.ndarray:
    """Return the log of the rough posterior at points x (…, 2), generously spread."""
    return np.asarray(prior.log_density(x) + rough_log_likelihood(given, *prior.parameters(x), 2.0))


def _rough_posterior(given: NoisySums, prior: NormalBoxPrior, frame: WhitenedGrid) -> np.ndarray:
    """Return the log of the rough posterior on a coarse grid, generously spread."""
    total = _rough_at(given, prior, frame.points(COARSE_POINTS))
    return np.where(np.isfinite(total), total, -np.inf)


def _narrowed(frame: WhitenedGrid, total: np.ndarray) -> WhitenedGrid:
    """Return the rectangle about what is not far below the peak, or may hide in a cell."""
    i, j = np.unravel_index(total.argmax(), total.shape)
    around = total[max(i - 1, 0) : i + 2, max(j - 1, 0) : j + 2]
    hidden = total[i, j] - around[np.isfinite(around)].min()
    near = total > total[i, j] - SEARCH_DEPTH - 2 * hidden
    cut = []
    for axis, line in enumerate(frame.lines(len(total))):
        at = np.flatnonzero(near.any(axis=1 - axis))
        cut.append(line[[max(at[0] - 1, 0), min(at[-1] + 1, len(line) - 1)]])
    return frame._replace(first=cut[0], second=cut[1])


def _whitened(frame: WhitenedGrid, total: np.ndarray) -> WhitenedGrid:
    """Return axes along which the rough posterior is uncorrelated, and a rectangle about it."""
    flat = frame.points(len(total)).reshape(-1, 2)
    weight = np.exp(total - total.max()).ravel()
    weight = weight / weight.sum()
    centre = weight @ flat
    covariance = (flat - centre).T @ (weight[:, None] * (flat - centre))
    axes = np.linalg.cholesky(covariance + np.diag(1e-12 + 1e-9 * np.diag(covariance)))
    near = flat[total.ravel() > total.max() - SEARCH_DEPTH]
    w = np.linalg.solve(axes, (near - centre).T)
    ends = [(v.min() - 0.1 * np.ptp(v) - 0.5, v.max() + 0.1 * np.ptp(v) + 0.5) for v in w]
    return WhitenedGrid(centre, axes, np.array(ends[0]), np.array(ends[1]))


def _concentrated(frame: WhitenedGrid, total: np.ndarray) -> WhitenedGrid:
    """Put half of the places evenly, half by the root of the density, for narrow modes apart."""
    root = np.exp((total - total.max()) / 2)
    places = []
    for axis, line in enumerate(frame.lines(len(total))):
        side = root.max(axis=1 - axis)
        dense = np.concatenate([[0.0], np.cumsum(np.diff(line) * (side[1:] + side[:-1]))])
        share = dense / dense[-1] + np.linspace(0, 1, len(line))
        places.append(np.interp(np.linspace(0, 2, 4 * COARSE_POINTS), share, line))
    return frame._replace(first=places[0], second=places[1])


class Correction(NamedTuple):
    """log exact - log rough, interpolated."""

    frame: WhitenedGrid
    spline: RectBivariateSpline

    def at(self, w: np.ndarray) -> np.ndarray:
        """Return the correction at points w (…, 2)."""
        return np.asarray(self.spline.ev(w[..., 0], w[..., 1]))


def corrected(
    given: NoisySums, prior: NormalBoxPrior, frame: WhitenedGrid, number: int
) -> Correction:
    """Return the correction, exact at those points of a grid that hold some of the posterior."""
    x = frame.points(number)
    mean, variance = prior.parameters(x)
    guess = rough_log_likelihood(given, mean, variance, 1.0)
    total = prior.log_density(x) + guess
    near = total > total.max() - SEARCH_DEPTH
    ratio = np.full(total.shape, np.nan)
    ratio[near] = log_likelihood(given, mean[near], variance[near]) - guess[near]
    absent = ~np.isfinite(ratio)
    if absent.all():
        raise ArgumentError(CONTRADICTED[given.interval.clamp])
    nearest = distance_transform_edt(absent, return_distances=False, return_indices=True)
    return Correction(frame, RectBivariateSpline(*frame.lines(number), ratio[tuple(nearest)]))


def sample(
    rng: np.random.Generator, given: NoisySums, prior: NormalBoxPrior, size: int
) -> tuple[np.ndarray, float]:
    """Return draws (draw, 2) of mean and variance, and the log-likelihood's error at some."""
    frame = locate(given, prior)
    given = given._replace(depth=_depth(given, prior, frame))
    for number in CORRECTION_GRIDS:
        correction = corrected(given, prior, frame, number)
        w = _draw(rng, given, prior, correction, size)
        error = _interpolation_error(given, prior, correction, w[:CHECKED_DRAWS])
        if error < MAX_INTERPOLATION_ERROR:
            break
    mean, variance = prior.parameters(frame.of(w))
    return np.stack([mean, variance], axis=1), error


def _depth(given: NoisySums, prior: NormalBoxPrior, frame: WhitenedGrid) -> float:
    """Return the depth of probabilities that matter: with quiet noise every likelihood is small."""
    mean, variance = prior.parameters(frame.centre[None])
    _, spread = contribution_moments(contributions(mean, variance, given.interval))
    sd = np.sqrt(given.n * spread[0, :2])
    return SEARCH_DEPTH + float(np.log(np.maximum(sd / given.scale, 1.0)).sum())


def _draw(
    rng: np.random.Generator,
    given: NoisySums,
    prior: NormalBoxPrior,
    correction: Correction,
    size: int,
) -> np.ndarray:
    """Draw cells of a fine grid by their mass, and a place in each cell."""
    edges = correction.frame.lines(FINE_CELLS + 1)
    first, second = ((v[1:] + v[:-1]) / 2 for v in edges)
    w, width = mesh((first, second)), mesh((np.diff(edges[0]), np.diff(edges[1])))
    x = correction.frame.of(w)
    total = (
        prior.log_density(x)
        + rough_log_likelihood(given, *prior.parameters(x), 1.0)
        + correction.at(w)
    )
    cumulative = np.cumsum(np.exp(total - total.max()) * width.prod(axis=-1))
    cell = np.searchsorted(cumulative, rng.random(size) * cumulative[-1], side="right")
    jitter = (rng.random((size, 2)) - 0.5) * width.reshape(-1, 2)[cell]
    return np.asarray(w.reshape(-1, 2)[cell] + jitter)


def _interpolation_error(
    given: NoisySums, prior: NormalBoxPrior, correction: Correction, w: np.ndarray
) -> float:
    """Return the largest error of the interpolated log-likelihood at points w."""
    mean, variance = prior.parameters(correction.frame.of(w))
    exact = log_likelihood(given, mean, variance) - rough_log_likelihood(given, mean, variance, 1.0)
    return float(np.abs(exact - correction.at(w)).max())
