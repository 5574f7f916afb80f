"""Method ``cgm``: EM for collective graphical models (thesis Algorithm 2) with an exact E-step.

The true tables are latent. An E-step finds the most probable ones behind the noise (``e_step.py``);
its dual solution φ* already is the M-step, θ ← φ* (errata E17), unless potentials are tied. So EM
is a Bregman proximal point method on the noise's own loss, its fixed points are unregularised, and
stopping early is its only regularisation.

**When it stops.** At the iterate with the largest posterior density along the path,

    log p(y | n = Nμ(θ_t)) - ‖θ_t‖² / (2 spread²),

without looking at the data again. ``spread`` is the standard deviation of a log-potential; by
default π/√6, that of a log-probability under a flat Dirichlet prior. The rule weighs what one more
step explains against how much potential it takes, so it also holds where n is small: there every
step explains noise, at a price that grows. Rules on the residual alone misfire there, because the
noise's own fluctuation decides whether they are ever met.

E-steps on the way are solved to ``LOOSE_GAP`` of their starting gap, which leaves the path
unchanged; the last one to 1e-5.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.artifact import ArgumentError
from noisewise.models.graphical_model.e_step import (
    TableNoise,
    nonlinear_belief_propagation,
    solve_dual,
    solve_dual_accurately,
)
from noisewise.models.graphical_model.fitted_model import GraphicalModel, fitted_model
from noisewise.models.graphical_model.marginal_oracle import Oracle
from noisewise.models.graphical_model.maximum_likelihood import maximise_likelihood
from noisewise.models.graphical_model.problem import TablesProblem

DEFAULT_SPREAD = math.pi / math.sqrt(6)
"""Standard deviation of a log-potential: that of the logarithm of an exponential variable, which is
a log-probability under a flat Dirichlet prior, up to a constant."""
LOOSE_GAP = 0.03
"""Relative duality gap of E-steps on the way (chosen)."""
IDLE_STEPS = 3
"""Iterations without improvement after which EM stops (chosen)."""
IDLE_DISTANCE = 0.1
"""EM must also fail to improve while θ may have moved by this much (chosen): with much noise a
single step moves it by 1/b only, and the criterion is rough on that scale."""
MAX_EM_STEPS = 5000
"""EM iterations after which the fit counts as not converged (chosen)."""
M_STEP_TOLERANCE = 1e-7
"""Largest difference of marginals in M-steps of tied potentials and of NLBP (chosen)."""
M_STEP_CALLS = 300
"""Marginal calls of such an M-step (chosen)."""


class EMPath(NamedTuple):
    """Where EM is, and the best iterate so far with the one before it, for the last E-step.

    Parameters are free ones; ``mu`` are the marginals at ``psi``, ``move`` is the last E-step's
    φ* - θ. ``idle`` counts iterations since ``score`` last rose, ``calls`` marginal calls.
    """

    psi: jax.Array
    mu: jax.Array
    move: jax.Array
    best: jax.Array
    before: jax.Array
    best_move: jax.Array
    score: jax.Array
    idle: jax.Array
    steps: jax.Array
    best_step: jax.Array
    calls: jax.Array


def run(
    problem: TablesProblem, estep: str = "dual", spread: float = DEFAULT_SPREAD
) -> GraphicalModel:
    """Fit a model by EM; return the point estimate, which accounts for the noise.

    Args:
        problem: noisy tables of one group.
        estep: ``"dual"``, or ``"nlbp"`` for the thesis' own E-step.
        spread: standard deviation of a log-potential in the stopping rule.
    """
    if estep not in ("dual", "nlbp"):
        raise ArgumentError(f"estep: must be dual or nlbp, not {estep!r}")
    if isinstance(spread, bool) or not isinstance(spread, int | float) or not 0 < spread < np.inf:
        raise ArgumentError(f"spread: must be a number above zero, not {spread!r}")
    t = jnp.asarray(problem.y / problem.n)
    noise = TableNoise(jnp.asarray(problem.scale), jnp.asarray(problem.n))
    path = climb_em(
        problem.oracle, problem.mechanism, estep, problem.tied,
        t, noise, jnp.asarray(problem.place), jnp.zeros(problem.free), float(spread),
    )  # fmt: skip
    psi, gap, last_calls = path.best, None, 0
    if estep == "dual" and not problem.tied and int(path.best_step) > 0:
        last = solve_dual_accurately(
            problem.oracle, problem.mechanism, path.before, path.best_move, t, noise
        )
        psi, gap, last_calls = last.phi, float(last.gap), int(last.calls)
    details: dict[str, Any] = {
        "estep": estep,
        "spread": float(spread),
        "em_steps": int(path.best_step),
        "marginal_calls": int(path.calls) + last_calls,
        "last_gap": gap,
        "last_calls": last_calls,
    }
    converged = int(path.steps) < MAX_EM_STEPS
    return fitted_model(problem, np.asarray(psi), "cgm", details, converged)


@partial(jax.jit, static_argnums=(0, 1, 2, 3))
def climb_em(
    oracle: Oracle,
    mechanism: str,
    estep: str,
    tied: bool,
    t: jax.Array,
    noise: TableNoise,
    place: jax.Array,
    zero: jax.Array,
    spread: jax.Array | float,
) -> EMPath:
    """Run EM from the uniform model until the criterion has not risen for a while.

    ``t`` are noisy shares y/N, ``zero`` the free parameters of the uniform model. The iterate to be
    used is ``best`` of the path returned.
    """

    def advance(path: EMPath) -> EMPath:
        theta = path.psi[place]
        psi, mu, move, calls = path.psi, path.mu, path.move, jnp.array(0)
        if estep == "dual":
            step = solve_dual(oracle, mechanism, theta, move, t, noise, LOOSE_GAP, mu0=mu)
            psi, mu, move, calls = step.phi, step.mu, step.phi - theta, step.calls
        else:
            mu, calls = nonlinear_belief_propagation(oracle, mechanism, theta, t, noise)
        if tied or estep == "nlbp":
            matched = maximise_likelihood(
                oracle, mu, place, path.psi, 0.0, M_STEP_TOLERANCE, M_STEP_CALLS
            )
            psi, calls = matched.x, calls + matched.calls + 1
            mu = oracle.marginals(psi[place])
        score = _log_posterior(oracle, mechanism, psi, mu, t, noise, place, spread)
        better = score > path.score

        def pick(new: jax.Array, old: jax.Array) -> jax.Array:
            return jnp.where(better, new, old)

        return EMPath(
            psi, mu, move, pick(psi, path.best), pick(path.psi, path.before),
            pick(move, path.best_move), pick(score, path.score),
            jnp.where(better, 0, path.idle + 1), path.steps + 1,
            pick(path.steps + 1, path.best_step), path.calls + calls,
        )  # fmt: skip

    def unfinished(path: EMPath) -> jax.Array:
        return (path.idle < patience) & (path.steps < MAX_EM_STEPS)

    patience = IDLE_STEPS + (IDLE_DISTANCE * noise.scale if mechanism == "laplace" else 0.0)
    mu = oracle.marginals(zero[place])
    still, none = jnp.zeros_like(t), jnp.array(0)
    score = _log_posterior(oracle, mechanism, zero, mu, t, noise, place, spread)
    start = EMPath(
        zero, mu, still, zero, zero, still, score, none, none, none, jnp.array(1)
    )  # fmt: skip
    return jax.lax.while_loop(unfinished, advance, start)


def _log_posterior(
    oracle: Oracle, mechanism: str, psi: jax.Array, mu: jax.Array, t: jax.Array, noise: TableNoise,
    place: jax.Array, spread: jax.Array | float,
) -> jax.Array:  # fmt: skip
    """Return the log density of the noise plus that of the potentials (each free one once)."""
    r = noise.n * (t - mu)
    if mechanism == "laplace":
        fit = -jnp.abs(r).sum() / noise.scale
    else:
        fit = -(r**2).sum() / (2 * noise.scale**2)
    theta = psi[place]
    shared = jnp.zeros_like(psi).at[place].add(1.0)[place]
    # A constant added to a clique changes nothing and must not count.
    level = jnp.concatenate([theta[w] - theta[w].mean() for w in oracle.model.slices])
    return fit - (level**2 / shared).sum() / (2 * spread**2)
