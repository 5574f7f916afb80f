"""Draw what a report shows, as SVG: each drawing is made of numbers and has its own alt text.

Drawings are coloured by the page's style sheet, so that light, dark and paper work. They are about
as wide as a phone, and put side by side where there is room: text keeps its size, which a large
figure scaled down would not.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from noisewise.artifact.readable_numbers import in_full
from noisewise.diagnostics import uniform_band
from noisewise.plots import near_interval, window
from noisewise.report.html import number

WIDTH, HEIGHT = 320, 170
"""Size of a drawing in pixels (chosen: as wide as a phone)."""
FLAT_HEIGHT = 130
"""Height of drawings without numbers below them, in pixels (chosen)."""
LEFT, RIGHT, TOP, BOTTOM = 10, 10, 6, 22
"""Margins in pixels; the bottom one has room for numbers (chosen)."""
INDENT = 46
"""Left margin in pixels where the vertical axis has numbers (chosen)."""
BINS = 90
"""Bins of a histogram (chosen: three to four pixels each)."""
MAX_TRACE_POINTS = 160
"""About the number of draws in the picture of a chain (chosen: one every two pixels)."""
LINE, CHARACTERS = 15, 44
"""Height of a line of text in pixels, and the characters that surely fit it (chosen)."""


@dataclass(frozen=True)
class Scale:
    """A linear map from values to pixels."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, values: np.ndarray | float) -> np.ndarray:
        """Return the pixel at which each value is drawn."""
        span = (self.high - self.low) or 1.0
        share = (np.asarray(values, float) - self.low) / span
        return np.asarray(self.start + share * (self.end - self.start))

    def ticks(self, most: int = 5) -> list[float]:
        """Return round numbers within the scale, about ``most`` or fewer."""
        span = self.high - self.low
        if not span > 0 or not math.isfinite(span):
            return [self.low]
        step = 10.0 ** math.floor(math.log10(span / most))
        step *= next((f for f in (1, 2, 5, 10) if span / (f * step) <= most), 10)
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        return [round(i * step, 12) for i in range(first, last + 1)]


def horizontal_scale(low: float, high: float, left: float = LEFT) -> Scale:
    """Return the horizontal scale of a drawing."""
    return Scale(low, high, left, WIDTH - RIGHT)


def vertical_scale(low: float, high: float, height: float = HEIGHT) -> Scale:
    """Return the vertical scale of a drawing; pixels count downwards."""
    return Scale(low, high, height - BOTTOM, TOP)


def svg(description: str, body: Iterable[str], height: float = HEIGHT) -> str:
    """Return a drawing; ``description`` is read out to someone who cannot see it."""
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(description)}">'
        f"{''.join(body)}</svg>"
    )


def line(xs: np.ndarray, ys: np.ndarray, css: str) -> str:
    """Return a polyline."""
    return f'<path class="{css}" fill="none" d="{_path(xs, ys)}"/>'


def area(xs: np.ndarray, low: np.ndarray, high: np.ndarray, css: str) -> str:
    """Return the filled area between two lines."""
    around = np.concatenate([xs, xs[::-1]]), np.concatenate([high, low[::-1]])
    return f'<path class="{css}" d="{_path(*around)}Z"/>'


def steps(edges: np.ndarray, heights: np.ndarray, floor: float, css: str) -> str:
    """Return a histogram's outline, filled; all arguments are pixels."""
    xs = np.repeat(edges, 2)
    ys = np.concatenate([[floor], np.repeat(heights, 2), [floor]])
    return f'<path class="{css}" d="{_path(xs, ys)}Z"/>'


def rectangle(x: float, y: float, width: float, height: float, css: str) -> str:
    """Return a bar."""
    return (
        f'<rect class="{css}" x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" '
        f'height="{height:.1f}"/>'
    )


def dot(x: float, y: float) -> str:
    """Return a point."""
    return f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>'


