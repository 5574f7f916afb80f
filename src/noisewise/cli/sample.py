"""``noisewise sample RESULT``: synthetic records, drawn from what was inferred."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from noisewise.cli.shared_options import ResultFile, check_table, load_result, write_table


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
