"""Verbs that simulate releases, ``plan MODEL`` and ``check RELEASE``; neither costs any budget.

What interval widths will analysts get, for which budget? And is a method trustworthy for a release
with these settings?
"""

from __future__ import annotations

import inspect
import json
import math
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.table import Table
from typer.core import TyperCommand

from noisewise.artifact import ArgumentError, Release
from noisewise.artifact.readable_numbers import probability, readable
from noisewise.cli import model_commands
from noisewise.cli.console import lines_of_progress, plain_console, show_json
from noisewise.cli.messages import in_shell_words
from noisewise.cli.options import (
    AsJson,
    AskedModel,
    ModelOptions,
    OtherCovariates,
    OtherFormula,
    OtherResponse,
    PageFile,
    PriorFile,
    SimulationSeed,
    check_page,
    check_writable,
    is_read_by,
    parse_guesses,
    parse_number,
    parse_widths,
    read_options,
    read_prior_option,
)
from noisewise.cli.public_features import FeaturesFile, ParentColumn, Pool, read_features
from noisewise.inference.population import FEWEST_GROUPS
from noisewise.models import Model, Owner, Word

if TYPE_CHECKING:
    from noisewise.simulate import Check, Plan
    from noisewise.simulate.planning import Row

T = TypeVar("T")

