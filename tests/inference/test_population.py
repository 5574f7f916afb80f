"""Populations of pooled groups: judgements, ranks, exceedances and public features."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import noisewise as nw
from noisewise.artifact import ArgumentError
from noisewise.inference.population import (
    SIZE_EXPONENT,
    PopulationPosterior,
    exceedance,
    log_relative_sizes,
    public_features,
    ranks,
    standard_sizes,
)

RNG = np.random.default_rng(7)
KEYS = ("a", "b", "c", "d")


def population(**draws: np.ndarray) -> PopulationPosterior:
    prior = {"mean": RNG.normal(0, 3, 4000), "sd": np.abs(RNG.standard_t(2, 4000)) / 2}
    return PopulationPosterior(draws, prior, deviations=("sd",))


def test_the_judgement_compares_posterior_and_prior() -> None:
    learnt = population(mean=RNG.normal(1, 0.1, (4, 500)), sd=RNG.normal(0.3, 0.03, (4, 500)))
    assert set(learnt.judgement.values()) == {"learnt from data"}
    assert learnt.cautions == ()
    prior = population(mean=RNG.normal(0, 3, (4, 500)), sd=np.abs(RNG.standard_t(2, (4, 500))) / 2)
    assert set(prior.judgement.values()) == {"mostly prior"}
    bounded = population(mean=RNG.normal(1, 0.1, (4, 500)), sd=RNG.uniform(0, 0.2, (4, 500)))
    assert bounded.judgement == {"mean": "learnt from data", "sd": "upper bound only"}
    assert "from above only" in bounded.cautions[0]


def test_convergence_is_told() -> None:
    good = population(mean=RNG.normal(1, 0.1, (4, 500)))
    assert good.converged
    stuck = population(mean=RNG.normal(1, 0.1, (4, 500)) + np.arange(4)[:, None])
    assert not stuck.converged
    assert "population not converged: R-hat up to" in stuck.convergence
    table = good.summary(0.9)
    assert table["lower"].item() < 1 < table["upper"].item()
    with pytest.raises(ArgumentError, match="interval: must be between 0 and 1"):
        good.summary(1.5)


def test_shrinkage_is_the_share_that_records_take_away() -> None:
    shared = PopulationPosterior({}, {}, variance={"p": np.array([4.0, 4.0])})
    values = RNG.normal(0, [[[1.0]], [[2.0]]], (2, 4, 20_000))
    np.testing.assert_allclose(shared.shrinkage({"p": values})["p"], [0.75, 0.0], atol=0.05)
    # One draw in a hundred far away, as tails without a variance have it.
    values[:, :, ::100] *= 1e6
    np.testing.assert_allclose(shared.shrinkage({"p": values})["p"], [0.75, 0.0], atol=0.1)


def test_ranks_are_those_of_every_draw() -> None:
    values = RNG.normal(np.arange(20)[:, None, None], 2.0, (20, 2, 300))
    table = ranks(values, range(20))
    flat = values.reshape(20, -1)
    plain = np.array([[1 + (flat[:, d] > flat[g, d]).sum() for d in range(600)] for g in range(20)])
    assert np.array_equal(table["rank"], np.median(plain, axis=1))
    assert np.array_equal(table["top_decile"], (plain <= 2).mean(axis=1))
    assert np.array_equal(table["bottom_decile"], (plain >= 19).mean(axis=1))
    inside = (plain >= table[["lower"]].to_numpy()) & (plain <= table[["upper"]].to_numpy())
    assert (inside.mean(axis=1) >= 0.95).all()
    assert table["top_decile"].sum() == pytest.approx(2)


def test_exceedance_is_a_share_of_draws() -> None:
    values = RNG.normal(0, 1, (4, 2, 500))
    table = exceedance(values, KEYS, 0.5)
    assert table["probability"].tolist() == (values > 0.5).mean(axis=(1, 2)).tolist()
    assert list(table.index) == list(KEYS)
    with pytest.raises(ArgumentError, match="threshold: must be a finite number"):
        exceedance(values, KEYS, float("nan"))


FEATURES = pd.DataFrame({
    "area": ["d", "c", "b", "a", "elsewhere"],
    "poverty": [0.4, 0.3, 0.2, 0.1, 9.0],
    "rural": [1, 0, 0, 1, 1],
})  # fmt: skip


@pytest.mark.parametrize("table", [FEATURES, FEATURES.set_index("area"), FEATURES.to_dict("list")])
def test_features_are_aligned_and_standardised(table: object) -> None:
    got = public_features(table, KEYS, "area")
    assert got.names == ("poverty", "rural")
    assert np.allclose(got.values.mean(axis=0), (1, 0, 0))
    assert np.allclose(got.values[:, 1:].std(axis=0), 1)
    assert np.allclose(got.values[:, 1] * got.unit[0] + got.centre[0], (0.1, 0.2, 0.3, 0.4))
    assert np.allclose(got.row({"poverty": 0.2, "rural": 0}), got.values[1])


def test_keys_may_be_numbers_in_one_table_and_text_in_the_other() -> None:
    table = pd.DataFrame({"x": [3.0, 1.0, 2.0]}, index=["3", "1", "2"])
    assert np.allclose(public_features(table, (1, 2, 3), "area").values[:, 1] > 0, (0, 0, 1))


def test_numbers_of_rows_are_no_keys() -> None:
    """A table that lost its keys would give every group the features of another."""
    table = pd.DataFrame({"x": [3.0, 1.0, 2.0, 5.0]})
    with pytest.raises(ArgumentError, match="features: there is no column 'area', which must hold"):
        public_features(table, (1, 2, 3), "area")
    table.index = pd.Index([1, 2, 3, 4], name="area")
    assert len(public_features(table, (1, 2, 3), "area").values) == 3


def test_parents_are_places_in_their_list() -> None:
    table = FEATURES.assign(county=["x", "y", "z", "x", "w"])
    got = public_features(table, KEYS, "area", parent="county")
    assert got.names == ("poverty", "rural")
    assert got.parent_of is not None
    assert [got.parents[i] for i in got.parent_of] == ["x", "z", "y", "x"]


@pytest.mark.parametrize(
    ("change", "parent", "message"),
    [
        (lambda t: t[t["area"] != "b"], None, "features: there is no row for group 'b'"),
        (lambda t: pd.concat([t, t]), None, "features: group 'd' has two rows"),
        (lambda t: t.assign(a=[1, 4, 9, 2, 8], b=[2, 7, 1, 8, 2]), None,
         "features: must be fewer than the 4 groups, not 4"),
        (lambda t: t.assign(poverty=0.1), None, "features: 'poverty' is the same in every group"),
        (lambda t: t.assign(wealth=1 - t["poverty"]), None, "features: 'wealth' follows from"),
        (lambda t: t.assign(poverty=np.nan), None, "features: 'poverty' is missing or infinite"),
        (lambda t: t.assign(county="x"), None, "features: 'county' holds no numbers"),
        (lambda t: t, "county", "parent: 'county' is no column of features"),
        (lambda t: t.assign(county="x"), "county", "parent: 'county' names 1; at least 3"),
        (lambda t: t.assign(county=None), "county", "parent: 'county' must hold text"),
        (lambda t: 5, None, "features: must be a data frame, or columns by name, not int"),
        (lambda t: None, "county", "parent: 'county' must be a column of features"),
    ],
)  # fmt: skip
def test_bad_features_are_refused_in_one_sentence(change, parent, message) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ArgumentError, match=message):
        public_features(change(FEATURES), KEYS, "area", parent)


def test_names_of_the_population_s_own_parameters_are_no_features() -> None:
    for name in ("log size", "size exponent"):
        table = FEATURES.rename(columns={"poverty": name})
        with pytest.raises(ArgumentError, match=f"features: '{name}' is what .* call it otherwise"):
            public_features(table, KEYS, "area")


def test_a_new_group_needs_every_feature() -> None:
    got = public_features(FEATURES, KEYS, "area")
    with pytest.raises(ArgumentError, match="features: 'rural' is missing"):
        got.row({"poverty": 0.2})
    with pytest.raises(ArgumentError, match="features: 'age' is no feature; there are poverty"):
        got.row({"age": 0.2})
    with pytest.raises(ArgumentError, match="features: 'rural' must be a number"):
        got.row({"poverty": 0.2, "rural": "no"})  # type: ignore[dict-item]
    assert public_features(None, KEYS, "area").row(None).tolist() == [1.0]


def test_the_prior_of_a_population_is_checked() -> None:
    prior = nw.priors.Population(spread={"pir": 0.1}, coefficients=2)
    assert prior.spread_of("pir", 0.5) == 0.1
    assert prior.spread_of("intercept", 0.5) == 0.5
    assert nw.priors.Population().spread_of("p", 0.5) == 0.5
    with pytest.raises(ValueError, match="spread: must be above zero"):
        nw.priors.Population(spread=0)
    with pytest.raises(ValueError, match="spread of 'pir': must be above zero"):
        nw.priors.Population(spread={"pir": -1})
    with pytest.raises(ValueError, match="coefficients: must be a finite number"):
        nw.priors.Population(coefficients=float("inf"))
    with pytest.raises(ValueError, match="prior: by_size must be True or False, not 1"):
        nw.priors.Population(by_size=1)  # type: ignore[arg-type]


def test_sizes_are_relative_to_the_geometric_mean_of_those_that_are_known() -> None:
    logs = log_relative_sizes(np.array([0.0, 1.0, 100.0]))
    assert np.exp(logs[2] - logs[1]) == pytest.approx(100)
    assert logs[0] == 0
    assert logs.sum() == pytest.approx(0)
    assert standard_sizes(logs).std() == pytest.approx(1)
    assert not standard_sizes(log_relative_sizes(np.full(4, 7.0))).any()
    # Twelve groups without records do not move the middle of the others.
    with_empty = log_relative_sizes(np.array([800.0, 1000, 1250] + [1.0] * 12), noise=2.0)
    assert with_empty[:3] == pytest.approx(np.log([0.8, 1, 1.25]))
    assert not with_empty[3:].any()
    rng = np.random.default_rng(0)
    assert not log_relative_sizes(1000 + rng.laplace(0, 5, 24), noise=5.0).any()


def test_it_is_said_where_small_groups_rest_on_other_tables() -> None:
    rng = np.random.default_rng(0)
    before = {SIZE_EXPONENT: rng.normal(0.3, 0.45, 4000)}
    hidden = PopulationPosterior({SIZE_EXPONENT: rng.normal(0.3, 0.4, (4, 500))}, before)
    seen = PopulationPosterior({SIZE_EXPONENT: rng.normal(0.8, 0.1, (4, 500))}, before)
    assert "does not say whether small groups differ more" in hidden.cautions[0]
    assert not seen.cautions
