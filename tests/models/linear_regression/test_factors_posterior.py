"""Posteriors with factors: predictions, reference levels, summaries, files and ArviZ."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import noisewise as nw
from noisewise.artifact import ArgumentError
from noisewise.formula import parse
from noisewise.models.linear_regression import design_matrix, reference_levels
from noisewise.models.linear_regression.posterior import RegressionPosterior
from tests.models.linear_regression.factor_posteriors import FORMULA, LEVELS, factor_posterior

AT: dict[str, Any] = {"age": 40, "sex": "male", "educ": 12.0, "region": 9}


def test_covariates_are_columns_of_the_table() -> None:
    post = factor_posterior()
    assert post.covariates == ("age", "sex", "educ", "region")
    assert post.title == "wages on age, sex, educ, region"


def test_a_record_is_predicted_by_every_column_of_the_design() -> None:
    post = factor_posterior()
    d = post.draws
    line = (
        d["intercept"] + 40 * d["age"] + d["C(sex)[T.male]"] + 12 * d["educ"] + d["C(region)[T.9]"]
        + 40 * d["age:C(sex)[T.male]"] + 1600 * d["I(age ** 2)"]
    )  # fmt: skip
    np.testing.assert_allclose(post.predict(AT).expected, line, rtol=1e-14)
    reference = post.predict({"age": 40, "sex": "female", "educ": 12.0, "region": 1})
    without = d["intercept"] + 40 * d["age"] + 12 * d["educ"] + 1600 * d["I(age ** 2)"]
    np.testing.assert_allclose(reference.expected, without, rtol=1e-14)
    assert factor_posterior(groups=3).predict(AT).mean.shape == (3,)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sex": "other"}, r"new_x\['sex'\]: must be one of 'female', 'male', not 'other'"),
        ({"sex": "Male"}, r"not 'Male'; did you mean 'male'\?"),
        ({"region": 4}, r"new_x\['region'\]: must be one of 1, 2, 3, 9, not 4"),
        ({"region": [1]}, r"new_x\['region'\]: must be one of 1, 2, 3, 9, not \[1\]"),
        ({"age": "male"}, r"new_x\['age'\]: must be one number, not 'male'"),
        ({"age": True}, "must be one number"),
    ],
)
def test_refused_records(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        factor_posterior().predict({**AT, **change})


def test_a_record_lacks_a_column() -> None:
    misspelt: dict[str, Any] = {"age": 40, "sex": "male", "educ": 12.0, "regoin": 1}
    with pytest.raises(ArgumentError, match="no value for region; not needed: regoin"):
        factor_posterior().predict(misspelt)


def test_a_table_is_predicted_row_by_row_and_other_columns_are_ignored() -> None:
    post = factor_posterior()
    records: list[dict[str, Any]] = [{**AT, "town": "x"}, {**AT, "town": "y", "age": 50}]
    several = post.predict(pd.DataFrame(records), seed=3)
    for row, record in enumerate(records):
        alone = post.predict(record, seed=3)
        np.testing.assert_array_equal(several.expected[row], alone.expected)
        assert np.array_equal(several.draws[row], alone.draws) == (row == 0)
    assert several.mean.shape == (2,)
    assert several.interval().shape == (2, 2)
    one = post.predict(pd.DataFrame(records).iloc[0], seed=3)
    np.testing.assert_array_equal(one.draws, several.draws[0])
    assert "2 records" in repr(several)
    assert "with probability 90 %" in repr(one)
    with pytest.raises(ArgumentError, match="at least one row"):
        post.predict(pd.DataFrame(records).head(0))
    with pytest.raises(ArgumentError, match="no value for age"):
        post.predict(pd.DataFrame(records).drop(columns="age"))


def test_booleans_are_levels_0_and_1() -> None:
    post = factor_posterior("wages ~ C(owns)", {"owns": (0, 1)})
    values: list[Any] = [True, np.True_, 1, np.int64(1)]
    for value in values:
        np.testing.assert_array_equal(
            post.predict({"owns": value}).expected,
            post.draws["intercept"] + post.draws["C(owns)[T.1]"],
        )
    with pytest.raises(ArgumentError, match="must be one of 'female', 'male', not True"):
        factor_posterior().predict({**AT, "sex": True})


def test_a_level_is_named_by_its_number_or_its_text() -> None:
    post = factor_posterior()
    wanted = post.predict(AT).expected
    values: list[Any] = ["9", 9, 9.0, np.int64(9)]
    for value in values:
        np.testing.assert_array_equal(post.predict({**AT, "region": value}).expected, wanted)
    assert post.with_reference(region="9").x == post.with_reference(region=9).x
    flags = factor_posterior("wages ~ C(k) + C(f)", {"k": ("1", "2"), "f": ("False", "True")})
    wanted = flags.predict({"k": "2", "f": "True"}).expected
    pairs: list[Any] = [(2, True), (np.float32(2), np.True_)]
    for k, f in pairs:
        np.testing.assert_array_equal(flags.predict({"k": k, "f": f}).expected, wanted)
    for odd in ("09", 9.5, "9.0", None, float("inf")):
        with pytest.raises(ArgumentError, match="must be one of 1, 2, 3, 9"):
            post.predict({**AT, "region": odd})
    named = parse("wages ~ C(region, contr.treatment('9'))", LEVELS).design(LEVELS)
    assert [dict(c.levels)["region"] for c in named[:-1]] == [0, 1, 2]


def filled_release() -> nw.Release:
    return nw.release.linear_regression(
        nw.release.Blank(100), formula="wages ~ age + owns + C(sex)", epsilon=1.0,
        bounds={"age": (0, 90), "owns": (0, 1), "wages": (0, 1)},
        levels={"sex": ["female", "male"]}, fill={"age": 50, "sex": "male"},
    )  # fmt: skip


def test_gaps_and_flags_are_taken_as_the_release_took_them() -> None:
    post = factor_posterior("wages ~ age + owns + C(sex)", releases=(filled_release(),))
    wanted = post.predict({"age": 50, "owns": 1, "sex": "male"}).expected
    gaps: list[Any] = [None, float("nan"), np.float32("nan"), pd.NA, pd.NaT]
    for gap in gaps:
        taken = post.predict({"age": gap, "owns": True, "sex": gap}).expected
        np.testing.assert_array_equal(taken, wanted)
    refused: tuple[tuple[dict[str, Any], str], ...] = (
        ({"age": 50, "owns": None, "sex": "male"}, "the release has no public value for gaps"),
        ({"age": True, "owns": 1, "sex": "male"}, r"new_x\['age'\]: must be one number, not True"),
        ({"age": 50, "owns": 1, "sex": "x"}, "not 'x'; a release does not say which level counts"),
    )
    for at, said in refused:
        with pytest.raises(ArgumentError, match=said):
            post.predict(at)


FORMULAS = (
    FORMULA,
    "wages ~ sex * C(region) + age:sex",
    "wages ~ age:C(sex) + C(sex):C(region)",
    "wages ~ C(sex) * C(region) * C(degree) + age:C(degree):C(sex)",
    "wages ~ C(degree, contr.treatment('doctorate')) + C(region):educ",
)


@pytest.mark.parametrize("formula", FORMULAS)
def test_another_reference_is_the_design_of_its_formula(formula: str) -> None:
    """Names and order are those of ``contr.treatment``; fitted values are the same in all cells."""
    rng = np.random.default_rng(0)
    parsed = parse(formula, LEVELS)
    design = parsed.design(LEVELS)
    for factor in parsed.factors:
        for code, level in enumerate(LEVELS[factor]):
            label = f"C({factor}, contr.treatment({level!r}))"
            terms = (
                ":".join(label if e == parsed.labels[factor] else e for e in t.text.split(":"))
                for t in parsed.terms
            )
            wanted = parse(f"wages ~ {' + '.join(terms)}", LEVELS).design(LEVELS)
            recoded = reference_levels.with_reference(design, LEVELS, factor, code)
            assert recoded == wanted
            cells = list(itertools.product(*(range(len(v)) for v in LEVELS.values())))
            columns = dict(zip(LEVELS, np.array(cells).T, strict=True))
            numbers = {c: rng.normal(size=len(cells)) for c in ("age", "educ")}
            change = reference_levels.change_of_coding(design, recoded, LEVELS)
            theta = rng.normal(size=len(design))
            np.testing.assert_allclose(
                design_matrix.design_matrix(recoded, {**columns, **numbers}, len(cells))
                @ (change @ theta),
                design_matrix.design_matrix(design, {**columns, **numbers}, len(cells)) @ theta,
                atol=1e-12,
            )


@pytest.mark.parametrize("written", ["C(`{}`)", "`{}`"])
@pytest.mark.parametrize("name", ["lipid group", "group-1"])
def test_another_reference_of_a_name_in_backticks(written: str, name: str) -> None:
    """The new names can be written in a formula, and another reference can be taken again."""
    levels: dict[str, Any] = {name: ("low", "mid", "high")}
    post = factor_posterior(f"wages ~ age * {written.format(name)}", levels)
    other = post.with_reference(**{name: "mid"})
    label = f"C(`{name}`, contr.treatment('mid'))"
    assert other.design == parse(f"wages ~ age * {label}", levels).design(levels)
    back = other.with_reference(**{name: "low"})
    np.testing.assert_allclose(
        np.stack(list(back.draws.values())), np.stack(list(post.draws.values()))
    )


@pytest.mark.parametrize("groups", [0, 2])
def test_with_reference_predicts_the_same(groups: int) -> None:
    post = factor_posterior(groups=groups)
    other = post.with_reference(sex="male", region=3)
    for sex, region in itertools.product(LEVELS["sex"], LEVELS["region"]):
        at = {**AT, "sex": sex, "region": region}
        np.testing.assert_allclose(other.predict(at).expected, post.predict(at).expected)
    assert other.x[1] == "C(sex, contr.treatment('male'))[T.female]"
    np.testing.assert_allclose(other.draws[other.x[1]], -post.draws["C(sex)[T.male]"])
    assert list(other.draws) == list(other.rhat) == list(other.ess)
    assert other.prior_draws is not None
    assert list(other.prior_draws(5)) == list(other.draws)
    back = other.with_reference(sex="female", region=1)
    np.testing.assert_allclose(
        np.stack(list(back.draws.values())), np.stack(list(post.draws.values()))
    )
    assert post.with_reference(sex="female") is post


def test_deviations_without_noise_of_another_reference() -> None:
    """A coefficient that changes its sign keeps its deviation; of a sum nobody knows it."""
    other = factor_posterior("wages ~ age + C(sex)").with_reference(sex="male")
    table = other.summary()
    assert table["times_wider"].notna().tolist() == [True, True, False, True]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"age": 3}, "age: is no factor of this regression; there are sex, region"),
        ({"region": 4}, "region: must be one of 1, 2, 3, 9, not 4"),
    ],
)
def test_refused_references(words: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        factor_posterior().with_reference(**words)


def test_a_summary_in_the_order_of_the_formula() -> None:
    post = factor_posterior()
    table = post.summary()
    terms = [c.name for c in parse(FORMULA).design(LEVELS)]
    assert list(table.index) == [*terms, "sigma2"]
    assert list(table.columns) == [
        "mean", "sd", "median", "lower", "upper", "times_wider", "rhat", "ess",
    ]  # fmt: skip
    normal = 2 * 1.959964 * 0.1
    np.testing.assert_allclose(table["times_wider"], (table["upper"] - table["lower"]) / normal)
    grouped = factor_posterior(groups=2).summary()
    width = grouped["upper"] - grouped["lower"]
    np.testing.assert_allclose(grouped["times_wider"], width / normal)
    # It is the same whatever interval the table shows.
    np.testing.assert_allclose(post.summary(0.5)["times_wider"], table["times_wider"])
    assert "times_wider" not in replace(post, without_noise=None).summary()


def test_files_keep_the_design(tmp_path: Path) -> None:
    post = factor_posterior()
    loaded = nw.load_posterior(post.save(tmp_path / "p.nc"))
    assert isinstance(loaded, RegressionPosterior)
    assert (loaded.design, loaded.levels) == (post.design, post.levels)
    np.testing.assert_array_equal(loaded.predict(AT).draws, post.predict(AT).draws)
    pd.testing.assert_frame_equal(loaded.summary(), post.summary())


@pytest.mark.parametrize(
    "forge",
    [
        lambda a: a["design"][1].update(levels=[["sex", 2]]),
        lambda a: a["design"][1].update(levels=[["town", 0]]),
        lambda a: a["design"][1].update(levels=[["sex", "1"]]),
        lambda a: a["levels"].update(sex=["female", "female"]),
        lambda a: a["design"].pop(0),
        lambda a: a["design"][0].update(numeric=[3]),
    ],
)
def test_a_forged_design_is_refused(forge: Any) -> None:
    post = factor_posterior()
    attributes = json.loads(json.dumps(post.attributes()))
    common = {"draws": post.draws, "rhat": post.rhat, "ess": post.ess, "method": "exact"}
    restore = nw.models.find("linear-regression").analyst().restore
    restore(common, attributes)
    forge(attributes)
    with pytest.raises(ValueError, match=r"design|levels"):
        restore(common, attributes)


@pytest.mark.parametrize("groups", [0, 2])
def test_arviz_has_a_variable_for_every_term(groups: int) -> None:
    post = factor_posterior(groups=groups)
    data: Any = post.to_arviz()
    drawn = data.posterior
    assert set(drawn.data_vars) == {
        "age", "C(sex)", "educ", "C(region)", "age:C(sex)", "I(age ** 2)", "intercept", "sigma2",
    }  # fmt: skip
    assert drawn["C(region)_level"].values.tolist() == ["2", "3", "9"]
    picked = drawn["C(region)"].sel({"C(region)_level": "9"})
    wanted = post.draws["C(region)[T.9]"]
    lead = ("group",) if groups else ()
    np.testing.assert_array_equal(picked.transpose(*lead, "chain", "draw"), wanted)
