"""Killed at any moment, or raced for: every release that exists is in the ledger, none too many."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from noisewise import Release
from noisewise.release.ledger import cost_of, open_ledger

LONGEST = 0.25
"""Seconds until the kill at most: a release takes some tens of milliseconds."""


@contextmanager
def worker(
    ledger: str, dataset: str, folder: Path, most: int, epsilon: float
) -> Iterator[subprocess.Popen[str]]:
    folder.mkdir(parents=True)
    command = [sys.executable, "-m", "tests.release.release_worker", ledger, dataset]
    process = subprocess.Popen(
        [*command, str(folder), str(most), str(epsilon)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def kill_and_audit(ledger: str, folder: Path, kills: int, seed: int) -> tuple[int, int]:
    """How many files survived, how many spends were made; every file must have its spend."""
    moments = random.Random(seed)
    for kill in range(kills):
        with worker(ledger, "kills", folder / str(kill), 10_000, 0.001) as process:
            ready(process)
            go(process)
            time.sleep(moments.uniform(0, LONGEST))
            process.kill()
    files = list(folder.rglob("release-*.json"))
    releases = [Release.load(f) for f in files]  # none of them half-written
    with open_ledger(ledger) as book:
        claims = [(r.receipt, cost_of(r.guarantee)) for r in releases if r.receipt is not None]
        assert len(claims) == len(files)
        assert book.audit(claims) == ()
        spends = sum(entry.kind == "spend" for entry in book.entries("kills"))
    print(f"{kills} kills: {len(files)} files, {spends} spends")
    assert spends >= len(files)
    return len(files), spends


def account(ledger: str, dataset: str, epsilon: float) -> None:
    with open_ledger(ledger, create=True) as book:
        book.set_budget(dataset, epsilon=epsilon)


def test_a_killed_release_has_its_spend_in_the_ledger(tmp_path: Path) -> None:
    ledger = str(tmp_path / "ledger.db")
    account(ledger, "kills", 1e6)
    files, _ = kill_and_audit(ledger, tmp_path / "out", kills=6, seed=1)
    assert files > 0


@pytest.mark.evidence
@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_two_hundred_kills(store: str, tmp_path: Path, postgres_url: str) -> None:
    ledger = str(tmp_path / "ledger.db") if store == "sqlite" else postgres_url
    account(ledger, "kills", 1e6)
    files, spends = kill_and_audit(ledger, tmp_path / "out", kills=200, seed=2)
    print(f"{store}: 200 kills, {files} release files, {spends} spends, none without its spend")


@pytest.mark.evidence
@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_sixteen_processes_race_for_ten_releases(
    store: str, tmp_path: Path, postgres_url: str
) -> None:
    ledger = str(tmp_path / "ledger.db") if store == "sqlite" else postgres_url
    account(ledger, "race", 1.0)
    with ExitStack() as stack:
        racers = [
            stack.enter_context(worker(ledger, "race", tmp_path / f"{i}", 1, 0.1))
            for i in range(16)
        ]
        for racer in racers:
            ready(racer)
        for racer in racers:
            go(racer)
        codes = [racer.wait(timeout=120) for racer in racers]
    files = list(tmp_path.rglob("release-*.json"))
    print(f"{store}: exit codes {sorted(codes)}, {len(files)} release files")
    assert sorted(codes) == [0] * 10 + [3] * 6
    assert len(files) == 10
