"""Sums of simulated records of one column, clamped as an owner would, and noise on them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.models.exponential_family.family import Family
from noisewise.models.exponential_family.problem import FamilyProblem
from noisewise.models.exponential_family.truncation import Interval, joint_moments
from noisewise.simulate.trials import CELLS, Trials, noise

MIN_RECORDS_NORMAL = 20_000
"""Records above which a sum is drawn from its normal law: the error of that is far below 1 %."""


def sums_at(
    rng: np.random.Generator, problem: FamilyProblem, theta: np.ndarray, n: int | np.ndarray
) -> tuple[np.ndarray, float]:
    """Return what the owner would sum (trial, component), and the share of records outside.

    Args:
        rng: of the records.
        problem: with family and interval.
        theta: parameters (trial, parameter).
        n: records of every trial, or of each.
    """
    family, cut = problem.family, problem.interval
    outside = _outside(rng, family, cut, theta)
    sizes = np.broadcast_to(n, len(theta)).astype(int)
    total = np.zeros((len(theta), family.dimension))
    large = sizes > MIN_RECORDS_NORMAL
    if large.any():
        total[large] = _normal_sums(rng, family, cut, theta[large], sizes[large])
        sizes = np.where(large, 0, sizes)
    step = max(1, CELLS // (len(theta) * family.dimension))
    for begin in range(0, int(sizes.max()), step):
        places = begin + np.arange(min(step, sizes.max() - begin))
        shape = (len(theta), len(places), theta.shape[-1])
        x = family.records(rng, np.broadcast_to(theta[:, None], shape)).astype(float)
        there = jnp.asarray(places < sizes[:, None])
        total += np.asarray(_contributions(family, cut, jnp.asarray(x), there))
    return total, outside


@partial(jax.jit, static_argnums=0)
def _contributions(family: Family, cut: Interval, x: jax.Array, there: jax.Array) -> jax.Array:
    """Return the sum over the second axis of what each record that is there adds."""
    kept = x if cut.outside == "keep" else jnp.clip(x, cut.lower, cut.upper)
    t = jax.vmap(jax.vmap(family.statistic))(kept)
    if cut.outside == "drop":
        there = there & (x >= cut.lower) & (x <= cut.upper)
    return jnp.where(there[..., None], t, 0.0).sum(axis=1)


def _outside(rng: np.random.Generator, family: Family, cut: Interval, theta: np.ndarray) -> float:
    """Return the share of records outside the interval, from 200 of each trial."""
    if cut.outside == "keep":
        return 0.0
    x = family.records(rng, np.broadcast_to(theta[:, None], (len(theta), 200, theta.shape[-1])))
    return float(((x < float(cut.lower)) | (x > float(cut.upper))).mean())


def _normal_sums(
    rng: np.random.Generator, family: Family, cut: Interval, theta: np.ndarray, sizes: np.ndarray
) -> np.ndarray:
    """Draw sums (trial, component) from their normal law."""
    moments = jax.jit(jax.vmap(lambda th: joint_moments(family, cut, family.natural(th))))
    law = moments(jnp.asarray(theta))
    d = family.dimension
    mean, covariance = np.asarray(law.mean)[:, :d], np.asarray(law.covariance)[:, :d, :d]
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0))[:, None]
    white = np.einsum("tij,tj->ti", root, rng.standard_normal(mean.shape))
    n = sizes[:, None]
    drawn = n * mean + np.sqrt(n) * white
    return np.asarray(np.rint(drawn) if family.whole else drawn)


def noisy(
    rng: np.random.Generator,
    problem: FamilyProblem,
    sums: np.ndarray,
    theta: np.ndarray,
    n: int | np.ndarray,
) -> Trials[FamilyProblem]:
    """Return trials whose exact sums are given, with this problem's noise on them."""
    whole = problem.family.whole
    z = sums + noise(rng, problem.scale, problem.mechanism, sums.shape, whole=whole)
    counted, sizes = None, np.broadcast_to(n, len(z)).astype(float)
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
    return Trials(many, theta, problem.family.names)
