"""What an analyst gets: draws, predictions, effects, files, cautions, pages."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import noisewise as nw
from noisewise.artifact import Release
from noisewise.models.generalized_linear.posterior import GeneralizedPosterior, PoissonPosterior
from noisewise.report import html
from tests.models.generalized_linear.problems import CHAINS, DRAWS, records, release
from tests.reference import generalized_reference as reference

pytestmark = pytest.mark.xdist_group("one-covariate")

SLOPE, INTERCEPT = 0.8 / 15, -0.3 - 0.8 * 50 / 15
SHAPE = {"chains": CHAINS, "draws": DRAWS}


def inferred(given: Release, model: str = "logistic", **words: object) -> GeneralizedPosterior:
    """A posterior, whatever is warned of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        post = nw.infer(given, model=model, **SHAPE, **words)  # type: ignore[call-overload]
    assert isinstance(post, GeneralizedPosterior)
    return post


@pytest.fixture(scope="module")
def post() -> GeneralizedPosterior:
    """A plain case: one covariate of slope 0.8 per deviation, 2,000 records."""
    found = nw.infer(release(records()), model="logistic", chains=CHAINS, draws=DRAWS)
    assert isinstance(found, GeneralizedPosterior)
    return found


@pytest.fixture(scope="module")
def counts() -> GeneralizedPosterior:
    table = records(4000, slope=0.5, level=0.6, link="poisson")
    return inferred(release(table, 30.0, scale=2.0), "poisson")


def test_a_plain_case_finds_the_truth(post: GeneralizedPosterior) -> None:
    """Within three deviations, which are not large; converged, without a word of caution."""
    assert post.converged
    assert post.status.startswith("converged")
    assert post.cautions == ()
    for name, truth in (("x", SLOPE), ("intercept", INTERCEPT)):
        draws = post.draws[name]
        assert draws.shape == (CHAINS, DRAWS)
        assert abs(draws.mean() - truth) < 3 * draws.std()
    assert post.draws["x"].std() < 0.25 * SLOPE
    assert post.shape_shift["x"] < 1
    assert (post.link, post.x, post.y, post.method) == ("logistic", ("x",), "y", "clt")


def test_the_same_seed_gives_the_same_draws(post: GeneralizedPosterior) -> None:
    given = release(records())
    again, other = (inferred(given, seed=s) for s in (0, 1))
    np.testing.assert_array_equal(again.draws["x"], post.draws["x"])
    assert (other.draws["x"] != post.draws["x"]).any()


def test_the_naive_method_ignores_the_noise(post: GeneralizedPosterior) -> None:
    """Its interval is narrower than that which accounts for it, about a value as likely."""
    naive = inferred(release(records()), method="naive")
    assert naive.method == "naive"
    for name in ("x", "intercept"):
        assert naive.draws[name].std() < 0.95 * post.draws[name].std()
        off = naive.draws[name].mean() - post.draws[name].mean()
        assert abs(off) < post.draws[name].std()


def test_turning_y_round_turns_the_coefficients_round(post: GeneralizedPosterior) -> None:
    """Ones for zeros, and the noise with them: medians within .25 of a deviation."""
    plain, turned = release(records()), release(np.abs(records() - [0, 1]))
    block = turned.block("gram")
    # The same noise, mirrored: y_b -> -y_b turns Σ y and Σ y x, and no other sum.
    signs = np.array([(-1.0) ** p.count(1) for p in block.statistic.products])  # type: ignore[attr-defined]
    values = (plain.block("gram").values * signs[:, None]).astype(np.int64)
    from dataclasses import replace

    mirrored = replace(turned, blocks=(replace(block, values=values),))
    other = inferred(mirrored)
    for name in ("x", "intercept"):
        ours, theirs = post.draws[name], -other.draws[name]
        assert abs(np.median(ours) - np.median(theirs)) < 0.25 * ours.std()
        assert theirs.std() == pytest.approx(ours.std(), rel=0.25)


def test_predictions_are_probabilities(post: GeneralizedPosterior) -> None:
    """Expected values are the logistic function of the draws' predictor; new records 0 or 1."""
    found = post.predict({"x": 65})
    t = post.draws["intercept"] + 65 * post.draws["x"]
    np.testing.assert_allclose(found.expected, reference.mean_response("logistic", t), rtol=1e-12)
    truth = reference.mean_response("logistic", np.asarray(0.5))
    low, high = found.mean_interval(0.99)
    assert 0 < low < truth < high < 1
    assert set(np.unique(found.draws)) == {0.0, 1.0}
    assert abs(found.draws.mean() - found.expected.mean()) < 5 * np.sqrt(0.25 / found.draws.size)


