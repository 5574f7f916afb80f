"""The structure of a regression with factors: its columns of levels, and how sums follow from them.

Records are thought of in *strata*, the levels of those factors that interact with numeric
covariates (one stratum where none does). Within a stratum the other factors have a design F of
level indicators; the covariates x follow in order, and the response y comes last, with a design of
its own: a constant, level indicators of its sets of factors, and every covariate within every
stratum. Together these are the *atoms*: every product of two atoms is a sum that was released or
follows from released ones, and every column of a formula is a linear combination of atoms.

Effects of a factor's levels are exchangeable about their mean; interactions of factors likewise, as
components of the analysis of variance with equal weights. The quadratic form of a term's effects
does not depend on which levels are left out of the design.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from noisewise.artifact import ReleaseError
from noisewise.artifact.statistics import CellSum, CellSums
from noisewise.models.linear_regression.required_sums import MAX_COMBINATIONS

Factors = tuple[int, ...]
"""Indices of factors, ascending."""


@dataclass(frozen=True)
class LevelColumn:
    """A column that is one where every factor of ``term`` has its level; () is the constant."""

    term: Factors
    levels: tuple[int, ...]


@dataclass(frozen=True)
class Structure:
    """What a statistic's blocks say, in numbers only: problems of one structure share a program.

    ``sizes`` are the numbers of levels; ``strata`` the factors that interact with covariates;
    ``covariates`` how many numeric columns precede the response; ``x_sets`` and ``y_sets`` the
    factors within whose cells covariates (beside strata) and the response were summed.
    """

    sizes: tuple[int, ...]
    strata: Factors
    covariates: int
    x_sets: tuple[Factors, ...]
    y_sets: tuple[Factors, ...]
    blocks: tuple[CellSum, ...]
    noisy_n: bool

    @cached_property
    def pairwise(self) -> bool:
        """Whether tables of two factors are sampled each, and not one table of all factors."""
        alone = all(len(s) == 1 for s in (*self.x_sets, *self.y_sets))
        many = len(self.sizes) > 2 or math.prod(self.sizes) > MAX_COMBINATIONS
        return len(self.sizes) > 1 and many and alone and not self.strata

    @cached_property
    def others(self) -> Factors:
        """The factors beside the strata."""
        return tuple(f for f in range(len(self.sizes)) if f not in self.strata)

    @cached_property
    def stratum_levels(self) -> list[tuple[int, ...]]:
        """The levels of every stratum; one empty tuple where there is one stratum."""
        return list(itertools.product(*(range(self.sizes[f]) for f in self.strata)))

    @cached_property
    def x_terms(self) -> list[Factors]:
        """The terms of a covariate's design within a stratum."""
        return subsets(self.x_sets)

    @cached_property
    def y_terms(self) -> list[Factors]:
        """The terms of the response's design that are made of factors."""
        return subsets(self.y_sets)

    @cached_property
    def x_columns(self) -> list[LevelColumn]:
        """The columns of a covariate's design within a stratum, the constant first."""
        return level_columns(self.x_terms, self.sizes)

    @cached_property
    def y_columns(self) -> list[LevelColumn]:
        """The level columns of the response's design, the constant first."""
        return level_columns(self.y_terms, self.sizes)

    @cached_property
    def cells(self) -> tuple[int, int]:
        """The numbers of strata and of cells of the other factors."""
        return len(self.stratum_levels), math.prod(self.sizes[f] for f in self.others)

    @cached_property
    def x_grid(self) -> np.ndarray:
        """A covariate's design (cell of the other factors, column)."""
        return grid(self.x_columns, self.others, self.sizes)

    @cached_property
    def y_grid(self) -> np.ndarray:
        """The level columns of the response's design (cell of strata and others, column)."""
        return grid(self.y_columns, self.strata + self.others, self.sizes)

    @cached_property
    def within_stratum(self) -> np.ndarray:
        """Which level column of y is, in a stratum, which column of F (stratum, y, x): 0 or 1."""
        place = {c: i for i, c in enumerate(self.x_columns)}
        table = np.zeros((len(self.stratum_levels), len(self.y_columns), len(self.x_columns)))
        for s, levels in enumerate(self.stratum_levels):
            here = dict(zip(self.strata, levels, strict=True))
            for row, column in enumerate(self.y_columns):
                chosen = dict(zip(column.term, column.levels, strict=True))
                if all(here[f] == v for f, v in chosen.items() if f in here):
                    rest = tuple(f for f in column.term if f not in here)
                    key = LevelColumn(rest, tuple(chosen[f] for f in rest))
                    table[s, row, place[key]] = 1.0
        return table

    def margin(self, within: Factors) -> np.ndarray:
        """Return the 0/1 matrix (cell of ``within``, cell of strata and others) that sums cells."""
        order = self.strata + self.others
        return cell_indicator(within, order, self.sizes).T


