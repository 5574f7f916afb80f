"""Minimise a smooth convex function over a box from inside, given a good guess of its curvature.

Mehrotra's primal-dual predictor-corrector, with the Hessian replaced by a structured curvature and
secant corrections (``secant.py``). Every gradient is one step; which coordinates end at a bound is
found by all of them moving at once, where projected methods (``box_minimise.py``) add and drop them
one by one and take long where the choice is nearly degenerate.

With multipliers z of the two bounds and slacks s, a step solves

    B dx + dz⁺ - dz⁻ = -(g + z⁺ - z⁻),    s dz + z ds = τ - z s    (± at both bounds)

where τ, the product aimed at, falls towards zero. The gap Σ g⁻ s⁺ + g⁺ s⁻ (gradients that push
against a bound times the way left to it) bounds what is missing at the minimum.

S. Mehrotra, "On the implementation of a primal-dual interior point method", SIAM J. Optimization 2
(1992); J. Nocedal, S. J. Wright, "Numerical Optimization", ch. 16.6.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from noisewise.numerics.secant import Curvature, Solve, untaught

PUSH = 0.95
"""How far towards its bounds a start may lie, as a share."""
SHORT = 0.99
"""A step ends that share of the way to the first bound it would meet."""
LEAST_CENTRING = 1e-3
PATIENCE = 0.005
"""τ does not fall below this share of what is unbalanced: a guessed curvature balances slowly, and
multipliers that are far ahead of it would stick to the wrong bounds."""


class Inside(NamedTuple):
    """The best point seen, its gradient, its duality gap, and gradients asked for."""

    x: np.ndarray
    gradient: np.ndarray
    gap: float
    calls: int


class _State(NamedTuple):
    """Slacks and multipliers are pairs: of the upper bounds, of the lower ones."""

    x: np.ndarray
    gradient: np.ndarray
    slack: np.ndarray
    multiplier: np.ndarray


class _Move(NamedTuple):
    x: np.ndarray
    multiplier: np.ndarray


SIGNS = np.array([[-1.0], [1.0]])
"""How a slack changes with x."""


def minimise(
    gradient: Callable[[np.ndarray], np.ndarray],
    curvature: Callable[[np.ndarray], Curvature],
    start: np.ndarray,
    lower: float,
    upper: float,
    *,
    tolerance: float,
    most_calls: int,
) -> Inside:
    """Until the gap is at most ``tolerance``; the curvature is guessed from the first gradient.

    Numerical trouble (a curvature one cannot solve with, a step to nowhere) ends it early: the gap
    says how far it came.
    """
    middle, half = (lower + upper) / 2, (upper - lower) / 2
    x = np.clip(start, middle - PUSH * half, middle + PUSH * half)
    state = _opened(x, gradient(x), lower, upper)
    best = Inside(x, state.gradient, _gap(state), 1)
    known = None
    for calls in range(2, most_calls + 1):
        if best.gap <= tolerance:
            break
        try:
            known = known or untaught(curvature(state.gradient), len(x))
            move, length = _step(state, known.solver((state.multiplier / state.slack).sum(axis=0)))
        except np.linalg.LinAlgError:
            break
        x = state.x + length * move.x
        if not (length > 0 and np.isfinite(x).all()):
            break
        reached = _State(
            x, gradient(x), np.stack([upper - x, x - lower]),
            state.multiplier + length * move.multiplier,
        )  # fmt: skip
        known = known.learnt(x - state.x, reached.gradient - state.gradient)
        state, gap = reached, _gap(reached)
        best = Inside(x, state.gradient, gap, calls) if gap < best.gap else best
        best = best._replace(calls=calls)
    return best


def _opened(x: np.ndarray, gradient: np.ndarray, lower: float, upper: float) -> _State:
    """Multipliers that carry the gradient, and some more so that none is zero."""
    slack = np.stack([upper - x, x - lower])
    pushing = np.maximum(SIGNS * gradient, 0.0)
    level = max(float((pushing * slack).sum()), 1e-300) / slack.size
    return _State(x, gradient, slack, pushing + level / (2 * slack))


def _gap(state: _State) -> float:
    return float((np.maximum(SIGNS * state.gradient, 0.0) * state.slack).sum())


def _step(state: _State, solve: Solve) -> tuple[_Move, float]:
    """Predict with τ = 0, see how far that goes, and correct."""
    slack, multiplier = state.slack, state.multiplier
    unbalanced = state.gradient - (SIGNS * multiplier).sum(axis=0)

    def towards(product: np.ndarray | float) -> _Move:
        rest = (product - multiplier * slack) / slack
        x = solve((SIGNS * rest).sum(axis=0) - unbalanced)
        return _Move(x, rest - SIGNS * multiplier * x / slack)

    ahead = towards(0.0)
    length = _reach(state, ahead, 1.0)
    now = float((slack * multiplier).mean())
    then = (slack + length * SIGNS * ahead.x) * (multiplier + length * ahead.multiplier)
    centring = max((float(then.mean()) / now) ** 3, LEAST_CENTRING)
    imbalance = float((np.abs(unbalanced) * slack.mean(axis=0)).mean())
    tau = max(centring * now, min(now, PATIENCE * imbalance))
    move = towards(tau - SIGNS * ahead.x * ahead.multiplier)
    return move, _reach(state, move, SHORT)


def _reach(state: _State, move: _Move, share: float) -> float:
    """The longest step, at most 1, that goes ``share`` of the way to the first zero."""
    now = np.concatenate([state.slack, state.multiplier])
    change = np.concatenate([SIGNS * move.x, move.multiplier])
    falling = change < 0
    return min(1.0, share * float(np.min(-now[falling] / change[falling], initial=np.inf)))
