"""The E-step of EM for collective graphical models: the most probable tables behind the noise.

    primal   max_n  θᵀn + H(n) + log p(y | n)          over the marginal polytope (thesis eq. 3.6)
    Laplace  min_φ  A(φ) - φᵀy/N   subject to ‖φ - θ‖∞ ≤ 1/b
    Gaussian min_φ  A(φ) - φᵀy/N + σ²‖φ - θ‖²/(2N)

with n* = N μ(φ*): it is solved by its smooth dual (errata E17). With v = φ - θ and r = y/N - μ(φ),
the duality gap (in units of N) costs nothing:

    Laplace  Σ |r|/b - v r        Gaussian  ½ ‖(σ/√N) v - (√N/σ) r‖²

It is reported relative to the gap at φ = θ, before anything is done: a scale that does not depend
on how θ is parametrised.

``solve_dual`` is projected L-BFGS, compiled. ``solve_dual_accurately``, for the last E-step of EM,
goes on from inside the box. Where noise is small, nearly every cell of every table can be fitted
exactly, and the few that cannot absorb what noisy tables disagree on about the columns they share:
a linear programme over the box |φ - θ| ≤ 1/b, hidden along directions that change no probability.
Projected L-BFGS needs hundreds of calls to find those cells. An interior-point method finds them in
ten to forty, given a curvature that is zero along just those directions
(``log_partition_hessian.py``). That is for Laplace noise and exact inference; other E-steps have no
box, or no certain convexity.

``nonlinear_belief_propagation`` (NLBP, thesis Algorithm 1) is the E-step as published, for
comparison:

    θ' = θ + ∇_n log p(y | n),   n' = N μ(θ'),   n ← (1 - α_t) n + α_t n',   α_t = 1/(t+1).

It works on the primal, whose Laplace term has a sign gradient: with constant damping it oscillates
around the optimum (E17), hence the decreasing step. One marginal call per iteration. The thesis
does not say when to stop: here when n moves by less than ``NLBP_TOLERANCE`` in relative L1 norm, or
after ``MAX_E_STEP_CALLS``.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.models.graphical_model.log_partition_hessian import (
    additive_curvature,
    curvature_fits,
)
from noisewise.models.graphical_model.marginal_oracle import Oracle, compiled_oracle
from noisewise.numerics import one_blas_thread
from noisewise.numerics.interior_point import minimise_interior_point
from noisewise.numerics.projected_lbfgs import minimise_projected_lbfgs

GAP_TOLERANCE = 1e-5
"""Relative duality gap at which an E-step counts as solved (docs/evidence-graphical.md)."""
MAX_E_STEP_CALLS = 150
"""Marginal calls of one E-step (chosen; the dual and NLBP are compared at equal calls)."""
PROJECTED_CALLS = 30
"""Calls of projected L-BFGS before the interior-point method: most E-steps are solved by then."""
NLBP_TOLERANCE = 1e-4
"""Relative L1 change of the tables at which NLBP stops (chosen)."""


class TableNoise(NamedTuple):
    """The noise scale that the owner added per cell, and how many people there are."""

    scale: jax.Array
    n: jax.Array


class EStepSolution(NamedTuple):
    """φ*, the marginals there, the relative duality gap, and marginal calls made."""

    phi: jax.Array
    mu: jax.Array
    gap: jax.Array
    calls: jax.Array


def solve_dual(
    oracle: Oracle,
    mechanism: str,
    theta: jax.Array,
    start: jax.Array,
    t: jax.Array,
    noise: TableNoise,
    tolerance: jax.Array | float = GAP_TOLERANCE,
    max_calls: jax.Array | int = MAX_E_STEP_CALLS,
    mu0: jax.Array | None = None,
) -> EStepSolution:
    """Solve the dual by projected L-BFGS.

    Args:
        oracle: the model.
        mechanism: ``"laplace"`` or ``"gaussian"``.
        theta: the potentials θ at which the E-step is taken.
        start: a guess of φ - θ.
        t: noisy shares, y/N.
        noise: scale and N.
        tolerance: relative duality gap wanted.
        max_calls: marginal calls after which to stop.
        mu0: μ(θ), where it is known.

    Returns:
        The solution, whose ``gap`` says how good it is.
    """
    both = oracle.value_and_marginals
    laplace = mechanism == "laplace"
    quadratic = 0.0 if laplace else noise.scale**2 / noise.n

    def dual(v: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        a, mu = both(theta + v)
        return a - v @ t + quadratic * (v @ v) / 2, mu - t + quadratic * v, mu

    def gap(v: jax.Array, mu: jax.Array) -> jax.Array:
        r = t - mu
        if laplace:
            return (jnp.abs(r) / noise.scale - v * r).sum()
        root = noise.scale / jnp.sqrt(noise.n)
        return ((root * v - r / root) ** 2).sum() / 2

    calls_before = 0 if mu0 is not None else 1
    mu0 = both(theta)[1] if mu0 is None else mu0
    first = jnp.maximum(gap(jnp.zeros_like(theta), mu0), 1e-300)
    reach = 1 / noise.scale if laplace else jnp.inf
    curvature = jnp.maximum(mu0 * (1 - mu0), 1e-2 * mu0.mean()) + quadratic
    minimum = minimise_projected_lbfgs(
        dual,
        lambda v, _, mu: gap(v, mu) / first,
        jnp.clip(start, -reach, reach),
        -reach,
        reach,
        tolerance=tolerance,
        max_calls=max_calls,
        scale=1 / curvature,
    )
    return EStepSolution(
        theta + minimum.x, minimum.aux, minimum.measure, minimum.calls + calls_before
    )


solve_dual_compiled = partial(jax.jit, static_argnums=(0, 1))(solve_dual)
"""``solve_dual``, to be called from Python."""


def solve_dual_accurately(
    oracle: Oracle,
    mechanism: str,
    theta: jax.Array,
    start: jax.Array,
    t: jax.Array,
    noise: TableNoise,
    tolerance: float = GAP_TOLERANCE,
    max_calls: int = MAX_E_STEP_CALLS,
) -> EStepSolution:
    """Solve the dual by projected L-BFGS and then, where it applies, from inside the box.

    Arguments and result are those of ``solve_dual``; it is called from Python.
    """
    has_box = mechanism == "laplace" and oracle.kind == "exact" and curvature_fits(oracle.model)

    def projected(v: jax.Array, calls: int) -> EStepSolution:
        solution: EStepSolution = solve_dual_compiled(
            oracle, mechanism, theta, v, t, noise, tolerance, calls
        )
        return solution

    def unsolved(solution: EStepSolution) -> bool:
        return float(solution.gap) > tolerance and int(solution.calls) < max_calls

    best = projected(start, PROJECTED_CALLS if has_box else max_calls)
    if not (has_box and unsolved(best)):
        return best
    left = max_calls - int(best.calls)
    best = _better(best, solve_from_inside(oracle, theta, best, t, noise, tolerance, left))
    if unsolved(best):  # Numerical trouble ended it.
        left = max_calls - int(best.calls)
        again = projected(best.phi - theta, left)
        best = _better(best, again._replace(calls=best.calls + again.calls))
    return best


def _better(earlier: EStepSolution, later: EStepSolution) -> EStepSolution:
    """Return the one with the smaller gap, with the calls of both."""
    if float(later.gap) < float(earlier.gap):
        return later
    return earlier._replace(calls=later.calls)


def solve_from_inside(
    oracle: Oracle,
    theta: jax.Array,
    earlier: EStepSolution,
    t: jax.Array,
    noise: TableNoise,
    tolerance: float,
    max_calls: int,
) -> EStepSolution:
    """Improve ``earlier`` by the interior-point method, with at most ``max_calls`` more calls."""
    marginals, centre, target = compiled_oracle(oracle), np.asarray(theta), np.asarray(t)
    reach = 1 / float(noise.scale)

    def gradient(v: np.ndarray) -> np.ndarray:
        return np.asarray(np.asarray(marginals(centre + v)[1]) - target)

    # The gap before anything is done, which the relative one is relative to.
    residual, v = np.asarray(earlier.mu) - target, np.asarray(earlier.phi) - centre
    first = float((np.abs(residual) * reach + v * residual).sum()) / float(earlier.gap)
    with one_blas_thread():
        inner = minimise_interior_point(
            gradient, lambda slope: additive_curvature(oracle.model, slope + target),
            v, -reach, reach, tolerance=tolerance * first, max_calls=max_calls,
        )  # fmt: skip
    return EStepSolution(
        jnp.asarray(centre + inner.x), jnp.asarray(inner.gradient + target),
        jnp.asarray(inner.gap / first), earlier.calls + inner.calls,
    )  # fmt: skip


def nonlinear_belief_propagation(
    oracle: Oracle,
    mechanism: str,
    theta: jax.Array,
    t: jax.Array,
    noise: TableNoise,
    max_calls: jax.Array | int = MAX_E_STEP_CALLS,
    tolerance: jax.Array | float = NLBP_TOLERANCE,
) -> tuple[jax.Array, jax.Array]:
    """Run NLBP; return the marginals n/N it ends with, and the marginal calls made."""
    marginals = oracle.marginals

    def noise_gradient(mu: jax.Array) -> jax.Array:
        if mechanism == "laplace":
            return jnp.sign(t - mu) / noise.scale
        return noise.n * (t - mu) / noise.scale**2

    def unfinished(carry: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
        _, calls, moved = carry
        return (calls < max_calls) & (moved > tolerance)

    def iterate(
        carry: tuple[jax.Array, jax.Array, jax.Array],
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        mu, calls, _ = carry
        target = marginals(theta + noise_gradient(mu))
        # calls is 1 after the start, so the first step is 1/2.
        new = mu + (target - mu) / (calls + 1)
        return new, calls + 1, jnp.abs(new - mu).sum() / mu.sum()

    start = (marginals(theta), jnp.array(1), jnp.array(jnp.inf))
    mu, calls, _ = jax.lax.while_loop(unfinished, iterate, start)
    return mu, calls
