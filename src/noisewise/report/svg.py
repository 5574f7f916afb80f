"""Small drawings as SVG, coloured by the page's style sheet, so that light, dark and paper work.

They are drawn about as wide as a phone, and put side by side where there is room: text keeps its
size, which a large figure scaled down would not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

WIDTH, HEIGHT = 320, 170
"""Size of a drawing in pixels (chosen)."""
LEFT, RIGHT, TOP, BOTTOM = 10, 10, 6, 22
"""Margins around a drawing in pixels (chosen)."""
INDENT = 46
"""Left margin where the vertical axis has numbers."""


@dataclass(frozen=True)
class Scale:
    """From values to pixels."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, values: np.ndarray | float) -> np.ndarray:
        """Where a value is drawn."""
        span = (self.high - self.low) or 1.0
        share = (np.asarray(values, float) - self.low) / span
        return np.asarray(self.start + share * (self.end - self.start))

    def ticks(self, most: int = 5) -> list[float]:
        """Round numbers inside, as many as are easily read."""
        span = self.high - self.low
        if not span > 0 or not math.isfinite(span):
            return [self.low]
        step = 10.0 ** math.floor(math.log10(span / most))
        step *= next((f for f in (1, 2, 5, 10) if span / (f * step) <= most), 10)
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        return [round(i * step, 12) for i in range(first, last + 1)]


def across(low: float, high: float, left: float = LEFT) -> Scale:
    """The horizontal scale of a drawing."""
    return Scale(low, high, left, WIDTH - RIGHT)


def upwards(low: float, high: float, height: float = HEIGHT) -> Scale:
    """The vertical one: pixels count downwards."""
    return Scale(low, high, height - BOTTOM, TOP)


def picture(says: str, body: Iterable[str], height: float = HEIGHT) -> str:
    """``says`` is what someone who cannot see it is told."""
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(says)}">'
        f"{''.join(body)}</svg>"
    )


def line(xs: np.ndarray, ys: np.ndarray, css: str) -> str:
    """A polyline."""
    return f'<path class="{css}" fill="none" d="{_path(xs, ys)}"/>'


def area(xs: np.ndarray, low: np.ndarray, high: np.ndarray, css: str) -> str:
    """Between two lines."""
    around = np.concatenate([xs, xs[::-1]]), np.concatenate([high, low[::-1]])
    return f'<path class="{css}" d="{_path(*around)}Z"/>'


def steps(edges: np.ndarray, heights: np.ndarray, floor: float, css: str) -> str:
    """A histogram's outline, filled; all in pixels."""
    xs = np.repeat(edges, 2)
    ys = np.concatenate([[floor], np.repeat(heights, 2), [floor]])
    return f'<path class="{css}" d="{_path(xs, ys)}Z"/>'


def rectangle(x: float, y: float, width: float, height: float, css: str) -> str:
    """A bar."""
    return (
        f'<rect class="{css}" x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" '
        f'height="{height:.1f}"/>'
    )


def dot(x: float, y: float) -> str:
    """A point."""
    return f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>'


def label(x: float, y: float, content: str, anchor: str = "middle") -> str:
    """A word at a place."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(content)}</text>'


def bottom_axis(
    scale: Scale, height: float = HEIGHT, at: Sequence[tuple[float, str]] | None = None
) -> str:
    """The line and its numbers: round ones, or those given with their names."""
    y = height - BOTTOM
    made = [line(np.array([scale.start, scale.end]), np.array([y, y]), "axis")]
    for value, name in at or [(v, f"{v:.6g}") for v in scale.ticks()]:
        x = float(scale(value))
        made.append(line(np.array([x, x]), np.array([y, y + 4]), "axis"))
        # A number at the very edge would be cut off.
        inside = min(max(x, 14.0), WIDTH - 16.0)
        made.append(label(inside, y + 17, name))
    return "".join(made)


def left_axis(scale: Scale, *, logarithmic: bool = False) -> str:
    """Numbers beside thin lines; of a scale of logarithms, the numbers themselves."""
    made = []
    places = [(v, v) for v in scale.ticks(6)]
    if logarithmic:
        round_ = [f * 10.0**d for d in range(-12, 13) for f in (1, 2, 5)]
        inside = [v for v in round_ if scale.low <= math.log10(v) <= scale.high]
        places = [(math.log10(v), v) for v in inside[:: max(1, len(inside) // 4)]]
    for place, value in places:
        y = float(scale(place))
        made.append(line(np.array([INDENT, WIDTH - RIGHT]), np.array([y, y]), "axis"))
        made.append(label(INDENT - 5, y + 4, f"{value:.4g}", "end"))
    return "".join(made)


def _path(xs: np.ndarray, ys: np.ndarray) -> str:
    places = (f"{x:.1f},{y:.1f}" for x, y in zip(xs, ys, strict=True))
    return "M" + "L".join(places)
