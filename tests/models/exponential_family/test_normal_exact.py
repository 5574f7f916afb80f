"""The normal's exact posterior: its likelihood against simulated sums, its draws against a grid."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import noisewise as nw
from noisewise.models.exponential_family import normal_exact, normal_likelihood
from noisewise.numerics import one_blas_thread
from tests.models.exponential_family.cases import CASES, problem
from tests.reference import expfam_reference as reference

pytestmark = pytest.mark.xdist_group("expfam")
BOX = (-0.5, 0.7)


def release(n: int, scale: float, mechanism: str, clamp: bool) -> normal_likelihood.NoisySums:
    z = np.array([0.05 * n + 0.3 * scale, 0.06 * n - 0.2 * scale])
    cut = normal_likelihood.BoxInterval(*BOX, clamp)
    return normal_likelihood.NoisySums(z, float(n), scale, mechanism, cut, 16.0)


@pytest.mark.parametrize("clamp", [False, True])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize(
    ("n", "scale"),
    [
        (1, 1.0),
        pytest.param(3, 0.2, marks=pytest.mark.evidence),
        (20, 2.0),
        (40, 20.0),
        pytest.param(100, 0.5, marks=pytest.mark.evidence),
    ],
)
def test_the_likelihood_of_two_sums_is_that_of_simulated_ones(
    n: int, scale: float, mechanism: str, clamp: bool
) -> None:
    """Four parameters, 100,000 simulations each: five standard errors, 2e-6 by chance, and 1e-3.

    The scales have sums near both z, near one, and near none.
    """
    given = release(n, scale, mechanism, clamp)
    rng = np.random.default_rng([n, clamp])
    mean, variance = np.array([0.1, -0.2, 0.05, 0.9]), np.array([0.05, 0.2, 0.01, 0.1])
    with one_blas_thread():
        found = np.exp(normal_likelihood.log_likelihood(given, mean, variance))
    # Gaussian and Laplace kernels are both one at distance zero.
    for row in range(4):
        expected, error = reference.normal_likelihood(
            rng, mean[row], variance[row], BOX, clamp, given.z, n, scale, mechanism, 100_000
        )
        assert abs(found[row] - expected) < 5 * error + 1e-3 * expected + 1e-6


@pytest.mark.parametrize(("scale", "kinds"), [(100.0, {0, 1, -1}), (0.1, {0})])
def test_which_sums_are_near(scale: float, kinds: set[int]) -> None:
    """Loud noise has parameters on every side of z; quiet noise tilts nothing."""
    given = release(1000, scale, "laplace", True)
    mean, variance = (a.ravel() for a in np.meshgrid(np.linspace(-1, 1, 9), [0.003, 0.03, 0.3]))
    law = normal_likelihood.contributions(mean, variance, given.interval)
    found = normal_likelihood.sides(given, law)
    assert set(np.unique(found)) == kinds


@pytest.mark.parametrize("clamp", [pytest.param(False, marks=pytest.mark.evidence), True])
def test_draws_are_those_of_a_brute_force_grid(clamp: bool) -> None:
    """30 records: a grid over (log σ², mean) with the exact likelihood at every one of its points.

    Means and sds within five standard errors of 20,000 independent draws (3e-6 a comparison).
    """
    given = release(30, 3.0, "laplace", clamp)
    prior = normal_exact.NormalBoxPrior(0.1, 2.0, 4.0, 0.3)
    lv, m = np.meshgrid(np.linspace(-5.5, 2.5, 41), np.linspace(-3, 3, 49), indexing="ij")
    v = np.exp(lv)
    log = -4.5 * lv - 0.3 / v - 2.0 * (m - 0.1) ** 2 / (2 * v)
    with one_blas_thread():
        log = log + normal_likelihood.log_likelihood(given, m.ravel(), v.ravel()).reshape(m.shape)
        drawn, error = normal_exact.sample(np.random.default_rng(0), given, prior, 20_000)
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    assert error < normal_exact.MAX_INTERPOLATION_ERROR
    for values, grid in ((drawn[:, 0], m), (np.log(drawn[:, 1]), lv)):
        mean = (weight * grid).sum()
        sd = np.sqrt((weight * (grid - mean) ** 2).sum())
        fourth = (weight * (grid - mean) ** 4).sum()
        assert abs(values.mean() - mean) < 5 * sd / 20_000**0.5
        spread = np.sqrt(fourth - sd**4) / (2 * sd) / 20_000**0.5
        assert abs(values.std() - sd) < 5 * spread + 0.005 * sd


def test_a_grid_that_is_too_coarse_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five points in either direction are not enough for 1,000 records with little noise."""
    monkeypatch.setattr(normal_exact, "CORRECTION_GRIDS", (5,))
    case = CASES["normal"]
    x = case.records(np.random.default_rng(2), 1000)
    with pytest.warns(UserWarning, match="interpolated log-likelihood is off by"):
        normal_exact.run(problem(case, [x], 1.0), 0, 2, 100)


@pytest.mark.parametrize(("n", "epsilon"), [(5000, 1.0), (1000, 3.0), (5000, 10.0)])
def test_a_narrow_posterior_is_found(n: int, epsilon: float) -> None:
    """Narrower than a cell of the first grid: it was missed, and a wrong one called converged.

    With many records the central limit theorem is excellent, so ``gibbs`` is a fair judge. Means of
    4,000 draws differ by up to 0.1 deviations and deviations by 10 % (gibbs has fewer effective).
    """
    rng = np.random.default_rng(n)
    table = {"v": rng.normal(50, 10, n)}
    release = nw.release.exponential_family(
        pd.DataFrame(table), column="v", family="normal", bounds=(0, 100), outside="clamp",
        epsilon=epsilon,
    )  # fmt: skip
    exact, gibbs = (nw.infer(release, m, seed=1).summary() for m in ("exact", "gibbs"))
    assert (abs(exact["mean"] - gibbs["mean"]) < 0.15 * gibbs["sd"]).all()
    assert (abs(exact["sd"] / gibbs["sd"] - 1) < 0.15).all()


def test_a_column_that_no_normal_distribution_fits() -> None:
    """Values spread evenly over the bounds: some of a normal's own would lie outside."""
    even = pd.DataFrame({"x": np.linspace(-1, 1, 5000)})
    made = nw.release.exponential_family(
        even, column="x", family="normal", bounds=(-1, 1), epsilon=1.0
    )
    with pytest.raises(nw.ArgumentError, match="family: no normal distribution"):
        nw.infer(made, draws=100)
