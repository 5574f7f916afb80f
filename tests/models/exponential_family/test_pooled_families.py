"""Pooled shares and rates against brute force, in their limits, and through ``infer``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

import noisewise as nw
from noisewise.artifact import ArgumentError
from noisewise.inference.population import PublicFeatures, public_features
from noisewise.models.exponential_family import families, pooled, pooled_density
from noisewise.models.exponential_family.pooled_population import PooledProblem, hyperprior
from noisewise.models.exponential_family.posterior import FamilyPosterior
from noisewise.models.exponential_family.problem import FamilyProblem
from noisewise.models.exponential_family.truncation import Interval
from noisewise.priors import Population
from tests.reference.pooled_family_reference import grid_posterior

N = np.array([30, 60, 45])
Z = np.array([7.0, 25.0, 9.0])
FEATURES = np.column_stack([np.ones(4), [1.0, -1.0, 0.5, -0.5]])
MAX_KS = 0.05
"""Distance between 8,000 draws, of which some 2,000 are effective, and a CDF: below 0.036 in 99 of
100 seeds; the seeds are fixed."""


def shares(z: np.ndarray = Z, n: np.ndarray = N, scale: float = 2.0, **words: Any) -> FamilyProblem:
    return FamilyProblem(
        families.Bernoulli(), Interval(0.0, 1.0, "keep"), "owns", z[:, None], n.astype(float),
        scale, words.pop("mechanism", "laplace"), nw.priors.Beta(1, 1), tuple(range(len(z))),
        **words,
    )  # fmt: skip


def rates(z: np.ndarray = Z, n: np.ndarray = N, scale: float = 6.0) -> FamilyProblem:
    return FamilyProblem(
        families.Poisson(), Interval(0.0, 40.0, "clamp"), "visits", z[:, None], n.astype(float),
        scale, "laplace", nw.priors.Gamma(1, 1 / 2), tuple(range(len(z))),
    )  # fmt: skip


def pose(problem: FamilyProblem, features: Any = None, **prior: Any) -> PooledProblem:
    keys = problem.keys or ()
    given = PublicFeatures(FEATURES[: len(keys), :1]) if features is None else features
    return PooledProblem(problem, given, Population(**prior))


def ks(draws: np.ndarray, at: np.ndarray, cdf: np.ndarray) -> float:
    """The largest distance between draws and a CDF that is known at some points."""
    return float(np.abs(np.searchsorted(np.sort(draws.ravel()), at) / draws.size - cdf).max())


AXES = [np.linspace(-4, 3, 60), np.linspace(0.003, 0.997, 60)]


@pytest.mark.parametrize(
    "mechanism", ["laplace", pytest.param("gaussian", marks=pytest.mark.evidence)]
)
def test_shares_agree_with_brute_force(mechanism: str) -> None:
    post = pooled.run(pose(shares(mechanism=mechanism)), 1, 4, 2000)
    truth = grid_posterior(
        AXES, Z, N, 2.0, mechanism, shares=True, middle=0.0, coefficient_sd=2.5, spread_scale=0.5,
        sums=61,
    )  # fmt: skip
    drawn = post.population
    assert drawn is not None
    mean = drawn.draws["mean of p"]
    at = np.linspace(-2.5, 1.5, 40)
    assert ks(special.logit(mean), at, truth.cdf_of_population(0, at)) < MAX_KS
    spread = drawn.draws["sd of p"] / np.sqrt(mean * (1 - mean))
    at = np.linspace(0.05, 0.9, 40)
    assert ks(spread, at, truth.cdf_of_population(1, at)) < MAX_KS
    for group in range(3):
        at = np.linspace(0.05, 0.8, 40)
        cdf = truth.cdf_of_group(group, at, 61)
        assert ks(post.draws["p"][group], at, cdf) < MAX_KS


def test_rates_agree_with_brute_force() -> None:
    z = np.array([40.0, 150.0, 60.0])
    post = pooled.run(pose(rates(z)), 2, 4, 2000)
    middle = float(hyperprior(pose(rates(z))).mean[0])
    assert middle == pytest.approx(np.log(2), abs=0.02)
    truth = grid_posterior(
        [np.linspace(-3, 4, 50), np.linspace(0.01, 6, 100)], z, N, 6.0, "laplace", shares=False,
        middle=middle, coefficient_sd=2.5, spread_scale=0.5, sums=260,
    )  # fmt: skip
    assert post.population is not None
    at = np.linspace(-1, 2, 40)
    mean = post.population.draws["mean of rate"]
    assert ks(np.log(mean), at, truth.cdf_of_population(0, at)) < MAX_KS
    at = np.linspace(0.1, 4, 40)
    spread = post.population.draws["sd of rate"] / mean
    assert ks(spread, at, truth.cdf_of_population(1, at)) < MAX_KS
    for group in (0, 1):
        at = np.linspace(0.7, 3.5, 40)
        assert ks(post.draws["rate"][group], at, truth.cdf_of_group(group, at, 260)) < MAX_KS


def test_features_agree_with_brute_force() -> None:
    z, n = np.array([5.0, 40.0, 12.0, 30.0]), np.array([40, 60, 45, 50])
    given = PublicFeatures(FEATURES, ("rural",), np.zeros(1), np.full(1, 2.0))
    post = pooled.run(pose(shares(z, n), given), 3, 4, 2000)
    axes = [np.linspace(-3, 3, 25), np.linspace(-4, 4, 30), np.linspace(0.01, 0.99, 20)]
    truth = grid_posterior(
        axes, z, n, 2.0, "laplace", shares=True, middle=0.0, coefficient_sd=2.5, spread_scale=0.5,
        sums=61, features=FEATURES,
    )  # fmt: skip
    assert post.population is not None
    at = np.linspace(-2, 0.5, 30)
    slope = post.population.draws["rural"] * 2.0
    assert ks(slope, at, truth.cdf_of_population(1, at)) < MAX_KS
    assert (slope < 0).mean() > 0.9


def test_the_population_speaks_for_a_group_without_records() -> None:
    n = np.array([30, 60, 0])
    post = pooled.run(pose(shares(n=n)), 4, 4, 2000)
    truth = grid_posterior(
        AXES, Z[:2], n[:2], 2.0, "laplace", shares=True, middle=0.0, coefficient_sd=2.5,
        spread_scale=0.5, sums=61, features=np.ones((3, 1)), all_sizes=n,
    )  # fmt: skip
    at = np.linspace(0.05, 0.95, 30)
    rows = np.random.default_rng(0).choice(len(truth.rows), 20_000, p=truth.weight)
    beta, spread = truth.rows[rows].T
    # Of middling size, since nothing is known of it.
    k = 1 / spread**2 - 1
    told = np.random.default_rng(1).beta(k * special.expit(beta), k * special.expit(-beta))
    assert ks(post.draws["p"][2], at, np.searchsorted(np.sort(told), at) / len(told)) < MAX_KS
    assert post.shrinkage["p"][2] < 0.2


def test_without_noise_it_is_the_hierarchical_model_of_the_counts() -> None:
    post = pooled.run(pose(shares(scale=0.02)), 5, 4, 2000)
    truth = grid_posterior(
        AXES, Z, N, 1e-3, "laplace", shares=True, middle=0.0, coefficient_sd=2.5, spread_scale=0.5,
        sums=61,
    )  # fmt: skip
    at = np.linspace(0.05, 0.7, 40)
    assert ks(post.draws["p"][1], at, truth.cdf_of_group(1, at, 61)) < MAX_KS


def test_groups_that_do_not_differ_are_pooled_completely() -> None:
    post = pooled.run(pose(shares(), spread=1e-5), 6, 4, 2000)
    drawn = post.draws["p"]
    assert np.abs(drawn - drawn[0]).max() < 0.02
    p = np.linspace(0.01, 0.99, 1000)
    s = np.arange(61)
    log = -(special.logit(p) ** 2) / 2 / 2.5**2 - np.log(p * (1 - p))
    for z, n in zip(Z, N, strict=True):
        given = stats.binom.pmf(s, n, p[:, None])
        log = log + np.log(given @ np.exp(-np.abs(z - s) / 2.0))
    cdf = np.cumsum(np.exp(log - log.max()))
    assert ks(drawn[0], p, cdf / cdf[-1]) < MAX_KS


@pytest.mark.parametrize("spread", [1e-4, 0.2, 0.8])
def test_integrals_are_those_of_adaptive_quadrature(spread: float) -> None:
    """Of a likelihood 60 times narrower than the population, and of one 100 times wider."""
    z, n = np.array([7.0, 30_000.0, 0.0]), np.array([30, 100_000, 400])
    table = pooled_density.likelihood_table(shares(z, n))
    sizes = jnp.array([-0.5, 1.2, -0.7])
    public = pooled_density.PublicGroups(jnp.ones((3, 1)), sizes, sizes / sizes.std())
    law = pooled_density.group_law("unit", jnp.array([-0.9, 0.3, 0.4, np.log(spread)]), public)
    masses = pooled_density.integrand("unit", table, law).log_masses()
    got = np.asarray(jax.scipy.special.logsumexp(masses, axis=1))
    for g in range(3):
        # The reference: a dense grid over the population's own quantiles and the likelihood's.
        k, m = float(law.concentration[g]), float(special.expit(law.centre[g]))
        ends = np.clip(stats.beta.ppf([1e-13, 1 - 1e-13], k * m, k * (1 - m)), 1e-80, 1 - 1e-16)
        left, right = special.logit(ends)
        low = float(table.start[g])
        high = low + float(table.step[g]) * 1023
        v = np.append(np.linspace(left, right, 20_001), np.linspace(low, high, 20_001))
        v = np.unique(v)
        one = table.at(jnp.asarray(np.broadcast_to(v, (3, len(v)))))[g]
        wide = jnp.asarray(np.broadcast_to(v, (3, len(v))))
        f = np.exp(np.asarray(one + pooled_density.log_density("unit", law, wide)[g]))
        want = np.log(np.trapezoid(f, v))
        assert got[g] == pytest.approx(want, abs=2e-3)


def test_integrals_of_a_narrow_likelihood_do_not_depend_on_where_a_grid_happens_to_lie() -> None:
    """Populations two hundred times wider, whose coarse points now and then lie within it."""
    table = pooled_density.likelihood_table(shares(np.array([30_000.0]), np.array([100_000])))
    public = pooled_density.PublicGroups(jnp.ones((1, 1)), jnp.zeros(1), jnp.zeros(1))
    v = np.asarray(table.start + table.step * np.arange(1024))
    given = np.exp(np.asarray(table.values[0]))
    for middle in np.linspace(-2.0, 1.0, 60):
        psi = jnp.array([middle, 0.0, 0.0, np.log(0.7)])
        law = pooled_density.group_law("unit", psi, public)
        ours = float(pooled_density.log_marginal("unit", table, law))
        prior = np.asarray(pooled_density.log_density("unit", law, jnp.asarray(v)[None])[0])
        assert ours == pytest.approx(np.log(np.trapezoid(given * np.exp(prior), v)), abs=2e-3)


def test_chains_of_independent_proposals_leave_the_target_unchanged() -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_t(5, 20_000)
    weight = stats.expon.logpdf(rows + 1) - stats.t.logpdf(rows, 5)
    kept = pooled.independence_chains(rng, np.arange(20_000).reshape(4, -1), weight)
    assert stats.kstest(rows[kept].ravel()[::5] + 1, "expon").statistic < 0.04


# -- through infer ---------------------------------------------------------------------------------


def people(groups: int = 3, column: str = "owns") -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return records, and public features that tell much of the groups' shares."""
    rng = np.random.default_rng(3)
    poverty = np.linspace(0, 0.5, groups)
    size = rng.integers(150, 250, groups)
    p = special.expit(1 - 4 * poverty)
    area = np.repeat([f"area {g}" for g in range(groups)], size)
    records = pd.DataFrame({"area": area, column: rng.binomial(1, np.repeat(p, size))})
    return records, pd.DataFrame({"area": [f"area {g}" for g in range(groups)], "poverty": poverty})


