"""Exponential waiting times: the gamma family of shape 1, with a CDF in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from noisewise.models.exponential_family.families.gamma import Gamma


@dataclass(frozen=True)
class Exponential(Gamma):
    """Density rate · exp(-rate x) on x > 0."""

    name: ClassVar[str] = "exponential"

    @classmethod
    def for_release(cls, model: Any, statistic: Any) -> Exponential:
        """Nothing is known beforehand."""
        return cls()

    def cdf(self, x: jax.Array, eta: jax.Array) -> jax.Array:
        """1 - exp(ηx)."""
        return -jnp.expm1(eta[0] * jnp.maximum(x, 0.0))
