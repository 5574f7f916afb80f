"""Gibbs against the exact mixture of betas (errata E15), cell by cell: where the CLT holds.

``python -m experiments.exponential_families.agreement [draws [seed]]`` prints, for z at 20, 40, 50
and 70 % of n, the largest difference of means and of sds in units of the exact sd, beside the
Monte-Carlo error (one standard error) of that mean or sd. At ε = 0.01 chains are slow: s and p move
together, by a tenth of what the noise leaves open.
"""

from __future__ import annotations

import sys
import warnings
from typing import NamedTuple

import numpy as np

from noisewise import priors
from noisewise.models.exponential_family import families, gibbs
from noisewise.models.exponential_family.problem import FamilyProblem
from noisewise.models.exponential_family.truncation import Interval
from tests.inference.agreement import summary
from tests.reference import expfam_reference as reference

CHAINS = 4


class Difference(NamedTuple):
    """Gibbs minus exact, (release,) each, and one standard error of it; all in exact sds."""

    mean: np.ndarray
    mean_error: np.ndarray
    sd: np.ndarray
    sd_error: np.ndarray


def difference(n: int, epsilon: float, draws: int, seed: int) -> Difference:
    """Four releases in one cell."""
    z = np.round(np.array([0.2, 0.4, 0.5, 0.7]) * n)
    given = FamilyProblem(
        families.Bernoulli(), Interval(0.0, 1.0, "keep"), "x", z[:, None],
        np.full(len(z), float(n)), 1 / epsilon, "laplace", priors.Beta(1, 1), tuple(range(len(z))),
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        post = gibbs.run(given, seed, CHAINS, draws)
    found = [summary(post, row) for row in range(len(z))]
    mean, sd = np.array([reference.bernoulli_moments(float(v), n, 1 / epsilon, 1, 1) for v in z]).T
    column = {k: np.array([f[k][0] for f in found]) for k in found[0]}
    return Difference(
        (column["mean"] - mean) / sd, column["mean_error"] / sd, column["sd"] / sd - 1,
        column["sd_error"] / sd,
    )  # fmt: skip


def main(draws: int = 20_000, seed: int = 0) -> None:
    """All nine cells of the thesis' sizes and ε ∈ {0.01, 0.1, 1}."""
    for n in (10, 100, 1000):
        for epsilon in (0.01, 0.1, 1.0):
            off = difference(n, epsilon, draws, seed)
            worst, wide = np.abs(off.mean).argmax(), np.abs(off.sd).argmax()
            print(
                f"n={n} eps={epsilon}: mean off by {off.mean[worst]:+.4f} ± "
                f"{off.mean_error[worst]:.4f} sd, sd by {off.sd[wide]:+.4f} ± "
                f"{off.sd_error[wide]:.4f}",
                flush=True,
            )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
