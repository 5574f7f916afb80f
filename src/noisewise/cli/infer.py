"""``noisewise infer RELEASE``: from a public file to a posterior file, and what it says."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noisewise.artifact import ArgumentError, Release
from noisewise.cli.console import frame_table, plain_console, show_json, tell_cautions
from noisewise.cli.messages import Flag, in_shell_words
from noisewise.cli.options import (
    AsJson,
    AskedModel,
    ModelOptions,
    OtherCovariates,
    OtherFormula,
    OtherResponse,
    PriorFile,
    check_writable,
    is_read_by,
    parse_level,
    read_options,
    read_prior_option,
)
from noisewise.cli.public_features import FeaturesFile, ParentColumn, Pool, read_features

if TYPE_CHECKING:
    import pandas as pd

    from noisewise.inference import Result

SUMMARY_ENDING = ".parquet"
"""How the name of a file ends that takes a summary; any other name is that of a folder."""
DIAGNOSTICS = ("rhat", "ess")
"""Columns of a summary that the status says in words."""
MIDDLE = ("median", "lower", "upper")
"""Columns of a summary that are read first."""


def infer(
    releases: Annotated[
        list[Path],
        typer.Argument(metavar="RELEASE", help="A release file, or several of the same records."),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Where the result goes: a posterior (.nc), a fitted graphical model (.json) or "
            "its posterior (.npz); with --keep summary a table (.parquet), or a folder.",
        ),
    ],
    method: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Such as exact, gibbs or naive; left out, the best there is."
        ),
    ] = None,
    model: AskedModel = None,
    x: OtherCovariates = None,
    y: OtherResponse = None,
    formula: OtherFormula = None,
    prior: PriorFile = None,
    option: ModelOptions = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same draws.")] = 0,
    chains: Annotated[int, typer.Option(help="Independent chains.")] = 4,
    draws: Annotated[int, typer.Option(help="Draws kept per chain.")] = 1000,
    same_population: Annotated[
        bool,
        typer.Option(
            "--same-population",
            help="Several releases are of the same records. To be said, unless they name one "
            "dataset of one ledger.",
        ),
    ] = False,
    pool: Pool = False,
    features: FeaturesFile = None,
    parent: ParentColumn = None,
    groups: Annotated[
        list[str] | None,
        typer.Option("--group", metavar="KEY", help="A group to infer, if not all; repeat."),
    ] = None,
    keep: Annotated[
        str,
        typer.Option(
            metavar="draws|summary",
            help="What to keep: draws, or of many groups the mean, quantiles and convergence of "
            "each, in slabs of groups. A run into a folder that was killed goes on where it "
            "stopped.",
        ),
    ] = "draws",
    part: Annotated[
        str | None,
        typer.Option(
            metavar="K/N",
            help="With --keep summary and a folder, the K-th of N parts, for a scheduler; "
            "afterwards, without --part, the slabs are collected.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Infer a result that accounts for the noise, and keep it in a file.

    ArviZ and other tools read posteriors in netCDF; `noisewise predict`, `sample`, `marginal` and
    `report` take any result. One that has not converged is kept all the same, with a warning on
    standard error.
    """
    given = [Release.load(path) for path in releases]
    # Before any sampling: what cannot be written would be lost.
    in_slabs = keep == "summary" and out.suffix != SUMMARY_ENDING
    if not in_slabs:
        check_writable(out, _is_result, "posterior")
    from noisewise.inference import infer as run

    options = read_options(option)
    flags = {name: Flag(f"--option {name}", separator="=") for name in options}
    with in_shell_words(flags):
        result = run(
            given, method, x=x or None, y=y, prior=read_prior_option(prior), seed=seed,
            chains=chains, draws=draws, same_population=same_population, pool=pool,
            features=read_features(features, given[0], parent), parent=parent,
            groups=_typed_keys(groups, given[0]),
            **{"model": model, "formula": formula, **options, **_kept(keep, part),
               "out": out if in_slabs else None},
        )  # fmt: skip
    if not in_slabs:
        result.save(out)
    if as_json:
        show_json({"out": str(out), **_summary(result, given)})
    else:
        _show(result, given, out)
    if not result.converged:
        typer.echo(f"warning: {result.status}", err=True)


