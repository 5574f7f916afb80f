"""A check flags what is not calibrated, passes what is, and says so in words and in a file.

False alarms: a calibrated method is flagged with probability 1 % at most.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import noisewise as nw
from noisewise.artifact import ArgumentError, Release
from noisewise.cli.plan_and_check import show_check
from noisewise.cli.verbs import app
from noisewise.inference.api import asked
from noisewise.simulate import Check, MethodCheck, check, load_check
from noisewise.simulate.trials import simulated
from tests.inference.regressions import table
from tests.report.pages import regression


def regression_release(n: int, epsilon: float, **words: Any) -> Release:
    x, y = table(np.random.default_rng(0), n).T
    return nw.release.linear_regression(
        pa.table({"x": x, "y": y}), x=["x"], y="y", bounds={"x": (-1, 1), "y": (-1, 1)},
        epsilon=epsilon, **words,
    )  # fmt: skip


def test_naive_is_flagged_and_exact_passes() -> None:
    found = check(regression_release(100, 0.1), ["exact", "naive"], trials=60, seed=1)
    assert found.of("exact").passed, found.of("exact").verdict
    assert not found.of("naive").passed
    assert max(found.of("naive").coverage) < 0.5
    assert found.recommended == "exact"
    assert found.advice == "Use exact. Do not use naive here."


@pytest.mark.evidence
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_gibbs_update_is_flagged_at_ten_records(epsilon: float) -> None:
    """Intervals are up to a tenth too wide or too narrow there, which coverage does not show."""
    found = check(regression_release(10, epsilon), ["gibbs-update"], trials=100, seed=1)
    told = found.of("gibbs-update")
    assert not told.passed
    assert not replace(told, unconverged=0.0).passed
    assert "than those of exact" in replace(told, unconverged=0.0).verdict
    assert found.recommended is None


@pytest.mark.evidence
def test_ranks_alone_flag_gibbs_update_at_ten_records() -> None:
    """With the paper's own priors, as in its section 4.2; a thousand trials."""
    prior = {
        "response": nw.priors.NormalInverseGamma([0, 0], np.eye(2) * 0.5 / 19, 20, 0.5),
        "covariates": nw.priors.NormalInverseWishart([0], 1, [[1]], 50),
    }
    found = check(regression_release(10, 0.1), ["gibbs-update"], prior=prior, trials=1000, seed=1)
    assert not replace(found.of("gibbs-update"), unconverged=0.0).passed


def column(family: str, **words: Any) -> Release:
    rng = np.random.default_rng(3)
    values = {"bernoulli": rng.integers(0, 2, 300), "categorical": rng.choice(["a", "b"], 300)}
    return nw.release.exponential_family(
        pa.table({"v": values[family]}), column="v", family=family, epsilon=0.05, **words
    )


@pytest.mark.parametrize(
    ("family", "words"),
    [
        ("bernoulli", {}),
        pytest.param("bernoulli", {"neighbours": "add-remove"}, marks=pytest.mark.evidence),
        pytest.param("categorical", {"levels": ["a", "b"]}, marks=pytest.mark.evidence),
    ],
)
def test_families(family: str, words: dict[str, Any]) -> None:
    found = check(column(family, **words), ["exact", "naive"], trials=200, seed=2)
    assert found.of("exact").passed
    assert not found.of("naive").passed


def test_trials_have_the_settings_of_the_release() -> None:
    release = regression_release(400, 0.5, neighbours="add-remove")
    simulator, given = simulated(release, asked(None))
    made = simulator.from_prior(np.random.default_rng(0), given, 64)
    assert made.problem.noisy_n
    assert made.problem.noise_scale == pytest.approx(float(release.blocks[0].noise_scales[0]))
    assert np.abs(made.problem.n.mean() - given.n[0]) < 4 * given.noise_scale
    assert made.truth.shape == (64, 3)
    # Exact sums are at most n; of 320 noises one exceeds 20 scales with probability 1e-6.
    assert (np.abs(made.problem.z[:, :5]) <= given.n[0] + 20 * given.noise_scale).all()


def found_by_hand(share: float = 0.95) -> Check:
    rng = np.random.default_rng(0)
    good = MethodCheck(
        "exact", ("a", "<b>"), (0.5, 0.6), (0.95, 0.96), (1.0, 2.0), 0.0,
        tuple(tuple(rng.random(100)) for _ in range(2)),
    )  # fmt: skip
    poor = replace(good, method="naive", coverage=(share, 0.2), p_values=(0.5, 1e-9))
    settings = {"what": "y on a", "n": 10, "epsilon": 1.0, "trials": 100}
    return Check(settings, (good, poor))


