"""A summary that prints whole: every column, as many digits as one reads, as statsmodels does.

pandas itself leaves columns out of the middle where lines grow longer than 80 characters, which the
names of terms make them. Values are those of the data frame, only their print is shorter.
"""

from __future__ import annotations

import math

import pandas as pd

LARGE = 10_000
"""From here on numbers are printed without decimals (chosen)."""


class CoefficientTable(pd.DataFrame):
    """A data frame of means, deviations and intervals that prints all its columns."""

    def __repr__(self) -> str:
        """Return the table, four digits a number."""
        digits = {"rhat": "{:.3f}".format, "ess": "{:.0f}".format, "times_wider": "{:.2f}".format}
        formats = {str(name): digits.get(str(name), four_digits) for name in self.columns}
        rows: int = pd.get_option("display.max_rows")
        return pd.DataFrame(self).to_string(formatters=formats, na_rep="", max_rows=rows)


def four_digits(value: float) -> str:
    """Return a number with four digits, trailing zeros among them."""
    if not math.isfinite(value) or LARGE <= abs(value) < 100 * LARGE:
        return f"{value:.0f}"
    return f"{value:#.4g}".rstrip(".")
