"""Options that several verbs share, and how their text is read."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from noisewise.artifact import ArgumentError

LONGEST_RANGE = 10_000_000
"""Entries of a list written as a range: more is a slip of the hand, and would not fit in memory."""

COLUMN_BOUNDS = "COLUMN=LOWER,UPPER"
COLUMN_LIST = "COLUMN=LIST"

Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="Path, folder or glob of CSV, Parquet or Arrow files, or a database URL such as "
        "postgresql://host/db#table.",
    ),
]
Family = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="bernoulli, binomial, categorical, poisson, geometric, exponential, gamma or normal.",
    ),
]
Cliques = Annotated[
    list[str],
    typer.Option("--clique", metavar="COLUMN,COLUMN", help="One table over columns; repeat."),
]
Levels = Annotated[
    list[str],
    typer.Option(
        metavar=COLUMN_LIST,
        help="Public categories of every column: a,b,c or 0..9 or a file, one per line; repeat.",
    ),
]
Seed = Annotated[int, typer.Option(help="Of the simulation.")]
Epsilon = Annotated[
    float, typer.Option(metavar="E", help="The whole privacy budget of this release.")
]
Mechanism = Annotated[str, typer.Option(metavar="NAME", help="laplace, or gaussian with --delta.")]
Delta = Annotated[float | None, typer.Option(metavar="D", help="For gaussian: such as 1e-6.")]
Neighbours = Annotated[
    str,
    typer.Option(
        metavar="RELATION",
        help="replace-one (n is public) or add-remove (n is secret, hence noisy).",
    ),
]
Groups = Annotated[
    str | None,
    typer.Option(
        metavar=COLUMN_LIST,
        help="One statistic per group of a public LIST: a,b,c or 0..99 or a file with one key "
        "per line.",
    ),
]
Sizes = Annotated[
    str | None, typer.Option(metavar="public", help="Group sizes are public knowledge.")
]
Fill = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN=VALUE", help="Public value for missing entries; repeat."),
]
Ledger = Annotated[str | None, typer.Option(metavar="PATH", help="Path or URL of a budget ledger.")]
Dataset = Annotated[
    str | None, typer.Option(metavar="NAME", help="Account in the ledger, where it has several.")
]
Out = Annotated[Path, typer.Option(metavar="FILE", help="Where the release goes.")]
OtherX = Annotated[
    list[str] | None,
    typer.Option(
        "--x", metavar="COLUMN", help="Covariate, if others than the owner named; repeat."
    ),
]
OtherY = Annotated[
    str | None,
    typer.Option("--y", metavar="COLUMN", help="Response, likewise: any released column."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
CountClamped = Annotated[
    bool,
    typer.Option("--count-clamped", help="Also release how many records lie outside the bounds."),
]
Split = Annotated[
    list[str] | None,
    typer.Option(metavar="PART=WEIGHT", help="Relative share of the budget; repeat."),
]


def assignment(text: str, option: str) -> tuple[str, str]:
    """``name=value``; a column name may itself contain an equals sign."""
    name, equals, value = text.rpartition("=")
    if not equals or not name or not value:
        raise ArgumentError(f"{option}: must look like NAME=VALUE, not {text!r}")
    return name, value


def cliques(given: Iterable[str]) -> list[list[str]]:
    """``COLUMN,COLUMN``, repeated."""
    return [[column.strip() for column in text.split(",")] for text in given]


def assignments(given: Iterable[str] | None, option: str) -> dict[str, str]:
    """``name=value``, repeated, each name once."""
    found: dict[str, str] = {}
    for text in given or ():
        name, value = assignment(text, option)
        if name in found:
            raise ArgumentError(f"{option}: {name!r} is given twice")
        found[name] = value
    return found


def number(text: str, option: str) -> float:
    """A number as people write it."""
    try:
        return float(text)
    except ValueError:
        raise ArgumentError(f"{option}: {text!r} is not a number") from None


def bounds_of(text: str, option: str) -> Any:
    """``0,1``; or ``private:0,1000000`` to let part of the budget choose within that range."""
    from noisewise.release import PrivateBounds

    chosen = text.removeprefix("private:")
    ends = chosen.split(",")
    if len(ends) != 2:
        raise ArgumentError(f"{option}: must be LOWER,UPPER, not {text!r}")
    pair = number(ends[0], option), number(ends[1], option)
    return PrivateBounds(pair) if chosen != text else pair


def public_list(text: str, option: str) -> list[Any]:
    """``a,b,c``, ``0..9``, or the name of a file with one entry per line."""
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


def _range(first: int, last: int, option: str) -> list[Any]:
    if not 0 <= last - first < LONGEST_RANGE:
        raise ArgumentError(
            f"{option}: {first}..{last} must run upwards, over at most {LONGEST_RANGE} numbers"
        )
    return list(range(first, last + 1))


def _lines(path: Path, option: str) -> list[str]:
    try:
        return path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        raise ArgumentError(f"{option}: {str(path)!r} cannot be read as UTF-8 text") from None


def _typed(entries: list[str]) -> list[Any]:
    """Whole numbers where all of them are; "007" is a text."""
    return [int(e) for e in entries] if all(_is_whole(e) for e in entries) else list(entries)


def _is_whole(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdecimal() and (digits == "0" or digits[0] != "0")


def level(text: str, listed: list[Any] | None, option: str) -> Any:
    """A value in the type of what it stands for: a number, or an entry of a public list."""
    if listed is None:
        return number(text, option)
    return int(text) if isinstance(listed[0], int) and _is_whole(text) else text


def group_list(text: str | None) -> dict[str, list[Any]] | None:
    """``COLUMN=LIST``."""
    if text is None:
        return None
    column, value = assignment(text, "--groups")
    return {column: public_list(value, "--groups")}


def weights(given: list[str] | None) -> dict[str, float] | None:
    """``PART=WEIGHT``, repeated."""
    found = {part: number(w, "--split") for part, w in assignments(given, "--split").items()}
    return found or None


def show_json(value: object) -> None:
    """For scripts: one JSON document on standard output."""
    typer.echo(json.dumps(value, indent=2))
