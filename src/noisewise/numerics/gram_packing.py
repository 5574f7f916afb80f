"""The one order in which the sums of a Gram matrix are packed into a vector, and back.

For q columns w = (w_1 … w_q) a release holds

    Σ w_i w_j  for i ≤ j, row by row of the upper triangle     q (q + 1) / 2 products
    Σ w_i                                                      q totals

and, where the number of records is secret, n after them. Arrays may have leading batch axes; the
packed axis is the last. Functions take NumPy or JAX arrays and return the same kind.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import noisewise.numerics.jax_settings  # noqa: F401  # float64

Array = Any
"""A NumPy or a JAX array."""


def number_of_products(q: int) -> int:
    """Return how many products Σ w_i w_j, i ≤ j, there are."""
    return q * (q + 1) // 2


def number_of_sums(q: int) -> int:
    """Return how many products and totals there are together, n not counted."""
    return q * (q + 3) // 2


def product_pairs(q: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices i and j of every packed product."""
    return np.triu_indices(q)


def square_positions(q: int) -> np.ndarray:
    """Return the positions of Σ w_i², i = 1 … q, in the packed vector."""
    rows, columns = product_pairs(q)
    return np.flatnonzero(rows == columns)


def total_positions(q: int) -> np.ndarray:
    """Return the positions of Σ w_i, i = 1 … q, in the packed vector."""
    return number_of_products(q) + np.arange(q)


def pack_symmetric(matrix: Array) -> Array:
    """Return the upper triangle of symmetric matrices (…, q, q), row by row."""
    rows, columns = product_pairs(matrix.shape[-1])
    return matrix[..., rows, columns]


def pack(products: Array, totals: Array) -> Array:
    """Return the packed vector of products (…, q, q) and totals (…, q)."""
    xp = jnp if isinstance(products, jax.Array) else np
    return xp.concatenate([pack_symmetric(products), totals], axis=-1)


def unpack_symmetric(packed: Array, q: int) -> Array:
    """Return symmetric matrices (…, q, q) from their upper triangles; further sums are ignored."""
    rows, columns = product_pairs(q)
    triangle = packed[..., : len(rows)]
    if isinstance(packed, jax.Array):
        upper = jnp.zeros((*packed.shape[:-1], q, q)).at[..., rows, columns].set(triangle)
        return upper + jnp.swapaxes(jnp.triu(upper, 1), -1, -2)
    matrix = np.zeros((*packed.shape[:-1], q, q))
    matrix[..., rows, columns] = matrix[..., columns, rows] = triangle
    return matrix


def unpack(packed: Array, q: int) -> tuple[Array, Array]:
    """Return the products (…, q, q) and the totals (…, q) of a packed vector."""
    first = number_of_products(q)
    return unpack_symmetric(packed, q), packed[..., first : first + q]
