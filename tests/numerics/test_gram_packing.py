"""Packing of a Gram matrix: one order, back and forth, in NumPy and in JAX."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from noisewise.numerics import gram_packing


@pytest.mark.parametrize("q", [1, 2, 5])
@pytest.mark.parametrize("kind", [np.asarray, jnp.asarray], ids=["numpy", "jax"])
def test_packing_is_undone_by_unpacking(q: int, kind: type) -> None:
    records = np.random.default_rng(q).normal(size=(3, 10, q))
    gram, totals = np.swapaxes(records, 1, 2) @ records, records.sum(axis=1)
    packed = gram_packing.pack(kind(gram), kind(totals))
    assert isinstance(packed, type(kind(gram)))
    assert packed.shape == (3, gram_packing.number_of_sums(q))
    # n, where it is secret, comes after the sums and is not looked at.
    more = np.concatenate([packed, np.full((3, 1), 10.0)], axis=-1)
    products, sums = gram_packing.unpack(kind(more), q)
    np.testing.assert_array_equal(products, np.triu(gram) + np.swapaxes(np.triu(gram, 1), 1, 2))
    np.testing.assert_array_equal(sums, totals)


def test_the_order_is_row_by_row_of_the_upper_triangle() -> None:
    w = np.array([2.0, 3.0, 5.0])
    packed = gram_packing.pack(np.outer(w, w), w)
    np.testing.assert_array_equal(packed, [4, 6, 10, 9, 15, 25, 2, 3, 5])
    np.testing.assert_array_equal(packed[gram_packing.square_positions(3)], w**2)
    np.testing.assert_array_equal(packed[gram_packing.total_positions(3)], w)
    assert gram_packing.number_of_products(3) == 6
