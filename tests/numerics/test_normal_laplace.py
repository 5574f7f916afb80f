"""The normal-Laplace density is a density, and its two forms agree."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate

from noisewise.numerics.distributions import noisy_normal_log_density, normal_laplace_log_density


@pytest.mark.parametrize(("variance", "scale"), [(0.01, 2.0), (1.0, 1.0), (30.0, 0.5)])
def test_it_integrates_to_one_and_both_forms_agree(variance: float, scale: float) -> None:
    x = np.linspace(-60, 60, 24_001)
    ours = np.asarray(
        normal_laplace_log_density(jnp.asarray(x), jnp.asarray(variance), jnp.asarray(scale))
    )
    assert integrate.simpson(np.exp(ours), x=x) == pytest.approx(1, abs=1e-6)
    relative = noisy_normal_log_density(x, np.asarray(variance), scale, "laplace")
    np.testing.assert_allclose(relative - np.log(2 * scale), ours, rtol=1e-9, atol=1e-9)
