"""The marginal oracle: A(θ) = log Σ_x exp Σ_C θ_C(x_C), and ∇A(θ) = μ(θ), the clique marginals.

*Variable elimination*, exact, in log space, float64. Variables are summed out in the order of the
junction tree (``structure.py``), so the largest table is its largest clique. Automatic
differentiation of A is the marginal oracle (errata E17): a backward pass through the same tables.
Read backwards, what a variable met when it was summed out is its distribution given the variables
that remained, from which records are drawn exactly.

*Loopy belief propagation*, where the junction tree does not fit memory:

    variable → clique:  m(x_v) = Σ of the other cliques' messages to v
    clique → variable:  m(x_v) = log Σ_{x_C \\ v} exp(θ_C + messages of the other variables)

Messages are updated all at once, with damping, in log space. A fixed point is a stationary point of
the Bethe free energy, whose value stands in for A(θ); its gradient is the beliefs, which is used
instead of differentiating through the iterations. On a tree both are exact.

J. S. Yedidia, W. T. Freeman, Y. Weiss, "Constructing free-energy approximations and generalized
belief propagation algorithms", IEEE Trans. Information Theory 51 (2005).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

import noisewise.numerics.jax_settings  # noqa: F401  # float64
from noisewise.artifact import ArgumentError
from noisewise.artifact.user_warnings import warn_user
from noisewise.models.graphical_model.structure import Clique, Structure, split

RECORDS_PER_BATCH = 2**16
"""Records drawn at a time (chosen), so that a batch's cumulative probabilities stay small."""


@dataclass(frozen=True)
class Bucket:
    """What a variable met when it was summed out: log-weights over ``scope``, itself first."""

    variable: str
    scope: Clique
    table: jax.Array


def eliminated_log_partition(model: Structure, theta: jax.Array) -> jax.Array:
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


MAX_SWEEPS = 500
"""Sweeps after which messages are taken as they are (chosen)."""
DAMPING = 0.3
"""Share of the old message in the new one (chosen)."""
MESSAGE_TOLERANCE = 1e-10
"""Largest change of a log-message at which the fixed point counts as reached (chosen)."""

Messages = tuple[tuple[jax.Array, ...], ...]
"""For every clique, the log-messages to each of its variables in turn."""
State = tuple[Messages, jax.Array, jax.Array]
"""Messages, the largest change of the last sweep, number of sweeps."""


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def bethe_log_partition(model: Structure, theta: jax.Array) -> jax.Array:
    """Return the Bethe approximation of A(θ)."""
    return _solve(model, theta)[0]


def _forward(model: Structure, theta: jax.Array) -> tuple[jax.Array, jax.Array]:
    return _solve(model, theta)


def _backward(model: Structure, beliefs: jax.Array, weight: jax.Array) -> tuple[jax.Array]:
    return (weight * beliefs,)


bethe_log_partition.defvjp(_forward, _backward)


