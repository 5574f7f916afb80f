"""``noisewise release …``: the owner's half, one verb per family."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from noisewise.artifact import ArgumentError, Release
from noisewise.cli import options as o
from noisewise.cli.progress import reading

app = typer.Typer(help="Turn a sensitive table into one public file.", no_args_is_help=True)


@app.command("linear-regression")
def linear_regression(
    source: o.Source,
    x: Annotated[list[str], typer.Option(help="Covariate column; repeat for several.")],
    y: Annotated[str, typer.Option(help="Response column.")],
    bounds: Annotated[
        list[str],
        typer.Option(help="COLUMN=LOWER,UPPER: public; or COLUMN=private:LOWER,UPPER."),
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
        bool, typer.Option(help="Also release monomials of x up to degree four.")
    ] = False,
    count_clamped: o.CountClamped = False,
    split: o.Split = None,
    ledger: o.Ledger = None,
    dataset: o.Dataset = None,
    as_json: o.AsJson = False,
) -> None:
    """Release the Gram matrix: every linear regression among the columns, once."""
    from noisewise import release

    _writable(out)
    limits = dict(o.assignment(b, "--bounds") for b in bounds)
    fills = dict(o.assignment(f, "--fill") for f in fill or ())
    with reading("reading") as progress:
        made = release.linear_regression(
            source,
            x=x,
            y=y,
            bounds={c: o.bounds_of(b, f"--bounds {c}") for c, b in limits.items()},
            epsilon=epsilon,
            **_terms(mechanism, delta, neighbours, groups, sizes, ledger, dataset),
            fill={c: o.number(v, "--fill") for c, v in fills.items()},
            monomials=monomials,
            count_clamped=count_clamped,
            split=o.weights(split),
            progress=progress,
        )
    _finish(made, out, as_json)


@app.command("exponential-family")
def exponential_family(
    source: o.Source,
    column: Annotated[str, typer.Option(help="The column that follows the family.")],
    family: Annotated[
        str,
        typer.Option(
            help="bernoulli, binomial, categorical, poisson, geometric, exponential, gamma, normal."
        ),
    ],
    epsilon: o.Epsilon,
    out: o.Out,
    bounds: Annotated[
        str | None, typer.Option(help="LOWER,UPPER: public; or private:LOWER,UPPER.")
    ] = None,
    outside: Annotated[str, typer.Option(help="drop or clamp records outside.")] = "drop",
    levels: Annotated[
        str | None, typer.Option(help="Public categories: a,b,c, 0..9 or a file.")
    ] = None,
    trials: Annotated[int | None, typer.Option(help="Trials per record of binomial.")] = None,
    shape: Annotated[float | None, typer.Option(help="Known shape of gamma.")] = None,
    mechanism: o.Mechanism = "laplace",
    delta: o.Delta = None,
    neighbours: o.Neighbours = "replace-one",
    groups: o.Groups = None,
    sizes: o.Sizes = None,
    fill: Annotated[str | None, typer.Option(help="Public value for missing entries.")] = None,
    count_clamped: o.CountClamped = False,
    split: o.Split = None,
    ledger: o.Ledger = None,
    dataset: o.Dataset = None,
    as_json: o.AsJson = False,
) -> None:
    """Release the sufficient statistic of a one-column exponential family."""
    from noisewise import release

    _writable(out)
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
            fill=_fill(fill, listed),
            count_clamped=count_clamped,
            split=o.weights(split),
            progress=progress,
        )
    _finish(made, out, as_json)


@app.command("graphical-model")
def graphical_model(
    source: o.Source,
    clique: Annotated[list[str], typer.Option(help="COLUMN,COLUMN,…: one table; repeat.")],
    levels: Annotated[
        list[str], typer.Option(help="COLUMN=a,b,c, COLUMN=0..9 or COLUMN=FILE; repeat.")
    ],
    epsilon: o.Epsilon,
    out: o.Out,
    mechanism: o.Mechanism = "laplace",
    delta: o.Delta = None,
    neighbours: o.Neighbours = "replace-one",
    groups: o.Groups = None,
    sizes: o.Sizes = None,
    fill: o.Fill = None,
    ledger: o.Ledger = None,
    dataset: o.Dataset = None,
    as_json: o.AsJson = False,
) -> None:
    """Release noisy contingency tables over cliques of categorical columns."""
    from noisewise import release

    _writable(out)
    given = dict(o.assignment(text, "--levels") for text in levels)
    listed = {c: o.public_list(v, f"--levels {c}") for c, v in given.items()}
    fills = dict(o.assignment(f, "--fill") for f in fill or ())
    with reading("reading") as progress:
        made = release.graphical_model(
            source,
            cliques=[c.split(",") for c in clique],
            levels=listed,
            epsilon=epsilon,
            **_terms(mechanism, delta, neighbours, groups, sizes, ledger, dataset),
            fill={c: _fill(v, listed.get(c)) for c, v in fills.items()},
            progress=progress,
        )
    _finish(made, out, as_json)


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


def _fill(text: str | None, listed: list[Any] | None) -> Any:
    """A fill value in the type of what it fills."""
    if text is None or (listed and isinstance(listed[0], str)):
        return text
    return o.number(text, "--fill") if listed is None else int(o.number(text, "--fill"))


def _writable(out: Path) -> None:
    """Checked before any budget is spent: a release that cannot be written would be lost."""
    if not out.parent.is_dir():
        raise ArgumentError(f"--out: there is no folder {str(out.parent)!r}")
    if out.is_dir() or not os.access(out.parent, os.W_OK):
        raise ArgumentError(f"--out: {str(out)!r} cannot be written")


def _finish(release: Release, out: Path, as_json: bool) -> None:
    release.save(out)
    if as_json:
        spent = {"epsilon": release.guarantee.epsilon, "rho": release.guarantee.rho}
        o.show_json({"out": str(out), "family": release.family, **spent})
    else:
        typer.echo(f"wrote {out}: {release.guarantee.statement()}")