Size = Annotated[
    int | None, typer.Option("--n", metavar="N", help="Number of records, or a guess.")
]
Epsilons = Annotated[
    str, typer.Option("--epsilon", metavar="LIST", help="Budgets to compare, such as 0.1,0.5,1,5.")
]
Guesses = Annotated[
    list[str] | None,
    typer.Option(
        "--guess",
        metavar="NAME=VALUE",
        help="What is believed of the data; repeat. By the name of a parameter a number; by that "
        "of a column MEAN,DEVIATION, binary, uniform, skewed, or shares, LEVEL:SHARE,LEVEL:SHARE. "
        "The rest follows from the bounds; a name that is unknown is answered by those known.",
    ),
]
Methods = Annotated[
    list[str] | None,
    typer.Option("--method", metavar="NAME", help="Repeat; the best and naive unless named."),
]
Width = Annotated[
    list[str] | None,
    typer.Option(
        "--width",
        metavar="[NAME=]W",
        help="Find the smallest epsilon for this mean width of an interval; repeat for several.",
    ),
]
Parameter = Annotated[
    str | None,
    typer.Option(
        "--parameter", metavar="NAME", help="Whose width, where --width does not say; the first."
    ),
]
PooledGroups = Annotated[
    int | None,
    typer.Option(
        "--pooled-groups",
        metavar="G",
        help="Plan for G groups of --n records each that learn from each other (infer --pool). How "
        "much they differ is guessed by spread: and a parameter's name, --guess spread:pir=0.1.",
    ),
]
Trials = Annotated[
    int | None,
    typer.Option(
        "--trials",
        help="Simulated releases for every epsilon; 50 unless given, fewer where each takes long.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class PlanRequest:
    """The options that every plan has, whatever the model."""

    epsilon: str
    n: int | None
    guess: list[str] | None
    method: list[str] | None
    asked_model: str | None
    width: list[str] | None
    parameter: str | None
    prior: Path | None
    trials: int | None
    pooled_groups: int | None
    seed: int
    page: Path | None
    as_json: bool


def _own_parameters() -> list[inspect.Parameter]:
    return [
        model_commands.keyword("epsilon", Epsilons, required=True),
        model_commands.keyword("n", Size),
        model_commands.keyword("guess", Guesses),
        model_commands.keyword("method", Methods),
        model_commands.keyword("asked_model", AskedModel),
        model_commands.keyword("width", Width),
        model_commands.keyword("parameter", Parameter),
        model_commands.keyword("prior", PriorFile),
        model_commands.keyword("trials", Trials),
        model_commands.keyword("pooled_groups", PooledGroups),
        model_commands.keyword("seed", SimulationSeed, default=0),
        model_commands.keyword("page", PageFile),
        model_commands.keyword("as_json", AsJson, default=False),
    ]


def _planned_words(owner: Owner) -> list[Word]:
    return [w for w in (*owner.words, *model_commands.privacy_words(owner)) if w.planned]


def _parameter(word: Word) -> inspect.Parameter:
    """Return a word as a plan asks for it: bounds are asked for by `_require`, with a reason."""
    default = word.default if word.plan_default is None else word.plan_default
    required = word.required and default is None and word.kind != "bounds"
    return model_commands.parameter(word, required=required, default=default)


def plan_command(model: Model) -> TyperCommand:
    """Return the command that plans a release of a model."""
    owner = model.owner()
    own = _own_parameters()
    planned = [_parameter(word) for word in _planned_words(owner)]

    def run(**given: Any) -> None:
        request = PlanRequest(**{p.name: given.pop(p.name) for p in own})
        carry_out(owner, request, given)

    released = owner.summary.removeprefix("Release ")
    summary = f"Plan the release of {released[:1].lower()}{released[1:]}"
    return model_commands.command(model.name, summary, [*planned, *own], run)


app = typer.Typer(
    help="Simulate, before any budget is spent and without data, what analysts will get. "
    "(Partition releases are their own answer: docs/evidence-partition.md says how good.)",
    no_args_is_help=True,
    cls=model_commands.model_group(plan_command, lambda owner: owner.planned),
)


def carry_out(owner: Owner, request: PlanRequest, given: dict[str, Any]) -> None:
    """Simulate, and show, print or write what came of it."""
    check_page(request.page, "--page")
    size = _require(request.n, "--n", "the number of records (a guess will do)")
    for word in _planned_words(owner):
        if word.required:
            _require(
                given[word.name], model_commands.flag_of(word).text, word.help.partition(";")[0]
            )
    prior = read_prior_option(request.prior)
    from noisewise import release as release_functions
    from noisewise import report, simulate

    flags = model_commands.argument_flags(owner)
    with in_shell_words(flags):
        arguments = model_commands.release_arguments(owner, given)

    groups = request.pooled_groups
    if groups is not None:
        if groups < FEWEST_GROUPS:
            raise ArgumentError(
                f"--pooled-groups: must be at least {FEWEST_GROUPS}, not {groups}: fewer tell "
                "nothing of how much groups differ"
            )
        # Sizes that are public knowledge: each group then has the whole epsilon.
        arguments["groups"] = {"group": [f"group {i}" for i in range(1, groups + 1)]}
        if arguments.get("neighbours", "replace-one") == "replace-one":
            arguments["sizes"] = "public"

    def at(epsilon: float) -> Release:
        blank = release_functions.Blank(size * (groups or 1))
        with in_shell_words(flags):
            return owner.release(blank, **arguments, epsilon=epsilon)

    plan = simulate.plan(
        at, size, [parse_number(e, "--epsilon") for e in request.epsilon.split(",")],
        methods=request.method or None, model=request.asked_model,
        guesses=parse_guesses(request.guess, "--guess"),
        prior=prior, trials=request.trials, seed=request.seed,
        pool=groups is not None,
        width=parse_widths(request.width, "--width"), parameter=request.parameter,
        progress=lines_of_progress("simulated release"),
    )  # fmt: skip
    if request.page is not None:
        report.save(plan, request.page)
    if request.as_json:
        show_json(json.loads(plan.to_json()))
        return
    show_plan(plan)
    if request.page is not None:
        typer.echo(f"wrote {request.page}")


def _require(value: T | None, option: str, what: str) -> T:
    """Return a value; a plan looks at no data, so what data would tell must be said."""
    if value is None or value == []:
        raise ArgumentError(f"{option}: a plan looks at no data, so it needs {what}")
    return value


def show_plan(plan: Plan) -> None:
    """Print a plan for a person at a terminal."""
    from noisewise.simulate.epsilon_search import in_words

    console = plain_console()
    settings = plan.settings
    console.print(
        f"{settings['what']}, {settings['n']:,} records, {settings['trials']} simulated releases "
        "for every epsilon"
    )
    guess = ", ".join(f"{k} = {readable(v)}" for k, v in plan.guess.items())
    console.print(f"Assumed: {guess}")
    for sentence in plan.assumptions:
        console.print(sentence)
    console.print(_width_table(plan))
    errors = [e for e in plan.relative_errors if math.isfinite(e)]
    if errors:
        console.print(
            f"Standard error of these mean widths by {plan.methods[0]}: mostly "
            f"{statistics.median(errors):.1%}, at the most {max(errors):.1%}"
        )
    for warning in plan.warnings:
        console.print(f"warning: {warning}", style="yellow")
    for sentence in in_words(plan.targets):
        console.print(sentence, style="bold")


def _width_table(plan: Plan) -> Table:
    title = f"95 % intervals: mean width{' (coverage)' if plan.tells_coverage else ''}"
    table = Table(title=title, title_justify="left")
    table.add_column("parameter", overflow="fold")
    table.add_column("method")
    for epsilon in plan.epsilons:
        table.add_column(f"ε = {epsilon:g}", justify="right")
    table.add_column("no privacy", justify="right")
    for name, without in plan.without.items():
        for i, method in enumerate(plan.methods):
            rows = (plan.row(epsilon, method, name) for epsilon in plan.epsilons)
            cells = (_width_cell(r, plan.tells_coverage) for r in rows)
            last = readable(without, 3) if i == 0 else ""
            table.add_row(name if i == 0 else "", method, *cells, last)
    return table


def _width_cell(row: Row, tells_coverage: bool) -> str:
    return readable(row.width, 3) + (f" ({row.coverage:.0%})" if tells_coverage else "")


def check(
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="A release file.")],
    method: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A method to try; repeat. The usual ones unless named."),
    ] = None,
    model: AskedModel = None,
    x: OtherCovariates = None,
    y: OtherResponse = None,
    formula: OtherFormula = None,
    prior: PriorFile = None,
    option: ModelOptions = None,
    pool: Pool = False,
    features: FeaturesFile = None,
    parent: ParentColumn = None,
    trials: Annotated[int, typer.Option(help="Simulated releases for every method.")] = 200,
    seed: SimulationSeed = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Keep the result (.json), for a report."),
    ] = None,
    page: PageFile = None,
    as_json: AsJson = False,
) -> None:
    """Simulate releases like this one, and see which methods find the truth where they say it is.

    Only the settings are used: number of records, epsilon, bounds, noise and prior. It costs no
    budget and looks at no number of the release, but for a count of clamped records.
    """
    given = Release.load(release)
    if out is not None:
        check_writable(out, _is_check, "check")
    check_page(page, "--page")
    from noisewise import report, simulate

    result = simulate.check(
        given, method or None, model=model, prior=read_prior_option(prior), x=x or None, y=y,
        trials=trials, seed=seed, progress=lines_of_progress("simulated release"), pool=pool,
        features=read_features(features, given, parent), parent=parent,
        **{"formula": formula, **read_options(option)},
    )  # fmt: skip
    if out is not None:
        result.save(out)
    if page is not None:
        report.save(result, page)
    if as_json:
        show_json(json.loads(result.to_json()))
        return
    show_check(result)
    for written in filter(None, (out, page)):
        typer.echo(f"wrote {written}")


