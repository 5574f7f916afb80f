"""The distances that ``solved`` reports are bounds: on a chain, entropies are sums over tables."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import entr

from experiments.graphical_models import simulate, solved
from noisewise.models.graphical_model import e_step
from noisewise.models.graphical_model.e_step import TableNoise
from noisewise.models.graphical_model.problem import TablesProblem

NODES, STATES = 4, 3


def made(epsilon: float) -> TablesProblem:
    rng = np.random.default_rng(3)
    true = simulate.truth(simulate.graph("chain", rng, NODES, STATES), rng)
    return simulate.noisy(true, simulate.counts(true, 1000, 3), 1000, epsilon, rng)


def primal(problem: TablesProblem, theta: np.ndarray, mu: np.ndarray) -> float:
    """θᵀμ + H(μ) - ‖y/N - μ‖₁/b."""
    tables = mu.reshape(NODES - 1, STATES, STATES)
    entropy = entr(tables).sum() - entr(tables[1:].sum(axis=2)).sum()
    distance = np.abs(problem.y / problem.n - mu).sum() / problem.scale
    return float(theta @ mu + entropy - distance)


def test_distances_to_the_optimum_are_bounds() -> None:
    for epsilon in (0.05, 5.0):
        problem = made(epsilon)
        theta = np.random.default_rng(4).normal(0, 0.3, problem.free)
        found = solved.compared(problem, theta)
        noise = TableNoise(jnp.asarray(problem.scale), jnp.asarray(problem.n))
        at, t = jnp.asarray(theta), jnp.asarray(problem.y / problem.n)
        best = e_step.solve_dual_accurately(
            problem.oracle, "laplace", at, jnp.zeros_like(at), t, noise, 1e-10, 1000
        )
        mu, _ = jax.jit(e_step.nonlinear_belief_propagation, static_argnums=(0, 1))(
            problem.oracle, "laplace", at, t, noise, 50, 0.0
        )
        top = primal(problem, theta, np.asarray(best.mu))
        missing = top - primal(problem, theta, np.asarray(mu))
        assert found["calls"] <= 150
        assert found["gap"] <= 1e-5
        assert 0.99 * missing <= found["nlbp_50"] <= missing + 1e-9
        assert 0 < found["dual_50"] < found["nlbp_50"] / 10
