"""The command line end to end: files in, files out, exit codes, and what a person reads."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

import noisewise as nw
from noisewise.cli.verbs import app
from noisewise.privacy.ledger import open_ledger

Run = Callable[..., Any]

LINES = (
    "pir,kir,tract,smoker,visits,code",
    "0.1,0.2,1,yes,3,01",
    "0.4,-0.5,2,no,1,02",
    "0.9,0.7,1,no,,01",
)


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text("\n".join([*LINES, ""]))
    return path


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "release.json"


REGRESSION = ("--x", "pir", "--y", "kir", "--bounds", "pir=0,1", "--bounds", "kir=-1,1")


@pytest.fixture
def regression(noisewise: Run, people: Path, out: Path) -> Run:
    """``noisewise release linear-regression`` with the usual words and some more."""

    def call(*more: str, epsilon: float = 1.0) -> Any:
        words = (*REGRESSION, "--epsilon", epsilon, "--out", out, *more)
        return noisewise("release", "linear-regression", people, *words)

    return call


def loaded(ended: Any, out: Path) -> nw.Release:
    assert (ended.code, ended.err) == (0, "")
    return nw.Release.load(out)


# -- the verbs -------------------------------------------------------------------------------------


def test_linear_regression(regression: Run, out: Path) -> None:
    ended = regression()
    release = loaded(ended, out)
    assert release.family == "linear-regression"
    assert release.model == {"x": ("pir",), "y": "kir"}
    assert release.bounds["kir"] == nw.Bounds(-1, 1)
    assert release.n == 3
    assert ended.out.startswith(f"wrote {out}: 1-differential privacy: replacing any one person's")
    assert ended.out.count("\n") == 1


def test_every_option_of_linear_regression(regression: Run, out: Path) -> None:
    release = loaded(
        regression(
            *("--mechanism", "gaussian", "--delta", "1e-6", "--neighbours", "add-remove"),
            *("--monomials", "--count-clamped", "--fill", "pir=0.5"),
            *("--split", "gram=2", "--split", "monomials=1", "--split", "clamped=1"),
        ),
        out,
    )
    assert release.guarantee.delta == 1e-6
    assert release.n is None
    assert release.fill == {"pir": 0.5}
    rho = release.guarantee.rho
    assert rho is not None
    shares = {b.statistic.kind: b.noise.cost / rho for b in release.blocks}
    assert shares == pytest.approx({"gram": 0.5, "monomials": 0.25, "clamped": 0.25})


def test_bounds_chosen_privately(noisewise: Run, people: Path, out: Path) -> None:
    words = ("--bounds", "pir=private:0,100", "--bounds", "kir=-1,1", "--epsilon", 5, "--out", out)
    few = noisewise("release", "linear-regression", people, *REGRESSION[:4], *words)
    assert "for the private bounds of 'pir' is hopeless" in few.err
    secret = (*words, "--neighbours", "add-remove")
    ended = noisewise("release", "linear-regression", people, *REGRESSION[:4], *secret)
    (selection,) = loaded(ended, out).selections
    assert (selection.column, selection.within) == ("pir", nw.Bounds(0, 100))


def test_bounds_that_cut_values_off(noisewise: Run, people: Path, out: Path) -> None:
    words = ("--censored", "pir=0,0.5,upper", "--bounds", "kir=-1,1", "--epsilon", 5, "--out", out)
    ended = noisewise("release", "linear-regression", people, *REGRESSION[:4], *words)
    assert loaded(ended, out).bounds == {
        "pir": nw.Censored(0, 0.5, "upper"),
        "kir": nw.Bounds(-1, 1),
    }
    assert "censored: of 'pir', values above 0.5 were moved" in noisewise("inspect", out).out
    shown = json.loads(noisewise("inspect", out, "--json").out)["bounds"]
    assert (shown["pir"]["cut"], shown["kir"]["cut"]) == ("upper", None)


def test_all_bounds_may_cut_and_a_family_takes_them(
    noisewise: Run, people: Path, out: Path
) -> None:
    both = ("--censored", "pir=0,1", "--censored", "kir=-1,1", "--epsilon", 5, "--out", out)
    ended = noisewise("release", "linear-regression", people, *REGRESSION[:4], *both)
    assert all(isinstance(b, nw.Censored) for b in loaded(ended, out).bounds.values())
    words = ("--column", "pir", "--family", "normal", "--censored", "0,0.5,lower", "--epsilon", 1)
    one = out.with_name("one.json")
    ended = noisewise("release", "exponential-family", people, *words, "--out", one)
    assert loaded(ended, one).bounds == {"pir": nw.Censored(0, 0.5, "lower")}
    twice = noisewise(
        "release", "exponential-family", people, *words, "--bounds", "0,1", "--out", one
    )
    assert "--censored: there are bounds already" in twice.err


@pytest.mark.parametrize(
    ("words", "model"),
    [
        (("--column", "pir", "--family", "normal", "--bounds", "-1,1"), {}),
        (("--column", "visits", "--family", "poisson", "--bounds", "0,9", "--fill", "0"), {}),
        (
            ("--column", "visits", "--family", "binomial", "--binomial-trials", "9", "--fill", "0"),
            {"trials": 9},
        ),
        (
            ("--column", "pir", "--family", "gamma", "--shape", "2", "--bounds", "0,1"),
            {"shape": 2.0},
        ),
        (("--column", "smoker", "--family", "categorical", "--levels", "yes,no"), {}),
        (
            (
                "--column",
                "pir",
                "--family",
                "exponential",
                "--bounds",
                "private:0,9",
                "--neighbours",
                "add-remove",
            ),
            {},
        ),
    ],
    ids=lambda words: words[3] if isinstance(words, tuple) else "",
)
def test_exponential_family(
    words: tuple[str, ...], model: dict[str, Any], noisewise: Run, people: Path, out: Path
) -> None:
    ended = noisewise("release", "exponential-family", people, *words, "--epsilon", 1, "--out", out)
    assert loaded(ended, out).model == {"distribution": words[3], **model}


def test_a_negative_number_is_no_option(noisewise: Run, people: Path, out: Path) -> None:
    words = ("--column", "visits", "--family", "poisson", "--bounds", "-3,9", "--fill", "-2")
    ended = noisewise("release", "exponential-family", people, *words, "--epsilon", 1, "--out", out)
    assert loaded(ended, out).fill == {"visits": -2.0}


def test_graphical_model(noisewise: Run, people: Path, out: Path) -> None:
    words = ("--clique", "smoker, tract", "--clique", "tract,visits", "--fill", "visits=1")
    levels = ("--levels", "smoker=yes,no", "--levels", "tract=1..2", "--levels", "visits=1,3")
    ended = noisewise(
        "release", "graphical-model", people, *words, *levels, "--epsilon", 1, "--out", out
    )
    release = loaded(ended, out)
    statistic = release.block("tables").statistic
    assert statistic.columns == ("smoker", "tract", "visits")
    assert statistic.names[0] == "smoker=yes,tract=1"
    assert release.fill == {"visits": 1}


def test_graphical_model_by_person_with_an_other_level(
    noisewise: Run, people: Path, out: Path
) -> None:
    words = ("--clique", "smoker", "--levels", "smoker=yes,rest", "--other", "smoker=rest")
    ended = noisewise(
        "release",
        "graphical-model",
        people,
        *words,
        "--unit",
        "tract",
        "--epsilon",
        1,
        "--out",
        out,
    )
    release = loaded(ended, out)
    assert release.block("person-tables").statistic.names == ("smoker=yes", "smoker=rest")


def test_people_with_several_records(
    regression: Run, noisewise: Run, people: Path, out: Path
) -> None:
    family = ("--column", "pir", "--family", "normal", "--bounds", "0,1", "--epsilon", 1)
    words = (people, *family, "--out", out, "--unit", "tract", "--max-records", 1)
    release = loaded(noisewise("release", "exponential-family", *words), out)
    assert (release.n, release.unit) == (2, "tract")
    out.unlink()
    release = loaded(regression("--unit", "tract", "--max-records", 2), out)
    assert release.n is None
    assert "(all rows of one 'tract', of which at most 2 count)" in release.statement()
    said = json.loads(noisewise("inspect", out, "--json").out)
    assert (said["unit"], said["max_records"], said["where"]) == ("tract", 2, None)
    refused = regression("--unit", "tract")
    assert refused.code == 1
    assert "--max-records: --unit tract needs it, the number of a person's" in refused.err


def test_some_of_the_records(regression: Run, noisewise: Run, out: Path) -> None:
    where = ("--where", "pir > 0.2 and smoker = 'no'")
    release = loaded(regression(*where, "--neighbours", "add-remove"), out)
    assert release.where == "pir > 0.2 and smoker = 'no'"
    assert "records with pir > 0.2 and smoker = 'no'" in noisewise("inspect", out).out
    refused = regression(*where)
    assert refused.code == 1
    assert refused.err.startswith("error: --where: how many records are selected is a secret")
    assert "use --neighbours add-remove" in refused.err


def test_json_for_scripts(regression: Run, out: Path) -> None:
    told = {"out": str(out), "family": "linear-regression", "epsilon": 1.0, "rho": None}
    assert json.loads(regression("--json", "--no-ledger").out) == told
    counted = {"dataset": "people.csv", "spent": 1.0, "budget": None}
    assert json.loads(regression("--json").out) == {**told, **counted}


# -- public lists ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("groups", "keys"),
    [
        ("tract=1,2,7", (1, 2, 7)),
        ("tract=0..3", (0, 1, 2, 3)),
        ("tract=-1..2", (-1, 0, 1, 2)),
        ("tract=FILE", (2, 1)),
        ("smoker=yes,no,other", ("yes", "no", "other")),
        ("code=01,02", ("01", "02")),
    ],
)
def test_groups(
    groups: str, keys: tuple[Any, ...], regression: Run, out: Path, tmp_path: Path
) -> None:
    listed = tmp_path / "tracts.txt"
    listed.write_text("\ufeff2\n\n 1 \n", encoding="utf-8")
    release = loaded(regression("--groups", groups.replace("FILE", str(listed))), out)
    assert release.groups is not None
    assert release.groups.keys == keys
    ended = regression("--groups", groups.replace("FILE", str(listed)), "--sizes", "public")
    assert re.search(r"error: --groups: \d of \d have fewer than 3 records", ended.err)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ("tract", "--groups: must look like NAME=VALUE, not 'tract'"),
        ("tract=", "--groups: must look like NAME=VALUE"),
        ("tract=tracts.txt", "--groups: there is no file 'tracts.txt'"),
        ("tract=lists/tracts", "--groups: there is no file 'lists/tracts'"),
        ("tract=3..1", "--groups: 3..1 must run upwards"),
        ("tract=0..99999999999", "--groups: 0..99999999999 must run upwards, over at most"),
        ("tract=1,1", "--groups tract: entry 1 repeats an earlier one"),
        ("tract=1", "column 'tract' holds a value outside its public list"),
        ("tract=a,b", "column 'tract' holds a value outside its public list"),
        ("nowhere=1,2", "column 'nowhere' is not in file"),
    ],
)
def test_groups_that_cannot_be(groups: str, message: str, regression: Run, out: Path) -> None:
    ended = regression("--groups", groups)
    assert (ended.code, ended.out) == (1, "")
    assert f"error: {message}" in ended.err
    assert not out.exists()


def test_a_list_that_is_no_text(regression: Run, tmp_path: Path) -> None:
    listed = tmp_path / "tracts.bin"
    listed.write_bytes(b"\xff\xfe1\n")
    assert "cannot be read as UTF-8 text" in regression("--groups", f"tract={listed}").err


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--epsilon", "0"), "epsilon: must be above zero, not 0.0"),
        (("--epsilon", "nan"), "epsilon: must be a finite number, not nan"),
        (("--bounds", "pir=0,2"), "--bounds: 'pir' is given twice"),
        (("--bounds", "age=0,2"), "bounds: 'age' is not among the columns pir, kir"),
        (("--bounds", "age"), "--bounds: must look like NAME=VALUE, not 'age'"),
        (("--bounds", "age=0"), "--bounds age: must be LOWER,UPPER, not '0'"),
        (("--bounds", "age=0,x"), "--bounds age: 'x' is not a number"),
        (("--bounds", "age=private:1,0"), "within: lower must be below upper"),
        (("--censored", "pir=0,1"), "--censored: 'pir' has bounds already; give one of the two"),
        (("--censored", "pir=0,1,left"), "--censored pir: sides must be one of both, lower, upper"),
        (("--censored", "pir=1,0"), "--censored pir: lower must be below upper"),
        (("--censored", "pir=1"), "--censored pir: must be LOWER,UPPER or LOWER,UPPER,SIDES"),
        (
            ("--mechanism", "gaussian"),
            "--delta: --mechanism gaussian needs one, such as --delta 1e-6",
        ),
        (("--mechanism", "gauss"), "mechanism: must be 'laplace' or 'gaussian', not 'gauss'"),
        (("--neighbours", "add"), "neighbours: must be 'replace-one' or 'add-remove', not 'add'"),
        (("--sizes", "public"), "sizes: goes with --groups"),
        (("--fill", "pir=7"), "--fill pir: 7 lies outside the column's bounds (0, 1)"),
        (("--fill", "pir=much"), "--fill pir: 'much' is not a number"),
        (("--fill", "pir=0", "--fill", "pir=1"), "--fill: 'pir' is given twice"),
        (("--split", "gram=0"), "--split gram: must be above zero"),
        (("--split", "all=1"), "split: must give a share to each of gram"),
        (("--split", "gram=1", "--split", "gram=2"), "--split: 'gram' is given twice"),
        (("--dataset", "people"), "dataset: names an account of a ledger, and no ledger is given"),
        (("--ledger", "nowhere.db"), "there is no ledger 'nowhere.db'; create one with"),
        (("--y", "smoker", "--bounds", "smoker=0,1"), "bounds: 'kir' is not among the columns"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, tuple) else "",
)
def test_refusals(words: tuple[str, ...], message: str, regression: Run, out: Path) -> None:
    ended = regression(*words)
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("error: ")
    assert message in ended.err
    assert ended.err.count("\n") == 1  # however long: never broken into lines
    assert not out.exists()


def test_a_misspelt_column_is_not_blamed_on_its_bounds(
    noisewise: Run, people: Path, out: Path
) -> None:
    words = ("--x", "pirr", *REGRESSION[2:], "--epsilon", 1, "--out", out)
    ended = noisewise("release", "linear-regression", people, *words)
    assert ended.err == (
        "error: column 'pirr' has no bounds, and 'pir' has bounds but is no column of this "
        "release: is one of them misspelt?\n"
    )


def test_columns_of_a_csv_file_that_are_not_there(
    noisewise: Run, people: Path, out: Path, tmp_path: Path
) -> None:
    words = ("--x", "pirr", "--y", "kir", "--bounds", "pirr=0,1", "--bounds", "kir=0,1")

    def refused(source: Path) -> str:
        ended = noisewise(
            "release", "linear-regression", source, *words, "--epsilon", 1, "--out", out
        )
        assert ended.code == 1
        return str(ended.err)

    # Another column that was asked for is there: the first line is one of names.
    assert "it has: 'pir', 'kir', 'tract', 'smoker', 'visits', 'code'" in refused(people)
    other = tmp_path / "semicolons.csv"
    other.write_text(people.read_text().replace(",", ";"))
    assert "columns must be separated by commas" in refused(other)
    headless = tmp_path / "headless.csv"
    headless.write_text("\n".join([*LINES[1:], ""]))
    assert refused(headless).endswith("names are read from its first line\n")
    headless.write_text("kir,0.75\n0.5,1\n")  # a record that has the name of a column in it
    assert "0.75" not in refused(headless)


def test_text_where_a_number_belongs(noisewise: Run, people: Path, out: Path) -> None:
    words = ("--x", "pir", "--y", "smoker", "--bounds", "pir=0,1", "--bounds", "smoker=0,1")
    ended = noisewise("release", "linear-regression", people, *words, "--epsilon", 1, "--out", out)
    assert ended.code == 1
    assert ended.err == "error: column 'smoker' holds something that is not a number\n"


def test_a_fill_of_another_type(noisewise: Run, people: Path, out: Path) -> None:
    words = ("--column", "tract", "--family", "categorical", "--levels", "1,2", "--epsilon", 1)
    for value in ("3", "1.5", "inf", "yes"):
        ended = noisewise(
            "release", "exponential-family", people, *words, "--fill", value, "--out", out
        )
        assert (ended.code, ended.out) == (1, "")
        assert value in ended.err
        assert "is not among the column's levels" in ended.err


@pytest.mark.parametrize(
    "words",
    [
        ("releese",),
        ("release", "linear-regresion", "people.csv"),
        ("release", "linear-regression"),
        ("release", "linear-regression", "people.csv", "--x", "a"),
        ("release", "linear-regression", "people.csv", *REGRESSION, "--epsilon", "much"),
        ("release", "linear-regression", "people.csv", "--boundz", "a=0,1"),
        ("inspect",),
    ],
    ids=" ".join,
)
def test_wrong_usage(words: tuple[str, ...], noisewise: Run) -> None:
    ended = noisewise(*words)
    assert (ended.code, ended.out) == (2, "")
    assert "Usage: noisewise" in ended.err


@pytest.mark.parametrize("name", ["[red]people[/red].csv", ":cat:.csv", "[/].csv", "100%.csv"])
def test_names_are_shown_as_they_are(name: str, noisewise: Run, out: Path) -> None:
    ended = noisewise(
        "release", "linear-regression", name, *REGRESSION, "--epsilon", 1, "--out", out
    )
    assert ended.err == f"error: source: no file matches '{name}'\n"


# -- where the release goes ------------------------------------------------------------------------


@pytest.fixture
def book(noisewise: Run, tmp_path: Path) -> Path:
    path = tmp_path / "ledger.db"
    ended = noisewise("ledger", "set", path, "--dataset", "people", "--epsilon", 0.5)
    assert ended.code == 0
    return path


def spent(book: Path) -> float:
    with open_ledger(book) as ledger:
        return float(ledger.accounts()[0].spent)


def test_an_impossible_place_is_found_before_anything_is_spent(
    regression: Run, book: Path, tmp_path: Path
) -> None:
    places = {tmp_path / "missing" / "r.json": "there is no folder", tmp_path: "cannot be written"}
    places[Path("/dev/null")] = "cannot be written"  # would be replaced by an ordinary file
    for place, message in places.items():
        ended = regression("--ledger", str(book), "--out", str(place), epsilon=0.25)
        assert ended.code == 1
        assert ended.err.startswith("error: --out: ")
        assert message in ended.err
    assert spent(book) == 0


def test_a_release_that_cannot_be_saved_is_not_lost(
    regression: Run, book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise nw.ReleaseError("release: cannot write: No space left on device")

    monkeypatch.setattr(nw.Release, "save", full)
    ended = regression("--ledger", str(book), epsilon=0.25)
    assert ended.code == 1
    assert "standard output instead" in ended.err
    assert "No space left" in ended.err
    assert nw.Release.from_json(ended.out).receipt is not None
    assert spent(book) == 0.25


def test_a_release_under_a_ledger(noisewise: Run, regression: Run, book: Path, out: Path) -> None:
    refused = regression("--ledger", str(book))
    assert refused.code == 1
    assert "asks for epsilon 1, and 0.5 remains" in refused.err
    assert spent(book) == 0
    made = regression("--ledger", str(book), epsilon=0.25)
    assert made.out.endswith("Booked on dataset 'people', where epsilon 0.25 of 0.5 is left.\n")
    receipt = loaded(made, out).receipt
    assert receipt is not None
    (account,) = json.loads(noisewise("ledger", "show", book, "--json").out)["accounts"]
    assert (account["spent"], account["remaining"]) == (0.25, 0.25)
    assert receipt.entry in noisewise("inspect", out).out
    audited = noisewise("ledger", "audit", book, out)
    assert audited.code == 0
    assert "1 release(s) paid for" in audited.out
    regression("--no-ledger")
    unpaid = noisewise("ledger", "audit", book, out)
    assert unpaid.code == 1
    assert "no ledger paid for this release" in " ".join(unpaid.out.split())


# -- help ------------------------------------------------------------------------------------------


def verbs(command: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, below in getattr(command, "commands", {}).items():
        yield from verbs(below, *path, name)


VERBS = dict(verbs(typer.main.get_command(app)))


@pytest.mark.parametrize("path", VERBS, ids=" ".join)
def test_help(path: tuple[str, ...], noisewise: Run) -> None:
    ended = noisewise(*path, "--help")
    assert (ended.code, ended.err) == (0, "")
    assert "Usage: noisewise" in ended.out
    assert "…" not in ended.out  # nothing is cut off
    assert max(len(line) for line in ended.out.splitlines()) <= 80


@pytest.mark.parametrize("path", VERBS, ids=" ".join)
def test_everything_is_explained(path: tuple[str, ...]) -> None:
    command = VERBS[path]
    assert command.help
    for parameter in command.params:
        assert getattr(parameter, "help", None), f"{parameter.name} has no help"


@pytest.mark.parametrize("path", [(), ("release",), ("ledger",)])
def test_without_words_the_verbs_are_listed(path: tuple[str, ...], noisewise: Run) -> None:
    ended = noisewise(*path)
    assert "Commands" in ended.out + ended.err


def test_version(noisewise: Run) -> None:
    assert noisewise("--version").out == f"noisewise {nw.__version__}\n"


def test_a_real_process(people: Path, out: Path) -> None:
    """The installed command: codes, and which stream says what."""
    command = Path(sys.executable).with_name("noisewise")

    def call(*words: object) -> tuple[int, str, str]:
        ended = subprocess.run(
            [command, "release", "linear-regression", people, *map(str, words)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        return ended.returncode, ended.stdout, ended.stderr

    code, said, complaint = call(*REGRESSION, "--epsilon", 1, "--out", out)
    assert (code, complaint) == (0, "")
    assert said.startswith("wrote ")
    code, said, complaint = call(*REGRESSION, "--epsilon", -1, "--out", out)
    assert (code, said) == (1, "")
    assert complaint == "error: --epsilon: must be above zero, not -1.0\n"
