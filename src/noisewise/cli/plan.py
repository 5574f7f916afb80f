"""``noisewise plan``: what interval widths will analysts get, for which budget?"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from noisewise.artifact import ArgumentError, Release
from noisewise.cli import options as o
from noisewise.cli.inspect import plain_console
from noisewise.cli.output import is_page, writable

if TYPE_CHECKING:
    from noisewise.simulate import Plan

app = typer.Typer(
    help="Simulate, before any budget is spent and without data, what analysts will get. "
    "(Partition releases are their own answer: docs/evidence-partition.md says how good.)",
    no_args_is_help=True,
)

N = Annotated[int | None, typer.Option("--n", metavar="N", help="Number of records, or a guess.")]
Epsilons = Annotated[
    str, typer.Option("--epsilon", metavar="LIST", help="Budgets to compare, such as 0.1,0.5,1,5.")
]
Guesses = Annotated[
    list[str] | None,
    typer.Option(
        "--guess",
        metavar="NAME=VALUE",
        help="What is believed of the data; repeat. Regression: COLUMN (its slope), intercept, "
        "sigma, mean:COLUMN, sd:COLUMN. One column: the family's parameters. Tables: "
        "p[COLUMN=LEVEL]. The rest follows from the bounds.",
    ),
]
Methods = Annotated[
    list[str] | None,
    typer.Option("--method", metavar="NAME", help="Repeat; the best and naive unless named."),
]
Width = Annotated[
    float | None, typer.Option(metavar="W", help="Find the smallest epsilon for this mean width.")
]
Parameter = Annotated[
    str | None, typer.Option(metavar="NAME", help="Whose width; the first parameter unless named.")
]
Trials = Annotated[int, typer.Option(help="Simulated releases for every epsilon.")]
Page = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write it as a page with pictures (.html).")
]


@app.command("linear-regression")
def linear_regression(
    x: Annotated[list[str], typer.Option(metavar="COLUMN", help="Covariate; repeat for several.")],
    y: Annotated[str, typer.Option(metavar="COLUMN", help="Response.")],
    epsilon: Epsilons,
    n: N = None,
    bounds: Annotated[
        list[str] | None,
        typer.Option(metavar=o.COLUMN_BOUNDS, help="Public bounds, for every column."),
    ] = None,
    mechanism: o.Mechanism = "laplace",
    delta: o.Delta = None,
    neighbours: o.Neighbours = "replace-one",
    guess: Guesses = None,
    method: Methods = None,
    width: Width = None,
    parameter: Parameter = None,
    trials: Trials = 50,
    seed: o.Seed = 0,
    page: Page = None,
    as_json: o.AsJson = False,
) -> None:
    """Plan a regression."""
    from noisewise import release

    limits = {
        c: o.bounds_of(b, f"--bounds {c}")
        for c, b in o.assignments(_given(bounds, "--bounds"), "--bounds").items()
    }
    size = _given(n, "--n")

    def at(epsilon: float) -> Release:
        return release.linear_regression(
            release.Blank(size), x=x, y=y, bounds=limits, epsilon=epsilon,
            mechanism=mechanism, delta=delta, neighbours=neighbours,  # type: ignore[arg-type]
        )  # fmt: skip

    _carry_out(at, size, epsilon, guess, method, width, parameter, trials, seed, page, as_json)


@app.command("exponential-family")
def exponential_family(
    family: o.Family,
    epsilon: Epsilons,
    n: N = None,
    column: Annotated[str, typer.Option(metavar="COLUMN", help="Its name.")] = "value",
    bounds: Annotated[
        str | None, typer.Option(metavar="LOWER,UPPER", help="The public interval.")
    ] = None,
    outside: Annotated[
        str, typer.Option(metavar="HOW", help="drop or clamp records outside.")
    ] = "drop",
    levels: Annotated[
        str | None, typer.Option(metavar="LIST", help="Categories: a,b,c or a file.")
    ] = None,
    known_trials: Annotated[
        int | None, typer.Option("--binomial-trials", metavar="K", help="Of binomial.")
    ] = None,
    shape: Annotated[float | None, typer.Option(metavar="K", help="Known shape of gamma.")] = None,
    mechanism: o.Mechanism = "laplace",
    delta: o.Delta = None,
    neighbours: o.Neighbours = "replace-one",
    guess: Guesses = None,
    method: Methods = None,
    width: Width = None,
    parameter: Parameter = None,
    trials: Trials = 50,
    seed: o.Seed = 0,
    page: Page = None,
    as_json: o.AsJson = False,
) -> None:
    """Plan the release of one column of an exponential family."""
    from noisewise import release

    bounded = family in ("bernoulli", "binomial", "categorical")
    limits = None if bounded and bounds is None else _given(bounds, "--bounds")
    size = _given(n, "--n")

    def at(epsilon: float) -> Release:
        return release.exponential_family(
            release.Blank(size), column=column, family=family, epsilon=epsilon,
            bounds=None if limits is None else o.bounds_of(limits, "--bounds"),
            outside=outside, levels=None if levels is None else o.public_list(levels, "--levels"),  # type: ignore[arg-type]
            trials=known_trials, shape=shape,
            mechanism=mechanism, delta=delta, neighbours=neighbours,  # type: ignore[arg-type]
        )  # fmt: skip

    _carry_out(at, size, epsilon, guess, method, width, parameter, trials, seed, page, as_json)


@app.command("graphical-model")
def graphical_model(
    clique: o.Cliques,
    levels: o.Levels,
    epsilon: Epsilons,
    n: N = None,
    mechanism: o.Mechanism = "laplace",
    delta: o.Delta = None,
    neighbours: o.Neighbours = "replace-one",
    guess: Guesses = None,
    width: Width = None,
    parameter: Parameter = None,
    trials: Trials = 20,
    seed: o.Seed = 0,
    page: Page = None,
    as_json: o.AsJson = False,
) -> None:
    """Plan the release of contingency tables; seconds for every trial."""
    from noisewise import release

    given = o.assignments(levels, "--levels")
    listed = {c: o.public_list(v, f"--levels {c}") for c, v in given.items()}
    size = _given(n, "--n")

    def at(epsilon: float) -> Release:
        return release.graphical_model(
            release.Blank(size), cliques=o.cliques(clique), levels=listed, epsilon=epsilon,
            mechanism=mechanism, delta=delta, neighbours=neighbours,  # type: ignore[arg-type]
        )  # fmt: skip

    _carry_out(at, size, epsilon, guess, None, width, parameter, trials, seed, page, as_json)


def _given(value: Any, option: str) -> Any:
    """A plan looks at no data, so what data would tell must be said."""
    if value is None or value == []:
        needs = {
            "--n": "the number of records (a guess will do)",
            "--bounds": "public bounds for every column, such as --bounds age=0,120",
        }
        raise ArgumentError(f"{option}: a plan looks at no data, so it needs {needs[option]}")
    return value


def _carry_out(
    at: Callable[[float], Release], n: int, epsilon: str, guess: list[str] | None,
    method: list[str] | None, width: float | None, parameter: str | None, trials: int, seed: int,
    page: Path | None, as_json: bool,
) -> None:  # fmt: skip
    if page is not None:
        writable(page, is_page, "page", "--page")
    from noisewise import report, simulate

    given = o.assignments(guess, "--guess")
    found = simulate.plan(
        at, n, [o.number(e, "--epsilon") for e in epsilon.split(",")], methods=method or None,
        guesses={k: o.number(v, f"--guess {k}") for k, v in given.items()}, trials=trials,
        seed=seed, width=width, parameter=parameter,
    )  # fmt: skip
    if page is not None:
        report.save(found, page)
    if as_json:
        o.show_json(json.loads(found.to_json()))
        return
    _show(found)
    if page is not None:
        typer.echo(f"wrote {page}")


def _show(found: Plan) -> None:
    console = plain_console()
    said = found.settings
    console.print(
        f"{said['what']}, {said['n']:,} records, {said['trials']} simulated releases for every "
        "epsilon"
    )
    guess = ", ".join(f"{k} = {v:.4g}" for k, v in found.guess.items())
    console.print(f"Assumed: {guess}")
    table = Table(title="95 % intervals: mean width (coverage)", title_justify="left")
    table.add_column("parameter", overflow="fold")
    table.add_column("method")
    for epsilon in found.epsilons:
        table.add_column(f"ε = {epsilon:g}", justify="right")
    table.add_column("no privacy", justify="right")
    for name, without in found.without.items():
        for i, method in enumerate(found.methods):
            rows = (found.row(epsilon, method, name) for epsilon in found.epsilons)
            cells = (f"{r.width:.3g} ({r.coverage:.0%})" for r in rows)
            last = f"{without:.3g}" if i == 0 else ""
            table.add_row(name if i == 0 else "", method, *cells, last)
    console.print(table)
    for warning in found.warnings:
        console.print(f"warning: {warning}", style="yellow")
    if found.wish is not None:
        console.print(found.wish.words, style="bold")
