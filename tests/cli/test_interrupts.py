"""Ctrl-C: the program ends, with status 130 and one line, and nothing is half done."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import noisewise as nw
from noisewise.artifact import BudgetError
from noisewise.privacy.ledger import cost_of, open_ledger
from noisewise.privacy.ledger.accounts import NO_RELEASE
from noisewise.privacy.mechanisms import Calibrated
from tests.cli.interrupted import Interrupt, interrupt

LEAST_S = 0.4
"""Seconds after which the program is surely past Python's own start, before which Python answers an
interrupt in its own way."""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CSV file that takes a second or two to read."""
    path = tmp_path_factory.mktemp("data") / "people.csv"
    rng = np.random.default_rng(0)
    pd.DataFrame(rng.random((300_000, 4)), columns=["a", "b", "c", "y"]).to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release whose inference takes long, most of it in compiled code."""
    rng = np.random.default_rng(0)
    columns = ["a", "b", "c", "d", "e", "y"]
    people = pd.DataFrame(rng.random((500, 6)), columns=columns)
    made = nw.release.linear_regression(
        people, x=columns[:-1], y="y", bounds=dict.fromkeys(columns, (0, 1)), epsilon=5.0
    )
    return made.save(tmp_path_factory.mktemp("release") / "release.json")


def release_words(table: Path, out: Path) -> list[object]:
    # Bounds that are chosen privately are paid for before the table is read a second time.
    bounds = ["a=private:0,10", *(f"{c}=0,1" for c in "bcy")]
    given = [word for b in bounds for word in ("--bounds", b)]
    columns = ["--x", "a", "--x", "b", "--x", "c", "--y", "y"]
    words = ["release", "linear-regression", table, *columns, *given, "--epsilon", 5]
    return [*words, "--out", out]


def infer_words(release: Path, out: Path) -> list[object]:
    return ["infer", release, "--out", out, "--draws", 200_000]


def ledger_agrees(table: Path, files: list[Path]) -> tuple[int, int]:
    """How many spends, and how many of them the ledger says were for nothing; none is missing."""
    beside = table.parent / ".noisewise-ledger.db"
    if not beside.exists():
        assert not files
        return 0, 0
    with open_ledger(beside) as ledger:
        releases = [nw.Release.load(file) for file in files]
        assert ledger.audit(releases) == ()
        accounts = ledger.accounts()
        entries = ledger.entries(accounts[0].dataset) if accounts else ()
    paid = {release.receipt.entry for release in releases if release.receipt is not None}
    spends = {entry.entry for entry in entries if entry.kind == "spend"}
    lost = {e.description for e in entries if e.description.startswith(NO_RELEASE)}
    noted = {words.removeprefix(NO_RELEASE).partition(":")[0] for words in lost}
    assert paid | noted == spends
    assert not paid & noted
    return len(spends), len(noted)


def assert_clean(ended: Interrupt, folder: Path, within: float) -> None:
    """It ended as it should; files that are there are whole, and no others are."""
    assert ended.status == 130, ended
    assert ended.said.splitlines()[-1:] == ["interrupted"], ended
    assert "Traceback" not in ended.said
    assert ended.seconds < within, ended
    assert not list(folder.glob(".noisewise-*.tmp"))


@pytest.mark.parametrize("after", [1.0, 4.0])
def test_inference_is_interrupted(release: Path, tmp_path: Path, after: float) -> None:
    ended = interrupt(infer_words(release, tmp_path / "p.nc"), after, tmp_path)
    assert_clean(ended, tmp_path, within=60)  # a busy machine; `make evidence` asks for two seconds
    assert list(tmp_path.iterdir()) == []


def test_a_release_is_interrupted(table: Path, tmp_path: Path) -> None:
    ended = interrupt(release_words(table, tmp_path / "r.json"), 1.0, tmp_path)
    if ended.status == 0:
        pytest.skip("the machine was quicker than the interrupt")
    assert_clean(ended, tmp_path, within=60)
    ledger_agrees(table, list(tmp_path.glob("r.json")))


def test_a_plan_says_what_it_knew(tmp_path: Path) -> None:
    """Once something was compiled it is simulating, for half a minute or so."""
    compiled = tmp_path.with_name(f"{tmp_path.name}-compiled")
    words = ["plan", "linear-regression", "--formula", "pay ~ age * C(sex)", "--levels", "sex=f,m",
             "--bounds", "age=0,100", "--bounds", "pay=0,9", "--n", 2000, "--epsilon", "0.5,1,2",
             "--method", "exact"]  # fmt: skip
    ended = interrupt(words, lambda: any(compiled.glob("*")), tmp_path)
    assert ended.status == 130, ended
    last = ended.said.splitlines()[-1]
    assert last.startswith(("interrupted; no epsilon had been", "interrupted; mean widths of")), (
        last
    )
    assert "Traceback" not in ended.said


@pytest.mark.evidence
def test_forty_interrupts_end_within_two_seconds(
    table: Path, release: Path, tmp_path: Path
) -> None:
    moments = random.Random(9)
    ended: list[Interrupt] = []
    files: list[Path] = []
    finished = 0
    for trial in range(100):
        folder = tmp_path / str(trial)
        folder.mkdir()
        if trial % 2:
            out = folder / "r.json"
            one = interrupt(release_words(table, out), moments.uniform(LEAST_S, 8), folder)
            files += [out] if out.exists() else []
        else:
            out = folder / "p.nc"
            one = interrupt(infer_words(release, out), moments.uniform(LEAST_S, 20), folder)
            assert not out.exists()
        if one.status == 0:
            finished += 1
            continue
        assert_clean(one, folder, within=2.0)
        ended.append(one)
        if len(ended) == 40:
            break
    spends, noted = ledger_agrees(table, files)
    slowest = max(one.seconds for one in ended)
    print(
        f"{len(ended)} interrupts ended with status 130, the slowest after {slowest:.2f} s; "
        f"{finished} commands had finished before; {spends} spends, {len(files)} releases, "
        f"{noted} spends that the ledger says were for nothing"
    )
    assert len(ended) == 40


# -- a spend without a release -----------------------------------------------------------------


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, BudgetError])
def test_the_ledger_says_which_spend_was_for_nothing(
    error: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ledger.db"
    with open_ledger(path, create=True) as ledger:
        ledger.set_budget("people", epsilon=1.0)

    def fail(*_: Any) -> None:
        raise error

    words: dict[str, Any] = {"column": "owns", "family": "bernoulli", "epsilon": 0.25}
    people = pd.DataFrame({"owns": [0, 1, 1]})
    with monkeypatch.context() as patch:
        patch.setattr(Calibrated, "draw", fail)
        with pytest.raises(error):
            nw.release.exponential_family(people, **words, ledger=path)
    made = nw.release.exponential_family(people, **words, ledger=path)
    with open_ledger(path) as ledger:
        _, first, note, second = ledger.entries()
        assert note.description == f"{NO_RELEASE}{first.entry}: {error.__name__}"
        assert (note.former_units, note.units) == (10**12, 10**12)
        assert made.receipt is not None
        assert made.receipt.entry == second.entry
        assert ledger.audit([(made.receipt, cost_of(made.guarantee))]) == ()
        assert ledger.accounts()[0].spent == 0.5


STUCK = """
import hashlib
from noisewise.cli.main import run
from noisewise.privacy.mechanisms import Calibrated

