"""Several releases of the same records in one posterior: likelihoods multiply."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from noisewise.models.linear_regression import exact
from noisewise.models.linear_regression.coordinates import full_rank, point, released
from noisewise.models.linear_regression.problem import RegressionProblem, combined_problem, subset
from tests.inference import calibration
from tests.inference.agreement import TOLERANCE, departures, summary
from tests.inference.regressions import CHAINS, DRAWS, paper_table, problem
from tests.reference import regression_reference as reference

pytestmark = pytest.mark.xdist_group("combining")


def observed(
    n: int, scale: float, seed: int, mechanism: str = "laplace", groups: int = 2
) -> RegressionProblem:
    """The same records whatever the scale, seed and mechanism of the noise."""
    rng = np.random.default_rng(n)
    tables = [paper_table(rng, n) for _ in range(groups)]
    return problem(tables, scale, seed=seed, mechanism=mechanism)  # type: ignore[arg-type]


def test_exact_matches_importance_sampling() -> None:
    """Two Laplace releases, mean and sd of three parameters on two data sets: 12 comparisons.

    And with the second so noisy that it says nothing, the posterior of the first: 6 more.
    """
    one, two = observed(100, 4.0, 1), observed(100, 6.0, 2)
    both = combined_problem([one, two])
    deaf = subset(combined_problem([one, replace(two, noise_scale=1e7)]), np.array([0]))
    deaf = replace(deaf, keys=(0,))
    for given, others in ((both, True), (deaf, False)):
        post = exact.run(given, 0, CHAINS, DRAWS)
        assert post.converged, post.status
        for group in range(2 if others else 1):
            more = [(two.z[group], 6.0, "laplace")] if others else []
            found = reference.importance(
                one.z[group], 100, 4.0, reference.paper_priors(), draws=500_000, others=more
            )
            assert found.effective > 1000
            off = departures(summary(post, group), vars(found))
            assert np.abs(off).max() < TOLERANCE


@pytest.mark.evidence
@pytest.mark.parametrize("mechanisms", [("laplace", "gaussian"), ("laplace",) * 3])
def test_mixed_and_more_releases_match_importance_sampling(mechanisms: tuple[str, ...]) -> None:
    """Two data sets, 12 comparisons each."""
    parts = [observed(50, 3.0 + i, i, m) for i, m in enumerate(mechanisms)]
    post = exact.run(combined_problem(parts), 0, CHAINS, DRAWS)
    assert post.converged, post.status
    for group in range(2):
        first, *others = [(p.z[group], p.noise_scale, p.mechanism) for p in parts]
        found = reference.importance(
            first[0], 50, first[1], reference.paper_priors(), draws=2_000_000, others=others
        )
        assert found.effective > 1000
        off = departures(summary(post, group), vars(found))
        print(f"{mechanisms}: worst {np.abs(off).max():.2f} standard errors")
        assert np.abs(off).max() < TOLERANCE


@pytest.mark.parametrize(
    "mechanisms",
    [("laplace", "laplace"), ("laplace", "gaussian"), ("gaussian", "gaussian"), ("laplace",) * 3],
)
def test_the_density_is_the_product_of_likelihoods(mechanisms: tuple[str, ...]) -> None:
    """At five points, against the same density with one release and the oracle's likelihoods."""
    parts = [
        observed(40, 2.0 + i, i, mechanism, groups=1) for i, mechanism in enumerate(mechanisms)
    ]
    both = combined_problem(parts)
    shape = full_rank(2)
    kinds = both.mechanism, *(o.mechanism for o in both.others)
    density, alone = exact.target(shape, *kinds).density, exact.target(shape, kinds[0]).density
    data, first = exact._data(both, looped=True), exact._data(parts[0], looped=True)

    @jax.jit
    @jax.vmap
    def told(v: jax.Array) -> tuple[jax.Array, jax.Array]:
        more = density(v, data, jnp.asarray(1.0))[1] - alone(v, first, jnp.asarray(1.0))[1]
        return more, released(point(v, shape, data.n), noisy_n=False)

    more, sums = told(jnp.asarray(np.random.default_rng(5).normal(0, 0.5, (5, shape.dimension))))
    noise = {"laplace": reference.log_laplace, "gaussian": reference.log_normal}
    rest = sum(noise[p.mechanism](p.z[0], np.asarray(sums), p.noise_scale) for p in parts[1:])
    differences = np.asarray(more) - rest
    np.testing.assert_allclose(differences, differences[0], rtol=0, atol=1e-7)


