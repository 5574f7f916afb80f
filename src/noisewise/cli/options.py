"""Options of the command line: how their text becomes values, and those that several verbs share.

Each shared option is named and described once. What is to be written, results, pages and tables, is
checked before time or budget is spent, and never goes over other files.
"""

from __future__ import annotations

import datetime
import inspect
import json
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from noisewise.artifact import ArgumentError, Censored, Level, NoisewiseError, Release, ReleaseError
from noisewise.artifact.atomic_file import atomic_write
from noisewise.privacy.arguments import PrivateBounds, number_or_date

if TYPE_CHECKING:
    import pandas as pd

    from noisewise.inference import Result


MAX_RANGE = 10_000_000
"""Entries of a list written as a range (chosen): more is a slip, and would not fit in memory."""


def parse_assignment(text: str, option: str) -> tuple[str, str]:
    """Return the two sides of ``NAME=VALUE``; a column name may itself contain an equals sign."""
    name, equals, value = text.rpartition("=")
    if not equals or not name or not value:
        raise ArgumentError(f"{option}: must look like NAME=VALUE, not {text!r}")
    return name, value


def parse_assignments(given: Iterable[str] | None, option: str) -> dict[str, str]:
    """Return the values of ``NAME=VALUE``, repeated, each name once."""
    values: dict[str, str] = {}
    for text in given or ():
        name, value = parse_assignment(text, option)
        if name in values:
            raise ArgumentError(f"{option}: {name!r} is given twice")
        values[name] = value
    return values


def parse_widths(given: list[str] | None, option: str) -> float | dict[str, float] | None:
    """Return one number, or the numbers of ``NAME=NUMBER``, repeated, each name once."""
    if not given:
        return None
    if len(given) == 1 and "=" not in given[0]:
        return parse_number(given[0], option)
    return parse_numbers(given, option)


def parse_numbers(given: Iterable[str] | None, option: str) -> dict[str, float]:
    """Return the numbers of ``NAME=NUMBER``, repeated, each name once."""
    texts = parse_assignments(given, option)
    return {name: parse_number(text, f"{option} {name}") for name, text in texts.items()}


def parse_guesses(
    given: Iterable[str] | None, option: str
) -> dict[str, float | str | tuple[float, float] | dict[str, float]]:
    """Return what ``NAME=VALUE``, repeated, says of parameters and columns."""
    texts = parse_assignments(given, option)
    return {name: _guess(text, f"{option} {name}") for name, text in texts.items()}


def _guess(text: str, option: str) -> float | str | tuple[float, float] | dict[str, float]:
    """Return a number, a word, the pair of ``12,2.8`` or the shares of ``female:0.5,male:0.5``."""
    parts = [part.strip() for part in text.split(",")]
    if all(":" in part for part in parts):
        pairs = [part.rpartition(":") for part in parts]
        return {level.strip(): parse_number(share, option) for level, _, share in pairs}
    if len(parts) == 2:
        return parse_number(parts[0], option), parse_number(parts[1], option)
    return parts[0] if parts[0].isalpha() else parse_number(text, option)


def parse_number(text: str, option: str) -> float:
    """Return a number as people write it."""
    try:
        return float(text)
    except ValueError:
        raise ArgumentError(f"{option}: {text!r} is not a number") from None


def parse_number_or_date(text: str, option: str) -> float:
    """Return a number, or a date such as ``1950-12-31`` as the number that stands for it."""
    end = _end(text, option)
    return number_or_date(end, option) if isinstance(end, datetime.date) else end


def parse_names(text: str) -> list[str]:
    """Return the columns of ``COLUMN,COLUMN``."""
    return [column.strip() for column in text.split(",")]


End = float | datetime.date
"""An end of bounds."""