def _is_check(path: Path) -> bool:
    from noisewise.simulate import load_check

    return is_read_by(load_check, ArgumentError, path)


def show_check(result: Check) -> None:
    """Print what a check found for a person at a terminal."""
    console = plain_console()
    settings = result.settings
    console.print(
        f"{settings['trials']} simulated releases of {settings['what']}: {settings['n']} records, "
        f"epsilon {settings['epsilon']:g}"
    )
    for caution in result.cautions:
        console.print(f"To know: {caution}.")
    table = Table(title="Do 95 % intervals hold the truth?", title_justify="left")
    table.add_column("method")
    table.add_column("parameter", overflow="fold")
    compared = any(m.wider is not None for m in result.methods)
    for name in ("coverage", "p (ranks)", *(["width / exact's"] if compared else [])):
        table.add_column(name, justify="right")
    for m in result.methods:
        for i, name in enumerate(m.parameters):
            wider = m.times_as_wide(i)
            numbers = [f"{m.coverage[i]:.3f}", probability(m.p_values[i])]
            numbers += [f"{wider:.2f}" if math.isfinite(wider) else "-"] * compared
            table.add_row(m.method if i == 0 else "", name, *numbers)
    console.print(table)
    console.print(result.widths)
    for m in result.methods:
        console.print(f"{m.method}: {m.verdict}", style="" if m.passed else "bold")
    console.print(result.advice)
