"""Run one experiment; every trial is a line of JSON, then a table of means.

python -m experiments.pooling EXPERIMENT [--groups 50] [--epsilon 1] [--trials 60] [--processes 1]
    [--draws 500] [--seed 0] [--max-sweeps 8000] [--alone] [--narrow 1] [--size 1] [--out FILE]

``calibration`` and ``plane`` (two covariates) draw tracts from a population of the model's own.
Errors and coverage are of slopes and of lines at a parents' rank of a quarter. ``--narrow 5``:
bounds that are five times too wide; ``--size 4``: tracts four times as large. ``--alone`` also
infers every tract by itself (``alone``: medians under the default prior; ``mean``: the same by its
means; ``weak``: means under the weak conjugate prior), and with the true population as prior.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(prog="python -m experiments.pooling")
    parser.add_argument(
        "experiment", choices=("calibration", "plane", "useful", "two", "tails", "sbc", "speed")
    )
    parser.add_argument("--groups", type=int, default=50)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--narrow", type=float, default=1.0)
    parser.add_argument("--size", type=int, default=1)
    parser.add_argument("--trials", type=int, default=1)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--max-sweeps", type=int, default=8000)
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--out", type=Path)
    settings = vars(parser.parse_args())
    out = settings.pop("out")
    os.environ.setdefault("NPROC", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # A module of its own: spawned processes cannot import what stands in this one.
    from experiments.pooling.trials import WORK, Row, means, trial

    work = WORK.get(settings["experiment"], trial)
    rows: list[Row] = []

    def keep(row: Row) -> None:
        rows.append(row)
        print(json.dumps(row), flush=True)
        if out is not None:
            with out.open("a") as file:
                file.write(json.dumps({**settings, **row}) + "\n")

    numbers = range(settings["trials"])
    if settings["processes"] > 1:
        context = get_context("spawn")
        with ProcessPoolExecutor(settings["processes"], mp_context=context) as pool:
            for row in pool.map(work, [settings] * len(numbers), numbers):
                keep(row)
    else:
        for number in numbers:
            keep(work(settings, number))
    print(json.dumps(means(rows), indent=1), file=sys.stderr)


if __name__ == "__main__":
    main()
