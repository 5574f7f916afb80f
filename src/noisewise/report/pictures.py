"""What a report shows: each function takes numbers and gives one drawing, with its own alt text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from noisewise.diagnostics import uniform_band
from noisewise.plots.posterior_plots import window
from noisewise.report import svg
from noisewise.report.html import number

BINS = 90
"""Bins of a histogram (chosen for its width of 320 pixels)."""
TRACED = 160
"""Draws of a chain that a trace shows, at most (chosen)."""
FLAT = 130
"""Height of drawings without numbers below them."""


def density(name: str, drawn: np.ndarray, prior: np.ndarray | None) -> str:
    """Histogram of the draws, on that of the prior."""
    low, high = (
        window(prior, drawn) if prior is not None else (float(drawn.min()), float(drawn.max()))
    )
    edges = (
        np.linspace(low, high, BINS + 1) if high > low else np.linspace(low - 1, low + 1, BINS + 1)
    )
    samples = [(drawn, "posterior")] if prior is None else [(prior, "prior"), (drawn, "posterior")]
    heights = [np.histogram(s, edges)[0] / (len(s) * np.diff(edges)) for s, _ in samples]
    across, up = svg.across(edges[0], edges[-1]), svg.upwards(0, max(h.max() for h in heights))
    body = [
        svg.steps(across(edges), up(h), float(up(0)), css)
        for h, (_, css) in zip(heights, samples, strict=True)
    ]
    ends = np.quantile(drawn, [0.025, 0.975])
    y = svg.HEIGHT - svg.BOTTOM
    body.append(svg.line(across(ends), np.array([y, y]), "mean"))
    says = (
        f"Distribution of {name}: mean {number(drawn.mean())}, 95 % interval "
        f"{number(ends[0])} to {number(ends[1])}"
    )
    if prior is not None:
        before = np.quantile(prior, [0.025, 0.975])
        says += f"; before the release {number(before[0])} to {number(before[1])}"
    return svg.picture(says, [*body, svg.bottom_axis(across)])


def band(
    name: str, y: str, at: np.ndarray, mean: np.ndarray, line: np.ndarray, record: np.ndarray
) -> str:
    """The regression line over one covariate: intervals (point, 2) of the line and of a record."""
    across = svg.across(at[0], at[-1], svg.INDENT)
    up = svg.upwards(float(record.min()), float(record.max()))
    xs = across(at)
    body = [
        svg.area(xs, up(record[:, 0]), up(record[:, 1]), "soft"),
        svg.area(xs, up(line[:, 0]), up(line[:, 1]), "band"),
        svg.left_axis(up),
        svg.line(xs, up(mean), "mean"),
        svg.bottom_axis(across),
    ]
    says = (
        f"Predicted {y} over {name}: from {number(mean[0])} at {number(at[0])} to "
        f"{number(mean[-1])} at {number(at[-1])}; at the ends 90 % of new records lie between "
        f"{number(record[0, 0])} and {number(record[0, 1])}, and between {number(record[-1, 0])} "
        f"and {number(record[-1, 1])}"
    )
    return svg.picture(says, body)


def trace(name: str, chains: np.ndarray) -> str:
    """Draws in the order in which they were made; every so many of them."""
    kept = chains[:, :: max(1, chains.shape[1] // TRACED)]
    across = svg.across(0, kept.shape[1] - 1, svg.INDENT)
    up = svg.upwards(float(kept.min()), float(kept.max()), FLAT + svg.BOTTOM)
    xs = across(np.arange(kept.shape[1]))
    body = [svg.left_axis(up)]
    body += [svg.line(xs, up(c), f"chain chain{i % 4}") for i, c in enumerate(kept)]
    return svg.picture(f"Draws of {name}, {len(chains)} chains one over the other", body, FLAT + 6)


def bars(says: str, names: Sequence[str], shares: np.ndarray) -> str:
    """Horizontal bars from 0 to 1, each with its percentage."""
    height = 12 + 34 * len(names)
    scale = svg.Scale(0, 1, 4, svg.WIDTH - 48)
    body = []
    for place, (name, share) in enumerate(zip(names, shares, strict=True)):
        y = 6 + 34 * place
        body.append(svg.label(4, y + 11, name if len(name) <= 40 else name[:39] + "…", "start"))
        body.append(svg.rectangle(4, y + 15, float(scale(1)) - 4, 9, "soft"))
        body.append(svg.rectangle(4, y + 15, float(scale(share)) - 4, 9, "posterior"))
        body.append(svg.label(svg.WIDTH - 4, y + 24, f"{share:.0%}", "end"))
    return svg.picture(says, body, height)


def caterpillar(name: str, lower: np.ndarray, mean: np.ndarray, upper: np.ndarray) -> str:
    """Intervals of many groups, from the lowest mean to the highest."""
    order = np.argsort(mean)
    up = svg.upwards(float(lower.min()), float(upper.max()), FLAT + svg.BOTTOM)
    across = svg.across(-0.5, len(mean) - 0.5, svg.INDENT)
    xs = across(np.arange(len(mean)))
    body = [svg.left_axis(up)]
    for x, group in zip(xs, order, strict=True):
        body.append(svg.line(np.array([x, x]), up(np.array([lower[group], upper[group]])), "mean"))
        body.append(svg.dot(float(x), float(up(mean[group]))))
    says = (
        f"{name} in {len(mean)} groups, by size: means from {number(mean.min())} to "
        f"{number(mean.max())}"
    )
    return svg.picture(says, body, FLAT + 6)


def ranks(method: str, names: Sequence[str], found: Sequence[Sequence[float]]) -> str:
    """Sorted ranks less their expected places, on the band that chance allows."""
    trials = len(found[0])
    expected = np.arange(1, trials + 1) / (trials + 1)
    low, high = (edge - expected for edge in uniform_band(trials))
    off = [np.sort(row) - expected for row in found]
    most = max(float(np.abs(np.concatenate([low, high, *off])).max()), 1e-3)
    across, up = svg.across(0, 1, svg.INDENT), svg.upwards(-most, most)
    xs = across(expected)
    body = [svg.area(xs, up(low), up(high), "soft"), svg.left_axis(up)]
    body += [svg.line(xs, up(row), f"ranks chain{i % 4}") for i, row in enumerate(off)]
    outside = [
        name for name, row in zip(names, off, strict=True) if ((row < low) | (row > high)).any()
    ]
    told = f"outside it: {', '.join(outside)}" if outside else "all of them inside it"
    says = f"Ranks under {method} against the band of a calibrated method, {told}"
    return svg.picture(says, [*body, svg.bottom_axis(across)])


def widths(
    name: str, epsilons: Sequence[float], found: Mapping[str, Sequence[float]], without: float
) -> str:
    """Interval widths over epsilon, both logarithmic, one line per method."""
    logs = {method: np.log10(values) for method, values in found.items()}
    every = np.concatenate([*logs.values(), [np.log10(without)]])
    at = np.log10(np.array(epsilons))
    across = svg.across(at[0] - 0.05, at[-1] + 0.05, svg.INDENT)
    up = svg.upwards(every.min() - 0.08, every.max() + 0.08)
    body = [svg.left_axis(up, logarithmic=True)]
    ends = np.array([across.start, across.end])
    body.append(svg.line(ends, np.full(2, float(up(np.log10(without)))), "reference"))
    for i, values in enumerate(logs.values()):
        body.append(svg.line(across(at), up(values), f"ranks chain{i % 4}"))
    says = f"Mean width of the interval of {name}: " + "; ".join(
        f"{method} from {number(values[0])} at epsilon {epsilons[0]:g} to {number(values[-1])} at "
        f"{epsilons[-1]:g}"
        for method, values in found.items()
    )
    marks = svg.bottom_axis(
        across, at=[(float(x), f"{e:g}") for x, e in zip(at, epsilons, strict=True)]
    )
    return svg.picture(f"{says}; without privacy {number(without)}", [*body, marks])
