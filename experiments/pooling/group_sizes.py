"""How much more small groups differ than large ones, in groupings of real tables, without noise.

python -m experiments.pooling.group_sizes [--data FOLDER]

For every grouping: what the records say of the exponent γ of ``Population``, the variance between
groups falling as size to the power γ, as its mean and deviation under a flat prior on (-1.5, 2.5),
with everything else at its likeliest. Lines: least squares of every group is normal about the
population's line, with its own sampling error. Shares: a beta population, counts are binomial. At
the end, mean and deviation of γ over groupings, their errors allowed for; and the deviation over
slopes, levels and shares of the effect of the standardised log size on a group's mean, in
deviations between groups. Where the prior of pooled groups comes from
(``noisewise.inference.population``). Tables are R's (see ``real_groups``).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import optimize, special, stats

from experiments.pooling.real_groups import LEAST, LINES, SHARES, Lines, Shares
from experiments.real_tables.untouched import read
from noisewise.inference.population import log_relative_sizes, standard_sizes

EXPONENTS = np.arange(-1.5, 2.55, 0.1)
SHRUNK = 10
"""Records of all groups' residual variance that are added to a group's own (chosen)."""
FEWEST_FOR_EFFECTS = 10
"""Groups below which no effect of sizes is looked for (chosen)."""
LEAST_SPREAD = 0.1
"""A group's deviation of the covariate over that of all, below which it is left out (chosen)."""


def more_lines(source: tuple[str, str], y: str, x: str, *groups: str) -> list[tuple[str, Lines]]:
    """Return regressions of one table by several groupings; bounds do not matter here."""
    free = (-np.inf, np.inf)
    return [(f"{source[1]}: {y} by {g}", Lines(source, y, x, g, free, free)) for g in groups]


def more_shares(source: tuple[str, str], column: str, value: object, *groups: str) -> list[
    tuple[str, Shares]
]:  # fmt: skip
    """Return shares of one table by several groupings."""
    return [(f"{source[1]}: {column} by {g}", Shares(source, column, value, g)) for g in groups]


LOANS = ("openintro", "loans_full_schema")
FLIGHTS = ("nycflights13", "flights")
NLS, GSS = ("sampleSelection", "nlswork"), ("stevedata", "gss_wages")
CHEMISTRY, LECTURES = ("mlmRev", "Chem97"), ("lme4", "InstEval")
MICE, STOPS = ("ratdat", "surveys"), ("carData", "MplsStops")
ALL_LINES = [
    *LINES.items(),
    *more_lines(CHEMISTRY, "score", "gcsescore", "school"),
    *more_lines(FLIGHTS, "dep_delay", "hour", "carrier", "dest", "origin"),
    *more_lines(("mlmRev", "Gcsemv"), "course", "written", "school"),
    *more_lines(("mlmRev", "ScotsSec"), "attain", "verbal", "second", "primary"),
    *more_lines(("mlmRev", "bdf"), "langPOST", "IQ.verb", "schoolNR"),
    *more_lines(LECTURES, "y", "studage", "dept", "d"),
    *more_lines(NLS, "ln_wage", "tenure", "ind_code", "year"),
    *more_lines(GSS, "realrinc", "prestg10", "year", "occrecode", "maritalcat", "educcat"),
    *more_lines(("carData", "Vocab"), "vocabulary", "education", "year"),
    *more_lines(LOANS, "interest_rate", "debt_to_income", "loan_purpose"),
    *more_lines(("HLMdiag", "radon"), "log.radon", "basement", "county"),
    *more_lines(("dplyr", "storms"), "pressure", "wind", "name"),
    *more_lines(MICE, "weight", "hindfoot_length", "species_id", "plot_id"),
]
ALL_SHARES = [
    *SHARES.items(),
    *more_shares(CHEMISTRY, "gender", "F", "school"),
    *more_shares(LOANS, "application_type", "joint", "state"),
    *more_shares(LOANS, "loan_purpose", "debt_consolidation", "state"),
    *more_shares(("mlmRev", "Contraception"), "use", "Y", "district"),
    *more_shares(("mlmRev", "guImmun"), "immun", "Y", "comm"),
    *more_shares(("mlmRev", "guPrenat"), "prenat", "Modern", "cluster"),
    *more_shares(STOPS, "personSearch", "YES", "neighborhood"),
    *more_shares(("carData", "Vocab"), "sex", "Female", "year"),
    *more_shares(NLS, "union", 1, "occ_code"),
    *more_shares(NLS, "collgrad", 1, "occ_code"),
    *more_shares(GSS, "gender", "Female", "occ10"),
    *more_shares(("mlmRev", "star"), "eth", "B", "sch"),
    *more_shares(("mlmRev", "Exam"), "sex", "F", "school"),
    *more_shares(("mlmRev", "Hsb82"), "minrty", "Yes", "school"),
    *more_shares(LECTURES, "y", 5, "dept", "d"),
    *more_shares(MICE, "sex", "F", "species_id", "plot_id"),
]


