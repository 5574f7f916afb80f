"""Summaries without draws: they say what the draws say, in slabs, parts, files and after a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import noisewise as nw
from noisewise.artifact import ArgumentError
from noisewise.inference import slabs, summary_files
from noisewise.inference.summaries import QUANTILES, STATISTICS
from noisewise.models.linear_regression import analyst
from tests.artifact.factories import FACTORIES
from tests.documents import ROOT
from tests.inference.regressions import CHAINS, DRAWS, release, table

BOUNDS = {"x1": (-1.0, 1.0), "y": (-1.0, 1.0)}


def areas(groups: int = 7, *, seed: int = 4, grouped: bool = True) -> nw.Release:
    rng = np.random.default_rng(seed)
    return release([table(rng, 60) for _ in range(groups)], BOUNDS, scale=0.5, grouped=grouped)


@pytest.fixture
def small_slabs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven groups are four slabs."""
    monkeypatch.setattr(analyst, "NAIVE_GROUPS_PER_SLAB", 2)


@pytest.fixture
def inferred(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The keys of each slab that is inferred from here on."""
    seen: list[tuple[str, ...]] = []
    real = slabs.summarise_slab

    def noted(model: str, releases: Any, *words: Any) -> Any:
        seen.append(releases[0].groups.keys)
        return real(model, releases, *words)

    monkeypatch.setattr(slabs, "summarise_slab", noted)
    return seen


def summary(given: Any, **words: Any) -> nw.PosteriorSummary:
    short = nw.infer(given, "naive", draws=100, keep="summary", **words)
    assert isinstance(short, nw.PosteriorSummary)
    return short


def same(one: nw.PosteriorSummary, two: nw.PosteriorSummary) -> None:
    pd.testing.assert_frame_equal(one.table(), two.table(), check_exact=True)
    assert one.words == two.words


@pytest.mark.parametrize("method", ["exact", "naive"])
def test_a_summary_says_what_the_draws_say(method: str) -> None:
    """To the last digit, where the groups fit one slab."""
    given = areas(3)
    post = nw.infer(given, method, chains=CHAINS, draws=DRAWS, seed=7)
    short = nw.infer(given, method, chains=CHAINS, draws=DRAWS, seed=7, keep="summary")
    assert isinstance(post, nw.Posterior)
    assert isinstance(short, nw.PosteriorSummary)
    pd.testing.assert_frame_equal(short.summary(), post.summary(), check_exact=True)
    half = post.summary(0.5)[["lower", "upper"]]
    pd.testing.assert_frame_equal(short.summary(0.5)[["lower", "upper"]], half, check_exact=True)
    for said in ("status", "converged", "unconverged", "cautions", "title", "prior", "guarantees"):
        assert getattr(short, said) == getattr(post, said), said
    line = short.by_group("x1")
    assert line.index.name == "place"
    np.testing.assert_array_equal(line["mean"], post.draws["x1"].mean(axis=(1, 2)))
    assert set(short.tries) == {1}


def test_numbers_by_hand() -> None:
    """Against NumPy's own, group by group."""
    given = areas(2)
    post, short = nw.infer(given, "naive", draws=100), summary(given)
    for i in range(2):
        for j, name in enumerate(short.parameters):
            drawn = post.draws[name][i].ravel()
            got = {s: short.numbers[s][j, i] for s in STATISTICS}
            assert got["mean"] == pytest.approx(sum(drawn) / len(drawn))
            assert got["sd"] == pytest.approx(np.sqrt(((drawn - drawn.mean()) ** 2).sum() / 399))
            for label, q in QUANTILES.items():
                place = q * (len(drawn) - 1)
                low, high = np.sort(drawn)[[int(place), int(np.ceil(place))]]
                assert got[label] == pytest.approx(low + (place - int(place)) * (high - low))


def test_any_posterior_can_be_summed_up() -> None:
    people = pd.DataFrame({"owns": [0, 1, 1, 1] * 50, "area": ["a", "b"] * 100})
    words: dict[str, Any] = {"column": "owns", "family": "bernoulli", "epsilon": 1.0}
    for groups in (None, {"area": ["a", "b"]}):
        given = nw.release.exponential_family(people, groups=groups, **words)
        post, short = nw.infer(given), nw.infer(given, keep="summary")
        assert isinstance(post, nw.Posterior)
        pd.testing.assert_frame_equal(short.summary(), post.summary(), check_exact=True)
        assert short.status == post.status
    with pytest.raises(ArgumentError, match="out: only groups of a linear regression without fac"):
        nw.infer(given, keep="summary", out="slabs")
    alone = summary(areas(1, grouped=False))
    assert alone.keys is None
    assert next(iter(alone.table().columns)) == "parameter"
    with pytest.raises(ArgumentError, match="this summary has none"):
        alone.by_group("x1")


def test_groups_that_are_left_out_are_named() -> None:
    rng = np.random.default_rng(4)
    given = release([table(rng, n) for n in (60, 2, 80)], BOUNDS, scale=0.5)
    with pytest.warns(UserWarning, match="1 of 3 groups"):
        short = summary(given)
    assert short.keys == ("g0", "g2")
    assert "1 of 3 groups could not be inferred" in short.status


@pytest.mark.parametrize(
    "ask",
    [
        lambda s: s.draws,
        lambda s: s.predict({"x1": 0}),
        lambda s: s.ranks("x1"),
        lambda s: s.probability_above(0.1, "x1"),
        lambda s: s.sample(3),
        lambda s: s.marginal("x1"),
        lambda s: s.to_arviz(),
        lambda s: s.summary(0.9),
        lambda s: nw.report.render(s),
    ],
)
def test_what_needs_draws_says_how_to_get_them(ask: Callable[[Any], Any]) -> None:
    with pytest.raises(ArgumentError, match=r"infer with keep='draws' \(--keep draws\)$"):
        ask(summary(areas(2)))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"keep": "summry"}, "keep: must be 'draws' or 'summary', not 'summry'"),
        ({"out": "slabs"}, "out: goes with keep='summary'"),
        ({"part": (1, 2)}, "part: goes with keep='summary'"),
        ({"keep": "summary", "part": (1, 2)}, "part: its slabs go to a folder"),
        ({"keep": "summary", "part": (3, 2), "out": "s"}, r"part: must be two whole.*\(3, 2\)"),
        ({"keep": "summary", "part": 3, "out": "s"}, "part: must be two whole numbers"),
        ({"keep": "summary", "pool": True}, "keep: pooled groups are inferred together"),
        ({"keep": "summary", "out": "no/where"}, "out: cannot make 'no/where': No such file"),
    ],
)
def test_arguments_that_do_not_go_together(
    words: dict[str, Any], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArgumentError, match=says):
        nw.infer(areas(3), **words)
    assert not [*tmp_path.iterdir()]


