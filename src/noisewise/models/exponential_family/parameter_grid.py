"""The grid of one parameter: where its posterior lies, before any of it is computed exactly.

The parameter is stretched to the real line, v = log θ or log θ/(1-θ), where densities are smooth
and the trapezoidal rule converges fast. Prior times a rough likelihood (the central limit theorem
for the sum, with the noise) says where to put the grid; it has logarithms everywhere, so a search
cannot miss a narrow peak. The exact likelihood then has the last word (``exact.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
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


@dataclass(frozen=True)
class Span:
    """A stretch of v, how many posterior deviations it counts up to each point, and the least
    spread of one record's contribution where the posterior is.

    A sum over an interval may fit two values of the parameter: deviations are local, so that a
    narrow mode is resolved far from another one.
    """

    v: np.ndarray
    length: np.ndarray
    spread: float

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
        return Span(v, length, self.spread)


class PointMoments(NamedTuple):
    """At each point v: log prior density, η, and mean and variance of one record's contribution."""

    log_prior: np.ndarray
    eta: np.ndarray
    mean: np.ndarray
    variance: np.ndarray


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
        return log_prior, eta, law.mean[0], jnp.maximum(law.covariance[0, 0], 0.0)

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
    log_prior, eta, mean, variance = (np.concatenate(side) for side in zip(*parts, strict=True))
    bad = ~(np.isfinite(log_prior) & np.isfinite(eta[:, 0]) & np.isfinite(mean))
    bad |= ~np.isfinite(variance)
    return PointMoments(
        np.where(bad, -np.inf, log_prior),
        np.where(bad[:, None], eta[~bad][:1], eta),
        np.where(bad, 0.0, mean),
        np.where(bad, 0.0, variance),
    )


def rough_log_likelihood(
    problem: FamilyProblem, z: float, n: float, mean: np.ndarray, variance: np.ndarray
) -> np.ndarray:
    """Return the log density of z where the sum is normal, generously spread."""
    v = 1.5 * n * variance + 1e-12 * problem.scale**2
    if problem.counted is not None:
        v = v + 8 * (mean * problem.count_scale) ** 2
    return noisy_normal_log_density(z - n * mean, v, problem.scale, problem.mechanism)


def locate(problem: FamilyProblem, z: float, n: float) -> Span:
    """Narrow the parameter's whole range down to where the rough posterior is; return that span."""
    low, high = DOMAIN_ENDS[problem.family.domains[0]]
    for _ in range(12):
        v = np.linspace(low, high, SEARCH_POINTS)
        at = point_moments(problem, v)
        total = at.log_prior + rough_log_likelihood(problem, z, n, at.mean, at.variance)
        total = total - total.max()
        near = np.flatnonzero(total > -GRID_DEPTH)
        first, last = max(near[0] - 1, 0), min(near[-1] + 1, SEARCH_POINTS - 1)
        narrowed = v[last] - v[first] < 0.5 * (high - low)
        low, high = v[first], v[last]
        if not narrowed:
            break
    return Span(
        v,
        _deviations(problem, n, v, total, at.mean, at.variance),
        float(np.sqrt(at.variance[total > -8].min())),
    )


def _deviations(
    problem: FamilyProblem, n: float, v: np.ndarray, total: np.ndarray, mean: np.ndarray,
    variance: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Return the length from the left end in local deviations; tails and valleys count less."""
    blur = n * variance + problem.scale**2
    if problem.counted is not None:
        blur = blur + (mean * problem.count_scale) ** 2
    local = np.abs(n * np.gradient(mean, v)) / np.sqrt(blur)
    weight = np.exp(total)
    centre = (weight @ v) / weight.sum()
    overall = np.sqrt(weight @ (v - centre) ** 2 / weight.sum())
    # Laplace noise has long tails: what holds less than e^-10 of the peak needs no fine grid.
    share = np.where(total > -10, 1.0, np.where(total > -GRID_DEPTH, 0.25, 0.05))
    per_unit = share * local + 1 / max(overall, 1e-12)
    steps = np.diff(v) * (per_unit[1:] + per_unit[:-1]) / 2
    return np.concatenate([[0.0], np.cumsum(steps)])


def has_gap(spans: list[Span]) -> bool:
    """Tell whether some stretch between the first and the last belongs to none of them."""
    ordered = sorted((float(s.v[0]), float(s.v[-1])) for s in spans)
    reached = np.maximum.accumulate([high for _, high in ordered])
    return any(low > high for (low, _), high in zip(ordered[1:], reached, strict=False))


def union(spans: list[Span]) -> Span:
    """Return one stretch for several releases, everywhere as fine as the finest of them."""
    low, high = min(s.v[0] for s in spans), max(s.v[-1] for s in spans)
    v = np.unique(np.concatenate([s.v for s in spans] + [[low, high]]))
    steps = [np.diff(np.interp(v, s.v, s.length)) for s in spans]
    length = np.concatenate([[0.0], np.cumsum(np.maximum(np.max(steps, axis=0), 1e-9))])
    return Span(v, length, min(s.spread for s in spans))
