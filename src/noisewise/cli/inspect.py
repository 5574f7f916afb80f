"""``noisewise inspect FILE``: what was released, under what guarantee, how much noise there is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from noisewise.artifact import Block, Release
from noisewise.artifact.views import noise_sd
from noisewise.cli import options as o

MOST_ROWS = 24


def inspect(
    file: Annotated[Path, typer.Argument(help="A release file.")], as_json: o.AsJson = False
) -> None:
    """Show what a release file holds: guarantee, statistics, noise against signal."""
    release = Release.load(file)
    if as_json:
        o.show_json(summary(release))
    else:
        show(release, Console())


def summary(release: Release) -> dict[str, Any]:
    """The same content for scripts."""
    return {
        "family": release.family,
        "model": {k: list(v) if isinstance(v, tuple) else v for k, v in release.model.items()},
        "guarantee": release.guarantee.statement(),
        "epsilon": release.guarantee.epsilon,
        "delta": release.guarantee.delta,
        "rho": release.guarantee.rho,
        "neighbours": release.guarantee.neighbours,
        "n": release.population.policy,
        "groups": 1 if release.groups is None else len(release.groups.keys),
        "statistics": [{"kind": b.statistic.kind, "components": rows(b)} for b in release.blocks],
    }


def rows(block: Block) -> list[dict[str, Any]]:
    """Per component: typical size over the groups, the noise's spread, and their ratio."""
    units = np.array(block.statistic.units)
    spread = noise_sd(block.noise) * units
    size = np.median(np.abs(block.scaled), axis=1)
    return [
        {
            "statistic": name,
            "value": float(values[0]) if len(values) == 1 else None,
            "typical_size": float(typical),
            "noise_sd": float(sd),
            "signal_to_noise": float(typical / sd),
        }
        for name, values, typical, sd in zip(
            block.statistic.names, block.scaled, size, spread, strict=True
        )
    ]


def show(release: Release, console: Console) -> None:
    """For a person at a terminal."""
    console.print(f"[bold]{release.family}[/bold] release, made by {release.software}")
    console.print(release.guarantee.statement())
    console.print(_population(release))
    if release.groups is not None:
        console.print(f"groups: {len(release.groups.keys)} (column {release.groups.column!r})")
    for selection in release.selections:
        console.print(
            f"bounds of {selection.column!r} were chosen by private quantiles, "
            f"at a cost of {selection.cost:.4g}"
        )
    if release.receipt is not None:
        console.print(f"ledger entry {release.receipt.entry} (dataset {release.receipt.dataset!r})")
    for block in release.blocks:
        console.print(_table(release, block))
    if any(row["signal_to_noise"] < 1 for block in release.blocks for row in rows(block)):
        console.print(
            "Where the ratio is below about 1, the number is mostly noise. Inference that models "
            "the noise stays honest there; plugging the numbers in does not."
        )


def _population(release: Release) -> str:
    population = release.population
    if population.policy == "public":
        return f"records: {sum(population.sizes)} (public, exact)"
    known = "" if population.total is None else f"; {population.total} in all (public)"
    return "records: secret, released with noise" + known


def _table(release: Release, block: Block) -> Table:
    grouped = release.groups is not None
    table = Table(title=f"{block.statistic.kind}: {_unit(block)}", title_justify="left")
    table.add_column("statistic", overflow="fold")
    table.add_column("median size" if grouped else "value", justify="right")
    table.add_column("noise sd", justify="right")
    table.add_column("size / noise", justify="right")
    listed = rows(block)
    for row in listed[:MOST_ROWS]:
        value = row["typical_size"] if row["value"] is None else row["value"]
        table.add_row(
            row["statistic"],
            f"{value:.6g}",
            f"{row['noise_sd']:.4g}",
            f"{row['signal_to_noise']:.3g}",
        )
    if len(listed) > MOST_ROWS:
        table.caption = f"and {len(listed) - MOST_ROWS} more"
    return table


def _unit(block: Block) -> str:
    box = block.statistic.kind in ("gram", "monomials")
    return "sums of columns mapped to [-1, 1]" if box else "natural units"
