"""Verbs that read what ``infer`` wrote: predict, ranks, marginal, sample and report.

Each shows or writes what the result says, in the user's units; none costs any budget.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import numpy as np
import typer

from noisewise.artifact import ArgumentError, Level
from noisewise.artifact.validation import FALSE_WORDS, TRUE_WORDS, listed_level, nearest
from noisewise.cli.console import frame_table, plain_console, show_json, tell_cautions
from noisewise.cli.options import (
    AsJson,
    ResultFile,
    TableFile,
    check_page,
    check_table,
    load_result,
    parse_assignment,
    parse_names,
    parse_number_or_date,
    parse_numbers,
    write_table,
)
from noisewise.formula import MAX_LISTED

if TYPE_CHECKING:
    import pandas as pd

    from noisewise.inference import Prediction, Result


def predict(
    result: ResultFile,
    at: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=VALUE",
            help="A value for every covariate, as in age=40,sex=male; repeat for several records.",
        ),
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A CSV file with a column for every covariate."),
    ] = None,
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.9,
    seed: Annotated[int, typer.Option(help="Of the new records' scatter.")] = 0,
    clamped: Annotated[
        bool,
        typer.Option(
            "--clamped", help="Move new records to the bounds, as the owner moves those beyond."
        ),
    ] = False,
    out: TableFile = None,
    as_json: AsJson = False,
) -> None:
    """Predict new records: where a record will lie, and where the mean of such records lies.

    `median` is the point to quote. `lower` and `upper` hold a new record, `mean_lower` and
    `mean_upper` the regression line (or the mean of an exponential family). A file and --json have
    `mean` too, which a few draws far out decide where the noise hides a column. Of an exponential
    family there is nothing to give with --at.
    """
    if not 0 < level < 1:
        raise ArgumentError(f"--level: must be between 0 and 1, not {level!r}")
    check_table(out)
    loaded = load_result(result)
    rows = predicted_rows(loaded, _points(loaded, at, csv), level, seed, clamped)
    if not written_or_printed(loaded, rows, out, as_json):
        title = f"New records of {loaded.title}; {level:.0%} intervals"
        shown = rows.drop(columns="mean") if "median" in rows else rows
        plain_console().print(frame_table(shown, title, "; --out writes them all"))


def written_or_printed(result: Result, rows: pd.DataFrame, out: Path | None, as_json: bool) -> bool:
    """Write rows to the CSV file, or print them as JSON; return whether either was asked for.

    What to know of the result comes first: on standard error where the rows are for a script.
    """
    tell_cautions(result, plain_console(stderr=out is not None or as_json))
    if not result.converged:
        typer.echo(f"warning: {result.convergence}", err=True)
    if out is not None:
        write_table(rows, out)
        typer.echo(f"wrote {out}")
    elif as_json:
        show_json(rows.to_dict("records"))
    return out is not None or as_json


Point = dict[str, Any]
"""A record's covariates: a number each, or a level."""


def _points(result: Result, at: list[str] | None, csv: Path | None) -> list[Point]:
    """Return the covariates of every wanted record."""
    covariates = result.covariates
    if not covariates:
        if at or csv is not None:
            raise ArgumentError("--at, --csv: this posterior has no covariates; leave them out")
        return [{}]
    if (not at) == (csv is None):
        raise ArgumentError(
            f"--at, --csv: give one of them, with a value for each of {', '.join(covariates)}"
        )
    if csv is not None:
        return _read(csv, result)
    points: list[Point] = []
    given: dict[str, str] = {}
    for text in at or ():
        more = _assigned(result, text)
        # One record may be spread over several options: it is whole once nothing is left out.
        if set(more) & set(given) or not set(more) <= set(covariates):
            raise _incomplete(covariates, text)
        given |= more
        if len(given) == len(covariates):
            points.append({c: _covariate(result, c, given[c], f"--at {c}") for c in covariates})
            given = {}
    if given:
        left = tuple(c for c in covariates if c not in given)
        raise _incomplete(covariates, (at or ("",))[-1], left)
    return points


