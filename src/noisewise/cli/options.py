"""Options that several verbs share, and how their text is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from noisewise.artifact import ArgumentError

Source = Annotated[
    str,
    typer.Argument(
        help="Path or glob (CSV, Parquet, Arrow), or a database URL such as "
        "postgresql://host/db#table."
    ),
]
Epsilon = Annotated[float, typer.Option(help="The whole privacy budget of this release.")]
Mechanism = Annotated[str, typer.Option(help="laplace, or gaussian (needs --delta).")]
Delta = Annotated[float | None, typer.Option(help="For Gaussian noise, such as 1e-6.")]
Neighbours = Annotated[
    str, typer.Option(help="replace-one (n is public) or add-remove (n is secret, hence noisy).")
]
Groups = Annotated[
    str | None,
    typer.Option(
        help="COLUMN=PATH (one key per line), COLUMN=a,b,c or COLUMN=0..99: a public list, "
        "one release per entry."
    ),
]
Sizes = Annotated[str | None, typer.Option(help="'public' where group sizes are public.")]
Fill = Annotated[
    list[str] | None, typer.Option(help="COLUMN=VALUE: public value for missing entries.")
]
Ledger = Annotated[str | None, typer.Option(help="Path or URL of a budget ledger.")]
Dataset = Annotated[str | None, typer.Option(help="Account in the ledger, where it has several.")]
Out = Annotated[Path, typer.Option(help="Where the release file goes.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
CountClamped = Annotated[
    bool, typer.Option(help="Also release a noisy count of records outside the bounds.")
]
Split = Annotated[
    list[str] | None, typer.Option(help="PART=WEIGHT: relative shares of the budget.")
]


def assignment(text: str, option: str) -> tuple[str, str]:
    """``name=value``; a column name may itself contain an equals sign."""
    name, equals, value = text.rpartition("=")
    if not equals or not name or not value:
        raise ArgumentError(f"{option}: must look like NAME=VALUE, not {text!r}")
    return name, value


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
    ends = [number(part, option) for part in chosen.split(",")]
    if len(ends) != 2:
        raise ArgumentError(f"{option}: must be LOWER,UPPER, not {text!r}")
    pair = (ends[0], ends[1])
    return PrivateBounds(pair) if chosen != text else pair


def public_list(text: str, option: str) -> list[Any]:
    """``a,b,c``, ``0..9``, or the name of a file with one entry per line."""
    first, dots, last = text.partition("..")
    if dots and _is_whole(first) and _is_whole(last):
        return list(range(int(first), int(last) + 1))
    path = Path(text)
    if path.is_file():
        entries = [line.strip() for line in path.read_text().splitlines() if line.strip()]
    elif "/" in text and "," not in text:
        raise ArgumentError(f"{option}: there is no file {text!r}")
    else:
        entries = [entry.strip() for entry in text.split(",")]
    return [int(e) for e in entries] if all(_is_whole(e) for e in entries) else entries


def _is_whole(text: str) -> bool:
    return text.removeprefix("-").isdecimal()


def group_list(text: str | None) -> dict[str, list[Any]] | None:
    """``COLUMN=LIST``."""
    if text is None:
        return None
    column, value = assignment(text, "--groups")
    return {column: public_list(value, "--groups")}


def weights(given: list[str] | None) -> dict[str, float] | None:
    """``PART=WEIGHT``, repeated."""
    if not given:
        return None
    pairs = [assignment(text, "--split") for text in given]
    return {part: number(value, "--split") for part, value in pairs}


def show_json(value: object) -> None:
    """For scripts: one JSON document on standard output."""
    typer.echo(json.dumps(value, indent=2))
