"""Exact inference by variable elimination, in log space, float64; and exact sampling.

    A(θ) = log Σ_x exp Σ_C θ_C(x_C),     ∇A(θ) = μ(θ), the clique marginals.

Variables are summed out in the order of the junction tree (``structure.py``), so the largest table
is its largest clique. Automatic differentiation of A is the marginal oracle (errata E17): a
backward pass through the same tables, no message-passing code of its own. Read backwards, what a
variable met when it was summed out is its distribution given the variables that remained, from
which records are drawn exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.models.graphical_model.structure import Clique, Structure, split

RECORDS_PER_BATCH = 2**16
"""Records drawn at a time (chosen), so that a batch's cumulative probabilities stay small."""


@dataclass(frozen=True)
class Bucket:
    """What a variable met when it was summed out: log-weights over ``scope``, itself first."""

    variable: str
    scope: Clique
    table: jax.Array


def log_partition(model: Structure, theta: jax.Array) -> jax.Array:
    """Return A(θ) of one flat vector."""
    return eliminate(model, theta)[0]


def eliminate(model: Structure, theta: jax.Array) -> tuple[jax.Array, list[Bucket]]:
    """Return A(θ) and every bucket on the way, which ``sample_backwards`` reads backwards."""
    factors = list(zip(model.cliques, split(theta, model), strict=True))
    total, buckets = jnp.zeros(()), []
    for variable in model.order:
        met = [f for f in factors if variable in f[0]]
        factors = [f for f in factors if variable not in f[0]]
        others = {v for clique, _ in met for v in clique} - {variable}
        scope = (variable, *(v for v in model.variables if v in others))
        table = sum((_broadcast(t, clique, scope) for clique, t in met), jnp.zeros(()))
        buckets.append(Bucket(variable, scope, table))
        message = _sum_out(table)
        if message.ndim:
            factors.append((scope[1:], message))
        else:
            total = total + message
    return total, buckets


def sample_backwards(
    buckets: Sequence[Bucket], n: int, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Draw n records, as level indices by variable; the variable summed out last is drawn first."""
    conditionals = [
        (b.variable, b.scope[1:], _cumulative(np.asarray(b.table))) for b in reversed(buckets)
    ]
    drawn = {variable: np.empty(n, np.int64) for variable, _, _ in conditionals}
    for start in range(0, n, RECORDS_PER_BATCH):
        window = slice(start, min(start + RECORDS_PER_BATCH, n))
        for variable, given, cumulative in conditionals:
            rows = cumulative[tuple(drawn[v][window] for v in given)]
            u = rng.random(window.stop - window.start)
            drawn[variable][window] = (u[:, None] > rows[..., :-1]).sum(axis=1)
    return drawn


def _broadcast(table: jax.Array, clique: Clique, scope: Clique) -> jax.Array:
    """Put axes in the scope's order, with a 1 where the clique has no such variable."""
    present = [v for v in scope if v in clique]
    ordered = jnp.transpose(table, [clique.index(v) for v in present])
    return ordered.reshape([ordered.shape[present.index(v)] if v in clique else 1 for v in scope])


def _sum_out(table: jax.Array) -> jax.Array:
    """Return log Σ exp over the first axis."""
    # The maximum is a constant to the gradient, where it cancels.
    top = jax.lax.stop_gradient(table.max(axis=0))
    return jnp.log(jnp.exp(table - top).sum(axis=0)) + top


def _cumulative(table: np.ndarray) -> np.ndarray:
    """Turn log-weights, own axis first, into cumulative probabilities, own axis last."""
    weights = np.exp(table - table.max(axis=0))
    return np.moveaxis(np.cumsum(weights / weights.sum(axis=0), axis=0), 0, -1)