def test_words() -> None:
    found = found_by_hand()
    assert found.of("exact").verdict.startswith("calibrated")
    assert "held the truth in 20% of the trials" in found.of("naive").verdict
    stuck = replace(found.of("exact"), unconverged=0.3)
    assert stuck.verdict == "did not converge in 30% of the trials"
    apart = replace(found.of("exact"), wider=(0.0, -0.05), wider_error=(0.001, 0.001))
    assert apart.verdict.startswith("not the posterior: its intervals of <b> are 5% narrower")
    assert replace(apart, wider_error=(0.001, 0.03)).passed
    assert replace(apart, wider=(0.01, 0.02)).passed
    shifted = replace(found.of("exact"), p_values=(0.5, 1e-9))
    assert "ranks are not uniform" in shifted.verdict
    assert "None of the methods" in replace(found, methods=(stuck, shifted)).advice


def test_widths_are_compared_and_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """Truths are drawn from the prior: a width of 12,345 is that prior's."""
    found = found_by_hand()
    exact, naive = (replace(m, width=(12_345.0, 2.0)) for m in found.methods)
    wider = replace(naive, wider=(float(np.log(1.5)), 0.0), wider_error=(0.01, 0.01))
    compared = replace(found, methods=(exact, wider))
    show_check(compared)
    printed = capsys.readouterr().out
    for text in (printed, nw.report.render(compared)):
        assert "Widths are compared, not shown" in text
        assert "12,345" not in text
        assert "width / exact" in text
        assert "1.5" in text
    show_check(replace(found, methods=(exact,)))
    assert "width / exact" not in capsys.readouterr().out


def test_there_and_back_and_on_the_page(tmp_path: Path) -> None:
    found = found_by_hand()
    path = found.save(tmp_path / "c.json")
    assert load_check(path) == found
    page = nw.report.render(found)
    assert "Do not use naive here" in page
    assert "<b>" not in page
    assert "outside it" in page or "inside it" in page
    assert "Use exact" in nw.report.render(regression(), found)
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "version": 9}))
    with pytest.raises(ArgumentError, match="has version 9, this reads 1"):
        load_check(path)
    path.write_text("{}")
    with pytest.raises(ArgumentError, match="was not written by noisewise check"):
        load_check(path)
    path.write_text(json.dumps({**content, "methods": [{}]}))
    with pytest.raises(ArgumentError, match="damaged"):
        load_check(path)
    with pytest.raises(ArgumentError, match="No such file"):
        load_check(tmp_path / "absent.json")


def test_command(tmp_path: Path) -> None:
    release = column("bernoulli").save(tmp_path / "r.json")
    out, page = tmp_path / "c.json", tmp_path / "c.html"
    asked = ["check", release, "--method", "naive", "--trials", 60, "-o", out, "--page", page]
    result = CliRunner().invoke(app, list(map(str, asked)), catch_exceptions=False)
    assert result.exit_code == 0
    assert "naive: not calibrated" in result.output
    assert "None of the methods tried is calibrated here" in result.output
    assert load_check(out).methods[0].trials == 60
    assert page.read_text().startswith("<!doctype html>")
    again = CliRunner().invoke(app, ["check", str(release), "--method", "naive", "--json"])
    assert json.loads(again.output)["recommended"] is None


def test_refusals(tmp_path: Path) -> None:
    release = regression_release(50, 1.0)
    with pytest.raises(ArgumentError, match="method: must be one of exact, gibbs-update"):
        check(release, ["exakt"])
    with pytest.raises(
        ArgumentError, match="trials: must be at least 50, not 5: with fewer, coverage"
    ):
        check(release, trials=5)
    with pytest.raises(ArgumentError, match="x, y: go with linear regression"):
        check(column("bernoulli"), y="v")
    answer = nw.release.posterior_probability(
        nw.datasets.social_mobility(tracts=10), x=["pir"], y="kir", coefficient="pir", at=0.0,
        epsilon=2.0, partitions=20,
    )  # fmt: skip
    with pytest.raises(ArgumentError, match="a partition release is its own answer"):
        check(answer)


def test_a_prior_that_never_fits_the_bounds() -> None:
    far = {"covariates": nw.priors.NormalInverseWishart([1e6], 1, [[1]], 5)}
    with pytest.raises(ArgumentError, match="only 0 fit the bounds"):
        check(regression_release(50, 1.0), prior=far)
