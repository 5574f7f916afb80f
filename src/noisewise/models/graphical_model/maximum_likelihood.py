"""Maximum likelihood, and method ``naive-mle``: as if the noisy tables were the true ones.

Maximum likelihood of a graphical model matches its marginals to given ones,

    max_ψ  θᵀμ̄ - A(θ) - λ‖ψ‖²,   θ = ψ[place]

(thesis 3.2, 3.2.3). ``place`` is the identity unless potentials are tied.

``naive-mle`` (thesis 3.2.2, 3.2.3) projects every noisy table onto the simplex (J. Duchi et al.,
ICML 2008) and then maximises the regularised likelihood for a given λ. Zeros that the projection
makes have no finite maximum, so the result depends on λ: a defect that the other methods do not
have.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.artifact import ArgumentError
from noisewise.models.graphical_model.fitted_model import GraphicalModel, fitted_model
from noisewise.models.graphical_model.marginal_oracle import Oracle
from noisewise.models.graphical_model.problem import TablesProblem
from noisewise.numerics.projected_lbfgs import Minimum, minimise_projected_lbfgs

DEFAULT_LAMBDA = 1e-5
"""λ of ``naive-mle`` unless the analyst says otherwise (chosen)."""
MARGINAL_TOLERANCE = 1e-6
"""Largest difference between a marginal and its target at which the fit stops (chosen)."""
MAX_LIKELIHOOD_CALLS = 5000
"""Marginal calls after which the fit gives up (chosen)."""
CONVERGED_GRADIENT = 1e-4
"""Largest difference between a marginal and its target that still counts as converged (chosen)."""


@partial(jax.jit, static_argnums=(0,))
def maximise_likelihood(
    oracle: Oracle,
    target: jax.Array,
    place: jax.Array,
    start: jax.Array,
    lam: jax.Array | float,
    tolerance: jax.Array | float = MARGINAL_TOLERANCE,
    max_calls: jax.Array | int = MAX_LIKELIHOOD_CALLS,
) -> Minimum:
    """Maximise the regularised likelihood of the target marginals.

    Args:
        oracle: the model.
        target: marginals to be matched, clique after clique.
        place: which free parameter each cell of θ is.
        start: free parameters to begin with.
        lam: the regularisation λ.
        tolerance: largest gradient entry at which to stop.
        max_calls: marginal calls after which to give up.

    Returns:
        The free parameters as ``x``; ``aux`` holds the (summed) marginals there.
    """
    value = oracle.log_partition
    wanted = jnp.zeros_like(start).at[place].add(target)

    def loss(psi: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        a, mu = jax.value_and_grad(lambda p: value(p[place]))(psi)
        return a - psi @ wanted + lam * (psi @ psi), mu - wanted + 2 * lam * psi, mu

    curvature = loss(start)[2]
    scale = 1 / (jnp.maximum(curvature, 1e-2 * curvature.mean()) + 2 * lam)
    return minimise_projected_lbfgs(
        loss,
        lambda _, gradient, __: jnp.abs(gradient).max(),
        start,
        -jnp.inf,
        jnp.inf,
        tolerance=tolerance,
        max_calls=max_calls,
        scale=scale,
    )


def run(problem: TablesProblem, lam: float = DEFAULT_LAMBDA) -> GraphicalModel:
    """Fit the noisy tables as if they were exact; return the point estimate."""
    if isinstance(lam, bool) or not isinstance(lam, int | float) or not 0 < lam < np.inf:
        raise ArgumentError(f"lam: must be a number above zero, not {lam!r}")
    target, zero_share = projected_tables(problem)
    fit = maximise_likelihood(
        problem.oracle, jnp.asarray(target), jnp.asarray(problem.place),
        jnp.zeros(problem.free), float(lam),
    )  # fmt: skip
    details = {
        "lam": float(lam),
        "projected_share": zero_share,
        "marginal_calls": int(fit.calls),
        "gradient": float(fit.measure),
    }
    converged = float(fit.measure) <= CONVERGED_GRADIENT
    return fitted_model(problem, np.asarray(fit.x), "naive-mle", details, converged)


def projected_tables(problem: TablesProblem) -> tuple[np.ndarray, float]:
    """Return every table as probabilities, and the share of cells that became zero (errata E18)."""
    parts = [project_to_simplex(problem.y[where] / problem.n) for where in problem.model.slices]
    flat = np.concatenate(parts)
    return flat, float((flat == 0).mean())


def project_to_simplex(values: np.ndarray) -> np.ndarray:
    """Return the point of the probability simplex nearest to ``values``."""
    falling = np.sort(values)[::-1]
    excess = np.cumsum(falling) - 1
    kept = np.nonzero(falling - excess / np.arange(1, len(values) + 1) > 0)[0][-1]
    return np.asarray(np.maximum(values - excess[kept] / (kept + 1), 0.0))