def parse_bounds(text: str, option: str) -> tuple[End, End] | PrivateBounds:
    """Return the bounds that ``0,1`` or ``1900-01-01,2010-12-31`` gives; dates stay dates.

    ``private:0,1000000`` lets part of the budget choose within that range.
    """
    range_text = text.removeprefix("private:")
    ends = range_text.split(",")
    if len(ends) != 2:
        raise ArgumentError(f"{option}: must be LOWER,UPPER, not {text!r}")
    if range_text == text:
        return _end(ends[0], option), _end(ends[1], option)
    return PrivateBounds(
        (parse_number_or_date(ends[0], option), parse_number_or_date(ends[1], option))
    )


def _end(text: str, option: str) -> End:
    try:
        date = datetime.date.fromisoformat(text.strip())
    except ValueError:
        return parse_number(text, option)
    return date if "-" in text else parse_number(text, option)


def parse_censored(text: str, option: str) -> Censored:
    """Return the bounds that ``0,20`` or ``0,20,upper`` gives, which cut values off."""
    lower, *others = text.split(",")
    if len(others) not in (1, 2):
        raise ArgumentError(f"{option}: must be LOWER,UPPER or LOWER,UPPER,SIDES, not {text!r}")
    ends = parse_number(lower, option), parse_number(others[0], option)
    try:
        return Censored(*ends, *(side.strip() for side in others[1:]))  # type: ignore[arg-type]
    except ReleaseError as error:
        raise ArgumentError(str(error).replace("bounds:", f"{option}:", 1)) from None


def parse_list(text: str, option: str) -> list[Level]:
    """Return the public list that ``a,b,c``, ``0..9`` or a file with one entry per line gives."""
    first, dots, last = text.partition("..")
    if dots and _is_whole(first) and _is_whole(last):
        return _range(int(first), int(last), option)
    path = Path(text)
    if path.is_file():
        lines = _lines(path, option)
        return _typed([line.strip() for line in lines if line.strip()])
    if "," not in text and ("/" in text or path.suffix):
        raise ArgumentError(f"{option}: there is no file {text!r}")
    return _typed([entry.strip() for entry in text.split(",")])


def parse_level(text: str, listed: Sequence[Level] | None, option: str) -> Level | float:
    """Return a value in the type of what it stands for.

    Args:
        text: what was typed.
        listed: the public list of the column; without one, the value is a number or a date.
        option: the option, for messages.
    """
    if listed is None:
        return parse_number_or_date(text, option)
    return int(text) if isinstance(listed[0], int) and _is_whole(text) else text


def _range(first: int, last: int, option: str) -> list[Level]:
    if not 0 <= last - first < MAX_RANGE:
        raise ArgumentError(
            f"{option}: {first}..{last} must run upwards, over at most {MAX_RANGE} numbers"
        )
    return list(range(first, last + 1))


def _lines(path: Path, option: str) -> list[str]:
    try:
        return path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        raise ArgumentError(f"{option}: {str(path)!r} cannot be read as UTF-8 text") from None


def _typed(entries: list[str]) -> list[Level]:
    """Return whole numbers where all entries are; "007" is a text."""
    return [int(e) for e in entries] if all(_is_whole(e) for e in entries) else list(entries)


def _is_whole(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdecimal() and (digits == "0" or digits[0] != "0")


ResultFile: TypeAlias = Annotated[
    Path, typer.Argument(metavar="RESULT", help="A file that `noisewise infer` wrote.")
]

PAGE_START = b"<!doctype html>"
"""How every page begins that ``report`` writes."""

OtherCovariates: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--x", metavar="COLUMN", help="Covariate, if others than the owner named; repeat."
    ),
]
OtherResponse: TypeAlias = Annotated[
    str | None,
    typer.Option("--y", metavar="COLUMN", help="Response, likewise: any released column."),
]
OtherFormula: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--formula",
        metavar="TEXT",
        help="Formula, if another than the owner gave, such as 'educ ~ C(sex)'.",
    ),
]
AskedModel: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="NAME",
        help="How the response depends on the covariates, if not as the release says: logistic or "
        "probit for one that is 0 or 1, poisson for counts.",
    ),
]
PriorFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--prior",
        metavar="FILE",
        help='A prior as JSON, such as {"family": "Gamma", "shape": 2, "rate": 1}; left out, a '
        "weak one.",
    ),
]
SimulationSeed: TypeAlias = Annotated[int, typer.Option("--seed", help="Of the simulation.")]
PageFile: TypeAlias = Annotated[
    Path | None,
    typer.Option("--page", metavar="FILE", help="Write it as a page with pictures (.html)."),
]
TableFile: TypeAlias = Annotated[
    Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write a CSV file instead.")
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]

