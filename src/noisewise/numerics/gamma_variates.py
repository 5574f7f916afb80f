"""Gamma variates, drawn for a whole batch at once.

G. Marsaglia, W. W. Tsang, "A simple method for generating gamma variables", ACM TOMS 26 (2000):
with d = a - 1/3, c = 1/√(9d), v = (1 + c·normal)³, accept d·v when
log u < ½ normal² + d - dv + d log v. JAX's own sampler loops over the elements one by one on a CPU;
here all try together (each try accepts ≥ 95 %), and those that failed try again until none is left.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

_Attempts = tuple[jax.Array, jax.Array, jax.Array]
"""Values, which of them are accepted, and the next key."""

MIN_GATHERED = 2**14
"""From so many elements on, the few that failed are gathered and drawn again; fewer are all drawn
again (chosen)."""


def gamma(key: jax.Array, shape: jax.Array) -> jax.Array:
    """Draw Gamma(shape, 1) for every element; every shape must be at least 1."""
    first, rest = jax.random.split(key)
    if shape.size < MIN_GATHERED:
        return _until_accepted(first, shape)
    flat = shape.ravel()
    value, accepted = _attempt(first, flat)

    def some(state: _Attempts) -> _Attempts:
        value, done, key = state
        key, now = jax.random.split(key)
        # Room for more than should have failed; what is padding is dropped again.
        rows = jnp.nonzero(~done, size=flat.size // 8, fill_value=flat.size)[0]
        fresh, accepted = _attempt(now, flat.at[rows].get(mode="clip"))
        rows = jnp.where(accepted, rows, flat.size)
        return value.at[rows].set(fresh, mode="drop"), done.at[rows].set(True, mode="drop"), key

    value, _, _ = jax.lax.while_loop(lambda s: ~s[1].all(), some, (value, accepted, rest))
    return value.reshape(shape.shape)


def _attempt(key: jax.Array, shape: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Propose a value for every element, and say which proposals are accepted."""
    normal, uniform = jax.random.split(key)
    d = shape - 1 / 3
    white = jax.random.normal(normal, shape.shape)
    v = (1 + white / jnp.sqrt(9 * d)) ** 3
    log_v = jnp.log(jnp.where(v > 0, v, 1.0))
    ratio = 0.5 * white**2 + d * (1 - v + log_v)
    log_uniform = jnp.log(jax.random.uniform(uniform, shape.shape))
    return d * v, (v > 0) & (log_uniform < ratio)


def _until_accepted(key: jax.Array, shape: jax.Array) -> jax.Array:
    """Draw all elements again and again until each was accepted once; the first one counts."""

    def again(state: _Attempts) -> _Attempts:
        value, done, key = state
        key, now = jax.random.split(key)
        fresh, accepted = _attempt(now, shape)
        return jnp.where(accepted & ~done, fresh, value), done | accepted, key

    begin = jnp.zeros_like(shape), jnp.zeros(shape.shape, bool), key
    value: jax.Array = jax.lax.while_loop(lambda s: ~s[1].all(), again, begin)[0]
    return value