def test_graphical_models_are_not_summed_up() -> None:
    with pytest.raises(ArgumentError, match="keep: results of a graphical-model are no draws"):
        nw.infer(FACTORIES["graphical"](), keep="summary")


# -- files -----------------------------------------------------------------------------------------


def test_a_file_gives_the_summary_back(tmp_path: Path) -> None:
    short = summary(areas())
    path = short.save(tmp_path / "s.parquet")
    loaded = nw.load(path)
    assert isinstance(loaded, nw.PosteriorSummary)
    same(loaded, short)
    pd.testing.assert_frame_equal(pd.read_parquet(path), short.table(), check_dtype=False)


def test_keys_keep_their_type(tmp_path: Path) -> None:
    for keys in ([1, 2], ["01", "2"]):
        people = pd.DataFrame({"owns": [0, 1] * 50, "area": keys * 50})
        given = nw.release.exponential_family(
            people, column="owns", family="bernoulli", groups={"area": keys}, epsilon=1.0
        )
        short = nw.infer(given, keep="summary")
        assert short.keys == tuple(keys)
        loaded = nw.load(short.save(tmp_path / "s.parquet"))
        assert isinstance(loaded, nw.PosteriorSummary)
        assert loaded.keys == tuple(keys)


def _words(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    content = pq.read_table(path)
    said = json.loads(content.schema.metadata[b"noisewise"])
    change(said)
    pq.write_table(
        content.replace_schema_metadata({"noisewise": json.dumps(said)}), path, compression="none"
    )


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda said: said.update(version=2), "has summary format 2, this noisewise reads 1"),
        (lambda said: said.update(parameters=["a", "b", "c"]), "parameters are not in their order"),
        (lambda said: said["words"].update(title="a\x1b[31m"), "words must be printable text"),
        (lambda said: said["words"].pop("prior"), "lacks part of a summary"),
        (lambda said: said["words"].update(group_column=None), "rows of several groups"),
    ],
)
def test_files_that_were_changed(
    change: Callable[[dict[str, Any]], Any], says: str, tmp_path: Path
) -> None:
    path = summary(areas(2)).save(tmp_path / "s.parquet")
    _words(path, change)
    with pytest.raises(ArgumentError, match=says):
        nw.load(path)


