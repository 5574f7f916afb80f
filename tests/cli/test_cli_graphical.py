"""``infer``, ``sample`` and ``marginal`` of graphical models, and models from outside."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import noisewise as nw

Run = Callable[..., Any]

LEVELS = ("--levels", "sex=f,m", "--levels", "smokes=yes,no", "--levels", "tract=1..2")
CLIQUES = ("--clique", "sex,smokes", "--clique", "smokes,tract")


def people() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "sex": rng.choice(["f", "m"], 400),
            "smokes": rng.choice(["yes", "no"], 400, p=[0.2, 0.8]),
            "tract": rng.integers(1, 3, 400),
            "area": np.repeat(["north", "south"], 200),
        }
    )


@pytest.fixture
def release(noisewise: Run, tmp_path: Path) -> Callable[..., Path]:
    """Release as a person types it, and give the file."""

    def call(*more: str) -> Path:
        table, out = tmp_path / "people.csv", tmp_path / "release.json"
        people().to_csv(table, index=False)
        words = (*CLIQUES, *LEVELS, "--epsilon", "5", "--out", out, *more)
        ended = noisewise("release", "graphical-model", table, *words)
        assert (ended.code, ended.err) == (0, "")
        return out

    return call


@pytest.fixture
def fitted(noisewise: Run, release: Callable[..., Path], tmp_path: Path) -> Path:
    out = tmp_path / "model.json"
    assert noisewise("infer", release(), "--out", out).code == 0
    return out


@pytest.fixture
def posterior(noisewise: Run, release: Callable[..., Path], tmp_path: Path) -> Path:
    out = tmp_path / "posterior.npz"
    words = ("--method", "bayes", "--chains", "2", "--draws", "100", "--out", out)
    assert noisewise("infer", release(), *words).code == 0
    return out


def test_infer_shows_and_keeps_a_model(
    noisewise: Run, release: Callable[..., Path], tmp_path: Path
) -> None:
    out = tmp_path / "model.json"
    seen = noisewise("infer", release(), "--out", out)
    assert (seen.code, seen.err) == (0, "")
    for words in ("Result of sex, smokes, tract, method cgm", "5-differential", "share", "wrote"):
        assert words in seen.out
    kept = nw.load(out)
    assert isinstance(kept, nw.GraphicalModel)
    again = noisewise("infer", tmp_path / "release.json", "--out", out, "--json")
    said = json.loads(again.out)
    assert [row["level"] for row in said["parameters"]] == ["f", "m", "yes", "no", 1, 2]
    assert said["method"] == "cgm"


def test_options_of_the_model(noisewise: Run, release: Callable[..., Path], tmp_path: Path) -> None:
    out, given = tmp_path / "model.json", release()
    words = ("--method", "naive-mle", "--option", "lam=1e-2", "--option", "inference=exact")
    assert noisewise("infer", given, "--out", out, *words).code == 0
    expected = nw.infer(nw.Release.load(given), "naive-mle", lam=1e-2, inference="exact")
    kept = nw.load(out)
    assert isinstance(kept, nw.GraphicalModel)
    assert isinstance(expected, nw.GraphicalModel)
    np.testing.assert_array_equal(kept.potentials, expected.potentials)
    for more, says in (
        (("--option", "lam=1"), "--option lam: is no option of cgm, which has tied"),
        (("--option", "seed=1"), "--option seed: is an option of its own, --seed"),
        (("--option", "seed"), "--option: must look like NAME=VALUE"),
        (("--x", "sex"), "--x, --y, --prior: do not go with a graphical model"),
        (("--option", "inference=fast"), "--option inference"),
    ):
        seen = noisewise("infer", given, "--out", out, *more)
        assert (seen.code, seen.out) == (1, "")
        assert says in seen.err
        assert "--option --option" not in seen.err


def test_synthetic_records(noisewise: Run, fitted: Path, tmp_path: Path) -> None:
    out = tmp_path / "records.csv"
    words = ("--n", "50", "--seed", "7", "--out", out)
    seen = noisewise("sample", fitted, *words)
    assert (seen.code, seen.err) == (0, "")
    assert seen.out == f"wrote {out}: 50 synthetic records\n"
    model = nw.load(fitted)
    assert isinstance(model, nw.GraphicalModel)
    pd.testing.assert_frame_equal(pd.read_csv(out), model.sample(50, seed=7))
    assert noisewise("sample", fitted, *words).code == 0  # our own file may be replaced
    other = tmp_path / "mine.txt"
    other.write_text("mine")
    assert "will not be overwritten" in noisewise("sample", fitted, "--n", "5", "-o", other).err
    assert "--n: must be a whole number" in noisewise("sample", fitted, "--n", "0", "-o", out).err


def test_a_marginal_of_a_model(noisewise: Run, fitted: Path, tmp_path: Path) -> None:
    out = tmp_path / "table.csv"
    assert noisewise("marginal", fitted, "--columns", "tract, sex", "--out", out).code == 0
    frame = pd.read_csv(out)
    assert list(frame) == ["tract", "sex", "probability"]
    assert frame["probability"].sum() == pytest.approx(1)
    model = nw.load(fitted)
    assert isinstance(model, nw.GraphicalModel)
    expected = model.marginal(["tract", "sex"]).sel(tract=2, sex="m")
    row = frame[(frame.tract == 2) & (frame.sex == "m")]
    assert float(row.probability.iloc[0]) == pytest.approx(float(expected))
    shown = noisewise("marginal", fitted, "--columns", "sex")
    assert "Probabilities of sex, method cgm" in shown.out
    rows = json.loads(noisewise("marginal", fitted, "--columns", "sex", "--json").out)
    assert [set(r) for r in rows] == [{"sex", "probability"}] * 2
    seen = noisewise("marginal", fitted, "--columns", "age")
    assert "--columns: 'age' is not in the model, which has sex, smokes, tract" in seen.err


def test_a_marginal_of_a_posterior_has_intervals(noisewise: Run, posterior: Path) -> None:
    words = ("--columns", "smokes,sex", "--interval", "0.8", "--json")
    rows = json.loads(noisewise("marginal", posterior, *words).out)
    assert [list(r) for r in rows] == [["smokes", "sex", "probability", "lower", "upper"]] * 4
    kept = nw.load(posterior)
    assert isinstance(kept, nw.GraphicalPosterior)
    ends = kept.interval(["smokes", "sex"], 0.8)
    for row in rows:
        assert row["lower"] < row["probability"] < row["upper"]
        cell = ends.sel(smokes=row["smokes"], sex=row["sex"])
        assert [row["lower"], row["upper"]] == pytest.approx(cell.values.tolist())
    beyond = noisewise("marginal", posterior, "--columns", "sex,tract", "--json")
    assert beyond.code == 0
    assert beyond.err.startswith("warning: no intervals: ")
    assert "lower" not in json.loads(beyond.out)[0]
    assert "must be between 0 and 1" in noisewise("marginal", posterior, *words[:3], "2").err


def test_groups(noisewise: Run, release: Callable[..., Path], tmp_path: Path) -> None:
    out, records = tmp_path / "groups.json", tmp_path / "records.csv"
    given = release("--groups", "area=north,south", "--sizes", "public")
    assert noisewise("infer", given, "--out", out).code == 0
    assert noisewise("sample", out, "--n", "10", "--out", records).code == 0
    frame = pd.read_csv(records)
    assert list(frame) == ["group", "sex", "smokes", "tract"]
    assert frame["group"].tolist() == ["north"] * 10 + ["south"] * 10
    rows = json.loads(noisewise("marginal", out, "--columns", "smokes", "--json").out)
    assert [(r["group"], r["smokes"]) for r in rows] == [
        ("north", "yes"), ("north", "no"), ("south", "yes"), ("south", "no"),
    ]  # fmt: skip


def test_results_that_have_none_of_it(noisewise: Run, fitted: Path, tmp_path: Path) -> None:
    given = nw.release.exponential_family(
        pd.DataFrame({"c": ["x", "y", "y"] * 20}),
        column="c", family="categorical", levels=["x", "y"], epsilon=1.0,
    )  # fmt: skip
    path = given.save(tmp_path / "c.json")
    post = nw.infer(given).save(tmp_path / "c.nc")
    for words, says in (
        (("sample", post, "--n", "5", "-o", tmp_path / "r.csv"), "makes no synthetic records"),
        (("marginal", post, "--columns", "c"), "has no table of levels"),
        (("predict", fitted), "predicts no single record"),
        (("sample", path, "--n", "5", "-o", tmp_path / "r.csv"), "is a release; run noisewise inf"),
        (("marginal", "absent.json", "--columns", "c"), "No such file"),
    ):
        seen = noisewise(*words)
        assert (seen.code, seen.out) == (1, "")
        assert says in seen.err
        assert "--option --option" not in seen.err
        assert seen.err.count("\n") == 1


# -- a model from outside the package --------------------------------------------------------------


@pytest.fixture
def two_means() -> Iterator[None]:
    from tests.toy_model import TwoMeans

    if TwoMeans.name not in nw.models.names():
        nw.models.register(TwoMeans)
    yield
    nw.models.unregister(TwoMeans.name)


@pytest.mark.usefixtures("two_means")
def test_a_model_from_outside(noisewise: Run, tmp_path: Path) -> None:
    table, out, post = tmp_path / "t.csv", tmp_path / "r.json", tmp_path / "p.nc"
    pd.DataFrame({"a": [0.1, 0.5, 0.7] * 50, "b": [0.3, 0.2, 0.9] * 50}).to_csv(table, index=False)
    own = ("--columns", "a", "--columns", "b", "--bounds", "a=0,1", "--bounds", "b=0,1")
    assert "two-means" in noisewise("release", "--help").out
    assert "one of the two columns" in noisewise("plan", "two-means", "--help").out.lower()
    made = noisewise("release", "two-means", table, *own, "--epsilon", "2", "--out", out)
    assert (made.code, made.err) == (0, "")
    assert nw.Release.load(out).family == "two-means"
    assert noisewise("infer", out, "--out", post).code == 0
    assert noisewise("inspect", out).code == 0
    planned = noisewise("plan", "two-means", *own, "--n", "100", "--epsilon", "1", "--trials", "10")
    assert planned.code == 0, planned.err
    refused = noisewise("release", "two-means", table, *own[2:], "--epsilon", "2", "--out", out)
    assert "--columns: must be two, not 1" in refused.err
