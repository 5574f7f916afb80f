"""Formulas: the same columns as formulaic's own, and one sentence for what cannot be read."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest
from formulaic import model_matrix
from hypothesis import example, given, settings
from hypothesis import strategies as st

from noisewise.artifact import ArgumentError, Level
from noisewise.formula import DesignColumn, parse

LEVELS: dict[str, tuple[Level, ...]] = {
    "s": ("f", "m"),
    "t": ("u", "v", "w"),
    "k": (0, 1, 2),
    "my factor": ("x", "z"),
}
USUAL = (
    "y ~ a + C(s)",
    "y ~ a * C(s)",
    "y ~ a:C(s)",
    "y ~ a:C(s) + C(s)",
    "y ~ C(s) * C(t)",
    "y ~ C(s):C(t)",
    "y ~ C(s):C(t) + C(s)",
    "y ~ C(s):C(t) + C(t)",
    "y ~ a:C(s):C(t)",
    "y ~ a + a:C(s):C(t)",
    "y ~ a * C(s) * C(t)",
    "y ~ C(s) * C(t) * C(k)",
    "y ~ C(s) + C(s):C(t):C(k)",
    "y ~ C(s):C(t):C(k)",
    "y ~ I(a**2) * C(s) + a:b",
    "y ~ (a + b + C(s))**2",
    "y ~ C(s) + a:C(s) + a:C(t)",
    "y ~ C(t):a + C(s):C(t):a",
    "y ~ b:a:C(t) + C(t):b",
    "y ~ I(a*b):C(s) + C(s)",
    "y ~ s + t",
    "y ~ a:s + b:t",
    "y ~ C(s)/a",
    "y ~ C(k) + a",
    "y ~ C(t, contr.treatment('v')) * a",
    "y ~ `a b` + a:`a b` + I(`a b`**2)",
    "y ~ C(`my factor`) + a:C(`my factor`)",
    "y ~ `my factor` + a:`my factor`",
)


def table(rows: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    numeric = {name: rng.normal(size=rows) for name in ("a", "b", "a b")}
    coded = {f: rng.permutation(np.resize(np.array(v), rows)) for f, v in LEVELS.items()}
    return pd.DataFrame({**numeric, **coded})


def values(
    column: DesignColumn, frame: pd.DataFrame, levels: Mapping[str, tuple[Level, ...]]
) -> np.ndarray:
    product = np.ones(len(frame))
    for name in column.numeric:
        product = product * frame[name].to_numpy()
    for factor, index in column.levels:
        product = product * (frame[factor] == levels[factor][index]).to_numpy()
    return product


@pytest.mark.filterwarnings("ignore")  # formulaic uses what pandas is about to change
@pytest.mark.parametrize("text", USUAL)
def test_columns_are_those_of_formulaic(text: str) -> None:
    frame = table()
    theirs = model_matrix(text.partition("~")[2], frame)
    *ours, intercept = parse(text, LEVELS).design(LEVELS)
    assert [c.name for c in (intercept, *ours)] == ["intercept", *theirs.columns[1:]]
    made = np.column_stack([values(c, frame, LEVELS) for c in (intercept, *ours)])
    np.testing.assert_allclose(made, theirs.to_numpy(float), rtol=1e-12)


def test_the_parts_of_a_formula() -> None:
    formula = parse("wages ~ age + C(sex) + educ + age:C(sex) + I(age**2)")
    assert formula.response == "wages"
    assert formula.numeric == (("age",), ("educ",), ("age", "age"))
    assert formula.factors == ("sex",)
    assert formula.columns == ("age", "educ", "sex", "wages")
    assert parse("y ~ a\n  + b").text == "y ~ a + b"


def test_the_reference_is_a_level() -> None:
    formula = parse("y ~ C(s, contr.treatment('x'))")
    with pytest.raises(
        ArgumentError, match=r"formula: 'x' is not a level of s; there are 'f', 'm'"
    ):
        formula.check_references(LEVELS)
    with pytest.raises(ArgumentError, match="formula: 's' has no levels"):
        formula.check_references({})


REFUSED = (
    (3, "formula: must be a text such as 'wages ~ age', not int"),
    ("", "formula: must be a non-empty text"),
    ("y ~ a\x00", "formula: must be printable text"),
    ("y ~ a +", "formula: 'y ~ a +' cannot be read: something is missing beside `+`"),
    ("y ~ (a", "formula: 'y ~ (a' cannot be read: a parenthesis lacks its partner"),
    ("y ~ C(a", "formula: 'y ~ C(a' cannot be read: it ends before a closing )"),
    ("y ~ a b", "cannot be read: a sign such as + is missing between `a` and `b`"),
    ("y ~ a ~ b", "cannot be read: `~` is in the wrong place"),
    ("y ~ .", "formula: 'y ~ .' cannot be read: '.' does not say which columns; name them"),
    ("y ~ a [)", "formula: 'y ~ a [)' cannot be read"),
    ("a + b", "formula: 'a + b' must have one response and its terms, as in"),
    ("y + z ~ a", "must have one response"),
    ("y ~ a | b", "must have one response"),
    ("C(s) ~ a", "formula: the response is a factor, C(s); it must be a number"),
    ("log(y) ~ a", "formula: the response must be a column, not log(y); make a column of it"),
    ("y ~ log(a)", "formula: log(a) is not a column, C(column)"),
    ("y ~ C(s, Sum)", "formula: C(s, Sum) is not a column, C(column)"),
    ("y ~ I(a + b)", "formula: I(a + b) is not a column"),
    ("y ~ I(a**True)", "formula: I(a ** True) is not a column"),
    ("y ~ I(a**9)", "formula: I(a ** 9) is not a column"),
    ("y ~ a**2", "formula: a**2 means a alone; a power is written I(a**2)"),
    ("y ~ a - 1", "formula: every regression has an intercept; leave out '- 1' and '0 +'"),
    ("y ~ 0 + a", "formula: every regression has an intercept"),
    ("y ~ 1", "formula: 'y ~ 1' has no term beside the intercept"),
    ("y ~ a + y", "formula: the response 'y' is among the terms"),
    ("y ~ a + C(y)", "formula: the response 'y' is among the terms"),
    ("y ~ a + a:y", "formula: the response 'y' is among the terms"),
    ("y ~ I(a**2) + I(a*a)", "formula: I(a * a) and I(a ** 2) are the same column"),
    ("y ~ a:b + I(a*b)", "formula: a:b and I(a * b) are the same column"),
    ("y ~ a + C(a)", "formula: 'a' is used as a number and as a factor"),
    ("y ~ C(s) + a:C(s, contr.treatment('m'))", "formula: 's' is written as C(s) and as C(s, "),
    ("y ~ a:b:c:d:e:f:g:h:i", "multiplies more than 8 columns"),
    ("y ~ " + ":".join(f"C({f})" for f in "abcdefghi"), "multiplies more than 8 columns"),
    ("y ~ I(((((((((a**8)**8)**8)**8)**8)**8)**8)**8)**8)", "multiplies more than 8 columns"),
    ("y ~ I(a**2, b=1)", "formula: I(a ** 2, b=1) is not a column"),
    ("y ~ a:b + `a:b`", "formula: two terms would be called a:b; rename a column"),
    ("y ~ (a + b + c + d + e + f)**9", "formula: has more than 300 terms"),
    ("y ~ " + "*".join("abcdefghijklmnopqrstuvw"), "formula: has more than 300 terms"),
    ("y ~ (a + b)**999999999999", "formula: has more than 300 terms"),
    ("y ~ " + "+".join(f"a{i}" for i in range(700)), "formula: has too many terms"),
    ("y ~ " + "+".join(f"a{i}" for i in range(400)), "formula: has more than 300 terms"),
)


@pytest.mark.parametrize(("text", "said"), REFUSED)
def test_refusals(text: object, said: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(said)) as refused:
        parse(text)
    assert len(str(refused.value)) < 220


@settings(max_examples=200, deadline=None)
@example("y ~ " + "(" * 900 + "a" + ")" * 900)
@example("y ~ I(" + "-" * 3000 + "a)")
@example("y ~ I(" + "(" * 300 + "a" + ")" * 300 + ")")
@example("y ~ " + "-" * 2000 + "a")
@given(st.text("yab~+-*:/^()[]{}`'\"., |%C I12\\é", max_size=25).map(lambda text: f"y ~ a {text}"))
def test_whatever_is_written_is_read_or_refused(text: str) -> None:
    """A file's formula comes from anywhere: no other error, and nothing takes long."""
    try:
        formula = parse(text)
    except ArgumentError:
        return
    assert parse(formula.text).terms == formula.terms
    formula.design(dict.fromkeys(formula.factors, ("0", "1")))
