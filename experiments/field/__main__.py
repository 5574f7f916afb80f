"""Run the comparison with the tables of a folder too, and write its page."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import pandas as pd

from experiments.field.figure import FIGURE, cell_names, rows
from experiments.field.page import finished, write
from experiments.reproduce import catalogue
from experiments.reproduce.provenance import commit, device
from experiments.reproduce.store import TrialStore


def main() -> None:
    """Run all cells that are not in the journal of an earlier run."""
    parser = argparse.ArgumentParser(prog="python -m experiments.field")
    parser.add_argument("--data", type=Path, help="folder with diamonds.csv and insurance.csv")
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--page", type=Path, help="also write the page and its picture")
    parser.add_argument(
        "--finished", action="store_true", help="compute nothing: what a run has so far"
    )
    given = parser.parse_args()
    size = "quick" if given.quick else "full"
    settings = catalogue.settings(FIGURE, size)
    notes = {"commit": commit(catalogue.HERE), "device": device()}
    journal = given.out / "field" / size / "trials.jsonl"
    store = TrialStore(journal, settings, notes, lambda told: print(told, flush=True))
    table = pd.DataFrame(rows(settings, store, given.data, given.finished))
    folder = given.out / "field-with-folder" / size
    folder.mkdir(parents=True, exist_ok=True)
    table.to_json(folder / "table.json", orient="records", indent=1)
    done = finished(table)
    FIGURE.draw(done).savefig(folder / "figure.png", dpi=90)
    if given.page:
        write(table, given.page, cell_names(settings, given.data))
        shutil.copyfile(folder / "figure.png", given.page.with_suffix(".png"))
    for name, value in FIGURE.measure(done).items():
        print(f"{name}: {value:.3f}")


if __name__ == "__main__":
    main()
