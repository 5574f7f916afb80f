"""Diamonds by clarity and colour: pooled groups of a real table, and why intervals miss there.

python -m experiments.pooling.real_table --data FOLDER [--truth records|errors|population]
    [--epsilon 0.5] [--releases 3] [--seed 11] [--features grade|size|none] [--without I1]
    [--spread 0.04] [--alone]

Log price on log carat in 56 groups of 42 to 2,470 records, with noise added by NumPy. Intervals are
held against least squares of the very records. ``--truth records``: the records as they are;
``errors``: their covariates, and responses about each group's own line with normal errors;
``population``: lines drawn anew from one normal population about the features, whose deviations are
those of the records' lines, or proportional to them with ``--spread`` as that of the slopes; then
intervals are held against the lines that were drawn. ``--features grade``: places of clarity and
colour on their scales; ``size``: these and the logarithm of the group's size. ``--alone``: every
group by itself instead.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.pooling.tracts import NOISE
from noisewise import priors
from noisewise.inference.population import PublicFeatures
from noisewise.models.linear_regression import exact, pooled_posterior
from noisewise.models.linear_regression.problem import (
    RegressionProblem,
    Units,
    default_covariates,
    default_response,
)

CLARITIES = ("I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF")
COLOURS = tuple("JIHGFED")
LINE_AT = -0.2
"""Log carat at which lines are compared."""
UNITS = Units(np.array([0.0, 3.4]), np.array([0.7, 0.9]))
"""Bounds: log carat ±0.7, log price 2.5 to 4.3."""


@dataclass(frozen=True)
class Grades:
    """Records in the box, the group of each, and the groups' places on both scales."""

    group: np.ndarray
    x: np.ndarray
    y: np.ndarray
    places: np.ndarray

    @property
    def n(self) -> np.ndarray:
        """Sizes of the groups."""
        return np.bincount(self.group)

    def sums(self, y: np.ndarray) -> np.ndarray:
        """Return the sums behind a release, with these responses."""
        x = self.x
        return np.stack([np.bincount(self.group, v) for v in (x * x, x * y, y * y, x, y)], axis=1)

    def fit(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return slope, intercept and error variance of least squares, by group."""
        xx, xy, _, x, _ = self.sums(y).T
        middle, level = x / self.n, np.bincount(self.group, y) / self.n
        slope = (xy - x * level) / (xx - x * middle)
        intercept = level - slope * middle
        left = y - slope[self.group] * self.x - intercept[self.group]
        return slope, intercept, np.bincount(self.group, left**2) / (self.n - 2)


def grades(folder: Path, without: tuple[str, ...] = ()) -> Grades:
    """Read the table."""
    table = pd.read_csv(folder / "diamonds.csv")
    kept = [c for c in CLARITIES if c not in without]
    table = table[table["clarity"].isin(kept)]
    clarity = table["clarity"].map({c: i for i, c in enumerate(kept)}).to_numpy()
    colour = table["color"].map({c: i for i, c in enumerate(COLOURS)}).to_numpy()
    x = (np.log10(table["carat"].to_numpy()) - UNITS.centre[0]) / UNITS.half[0]
    y = (np.log10(table["price"].to_numpy()) - UNITS.centre[1]) / UNITS.half[1]
    places = [[i, j] for i in range(len(kept)) for j in range(len(COLOURS))]
    return Grades(clarity * len(COLOURS) + colour, x, y, np.array(places, float))


def responses(
    rng: np.random.Generator, given: Grades, truth: str, spread_of_slopes: float | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the responses of one trial, and slope, intercept and variance of every group."""
    if truth == "records":
        return given.y, np.stack(given.fit(given.y), axis=-1)
    slope, intercept, variance = given.fit(given.y)
    if truth == "population":
        middle = (np.bincount(given.group, given.x) / given.n).mean()
        lines = np.column_stack([slope, intercept + slope * middle])
        design = np.column_stack([np.ones(len(slope)), given.places])
        fitted = design @ np.linalg.lstsq(design, lines, rcond=None)[0]
        spread = np.cov((lines - fitted).T)
        if spread_of_slopes is not None:
            in_box = spread_of_slopes * UNITS.half[0] / UNITS.half[1]
            spread = spread * in_box**2 / spread[0, 0]
        slope, level = (fitted + rng.multivariate_normal([0, 0], spread, len(fitted))).T
        intercept, variance = level - slope * middle, np.full(len(slope), variance.mean())
    error = np.sqrt(variance[given.group]) * rng.standard_normal(len(given.x))
    y = np.asarray(slope[given.group] * given.x + intercept[given.group] + error)
    drawn = (slope, intercept, variance) if truth == "population" else given.fit(y)
    return y, np.stack(drawn, axis=-1)


def public(given: Grades, which: str) -> PublicFeatures:
    """Return the features of the groups."""
    ones = np.ones((len(given.n), 1))
    if which == "none":
        return PublicFeatures(ones)
    values = given.places
    names: tuple[str, ...] = ("clarity", "colour")
    if which == "size":
        values, names = np.column_stack([values, np.log(given.n)]), (*names, "log size")
    middle, unit = values.mean(axis=0), values.std(axis=0)
    return PublicFeatures(np.column_stack([ones, (values - middle) / unit]), names, middle, unit)


def trial(given: Grades, settings: argparse.Namespace, number: int) -> dict[str, object]:
    """Return how many groups' intervals of one release hold the truth."""
    rng = np.random.default_rng([settings.seed, number])
    y, lines = responses(rng, given, settings.truth, settings.spread)
    sums, scale = given.sums(y), NOISE / settings.epsilon
    problem = RegressionProblem(
        ("lc",), "lp", sums + rng.laplace(0, scale, sums.shape), given.n.astype(float), False,
        scale, "laplace", default_response(UNITS), default_covariates(UNITS), UNITS,
        tuple(range(len(sums))), scale_free=True,
    )  # fmt: skip
    question = pooled_posterior.PooledQuestion(
        problem, public(given, settings.features), priors.Population()
    )
    post = (
        exact.run(problem, number, 4, 500)
        if settings.alone
        else pooled_posterior.run(question, number, 4, 500)
    )
    slope, intercept, _ = UNITS.to_user(lines).T
    draws = {name: v.reshape(len(sums), -1) for name, v in post.draws.items()}
    line = draws["lc"] * LINE_AT + draws["intercept"]
    row: dict[str, object] = {"number": number, "groups": len(sums)}
    large = given.n > np.median(given.n)
    for name, drawn, true in (
        ("slope", draws["lc"], slope),
        ("line", line, slope * LINE_AT + intercept),
    ):
        low, high = np.quantile(drawn, [0.025, 0.975], axis=1)
        held = (low <= true) & (true <= high)
        row |= {name: int(held.sum()), f"{name}, larger half": int(held[large].sum())}
    if post.population is None:
        return row
    table = post.population.summary()
    deviation = table.loc["sd of lc", ["mean", "lower", "upper"]].to_numpy(float)
    row["sd of slopes"] = deviation.round(3).tolist()
    row["rhat"], row["ess"] = round(float(table["rhat"].max()), 4), round(float(table["ess"].min()))
    return row | {"sweeps": post.details["sweeps"]}


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(prog="python -m experiments.pooling.real_table")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--truth", choices=("records", "errors", "population"), default="records")
    parser.add_argument("--features", choices=("grade", "size", "none"), default="grade")
    parser.add_argument("--epsilon", type=float, default=0.5)
    parser.add_argument("--releases", type=int, default=3)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--without", nargs="*", default=())
    parser.add_argument("--spread", type=float)
    parser.add_argument("--alone", action="store_true")
    settings = parser.parse_args()
    given = grades(settings.data, tuple(settings.without))
    for number in range(settings.releases):
        print(json.dumps(trial(given, settings, number)), flush=True)


if __name__ == "__main__":
    main()