def release_of(records: pd.DataFrame, features: pd.DataFrame, **words: Any) -> Any:
    return nw.release.exponential_family(
        records, column="owns", family="bernoulli",
        groups={"area": [*features["area"], "nobody"]}, epsilon=5.0, **words,
    )  # fmt: skip


@pytest.fixture(scope="module")
def pooled_areas() -> tuple[Any, pd.DataFrame, nw.Posterior]:
    records, features = people()
    features = pd.concat([features, pd.DataFrame({"area": ["nobody"], "poverty": [0.4]})])
    given = release_of(records, features.iloc[:-1])
    return given, features, nw.infer(given, pool=True, features=features, draws=500)


def test_infer_pools_groups_with_features(pooled_areas: Any) -> None:
    given, _, post = pooled_areas
    assert post.keys == given.groups.keys
    assert post.converged, post.status
    population = post.population.summary()
    assert list(population.index) == [
        "mean of p",
        "sd of p",
        "poverty",
        "log size",
        "size exponent",
    ]
    assert population.loc["poverty", "mean"] < 0
    assert "drawn towards the others" in post.status
    table = post.ranks()
    assert table["rank"].between(1, 4).all()
    above = post.probability_above(0.5)
    assert above.loc["nobody", "probability"] < 0.5
    assert set(post.shrinkage) == {"p"}