def _assigned(result: Result, text: str) -> dict[str, str]:
    """Return the values of ``age=40,sex=male``, each column once."""
    parts, values = text.split(","), dict[str, str]()
    while parts:
        name, value, used = _first_value(result, parts)
        if name in values:
            raise ArgumentError(f"--at: {name!r} is given twice")
        values[name] = value
        parts = parts[used:]
    return values


def _first_value(result: Result, parts: list[str]) -> tuple[str, str, int]:
    """Return a column, its value, and of how many parts between commas they are made.

    A level may hold commas and equals signs: the longest text that is a level of its column counts.
    """
    levels: dict[str, tuple[Level, ...]] = getattr(result, "levels", {})
    for end in range(len(parts), 0, -1):
        text = ",".join(parts[:end]).strip()
        for column, listed in levels.items():
            value = text.removeprefix(f"{column}=")
            if value != text and value.strip() in map(str, listed):
                return column, value, end
    first = parts[0].strip()
    if len(first) > 1 and first.endswith("="):
        return first[:-1], "", 1  # a gap
    return *parse_assignment(first, "--at"), 1


def _incomplete(
    covariates: tuple[str, ...], text: str, missing: tuple[str, ...] = ()
) -> ArgumentError:
    """Return the error of a record that is not whole; it names what is missing, where that is."""
    lacks = f"; no value for {', '.join(missing)}" if missing else ""
    return ArgumentError(
        f"--at: must give a value to each of {', '.join(covariates)}, and to nothing else, not "
        f"{text!r}{lacks}"
    )


GAPS = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null",
)  # fmt: skip
"""Spellings of "missing" in a CSV file, as a release reads it."""

WORDS: dict[str, object] = {
    **dict.fromkeys(GAPS), **dict.fromkeys(TRUE_WORDS, True), **dict.fromkeys(FALSE_WORDS, False),
}  # fmt: skip
"""Words of a table and the values that they stand for."""


def _covariate(result: Result, column: str, text: str, where: str) -> float | str | int:
    """Return the level that a text names, where the column has levels, or a finite number.

    Gaps and the words true and false mean what they meant in the release.
    """
    levels: tuple[Level, ...] | None = getattr(result, "levels", {}).get(column)
    word = text.strip()
    level = None if levels is None else listed_level(word, levels)
    if level is not None:
        return level
    value = WORDS.get(word, word)
    taken = result.as_released(column, value) if hasattr(result, "as_released") else value
    if taken is not value:
        return cast(float | str | int, taken)
    why = "" if value is not None else "; the release has no public value for gaps in this column"
    if levels is None:
        return _finite(text, where, why)
    listed = ", ".join(map(str, levels[:MAX_LISTED])) + ", …" * (len(levels) > MAX_LISTED)
    why = why or nearest(word, levels)
    raise ArgumentError(f"{where}: {text!r} is not a level of {column!r}; there are {listed}{why}")


def _finite(text: str, where: str, why: str) -> float:
    try:
        value = parse_number_or_date(text, where)
    except ArgumentError as error:
        raise ArgumentError(f"{error}{why}") from None
    if not np.isfinite(value):
        raise ArgumentError(f"{where}: must be a finite number, not {value!r}{why}")
    return value


def _read(path: Path, result: Result) -> list[Point]:
    """Return the covariates in every row of a CSV file."""
    import pandas as pd

    covariates = result.covariates
    try:
        frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:
        raise ArgumentError(f"--csv: {str(path)!r} cannot be read: {error}") from None
    absent = [c for c in covariates if c not in frame]
    if absent:
        hint = "" if len(frame.columns) > 1 else "; columns must be separated by commas"
        raise ArgumentError(
            f"--csv: {str(path)!r} has no column {absent[0]!r}; it has: "
            f"{', '.join(map(repr, frame.columns))}{hint}"
        )
    if frame.empty:
        raise ArgumentError(f"--csv: {str(path)!r} has no rows")
    return [
        {c: _covariate(result, c, row[c], f"--csv line {number}, column {c}") for c in covariates}
        for number, row in enumerate(frame[list(covariates)].to_dict("records"), start=2)
    ]