def test_gaussian_releases_become_one() -> None:
    """Exactly: precisions add, sums are weighted by them; so nothing new is compiled."""
    one, two = observed(50, 2.0, 1, "gaussian"), observed(50, 4.0, 2, "gaussian")
    both = combined_problem([one, two])
    assert both.others == ()
    assert both.noise_scale == pytest.approx((1 / 4 + 1 / 16) ** -0.5)
    np.testing.assert_allclose(both.z, (one.z / 4 + two.z / 16) / (1 / 4 + 1 / 16))
    three = combined_problem([one, observed(50, 3.0, 3), two])
    assert (three.mechanism, len(three.others)) == ("laplace", 1)
    np.testing.assert_array_equal(three.others[0].z, both.z)


def test_groups_are_taken_from_every_release() -> None:
    both = combined_problem([observed(50, 2.0, 1), observed(50, 3.0, 2)])
    some = subset(both, np.array([1]))
    np.testing.assert_array_equal(some.z, both.z[1:])
    np.testing.assert_array_equal(some.others[0].z, both.others[0].z[1:])


def test_a_secret_n_is_known_better() -> None:
    rng = np.random.default_rng(0)
    tables = [paper_table(rng, 60)]
    one, two = (problem(tables, 5.0, seed=s, noisy_n=True) for s in (1, 2))
    both = combined_problem([one, two])
    assert both.n == pytest.approx((one.z[:, -1] + two.z[:, -1]) / 2)


TRIALS, RECORDS = 200, 1000


@pytest.mark.evidence
def test_two_releases_at_half_epsilon_are_calibrated_and_shorter() -> None:
    """200 trials, n = 1000, ε = 0.5 twice, as groups of one batch.

    Ranks of three parameters: Kolmogorov-Smirnov at 5e-4 each, coverage of 95 % intervals between
    the 2.5e-4 quantiles of a binomial: false alarms in 3 of 1,000 seeds. The seed is fixed.
    """
    quiet, truth = calibration.simulate(TRIALS, RECORDS, 1e9, 1, seed=11)
    scale = quiet.noise_scale * 1e9 / 0.5
    rng = np.random.default_rng(12)
    one, two = (
        replace(quiet, z=quiet.z + rng.laplace(0, scale, quiet.z.shape), noise_scale=scale)
        for _ in range(2)
    )
    both = combined_problem([one, two])
    posts = [exact.run(given, 3, CHAINS, DRAWS) for given in (one, two, both)]
    widths = np.array([[np.ptp(np.quantile(v, [0.025, 0.975], axis=(1, 2)), axis=0)
                        for v in post.draws.values()] for post in posts])  # fmt: skip
    ratio = widths[2] / widths[:2]
    distance, covered = calibration.judged(posts[2], truth)
    print(
        f"both: KS {np.round(distance, 3)}, coverage {np.round(covered, 3)}, not converged "
        f"{len(posts[2].unconverged)}; widths over those of either alone: mean "
        f"{np.round(ratio.mean(axis=-1), 3).tolist()}, shorter in "
        f"{np.round((ratio < 1).mean(axis=-1), 3).tolist()}"
    )
    assert len(posts[2].unconverged) <= TRIALS // 100
    assert (distance < stats.kstwo.ppf(1 - 5e-4, TRIALS)).all()
    low, high = stats.binom.ppf([2.5e-4, 1 - 2.5e-4], TRIALS, 0.95) / TRIALS
    assert ((covered >= low) & (covered <= high)).all()
    assert (widths[2].mean(axis=-1) < widths[:2].mean(axis=-1)).all()
