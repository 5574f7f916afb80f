"""``noisewise infer`` and ``noisewise predict``: the analyst's half as a person types it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import noisewise as nw
from noisewise.models.exponential_family.families import Categorical
from noisewise.models.exponential_family.posterior import FamilyPosterior
from noisewise.models.linear_regression.posterior import RegressionPosterior
from tests.inference.regressions import release, table

Run = Callable[..., Any]
BOUNDS = {"age": (0.0, 100.0), "bmi": (10.0, 60.0), "cost": (0.0, 1000.0)}


def published(folder: Path, **words: Any) -> Path:
    rng = np.random.default_rng(0)
    centre, half = np.array([50.0, 35.0, 500.0]), np.array([50.0, 25.0, 500.0])
    tables = [table(rng, 200, 2) * half + centre for _ in range(2)]
    grouped = words.pop("grouped", False)
    made = release(tables if grouped else tables[:1], BOUNDS, grouped=grouped, **words)
    return made.save(folder / "r.json")


def made(x: tuple[str, ...], groups: tuple[str, ...] | None = None) -> RegressionPosterior:
    """Draws around cost = 10 age - 5 bmi + 100, without sampling."""
    rng = np.random.default_rng(1)
    lead = () if groups is None else (len(groups),)
    names = (*x, "intercept", "sigma2")
    middle = {"age": 10.0, "bmi": -5.0, "intercept": 100.0, "sigma2": 400.0}
    draws = {n: middle[n] * rng.normal(1, 0.02, (*lead, 4, 250)) for n in names}
    fine = {n: np.full(lead, 1.0) for n in names}, {n: np.full(lead, 900.0) for n in names}
    return RegressionPosterior(draws, *fine, "exact", x, "cost", keys=groups)


@pytest.fixture
def post(tmp_path: Path) -> Path:
    return made(("age", "bmi")).save(tmp_path / "p.nc")


def test_what_a_person_sees(noisewise: Run, tmp_path: Path) -> None:
    out = tmp_path / "p.nc"
    seen = noisewise("infer", published(tmp_path), "--out", out, "--method", "naive", "--seed", "3")
    assert (seen.code, seen.err) == (0, "")
    for words in ("Posterior of cost on age, bmi, method naive", "privacy", "95 %", "converged"):
        assert words in seen.out
    again = nw.infer(nw.Release.load(tmp_path / "r.json"), "naive", seed=3)
    np.testing.assert_array_equal(nw.load_posterior(out).draws["bmi"], again.draws["bmi"])
    row = next(line for line in seen.out.splitlines() if "bmi" in line and "│" in line)
    assert f"{again.draws['bmi'].mean():.4g}" in row


def test_other_columns_and_json(noisewise: Run, tmp_path: Path) -> None:
    out = tmp_path / "p.nc"
    words = ("--method", "naive", "--x", "cost", "--x", "bmi", "--y", "age")
    seen = noisewise("infer", published(tmp_path), "-o", out, *words, "--json")
    said = json.loads(seen.out)
    assert [row["parameter"] for row in said["parameters"]] == [
        "cost",
        "bmi",
        "intercept",
        "sigma2",
    ]
    assert said["out"] == str(out)
    assert said["guarantees"] == [nw.Release.load(tmp_path / "r.json").guarantee.statement()]
    post = nw.load_posterior(out)
    assert isinstance(post, RegressionPosterior)
    assert post.x == ("cost", "bmi")


def test_a_selection_that_may_be_empty(noisewise: Run, tmp_path: Path) -> None:
    path, out = tmp_path / "r.json", tmp_path / "p.nc"
    # Of a plan all sums are 0.
    nw.release.exponential_family(
        nw.release.Blank(1000), column="owns", family="bernoulli", epsilon=1.0,
        neighbours="add-remove", where="smoker = 'Yes'",
    ).save(path)  # fmt: skip
    seen = noisewise("infer", path, "--out", out)
    assert seen.code == 0
    assert "selected: records with smoker = 'Yes'" in seen.out
    said = " ".join(seen.err.split())
    assert "the noisy number of records with smoker = 'Yes' is 0, with noise" in said
    assert "there may be none" in said
    said = json.loads(noisewise("infer", path, "--out", out, "--json").out)
    assert said["where"] == ["smoker = 'Yes'"]


def test_a_warning_if_not_converged(
    noisewise: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """4,000 draws cannot be 5,000 effective ones."""
    monkeypatch.setattr("noisewise.inference.results.ESS", 5000)
    words = ("--method", "naive", "-o", tmp_path / "p.nc")
    seen = noisewise("infer", published(tmp_path), *words)
    assert seen.code == 0
    assert seen.err.startswith("warning: not converged")
    assert "Ask for more draws" in seen.err
    assert not nw.load_posterior(tmp_path / "p.nc").converged


def test_chains_and_draws_are_passed_on(noisewise: Run, tmp_path: Path) -> None:
    seen = noisewise("infer", published(tmp_path), "-o", tmp_path / "p.nc", "--chains", "1")
    assert "chains: must be a whole number of at least 2, not 1" in seen.err
    seen = noisewise("infer", published(tmp_path), "-o", tmp_path / "p.nc", "--draws", "7")
    assert "draws: must be a whole number of at least 100, not 7" in seen.err


def test_refusals_come_before_sampling(noisewise: Run, tmp_path: Path) -> None:
    given = published(tmp_path)
    for out, says in (
        (tmp_path / "no" / "p.nc", "there is no folder"),
        (given, "exists and is not a posterior"),
    ):
        seen = noisewise("infer", given, "-o", out)
        assert (seen.code, seen.out) == (1, "")
        assert says in seen.err
    assert (
        "must be one of exact"
        in noisewise("infer", given, "-o", tmp_path / "p.nc", "--method", "magic").err
    )
    assert not (tmp_path / "p.nc").exists()
    assert noisewise("infer", tmp_path / "none.json", "-o", tmp_path / "p.nc").code == 1


def test_predict_in_the_users_units(noisewise: Run, post: Path) -> None:
    seen = noisewise("predict", post, "--at", "age=40,bmi=25", "--at", "bmi=30,age=60", "--json")
    rows = json.loads(seen.out)
    known = nw.load_posterior(post)
    for row, at in zip(rows, ({"age": 40, "bmi": 25}, {"age": 60, "bmi": 30}), strict=True):
        found = known.predict(at)
        assert {c: row[c] for c in at} == at
        assert row["mean"] == pytest.approx(float(found.mean))
        assert (row["lower"], row["upper"]) == pytest.approx(tuple(found.interval(0.9)))
        line = tuple(found.mean_interval(0.9))
        assert (row["mean_lower"], row["mean_upper"]) == pytest.approx(line)
    shown = noisewise("predict", post, "--at", "age=40,bmi=25", "--level", "0.5").out
    assert "50% intervals" in shown
    assert f"{rows[0]['median']:.4g}" in shown


def test_what_to_know_comes_before_predictions(noisewise: Run, post: Path, tmp_path: Path) -> None:
    known = nw.load_posterior(post)
    assert isinstance(known, RegressionPosterior)
    hidden = replace(known, details={**known.details, "hidden": ["age"]}).save(tmp_path / "h.nc")
    asked = ("predict", hidden, "--at", "age=40,bmi=25")
    said = "To know: The noise hides how much age varies"
    shown = noisewise(*asked).out
    assert -1 < shown.find(said) < shown.find("New records")
    # What scripts read holds rows only.
    for words in (["--json"], ["-o", tmp_path / "rows.csv"]):
        seen = noisewise(*asked, *words)
        assert said in seen.err
        assert "To know" not in seen.out
    assert "To know" not in noisewise("predict", post, "--at", "age=40,bmi=25").out


def test_a_posterior_that_has_not_converged_says_so_when_it_predicts(
    noisewise: Run, post: Path, tmp_path: Path
) -> None:
    known = nw.load_posterior(post)
    assert isinstance(known, RegressionPosterior)
    poor = replace(known, rhat={name: np.asarray(1.5) for name in known.rhat})
    seen = noisewise("predict", poor.save(tmp_path / "poor.nc"), "--at", "age=40,bmi=25")
    assert "warning: not converged" in seen.err


def test_a_mean_that_far_draws_decide_is_a_dash(
    noisewise: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from noisewise.inference import Posterior

    inside = Posterior.summary

    def summary(self: Posterior, interval: float = 0.95) -> pd.DataFrame:
        table = inside(self, interval)
        table.loc["age", ["mean", "sd"]] = -45_958.0, 1e7
        return table

    monkeypatch.setattr(Posterior, "summary", summary)
    out = noisewise("infer", published(tmp_path), "-o", tmp_path / "p.nc", "--method", "naive").out
    (row,) = (line for line in out.splitlines() if line.startswith("│ age"))
    assert [cell.strip() for cell in row.split("│")[5:7]] == ["-", "-"]
    assert "-45,958" not in out
    assert "Where a dash stands for mean and sd, a few draws" in out


def test_predict_a_csv_file(noisewise: Run, post: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.csv"
    new.write_text("name,bmi,age\na,25,40\nb,30,60\n")
    out = tmp_path / "predicted.csv"
    assert noisewise("predict", post, "--csv", new, "-o", out).code == 0
    frame = pd.read_csv(out)
    assert list(frame) == [
        "age", "bmi", "median", "lower", "upper", "mean", "mean_lower", "mean_upper",
    ]  # fmt: skip
    expected = nw.load_posterior(post).predict({"age": 60, "bmi": 30}).mean
    assert frame["mean"][1] == pytest.approx(float(expected))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "give one of them, with a value for each of age, bmi"),
        (("--at", "age=40"), "each of age, bmi, and to nothing else, not 'age=40'"),
        (("--at", "age=40,bmi=x"), "--at bmi: 'x' is not a number"),
        (("--at", "age=nan,bmi=1"), "--at age: must be a finite number"),
        (("--at", "age=4,age=5,bmi=1"), "'age' is given twice"),
        (("--at", "age=40,bmi=25", "--level", "90"), "--level: must be between 0 and 1"),
        (("--csv", "absent.csv"), "--csv: 'absent.csv' cannot be read"),
        (("--csv", "odd.csv"), "--csv line 3, column bmi: '' is not a number"),
        (("--csv", "short.csv"), "has no column 'bmi'"),
        (("--csv", "bare.csv"), "has no rows"),
        (("--at", "age=40,bmi=25", "-o", "text.txt"), "will not be overwritten"),
    ],
)
def test_predict_refuses(
    words: tuple[str, ...], says: str, noisewise: Run, post: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(post.parent)
    Path("odd.csv").write_text("age,bmi\n1,2\n3,\n")
    Path("short.csv").write_text("age\n1\n")
    Path("bare.csv").write_text("age,bmi\n")
    Path("text.txt").write_text("mine")
    seen = noisewise("predict", post, *words)
    assert (seen.code, seen.out) == (1, "")
    assert says in seen.err


def test_predict_outside_the_bounds_is_warned_of(noisewise: Run, tmp_path: Path) -> None:
    out = tmp_path / "p.nc"
    noisewise("infer", published(tmp_path), "--out", out, "--method", "naive")
    assert noisewise("predict", out, "--at", "age=100,bmi=10").err == ""
    seen = noisewise("predict", out, "--at", "age=140,bmi=25", "--json")
    assert seen.code == 0
    assert seen.err.startswith("warning: age = 140 lies outside its public bounds, 0 to 100")
    assert seen.err.count("\n") == 1
    assert len(json.loads(seen.out)) == 1


def test_predict_groups_and_families(noisewise: Run, tmp_path: Path) -> None:
    out = made(("age", "bmi"), ("north", "south")).save(tmp_path / "g.nc")
    rows = json.loads(noisewise("predict", out, "--at", "age=40,bmi=25", "--json").out)
    assert [row["group"] for row in rows] == ["north", "south"]
    family = Categorical(("a", "b"))
    share = np.random.default_rng(2).uniform(size=(4, 250))
    rhat = dict.fromkeys(family.names, np.array(1.0))
    ess = dict.fromkeys(family.names, np.array(900.0))
    draws = {"p[a]": share, "p[b]": 1 - share}
    FamilyPosterior(draws, rhat, ess, "exact", "cost", family).save(out)
    (row,) = json.loads(noisewise("predict", out, "--json").out)
    assert row == pytest.approx({"a": share.mean(), "b": 1 - share.mean()})
    assert "no covariates" in noisewise("predict", out, "--at", "a=1").err


def test_a_posterior_of_another_version(noisewise: Run, post: Path) -> None:
    import h5py

    with h5py.File(post, "a") as raw:
        raw["posterior"].attrs["noisewise_version"] = 9
    seen = noisewise("predict", post, "--at", "age=40,bmi=25")
    assert seen.code == 1
    assert "has posterior format 9" in seen.err


def test_several_releases(noisewise: Run, tmp_path: Path) -> None:
    frame = pd.DataFrame({"c": ["x", "y", "y"] * 20})
    paths = []
    for e in (0.5, 0.75):
        made = nw.release.exponential_family(
            frame, column="c", family="categorical", levels=["x", "y"], epsilon=e
        )
        paths.append(made.save(tmp_path / f"{e}.json"))
    refused = noisewise("infer", *paths, "-o", tmp_path / "p.nc")
    assert refused.code == 1
    assert "--same-population" in refused.err
    seen = noisewise("infer", *paths, "-o", tmp_path / "p.nc", "--same-population")
    assert (seen.code, seen.err) == (0, "")
    assert "0.5-differential" in seen.out
    assert "0.75-differential" in seen.out
