"""Method ``gibbs``: the thesis' sampler, batched over (group, chain), sweep by sweep.

The sum over records is taken to be normal (the central limit theorem, of a random number of terms
where an interval cuts). That is an approximation: with n = 10 it is visibly wrong
(docs/evidence-expfam.md), and ``exact`` is the method to use.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.inference.posterior import Posterior
from noisewise.models.exponential_family import moments
from noisewise.models.exponential_family.assemble import posterior
from noisewise.models.exponential_family.families import Categorical, Normal
from noisewise.models.exponential_family.family import Conjugate, Family
from noisewise.models.exponential_family.gibbs_sweep import Chain, Group, Law, sweep
from noisewise.models.exponential_family.observed import Interval
from noisewise.models.exponential_family.problem import Problem

Report = Callable[[int, int], None]

THIN = 10
"""Sweeps per kept draw."""
BURN_IN = 2000
"""Sweeps before the first kept draw: the thesis' own number."""
BLOCK = 50
SLAB = 512
FEW = 30
"""Records below which the central limit theorem is not to be trusted."""
STARTS = 512
FORGETTABLE = 0.01
"""A mode of less rough weight than this gets no chain: one in four draws would be too many."""


@partial(jax.jit, static_argnums=(0, 1, 2))
def advance(
    family: Family,
    law: Law,
    mechanism: str,
    key: jax.Array,
    chain: Chain,
    g: Group,
    thin: jax.Array,
) -> tuple[Chain, jax.Array]:
    """``BLOCK`` times ``thin`` sweeps; every ``thin``-th θ is returned."""

    def step(number: jax.Array, at: tuple[Chain, jax.Array]) -> tuple[Chain, jax.Array]:
        state, key = at
        fresh = jax.random.fold_in(key, number)
        return sweep(family, law, mechanism, fresh, state, g), key

    def body(state: Chain, key: jax.Array) -> tuple[Chain, jax.Array]:
        state, _ = jax.lax.fori_loop(0, thin, step, (state, key))
        return state, state.theta

    return jax.lax.scan(body, chain, jax.random.split(key, BLOCK))


@partial(jax.jit, static_argnums=(0, 1, 2, 5))
def start(family: Family, law: Law, mechanism: str, key: jax.Array, g: Group, chains: int) -> Chain:
    """Prior draws, weighed by a rough likelihood; evenly spaced quantiles of them.

    Far apart, so that R-hat can tell, and in every mode that has its share of the weight: a sum
    over an interval may fit two values of the parameter.
    """
    groups, d = g.z.shape
    draw_key, pick_key, mix_key = jax.random.split(key, 3)
    wide = Conjugate(
        *(jnp.broadcast_to(a[:, None], (groups, STARTS, a.shape[-1])) for a in g.prior)
    )
    theta = family.draw(draw_key, wide)
    order = jnp.argsort(theta[..., 0], axis=1)
    theta = jnp.take_along_axis(theta, order[..., None], axis=1)
    joint = jax.vmap(jax.vmap(lambda th: law(family, g.interval, family.natural(th))))(theta)
    mean = g.n[:, None, None] * joint.mean[..., :d]
    own = jnp.diagonal(joint.covariance, axis1=-2, axis2=-1)[..., :d]
    spread = 2 * (g.n[:, None, None] * own + 2 * g.noise[:, None, None] ** 2)
    if d == 1:
        # Draws are finite in number: a mode between two of them must not look impossible.
        gap = jnp.asarray(jnp.gradient(mean, axis=1))
        spread = spread + gap**2
    weight = -0.5 * jnp.sum((g.z[:, None] - mean) ** 2 / spread + jnp.log(spread), axis=-1)
    weight = jax.nn.softmax(jnp.where(jnp.isfinite(weight), weight, -jnp.inf), axis=1)
    if d == 1 and g.interval.outside == "drop":
        weight = _both_branches(weight, mean[..., 0], chains)
    share = jnp.cumsum(weight, axis=1)
    even = (jnp.arange(chains) + jax.random.uniform(pick_key, (groups, 1))) / chains
    place = jnp.minimum((share[:, None] < even[..., None]).sum(axis=-1), STARTS - 1)
    theta = jnp.take_along_axis(theta, place[..., None], axis=1)
    noise = jnp.broadcast_to(g.noise[:, None, None] ** 2, (groups, chains, d))
    if mechanism == "laplace":
        noise = 2 * noise * jax.random.exponential(mix_key, noise.shape)
    return Chain(theta, noise, jnp.zeros((groups, chains)), jnp.zeros((groups, chains)))


