"""Rank-normalised split R-hat and bulk effective sample size, batched.

A. Vehtari, A. Gelman, D. Simpson, B. Carpenter, P.-C. Bürkner, "Rank-normalization, folding, and
localization: an improved R-hat for assessing convergence of MCMC", Bayesian Analysis 16 (2021).
For JAX arrays in JAX, so that tens of thousands of posteriors are judged on the GPU that sampled
them; for NumPy arrays in NumPy, because XLA's sort on a CPU is twenty times slower. Where nothing
was sampled, as in judging stored draws, JAX is not imported.
"""

from __future__ import annotations

import sys
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

if TYPE_CHECKING:
    from collections.abc import Callable

    import jax

Array = Any
"""A JAX or a NumPy array."""

GROUPS_PER_DIAGNOSIS = 4096
"""Groups that ``diagnose_groups`` handles together, so that memory stays bounded (chosen)."""


def diagnose(draws: Array) -> tuple[Array, Array]:
    """Return R-hat (the larger of bulk and folded) and bulk ESS of draws (..., chain, draw)."""
    xp = _namespace(draws)
    half = draws.shape[-1] // 2
    split = xp.concatenate([draws[..., :half], draws[..., half : 2 * half]], axis=-2)
    bulk, median = _normal_scores(split)
    folded, _ = _normal_scores(xp.abs(split - median[..., None, None]))
    return xp.maximum(_r_hat(bulk), _r_hat(folded)), _ess(bulk)


def diagnose_groups(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return R-hat and bulk ESS per group, of draws (group, chain, draw), some groups at a time.

    On a GPU where there is one: a CPU takes minutes for tens of thousands of groups.
    """
    judge = _diagnosed_there if _has_accelerator() else diagnose
    starts = range(0, len(draws), GROUPS_PER_DIAGNOSIS)
    parts = [judge(draws[i : i + GROUPS_PER_DIAGNOSIS]) for i in starts]
    rhat, ess = zip(*parts, strict=True)
    return np.concatenate(rhat), np.concatenate(ess)


def _has_accelerator() -> bool:
    """Return whether JAX is in use, and on something else than a CPU."""
    jax = sys.modules.get("jax")
    return jax is not None and jax.default_backend() != "cpu"


def _diagnosed_there(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rhat, ess = _compiled()(draws.astype(float))
    return np.asarray(rhat), np.asarray(ess)


@cache
def _compiled() -> Callable[[np.ndarray], tuple[Array, Array]]:
    import jax

    import noisewise.numerics.jax_settings  # noqa: F401  # float64: posteriors may be far from zero

    return jax.jit(diagnose)


def _namespace(array: Array) -> ModuleType:
    if isinstance(array, np.ndarray):
        return np
    import jax.numpy as jnp

    return jnp


def _normal_scores(draws: Array) -> tuple[Array, Array]:
    """Return normal quantiles of the ranks among all chains together, and the median."""
    xp = _namespace(draws)
    flat = draws.reshape(*draws.shape[:-2], -1)
    size = flat.shape[-1]
    order = xp.argsort(flat, axis=-1)
    middle = xp.take_along_axis(flat, order[..., (size - 1) // 2 : size // 2 + 1], axis=-1)
    # The score of a rank is known beforehand: put it where the rank's draw was.
    known = ((np.arange(size) + 1) - 0.375) / (size + 0.25)
    if xp is np:
        scores = np.empty_like(flat)
        np.put_along_axis(scores, order, np.broadcast_to(ndtri(known), flat.shape), axis=-1)
    else:
        from jax.scipy.special import ndtri as jax_ndtri

        scores = jax_ndtri(known)[xp.argsort(order, axis=-1)]
    return scores.reshape(draws.shape), middle.mean(axis=-1)


def _pooled(draws: Array) -> tuple[Array, Array]:
    """Return the within-chain variance, and the pooled estimate that also sees between chains."""
    length = draws.shape[-1]
    within = draws.var(axis=-1, ddof=1).mean(axis=-1)
    between = draws.mean(axis=-1).var(axis=-1, ddof=1)
    return within, within * (length - 1) / length + between


def _r_hat(draws: Array) -> Array:
    within, pooled = _pooled(draws)
    return _namespace(draws).sqrt(pooled / within)


def _ess(draws: Array) -> Array:
    """Return the ESS by Geyer's initial monotone sequence on the combined autocorrelation."""
    xp = _namespace(draws)
    chains, length = draws.shape[-2:]
    within, pooled = _pooled(draws)
    centred = draws - draws.mean(axis=-1, keepdims=True)
    size = 2 ** (2 * length - 1).bit_length()
    spectrum = xp.abs(xp.fft.rfft(centred, size, axis=-1)) ** 2
    # Linear: the mean over chains may come before the way back.
    covariance = xp.fft.irfft(spectrum.mean(axis=-2), size, axis=-1)[..., :length] / (length - 1)
    correlation = 1 - (within[..., None] - covariance) / pooled[..., None]
    even = length // 2 * 2
    pairs = correlation[..., :even].reshape(*correlation.shape[:-1], -1, 2)
    # The autocorrelation at lag 0 is 1, whatever the estimate says.
    first = 1 + pairs[..., :1, 1]
    pairs = xp.concatenate([first, pairs[..., 1:, :].sum(axis=-1)], axis=-1)
    positive = xp.cumprod(pairs > 0, axis=-1)
    least = np.minimum.accumulate(pairs, axis=-1) if xp is np else _running_minimum(pairs)
    time = xp.maximum(-1 + 2 * (least * positive).sum(axis=-1), 1 / np.log10(chains * length))
    return chains * length / time


def _running_minimum(pairs: jax.Array) -> jax.Array:
    import jax

    return jax.lax.cummin(pairs, axis=pairs.ndim - 1)
