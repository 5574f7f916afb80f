"""Records outside the bounds reach the analyst's eyes: in Python, on the screen, on pages."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import noisewise as nw
from noisewise import report
from noisewise.artifact.clamping import clamped_counts, clamping_in_words
from noisewise.cli.verbs import app
from noisewise.inference.api import asked
from noisewise.models.linear_regression import LinearRegressionRelease
from noisewise.simulate.trials import settings_of, simulated

pytestmark = pytest.mark.xdist_group("one-covariate")


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    """Wages, of which a quarter lie above 20, and education."""
    rng = np.random.default_rng(2)
    education = rng.normal(12, 2.5, 4000)
    return pd.DataFrame({"education": education, "wages": 1.2 * education + rng.normal(1, 4, 4000)})


def released(
    people: pd.DataFrame, wages: tuple[float, float] | nw.Bounds
) -> LinearRegressionRelease:
    """Return a release with a count of clamped records and hardly any noise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return nw.release.linear_regression(
            people, x="education", y="wages", bounds={"education": (0, 24), "wages": wages},
            epsilon=50.0, count_clamped=True,
        )  # fmt: skip


def test_counts_of_clamped_records(people: pd.DataFrame) -> None:
    """By column, with the noise's deviation: the true count is within ten of them."""
    counts = clamped_counts(released(people, (0, 20)))
    count, error = counts["wages"]
    assert abs(count - (people["wages"] > 20).sum() - (people["wages"] < 0).sum()) < 10 * error + 1
    assert set(counts) == {"education", "wages"}
    no_count = nw.release.linear_regression(
        people, x="education", y="wages", bounds={"education": (0, 24), "wages": (0, 20)}, epsilon=1
    )
    assert clamped_counts(no_count) == {}
    assert clamping_in_words(no_count, taken_as_normal=True) == ()


def test_natural_bounds_that_cut_are_warned_of_everywhere(
    people: pd.DataFrame, tmp_path: Path
) -> None:
    """infer, its status, check, report and the command line say it, before the numbers."""
    release = released(people, (0, 20))
    file = tmp_path / "release.json"
    release.save(file)
    share = (people["wages"] > 20).mean()
    assert 0.15 < share < 0.35
    said = f"About {100 * share:.0f} % of the records lie outside the bounds of wages, 0 to 20"
    with pytest.warns(UserWarning, match=said):
        post = nw.infer(release)
    assert said in post.status
    assert "Censored" in post.status
    html = report.render(post)
    assert said in html
    assert html.index(said) < html.index("<table")
    # What check keeps of a release, and shows first.
    simulator, problem = simulated(release, asked(None))
    settings = settings_of(release, problem, simulator)
    assert nw.simulate.Check(settings, ()).cautions[0].startswith(said)
    runner = CliRunner()
    with pytest.warns(UserWarning, match=said):
        result = runner.invoke(app, ["infer", str(file), "--out", str(tmp_path / "p.nc")])
    shown = " ".join(result.stdout.split())
    assert result.exit_code == 0
    assert shown.index(said) < shown.index("intercept")


def test_cut_bounds_are_modelled_and_said(people: pd.DataFrame, tmp_path: Path) -> None:
    """The slope before clamping is found; predictions are of wages, or clamped where wanted."""
    post = nw.infer(released(people, nw.Censored(0, 20)))
    low, high = np.quantile(post.draws["education"], [0.025, 0.975])
    assert low < 1.2 < high
    assert "which cut values off; exact infers those beyond" in post.status
    at = {"education": 22.0}
    free, clamped = post.predict(at), post.predict(at, clamped=True)
    assert float(free.mean) > 24
    assert clamped.draws.max() == 20
    np.testing.assert_allclose(clamped.mean, clamped.draws.mean(), rtol=0.01)
    # After a file the words are the same.
    again = nw.load_posterior(post.save(tmp_path / "p.nc"))
    assert again.status == post.status
    runner = CliRunner()
    words = ["predict", str(tmp_path / "p.nc"), "--at", "education=22", "--json"]
    assert '"upper": 20.0' in runner.invoke(app, [*words, "--clamped"]).stdout


def test_methods_that_take_cut_values_as_they_are_say_so(people: pd.DataFrame) -> None:
    """The Gibbs samplers know nothing of cuts."""
    release = released(people, nw.Censored(0, 20))
    with pytest.warns(UserWarning, match="gibbs-update takes values at bounds that cut"):
        post = nw.infer(release, "gibbs-update", draws=100)
    assert "results are of the values after clamping" in post.status


def test_a_given_prior_is_refused_where_bounds_cut(people: pd.DataFrame) -> None:
    """It would be taken for one of coefficients after clamping."""
    prior = {"response": nw.priors.NormalInverseGamma([0.0, 0.0], np.eye(2), 1.0, 1.0)}
    with pytest.raises(nw.ArgumentError, match="leave it out where bounds cut values off"):
        nw.infer(released(people, nw.Censored(0, 20)), prior=prior)


def test_an_unsure_search_is_said_to_the_analyst(people: pd.DataFrame) -> None:
    """Not to the owner alone."""
    with pytest.warns(UserWarning, match="is unsure"):
        release = nw.release.linear_regression(
            people.head(400), x="education", y="wages", epsilon=3.0,
            bounds={"education": (0, 24), "wages": nw.release.PrivateBounds((0, 1e6))},
        )  # fmt: skip
    with pytest.warns(UserWarning, match="by a search that was unsure"):
        assert "by a search that was unsure" in nw.infer(release).status


def test_a_search_that_cuts_a_part_is_said_to_the_analyst(people: pd.DataFrame) -> None:
    """Though it was sure: the owner aimed to leave 1.5 per cent beyond either end."""
    kept = nw.release.PrivateBounds((0, 1e6), quantiles=(0.015, 0.985))
    words: dict[str, Any] = {"x": "education", "y": "wages", "epsilon": 20.0}
    bounds: dict[str, Any] = {"education": (0, 24), "wages": kept}
    release = nw.release.linear_regression(people, **words, bounds=bounds)
    assert not release.selections[0].is_unsure(len(people))
    (said,) = (
        words
        for words in clamping_in_words(release, ("education", "wages"), taken_as_normal=True)
        if "found privately: up to 60 records may lie beyond either of them and were moved" in words
    )
    assert said.endswith("not of wages itself")
    # Of columns that a model does not take for normal, or that are not asked for, nothing is said.
    for columns, normal in ((("education",), True), (("wages",), False)):
        assert not any(
            "found privately" in words
            for words in clamping_in_words(release, columns, taken_as_normal=normal)
        )
    # The usual search leaves twenty records or fewer.
    usual: dict[str, Any] = {"education": (0, 24), "wages": nw.release.PrivateBounds((0, 1e6))}
    release = nw.release.linear_regression(people, **words, bounds=usual)
    told = clamping_in_words(release, ("education", "wages"), taken_as_normal=True)
    assert not any("found privately" in words for words in told)
