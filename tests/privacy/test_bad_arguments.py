"""Every bad argument is refused by name, before anything is drawn or spent."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import noisewise as nw
from noisewise.release import PrivateBounds
from tests.privacy.refusals import BOUNDS, NUMBER, SECRET, family, people, regression, tables

Refused = Callable[..., str]
Case = tuple[Callable[..., nw.Release], dict[str, Any], str]

NAN, INF, HUGE = float("nan"), float("inf"), 10**400
NO_NUMBERS = [True, "1", None, 1j, Decimal(1), [1], np.array(1.0), pd.Series([NUMBER])]
NO_WORDS: list[Any] = ["", "Laplace", None, 1, []]
NO_INTERVALS = [
    *[(1, 0), (1, 1), (0,), (0, 1, 2), 5, "01", {0: 1}, ("0", "1"), (False, True), (0, None)],
    *[(NAN, 1), (0, INF), (0, HUGE), (0, 1e200), (0, 1e-200), pd.Series([NUMBER, NUMBER])],
]
NO_LISTS = [
    *["ab", b"ab", None, 5, {"a": 1}, [], ["a", 1], ["a", "a"], [1.5], [None], [["a"]], ["a\n"]],
    *[[2**70], [NUMBER], pd.Series([SECRET, SECRET]), np.array([[1], [2]])],
]
MANY = [str(level) for level in range(1500)]


def cases(
    make: Callable[..., nw.Release], name: str, values: list[Any], message: str, **others: Any
) -> list[Case]:
    return [(make, {**others, name: value}, message) for value in values]


BUDGET: list[Case] = [
    *cases(regression, "epsilon", [0, -1, -0.0], "epsilon: must be above zero"),
    *cases(regression, "epsilon", [NAN, INF, HUGE], "epsilon: must be a finite number"),
    *cases(regression, "epsilon", NO_NUMBERS, "epsilon: must be a number"),
    # noise that would not fit into 64 bits
    *cases(regression, "epsilon", [1e-12], "epsilon: a budget share of 1e-12 needs noise of scale"),
    *cases(tables, "epsilon", [1e-18], "epsilon: a budget share of 1e-18 needs noise of scale"),
    *cases(regression, "epsilon", [5e-324], "epsilon: next to nothing"),
    *cases(regression, "mechanism", NO_WORDS, "mechanism: must be 'laplace' or 'gaussian'"),
    *cases(regression, "neighbours", NO_WORDS, "neighbours: must be 'replace-one' or"),
    *cases(regression, "delta", [1e-6], "delta: goes with mechanism='gaussian'"),
    *cases(regression, "mechanism", ["gaussian"], "delta: mechanism='gaussian' needs one"),
    *cases(regression, "delta", [0, 1, -1, 2], "between 0 and 1", mechanism="gaussian"),
    *cases(regression, "delta", [NAN, True, "1e-6"], "delta: must be a", mechanism="gaussian"),
    *cases(
        regression,
        "split",
        [{}, {"gram": 1}, {"gram": 1, "clamped": 1, "bounds": 1}, {5: 1}],
        "split: must give a share to each of gram, clamped, and to nothing else",
        count_clamped=True,
    ),
    *cases(
        regression,
        "split",
        [{"gram": 1, "clamped": w} for w in (0, -1, NAN, INF, "1", None, True, HUGE)],
        "split['clamped']: must be",
        count_clamped=True,
    ),
    *cases(
        regression,
        "split",
        [{"gram": 1, "clamped": 1e-320}],
        "epsilon: next to nothing of 0.1 is left for 'clamped'",
        count_clamped=True,
    ),
    *cases(regression, "split", [5, "gram", [("gram", 1)]], "split: must be a dictionary"),
    *cases(regression, "ledger", ["", 5, "mysql://host/db"], "ledger"),
]

COLUMNS: list[Case] = [
    *cases(regression, "x", [5, None, [], "", ["x", "x"], [5], b"x", ["x\n"]], "x: "),
    *cases(regression, "x", [pd.Series([NUMBER]), pd.Series([SECRET] * 2)], "x: "),
    *cases(regression, "y", [5, None, "", ["y"], "x", "a\x00b"], "y: "),
    *cases(family, "column", [["x"], None, 3], "column: must be a column name"),
    *cases(regression, "bounds", [None, {}, {"x": (0, 1)}, "x=0,1"], "bounds are public knowledge"),
    *cases(regression, "bounds", [{**BOUNDS, "y": None}], "bounds are public knowledge"),
    *cases(family, "bounds", [None], "bounds are public knowledge"),
    *cases(regression, "bounds", [{**BOUNDS, "x": b} for b in NO_INTERVALS], "bounds['x']: "),
    *cases(regression, "bounds", [{**BOUNDS, "z": (0, 1)}], "'z' is not among the columns x, y"),
    *cases(regression, "fill", [0, [("x", 0)], "x=0"], "fill: must be a dictionary"),
    *cases(
        regression, "fill", [{"x": v} for v in (2, -0.5, NAN, HUGE, *NO_NUMBERS)], "fill['x']: "
    ),
    *cases(regression, "fill", [{"z": 0}], "fill: 'z' is not among x, y"),
    *cases(regression, "fill", [{"g": 0}], "fill: 'g' is not among", groups={"g": [0, 1]}),
    *cases(family, "fill", [2], "fill['x']: 2 lies outside the column's bounds (0, 1)"),
]

FAMILIES: list[Case] = [
    *cases(family, "family", NO_WORDS, "family: must be one of bernoulli, binomial"),
    *cases(family, "outside", NO_WORDS, "outside: must be 'drop' or 'clamp'"),
    *cases(family, "family", ["bernoulli"], "bounds: family='bernoulli' has its own"),
    *cases(family, "bounds", [(0, 2**30)], "within ±2**30", family="poisson"),
    *cases(family, "bounds", [(0.25, 0.75)], "counts in whole numbers", family="poisson"),
    *cases(family, "bounds", [(-1e145, 1e145)], "scale must be between"),
    *cases(
        family,
        "trials",
        [None, 0, -1, 2.5, 2**40, HUGE, NAN, *NO_NUMBERS],
        "trials: ",
        family="binomial",
        bounds=None,
    ),
    *cases(family, "shape", [0, INF, *NO_NUMBERS], "shape: ", family="gamma"),
    *cases(family, "trials", [3], "trials: family='normal' does not take it"),
    *cases(family, "levels", [["a"]], "levels: go with family='categorical'"),
    *cases(family, "levels", [None], "needs the public list", family="categorical", bounds=None),
    *cases(family, "levels", [["a"]], "has levels, not bounds", family="categorical"),
]

LISTS: list[Case] = [
    *cases(tables, "levels", [{"t": v} for v in NO_LISTS], "levels['t']: "),
    *cases(regression, "groups", [{"g": v} for v in NO_LISTS], "groups"),
    *cases(regression, "groups", ["g", ["g"], {}, {"g": [0], "t": ["a"]}, {5: [0]}], "groups: "),
    *cases(regression, "groups", [{"g": [0], "t": ["a"]}], "groups: must be of one column, not of"),
    *cases(regression, "groups", [{"x": [0, 1]}], "groups: the group column must not be among"),
    *cases(tables, "cliques", [None, 5, "t", [("t",), ("t",)]], "cliques: "),
    *cases(tables, "cliques", [[5], [()], [("t", "t")], [(5,)]], "cliques[0]: "),
    *cases(tables, "levels", [["a"], "a", 5], "levels: must be a dictionary"),
    *cases(tables, "levels", [{}, None], "levels: none for column 't'; levels are public"),
    *cases(tables, "levels", [{"t": ["a"], "g": [0]}], "levels: 'g' is in no clique"),
    *cases(tables, "levels", [{"t": MANY, "u": MANY}], "more than 2000000", cliques=[("t", "u")]),
    *cases(
        tables, "fill", [{"t": v} for v in ("c", None, 0, ["a"])], "not among the column's levels"
    ),
    *cases(tables, "fill", [{"t": np.array(["a", "b"])}], "not among the column's levels"),
    *cases(tables, "fill", [{"g": 0}], "fill: 'g' is not among t"),
    *cases(regression, "sizes", ["public"], "sizes: goes with groups"),
    *cases(regression, "sizes", ["exact", 1, []], "sizes: must be 'public'", groups={"g": [0, 1]}),
    *cases(
        regression,
        "sizes",
        ["public"],
        "sizes: public sizes contradict add-remove",
        groups={"g": [0, 1]},
        neighbours="add-remove",
    ),
]


def shown(case: Any) -> str | None:
    return case.__name__ if callable(case) else None


@pytest.mark.parametrize(
    ("make", "words", "message"), [*BUDGET, *COLUMNS, *FAMILIES, *LISTS], ids=shown
)
def test_arguments(
    make: Callable[..., nw.Release], words: dict[str, Any], message: str, refused: Refused
) -> None:
    assert message in refused(nw.ArgumentError, make, people(), **words)


def test_a_release_too_large_for_a_file(refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noisewise.privacy.pipeline.MAX_VALUES", 11)
    message = refused(nw.ArgumentError, regression, people(), groups={"g": [0, 1]})
    assert "12 numbers in all, more than the 11 allowed" in message


@pytest.mark.parametrize("records", [{"Ada": {"x": 1}, "Bo": {"x": 2}}, {"Ada": {"x": 1}}, {}])
def test_records_given_as_groups_are_not_named(records: dict[str, Any], refused: Refused) -> None:
    message = refused(nw.ArgumentError, regression, people(), groups=records)
    assert message.startswith("groups")
    assert "Bo" not in message
    if len(records) != 1:  # One entry is read as a column and its keys; the column is named.
        assert f"not a dictionary of {len(records)} entries" in message
        assert "Ada" not in message


def test_an_account_without_a_ledger_is_no_promise(refused: Refused) -> None:
    message = refused(nw.ArgumentError, regression, people(), ledger=None, dataset="people")
    assert "no ledger is given" in message


def test_bounds_left_out_altogether() -> None:
    with pytest.raises(nw.ArgumentError, match="bounds are public knowledge"):
        nw.release.linear_regression(people(), x="x", y="y", epsilon=1.0)


@pytest.mark.parametrize(
    "words",
    [
        {"within": (1, 0)},
        {"within": None},
        {"within": (0, float("inf"))},
        {"within": (1e16, 1e16 + 4)},
        {"quantiles": (0.9, 0.1)},
        {"quantiles": (0.5,)},
        {"quantiles": (-0.1, 0.5)},
        {"quantiles": "ab"},
        {"resolution": -1.0},
        {"resolution": True},
        {"resolution": float("nan")},
    ],
    ids=str,
)
def test_private_bounds(words: dict[str, Any]) -> None:
    (name,) = words
    with pytest.raises(nw.ArgumentError, match=f"^{name}: "):
        PrivateBounds(**{"within": (0, 1), **words})
    with pytest.raises(nw.ArgumentError, match=r"^within: .* too narrow to be searched"):
        PrivateBounds((0, 1), resolution=0.6)


def test_what_is_refused_late_is_refused_before_private_bounds_are_paid_for(
    refused: Refused,
) -> None:
    bounds = {"x": PrivateBounds((0, 1)), "y": (0, 3)}
    assert "epsilon" in refused(
        nw.ArgumentError, regression, people(), bounds=bounds, epsilon=1e-12
    )
    assert "'x' is not in" in refused(
        nw.DataError, regression, people().drop(columns="x"), bounds=bounds
    )
    assert "missing values" in refused(
        nw.DataError, regression, people(y=[1.0, np.nan, NUMBER]), bounds=bounds
    )


def test_nothing_fails_once_private_bounds_are_paid_for() -> None:
    """Candidates that round to one whole number; a third of a cost that rounds upwards."""
    frame = people(k=[0, 1, 3])
    asked = PrivateBounds((0, 3))
    for _ in range(40):
        release = family(
            frame,
            column="k",
            family="poisson",
            bounds=asked,
            outside="clamp",
            neighbours="add-remove",
        )
        assert release.bounds["k"].half_width >= 0.5
    bounds = dict.fromkeys(("x", "y", "k"), asked)
    for epsilon in np.random.default_rng(0).uniform(0.1, 2, 40):
        release = regression(
            frame, x=["x", "k"], bounds=bounds, epsilon=float(epsilon), neighbours="add-remove"
        )
        assert len(release.selections) == 3


def test_numbers_may_be_numpys() -> None:
    bounds = {"x": (np.int64(0), np.float32(1)), "y": np.array([0, 3])}
    groups = {"g": np.array([0, 1])}
    release = regression(
        people(), bounds=bounds, epsilon=np.float32(1), fill={"x": np.int64(0)}, groups=groups
    )
    assert release.groups is not None
    assert release.groups.keys == (0, 1)
    assert nw.Release.from_json(release.to_json()) == release


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (regression, {"x": "n", "bounds": {"n": (0, 1), "y": (0, 3)}, "neighbours": "add-remove"}),
        (
            regression,
            {"x": ["a", "b", "a*b"], "bounds": dict.fromkeys(("a", "b", "a*b", "y"), (0, 1))},
        ),
        (family, {"column": "n", "family": "gamma", "shape": 1, "neighbours": "add-remove"}),
    ],
    ids=["n", "product", "family"],
)
def test_names_that_would_stand_twice_in_the_file(
    make: Callable[..., nw.Release], words: dict[str, Any], refused: Refused
) -> None:
    """Found while the release is rehearsed with zeros; after the spend it would be too late."""
    one = people()["x"]
    frame = people().assign(n=one, a=one, b=one, **{"a*b": one})
    assert "rename a column" in refused(nw.ArgumentError, make, frame, **words)


# -- the ledger ------------------------------------------------------------------------------------


def test_a_budget_that_does_not_suffice(refused: Refused) -> None:
    message = refused(nw.BudgetError, regression, people(), epsilon=1.0)
    assert "asks for epsilon 1, and 0.5 remains" in message
    assert "Nothing was drawn" in message
    gaussian = {"mechanism": "gaussian", "delta": 1e-6}
    assert "has no pure epsilon" in refused(nw.BudgetError, regression, people(), **gaussian)
    bounds = {"x": PrivateBounds((0, 1)), "y": (0, 3)}
    refused(nw.BudgetError, regression, people(), epsilon=1.0, bounds=bounds)


def test_an_account_that_is_not_there(refused: Refused) -> None:
    message = refused(nw.BudgetError, regression, people(), dataset="pepole")
    assert "dataset='pepole' has no budget" in message


def test_a_ledger_that_is_not_there(tmp_path: Path, refused: Refused) -> None:
    where = tmp_path / "none.db"
    assert "there is no ledger" in refused(nw.SourceError, regression, people(), ledger=where)
    assert not where.exists()
