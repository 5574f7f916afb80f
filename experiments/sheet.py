"""A sheet of panels with a title above and one caption line below; a method keeps its colour."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

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


def sheet(
    rows: int, columns: int, title: str, caption: str, *, width: float = 3.4, height: float = 2.9,
    sharey: bool | str = False, sharex: bool | str = False,
) -> tuple[Any, np.ndarray]:  # fmt: skip
    """The figure and its axes (rows, columns)."""
    across = width * columns + 1.8
    lines = textwrap.wrap(caption, max(50, round(across * 15)))
    below = 0.16 * len(lines) + 0.08
    tall = height * rows + 0.6 + below
    figure = Figure(figsize=(across, tall), layout="constrained")
    FigureCanvasAgg(figure)
    figure.get_layout_engine().set(rect=(0, below / tall, 1, 1 - below / tall))
    axes = figure.subplots(rows, columns, squeeze=False, sharey=sharey, sharex=sharex)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
        axis.title.set_fontsize(10)
    figure.suptitle("\n".join(textwrap.wrap(title, round(across * 11))), fontsize=12)
    figure.text(0.012, 0.05 / tall, "\n".join(lines), fontsize=8, color="#444444", va="bottom")
    return figure, axes


def legend(figure: Any, axes: np.ndarray) -> None:
    """One for all panels, beside them: each label once."""
    found: dict[str, Any] = {}
    for axis in axes.flat:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    figure.legend(
        found.values(), found.keys(), loc="outside right upper", frameon=False, fontsize=8
    )
