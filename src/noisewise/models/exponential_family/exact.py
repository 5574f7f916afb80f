"""Method ``exact``: the posterior of one parameter without Monte Carlo (errata E19, E15).

Categories and the normal have files of their own.

The likelihood of the released sum is a Fourier series (``kernel.py``, ``likelihood.py``) where sums
come near it and a closed form where they do not (``far.py``), for every n, for records dropped or
clamped, for Laplace and Gaussian noise. The posterior lives on a grid;
draws are independent, by its inverse CDF. Releases are sorted by their sum and share grids.

Laplace noise forgets how far outside the possible sums a release lies: for z above every s,
exp(-|z-s|/b) ∝ exp(-|z'-s|/b) with z' the largest sum. So z is first clamped to the possible sums,
which changes nothing in the posterior and everything in the arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from noisewise.artifact import ArgumentError
from noisewise.inference.posterior import Posterior
from noisewise.models.exponential_family import (
    categorical_exact,
    far,
    grid,
    law,
    normal_exact,
    secret_size,
)
from noisewise.models.exponential_family.assemble import posterior
from noisewise.models.exponential_family.families import Categorical, Normal, find
from noisewise.models.exponential_family.kernel import Series, series
from noisewise.models.exponential_family.likelihood import likelihood, one_record
from noisewise.models.exponential_family.problem import Problem
from noisewise.numerics.runtime import one_blas_thread

Report = Callable[[int, int], None]

PER_DEVIATION = 8
"""Grid points per posterior standard deviation, at least."""
WIDEST = 500.0
"""Posterior deviations one grid may span before its releases are split into two grids."""
MODES = 4096
NODES = (64, 256, 1024, 4096)
FLOOR = 1e-13
"""Fourier sums are right to rounding: less than this, relative to the peak, is taken for zero."""
SLAB = 512
"""Releases that share a grid, at most: their densities stay in the cache."""


class Density(NamedTuple):
    """Posterior densities (release, point) on a grid of θ's stretched coordinate."""

    v: np.ndarray
    values: np.ndarray


def serves(distribution: object) -> bool:
    """Whether there is an exact method for the family of that name."""
    kind = find(distribution)
    return kind in (Categorical, Normal) or len(kind.parameters) == 1


def run(
    problem: Problem, seed: int, chains: int, draws: int, progress: Report | None = None
) -> Posterior:
    """Independent draws from the exact posterior of every group."""
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
        for rows in _alike(problem):
            for part, found in densities(problem, rows):
                drawn[part] = quantiles(found.v, found.values, uniforms[part])
                done += len(part)
                if progress is not None:
                    progress(done, groups)
    theta = np.asarray(grid.parameter(problem.family, jnp.asarray(drawn)))
    shaped = theta.reshape(groups, chains, draws)[..., None]
    told = {} if problem.counted is None else {"n": "secret: flat prior over 0, 1, 2, …"}
    return posterior(problem, shaped, "exact", told)


def _alike(problem: Problem) -> list[np.ndarray]:
    """Groups with the same n, sorted by z; a secret n is each group's own."""
    if problem.counted is not None:
        return [np.array([r]) for r in range(len(problem.z))]
    order = np.lexsort((problem.z[:, 0], problem.n))
    cuts = np.flatnonzero(np.diff(problem.n[order])) + 1
    return np.split(order, cuts)