ModelOptions: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="NAME=VALUE",
        help="An option of the model, such as lam=1e-4 or inference=exact; repeat.",
    ),
]
"""Options that only one model has."""


def read_options(given: list[str] | None) -> dict[str, Any]:
    """Return a model's options: JSON where the text is JSON, else the text itself."""
    from noisewise.inference import infer as run

    own = inspect.signature(run).parameters
    options: dict[str, Any] = {}
    for name, text in parse_assignments(given, "--option").items():
        if name in own:
            flag = name.replace("_", "-")
            raise ArgumentError(f"--option {name}: is an option of its own, --{flag}")
        try:
            options[name] = json.loads(text)
        except json.JSONDecodeError:
            options[name] = text
    return options


def read_prior_option(path: Path | None) -> object:
    """Return the prior that ``--prior`` names, or None where it was left out."""
    if path is None:
        return None
    from noisewise.priors.prior_files import read_prior

    try:
        return read_prior(path)
    except ValueError as error:
        raise ArgumentError(f"--prior: {error}") from None


def check_writable(
    out: Path, ours: Callable[[Path], bool], what: str, option: str = "--out"
) -> None:
    """Raise an ArgumentError where a result could not be written, and so would be lost.

    Args:
        out: where the result is to go.
        ours: whether a file that is there already may be replaced.
        what: what such a file would be.
        option: the option that names the file.
    """
    if not out.parent.is_dir():
        raise ArgumentError(f"{option}: there is no folder {str(out.parent)!r}")
    # A device or a pipe would be replaced by an ordinary file.
    if (out.exists() and not out.is_file()) or not os.access(out.parent, os.W_OK):
        raise ArgumentError(f"{option}: {str(out)!r} cannot be written")
    if out.exists() and not ours(out):
        raise ArgumentError(
            f"{option}: {str(out)!r} exists and is not a {what}; it will not be overwritten"
        )


def is_read_by(load: Callable[[Path], object], refusal: type[NoisewiseError], path: Path) -> bool:
    """Return whether a file is one that ``load`` reads; of others it raises ``refusal``."""
    try:
        load(path)
    except refusal:
        return False
    return True


def check_page(out: Path | None, option: str) -> None:
    """Raise an ArgumentError where a page was asked for and could not be written."""
    if out is not None:
        check_writable(out, _is_page, "page", option)


def _is_page(path: Path) -> bool:
    """Return whether a file may be one of our pages: HTML it is, at least."""
    with open(path, "rb") as opened:
        return opened.read(len(PAGE_START)).lower() == PAGE_START


def check_table(out: Path | None) -> None:
    """Raise an ArgumentError where a CSV file was asked for and could not be written."""
    if out is not None:
        check_writable(out, lambda path: path.suffix == ".csv", "file that ends in .csv")


def write_table(rows: pd.DataFrame, out: Path) -> None:
    """Write rows as a CSV file, whole or not at all; `check_table` was asked before."""
    with atomic_write(
        out, lambda why: ArgumentError(f"--out: {str(out)!r} cannot be written: {why}")
    ) as temporary:
        rows.to_csv(temporary, index=False)


def load_result(path: Path) -> Result:
    """Read a file that ``infer`` wrote; an ArgumentError says what else it is."""
    from noisewise.inference import load

    loaded = load(path)
    if isinstance(loaded, Release):
        raise ArgumentError(f"RESULT: {str(path)!r} is a release; run noisewise infer on it first")
    return loaded
