"""A move that draws part of the noise anew, for the many sums of many covariates.

Where noise is small beside the data, the posterior of s is nearly z minus noise of its own law. Its
kinks, one for each of a thousand sums, allow Hamiltonian trajectories only tiny steps; but noise
drawn afresh from that law is accepted almost always. So, with e = (s - z) / scale: each component
of e is replaced by a fresh one with some probability, and the move is accepted by the ratio of what
is left, the prior predictive density of s (and the likelihood of other releases).

That ratio is of densities of s; the sampler's is of coordinates v. Row i of the factor, in polar
coordinates, has |dL_i / dv_i| = l_i^i, and |dS / dL| = 2^q Π l_i^(q+1-i): together
log |ds / dv| = (q + 1) Σ log l_i, up to a constant.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.infer.linear.coordinates import Shape, point, released

SHARES = (1.0, 0.3, 0.1, 0.03)
"""How much of the noise is drawn anew, one try each: all where data are loud, little where not."""

Log = Callable[[jax.Array], jax.Array]


def coordinates(sums: jax.Array, old: jax.Array, shape: Shape, n: jax.Array) -> jax.Array:
    """v of the released sums, n as in the old v; not finite where the scatter is not positive."""
    q = shape.q
    size = q * (q + 1) // 2
    upper = jnp.zeros((q, q)).at[np.triu_indices(q)].set(sums[:size] / n)
    mean = sums[size : size + q] / n
    scatter = upper + jnp.triu(upper, 1).T - mean[:, None] * mean[None]
    factor = jnp.linalg.cholesky(scatter)
    diagonal = jnp.diagonal(factor)
    below = jnp.tril(factor, -1) / diagonal[:, None]
    rho = jnp.log(diagonal) + 0.5 * jnp.log1p((below**2).sum(axis=1))
    parts = [mean, rho, below[np.tril_indices(q, -1)]]
    return jnp.concatenate([*parts, old[-1:]] if shape.noisy_n else parts)


def log_jacobian(v: jax.Array, shape: Shape, n: jax.Array) -> jax.Array:
    """log |ds / dv| at a given n, up to a constant."""
    value: jax.Array = (shape.q + 1) * point(v, shape, n).log_diagonal.sum()
    return value


def refreshed(
    key: jax.Array,
    v: jax.Array,
    z: jax.Array,
    n: jax.Array,
    scale: jax.Array,
    log_density: Log,
    shape: Shape,
    mechanism: str,
) -> jax.Array:
    """One position after a try with each share; ``log_density`` is the true one, of v."""
    fresh = jax.random.normal if mechanism == "gaussian" else jax.random.laplace

    def log_noise(e: jax.Array) -> jax.Array:
        return -0.5 * (e**2).sum() if mechanism == "gaussian" else -jnp.abs(e).sum()

    def size(v: jax.Array) -> jax.Array:
        return jnp.exp(v[-1]) if shape.noisy_n else n

    def noise(v: jax.Array) -> jax.Array:
        sums: jax.Array = released(point(v, shape, n), noisy_n=shape.noisy_n)
        return (sums - z) / scale

    def rest(v: jax.Array) -> jax.Array:
        """Log density of s without the noise that is drawn."""
        return log_density(v) - log_jacobian(v, shape, n) - log_noise(noise(v))

    def attempt(
        at: tuple[jax.Array, jax.Array], now: tuple[jax.Array, jax.Array]
    ) -> tuple[tuple[jax.Array, jax.Array], None]:
        v, before = at
        which, drawn, luck = jax.random.split(now[0], 3)
        e = noise(v)
        chosen = jax.random.uniform(which, e.shape) < now[1]
        if shape.noisy_n:
            chosen = chosen.at[-1].set(False)
        sums = z + scale * jnp.where(chosen, fresh(drawn, e.shape), e)
        new = coordinates(sums, v, shape, size(v))
        valid = jnp.isfinite(new).all()
        after = rest(jnp.where(valid, new, v))
        taken = valid & (jnp.log(jax.random.uniform(luck)) < after - before)
        return (jnp.where(taken, new, v), jnp.where(taken, after, before)), None

    keys = jax.random.split(key, len(SHARES))
    (v, _), _ = jax.lax.scan(attempt, (v, rest(v)), (keys, jnp.asarray(SHARES)))
    return v
