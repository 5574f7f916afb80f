"""The E-step of CGM-EM: the most probable tables behind the noise, by its smooth dual (E17).

    primal   max_n  θᵀn + H(n) + log p(y | n)          over the marginal polytope (thesis eq. 3.6)
    Laplace  min_φ  A(φ) - φᵀy/N   subject to ‖φ - θ‖∞ ≤ 1/b
    Gaussian min_φ  A(φ) - φᵀy/N + σ²‖φ - θ‖²/(2N)

with n* = N μ(φ*). The thesis' NLBP works on the primal, whose Laplace term has a sign gradient, and
chatters. With v = φ - θ and r = y/N - μ(φ), the duality gap (in units of N) costs nothing:

    Laplace  Σ |r|/b - v r        Gaussian  ½ ‖(σ/√N) v - (√N/σ) r‖²

It is reported relative to the gap at φ = θ, before anything is done: a scale that does not depend
on how θ is parametrised.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from noisewise.models.graphical_model.oracle import Oracle
from noisewise.numerics.box_minimise import minimise

TOLERANCE = 1e-5
MOST_CALLS = 150


class Noise(NamedTuple):
    """What the owner added, per cell, and how many people there are."""

    scale: jax.Array
    n: jax.Array


class Step(NamedTuple):
    """φ*, the marginals there, the relative duality gap, and marginal calls made."""

    phi: jax.Array
    mu: jax.Array
    gap: jax.Array
    calls: jax.Array


def solve(
    oracle: Oracle,
    mechanism: str,
    theta: jax.Array,
    start: jax.Array,
    t: jax.Array,
    noise: Noise,
    tolerance: jax.Array | float = TOLERANCE,
    most_calls: jax.Array | int = MOST_CALLS,
    mu0: jax.Array | None = None,
) -> Step:
    """From θ, with ``start`` a guess of φ - θ; ``t`` is y/N; ``mu0`` is μ(θ) where known."""
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

    asked = 0 if mu0 is not None else 1
    mu0 = both(theta)[1] if mu0 is None else mu0
    first = jnp.maximum(gap(jnp.zeros_like(theta), mu0), 1e-300)
    reach = 1 / noise.scale if laplace else jnp.inf
    curvature = jnp.maximum(mu0 * (1 - mu0), 1e-2 * mu0.mean()) + quadratic
    found = minimise(
        dual,
        lambda v, _, mu: gap(v, mu) / first,
        jnp.clip(start, -reach, reach),
        -reach,
        reach,
        tolerance=tolerance,
        most_calls=most_calls,
        scale=1 / curvature,
    )
    return Step(theta + found.x, found.aux, found.measure, found.calls + asked)


compiled = partial(jax.jit, static_argnums=(0, 1))(solve)
