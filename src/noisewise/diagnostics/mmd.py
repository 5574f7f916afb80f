"""Maximum mean discrepancy: how far apart are two sets of draws?

The unbiased estimate of Gretton et al. (2012, lemma 6) with a standard normal kernel,

    MMD² = 1/(m(m-1)) Σ_{i≠j} k(p_i, p_j) + k(q_i, q_j) - k(p_i, q_j) - k(p_j, q_i),

k(a, b) = exp(-|a - b|²/2). Near zero (and then of either sign) where the laws are the same.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

import noisewise.numerics  # noqa: F401  (float64)


def mmd2(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Of draws p and q (…, draw, parameter), as many of either; one number per leading entry."""
    p, q = np.asarray(p, float), np.asarray(q, float)
    if p.shape != q.shape or p.ndim < 2 or p.shape[-2] < 2:
        raise ValueError(
            f"p, q: must both be (…, draw, parameter) of one shape, not {p.shape} and {q.shape}"
        )
    lead = p.shape[:-2]
    flat = (p.reshape(-1, *p.shape[-2:]), q.reshape(-1, *q.shape[-2:]))
    return np.asarray(_each(*flat)).reshape(lead)


@jax.jit
def _each(p: jax.Array, q: jax.Array) -> jax.Array:
    # One pair after the other: a kernel matrix of 2000 draws is 32 MB.
    each: jax.Array = jax.lax.map(lambda pair: _one(*pair), (p, q))
    return each


def _one(p: jax.Array, q: jax.Array) -> jax.Array:
    m = p.shape[0]
    apart = _kernel(p, p) + _kernel(q, q) - _kernel(p, q) - _kernel(q, p)
    return (apart.sum() - jnp.trace(apart)) / (m * (m - 1))


def _kernel(a: jax.Array, b: jax.Array) -> jax.Array:
    squares = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)[None] - 2 * a @ b.T
    return jnp.exp(-jnp.maximum(squares, 0) / 2)
