"""A curvature one can solve with, corrected by what gradients have told since: BFGS on top of it.

    B = B₀ - U M⁻¹ Uᵀ,   U = [B₀S, Y],   M = [[SᵀB₀S, L], [Lᵀ, -diag(SᵀY)]]

with steps S, changes of the gradient Y, and L the part of SᵀY below its diagonal (R. H. Byrd,
J. Nocedal, R. B. Schnabel, "Representations of quasi-Newton matrices", Math. Programming 63, 1994).
A diagonal may be added to B₀ anew for every solve, as interior-point methods want.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy.linalg import lu_factor, lu_solve

MEMORY = 30
FLAT = 1e-10
"""A pair whose angle has a smaller cosine tells nothing but rounding."""

KNOWN = 0.1
"""A pair that ``base`` foretells up to this share is not worth its place in every later solve."""

Solve = Callable[[np.ndarray], np.ndarray]


class Curvature(Protocol):
    """A positive semidefinite matrix B; vectors are rows, and may come several at a time."""

    def times(self, x: np.ndarray) -> np.ndarray:
        """B x."""
        ...

    def solver(self, diagonal: np.ndarray) -> Solve:
        """q → (B + diag)⁻¹ q."""
        ...


@dataclass(frozen=True, eq=False)
class Secant:
    """``base`` with pairs, oldest first: rows of S, Y and B₀S."""

    base: Curvature
    steps: np.ndarray
    changes: np.ndarray
    images: np.ndarray

    def learnt(self, step: np.ndarray, change: np.ndarray) -> Secant:
        """With one more pair, unless it shows no curvature, or none that was not known."""
        image = self.base.times(step)
        flat = step @ change <= FLAT * np.sqrt((step @ step) * (change @ change))
        if flat or np.linalg.norm(change - image) <= KNOWN * np.linalg.norm(change):
            return self
        return replace(
            self,
            steps=np.vstack([self.steps, step])[-MEMORY:],
            changes=np.vstack([self.changes, change])[-MEMORY:],
            images=np.vstack([self.images, image])[-MEMORY:],
        )

    def solver(self, diagonal: np.ndarray) -> Solve:
        """q → (B + diag)⁻¹ q."""
        base = self.base.solver(diagonal)
        if not len(self.steps):
            return base
        cross = self.steps @ self.changes.T
        below = np.tril(cross, -1)
        middle = np.block(
            [[self.steps @ self.images.T, below], [below.T, -np.diag(np.diag(cross))]]
        )
        rows = np.vstack([self.images, self.changes])
        solved = base(rows)
        factor = lu_factor(middle - rows @ solved.T, check_finite=False)

        def solve(q: np.ndarray) -> np.ndarray:
            x = base(q)
            return np.asarray(x + lu_solve(factor, rows @ x, check_finite=False) @ solved)

        return solve


def untaught(base: Curvature, size: int) -> Secant:
    """No pairs yet."""
    empty = np.zeros((0, size))
    return Secant(base, empty, empty, empty)
