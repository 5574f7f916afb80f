"""Where chains start: exact draws of the statistic from the prior predictive, in coordinates.

Far apart, and always valid. In NumPy: there are few of them, and compiling gamma samplers for them
took longer than all the sampling.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from noisewise.infer.linear.collapsed import Prior


class Parameters(NamedTuple):
    """Coefficients, error variance, the covariates' mean, and a factor of their covariance."""

    theta: np.ndarray
    variance: np.ndarray
    x_mean: np.ndarray
    x_factor: np.ndarray


def prior_parameters(rng: np.random.Generator, prior: Prior, shape: tuple[int, ...]) -> Parameters:
    """Draws from both priors, one for each element of ``shape``."""
    p: Any = Prior(*(np.asarray(f) for f in prior))  # type: ignore[arg-type]  # NumPy twin
    variance = p.rate / rng.standard_gamma(float(p.shape), shape)
    theta = p.mean + np.sqrt(variance)[..., None] * _whitened(rng, p.precision, shape)
    x_factor = _inverse_wishart_factors(rng, p, shape)
    white = rng.standard_normal((*shape, len(p.x_mean)))
    x_mean = p.x_mean + _times(x_factor, white) / np.sqrt(p.x_kappa)
    return Parameters(theta, variance, x_mean, x_factor)


def prior_statistics(
    rng: np.random.Generator, n: np.ndarray, prior: Prior, draws: int, *, n_noise: float | None
) -> np.ndarray:
    """Coordinates (group, draw, dim) of statistics drawn from the prior, for n records each.

    Where n is secret, n is what was released and ``n_noise`` its scale: starts then differ in n by
    as much, or no chain would ever learn how far n may move.
    """
    d = prior.x_mean.shape[0]
    q, shape = d + 1, (len(n), draws)
    sizes = np.broadcast_to(n[:, None], shape)
    if n_noise is not None:
        sizes = np.maximum(sizes + rng.laplace(0, n_noise, shape), q + 2)
    theta, variance, x_mean, x_factor = prior_parameters(rng, prior, shape)
    # A record is law_mean + law @ white noise, jointly for (x, y).
    law = np.zeros((*shape, q, q))
    law[..., :d, :d] = x_factor
    law[..., d, :d] = np.einsum("...i,...ij->...j", theta[..., :d], x_factor)
    law[..., d, d] = np.sqrt(variance)
    level = np.sum(theta[..., :d] * x_mean, axis=-1) + theta[..., d]
    law_mean = np.concatenate([x_mean, level[..., None]], axis=-1)
    root_n = np.sqrt(sizes)[..., None]
    mean = law_mean + _times(law, rng.standard_normal((*shape, q))) / root_n
    # Where n <= q the scatter has no full rank; a start may have, it only has to be valid.
    degrees = np.maximum(sizes - 1, q - 0.5)
    factor = law @ _bartlett(rng, degrees, (*shape, q)) / root_n[..., None]
    return _coordinates(mean, factor, None if n_noise is None else sizes)


def _times(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    return np.asarray(np.einsum("...ij,...j->...i", matrix, vector))


def _whitened(
    rng: np.random.Generator, precision: np.ndarray, shape: tuple[int, ...]
) -> np.ndarray:
    """Draws of N(0, precision⁻¹)."""
    inverse = np.linalg.inv(np.linalg.cholesky(precision))
    return np.asarray(rng.standard_normal((*shape, len(precision))) @ inverse)


def _bartlett(rng: np.random.Generator, degrees: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Lower B with B Bᵀ ~ Wishart(degrees, I); shape ends with the size."""
    size = shape[-1]
    factor = np.tril(rng.standard_normal((*shape, size)), -1)
    diagonal = np.arange(size)
    squares = 2 * rng.standard_gamma(np.broadcast_to((degrees[..., None] - diagonal) / 2, shape))
    factor[..., diagonal, diagonal] = np.sqrt(squares)
    return factor


def _inverse_wishart_factors(
    rng: np.random.Generator, prior: Prior, shape: tuple[int, ...]
) -> np.ndarray:
    """Lower T with T Tᵀ ~ InverseWishart: scale = P Pᵀ, T Tᵀ = P B⁻ᵀ B⁻¹ Pᵀ."""
    d = len(prior.x_mean)
    degrees = np.broadcast_to(np.asarray(prior.x_df), shape)
    inverse = np.linalg.inv(_bartlett(rng, degrees, (*shape, d)))
    root = np.linalg.cholesky(np.asarray(prior.x_scale)) @ np.swapaxes(inverse, -1, -2)
    return np.linalg.cholesky(root @ np.swapaxes(root, -1, -2))


def _coordinates(mean: np.ndarray, factor: np.ndarray, n: np.ndarray | None) -> np.ndarray:
    """The inverse of ``coordinates.point``."""
    q = mean.shape[-1]
    rho = 0.5 * np.log(np.sum(factor**2, axis=-1))
    below = [factor[..., j, :j] / factor[..., j, j, None] for j in range(q)]
    parts = [mean, rho, *below]
    if n is not None:
        parts.append(np.log(n)[..., None])
    return np.concatenate(parts, axis=-1)
