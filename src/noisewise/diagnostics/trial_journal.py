"""A journal of simulated trials on disk: an interrupted study goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Report = Callable[[int, int], None]
"""Called with trials done and trials in all."""


class Journal:
    """Rows of finished pieces of work, one JSON line for each, flushed as it is written.

    A piece is known by its key, any JSON. A line that an interruption cut short is ignored.

    Example:
        >>> import noisewise as nw
        >>> journal = nw.diagnostics.Journal("journal.jsonl")
        >>> journal.put({"epsilon": 1.0}, [{"width": 0.2}], seconds=3)
        >>> line = nw.diagnostics.Journal("journal.jsonl").get({"epsilon": 1.0})
        >>> line["seconds"]
        3
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._known: dict[str, dict[str, Any]] = {}
        if self.path.exists():
            for text in self.path.read_text(encoding="utf-8").splitlines():
                line = _parsed(text)
                if line is not None:
                    self._known[line["id"]] = line

    def get(self, key: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the line of this key, with its "rows"; None unless it was finished."""
        return self._known.get(_name(key))

    def put(self, key: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], **notes: Any) -> None:
        """Write the rows of this key, with notes such as seconds, durably."""
        line = {
            "id": _name(key),
            "key": in_json_types(key),
            **notes,
            "rows": in_json_types(list(rows)),
        }
        with open(self.path, "a+b") as file:
            # A line that was cut short must not swallow this one.
            if file.tell() and not _ends_with_newline(file):
                file.write(b"\n")
            file.write(json.dumps(line).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self._known[line["id"]] = line


def run_trials(
    batch: Callable[[np.random.Generator, int], Mapping[str, np.ndarray]],
    trials: int,
    *,
    seed: int,
    size: int = 100,
    journal: Journal | None = None,
    key: Mapping[str, Any] | None = None,
    progress: Report | None = None,
) -> dict[str, np.ndarray]:
    """Run ``batch(rng, number)`` until there are ``trials``; return their arrays.

    Every batch has a random stream of its own, from the seed, the key and its number, so that
    resuming changes nothing.

    Args:
        batch: runs a number of trials at once; returns arrays by name.
        trials: how many in all.
        seed: of all batches together.
        size: trials in a batch; the last one may be smaller.
        journal: where finished batches are kept, and looked up.
        key: names this study in the journal, any JSON.
        progress: called with trials done and trials in all.

    Returns:
        Arrays by name, which lead with the trial, batch after batch.

    Example:
        >>> import noisewise as nw
        >>> arrays = nw.diagnostics.run_trials(
        ...     lambda rng, number: {"u": rng.random(number)}, 250, seed=0, size=100
        ... )
        >>> arrays["u"].shape
        (250,)
    """
    if trials < 1 or size < 1:
        raise ValueError(f"trials, size: must be at least 1, not {trials!r}, {size!r}")
    word = int.from_bytes(hashlib.sha256(_name(key or {}).encode()).digest()[:8], "big")
    parts: list[dict[str, np.ndarray]] = []
    for number, begin in enumerate(range(0, trials, size)):
        count = min(size, trials - begin)
        name = {**(key or {}), "seed": seed, "batch": number, "trials": count}
        line = None if journal is None else journal.get(name)
        if line is None:
            results = batch(np.random.default_rng([seed, number, word]), count)
            arrays = {k: np.asarray(v) for k, v in results.items()}
            for k, v in arrays.items():
                if len(v) != count:
                    raise ValueError(f"batch: {k!r} must lead with {count} trials, not {len(v)}")
            if journal is not None:
                journal.put(name, [{k: v.tolist() for k, v in arrays.items()}])
        else:
            arrays = {k: np.asarray(v) for k, v in line["rows"][0].items()}
        parts.append(arrays)
        if progress is not None:
            progress(begin + count, trials)
    return {k: np.concatenate([p[k] for p in parts]) for k in parts[0]}


def in_json_types(value: object) -> object:
    """Return the same in JSON's own types."""
    if isinstance(value, Mapping):
        return {str(k): in_json_types(v) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        return in_json_types(value.tolist())
    if isinstance(value, list | tuple):
        return [in_json_types(v) for v in value]
    if isinstance(value, np.generic):
        return in_json_types(value.item())
    return value


def _name(key: Mapping[str, Any]) -> str:
    """Return a short name that is the same for the same key."""
    text = json.dumps(in_json_types(key), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def _parsed(text: str) -> dict[str, Any] | None:
    """Return a line of the journal, or None where it was cut short."""
    try:
        line = json.loads(text)
    except ValueError:
        return None
    return line if isinstance(line, dict) and {"id", "rows"} <= set(line) else None


def _ends_with_newline(file: Any) -> bool:
    file.seek(-1, os.SEEK_END)
    return bool(file.read(1) == b"\n")
