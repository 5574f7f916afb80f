"""The one file that knows how a figure is made: no display is needed, and none is opened."""

from __future__ import annotations

from typing import Any

import numpy as np

from noisewise.artifact import ArgumentError

COLOURS = ("#1f6f8b", "#d1793b", "#5b8c5a", "#8a5a83", "#b5a642", "#555555")


def panels(count: int, height: float = 2.2, width: float = 7.0) -> tuple[Any, list[Any]]:
    """A figure and its axes, one below the other."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, 0.6 + height * count), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(count, 1, squeeze=False)[:, 0]
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    return figure, list(axes)


def chosen(post: Any, group: Any, parameters: Any) -> dict[str, np.ndarray]:
    """Draws (chain, draw) of one group, of all parameters or the named ones."""
    names = tuple(post.draws) if parameters is None else tuple(parameters)
    for name in names:
        if name not in post.draws:
            raise ArgumentError(
                f"parameters: {name!r} is unknown; there are {', '.join(post.draws)}"
            )
    if post.keys is None:
        if group is not None:
            raise ArgumentError("group: this posterior has no groups; leave it out")
        return {name: post.draws[name] for name in names}
    if group not in post.keys:
        shown = ", ".join(map(str, post.keys[:5])) + (" …" if len(post.keys) > 5 else "")
        raise ArgumentError(f"group: must be one of {shown}, not {group!r}")
    row = post.keys.index(group)
    return {name: post.draws[name][row] for name in names}
