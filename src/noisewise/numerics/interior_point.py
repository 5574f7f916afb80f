"""Minimise a smooth convex function over a box by a primal-dual interior-point method.

Mehrotra's predictor-corrector, with the Hessian replaced by a structured curvature B₀ that one can
solve with, and BFGS corrections of it. Every gradient is one step. Which coordinates end at a bound
is found by all of them moving at once, where projected methods (``projected_lbfgs.py``) add and
drop them one by one and take long where the choice is nearly degenerate.

With multipliers z of the two bounds and slacks s, a step solves

    B dx + dz⁺ - dz⁻ = -(g + z⁺ - z⁻),    s dz + z ds = τ - z s    (± at both bounds)

where τ, the product aimed at, falls towards zero. The gap Σ g⁻ s⁺ + g⁺ s⁻ (gradients that push
against a bound times the way left to it) bounds what is missing at the minimum.

B is B₀ with the secant pairs of past steps in BFGS' compact form,

    B = B₀ - U M⁻¹ Uᵀ,   U = [B₀S, Y],   M = [[SᵀB₀S, L], [Lᵀ, -diag(SᵀY)]]

with steps S, changes of the gradient Y, and L the part of SᵀY below its diagonal. A diagonal may be
added to B₀ anew for every solve, as the method needs.

S. Mehrotra, "On the implementation of a primal-dual interior point method", SIAM J. Optimization 2
(1992); J. Nocedal, S. J. Wright, "Numerical Optimization", ch. 16.6; R. H. Byrd, J. Nocedal,
R. B. Schnabel, "Representations of quasi-Newton matrices", Math. Programming 63 (1994).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
from scipy.linalg import lu_factor, lu_solve

MAX_START_SHARE = 0.95
"""How far from the middle towards its bounds a start may lie, as a share (chosen)."""
STEP_SHARE = 0.99
"""A step ends that share of the way to the first bound it would meet (chosen; usual values are 0.9
to 0.999)."""
MIN_CENTRING = 1e-3
"""Least factor by which one step lowers the product aimed at (chosen)."""
MIN_PRODUCT_SHARE = 0.005
"""τ does not fall below this share of what is unbalanced (chosen): a guessed curvature balances
slowly, and multipliers that are far ahead of it would stick to the wrong bounds."""
MAX_PAIRS = 30
"""Secant pairs kept, the newest ones (chosen)."""
MIN_COSINE = 1e-10
"""A secant pair whose angle has a smaller cosine holds nothing but rounding."""
PREDICTED_SHARE = 0.1
"""A pair that B₀ predicts up to this share is not worth its place in every later solve (chosen)."""
SLACK_SIGNS = np.array([[-1.0], [1.0]])
"""How the slacks of the upper and of the lower bounds change with x."""

Solver = Callable[[np.ndarray], np.ndarray]
"""q → the solution of a linear system with right-hand side q."""


class Curvature(Protocol):
    """A positive semidefinite matrix B; vectors are rows, and may come several at a time."""

    def times(self, x: np.ndarray) -> np.ndarray:
        """Return B x."""
        ...

    def solver(self, diagonal: np.ndarray) -> Solver:
        """Return q → (B + diag)⁻¹ q."""
        ...


@dataclass(frozen=True, eq=False)
class BFGSCurvature:
    """A curvature ``base`` with secant pairs, oldest first: rows of S, Y and B₀S."""

    base: Curvature
    steps: np.ndarray
    changes: np.ndarray
    images: np.ndarray

    def updated(self, step: np.ndarray, change: np.ndarray) -> BFGSCurvature:
        """Add a pair, unless it shows no curvature, or none that ``base`` does not predict."""
        image = self.base.times(step)
        flat = step @ change <= MIN_COSINE * np.sqrt((step @ step) * (change @ change))
        if flat or np.linalg.norm(change - image) <= PREDICTED_SHARE * np.linalg.norm(change):
            return self
        return replace(
            self,
            steps=np.vstack([self.steps, step])[-MAX_PAIRS:],
            changes=np.vstack([self.changes, change])[-MAX_PAIRS:],
            images=np.vstack([self.images, image])[-MAX_PAIRS:],
        )

    def solver(self, diagonal: np.ndarray) -> Solver:
        """Return q → (B + diag)⁻¹ q, by the Woodbury identity on top of the base's solver."""
        base = self.base.solver(diagonal)
        if not len(self.steps):
            return base
        cross = self.steps @ self.changes.T
        below = np.tril(cross, -1)
        middle = np.block(
            [[self.steps @ self.images.T, below], [below.T, -np.diag(np.diag(cross))]]
        )
        rows = np.vstack([self.images, self.changes])
        solved = base(rows)
        factor = lu_factor(middle - rows @ solved.T, check_finite=False)

        def solve(q: np.ndarray) -> np.ndarray:
            x = base(q)
            return np.asarray(x + lu_solve(factor, rows @ x, check_finite=False) @ solved)

        return solve


