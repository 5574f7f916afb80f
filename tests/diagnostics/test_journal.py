"""Trials in batches: the same with and without an interruption."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from noisewise.diagnostics import Journal, run_trials


class Interrupted(Exception):
    """What a power cut would be."""


def batch(rng: np.random.Generator, number: int) -> Mapping[str, np.ndarray]:
    return {"u": rng.random(number), "pair": rng.normal(size=(number, 2))}


def test_an_interrupted_study_goes_on(tmp_path: Path) -> None:
    whole = run_trials(batch, 25, seed=3, size=10, key={"n": 5})
    assert whole["pair"].shape == (25, 2)
    calls: list[int] = []

    def failing(rng: np.random.Generator, number: int) -> Mapping[str, np.ndarray]:
        calls.append(number)
        if len(calls) == 2:
            raise Interrupted
        return batch(rng, number)

    kept = tmp_path / "j.jsonl"
    with pytest.raises(Interrupted):
        run_trials(failing, 25, seed=3, size=10, key={"n": 5}, journal=Journal(kept))
    seen: list[tuple[int, int]] = []
    again = run_trials(
        failing, 25, seed=3, size=10, key={"n": 5}, journal=Journal(kept),
        progress=lambda done, total: seen.append((done, total)),
    )  # fmt: skip
    assert calls == [10, 10, 10, 5]
    assert seen == [(10, 25), (20, 25), (25, 25)]
    for name, values in whole.items():
        np.testing.assert_array_equal(again[name], values)


def test_seed_and_key_give_other_streams() -> None:
    first = run_trials(batch, 4, seed=3, key={"n": 5})["u"]
    for other in (
        run_trials(batch, 4, seed=4, key={"n": 5}),
        run_trials(batch, 4, seed=3, key={"n": 6}),
    ):
        assert not np.isin(other["u"], first).any()


def test_a_line_cut_short_is_done_again_and_harms_no_other(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    journal = Journal(path)
    journal.put({"a": 1}, [{"x": np.float64(0.5)}], seconds=2)
    with open(path, "ab") as file:
        file.write(b'{"id": "x", "ro')
    journal = Journal(path)
    assert (journal.get({"a": 1}) or {})["rows"] == [{"x": 0.5}]
    journal.put({"a": 2}, [{"x": [1, 2]}])
    again = Journal(path)
    assert (again.get({"a": 1}) or {})["seconds"] == 2
    assert (again.get({"a": 2}) or {})["rows"] == [{"x": [1, 2]}]
    assert again.get({"a": 3}) is None


def test_a_batch_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(ValueError, match="'u' must lead with 4 trials, not 3"):
        run_trials(lambda rng, number: {"u": rng.random(3)}, 4, seed=0)
