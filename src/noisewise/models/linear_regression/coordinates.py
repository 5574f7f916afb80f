"""Coordinates in which every point is a valid sufficient statistic.

The statistic of q columns w = (x, y) over n records is the mean w̄ and the scatter S, with
S/n = L Lᵀ, where L is lower-trapezoidal, q × m, m = min(q, n-1): a scatter of few records is
singular. Row j ≤ m of L is written in polar form (``exact-posterior`` kernel D),

    ρ_j = ½ log(S_jj/n),   g_j ∈ R^(j-1),   l_j = log L_jj = ρ_j - ½ log(1 + |g_j|²),
    L_(j,1:j-1) = g_j exp(l_j),

and rows j > m by their m entries. A vector v holds w̄ (q), ρ (m), g and those entries, row by row,
and, where n is itself secret, log n.

Measure: the centred records are Y = L Qᵀ with Q orthogonal, and dY ∝ Π_(j ≤ m) L_jj^(n-1-j) dL dQ.
In polar form dL_j = exp(j l_j) dρ_j dg_j, so with respect to dv the measure of S is
exp((n-1) Σ_(j ≤ m) l_j) times a constant (and a power of n). For m = q it is the Wishart's
|S|^((n-q-2)/2) dS.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.numerics.small_matrices import (
    Matrix,
    constant,
    each,
    is_entries,
    joined,
    scaled,
    single,
    strictly_lower,
    times_transposed,
)


class Shape(NamedTuple):
    """Columns q, rank m of the scatter, and whether n is secret."""

    q: int
    rank: int
    noisy_n: bool

    @property
    def dimension(self) -> int:
        """Length of a coordinate vector."""
        below = sum(min(j, self.rank) for j in range(self.q))
        return self.q + self.rank + below + self.noisy_n


def full_rank(q: int, *, noisy_n: bool = False) -> Shape:
    """The usual case: more records than columns."""
    return Shape(q, q, noisy_n)


class Point(NamedTuple):
    """The statistic behind a coordinate vector; matrices as in ``numerics.triangular``."""

    mean: Matrix
    factor: Matrix
    log_diagonal: Matrix
    n: jax.Array


def point(v: Matrix, shape: Shape, n: jax.Array) -> Point:
    """From coordinates to w̄, L, log diag L and n (given, or read from the last coordinate)."""
    q, m, _ = shape
    rho, rest = v[q : q + m], v[q + m : len(v) - shape.noisy_n]
    below = strictly_lower(rest, q, m)
    long = each(jnp.log1p, (below[:m] ** 2).sum(axis=1))
    log_l = rho - scaled(0.5, long)
    # Rows beyond the rank are plain entries, not multiples of a diagonal.
    size = joined(each(jnp.exp, log_l), constant(np.ones(q - m), v))
    factor = below * size[:, None] + _diagonal(size, q, m)
    return Point(v[:q], factor, log_l, jnp.exp(v[-1]) if shape.noisy_n else n)


def _diagonal(size: Matrix, q: int, m: int) -> Matrix:
    if not is_entries(size):
        return jnp.eye(q, m) * size[:m]
    made = np.zeros((q, m)).astype(object)
    made[np.arange(m), np.arange(m)] = size[:m]
    return made


def released(p: Point, *, noisy_n: bool) -> Matrix:
    """The sums the owner releases: Σ w_i w_j (i ≤ j, row by row), Σ w_i, and perhaps n."""
    q = len(p.mean)
    second = times_transposed(p.factor, p.factor) + p.mean[:, None] * p.mean[None]
    sums = [scaled(p.n, second[np.triu_indices(q)]), scaled(p.n, p.mean)]
    if noisy_n:
        sums.append(single(p.n, p.mean))
    return joined(*sums)


def from_released(sums: jax.Array, shape: Shape, n: jax.Array) -> jax.Array:
    """The inverse of ``released`` for a full-rank array; not finite where the scatter is not."""
    q = shape.q
    size = q * (q + 1) // 2
    n = sums[-1] if shape.noisy_n else n
    upper = jnp.zeros((q, q)).at[np.triu_indices(q)].set(sums[:size] / n)
    mean = sums[size : size + q] / n
    scatter = upper + jnp.triu(upper, 1).T - mean[:, None] * mean[None]
    factor = jnp.linalg.cholesky(scatter)
    diagonal = jnp.diagonal(factor)
    below = jnp.tril(factor, -1) / diagonal[:, None]
    rho = jnp.log(diagonal) + 0.5 * jnp.log1p((below**2).sum(axis=1))
    parts = [mean, rho, below[np.tril_indices(q, -1)]]
    return jnp.concatenate([*parts, jnp.log(n)[None]] if shape.noisy_n else parts)


def log_volume(p: Point, shape: Shape) -> jax.Array:
    """log |ds / dv| of the released sums s, up to a constant: for a full-rank array.

    Row i of the factor has |dL_i / dv_i| = l_i^i and |d(S/n) / dL| = 2^q Π l_i^(q+1-i): together
    Π l_i^(q+1). Where n is secret, sums are n times what v says, and dn = n d(log n).
    """
    q = shape.q
    value: jax.Array = (q + 1) * p.log_diagonal.sum()
    return value + (q * (q + 3) // 2 + 1) * jnp.log(p.n) if shape.noisy_n else value


def reflections(shape: Shape) -> np.ndarray:
    """Signs that map a valid point to a valid point of equal volume: where chains get stuck.

    From z alone a slope and its negative can look alike, and so can a mean and its negative.
    """
    q, m, noisy_n = shape
    end = shape.dimension - noisy_n
    response = slice(end - min(q - 1, m), end)
    flipped = np.ones((3, shape.dimension))
    flipped[0, response] = -1
    flipped[1, :q] = -1
    flipped[2, :q] = flipped[2, response] = -1
    return flipped
