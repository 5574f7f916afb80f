"""A regression with factors as arrays: a release's noisy sums within cells, and what is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from noisewise.artifact import ArgumentError, Bounds, CellSums, Level, Release
from noisewise.artifact.statistics.cell_sums import numeric_name, product_bounds
from noisewise.formula import DesignColumn, Formula, parse
from noisewise.models.linear_regression.factor_structure import (
    LevelColumn,
    Structure,
    structure_of,
)
from noisewise.models.linear_regression.required_sums import least_records, missing_sum


@dataclass(frozen=True)
class FactorProblem:
    """A release's sums within cells, in the box, and the regression that is asked of it.

    ``z`` (group, component); ``n`` (group), public or what was released; ``bounds`` of the numeric
    columns, the owner's response last; ``design`` of the formula, the intercept last.
    """

    statistic: CellSums
    structure: Structure
    z: np.ndarray
    n: np.ndarray
    noisy_n: bool
    noise_scale: float
    mechanism: str
    bounds: tuple[Bounds, ...]
    formula: Formula
    design: tuple[DesignColumn, ...]
    keys: tuple[str | int, ...] | None

    @property
    def x(self) -> tuple[str, ...]:
        """The columns of the design but the intercept."""
        return tuple(c.name for c in self.design[:-1])

    @property
    def y(self) -> str:
        """The response."""
        return self.formula.response

    @property
    def levels(self) -> Mapping[str, tuple[Level, ...]]:
        """The public levels of the factors."""
        return self.statistic.levels

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the numeric columns."""
        return tuple(numeric_name(c) for c in self.statistic.numeric)

    @property
    def deviation(self) -> float:
        """The standard deviation of one sum's noise."""
        return self.noise_scale * (np.sqrt(2.0) if self.mechanism == "laplace" else 1.0)


def factor_problem(
    release: Release, formula: str | None = None, prior: Mapping[str, object] | None = None
) -> FactorProblem:
    """Return the regression that a formula asks of a release with factors.

    Args:
        release: with sums within cells.
        formula: any whose sums follow from those released; None for the owner's.
        prior: refused: the prior of a regression with factors cannot be chosen.
    """
    if prior:
        raise ArgumentError(
            "prior: a regression with factors has a prior of its own, learnt spreads of the "
            "levels' effects; leave prior out"
        )
    block = release.block("cell-sums")
    statistic = block.statistic
    if not isinstance(statistic, CellSums):
        raise ArgumentError("release: the 'cell-sums' block does not hold sums within cells")
    noisy_n = release.n is None
    structure = structure_of(statistic, noisy_n)
    asked = parse(str(release.model["formula"]) if formula is None else formula, statistic.levels)
    _refuse_missing_sums(asked, statistic)
    z = block.scaled.T
    sizes = noisy_sizes(z, statistic) if release.n is None else np.atleast_1d(release.n)
    least = least_records(statistic)
    if release.n is not None and (sizes < least).any():
        raise ArgumentError(
            f"release: a regression with these terms needs at least {least} records in every group"
        )
    problem = FactorProblem(
        statistic, structure, z, np.maximum(sizes.astype(float), least), noisy_n,
        float(block.noise_scales[0]), block.noise.mechanism,
        tuple(product_bounds(c, release.bounds) for c in statistic.numeric),
        asked, asked.design(_known_levels(asked, statistic)),
        None if release.groups is None else release.groups.keys,
    )  # fmt: skip
    atoms_of_design(problem)
    return problem


def _refuse_missing_sums(formula: Formula, statistic: CellSums) -> None:
    """Raise an ArgumentError that names a sum which a formula needs and a release does not have."""
    _known_levels(formula, statistic)
    if formula.response in statistic.levels:
        raise ArgumentError(
            f"formula: the response {formula.response!r} is a factor of this release; it must be a "
            "number"
        )
    if (missing := missing_sum(formula, statistic)) is not None:
        raise ArgumentError(f"formula: the sum of {missing} was not released")


def noisy_sizes(z: np.ndarray, statistic: CellSums) -> np.ndarray:
    """Return the number of records (group) that the noisy counts give, averaged over tables."""
    totals = [
        (z[:, place].sum(axis=1), place.stop - place.start)
        for block, place in zip(statistic.blocks, statistic.slices, strict=True)
        if not block.product
    ]
    weights = np.array([1 / cells for _, cells in totals])
    return np.asarray(np.array([t for t, _ in totals]).T @ weights / weights.sum())