def test_other_files_and_folders(tmp_path: Path) -> None:
    other = tmp_path / "other.parquet"
    pq.write_table(pa.table({"a": [1.0]}), other)
    with pytest.raises(ArgumentError, match=r"was not written by PosteriorSummary\.save"):
        nw.load(other)
    other.write_bytes(other.read_bytes()[:-9])
    with pytest.raises(ArgumentError, match="was changed or damaged"):
        nw.load(other)
    with pytest.raises(ArgumentError, match="is a folder, and not one of summaries"):
        nw.load(tmp_path)


def test_a_file_cannot_claim_more_rows_than_it_holds(tmp_path: Path) -> None:
    path = summary(areas(2)).save(tmp_path / "s.parquet")
    content = pq.read_table(path)
    many = pa.concat_tables([content.slice(0, 3)] * 20_000).combine_chunks()
    pq.write_table(many, path, compression="zstd")
    with pytest.raises(ArgumentError, match="it is too small for its rows"):
        nw.load(path)


# -- slabs -----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("small_slabs")
def test_slabs_parts_and_memory_give_equal_numbers(
    tmp_path: Path, inferred: list[tuple[str, ...]]
) -> None:
    given = areas()
    plain = summary(given, seed=5)
    assert sorted(inferred) == [("g0", "g1"), ("g2", "g3"), ("g4", "g5"), ("g6",)]
    same(summary(given, seed=5, out=tmp_path / "whole"), plain)
    same(nw.load(tmp_path / "whole"), plain)  # type: ignore[arg-type]
    third = summary(given, seed=5, out=tmp_path / "parts", part=(3, 3))
    assert third.keys == ("g4", "g5")
    with pytest.raises(ArgumentError, match=r"part: 3 of 4 slabs are missing in .*filled by parts"):
        summary(given, seed=5, out=tmp_path / "parts")
    with pytest.raises(ArgumentError, match="path: 3 of 4 slabs are missing"):
        nw.load(tmp_path / "parts")
    for number in (1, 2):
        summary(given, seed=5, out=tmp_path / "parts", part=(number, 3))
    inferred.clear()
    same(summary(given, seed=5, out=tmp_path / "parts"), plain)
    assert not inferred
    spare = summary(given, seed=5, out=tmp_path / "parts", part=(9, 9))
    assert (spare.keys, spare.converged) == ((), True)
    assert spare.status.startswith("there are no groups in this part")
    assert spare.summary().empty


@pytest.mark.usefixtures("small_slabs")
def test_a_slab_depends_on_its_own_groups_only(tmp_path: Path) -> None:
    """Other groups after it, and other noise in them, change nothing."""
    first = summary(areas(7), seed=5).table().iloc[: 2 * 2 * 3]
    fewer = summary(areas(7).of_groups(range(4)), seed=5).table()
    pd.testing.assert_frame_equal(fewer, first, check_exact=True)
    other = summary(areas(7).of_groups(range(4)), seed=6).table()
    assert not np.isin(other["mean"], first["mean"]).any()


def test_seeds_of_slabs_differ() -> None:
    seeds = [slabs.slab_seed(seed, number) for seed in range(20) for number in range(500)]
    assert len(set(seeds)) == len(seeds)
    assert slabs.slab_seed(3, 0) == 3
    assert max(seeds) < 2**56


