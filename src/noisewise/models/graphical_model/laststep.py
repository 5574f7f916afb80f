"""The last E-step of EM, to a relative gap of 1e-5: projected L-BFGS, then from inside the box.

Where noise is small, nearly every cell of every table can be fitted exactly, and the few that
cannot absorb what noisy tables disagree on about the columns they share: a linear programme over
the box |φ - θ| ≤ 1/b, hidden along directions that change no probability. Projected L-BFGS needs
hundreds of calls to find those cells. An interior-point method finds them in ten to forty, given a
curvature that is zero along just those directions (``curvature.py``).

That is for Laplace noise and exact inference; other E-steps have no box, or no certain convexity.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.models.graphical_model import estep
from noisewise.models.graphical_model.curvature import additive, fits
from noisewise.models.graphical_model.estep import MOST_CALLS, TOLERANCE, Noise, Step
from noisewise.models.graphical_model.oracle import Oracle, compiled
from noisewise.numerics.box_interior import minimise
from noisewise.numerics.runtime import one_blas_thread

EASY = 30
"""Calls of projected L-BFGS before the other method: most E-steps are solved by then."""


def solve(
    oracle: Oracle,
    mechanism: str,
    theta: jax.Array,
    start: jax.Array,
    t: jax.Array,
    noise: Noise,
    tolerance: float = TOLERANCE,
    most_calls: int = MOST_CALLS,
) -> Step:
    """As ``estep.solve``, from Python."""
    inside = mechanism == "laplace" and oracle.kind == "exact" and fits(oracle.model)

    def projected(v: jax.Array, calls: int) -> Step:
        found: Step = estep.compiled(oracle, mechanism, theta, v, t, noise, tolerance, calls)
        return found

    def on(found: Step) -> bool:
        return float(found.gap) > tolerance and int(found.calls) < most_calls

    found = projected(start, EASY if inside else most_calls)
    if not (inside and on(found)):
        return found
    left = most_calls - int(found.calls)
    found = _better(found, from_inside(oracle, theta, found, t, noise, tolerance, left))
    if on(found):  # Numerical trouble ended it.
        left = most_calls - int(found.calls)
        again = projected(found.phi - theta, left)
        found = _better(found, again._replace(calls=found.calls + again.calls))
    return found


def _better(found: Step, later: Step) -> Step:
    """The smaller gap, for the calls of both."""
    return later if float(later.gap) < float(found.gap) else found._replace(calls=later.calls)


def from_inside(
    oracle: Oracle,
    theta: jax.Array,
    found: Step,
    t: jax.Array,
    noise: Noise,
    tolerance: float,
    most_calls: int,
) -> Step:
    """On from ``found``, with at most that many more calls."""
    marginals, centre, target = compiled(oracle), np.asarray(theta), np.asarray(t)
    reach = 1 / float(noise.scale)

    def gradient(v: np.ndarray) -> np.ndarray:
        return np.asarray(np.asarray(marginals(centre + v)[1]) - target)

    # The gap before anything is done, which the relative one is relative to.
    residual, v = np.asarray(found.mu) - target, np.asarray(found.phi) - centre
    first = float((np.abs(residual) * reach + v * residual).sum()) / float(found.gap)
    with one_blas_thread():
        inner = minimise(
            gradient, lambda slope: additive(oracle.model, slope + target),
            v, -reach, reach, tolerance=tolerance * first, most_calls=most_calls,
        )  # fmt: skip
    return Step(
        jnp.asarray(centre + inner.x), jnp.asarray(inner.gradient + target),
        jnp.asarray(inner.gap / first), found.calls + inner.calls,
    )  # fmt: skip
