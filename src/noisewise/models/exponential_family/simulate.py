"""Simulated one-column releases with a release's own settings: n, interval, noise and prior."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.models.exponential_family.analyst import Conjugate, Family
from noisewise.models.exponential_family.family import draw_parameters
from noisewise.models.exponential_family.problem import FamilyProblem
from noisewise.models.exponential_family.truncation import Interval, joint_moments
from noisewise.simulate.noise import noise
from noisewise.simulate.trials import Trials

LARGE = 20_000
"""Records from which a sum is drawn from its normal law: the error of that is far below 1 %."""
CELLS = 4_000_000


def from_prior(rng: np.random.Generator, problem: FamilyProblem, trials: int) -> Trials:
    """Parameters from the prior, records from the family, the interval, the release's noise."""
    prior = map(jnp.asarray, problem.conjugate)
    many = Conjugate(*(jnp.broadcast_to(a, (trials, *a.shape)) for a in prior))
    theta = np.asarray(
        draw_parameters(problem.family, jax.random.key(int(rng.integers(2**31))), many)
    )
    n = round(float(problem.n[0]))
    return noisy(rng, problem, sums_at(rng, problem, theta, n)[0], theta, n)


def sums_at(
    rng: np.random.Generator, problem: FamilyProblem, theta: np.ndarray, n: int
) -> tuple[np.ndarray, float]:
    """What the owner would sum (trial, component), and the share of records outside."""
    family, cut = problem.family, problem.interval
    outside = _outside(rng, family, cut, theta)
    if n > LARGE:
        return _normal_sums(rng, family, cut, theta, n), outside
    total = np.zeros((len(theta), family.dimension))
    step = max(1, CELLS // (len(theta) * family.dimension))
    for begin in range(0, n, step):
        shape = (len(theta), min(step, n - begin), theta.shape[-1])
        x = family.records(rng, np.broadcast_to(theta[:, None], shape)).astype(float)
        total += np.asarray(_contributions(family, cut, jnp.asarray(x)))
    return total, outside


@partial(jax.jit, static_argnums=0)
def _contributions(family: Family, cut: Interval, x: jax.Array) -> jax.Array:
    """Σ over the second axis of what one record adds."""
    kept = x if cut.outside == "keep" else jnp.clip(x, cut.lower, cut.upper)
    t = jax.vmap(jax.vmap(family.statistic))(kept)
    if cut.outside == "drop":
        t = t * ((x >= cut.lower) & (x <= cut.upper))[..., None]
    return t.sum(axis=1)


def _outside(rng: np.random.Generator, family: Family, cut: Interval, theta: np.ndarray) -> float:
    if cut.outside == "keep":
        return 0.0
    x = family.records(rng, np.broadcast_to(theta[:, None], (len(theta), 200, theta.shape[-1])))
    return float(((x < float(cut.lower)) | (x > float(cut.upper))).mean())


def _normal_sums(
    rng: np.random.Generator, family: Family, cut: Interval, theta: np.ndarray, n: int
) -> np.ndarray:
    moments = jax.jit(jax.vmap(lambda th: joint_moments(family, cut, family.natural(th))))
    law = moments(jnp.asarray(theta))
    d = family.dimension
    mean, covariance = np.asarray(law.mean)[:, :d], np.asarray(law.covariance)[:, :d, :d]
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0))[:, None]
    white = np.einsum("tij,tj->ti", root, rng.standard_normal(mean.shape))
    drawn = n * mean + np.sqrt(n) * white
    return np.asarray(np.rint(drawn) if family.whole else drawn)


def noisy(
    rng: np.random.Generator, problem: FamilyProblem, sums: np.ndarray, theta: np.ndarray, n: int
) -> Trials:
    """Trials whose exact sums are given, with this problem's noise on them."""
    whole = problem.family.whole
    z = sums + noise(rng, problem.scale, problem.mechanism, sums.shape, whole=whole)
    counted, sizes = None, np.full(len(z), float(n))
    if problem.counted is not None:
        if problem.count_scale:
            own = noise(rng, problem.count_scale, problem.mechanism, (len(z),), whole=whole)
            counted = n + own
        else:
            # Categories: the counts themselves add up to the noisy n.
            counted = z.sum(axis=1)
        sizes = np.maximum(np.rint(counted), 1.0)
    keys = tuple(range(len(z)))
    many = replace(problem, z=z, n=sizes, counted=counted, keys=keys)
    return Trials("exponential-family", many, theta, problem.family.names)
