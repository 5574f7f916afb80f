"""Options that several verbs share: each is named and described once."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from noisewise.artifact import ArgumentError
from noisewise.cli.parsing import parse_assignments

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
