"""Maximum likelihood of a graphical model: match its marginals to given ones.

    max_ψ  θᵀμ̄ - A(θ) - λ‖ψ‖²,   θ = ψ[place]

(thesis 3.2, 3.2.3). ``place`` is the identity unless potentials are tied.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp

from noisewise.models.graphical_model.oracle import Oracle
from noisewise.numerics.box_minimise import Minimum, minimise

TOLERANCE = 1e-6
"""On the largest difference between a marginal and its target."""
MOST_CALLS = 5000


@partial(jax.jit, static_argnums=(0,))
def maximise(
    oracle: Oracle,
    target: jax.Array,
    place: jax.Array,
    start: jax.Array,
    lam: jax.Array | float,
    tolerance: jax.Array | float = TOLERANCE,
    most_calls: jax.Array | int = MOST_CALLS,
) -> Minimum:
    """The free parameters; ``aux`` of the answer holds the marginals."""
    value = oracle.log_partition
    wanted = jnp.zeros_like(start).at[place].add(target)

    def loss(psi: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        a, mu = jax.value_and_grad(lambda p: value(p[place]))(psi)
        return a - psi @ wanted + lam * (psi @ psi), mu - wanted + 2 * lam * psi, mu

    curvature = loss(start)[2]
    scale = 1 / (jnp.maximum(curvature, 1e-2 * curvature.mean()) + 2 * lam)
    return minimise(
        loss,
        lambda _, gradient, __: jnp.abs(gradient).max(),
        start,
        -jnp.inf,
        jnp.inf,
        tolerance=tolerance,
        most_calls=most_calls,
        scale=scale,
    )
