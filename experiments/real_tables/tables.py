"""The tables of the study: records, columns, and bounds that someone who knows the matter guesses.

scikit-learn brings diabetes, wine, breast-cancer and iris; ``diamonds.csv`` (ggplot2's) and
``insurance.csv`` (B. Lantz, "Machine Learning with R") are read from a folder where it has them.
``python -m experiments.real_tables.export FOLDER`` writes scikit-learn's there, too, for machines
that do not have it; a table that the folder has is read from there.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

Limits = tuple[float, float]

DIABETES = {"bmi": (15, 45), "bp": (50, 150), "s5": (3, 7)}
QUESTIONS: Mapping[str, tuple[str, str, Limits, Mapping[str, Limits]]] = {
    "diamonds 1": ("diamonds", "price", (0, 20_000), {"carat": (0, 5)}),
    "diamonds 3": (
        "diamonds", "price", (0, 20_000), {"carat": (0, 5), "depth": (40, 80), "table": (40, 100)},
    ),
    "insurance 1": ("insurance", "charges", (0, 65_000), {"age": (18, 65)}),
    "insurance 3": (
        "insurance", "charges", (0, 65_000), {"age": (18, 65), "bmi": (10, 60), "children": (0, 5)},
    ),
    "diabetes 1": ("diabetes", "target", (0, 350), {"bmi": (15, 45)}),
    "diabetes 3": ("diabetes", "target", (0, 350), DIABETES),
    "wine 2": ("wine", "alcohol", (10, 16), {"color_intensity": (0, 15), "proline": (200, 1800)}),
    "cancer 1": ("breast_cancer", "mean area", (0, 2600), {"mean radius": (5, 30)}),
    "cancer 3": (
        "breast_cancer", "mean radius", (5, 30),
        {"mean texture": (5, 40), "mean smoothness": (0, 0.2), "mean symmetry": (0, 0.4)},
    ),
    "iris 1": ("iris", "petal length (cm)", (0, 8), {"sepal length (cm)": (4, 8)}),
    "iris 3": (
        "iris", "petal width (cm)", (0, 3),
        {"sepal length (cm)": (4, 8), "sepal width (cm)": (2, 5), "petal length (cm)": (0, 8)},
    ),
}  # fmt: skip
"""Regressions by name: table, response and its bounds, covariates and theirs."""


@dataclass(frozen=True, eq=False)
class Question:
    """Records (record, column) of covariates and response, in their own units, and their bounds."""

    name: str
    records: np.ndarray
    bounds: np.ndarray

    def in_box(self, f: float) -> np.ndarray:
        """Return the records in [-1, 1], every upper bound f times what was guessed."""
        low, high = self.bounds[:, 0], self.bounds[:, 1] * f
        return np.clip((2 * self.records - low - high) / (high - low), -1, 1)


@dataclass(frozen=True, eq=False)
class Table:
    """Records (record, column) and the names of the columns."""

    names: tuple[str, ...]
    values: np.ndarray

    def __getitem__(self, columns: Sequence[str]) -> np.ndarray:
        """Return the records of these columns, in this order."""
        return self.values[:, [self.names.index(name) for name in columns]]


SHIPPED = ("diabetes", "wine", "breast_cancer", "iris")
"""Tables that scikit-learn brings."""


def shipped(name: str) -> Table:
    """Return a table of scikit-learn's, in its own units."""
    from sklearn import datasets

    unscaled = {"scaled": False} if name == "diabetes" else {}
    made = getattr(datasets, f"load_{name}")(**unscaled)
    names = tuple(n.removesuffix("\n") for n in made.feature_names)
    return Table((*names, "target"), np.column_stack([made.data, made.target]).astype(float))


def read(path: Path) -> Table:
    """Return the columns of numbers of a CSV file whose first line names them."""
    with path.open(newline="") as file:
        names, *lines = csv.reader(file)
    at = [i for i, entry in enumerate(lines[0]) if _is_number(entry)]
    return Table(
        tuple(names[i] for i in at), np.array([[float(line[i]) for i in at] for line in lines])
    )


def _is_number(entry: str) -> bool:
    try:
        float(entry)
    except ValueError:
        return False
    return True


def table(name: str, folder: Path | None) -> Table:
    """Return a table from the folder where it has it, else scikit-learn's."""
    if folder is not None and (folder / f"{name}.csv").exists():
        return read(folder / f"{name}.csv")
    return shipped(name)


def questions(folder: Path | None) -> list[Question]:
    """Return the regressions whose tables are at hand."""
    known = []
    for name, (source, y, limits, x) in QUESTIONS.items():
        if source in SHIPPED or (folder is not None and (folder / f"{source}.csv").exists()):
            records = table(source, folder)[[*x, y]]
            known.append(Question(name, records, np.array([*x.values(), limits], float)))
    return known


def study_arguments(program: str) -> argparse.ArgumentParser:
    """Return what both studies are asked on the command line."""
    parser = argparse.ArgumentParser(prog=program)
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--data", type=Path, help="folder with CSV files")
    parser.add_argument("--out", type=Path, help="also write all rows as JSON")
    parser.add_argument("--covariates", type=int, nargs="*", default=[1, 2, 3])
    return parser
