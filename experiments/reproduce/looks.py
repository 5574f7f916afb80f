"""A method keeps its colour, marker and line in all figures of chapters 3 and 4."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from experiments.reproduce.canvas import grid

STYLES = {
    "exact": ("#1f6f8b", "o", "-"),
    "gibbs": ("#d1793b", "s", "-"),
    "gibbs as printed": ("#b5a642", "D", "--"),
    "cgm": ("#1f6f8b", "o", "-"),
    "cgm, EM run on": ("#5b8c5a", "s", "--"),
    "cgm, NLBP": ("#b5a642", "D", "--"),
    "naive": ("#8a5a83", "^", "-"),
    "naive, untruncated": ("#8a5a83", "^", "--"),
    "naive, best λ in hindsight": ("#c48bbd", "v", ":"),
    "one-posterior sampling": ("#a33b3b", "x", "-"),
    "one-posterior sampling, informative prior": ("#a33b3b", "", ":"),
    "DP-SGD": ("#a33b3b", "x", "-"),
    "non-private": ("#555555", "", "-."),
    "random": ("#bbbbbb", "", ":"),
}


def style(method: str) -> dict[str, Any]:
    """Arguments of ``plot`` for a method's line."""
    colour, marker, line = STYLES[method]
    return {
        "color": colour,
        "marker": marker,
        "ls": line,
        "ms": 5,
        "lw": 1.6,
        "label": _short(method),
    }


def _short(label: str) -> str:
    return "\n".join(textwrap.wrap(label, 22))


def legend(figure: Any, axes: np.ndarray) -> None:
    """One for all panels, beside them: each label once."""
    found: dict[str, Any] = {}
    for axis in axes.flat:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    figure.legend(
        found.values(), found.keys(), loc="outside right upper", frameon=False, fontsize=8
    )


def named(axes: np.ndarray, across: str, up: str) -> None:
    """Words at the outer axes only."""
    for axis in axes[-1]:
        axis.set_xlabel(across)
    for axis in axes[:, 0]:
        axis.set_ylabel(up)


def panels(
    table: pd.DataFrame, down: tuple[str, Sequence[Any]], across: tuple[str, Sequence[Any]],
    plot: Callable[[Any, str, pd.DataFrame], None], heading: Callable[[Any, Any], str], title: str,
    caption: str, **options: Any,
) -> tuple[Any, np.ndarray]:  # fmt: skip
    """A panel for each value of two columns; ``plot`` draws one method's rows into it."""
    figure, axes = grid(len(down[1]), len(across[1]), title, caption, **options)
    for line, row in zip(axes, down[1], strict=True):
        for axis, column in zip(line, across[1], strict=True):
            own = table[(table[down[0]] == row) & (table[across[0]] == column)]
            for method, group in own.groupby("method", sort=False):
                plot(axis, str(method), group)
            axis.set(xscale="log")
            axis.set_title(heading(row, column), fontsize=9.5)
    legend(figure, axes)
    return figure, axes
