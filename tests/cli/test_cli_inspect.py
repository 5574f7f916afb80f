"""``noisewise inspect`` and ``demo``: what a person sees of a release."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import noisewise as nw
from tests.artifact.factories import FACTORIES

Run = Callable[..., Any]

FRAME = pd.DataFrame({"a": [0.1, 0.4, 0.9], "b": [0.2, 0.5, 0.7], "g": [1, 2, 1]})
BOUNDS = {"a": (0, 1), "b": (0, 1)}


def strict(text: str) -> Any:
    """JSON as RFC 8259 has it: no NaN, no Infinity."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


def regression(**more: Any) -> nw.Release:
    words = {"x": "a", "y": "b", "bounds": BOUNDS, "epsilon": 1.0, **more}
    return nw.release.linear_regression(FRAME, **words)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "release.json"


def test_what_a_person_sees(noisewise: Run, path: Path) -> None:
    regression(epsilon=0.01).save(path)
    seen = noisewise("inspect", path)
    assert (seen.code, seen.err) == (0, "")
    for words in (
        "linear-regression release, made by noisewise",
        "0.01-differential privacy",
        "records: 3 (public, exact)",
        "gram: sums of columns mapped to [-1, 1]",
        "noise sd",
        "a*b",
        "mostly noise",
    ):
        assert words in seen.out
    assert max(len(line) for line in seen.out.splitlines()) <= 80


@pytest.mark.filterwarnings("ignore:bounds")  # three records are few
def test_groups_private_bounds_and_counts(noisewise: Run, path: Path) -> None:
    asked = nw.release.PrivateBounds((0, 9))
    regression(
        bounds={**BOUNDS, "a": asked}, groups={"g": [1, 2]}, monomials=True, count_clamped=True,
        epsilon=90.0, split={"gram": 1, "monomials": 1, "clamped": 1, "bounds": 50},
    ).save(path)  # fmt: skip
    seen = noisewise("inspect", path).out
    for words in (
        "records: secret, released with noise; 3 in all (public)",
        "groups: 2 (column 'g')",
        "The bounds of 'a' were found by a private search, at a cost of",
        "median size",
        "monomials: sums of columns mapped to [-1, 1]",
        "clamped: counts",
    ):
        assert words in seen


def test_what_a_script_reads(noisewise: Run, path: Path) -> None:
    release = regression()
    release.save(path)
    said = strict(noisewise("inspect", path, "--json").out)
    assert said["family"] == "linear-regression"
    assert said["model"] == {"x": ["a"], "y": "b"}
    assert (said["epsilon"], said["delta"], said["rho"]) == (1.0, 0.0, None)
    (block,) = said["statistics"]
    values = {row["statistic"]: row["value"] for row in block["components"]}
    assert values == dict(zip(*release.table()[["statistic", "value"]].to_numpy().T, strict=True))


@pytest.mark.parametrize("mechanism", [{}, {"mechanism": "gaussian", "delta": 1e-6}])
def test_hardly_any_noise_is_no_division_by_zero(
    mechanism: dict[str, Any], noisewise: Run, path: Path
) -> None:
    nw.release.graphical_model(
        FRAME, cliques=["g"], levels={"g": [1, 2]}, epsilon=1e4, **mechanism
    ).save(path)
    assert noisewise("inspect", path).code == 0
    strict(noisewise("inspect", path, "--json").out)


def test_names_are_shown_as_they_are(noisewise: Run, path: Path) -> None:
    """Rich would take these for colours, links and pictures."""
    levels = ["[red]a[/red]", "[/]", ":cat:", "[link=x]b"]
    frame = pd.DataFrame({"[bold]c": levels})
    nw.release.graphical_model(
        frame, cliques=["[bold]c"], levels={"[bold]c": levels}, epsilon=1.0
    ).save(path)
    seen = noisewise("inspect", path).out
    for level in levels:
        assert f"[bold]c={level}" in seen


def test_a_long_name_is_folded_and_a_long_table_cut(noisewise: Run, path: Path) -> None:
    column = "a_name_that_is_much_longer_than_a_terminal_is_wide" * 2
    nw.release.graphical_model(
        pd.DataFrame({column: range(40)}), cliques=[column], levels={column: range(40)}, epsilon=1.0
    ).save(path)
    seen = noisewise("inspect", path).out
    assert max(len(line) for line in seen.splitlines()) <= 80
    assert "and 16 more" in seen


