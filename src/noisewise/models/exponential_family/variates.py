"""Gamma, beta and Dirichlet variates of any shape, for a whole batch at once."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from noisewise.numerics.gamma_variates import gamma as gamma_above_one


def gamma(key: jax.Array, shape: jax.Array) -> jax.Array:
    """Gamma(shape, 1) for any shape > 0: below one, Gamma(a) = Gamma(a + 1) · U^(1/a)."""
    drawn, boost = jax.random.split(key)
    small = shape < 1
    value = gamma_above_one(drawn, jnp.where(small, shape + 1, shape))
    uniform = jax.random.uniform(boost, shape.shape, minval=1e-300)
    return jnp.where(small, value * uniform ** (1 / jnp.where(small, shape, 1.0)), value)


def dirichlet(key: jax.Array, alpha: jax.Array) -> jax.Array:
    """Probabilities along the last axis."""
    value = jnp.maximum(gamma(key, alpha), 1e-300)
    return value / value.sum(axis=-1, keepdims=True)
