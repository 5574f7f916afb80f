"""A generalized linear model of a release by a formula: sums within the levels of factors.

Columns of the design are numbers, and levels of factors. Sums that do not involve the response
describe the covariates, as in ``linear_regression.factor_density``; those that do are linear in the
sums of the covariates g and of the response s, both over all records, of a product with a constant,
a level's indicator or a number (the *atoms*):

    released = A₀ g + A₁ s + noise.

Of a response that is a number in the box, (y - c) / h, these are (s - c g) / h. A response that is
a factor of two levels was summed at both: at the second s, at the first g - s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from noisewise.artifact import ArgumentError, Bounds, CellSums, Level, Release
from noisewise.artifact.readable_numbers import in_full
from noisewise.artifact.statistics.cell_sums import CellSum, numeric_name, product_bounds
from noisewise.formula import DesignColumn, Formula, parse
from noisewise.models.generalized_linear.links import LINKS
from noisewise.models.generalized_linear.problem import (
    BINARY_DEVIATIONS,
    PriorScales,
    checked_prior,
)
from noisewise.models.linear_regression.factor_problem import noisy_sizes
from noisewise.models.linear_regression.factor_structure import Structure, structure_of
from noisewise.priors import Predictor

LEAST_RECORDS_MORE = 2
"""Records that a group must have beyond the columns of the design."""


@dataclass(frozen=True)
class ResponseSums:
    """How the sums of the response follow from those of the atoms.

    ``of_covariates`` A₀ and ``of_response`` A₁ (row, atom of the design); ``cells`` (row, released
    sum) says which released sums a row adds up.
    """

    of_covariates: np.ndarray
    of_response: np.ndarray
    cells: np.ndarray


@dataclass(frozen=True)
class FactorsProblem(PriorScales):
    """Everything a method needs; arrays lead with the group.

    ``z`` holds the covariates' released sums by the blocks of ``structure``, ``response`` those
    that ``sums`` speaks of. ``chosen`` are the atoms of the design: the constant, levels of
    factors with so many ``sizes``, and numbers; design = atoms ``change``. ``start`` and
    ``start_z`` hold sums from which the covariates' first values are made, ``total`` the noisy sum
    of the response.
    """

    link: str
    y: str
    event: Level | None
    design: tuple[DesignColumn, ...]
    levels: Mapping[str, tuple[Level, ...]]
    structure: Structure
    z: np.ndarray
    response: np.ndarray
    sums: ResponseSums
    chosen: tuple[int, ...]
    sizes: tuple[int, ...]
    change: np.ndarray
    start: Structure
    start_z: np.ndarray
    total: np.ndarray
    n: np.ndarray
    noisy_n: bool
    noise_scale: float
    mechanism: str
    largest_count: float
    keys: tuple[str | int, ...] | None
    prior: Predictor
    law: str = "box"

    @property
    def x(self) -> tuple[str, ...]:
        """Return the columns of the design but the intercept."""
        return tuple(c.name for c in self.design[:-1])

    @property
    def terms(self) -> int:
        """Return how many numbers and factors there are."""
        return len(self.sizes) + len(self.chosen) - 1 - sum(c - 1 for c in self.sizes)


def problem_with_factors(
    release: Release,
    link: str,
    formula: str | None = None,
    prior: object = None,
    *,
    law: str = "box",
) -> FactorsProblem:
    """Return the model that a formula asks of a release with sums within levels.

    Args:
        release: with such sums, of a formula whose factors do not interact.
        link: one of ``LINKS``.
        formula: numbers and factors that were released; None for the owner's.
        prior: a ``Predictor``, or ``{"predictor": Predictor}``; None for the default.
        law: of the covariates, "box" or "normal".
    """
    if law not in ("box", "normal"):
        raise ArgumentError(f"covariate_law: must be 'box' or 'normal', not {law!r}")
    block = release.block("cell-sums")
    statistic = block.statistic
    if not isinstance(statistic, CellSums):
        raise ArgumentError("release: the 'cell-sums' block does not hold sums within cells")
    owner = structure_of(statistic, release.n is None)
    if owner.strata or any(len(s) > 1 for s in owner.y_sets):
        raise ArgumentError(
            f"model: a {link} regression reads releases by a formula whose factors do not "
            "interact, and in this one they do"
        )
    asked = parse(str(release.model["formula"]) if formula is None else formula, statistic.levels)
    _refuse_terms(asked, statistic, link)
    bounds = {c: product_bounds(c, release.bounds) for c in statistic.numeric}
    sizes = noisy_sizes(block.scaled.T, statistic) if release.n is None else release.n
    n = np.atleast_1d(np.asarray(sizes, float))
    made = _Reader(statistic, owner, asked, bounds, block.scaled.T, n).problem()
    problem = replace(
        made, link=link,
        noise_scale=float(block.noise_scales[0]), mechanism=block.noise.mechanism,
        keys=None if release.groups is None else release.groups.keys,
        prior=checked_prior(prior), law=law,
    )  # fmt: skip
    least = len(problem.design) + LEAST_RECORDS_MORE
    if release.n is not None and (problem.n < least).any():
        raise ArgumentError(
            f"release: a {link} regression with these terms needs at least {least} records in "
            "every group"
        )
    _check_response(problem, block.scaled.T, statistic, bounds)
    return replace(problem, n=np.maximum(problem.n, least))


def subset(problem: FactorsProblem, row: int) -> FactorsProblem:
    """Return the problem of one group."""
    return replace(
        problem, z=problem.z[[row]], response=problem.response[[row]], n=problem.n[[row]],
        start_z=problem.start_z[[row]], keys=None,
    )  # fmt: skip


def _refuse_terms(asked: Formula, statistic: CellSums, link: str) -> None:
    """Raise an ArgumentError at a term or a response that cannot be one."""
    there = ", ".join([*map(numeric_name, statistic.numeric), *statistic.factors])
    if not asked.terms:
        raise ArgumentError("formula: must have a term beside the constant")
    for term in asked.terms:
        if term.factors and (term.numeric or len(term.factors) > 1):
            raise ArgumentError(
                f"formula: {term.text} is an interaction with a factor, which a {link} regression "
                "does not take; name numbers and factors one by one"
            )
        known = term.factors[0] in statistic.levels if term.factors else (
            term.numeric in statistic.numeric
        )  # fmt: skip
        if not known or asked.response in (*term.factors, *term.numeric):
            raise ArgumentError(f"formula: {term.text} is no covariate here; there are {there}")
    levels = statistic.levels.get(asked.response)
    if (asked.response,) not in statistic.numeric and levels is None:
        raise ArgumentError(f"formula: {asked.response!r} was not released; there are {there}")
    if levels is not None and (len(levels) != 2 or LINKS[link].counts):
        raise ArgumentError(
            f"formula: {asked.response!r} is a factor of {len(levels)} levels; the response of a "
            "logistic or probit regression may be a factor of two"
        )


Row = tuple[np.ndarray, np.ndarray, bool]
"""Released sums to be added up, the atom of the design they belong to, and whether y is 1 there."""


class _Reader:
    """Sorts the blocks of a statistic into sums of the covariates and of the response."""

    def __init__(
        self, statistic: CellSums, owner: Structure, asked: Formula,
        bounds: Mapping[tuple[str, ...], Bounds], z: np.ndarray, n: np.ndarray,
    ) -> None:  # fmt: skip
        self.statistic, self.owner, self.asked = statistic, owner, asked
        self.bounds, self.z, self.n = bounds, z, n
        self.label = asked.response in statistic.levels
        response = (asked.response,)
        wanted = {t.numeric for t in asked.terms if t.numeric}
        self.numbers = [i for i, c in enumerate(statistic.numeric) if c in wanted]
        self.y = -1 if self.label else statistic.numeric.index(response)
        self.factors = [i for i, f in enumerate(statistic.factors) if f != asked.response]
        self.used = [f for f in self.factors if statistic.factors[f] in asked.factors]
        self.all_sizes = [owner.sizes[f] for f in self.factors]

    def problem(self) -> FactorsProblem:
        """Return the problem, its noise and records still to be filled in."""
        blocks, places = self._covariates()
        sets = tuple((f,) for f in range(len(self.factors))) or ((),)
        structure = Structure(
            tuple(self.all_sizes), (), len(self.numbers), sets, sets, blocks, self.owner.noisy_n
        )
        start, start_z = self._start(structure, places)
        sums, response, total = self._response()
        levels = {self.statistic.factors[f]: self.statistic.levels[self.statistic.factors[f]]
                  for f in self.used}  # fmt: skip
        design = self.asked.design(self.statistic.levels)
        event = self.statistic.levels[self.asked.response][1] if self.label else None
        upper = 1.0 if self.label else self.bounds[self.asked.response,].upper
        return FactorsProblem(
            "", self.asked.response, event, design, levels, structure, self._joined(places),
            response, sums, self._chosen(), tuple(self.owner.sizes[f] for f in self.used),
            self._change(design), start, start_z, total, self.n, self.owner.noisy_n, 0.0, "", upper,
            None, Predictor(),
        )  # fmt: skip

    def _joined(self, places: list[slice]) -> np.ndarray:
        return np.concatenate([np.zeros((len(self.z), 0)), *(self.z[:, p] for p in places)], axis=1)

    def _covariates(self) -> tuple[tuple[CellSum, ...], list[slice]]:
        """Return the blocks without the response, in the covariates' own numbers, and places."""
        blocks, places = [], []
        for block, place in zip(self.statistic.blocks, self.statistic.slices, strict=True):
            if set(block.product) <= set(self.numbers) and set(block.within) <= set(self.factors):
                product = sorted(self.numbers.index(i) for i in block.product)
                within = tuple(self.factors.index(f) for f in block.within)
                blocks.append(CellSum(tuple(product), within))
                places.append(place)
        return tuple(blocks), places

    def _start(self, structure: Structure, places: list[slice]) -> tuple[Structure, np.ndarray]:
        """Return sums of covariates to begin with; where all were within y, added up over it."""
        blocks, sums = list(structure.blocks), [self.z[:, p] for p in places]
        if not self.label:
            return structure, self._joined(places)
        y = self.statistic.factors.index(self.asked.response)
        there = {b.product for b in blocks}
        for block, place in zip(self.statistic.blocks, self.statistic.slices, strict=True):
            if y not in block.within or not set(block.product) <= set(self.numbers):
                continue
            product = tuple(self.numbers.index(i) for i in block.product)
            shape = self.statistic.shape(block)
            within = tuple(self.factors.index(f) for f in block.within if f != y)
            if product not in there and (product or within):
                table = self.z[:, place].reshape(-1, *shape).sum(axis=1 + block.within.index(y))
                blocks.append(CellSum(product, within))
                sums.append(table.reshape(len(self.z), -1))
        return replace(structure, blocks=tuple(blocks)), np.concatenate(
            [np.zeros((len(self.z), 0)), *sums], axis=1
        )

    def _columns(self) -> list[tuple[int, int]]:
        """Return (factor, level) of the level columns of the design, in the atoms' order."""
        return [(f, v) for f in self.used for v in range(1, self.owner.sizes[f])]

    def _chosen(self) -> tuple[int, ...]:
        """Return where the design's atoms are among all: constant, levels, numbers."""
        every = [(f, v) for f in self.factors for v in range(1, self.owner.sizes[f])]
        places = [0, *(1 + every.index(c) for c in self._columns())]
        return (*places, *range(1 + len(every), 1 + len(every) + len(self.numbers)))

    def _at(self, factor: int, level: int) -> np.ndarray:
        """Return the atoms of the design that make a level's indicator."""
        columns = self._columns()
        row = np.zeros(1 + len(columns) + len(self.numbers))
        if level:
            row[1 + columns.index((factor, level))] = 1.0
            return row
        row[0] = 1.0
        for v in range(1, self.owner.sizes[factor]):
            row[1 + columns.index((factor, v))] = -1.0
        return row

    def _number(self, position: int) -> np.ndarray:
        row = np.zeros(1 + len(self._columns()) + len(self.numbers))
        row[1 + len(self._columns()) + position] = 1.0
        return row

    def _constant(self) -> np.ndarray:
        return np.asarray(np.eye(1, 1 + len(self._columns()) + len(self.numbers))[0])

    def _change(self, design: tuple[DesignColumn, ...]) -> np.ndarray:
        """Return the matrix with design = atoms times it, in the user's units."""
        columns = []
        for column in design:
            if column.levels:
                ((factor, level),) = column.levels
                columns.append(self._at(self.statistic.factors.index(factor), level))
            elif column.numeric:
                place = self.numbers.index(self.statistic.numeric.index(column.numeric))
                box = self.bounds[column.numeric]
                columns.append(box.centre * self._constant() + box.half_width * self._number(place))
            else:
                columns.append(self._constant())
        return np.array(columns).T

    def _response(self) -> tuple[ResponseSums, np.ndarray, np.ndarray]:
        """Return how the response's sums follow from the atoms', these sums, and Σ y (group)."""
        rows, whole = self._response_cells()
        used = np.unique(np.concatenate([c for c, _, _ in rows]))
        cells = np.array([np.isin(used, c) for c, _, _ in rows], float)
        atoms = np.array([a for _, a, _ in rows])
        total = self.z[:, whole].sum(axis=1)
        if self.label:
            event = np.array([e for _, _, e in rows])[:, None]
            sums = ResponseSums(np.where(event, 0.0, atoms), np.where(event, atoms, -atoms), cells)
        else:
            box = self.bounds[self.asked.response,]
            half, centre = box.half_width, box.centre
            sums = ResponseSums(-centre / half * atoms, atoms / half, cells)
            total = half * total + centre * self.n
        return sums, self.z[:, used], total

    def _response_cells(self) -> tuple[list[Row], np.ndarray]:
        """Return rows of sums, and the released sums that add up to that of y.

        Within levels of the design's factors; where there is none, over the levels of the factor
        with the fewest.
        """
        found: list[Row] = []
        label = self.statistic.factors.index(self.asked.response) if self.label else -1
        lines: dict[int, list[tuple[np.ndarray, bool]]] = {}
        for block, place in zip(self.statistic.blocks, self.statistic.slices, strict=True):
            cells = np.arange(place.start, place.stop).reshape(self.statistic.shape(block))
            for event in (False, True) if self.label else (True,):
                if self.label and label in block.within:
                    product = block.product
                    own = np.take(cells, int(event), axis=block.within.index(label))
                elif not self.label and self.y in block.product:
                    rest = list(block.product)
                    rest.remove(self.y)
                    product, own = tuple(rest), cells
                else:
                    continue
                others = [f for f in block.within if f != label]
                if product and product[0] in self.numbers and len(product) == 1:
                    atom = self._number(self.numbers.index(product[0]))
                    found.append((own.reshape(-1), atom, event))
                elif not product:
                    (factor,) = others or [-1]
                    lines.setdefault(factor, []).append((own.reshape(-1), event))
        fewest = min(lines, key=lambda f: len(lines[f][0][0]))
        whole = next(own for own, event in lines[fewest] if event)
        chosen = [f for f in lines if f in self.used]
        for factor in chosen:
            for own, event in lines[factor]:
                found += [(own[[v]], self._at(factor, v), event) for v in range(len(own))]
        if not chosen:
            found += [(own, self._constant(), event) for own, event in lines[fewest]]
        return found, whole


