"""The tables of the study: records, columns, and bounds that someone who knows the matter guesses.

scikit-learn brings diabetes, wine, breast-cancer and iris; ``diamonds.csv`` (ggplot2's) and
``insurance.csv`` (B. Lantz, "Machine Learning with R") are read from a folder where it has them.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
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


def questions(folder: Path | None) -> list[Question]:
    """Return the regressions whose tables are at hand."""
    import pandas as pd
    from sklearn import datasets

    known = []
    for name, (table, y, limits, x) in QUESTIONS.items():
        if table in ("diamonds", "insurance"):
            if folder is None or not (folder / f"{table}.csv").exists():
                continue
            frame = pd.read_csv(folder / f"{table}.csv")
        else:
            unscaled = {"scaled": False} if table == "diabetes" else {}
            frame = getattr(datasets, f"load_{table}")(as_frame=True, **unscaled).frame
        bounds = np.array([*x.values(), limits], float)
        known.append(Question(name, frame[[*x, y]].to_numpy(float), bounds))
    return known


def study_arguments(program: str) -> argparse.ArgumentParser:
    """Return what both studies are asked on the command line."""
    parser = argparse.ArgumentParser(prog=program)
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--data", type=Path, help="folder with diamonds.csv and insurance.csv")
    parser.add_argument("--out", type=Path, help="also write all rows as JSON")
    parser.add_argument("--covariates", type=int, nargs="*", default=[1, 2, 3])
    return parser