def predicted_rows(
    result: Result,
    points: list[Point],
    level: float,
    seed: int,
    clamped: bool = False,
) -> pd.DataFrame:
    """Return one row per record (and group): its covariates, mean and intervals, or probabilities.

    Args:
        result: what to predict from.
        points: the covariates of each record.
        level: the probability of the intervals.
        seed: of the new records' scatter.
        clamped: move new records to the bounds.
    """
    import pandas as pd

    from noisewise.inference import Posterior

    keys = result.keys if isinstance(result, Posterior) else None
    if clamped and not result.predicts_clamped:
        raise ArgumentError("--clamped: this model predicts records as they are; leave it out")
    words: dict[str, Any] = {"clamped": True} if clamped else {}
    rows: list[dict[str, Any]] = []
    for point in points:
        columns = _predicted(result.predict(point or None, seed=seed, **words), level)
        for i, key in enumerate((None,) if keys is None else keys):
            group = {} if key is None else {"group": key}
            rows.append({**group, **point, **{n: float(v[i]) for n, v in columns.items()}})
    return pd.DataFrame(rows)


def _predicted(prediction: Prediction, level: float) -> dict[str, np.ndarray]:
    """Return what a prediction says, by column of the table; one number per group."""
    from noisewise.inference import CategoryPrediction

    if isinstance(prediction, CategoryPrediction):
        return {str(name): np.atleast_1d(p) for name, p in prediction.probabilities.items()}
    record = prediction.interval(level).reshape(-1, 2)
    line = prediction.mean_interval(level).reshape(-1, 2)
    return {
        "median": np.atleast_1d(prediction.median),
        "lower": record[:, 0],
        "upper": record[:, 1],
        "mean": np.atleast_1d(prediction.mean),
        "mean_lower": line[:, 0],
        "mean_upper": line[:, 1],
    }


def ranks(
    result: ResultFile,
    parameter: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What is ranked; left out where there is one only."),
    ] = None,
    at: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=VALUE", help="Rank the mean of a record with these covariates instead."
        ),
    ] = None,
    above: Annotated[
        float | None,
        typer.Option(metavar="VALUE", help="Add the probability of being above this value."),
    ] = None,
    interval: Annotated[
        float, typer.Option(metavar="P", help="The probability of each interval.")
    ] = 0.95,
    out: TableFile = None,
    as_json: AsJson = False,
) -> None:
    """Rank groups, with intervals of the ranks: a row per group, ready to be joined to a map.

    Rank 1 is the largest. Where intervals of ranks overlap, the release does not say which group is
    ahead. The first column holds the groups' keys and is named as in the release.
    """
    from noisewise.inference import Posterior, PosteriorSummary

    check_table(out)
    loaded = load_result(result)
    if isinstance(loaded, PosteriorSummary):
        loaded.ranks()
    if not isinstance(loaded, Posterior) or loaded.keys is None:
        raise ArgumentError("RESULT: groups are ranked, and this result has none")
    point = _points(loaded, at, None)[0] if at else None
    table = loaded.by_group(parameter, at=point, above=above, interval=interval)
    rows = table.sort_values("rank").reset_index()
    if not written_or_printed(loaded, rows, out, as_json):
        title = f"Ranks of {loaded.title}; {interval:.0%} intervals"
        plain_console().print(frame_table(rows, title, "; --out writes them all"))


def effects(
    result: ResultFile,
    per: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=UNITS", help="Units to speak of, such as income=1000; 1 unless given."
        ),
    ] = None,
    interval: Annotated[
        float, typer.Option(metavar="P", help="The probability of each interval.")
    ] = 0.95,
    out: TableFile = None,
    as_json: AsJson = False,
) -> None:
    """Show odds or rate ratios and average marginal effects, a row per covariate.

    Of logistic, probit and Poisson regressions. The ratio is what one unit of the covariate
    multiplies the odds (or the rate) by; the average effect is the change of the probability (or of
    the rate), averaged over the records.
    """
    check_table(out)
    loaded = load_result(result)
    table_of = getattr(loaded, "effects", None)
    if table_of is None:
        raise ArgumentError(
            "RESULT: effects are of logistic, probit and Poisson regressions; the slopes of others "
            "are effects already"
        )
    rows = table_of(parse_numbers(per or [], "--per"), interval).reset_index()
    if not written_or_printed(loaded, rows, out, as_json):
        title = f"Effects of {loaded.title}; {interval:.0%} intervals"
        plain_console().print(frame_table(rows, title, "; --out writes them all"))


