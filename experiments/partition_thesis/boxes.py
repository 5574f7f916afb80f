"""Box plots over simulated data sets, one box per cutoff or probability."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from experiments.reproduce.canvas import grid

LABELS = {"full": "full data", "plain": "partitions, no noise", "noisy": "partitions, with noise"}
COLOURS = {"full": "#777777", "plain": "#5b8c5a", "noisy": "#1f6f8b"}


def boxes(axis: Any, table: pd.DataFrame, by: str, column: str, drawn: pd.Series) -> None:
    """Quartiles, whiskers to the 5 % and 95 % points, and the mean as a dot."""
    grouped = drawn.groupby(table[by])
    places = np.array([place for place, _ in grouped], float)
    width = 0.6 * np.diff(places).min()
    made = axis.boxplot(
        [group.to_numpy() for _, group in grouped], positions=places, widths=width,
        whis=(5, 95), showfliers=False, patch_artist=True, manage_ticks=False,
        medianprops={"color": "black"},
    )  # fmt: skip
    for box in made["boxes"]:
        box.set(facecolor=COLOURS[column], alpha=0.7)
    axis.plot(places, grouped.mean(), "k.", ms=4)


def values(axis: Any, own: pd.DataFrame, by: str, column: str) -> None:
    """The answers themselves."""
    boxes(axis, own, by, column, own[column])


def differences(axis: Any, own: pd.DataFrame, by: str, column: str) -> None:
    """Full data minus partitions, as the thesis has it: above zero the answer is too low."""
    axis.axhline(0, color="#bbbbbb", lw=1, zorder=0)
    boxes(axis, own, by, column, own["full"] - own[column])


def panels(
    versions: dict[str, str], columns: tuple[str, ...], title: str,
    caption: str,
) -> tuple[Any, np.ndarray]:  # fmt: skip
    """A row for each version, a column for each kind of answer."""
    figure, axes = grid(
        len(versions), len(columns), title, caption, sharex=True, sharey="row", width=3.6,
        height=2.5,
    )  # fmt: skip
    for line, words in zip(axes, versions.values(), strict=True):
        line[0].set_ylabel(words)
    for axis, column in zip(axes[0], columns, strict=True):
        axis.set_title(LABELS[column])
    return figure, axes
