"""Method ``cgm``: EM for collective graphical models (thesis Algorithm 2) with an exact E-step.

The true tables are latent. An E-step finds the most probable ones behind the noise (``estep.py``);
its dual solution φ* already is the M-step, θ ← φ* (errata E17), unless potentials are tied. So EM
is a Bregman proximal point method on the noise's own loss, its fixed points are unregularised, and
its only regularisation is when it stops.

**When it stops.** At the iterate with the largest posterior density along the path,

    log p(y | n = Nμ(θ_t)) - ‖θ_t‖² / (2 spread²),

with no further look at the data. ``spread`` is the standard deviation of a log-potential; by
default π/√6, that of a log-probability under a flat Dirichlet prior. The rule weighs what one more
step explains against how much potential it takes, so it also holds where n is small: there every
step explains noise, at a price that grows. Rules on the residual alone misfire there, because the
noise's own fluctuation decides whether they are ever met.

E-steps on the way are solved to ``LOOSE`` of their starting gap, which leaves the path unchanged;
the last one to 1e-5 (``laststep.py``).
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.artifact import ArgumentError
from noisewise.models.graphical_model import estep as dual
from noisewise.models.graphical_model import laststep, nlbp
from noisewise.models.graphical_model.estep import Noise
from noisewise.models.graphical_model.likelihood import maximise
from noisewise.models.graphical_model.model import GraphicalModel, fitted
from noisewise.models.graphical_model.oracle import Oracle
from noisewise.models.graphical_model.problem import Problem

SPREAD = math.pi / math.sqrt(6)
LOOSE = 0.03
PATIENCE = 3
TRAVEL = 0.1
"""EM must fail to improve for 3 iterations and while θ may have moved by 0.1: with loud noise a
single step moves it by 1/b only, and the criterion is rough on that scale."""
MOST_STEPS = 5000
M_TOLERANCE = 1e-7
M_CALLS = 300


class Path(NamedTuple):
    """Where EM is, and the best place it has been (with the one before, to end exactly).

    Parameters are free ones; ``mu`` are the marginals there, ``move`` the last E-step's φ* - θ.
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


def run(problem: Problem, estep: str = "dual", spread: float = SPREAD) -> GraphicalModel:
    """A point estimate that accounts for the noise."""
    if estep not in ("dual", "nlbp"):
        raise ArgumentError(f"estep: must be dual or nlbp, not {estep!r}")
    if isinstance(spread, bool) or not isinstance(spread, int | float) or not 0 < spread < np.inf:
        raise ArgumentError(f"spread: must be a number above zero, not {spread!r}")
    t = jnp.asarray(problem.y / problem.n)
    noise = Noise(jnp.asarray(problem.scale), jnp.asarray(problem.n))
    path = climb(
        problem.oracle, problem.mechanism, estep, problem.tied,
        t, noise, jnp.asarray(problem.place), jnp.zeros(problem.free), float(spread),
    )  # fmt: skip
    psi, gap, last_calls = path.best, None, 0
    if estep == "dual" and not problem.tied and int(path.best_step) > 0:
        last = laststep.solve(
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
    converged = int(path.steps) < MOST_STEPS
    return fitted(problem, np.asarray(psi), "cgm", details, converged)


@partial(jax.jit, static_argnums=(0, 1, 2, 3))
def climb(
    oracle: Oracle,
    mechanism: str,
    estep: str,
    tied: bool,
    t: jax.Array,
    noise: Noise,
    place: jax.Array,
    zero: jax.Array,
    spread: jax.Array | float,
) -> Path:
    """EM from the uniform model until the criterion has not risen for a while."""

    def advance(path: Path) -> Path:
        theta = path.psi[place]
        psi, mu, move, calls = path.psi, path.mu, path.move, jnp.array(0)
        if estep == "dual":
            found = dual.solve(oracle, mechanism, theta, move, t, noise, LOOSE, mu0=mu)
            psi, mu, move, calls = found.phi, found.mu, found.phi - theta, found.calls
        else:
            mu, calls = nlbp.solve(oracle, mechanism, theta, t, noise)
        if tied or estep == "nlbp":
            matched = maximise(oracle, mu, place, path.psi, 0.0, M_TOLERANCE, M_CALLS)
            psi, calls = matched.x, calls + matched.calls + 1
            mu = oracle.marginals(psi[place])
        reached = _score(oracle, mechanism, psi, mu, t, noise, place, spread)
        better = reached > path.score

        def pick(new: jax.Array, old: jax.Array) -> jax.Array:
            return jnp.where(better, new, old)

        return Path(
            psi, mu, move, pick(psi, path.best), pick(path.psi, path.before),
            pick(move, path.best_move), pick(reached, path.score),
            jnp.where(better, 0, path.idle + 1), path.steps + 1,
            pick(path.steps + 1, path.best_step), path.calls + calls,
        )  # fmt: skip

    def going(path: Path) -> jax.Array:
        return (path.idle < patience) & (path.steps < MOST_STEPS)

    patience = PATIENCE + (TRAVEL * noise.scale if mechanism == "laplace" else 0.0)
    mu = oracle.marginals(zero[place])
    still, none = jnp.zeros_like(t), jnp.array(0)
    score = _score(oracle, mechanism, zero, mu, t, noise, place, spread)
    start = Path(
        zero, mu, still, zero, zero, still, score, none, none, none, jnp.array(1)
    )  # fmt: skip
    return jax.lax.while_loop(going, advance, start)


def _score(
    oracle: Oracle, mechanism: str, psi: jax.Array, mu: jax.Array, t: jax.Array, noise: Noise,
    place: jax.Array, spread: jax.Array | float,
) -> jax.Array:  # fmt: skip
    """Log posterior density: the noise's, and the potentials' (each free one once)."""
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
