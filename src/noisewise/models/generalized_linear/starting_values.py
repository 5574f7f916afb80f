"""Where chains start: near what the noisy sums say, apart by what their noise leaves open."""

from __future__ import annotations

import numpy as np

from noisewise.models.generalized_linear import covariate_density
from noisewise.models.generalized_linear.density import Layout
from noisewise.models.generalized_linear.links import LINKS
from noisewise.models.generalized_linear.problem import GeneralizedProblem
from noisewise.numerics.gram_packing import unpack

LEAST_NOISE_SHARE = 0.5
"""Least variance of a column at the start, in units of its noise (chosen)."""
SHRUNK_BY = 4.0
"""Noise of a variance that halves its column's share of correlations at the start (chosen)."""
LEAST_EIGENVALUE = 0.05
"""Least eigenvalue of the correlations at the start (chosen)."""
LEAST_SHARE = 0.02
"""Least share of events, and of their absence, at the start (chosen)."""


def variance_units(problem: GeneralizedProblem) -> np.ndarray:
    """Return the noise c_j (group, column) of the variances that the released sums give."""
    d, n = len(problem.x), problem.n[:, None]
    _, totals = unpack(problem.covariates[:, : d * (d + 3) // 2], d)
    mean = np.clip(totals / n, -1, 1)
    return np.asarray(problem.noise_scale / n * np.sqrt(1 + 4 * mean**2))


def raw_moments(problem: GeneralizedProblem) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and covariance (group, …) of the covariates as if the noisy sums were exact."""
    d, n = len(problem.x), problem.n
    products, totals = unpack(problem.covariates[:, : d * (d + 3) // 2], d)
    mean = totals / n[:, None]
    return mean, products / n[:, None, None] - mean[:, :, None] * mean[:, None, :]


def noisy_moments(problem: GeneralizedProblem) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and covariance (group, …) of the covariates as the noisy sums have them.

    Made valid: variances at least a part of their noise, correlations positive definite, and the
    smaller the more of a variance may be noise.
    """
    d, n = len(problem.x), problem.n
    products, totals = unpack(problem.covariates[:, : d * (d + 3) // 2], d)
    mean = np.clip(totals / n[:, None], -0.999, 0.999)
    covariance = products / n[:, None, None] - mean[:, :, None] * mean[:, None, :]
    variance = np.diagonal(covariance, axis1=1, axis2=2)
    variance = np.clip(variance, LEAST_NOISE_SHARE * variance_units(problem), 1.0)
    size = np.sqrt(variance)
    correlation = np.clip(covariance / size[:, :, None] / size[:, None, :], -0.95, 0.95)
    visible = np.sqrt(variance / (variance + SHRUNK_BY * variance_units(problem)))
    correlation *= visible[:, :, None] * visible[:, None, :]
    correlation[:, np.arange(d), np.arange(d)] = 1.0
    values, vectors = np.linalg.eigh(correlation)
    raised = np.maximum(values, LEAST_EIGENVALUE)
    correlation = (vectors * raised[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    length = np.sqrt(np.diagonal(correlation, axis1=1, axis2=2))
    correlation /= length[:, :, None] * length[:, None, :]
    return mean, correlation * size[:, :, None] * size[:, None, :]


def starting_values(
    rng: np.random.Generator, problem: GeneralizedProblem, layout: Layout, chains: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return starting positions (coordinate, chain, group) and spreads (coordinate, group)."""
    d, groups = layout.d, len(problem.n)
    mean, covariance = noisy_moments(problem)
    unit = variance_units(problem)
    shape = (groups, chains, d)
    # Apart by the noise of every mean and variance.
    width = np.sqrt(2.0) * problem.noise_scale / problem.n[:, None, None]
    centre = np.clip(mean[:, None] + width * rng.standard_normal(shape), -0.999, 0.999)
    factor = np.linalg.cholesky(covariance)[:, None]
    variance = np.diagonal(covariance, axis1=1, axis2=2)[:, None]
    apart = np.exp(0.5 * np.arctan(unit[:, None] / variance) * rng.standard_normal(shape))
    w = covariate_density.warped(centre, factor * apart[..., None], unit[:, None])
    parts = [w]
    if layout.noisy_n:
        noise = 0.5 * np.sqrt(2.0) * problem.noise_scale / problem.n[:, None, None]
        parts.append(np.log(problem.n)[:, None, None] + np.minimum(noise, 0.5)
                     * rng.standard_normal((groups, chains, 1)))  # fmt: skip
    scales = 0.5 * np.log(d + 1) + 0.5 * rng.standard_normal(shape)
    level = _level(problem)[:, None, None] + 0.5 * rng.standard_normal((groups, chains, 1))
    slopes = 0.3 * problem.slope_sd * rng.standard_normal(shape)
    eta = 0.5 * rng.standard_normal((groups, chains, layout.noise_variables)) - 0.5
    position = np.concatenate([*parts, scales, level, slopes, eta], axis=-1)
    rows = d * (d - 1) // 2
    spread = np.concatenate([
        np.full(d, 1.0), np.full(d, 3.0), np.full(rows, 1.0), np.full(int(layout.noisy_n), 1.0),
        np.full(d, 0.7), [problem.level_sd], np.full(d, problem.slope_sd),
        np.full(layout.noise_variables, 1.3),
    ])  # fmt: skip
    return position.transpose(2, 1, 0), np.repeat(spread[:, None], groups, axis=1)


def _level(problem: GeneralizedProblem) -> np.ndarray:
    """Return the predictor (group) at which the mean response is the noisy one."""
    centre, half = problem.units.centre[-1], problem.units.half[-1]
    mean = centre + half * problem.response[:, 0] / problem.n
    largest = problem.largest_count if problem.counts else 1 - LEAST_SHARE
    return LINKS[problem.link].rough_predictor(np.clip(mean, LEAST_SHARE, largest))