def marginal(
    result: ResultFile,
    columns: Annotated[
        str, typer.Option(metavar="COLUMN,COLUMN", help="One column, or several jointly.")
    ],
    interval: Annotated[
        float, typer.Option(metavar="P", help="Of posteriors: the probability of each interval.")
    ] = 0.95,
    out: TableFile = None,
    as_json: AsJson = False,
) -> None:
    """Show how probable every combination of some columns' levels is, one row per cell.

    Posteriors give intervals too: `lower` and `upper`.
    """
    if not 0 < interval < 1:
        raise ArgumentError(f"--interval: must be between 0 and 1, not {interval!r}")
    check_table(out)
    loaded = load_result(result)
    rows = marginal_rows(loaded, parse_names(columns), interval)
    if not written_or_printed(loaded, rows, out, as_json):
        title = f"Probabilities of {columns}, method {loaded.method}"
        if "lower" in rows:
            title += f"; {interval:.0%} intervals"
        console = plain_console()
        console.print(title, style="bold")
        console.print(frame_table(rows, more="; --out writes them all"))


def marginal_rows(result: Result, columns: list[str], interval: float) -> pd.DataFrame:
    """Return one row per cell: its levels, ``probability`` and, of posteriors, the interval.

    Args:
        result: whose probabilities are asked for.
        columns: one column, or several jointly.
        interval: the probability of the intervals.
    """
    table = result.marginal(columns)
    probabilities = table.to_series()
    rows = probabilities.index.to_frame(index=False)
    rows[_unused("probability", columns)] = probabilities.to_numpy()
    if not result.has_intervals:
        return rows
    try:
        ends = result.interval(columns, interval)
    except ArgumentError as error:
        warnings.warn(f"no intervals: {error}", UserWarning, stacklevel=2)
        return rows
    (bound,) = set(ends.dims) - set(table.dims)
    for end in ("lower", "upper"):
        cells = ends.sel({bound: end}).transpose(*table.dims)
        rows[_unused(end, columns)] = cells.to_series().to_numpy()
    return rows


def _unused(name: str, columns: list[str]) -> str:
    """Return the name, with underscores added until no column of the data is called so."""
    while name in columns:
        name += "_"
    return name


def sample(
    result: ResultFile,
    n: Annotated[
        int, typer.Option("--n", metavar="N", help="Number of records, of every group if grouped.")
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="Where the records go (.csv).")
    ],
    seed: Annotated[int, typer.Option(help="The same seed gives the same records.")] = 0,
) -> None:
    """Draw synthetic records from a fitted model, and write them as CSV.

    They cost no budget: they are made from the result, and never from the sensitive table. Of
    groups the first column is the group.
    """
    check_table(out)
    records = load_result(result).sample(n, seed=seed)
    write_table(records, out)
    typer.echo(f"wrote {out}: {len(records)} synthetic records")


def report(
    result: Annotated[
        Path,
        typer.Argument(
            metavar="RESULT",
            help="A file that `noisewise infer` wrote, or a partition release, which is its own "
            "answer.",
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="Where the page goes (.html).")
    ],
    check: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What `noisewise check --out FILE` found, to be shown."),
    ] = None,
) -> None:
    """Write one self-contained HTML page: guarantee, posterior, prediction, convergence.

    It loads nothing from anywhere, and reads well on a phone, in the dark and on paper.
    """
    check_page(out, "--out")
    from noisewise import report as pages
    from noisewise.inference import load
    from noisewise.simulate import load_check

    checked = None if check is None else load_check(check)
    pages.save(load(result), out, checked)
    typer.echo(f"wrote {out}")