def _kept(keep: str, part: str | None) -> dict[str, Any]:
    """Return the arguments of ``infer`` that say what is kept."""
    if part is None:
        return {"keep": keep}
    numbers = part.split("/")
    if len(numbers) != 2 or not all(n.isascii() and n.isdigit() for n in numbers):
        raise ArgumentError(f"--part: must be like 3/16, the third of sixteen parts, not {part!r}")
    return {"keep": keep, "part": (int(numbers[0]), int(numbers[1]))}


def _typed_keys(given: list[str] | None, release: Release) -> list[Any] | None:
    """Return the keys of groups in the type that the release has them in."""
    if not given or release.groups is None:
        return given or None
    return [parse_level(key, release.groups.keys, "--group") for key in given]


def _is_result(path: Path) -> bool:
    from noisewise.inference import load_posterior

    return is_read_by(load_posterior, ArgumentError, path)


def _summary(result: Result, releases: list[Release]) -> dict[str, Any]:
    """Return the result for scripts."""
    from noisewise.inference import Posterior, PosteriorSummary

    return {
        "method": result.method,
        "prior": result.prior if isinstance(result, Posterior | PosteriorSummary) else "",
        "guarantees": [release.statement() for release in releases],
        "where": [release.where for release in releases],
        "converged": result.converged,
        "status": result.status,
        "cautions": list(result.cautions),
        "parameters": _plain_rows(result.summary().reset_index()),
        **_population(result),
    }


def _population(result: Result) -> dict[str, Any]:
    """Return the population of pooled groups for scripts; nothing where they are not pooled."""
    shared = getattr(result, "population", None)
    return {} if shared is None else {"population": _plain_rows(shared.summary().reset_index())}


def _plain_rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows as JSON has them: a number that is none becomes null."""
    return [
        {str(k): None if isinstance(v, float) and v != v else v for k, v in row.items()}
        for row in frame.to_dict("records")
    ]


def _median_first(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a summary for a person: the median leads; a mean that says nothing is a dash."""
    from noisewise.inference.summary_table import DECIDED_BY_TAILS, beyond_interval

    columns = [c for c in rows if c not in DIAGNOSTICS]
    if "median" not in columns:
        return rows[columns]
    last = [c for c in (*DECIDED_BY_TAILS, "times_wider") if c in columns]
    first = [c for c in columns if c not in (*last, *MIDDLE)]
    shown = rows[[*first, *MIDDLE, *last]].copy()
    shown.loc[beyond_interval(rows), list(DECIDED_BY_TAILS)] = math.nan
    return shown


def _show(result: Result, releases: list[Release], out: Path) -> None:
    """Print the result for a person at a terminal."""
    from noisewise.inference import Posterior, PosteriorSummary
    from noisewise.inference.summary_table import WHY_UNTOLD, beyond_interval

    console = plain_console()
    what = "Posterior" if isinstance(result, Posterior | PosteriorSummary) else "Result"
    console.print(f"{what} of {result.title}, method {result.method}", style="bold")
    for release in releases:
        console.print(release.statement())
        if release.where is not None:
            console.print(f"selected: records with {release.where}")
    tell_cautions(result, console)
    rows = result.summary().reset_index()
    title = "In the units of the data" + ("; 95 % intervals" if "lower" in rows else "")
    console.print(frame_table(_median_first(rows), title))
    if beyond_interval(rows).any():
        console.print(f"{WHY_UNTOLD}.")
    if isinstance(result, Posterior) and result.population is not None:
        shared = result.population.summary().reset_index()
        shared = shared[[c for c in shared if c not in DIAGNOSTICS]]
        console.print(frame_table(shared, "What the groups share; 95 % intervals"))
    console.print(result.convergence)
    console.print(f"wrote {out}", soft_wrap=True)
