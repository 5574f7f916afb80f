"""What the nodes of several columns do to coefficients, without noise and with many records.

The largest error of a coefficient that solves the moment equations under the box law's nodes, over
the predictor's deviation, for independent columns. Prints rows:

python -m experiments.generalized_linear.nodes
"""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
from scipy.optimize import root
from scipy.special import expit

from noisewise.models.generalized_linear import covariate_nodes
from noisewise.models.generalized_linear.covariate_nodes import CovariateNodes, box_nodes

RECORDS, SEED = 200_000, 1
"""Records by which shapes are known, and their seed."""
INTERCEPT = -0.5
"""Log odds at the mean of the covariates."""


def columns(rng: np.random.Generator, kind: str, d: int) -> np.ndarray:
    """Return records of d independent columns: uniform, beta(1, 6), or by turns."""
    uniform = rng.uniform(-1, 1, (RECORDS, d))
    skewed = 2 * rng.beta(1, 6, (RECORDS, d)) - 1
    if kind == "both":
        return np.where(np.arange(d) % 2, skewed, uniform)
    return uniform if kind == "uniform" else skewed


def solved(nodes: CovariateNodes, wanted: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return the coefficients that give the wanted moments of (y, yz)."""
    one = np.column_stack([np.ones(len(nodes.z)), nodes.z])

    def off(theta: np.ndarray) -> np.ndarray:
        return np.asarray(one.T @ (nodes.weight * expit(one @ theta)) - wanted)

    return np.asarray(root(off, start, tol=1e-12).x)


def main() -> None:
    """Print a row per number of columns, shape, size of slopes and rule."""
    rng = np.random.default_rng(SEED)
    for d in (4, 5):
        for kind in ("uniform", "beta", "both"):
            for size in (1.0, 2.0):
                x = columns(rng, kind, d)
                mean, covariance = x.mean(axis=0), np.cov(x.T, ddof=0)
                z = np.linalg.solve(np.linalg.cholesky(covariance), (x - mean).T).T
                slopes = rng.standard_normal(d)
                theta = np.append(INTERCEPT, size * slopes / np.linalg.norm(slopes))
                one = np.column_stack([np.ones(len(z)), z])
                wanted = one.T @ expit(one @ theta) / len(z)
                found = []
                for rule, points in ((3, 0), (4, 0), (0, 512), (0, 128)):
                    rules = {d: (rule,) * d} if rule else {0: (1,)}
                    with (
                        patch.object(covariate_nodes, "NODES_OF_COLUMNS", rules),
                        patch.object(covariate_nodes, "LARGEST", points or 10_000),
                    ):
                        nodes = box_nodes(mean, covariance, np.zeros(d, bool))
                    error = np.abs(solved(nodes, wanted, theta) - theta).max() / size
                    name = f"{rule}^{d}" if rule else f"Sobol {points}"
                    found.append(f"{name} {error:.3f}")
                print(d, kind, size, *found, flush=True)


if __name__ == "__main__":
    main()
