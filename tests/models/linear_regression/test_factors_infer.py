"""Formulas in ``infer``: which problem they are, what is refused, and what is said beforehand."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import noisewise as nw
from noisewise.artifact import ArgumentError, Block, Release
from noisewise.models.linear_regression import analyst
from noisewise.models.linear_regression.factor_problem import FactorProblem
from noisewise.models.linear_regression.level_counts import hidden_levels_in_words, level_counts
from noisewise.models.linear_regression.posterior import RegressionPosterior
from noisewise.models.linear_regression.problem import RegressionProblem
from tests.models.linear_regression.factor_posteriors import BOUNDS, LEVELS

FORMULA = "wages ~ age + C(sex) + educ + C(region) + age:C(sex)"


def table(n: int = 600) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.uniform(20, 65, n),
            "educ": rng.uniform(0, 22, n),
            "wages": rng.uniform(10, 90, n),
            "sex": rng.choice(LEVELS["sex"], n),
            "region": rng.choice(LEVELS["region"][:3], n),
        }
    )


def counted(release: Release, cell: float) -> Release:
    """The release with as many records in every cell of its tables, in region 9 with none."""
    block = release.blocks[0]
    statistic: Any = block.statistic
    names = statistic.names
    values = np.zeros(block.values.shape, np.int64)
    for i, name in enumerate(names):
        if name.startswith("n["):
            values[i] = int((0 if "region=9" in name else cell) * 4**statistic.bits)
    return replace(release, blocks=(Block(statistic, block.noise, values), *release.blocks[1:]))


@pytest.fixture(scope="module")
def given() -> Release:
    return nw.release.linear_regression(
        table(), formula=FORMULA, bounds=BOUNDS, epsilon=1.0,
        levels={"sex": LEVELS["sex"], "region": LEVELS["region"]},
    )  # fmt: skip


@pytest.fixture(scope="module")
def gram() -> Release:
    return nw.release.linear_regression(
        table(), x=["age", "educ"], y="wages", bounds=BOUNDS, epsilon=1.0
    )


def problem(release: Release, method: str | None = None, **words: Any) -> Any:
    return analyst.ANALYST.problem([release], nw.models.Question(None, words, method))


def test_the_owners_formula_is_the_default(given: Release) -> None:
    asked = problem(given)
    assert isinstance(asked, FactorProblem)
    assert asked.x == (
        "age", "C(sex)[T.male]", "educ", "C(region)[T.2]", "C(region)[T.3]", "C(region)[T.9]",
        "age:C(sex)[T.male]",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "x", "y"),
    [
        ({"formula": "educ ~ C(sex)"}, ("C(sex)[T.male]",), "educ"),
        ({"x": ["age", "sex"], "y": "wages"}, ("age", "sex[T.male]"), "wages"),
        ({"x": "educ"}, ("educ",), "wages"),
    ],
)
def test_other_regressions(given: Release, words: dict[str, Any], x: Any, y: str) -> None:
    asked = problem(given, **words)
    assert (asked.x, asked.y) == (x, y)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"formula": "wages ~ age", "x": "age"}, "formula: it says x and y already"),
        ({"y": "educ"}, "y: say with a formula which terms it has"),
        ({"x": [3]}, "x: must be one or more columns by name"),
        ({"formula": "wages ~ C(town)"}, "formula: 'town'"),
        ({"formula": "wages ~ age:educ"}, "the sum of age:educ was not released"),
        (
            {"formula": "wages ~ age:C(region)"},
            r"formula: the sum of age \* age within the levels of region was not released",
        ),
        (
            {"formula": "wages ~ C(region):C(sex)"},
            "formula: the sum of wages within the levels of region and sex was not released",
        ),
        ({"formula": "sex ~ age"}, "formula: the response 'sex' is a factor of this release"),
        ({"z": 3}, "z: is no option of this model"),
        ({"method": "gibbs-update"}, "method: gibbs-update takes no factors; ask for exact"),
    ],
)
def test_refused_questions(given: Release, words: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        problem(given, **words)


def test_a_formula_of_plain_columns_of_a_gram_matrix(gram: Release) -> None:
    asked = problem(gram, formula="age ~ wages + educ")
    assert isinstance(asked, RegressionProblem)
    assert (asked.x, asked.y) == (("wages", "educ"), "age")
    for formula in ("wages ~ C(sex)", "wages ~ age:educ", "wages ~ I(age**2)"):
        with pytest.raises(ArgumentError, match="was not released; there are only sums of"):
            problem(gram, formula=formula)
    with pytest.raises(ArgumentError, match="column 'town' was not released"):
        problem(gram, formula="wages ~ town")
    post = nw.infer(gram, "naive", formula="wages ~ educ")
    np.testing.assert_array_equal(
        post.draws["educ"], nw.infer(gram, "naive", x="educ", y="wages").draws["educ"]
    )


def test_releases_with_factors_are_not_combined(given: Release) -> None:
    with pytest.raises(
        ArgumentError, match="not combined, of the same records or of others; give one"
    ):
        analyst.ANALYST.problem([given, given], nw.models.Question())


def test_other_models_take_no_formula() -> None:
    owns = pd.DataFrame({"owns": [0, 1, 1, 1] * 50})
    release = nw.release.exponential_family(owns, column="owns", family="bernoulli", epsilon=1.0)
    with pytest.raises(ArgumentError, match="formula: is no option of this model"):
        nw.infer(release, formula="owns ~ 1")


def test_counts_of_levels_from_the_table_with_the_least_noise(given: Release) -> None:
    """Counts are released within sex × region: 4 regions are added up for a sex, 2 for a region."""
    block = counted(given, 50).blocks[0]
    by_sex = level_counts(block, "sex")
    by_region = level_counts(block, "region")
    assert by_sex is not None
    assert by_region is not None
    assert by_sex[0].tolist() == [[150], [150]]
    assert by_region[0].tolist() == [[100], [100], [100], [0]]
    assert by_sex[1] == pytest.approx(by_region[1] * np.sqrt(2))
    single = np.sqrt(2) * float(block.noise_scales[0])
    assert by_region[1] == pytest.approx(np.sqrt(2) * single, rel=1e-6)
    assert level_counts(block, "town") is None


def test_rare_levels_are_named(given: Release) -> None:
    known = counted(given, 1e4)
    assert hidden_levels_in_words(known, ("sex", "region")) == [
        "The noise hides how many records have region=9: its effect is mostly the prior's"
    ]
    assert hidden_levels_in_words(known, ("sex",)) == []
    (words,) = hidden_levels_in_words(counted(given, 0), ("sex", "region"))
    assert "sex=female, sex=male, region=1, region=2, region=3, region=9: their effects" in words


def test_cautions_before_sampling(given: Release) -> None:
    cut = replace(
        counted(given, 1e4), bounds={**given.bounds, "age": nw.Censored(16, 90, sides="upper")}
    )
    asked = problem(cut)
    words = analyst.ANALYST.cautions(asked, nw.models.Question(), [cut])
    assert words == (
        "The bounds of age, 16 to 90, cut values off; a regression by a formula takes the values "
        "after clamping as they are",
        "The noise hides how many records have region=9: its effect is mostly the prior's",
    )


def drawn(
    problem: FactorProblem, seed: int, chains: int, draws: int, progress: Any = None
) -> RegressionPosterior:
    """Draws of nothing in particular, in place of a sampler."""
    names = (*problem.x, "intercept", "sigma2")
    rng = np.random.default_rng(seed)
    values = {n: rng.gamma(9, 0.1, (chains, draws)) for n in names}
    good = dict.fromkeys(names, np.array(1.0)), dict.fromkeys(names, np.array(2000.0))
    details = {"hidden": ["age", "educ", "wages"]}
    return RegressionPosterior(values, *good, "exact", problem.x, problem.y, details=details)


def test_a_posterior_knows_its_design(given: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analyst, "FACTOR_METHODS", {"exact": drawn})
    known = counted(given, 1e4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        post = nw.infer(known, formula="wages ~ age + C(region)", draws=100)
    assert isinstance(post, RegressionPosterior)
    assert post.levels == {"region": LEVELS["region"]}
    assert post.covariates == ("age", "region")
    line = post.draws["intercept"] + 30 * post.draws["age"] + post.draws["C(region)[T.2]"]
    np.testing.assert_allclose(post.predict({"age": 30, "region": 2}).expected, line)
    with pytest.warns(UserWarning, match="age = 95 lies outside its public bounds, 16 to 90"):
        post.predict({"age": 95, "region": 2})
    cautions = ". ".join(post.cautions)
    assert "The noise hides how much age varies" in cautions
    assert "The noise hides how much wages varies, so sigma2 is hardly known" in cautions
    assert "region=9" in cautions
    page = nw.report.render(post)
    assert "Published sums, of columns mapped to [-1, 1] by their bounds" in page