def _check_response(
    problem: FactorsProblem, z: np.ndarray, statistic: CellSums,
    bounds: Mapping[tuple[str, ...], Bounds],
) -> None:  # fmt: skip
    """Refuse a response that cannot be what the model says."""
    if problem.event is not None:
        return
    y, link = problem.y, problem.link
    box = bounds[y,]
    if LINKS[link].counts:
        if box.lower != 0 or box.upper < 1:
            raise ArgumentError(
                f"model: a poisson regression needs counts, with bounds from 0 to a number of at "
                f"least 1; {y!r} has ({in_full(box.lower)}, {in_full(box.upper)})"
            )
        return
    if (box.lower, box.upper) != (0.0, 1.0):
        raise ArgumentError(
            f"model: a {link} regression needs a response that is 0 or 1, with bounds (0, 1); "
            f"{y!r} has ({in_full(box.lower)}, {in_full(box.upper)})"
        )
    if not z.any():
        return  # A blank release, as plans make it.
    i = statistic.numeric.index((y,))
    place = statistic.slices[[b.product for b in statistic.blocks].index((i, i))]
    cells = min(
        (p.stop - p.start for b, p in zip(statistic.blocks, statistic.slices, strict=True)
         if not b.product), default=1,
    )  # fmt: skip
    several = 1 + (cells if problem.noisy_n else 0)
    deviation = problem.noise_scale * np.sqrt(
        several * (2 if problem.mechanism == "laplace" else 1)
    )
    off = np.abs(z[:, place].sum(axis=1) - problem.n) / deviation
    if off.max() > BINARY_DEVIATIONS[problem.mechanism] + np.log(len(problem.n)):
        raise ArgumentError(
            f"model: {y!r} is not 0 or 1 in every record: its sum of squares lies "
            f"{off.max():.0f} noise deviations from what it would then be"
        )
