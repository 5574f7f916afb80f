"""Method ``naive-mle``: as if the noisy tables were the true ones (thesis 3.2.2, 3.2.3).

Every noisy table is projected onto the simplex (J. Duchi et al., ICML 2008), then the regularised
likelihood is maximised; λ is given. Zeros that the projection makes have no finite maximum, so the
result hangs on λ: that is the pathology the other methods do not have.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from noisewise.artifact import ArgumentError
from noisewise.models.graphical_model.likelihood import maximise
from noisewise.models.graphical_model.model import GraphicalModel, fitted
from noisewise.models.graphical_model.problem import Problem

LAMBDA = 1e-5


def run(problem: Problem, lam: float = LAMBDA) -> GraphicalModel:
    """A point estimate that ignores the noise."""
    if isinstance(lam, bool) or not isinstance(lam, int | float) or not 0 < lam < np.inf:
        raise ArgumentError(f"lam: must be a number above zero, not {lam!r}")
    target, projected = projected_tables(problem)
    found = maximise(
        problem.oracle, jnp.asarray(target), jnp.asarray(problem.place),
        jnp.zeros(problem.free), float(lam),
    )  # fmt: skip
    details = {
        "lam": float(lam),
        "projected_share": projected,
        "marginal_calls": int(found.calls),
        "gradient": float(found.measure),
    }
    converged = float(found.measure) <= 1e-4
    return fitted(problem, np.asarray(found.x), "naive-mle", details, converged)


def projected_tables(problem: Problem) -> tuple[np.ndarray, float]:
    """Every table as probabilities, and the share of cells that became zero (errata E18)."""
    parts = [project(problem.y[where] / problem.n) for where in problem.model.slices]
    flat = np.concatenate(parts)
    return flat, float((flat == 0).mean())


def project(values: np.ndarray) -> np.ndarray:
    """The nearest point of the probability simplex."""
    falling = np.sort(values)[::-1]
    excess = np.cumsum(falling) - 1
    kept = np.nonzero(falling - excess / np.arange(1, len(values) + 1) > 0)[0][-1]
    return np.asarray(np.maximum(values - excess[kept] / (kept + 1), 0.0))
