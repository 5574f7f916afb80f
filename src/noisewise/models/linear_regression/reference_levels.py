"""How coefficients change with a factor's reference level.

Two codings of the same terms have the same fitted values: with B and B′ the indicators of both, of
the columns that share a numeric part, in every cell of the factors, B θ = B′ θ′ for all θ, so
θ′ = T θ with B′ T = B. Both are codings by treatments, and T holds -1, 0 and 1 only. Cells where at
most one term's factors differ from their first level determine T: they are as many as the columns,
since a formula's columns span every part of its terms.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from noisewise.artifact import Level
from noisewise.formula import DesignColumn
from noisewise.models.linear_regression.design_matrix import design_matrix

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Levels = Mapping[str, tuple[Level, ...]]
"""The public levels of every factor."""


def with_reference(
    design: Sequence[DesignColumn], levels: Levels, factor: str, reference: int
) -> tuple[DesignColumn, ...]:
    """Return the design where a factor has another reference level.

    Columns are named as those of ``C(factor, contr.treatment(level))``.
    """
    level = levels[factor][reference]
    quoted = factor if factor.isidentifier() else f"`{factor}`"
    label = f"C({quoted}, contr.treatment({level!r}))"
    columns: list[DesignColumn] = []
    for _, group in itertools.groupby(design, lambda c: (c.term, [f for f, _ in c.levels])):
        columns += _recoded(list(group), levels, factor, reference, label)
    return tuple(columns)


def _recoded(
    group: list[DesignColumn], levels: Levels, factor: str, reference: int, label: str
) -> Iterator[DesignColumn]:
    """Yield the columns of one term, coded by the same factors, in the other reference."""
    written = _written(group[0].term, factor)
    if written is None:
        yield from group
        return
    term = _replaced(group[0].term, written, label)
    coded = sorted({code for c in group for f, code in c.levels if f == factor})
    whole = len(coded) == len(levels[factor])
    others = coded if whole else [i for i in range(len(levels[factor])) if i != reference]
    moved = dict(zip(coded, others, strict=False))  # nothing where this part lacks the factor
    for column in group:
        name, pairs = column.name, column.levels
        for _, code in (pair for pair in pairs if pair[0] == factor):
            mark = "" if whole else "T."
            was = f"{written.strip('`')}[{mark}{levels[factor][code]}]"
            name = _replaced(name, was, f"{label}[{mark}{levels[factor][moved[code]]}]")
            pairs = tuple((f, moved[i] if f == factor else i) for f, i in pairs)
        yield DesignColumn(name, column.numeric, pairs, term)


def _written(term: str, factor: str) -> str | None:
    """Return how a factor is written in a term: ``sex``, ``C(sex)``, or with a reference."""
    name = f"`?{re.escape(factor)}`?"
    written = re.search(rf"(?:^|(?<=:))({name}|C\({name}(?:, .*?\))?\))(?=:|$)", term)
    return written[1] if written else None


def _replaced(text: str, was: str, now: str) -> str:
    """Return a name with one of its elements, which stands between colons, replaced."""
    return re.sub(rf"(?:^|(?<=:)){re.escape(was)}(?=:|$)", lambda _: now, text, count=1)


def reference_of(design: Sequence[DesignColumn], levels: Levels, factor: str) -> int | None:
    """Return the reference level of a factor; None where every level has a column everywhere."""
    for _, group in itertools.groupby(design, lambda c: (c.term, [f for f, _ in c.levels])):
        coded = {dict(c.levels).get(factor) for c in group} - {None}
        missing = set(range(len(levels[factor]))) - coded
        if coded and len(missing) == 1:
            return missing.pop()
    return None


def change_of_coding(
    old: Sequence[DesignColumn], new: Sequence[DesignColumn], levels: Levels
) -> csr_array:
    """Return T with θ_new = T θ_old: the same fitted values in every cell of the factors."""
    from scipy.sparse import coo_array, csc_array, csr_array, lil_array
    from scipy.sparse.linalg import splu

    change = lil_array((len(new), len(old)))
    for numeric in dict.fromkeys(c.numeric for c in old):
        rows = [i for i, c in enumerate(new) if c.numeric == numeric]
        columns = [i for i, c in enumerate(old) if c.numeric == numeric]
        cells = _cells([old[i] for i in columns], levels)
        count = len(next(iter(cells.values()), [0]))
        here, there = (
            design_matrix([DesignColumn("", (), design[i].levels) for i in chosen], cells, count)
            for design, chosen in ((old, columns), (new, rows))
        )
        part = coo_array(splu(csc_array(there)).solve(here).round())
        for i, j, value in zip(part.row, part.col, part.data, strict=True):
            change[rows[i], columns[j]] = value
    return csr_array(change)


def _cells(columns: Sequence[DesignColumn], levels: Levels) -> dict[str, np.ndarray]:
    """Return codes of cells that tell the columns' coefficients apart, by factor."""
    sets = {tuple(f for f, _ in c.levels) for c in columns}
    factors = sorted(set(itertools.chain.from_iterable(sets)))
    cells = {(0,) * len(factors)}
    for chosen in sets:
        every = (range(len(levels[f])) if f in chosen else (0,) for f in factors)
        cells |= set(itertools.product(*every))
    table = np.array(sorted(cells), int).reshape(len(cells), len(factors))
    return {f: table[:, i] for i, f in enumerate(factors)}