@pytest.mark.parametrize(
    ("at", "word"),
    [
        (None, "new_x: must be one record"),
        ({"z": 1.0}, "new_x: must give a value to each of x; no value for x; not needed: z"),
        (
            {"x": float("nan")},
            r"new_x\['x'\]: must be a finite number, not nan; the release has no",
        ),
        ({"x": "many"}, r"new_x\['x'\]: must be one number, not 'many'"),
    ],
)
def test_wrong_records_are_refused(post: GeneralizedPosterior, at: object, word: str) -> None:
    with pytest.raises(nw.ArgumentError, match=word):
        post.predict(at)  # type: ignore[arg-type]


def test_a_table_is_predicted_row_by_row(post: GeneralizedPosterior) -> None:
    several = post.predict(pd.DataFrame({"x": [1.0, 2.0], "z": ["a", "b"]}))
    np.testing.assert_array_equal(several.expected[1], post.predict({"x": 2.0}).expected)
    assert several.interval().shape == (2, 2)


def test_a_prediction_beyond_the_bounds_is_said_to_be_one(post: GeneralizedPosterior) -> None:
    with pytest.warns(UserWarning, match="x = 130 lies outside its public bounds, 0 to 100"):
        post.predict({"x": 130})


def test_effects_are_odds_ratios_and_average_slopes(post: GeneralizedPosterior) -> None:
    """Per ten units: exp(10 β), and what the probability changes by, averaged over records."""
    row = post.effects(per={"x": 10}).loc["x"]
    np.testing.assert_allclose(
        row[["odds_ratio_lower", "odds_ratio", "odds_ratio_upper"]].astype(float),
        np.quantile(np.exp(10 * post.draws["x"]), [0.025, 0.5, 0.975]),
        # Between two draws a quantile is interpolated, here before exp and there after it.
        rtol=1e-4,
    )
    x = records()[:, 0]
    slopes = [reference.derivative("logistic", 1, INTERCEPT + SLOPE * v) for v in x]
    true = 10 * SLOPE * np.mean(slopes)
    assert row["average_effect_lower"] < true < row["average_effect_upper"]
    ends = row["average_effect_upper"] - row["average_effect_lower"]
    assert ends < 0.5 * true
    half, whole = post.effects(interval=0.5), post.effects()
    assert half["per"].tolist() == [1.0]
    widths = [t["odds_ratio_upper"] - t["odds_ratio_lower"] for t in (half, whole)]
    assert 0 < float(widths[0].iloc[0]) < 0.5 * float(widths[1].iloc[0])
    for words, said in (
        ({"per": {"z": 1}}, "per: 'z' is no covariate"),
        ({"interval": 2}, "interval"),
    ):
        with pytest.raises(nw.ArgumentError, match=said):
            post.effects(**words)


def test_a_file_holds_all_of_it(post: GeneralizedPosterior, tmp_path: Path) -> None:
    """Draws, status, cautions, effects and predictions are the same after loading."""
    back = nw.load(post.save(tmp_path / "p.nc"))
    assert isinstance(back, GeneralizedPosterior)
    for name, draws in post.draws.items():
        np.testing.assert_array_equal(back.draws[name], draws)
    assert (back.status, back.cautions, back.link) == (post.status, post.cautions, "logistic")
    assert back.prior == post.prior
    pd.testing.assert_frame_equal(back.effects(), post.effects())
    pd.testing.assert_frame_equal(back.summary(), post.summary())
    np.testing.assert_array_equal(
        back.predict({"x": 40}).expected, post.predict({"x": 40}).expected
    )
    assert back.shape_shift["x"] == pytest.approx(float(post.shape_shift["x"]))


def test_the_page_shows_odds_ratios(post: GeneralizedPosterior) -> None:
    page = nw.report.render(post)
    assert "What more of a covariate multiplies the odds by" in page
    assert "probability of y" in page
    unit = float(f"{post.moments.half[0] * np.sqrt(post.moments.covariance[0, 0, 0]):.2g}")
    row = post.effects(per={"x": unit}).iloc[0]
    low, high = (html.number(float(row[f"odds_ratio_{end}"])) for end in ("lower", "upper"))
    assert f"x (per {unit:g}) {low} to {high}" in page


def test_what_noise_costs_is_known(post: GeneralizedPosterior) -> None:
    """Without noise the deviation would be the sandwich's, within 15 %, and is less."""
    table = records()
    _, deviation = reference.maximum_likelihood("logistic", table[:, :1] / 10, table[:, 1])
    assert post.without_noise is not None
    without = post.without_noise()
    wanted = {"x": deviation[0] / 10, "intercept": deviation[1]}
    for name, value in wanted.items():
        assert float(np.ravel(without[name])[0]) == pytest.approx(value, rel=0.15)
        assert value < post.draws[name].std()


def test_rates_of_counts(counts: GeneralizedPosterior) -> None:
    """Rate ratios, whole numbers, expected rates exp(t); the truth within three deviations."""
    assert isinstance(counts, PoissonPosterior)
    assert counts.converged
    for name, truth in (("x", 0.5 / 15), ("intercept", 0.6 - 0.5 * 50 / 15)):
        assert abs(counts.draws[name].mean() - truth) < 3 * counts.draws[name].std()
    found = counts.predict({"x": 50})
    np.testing.assert_allclose(
        found.expected, np.exp(counts.draws["intercept"] + 50 * counts.draws["x"])
    )
    assert (found.draws == np.rint(found.draws)).all()
    assert found.draws.max() > 1
    assert list(counts.effects().columns)[:2] == ["per", "rate_ratio"]
    assert "multiplies the rate by" in nw.report.render(counts)


