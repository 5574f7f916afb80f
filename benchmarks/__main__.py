"""``python -m benchmarks``: run everything, print the ratios."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks import expfam, factors, gram, graphical, groups, partition, regression

FOLDER = Path(".bench")
KNOWN = {
    "gram": gram,
    "factors": factors,
    "groups": groups,
    "partition": partition,
    "regression": regression,
    "expfam": expfam,
    "graphical": graphical,
}

if __name__ == "__main__":
    chosen = sys.argv[1:] or list(KNOWN)
    for name in chosen:
        for line in KNOWN[name].run(FOLDER):
            print(f"{name}: {line}", flush=True)
