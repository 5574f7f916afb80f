"""``noisewise release posterior-probability | posterior-quantile``: answers by partitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from noisewise.artifact import ArgumentError, Release
from noisewise.cli import options as o
from noisewise.cli.output import finish, writable
from noisewise.cli.progress import reading

X = Annotated[list[str], typer.Option(help="Covariate column; repeat for several.")]
Y = Annotated[str, typer.Option(help="Response column.")]
Coefficient = Annotated[str, typer.Option(help="A covariate, or 'intercept'.")]
Partitions = Annotated[
    int, typer.Option(help="Number of random partitions; around 100 records each is a good size.")
]
G = Annotated[float | None, typer.Option(help="Zellner's g; by default the public n.")]
Normal = Annotated[
    str | None,
    typer.Option(
        help="PRECISION,SHAPE,RATE: a normal-inverse-gamma prior with mean 0 and that precision "
        "for every coefficient, instead of Zellner's."
    ),
]


def posterior_probability(
    source: o.Source,
    x: X,
    y: Y,
    coefficient: Coefficient,
    at: Annotated[list[float], typer.Option(help="Cutoff; several share the budget.")],
    epsilon: o.Epsilon,
    partitions: Partitions,
    out: o.Out,
    method: Annotated[str, typer.Option(help="normality or fisher.")] = "normality",
    corrected: Annotated[
        bool, typer.Option(help="Rescale by the true spread, or by the thesis' formula.")
    ] = True,
    g: G = None,
    normal: Normal = None,
    tempered: Annotated[
        bool, typer.Option(help="All partitions together carry the prior once, or each does.")
    ] = True,
    floor: Annotated[float, typer.Option(help="fisher: least probability told apart.")] = 0.001,
    neighbours: o.Neighbours = "replace-one",
    fill: o.Fill = None,
    ledger: o.Ledger = None,
    dataset: o.Dataset = None,
    as_json: o.AsJson = False,
) -> None:
    """Release Pr(coefficient <= cutoff) of a Bayesian linear regression."""
    from noisewise import release

    writable(out)
    made = _made(
        release.posterior_probability,
        source,
        x=x,
        y=y,
        coefficient=coefficient,
        at=at,
        epsilon=epsilon,
        partitions=partitions,
        method=method,
        corrected=corrected,
        prior=_prior(g, normal, len(x)),
        tempered=tempered,
        floor=floor,
        neighbours=neighbours,
        fill=_fill(fill),
        ledger=ledger,
        dataset=dataset,
    )
    finish(made, out, as_json, ledger)


def posterior_quantile(
    source: o.Source,
    x: X,
    y: Y,
    coefficient: Coefficient,
    p: Annotated[float, typer.Option("--p", help="Which quantile, between 0 and 1.")],
    epsilon_bounds: Annotated[float, typer.Option(help="Budget for finding an interval.")],
    epsilon_value: Annotated[float, typer.Option(help="Budget for the value itself.")],
    partitions: Partitions,
    out: o.Out,
    centred: Annotated[
        bool, typer.Option(help="Choose the interval's centre too, or keep it around zero.")
    ] = True,
    scale: Annotated[float, typer.Option(help="Public order of magnitude of the spread.")] = 1.0,
    coverage: Annotated[float, typer.Option(help="Share to be held; --no-centred only.")] = 0.5,
    doublings: Annotated[int, typer.Option(help="Cap of the search; --no-centred only.")] = 40,
    g: G = None,
    normal: Normal = None,
    neighbours: o.Neighbours = "replace-one",
    fill: o.Fill = None,
    ledger: o.Ledger = None,
    dataset: o.Dataset = None,
    as_json: o.AsJson = False,
) -> None:
    """Release a posterior quantile of a coefficient of a Bayesian linear regression."""
    from noisewise import release

    writable(out)
    made = _made(
        release.posterior_quantile,
        source,
        x=x,
        y=y,
        coefficient=coefficient,
        p=p,
        epsilon_bounds=epsilon_bounds,
        epsilon_value=epsilon_value,
        partitions=partitions,
        centred=centred,
        scale=scale,
        coverage=coverage,
        doublings=doublings,
        prior=_prior(g, normal, len(x)),
        neighbours=neighbours,
        fill=_fill(fill),
        ledger=ledger,
        dataset=dataset,
    )
    finish(made, out, as_json, ledger)


def mount(app: typer.Typer) -> None:
    """Both verbs, under ``noisewise release``."""
    app.command("posterior-probability")(posterior_probability)
    app.command("posterior-quantile")(posterior_quantile)


def _made(make: Callable[..., Release], source: str, **words: Any) -> Release:
    with reading("reading") as progress:
        return make(source, **words, progress=progress)


def _fill(given: list[str] | None) -> dict[str, float]:
    pairs = [o.assignment(text, "--fill") for text in given or ()]
    return {column: o.number(value, "--fill") for column, value in pairs}


def _prior(g: float | None, normal: str | None, covariates: int) -> object:
    """Zellner's, or a spherical normal-inverse-gamma."""
    from noisewise.release import Zellner

    if normal is None:
        return Zellner(g)
    if g is not None:
        raise ArgumentError("--normal: another prior than --g; give one of them")
    numbers = [o.number(part, "--normal") for part in normal.split(",")]
    if len(numbers) != 3:
        raise ArgumentError(f"--normal: must be PRECISION,SHAPE,RATE, not {normal!r}")
    from noisewise.priors import NormalInverseGamma

    precision, shape, rate = numbers
    size = covariates + 1
    if not min(numbers) > 0:
        raise ArgumentError(f"--normal: all three must be above zero, not {normal!r}")
    mean = [0.0] * size
    matrix = [[precision if i == j else 0.0 for j in range(size)] for i in range(size)]
    return NormalInverseGamma(mean, matrix, shape, rate)