@pytest.mark.evidence
def test_probits_are_smaller_logits() -> None:
    """The same release: probit slopes are .5 to .7 of logits, probabilities within .02."""
    given = release(records(), scale=1.0)
    logit, probit = inferred(given), inferred(given, "probit")
    ratio = np.median(probit.draws["x"]) / np.median(logit.draws["x"])
    assert 0.5 < ratio < 0.7
    for x in (35, 50, 65):
        off = probit.predict({"x": x}).expected.mean() - logit.predict({"x": x}).expected.mean()
        assert abs(off) < 0.02
    assert "odds_ratio" not in probit.effects().columns


def test_groups_are_inferred_each_by_itself(post: GeneralizedPosterior, tmp_path: Path) -> None:
    """Two groups of other slopes: each finds its own, in draws, effects, file and page."""
    tables = [records(2000, slope=s, seed=i) for i, s in enumerate((0.9, -0.4))]
    found = inferred(release(tables))
    assert found.keys == ("g0", "g1")
    assert found.draws["x"].shape == (2, CHAINS, DRAWS)
    for g, slope in enumerate((0.9, -0.4)):
        draws = found.draws["x"][g]
        assert abs(draws.mean() - slope / 15) < 3.5 * draws.std()
        assert draws.std() < 0.02
    table = found.effects()
    assert list(table.index) == [("g0", "x"), ("g1", "x")]
    assert table["odds_ratio"].iloc[0] > 1 > table["odds_ratio"].iloc[1]
    back = nw.load(found.save(tmp_path / "g.nc"))
    assert isinstance(back, GeneralizedPosterior)
    pd.testing.assert_frame_equal(back.effects(), table)
    assert "g1" in nw.report.render(found)
    one = inferred(release(tables), groups=["g1"])
    assert one.keys == ("g1",)
    assert np.median(one.draws["x"]) < 0


@pytest.mark.evidence
@pytest.mark.parametrize("kind", ["gaussian", "secret n", "secret n, groups"])
def test_other_noise_and_secret_sizes(kind: str) -> None:
    """Both find the truth within three deviations and converge."""
    tables = [records(3000, seed=i) for i in range(1 + 2 * ("groups" in kind))]
    words = {"mechanism": "gaussian"} if kind == "gaussian" else {"secret_n": True}
    given = release(tables if "groups" in kind else tables[0], **words)
    found = inferred(given)
    assert found.converged
    for name, truth in (("x", SLOPE), ("intercept", INTERCEPT)):
        draws = found.draws[name].reshape(len(tables), -1)
        assert (np.abs(draws.mean(axis=1) - truth) < 3 * draws.std(axis=1)).all()


@pytest.mark.evidence
def test_several_covariates_and_a_formula() -> None:
    """x, an indicator and a third column: a formula of two leaves the third out."""
    rng = np.random.default_rng(0)
    n = 5000
    x, sex, z = rng.normal(50, 15, n).clip(0, 100), rng.random(n) < 0.4, rng.uniform(0, 1, n)
    t = -0.5 + 0.6 * (x - 50) / 15 + 0.7 * sex
    y = reference.draw_responses(rng, "logistic", t)
    from tests.inference import regressions

    bounds = {"x": (0.0, 100.0), "sex": (0.0, 1.0), "z": (0.0, 1.0), "y": (0.0, 1.0)}
    given = regressions.release([np.column_stack([x, sex, z, y])], bounds, scale=3.0, grouped=False)
    by_formula = inferred(given, formula="y ~ sex + x")
    by_columns = inferred(given, x=["sex", "x"], y="y")
    assert by_formula.x == ("sex", "x")
    np.testing.assert_array_equal(by_formula.draws["sex"], by_columns.draws["sex"])
    np.testing.assert_array_equal(by_formula.moments.indicators, [True, False])
    for name, truth in (("sex", 0.7), ("x", 0.04), ("intercept", -2.5)):
        draws = by_formula.draws[name]
        assert abs(draws.mean() - truth) < 3 * draws.std()
    turned = inferred(given, x=["x", "sex"])
    for name in ("sex", "x", "intercept"):
        ours, theirs = by_formula.draws[name], turned.draws[name]
        assert abs(np.median(ours) - np.median(theirs)) < 0.3 * ours.std()
    with pytest.raises(nw.ArgumentError, match="formula"):
        nw.infer(given, model="logistic", formula="y ~ x:sex")
    with pytest.raises(nw.ArgumentError, match="formula: it says x and y already"):
        nw.infer(given, model="logistic", formula="y ~ x", x="x")