def _solve(model: Structure, theta: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return value and beliefs at (or after ``MAX_SWEEPS`` sweeps, near) a fixed point."""
    tables = split(theta, model)

    def moving(carry: State) -> jax.Array:
        _, change, sweep = carry
        return (change > MESSAGE_TOLERANCE) & (sweep < MAX_SWEEPS)

    def sweep(carry: State) -> State:
        old, _, count = carry
        into = _totals(model, old)
        new = tuple(
            tuple(_message(model, c, table, old, into, v) for v in range(len(clique)))
            for c, (clique, table) in enumerate(zip(model.cliques, tables, strict=True))
        )
        gaps = [
            jnp.abs(a - b).max()
            for n, o in zip(new, old, strict=True)
            for a, b in zip(n, o, strict=True)
        ]
        mixed = jax.tree.map(lambda n, o: (1 - DAMPING) * n + DAMPING * o, new, old)
        return mixed, jnp.max(jnp.stack(jax.tree.leaves(gaps))), count + 1

    start = tuple(tuple(jnp.zeros(k) for k in model.shape(clique)) for clique in model.cliques)
    state = jax.lax.while_loop(moving, sweep, (start, jnp.array(jnp.inf), jnp.array(0)))
    return _bethe_value_and_beliefs(model, tables, state[0])


def _totals(model: Structure, messages: Messages) -> dict[str, jax.Array]:
    """Return the sum of all messages to each variable."""
    into = {v: jnp.zeros(k) for v, k in model.sizes.items()}
    for clique, sent in zip(model.cliques, messages, strict=True):
        for variable, message in zip(clique, sent, strict=True):
            into[variable] = into[variable] + message
    return into


def _with_messages(
    model: Structure, c: int, table: jax.Array, messages: Messages, into: dict[str, jax.Array],
    without: int | None = None,
) -> jax.Array:  # fmt: skip
    """Add to a clique's table the messages that its variables (but one) bring from elsewhere."""
    clique = model.cliques[c]
    for axis, variable in enumerate(clique):
        if axis != without:
            shape = [-1 if a == axis else 1 for a in range(len(clique))]
            table = table + (into[variable] - messages[c][axis]).reshape(shape)
    return table


def _message(
    model: Structure, c: int, table: jax.Array, messages: Messages, into: dict[str, jax.Array],
    axis: int,
) -> jax.Array:  # fmt: skip
    """Return the normalised log-message of clique ``c`` to its variable number ``axis``."""
    others = tuple(a for a in range(len(model.cliques[c])) if a != axis)
    message = logsumexp(_with_messages(model, c, table, messages, into, axis), axis=others)
    return message - logsumexp(message)


def _bethe_value_and_beliefs(
    model: Structure, tables: list[jax.Array], messages: Messages
) -> tuple[jax.Array, jax.Array]:
    """Return Σ_C (E_b[θ_C] + H(b_C)) - Σ_v (deg(v) - 1) H(b_v), and the beliefs b_C."""
    into = _totals(model, messages)
    value, beliefs = jnp.zeros(()), []
    for c, table in enumerate(tables):
        log_weights = _with_messages(model, c, table, messages, into)
        log_belief = log_weights - logsumexp(log_weights)
        belief = jnp.exp(log_belief)
        value = value + (belief * (table - log_belief)).sum()
        beliefs.append(belief.ravel())
    for variable, total in into.items():
        degree = sum(variable in clique for clique in model.cliques)
        log_belief = total - logsumexp(total)
        value = value + (degree - 1) * (jnp.exp(log_belief) * log_belief).sum()
    return value, jnp.concatenate(beliefs)


DEFAULT_MEMORY = 2 * 2**30
"""Bytes an exact junction tree may take, unless the analyst says otherwise (chosen)."""


@dataclass(frozen=True)
class Oracle:
    """A(θ) of one structure and its gradient. Hashable, so that it is compiled only once."""

    model: Structure
    kind: Literal["exact", "loopy"]

    @property
    def log_partition(self) -> Callable[[jax.Array], jax.Array]:
        """Return θ → A(θ)."""
        value = eliminated_log_partition if self.kind == "exact" else bethe_log_partition
        return partial(value, self.model)

    @property
    def value_and_marginals(self) -> Callable[[jax.Array], tuple[jax.Array, jax.Array]]:
        """Return θ → A(θ), μ(θ) = ∇A(θ)."""
        return jax.value_and_grad(self.log_partition)

    @property
    def marginals(self) -> Callable[[jax.Array], jax.Array]:
        """Return θ → μ(θ)."""
        return jax.grad(self.log_partition)


@lru_cache(maxsize=64)
def compiled_oracle(oracle: Oracle) -> Callable[[jax.Array], tuple[jax.Array, jax.Array]]:
    """Return θ → A(θ), μ(θ), compiled, to be called from Python."""
    return jax.jit(oracle.value_and_marginals)


def describe_size(model: Structure) -> str:
    """Describe the predicted size of the junction tree in words."""
    return (
        f"junction tree of {len(model.tree)} cliques, the largest over "
        f"{max(len(c) for c in model.tree)} columns, {model.cells} cells: "
        f"{model.predicted_bytes / 2**20:.3g} MiB"
    )


def choose_oracle(
    model: Structure, inference: str = "auto", memory: float = DEFAULT_MEMORY
) -> Oracle:
    """Choose exact or loopy inference by the predicted size, before anything is built.

    Args:
        model: variables and cliques.
        inference: ``"auto"``, ``"exact"`` or ``"loopy"``.
        memory: bytes an exact junction tree may take.

    Returns:
        The oracle. Under ``"auto"`` a UserWarning says so where it is loopy.
    """
    if inference not in ("auto", "exact", "loopy"):
        raise ArgumentError(f"inference: must be auto, exact or loopy, not {inference!r}")
    if isinstance(memory, bool) or not isinstance(memory, int | float) or not memory > 0:
        raise ArgumentError(f"memory: must be a number of bytes above zero, not {memory!r}")
    fits = model.predicted_bytes <= memory
    if inference == "exact" and not fits:
        raise ArgumentError(
            f"inference: exact would need a {describe_size(model)}, more than the "
            f"{memory / 2**20:.3g} MiB allowed. Raise memory=, use inference='loopy' "
            "(approximate), or ask for smaller or fewer cliques"
        )
    if inference == "auto" and not fits:
        warn_user(
            f"exact inference would need a {describe_size(model)}, more than the "
            f"{memory / 2**20:.3g} MiB allowed: loopy belief propagation is used instead, which is "
            "approximate. Raise memory=, or ask for smaller or fewer cliques"
        )
    return Oracle(model, "exact" if fits and inference != "loopy" else "loopy")