def test_nothing_is_wrapped_in_a_pipe(
    noisewise: Run, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "a" * 120
    frame = FRAME.rename(columns={"a": long})
    limits = {long: (0, 1), "b": (0, 1)}
    nw.release.linear_regression(frame, x=long, y="b", bounds=limits, epsilon=1.0).save(path)
    monkeypatch.delenv("COLUMNS")
    seen = noisewise("inspect", path).out
    assert f"{long}*b" in seen
    assert nw.Release.load(path).statement() in seen
    assert max(map(len, seen.splitlines())) < 400


@pytest.mark.parametrize("content", [None, "", "x,y\n1,2\n", "{}"])
def test_files_that_are_no_releases(content: str | None, noisewise: Run, path: Path) -> None:
    if content is not None:
        path.write_text(content)
    ended = noisewise("inspect", path)
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("error: release: ")
    assert ended.err.count("\n") == 1


def test_people_are_not_called_records(noisewise: Run, path: Path) -> None:
    table = FRAME.assign(who=["p", "q", "r"])
    words: dict[str, Any] = {"unit": "who", "max_records": 1, "epsilon": 1.0}
    nw.release.linear_regression(table, x="a", y="b", bounds=BOUNDS, **words).save(path)
    assert "people (one record each): 3 (public, exact)" in noisewise("inspect", path).out
    levels, path = {"g": [1, 2]}, path.with_name("tables.json")
    nw.release.graphical_model(
        table, cliques=[("g",)], levels=levels, unit="who", epsilon=1.0
    ).save(path)  # fmt: skip
    assert "people: 3 (public, exact)" in noisewise("inspect", path).out


def test_a_posterior_given_for_a_release(noisewise: Run, path: Path) -> None:
    path.write_bytes(b"\x89HDF\r\n")
    ended = noisewise("inspect", path)
    assert ended.code == 1
    said = " ".join(ended.err.split())
    assert "it holds a posterior, which noisewise report, predict, sample and marginal take" in said


def test_demo(noisewise: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "a [bold] folder" / "demo"
    for runs in (1, 2):
        with monkeypatch.context() as patch:
            if runs == 1:  # the hundred other files are looked at once, by the second run
                patch.setattr("noisewise.cli.demo._danger", lambda console: None)
            ended = noisewise("demo", "--out", folder)
        assert ended.code == 0
        # The second run keeps the release of the first.
        assert ("release.json~1~" in ended.err) == (runs == 2)
        assert nw.Release.load(folder / "release.json").receipt is not None
        show = noisewise("ledger", "show", folder / "ledger.db", "--json")
        (account,) = json.loads(show.out)["accounts"]
        assert account["spent"] == runs
    # Commands to be copied stand on one line each, however long the path.
    assert f"   noisewise inspect {folder / 'release.json'}\n" in ended.out
    assert f"   noisewise ledger show {folder / 'ledger.db'}\n" in ended.out
    assert f"   {folder / 'report.html'}\n" in ended.out
    assert "differential privacy" in (folder / "report.html").read_text()
    assert nw.load_posterior(folder / "posterior.nc").converged
    # The finding: women earn 18 % less.
    women = re.search(r"women, beside men\s+│ exact\s+│\s+-(\d+)", ended.out)
    assert women is not None
    assert 15 <= int(women[1]) <= 21
    # Of a hundred files: exact holds the slope of the table in nearly all, naive in few.
    held = {
        line.split()[1]: int(line.split()[3])
        for line in ended.out.splitlines()
        if re.match(r"│ (exact|naive)\s+│\s+\d+ │", line)
    }
    assert held["exact"] >= 90
    assert held["naive"] <= 40


def test_demo_into_a_file(noisewise: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ended = noisewise("demo", "--out", tmp_path / "file")
    assert ended.code == 1
    assert "error: --out: " in ended.err


def test_a_quantile_says_what_its_interval_leaves_out(noisewise: Run, path: Path) -> None:
    FACTORIES["posterior-quantile"]().save(path)
    sure = noisewise("inspect", path)
    assert "not a private search that missed" in sure.out
    assert "it may have missed" not in sure.out
    path.unlink()
    FACTORIES["posterior-quantile-symmetric"]().save(path)
    seen = noisewise("inspect", path)
    assert (seen.code, seen.err) == (0, "")
    assert "it may have missed" in " ".join(seen.out.split())
    (caution,) = strict(noisewise("inspect", path, "--json").out)["cautions"][:1]
    assert "needs about 40" in caution


def test_a_warning_at_release_goes_to_stderr(noisewise: Run, path: Path, tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    pd.DataFrame({"a": range(40), "b": [i % 7 for i in range(40)]}).to_csv(table, index=False)
    ended = noisewise(
        "release", "posterior-quantile", table, "--x", "a", "--y", "b", "--coefficient", "a",
        "--p", "0.5", "--epsilon-bounds", "2", "--epsilon-value", "1", "--partitions", "4",
        "--out", path,
    )  # fmt: skip
    assert ended.err.startswith("warning: the private search")
    assert "quantile.py" not in ended.err
