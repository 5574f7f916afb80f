"""Regressions with factors, record by record: designs, sums, coordinates and the density.

Plain and slow. A column of n numbers has a normal law given its parameters, these are integrated
out of its n-dimensional density, and numbers with the same e and R form a sphere of dimension
n - k - 1 and radius √R.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats
from scipy.special import gammaln

from noisewise.models.linear_regression.factor_density import Layout, layout
from noisewise.models.linear_regression.factor_prior import scale_names
from noisewise.models.linear_regression.factor_structure import Structure

Scales = Mapping[tuple[str, int, int], float]


@dataclass(frozen=True)
class Records:
    """Levels (record, factor) as numbers, and values (record, column) in the box, y last."""

    levels: np.ndarray
    values: np.ndarray

    def __len__(self) -> int:
        return len(self.values)

    def where(self, rows: np.ndarray) -> Records:
        return replace(self, levels=self.levels[rows], values=self.values[rows])


def random_records(rng: np.random.Generator, structure: Structure, n: int) -> Records:
    """Return n records, at least three in every cell of all factors.

    In the first cell they lie outside the box.
    """
    cells = np.array(list(itertools.product(*(range(c) for c in structure.sizes))), int)
    more = rng.integers(0, len(cells), n - 3 * len(cells))
    levels = cells[np.concatenate([np.repeat(np.arange(len(cells)), 3), more])]
    values = rng.uniform(-1, 1, (n, structure.covariates + 1))
    values[:, -1] += 0.5 * values.sum(axis=1)
    values[(levels == 0).all(axis=1)] += 1.1
    return Records(levels, values)


def released_sums(structure: Structure, records: Records) -> np.ndarray:
    """Return the sums of all blocks, a block's last factor fastest."""
    sums = []
    for product, within in structure.blocks:
        for cell in itertools.product(*(range(structure.sizes[f]) for f in within)):
            total = 0.0
            for levels, values in zip(records.levels, records.values, strict=True):
                if all(levels[f] == v for f, v in zip(within, cell, strict=True)):
                    total += np.prod([values[i] for i in product])
            sums.append(total)
    return np.array(sums)


def terms_of(sets: tuple[tuple[int, ...], ...]) -> list[tuple[int, ...]]:
    """Return the terms that sets of factors have, short ones first."""
    every: set[tuple[int, ...]] = set()
    for s in sets:
        every |= {t for k in range(1, len(s) + 1) for t in itertools.combinations(s, k)}
    return sorted(every, key=lambda t: (len(t), t))


def level_design(
    structure: Structure, records: Records, sets: tuple[tuple[int, ...], ...]
) -> np.ndarray:
    """Return the constant, and the indicators of every term's levels but the first of each."""
    columns = [np.ones(len(records))]
    for term in terms_of(sets):
        for cell in itertools.product(*(range(1, structure.sizes[f]) for f in term)):
            columns.append(np.all(records.levels[:, list(term)] == cell, axis=1).astype(float))
    return np.column_stack(columns)


def strata_of(structure: Structure, records: Records) -> list[np.ndarray]:
    """Return which records every stratum has."""
    here = records.levels[:, list(structure.strata)]
    every = itertools.product(*(range(structure.sizes[f]) for f in structure.strata))
    return [np.all(here == cell, axis=1) for cell in every]


def response_design(structure: Structure, records: Records) -> np.ndarray:
    """Return the atoms but y: level columns, and every covariate within every stratum."""
    columns = [level_design(structure, records, structure.y_sets)]
    for j in range(structure.covariates):
        for stratum in strata_of(structure, records):
            columns.append((records.values[:, j] * stratum)[:, None])
    return np.concatenate(columns, axis=1)


def projected(design: np.ndarray, column: np.ndarray) -> tuple[np.ndarray, float]:
    """Return e = L⁻¹ D'w and the residual sum of squares."""
    e = np.linalg.solve(np.linalg.cholesky(design.T @ design), design.T @ column)
    residual = column - design @ np.linalg.lstsq(design, column)[0]
    return e, float(residual @ residual)


def soft_inverse(ratio: float) -> float:
    """Return t with log(1 + exp t) = ratio."""
    return ratio + np.log(-np.expm1(-ratio))


