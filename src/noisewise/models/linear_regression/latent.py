"""What the exact method knows beyond the coefficients: the sums behind the noise, and x's law.

Given the statistic s, (μx, τ²) is normal-inverse-Wishart: exact, independent draws. In NumPy, when
first asked for (they cost as much as the sampling), and only where all of them fit: tens of
thousands of groups would not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.models.linear_regression.coordinates import Shape, point, released
from noisewise.models.linear_regression.problem import Problem
from noisewise.models.linear_regression.initial_values import inverse_wishart_factors

MOST = 2**25
"""Numbers kept in all: a quarter of a gigabyte."""


def fits(shape: Shape, draws: int) -> bool:
    """Whether so many draws of s, μx and τ² are worth their memory."""
    d = shape.q - 1
    return draws * (2 * shape.dimension + d + d * d) <= MOST


class Latent(Mapping[str, np.ndarray]):
    """Draws by name, made when first asked for."""

    names = ("s", "mu_x", "tau2")

    def __init__(self, make: Callable[[], Mapping[str, np.ndarray]]) -> None:
        self._make = make

    @cached_property
    def _made(self) -> Mapping[str, np.ndarray]:
        return self._make()

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self.names:
            raise KeyError(name)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def latent(
    rng: np.random.Generator, problem: Problem, shape: Shape, positions: np.ndarray
) -> Mapping[str, np.ndarray]:
    """Draws (group, chain, draw, …) from positions (draw, coordinate, chain, group).

    ``s`` in the box, in the order of ``coordinates.released``; ``mu_x`` and ``tau2`` (mean and
    covariance of the covariates) in the user's units.
    """
    v = np.transpose(positions, (3, 2, 0, 1))
    batch, d = v.shape[:3], shape.q - 1
    n = np.broadcast_to(problem.n[:, None, None], batch)
    flat = jnp.asarray(v.reshape(-1, v.shape[-1])), jnp.asarray(n.reshape(-1))
    at = jax.jit(jax.vmap(lambda v, n: point(v, shape, n)))(*flat)
    sums = jax.jit(jax.vmap(lambda p: released(p, noisy_n=shape.noisy_n)))(at)
    prior = problem.box_prior
    mean, n = np.asarray(at.mean)[:, :d], np.asarray(at.n)
    factor = np.asarray(at.factor)[:, :d, : min(d, shape.rank)]
    kappa = np.asarray(prior.x_kappa)
    off = mean - np.asarray(prior.x_mean)
    weight = (kappa * n / (kappa + n))[:, None, None]
    scale = np.asarray(prior.x_scale) + n[:, None, None] * (factor @ np.swapaxes(factor, 1, 2))
    scale = scale + weight * off[:, :, None] * off[:, None, :]
    root = inverse_wishart_factors(rng, np.linalg.cholesky(scale), np.asarray(prior.x_df) + n)
    centre = (kappa * np.asarray(prior.x_mean) + n[:, None] * mean) / (kappa + n)[:, None]
    white = np.einsum("bij,bj->bi", root, rng.standard_normal(mean.shape))
    x_mean = centre + white / np.sqrt(kappa + n)[:, None]
    half, middle = problem.units.half[:d], problem.units.centre[:d]
    covariance = (root @ np.swapaxes(root, 1, 2)) * half[:, None] * half
    return {
        "s": np.asarray(sums).reshape(*batch, -1),
        "mu_x": (middle + half * x_mean).reshape(*batch, d),
        "tau2": covariance.reshape(*batch, d, d),
    }
