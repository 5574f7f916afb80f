"""Regression formulas in Wilkinson's notation, as ``formulaic`` reads them.

Only its parser is used: sums run inside engines, so a term must be a product of columns (``age``,
``age:educ``, ``I(age**2)``) and of factors (``C(sex)``). Both halves read formulas, the owner's to
know which sums are needed, the analyst's to know the columns of the design.

Factors are coded by treatments: a column per level but the reference, which is the first level of
the public list unless ``C(sex, contr.treatment("male"))`` names another. Columns are called as
``formulaic`` prints them: ``C(sex)[T.male]``, ``age:C(sex)[T.male]``, and ``age:C(sex)[male]``
where a level has a column of its own because the term without the factor is not in the formula.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from noisewise.artifact import ArgumentError, Level, ReleaseError, validation

INTERCEPT = "intercept"
"""The name of the constant column."""

MAX_DEGREE = 8
"""The highest power or product of columns in a term (chosen)."""

MAX_LISTED = 8
"""Levels that an error lists (chosen)."""

MAX_TERMS = 300
"""The terms of a formula at most (chosen): ``(a + b + …)**9`` in a file must not fill memory."""


@dataclass(frozen=True)
class Term:
    """A product of numeric columns, in alphabetical order, and of factors, as written."""

    numeric: tuple[str, ...]
    factors: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class DesignColumn:
    """A column of the design: a product of numeric columns where all its factors have a level.

    ``levels`` holds pairs of a factor and the index of a level; ``term`` is the text of its term.
    """

    name: str
    numeric: tuple[str, ...] = ()
    levels: tuple[tuple[str, int], ...] = ()
    term: str = INTERCEPT


@dataclass(frozen=True)
class Formula:
    """A response and its terms; ``labels`` says how elements are printed."""

    text: str
    response: str
    terms: tuple[Term, ...]
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    references: Mapping[str, str | int] = field(default_factory=dict, hash=False)

    @cached_property
    def numeric(self) -> tuple[tuple[str, ...], ...]:
        """The distinct numeric columns of the terms, each a product of columns of the table."""
        return tuple(dict.fromkeys(t.numeric for t in self.terms if t.numeric))

    @cached_property
    def factors(self) -> tuple[str, ...]:
        """The factors, in order of first mention."""
        return tuple(dict.fromkeys(f for t in self.terms for f in t.factors))

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column of the table that is named, the response last."""
        numeric = (c for column in self.numeric for c in column)
        return tuple(dict.fromkeys([*numeric, *self.factors, self.response]))

    def design(self, levels: Mapping[str, tuple[Level, ...]]) -> tuple[DesignColumn, ...]:
        """Return the columns of the design, term by term, the intercept last.

        A factor is coded without its reference where the term without it is in the formula.
        """
        covered: set[tuple[tuple[str, ...], frozenset[str]]] = {((), frozenset())}
        columns: list[DesignColumn] = []
        for term in sorted(self.terms, key=lambda t: len(t.factors) + bool(t.numeric)):
            sizes = range(len(term.factors) + 1)
            spanned = [s for k in sizes for s in itertools.combinations(term.factors, k)]
            fresh = [s for s in spanned if (term.numeric, frozenset(s)) not in covered]
            covered |= {(term.numeric, frozenset(s)) for s in fresh}
            for coding in _merged([dict.fromkeys(subset, False) for subset in fresh]):
                columns += self._coded(term, coding, levels)
        order = {t.text: i for i, t in enumerate(self.terms)}
        columns.sort(key=lambda c: order[c.term])
        return (*columns, DesignColumn(INTERCEPT))

    def _coded(
        self, term: Term, coding: Coding, levels: Mapping[str, tuple[Level, ...]]
    ) -> Iterator[DesignColumn]:
        """Yield the columns of a term whose factors are coded so, the first factor fastest."""
        coded = [f for f in term.factors if f in coding]
        left_out = {f: None if coding[f] else self._reference(f, levels) for f in coded}
        choices = [[i for i in range(len(levels[f])) if i != left_out[f]] for f in coded]
        for reverse in itertools.product(*reversed(choices)):
            chosen = tuple(zip(coded, reversed(reverse), strict=True))
            named = {
                f: f"{self.labels[f]}[{'' if coding[f] else 'T.'}{levels[f][i]}]" for f, i in chosen
            }
            yield DesignColumn(self._name(term, named), term.numeric, chosen, term.text)

    def _name(self, term: Term, named: Mapping[str, str]) -> str:
        """Return the elements of a term in the order in which they were written."""
        parts = _elements(term.text)
        by_label = {self.labels[f]: f for f in term.factors}
        plain = [p.strip("`") for p in parts]
        words = [named.get(by_label[p], "") if p in by_label else p for p in plain]
        return ":".join(w for w in words if w)

    def check_references(self, levels: Mapping[str, tuple[Level, ...]]) -> None:
        """Raise an ArgumentError where a factor has no levels, or its reference is none of them."""
        for factor in self.factors:
            if factor not in levels:
                raise ArgumentError(f"formula: {factor!r} has no levels")
            self._reference(factor, levels)

    def _reference(self, factor: str, levels: Mapping[str, tuple[Level, ...]]) -> int:
        wanted = self.references.get(factor)
        if wanted is None:
            return 0
        level = validation.listed_level(wanted, levels[factor])
        if level is not None:
            return levels[factor].index(level)
        listed = ", ".join(map(repr, levels[factor][:MAX_LISTED]))
        listed += ", …" if len(levels[factor]) > MAX_LISTED else ""
        near = validation.nearest(wanted, levels[factor])
        raise ArgumentError(
            f"formula: {wanted!r} is not a level of {factor}; there are {listed}{near}"
        )


