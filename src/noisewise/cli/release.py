"""``noisewise release …``: the owner's half, one verb per family."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from noisewise.cli import options as o
from noisewise.cli import partition
from noisewise.cli.output import finish, writable
from noisewise.cli.progress import reading

app = typer.Typer(help="Turn a sensitive table into one public file.", no_args_is_help=True)
partition.mount(app)


@app.command("linear-regression")
def linear_regression(
    source: o.Source,
    x: Annotated[list[str], typer.Option(metavar="COLUMN", help="Covariate; repeat for several.")],
    y: Annotated[str, typer.Option(metavar="COLUMN", help="Response.")],
    bounds: Annotated[
        list[str],
        typer.Option(
            metavar=o.COLUMN_BOUNDS,
            help="Public bounds, for every column. COLUMN=private:LOWER,UPPER lets part of the "
            "budget choose them within that range.",
        ),
    ],
    epsilon: o.Epsilon,
    out: o.Out,
    mechanism: o.Mechanism = "laplace",
    delta: o.Delta = None,
    neighbours: o.Neighbours = "replace-one",
    groups: o.Groups = None,
    sizes: o.Sizes = None,
    fill: o.Fill = None,
    monomials: Annotated[
        bool, typer.Option("--monomials", help="Also release monomials of x up to degree four.")
    ] = False,
    count_clamped: o.CountClamped = False,
    split: o.Split = None,
    ledger: o.Ledger = None,
    dataset: o.Dataset = None,
    as_json: o.AsJson = False,
) -> None:
    """Release the Gram matrix: every linear regression among the columns, once."""
    from noisewise import release

    writable(out)
    limits, fills = o.assignments(bounds, "--bounds"), o.assignments(fill, "--fill")
    with reading("reading") as progress:
        made = release.linear_regression(
            source,
            x=x,
            y=y,
            bounds={c: o.bounds_of(b, f"--bounds {c}") for c, b in limits.items()},
            epsilon=epsilon,
            **_terms(mechanism, delta, neighbours, groups, sizes, ledger, dataset),
            fill={c: o.number(v, f"--fill {c}") for c, v in fills.items()},
            monomials=monomials,
            count_clamped=count_clamped,
            split=o.weights(split),
            progress=progress,
        )
    finish(made, out, as_json, ledger)


@app.command("exponential-family")
def exponential_family(
    source: o.Source,
    column: Annotated[
        str, typer.Option(metavar="COLUMN", help="The column that follows the family.")
    ],
    family: o.Family,
    epsilon: o.Epsilon,
    out: o.Out,
    bounds: Annotated[
        str | None,
        typer.Option(
            metavar="LOWER,UPPER",
            help="Public bounds. private:LOWER,UPPER lets part of the budget choose them within "
            "that range.",
        ),
    ] = None,
    outside: Annotated[
        str, typer.Option(metavar="HOW", help="drop or clamp records outside the bounds.")
    ] = "drop",
    levels: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="Categories: a,b,c or 0..9 or a file, one per line."),
    ] = None,
    trials: Annotated[
        int | None, typer.Option(metavar="N", help="Trials per record of binomial.")
    ] = None,
    shape: Annotated[float | None, typer.Option(metavar="K", help="Known shape of gamma.")] = None,
    mechanism: o.Mechanism = "laplace",
    delta: o.Delta = None,
    neighbours: o.Neighbours = "replace-one",
    groups: o.Groups = None,
    sizes: o.Sizes = None,
    fill: Annotated[
        str | None, typer.Option(metavar="VALUE", help="Public value for missing entries.")
    ] = None,
    count_clamped: o.CountClamped = False,
    split: o.Split = None,
    ledger: o.Ledger = None,
    dataset: o.Dataset = None,
    as_json: o.AsJson = False,
) -> None:
    """Release the sufficient statistic of a one-column exponential family."""
    from noisewise import release

    writable(out)
    listed = None if levels is None else o.public_list(levels, "--levels")
    with reading("reading") as progress:
        made = release.exponential_family(
            source,
            column=column,
            family=family,
            epsilon=epsilon,
            bounds=None if bounds is None else o.bounds_of(bounds, "--bounds"),
            outside=outside,  # type: ignore[arg-type]  # checked, with a message, by the callee
            levels=listed,
            trials=trials,
            shape=shape,
            **_terms(mechanism, delta, neighbours, groups, sizes, ledger, dataset),
            fill=None if fill is None else o.level(fill, listed, "--fill"),
            count_clamped=count_clamped,
            split=o.weights(split),
            progress=progress,
        )
    finish(made, out, as_json, ledger)


@app.command("graphical-model")
def graphical_model(
    source: o.Source,
    clique: o.Cliques,
    levels: o.Levels,
    epsilon: o.Epsilon,
    out: o.Out,
    mechanism: o.Mechanism = "laplace",
    delta: o.Delta = None,
    neighbours: o.Neighbours = "replace-one",
    groups: o.Groups = None,
    sizes: o.Sizes = None,
    fill: o.Fill = None,
    other: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=LEVEL",
            help="The level of the public list that counts what is not on it; repeat.",
        ),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Whose record it is, where people have several: each person then weighs one.",
        ),
    ] = None,
    ledger: o.Ledger = None,
    dataset: o.Dataset = None,
    as_json: o.AsJson = False,
) -> None:
    """Release noisy contingency tables over cliques of categorical columns."""
    from noisewise import release

    writable(out)
    given, fills = o.assignments(levels, "--levels"), o.assignments(fill, "--fill")
    others = o.assignments(other, "--other")
    listed = {c: o.public_list(v, f"--levels {c}") for c, v in given.items()}
    with reading("reading") as progress:
        made = release.graphical_model(
            source,
            cliques=o.cliques(clique),
            levels=listed,
            epsilon=epsilon,
            **_terms(mechanism, delta, neighbours, groups, sizes, ledger, dataset),
            fill={c: o.level(v, listed.get(c), f"--fill {c}") for c, v in fills.items()},
            other={c: o.level(v, listed.get(c), f"--other {c}") for c, v in others.items()},
            unit=unit,
            progress=progress,
        )
    finish(made, out, as_json, ledger)


def _terms(
    mechanism: str,
    delta: float | None,
    neighbours: str,
    groups: str | None,
    sizes: str | None,
    ledger: str | None,
    dataset: str | None,
) -> dict[str, Any]:
    """The words every family shares; the library checks them."""
    return {
        "mechanism": mechanism,
        "delta": delta,
        "neighbours": neighbours,
        "groups": o.group_list(groups),
        "sizes": sizes,
        "ledger": ledger,
        "dataset": dataset,
    }
