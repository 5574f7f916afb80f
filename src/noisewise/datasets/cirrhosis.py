"""Drinking and cirrhosis in 46 US states (K. A. Brownlee, Statistical Theory and Methodology in
Science and Engineering, 2nd ed., Wiley 1965, pp. 464-465)."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

BOUNDS = {
    "urban_percent": (0.0, 100.0),
    "late_births_reciprocal": (0.0, 100.0),
    "wine_per_capita": (0.0, 40.0),
    "liquor_per_capita": (0.0, 200.0),
    "cirrhosis_death_rate": (0.0, 150.0),
}
"""Round limits anyone could have named without the table: a share is at most 100 %, and so on."""


def cirrhosis_path() -> Path:
    """Return where the CSV file lies on disk.

    Example:
        >>> import noisewise as nw
        >>> nw.datasets.cirrhosis_path().name
        'cirrhosis.csv'
    """
    return Path(str(files("noisewise.datasets") / "cirrhosis.csv"))


def cirrhosis() -> pa.Table:
    """Return the table: 46 rows, one per state; all columns numeric.

    Example:
        >>> import noisewise as nw
        >>> table = nw.datasets.cirrhosis()
        >>> table.num_rows, table.column_names[0]
        (46, 'urban_percent')
    """
    return pyarrow.csv.read_csv(cirrhosis_path())
