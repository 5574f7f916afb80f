"""The framework of ``noisewise reproduce``, with a figure that takes no time."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from matplotlib.figure import Figure as Picture

from experiments.reproduce import catalogue
from experiments.reproduce.figure import Figure
from experiments.reproduce.page import write
from experiments.reproduce.runner import one
from experiments.reproduce.store import TrialStore
from experiments.reproduce.verdicts import Claim, judge

SETTINGS = {"sizes": [1, 2, 3], "seed": 7}


def claim(expect: str = "holds", **words: Any) -> Claim:
    entry = {
        "id": "c", "figure": "squares", "claim": "Squares grow.", "where": "nowhere", "paper": 9,
        "test": {"measure": "largest", "at_least": 9}, "expect": expect,
        "why": "" if expect == "holds" else "a reason", **words,
    }  # fmt: skip
    return Claim.read(entry)


def squares(calls: list[int]) -> Figure:
    def run(settings: Mapping[str, Any], trials: TrialStore) -> pd.DataFrame:
        def compute(size: int) -> dict[str, int]:
            calls.append(size)
            return {"square": size**2}

        rows = [trials.cell({"size": s}, lambda s=s: compute(s))[0] for s in settings["sizes"]]
        return pd.DataFrame(rows)

    def draw(table: pd.DataFrame) -> Picture:
        picture = Picture()
        picture.subplots().plot(table["size"], table["square"])
        return picture

    return Figure(
        "squares", "none", "Squares", run, draw,
        lambda table: {"largest": float(table["square"].max())},
    )  # fmt: skip


def test_a_figure_leaves_four_files_and_is_not_computed_twice(tmp_path: Path) -> None:
    calls: list[int] = []
    for _ in range(2):
        outcome = one(squares(calls), SETTINGS, [claim()], "quick", tmp_path)
    assert calls == [1, 2, 3]
    folder = tmp_path / "squares" / "quick"
    assert outcome.folder == folder
    assert pd.read_csv(folder / "table.csv")["square"].tolist() == [1, 4, 9]
    assert (folder / "figure.png").read_bytes()[:4] == b"\x89PNG"
    told = json.loads((folder / "provenance.json").read_text())
    assert told["command"] == "noisewise reproduce squares --quick"
    assert told["seed"] == 7
    assert told["cells_from_an_earlier_run"] == 3
    (row,) = json.loads((folder / "verdicts.json").read_text())
    assert (row["verdict"], row["ours"], row["paper"]) == ("holds", 9, "9")
    one(squares(calls), {**SETTINGS, "seed": 8}, [], "quick", tmp_path)
    assert calls == [1, 2, 3, 1, 2, 3]


@pytest.mark.parametrize(
    ("expect", "ours", "verdict", "as_expected"),
    [
        ("holds", 9.0, "holds", True),
        ("holds", 8.0, "does not hold", False),
        ("does not", 8.0, "does not hold", True),
        ("does not", 9.0, "holds", False),
        ("differs because E9", 8.0, "differs because E9", True),
        ("differs because E9", 9.5, "holds", False),
        ("holds", float("nan"), "does not hold", False),
    ],
)
def test_verdicts(expect: str, ours: float, verdict: str, as_expected: bool) -> None:
    found = judge(claim(expect), {"largest": ours}, "full")
    assert (found.verdict, found.as_expected) == (verdict, as_expected)


def test_looser_limits_serve_quick_runs_only() -> None:
    loose = claim(quick={"at_least": 5})
    assert judge(loose, {"largest": 6.0}, "quick").as_expected
    assert not judge(loose, {"largest": 6.0}, "full").as_expected


def test_claims_that_cannot_be_decided_are_refused() -> None:
    with pytest.raises(ValueError, match="needs one of at_most"):
        claim(test={"measure": "largest"})
    with pytest.raises(ValueError, match="not why"):
        claim("does not", why="")
    with pytest.raises(ValueError, match="'smallest' was not measured"):
        judge(claim(test={"measure": "smallest", "at_most": 1}), {"largest": 1.0}, "full")


def test_the_verb(
    noisewise: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, "figures", lambda: {"squares": squares([])})
    monkeypatch.setattr(catalogue, "settings", lambda figure, size: SETTINGS)
    monkeypatch.setattr(catalogue, "claims", lambda figure: [claim()])
    seen = noisewise("reproduce", "--quick", "--out", tmp_path)
    assert seen.code == 0, seen.err
    assert "1 figures, 1 claims, 0 not as expected" in seen.out
    monkeypatch.setattr(catalogue, "claims", lambda figure: [claim(), claim("does not")])
    seen = noisewise("reproduce", "squares", "--quick", "--out", tmp_path)
    assert seen.code == 1
    assert "1 not as expected" in seen.out
    assert "squares" in noisewise("reproduce", "--list").out
    wrong = noisewise("reproduce", "cubes", "--out", tmp_path)
    assert (wrong.code, "there is no figure 'cubes'" in wrong.err) == (1, True)


def test_every_claim_has_a_figure_and_every_figure_its_settings() -> None:
    figures = catalogue.figures()
    for figure in figures.values():
        for size in ("quick", "full"):
            assert "seed" in catalogue.settings(figure, size)
    for paper in catalogue.PAPERS:
        for entry in catalogue._json(paper, "expected.json"):
            assert Claim.read(entry).figure in figures


def test_the_page_shows_verdicts_reasons_and_pictures(tmp_path: Path) -> None:
    failing = claim("does not", id="f", test={"measure": "largest", "at_least": 10})
    made, claims = squares([]), [claim(), failing]
    one(made, SETTINGS, claims, "quick", tmp_path / "results")
    write(tmp_path / "page.md", [made], "quick", tmp_path / "results", lambda _: claims)
    text = (tmp_path / "page.md").read_text()
    for words in (
        "**1 figures, 2 claims.** does not hold: 1, holds: 1.",
        "Measured: 9 (wanted ≥ 10). a reason",
        "`noisewise reproduce squares --quick`, seed 7, quick run",
        "s of computing.",
        "![Squares](page/squares.png)",
        "| Squares grow. (nowhere) | 9 | 9 | largest ≥ 9 | holds |",
    ):
        assert words in text
    assert (tmp_path / "page" / "squares.png").stat().st_size < 20_000


def test_the_page_keeps_what_was_not_run_again(tmp_path: Path) -> None:
    """Full before quick, new before old; claims as they stand when the page is written."""
    made, page = squares([]), tmp_path / "page.md"

    def written(results: str, size: str, *claims: Claim) -> str:
        write(page, [made], size, tmp_path / results, lambda _: claims)
        return page.read_text()

    one(made, SETTINGS, [claim()], "quick", tmp_path / "first")
    quick = written("first", "quick", claim())
    assert written("nothing", "quick", claim()) == quick
    one(made, {**SETTINGS, "sizes": [1, 4]}, [claim()], "full", tmp_path / "second")
    full = written("second", "full", claim())
    assert "full run" in full
    assert "| 16 |" in full
    assert written("first", "quick", claim()) == full
    stricter = claim("does not", test={"measure": "largest", "at_least": 17})
    assert "Measured: 16 (wanted ≥ 17). a reason" in written("nothing", "quick", stricter)


def test_outside_a_checkout_it_says_so(
    noisewise: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("noisewise.cli.reproduce.CHECKOUT", tmp_path)
    seen = noisewise("reproduce", "--list")
    assert seen.code == 1
    assert "part of the checkout, not of the installed package" in seen.err
