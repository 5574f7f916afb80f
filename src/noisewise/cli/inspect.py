"""``noisewise inspect FILE``: what was released, under what guarantee, how much noise there is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from noisewise.artifact import (
    ArgumentError,
    Block,
    Bounds,
    Censored,
    PartitionRelease,
    QuantileSum,
    Release,
)
from noisewise.artifact.guarantee import noise_sd
from noisewise.artifact.readable_numbers import probability, probability_range, readable
from noisewise.cli.console import plain_console, show_json
from noisewise.cli.options import AsJson

MAX_COMPONENTS = 24
"""Components of a statistic that are listed on a terminal (chosen)."""


def inspect(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A release file.")],
    as_json: AsJson = False,
    registry: Annotated[
        bool,
        typer.Option(
            "--registry",
            help="Print a draft record for a public registry of deployments, in YAML.",
        ),
    ] = False,
) -> None:
    """Show what a release file holds: guarantee, statistics, noise against signal."""
    if registry and as_json:
        raise ArgumentError("--registry, --json: give one of them")
    release = Release.load(file)
    if registry:
        typer.echo(release.registry_record(), nl=False)
    elif as_json:
        show_json(summary(release))
    else:
        show(release, plain_console())


def summary(release: Release) -> dict[str, Any]:
    """Return what a release holds, for scripts."""
    return {
        "family": release.family,
        "model": {k: list(v) if isinstance(v, tuple) else v for k, v in release.model.items()},
        "guarantee": release.statement(),
        "epsilon": release.guarantee.epsilon,
        "delta": release.guarantee.delta,
        "rho": release.guarantee.rho,
        "neighbours": release.guarantee.neighbours,
        "unit": release.unit,
        "max_records": release.guarantee.max_records,
        "where": release.where,
        "n": release.population.policy,
        "groups": 1 if release.groups is None else len(release.groups.keys),
        "bounds": {c: _bounds(b) for c, b in release.bounds.items()},
        **_answer(release),
        "statistics": [{"kind": b.statistic.kind, "components": rows(b)} for b in release.blocks],
    }


def _bounds(bounds: Bounds) -> dict[str, Any]:
    sides = bounds.sides if isinstance(bounds, Censored) else None
    return {"lower": bounds.lower, "upper": bounds.upper, "cut": sides}


def _answer(release: Release) -> dict[str, Any]:
    """Return what a partition release says, with 90 % intervals for the noise in the value."""
    if not isinstance(release, PartitionRelease):
        return {}
    answer = release.answer()
    value = answer.quantile if _is_quantile(release) else answer.probability
    ends = answer.band(0.9).tolist()
    return {
        "answer": np.atleast_1d(value).tolist(),
        "noise_interval_90": ends,
        "cautions": list(answer.cautions),
    }


def _is_quantile(release: Release) -> bool:
    return any(isinstance(block.statistic, QuantileSum) for block in release.blocks)


def rows(block: Block) -> list[dict[str, Any]]:
    """Return, per component, the typical size over groups, the noise's spread, and their ratio."""
    units = np.array(block.statistic.units)
    spread = noise_sd(block.noise) * units
    size = np.median(np.abs(block.scaled), axis=1)
    return [
        {
            "statistic": name,
            "value": float(values[0]) if len(values) == 1 else None,
            "typical_size": float(typical),
            "noise_sd": float(sd),
            # At an extreme epsilon the noise is zero but for odds nobody will live to see.
            "signal_to_noise": float(typical / sd) if sd > 0 else None,
        }
        for name, values, typical, sd in zip(
            block.statistic.names, block.scaled, size, spread, strict=True
        )
    ]


def show(release: Release, console: Console) -> None:
    """Print what a release holds, for a person at a terminal."""
    console.print(f"{release.family} release, made by {release.software}", style="bold")
    console.print(release.statement())
    if "formula" in release.model:
        console.print(f"formula: {release.model['formula']}")
    console.print(_population(release))
    if release.where is not None:
        console.print(f"selected: records with {release.where}")
    if release.groups is not None:
        console.print(f"groups: {len(release.groups.keys)} (column {release.groups.column!r})")
    for column, bounds in release.bounds.items():
        if isinstance(bounds, Censored):
            console.print(f"censored: of {column!r}, {bounds.in_words()}")
    for words in release.searches_in_words():
        console.print(words)
    if release.receipt is not None:
        console.print(f"ledger entry {release.receipt.entry} (dataset {release.receipt.dataset!r})")
    for block in release.blocks:
        console.print(_table(release, block))
    answer = _answer(release)
    if answer:
        _show_answer(answer, _is_quantile(release), console)
    ratios = [row["signal_to_noise"] for block in release.blocks for row in rows(block)]
    if not answer and any(ratio is not None and ratio < 1 for ratio in ratios):
        console.print(
            "Where the ratio is below about 1, the number is mostly noise. Inference that models "
            "the noise stays honest there; plugging the numbers in does not."
        )


def _show_answer(answer: dict[str, Any], searched: bool, console: Console) -> None:
    said = readable if searched else probability
    between = _between if searched else probability_range
    for value, (low, high) in zip(answer["answer"], answer["noise_interval_90"], strict=True):
        console.print(
            f"answer: {said(value)} ({between(low, high)}: 90 % of the noise in the value)"
        )
    if searched:
        console.print(
            "The interval covers the noise in the value, not a private search that missed."
        )
    for caution in answer["cautions"]:
        console.print(f"caution: {caution}", style="yellow")


def _between(lower: float, upper: float) -> str:
    return f"{readable(lower)} to {readable(upper)}"


def _population(release: Release) -> str:
    population, counted = release.population, _counted(release)
    if population.policy == "public":
        return f"{counted}: {sum(population.sizes)} (public, exact)"
    if all(block.statistic.over_partitions for block in release.blocks):
        return f"{counted}: secret"
    known = "" if population.total is None else f"; {population.total} in all (public)"
    return f"{counted}: secret, released with noise{known}"


def _counted(release: Release) -> str:
    """Return what n is a number of."""
    if release.guarantee.max_records == 1:
        return "people (one record each)"
    weighed = any(block.statistic.person_column for block in release.blocks)
    return "people" if weighed else "records"


def _table(release: Release, block: Block) -> Table:
    grouped = release.groups is not None
    table = Table(
        title=f"{block.statistic.kind}: {block.statistic.unit_words}", title_justify="left"
    )
    table.add_column("statistic", overflow="fold")
    table.add_column("median size" if grouped else "value", justify="right")
    table.add_column("noise sd", justify="right")
    table.add_column("size/noise", justify="right")
    listed = rows(block)
    for row in listed[:MAX_COMPONENTS]:
        value = row["typical_size"] if row["value"] is None else row["value"]
        table.add_row(
            row["statistic"],
            readable(value, 6),
            readable(row["noise_sd"]),
            "-" if row["signal_to_noise"] is None else readable(row["signal_to_noise"], 3),
        )
    if len(listed) > MAX_COMPONENTS:
        table.caption = f"and {len(listed) - MAX_COMPONENTS} more"
    return table
