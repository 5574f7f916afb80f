"""Errors in the words of the command line, and the reference that is made from the program."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import noisewise as nw
from noisewise.cli.messages import Flag, translate
from noisewise.cli.model_commands import argument_flags
from noisewise.cli.reference import reference
from noisewise.privacy.sources.arrow_columns import describe_type

Run = Callable[..., Any]

FLAGS = {
    "bounds": Flag("--bounds", "COLUMN=LOWER,UPPER"),
    "delta": Flag("--delta", "NUMBER"),
    "mechanism": Flag("--mechanism", "TEXT"),
    "neighbours": Flag("--neighbours", "TEXT"),
    "fill": Flag("--fill", "COLUMN=VALUE"),
    "other": Flag("--other", "COLUMN=VALUE"),
    "cliques": Flag("--clique", "COLUMN,COLUMN"),
    "epsilon": Flag("--epsilon", "NUMBER"),
    "epsilon_bounds": Flag("--epsilon-bounds", "NUMBER"),
    "same_population": Flag("--same-population"),
    "prior": Flag("--prior", "FILE"),
    "unit": Flag("--unit", "COLUMN"),
    "x": Flag("--x", "COLUMN"),
    "corrected": Flag("--corrected"),
}


@pytest.mark.parametrize(
    ("python", "shell"),
    [
        (
            "delta: mechanism='gaussian' needs one, such as delta=1e-6",
            "--delta: --mechanism gaussian needs one, such as --delta 1e-6",
        ),
        (
            "bounds: none; give them, for example bounds={'a': (0, 1)}",
            "--bounds: none; give them, for example --bounds a=0,1",
        ),
        ("(add it, or other={'a': ...})", "(add it, or --other a=...)"),
        ("with same_population=True (--same-population); no", "with --same-population; no"),
        ("is it corrected=False?", "is it --no-corrected?"),
        ("fill['a b']: 7 lies outside", "--fill a b: 7 lies outside"),
        ("cliques[0]: names a twice", "--clique number 1: names a twice"),
        ("raise epsilon_bounds, or partitions", "raise --epsilon-bounds, or partitions"),
        ("name a public fill, or", "give a public value with --fill COLUMN=VALUE, or"),
        ("prior={'response': Normal(…)}", "--prior FILE"),
        ("x, prior: do not go", "--x, --prior: do not go"),
        ("epsilon=None, delta=None: one of", "no --epsilon, no --delta: one of"),
        ("without unit=, or", "without --unit, or"),
        # Names and values of the user's, and words of English, stay as they are.
        ("column 'fill=3' is not in 'x=1'", "column 'fill=3' is not in 'x=1'"),
        ("the column's bounds and fill", "the column's bounds and fill"),
        ("release: 'delta' is missing", "release: 'delta' is missing"),
        ("--bounds x=0,1: twice", "--bounds x=0,1: twice"),
        ("source: no file matches 'a'", "source: no file matches 'a'"),
    ],
)
def test_translations(python: str, shell: str) -> None:
    assert translate(python, FLAGS) == shell
    assert translate(shell, FLAGS) == shell


def test_arguments_under_another_name() -> None:
    trials = argument_flags(nw.models.find("exponential-family").owner())["trials"]
    assert trials.text == "--binomial-trials"
    assert argument_flags(nw.models.find("graphical-model").owner())["cliques"].text == "--clique"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    frame = {"age": [20, None, 60], "cost": [1, 2, 3], "city": ["a", "b", "c"], "day": "2020-01-01"}
    pd.DataFrame(frame).to_csv(path, index=False)
    return path


REGRESSION = ("linear-regression", "--x", "age", "--y", "cost", "--epsilon", "1")
LIMITS = ("--bounds", "age=0,100", "--bounds", "cost=0,10")
TABLES = ("graphical-model", "--clique", "city", "--levels", "city=a,b", "--epsilon", "1")
POISSON = ("exponential-family", "--column", "age", "--family", "poisson", "--epsilon", "1")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            (*REGRESSION, *LIMITS),
            "no record may be left out: give a public value with --fill COLUMN=VALUE, or use "
            "--neighbours add-remove",
        ),
        ((*TABLES,), "or --other city=...)"),
        (
            (*REGRESSION, *LIMITS, "--mechanism", "gaussian"),
            "--delta: --mechanism gaussian needs one, such as --delta 1e-6",
        ),
        (
            (*REGRESSION, "--bounds", "age=0,100"),
            "--bounds: none for column 'cost'; bounds are public knowledge: give them, for "
            "example --bounds cost=0,1",
        ),
        (POISSON, "for example --bounds 0,1"),
        (
            (*POISSON, "--bounds", "0,100"),
            "give a public value with --fill VALUE, or use --neighbours add-remove",
        ),
        ((*POISSON[:3], "--family", "binomial", "--epsilon", "1"), "--binomial-trials: --family"),
        ((*TABLES, "--clique", "city"), "--clique: --clique number 2 has the same columns as"),
    ],
)
def test_common_errors_of_the_owner(
    words: tuple[str, ...], says: str, noisewise: Run, table: Path, tmp_path: Path
) -> None:
    seen = noisewise("release", words[0], table, *words[1:], "--out", tmp_path / "r.json")
    assert (seen.code, seen.out) == (1, "")
    assert says in seen.err
    assert "='" not in seen.err
    assert "={" not in seen.err


def test_a_plan_tells_both_kinds_of_trials_apart(noisewise: Run) -> None:
    words = ("plan", "exponential-family", "--family", "binomial", "--n", "50", "--epsilon", "1")
    assert "error: --binomial-trials: --family binomial needs it" in noisewise(*words).err
    few = noisewise(*words, "--binomial-trials", "5", "--trials", "3")
    assert "error: --trials: must be a whole number of at least 10" in few.err


def test_several_releases(noisewise: Run, tmp_path: Path) -> None:
    frame = pd.DataFrame({"c": ["x", "y"] * 20})
    paths = [
        nw.release.exponential_family(
            frame, column="c", family="categorical", levels=["x", "y"], epsilon=e
        ).save(tmp_path / f"{e}.json")
        for e in (0.5, 0.75)
    ]
    seen = noisewise("infer", *paths, "-o", tmp_path / "p.nc")
    assert "with --same-population; nothing in them proves it" in seen.err
    assert "same_population" not in seen.err


def test_an_analyst_reads_of_the_owners_options(noisewise: Run, tmp_path: Path) -> None:
    """An option of another command is spoken of as it is typed there."""
    frame = pd.DataFrame({"a": [0.1, 0.4, 0.9] * 20, "b": [0.2, 0.5, 0.7] * 20})
    given = nw.release.linear_regression(
        frame, x="a", y="b", bounds={"a": (0, 1), "b": (0, 1)}, epsilon=1.0
    ).save(tmp_path / "r.json")
    seen = noisewise("infer", given, "--method", "gibbs-noisy", "-o", tmp_path / "p.nc")
    assert "release with --monomials" in seen.err


def test_types_in_plain_words(noisewise: Run, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    waited = pd.to_timedelta(["1 day", "2 days"])
    pd.DataFrame({"name": ["a", "b"], "waited": waited, "cost": [1, 2]}).to_parquet(path)
    for column, held in (("name", "text"), ("waited", "lengths of time")):
        words = ("--x", column, "--y", "cost", "--epsilon", "1", "--out", tmp_path / "r.json")
        limits = ("--bounds", f"{column}=0,1", "--bounds", "cost=0,9")
        seen = noisewise("release", "linear-regression", path, *words, *limits)
        assert seen.err == f"error: column '{column}' must be numeric, but holds {held}\n"


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("large_string", "text"),
        ("string_view", "text"),
        ("!string", "text"),
        ("timestamp[us]", "dates and times"),
        ("timestamp('UTC')", "dates and times"),
        ("date32[day]", "dates"),
        ("time64[us]", "times of day"),
        ("duration[ns]", "lengths of time"),
        ("interval('s')", "lengths of time"),
        ("int64", "whole numbers"),
        ("uint8", "whole numbers"),
        ("halffloat", "numbers"),
        ("decimal128(10, 2)", "numbers"),
        ("bool", "true or false"),
        ("list<item: int64>", "nested values"),
        ("dictionary<values=string, indices=int32, ordered=0>", "text"),
        ("point", "point"),
    ],
)
def test_describe_type(kind: str, words: str) -> None:
    assert describe_type(kind) == words


def test_the_reference_is_up_to_date() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference-command-line.md"
    assert page.read_text(encoding="utf-8") == reference(), (
        "run: python -m noisewise.cli.reference > docs/reference-command-line.md"
    )
