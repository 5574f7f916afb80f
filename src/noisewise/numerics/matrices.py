"""Cholesky factors, triangular solves, products and projections of small matrices, in batches.

Batched LAPACK, batched products, and even slices of small stacked arrays are slow, on a CPU and on
a GPU. So a small matrix may be a NumPy array of *entries* (dtype object), each a JAX array over the
batch: sums and products of entries are plain vector arithmetic, which XLA fuses into few loops, and
their gradients need no padding. Every function but the projection and those below takes entries, or
one unbatched JAX matrix, and gives back what it was given.

The functions from ``batched_times`` on take one matrix per group as one array, the group axis last:
the layout of the samplers' metrics, where every entry is one long vector over the groups.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import noisewise.numerics.jax_settings  # noqa: F401  # float64

UNROLLED = 6
"""Up to this many rows the loops are written out; above that LAPACK wins and compiles faster
(chosen)."""

_LEAST_SQUARE = 1e-300
"""Floor of a squared diagonal entry of a Cholesky factor, so that rounding gives no NaN
(chosen)."""

_LEAST_RADIUS = 1e-300
"""Floor of half the difference of two eigenvalues, so that equal ones give no NaN (chosen)."""

Matrix = Any
"""A JAX array, or a NumPy array of entries."""


def is_entries(a: Matrix) -> bool:
    """Return whether the matrix is a NumPy array of entries."""
    return isinstance(a, np.ndarray) and a.dtype == object


def entries(array: Any, axes: int) -> np.ndarray:
    """Return the leading one or two axes as a NumPy array of entries."""
    shape = array.shape[:axes]
    matrix = np.empty(shape, object)
    for index in np.ndindex(*shape):
        matrix[index] = array[index]
    return matrix


def stacked(a: np.ndarray) -> jax.Array:
    """Return entries as one JAX array, matrix axes first."""
    flat = jnp.broadcast_arrays(*(jnp.asarray(e) for e in a.ravel()))
    return jnp.stack(flat).reshape(*a.shape, *flat[0].shape)


def each(function: Callable[[Any], Any], a: Matrix) -> Matrix:
    """Apply a function of one number to every element."""
    return np.frompyfunc(function, 1, 1)(a) if is_entries(a) else function(a)


def scaled(factor: Any, a: Matrix) -> Matrix:
    """Return ``factor`` times the matrix."""
    return each(lambda e: factor * e, a)


def joined(*parts: Matrix) -> Matrix:
    """Concatenate along the first axis."""
    return np.concatenate(parts) if is_entries(parts[0]) else jnp.concatenate(parts)


def single(value: Any, like: Matrix) -> Matrix:
    """Return a vector of one number, of the same kind as ``like``."""
    return listed([value]) if is_entries(like) else value[None]


def constant(values: np.ndarray, like: Matrix) -> Matrix:
    """Return numbers as a matrix of the same kind as ``like``.

    In entries, zeros stay Python numbers, which ``dot`` leaves out: they cost nothing.
    """
    return values.astype(object) if is_entries(like) else jnp.asarray(values)


def _is_zero(e: Any) -> bool:
    return isinstance(e, float | int) and e == 0


def dot(a: Matrix, b: Matrix) -> jax.Array | float:
    """Return the scalar product of two vectors."""
    if not is_entries(a):
        return jnp.sum(a * b)
    pairs = [(x, y) for x, y in zip(a, b, strict=True) if not (_is_zero(x) or _is_zero(y))]
    return sum((x * y for x, y in pairs[1:]), pairs[0][0] * pairs[0][1]) if pairs else 0.0


def times(matrix: Matrix, vector: Matrix) -> Matrix:
    """Return ``matrix @ vector``."""
    if not is_entries(matrix):
        return matrix @ vector
    return listed([dot(row, vector) for row in matrix])


def times_transposed(a: Matrix, b: Matrix) -> Matrix:
    """Return ``a @ b.T``."""
    if not is_entries(a):
        return a @ b.T
    return listed([[dot(row, other) for other in b] for row in a])


def listed(values: list[Any]) -> np.ndarray:
    """Return a list, or a list of lists, as entries; ``np.array`` would look into the arrays."""
    shape = (len(values), len(values[0])) if isinstance(values[0], list) else (len(values),)
    matrix = np.empty(shape, object)
    for index in np.ndindex(*shape):
        matrix[index] = values[index[0]][index[1]] if len(index) == 2 else values[index[0]]
    return matrix


def strictly_lower(values: Matrix, rows: int, columns: int) -> Matrix:
    """Return a rows × columns matrix from its entries left of the diagonal, row by row."""
    at = np.tril_indices(rows, -1, columns)
    if not is_entries(values):
        return jnp.zeros((rows, columns)).at[at].set(values)
    matrix = np.zeros((rows, columns)).astype(object)
    matrix[at] = values
    return matrix


def cholesky(matrix: Matrix) -> Matrix:
    """Return the lower factor of a symmetric positive definite matrix."""
    size = len(matrix)
    if not is_entries(matrix):
        if size > UNROLLED:
            return jnp.linalg.cholesky(matrix)
        return stacked(cholesky(entries(matrix, 2)))
    factor = np.zeros((size, size)).astype(object)
    for i in range(size):
        for j in range(i):
            rest = matrix[i, j] - dot(factor[i, :j], factor[j, :j])
            factor[i, j] = rest / factor[j, j]
        square = matrix[i, i] - dot(factor[i, :i], factor[i, :i])
        factor[i, i] = jnp.sqrt(jnp.maximum(square, _LEAST_SQUARE))
    return factor


def solve_lower(factor: Matrix, right: Matrix) -> Matrix:
    """Solve ``factor @ x = right`` for a lower-triangular factor and a vector; return x."""
    size = len(factor)
    if not is_entries(factor):
        if size > UNROLLED:
            return jax.scipy.linalg.solve_triangular(factor, right, lower=True)
        return stacked(solve_lower(entries(factor, 2), entries(right, 1)))
    x = np.empty(size, object)
    for i in range(size):
        x[i] = (right[i] - dot(factor[i, :i], x[:i])) / factor[i, i]
    return x


def solve_upper(factor: Matrix, right: Matrix) -> Matrix:
    """Solve ``factor.T @ x = right`` for a lower-triangular factor and a vector; return x."""
    size = len(factor)
    if not is_entries(factor):
        if size > UNROLLED:
            return jax.scipy.linalg.solve_triangular(factor, right, lower=True, trans=1)
        return stacked(solve_upper(entries(factor, 2), entries(right, 1)))
    x = np.empty(size, object)
    for i in reversed(range(size)):
        x[i] = (right[i] - dot(factor[i + 1 :, i], x[i + 1 :])) / factor[i, i]
    return x


def log_determinant(factor: Matrix) -> jax.Array:
    """Return log |L Lᵀ| of a lower-triangular factor L."""
    if not is_entries(factor):
        return 2 * jnp.sum(jnp.log(jnp.diagonal(factor)))
    # One logarithm of the product: a logarithm costs as much as all the rest.
    return 2 * jnp.log(np.prod(np.diagonal(factor)))


def project_to_floor(matrix: jax.Array, floor: float) -> tuple[jax.Array, jax.Array]:
    """Return the nearest symmetric matrix with no eigenvalue below ``floor``, and whether it moved.

    Nearest in the Frobenius norm: eigenvalues below the floor are raised to it. A matrix that has
    none is returned as it is. The matrix is one unbatched JAX array, not entries.
    """
    clip = _clip_two_by_two if matrix.shape[-1] == 2 else _clip_eigenvalues
    clipped, least = clip(matrix, floor)
    invalid = least < floor
    return jnp.where(invalid, clipped, matrix), invalid


def _clip_two_by_two(matrix: jax.Array, floor: float) -> tuple[jax.Array, jax.Array]:
    """Return the clipped matrix and the least eigenvalue, from closed forms.

    Batched LAPACK calls on 2 × 2 matrices cost more than a whole Gibbs sweep.
    """
    a, b, c = matrix[0, 0], matrix[0, 1], matrix[1, 1]
    middle, half = (a + c) / 2, (a - c) / 2
    radius = jnp.sqrt(half**2 + b**2)
    # The projector onto the leading eigenvector is (I + turn)/2, onto the other (I - turn)/2.
    scale = 1 / jnp.maximum(radius, _LEAST_RADIUS)
    turn = jnp.stack([jnp.stack([half, b]), jnp.stack([b, -half])]) * scale
    high, low = jnp.maximum(middle + radius, floor), jnp.maximum(middle - radius, floor)
    return (high + low) / 2 * jnp.eye(2) + (high - low) / 2 * turn, middle - radius


def _clip_eigenvalues(matrix: jax.Array, floor: float) -> tuple[jax.Array, jax.Array]:
    """Return the clipped matrix and the least eigenvalue, from its eigenvectors."""
    values, vectors = jnp.linalg.eigh(matrix)
    return (vectors * jnp.maximum(values, floor)) @ vectors.T, values[0]


MAX_UNROLLED = 9
"""Up to this many coordinates, products are written out, which XLA fuses into one loop
(chosen)."""


def batched_times(matrix: jax.Array, vector: jax.Array) -> jax.Array:
    """Return matrices (d, e, group) times vectors (e, chain, group)."""
    if len(vector) <= MAX_UNROLLED:
        return sum((matrix[:, e, None] * vector[e] for e in range(len(vector))), jnp.zeros(()))
    if vector.shape[2] == 1:
        return (matrix[..., 0] @ vector[..., 0])[..., None]
    return jnp.einsum("deg,ecg->dcg", matrix, vector)


def batched_transposed_times(matrix: jax.Array, vector: jax.Array) -> jax.Array:
    """Return transposed matrices (e, d, group) times vectors (e, chain, group)."""
    if len(vector) <= MAX_UNROLLED:
        return sum((matrix[e, :, None] * vector[e] for e in range(len(vector))), jnp.zeros(()))
    if vector.shape[2] == 1:
        return (matrix[..., 0].T @ vector[..., 0])[..., None]
    return jnp.einsum("edg,ecg->dcg", matrix, vector)


def squared(matrix: jax.Array) -> jax.Array:
    """Return matrices (d, d, group) times their own transposes."""
    leading = jnp.moveaxis(matrix, -1, 0)
    return jnp.moveaxis(leading @ jnp.swapaxes(leading, 1, 2), 0, -1)


def factors(matrix: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the Cholesky factors of matrices (d, d, group), and the inverses of the factors."""
    leading = jnp.moveaxis(matrix, -1, 0)
    # On a CPU one matrix after the other: jaxlib's batched LAPACK waits for other threads of the
    # pool it runs on, and two programs at once that do so wait for each other for ever.
    both = jax.lax.map(_factor, leading) if jax.default_backend() == "cpu" else _factor(leading)
    factor, inverse = both
    return jnp.moveaxis(factor, 0, -1), jnp.moveaxis(inverse, 0, -1)


def _factor(matrix: jax.Array) -> tuple[jax.Array, jax.Array]:
    factor = jnp.linalg.cholesky(matrix)
    eye = jnp.broadcast_to(jnp.eye(matrix.shape[-1]), matrix.shape)
    return factor, jax.scipy.linalg.solve_triangular(factor, eye, lower=True)
