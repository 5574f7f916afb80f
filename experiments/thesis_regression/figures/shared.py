"""What the case study's pictures share."""

from __future__ import annotations

from typing import Any

import pandas as pd

from experiments.regression_paper.pictures import style as study_style
from experiments.thesis_regression.casestudy import MATCHED, OI

PAPER = "thesis ch. 5"
SHOWN = ("non-private", "naive", "gibbs-noisy", "gibbs-update", "exact", MATCHED, OI)


def style(method: str) -> dict[str, Any]:
    """As in the synthetic study; OI has no place there."""
    if method == OI:
        return {"color": "#888888", "marker": "*", "ms": 6, "lw": 1.2, "ls": ":", "label": OI}
    if method == MATCHED:
        return {**study_style("exact"), "lw": 1.4, "ls": "--", "label": MATCHED}
    return study_style(method)


def caption(table: pd.DataFrame, more: str = "") -> str:
    """Which tracts these are."""
    tracts = table["tract"].nunique()
    return (
        f"{tracts:,} generated tracts of {table['size'].min()} to {table['size'].max()} people, "
        f"after the filter on medians; predictions at pir = 0.25. {more}"
    )


def methods(table: pd.DataFrame) -> list[str]:
    """Those in the table, in order."""
    there = set(table["method"])
    return [m for m in SHOWN if m in there]