def test_the_same_seed_gives_the_same_draws() -> None:
    first, again = (pooled.run(pose(shares()), 7, 4, 100) for _ in range(2))
    assert np.array_equal(first.draws["p"], again.draws["p"])


def test_a_new_group_is_predicted_by_its_features(pooled_areas: Any) -> None:
    _, _, post = pooled_areas
    poor = post.predict(new_group=True, features={"poverty": 0.5})
    rich = post.predict(new_group=True, features={"poverty": 0.0})
    assert poor.draws.shape == (4, 500)
    assert poor.mean < 0.5 < rich.mean
    with pytest.raises(ArgumentError, match="features: 'poverty' is missing; a new group needs it"):
        post.predict(new_group=True)
    with pytest.raises(ArgumentError, match="features: goes with a new group"):
        post.predict(features={"poverty": 0.5})


def test_pooled_posteriors_are_kept_in_files(pooled_areas: Any, tmp_path: Path) -> None:
    _, _, post = pooled_areas
    back = nw.load_posterior(post.save(tmp_path / "areas.nc"))
    assert isinstance(back, FamilyPosterior)
    assert back.population is not None
    pd.testing.assert_frame_equal(back.population.summary(), post.population.summary())
    assert np.allclose(back.shrinkage["p"], post.shrinkage["p"])
    assert back.status == post.status
    told = [p.predict(new_group=True, features={"poverty": 0.2}).mean for p in (post, back)]
    assert told[0] == told[1]


