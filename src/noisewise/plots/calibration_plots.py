"""Pictures of calibration: ranks against the diagonal, coverage against its level."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from noisewise.artifact import ArgumentError
from noisewise.diagnostics import share_band, uniform_band
from noisewise.plots.posterior_plots import COLOURS, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BAND_COLOUR = "#dddddd"
"""Of what chance allows (chosen)."""


def rank_ecdf(
    u: Mapping[str, np.ndarray],
    *,
    sure: float = 0.95,
    axis: Axes | None = None,
    styles: Mapping[str, Mapping[str, Any]] | None = None,
) -> Figure:
    """Draw the distribution of the truth's ranks, the diagonal for an honest posterior.

    Args:
        u: ranks from 0 to 1 (``diagnostics.ranks``) by label, one row each.
        sure: probability that all of a calibrated posterior's ranks are inside the grey band,
            which is that of the label with the most trials.
        axis: of a figure that is there already; a new one otherwise.
        styles: words for matplotlib's ``step`` by label.

    Returns:
        The matplotlib Figure that holds the axis.

    Example:
        >>> import noisewise as nw, numpy as np
        >>> figure = nw.plots.rank_ecdf({"exact": np.linspace(0.05, 0.95, 20)})
        >>> figure.savefig("ranks.png")
    """
    if not u:
        raise ArgumentError("u: must have at least one label")
    figure, axis = _place(axis, 4.2)
    most = max(len(np.atleast_1d(values)) for values in u.values())
    low, high = uniform_band(most, sure)
    at = np.arange(1, most + 1) / (most + 1)
    axis.fill_betweenx(at, low, high, color=BAND_COLOUR, lw=0, label=f"{sure:.0%} band")
    axis.plot([0, 1], [0, 1], color="black", lw=0.8, ls=":")
    for number, (label, values) in enumerate(u.items()):
        style = {"color": COLOURS[number % len(COLOURS)], **(styles or {}).get(label, {})}
        sorted_u = np.sort(np.asarray(values, float))
        share = np.arange(1, len(sorted_u) + 1) / len(sorted_u)
        axis.step([0, *sorted_u, 1], [0, *share, 1], where="post", lw=1.4, label=label, **style)
    axis.set(xlim=(0, 1), ylim=(0, 1), xlabel="quantile of the truth in its posterior")
    axis.set_ylabel("share of trials up to it")
    axis.set_aspect("equal")
    if figure is not None:
        axis.legend(frameon=False, fontsize=8, loc="upper left")
    return figure or _figure_of(axis)


def coverage_points(
    shares: Mapping[str, float],
    level: float,
    trials: int,
    *,
    sure: float = 0.95,
    axis: Axes | None = None,
) -> Figure:
    """Draw shares of intervals that hold the truth, by label, in the band that chance allows.

    Args:
        shares: from 0 to 1, by label.
        level: what the intervals promise.
        trials: behind each share.
        sure: probability that a calibrated posterior's share is inside the grey band.
        axis: of a figure that is there already; a new one otherwise.

    Returns:
        The matplotlib Figure that holds the axis.

    Example:
        >>> import noisewise as nw
        >>> figure = nw.plots.coverage_points({"exact": 0.91, "naive": 0.4}, 0.9, trials=200)
        >>> len(figure.axes)
        1
    """
    figure, axis = _place(axis, 0.6 + 0.3 * len(shares))
    axis.axvspan(*share_band(level, trials, sure), color=BAND_COLOUR, lw=0)
    axis.axvline(level, color="black", lw=0.8, ls=":")
    rows = np.arange(len(shares))
    axis.plot(list(shares.values()), rows, "o", color=COLOURS[0])
    axis.set_yticks(rows, list(shares))
    axis.invert_yaxis()
    axis.set_xlabel(f"share of {level:.0%} intervals that hold the truth ({trials} trials)")
    return figure or _figure_of(axis)


def _place(axis: Axes | None, height: float) -> tuple[Figure | None, Axes]:
    """Return the axis that was given, or a new figure and its one axis."""
    if axis is not None:
        return None, axis
    figure, axes = panels(1, height)
    return figure, axes[0]


def _figure_of(axis: Axes) -> Figure:
    """Return the whole figure that holds an axis, which may lie in a part of it."""
    from matplotlib.figure import Figure

    figure = axis.figure
    return figure if isinstance(figure, Figure) else figure.figure