def _known_levels(formula: Formula, statistic: CellSums) -> Mapping[str, tuple[Level, ...]]:
    for factor in formula.factors:
        if factor not in statistic.levels:
            there = ", ".join(statistic.levels) or "none"
            raise ArgumentError(f"formula: {factor!r} is not a factor of this release; {there} are")
    return statistic.levels


def subset(problem: FactorProblem, rows: Sequence[int] | np.ndarray) -> FactorProblem:
    """Return the problem of some of the groups, without their names."""
    return replace(problem, z=problem.z[rows], n=problem.n[rows], keys=None)


def atom_names(problem: FactorProblem) -> list[tuple[tuple[str, ...], LevelColumn]]:
    """Return every atom as its numeric column and its levels; the owner's response is the last."""
    structure, numeric = problem.structure, problem.statistic.numeric
    atoms: list[tuple[tuple[str, ...], LevelColumn]] = [((), c) for c in structure.y_columns]
    for j in range(structure.covariates):
        atoms += [(numeric[j], LevelColumn(structure.strata, v)) for v in structure.stratum_levels]
    return [*atoms, (numeric[-1], LevelColumn((), ()))]


def atoms_of_design(problem: FactorProblem) -> tuple[np.ndarray, np.ndarray]:
    """Return (T, t): design = atoms T and response = atoms t, both in the user's units.

    Raises:
        ArgumentError: where a column needs a sum that was not released.
    """
    columns = [_in_atoms(problem, c.numeric, dict(c.levels), c.name) for c in problem.design]
    response = _in_atoms(problem, (problem.formula.response,), {}, problem.formula.response)
    return np.array(columns).T, response


def _in_atoms(
    problem: FactorProblem, numeric: tuple[str, ...], levels: Mapping[str, int], name: str
) -> np.ndarray:
    """Return the weights of atoms that make a product of a numeric column and level indicators."""
    structure, statistic = problem.structure, problem.statistic
    atoms = atom_names(problem)
    place = {atom: i for i, atom in enumerate(atoms)}
    chosen = {statistic.factors.index(f): v for f, v in levels.items()}
    weights = np.zeros(len(atoms))
    for column, weight in _indicator(chosen, place, structure):
        scale = 1.0
        if numeric:
            if numeric not in statistic.numeric:
                raise _not_released(numeric_name(numeric), (), name)
            bounds = problem.bounds[statistic.numeric.index(numeric)]
            scale = bounds.centre
        weights[column] += weight * scale
    if numeric:
        half = problem.bounds[statistic.numeric.index(numeric)].half_width
        last = numeric == statistic.numeric[-1]
        outside = [f for f in chosen if last or f not in structure.strata]
        if outside:
            factors = tuple(statistic.factors[f] for f in outside)
            raise _not_released(numeric_name(numeric), factors, name)
        if last:
            weights[-1] += half
        else:
            for stratum in structure.stratum_levels:
                here = dict(zip(structure.strata, stratum, strict=True))
                if all(here[f] == v for f, v in chosen.items()):
                    weights[place[numeric, LevelColumn(structure.strata, stratum)]] += half
    return weights


def _indicator(
    chosen: Mapping[int, int],
    place: Mapping[tuple[tuple[str, ...], LevelColumn], int],
    structure: Structure,
) -> list[tuple[int, float]]:
    """Return the level columns, with weights, that make the indicator of some levels.

    A first level, which has no column, is the constant less all other levels.
    """
    expansion: list[tuple[dict[int, int], float]] = [({}, 1.0)]
    for factor, level in sorted(chosen.items()):
        if level:
            expansion = [({**c, factor: level}, w) for c, w in expansion]
        else:
            others = range(1, structure.sizes[factor])
            expansion = [
                *expansion,
                *(({**c, factor: v}, -w) for c, w in expansion for v in others),
            ]
    found = []
    for levels, weight in expansion:
        term = tuple(sorted(levels))
        key: tuple[tuple[str, ...], LevelColumn] = (
            (), LevelColumn(term, tuple(levels[f] for f in term)),
        )  # fmt: skip
        if key not in place:
            raise ArgumentError(
                "formula: this combination of factors was not released; the release has the sums "
                "of its own formula"
            )
        found.append((place[key], weight))
    return found


def _not_released(column: str, factors: tuple[str, ...], name: str) -> ArgumentError:
    within = f" within the levels of {' and '.join(factors)}" if factors else ""
    return ArgumentError(
        f"formula: {name} needs sums of {column}{within}, with the other columns, which were not "
        "released"
    )
