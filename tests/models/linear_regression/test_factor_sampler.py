"""The sampler of regressions with factors: another sampler, truths from the prior, limit cases."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import noisewise as nw
from noisewise.models.linear_regression import factor_exact, factor_simulate
from noisewise.models.linear_regression.factor_density import FactorData, moments
from noisewise.models.linear_regression.factor_problem import FactorProblem, factor_problem
from noisewise.models.linear_regression.posterior import RegressionPosterior
from noisewise.numerics.convergence import diagnose

BOUNDS = {"x": (0.0, 10.0), "y": (-5.0, 15.0)}
LEVELS: dict[str, list[Any]] = {"A": ["a", "b"], "B": [1, 2, 3]}
FORMULA = "y ~ x + C(B)"


def people(n: int, shares: tuple[float, ...] = (0.4, 0.3, 0.3)) -> pd.DataFrame:
    """A table of n records; the counts of B are as near the shares as can be."""
    rng = np.random.default_rng(n)
    counts = np.diff(np.round(n * np.cumsum([0, *shares])).astype(int))
    table = pd.DataFrame({"x": rng.uniform(0, 10, n), "B": np.repeat(LEVELS["B"], counts)})
    table["A"] = rng.choice(LEVELS["A"], n)
    table["y"] = table.x * 0.5 + (table.B == 2) + 2 * (table["A"] == "b") + rng.normal(0, 1, n)
    return table


def release(table: Any, formula: str = FORMULA, epsilon: float = 10.0, **words: Any) -> nw.Release:
    factors = {f: v for f, v in LEVELS.items() if f"C({f})" in formula}
    return nw.release.linear_regression(
        table, formula=formula, bounds=BOUNDS, levels=factors, epsilon=epsilon, **words
    )


@pytest.mark.evidence
def test_truths_from_the_prior_have_uniform_ranks() -> None:
    """Simulation-based calibration: 60 records, noise of scale 3, a factor of three levels."""
    problem = factor_problem(release(nw.release.Blank(60), epsilon=1.0))
    assert isinstance(problem, FactorProblem)
    object.__setattr__(problem, "noise_scale", 3.0)
    trials = factor_simulate.from_prior(np.random.default_rng(8), problem, 100)
    post = factor_exact.run(trials.problem, 1, 4, 500)
    for k, name in enumerate(trials.names):
        draws = np.asarray(post.draws[name]).reshape(100, -1)
        ranks = (draws < trials.truth[:, [k]]).mean(axis=1)
        assert stats.kstest(ranks, "uniform").pvalue > 1e-3, (name, ranks)
