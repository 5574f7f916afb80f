"""Data sets in blocks: a block is what is kept, and not computed again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from experiments.reproduce.store import TrialStore

BLOCK = 20
Rows = list[Mapping[str, Any]]


def in_blocks(
    settings: Mapping[str, Any], trials: TrialStore,
    one: Callable[[int, Mapping[str, Any]], Rows],
) -> pd.DataFrame:  # fmt: skip
    """The rows of every data set; ``one`` gives those of one, by its number."""
    rows: Rows = []
    for first in range(0, settings["data_sets"], BLOCK):
        count = min(BLOCK, settings["data_sets"] - first)
        key = {"first": first, "data_sets": count}
        rows += trials.cell(
            key, lambda f=first, c=count: [r for i in range(f, f + c) for r in one(i, settings)]
        )
    return pd.DataFrame(rows).drop(columns=["first", "data_sets"])
