"""The inverse Gaussian sampler, the Laplace mixture it updates, and the batched gamma sampler."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from noisewise.numerics.distributions import gamma, inverse_gaussian_reciprocal, laplace_variances
from noisewise.numerics.matrices import project_to_floor

reciprocal = jax.jit(inverse_gaussian_reciprocal)
variances = jax.jit(laplace_variances)
drawn_gamma = jax.jit(gamma)
projected = jax.jit(project_to_floor, static_argnums=1)

DRAWS = 20_000
LEVEL = 1e-4
"""False-alarm rate of each Kolmogorov-Smirnov test; seeds are fixed."""


def standard(seed: int) -> tuple[jax.Array, jax.Array]:
    rng = np.random.default_rng(seed)
    return jnp.asarray(rng.standard_normal(DRAWS)), jnp.asarray(rng.uniform(size=DRAWS))


@pytest.mark.parametrize(("mean", "shape"), [(1.0, 1.0), (50.0, 0.5), (0.02, 3.0), (1e4, 1e-2)])
def test_inverse_gaussian(mean: float, shape: float) -> None:
    white, uniform = standard(1)
    drawn = 1 / reciprocal(white, uniform, 1 / mean, shape)
    law = stats.invgauss(mean / shape, scale=shape)
    assert stats.kstest(np.asarray(drawn), law.cdf).pvalue > LEVEL


def test_a_residual_of_zero_is_no_trouble() -> None:
    white, uniform = standard(2)
    drawn = variances(white, uniform, jnp.zeros(DRAWS), jnp.asarray(2.0))
    # 1/ω² is then chi-square with one degree of freedom, inverted and scaled: ω² = b² normal².
    assert stats.kstest(np.asarray(drawn) / 4, stats.chi2(1).cdf).pvalue > LEVEL


def test_the_mixture_is_stationary() -> None:
    """Residuals Laplace, then ω² given them: the pair must have ω² exponential with mean 2b²."""
    scale = 3.0
    white, uniform = standard(3)
    residual = np.random.default_rng(4).laplace(0, scale, DRAWS)
    drawn = variances(white, uniform, jnp.asarray(residual), jnp.asarray(scale))
    assert stats.kstest(np.asarray(drawn), stats.expon(scale=2 * scale**2).cdf).pvalue > LEVEL


@pytest.mark.parametrize("shape", [1.0, 2.5, 60.0, 1e8])
def test_gamma(shape: float) -> None:
    drawn = drawn_gamma(jax.random.key(5), jnp.full(DRAWS, shape))
    assert stats.kstest(np.asarray(drawn), stats.gamma(shape).cdf).pvalue > LEVEL


@pytest.mark.parametrize("size", [2, 3])
def test_projection_is_the_clipped_spectrum_and_leaves_valid_matrices_alone(size: int) -> None:
    rng = np.random.default_rng(6)
    for _ in range(20):
        a = rng.normal(size=(size, size))
        a = (a + a.T) / 2
        values, vectors = np.linalg.eigh(a)
        expected = vectors @ np.diag(np.maximum(values, 0.1)) @ vectors.T
        found, moved = projected(jnp.asarray(a), 0.1)
        np.testing.assert_allclose(found, expected, atol=1e-12)
        assert bool(moved) == (values[0] < 0.1)
        valid = expected + np.eye(size)
        same, moved = projected(jnp.asarray(valid), 0.1)
        assert not moved
        np.testing.assert_array_equal(same, valid)
