"""What the methods are compared with; none of it is offered by the library."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from noisewise.models.graphical_model import maximum_likelihood
from noisewise.models.graphical_model.fitted_model import GraphicalModel, fitted_model
from noisewise.models.graphical_model.maximum_likelihood import maximise_likelihood
from noisewise.models.graphical_model.problem import TablesProblem

LAMBDAS = (1e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1)


def hindsight(
    problem: TablesProblem, true: GraphicalModel, lambdas: Sequence[float] = LAMBDAS
) -> tuple[float, float]:
    """KL of the naive fit whose λ is best *given the truth*, and that λ: no one could pick it."""
    tried = [(true.kl(maximum_likelihood.run(problem, lam)), lam) for lam in lambdas]
    return min(tried)


def matched(
    problem: TablesProblem, shares: np.ndarray, lam: float, method: str = "matched"
) -> GraphicalModel:
    """Maximum likelihood for any tables of shares: exact ones, unprojected ones, made-up ones."""
    found = maximise_likelihood(
        problem.oracle, jnp.asarray(shares), jnp.asarray(problem.place), jnp.zeros(problem.free),
        float(lam),
    )  # fmt: skip
    return fitted_model(problem, np.asarray(found.x), method, {}, True)


def uniform(true: GraphicalModel) -> GraphicalModel:
    """Every record equally likely."""
    return dataclasses.replace(true, potentials=np.zeros_like(true.potentials), method="uniform")


def mirror_descent(problem: TablesProblem, iterations: int = 1000) -> GraphicalModel:
    """mbi's own estimator: mirror descent on the squared distance to the noisy tables."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import mbi
    model = problem.model
    domain = mbi.Domain(model.variables, model.states)
    deviation = np.sqrt(2) * problem.scale
    measured = [
        mbi.LinearMeasurement(problem.y[where], clique, deviation)
        for clique, where in zip(model.cliques, model.slices, strict=True)
    ]
    found = mbi.estimation.MirrorDescent().estimate(
        domain, measured, known_total=problem.n, iters=iterations
    )
    potentials = np.concatenate(
        [np.asarray(found.potentials[c].values, float).ravel() for c in model.cliques]
    )
    return GraphicalModel(model, problem.levels, potentials, "mbi", problem.n)
