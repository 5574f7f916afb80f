"""Gibbs against the exact mixture of betas (errata E15), cell by cell: where the CLT holds.

``python -m experiments.exponential_families.agreement`` prints, for z at 20, 40, 50 and 70 % of n,
the largest difference of means and of sds in units of the exact sd; Monte-Carlo error is 0.02.
"""

from __future__ import annotations

import warnings

import numpy as np

from noisewise import priors
from noisewise.infer.expfam import families, gibbs
from noisewise.infer.expfam.observed import Interval
from noisewise.infer.expfam.problem import Problem
from tests.reference import expfam_reference as reference


def main(seed: int = 0) -> None:
    """All nine cells of the thesis' sizes and ε ∈ {0.01, 0.1, 1}."""
    for n in (10, 100, 1000):
        for epsilon in (0.01, 0.1, 1.0):
            z = np.round(np.array([0.2, 0.4, 0.5, 0.7]) * n)
            given = Problem(
                families.Bernoulli(), Interval(0.0, 1.0, "keep"), "x", z[:, None],
                np.full(4, float(n)), 1 / epsilon, "laplace", priors.Beta(1, 1), (0, 1, 2, 3),
            )  # fmt: skip
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                draws = gibbs.run(given, seed, 4, 2500).draws["p"].reshape(4, -1)
            exact = [reference.bernoulli_moments(float(v), n, 1 / epsilon, 1, 1) for v in z]
            mean, sd = np.array(exact).T
            print(
                f"n={n} eps={epsilon}: means off by {np.abs(draws.mean(1) - mean).max():.4f} "
                f"({(np.abs(draws.mean(1) - mean) / sd).max():.3f} sd), sds by "
                f"{(np.abs(draws.std(1) / sd - 1)).max():.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
