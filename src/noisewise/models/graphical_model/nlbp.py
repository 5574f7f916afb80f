"""Non-linear belief propagation, thesis Algorithm 1: the E-step as published, for comparison.

    θ' = θ + ∇_n log p(y | n),   n' = N μ(θ'),   n ← (1 - α_t) n + α_t n',   α_t = 1/(t+1).

One marginal call per iteration. With constant damping it chatters around the optimum (E17), hence
the decreasing step. The thesis does not say when to stop: here when n moves by less than
``TOLERANCE`` in relative L1 norm, or after ``MOST_CALLS``.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp

from noisewise.models.graphical_model.estep import Noise
from noisewise.models.graphical_model.oracle import Oracle

MOST_CALLS = 150
TOLERANCE = 1e-4


def solve(
    oracle: Oracle,
    mechanism: str,
    theta: jax.Array,
    t: jax.Array,
    noise: Noise,
    most_calls: jax.Array | int = MOST_CALLS,
    tolerance: jax.Array | float = TOLERANCE,
) -> tuple[jax.Array, jax.Array]:
    """The marginals n/N it ends with, and marginal calls made."""
    marginals = oracle.marginals

    def pull(mu: jax.Array) -> jax.Array:
        if mechanism == "laplace":
            return jnp.sign(t - mu) / noise.scale
        return noise.n * (t - mu) / noise.scale**2

    def unfinished(carry: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
        _, calls, moved = carry
        return (calls < most_calls) & (moved > tolerance)

    def iterate(
        carry: tuple[jax.Array, jax.Array, jax.Array],
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        mu, calls, _ = carry
        target = marginals(theta + pull(mu))
        # calls is 1 after the start, so the first step is 1/2.
        new = mu + (target - mu) / (calls + 1)
        return new, calls + 1, jnp.abs(new - mu).sum() / mu.sum()

    start = (marginals(theta), jnp.array(1), jnp.array(jnp.inf))
    mu, calls, _ = jax.lax.while_loop(unfinished, iterate, start)
    return mu, calls


compiled = partial(jax.jit, static_argnums=(0, 1))(solve)
