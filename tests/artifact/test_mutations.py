"""Thousands of spoilt files: each loads to what was saved, or is refused; nothing else happens.

A file whose digest was left alone must give the original release or a ReleaseError. One whose
digest a forger repaired must give a ReleaseError, or a release that saves and loads stably and that
the published schema accepts. No other exception, no hang, no memory beyond a few megabytes.
"""

from __future__ import annotations

import io
import json
import random
import resource
import signal
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import jsonschema
import numpy as np
import pandas as pd  # before memory is measured: tables need it
import pytest
from rich.console import Console

from noisewise.artifact import Release, ReleaseError, release_files
from noisewise.artifact.schema import schema
from noisewise.artifact.validation import is_printable
from noisewise.cli import inspect
from tests.artifact import mutants
from tests.artifact.attack import spent_at_least
from tests.artifact.factories import FACTORIES, content_of, redigested

PER_RAW = 200
PER_TREE = 160  # twelve raw kinds and twice eight structural ones: 4,960 files
EVIDENCE = 22  # times as many: 109,120 files
SECONDS = 2.0
ORIGINALS = [make() for make in FACTORIES.values()]
TEXTS = [release.to_json() for release in ORIGINALS]
VALIDATOR = jsonschema.Draft202012Validator(schema())


@contextmanager
def bounded() -> Iterator[None]:
    """No file may take more than two seconds of processor time (a busy machine does not count)."""

    def ring(*_: object) -> None:
        raise TimeoutError(f"a file took more than {SECONDS} s")

    before = signal.signal(signal.SIGVTALRM, ring)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def loaded(content: str | bytes) -> Release | None:
    """The release, or None where it was refused in words a terminal can show.

    The way in which large files are parsed must come to the same result.
    """
    release = parsed_as(content, release_files.PLAIN_BYTES)
    large = parsed_as(content, 0)
    assert (large is None) == (release is None)
    assert release is None or large == release
    return release


def parsed_as(content: str | bytes, plain_bytes: int) -> Release | None:
    """The release, read as a file that is larger than so many bytes is read."""
    with pytest.MonkeyPatch.context() as patch, bounded():
        patch.setattr(release_files, "PLAIN_BYTES", plain_bytes)
        try:
            return Release.from_json(content)
        except ReleaseError as error:
            message = str(error)
    assert message.isprintable()
    assert 10 < len(message) < 600, message[:600]
    return None


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@pytest.fixture(autouse=True)
def _no_memory_blow_up() -> Iterator[None]:
    before = peak_megabytes()
    yield
    assert peak_megabytes() < before + 64


def tree_mutant(rng: random.Random, mutate: mutants.TreeMutation, which: int) -> dict[str, Any]:
    """One or a few structural changes to a parsed file."""
    content = content_of(ORIGINALS[which])
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        mutate(rng, content)
    return content


def judge_raw(rng: random.Random, mutate: mutants.RawMutation, count: int) -> None:
    for number in range(count):
        which = number % len(TEXTS)
        release = loaded(mutate(rng, TEXTS[which]))
        assert release is None or release == ORIGINALS[which]


def judge_tree(rng: random.Random, mutate: mutants.TreeMutation, count: int) -> None:
    for number in range(count):
        which = number % len(TEXTS)
        release = loaded(json.dumps(tree_mutant(rng, mutate, which)))
        assert release is None or release == ORIGINALS[which]


def judge_forged(rng: random.Random, mutate: mutants.TreeMutation, count: int) -> None:
    for number in range(count):
        release = loaded(redigested(tree_mutant(rng, mutate, number % len(TEXTS))))
        if release is not None:
            assert Release.from_json(release.to_json()) == release
            VALIDATOR.validate(content_of(release))
            show_everything(release)
            assert spent_at_least(release) <= claim(release)


def show_everything(release: Release) -> None:
    """Whatever loads can be looked at: in tables, in words, on a terminal and in a notebook."""
    for units in ("box", "user"):
        table: pd.DataFrame = release.table(units)
        assert np.isfinite(table["value"]).all()
    screen = io.StringIO()
    inspect.show(release, Console(file=screen))
    json.dumps(inspect.summary(release), allow_nan=False)
    assert all(map(is_printable, screen.getvalue().split("\n")))
    assert "Release" in repr(release) + release._repr_html_()


def claim(release: Release) -> Fraction:
    guarantee = release.guarantee
    return Fraction(guarantee.epsilon if guarantee.rho is None else guarantee.rho)


each_raw = pytest.mark.parametrize("mutate", mutants.RAW, ids=lambda m: m.__name__)
each_tree = pytest.mark.parametrize("mutate", mutants.TREE, ids=lambda m: m.__name__)


@each_raw
def test_spoilt_text_loads_unchanged_or_is_refused(mutate: mutants.RawMutation) -> None:
    judge_raw(random.Random(mutate.__name__), mutate, PER_RAW)


@each_tree
def test_spoilt_content_loads_unchanged_or_is_refused(mutate: mutants.TreeMutation) -> None:
    judge_tree(random.Random(mutate.__name__), mutate, PER_TREE)


@each_tree
def test_forged_content_is_refused_or_means_something(mutate: mutants.TreeMutation) -> None:
    judge_forged(random.Random(f"forged {mutate.__name__}"), mutate, PER_TREE)


@pytest.mark.evidence
@each_raw
def test_many_more_spoilt_texts(mutate: mutants.RawMutation) -> None:
    judge_raw(random.Random(f"more {mutate.__name__}"), mutate, EVIDENCE * PER_RAW)


@pytest.mark.evidence
@each_tree
def test_many_more_forgeries(mutate: mutants.TreeMutation) -> None:
    judge_tree(random.Random(f"more {mutate.__name__}"), mutate, EVIDENCE * PER_TREE)
    judge_forged(random.Random(f"more forged {mutate.__name__}"), mutate, EVIDENCE * PER_TREE)


def outcomes(mutate: Callable[[random.Random, int], str | bytes], count: int) -> set[bool]:
    rng = random.Random(5)
    return {loaded(mutate(rng, i % len(TEXTS))) is None for i in range(count)}


def test_the_mutations_reach_both_outcomes() -> None:
    """Else the tests above would be true of a reader that refuses, or accepts, everything."""
    assert outcomes(lambda rng, i: mutants.insert_bytes(rng, TEXTS[i]), 200) == {True, False}
    assert outcomes(lambda rng, i: redigested(tree_mutant(rng, mutants.nudge, i)), 200) == {
        True,
        False,
    }


def test_a_spoilt_file_needs_no_more_memory_than_a_good_one() -> None:
    rng = random.Random(11)
    tracemalloc.start()
    try:
        for number in range(280):
            mutate = mutants.TREE[number % len(mutants.TREE)]
            content = redigested(tree_mutant(rng, mutate, number % len(TEXTS)))
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            loaded(content)
            assert tracemalloc.get_traced_memory()[1] - before < 2_000_000 + 50 * len(content)
    finally:
        tracemalloc.stop()
