"""Which sums a formula needs: the fewest blocks from which every product of its terms follows.

Sums over all records follow from sums within the levels of any factor, and sums within a factor
from those within two: so only the finest of each product are released. Let I be the factors that
interact with numeric covariates. Then, S and R running through the sets of factors that are terms,

* counts:       n within S ∪ R ∪ I (one set alone: within S ∪ I);
* covariates:   x_i within S ∪ I, and x_i x_j within I;
* the response: y within S, x_i y within I, and y² over all records.

I counts as a term: with ``age:C(sex)`` alone the sums of ``C(sex)`` are released too.

Without such interactions covariates and response are treated alike, and any may be the response.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping

from noisewise.artifact import Level, ReleaseError
from noisewise.artifact.statistics import CellSum, CellSums
from noisewise.artifact.statistics.cell_sums import NumericColumn, numeric_name
from noisewise.formula import Formula

MAX_COMBINATIONS = 600
"""Combinations of all factors' levels at most where factors interact: an analyst samples each
(chosen)."""

Cell = tuple[tuple[int, ...], frozenset[str]]
"""A product, as indices of numeric columns, and the factors within whose cells it is summed."""


def required_sums(
    formula: Formula, levels: Mapping[str, tuple[Level, ...]], count: bool
) -> CellSums:
    """Return the statistic that a formula needs.

    Args:
        formula: of the owner.
        levels: public levels of its factors.
        count: whether n is secret; without factors it is then a component.
    """
    numeric = (*formula.numeric, (formula.response,))
    response = len(numeric) - 1
    interacting = frozenset(f for t in formula.terms if t.numeric for f in t.factors)
    terms = {frozenset(t.factors) for t in formula.terms if t.factors and not t.numeric}
    terms |= {interacting} if interacting else set()
    sets = maximal(terms) or [frozenset()]
    combinations = math.prod(len(levels[f]) for f in formula.factors)
    if (interacting or any(len(s) > 1 for s in sets)) and combinations > MAX_COMBINATIONS:
        raise ReleaseError(
            f"cell-sums: where factors interact, at most {MAX_COMBINATIONS} combinations of all "
            f"levels can be inferred, and there are {combinations}"
        )
    cells: set[Cell] = set()
    pairs = itertools.combinations(sets, 2) if len(sets) > 1 else [(sets[0], sets[0])]
    for first, second in pairs:
        cells.add(((), first | second | interacting))
    for i, j in itertools.combinations_with_replacement(range(len(numeric)), 2):
        cells.add(((i, j), frozenset() if i == response else interacting))
    for i in range(len(numeric)):
        cells |= {((i,), s if i == response else s | interacting) for s in sets}
    if not formula.factors and not count:
        cells.remove(((), frozenset()))
    order = {f: i for i, f in enumerate(formula.factors)}
    finest = [
        CellSum(product, tuple(sorted(order[f] for f in within)))
        for product in sorted({p for p, _ in cells}, key=lambda p: (-len(p), p))
        for within in maximal({w for p, w in cells if p == product})
    ]
    return CellSums(numeric, {f: tuple(levels[f]) for f in formula.factors}, tuple(finest))


def maximal(sets: Iterable[frozenset[str]]) -> list[frozenset[str]]:
    """Return the sets that are contained in no other, in alphabetical order."""
    given = set(sets)
    return sorted((s for s in given if not any(s < other for other in given)), key=sorted)


def missing_sum(formula: Formula, statistic: CellSums) -> str | None:
    """Return, in words, a sum that a formula needs and that does not follow from a statistic.

    None where all do: each is a sum of released cells.
    """
    released: dict[tuple[NumericColumn, ...], list[frozenset[str]]] = {}
    for block in statistic.blocks:
        product = tuple(sorted(statistic.numeric[i] for i in block.product))
        within = frozenset(statistic.factors[f] for f in block.within)
        released.setdefault(product, []).append(within)
    response = (formula.response,)
    columns = {(response, frozenset[str]()), ((), frozenset[str]())}
    columns |= {(t.numeric, frozenset(t.factors)) for t in formula.terms}
    ordered = sorted(columns, key=lambda c: (c[0], sorted(c[1])))
    for first, second in itertools.combinations_with_replacement(ordered, 2):
        product = tuple(sorted(c for c in (first[0], second[0]) if c))
        within = first[1] | second[1]
        known = not product and not within
        if not known and not any(within <= cells for cells in released.get(product, ())):
            return _in_words(product, within)
    return None


def _in_words(product: tuple[NumericColumn, ...], within: frozenset[str]) -> str:
    what = " * ".join(map(numeric_name, product)) or "the number of records"
    return f"{what} within the levels of {' and '.join(sorted(within))}" if within else what


def least_records(statistic: CellSums) -> int:
    """Return the records of a group without which a regression has too few for its terms.

    As many as the response has level columns and covariates within strata, and two more.
    """
    sizes = [len(v) for v in statistic.levels.values()]
    response = len(statistic.numeric) - 1
    sets = [b.within for b in statistic.blocks if b.product == (response,)]
    terms = {part for s in sets for k in range(1, len(s) + 1)
             for part in itertools.combinations(s, k)}  # fmt: skip
    strata = next((b.within for b in statistic.blocks if b.product == (0, 0) and response), ())
    slopes = response * math.prod(sizes[f] for f in strata)
    return 3 + slopes + sum(math.prod(sizes[f] - 1 for f in term) for term in terms)
