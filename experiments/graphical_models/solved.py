"""How well the E-step is solved along EM's path, and how far NLBP is at equal calls.

    python -m experiments.graphical_models.solved --out FILE [--graphs chain …]

At the start, half way and at the end of EM's path, from v = 0: marginal calls to a relative gap of
1e-5 (``e_step.py`` says relative to what), and what the primal P misses of its optimum P* after
``CALLS`` calls, of the dual at the most and of NLBP at the least. With v of another solve, gap g*,
r = y/N - μ, and any potentials φ' (the better they fit NLBP's μ, the sharper),

    dual:  P* - P(μ) ≤ gap
    NLBP:  P* - P(μ) ≥ Σ |r|/b - v r - g* + [A(φ) - φᵀμ] - [A(φ') - φ'ᵀμ],   φ = θ + v.

The first is weak duality; the second too, with H(μ) ≤ A(φ') - φ'ᵀμ. So NLBP is at least ``ratio``
times as far from the optimum, however well the optimum is known.
"""

from __future__ import annotations

import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.graphical_models.accuracy import options, releases
from noisewise.models.graphical_model import collective_em, e_step
from noisewise.models.graphical_model.e_step import EStepSolution, TableNoise
from noisewise.models.graphical_model.marginal_oracle import compiled_oracle
from noisewise.models.graphical_model.maximum_likelihood import maximise_likelihood
from noisewise.models.graphical_model.problem import TablesProblem

CALLS = (50, 150)
LEAST = 1e-12
"""A relative gap below this is rounding: solves stop there, and smaller ones count as this."""
MATCHING = 300
"""Calls to fit potentials to NLBP's tables."""


def main() -> None:
    """One JSON line per release and point of the path."""
    words = options().parse_args()
    with open(words.out, "a", encoding="utf-8") as out:
        for kind in words.graphs:
            for trial in range(words.trials):
                for cell in releases(kind, trial, words.seed, words.sizes):
                    line = {"graph": kind, "trial": trial, "n": cell.n, "epsilon": cell.epsilon}
                    for point in points(cell.problem):
                        out.write(json.dumps({**line, **point}) + "\n")
                        out.flush()


def points(problem: TablesProblem) -> list[dict[str, Any]]:
    """E-steps from θ = 0, from half of the fitted potentials, and from the fitted ones."""
    fitted = collective_em.run(problem).potentials
    return [{"share": share, **compared(problem, share * fitted)} for share in (0.0, 0.5, 1.0)]


def compared(problem: TablesProblem, theta: np.ndarray) -> dict[str, Any]:
    """Calls to the goal; what is missing after ``CALLS``, of the dual and of NLBP."""
    noise = TableNoise(jnp.asarray(problem.scale), jnp.asarray(problem.n))
    t, at = jnp.asarray(problem.y / problem.n), jnp.asarray(theta)

    def solved(tolerance: float, calls: int) -> EStepSolution:
        still = jnp.zeros_like(at)
        return e_step.solve_dual_accurately(
            problem.oracle, "laplace", at, still, t, noise, tolerance, calls
        )

    def gap(phi: Any, mu: Any) -> float:
        residual, v = np.asarray(t - mu), np.asarray(phi - at)
        return float((np.abs(residual) / problem.scale - v * residual).sum())

    goal, best = solved(1e-5, 1000), solved(1e-10, 1000)
    first = gap(at, compiled_oracle(problem.oracle)(at)[1])
    found: dict[str, Any] = {"calls": int(goal.calls), "gap": float(goal.gap)}
    found["best_gap"] = float(best.gap)
    for calls in CALLS:
        early = solved(LEAST, calls)
        mu, _ = jax.jit(e_step.nonlinear_belief_propagation, static_argnums=(0, 1))(
            problem.oracle, "laplace", at, t, noise, calls, 0.0
        )
        dual = max(gap(early.phi, early.mu), LEAST * first)
        other = gap(best.phi, mu) - gap(best.phi, best.mu) + divergence(problem, mu, best.phi)
        found |= {f"dual_{calls}": dual, f"nlbp_{calls}": other, f"ratio_{calls}": other / dual}
    return found


def divergence(problem: TablesProblem, mu: Any, phi: Any) -> float:
    """KL(μ‖φ) or less: A(φ) - φᵀμ + H(μ), its entropy bounded by the nearest φ' found."""
    place = jnp.arange(len(phi))
    near = maximise_likelihood(problem.oracle, mu, place, phi, 0.0, 1e-9, MATCHING).x
    far, close = (float(compiled_oracle(problem.oracle)(p)[0] - p @ mu) for p in (phi, near))
    return max(far - close, 0.0)


if __name__ == "__main__":
    main()
