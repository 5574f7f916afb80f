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
        prior = before[name]
        ends = np.quantile(prior, [0.005, 0.995])
        low, high = min(ends[0], chains.min()), max(ends[1], chains.max())
        edges = np.linspace(low, high, bins + 1)
        told = {"bins": edges, "density": True}
        axis.hist(prior, color="#bbbbbb", label="prior", **told)
        axis.hist(chains.ravel(), color=COLOURS[0], alpha=0.75, label="posterior", **told)
        if truth and name in truth:
            axis.axvline(truth[name], color="black", lw=1.2, ls="--", label="truth")
        axis.set_xlabel(name)
        axis.set_yticks([])
        axis.spines["left"].set_visible(False)
    axes[0].legend(frameon=False)
    where = "" if group is None else f", {group}"
    axes[0].set_title(
        f"{post.y}{where}: {post.method}, prior {post.prior}", loc="left", fontsize=10
    )
    return figure
