"""Bartlett's factor and inverse-Wishart factors have the moments of their laws.

Means over 40,000 draws lie within five standard errors: a false alarm in a million comparisons of a
normal mean, and the seed is fixed.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from noisewise.numerics.distributions import (
    bartlett_factor,
    draw_bartlett_factors,
    draw_inverse_wishart_factors,
)

DRAWS = 40_000
STANDARD_ERRORS = 5


def agree(draws: np.ndarray, expected: np.ndarray) -> None:
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - expected) <= STANDARD_ERRORS * error + 1e-12).all()


@pytest.mark.parametrize(("rows", "rank", "df"), [(3, 3, 7.0), (3, 2, 2.0), (1, 1, 4.0)])
def test_drawn_factors_are_of_a_wishart(rows: int, rank: int, df: float) -> None:
    """E[B Bᵀ] = df I, also where fewer records than columns make it singular."""
    factors = draw_bartlett_factors(np.random.default_rng(1), np.full(DRAWS, df), rows, rank)
    assert factors.shape == (DRAWS, rows, rank)
    agree(factors @ np.swapaxes(factors, 1, 2), df * np.eye(rows))


@pytest.mark.parametrize("size", [1, 3])
def test_both_bartlett_factors_are_the_same_matrix(size: int) -> None:
    drawn = draw_bartlett_factors(np.random.default_rng(2), np.array(9.0), size, size)
    below = drawn[np.tril_indices(size, -1)]
    again = jax.jit(bartlett_factor)(jnp.asarray(np.diagonal(drawn) ** 2 / 2), jnp.asarray(below))
    np.testing.assert_allclose(again, drawn, rtol=1e-14)


def test_drawn_factors_are_of_an_inverse_wishart() -> None:
    """E[T Tᵀ] = Ψ / (df - d - 1)."""
    scale = np.array([[2.0, 0.5], [0.5, 1.0]])
    df = np.full(DRAWS, 12.0)
    roots = draw_inverse_wishart_factors(np.random.default_rng(3), np.linalg.cholesky(scale), df)
    agree(roots @ np.swapaxes(roots, 1, 2), scale / (12.0 - 2 - 1))