def structure_of(statistic: CellSums, noisy_n: bool) -> Structure:
    """Return the structure of a statistic; a ReleaseError where it is none of a formula's."""
    p = len(statistic.numeric)
    d = p - 1
    blocks = set(statistic.blocks)
    strata = next((b.within for b in statistic.blocks if b.product == (0, 0) and d), ())
    lines = {i: [b.within for b in statistic.blocks if b.product == (i,)] for i in range(p)}
    x_sets = tuple(tuple(f for f in w if f not in strata) for w in lines[0]) if d else ()
    expected = {CellSum((i, j), strata if i < d else ()) for i in range(p) for j in range(i, p)}
    good = expected <= blocks and all(
        [tuple(f for f in w if f not in strata) for w in lines[i]] == list(x_sets)
        and all(set(strata) <= set(w) for w in lines[i])
        for i in range(d)
    )
    if not good or not lines[d]:
        raise ReleaseError("cell-sums: these sums are not those that a regression formula needs")
    sizes = tuple(len(v) for v in statistic.levels.values())
    y_sets = tuple(lines[d])
    if not d:
        x_sets = y_sets
    structure = Structure(sizes, strata, d, x_sets, y_sets, statistic.blocks, noisy_n)
    counts = {b.within for b in statistic.blocks if not b.product}
    pairs = set(itertools.combinations(range(len(sizes)), 2))
    if (structure.pairwise and counts != pairs) or (sizes and not counts):
        raise ReleaseError("cell-sums: the tables of counts are not those that a formula needs")
    if not structure.pairwise and len(sizes) > 1 and math.prod(sizes) > MAX_COMBINATIONS:
        raise ReleaseError(
            f"cell-sums: where factors interact, at most {MAX_COMBINATIONS} combinations of levels "
            f"can be inferred, and there are {math.prod(sizes)}"
        )
    return structure


def subsets(sets: Sequence[Factors]) -> list[Factors]:
    """Return all non-empty subsets of the sets, once each, small ones first."""
    every = {
        part for s in sets for k in range(1, len(s) + 1) for part in itertools.combinations(s, k)
    }
    return sorted(every, key=lambda t: (len(t), t))


def level_columns(terms: Sequence[Factors], sizes: Sequence[int]) -> list[LevelColumn]:
    """Return the constant and, of every term, a column per combination of levels but the first."""
    columns = [LevelColumn((), ())]
    for term in terms:
        levels = itertools.product(*(range(1, sizes[f]) for f in term))
        columns += [LevelColumn(term, chosen) for chosen in levels]
    return columns


def grid(columns: Sequence[LevelColumn], factors: Factors, sizes: Sequence[int]) -> np.ndarray:
    """Return the columns (cell, column) at all combinations of levels, the last factor fastest."""
    shape = [sizes[f] for f in factors]
    levels = np.indices(shape).reshape(len(shape), -1) if shape else np.zeros((0, 1), int)
    values = np.ones((levels.shape[1], len(columns)))
    for k, column in enumerate(columns):
        for f, v in zip(column.term, column.levels, strict=True):
            values[:, k] *= levels[factors.index(f)] == v
    return values


def cell_indicator(within: Factors, factors: Factors, sizes: Sequence[int]) -> np.ndarray:
    """Return which cell of ``within`` each cell of ``factors`` lies in (cell, cell): 0 or 1."""
    every = [
        LevelColumn(within, chosen)
        for chosen in itertools.product(*(range(sizes[f]) for f in within))
    ]
    return grid(every, factors, sizes)


def cells_from_columns(
    within: Factors, columns: Sequence[LevelColumn], sizes: Sequence[int]
) -> np.ndarray:
    """Return the matrix (cell, column) that turns sums of columns into sums within cells."""
    inside = [k for k, c in enumerate(columns) if set(c.term) <= set(within)]
    square = grid([columns[k] for k in inside], within, sizes)
    matrix = np.zeros((len(square), len(columns)))
    matrix[:, inside] = np.linalg.inv(square).T
    return matrix


def effects(term: Factors, columns: Sequence[LevelColumn], sizes: Sequence[int]) -> np.ndarray:
    """Return the matrix (cell of the term, column) from coefficients to the term's effects.

    The effects are the term's component in the analysis of variance with equal weights: of an
    indicator, the product over the term's factors of 1[level] - 1/c, times 1/c for every other
    factor that it has.
    """
    cells = list(itertools.product(*(range(sizes[f]) for f in term)))
    matrix = np.zeros((len(cells), len(columns)))
    for k, column in enumerate(columns):
        if not set(term) <= set(column.term):
            continue
        chosen = dict(zip(column.term, column.levels, strict=True))
        rest = math.prod(1 / sizes[f] for f in column.term if f not in term)
        for row, cell in enumerate(cells):
            matrix[row, k] = rest * math.prod(
                (v == chosen[f]) - 1 / sizes[f] for f, v in zip(term, cell, strict=True)
            )
    return matrix


def rank(term: Factors, sizes: Sequence[int]) -> int:
    """Return how many independent effects a term has."""
    return math.prod(sizes[f] - 1 for f in term)


@lru_cache(maxsize=64)
def penalties(structure: Structure, response: bool) -> np.ndarray:
    """Return the quadratic forms (term, column, column) of each term's effects."""
    terms = structure.y_terms if response else structure.x_terms
    columns = structure.y_columns if response else structure.x_columns
    forms = [effects(t, columns, structure.sizes) for t in terms]
    return np.array([q.T @ q for q in forms]).reshape(len(terms), len(columns), len(columns))