def densities(problem: Problem, rows: np.ndarray) -> list[tuple[np.ndarray, Density]]:
    """Grids and densities for groups of one n, sorted by z: as few grids as will resolve them."""
    n = float(problem.n[rows[0]])
    z = possible(problem, problem.z[rows, 0], n)
    ends = {0, len(rows) - 1, len(rows) // 2}
    single = [grid.locate(problem, float(z[e]), n) for e in ends]
    span = grid.union(single)
    # Two modes far apart are wide by themselves: splitting would not make them narrower.
    worth = span.deviations > max(WIDEST, 1.3 * max(s.deviations for s in single))
    # Releases between those that were located must not fall into a gap between their grids.
    worth |= len(rows) > len(ends) and grid.gap(single)
    if (worth and z[0] < z[-1]) or len(rows) > SLAB:
        half = len(rows) // 2
        if worth:
            half = int(np.clip(np.searchsorted(z, (z[0] + z[-1]) / 2), 1, len(rows) - 1))
        return densities(problem, rows[:half]) + densities(problem, rows[half:])
    counted = None if problem.counted is None else float(problem.counted[rows[0]])
    for _ in range(4):
        found = _on_grid(problem, z, n, counted, span)
        edge = found.values[:, [0, -1]].max(axis=0) / found.values.max()
        if (edge < 1e-7).all() or _at_the_end(problem, span):
            break
        span = span.widened()
    return [(rows, found)]


def _at_the_end(problem: Problem, span: grid.Span) -> bool:
    low, high = grid.WIDEST[problem.family.domains[0]]
    return bool(span.v[0] <= low or span.v[-1] >= high)


def possible(problem: Problem, z: np.ndarray, n: float) -> np.ndarray:
    """Laplace: z clamped to the sums that n records can have (n up to any where it is secret)."""
    if problem.mechanism == "gaussian":
        return z
    low, high = law.ends(problem.family, problem.interval)
    if problem.counted is None:
        return np.asarray(np.clip(z, n * low, n * high))
    return np.asarray(np.clip(z, None if low < 0 else 0.0, None if high > 0 else 0.0))


def _on_grid(
    problem: Problem, z: np.ndarray, n: float, counted: float | None, span: grid.Span
) -> Density:
    size = math.ceil(PER_DEVIATION * span.deviations)
    v = span.points(1 << max(9, min(12, (size - 1).bit_length())))
    log_prior, eta, mean, variance = grid.described(problem, v)
    if counted is None:
        found = _public_size(problem, z, n, span, eta, mean, variance)
    else:
        found = _secret_size(problem, z, n, counted, span, eta, mean, variance)
    if (found.max(axis=1) < 1e3 * FLOOR).any():
        raise ArgumentError(
            "prior: it contradicts the release so strongly that the likelihood vanishes wherever "
            "the prior does not; check the prior's units, or give a weaker one"
        )
    found = np.where(found > FLOOR * found.max(axis=1, keepdims=True), found, 0.0)
    return Density(v, found * np.exp(log_prior - log_prior.max()))


def _public_size(
    problem: Problem, z: np.ndarray, n: float, span: grid.Span, eta: np.ndarray, mean: np.ndarray,
    variance: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """The transform for parameters whose sums may come near z, a closed form for the others."""
    family, b = problem.family, problem.scale
    low, high = ends = law.ends(family, problem.interval)
    near = far.near(z, n, ends, mean, variance, b, problem.mechanism)
    some = np.flatnonzero(near.any(axis=0))
    if len(some) == 0:
        record = one_record(family, problem.interval, eta, NODES[0])
        return far.likelihood(record, mean, z, n, b, problem.mechanism)
    stray = far.stray(n * variance[some], high - low)
    highest = np.minimum(n * mean[some] + stray, n * high)
    lowest = np.maximum(n * mean[some] - stray, n * low)
    last = np.where(near, z[:, None], -np.inf).max(axis=0)[some]
    first = np.where(near, z[:, None], np.inf).min(axis=0)[some]
    reach = max((last - lowest).max(), (highest - first).max(), b * 1e-6)
    spread = max(span.spread, float(np.sqrt(variance[some].min())))
    noise = _series(problem, reach, _highest_frequency(spread, n, high - low))
    record = one_record(family, problem.interval, eta, _nodes(noise, high - low))
    close = likelihood(record.of(some), noise, z, n)
    if near.all():
        return close
    found = far.likelihood(record, mean, z, n, b, problem.mechanism)
    found[:, some] = np.where(near[:, some], close, found[:, some])
    return found


def _secret_size(
    problem: Problem, z: np.ndarray, n: float, counted: float, span: grid.Span, eta: np.ndarray,
    mean: np.ndarray, variance: np.ndarray,
) -> np.ndarray:  # fmt: skip
    low, high = law.ends(problem.family, problem.interval)
    most = max(counted, 0) + 45 * problem.count_scale + 1
    stray = far.stray(most * variance, high - low)
    highest = np.minimum(np.maximum(most * mean, 0.0) + stray, max(most * high, 0))
    lowest = np.maximum(np.minimum(most * mean, 0.0) - stray, min(most * low, 0))
    reach = max(z.max() - lowest.min(), highest.max() - z.min(), problem.scale * 1e-6)
    noise = _series(problem, reach, _highest_frequency(span.spread, n, high - low))
    nodes = _nodes(noise, high - low)
    record = one_record(problem.family, problem.interval, eta, nodes)
    return secret_size.likelihood(record, noise, z, counted, problem.mechanism, problem.count_scale)


def _series(problem: Problem, reach: float, frequency: float) -> Series:
    """Only as many terms as count.

    Laplace: beyond, the noise's own coefficients add up to less than 1/(1000π) at its kink.
    Gaussian: beyond, they are less than e^-36; but not those of the kernel on whole numbers, which
    may have a kink half a period away.
    """
    whole = problem.family.whole and not problem.between
    if problem.mechanism == "laplace":
        frequency = min(frequency, 1000 / problem.scale)
    elif not whole:
        # Whole sums seen from between them: φⁿ comes back at 2π, so quiet noise needs all its own.
        comes_back = problem.between and 8.5 / problem.scale > np.pi
        frequency = 8.5 / problem.scale if comes_back else min(frequency, 8.5 / problem.scale)
    noise = series(reach, problem.scale, problem.mechanism, whole, frequency)
    return Series(*(a[:MODES] for a in noise))


def _nodes(noise: Series, width: float) -> int:
    """Enough for the fastest oscillation over one record's range."""
    wanted = 0.6 * 1.5 * noise.frequency[-1] * width + 48
    return next((q for q in NODES if q >= wanted), NODES[-1])


def _highest_frequency(spread: float, n: float, width: float) -> float:
    """Where φⁿ has died: like a normal's for many records, like a power for few."""
    decay = max(7.8 / math.sqrt(n), min(10 ** (15 / n), 200.0) if n > 0 else 200.0)
    return decay / max(spread, 1e-3 * width)


def quantiles(v: np.ndarray, density: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Inverse CDFs of densities (release, point), linear between points, at (release, draw)."""
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
    share = np.clip(2 * rest / np.maximum(left + root, 1e-300), 0.0, 1.0)
    return np.asarray(v[at] + share * width[at])