def test_secret_sizes_are_pooled() -> None:
    records, features = people(3)
    given = nw.release.exponential_family(
        records, column="owns", family="bernoulli", groups={"area": list(features["area"])},
        epsilon=1.0, neighbours="add-remove",
    )  # fmt: skip
    assert given.n is None
    post = nw.infer(given, pool=True, draws=200)
    assert post.draws["p"].shape == (3, 4, 200)


def test_a_prior_of_the_population_is_taken() -> None:
    records, features = people(3)
    given = nw.release.exponential_family(
        records, column="owns", family="bernoulli", groups={"area": list(features["area"])},
        epsilon=1.0,
    )  # fmt: skip
    tight = nw.infer(given, pool=True, prior={"population": Population(spread=1e-5)}, draws=200)
    assert np.ptp(tight.summary()["mean"]) < 0.01
    assert tight.prior == "Population(spread=1e-05, coefficients=2.5, by_size=True)"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"prior": nw.priors.Beta(1, 1)}, "prior: pooled groups take .*population.*not Beta"),
        ({"prior": {"population": Population(spread={"q": 1})}}, "spread: 'q' is no parameter"),
        ({"parent": "county"}, "parent: 'county' must be a column of features"),
    ],
)
def test_bad_words_of_pooling(words: dict[str, Any], says: str) -> None:
    records, features = people(3)
    given = nw.release.exponential_family(
        records, column="owns", family="bernoulli", groups={"area": list(features["area"])},
        epsilon=1.0,
    )  # fmt: skip
    with pytest.raises(ArgumentError, match=says):
        nw.infer(given, pool=True, **words)