# -- coordinates -----------------------------------------------------------------------------------


def coordinates(structure: Structure, records: Records, scales: Scales, noise: float) -> np.ndarray:
    """Return the coordinate vector of a table of records."""
    at: Layout = layout(structure)
    v = np.full(at.size, np.nan)
    v[at.tables] = table_coordinates(structure, records, scales, noise)
    v[at.log_n] = np.log(len(records))
    for j, (begin, length) in enumerate(at.x):
        parts = []
        for stratum in strata_of(structure, records):
            design, column = covariate_design(structure, records.where(stratum), j)
            e, residual = projected(design, column)
            unit = units(structure, design, residual, scales, j, len(records), noise)
            parts.append([*(e / unit), soft_inverse(residual / noise)])
        v[begin : begin + length] = np.concatenate(parts)
    design = response_design(structure, records)
    e, residual = projected(design, records.values[:, -1])
    unit = units(structure, design, residual, scales, structure.covariates, len(records), noise)
    v[at.y] = [*(e / unit), soft_inverse(residual / noise)]
    v[at.scales] = [scales[name] for name in scale_names(structure)]
    return v


def units(
    structure: Structure,
    design: np.ndarray,
    residual: float,
    scales: Scales,
    column: int,
    n: int,
    noise: float,
) -> np.ndarray:
    """Return the unit of every e: 1/√(1/n + L²/noise² + 1/(R/n + R τ²)), the last not of e_0."""
    d = structure.covariates
    squares = [np.inf]
    for t, term in enumerate(terms_of(structure.y_sets if column == d else structure.x_sets)):
        columns = np.prod([structure.sizes[f] - 1 for f in term])
        squares += [np.exp(2 * scales["effects", column, t])] * int(columns)
    strata = int(np.prod([structure.sizes[f] for f in structure.strata])) if column == d else 1
    for i in range(column):
        between = np.exp(2 * scales["strata", d, i]) if strata > 1 else 0.0
        squares += [np.exp(scales["slopes", column, 0]) + between] * strata
    diagonal = np.diag(np.linalg.cholesky(design.T @ design))
    before = residual / n + residual * np.array(squares)
    return 1 / np.sqrt(1 / n + diagonal**2 / noise**2 + 1 / before)


