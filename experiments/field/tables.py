"""The tables on which all methods are compared, each with the regression asked of it.

Those of ``experiments.real_tables``, and two that are made (``experiments.factors.tables``): log
wages on education and sex, and incomes like ACSincome's on three 0/1 columns, since several methods
know no factors. Every table is a population: a trial draws its records with replacement, and what
is to be found is the least-squares fit of the whole table.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from experiments.factors.tables import WAGE_BOUNDS, acs_income, wages
from experiments.real_tables.tables import QUESTIONS as REAL
from experiments.real_tables.tables import SHIPPED, Question, questions

SMALL = 5000
"""Records of a trial where the table was not made."""
INDICATORS = (("sex", "s1"), ("schooling", "s0"), ("marital", "m0"))
"""Levels of the table of incomes that are asked about: .48, .24 and .53 of the people."""


@dataclass(frozen=True, eq=False)
class Population:
    """A table in the box [-1, 1], response last, and how many records a trial draws from it."""

    name: str
    box: np.ndarray
    n: int

    @property
    def columns(self) -> int:
        """Return how many columns there are, the response included."""
        return int(self.box.shape[1])

    @cached_property
    def design(self) -> np.ndarray:
        """Return the covariates with a column of ones last."""
        return np.column_stack([self.box[:, :-1], np.ones(len(self.box))])

    @cached_property
    def truth(self) -> np.ndarray:
        """Return slopes and intercept of the whole table's least squares, in the box."""
        return np.linalg.lstsq(self.design, self.box[:, -1], rcond=None)[0]

    def sample(self, seed: int, trial: int) -> np.ndarray:
        """Return the records of a trial; they depend on nothing but table, seed and trial."""
        rng = np.random.default_rng([seed, trial, *self.name.encode()])
        return self.box[rng.integers(0, len(self.box), self.n)]

    def errors(self, theta: np.ndarray) -> tuple[float, float]:
        """Return the mean squared error of predictions of a record that is drawn next.

        That is the mean over the whole table: once as predicted, once held within the response's
        bounds. In units of the box.
        """
        with np.errstate(over="ignore"):
            predicted = self.design @ theta
            plain = float(np.mean((self.box[:, -1] - predicted) ** 2))
        return plain, float(np.mean((self.box[:, -1] - np.clip(predicted, -1, 1)) ** 2))


def _made() -> list[Question]:
    table = wages()
    records = np.column_stack([table.columns[c] for c in ("education", "female", "wage")])
    limits = np.array([WAGE_BOUNDS[c] for c in ("education", "female", "wage")])
    income = acs_income()
    indicators = [np.asarray(income.columns[f] == level, float) for f, level in INDICATORS]
    bounds = np.array([*[(0.0, 1.0)] * len(INDICATORS), income.bounds["income"]])
    return [
        Question("wages 2", records.astype(float), limits),
        Question("incomes 3", np.column_stack([*indicators, income.columns["income"]]), bounds),
    ]


SOURCES = ("made", "shipped", "folder")
"""Tables that are made, that scikit-learn brings, and that are read from a folder: in the order in
which posteriors take longer."""


def populations(source: str, columns: int, folder: Path | None = None) -> list[Population]:
    """Return the tables of one source with so many columns, the response included."""
    if source == "made":
        return [
            Population(q.name, q.in_box(1), len(q.records))
            for q in _made()
            if q.records.shape[1] == columns
        ]
    known = [q for q in questions(folder) if (REAL[q.name][0] in SHIPPED) == (source == "shipped")]
    return [Population(q.name, q.in_box(1), SMALL) for q in known if q.records.shape[1] == columns]