def exponent(
    negative_log: Callable[[np.ndarray, float], float], start: np.ndarray
) -> tuple[float, float]:
    """Return mean and deviation of γ, all else at its likeliest."""
    values, at = [], start
    for gamma in EXPONENTS:
        best = optimize.minimize(
            negative_log, at, (float(gamma),), method="Nelder-Mead",
            options={"xatol": 1e-3, "fatol": 1e-4, "maxiter": 800},
        )  # fmt: skip
        values.append(float(best.fun))
        at = best.x
    weight = np.exp(min(values) - np.array(values))
    weight /= weight.sum()
    mean = float(weight @ EXPONENTS)
    return mean, float(np.sqrt(weight @ (EXPONENTS - mean) ** 2))


def fits(asked: Lines, folder: Path | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return slope and level of every group, their sampling covariances, and sizes.

    In units of the deviations between groups.
    """
    frame = read(*asked.source, folder)[[asked.y, asked.x, asked.group]].dropna()
    x, y = (pd.to_numeric(frame[c]).to_numpy(float) for c in (asked.x, asked.y))
    of = pd.factorize(frame[asked.group].astype(str))[0]
    x = (np.clip(x, *asked.x_bounds) - x.mean()) / x.std()
    y = np.clip(y, *asked.y_bounds)
    found, inverses, left, sizes = [], [], [], []
    for g in range(of.max() + 1):
        own = of == g
        if own.sum() < LEAST or x[own].std() < LEAST_SPREAD:
            continue
        design = np.column_stack([x[own], np.ones(own.sum())])
        inverse = np.linalg.inv(design.T @ design)
        fit = inverse @ design.T @ y[own]
        found.append(fit)
        inverses.append(inverse)
        left.append(((y[own] - design @ fit) ** 2).sum())
        sizes.append(own.sum())
    theta, rss, n = np.array(found), np.array(left), np.array(sizes, float)
    shared = rss.sum() / (n - 2).sum()
    variance = (rss + SHRUNK * shared) / (n - 2 + SHRUNK)
    unit = theta.std(axis=0)
    error = np.array(inverses) * variance[:, None, None] / np.outer(unit, unit)
    return theta / unit, error, n


def of_lines(asked: Lines, folder: Path | None) -> tuple[int, float, float]:
    """Return the number of groups, and mean and deviation of γ, of lines."""
    theta, error, n = fits(asked, folder)
    log_size = log_relative_sizes(n)

    def negative_log(p: np.ndarray, gamma: float) -> float:
        root = np.array([[np.exp(p[0]), 0.0], [p[1], np.exp(p[2])]])
        wider = np.exp(-gamma * log_size)[:, None, None]
        inverse = np.linalg.inv(root @ root.T * wider + error)
        total = inverse.sum(axis=0)
        off = theta - np.linalg.solve(total, np.einsum("gij,gj->i", inverse, theta))
        value = np.einsum("gi,gij,gj->", off, inverse, off) - np.linalg.slogdet(inverse)[1].sum()
        # Weak priors keep deviations and correlations off their limits.
        weak = 0.02 * (p[0] ** 2 + p[2] ** 2) + 0.1 * p[1] ** 2
        return float(0.5 * value + 0.5 * np.linalg.slogdet(total)[1] + weak)

    return (len(n), *exponent(negative_log, np.array([-0.7, 0.0, -0.7])))


def counts(asked: Shares, folder: Path | None) -> tuple[np.ndarray, np.ndarray]:
    """Return how many records of every group are counted, and how many there are."""
    frame = read(*asked.source, folder)[[asked.column, asked.group]].dropna()
    counted = (frame[asked.column].astype(str) == str(asked.value)).to_numpy(float)
    if not counted.any():
        counted = (pd.to_numeric(frame[asked.column]) == float(str(asked.value))).to_numpy(float)
    of = pd.factorize(frame[asked.group].astype(str))[0]
    return np.bincount(of, counted), np.bincount(of).astype(float)


def of_shares(asked: Shares, folder: Path | None) -> tuple[int, float, float]:
    """Return the number of groups, and mean and deviation of γ, of shares."""
    k, n = counts(asked, folder)
    log_size = log_relative_sizes(n)

    def negative_log(p: np.ndarray, gamma: float) -> float:
        kappa = np.exp(p[1] + gamma * log_size)
        a, b = special.expit(p[0]) * kappa, special.expit(-p[0]) * kappa
        value = (special.betaln(k + a, n - k + b) - special.betaln(a, b)).sum()
        return float(0.01 * p[1] ** 2 - value)

    start = np.array([special.logit((k.sum() + 0.5) / (n.sum() + 1)), 2.0])
    return (len(n), *exponent(negative_log, start))


def line_effects(asked: Lines, folder: Path | None) -> list[tuple[float, float]]:
    """Return effect and error of the standardised log size on slopes and on levels."""
    theta, error, n = fits(asked, folder)
    log_size = log_relative_sizes(n)
    design = np.column_stack([np.ones(len(n)), standard_sizes(log_size)])
    found = []
    for k in range(2):
        own, known = theta[:, k], error[:, k, k]

        def solved(p: np.ndarray) -> tuple[np.ndarray, ...]:
            total = np.exp(2 * p[0] - p[1] * log_size) + known  # noqa: B023
            weight = design.T @ (design / total[:, None])
            fit = np.linalg.solve(weight, design.T @ (own / total))  # noqa: B023
            return total, weight, fit

        def negative_log(p: np.ndarray) -> float:
            total, weight, fit = solved(p)
            off = own - design @ fit  # noqa: B023
            value = (np.log(total) + off**2 / total).sum() + np.linalg.slogdet(weight)[1]
            return float(0.5 * value + 0.5 * ((p[1] - 0.3) / 0.45) ** 2 + 0.02 * p[0] ** 2)

        best = optimize.minimize(negative_log, np.array([-0.7, 0.3]), method="Nelder-Mead").x
        _, weight, fit = solved(best)
        unit = np.exp(best[0])
        found.append((float(fit[1] / unit), float(np.sqrt(np.linalg.inv(weight)[1, 1]) / unit)))
    return found


def share_effect(asked: Shares, folder: Path | None) -> tuple[float, float]:
    """Return effect and error of the standardised log size on the log odds of shares."""
    k, n = counts(asked, folder)
    log_size = log_relative_sizes(n)
    size = standard_sizes(log_size)

    def negative_log(p: np.ndarray) -> float:
        kappa, mean = np.exp(p[1] + p[2] * log_size), p[0] + p[3] * size
        a, b = special.expit(mean) * kappa, special.expit(-mean) * kappa
        value = (special.betaln(k + a, n - k + b) - special.betaln(a, b)).sum()
        return float(0.01 * p[1] ** 2 + 0.5 * ((p[2] - 0.3) / 0.45) ** 2 - value)

    start = np.array([special.logit((k.sum() + 0.5) / (n.sum() + 1)), 2.0, 0.3, 0.0])
    best = optimize.minimize(negative_log, start, method="BFGS")
    m = special.expit(best.x[0])
    unit = 1 / np.sqrt((np.exp(best.x[1]) + 1) * m * (1 - m))
    return float(best.x[3] / unit), float(np.sqrt(best.hess_inv[3, 3]) / unit)


def deviation_of(effects: list[tuple[float, float]]) -> float:
    """Return the deviation of effects about zero, their errors allowed for."""
    effect, error = np.array(effects).T

    def negative_log(p: np.ndarray) -> float:
        return float(-stats.norm(0, np.hypot(np.exp(p[0]), error)).logpdf(effect).sum())

    return float(np.exp(optimize.minimize(negative_log, np.array([-1.0])).x[0]))


def over_groupings(found: list[tuple[int, float, float]]) -> tuple[float, float]:
    """Return mean and deviation of γ over groupings, each known up to its own error."""
    gamma, error = np.array(found)[:, 1:].T

    def negative_log(p: np.ndarray) -> float:
        return float(-stats.norm(p[0], np.hypot(np.exp(p[1]), error)).logpdf(gamma).sum())

    best = optimize.minimize(negative_log, np.array([0.4, -1.0]), method="Nelder-Mead").x
    return float(best[0]), float(np.exp(best[1]))


def main() -> None:
    """Run all groupings."""
    parser = argparse.ArgumentParser(prog="python -m experiments.pooling.group_sizes")
    parser.add_argument("--data", type=Path)
    folder = parser.parse_args().data
    lines, shares = [], []
    for name, line in ALL_LINES:
        lines.append(of_lines(line, folder))
        print(name, *np.round(lines[-1], 2), flush=True)
    for name, share in ALL_SHARES:
        shares.append(of_shares(share, folder))
        print(name, *np.round(shares[-1], 2), flush=True)
    for what, found in (("lines", lines), ("shares", shares), ("all", lines + shares)):
        print(f"{len(found)} {what}: mean {over_groupings(found)[0]:.2f}, "
              f"deviation {over_groupings(found)[1]:.2f}")  # fmt: skip
    both = [line_effects(a, folder) for (_, a), f in zip(ALL_LINES, lines, strict=True)
            if f[0] >= FEWEST_FOR_EFFECTS]  # fmt: skip
    own = [share_effect(a, folder) for (_, a), f in zip(ALL_SHARES, shares, strict=True)
           if f[0] >= FEWEST_FOR_EFFECTS]  # fmt: skip
    for what, effects in (
        ("slopes", [b[0] for b in both]), ("levels", [b[1] for b in both]), ("shares", own),
    ):  # fmt: skip
        clear = np.mean([abs(e) > 2 * error for e, error in effects])
        print(f"effects of size on {len(effects)} {what}: deviation {deviation_of(effects):.2f}, "
              f"beyond two errors {clear:.2f}")  # fmt: skip


if __name__ == "__main__":
    main()