Coding = dict[str, bool]
"""Factors of a term, and whether each has a column for all its levels, the reference too."""


def _merged(codings: Iterable[Coding]) -> list[Coding]:
    """Return the fewest codings that span the same columns, as formulaic does.

    Two that differ by one factor without its reference become one in which it has all its levels.
    """
    merged: list[Coding] = []
    for coding in sorted(codings, key=len):
        for smaller in merged:
            more = coding.items() - smaller.items()
            if len(smaller) == len(coding) - 1 and len(more) == 1 and not dict(more).popitem()[1]:
                others = [other for other in merged if other is not smaller]
                merged = _merged([*others, coding | {next(iter(more))[0]: True}])
                break
        else:
            merged.append(coding)
    return merged


def parse(text: object, factors: Collection[str] = ()) -> Formula:
    """Return the formula; an ArgumentError says what cannot be read.

    Args:
        text: such as ``"wages ~ age + C(sex) + age:C(sex) + I(age**2)"``.
        factors: columns that are factors also where they stand without ``C(…)``.

    Example:
        >>> parse("wages ~ age * C(sex)").terms[2].factors
        ('sex',)
    """
    if not isinstance(text, str):
        kind = type(text).__name__
        raise ArgumentError(f"formula: must be a text such as 'wages ~ age', not {kind}")
    line = " ".join(part.strip() for part in text.splitlines()).strip()
    try:
        validation.text(line, "formula:")
        response, raw_terms = _parsed(line)
        labels: dict[str, str] = {}
        references: dict[str, str | int] = {}
        terms = [_term(raw, factors, labels, references) for raw in raw_terms if raw.degree]
    except ReleaseError as error:
        raise ArgumentError(str(error)) from None
    except RecursionError:
        raise ArgumentError("formula: has too many terms, or parentheses within others") from None
    if len(terms) == len(raw_terms):
        raise ArgumentError("formula: every regression has an intercept; leave out '- 1' and '0 +'")
    _check(line, response, terms)
    return Formula(line, response, tuple(terms), labels, references)


