"""Interior-point minimisation over a box: against SciPy, and with curvatures that are wrong."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from noisewise.numerics.interior_point import (
    InteriorMinimum,
    Solver,
    minimise_interior_point,
    without_pairs,
)

SIZE = 40


@dataclass(frozen=True, eq=False)
class Dense:
    matrix: np.ndarray

    def times(self, x: np.ndarray) -> np.ndarray:
        return x @ self.matrix

    def solver(self, diagonal: np.ndarray) -> Solver:
        inverse = np.linalg.inv(self.matrix + np.diag(diagonal))
        return lambda q: q @ inverse


def quadratic(rank: int = SIZE) -> tuple[np.ndarray, np.ndarray]:
    """‖Fx - c‖²/2, whose minimum lies outside the box in many coordinates."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(rank, SIZE)), 3 * rng.normal(size=rank)


def solved(
    root: np.ndarray, right: np.ndarray, guess: np.ndarray, calls: int = 200
) -> InteriorMinimum:
    return minimise_interior_point(
        lambda x: root.T @ (root @ x - right), lambda _: Dense(guess),
        np.zeros(SIZE), -0.5, 0.2, tolerance=1e-9, max_calls=calls,
    )  # fmt: skip


def loss(root: np.ndarray, right: np.ndarray, x: np.ndarray) -> float:
    return float(((root @ x - right) ** 2).sum() / 2)


def test_a_quadratic_with_its_own_curvature_takes_few_gradients() -> None:
    root, right = quadratic()
    found = solved(root, right, root.T @ root)
    theirs = lsq_linear(root, right, (-0.5, 0.2), tol=1e-14, max_iter=1000).x
    assert found.calls <= 20
    assert found.gap <= 1e-9
    np.testing.assert_allclose(found.x, theirs, atol=1e-5)
    assert (np.abs(theirs + 0.15) > 0.349).sum() > 10


def test_flat_directions_are_no_trouble() -> None:
    """Along them a linear programme is left; its value is unique, its solution need not be."""
    root, right = quadratic(rank=15)
    tilt = np.random.default_rng(1).normal(size=SIZE)
    found = minimise_interior_point(
        lambda x: root.T @ (root @ x - right) + tilt, lambda _: Dense(root.T @ root),
        np.zeros(SIZE), -0.5, 0.2, tolerance=1e-9, max_calls=50,
    )  # fmt: skip
    assert found.gap <= 1e-9


@pytest.mark.parametrize("factor", [0.3, 3.0])
def test_secants_mend_a_wrong_curvature(factor: float) -> None:
    root, right = quadratic()
    found = solved(root, right, factor * np.diag((root**2).sum(axis=0)))
    assert found.gap <= 1e-9
    assert found.calls < 150


def test_the_gap_bounds_what_is_missing() -> None:
    root, right = quadratic()
    best = loss(root, right, solved(root, right, root.T @ root).x)
    for calls in (1, 3, 6):
        early = solved(root, right, root.T @ root, calls)
        assert early.calls == calls
        assert 0 <= loss(root, right, early.x) - best <= early.gap


def test_trouble_ends_it_and_the_gap_says_so() -> None:
    root, right = quadratic()
    found = solved(root, right, np.full((SIZE, SIZE), np.nan))
    assert found.calls == 1
    assert found.gap > 1


def test_pairs_are_bfgs() -> None:
    """Against the update formula, one pair after the other."""
    rng = np.random.default_rng(2)
    hessian = (lambda r: r @ r.T)(rng.normal(size=(SIZE, SIZE)))
    b, known = np.eye(SIZE), without_pairs(Dense(np.eye(SIZE)), SIZE)
    for _ in range(7):
        s = rng.normal(size=SIZE)
        y = hessian @ s
        known = known.updated(s, y)
        b = b - np.outer(b @ s, b @ s) / (s @ b @ s) + np.outer(y, y) / (s @ y)
    assert known.updated(s, -y) is known
    assert known.updated(s, 1.05 * s) is known
    diagonal, q = rng.uniform(size=SIZE), rng.normal(size=SIZE)
    theirs = np.linalg.solve(b + np.diag(diagonal), q)
    np.testing.assert_allclose(known.solver(diagonal)(q), theirs, rtol=1e-8, atol=1e-10)
