"""Method ``gibbs``: the thesis' Algorithms 2 and 3, batched over (group, chain).

The sum over records is taken to be normal (the central limit theorem, of a random number of terms
where an interval cuts). That is an approximation: with n = 10 it is visibly wrong
(docs/evidence-expfam.md), and ``exact`` is the method to use.

With (t̂, t) of one record having mean m and covariance C (``truncation.py``), a sweep is

    (ŝ, s) | θ, ω²  ∝  N((ŝ, s); nm, nC) N(z; ŝ, diag ω²)     ŝ was released, s is the whole sum
    θ | s           ~  p(θ; λ + (s, n))                         conjugate
    1/ω_j² | ŝ      ~  InverseGaussian(1/(b|z_j - ŝ_j|), 1/b²)  Laplace noise; Gaussian: ω = b

For bounded statistics ŝ = s: Algorithm 3. For an interval the thesis draws three regions as if they
were independent and then forgets z when it redraws the middle one; here all are one joint normal
law, of which (ŝ, s) is the part that matters (Algorithm 2 as errata E14 corrects it). The pair is
drawn without an inverse (E11), and again while s is no possible statistic, as in the thesis; after
``MAX_REDRAWS`` the nearest possible one is taken, and counted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.artifact.user_warnings import warn_user
from noisewise.inference.results import Posterior
from noisewise.models.base import Progress
from noisewise.models.exponential_family.families import Categorical, Normal
from noisewise.models.exponential_family.family import TINY, Conjugate, Family
from noisewise.models.exponential_family.posterior import assemble_posterior
from noisewise.models.exponential_family.problem import FamilyProblem
from noisewise.models.exponential_family.truncation import Interval, JointMoments, joint_moments
from noisewise.numerics.distributions import laplace_variances
from noisewise.numerics.matrices import cholesky, solve_lower, solve_upper

SWEEPS_PER_DRAW = 10
"""Sweeps per kept draw (chosen)."""
BURN_IN_SWEEPS = 2000
"""Sweeps before the first kept draw: the thesis' own number."""
DRAWS_PER_CALL = 50
"""Kept draws per compiled call (chosen): any number of draws shares one compilation."""
GROUPS_PER_BATCH = 512
"""Groups that are sampled at once (chosen): memory does not grow with their number."""
MIN_RECORDS_FOR_CLT = 30
"""Records below which the central limit theorem is not to be trusted (a rule of thumb)."""
STARTING_DRAWS = 512
"""Prior draws among which chains find their starting points (chosen)."""
NEGLIGIBLE_MODE = 0.01
"""A mode of less rough weight than this gets no chain: one in four draws would be too many."""
MAX_REDRAWS = 30
"""Draws of a pair before the nearest possible statistic is taken (chosen)."""
RELATIVE_RIDGE = 1e-10
"""On the diagonal, relative to it (chosen): t̂ and t may coincide, categories always add up."""

MomentsFunction = Callable[[Family, Interval, jax.Array], JointMoments]
"""Moments of (t̂, t) at one η: ``joint_moments``, or another approximation to compare with."""


class GroupData(NamedTuple):
    """Noisy sums, sizes, noise scales and priors, leading with the group; one interval for all."""

    interval: Interval
    z: jax.Array
    n: jax.Array
    noise: jax.Array
    prior: Conjugate


class GibbsState(NamedTuple):
    """State of all chains, leading with (group, chain).

    ``mixture`` holds the variances ω², ``again`` and ``projected`` count redraws and projections.
    """

    theta: jax.Array
    mixture: jax.Array
    again: jax.Array
    projected: jax.Array


class ConditionalNormal(NamedTuple):
    """What one sweep's normal draws share: mean, root of nC, and the gain with which z pulls."""

    mean: jax.Array
    root: jax.Array
    gain: jax.Array


