"""Rank-normalised split R-hat and bulk effective sample size, batched.

A. Vehtari, A. Gelman, D. Simpson, B. Carpenter, P.-C. Bürkner, "Rank-normalization, folding, and
localization: an improved R-hat for assessing convergence of MCMC", Bayesian Analysis 16 (2021).
In JAX so that tens of thousands of posteriors are judged where they were sampled.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.scipy.special import ndtri


def diagnose(draws: jax.Array) -> tuple[jax.Array, jax.Array]:
    """R-hat and bulk ESS of draws (..., chain, draw): the larger of bulk and folded R-hat."""
    half = draws.shape[-1] // 2
    split = jnp.concatenate([draws[..., :half], draws[..., half : 2 * half]], axis=-2)
    folded = jnp.abs(split - jnp.median(split, axis=(-2, -1), keepdims=True))
    bulk = _normal_scores(split)
    return jnp.maximum(_r_hat(bulk), _r_hat(_normal_scores(folded))), _ess(bulk)


def _normal_scores(draws: jax.Array) -> jax.Array:
    """Normal quantiles of the ranks among all chains together."""
    flat = draws.reshape(*draws.shape[:-2], -1)
    order = jnp.argsort(flat, axis=-1)
    ranks = jnp.argsort(order, axis=-1) + 1
    scores = ndtri((ranks - 0.375) / (flat.shape[-1] + 0.25))
    return scores.reshape(draws.shape)


def _pooled(draws: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Within-chain variance, and the pooled estimate that also sees between chains."""
    length = draws.shape[-1]
    within = jnp.var(draws, axis=-1, ddof=1).mean(axis=-1)
    between = jnp.var(draws.mean(axis=-1), axis=-1, ddof=1)
    return within, within * (length - 1) / length + between


def _r_hat(draws: jax.Array) -> jax.Array:
    within, pooled = _pooled(draws)
    return jnp.sqrt(pooled / within)


def _ess(draws: jax.Array) -> jax.Array:
    """Geyer's initial monotone sequence on the chains' combined autocorrelation."""
    chains, length = draws.shape[-2:]
    within, pooled = _pooled(draws)
    centred = draws - draws.mean(axis=-1, keepdims=True)
    size = 2 ** (2 * length - 1).bit_length()
    spectrum = jnp.abs(jnp.fft.rfft(centred, size, axis=-1)) ** 2
    covariance = jnp.fft.irfft(spectrum, size, axis=-1)[..., :length].mean(axis=-2) / (length - 1)
    correlation = 1 - (within[..., None] - covariance) / pooled[..., None]
    correlation = correlation.at[..., 0].set(1.0)
    even = length // 2 * 2
    pairs = correlation[..., :even].reshape(*correlation.shape[:-1], -1, 2).sum(axis=-1)
    positive = jnp.cumprod(pairs > 0, axis=-1)
    monotone = jax.lax.cummin(pairs, axis=pairs.ndim - 1) * positive
    time = jnp.maximum(-1 + 2 * monotone.sum(axis=-1), 1 / jnp.log10(chains * length))
    return chains * length / time
