"""``noisewise predict POSTERIOR``: what a new record will be, in the user's units."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.table import Table

from noisewise.artifact import ArgumentError
from noisewise.cli import options as o
from noisewise.cli.inspect import plain_console

if TYPE_CHECKING:
    import pandas as pd

    from noisewise.inference import Result

MOST_ROWS = 40


def predict(
    posterior: Annotated[
        Path, typer.Argument(metavar="POSTERIOR", help="A file that `noisewise infer` wrote.")
    ],
    at: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=VALUE",
            help="A value for every covariate, as in age=40,bmi=25; repeat for several records.",
        ),
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A CSV file with a column for every covariate."),
    ] = None,
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.9,
    seed: Annotated[int, typer.Option(help="Of the new records' scatter.")] = 0,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write a CSV file instead.")
    ] = None,
    as_json: o.AsJson = False,
) -> None:
    """Predict new records: the mean, where a record will lie, and where the mean itself lies.

    `lower` and `upper` hold a new record, `mean_lower` and `mean_upper` the regression line (or the
    mean of an exponential family). Of an exponential family there is nothing to give with --at.
    """
    from noisewise.inference import load_posterior

    if not 0 < level < 1:
        raise ArgumentError(f"--level: must be between 0 and 1, not {level!r}")
    post = load_posterior(posterior)
    rows = table(post, _points(post, at, csv), level, seed)
    if out is not None:
        _write(rows, out)
        typer.echo(f"wrote {out}")
    elif as_json:
        o.show_json(rows.to_dict("records"))
    else:
        _show(rows, f"New records of {post.title}; {level:.0%} intervals")


def _points(post: Result, at: list[str] | None, csv: Path | None) -> list[dict[str, float]]:
    """The covariates of every wanted record."""
    if not post.covariates:
        if at or csv is not None:
            raise ArgumentError("--at, --csv: this posterior has no covariates; leave them out")
        return [{}]
    if (not at) == (csv is None):
        raise ArgumentError(
            f"--at, --csv: give one of them, with a value for each of {', '.join(post.covariates)}"
        )
    if csv is not None:
        return _read(csv, post.covariates)
    points = []
    for text in at or ():
        given = o.assignments(text.split(","), "--at")
        if set(given) != set(post.covariates):
            raise ArgumentError(
                f"--at: must give a value to each of {', '.join(post.covariates)}, and to "
                f"nothing else, not {text!r}"
            )
        points.append(
            {c: _finite(o.number(given[c], f"--at {c}"), f"--at {c}") for c in post.covariates}
        )
    return points


def _finite(value: float, where: str) -> float:
    if not np.isfinite(value):
        raise ArgumentError(f"{where}: must be a finite number, not {value!r}")
    return value


def _read(path: Path, x: tuple[str, ...]) -> list[dict[str, float]]:
    import pandas as pd

    try:
        frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:
        raise ArgumentError(f"--csv: {str(path)!r} cannot be read: {error}") from None
    absent = [c for c in x if c not in frame]
    if absent:
        raise ArgumentError(f"--csv: {str(path)!r} has no column {absent[0]!r}")
    if frame.empty:
        raise ArgumentError(f"--csv: {str(path)!r} has no rows")
    points = []
    for number, row in enumerate(frame[list(x)].to_dict("records"), start=2):
        where = f"--csv line {number}, column"
        points.append({c: _finite(o.number(row[c], f"{where} {c}"), f"{where} {c}") for c in x})
    return points


def table(post: Result, points: list[dict[str, float]], level: float, seed: int) -> pd.DataFrame:
    """One row per record (and group): its covariates, mean and intervals, or probabilities."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    keys: tuple[str | int | None, ...] = getattr(post, "keys", None) or (None,)
    for point in points:
        found = post.predict(point or None, seed=seed)
        levels = getattr(found, "probabilities", None)
        if levels is not None:
            columns = {str(name): np.atleast_1d(p) for name, p in levels.items()}
        else:
            record = found.interval(level).reshape(-1, 2)
            line = found.mean_interval(level).reshape(-1, 2)
            columns = {
                "mean": np.atleast_1d(found.mean),
                "lower": record[:, 0],
                "upper": record[:, 1],
                "mean_lower": line[:, 0],
                "mean_upper": line[:, 1],
            }
        for i, key in enumerate(keys):
            group = {} if key is None else {"group": key}
            rows.append({**group, **point, **{n: float(v[i]) for n, v in columns.items()}})
    return pd.DataFrame(rows)


def _write(rows: pd.DataFrame, out: Path) -> None:
    if out.exists() and out.suffix != ".csv":
        raise ArgumentError(
            f"--out: {str(out)!r} exists and is no .csv; it will not be overwritten"
        )
    try:
        rows.to_csv(out, index=False)
    except OSError as error:
        raise ArgumentError(f"--out: {str(out)!r} cannot be written: {error.strerror}") from None


def _show(rows: pd.DataFrame, title: str) -> None:
    shown = Table(title=title, title_justify="left")
    for name in rows:
        shown.add_column(str(name), justify="right", overflow="fold")
    for _, row in rows.head(MOST_ROWS).iterrows():
        shown.add_row(*(f"{v:.4g}" if isinstance(v, float) else str(v) for v in row))
    if len(rows) > MOST_ROWS:
        shown.caption = f"and {len(rows) - MOST_ROWS} more; --out writes them all"
    plain_console().print(shown)
