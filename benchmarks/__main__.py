"""``python -m benchmarks``: run everything, print the ratios."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks import gram, groups, partition

FOLDER = Path(".bench")

if __name__ == "__main__":
    chosen = sys.argv[1:] or ["gram", "groups", "partition"]
    for name in chosen:
        for line in {"gram": gram, "groups": groups, "partition": partition}[name].run(FOLDER):
            print(f"{name}: {line}", flush=True)
