"""Collinear covariates: scikit-learn's diabetes, all ten, with so little noise that data decide.

python -m experiments.real_tables.collinear [--releases 40] [--epsilon 1000] [--data FOLDER]
                                            [--out FILE]

Bounds reach 2 % of the range beyond the data. Every release is compared with least squares of the
same 442 records.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from experiments.real_tables.study import fit
from experiments.real_tables.tables import table
from noisewise.models.linear_regression import exact
from noisewise.models.linear_regression.problem import (
    RegressionProblem,
    Units,
    default_covariates,
    default_response,
)

NAMES = ("age", "sex", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6")
SEED = 442
MARGIN = 0.02
"""How far bounds reach beyond the data, in ranges (chosen)."""


def released(box: np.ndarray, epsilon: float, releases: int) -> RegressionProblem:
    """Return that many releases of the same records in the box, as groups; the noise is NumPy's."""
    n, q = box.shape
    sums = np.concatenate([(box.T @ box)[np.triu_indices(q)], box.sum(axis=0)])
    scale = q * (q + 2) ** 2 / (2 * (q + 1)) / epsilon
    noise = np.random.default_rng(SEED).laplace(0, scale, (releases, len(sums)))
    units = Units(np.zeros(q), np.ones(q))
    return RegressionProblem(
        NAMES, "target", sums + noise, np.full(releases, float(n)), False, scale, "laplace",
        default_response(units), default_covariates(units), units, tuple(range(releases)),
        scale_free=True,
    )  # fmt: skip


def main() -> None:
    """Run the releases; print how many intervals hold, deviations and shifts."""
    parser = argparse.ArgumentParser(prog="python -m experiments.real_tables.collinear")
    parser.add_argument("--releases", type=int, default=40)
    parser.add_argument("--epsilon", type=float, default=1000.0)
    parser.add_argument("--data", type=Path, help="folder with CSV files")
    parser.add_argument("--out", type=Path, help="also write every release as JSON")
    given = parser.parse_args()
    records = table("diabetes", given.data)[[*NAMES, "target"]]
    low, high = records.min(axis=0), records.max(axis=0)
    box = (2 * records - low - high) / ((1 + 2 * MARGIN) * (high - low))
    truth, width = fit(box)
    error = width / 3.92
    post = exact.run(released(box, given.epsilon, given.releases), SEED, 4, 500)
    draws = np.stack([v.reshape(given.releases, -1) for v in post.draws.values()], axis=1)
    ends = np.quantile(draws, [0.025, 0.975], axis=-1)
    held = (ends[0] <= truth) & (truth <= ends[1])
    deviation, shift = draws.std(axis=-1) / error, (draws.mean(axis=-1) - truth) / error
    tries = np.bincount(post.details["tries"], minlength=4)[1:].tolist()
    print(f"epsilon {given.epsilon:g}, {given.releases} releases")
    print("          ", " ".join(f"{name:>9}" for name in (*NAMES, "intercept", "sigma2")))
    print("held      ", " ".join(f"{v:9d}" for v in held.sum(axis=0)))
    print("deviation ", " ".join(f"{v:9.2f}" for v in deviation.mean(axis=0)))
    print("shift     ", " ".join(f"{v:9.2f}" for v in shift.mean(axis=0)))
    print(f"not converged {len(post.unconverged)}, by tries {tries}")
    if given.out:
        found = {"held": held, "deviation": deviation, "shift": shift}
        made = {name: values.tolist() for name, values in found.items()}
        given.out.write_text(json.dumps(made | {"tries": tries}))


if __name__ == "__main__":
    main()