def covariate_design(
    structure: Structure, records: Records, j: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the design of a covariate within one stratum, and the covariate."""
    levels = level_design(structure, records, structure.x_sets)
    return np.column_stack([levels, records.values[:, :j]]), records.values[:, j]


def table_coordinates(
    structure: Structure, records: Records, scales: Scales, noise: float
) -> np.ndarray:
    if not structure.pairwise:
        order = structure.strata + structure.others
        counts = np.array([
            np.all(records.levels[:, list(order)] == cell, axis=1).sum()
            for cell in itertools.product(*(range(structure.sizes[f]) for f in order))
        ])  # fmt: skip
        return np.log(counts[1:] / counts[0])
    margins = margins_of(structure, records)
    parts = [np.log(m[1:] / m[0]) for m in margins]
    for f, g in itertools.combinations(range(len(structure.sizes)), 2):
        nu = np.exp(scales["association", f, g])
        parts.append((apart(structure, records, f, g) / unit_of_pair(margins, f, g, nu, noise))
                     .ravel())  # fmt: skip
    return np.concatenate(parts)


def margins_of(structure: Structure, records: Records) -> list[np.ndarray]:
    return [np.bincount(records.levels[:, f], minlength=c) for f, c in enumerate(structure.sizes)]


def table_of_pair(structure: Structure, records: Records, f: int, g: int) -> np.ndarray:
    table = np.zeros((structure.sizes[f], structure.sizes[g]))
    for levels in records.levels:
        table[levels[f], levels[g]] += 1
    return table


def apart(structure: Structure, records: Records, f: int, g: int) -> np.ndarray:
    """Return how a table differs from independence, in the levels but the first."""
    table = table_of_pair(structure, records, f, g)
    return (table - np.outer(table.sum(axis=1), table.sum(axis=0)) / len(records))[1:, 1:]


def unit_of_pair(margins: list[np.ndarray], f: int, g: int, nu: float, noise: float) -> np.ndarray:
    before = nu**2 * np.outer(margins[f], margins[g])[1:, 1:]
    return 1 / np.sqrt(1 / noise**2 + 1 / before)


# -- density ---------------------------------------------------------------------------------------


def log_density(structure: Structure, records: Records, scales: Scales, noise: float) -> float:
    """Return the log density of the coordinates of records, noise left out, up to a constant."""
    n, d = len(records), structure.covariates
    value = tables_log_density(structure, records, scales, noise)
    if structure.noisy_n:
        value += np.log(n)
    strata = strata_of(structure, records)
    for j in range(d):
        own = [covariate_design(structure, records.where(s), j) for s in strata]
        residuals = [projected(*part)[1] for part in own]
        b2 = np.exp(2 * scales["error", j, 0]) * sum(residuals) / n
        value += beta_prime(b2, 0.15, 0.5)
        for stratum, (design, column), residual in zip(strata, own, residuals, strict=True):
            within = records.where(stratum)
            covariance = np.eye(len(within))
            covariance += effects_covariance(structure, within, structure.x_sets, scales, j)
            if j:
                a2 = left_variance([within], structure, j)
                for i in range(j):
                    x = within.values[:, i]
                    covariance += np.exp(scales["slopes", j, 0]) / a2[i] * np.outer(x, x)
            value += column_log_density(column, covariance, b2, residual, design.shape[1])
            value += volume(residual, noise)
            value += np.log(units(structure, design, residual, scales, j, n, noise)).sum()
    design = response_design(structure, records)
    residual = projected(design, records.values[:, -1])[1]
    b2 = np.exp(2 * scales["error", d, 0]) * residual / n
    value += np.log(units(structure, design, residual, scales, d, n, noise)).sum()
    covariance = np.eye(n) + response_covariance(structure, records, scales)
    value += beta_prime(b2, 0.5, 0.5) + volume(residual, noise)
    value += column_log_density(records.values[:, -1], covariance, b2, residual, design.shape[1])
    return value + scales_log_density(scales) + wall(structure, records, noise)


def response_covariance(structure: Structure, records: Records, scales: Scales) -> np.ndarray:
    """Return the covariance (record, record) of the response's line, in units of σ²."""
    d, strata = structure.covariates, strata_of(structure, records)
    covariance = effects_covariance(structure, records, structure.y_sets, scales, d)
    if d:
        a2 = left_variance([records.where(s) for s in strata], structure, d)
        for j in range(d):
            columns = np.column_stack([records.values[:, j] * s for s in strata])
            slopes = np.full((len(strata), len(strata)), np.exp(scales["slopes", d, 0]))
            if len(strata) > 1:
                slopes += np.exp(2 * scales["strata", d, j]) * np.eye(len(strata))
            covariance += columns @ slopes @ columns.T / a2[j]
    return covariance


def column_log_density(
    column: np.ndarray, covariance: np.ndarray, b2: float, residual: float, k: int
) -> float:
    """Return the log density of (e, ½ log R).

    Given σ² the column is normal with a flat constant and this covariance, in units of σ²;
    σ² ~ InverseGamma(1, b²).
    """
    n = len(column)
    inverse, ones = np.linalg.inv(covariance), np.ones(n)
    weight = ones @ inverse @ ones
    quadratic = column @ inverse @ column - (ones @ inverse @ column) ** 2 / weight
    shape = 1 + (n - 1) / 2
    density = (
        -(n - 1) / 2 * np.log(2 * np.pi) - np.linalg.slogdet(covariance)[1] / 2 - np.log(weight) / 2
        + np.log(b2) + gammaln(shape) - shape * np.log(b2 + quadratic / 2)
    )  # fmt: skip
    free = n - k
    sphere = np.log(2) + free / 2 * np.log(np.pi) - gammaln(free / 2)
    return float(density + sphere + (free - 1) / 2 * np.log(residual) + np.log(residual) / 2)


def volume(residual: float, noise: float) -> float:
    """Return log d(½ log R)/dt at R = noise · log(1 + exp t), by a difference quotient."""
    t, h = soft_inverse(residual / noise), 1e-5
    above, below = (0.5 * np.log(np.logaddexp(0, t + s)) for s in (h, -h))
    return float(np.log((above - below) / (2 * h)))


def effects_covariance(
    structure: Structure,
    records: Records,
    sets: tuple[tuple[int, ...], ...],
    scales: Scales,
    column: int,
) -> np.ndarray:
    """Return the covariance (record, record) that effects of levels, exchangeable, give."""
    total = np.zeros((len(records), len(records)))
    for t, term in enumerate(terms_of(sets)):
        square = np.exp(2 * scales["effects", column, t])
        for i, one in enumerate(records.levels):
            for j, other in enumerate(records.levels):
                total[i, j] += square * np.prod([
                    float(one[f] == other[f]) - 1 / structure.sizes[f] for f in term
                ])  # fmt: skip
    return total


def left_variance(strata: list[Records], structure: Structure, count: int) -> np.ndarray:
    """Return the variance that levels and the others leave of each of the first covariates."""
    total = np.zeros((count, count))
    for within in strata:
        design = level_design(structure, within, structure.x_sets)
        x = within.values[:, :count]
        rest = x - design @ np.linalg.lstsq(design, x)[0]
        total += rest.T @ rest
    return 1 / np.diag(np.linalg.inv(total / sum(map(len, strata))))


def beta_prime(square: float, low: float, high: float) -> float:
    """Return the log density of the logarithm of a BetaPrime variate."""
    return float(stats.betaprime(low, high).logpdf(square) + np.log(square))


def scales_log_density(scales: Scales) -> float:
    value = 0.0
    for (kind, _, _), log_scale in scales.items():
        if kind in ("effects", "strata"):
            value += stats.norm.logpdf(log_scale)
        elif kind == "association":
            value += stats.norm.logpdf(log_scale, np.log(0.1))
        elif kind == "slopes":
            value += beta_prime(np.exp(log_scale) / 3, 0.5, 0.5)
    return value


def wall(structure: Structure, records: Records, noise: float) -> float:
    """Return the log weight of sums within cells that records in the box do not add up to."""
    value = 0.0
    for product, within in structure.blocks:
        if len(product) == 1:
            for cell in itertools.product(*(range(structure.sizes[f]) for f in within)):
                inside = np.all(records.levels[:, list(within)] == cell, axis=1)
                beyond = abs(records.values[inside, product[0]].sum()) - inside.sum()
                value -= max(beyond, 0) ** 2 / (2 * (0.25 * noise) ** 2)
    return value


def tables_log_density(
    structure: Structure, records: Records, scales: Scales, noise: float
) -> float:
    n = len(records)
    if not structure.pairwise:
        order = list(structure.strata + structure.others)
        cells = itertools.product(*(range(structure.sizes[f]) for f in order))
        counts = [np.all(records.levels[:, order] == cell, axis=1).sum() for cell in cells]
        return float(0.5 * np.log(np.array(counts) / n).sum())
    margins = margins_of(structure, records)
    value = float(sum(0.5 * np.log(m / n).sum() for m in margins))
    for f, g in itertools.combinations(range(len(structure.sizes)), 2):
        nu = np.exp(scales["association", f, g])
        covariance = zero_sum_covariance(nu**2 * np.outer(margins[f], margins[g]))
        free = apart(structure, records, f, g)
        value += stats.multivariate_normal(None, covariance).logpdf(free.ravel())
        value += np.log(unit_of_pair(margins, f, g, nu, noise)).sum()
        table = table_of_pair(structure, records, f, g)
        value -= 0.5 * (np.minimum(table / (0.25 * noise), 0) ** 2).sum()
    return value


def zero_sum_covariance(variances: np.ndarray) -> np.ndarray:
    """Return the covariance of independent normal cells given that rows and columns add up to 0.

    Of the cells outside the first row and column.
    """
    rows, columns = variances.shape
    every = np.diag(variances.ravel())
    sums = np.concatenate([
        np.kron(np.eye(rows), np.ones(columns)), np.kron(np.ones(rows), np.eye(columns))
    ])  # fmt: skip
    known = every @ sums.T @ np.linalg.pinv(sums @ every @ sums.T) @ sums @ every
    free = np.arange(rows * columns).reshape(rows, columns)[1:, 1:].ravel()
    return np.asarray((every - known)[np.ix_(free, free)])
