"""Finished cells of a study, kept as they are finished: what was interrupted goes on."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from noisewise.diagnostics import Journal

Row = Mapping[str, Any]


@dataclass
class TrialStore:
    """``cell(key, compute)`` runs ``compute`` once for this key under these settings, ever.

    The settings (the seed among them) are part of every key. ``notes`` (commit, device) are kept
    beside each cell, so that rows of another version or machine can be told; ``origins`` are those
    of all cells that were asked for, ``computing`` the seconds they took, in this run or an earlier
    one. ``report`` hears of every new cell.
    """

    path: Path
    settings: Mapping[str, Any]
    notes: Mapping[str, str] = field(default_factory=dict)
    report: Callable[[str], None] | None = None
    resumed: int = 0
    computing: float = 0.0
    origins: dict[str, set[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._journal = Journal(self.path)

    def cell(
        self, key: Mapping[str, Any], compute: Callable[..., Row | list[Any]]
    ) -> list[dict[str, Any]]:
        """The rows of this cell, each with the key's own entries."""
        name = {"cell": dict(key), "settings": dict(self.settings)}
        line = self._journal.get(name)
        if line is None:
            start = time.perf_counter()
            made = compute()
            seconds = time.perf_counter() - start
            rows = [dict(made)] if isinstance(made, Mapping) else [dict(r) for r in made]
            self._journal.put(name, rows, **self.notes, seconds=round(seconds, 3))
            if self.report is not None:
                self.report(f"{_words(key)}: {seconds:.1f} s")
            line = self._journal.get(name) or {}
        else:
            self.resumed += 1
        self.computing += line.get("seconds", 0.0)
        for note in self.notes:
            self.origins.setdefault(note, set()).add(str(line.get(note, "unknown")))
        return [{**key, **row} for row in line["rows"]]


def _words(key: Mapping[str, Any]) -> str:
    return ", ".join(f"{k} {v}" for k, v in key.items())
