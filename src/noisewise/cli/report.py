"""``noisewise report POSTERIOR``: one HTML page a person can open, print and pass on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from noisewise.artifact import ArgumentError, NoisewiseError, Release
from noisewise.cli.output import is_page, writable


def report(
    posterior: Annotated[
        Path,
        typer.Argument(
            metavar="POSTERIOR",
            help="A file that `noisewise infer` wrote, a fitted graphical model, or a partition "
            "release, which is its own answer.",
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
    from noisewise import report as pages

    writable(out, is_page, "page")
    found = None
    if check is not None:
        from noisewise.simulate import load_check

        found = load_check(check)
    pages.save(_result(posterior), out, found)
    typer.echo(f"wrote {out}")


def _result(path: Path) -> Any:
    """By what the file says it is."""
    try:
        with open(path, "rb") as opened:
            first = opened.read(1)
    except OSError as error:
        raise ArgumentError(f"posterior: {str(path)!r} cannot be read: {error.strerror}") from None
    if first != b"{":
        from noisewise.inference import load_posterior

        return load_posterior(path)
    try:
        return Release.load(path)
    except NoisewiseError:
        from noisewise.inference import load_posterior

        return load_posterior(path)
