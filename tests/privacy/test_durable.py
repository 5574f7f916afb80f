"""Killed at any moment, or raced for: every release that exists is in the ledger, none too many."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from noisewise import Release
from noisewise.privacy.ledger import cost_of, open_ledger
from tests.privacy.release_worker import REFUSED

LONGEST = 0.25
"""Seconds until the kill at most: a release takes some tens of milliseconds."""


class Worker:
    """Handle of a release_worker: lives are begun, killed and waited for."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        assert self._line() == "ready"

    def begin(self, folder: Path) -> int:
        folder.mkdir(parents=True)
        assert self._process.stdin is not None
        self._process.stdin.write(f"{folder}\n")
        self._process.stdin.flush()
        return int(self._line())

    def end(self) -> int:
        return int(self._line())

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@contextmanager
def worker(ledger: str, dataset: str, most: int, epsilon: float) -> Iterator[Worker]:
    command = [sys.executable, "-m", "tests.privacy.release_worker", ledger, dataset]
    with subprocess.Popen(
        [*command, str(most), str(epsilon)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Worker(process)
        finally:
            process.kill()


def kill_and_audit(ledger: str, folder: Path, kills: int, seed: int) -> tuple[int, int]:
    """How many files survived, how many spends were made; every file must have its spend."""
    moments = random.Random(seed)
    with worker(ledger, "kills", 10_000, 0.001) as made:
        for kill in range(kills):
            life = made.begin(folder / str(kill))
            time.sleep(moments.uniform(0, LONGEST))
            os.kill(life, signal.SIGKILL)
            assert made.end() == -signal.SIGKILL
    files = list(folder.rglob("release-*.json"))
    releases = [Release.load(f) for f in files]  # none of them half-written
    with open_ledger(ledger) as book:
        claims = [(r.receipt, cost_of(r.guarantee)) for r in releases if r.receipt is not None]
        assert len(claims) == len(files)
        assert book.audit(claims) == ()
        spends = sum(entry.kind == "spend" for entry in book.entries("kills"))
    left = list(folder.rglob(".noisewise-*.tmp"))
    for place in {half.parent for half in left}:
        # A life saves one release after the other: the unfinished one is the next by number.
        releases[0].save(place / f"release-{len(list(place.glob('release-*.json')))}.json")
    assert not list(folder.rglob(".noisewise-*.tmp"))
    print(f"{kills} kills: {len(files)} release files, {spends} spends, {len(left)} cut in writing")
    assert spends >= len(files)
    return len(files), spends


def account(ledger: str, dataset: str, epsilon: float) -> None:
    with open_ledger(ledger, create=True) as book:
        book.set_budget(dataset, epsilon=epsilon)


def where(store: str, folder: Path, postgres_url: str) -> str:
    return str(folder / "ledger.db") if store == "sqlite" else postgres_url


def test_a_killed_release_has_its_spend_in_the_ledger(tmp_path: Path) -> None:
    ledger = str(tmp_path / "ledger.db")
    account(ledger, "kills", 1e6)
    files, _ = kill_and_audit(ledger, tmp_path / "out", kills=20, seed=1)
    assert files > 0


@pytest.mark.evidence
@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_two_hundred_kills(store: str, tmp_path: Path, postgres_url: str) -> None:
    ledger = where(store, tmp_path, postgres_url)
    account(ledger, "kills", 1e6)
    files, spends = kill_and_audit(ledger, tmp_path / "out", kills=250, seed=2)
    assert files > 0
    print(f"{store}: {files} release files, {spends} spends, no file without its spend")


@pytest.mark.evidence
@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_sixteen_processes_race_for_ten_releases(
    store: str, tmp_path: Path, postgres_url: str
) -> None:
    ledger = where(store, tmp_path, postgres_url)
    account(ledger, "race", 1.0)
    with ExitStack() as stack:
        racers = [stack.enter_context(worker(ledger, "race", 1, 0.1)) for _ in range(16)]
        for number, racer in enumerate(racers):
            racer.begin(tmp_path / str(number))
        codes = [racer.end() for racer in racers]
    files = list(tmp_path.rglob("release-*.json"))
    print(f"{store}: exit codes {sorted(codes)}, {len(files)} release files")
    assert sorted(codes) == [0] * 10 + [REFUSED] * 6
    assert len(files) == 10
