"""``mcmc-individual`` and ``exact`` are two roads to one posterior.

The quick comparison, one covariate, is in ``test_methods``.
"""

from __future__ import annotations

import numpy as np
import pytest

from noisewise.artifact import ArgumentError, Mechanism
from noisewise.models.linear_regression import exact, individual_mcmc
from noisewise.models.linear_regression.problem import RegressionProblem
from tests.inference.agreement import TOLERANCE, departures, summary
from tests.inference.regressions import CHAINS, DRAWS, GROUPS, problem, table

pytestmark = pytest.mark.xdist_group("one-covariate")


def alone(given: RegressionProblem, group: int) -> RegressionProblem:
    return RegressionProblem(
        **{**vars(given), "z": given.z[[group]], "n": given.n[[group]], "keys": None}
    )


def compare(d: int, mechanism: Mechanism, draws: int) -> tuple[float, int]:
    """Largest difference in standard errors, and divergences, on the first of four data sets."""
    rng = np.random.default_rng(d)
    given = problem([table(rng, 30, d) for _ in range(GROUPS)], 1.0, mechanism=mechanism, seed=d)
    every = exact.run(given, 0, CHAINS, DRAWS)
    post = individual_mcmc.run(alone(given, 0), 0, CHAINS, draws)
    assert every.converged, every.status
    assert post.converged, post.status
    off = departures(summary(every, 0), summary(post))
    return float(np.abs(off).max()), int(post.details["divergences"].sum())


@pytest.mark.evidence
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_agrees_with_exact(d: int, mechanism: Mechanism) -> None:
    """n = 30: 6 to 10 comparisons each."""
    worst, divergences = compare(d, mechanism, 2000)
    print(f"d {d}, {mechanism}: {worst:.2f} standard errors, {divergences} divergences of 8000")
    assert worst < TOLERANCE
    assert divergences < 40


def test_refuses_what_it_cannot_do() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ArgumentError, match=r"up to 5000 records .* not 5001"):
        individual_mcmc.run(problem([table(rng, 5001)], 1.0), 0, CHAINS, DRAWS)
    with pytest.raises(ArgumentError, match="n is secret in this release: use exact"):
        individual_mcmc.run(problem([table(rng, 30)], 1.0, noisy_n=True), 0, CHAINS, DRAWS)
