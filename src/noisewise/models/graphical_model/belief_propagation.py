"""Loopy belief propagation, for models whose junction tree does not fit.

    variable → clique:  m(x_v) = Σ of the other cliques' messages to v
    clique → variable:  m(x_v) = log Σ_{x_C \\ v} exp(θ_C + messages of the other variables)

Messages are updated all at once, with damping, in log space. A fixed point is a stationary point of
the Bethe free energy, whose value stands in for A(θ); its gradient is the beliefs, which is used
instead of differentiating through the iterations. On a tree both are exact.

J. S. Yedidia, W. T. Freeman, Y. Weiss, "Constructing free-energy approximations and generalized
belief propagation algorithms", IEEE Trans. Information Theory 51 (2005).
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp

from noisewise.models.graphical_model.structure import Structure, split

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
def log_partition(model: Structure, theta: jax.Array) -> jax.Array:
    """Return the Bethe approximation of A(θ)."""
    return _solve(model, theta)[0]


def _forward(model: Structure, theta: jax.Array) -> tuple[jax.Array, jax.Array]:
    return _solve(model, theta)


def _backward(model: Structure, beliefs: jax.Array, weight: jax.Array) -> tuple[jax.Array]:
    return (weight * beliefs,)


log_partition.defvjp(_forward, _backward)


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
