"""A process that makes releases one after another until it is killed or refused.

Every line on standard input names a folder and begins a life: a child process, forked after the
libraries are loaded, which releases into that folder. Its process id goes to standard output, and
so does its exit code when it is over.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np
import pyarrow as pa

from noisewise import BudgetError, release
from noisewise.privacy.ledger import open_ledger

REFUSED = 3


def main(ledger: str, dataset: str, most: str, epsilon: str) -> None:
    rng = np.random.default_rng(0)
    table = pa.table({"x": rng.random(2_000), "y": rng.random(2_000)})
    words: dict[str, Any] = {"x": "x", "y": "y", "bounds": {"x": (0, 1), "y": (0, 1)}}
    words["epsilon"] = float(epsilon)
    # Libraries load on first use; let that happen before the clock of the test starts.
    release.linear_regression(table, **words)
    open_ledger(ledger).close()
    print("ready", flush=True)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            os._exit(live(line.strip(), table, int(most), {**words, "ledger": ledger}, dataset))
        print(child, flush=True)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def live(folder: str, table: pa.Table, most: int, words: dict[str, Any], dataset: str) -> int:
    for number in range(most):
        try:
            made = release.linear_regression(table, **words, dataset=dataset)
        except BudgetError:
            return REFUSED
        made.save(f"{folder}/release-{number}.json")
    return 0


if __name__ == "__main__":
    main(*sys.argv[1:])
