"""Pictures of posteriors (against their prior, draw by draw) and of calibration.

Figures need no display, and open none: matplotlib is loaded by the first picture.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from noisewise.artifact import ArgumentError
from noisewise.diagnostics import share_band, uniform_band

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from noisewise.inference.results import Posterior

__all__ = ["caterpillar", "coverage_points", "posterior_against_prior", "rank_ecdf", "trace"]

COLOURS = ("#1f6f8b", "#d1793b", "#5b8c5a", "#8a5a83", "#b5a642", "#555555")
"""Of chains and labels, in this order (chosen)."""
PRIOR_COLOUR = "#bbbbbb"
"""Of the prior behind a posterior (chosen)."""
LABEL_WIDTH = 24
"""Characters of a line beside a panel (chosen): names of terms can be long."""
PRIOR_DRAWS = 20_000
"""Draws from the prior that are shown (chosen): enough for a smooth histogram."""


def posterior_against_prior(
    post: Posterior,
    *,
    parameters: Iterable[str] | None = None,
    group: str | int | None = None,
    truth: Mapping[str, float] | None = None,
    bins: int = 60,
) -> Figure:
    """Draw histograms of the posterior's draws and of its prior: what the release taught.

    Args:
        post: a Posterior that carries its prior, as that of an exponential family does.
        parameters: some of its parameters; all unless named.
        group: which group, where there are groups.
        truth: known values, drawn as lines (simulations only).
        bins: of the histograms.

    Returns:
        A matplotlib Figure, one panel per parameter.

    Example:
        >>> import noisewise as nw, pandas as pd
        >>> owns = pd.DataFrame({"owns": [0, 1, 1, 1] * 50})
        >>> release = nw.release.exponential_family(
        ...     owns, column="owns", family="bernoulli", epsilon=1.0
        ... )
        >>> figure = nw.plots.posterior_against_prior(nw.infer(release))
        >>> figure.axes[0].get_xlabel()
        'p'
    """
    if post.prior_draws is None:
        raise ArgumentError("post: carries no prior to draw from; see trace for its draws")
    values = chosen_draws(post, group, parameters)
    before = post.prior_draws(PRIOR_DRAWS)
    figure, axes = panels(len(values))
    for axis, (name, chains) in zip(axes, values.items(), strict=True):
        prior, drawn = before[name], chains.ravel()
        low, high = window(prior, drawn)
        edges = np.linspace(low, high, bins + 1)
        for sample, colour, label in (
            (prior, PRIOR_COLOUR, "prior"),
            (drawn, COLOURS[0], "posterior"),
        ):
            # Counts over all draws, so that a density keeps its height where the window cuts it.
            height = np.histogram(sample, edges)[0] / (len(sample) * np.diff(edges))
            axis.stairs(height, edges, fill=True, color=colour, alpha=0.75, label=label)
        axis.set_xlim(low, high)
        if truth and name in truth:
            axis.axvline(truth[name], color="black", lw=1.2, ls="--", label="truth")
        axis.set_xlabel(name)
        axis.set_yticks([])
        axis.spines["left"].set_visible(False)
    axes[0].legend(frameon=False)
    where = "" if group is None else f", {group}"
    axes[0].set_title(f"{post.title}{where}: {post.method}", loc="left", fontsize=10)
    return figure


def near_interval(drawn: np.ndarray) -> tuple[float, float]:
    """Return the range of draws, cut one length of their 95 % interval beyond its ends.

    A normal posterior fits in; where the noise hides a column, a few draws lie millions away, and
    beside them nothing else would be seen.
    """
    ends = np.quantile(drawn, [0.025, 0.975])
    length = ends[1] - ends[0]
    return float(max(drawn.min(), ends[0] - length)), float(min(drawn.max(), ends[1] + length))


def window(prior: np.ndarray, drawn: np.ndarray) -> tuple[float, float]:
    """Return ends that hold the posterior, and as much of the prior as leaves it a shape."""
    low, high = near_interval(drawn)
    reach = 2 * (high - low)
    ends = np.quantile(prior, [0.005, 0.995])
    return float(max(min(ends[0], low), low - reach)), float(min(max(ends[1], high), high + reach))


def trace(
    post: Posterior,
    *,
    parameters: Iterable[str] | None = None,
    group: str | int | None = None,
    truth: Mapping[str, float] | None = None,
    draws: int = 500,
) -> Figure:
    """Draw posterior draws in the order in which they were made, chain by chain (thesis Fig. B.1).

    Args:
        post: a Posterior.
        parameters: some of its parameters; all unless named.
        group: which group, where there are groups.
        truth: known values, drawn as lines (simulations only).
        draws: how many, from the first.

    Returns:
        A matplotlib Figure, one panel per parameter; ``figure.savefig("trace.png")`` keeps it.

    Example:
        >>> import noisewise as nw, pandas as pd
        >>> owns = pd.DataFrame({"owns": [0, 1, 1, 1] * 50})
        >>> release = nw.release.exponential_family(
        ...     owns, column="owns", family="bernoulli", epsilon=1.0
        ... )
        >>> figure = nw.plots.trace(nw.infer(release), draws=200)
        >>> figure.axes[0].get_ylabel()
        'p'
    """
    values = chosen_draws(post, group, parameters)
    figure, axes = panels(len(values))
    for axis, (name, chains) in zip(axes, values.items(), strict=True):
        for number, chain in enumerate(chains):
            colour = COLOURS[number % len(COLOURS)]
            axis.plot(chain[:draws], color=colour, lw=0.7, alpha=0.8)
        if truth and name in truth:
            axis.axhline(truth[name], color="black", lw=1.2, ls="--", label="truth")
            axis.legend(frameon=False, loc="upper right")
        axis.set_ylabel(textwrap.fill(name, LABEL_WIDTH))
        axis.margins(x=0.01)
    axes[-1].set_xlabel(f"kept draw ({len(next(iter(values.values())))} chains)")
    where = "" if group is None else f", {group}"
    axes[0].set_title(f"{post.title}{where}: {post.method}", loc="left", fontsize=10)
    return figure


MAX_NAMED_GROUPS = 60
"""Groups whose names are legible in one picture (chosen)."""


def caterpillar(
    post: Posterior,
    parameter: str | None = None,
    *,
    at: Mapping[str, float] | None = None,
    interval: float = 0.95,
    truth: Mapping[str | int, float] | None = None,
) -> Figure:
    """Draw the interval of every group, from the lowest mean to the highest.

    Args:
        post: a Posterior with groups.
        parameter: which; may be left out where there is one only.
        at: values of the covariates, to draw the mean of a record there instead.
        interval: probability of the intervals; thick lines hold half of it.
        truth: known values by group, drawn as crosses (simulations only).

    Returns:
        A matplotlib Figure; groups are named where there are 60 at most.

    Example:
        >>> import noisewise as nw, pandas as pd
        >>> people = pd.DataFrame({"area": ["a", "b", "c"] * 40, "owns": [0, 1, 1, 1] * 30})
        >>> release = nw.release.exponential_family(
        ...     people, column="owns", family="bernoulli", groups={"area": ["a", "b", "c"]},
        ...     epsilon=1.0,
        ... )
        >>> figure = nw.plots.caterpillar(nw.infer(release))
        >>> figure.axes[0].get_xlabel()
        'p'
    """
    flat = post.quantity(parameter, at).reshape(len(post.keys or ()), -1)
    order = np.argsort(flat.mean(axis=1))
    flat, names = flat[order], [str((post.keys or ())[i]) for i in order]
    named = len(names) <= MAX_NAMED_GROUPS
    figure, (axis,) = panels(1, max(2.2, 0.2 * len(names)) if named else 6.0)
    rows = np.arange(len(names))
    for share, width in ((interval, 1.0), (interval / 2, 3.0)):
        low, high = np.quantile(flat, ((1 - share) / 2, (1 + share) / 2), axis=1)
        axis.hlines(rows, low, high, color=COLOURS[0], lw=width if named else width / 3)
    axis.plot(flat.mean(axis=1), rows, "o", color="black", ms=3 if named else 1)
    axis.axvline(float(flat.mean()), color="black", lw=0.8, ls=":")
    if truth is not None:
        known = {str(key): value for key, value in truth.items()}
        places = [(known[name], row) for row, name in enumerate(names) if name in known]
        axis.plot(*np.array(places).T, "x", color=COLOURS[1], ms=5, label="truth")
        axis.legend(frameon=False, loc="lower right")
    if named:
        axis.set_yticks(rows, names)
    else:
        axis.set_ylabel(f"{len(names)} groups")
    axis.margins(y=0.02)
    where = "" if at is None else ", ".join(f"{k} = {v:g}" for k, v in at.items())
    axis.set_xlabel(f"mean at {where}" if at is not None else parameter or next(iter(post.draws)))
    pooled = ", pooled" if post.population is not None else ""
    axis.set_title(f"{post.title}{pooled}: {interval:.0%} intervals", loc="left", fontsize=10)
    return figure


def panels(count: int, height: float = 2.2, width: float = 7.0) -> tuple[Figure, list[Axes]]:
    """Return a figure and its axes, one below the other."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, 0.6 + height * count), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(count, 1, squeeze=False)[:, 0]
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    return figure, list(axes)


def chosen_draws(
    post: Posterior, group: str | int | None, parameters: Iterable[str] | None
) -> dict[str, np.ndarray]:
    """Return draws (chain, draw) of one group, of all parameters or the named ones."""
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
