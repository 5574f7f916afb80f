"""Where the posterior of one parameter lies, before any of it is computed exactly.

The parameter is stretched to the real line, v = log θ or log θ/(1-θ), where densities are smooth
and the trapezoidal rule converges fast. Prior times a rough likelihood (the central limit theorem
for the sum, with the noise) says where to put the grid; it has logarithms everywhere, so a search
cannot miss a narrow peak. The exact likelihood then has the last word (``exact.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import log_ndtr

from noisewise.models.exponential_family import moments
from noisewise.models.exponential_family.family import Conjugate, Family
from noisewise.models.exponential_family.observed import Interval
from noisewise.models.exponential_family.problem import Problem

POINTS = 1024
CHUNK = 512
"""Points at a time: grids of any size share one compilation."""
DEPTH = 32.0
"""Logarithms below the peak that are still looked at."""
WIDEST = {"unit": (-34.0, 34.0), "positive": (-300.0, 300.0), "real": (-1e6, 1e6)}


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
        """The stretch in posterior deviations."""
        return float(self.length[-1])

    def points(self, number: int) -> np.ndarray:
        """As many points, evenly spaced in deviations."""
        even = np.linspace(0, self.length[-1], number)
        return np.asarray(np.interp(even, self.length, self.v))

    def widened(self) -> Span:
        """Half as long again on either side, coarsely."""
        reach, more = 0.5 * (self.v[-1] - self.v[0]), self.length[-1] / 4
        v = np.concatenate([[self.v[0] - reach], self.v, [self.v[-1] + reach]])
        length = np.concatenate([[0.0], self.length + more, [self.length[-1] + 2 * more]])
        return Span(v, length, self.spread)


def parameter(family: Family, v: jax.Array) -> jax.Array:
    """θ of v."""
    domain = family.domains[0]
    return jax.nn.sigmoid(v) if domain == "unit" else jnp.exp(v) if domain == "positive" else v


@partial(jax.jit, static_argnums=0)
def _described(
    family: Family, interval: Interval, v: jax.Array, prior: Conjugate
) -> tuple[jax.Array, ...]:
    """Log prior density of v, η, and mean and variance of what one record contributed."""

    def natural(v: jax.Array) -> jax.Array:
        return family.natural(parameter(family, v)[None])

    def one(v: jax.Array) -> tuple[jax.Array, ...]:
        eta, slope = natural(v), jax.jacfwd(natural)(v)
        weighed = prior.sums[0] * eta[0] - prior.counts[0] * family.log_partition(eta)
        law = moments.joint(family, interval, eta)
        log_prior = weighed + jnp.log(jnp.abs(slope[0]))
        return log_prior, eta, law.mean[0], jnp.maximum(law.covariance[0, 0], 0.0)

    return jax.vmap(one)(v)


def chunks(size: int) -> range:
    """Where chunks begin; sizes are multiples of ``CHUNK``."""
    return range(0, size, CHUNK)


def described(problem: Problem, v: np.ndarray) -> tuple[np.ndarray, ...]:
    """As ``_described``, with impossible places (rounding at the far ends) ruled out."""
    given = problem.family, problem.interval
    prior = problem.conjugate
    parts = [_described(*given, jnp.asarray(v[i : i + CHUNK]), prior) for i in chunks(len(v))]
    log_prior, eta, mean, variance = (np.concatenate(side) for side in zip(*parts, strict=True))
    bad = ~(np.isfinite(log_prior) & np.isfinite(eta[:, 0]) & np.isfinite(mean))
    bad |= ~np.isfinite(variance)
    return (
        np.where(bad, -np.inf, log_prior),
        np.where(bad[:, None], eta[~bad][:1], eta),
        np.where(bad, 0.0, mean),
        np.where(bad, 0.0, variance),
    )


def rough(
    problem: Problem, z: float, n: float, mean: np.ndarray, variance: np.ndarray
) -> np.ndarray:
    """Log density of z where the sum is normal, generously spread."""
    v = 1.5 * n * variance + 1e-12 * problem.scale**2
    if problem.counted is not None:
        v = v + 8 * (mean * problem.count_scale) ** 2
    r, b = z - n * mean, problem.scale
    if problem.mechanism == "gaussian":
        return -(r**2) / (2 * (v + b**2)) - 0.5 * np.log(v + b**2)
    sd = np.sqrt(v)
    one = -r / b + log_ndtr((r - v / b) / sd)
    two = r / b + log_ndtr((-r - v / b) / sd)
    return np.asarray(v / (2 * b**2) + np.logaddexp(one, two))


def locate(problem: Problem, z: float, n: float) -> Span:
    """Narrow the prior's whole range down to where the rough posterior is."""
    low, high = WIDEST[problem.family.domains[0]]
    for _ in range(12):
        v = np.linspace(low, high, POINTS)
        log_prior, _, mean, variance = described(problem, v)
        total = log_prior + rough(problem, z, n, mean, variance)
        total = total - total.max()
        near = np.flatnonzero(total > -DEPTH)
        first, last = max(near[0] - 1, 0), min(near[-1] + 1, POINTS - 1)
        narrowed = v[last] - v[first] < 0.5 * (high - low)
        low, high = v[first], v[last]
        if not narrowed:
            break
    return Span(
        v,
        _deviations(problem, n, v, total, mean, variance),
        float(np.sqrt(variance[total > -8].min())),
    )


def _deviations(
    problem: Problem, n: float, v: np.ndarray, total: np.ndarray, mean: np.ndarray,
    variance: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Length from the left end in local posterior deviations; tails and valleys count less."""
    blur = n * variance + problem.scale**2
    if problem.counted is not None:
        blur = blur + (mean * problem.count_scale) ** 2
    local = np.abs(n * np.gradient(mean, v)) / np.sqrt(blur)
    weight = np.exp(total)
    centre = (weight @ v) / weight.sum()
    overall = np.sqrt(weight @ (v - centre) ** 2 / weight.sum())
    # Laplace noise has long tails: what holds less than e^-10 of the peak needs no fine grid.
    share = np.where(total > -10, 1.0, np.where(total > -DEPTH, 0.25, 0.05))
    per_unit = share * local + 1 / max(overall, 1e-12)
    steps = np.diff(v) * (per_unit[1:] + per_unit[:-1]) / 2
    return np.concatenate([[0.0], np.cumsum(steps)])


def gap(spans: list[Span]) -> bool:
    """Whether some stretch between the first and the last belongs to none of them."""
    ordered = sorted((float(s.v[0]), float(s.v[-1])) for s in spans)
    reached = np.maximum.accumulate([high for _, high in ordered])
    return any(low > high for (low, _), high in zip(ordered[1:], reached, strict=False))


def union(spans: list[Span]) -> Span:
    """One stretch for several releases, as fine as the finest of them wherever it is."""
    low, high = min(s.v[0] for s in spans), max(s.v[-1] for s in spans)
    v = np.unique(np.concatenate([s.v for s in spans] + [[low, high]]))
    steps = [np.diff(np.interp(v, s.v, s.length)) for s in spans]
    length = np.concatenate([[0.0], np.cumsum(np.maximum(np.max(steps, axis=0), 1e-9))])
    return Span(v, length, min(s.spread for s in spans))
