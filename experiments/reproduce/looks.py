"""A method keeps its colour, marker and line in all figures of chapters 3 and 4."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

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
