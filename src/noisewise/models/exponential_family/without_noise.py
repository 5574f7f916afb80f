"""How wide the posterior would be without privacy noise: what noise and interval cost the analyst.

Had the owner published the sum s itself, the posterior would be the conjugate one of (s, n). Which
s it would have been is not known: its mean n E[t | θ] at draws of θ from the posterior stands in,
and the conjugate variances are averaged over these draws.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.models.exponential_family.family import Conjugate, Family, draw
from noisewise.models.exponential_family.problem import Problem

SUMS, DRAWS = 100, 400


def deviations(problem: Problem, theta: np.ndarray) -> dict[str, np.ndarray]:
    """Per parameter, in the user's units, one per group if grouped; θ (group, chain, draw, …)."""
    flat = theta.reshape(len(theta), -1, theta.shape[-1])
    flat = flat[:, :: max(1, flat.shape[1] // SUMS)][:, :SUMS]
    prior = Conjugate(*map(jnp.asarray, problem.conjugate))
    rows = zip(flat, problem.n, strict=True)
    found = np.stack([_one(problem.family, prior, jnp.asarray(t), n) for t, n in rows])
    values = found.T if problem.keys is not None else found[0]
    return dict(zip(problem.family.names, values, strict=True))


def _one(family: Family, prior: Conjugate, theta: jax.Array, n: float) -> np.ndarray:
    after = Conjugate(
        *(
            jnp.broadcast_to(a[:, None], (len(a), DRAWS, a.shape[-1]))
            for a in _after(family, prior, theta, n)
        )
    )
    drawn = np.asarray(draw(family, jax.random.key(0), after))
    return np.asarray(np.sqrt(drawn.var(axis=1, ddof=1).mean(axis=0)))


@partial(jax.jit, static_argnums=0)
def _after(family: Family, prior: Conjugate, theta: jax.Array, n: float) -> Conjugate:
    """The conjugate posterior of n records whose statistics add up to their mean at θ."""
    mean = jax.vmap(lambda th: jax.grad(family.log_partition)(family.natural(th)))(theta)
    many = Conjugate(*(jnp.broadcast_to(a, (len(theta), *a.shape)) for a in prior))
    return many.updated(n * mean, jnp.full(len(theta), n))
