"""Releases of tables that are at hand, simulated: sums of records with noise from NumPy.

Two ways to the same statistics. "ours": columns mapped to [-1, 1], noise by the tight sensitivity
(errata E1). "as printed": columns left in [0, 1] and noise by the paper's sum over all entries,
widths of 1: 6 for one covariate and intercept, and 5 for the monomials (3.1, 3.3.4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from experiments.regression_paper.simulate import EXACT, Sensitivity, tight
from noisewise.models.linear_regression.problem import RegressionProblem, Units
from noisewise.priors import NormalInverseGamma, NormalInverseWishart

PRINTED = Sensitivity(6.0, 5.0)


@dataclass(frozen=True, eq=False)
class Sums:
    """Σ x², xy, y², x, y per group, and Σ x … x⁴, of columns in one coordinate."""

    gram: np.ndarray
    powers: np.ndarray
    n: np.ndarray


def sums(x: np.ndarray, y: np.ndarray, group: np.ndarray, groups: int) -> Sums:
    """Of records (one entry per person) that belong to groups 0, 1, …"""

    def total(values: np.ndarray) -> np.ndarray:
        return np.bincount(group, values, groups)

    gram = np.stack([total(v) for v in (x * x, x * y, y * y, x, y)], axis=1)
    powers = np.stack([total(x**p) for p in (1, 2, 3, 4)], axis=1)
    return Sums(gram, powers, np.bincount(group, minlength=groups).astype(float))


@dataclass(frozen=True)
class Way:
    """A coordinate of both columns, from [0, 1], and its sensitivity."""

    name: str
    units: Units
    sensitivity: Sensitivity

    def boxed(self, values: np.ndarray) -> np.ndarray:
        """A column of [0, 1] in this coordinate."""
        return (values - self.units.centre[0]) / self.units.half[0]


WAYS = {
    "as printed": Way("as printed", Units(np.zeros(2), np.ones(2)), PRINTED),
    "ours": Way("ours", Units(np.full(2, 0.5), np.full(2, 0.5)), tight(1)),
}


def release(
    rng: np.random.Generator, way: Way, exact: Sums, epsilon: float,
    response: NormalInverseGamma, covariates: NormalInverseWishart, *, monomials: bool = False,
    private: bool = True, keys: Sequence[int] | None = None,
) -> RegressionProblem:  # fmt: skip
    """What an analyst sees. Not ``private``: the sums themselves, for the non-private method."""
    widths = way.sensitivity if private else EXACT
    share = epsilon / 2 if monomials else epsilon
    scale = widths.gram / share
    z = exact.gram + rng.laplace(0, scale, exact.gram.shape)
    powers = exact.powers + rng.laplace(0, widths.monomials / share, exact.powers.shape)
    return RegressionProblem(
        ("x",), "y", z, exact.n, False, scale, "laplace", response, covariates, way.units,
        tuple(range(len(z)) if keys is None else keys),
        moments=powers if monomials else None,
        exponents=tuple((0,) * p for p in (1, 2, 3, 4)) if monomials else (),
    )  # fmt: skip