def _conditional_normal(joint: JointMoments, n: jax.Array, mixture: jax.Array) -> ConditionalNormal:
    """Return what draws of (ŝ, s) given z need, at one θ and one ω²."""
    d = mixture.shape[-1]
    spread = n * joint.covariance
    root = cholesky(spread + jnp.diag(RELATIVE_RIDGE * jnp.diagonal(spread) + TINY))
    factor = cholesky(spread[:d, :d] + jnp.diag(mixture))

    def solve(column: jax.Array) -> jax.Array:
        solution: jax.Array = solve_upper(factor, solve_lower(factor, column))
        return solution

    gain = jax.vmap(solve, in_axes=1, out_axes=1)(spread[:d]).T
    return ConditionalNormal(n * joint.mean, root, gain)


def _draw_pair(
    law: ConditionalNormal, white: jax.Array, noise: jax.Array, z: jax.Array
) -> jax.Array:
    """Draw (ŝ, s) given z by Matheron's rule: draw both without z, then move them (errata E11)."""
    unconditional = law.mean + law.root @ white
    return unconditional + law.gain @ (z - unconditional[: len(z)] - noise)


def sweep(
    family: Family, moments: MomentsFunction, mechanism: str, key: jax.Array, chain: GibbsState,
    g: GroupData,
) -> GibbsState:  # fmt: skip
    """Return the state after one iteration for every chain of every group."""
    pair_key, theta_key, normal_key, uniform_key = jax.random.split(key, 4)
    d = g.z.shape[-1]

    def moments_at(theta: jax.Array) -> JointMoments:
        return moments(family, g.interval, family.natural(theta))

    joint = jax.vmap(jax.vmap(moments_at))(chain.theta)
    conditional = jax.vmap(jax.vmap(_conditional_normal, in_axes=(0, None, 0)))
    law = conditional(joint, g.n, chain.mixture)
    pair, tries, bad = _draw_possible_pairs(family, pair_key, law, chain.mixture, g)
    s = pair[..., -d:]
    s = jnp.where(bad[..., None], family.nearest(s, g.n[:, None]), s)
    prior = Conjugate(*(a[:, None] for a in g.prior))
    theta = family.draw(theta_key, prior.updated(s, g.n[:, None]))
    # Where moments are all rounding (every record far outside), a chain stays where it is.
    lost = ~(jnp.isfinite(theta).all(axis=-1) & jnp.isfinite(pair).all(axis=-1))
    theta = jnp.where(lost[..., None], chain.theta, theta)
    mixture = chain.mixture
    if mechanism == "laplace":
        white = jax.random.normal(normal_key, mixture.shape)
        uniform = jax.random.uniform(uniform_key, mixture.shape)
        residual = g.z[:, None] - pair[..., :d]
        fresh = laplace_variances(white, uniform, residual, g.noise[:, None, None])
        mixture = jnp.where(lost[..., None], mixture, fresh)
    return GibbsState(theta, mixture, chain.again + tries, chain.projected + (bad | lost))