@pytest.mark.usefixtures("small_slabs")
def test_what_is_there_is_not_inferred_again(
    tmp_path: Path, inferred: list[tuple[str, ...]]
) -> None:
    given, folder = areas(), tmp_path / "slabs"
    whole = summary(given, out=folder)
    (folder / summary_files.slab_name(2)).unlink()
    # What a killed process was writing.
    (folder / ".noisewise-unfinished.tmp").write_bytes(b"PAR1")
    inferred.clear()
    same(summary(given, out=folder), whole)
    assert inferred == [("g4", "g5")]
    read = pd.read_parquet(next(folder.glob("slab-*.parquet"))).columns
    assert list(read) == list(whole.table().columns)


@pytest.mark.usefixtures("small_slabs")
@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"seed": 6}, "is of another run: seed 5, not 6; give another folder"),
        ({"draws": 200}, "draws 100, not 200"),
        ({"chains": 2}, "chains 4, not 2"),
        ({"y": "x1", "x": ["y"]}, "its words differ"),
        ({"groups": ["g1", "g2"]}, "slabs 4, not 1"),
        ({"prior": {"response": nw.priors.NormalInverseGamma([0, 0], np.eye(2), 2, 0.1)}}, "prior"),
        ({"method": "exact"}, "method 'naive', not 'exact'"),
        ({"given": areas(7, seed=3)}, "its releases differ"),
    ],
)
def test_slabs_of_other_settings_are_refused(
    words: dict[str, Any], says: str, tmp_path: Path
) -> None:
    folder, asked = tmp_path / "slabs", {"method": "naive", "seed": 5, "draws": 100, **words}
    summary(areas(), seed=5, out=folder)
    with pytest.raises(ArgumentError, match=says):
        nw.infer(asked.pop("given", areas()), keep="summary", out=folder, **asked)


@pytest.mark.usefixtures("small_slabs")
def test_a_slab_from_another_folder_is_refused(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    summary(areas(), seed=5, out=one)
    summary(areas(), seed=6, out=two)
    name = summary_files.slab_name(1)
    (one / name).write_bytes((two / name).read_bytes())
    with pytest.raises(ArgumentError, match=r"slab-000001.* is of another run: seed 6, not 5"):
        summary(areas(), seed=5, out=one)
    (one / name).write_bytes((one / summary_files.slab_name(0)).read_bytes())
    with pytest.raises(ArgumentError, match="is of another slab"):
        nw.load(one)


def test_folders_that_are_not_ours(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("Dear")
    with pytest.raises(ArgumentError, match=r"holds other things, such as 'letter\.txt'"):
        summary(areas(), out=tmp_path)
    with pytest.raises(ArgumentError, match=r"out: cannot make .*File exists"):
        summary(areas(), out=tmp_path / "letter.txt")
    (tmp_path / "letter.txt").unlink()
    (tmp_path / summary_files.SETTINGS_FILE).write_text("{}")
    with pytest.raises(ArgumentError, match="is no settings of a run"):
        summary(areas(), out=tmp_path)


KILLED = """
import sys
from noisewise.models.linear_regression import analyst
import noisewise as nw
analyst.GROUPS_PER_SLAB = 256
nw.infer(sys.argv[1], seed=3, chains=4, draws=500, keep="summary", out=sys.argv[2])
"""


@pytest.mark.evidence
def test_a_killed_run_goes_on_with_equal_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By ``exact``, 1,536 groups in six slabs, killed once one of them is there."""
    path = areas(1536).save(tmp_path / "r.json")
    monkeypatch.setattr(analyst, "GROUPS_PER_SLAB", 256)
    folder = tmp_path / "killed"
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT}/src"}
    words = [sys.executable, "-c", KILLED, str(path), str(folder)]
    process = subprocess.Popen(words, env=environment)
    while not [*folder.glob("slab-*.parquet")]:
        assert process.poll() is None
        time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    there = {p: p.stat().st_mtime_ns for p in folder.glob("slab-*.parquet")}
    assert 1 <= len(there) < 6
    plain = nw.infer(path, seed=3, chains=4, draws=500, keep="summary")
    resumed = nw.infer(path, seed=3, chains=4, draws=500, keep="summary", out=folder)
    assert isinstance(plain, nw.PosteriorSummary)
    assert isinstance(resumed, nw.PosteriorSummary)
    same(resumed, plain)
    assert all(p.stat().st_mtime_ns == before for p, before in there.items())
    print(f"killed with {len(there)} of 6 slabs; equal to the last digit after going on")
