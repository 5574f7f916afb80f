"""The likelihood where the number of records is secret: its noisy count m̂ belongs to it.

n, with a flat prior over 0, 1, 2, …, is summed out under the transform: for Laplace noise of scale
b' with a = e^{-1/b'}, m = ⌊m̂⌋, f = m̂ - m a geometric series on either side of m̂,

    Σ_n φⁿ a^{|m̂-n|} = a^f (φ^{m+1} - a^{m+1})/(φ - a) + a^{1-f} φ^{m+1}/(1 - φa).
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.models.exponential_family.kernel import Series
from noisewise.models.exponential_family.likelihood import Record, padded


def likelihood(
    record: Record, series: Series, z: np.ndarray, counted: float, mechanism: str, scale: float
) -> np.ndarray:
    """(release, parameter) where n is known by a noisy count; shapes are padded: few compile."""
    frequency, coefficient = map(padded, series)
    many = np.asarray(
        _any_number(*map(jnp.asarray, record), frequency, coefficient, jnp.asarray(counted),
                    mechanism, jnp.asarray(scale))
    )  # fmt: skip
    turned = z[:, None] * np.asarray(frequency)
    return np.asarray(np.cos(turned) @ many.real.T + np.sin(turned) @ many.imag.T)


@partial(jax.jit, static_argnums=5)
def _any_number(
    added: jax.Array, one: jax.Array, frequency: jax.Array, coefficient: jax.Array, n: jax.Array,
    mechanism: str, count_scale: jax.Array,
) -> jax.Array:  # fmt: skip
    """φⁿ summed over n, times the noise's coefficients (parameter, frequency)."""
    angle = added[:, None] * frequency
    phi = jax.lax.complex(one @ jnp.cos(angle), one @ jnp.sin(angle))
    return _summed(phi, n, mechanism, count_scale) * coefficient


def _summed(phi: jax.Array, n: jax.Array, mechanism: str, count_scale: jax.Array) -> jax.Array:
    # In real arithmetic: XLA's complex logarithm takes twice as long on a CPU.
    size = 0.5 * jnp.log(jnp.maximum(phi.real**2 + phi.imag**2, 1e-300))
    log = jax.lax.complex(size, jnp.arctan2(phi.imag, phi.real))
    if mechanism == "gaussian":
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