def label(x: float, y: float, content: str, anchor: str = "middle") -> str:
    """Return a text at a place."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(content)}</text>'


def lines_of_text(x: float, y: float, content: str) -> tuple[str, float]:
    """Return a text in as many lines as it needs, and where the next line would be."""
    lines = textwrap.wrap(content, CHARACTERS) or [""]
    drawn = (label(x, y + LINE * i, part, "start") for i, part in enumerate(lines))
    return "".join(drawn), y + LINE * len(lines)


def axis_number(value: float) -> str:
    """Return a round number in the six characters that fit beside an axis.

    Such as 19,500 rather than 1.95e+04, and 80M for 80 million.
    """
    for unit, name in ((1e9, "bn"), (1e6, "M")):
        if unit <= abs(value) < 1e3 * unit:
            return f"{value / unit:.6g}{name}"
    shown = in_full(float(f"{value:.6g}"))
    return shown if len(shown) <= 7 else f"{value:.3g}".replace("e+0", "e").replace("e+", "e")


def bottom_axis(
    scale: Scale, at: Sequence[tuple[float, str]] | None = None, height: float = HEIGHT
) -> str:
    """Return the horizontal axis with its numbers: round ones, or those given with names."""
    y = height - BOTTOM
    parts = [line(np.array([scale.start, scale.end]), np.array([y, y]), "axis")]
    for value, name in at or [(v, axis_number(v)) for v in scale.ticks()]:
        x = float(scale(value))
        parts.append(line(np.array([x, x]), np.array([y, y + 4]), "axis"))
        # A number at the very edge would be cut off.
        inside = min(max(x, 14.0), WIDTH - 16.0)
        parts.append(label(inside, y + 17, name))
    return "".join(parts)


def left_axis(scale: Scale, *, logarithmic: bool = False) -> str:
    """Return the vertical axis: numbers beside thin lines.

    On a scale of logarithms (base 10), the numbers shown are those the logarithms are of.
    """
    parts = []
    places = [(v, v) for v in scale.ticks(6)]
    if logarithmic:
        round_numbers = [f * 10.0**d for d in range(-12, 13) for f in (1, 2, 5)]
        inside = [v for v in round_numbers if scale.low <= math.log10(v) <= scale.high]
        places = [(math.log10(v), v) for v in inside[:: max(1, len(inside) // 4)]]
    for place, value in places:
        y = float(scale(place))
        parts.append(line(np.array([INDENT, WIDTH - RIGHT]), np.array([y, y]), "axis"))
        parts.append(label(INDENT - 5, y + 4, axis_number(value), "end"))
    return "".join(parts)


def _path(xs: np.ndarray, ys: np.ndarray) -> str:
    places = (f"{x:.1f},{y:.1f}" for x, y in zip(xs, ys, strict=True))
    return "M" + "L".join(places)


def density(name: str, drawn: np.ndarray, prior: np.ndarray | None) -> str:
    """Draw the histogram of posterior draws, on that of the prior where there is one."""
    low, high = window(prior, drawn) if prior is not None else near_interval(drawn)
    edges = (
        np.linspace(low, high, BINS + 1) if high > low else np.linspace(low - 1, low + 1, BINS + 1)
    )
    samples = [(drawn, "posterior")] if prior is None else [(prior, "prior"), (drawn, "posterior")]
    heights = [np.histogram(s, edges)[0] / (len(s) * np.diff(edges)) for s, _ in samples]
    across = horizontal_scale(edges[0], edges[-1])
    up = vertical_scale(0, max(h.max() for h in heights))
    body = [
        steps(across(edges), up(h), float(up(0)), css)
        for h, (_, css) in zip(heights, samples, strict=True)
    ]
    ends = np.quantile(drawn, [0.025, 0.975])
    y = HEIGHT - BOTTOM
    body.append(line(across(ends), np.array([y, y]), "mean"))
    description = (
        f"Distribution of {name}: median {number(float(np.median(drawn)))}, 95 % interval "
        f"{number(ends[0])} to {number(ends[1])}"
    )
    if prior is not None:
        before = np.quantile(prior, [0.025, 0.975])
        description += f"; before the release {number(before[0])} to {number(before[1])}"
    return svg(description, [*body, bottom_axis(across)])


def band(
    name: str, y: str, at: np.ndarray, mean: np.ndarray, of_line: np.ndarray, of_record: np.ndarray
) -> str:
    """Draw the regression line over one covariate.

    ``of_line`` and ``of_record`` are intervals (point, 2) of the line and of a new record.
    """
    across = horizontal_scale(at[0], at[-1], INDENT)
    up = vertical_scale(float(of_record.min()), float(of_record.max()))
    xs = across(at)
    body = [
        area(xs, up(of_record[:, 0]), up(of_record[:, 1]), "soft"),
        area(xs, up(of_line[:, 0]), up(of_line[:, 1]), "band"),
        left_axis(up),
        line(xs, up(mean), "mean"),
        bottom_axis(across),
    ]
    description = (
        f"Predicted {y} over {name}: from {number(mean[0])} at {number(at[0])} to "
        f"{number(mean[-1])} at {number(at[-1])}; at the ends 90 % of new records lie between "
        f"{number(of_record[0, 0])} and {number(of_record[0, 1])}, and between "
        f"{number(of_record[-1, 0])} and {number(of_record[-1, 1])}"
    )
    return svg(description, body)


def trace(name: str, chains: np.ndarray) -> str:
    """Draw the trace of each chain: its draws in order, thinned to what can be seen.

    Draws far out are drawn at the edge.
    """
    kept = chains[:, :: max(1, chains.shape[1] // MAX_TRACE_POINTS)]
    across = horizontal_scale(0, kept.shape[1] - 1, INDENT)
    low, high = near_interval(chains)
    kept = np.clip(kept, low, high)
    up = vertical_scale(low, high, FLAT_HEIGHT + BOTTOM)
    xs = across(np.arange(kept.shape[1]))
    body = [left_axis(up)]
    body += [line(xs, up(c), f"chain chain{i % 4}") for i, c in enumerate(kept)]
    return svg(f"Draws of {name}, {len(chains)} chains one over the other", body, FLAT_HEIGHT + 6)


def bars(description: str, names: Sequence[str], shares: np.ndarray) -> str:
    """Draw horizontal bars from 0 to 1, each with its percentage."""
    scale = Scale(0, 1, 4, WIDTH - 48)
    body, y = [], 17.0
    for name, share in zip(names, shares, strict=True):
        words, y = lines_of_text(4, y, name)
        body.append(words)
        body.append(rectangle(4, y - 11, float(scale(1)) - 4, 9, "soft"))
        body.append(rectangle(4, y - 11, float(scale(share)) - 4, 9, "posterior"))
        body.append(label(WIDTH - 4, y - 2, f"{share:.0%}", "end"))
        y += 19
    return svg(description, body, y - 5)


def intervals(
    description: str,
    rows: Sequence[tuple[str, float, float, float]],
    zero: bool = True,
    reference: float | None = None,
) -> str:
    """Draw named intervals below each other, each with its mean as a dot.

    Args:
        description: read out to someone who cannot see it.
        rows: name, lower end, mean and upper end of each.
        zero: whether zero is marked, and in the picture.
        reference: another value to be marked so.
    """
    marked = 0.0 if zero else reference
    ends = [value for row in rows for value in (row[1], row[3])]
    ends += [] if marked is None else [marked]
    margin = 0.04 * ((max(ends) - min(ends)) or 1.0)
    across = horizontal_scale(min(ends) - margin, max(ends) + margin)
    body, y = [], 14.0
    for name, lower, mean, upper in rows:
        words, y = lines_of_text(4, y, name)
        body.append(words)
        if marked is not None:
            at = np.full(2, float(across(marked)))
            body.append(line(at, np.array([y - 12, y]), "reference"))
        body.append(line(across(np.array([lower, upper])), np.full(2, y - 6), "mean"))
        body.append(dot(float(across(mean)), y - 6))
        y += LINE
    height = y + BOTTOM - LINE + 6
    return svg(description, [*body, bottom_axis(across, height=height)], height)


def caterpillar(
    name: str,
    lower: np.ndarray,
    mean: np.ndarray,
    upper: np.ndarray,
    groups: Sequence[str] = (),
    middle: float | None = None,
) -> str:
    """Draw intervals of many groups, from the lowest mean to the highest.

    Args:
        name: of what is drawn.
        lower: ends of the intervals, one per group.
        mean: of each group, a dot.
        upper: the other ends.
        groups: their names, which browsers show beside the pointer.
        middle: where the population's mean is, a dashed line.
    """
    order = np.argsort(mean)
    up = vertical_scale(float(lower.min()), float(upper.max()), FLAT_HEIGHT + BOTTOM)
    across = horizontal_scale(-0.5, len(mean) - 0.5, INDENT)
    xs = across(np.arange(len(mean)))
    body = [left_axis(up)]
    if middle is not None and up.low <= middle <= up.high:
        ends = np.array([across.start, across.end])
        body.append(line(ends, np.full(2, float(up(middle))), "reference"))
    for x, group in zip(xs, order, strict=True):
        drawn = line(np.array([x, x]), up(np.array([lower[group], upper[group]])), "mean")
        drawn += dot(float(x), float(up(mean[group])))
        if groups:
            ends_in_words = f"{number(lower[group])} to {number(upper[group])}"
            told = f"{groups[group]}: {number(mean[group])} ({ends_in_words})"
            drawn = f"<g><title>{escape(told)}</title>{drawn}</g>"
        body.append(drawn)
    description = (
        f"{name} in {len(mean)} groups, by size: means from {number(mean.min())} to "
        f"{number(mean.max())}"
    )
    if groups:
        description += f"; lowest {groups[order[0]]}, highest {groups[order[-1]]}"
    return svg(description, body, FLAT_HEIGHT + 6)


def ranks(method: str, names: Sequence[str], ranks_of: Sequence[Sequence[float]]) -> str:
    """Draw sorted ranks less their expected places, on the band that chance allows."""
    trials = len(ranks_of[0])
    expected = np.arange(1, trials + 1) / (trials + 1)
    low, high = (edge - expected for edge in uniform_band(trials))
    off = [np.sort(row) - expected for row in ranks_of]
    most = max(float(np.abs(np.concatenate([low, high, *off])).max()), 1e-3)
    across, up = horizontal_scale(0, 1, INDENT), vertical_scale(-most, most)
    xs = across(expected)
    body = [area(xs, up(low), up(high), "soft"), left_axis(up)]
    body += [line(xs, up(row), f"ranks chain{i % 4}") for i, row in enumerate(off)]
    outside = [
        name for name, row in zip(names, off, strict=True) if ((row < low) | (row > high)).any()
    ]
    where = f"outside it: {', '.join(outside)}" if outside else "all of them inside it"
    description = f"Ranks under {method} against the band of a calibrated method, {where}"
    return svg(description, [*body, bottom_axis(across)])


def widths(
    name: str, epsilons: Sequence[float], by_method: Mapping[str, Sequence[float]], without: float
) -> str:
    """Draw interval widths over epsilon, both logarithmic, one line per method.

    ``without`` is the width without privacy, a dashed line.
    """
    logs = {method: np.log10(values) for method, values in by_method.items()}
    every = np.concatenate([*logs.values(), [np.log10(without)]])
    at = np.log10(np.array(epsilons))
    across = horizontal_scale(at[0] - 0.05, at[-1] + 0.05, INDENT)
    up = vertical_scale(every.min() - 0.08, every.max() + 0.08)
    body = [left_axis(up, logarithmic=True)]
    ends = np.array([across.start, across.end])
    body.append(line(ends, np.full(2, float(up(np.log10(without)))), "reference"))
    for i, values in enumerate(logs.values()):
        body.append(line(across(at), up(values), f"ranks chain{i % 4}"))
    description = f"Mean width of the interval of {name}: " + "; ".join(
        f"{method} from {number(values[0])} at epsilon {epsilons[0]:g} to {number(values[-1])} at "
        f"{epsilons[-1]:g}"
        for method, values in by_method.items()
    )
    marks = bottom_axis(
        across, at=[(float(x), f"{e:g}") for x, e in zip(at, epsilons, strict=True)]
    )
    return svg(f"{description}; without privacy {number(without)}", [*body, marks])