def _draw_possible_pairs(
    family: Family, key: jax.Array, law: ConditionalNormal, mixture: jax.Array, g: GroupData
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Draw until every s is a possible statistic; return pairs, redraws, and which failed."""
    batch, m, d = law.mean.shape[:2], law.mean.shape[-1], g.z.shape[-1]
    every = jax.vmap(jax.vmap(_draw_pair, in_axes=(0, 0, 0, None)))
    root = jnp.sqrt(mixture)

    def attempt(number: jax.Array) -> tuple[jax.Array, jax.Array]:
        white = jax.random.normal(jax.random.fold_in(key, number), (*batch, m + d))
        pair = every(law, white[..., :m], root * white[..., m:], g.z)
        return pair, family.valid(pair[..., -d:], g.n[:, None])

    def unfinished(state: tuple[jax.Array, ...]) -> jax.Array:
        return (~state[1]).any() & (state[3] < MAX_REDRAWS)

    def again(state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        pair, done, tries, number = state
        fresh, valid = attempt(number)
        pair = jnp.where(done[..., None], pair, fresh)
        return pair, done | valid, tries + ~done, number + 1

    pair, valid = attempt(jnp.asarray(0))
    begin: tuple[jax.Array, ...] = (pair, valid, jnp.zeros(batch), jnp.asarray(1))
    pair, valid, tries, _ = jax.lax.while_loop(unfinished, again, begin)
    return pair, tries, ~valid


@partial(jax.jit, static_argnums=(0, 1, 2))
def advance(
    family: Family,
    moments: MomentsFunction,
    mechanism: str,
    key: jax.Array,
    chain: GibbsState,
    g: GroupData,
    thin: jax.Array,
) -> tuple[GibbsState, jax.Array]:
    """Do ``DRAWS_PER_CALL`` times ``thin`` sweeps; return the state and every ``thin``-th θ."""

    def step(number: jax.Array, at: tuple[GibbsState, jax.Array]) -> tuple[GibbsState, jax.Array]:
        state, key = at
        fresh = jax.random.fold_in(key, number)
        return sweep(family, moments, mechanism, fresh, state, g), key

    def body(state: GibbsState, key: jax.Array) -> tuple[GibbsState, jax.Array]:
        state, _ = jax.lax.fori_loop(0, thin, step, (state, key))
        return state, state.theta

    return jax.lax.scan(body, chain, jax.random.split(key, DRAWS_PER_CALL))


@partial(jax.jit, static_argnums=(0, 1, 2, 5))
def start(
    family: Family, moments: MomentsFunction, mechanism: str, key: jax.Array, g: GroupData,
    chains: int,
) -> GibbsState:  # fmt: skip
    """Start chains at evenly spaced quantiles of prior draws, weighed by a rough likelihood.

    Far apart, so that R-hat can tell, and in every mode that has its share of the weight: a sum
    over an interval may fit two values of the parameter.
    """
    groups, d = g.z.shape
    draw_key, pick_key, mix_key = jax.random.split(key, 3)
    wide = Conjugate(
        *(jnp.broadcast_to(a[:, None], (groups, STARTING_DRAWS, a.shape[-1])) for a in g.prior)
    )
    theta = family.draw(draw_key, wide)
    order = jnp.argsort(theta[..., 0], axis=1)
    theta = jnp.take_along_axis(theta, order[..., None], axis=1)
    joint = jax.vmap(jax.vmap(lambda th: moments(family, g.interval, family.natural(th))))(theta)
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
    place = jnp.minimum((share[:, None] < even[..., None]).sum(axis=-1), STARTING_DRAWS - 1)
    theta = jnp.take_along_axis(theta, place[..., None], axis=1)
    noise = jnp.broadcast_to(g.noise[:, None, None] ** 2, (groups, chains, d))
    if mechanism == "laplace":
        noise = 2 * noise * jax.random.exponential(mix_key, noise.shape)
    return GibbsState(theta, noise, jnp.zeros((groups, chains)), jnp.zeros((groups, chains)))


def _both_branches(weight: jax.Array, mean: jax.Array, chains: int) -> jax.Array:
    """Return weights (group, draw), draws in order of θ, with a chain's worth for each branch.

    With records dropped the mean sum rises with θ and falls again; where z fits both branches,
    chains do not cross. A branch of some weight that no chain sees would never be missed: with a
    chain there, R-hat is large and the posterior says so.
    """
    top = jnp.argmax(jnp.abs(mean), axis=1, keepdims=True)
    left = jnp.arange(weight.shape[1]) <= top
    first = jnp.sum(weight * left, axis=1, keepdims=True)
    least = 1.02 / chains
    wanted = jnp.where((first >= NEGLIGIBLE_MODE) & (first < least), least, first)
    wanted = jnp.where((first <= 1 - NEGLIGIBLE_MODE) & (first > 1 - least), 1 - least, wanted)
    ratios = wanted / jnp.maximum(first, TINY), (1 - wanted) / jnp.maximum(1 - first, TINY)
    return weight * jnp.where(left, *ratios)


def sample(
    family: Family, moments: MomentsFunction, mechanism: str, key: jax.Array, g: GroupData,
    chains: int, draws: int, thin: int = SWEEPS_PER_DRAW, burn_in: int = BURN_IN_SWEEPS,
) -> tuple[np.ndarray, GibbsState]:  # fmt: skip
    """Return draws (group, chain, draw, parameter), and the last state with its counters."""
    start_key, sweep_key = jax.random.split(key)
    state = start(family, moments, mechanism, start_key, g, chains)
    warm = -(-burn_in // (DRAWS_PER_CALL * thin))
    kept = []
    for number in range(warm + -(-draws // DRAWS_PER_CALL)):
        fresh = jax.random.fold_in(sweep_key, number)
        state, theta = advance(family, moments, mechanism, fresh, state, g, jnp.asarray(thin))
        if number >= warm:
            kept.append(np.asarray(theta))
    return np.moveaxis(np.concatenate(kept)[:draws], 0, 2), state


def run(
    problem: FamilyProblem, seed: int, chains: int, draws: int, progress: Progress | None = None
) -> Posterior:
    """Draw from the posterior of every group, batch by batch."""
    _warn_of_few_records(problem)
    groups, key = len(problem.z), jax.random.key(seed)
    drawn, again, projected = [], [], []
    for first in range(0, groups, GROUPS_PER_BATCH):
        rows = slice(first, min(first + GROUPS_PER_BATCH, groups))
        values, state = sample(
            problem.family.standard, joint_moments, problem.mechanism,
            jax.random.fold_in(key, first), group_data(problem, rows), chains, draws,
        )  # fmt: skip
        drawn.append(problem.family.from_standard(values))
        again.append(np.asarray(state.again))
        projected.append(np.asarray(state.projected))
        if progress is not None:
            progress(rows.stop, groups)
    sweeps = (
        SWEEPS_PER_DRAW * (-(-draws // DRAWS_PER_CALL) * DRAWS_PER_CALL)
        + -(-BURN_IN_SWEEPS // (DRAWS_PER_CALL * SWEEPS_PER_DRAW))
        * DRAWS_PER_CALL
        * SWEEPS_PER_DRAW
    )
    details: dict[str, Any] = {
        "redrawn_per_sweep": float(np.concatenate(again).mean()) / sweeps,
        "projected_share": float(np.concatenate(projected).mean()) / sweeps,
        "thin": SWEEPS_PER_DRAW,
    }
    if problem.counted is not None:
        details["assumes"] = "the noisy number of records, as if it were exact"
    return assemble_posterior(problem, np.concatenate(drawn), "gibbs", details)


def group_data(problem: FamilyProblem, rows: slice) -> GroupData:
    """Return the data of some groups, in the family's standard units."""
    z, n = jnp.asarray(problem.z[rows]), jnp.asarray(problem.n[rows])
    prior = problem.conjugate.repeated(len(z))
    ends = problem.family.to_standard(
        np.array([problem.interval.lower, problem.interval.upper], float)
    )
    interval = Interval(jnp.asarray(ends[0]), jnp.asarray(ends[1]), problem.interval.outside)
    return GroupData(interval, z, n, jnp.full(len(z), problem.scale), prior)


def _warn_of_few_records(problem: FamilyProblem) -> None:
    """Warn where the central limit theorem is not to be trusted, naming a better method."""
    least = float(problem.n.min())
    if least >= MIN_RECORDS_FOR_CLT:
        return
    exists = problem.family.dimension == 1 or isinstance(problem.family, Categorical)
    exists |= isinstance(problem.family, Normal) and problem.counted is None
    better = (
        "method='exact' needs no such approximation"
        if exists
        else "there is no exact method for this release: read its intervals with care"
    )
    warn_user(
        f"gibbs takes a sum over {least:.0f} records for normal, which needs about "
        f"{MIN_RECORDS_FOR_CLT}; {better}"
    )
