"""Small areas at a shell: pooled groups, public features from a file, ranks for a map."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import noisewise as nw

Run = Callable[..., Any]
KEYS = ("01001", "01003", "01005")


@pytest.fixture
def areas(tmp_path: Path) -> tuple[Path, Path]:
    """A release of three tracts, whose keys begin with a zero, and a file of features."""
    rng = np.random.default_rng(5)
    people = pd.DataFrame({"tract": np.repeat(KEYS, 80), "owns": rng.binomial(1, 0.4, 240)})
    release = nw.release.exponential_family(
        people, column="owns", family="bernoulli", groups={"tract": KEYS}, epsilon=5.0
    )
    features = tmp_path / "features.csv"
    features.write_text("tract,poverty\n01005,0.3\n01001,0.1\n01003,0.25\n99999,0.9\n")
    return release.save(tmp_path / "r.json"), features


def test_pooled_areas_are_inferred_ranked_and_reported(
    noisewise: Run, areas: tuple[Path, Path], tmp_path: Path
) -> None:
    release, features = areas
    post = tmp_path / "p.nc"
    words = ("infer", release, "--pool", "--features", features, "--draws", "200", "--out", post)
    seen = noisewise(*words)
    assert seen.code == 0, seen.err
    for expected in ("What the groups share", "mean of p", "poverty", "To know: Pooled intervals"):
        assert expected in seen.out
    table = tmp_path / "ranks.csv"
    seen = noisewise("ranks", post, "--above", "0.5", "--out", table)
    assert (seen.code, seen.out) == (0, f"wrote {table}\n")
    rows = pd.read_csv(table, dtype={"tract": str})
    assert sorted(rows["tract"]) == list(KEYS)
    assert list(rows.columns) == [
        "tract", "mean", "median", "lower", "upper", "rank", "rank_lower", "rank_upper",
        "top_decile", "bottom_decile", "probability_above", "shrinkage",
    ]  # fmt: skip
    assert "Ranks of owns (bernoulli); 95% intervals" in noisewise("ranks", post).out
    page = tmp_path / "page.html"
    assert noisewise("report", post, "--out", page).code == 0
    written = page.read_text(encoding="utf-8")
    for expected in ("What the groups share", "01003", "mostly prior", "drawn towards the others"):
        assert expected in written
    told = json.loads(noisewise(*words, "--json").out)
    # Secret sizes that differ no more than their noise tell nothing.
    named = ["mean of p", "sd of p", "poverty"]
    assert [row["parameter"] for row in told["population"]] == named


def test_some_groups_are_named(noisewise: Run, areas: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "p.nc"
    seen = noisewise("infer", areas[0], "--group", "01003", "--method", "naive", "--out", out)
    assert seen.code == 0, seen.err
    assert getattr(nw.load_posterior(out), "keys", None) == ("01003",)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--features", "features.csv"], "--features: goes with pooled groups; give --pool too"),
        (["--pool", "--features", "none.csv"], "--features: 'none.csv' cannot be read: No such"),
        (["--pool", "--features", "f.csv"], "--features: 'f.csv' has no column 'tract'"),
        (["--group", "7"], "--group: '7' is no group of the release, which has '01001'"),
        (["--pool", "--group", "01001"], "--pool: at least 3 groups are needed"),
        (["--pool", "--method", "gibbs"], "--pool: 'gibbs' takes every group by itself"),
        (["--pool", "--parent", "county"], "--parent: 'county' must be a column of features"),
    ],
)
def test_what_is_refused(
    noisewise: Run, areas: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    words: list[str], says: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("f.csv").write_text("area,poverty\n1,0.3\n")
    seen = noisewise("infer", areas[0], *words, "--out", "p.nc")
    assert seen.code == 1
    assert says in seen.err


def test_a_result_without_groups_has_no_ranks(noisewise: Run, tmp_path: Path) -> None:
    release = nw.release.exponential_family(
        pd.DataFrame({"owns": [0, 1] * 50}), column="owns", family="bernoulli", epsilon=1.0
    )
    post = nw.infer(release, "naive").save(tmp_path / "p.nc")
    seen = noisewise("ranks", post)
    assert (seen.code, seen.err) == (
        1, "error: RESULT: groups are ranked, and this result has none\n"
    )  # fmt: skip


def test_a_plan_of_pooled_groups_needs_three(noisewise: Run) -> None:
    words = ("plan", "exponential-family", "--column", "owns", "--family", "bernoulli", "--n", "50")
    for groups in ("2", "0", "-3"):
        seen = noisewise(*words, "--epsilon", "1", "--pooled-groups", groups)
        assert seen.code != 0
        assert f"--pooled-groups: must be at least 3, not {groups}" in seen.err