def without_pairs(base: Curvature, size: int) -> BFGSCurvature:
    """Return ``base`` (of ``size`` rows) as a BFGS curvature that has no secant pairs yet."""
    empty = np.zeros((0, size))
    return BFGSCurvature(base, empty, empty, empty)


class InteriorMinimum(NamedTuple):
    """The best point seen, its gradient, its duality gap, and the number of gradients asked for."""

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


class _Direction(NamedTuple):
    x: np.ndarray
    multiplier: np.ndarray


def minimise_interior_point(
    gradient: Callable[[np.ndarray], np.ndarray],
    curvature: Callable[[np.ndarray], Curvature],
    start: np.ndarray,
    lower: float,
    upper: float,
    *,
    tolerance: float,
    max_calls: int,
) -> InteriorMinimum:
    """Minimise until the gap is at most ``tolerance``; return the best point seen.

    Numerical trouble (a curvature one cannot solve with, a step that is not finite) ends it early:
    the gap of what is returned says how far it came.

    Args:
        gradient: of the function, at one point.
        curvature: B₀, guessed from the gradient at the start.
        start: where to begin; it is moved into the interior if need be.
        lower: lower bound of every coordinate.
        upper: upper bound of every coordinate.
        tolerance: the duality gap wanted.
        max_calls: gradients that may be asked for.

    Returns:
        The point with the smallest gap, with its gradient, that gap and the gradients used.
    """
    middle, half = (lower + upper) / 2, (upper - lower) / 2
    x = np.clip(start, middle - MAX_START_SHARE * half, middle + MAX_START_SHARE * half)
    state = _initial_state(x, gradient(x), lower, upper)
    best = InteriorMinimum(x, state.gradient, _duality_gap(state), 1)
    model = None
    for calls in range(2, max_calls + 1):
        if best.gap <= tolerance:
            break
        try:
            model = model or without_pairs(curvature(state.gradient), len(x))
            diagonal = (state.multiplier / state.slack).sum(axis=0)
            direction, length = _predict_and_correct(state, model.solver(diagonal))
        except np.linalg.LinAlgError:
            break
        x = state.x + length * direction.x
        if not (length > 0 and np.isfinite(x).all()):
            break
        reached = _State(
            x, gradient(x), np.stack([upper - x, x - lower]),
            state.multiplier + length * direction.multiplier,
        )  # fmt: skip
        model = model.updated(x - state.x, reached.gradient - state.gradient)
        state, gap = reached, _duality_gap(reached)
        best = InteriorMinimum(x, state.gradient, gap, calls) if gap < best.gap else best
        best = best._replace(calls=calls)
    return best


def _initial_state(x: np.ndarray, gradient: np.ndarray, lower: float, upper: float) -> _State:
    """Choose multipliers that carry the gradient, and some more so that none is zero."""
    slack = np.stack([upper - x, x - lower])
    pushing = np.maximum(SLACK_SIGNS * gradient, 0.0)
    level = max(float((pushing * slack).sum()), 1e-300) / slack.size
    return _State(x, gradient, slack, pushing + level / (2 * slack))


def _duality_gap(state: _State) -> float:
    return float((np.maximum(SLACK_SIGNS * state.gradient, 0.0) * state.slack).sum())


def _predict_and_correct(state: _State, solve: Solver) -> tuple[_Direction, float]:
    """Predict with τ = 0, see how far that goes, and correct; return direction and step length."""
    slack, multiplier = state.slack, state.multiplier
    unbalanced = state.gradient - (SLACK_SIGNS * multiplier).sum(axis=0)

    def towards(product: np.ndarray | float) -> _Direction:
        rest = (product - multiplier * slack) / slack
        x = solve((SLACK_SIGNS * rest).sum(axis=0) - unbalanced)
        return _Direction(x, rest - SLACK_SIGNS * multiplier * x / slack)

    ahead = towards(0.0)
    length = _longest_step(state, ahead, 1.0)
    now = float((slack * multiplier).mean())
    then = (slack + length * SLACK_SIGNS * ahead.x) * (multiplier + length * ahead.multiplier)
    centring = max((float(then.mean()) / now) ** 3, MIN_CENTRING)
    imbalance = float((np.abs(unbalanced) * slack.mean(axis=0)).mean())
    tau = max(centring * now, min(now, MIN_PRODUCT_SHARE * imbalance))
    direction = towards(tau - SLACK_SIGNS * ahead.x * ahead.multiplier)
    return direction, _longest_step(state, direction, STEP_SHARE)


def _longest_step(state: _State, direction: _Direction, share: float) -> float:
    """Return the longest step, at most 1, that goes ``share`` of the way to the first zero."""
    now = np.concatenate([state.slack, state.multiplier])
    change = np.concatenate([SLACK_SIGNS * direction.x, direction.multiplier])
    falling = change < 0
    return min(1.0, share * float(np.min(-now[falling] / change[falling], initial=np.inf)))
