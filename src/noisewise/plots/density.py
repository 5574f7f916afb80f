"""What the release taught: posterior against prior, parameter by parameter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from noisewise.artifact import ArgumentError
from noisewise.plots.canvas import COLOURS, chosen, panels

PRIOR_DRAWS = 20_000


def posterior_against_prior(
    post: Any,
    *,
    parameters: Iterable[str] | None = None,
    group: Any = None,
    truth: Mapping[str, float] | None = None,
    bins: int = 60,
) -> Any:
    """A matplotlib Figure: histograms of the posterior's draws and of as many from its prior.

    Args:
        post: the Posterior of an exponential family.
        parameters: some of its parameters; all unless named.
        group: which group, where there are groups.
        truth: known values, drawn as lines (simulations only).
        bins: of the histograms.
    """
    if post.prior_draws is None:
        raise ArgumentError("post: carries no prior to draw from; see trace for its draws")
    values = chosen(post, group, parameters)
    before = post.prior_draws(PRIOR_DRAWS)
    figure, axes = panels(len(values))
    for axis, (name, chains) in zip(axes, values.items(), strict=True):
        prior, drawn = before[name], chains.ravel()
        low, high = window(prior, drawn)
        edges = np.linspace(low, high, bins + 1)
        for sample, colour, label in (
            (prior, "#bbbbbb", "prior"),
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
    axes[0].set_title(f"{post.y}{where}: {post.method}", loc="left", fontsize=10)
    return figure


def window(prior: np.ndarray, drawn: np.ndarray) -> tuple[float, float]:
    """All of the posterior, and as much of the prior as leaves the posterior a shape."""
    low, high = drawn.min(), drawn.max()
    reach = 2 * (high - low)
    ends = np.quantile(prior, [0.005, 0.995])
    return float(max(min(ends[0], low), low - reach)), float(min(max(ends[1], high), high + reach))
