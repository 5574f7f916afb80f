"""What Figures 4.1 and 4.2 share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from experiments.partition_thesis.boxes import panels
from experiments.partition_thesis.quantiles import measures, study
from experiments.reproduce.figure import Figure

ROWS = {
    "thesis' formula": "bounds around zero,\nthreshold θM",
    "corrected": "bounds with a centre",
}
"""The search as printed has no row: it finds nothing, which the caption says."""


def quantile_figure(
    number: str, title: str, draw: Callable[[Any, pd.DataFrame, str, str], None],
    columns: tuple[str, ...],
) -> Figure:  # fmt: skip
    """A figure of one study."""

    def picture(table: pd.DataFrame) -> Any:
        none = table.loc[table["version"] == "as printed", "noisy"].isna().mean()
        caption = (
            f"{table['data_set'].nunique()} data sets of 100,000 records in 100 partitions, "
            f"ε₁ = ε₂ = 0.45. The search as printed (threshold θn) found no bound in {none:.0%} "
            "of releases. Boxes: quartiles; whiskers: 5 % to 95 %; dots: means."
        )
        heading = f"{title} (partition thesis Fig. {number})"
        figure, axes = panels(ROWS, columns, heading, caption)
        for line, version in zip(axes, ROWS, strict=True):
            for axis, column in zip(line, columns, strict=True):
                draw(axis, table[table["version"] == version], "p", column)
        for axis in axes[-1]:
            axis.set_xlabel("probability p")
        return figure

    return Figure(
        f"partition-{number}", "partition_thesis", title, study, picture, measures,
        study="partition-quantiles",
    )  # fmt: skip
