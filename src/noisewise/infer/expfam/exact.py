"""Method ``exact``: the posterior of one parameter without Monte Carlo (errata E19, E15).

The likelihood of the released sum is a Fourier series (``kernel.py``, ``likelihood.py``), for every
n, for records dropped or clamped, for Laplace and Gaussian noise. The posterior lives on a grid;
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
from noisewise.infer.expfam import categorical_exact, grid, law
from noisewise.infer.expfam.assemble import posterior
from noisewise.infer.expfam.families import Categorical, find
from noisewise.infer.expfam.kernel import series
from noisewise.infer.expfam.likelihood import likelihood
from noisewise.infer.expfam.problem import Problem
from noisewise.infer.posterior import Posterior

Report = Callable[[int, int], None]

PER_DEVIATION = 8
"""Grid points per posterior standard deviation, at least."""
WIDEST = 500.0
"""Posterior deviations one grid may span before its releases are split into two grids."""
MODES = 4096
NODES = (64, 256, 1024, 4096)
FLOOR = 1e-13
"""Fourier sums are right to rounding: less than this, relative to the peak, is taken for zero."""
SLAB = 4096


class Density(NamedTuple):
    """Posterior densities (release, point) on a grid of θ's stretched coordinate."""

    v: np.ndarray
    values: np.ndarray


def serves(distribution: object) -> bool:
    """Whether there is an exact method for the family of that name."""
    kind = find(distribution)
    return kind is Categorical or len(kind.parameters) == 1


def run(
    problem: Problem, seed: int, chains: int, draws: int, progress: Report | None = None
) -> Posterior:
    """Independent draws from the exact posterior of every group."""
    if isinstance(problem.family, Categorical):
        return categorical_exact.run(problem, seed, chains, draws, progress)
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
    for rows in _alike(problem):
        for part, found in densities(problem, rows):
            for row, density in zip(part, found.values, strict=True):
                drawn[row] = quantiles(found.v, density, uniforms[row])
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
    low, high = law.ends(problem.family, problem.interval)
    most = n if counted is None else max(counted, 0) + 45 * problem.count_scale + 1
    # Bernstein's inequality: sums farther from their mean than this have probability below e^-32.
    stray = 8 * np.sqrt(most * variance) + 11 * (high - low)
    least = n if counted is None else 0.0
    highest = np.minimum(np.maximum(most * mean, least * mean) + stray, max(most * high, 0))
    lowest = np.maximum(np.minimum(most * mean, least * mean) - stray, min(most * low, 0))
    if counted is None:
        highest, lowest = np.minimum(highest, n * high), np.maximum(lowest, n * low)
    reach = max(z.max() - lowest.min(), highest.max() - z.min(), problem.scale * 1e-6)
    frequency = _highest_frequency(span.spread, n, high - low)
    if problem.mechanism == "laplace":
        # Beyond, the noise's own coefficients add up to less than 1/(1000π) at its kink.
        frequency = min(frequency, 1000 / problem.scale)
    noise = series(reach, problem.scale, problem.mechanism, problem.family.whole, frequency)
    noise = type(noise)(*(a[:MODES] for a in noise))
    wanted = 0.6 * 1.5 * noise.frequency[-1] * (high - low) + 48
    nodes = next((q for q in NODES if q >= wanted), NODES[-1])
    secret = "" if counted is None else problem.mechanism
    records = n if counted is None else counted
    found = likelihood(
        problem.family, problem.interval, eta, nodes, noise, z, records, secret,
        problem.count_scale,
    )  # fmt: skip
    if (found.max(axis=1) < 1e3 * FLOOR).any():
        raise ArgumentError(
            "prior: it contradicts the release so strongly that the likelihood vanishes wherever "
            "the prior does not; check the prior's units, or give a weaker one"
        )
    found = np.where(found > FLOOR * found.max(axis=1, keepdims=True), found, 0.0)
    return Density(v, found * np.exp(log_prior - log_prior.max()))


def _highest_frequency(spread: float, n: float, width: float) -> float:
    """Where φⁿ has died: like a normal's for many records, like a power for few."""
    decay = max(7.8 / math.sqrt(n), min(10 ** (15 / n), 200.0) if n > 0 else 200.0)
    return decay / max(spread, 1e-3 * width)


def quantiles(v: np.ndarray, density: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Inverse CDF of a density that is linear between grid points."""
    width = np.diff(v)
    cells = width * (density[1:] + density[:-1]) / 2
    cumulative = np.concatenate([[0.0], np.cumsum(cells)])
    target = uniform * cumulative[-1]
    at = np.clip(np.searchsorted(cumulative, target, side="right") - 1, 0, len(cells) - 1)
    left, right = density[at], density[at + 1]
    rest = (target - cumulative[at]) / np.maximum(cells[at], 1e-300)
    # The share x of a cell: left x + (right - left) x²/2 = rest · (left + right)/2.
    mean, slope = (left + right) / 2, right - left
    root = np.sqrt(np.maximum(left**2 + 2 * slope * rest * mean, 0.0))
    share = np.clip(2 * rest * mean / np.maximum(left + root, 1e-300), 0.0, 1.0)
    return np.asarray(v[at] + share * width[at])
