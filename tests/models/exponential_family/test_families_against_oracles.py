"""Exact posteriors against mixtures, enumeration and brute-force inversion; Gibbs against both."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import numpy as np
import pytest
from scipy import special, stats

from experiments.exponential_families.agreement import difference
from noisewise import priors
from noisewise.models.exponential_family import exact, families, fourier_likelihood, gibbs
from noisewise.models.exponential_family.fourier_likelihood import contribution_law
from noisewise.models.exponential_family.problem import FamilyProblem
from noisewise.models.exponential_family.truncation import Interval
from noisewise.numerics import one_blas_thread
from tests.inference.agreement import TOLERANCE, departures, known, summary
from tests.reference import expfam_reference as reference

pytestmark = pytest.mark.xdist_group("expfam")


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """As in ``exact.run``: two would wait for each other."""
    with one_blas_thread():
        yield


def bernoulli(
    z: list[float],
    n: int,
    scale: float,
    mechanism: str = "laplace",
    a: float = 1.0,
    b: float = 1.0,
) -> FamilyProblem:
    given = np.array(z)[:, None]
    return FamilyProblem(
        families.Bernoulli(), Interval(0.0, 1.0, "keep"), "x", given, np.full(len(z), float(n)),
        scale, mechanism, priors.Beta(a, b), tuple(range(len(z))),
    )  # fmt: skip


def exponential(
    z: list[float], n: int, scale: float, outside: str, mechanism: str
) -> FamilyProblem:
    return FamilyProblem(
        families.Exponential(), Interval(0.05, 2.0, outside), "x", np.array(z)[:, None],  # type: ignore[arg-type]
        np.full(len(z), float(n)), scale, mechanism, priors.Gamma(3, 2), tuple(range(len(z))),
    )  # fmt: skip


def cumulative(found: exact.GridDensity, row: int) -> np.ndarray:
    d = found.values[row]
    total = np.concatenate([[0.0], np.cumsum(np.diff(found.v) * (d[1:] + d[:-1]) / 2)])
    return total / total[-1]


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("n", [1, 10, 1000])
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 10.0])
def test_bernoulli_is_the_mixture_of_betas(n: int, epsilon: float, mechanism: str) -> None:
    """Errata E15: CDFs within 3e-4, also where z is far outside what is possible."""
    scale = 1 / epsilon
    z = [float(round(v)) for v in (0.3 * n + 0.7 * scale, 0.3 * n - 2 * scale, 0.0, 0.9 * n)]
    given = bernoulli(z, n, scale, mechanism, 0.5, 3.0)
    for rows in exact.rows_by_size(given):
        for part, found in exact.densities(given, rows):
            theta = special.expit(found.v[::16])
            for place, row in enumerate(part):
                oracle = reference.bernoulli_cdf(theta, z[row], n, scale, 0.5, 3.0, mechanism)
                assert np.abs(cumulative(found, place)[::16] - oracle).max() < 3e-4


@pytest.mark.parametrize(
    "mechanism", ["laplace", pytest.param("gaussian", marks=pytest.mark.evidence)]
)
@pytest.mark.parametrize("outside", ["drop", "clamp"])
@pytest.mark.parametrize(
    ("n", "scale"),
    [
        pytest.param(3, 1.0, marks=pytest.mark.evidence),
        (10, 4.0),
        pytest.param(100, 20.0, marks=pytest.mark.evidence),
    ],
)
def test_exponential_is_the_brute_force_inversion(
    n: int, scale: float, outside: str, mechanism: str
) -> None:
    """Errata E19 with 200,000 frequencies; densities within 2e-4 of the peak."""
    z = [0.45 * n]
    given = exponential(z, n, scale, outside, mechanism)
    ((_, found),) = exact.densities(given, np.array([0]))
    rates = np.exp(found.v)
    some = np.linspace(0, len(rates) - 1, 9).astype(int)
    oracle = reference.exponential_density(
        rates[some], z[0], n, scale, (0.05, 2.0), outside, 3, 2, mechanism
    )
    oracle = oracle * rates[some]
    mine = found.values[0][some]
    mine, oracle = mine / mine.max(), oracle / oracle[mine.argmax()]
    np.testing.assert_allclose(mine, oracle, atol=2e-4)


@pytest.mark.parametrize("n", [4, 30])
def test_categories_are_the_enumeration_of_all_tables(n: int) -> None:
    """Three categories, six comparisons."""
    z = [0.5 * n + 2, 0.3 * n - 3, 0.1 * n + 1]
    alpha = [1.0, 0.5, 2.0]
    given = FamilyProblem(
        families.Categorical(("a", "b", "c")), Interval(0.0, 2.0, "keep"), "x",
        np.round([z]), np.array([float(n)]), 3.0, "laplace", priors.Dirichlet(alpha), None,
    )  # fmt: skip
    mean, sd = reference.dirichlet_moments(np.round(z), n, 3.0, alpha)  # type: ignore[arg-type]
    off = departures(summary(exact.run(given, 0, 4, 1000)), known(mean, sd))
    assert np.abs(off).max() < TOLERANCE


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_a_secret_number_of_records_is_summed_out(mechanism: str) -> None:
    """Bernoulli: over every n and s, one by one."""
    z, counted, scale = 6.0, 17.0, 2.5
    given = bernoulli([z], 17, scale, mechanism)
    given = FamilyProblem(**{**vars(given), "counted": np.array([counted]), "count_scale": scale})
    ((_, found),) = exact.densities(given, np.array([0]))
    p = special.expit(found.v)
    total = np.zeros(len(p))
    for n in range(200):
        s = np.arange(n + 1)
        noise = reference.noise_density(np.array([counted - n]), scale, mechanism)
        weight = reference.noise_density(z - s, scale, mechanism)
        total += noise * (stats.binom.pmf(s[:, None], n, p) * weight[:, None]).sum(axis=0)
    oracle = total * p * (1 - p)
    mine = found.values[0]
    np.testing.assert_allclose(mine / mine.max(), oracle / oracle.max(), atol=1e-6)


@pytest.mark.parametrize("draws", [1000, pytest.param(20_000, marks=pytest.mark.evidence)])
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("n", [100, 1000])
def test_gibbs_agrees_with_the_mixture_where_the_normal_approximation_holds(
    n: int, epsilon: float, draws: int
) -> None:
    """Four releases, eight comparisons; a twenty-fifth of an sd for the approximation.

    Found with 20,000 draws: 0.026 sd at n = 100, nothing beyond Monte-Carlo error at n = 1000.
    """
    off = difference(n, epsilon, draws, 0)
    assert (np.abs(off.mean) < 0.04 + TOLERANCE * off.mean_error).all()
    assert (np.abs(off.sd) < 0.04 + TOLERANCE * off.sd_error).all()


def test_gibbs_with_ten_records_warns_and_is_off() -> None:
    """Where the documentation says it does not hold: the sd is too small at ε = 0.01."""
    z = [2.0, 4.0, 5.0, 7.0]
    with pytest.warns(UserWarning, match="method='exact'"):
        post = gibbs.run(bernoulli(z, 10, 100.0), 0, 4, 1000)
    _, sd = reference.bernoulli_moments(5.0, 10, 100.0, 1, 1)
    assert summary(post, 2)["sd"][0] < 0.97 * sd


def test_the_thesis_samplers_in_plain_numpy() -> None:
    """Algorithm 3, and Algorithm 2 as corrected, against the batched sampler."""
    rng = np.random.default_rng(5)
    chain = reference.algorithm_3_bernoulli(rng, 40.0, 100, 10.0, 1, 1, 20_000)[1000:]
    mean, sd = reference.bernoulli_moments(40.0, 100, 10.0, 1, 1)
    # Autocorrelation of about 5: 4,000 effective draws, five standard errors, and the CLT's bias.
    assert abs(chain.mean() - mean) < 5 * sd / 4000**0.5 + 0.03 * sd
    given = exponential([30.0], 100, 3.0, "drop", "laplace")
    slow = reference.algorithm_2_exponential(rng, 30.0, 100, 3.0, (0.05, 2.0), 3, 2, 10_000)[500:]
    fast = gibbs.run(given, 0, 4, 1000).draws["rate"]
    batches = slow[: len(slow) // 50 * 50].reshape(50, -1).mean(axis=1)
    error = batches.std() / 50**0.5
    assert abs(slow.mean() - fast.mean()) < 5 * error + 5 * fast.std() / 1000**0.5


def test_regions_add_up_to_the_joint_law() -> None:
    """Errata E14 written out region by region equals the library's joint moments."""
    import jax.numpy as jnp

    from noisewise.models.exponential_family.truncation import joint_moments

    q, mean, variance = (
        np.array(v) for v in zip(*reference.exponential_regions(1.3, 0.2, 1.5), strict=True)
    )
    own = np.diag(q * variance + q * (1 - q) * mean**2)
    cross = -np.outer(q * mean, q * mean)
    covariance = np.where(np.eye(3) > 0, own, cross)
    law = jax.jit(joint_moments, static_argnums=0)
    found = law(families.Exponential(), Interval(0.2, 1.5, "drop"), jnp.array([-1.3]))
    pick = np.array([[0.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
    np.testing.assert_allclose(found.covariance, pick @ covariance @ pick.T, rtol=1e-9)
    np.testing.assert_allclose(found.mean, pick @ (q * mean), rtol=1e-9)


def test_a_narrow_mode_far_from_another_is_resolved() -> None:
    """Almost no noise, records dropped: two rates fit one sum; both widths must be right."""
    n, z = 5000, 2000.0
    given = FamilyProblem(
        families.Exponential(), Interval(0.0, 2.0, "drop"), "x", np.array([[z]]),
        np.array([float(n)]), 0.5, "laplace", priors.Gamma(1, 1), None,
    )  # fmt: skip
    ((_, found),) = exact.densities(given, np.array([0]))
    values = found.values[0]
    tops = 1 + np.flatnonzero(np.diff(np.sign(np.diff(values))) < 0)
    tops = tops[values[tops] > 1e-3 * values.max()]
    assert len(tops) == 2
    for top in tops:
        assert (values > values[top] / 2)[max(top - 40, 0) : top + 40].sum() > 15


def test_releases_between_the_located_ones_have_a_grid() -> None:
    """Many groups with many records: narrow posteriors that lie apart, between the ends."""
    n, scale = 10_000, 10.0
    z = [30.0, 70.0, 640.0, 1070.0, 4270.0, 8090.0, 9400.0, 9820.0, 9930.0]
    together = exact.run(bernoulli(z, n, scale), 0, 2, 500).draws["p"]
    for value, draws in zip(z, together, strict=True):
        mean, sd = reference.bernoulli_moments(value, n, scale, 1, 1)
        # 1,000 independent draws; five standard errors.
        assert abs(draws.mean() - mean) < 5 * sd / np.sqrt(draws.size)
        assert abs(draws.std() / sd - 1) < 0.2


def test_where_no_sum_comes_near_there_is_a_closed_form() -> None:
    """Bernoulli, 60 records, b = 15: against the sum over every s, to rounding; some are near."""
    n, scale, z = 60, 15.0, np.array([-5.0, 0.0, 30.0, 60.0])
    p = special.expit(np.linspace(-12, 12, 121))
    family, cut = families.Bernoulli(), Interval(0.0, 1.0, "keep")
    near = fourier_likelihood.sums_come_near(z, n, (0.0, 1.0), p, p * (1 - p), scale, "laplace")
    record = contribution_law(family, cut, special.logit(p)[:, None], 64)
    found = fourier_likelihood.tilted_likelihood(record, p, z, n, scale, "laplace")
    s = np.arange(n + 1)
    law = stats.binom.pmf(s[:, None], n, p)
    oracle = reference.noise_density(z[:, None] - s, scale, "laplace") @ law
    np.testing.assert_allclose(found[~near], oracle[~near], rtol=1e-10)
    # All sums lie on one side of the first two and of the last; the middle of the third is near.
    assert not near[[0, 1, 3]].any()
    assert near[2].any()
    assert not near[2].all()


def test_a_chain_starts_in_either_branch_of_a_dropped_family() -> None:
    """A mode of 2 to 4 % (few records kept) that four chains by weight would miss: R-hat sees it.

    Without a chain there, R-hat is 1.00 and nobody knows.
    """
    z = np.array([[200.0], [225.0]])
    given = FamilyProblem(
        families.Exponential(), Interval(0.0, 2.0, "drop"), "x", z, np.full(2, 500.0), 4.0,
        "laplace", priors.Gamma(3, 1), (0, 1),
    )  # fmt: skip
    share = (exact.run(given, 0, 4, 1000).draws["rate"] < 0.9).mean(axis=(1, 2))
    assert ((share > 0.01) & (share < 0.06)).all()
    post = gibbs.run(given, 0, 4, 250)
    assert (post.rhat["rate"] > 1.1).all()
    assert not post.converged
