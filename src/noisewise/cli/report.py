"""``noisewise report RESULT``: one HTML page a person can open, print and pass on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from noisewise.cli.shared_options import check_page


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
