"""A prior over the covariates known through its moments alone, as method ``gibbs-prior`` needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

TOLERANCE = 1e-9
"""Rounding allowed in symmetry, positivity and E[1] = 1 (chosen)."""


@dataclass(frozen=True, eq=False)
class CovariateMoments:
    """``fourth[i, j, k, l] = E[x̃_i x̃_j x̃_k x̃_l]`` with x̃ = (x, 1), in the user's units.

    The constant comes last, so that means and second moments are part of it:
    ``fourth[i, j, -1, -1] = E[x_i x_j]``. From a formula, or from draws of any distribution.

    Example:
        >>> import noisewise as nw, numpy as np
        >>> moments = nw.priors.CovariateMoments.from_draws(np.array([[0.0], [1.0]]))
        >>> moments.columns, float(moments.fourth[0, 0, -1, -1])
        (1, 0.5)
    """

    fourth: np.ndarray

    if TYPE_CHECKING:  # lists are as welcome as arrays; they become arrays below

        def __init__(self, fourth: ArrayLike) -> None: ...

    def __post_init__(self) -> None:
        fourth = np.array(self.fourth, dtype=np.float64)
        if fourth.ndim != 4 or len(set(fourth.shape)) != 1 or len(fourth) < 2:
            raise ValueError(
                "prior: fourth must have four axes of d + 1, one more than the covariates, "
                f"not shape {fourth.shape}"
            )
        if not np.isfinite(fourth).all():
            raise ValueError("prior: fourth must be finite")
        size = np.abs(fourth).max()
        for axes in ((1, 0, 2, 3), (0, 2, 1, 3), (0, 1, 3, 2)):
            if np.abs(fourth - fourth.transpose(axes)).max() > TOLERANCE * size:
                raise ValueError("prior: fourth must not change when two indices are exchanged")
        matrix = fourth.reshape(len(fourth) ** 2, -1)
        if (
            abs(fourth[-1, -1, -1, -1] - 1) > TOLERANCE
            or np.linalg.eigvalsh(matrix)[0] < -TOLERANCE * size
        ):
            raise ValueError("prior: fourth must hold moments of some distribution, E[1] = 1 last")
        fourth.flags.writeable = False
        object.__setattr__(self, "fourth", fourth)

    @property
    def columns(self) -> int:
        """Return the number of covariates."""
        return len(self.fourth) - 1

    @classmethod
    def from_draws(cls, draws: ArrayLike) -> CovariateMoments:
        """Return the moments of draws (draw, covariate) from any distribution over x."""
        given = np.asarray(draws, dtype=np.float64)
        if given.ndim != 2 or not len(given):
            raise ValueError(
                f"prior: draws must have axes (draw, covariate), not shape {given.shape}"
            )
        full = np.hstack([given, np.ones((len(given), 1))])
        products = (full[:, :, None] * full[:, None, :]).reshape(len(full), -1)
        fourth = products.T @ products / len(full)
        return cls(fourth.reshape((full.shape[1],) * 4))

    def mapped(self, centre: np.ndarray, unit: np.ndarray) -> CovariateMoments:
        """Return the moments of ``(x - centre)/unit``."""
        matrix = np.diag(np.append(1 / unit, 1.0))
        matrix[:-1, -1] = -centre / unit
        fourth = self.fourth
        for _ in range(4):
            fourth = np.moveaxis(np.tensordot(fourth, matrix, axes=(0, 1)), -1, 3)
        return CovariateMoments(fourth)
