"""Formulas at the shell: releases of factors, what is said of bad words, and other formulas."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import noisewise as nw
from noisewise.artifact import ArgumentError
from noisewise.cli import options, results
from noisewise.privacy.sources import csv_files

Run = Callable[..., Any]

FORMULA = ("--formula", "wages ~ age + C(sex)")
BOUNDS = ("--bounds", "wages=0,10", "--bounds", "age=0,100")
LEVELS = ("--levels", "sex=female,male,unknown")


@pytest.fixture
def release(noisewise: Run, tmp_path: Path) -> Run:
    """Release a table as a person types it."""
    table = tmp_path / "people.csv"
    people = {
        "age": [20, 30, 40, 50] * 2,
        "sex": ["female", "male", "", "x"] * 2,
        "wages": [1, 2, 3, 4] * 2,
    }
    pd.DataFrame(people).to_csv(table, index=False)

    def call(*words: str) -> Any:
        out = ("--no-ledger", "--epsilon", "1", "--out", tmp_path / "release.json")
        return noisewise("release", "linear-regression", table, *out, *words)

    return call


def test_a_formula_with_a_factor(release: Run, noisewise: Run, tmp_path: Path) -> None:
    public = ("--other", "sex=unknown", "--fill", "sex=unknown", "--fill", "age=40")
    ended = release(*FORMULA, *BOUNDS, *LEVELS, *public)
    assert (ended.code, ended.err) == (0, "")
    made = nw.Release.load(tmp_path / "release.json")
    assert made.model["formula"] == FORMULA[1]
    assert made.fill == {"sex": "unknown", "age": 40}
    seen = noisewise("inspect", tmp_path / "release.json").out
    for words in (
        "formula: wages ~ age + C(sex)",
        "wages[sex=male]",
        "n[sex=unknown]",
        "age*wages",
    ):
        assert words in seen


REFUSED: tuple[tuple[tuple[str, ...], str], ...] = (
    ((), "--x: name the covariates (--x) and the response (--y), or give a formula, such as "
         "--formula 'wages ~ age'"),
    (("--x", "age"), "--y: name the covariates (--x) and the response (--y)"),
    ((*FORMULA, *BOUNDS), "--levels: none for the factor 'sex'; levels are public knowledge: give "
                          "them, for example --levels sex=a,b"),
    ((*FORMULA, *BOUNDS, "--levels", "sex=female"), "--levels sex: a factor has two or more"),
    ((*FORMULA, *LEVELS), "--bounds: none; bounds are public knowledge: give them, for example "
                          "--bounds age=0,1"),
    ((*FORMULA, *LEVELS, *BOUNDS, "--bounds", "sex=0,1"), "--bounds: 'sex' is a factor"),
    ((*FORMULA, *LEVELS, *BOUNDS, "--x", "age"), "--x: the formula names all columns"),
    ((*FORMULA, *LEVELS, *BOUNDS, "--monomials"), "--monomials: are those of x"),
    ((*FORMULA, *LEVELS, *BOUNDS, "--other", "sex=x"), "--other sex: 'x' is not among the"),
    ((*FORMULA, *LEVELS, *BOUNDS, "--other", "age=x"), "--other: 'age' is not among sex"),
    ((*FORMULA, *LEVELS, *BOUNDS, "--fill", "sex=x"), "--fill sex: 'x' is not among the column's"),
    ((*FORMULA, *LEVELS, *BOUNDS, "--fill", "age=x"), "--fill age: must be a number, not 'x'"),
    ((*FORMULA, *LEVELS, *BOUNDS, "--fill", "sex=unkown"), "--fill sex: 'unkown' is not among the "
     "column's levels; did you mean 'unknown'?"),
    ((*FORMULA, *BOUNDS, "--levels", "sx=f,m,unknown", "--fill", "sex=unknown"), "--levels: none "
     "for the factor 'sex', and 'sx' has levels but is not in the formula: is one of them "
     "misspelt?"),
    ((*FORMULA, *LEVELS, *BOUNDS, "--levels", "aage=1,2", "--fill", "sex=unknown"), "--levels: "
     "'aage' is not in the formula; did you mean 'age'?"),
    ((*FORMULA, *LEVELS, *BOUNDS), "column 'sex' holds a value outside its public list. Texts "
     "must be spelt as on the list, capitals and blanks included; and the list must cover every "
     "record (add an 'other' entry and recode the data, or --other sex=...)"),
    ((*FORMULA, *LEVELS, *BOUNDS, "--other", "sex=unknown"), "column 'sex' has missing values. "
     "Under replace-one neighbours n is public, so no record may be left out: give a public value "
     "with --fill COLUMN=VALUE, or use --neighbours add-remove"),
    (("--formula", "wages ~ age +", *BOUNDS), "--formula: 'wages ~ age +' cannot be read"),
    (("--x", "age", "--y", "wages", *BOUNDS, *LEVELS), "--levels: go with a formula, such as "
                                                       "--formula 'wages ~ age + C(sex)'"),
)  # fmt: skip


@pytest.mark.parametrize(("words", "said"), REFUSED)
def test_refusals_in_the_words_of_the_shell(
    words: tuple[str, ...], said: str, release: Run, tmp_path: Path
) -> None:
    ended = release(*words)
    assert ended.code == 1
    assert ended.err.startswith(f"error: {said}")
    assert not (tmp_path / "release.json").exists()


def test_a_plan_takes_the_same_words(noisewise: Run) -> None:
    plan = ("plan", "linear-regression", "--epsilon", "1", "--n", "100")
    assert "--x: name the covariates (--x)" in noisewise(*plan).err
    assert "--levels: none for the factor 'sex'" in noisewise(*plan, *FORMULA, *BOUNDS).err


def test_dates_in_bounds(release: Run) -> None:
    dates = datetime.date(1920, 1, 1), datetime.date(1970, 1, 2)
    assert options.parse_bounds("1920-01-01,1970-01-02", "--bounds") == dates
    private = options.parse_bounds("private:1920-01-01,1970-01-02", "--bounds")
    assert isinstance(private, nw.release.PrivateBounds)
    assert private.within == (-18263, 1)
    assert options.parse_bounds("-1,20200101", "--bounds") == (-1, 20200101)
    ended = release("--x", "age", "--y", "wages", "--bounds", "age=1920-01-01,2010-13-01")
    assert "--bounds age: '2010-13-01' is not a number" in ended.err


@pytest.mark.parametrize("verb", ["infer", "check"])
def test_an_analyst_may_give_another_formula(
    verb: str, noisewise: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {}

    def record(*_: Any, **words: Any) -> None:
        given.update(words)
        raise ArgumentError("formula: age * educ was not released")

    monkeypatch.setattr("noisewise.inference.infer", record)
    monkeypatch.setattr("noisewise.simulate.check", record)
    made = nw.release.linear_regression(
        nw.release.Blank(100),
        x="age",
        y="wages",
        bounds={"age": (0, 1), "wages": (0, 1)},
        epsilon=1,
    )
    made.save(tmp_path / "release.json")
    out = () if verb == "check" else ("--out", tmp_path / "p.nc")
    ended = noisewise(verb, tmp_path / "release.json", "--formula", "educ ~ C(sex)", *out)
    assert given["formula"] == "educ ~ C(sex)"
    assert ended.err.startswith("error: --formula: age * educ was not released")


class Fitted:
    """A result of two covariates, one of them a factor."""

    covariates: tuple[str, ...] = ("age", "sex", "k")
    levels: dict[str, tuple[Any, ...]] = {"sex": ("f", "m"), "k": (1, 2)}  # noqa: RUF012


def test_records_at_levels(tmp_path: Path) -> None:
    whole = ["age=40,sex=m,k=1", "age=41,sex=f,k=2"]
    parts = ["age=40", "sex=m", "k=1", "sex=f,k=2", "age=41"]
    wanted = [{"age": 40.0, "sex": "m", "k": 1}, {"age": 41.0, "sex": "f", "k": 2}]
    fitted: Any = Fitted()
    assert results._points(fitted, whole, None) == wanted
    assert results._points(fitted, parts, None) == wanted
    pd.DataFrame(wanted).to_csv(tmp_path / "new.csv", index=False)
    assert results._points(fitted, None, tmp_path / "new.csv") == wanted
    for at, said in (
        (["age=40,sex=x,k=1"], "--at sex: 'x' is not a level of 'sex'; there are f, m"),
        (["age=a,sex=m,k=1"], "--at age: 'a' is not a number"),
        (["age=40,sex=m"], "--at: must give a value to each of age, sex, k, and to nothing else"),
        (["age=40", "age=41"], "--at: must give a value to each of age, sex, k"),
        (["age=40,sex=m,k=1,z=2"], "--at: must give a value to each of age, sex, k"),
        (["age=40,sex=M,k=1"], "--at sex: 'M' is not a level of 'sex'; there are f, m"),
        (["age=,sex=m,k=1"], "--at age: '' is not a number"),
        (["=4"], "--at: must look like NAME=VALUE, not '=4'"),
    ):
        with pytest.raises(ArgumentError) as refused:
            results._points(fitted, at, None)
        assert str(refused.value).startswith(said)
    with pytest.raises(ArgumentError, match="not 'sex=m'; no value for age, k"):
        results._points(fitted, ["sex=m"], None)


class Filled(Fitted):
    """A result whose release has public values for gaps, but not for those of ``k``."""

    def as_released(self, column: str, value: object) -> object:
        fill = {"age": 50.0, "sex": "f"}
        return fill.get(column, value) if value is None else value


def test_gaps_and_flags_of_a_file(tmp_path: Path) -> None:
    assert set(results.GAPS) == set(csv_files.NULLS)
    fitted: Any = Filled()
    new = tmp_path / "new.csv"
    new.write_text("age,sex,k\n,m,TRUE\n40,NA,1\n")
    wanted = [{"age": 50.0, "sex": "m", "k": 1}, {"age": 40.0, "sex": "f", "k": 1}]
    assert results._points(fitted, None, new) == wanted
    assert results._points(fitted, ["age=,sex=m,k=TRUE"], None) == wanted[:1]
    for row, said in (
        ("40,m,", "line 2, column k: '' is not a level of 'k'; there are 1, 2; the release has no"),
        ("True,m,1", "--csv line 2, column age: 'True' is not a number"),
    ):
        new.write_text(f"age,sex,k\n{row}\n")
        with pytest.raises(ArgumentError, match=said):
            results._points(fitted, None, new)


class Degrees(Fitted):
    """Levels that hold what parts values, one of them even a whole value."""

    covariates = ("age", "degree")
    levels = {"degree": ("BSc, MSc", "BSc", "x=1", "none,age=3")}  # noqa: RUF012


@pytest.mark.parametrize("level", Degrees.levels["degree"])
def test_levels_that_hold_a_comma_or_an_equals_sign(level: str) -> None:
    fitted: Any = Degrees()
    wanted = [{"age": 40.0, "degree": level}]
    assert results._points(fitted, [f"age=40,degree={level}"], None) == wanted
    assert results._points(fitted, [f"degree={level}, age=40"], None) == wanted
    assert results._points(fitted, [f"degree={level}", "age=40"], None) == wanted
