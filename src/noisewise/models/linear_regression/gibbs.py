"""Algorithm 1 of the paper, batched over (group, chain), whatever the source of moments.

One sweep is in ``gibbs_sweep``; ``gibbs_update``, ``gibbs_prior`` and ``gibbs_noisy`` each bring a
source of moments. Where noise outweighs the data, s pins θ and θ pins s: successive draws are
close, and the posterior's ESS says how many there really are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.inference.posterior import Posterior
from noisewise.models.linear_regression import collapsed
from noisewise.models.linear_regression.posterior import posterior
from noisewise.models.linear_regression.gibbs_sweep import (
    Chain,
    Group,
    Source,
    draw_white,
    sweep_one,
)
from noisewise.models.linear_regression.problem import Problem
from noisewise.models.linear_regression.initial_values import prior_parameters

Report = Callable[[int, int], None]

THIN = 10
"""Sweeps per kept draw."""
BURN_IN = 1000
"""Sweeps before the first kept draw, or as many as draws are kept if that is more."""
BLOCK = 50
SLAB = 256

ASSUMES_N = "the noisy number of records, as if it were exact"


@partial(jax.jit, static_argnums=(0, 1))
def sweep(
    source: Source, mechanism: str, key: jax.Array, chains: Chain, data: Group, thin: jax.Array
) -> tuple[Chain, jax.Array]:
    """``BLOCK`` times ``thin`` sweeps of all chains; every ``thin``-th (θ, σ²) is returned."""
    q = chains.theta.shape[-1]
    one = partial(sweep_one, source, mechanism)
    every = jax.vmap(jax.vmap(one, in_axes=(0, 0, None)))

    def step(number: jax.Array, at: tuple[Chain, jax.Array]) -> tuple[Chain, jax.Array]:
        state, key = at
        white = draw_white(jax.random.fold_in(key, number), state.theta.shape[:2], q, data)
        return every(white, state, data), key

    def body(state: Chain, key: jax.Array) -> tuple[Chain, jax.Array]:
        state, _ = jax.lax.fori_loop(0, thin, step, (state, key))
        return state, jnp.concatenate([state.theta, state.variance[..., None]], axis=-1)

    return jax.lax.scan(body, chains, jax.random.split(key, BLOCK))


def start(
    rng: np.random.Generator, source: Source, mechanism: str, data: Group, prior: collapsed.Prior,
    chains: int,
) -> Chain:  # fmt: skip
    """Chains at draws from the prior: far apart, so that R-hat can tell."""
    groups, p = data.z.shape
    drawn = prior_parameters(rng, prior, (groups, chains))
    theta, variance, mean, factor = (jnp.asarray(a) for a in drawn)
    mixture = np.broadcast_to(np.asarray(data.noise)[:, None, None] ** 2, (groups, chains, p))
    if mechanism == "laplace":
        mixture = 2 * mixture * rng.standard_exponential(mixture.shape)
    own = source.begin(mean, factor)
    return Chain(theta, variance, own, jnp.asarray(mixture), jnp.zeros((groups, chains)))


def sample(
    key: jax.Array, source: Source, mechanism: str, data: Group, state: Chain, draws: int, thin: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draws (group, chain, draw, θ… σ²) in the box, and the share of sweeps that projected s."""
    warm = -(-max(BURN_IN, draws) // (BLOCK * thin))
    kept: list[np.ndarray] = []
    blocks = -(-draws // BLOCK)
    for number in range(warm + blocks):
        if number == warm:
            state = state._replace(projected=jnp.zeros_like(state.projected))
        state, values = sweep(
            source, mechanism, jax.random.fold_in(key, number), state, data, jnp.asarray(thin)
        )
        if number >= warm:
            kept.append(np.asarray(values))
    parameters = np.moveaxis(np.concatenate(kept)[:draws], 0, 2)
    return parameters, np.asarray(state.projected.mean(axis=1)) / (blocks * BLOCK * thin)


def run(
    method: str, source: Source, moments: Any, problem: Problem, seed: int, chains: int, draws: int,
    progress: Report | None, details: Mapping[str, Any],
) -> Posterior:  # fmt: skip
    """All groups, slab by slab; ``moments`` leads with the group."""
    groups, prior = len(problem.n), problem.box_prior
    key, rng = jax.random.key(seed), np.random.default_rng(seed)
    drawn, shares = [], []
    for first in range(0, groups, SLAB):
        rows = np.arange(first, min(first + SLAB, groups))
        data = _group(problem, prior, moments, rows)
        state = start(rng, source, problem.mechanism, data, prior, chains)
        fresh = jax.random.fold_in(key, first)
        values, share = sample(fresh, source, problem.mechanism, data, state, draws, THIN)
        drawn.append(values)
        shares.append(share)
        if progress is not None:
            progress(int(rows[-1]) + 1, groups)
    told = {"projected_share": float(np.concatenate(shares).mean()), "thin": THIN, **details}
    if problem.noisy_n:
        told["assumes"] = ASSUMES_N
    return posterior(problem, np.concatenate(drawn), method, told)


def _group(problem: Problem, prior: collapsed.Prior, moments: Any, rows: np.ndarray) -> Group:
    """Some groups' data; where n is secret its noisy count is no component here."""
    q, size = len(problem.x) + 1, len(rows)
    return Group(
        jnp.asarray(problem.z[rows, : q * (q + 3) // 2]),
        jnp.asarray(problem.n[rows]),
        jnp.full(size, problem.noise_scale),
        jax.tree.map(lambda a: jnp.broadcast_to(a, (size, *a.shape)), prior),
        jax.tree.map(lambda a: a[rows], moments),
    )