def test_families_with_several_parameters_say_which_can_pool() -> None:
    records, features = people(3)
    given = nw.release.exponential_family(
        records, column="owns", family="normal", bounds=(0, 1),
        groups={"area": list(features["area"])}, epsilon=1.0,
    )  # fmt: skip
    with pytest.raises(
        ArgumentError, match=r"pool: normal columns have several parameters; .*poiss"
    ):
        nw.infer(given, pool=True)


def test_public_features_of_the_release_are_aligned_by_key() -> None:
    _, features = people(8)
    keys = tuple(features["area"])
    given = public_features(features.sample(frac=1, random_state=1), keys, "area")
    assert np.allclose(given.values[:, 1] * given.unit + given.centre, features["poverty"])


@pytest.mark.parametrize(("mean", "spread"), [(0.5, 0.5), (0.5, 0.99), (0.01, 0.9), (0.001, 0.5)])
def test_populations_keep_all_their_mass(mean: float, spread: float) -> None:
    """Even where most groups have a share that is zero for all that could be seen."""
    law = pooled_density.group_law(
        "unit", jnp.array([special.logit(mean), 0.1, 0.3, np.log(spread)]),
        pooled_density.PublicGroups(jnp.ones((1, 1)), jnp.zeros(1), jnp.zeros(1)),
    )  # fmt: skip
    kappa = float(law.concentration[0])
    v, n = np.linspace(-30, 0, 1024), 50
    level = pooled_density.LikelihoodTable(
        jnp.array([-1.0]), jnp.array([2 / 1023]), jnp.zeros((1, 1024))
    )
    none_of_fifty = pooled_density.LikelihoodTable(
        jnp.array([-30.0]), jnp.array([v[1] - v[0]]), jnp.asarray(-n * np.logaddexp(0, v))[None]
    )
    a, b = kappa * mean, kappa * (1 - mean)
    exact = special.betaln(a, b + n) - special.betaln(a, b)
    assert float(pooled_density.log_marginal("unit", level, law)) == pytest.approx(0, abs=2e-4)
    found = float(pooled_density.log_marginal("unit", none_of_fifty, law))
    assert found == pytest.approx(exact, abs=2e-4)
    keys = jax.random.split(jax.random.key(0), 4000)
    drawn = jax.vmap(lambda k: pooled_density.draw_groups(k, "unit", level, law)[0])(keys)
    for low in (-100.0, -10.0, 0.0):
        below = special.betainc(a, b, special.expit(low))
        assert abs(float((drawn < low).mean()) - below) < 0.04


def test_small_groups_that_noise_hides_are_wider_where_they_may_differ_more() -> None:
    rng = np.random.default_rng(8)
    n = np.array([40] * 12 + [2000] * 12)
    p = rng.beta(40, 60, 24)
    given = shares(rng.binomial(n, p).astype(float), n, scale=40.0)
    widths = {}
    for by_size in (True, False):
        post = pooled.run(pose(given, features=PublicFeatures(np.ones((24, 1))), by_size=by_size),
                          0, 4, 500)  # fmt: skip
        low, high = np.quantile(post.draws["p"].reshape(24, -1), [0.025, 0.975], axis=1)
        widths[by_size] = (high - low)[:12].mean()
        assert post.population is not None
        names = {"log size", "size exponent"}
        assert names & set(post.population.draws) == (names if by_size else set())
    assert widths[True] > 1.15 * widths[False]


def test_the_mean_may_depend_on_the_size() -> None:
    """Large groups with large shares, small ones with small shares that the noise hides."""
    n = np.repeat(np.geomspace(20, 5000, 30).astype(int), 2)
    p = special.expit(-2.5 + 0.4 * np.log(n))
    rng = np.random.default_rng(9)
    given = shares(rng.binomial(n, p).astype(float), n, scale=10.0)
    errors = {}
    for by_size in (True, False):
        post = pooled.run(pose(given, features=PublicFeatures(np.ones((60, 1))), by_size=by_size),
                          0, 4, 500)  # fmt: skip
        drawn = post.draws["p"].reshape(60, -1)
        errors[by_size] = np.abs(np.median(drawn, axis=1) - p)[:20].mean()
    assert errors[True] < 0.6 * errors[False]
    assert post.population is not None
