"""Run figures: table, picture, provenance and verdicts, each in a file of its own."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.reproduce import catalogue
from experiments.reproduce.figure import Figure
from experiments.reproduce.provenance import commit, device, provenance
from experiments.reproduce.store import TrialStore
from experiments.reproduce.verdicts import Claim, Verdict, judge

Tell = Callable[[str], None]
DPI = 90


@dataclass(frozen=True)
class Outcome:
    """What one figure gave."""

    figure: Figure
    folder: Path
    verdicts: tuple[Verdict, ...]
    seconds: float


def reproduce(
    figures: Sequence[Figure], size: str, out: Path, tell: Tell | None = None
) -> list[Outcome]:
    """Each in turn, with its own settings and claims."""
    found = []
    for number, figure in enumerate(figures, 1):
        if tell is not None:
            tell(f"[{number}/{len(figures)}] {figure.name}: {figure.title}")
        settings = catalogue.settings(figure, size)
        found.append(one(figure, settings, catalogue.claims(figure), size, out, tell))
    return found


def one(
    figure: Figure, settings: Any, claims: Sequence[Claim], size: str, out: Path,
    tell: Tell | None = None,
) -> Outcome:  # fmt: skip
    """The figure's four files, under ``out/<figure>/<size>``."""
    start = time.perf_counter()
    folder = out / figure.name / size
    folder.mkdir(parents=True, exist_ok=True)
    journal = out / figure.settings_name / size / "trials.jsonl"
    report = None if tell is None else lambda what: tell(f"    {what}")
    notes = {"commit": commit(catalogue.HERE), "device": device()}
    store = TrialStore(journal, settings, notes, report)
    table = pd.DataFrame(figure.run(settings, store))
    table.to_csv(folder / "table.csv", index=False)
    figure.draw(table).savefig(folder / "figure.png", dpi=DPI)
    measures = figure.measure(table)
    verdicts = tuple(judge(claim, measures, size) for claim in claims)
    seconds = time.perf_counter() - start
    origins = {note: sorted(store.origins.get(note, {now})) for note, now in notes.items()}
    told = provenance(
        figure.name, size, settings, origins, seconds, store.computing or seconds, store.resumed
    )
    _write(folder / "provenance.json", {**told, "measures": measures})
    _write(folder / "verdicts.json", [v.row() for v in verdicts])
    return Outcome(figure, folder, verdicts, seconds)


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
