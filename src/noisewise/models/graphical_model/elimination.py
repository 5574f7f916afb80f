"""The log-partition function A(θ) by variable elimination, in log space, float64.

    A(θ) = log Σ_x exp Σ_C θ_C(x_C),     ∇A(θ) = μ(θ), the clique marginals.

Variables are summed out in the order of the junction tree (``structure.py``), so the largest table
is its largest clique. Automatic differentiation of A is the marginal oracle (errata E17): a
backward pass through the same tables, no message-passing code of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from noisewise.models.graphical_model.junction import Clique
from noisewise.models.graphical_model.structure import Structure, split


@dataclass(frozen=True)
class Bucket:
    """What a variable met when it was summed out: log-weights over ``scope``, itself first."""

    variable: str
    scope: Clique
    table: jax.Array


def log_partition(model: Structure, theta: jax.Array) -> jax.Array:
    """A(θ) of one flat vector."""
    return eliminate(model, theta)[0]


def eliminate(model: Structure, theta: jax.Array) -> tuple[jax.Array, list[Bucket]]:
    """A(θ), and every bucket on the way: read backwards they are conditional distributions."""
    factors = list(zip(model.cliques, split(theta, model), strict=True))
    total, buckets = jnp.zeros(()), []
    for variable in model.order:
        met = [f for f in factors if variable in f[0]]
        factors = [f for f in factors if variable not in f[0]]
        others = {v for clique, _ in met for v in clique} - {variable}
        scope = (variable, *(v for v in model.variables if v in others))
        table = sum((_spread(t, clique, scope) for clique, t in met), jnp.zeros(()))
        buckets.append(Bucket(variable, scope, table))
        message = _sum_out(table)
        if message.ndim:
            factors.append((scope[1:], message))
        else:
            total = total + message
    return total, buckets


def _spread(table: jax.Array, clique: Clique, scope: Clique) -> jax.Array:
    """Axes in the scope's order, with a 1 where the clique has no such variable."""
    present = [v for v in scope if v in clique]
    ordered = jnp.transpose(table, [clique.index(v) for v in present])
    return ordered.reshape([ordered.shape[present.index(v)] if v in clique else 1 for v in scope])


def _sum_out(table: jax.Array) -> jax.Array:
    """log Σ exp over the first axis. The maximum is a constant: it cancels in the gradient."""
    top = jax.lax.stop_gradient(table.max(axis=0))
    return jnp.log(jnp.exp(table - top).sum(axis=0)) + top
