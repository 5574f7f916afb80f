"""Run the study and print, per cell, coverage and width beside least squares'."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import groupby

import numpy as np

from experiments.real_tables.study import CELLS, PRIORS, Row, cell
from experiments.real_tables.tables import Question, questions, study_arguments


def line(row: Row) -> str:
    """Return a row of the printed table; * marks visible columns."""
    ratio = np.array(row.width) / np.array(row.least_squares_width)
    shown = [f"{c:.3f} ({r:.2g})" for c, r in zip(row.coverage, ratio, strict=True)]
    seen = "".join("*" if v else "-" for v in row.visible)
    return (
        f"{row.name:12} f {row.f:2} n {row.n} epsilon {row.epsilon:g} {row.prior:10} {seen:4} "
        f"{'  '.join(shown)}  converged {row.converged:.2f}"
    )


def judgement(rows: list[Row]) -> str:
    """Return least and mean coverage of coefficients and of σ²."""
    coefficients = np.concatenate([row.coverage[:-1] for row in rows])
    variance = np.array([row.coverage[-1] for row in rows])
    return (
        f"{rows[0].prior}: coefficients at least {coefficients.min():.3f} (mean "
        f"{coefficients.mean():.3f}), sigma2 at least {variance.min():.3f} (mean "
        f"{variance.mean():.3f}) over {len(rows)} cells; converged "
        f"{np.mean([row.converged for row in rows]):.3f}"
    )


def main() -> None:
    """Run all cells."""
    given = study_arguments("python -m experiments.real_tables").parse_args()

    def columns(question: Question) -> int:
        return int(question.records.shape[1])

    rows: list[Row] = []
    asked = [q for q in questions(given.data) if columns(q) - 1 in given.covariates]
    for _, alike in groupby(sorted(asked, key=columns), key=columns):
        some = list(alike)
        for n, epsilon in CELLS:
            fresh = cell(some, n, epsilon, given.samples, given.seed)
            print(*map(line, fresh), sep="\n", flush=True)
            rows += fresh
            if given.out:
                given.out.write_text(json.dumps([asdict(row) for row in rows]))
    for prior in PRIORS:
        print(judgement([row for row in rows if row.prior == prior]))


if __name__ == "__main__":
    main()
