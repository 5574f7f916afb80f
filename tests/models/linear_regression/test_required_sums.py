"""The sums of a formula: all products of its columns follow from them, and none is idle."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noisewise.artifact import Level
from noisewise.artifact.statistics import CellSum, CellSums
from noisewise.formula import DesignColumn, Formula, parse
from noisewise.models.linear_regression.required_sums import missing_sum, required_sums

LEVELS: dict[str, tuple[Level, ...]] = {"r": ("0", "1"), "s": ("0", "1", "2"), "t": (0, 1)}
CELLS = list(itertools.product(*(range(len(v)) for v in LEVELS.values())))
"""Every combination of levels of the three factors."""

Product = tuple[tuple[str, ...], ...]

NUMERIC = ("a", "b", "I(a**2)", "a:b")
FACTORS = ("C(r)", "C(s)", "C(t)", "C(r):C(s)", "C(r):C(s):C(t)")


@st.composite
def formulas(draw: st.DrawFn) -> str:
    """Sums of terms; a factor that interacts with a number stands alone too."""
    alone = draw(st.sets(st.sampled_from((*NUMERIC, *FACTORS)), min_size=1, max_size=4))
    pairs = st.tuples(st.sampled_from(NUMERIC), st.sampled_from(FACTORS))
    interactions = draw(st.sets(pairs, max_size=2))
    terms = {*alone, *(f for _, f in interactions), *(f"{x}:{f}" for x, f in interactions)}
    return "y ~ " + " + ".join(sorted(terms))


def product_of(first: DesignColumn, second: DesignColumn) -> tuple[Product, np.ndarray]:
    """The numeric columns that are multiplied, and in which cells."""
    conditions = (*first.levels, *second.levels)
    place = {f: i for i, f in enumerate(LEVELS)}
    inside = [all(cell[place[f]] == level for f, level in conditions) for cell in CELLS]
    return tuple(sorted(c for c in (first.numeric, second.numeric) if c)), np.array(inside, float)


def released(sums: CellSums, block: CellSum) -> tuple[Product, np.ndarray]:
    """The numeric columns of a block, and its cells as a matrix, one column each."""
    names = [sums.factors[f] for f in block.within]
    axes = [list(LEVELS).index(name) for name in names]
    cells = itertools.product(*(range(len(LEVELS[name])) for name in names))
    columns = [[tuple(c[i] for i in axes) == cell for c in CELLS] for cell in cells]
    return tuple(sorted(sums.numeric[i] for i in block.product)), np.array(columns, float).T


def follows(formula: Formula, sums: CellSums, blocks: tuple[CellSum, ...], known: bool) -> bool:
    """Whether every product of two columns is a combination of released cells."""
    spans: dict[Product, list[np.ndarray]] = {(): [np.ones((len(CELLS), 1))]} if known else {}
    for block in blocks:
        product, cells = released(sums, block)
        spans.setdefault(product, []).append(cells)
    columns = (*formula.design(LEVELS), DesignColumn("y", ("y",)))
    for first, second in itertools.combinations_with_replacement(columns, 2):
        product, inside = product_of(first, second)
        if not inside.any():
            continue
        span = np.hstack(spans.get(product, [np.zeros((len(CELLS), 1))]))
        weights = np.linalg.lstsq(span, inside, rcond=None)[0]
        if np.abs(span @ weights - inside).max() > 1e-9:
            return False
    return True


@settings(max_examples=40, deadline=None)
@given(formulas(), st.booleans())
def test_every_product_follows_and_no_block_is_idle(text: str, count: bool) -> None:
    formula = parse(text)
    sums = required_sums(formula, LEVELS, count)
    known = not count and not formula.factors
    assert follows(formula, sums, sums.blocks, known)
    assert missing_sum(formula, sums) is None
    for block in sums.blocks:
        others = tuple(b for b in sums.blocks if b != block)
        assert not follows(formula, sums, others, known), block


@settings(max_examples=30, deadline=None)
@given(formulas(), st.data())
def test_smaller_models_follow_from_larger_ones(text: str, data: st.DataObject) -> None:
    larger = parse(text)
    kept = data.draw(st.sets(st.sampled_from([t.text for t in larger.terms]), min_size=1))
    smaller = parse("y ~ " + " + ".join(sorted(kept)))
    assert missing_sum(smaller, required_sums(larger, LEVELS, True)) is None


def test_the_sums_of_main_effects() -> None:
    sums = required_sums(parse("y ~ a + C(r) + C(t)"), LEVELS, False)
    assert sums.names == (
        *("a*a", "a*y", "y*y", "a[r=0]", "a[r=1]", "a[t=0]", "a[t=1]"),
        *("y[r=0]", "y[r=1]", "y[t=0]", "y[t=1]"),
        *("n[r=0,t=0]", "n[r=0,t=1]", "n[r=1,t=0]", "n[r=1,t=1]"),
    )


@pytest.mark.parametrize(
    ("owner", "analyst", "said"),
    [
        ("y ~ a + b + C(r)", "b ~ a + C(r)", None),
        ("y ~ a + b + C(r)", "y ~ b + C(r, contr.treatment('1'))", None),
        ("y ~ a * C(r)", "y ~ a", None),
        ("y ~ a * C(r)", "a ~ y * C(r)", "y * y within the levels of r"),
        ("y ~ a + C(r)", "y ~ a * C(r)", "a * a within the levels of r"),
        ("y ~ a + C(r)", "y ~ a + b", "b"),
        ("y ~ a + C(r) + C(s) + C(t)", "y ~ C(r):C(s):C(t)",
         "the number of records within the levels of r and s and t"),
        ("y ~ a + I(a**2)", "y ~ I(a**3)", "a^3"),
    ],
)  # fmt: skip
def test_what_is_missing_is_said(owner: str, analyst: str, said: str | None) -> None:
    sums = required_sums(parse(owner), LEVELS, True)
    assert missing_sum(parse(analyst), sums) == said
