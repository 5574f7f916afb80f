"""Coordinates in which every point is a valid sufficient statistic.

The statistic of q columns w = (x, y) over n records is the mean w̄ and the scatter S, with
S/n = L Lᵀ. Row j of L is written in polar form (``exact-posterior`` kernel D):

    ρ_j = ½ log(S_jj/n),   g_j ∈ R^(j-1),   l_j = log L_jj = ρ_j - ½ log(1 + |g_j|²),
    L_(j,1:j-1) = g_j exp(l_j).

A vector v holds w̄ (q), ρ (q), g (q(q-1)/2) and, where n is itself secret, log n. With respect to
dv the measure |S|^((n-q-2)/2) dS becomes exp((n-1) Σ l_j) times a constant (and a power of n).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np


class Point(NamedTuple):
    """The statistic behind a coordinate vector."""

    mean: jax.Array
    factor: jax.Array
    log_diagonal: jax.Array
    n: jax.Array


def dimension(q: int, *, noisy_n: bool) -> int:
    """Length of a coordinate vector."""
    return q * (q + 3) // 2 + noisy_n


def point(v: jax.Array, q: int, n: jax.Array, *, noisy_n: bool) -> Point:
    """From coordinates to w̄, L, log diag L and n (given, or read from the last coordinate)."""
    rho, g = v[q : 2 * q], v[2 * q :]
    rows, diagonal = [], []
    start = 0
    for j in range(q):
        below = g[start : start + j]
        start += j
        log_l = rho[j] - 0.5 * jnp.log1p(jnp.sum(below**2))
        diagonal.append(log_l)
        unit = jnp.concatenate([below, jnp.ones(1), jnp.zeros(q - 1 - j)])
        rows.append(unit * jnp.exp(log_l))
    size = jnp.exp(v[-1]) if noisy_n else n
    return Point(v[:q], jnp.stack(rows), jnp.stack(diagonal), size)


def released(p: Point, *, noisy_n: bool) -> jax.Array:
    """The sums the owner releases: Σ w_i w_j (i ≤ j, row by row), Σ w_i, and perhaps n."""
    q = p.mean.shape[0]
    gram = p.n * (p.factor @ p.factor.T + jnp.outer(p.mean, p.mean))
    sums = [gram[np.triu_indices(q)], p.n * p.mean]
    return jnp.concatenate([*sums, p.n[None]] if noisy_n else sums)


def reflections(q: int, *, noisy_n: bool) -> np.ndarray:
    """Signs that map a valid point to a valid point of equal volume: where chains get stuck.

    From z alone a slope and its negative can look alike, and so can a mean and its negative.
    """
    response = slice(2 * q + (q - 1) * (q - 2) // 2, 2 * q + q * (q - 1) // 2)
    flipped = np.ones((3, dimension(q, noisy_n=noisy_n)))
    flipped[0, response] = -1
    flipped[1, :q] = -1
    flipped[2, :q] = flipped[2, response] = -1
    return flipped
