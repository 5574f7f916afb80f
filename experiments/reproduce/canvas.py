"""How pictures of the papers look: panels in a grid, a title above, a caption line below."""

from __future__ import annotations

import textwrap
from typing import Any


def grid(
    rows: int, columns: int, title: str, caption: str = "", *, width: float = 3.3,
    height: float = 2.8, **words: Any,
) -> tuple[Any, Any]:  # fmt: skip
    """A figure and its axes (row, column); ``words`` go to ``subplots``."""
    # Loaded here, so that studies run where no pictures are drawn.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    across = max(width * columns, 5.0)
    lines = textwrap.wrap(caption, int(across * 15))
    tall = height * rows + 0.9 + 0.16 * len(lines)
    figure = Figure(figsize=(across, tall), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False, **words)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=8)
    figure.suptitle(title, fontsize=11, x=0.01, ha="left")
    if lines:
        figure.supxlabel("\n".join(lines), fontsize=7.5, x=0.01, ha="left", color="#444444")
    return figure, axes


def legend_beside(figure: Any) -> None:
    """One legend for all panels, outside of them; every label once."""
    known: dict[str, Any] = {}
    for axis in figure.axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            known.setdefault(label, handle)
    figure.legend(
        list(known.values()), list(known), loc="outside right upper", frameon=False, fontsize=8
    )
