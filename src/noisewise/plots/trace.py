"""Draws in the order in which they were made, chain by chain (thesis Fig. B.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from noisewise.plots.canvas import COLOURS, chosen, panels


def trace(
    post: Any,
    *,
    parameters: Iterable[str] | None = None,
    group: Any = None,
    truth: Mapping[str, float] | None = None,
    draws: int = 500,
) -> Any:
    """A matplotlib Figure: one panel per parameter; ``figure.savefig("trace.png")`` keeps it.

    Args:
        post: a Posterior.
        parameters: some of its parameters; all unless named.
        group: which group, where there are groups.
        truth: known values, drawn as lines (simulations only).
        draws: how many, from the first.
    """
    values = chosen(post, group, parameters)
    figure, axes = panels(len(values))
    for axis, (name, chains) in zip(axes, values.items(), strict=True):
        for number, chain in enumerate(chains):
            colour = COLOURS[number % len(COLOURS)]
            axis.plot(chain[:draws], color=colour, lw=0.7, alpha=0.8)
        if truth and name in truth:
            axis.axhline(truth[name], color="black", lw=1.2, ls="--", label="truth")
            axis.legend(frameon=False, loc="upper right")
        axis.set_ylabel(name)
        axis.margins(x=0.01)
    axes[-1].set_xlabel(f"kept draw ({len(next(iter(values.values())))} chains)")
    where = "" if group is None else f", {group}"
    axes[0].set_title(f"{post.y}{where}: {post.method}", loc="left", fontsize=10)
    return figure
