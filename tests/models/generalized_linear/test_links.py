"""Moments of responses under normal predictors, against quadrature."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from noisewise.models.generalized_linear.links import (
    LINKS,
    normal_derivatives,
)
from noisewise.models.generalized_linear.response_laws import RESPONSE_LAWS
from tests.reference import generalized_reference as reference

LEVELS = (-8.0, -3.0, -0.7, 0.0, 1.3, 5.0)
VARIANCES = (1e-4, 0.05, 0.6, 3.0, 20.0, 150.0)


@pytest.mark.parametrize("link", ["logistic", "probit"])
def test_derivatives_under_a_normal_predictor_are_those_of_quadrature(link: str) -> None:
    """g0 to g3 within 1e-7 for predictors of all sizes, and 1 - g0 with it."""
    at = np.array([(a, v) for a in LEVELS for v in VARIANCES])
    found = np.array(normal_derivatives(link, jnp.asarray(at[:, 0]), jnp.asarray(at[:, 1])))
    np.testing.assert_allclose(found[0] + found[1], 1, atol=1e-12)
    for order, values in enumerate(found[[0, 2, 3, 4]]):
        wanted = [reference.normal_derivative(link, order, a, v) for a, v in at]
        np.testing.assert_allclose(values, wanted, rtol=0, atol=1e-7, err_msg=f"g{order}")


def test_the_mixture_of_probits_is_the_logistic_function() -> None:
    """The function and three derivatives are right to 3e-8 everywhere; averages err by no more."""
    t = np.linspace(-40, 40, 8001)
    found = normal_derivatives("logistic", jnp.asarray(t), jnp.zeros(()))
    for order, values in enumerate([found[0], *found[2:]]):
        wanted = [reference.derivative("logistic", order, value) for value in t]
        assert np.abs(np.asarray(values) - wanted).max() < 3e-8, order


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_the_rate_of_counts_under_a_normal_predictor(order: int) -> None:
    """All derivatives of exp are exp: E y = exp(a + v/2), within 1e-7 of itself."""
    for a in (-2.0, 0.0, 1.5):
        for v in (1e-4, 0.3, 2.0):
            wanted = reference.normal_derivative("poisson", order, a, v)
            found = LINKS["poisson"].moments(jnp.asarray(a), jnp.asarray(v))
            np.testing.assert_allclose([found.mean, found.slope], wanted, rtol=1e-7)


@pytest.mark.parametrize("link", ["logistic", "probit", "poisson"])
def test_laws_of_responses_for_analysts_and_for_the_sampler_agree(link: str) -> None:
    """Means, variances and slopes in NumPy are those of the oracle, and of JAX."""
    t = np.linspace(-3, 3, 13)
    law, jax_law = RESPONSE_LAWS[link], LINKS[link]
    mean = reference.mean_response(link, t)
    second = reference.second_moment(link, t)
    np.testing.assert_allclose(law.mean(t), mean, rtol=1e-12)
    np.testing.assert_allclose(law.variance(t), second - mean**2, rtol=1e-9)
    np.testing.assert_allclose(
        law.slope(t), [reference.derivative(link, 1, v) for v in t], rtol=1e-12
    )
    np.testing.assert_allclose(jax_law.mean(jnp.asarray(t)), mean, rtol=1e-12)
    np.testing.assert_allclose(jax_law.second(jnp.asarray(t)), second, rtol=1e-12)
    drawn = law.records(np.random.default_rng(0), np.repeat(mean[6], 40_000))
    assert abs(drawn.mean() - mean[6]) < 5 * np.sqrt((second - mean**2)[6] / 40_000)
    assert abs((drawn**2).mean() - second[6]) < 0.05 * second[6]
