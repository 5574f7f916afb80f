"""The likelihood of many releases on one grid of parameters (errata E19).

All releases that share n, the noise and the interval share the matrix φ_s(t; θ)·c(t): the rest is
one product of matrices. Where n is secret its noisy count m̂ belongs to the likelihood, and n, with
a flat prior over 0, 1, 2, …, is summed out under the transform: for Laplace noise of scale b' with
a = e^{-1/b'}, m = ⌊m̂⌋, f = m̂ - m a geometric series on either side of m̂,

    Σ_n φⁿ a^{|m̂-n|} = a^f (φ^{m+1} - a^{m+1})/(φ - a) + a^{1-f} φ^{m+1}/(1 - φa).
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.infer.expfam import law
from noisewise.infer.expfam.family import Family
from noisewise.infer.expfam.kernel import Series
from noisewise.infer.expfam.observed import Interval


@partial(jax.jit, static_argnums=0)
def _one_record(
    family: Family, interval: Interval, values: jax.Array, weights: jax.Array, eta: jax.Array
) -> jax.Array:
    return jax.vmap(lambda e: law.probabilities(family, interval, values, weights, e))(eta)


@partial(jax.jit, static_argnums=5)
def _transform(
    one: jax.Array, added: jax.Array, frequency: jax.Array, coefficient: jax.Array, n: jax.Array,
    secret: str, count_scale: jax.Array,
) -> jax.Array:  # fmt: skip
    """φ of all records times the noise's coefficients (parameter, frequency): no family in it."""
    angle = added[:, None] * frequency
    phi = jax.lax.complex(one @ jnp.cos(angle), one @ jnp.sin(angle))
    return _all_records(phi, n, secret, count_scale) * coefficient


def _all_records(phi: jax.Array, n: jax.Array, secret: str, count_scale: jax.Array) -> jax.Array:
    """φⁿ, or its sum over a secret n."""
    # In real arithmetic: XLA's complex logarithm and exponential take twice as long on a CPU.
    size = 0.5 * jnp.log(jnp.maximum(phi.real**2 + phi.imag**2, 1e-300))
    angle = jnp.arctan2(phi.imag, phi.real)
    if not secret:
        power, turn = jnp.exp(n * size), n * angle
        return jax.lax.complex(power * jnp.cos(turn), power * jnp.sin(turn))
    log = jax.lax.complex(size, angle)
    if secret == "gaussian":
        # A normal weight is smooth: the trapezoidal rule on 97 points of ±9.5 scales is exact to
        # rounding, unless whole numbers are coarser; then it runs over the whole numbers.
        step = jnp.maximum(9.5 * count_scale / 48, 1.0)
        where = jnp.maximum(jnp.round(n), 0.0) + step * jnp.arange(-48, 49)
        weight = jnp.where(where >= 0, jnp.exp(-(((where - n) / count_scale) ** 2) / 2), 0.0)
        total = jnp.zeros_like(phi)
        for j in range(97):
            total = total + weight[j] * jnp.exp(jnp.maximum(where[j], 0.0) * log)
        return total
    a = jnp.exp(-1 / count_scale)
    m = jnp.floor(jnp.maximum(n, 0.0))
    rest = jnp.maximum(n, 0.0) - m
    power = jnp.exp((m + 1) * log)
    left = a**rest * (power - jnp.exp(-(m + 1) / count_scale)) / (phi - a)
    return left + a ** (1 - rest) * power / (1 - phi * a)


def likelihood(
    family: Family, interval: Interval, eta: np.ndarray, nodes: int, series: Series, z: np.ndarray,
    n: float, secret: str = "", count_scale: float = 0.0,
) -> np.ndarray:  # fmt: skip
    """(release, parameter), up to a factor; shapes are padded so that few are compiled."""
    values, weights = (_padded(a, 8) for a in law.nodes(family, interval, nodes))
    one = _one_record(family, interval, values, weights, jnp.asarray(eta))
    added = jnp.asarray(law.contributions(interval, np.asarray(values)))
    scales = jnp.asarray(float(n)), secret, jnp.asarray(count_scale or 1.0)
    many = np.asarray(_transform(one, added, *map(_padded, series), *scales))
    turned = z[:, None] * np.asarray(_padded(series.frequency))
    return np.asarray(np.cos(turned) @ many.real.T + np.sin(turned) @ many.imag.T)


def _padded(values: np.ndarray, least: int = 64) -> jax.Array:
    """Zeros up to a power of two."""
    size = max(least, 1 << (len(values) - 1).bit_length())
    return jnp.asarray(np.pad(values, (0, size - len(values))))
