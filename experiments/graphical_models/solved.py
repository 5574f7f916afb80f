"""How well the E-step is solved along EM's path, and how far NLBP is at equal calls.

    python -m experiments.graphical_models.solved --out FILE [--graphs chain …]

At the start, half way and at the end of EM's path: marginal calls to a relative duality gap of
1e-5 (``estep.py`` says relative to what), and both solvers' distance to the optimum after
``CALLS`` calls.
"""

from __future__ import annotations

import json
from typing import Any

import jax.numpy as jnp
import numpy as np

from experiments.graphical_models import simulate
from experiments.graphical_models.accuracy import EPSILONS, GRAPHS, options
from noisewise.infer.graphical import cgm, estep, nlbp
from noisewise.infer.graphical.estep import Noise
from noisewise.infer.graphical.likelihood import maximise
from noisewise.infer.graphical.problem import Problem

CALLS = 150


def main() -> None:
    """One JSON line per trial and point of the path."""
    parse = options()
    parse.add_argument("--calls", type=int, default=CALLS)
    words = parse.parse_args()
    with open(words.out, "a", encoding="utf-8") as out:
        for kind in words.graphs:
            for trial in range(words.trials):
                rng = np.random.default_rng([words.seed, GRAPHS.index(kind), trial])
                true = simulate.truth(simulate.graph(kind, rng), rng)
                for n in words.sizes:
                    exact = simulate.counts(true, n, seed=int(rng.integers(2**31)))
                    for epsilon in EPSILONS:
                        problem = simulate.noisy(true, exact, n, epsilon, rng)
                        line = {"graph": kind, "trial": trial, "n": n, "epsilon": epsilon}
                        for point in points(problem, words.calls):
                            out.write(json.dumps({**line, **point}) + "\n")
                            out.flush()


def points(problem: Problem, calls: int) -> list[dict[str, Any]]:
    """E-steps from θ = 0, from half of the fitted potentials, and from the fitted ones."""
    fitted = cgm.run(problem).potentials
    return [
        {"share": share, **compared(problem, share * fitted, calls)} for share in (0.0, 0.5, 1.0)
    ]


def compared(problem: Problem, theta: np.ndarray, most: int) -> dict[str, Any]:
    """Calls to the goal; what is missing after ``most`` calls, of the dual and of NLBP."""
    noise = Noise(jnp.asarray(problem.scale), jnp.asarray(problem.n))
    t, at = jnp.asarray(problem.y / problem.n), jnp.asarray(theta)
    still = jnp.zeros_like(at)

    def solved(tolerance: float, calls: int) -> estep.Step:
        return estep.compiled(problem.oracle, "laplace", at, still, t, noise, tolerance, calls)

    goal, best, early = solved(1e-5, 1000), solved(1e-10, 3000), solved(0.0, most)
    mu, _ = nlbp.compiled(problem.oracle, "laplace", at, t, noise, most, 0.0)
    place = jnp.arange(len(theta))
    matched = maximise(problem.oracle, mu, place, at, 0.0, 1e-9, 2000).x
    top = primal(problem, theta, best.phi, best.mu)
    return {
        "calls": int(goal.calls),
        "compared_at": most,
        "missing_dual": top - primal(problem, theta, early.phi, early.mu),
        "missing_nlbp": top - primal(problem, theta, matched, mu),
    }


def primal(problem: Problem, theta: np.ndarray, phi: Any, mu: Any) -> float:
    """θᵀμ + H(μ) - ‖y/N - μ‖₁/b, where φ has marginals μ."""
    entropy = float(problem.oracle.log_partition(phi) - phi @ mu)
    distance = float(np.abs(problem.y / problem.n - np.asarray(mu)).sum())
    return float(theta @ np.asarray(mu)) + entropy - distance / problem.scale


if __name__ == "__main__":
    main()
