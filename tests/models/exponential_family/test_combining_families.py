"""Several releases of one column's sums: against a sum over every possible s, in NumPy."""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from noisewise import priors
from noisewise.artifact import ArgumentError
from noisewise.models.exponential_family import exact, families, parameter_grid
from noisewise.models.exponential_family.problem import FamilyProblem, combine_problems
from tests.models.exponential_family.cases import CASES, Case, problem

N = 30
TOLERANCE = 4.5
"""Standard errors of independent draws, two-sided: 7e-6 a comparison."""


def observed(case: Case, scale: float, seed: int, mechanism: str) -> FamilyProblem:
    """The same 30 records, whatever the noise."""
    x = case.records(np.random.default_rng(0), N)
    return problem(case, [x], scale, seed=seed, mechanism=mechanism)


def oracle(given: list[FamilyProblem], alpha: tuple[float, float]) -> tuple[float, float]:
    """Mean and sd of p = P(x = 1), s ~ Binomial(N, p) summed over: beta-binomial times kernels."""
    s = np.arange(N + 1)
    log = stats.betabinom(N, *alpha).logpmf(s)
    for one in given:
        d = (one.z[0, -1] - s) / one.scale
        log = log - (np.abs(d) if one.mechanism == "laplace" else d**2 / 2)
    if given[0].z.shape[1] == 2:
        for one in given:
            d = (one.z[0, 0] - (N - s)) / one.scale
            log = log - (np.abs(d) if one.mechanism == "laplace" else d**2 / 2)
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    after = stats.beta(alpha[0] + s, alpha[1] + N - s)
    mean = weight @ after.mean()
    return float(mean), float(np.sqrt(weight @ (after.var() + after.mean() ** 2) - mean**2))


def compare(drawn: np.ndarray, mean: float, sd: float) -> None:
    error = sd / np.sqrt(drawn.size)
    assert abs(drawn.mean() - mean) < TOLERANCE * error
    assert abs(drawn.std() - sd) < TOLERANCE * error  # of a sd: about 0.7 of that of a mean


@pytest.mark.parametrize("scales", [(0.4, 0.5), (0.9, 1.3), (4.0, 7.0)])
def test_gaussian_noise_of_a_binary_column(scales: tuple[float, float]) -> None:
    """Quiet and loud; the weighted sum lies between the whole numbers that s can be."""
    case = CASES["bernoulli"]
    given = [observed(case, scale, seed, "gaussian") for seed, scale in enumerate(scales, 1)]
    given[1] = replace(given[1], z=given[0].z + 1)
    both = combine_problems(given)
    assert both.z[0, 0] != np.rint(both.z[0, 0])
    assert both.others == ()
    drawn = exact.run(both, 0, 4, 5000).draws["p"]
    compare(drawn, *oracle(given, (6, 14)))


@pytest.mark.parametrize("scale", [0.3, 0.6, 1.5, 5.0])
@pytest.mark.parametrize("n", [12, 100, 400])
def test_the_likelihood_between_whole_numbers(n: int, scale: float) -> None:
    """No draws: the density on its grid against the sum over s = 0 … n, to seven digits."""
    x = CASES["bernoulli"].records(np.random.default_rng(0), n)
    given = problem(CASES["bernoulli"], [x], scale, mechanism="gaussian")
    given = replace(given, z=np.array([[x.sum() + 0.4]]), between=True)
    ((_, found),) = exact.densities(given, np.array([0]))
    log_prior = parameter_grid.point_moments(given, found.v)[0]
    p = np.asarray(parameter_grid.parameter(given.family, jnp.asarray(found.v)))
    s = np.arange(n + 1)
    kernel = np.exp(-(((given.z[0, 0] - s) / scale) ** 2) / 2)
    wanted = stats.binom.pmf(s, n, p[:, None]) @ kernel * np.exp(log_prior - log_prior.max())
    np.testing.assert_allclose(
        found.values[0] / found.values[0].max(), wanted / wanted.max(), rtol=0, atol=1e-7
    )


@pytest.mark.parametrize(
    "mechanisms", [("laplace", "laplace"), ("laplace", "gaussian"), ("gaussian", "gaussian")]
)
def test_categories(mechanisms: tuple[str, str]) -> None:
    case = replace(
        CASES["categorical"],
        family=families.Categorical(("no", "yes")),
        prior=priors.Dirichlet([14, 6]),
        theta=(0.7, 0.3),
        wide=(0, 1),
        narrow=(0, 1),
    )
    given = [observed(case, 2.0 + i, i, m) for i, m in enumerate(mechanisms)]
    drawn = exact.run(combine_problems(given), 0, 4, 5000).draws["p[yes]"]
    compare(drawn, *oracle(given, (6, 14)))
    alone = exact.run(given[0], 0, 4, 5000).draws["p[yes]"]
    assert drawn.std() < alone.std()


def test_laplace_noise_of_other_families_is_refused() -> None:
    given = [observed(CASES["poisson"], 2.0, seed, "laplace") for seed in (1, 2)]
    with pytest.raises(ArgumentError, match="poisson column can be combined where all have Gauss"):
        combine_problems(given)
    mixed = [given[0], observed(CASES["poisson"], 2.0, 3, "gaussian")]
    with pytest.raises(ArgumentError, match="those of a categorical column and of a linear"):
        combine_problems(mixed)


def test_a_secret_number_of_records_is_known_better() -> None:
    case = CASES["poisson"]
    one, two = (
        replace(observed(case, 2.0, s, "gaussian"), counted=np.array([28.0 + s]), count_scale=2.0)
        for s in (1, 2)
    )
    both = combine_problems([one, two])
    assert both.counted == pytest.approx([29.5])
    assert both.count_scale == pytest.approx(2**0.5)
    assert both.n == pytest.approx([30.0])


def test_one_release_is_left_as_it_is() -> None:
    one = observed(CASES["poisson"], 2.0, 1, "laplace")
    assert combine_problems([one]) is one
