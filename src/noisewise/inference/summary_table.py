"""A summary that prints whole: every column, as many digits as one reads, as statsmodels does.

pandas itself leaves columns out of the middle where lines grow longer than 80 characters, which the
names of terms make them, and writes large numbers with exponents. Values are those of the data
frame, only their print is shorter.
"""

from __future__ import annotations

import math

import pandas as pd

from noisewise.artifact.readable_numbers import GROUPED, readable


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
        return pd.DataFrame(self).to_string(formatters=formats, na_rep="", max_rows=rows)


def four_digits(value: float) -> str:
    """Return a number with four digits, trailing zeros among them."""
    if not math.isfinite(value) or abs(value) >= GROUPED:
        return readable(value)
    return f"{value:#.4g}".rstrip(".")
