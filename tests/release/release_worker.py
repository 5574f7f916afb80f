"""A process that makes releases one after another until it is killed or refused."""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa

from noisewise import BudgetError, release


def main(ledger: str, dataset: str, folder: str, most: str, epsilon: str) -> None:
    rng = np.random.default_rng(0)
    table = pa.table({"x": rng.random(2_000), "y": rng.random(2_000)})
    words = {"x": "x", "y": "y", "bounds": {"x": (0, 1), "y": (0, 1)}, "epsilon": float(epsilon)}
    # Libraries load on first use; let that happen before the clock of the test starts.
    release.linear_regression(table, **words)
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(int(most)):
        try:
            made = release.linear_regression(table, **words, ledger=ledger, dataset=dataset)
        except BudgetError:
            sys.exit(3)
        made.save(f"{folder}/release-{number}.json")


if __name__ == "__main__":
    main(*sys.argv[1:])