def _parsed(text: str) -> tuple[str, list[Any]]:
    """Return the response and formulaic's terms, the constant among them."""
    from formulaic import Formula as Parsed
    from formulaic import SimpleFormula
    from formulaic.parser import DefaultFormulaParser

    try:
        if _most_terms(DefaultFormulaParser().get_ast(text)) > MAX_TERMS + 2:
            raise ArgumentError(f"formula: has more than {MAX_TERMS} terms")
        parsed = Parsed(text)
    except (ArgumentError, RecursionError):
        raise
    except Exception as error:  # noqa: BLE001  # of odd texts formulaic raises many kinds
        why = _reason(error)
        raise ArgumentError(f"formula: {validation.shown(text)} cannot be read{why}") from None
    sides = getattr(parsed, "lhs", None), getattr(parsed, "rhs", None)
    if not all(isinstance(side, SimpleFormula) for side in sides) or len(parsed.lhs) != 1:
        raise ArgumentError(
            f"formula: {validation.shown(text)} must have one response and its terms, as in "
            "'wages ~ age + educ'"
        )
    return _response(parsed.lhs[0]), list(parsed.rhs)


def _reason(error: Exception) -> str:
    """Return why a formula cannot be read, after a colon, where formulaic says so."""
    if "`.` operator" in str(error):
        return ": '.' does not say which columns; name them"
    if isinstance(error, SyntaxError):
        return ": a name that is not one plain word goes in backticks, as in C(`my column`)"
    if isinstance(error, AttributeError | TypeError | LookupError | AssertionError):
        return ""
    words = re.sub(r"\x1b\[[0-9;]*m|[⧛⧚]", "", str(error)).strip().splitlines()
    why = words[0].partition(" (tip")[0].rstrip(".") if words else ""
    for theirs, ours in PLAINER.items():
        why = re.sub(theirs, ours, why)
    return f": {why}" if why else ""


PLAINER = {
    r"Could not find matching context marker": "a parenthesis lacks its partner",
    r"Formula ended before .* Expected: (.)": r"it ends before a closing \1",
    r"Operator (`.*`) has insuffient.*": r"something is missing beside \1",
    r"Operator (`.*`) is .*incorrectly used": r"\1 is in the wrong place",
    r"Missing operator": "a sign such as + is missing",
    r"Unexpected token .* character": "unexpected character",
}
"""What formulaic says of a formula, and what we say."""


def _most_terms(node: Any) -> int:
    """Return a bound on the number of terms that a part of a formula becomes."""
    counts = [_most_terms(part) for part in getattr(node, "args", ())]
    operator = str(getattr(node, "operator", ""))
    if len(counts) < 2 or operator in ("~", "+", "-", "|"):
        return min(sum(counts, start=not counts), MAX_TERMS + 3)
    if operator in ("**", "^"):
        power = str(node.args[1])
        if power.isdecimal() and not hasattr(node.args[0], "args"):
            name = node.args[0]
            raise ArgumentError(
                f"formula: {name}{operator}{power} means {name} alone; a power is written "
                f"I({name}**{power})"
            )
        counts = counts[:1] * (min(int(power), MAX_TERMS) if power.isdecimal() else MAX_TERMS)
    alone = operator != ":"  # a * b is a + b + a:b
    most = 1
    for count in counts:
        most = min(most * (count + alone), MAX_TERMS + 4)
    return most - alone


def _check(text: str, response: str, terms: list[Term]) -> None:
    if not terms:
        raise ArgumentError(f"formula: {validation.shown(text)} has no term beside the intercept")
    seen: dict[tuple[tuple[str, ...], frozenset[str]], str] = {}
    for term in terms:
        if response in (*term.numeric, *term.factors):
            raise ArgumentError(f"formula: the response {response!r} is among the terms")
        key = term.numeric, frozenset(term.factors)
        name = term.text.replace("`", "")
        if key in seen:
            raise ArgumentError(f"formula: {name} and {seen[key]} are the same column")
        if name in seen.values():
            raise ArgumentError(f"formula: two terms would be called {name}; rename a column")
        seen[key] = name
    both = {c for t in terms for c in t.numeric} & {f for t in terms for f in t.factors}
    if both:
        raise ArgumentError(f"formula: {min(both)!r} is used as a number and as a factor")


