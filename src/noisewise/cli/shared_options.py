"""Options that several verbs share, and the files that they name: results, pages and tables.

Each option is named and described once. What is to be written is checked before time or budget is
spent, and never goes over other files.
"""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from noisewise.artifact import ArgumentError, NoisewiseError, Release
from noisewise.artifact.atomic_file import atomic_write
from noisewise.cli.parsing import parse_assignments

if TYPE_CHECKING:
    import pandas as pd

    from noisewise.inference import Result


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
