"""What a law of the covariates does to a slope, without noise and with endless records.

The slope that solves E[h(t) (1, z)] = E[y (1, z)] under the law, over the true one, for covariates
of other shapes. Prints rows of a table:

python -m experiments.generalized_linear.population
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import root
from scipy.special import expit

from experiments.generalized_linear.simulate import SHAPES
from noisewise.models.generalized_linear.covariate_nodes import (
    CovariateNodes,
    box_nodes,
    normal_nodes,
)

RECORDS, SEED = 1_000_000, 12
"""Records by which a shape is known, and their seed."""
INTERCEPT = -0.5
"""Log odds at the mean of the covariate."""
SLOPES = (0.5, 1.0, 2.0, 2.5)
"""Logits per standard deviation."""


def solved(nodes: CovariateNodes, wanted: np.ndarray, start: tuple[float, float]) -> float:
    """Return the slope that gives the wanted moments of (y, yz), NaN where none does."""
    z, weight = nodes.z[:, 0], nodes.weight

    def off(ab: np.ndarray) -> np.ndarray:
        mean = expit(ab[0] + ab[1] * z)
        return np.array([weight @ mean, weight @ (mean * z)]) - wanted

    found = root(off, start, tol=1e-12)
    return float(found.x[1]) if np.abs(off(found.x)).max() < 1e-9 else np.nan


def main() -> None:
    """Print a row per shape and law."""
    rng = np.random.default_rng(SEED)
    for name in ("uniform", "binary .3", "beta(1, 6)", "two clusters"):
        x = SHAPES[name](rng, RECORDS)[:, 0]
        z = (x - x.mean()) / x.std()
        made = box_nodes(
            np.array([x.mean()]), np.array([[x.var()]]), np.array([name == "binary .3"])
        )
        for law, nodes in (("normal", normal_nodes(1)), ("box", made)):
            cells = []
            for slope in SLOPES:
                mean = expit(INTERCEPT + slope * z)
                wanted = np.array([mean.mean(), (mean * z).mean()])
                ratio = solved(nodes, wanted, (INTERCEPT, slope)) / slope
                cells.append("–" if np.isnan(ratio) else f"{ratio:.2f}")
            print(f"| {name} | {law} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
