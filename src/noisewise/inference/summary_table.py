"""A summary that prints whole: every column, as many digits as one reads, as statsmodels does.

pandas itself leaves columns out of the middle where lines grow longer than 80 characters, which the
names of terms make them, and writes large numbers with exponents. Values are those of the data
frame, only their print is shorter. A mean and an sd that a few far draws decide are not printed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
import pandas as pd

from noisewise.artifact.readable_numbers import GROUPED, readable

DECIDED_BY_TAILS = ("mean", "sd")
"""Columns that say nothing where the tails are too long."""
UNTOLD = "-"
"""What is printed in their place."""
WHY_UNTOLD = (
    "Where a dash stands for mean and sd, a few draws far beyond the interval decide them: take "
    "the median and the interval"
)
"""What is said below a table with such places."""


class SummaryTable(pd.DataFrame):
    """A data frame of means, deviations and intervals that prints all its columns."""

    def __repr__(self) -> str:
        """Return the table, four digits a number."""
        digits = {"rhat": "{:.3f}".format, "ess": "{:.0f}".format, "times_wider": "{:.2f}".format}
        formats = {
            str(name): digits.get(str(name), four_digits)
            for name, kind in self.dtypes.items()
            if kind.kind == "f"
        }
        rows: int = pd.get_option("display.max_rows")
        plain, far = pd.DataFrame(self), beyond_interval(self)
        if not far.any():
            return plain.to_string(formatters=formats, na_rep="", max_rows=rows)
        for name in DECIDED_BY_TAILS:
            told = [UNTOLD if f else four_digits(v) for v, f in zip(self[name], far, strict=True)]
            plain = plain.assign(**{name: told})
            formats.pop(name)
        return f"{plain.to_string(formatters=formats, na_rep='', max_rows=rows)}\n{WHY_UNTOLD}."


def summary_table(table: pd.DataFrame, interval: float) -> SummaryTable:
    """Return a table of intervals of this probability as one that prints whole."""
    printed = SummaryTable(table)
    printed.attrs["interval"] = interval
    return printed


def beyond_interval(table: pd.DataFrame) -> np.ndarray:
    """Return whether each row's sd is larger than its whole 95 % interval.

    Of a normal posterior that interval is four sd wide. Where the sd exceeds it, draws outside hold
    nearly all of the variance: the noise hides a column, and there may be no mean at all. Intervals
    of another probability (``attrs["interval"]``) are widened as a normal law's are. Of tables
    without these columns no row is so.
    """
    if not {"mean", "sd", "lower", "upper"} <= set(table.columns):
        return np.zeros(len(table), bool)
    width = table["upper"].to_numpy(float) - table["lower"].to_numpy(float)
    ends = (NormalDist().inv_cdf((1 + p) / 2) for p in (0.95, table.attrs.get("interval", 0.95)))
    return np.asarray(table["sd"].to_numpy(float) > width * next(ends) / next(ends))


def told_rows(
    rows: pd.DataFrame, numbers: Sequence[str]
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the heads and the cells of a summary whose index was reset, in words.

    Args:
        rows: of a summary.
        numbers: the columns to show; those that it lacks are left out.
    """
    names = [c for c in rows if c in ("group", "parameter")]
    there = [c for c in numbers if c in rows]
    cells = [
        (
            *(str(row[c]) for c in names),
            *(UNTOLD if far and c in DECIDED_BY_TAILS else readable(row[c]) for c in there),
        )
        for (_, row), far in zip(rows.iterrows(), beyond_interval(rows), strict=True)
    ]
    return (*names, *there), cells


def four_digits(value: float) -> str:
    """Return a number with four digits, trailing zeros among them."""
    if not math.isfinite(value) or float(f"{abs(value):.4g}") >= GROUPED:
        return readable(value)
    return f"{value:#.4g}".rstrip(".")