def _response(term: Any) -> str:
    elements = list(term.factors)
    if len(elements) == 1 and elements[0].eval_method.value == "lookup":
        return str(elements[0].expr)
    if str(term).startswith("C("):
        raise ArgumentError(f"formula: the response is a factor, {term}; it must be a number")
    raise ArgumentError(
        f"formula: the response must be a column, not {term}; make a column of it in the table "
        "first"
    )


def _term(
    raw: Any, factors: Collection[str], labels: dict[str, str], references: dict[str, str | int]
) -> Term:
    numeric: list[str] = []
    coded: list[str] = []
    for element in raw.factors:
        text = str(element.expr)
        if element.eval_method.value == "lookup" and text not in factors:
            numeric.append(text)
            continue
        product, name, reference = (
            ([], text, None) if element.eval_method.value == "lookup" else _python(text)
        )
        numeric += product
        if name is not None:
            if labels.setdefault(name, text) != text:
                raise ArgumentError(f"formula: {name!r} is written as {labels[name]} and as {text}")
            if reference is not None:
                references[name] = reference
            coded.append(name)
    if len(numeric) + len(coded) > MAX_DEGREE:
        raise ArgumentError(f"formula: {raw} multiplies more than {MAX_DEGREE} columns")
    return Term(tuple(sorted(numeric)), tuple(coded), str(raw))


def _python(text: str) -> tuple[list[str], str | None, str | int | None]:
    """Return columns that are multiplied, or a factor and its reference level."""
    names: dict[str, str] = {}

    def placeholder(quoted: re.Match[str]) -> str:
        return names.setdefault(quoted[1], f"quoted_name_{len(names)}")

    try:
        call = ast.parse(re.sub(r"`([^`]+)`", placeholder, text.strip()), mode="eval").body
    except (SyntaxError, ValueError, MemoryError):
        call = ast.Constant(None)
    for node in ast.walk(call):
        if isinstance(node, ast.Name):
            node.id = next((name for name, held in names.items() if held == node.id), node.id)
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.args:
        first = ast.Constant(None) if call.keywords else call.args[0]
        if call.func.id == "C" and isinstance(first, ast.Name):
            if len(call.args) == 1:
                return [], first.id, None
            if len(call.args) == 2 and (reference := _treatment(call.args[1])) is not None:
                return [], first.id, reference
        if call.func.id == "I" and len(call.args) == 1 and (product := _product(first)):
            return product, None, None
    raise ArgumentError(
        f"formula: {text} is not a column, C(column), C(column, contr.treatment(level)), a product "
        "such as a:b or a power such as I(a**2); make a column of it in the table first"
    )


def _treatment(node: ast.expr) -> str | int | None:
    """Return the reference level of ``contr.treatment("male")`` or ``Treatment("male")``."""
    if not isinstance(node, ast.Call) or ast.unparse(node.func) not in TREATMENTS:
        return None
    values = [*node.args, *(k.value for k in node.keywords)]
    if len(values) != 1 or not isinstance(values[0], ast.Constant):
        return None
    level = values[0].value
    return level if isinstance(level, str | int) else None


TREATMENTS = ("contr.treatment", "Treatment")
"""How a reference level is written: as in formulaic, and as in patsy."""


def _product(node: ast.expr) -> list[str]:
    """Return the columns that an expression of products and whole powers multiplies."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        left, right = _product(node.left), _product(node.right)
        return left + right if left and right else []
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        power = node.right.value if isinstance(node.right, ast.Constant) else None
        if type(power) is int and 1 <= power <= MAX_DEGREE:
            return (_product(node.left) * power)[: MAX_DEGREE + 1]  # powers of powers grow fast
    return []


def _elements(text: str) -> list[str]:
    """Split a term at the colons outside parentheses and quotes."""
    parts, depth, quote, current = [], 0, "", ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"`":
            quote = letter
        depth += 0 if quote else (letter in "([{") - (letter in ")]}")
        if letter == ":" and depth == 0 and not quote:
            parts.append(current)
            current = ""
        else:
            current += letter
    return [*parts, current]