# Minutes of compiled code that neither returns to Python nor looks at signals.
Calibrated.draw = lambda *_: hashlib.pbkdf2_hmac("sha256", b"", b"", 2_000_000_000)
run()
"""


def test_an_interrupt_in_compiled_code_after_the_spend_is_noted(
    table: Path, tmp_path: Path
) -> None:
    people = tmp_path / "people.csv"
    people.write_text("".join(table.read_text().splitlines(keepends=True)[:100]))

    def is_spent() -> bool:
        ledger = tmp_path / ".noisewise-ledger.db"
        with suppress(nw.SourceError), open_ledger(ledger) as book:
            return any(account.spent for account in book.accounts())
        return False  # it is not there yet, or being made

    script = (sys.executable, "-c", STUCK)
    ended = interrupt(release_words(people, tmp_path / "r.json"), is_spent, tmp_path, script)
    assert_clean(ended, tmp_path, within=60)
    assert not (tmp_path / "r.json").exists()
    assert ledger_agrees(people, []) == (1, 1)


def test_a_note_is_shown_as_one(noisewise: Any, tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    noisewise("ledger", "set", path, "--dataset", "people", "--epsilon", 1)
    with open_ledger(path) as ledger:
        from noisewise.privacy.ledger import Cost

        receipt = ledger.spend(None, Cost("pure", 0.5, "replace-one"), "a release")
        assert ledger.note_lost(receipt.entry, "interrupted")
        assert ledger.note_lost(receipt.entry, "interrupted")  # once is enough
        assert not ledger.note_lost("no such spend", "interrupted")
    said = noisewise("ledger", "show", path, "--dataset", "people").out
    assert " note " in said
    entries = json.loads(noisewise("ledger", "show", path, "--dataset", "people", "--json").out)
    assert len(entries["entries"]) == 3


def test_an_interrupt_is_understood_before_anything_is_loaded(tmp_path: Path) -> None:
    command = tmp_path / "noisewise"
    command.write_text("from noisewise.cli.main import run\nrun()\n")
    words = [sys.executable, "-X", "importtime", str(command), "--help"]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stderr
    loaded = [line.rpartition("|")[2].strip() for line in said.splitlines()]
    ready = loaded.index("noisewise.cli.early_interrupt")
    assert loaded[loaded.index("site") + 1 : ready] == ["__future__", "noisewise.cli"]


def test_an_interrupt_while_the_libraries_load_is_one_line(tmp_path: Path) -> None:
    command = tmp_path / "noisewise"
    raised = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nimport noisewise.cli.main\n"
    command.write_text(f"import noisewise\n{raised}")
    done = subprocess.run(
        [sys.executable, str(command)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (130, "interrupted\n")
