"""Write scikit-learn's tables as CSV files, for machines that do not have it.

python -m experiments.real_tables.export FOLDER
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

from experiments.real_tables.tables import SHIPPED, shipped


def write(folder: Path) -> None:
    """Write every table with all its digits."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in SHIPPED:
        table = shipped(name)
        with (folder / f"{name}.csv").open("w", newline="") as file:
            lines = csv.writer(file)
            lines.writerow(table.names)
            lines.writerows(table.values.tolist())


if __name__ == "__main__":
    write(Path(sys.argv[1]))
