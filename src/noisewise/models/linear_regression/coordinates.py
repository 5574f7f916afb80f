"""Coordinates in which every point is a valid sufficient statistic.

The statistic of q columns w = (x, y) over n records is the mean w̄ and the scatter S, with
S/n = L Lᵀ, where L is lower-trapezoidal, q × m, m = min(q, n-1): a scatter of few records is
singular. Row j ≤ m of L is written in polar form,

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

from noisewise.numerics.gram_packing import number_of_sums, pack_symmetric, unpack
from noisewise.numerics.matrices import (
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
    """Columns q, rank m of the scatter, whether n is secret, and whether scales are unknown.

    Where they are (``scale_free.py``), their q + 1 coordinates follow those of the statistic.
    """

    q: int
    rank: int
    noisy_n: bool
    scale_free: bool = False

    @property
    def statistic(self) -> int:
        """Return the number of coordinates of the statistic."""
        below = sum(min(j, self.rank) for j in range(self.q))
        return self.q + self.rank + below + self.noisy_n

    @property
    def dimension(self) -> int:
        """Return the length of a coordinate vector."""
        return self.statistic + (self.q + 1) * self.scale_free


def full_rank(q: int, *, noisy_n: bool = False) -> Shape:
    """Return the shape in the usual case of more records than columns."""
    return Shape(q, q, noisy_n)


class Point(NamedTuple):
    """The statistic behind a coordinate vector: w̄, L, log diag L and n.

    Matrices are as in ``numerics.matrices``.
    """

    mean: Matrix
    factor: Matrix
    log_diagonal: Matrix
    n: jax.Array


def point(v: Matrix, shape: Shape, n: jax.Array) -> Point:
    """Return the statistic at coordinates v; n is given, or read from the last coordinate."""
    q, m, v = shape.q, shape.rank, v[: shape.statistic]
    rho, rest = v[q : q + m], v[q + m : len(v) - shape.noisy_n]
    below = strictly_lower(rest, q, m)
    long = each(jnp.log1p, (below[:m] ** 2).sum(axis=1))
    log_l = rho - scaled(0.5, long)
    # Rows beyond the rank are plain entries, not multiples of a diagonal.
    size = joined(each(jnp.exp, log_l), constant(np.ones(q - m), v))
    factor = below * size[:, None] + _diagonal(size, q, m)
    return Point(v[:q], factor, log_l, jnp.exp(v[-1]) if shape.noisy_n else n)


def _diagonal(size: Matrix, q: int, m: int) -> Matrix:
    """Return a q × m matrix with the first m of ``size`` on its diagonal."""
    if not is_entries(size):
        return jnp.eye(q, m) * size[:m]
    matrix = np.zeros((q, m)).astype(object)
    matrix[np.arange(m), np.arange(m)] = size[:m]
    return matrix


def released(p: Point, *, noisy_n: bool) -> Matrix:
    """Return the sums the owner releases, in the order of ``numerics.gram_packing``.

    n comes last where it is secret.
    """
    second = times_transposed(p.factor, p.factor) + p.mean[:, None] * p.mean[None]
    sums = [scaled(p.n, pack_symmetric(second)), scaled(p.n, p.mean)]
    if noisy_n:
        sums.append(single(p.n, p.mean))
    return joined(*sums)


def from_released(sums: jax.Array, shape: Shape, n: jax.Array) -> jax.Array:
    """Return the coordinates of released sums, for a full-rank array: the inverse of ``released``.

    Not finite where the scatter is not positive definite.
    """
    q = shape.q
    n = sums[-1] if shape.noisy_n else n
    second, mean = unpack(sums / n, q)
    scatter = second - mean[:, None] * mean[None]
    factor = jnp.linalg.cholesky(scatter)
    diagonal = jnp.diagonal(factor)
    below = jnp.tril(factor, -1) / diagonal[:, None]
    rho = jnp.log(diagonal) + 0.5 * jnp.log1p((below**2).sum(axis=1))
    parts = [mean, rho, below[np.tril_indices(q, -1)]]
    return jnp.concatenate([*parts, jnp.log(n)[None]] if shape.noisy_n else parts)


def reordered_coordinates(v: np.ndarray, order: np.ndarray, shape: Shape) -> np.ndarray:
    """Return coordinates (draw, coordinate, …) of the same statistics with columns in that order.

    Of full rank. Unknown scales are moved with their columns; the response and its scale, which
    come last, stay.
    """
    q, end = shape.q, shape.statistic - shape.noisy_n
    v = np.moveaxis(v, 1, -1)
    below = np.zeros((*v.shape[:-1], q, q))
    below[(..., *np.tril_indices(q, -1))] = v[..., 2 * q : end]
    # Rows of length 1, turned until they are triangular again: no digit of a small one is lost.
    rows = below + np.eye(q)
    rows /= np.linalg.norm(rows, axis=-1, keepdims=True)
    turned = np.linalg.qr(np.swapaxes(rows[..., order, :], -1, -2), mode="r")
    factor = (
        np.swapaxes(turned, -1, -2) * np.sign(np.diagonal(turned, axis1=-2, axis2=-1))[..., None, :]
    )
    below = factor / np.diagonal(factor, axis1=-2, axis2=-1)[..., None]
    parts = [v[..., order], v[..., q + order], below[(..., *np.tril_indices(q, -1))]]
    parts.append(v[..., end : shape.statistic])
    scales = v[..., shape.statistic :]
    if scales.shape[-1]:
        parts += [scales[..., order], scales[..., -1:]]
    return np.moveaxis(np.concatenate(parts, axis=-1), -1, 1)


def log_volume(p: Point, shape: Shape) -> jax.Array:
    """Return log |ds / dv| of the released sums s, up to a constant, for a full-rank array.

    Row i of the factor has |dL_i / dv_i| = l_i^i and |d(S/n) / dL| = 2^q Π l_i^(q+1-i): together
    Π l_i^(q+1). Where n is secret, sums are n times what v says, and dn = n d(log n).
    """
    q = shape.q
    value: jax.Array = (q + 1) * p.log_diagonal.sum()
    return value + (number_of_sums(q) + 1) * jnp.log(p.n) if shape.noisy_n else value


def reflections(shape: Shape) -> np.ndarray:
    """Return signs that map a valid point to a valid point of equal volume.

    Between such points chains get stuck: from z alone a slope and its negative can look
    alike, and so can a mean and its negative.
    """
    q, m = shape.q, shape.rank
    end = shape.statistic - shape.noisy_n
    response = slice(end - min(q - 1, m), end)
    flipped = np.ones((3, shape.dimension))
    flipped[0, response] = -1
    flipped[1, :q] = -1
    flipped[2, :q] = flipped[2, response] = -1
    return flipped