def _both_branches(weight: jax.Array, mean: jax.Array, chains: int) -> jax.Array:
    """Weights (group, draw), draws in order of θ, with a chain's worth for each branch.

    With records dropped the mean sum rises with θ and falls again; where z fits both branches,
    chains do not cross. A branch of some weight that no chain sees would never be missed: with a
    chain there, R-hat is large and the posterior says so.
    """
    top = jnp.argmax(jnp.abs(mean), axis=1, keepdims=True)
    left = jnp.arange(weight.shape[1]) <= top
    first = jnp.sum(weight * left, axis=1, keepdims=True)
    least = 1.02 / chains
    wanted = jnp.where((first >= FORGETTABLE) & (first < least), least, first)
    wanted = jnp.where((first <= 1 - FORGETTABLE) & (first > 1 - least), 1 - least, wanted)
    ratios = wanted / jnp.maximum(first, 1e-300), (1 - wanted) / jnp.maximum(1 - first, 1e-300)
    return weight * jnp.where(left, *ratios)


def sample(
    family: Family, law: Law, mechanism: str, key: jax.Array, g: Group, chains: int, draws: int,
    thin: int = THIN, burn_in: int = BURN_IN,
) -> tuple[np.ndarray, Chain]:  # fmt: skip
    """Draws (group, chain, draw, parameter), and the last state with its counters."""
    begin, run = jax.random.split(key)
    state = start(family, law, mechanism, begin, g, chains)
    warm = -(-burn_in // (BLOCK * thin))
    kept = []
    for number in range(warm + -(-draws // BLOCK)):
        fresh = jax.random.fold_in(run, number)
        state, theta = advance(family, law, mechanism, fresh, state, g, jnp.asarray(thin))
        if number >= warm:
            kept.append(np.asarray(theta))
    return np.moveaxis(np.concatenate(kept)[:draws], 0, 2), state


def run(
    problem: Problem, seed: int, chains: int, draws: int, progress: Report | None = None
) -> Posterior:
    """All groups, slab by slab."""
    _caution(problem)
    groups, key = len(problem.z), jax.random.key(seed)
    drawn, again, projected, sweeps = [], [], [], 0
    for first in range(0, groups, SLAB):
        rows = slice(first, min(first + SLAB, groups))
        values, state = sample(
            problem.family.standard, moments.joint, problem.mechanism,
            jax.random.fold_in(key, first), data(problem, rows), chains, draws,
        )  # fmt: skip
        drawn.append(problem.family.from_standard(values))
        again.append(np.asarray(state.again))
        projected.append(np.asarray(state.projected))
        if progress is not None:
            progress(rows.stop, groups)
    sweeps = THIN * (-(-draws // BLOCK) * BLOCK) + -(-BURN_IN // (BLOCK * THIN)) * BLOCK * THIN
    told: dict[str, Any] = {
        "redrawn_per_sweep": float(np.concatenate(again).mean()) / sweeps,
        "projected_share": float(np.concatenate(projected).mean()) / sweeps,
        "thin": THIN,
    }
    if problem.counted is not None:
        told["assumes"] = "the noisy number of records, as if it were exact"
    return posterior(problem, np.concatenate(drawn), "gibbs", told)


def data(problem: Problem, rows: slice) -> Group:
    """Some groups' data."""
    z, n = jnp.asarray(problem.z[rows]), jnp.asarray(problem.n[rows])
    prior = Conjugate(
        *(jnp.broadcast_to(a, (len(z), *a.shape)) for a in map(jnp.asarray, problem.conjugate))
    )
    ends = problem.family.to_standard(
        np.array([problem.interval.lower, problem.interval.upper], float)
    )
    interval = Interval(jnp.asarray(ends[0]), jnp.asarray(ends[1]), problem.interval.outside)
    return Group(interval, z, n, jnp.full(len(z), problem.scale), prior)


def _caution(problem: Problem) -> None:
    least = float(problem.n.min())
    if least >= FEW:
        return
    exists = problem.family.dimension == 1 or isinstance(problem.family, Categorical)
    exists |= isinstance(problem.family, Normal) and problem.counted is None
    better = (
        "method='exact' needs no such approximation"
        if exists
        else "there is no exact method for this release: read its intervals with care"
    )
    warnings.warn(
        f"gibbs takes a sum over {least:.0f} records for normal, which needs about {FEW}; {better}",
        UserWarning,
        stacklevel=4,
    )
