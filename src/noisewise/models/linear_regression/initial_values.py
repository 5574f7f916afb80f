"""Initial values of chains: draws from the prior, moved to within the noise of the released sums.

An exact draw s0 of the statistic from the prior predictive is valid, and far from other draws. But
where data say much it is also far from the posterior, and chains that start there spend their
warm-up on the way or get stuck. Valid statistics form a convex cone, so the straight line from s0
to the released sums (made valid by clipping eigenvalues) stays valid: a chain starts on that line,
as far from the sums as the noise reaches. Where noise drowns the sums, that is s0 itself.

They are computed in NumPy: there are few of them, and compiling gamma samplers for them took longer
than all the sampling.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from noisewise.models.linear_regression.collapsed import BoxPrior
from noisewise.numerics.distributions import draw_bartlett_factors, draw_inverse_wishart_factors
from noisewise.numerics.gram_packing import number_of_sums, unpack


class DrawnParameters(NamedTuple):
    """Coefficients, error variance, the covariates' mean, and a factor of their covariance."""

    theta: np.ndarray
    variance: np.ndarray
    x_mean: np.ndarray
    x_factor: np.ndarray


def prior_parameters(
    rng: np.random.Generator, prior: BoxPrior, shape: tuple[int, ...]
) -> DrawnParameters:
    """Draw from both priors, one for each element of ``shape``."""
    p: Any = BoxPrior(*(np.asarray(f) for f in prior))  # type: ignore[arg-type]  # NumPy twin
    variance = p.rate / rng.standard_gamma(float(p.shape), shape)
    theta = p.mean + np.sqrt(variance)[..., None] * _whitened(rng, p.precision, shape)
    degrees = np.broadcast_to(p.x_df, shape)
    x_factor = draw_inverse_wishart_factors(rng, np.linalg.cholesky(p.x_scale), degrees)
    white = rng.standard_normal((*shape, len(p.x_mean)))
    x_mean = p.x_mean + _times(x_factor, white) / np.sqrt(p.x_kappa)
    return DrawnParameters(theta, variance, x_mean, x_factor)


class DrawnStatistics(NamedTuple):
    """Means (…, q), factors L (…, q, rank) of scatter / n, and numbers of records (…)."""

    mean: np.ndarray
    factor: np.ndarray
    n: np.ndarray

    def coordinates(self, *, noisy_n: bool) -> np.ndarray:
        """Return the coordinates, their axis last: the inverse of ``coordinates.point``."""
        q, rank = self.factor.shape[-2:]
        rho = 0.5 * np.log(np.sum(self.factor[..., :rank, :] ** 2, axis=-1))
        below = [self.factor[..., j, :j] / self.factor[..., j, j, None] for j in range(rank)]
        below += [self.factor[..., j, :] for j in range(rank, q)]
        parts = [self.mean, rho, *below]
        if noisy_n:
            parts.append(np.log(self.n)[..., None])
        return np.concatenate(parts, axis=-1)


def prior_statistics(
    rng: np.random.Generator,
    n: np.ndarray,
    prior: BoxPrior,
    draws: int,
    rank: int,
    *,
    n_noise: float | None,
) -> DrawnStatistics:
    """Draw statistics (group, draw) from the prior predictive, for n records each.

    Args:
        rng: the analyst's own randomness.
        n: records of every group; where n is secret, what was released.
        prior: in the box.
        draws: how many for each group.
        rank: of the scatter, min(q, n - 1), the same for all groups.
        n_noise: the noise scale of n where it is secret. Draws then differ in n by as much, or no
            chain would ever learn how far n may move.
    """
    d = prior.x_mean.shape[0]
    q, shape = d + 1, (len(n), draws)
    sizes = np.broadcast_to(n[:, None], shape)
    if n_noise is not None:
        sizes = np.maximum(sizes + rng.laplace(0, n_noise, shape), q + 2)
    return statistics_of(rng, prior_parameters(rng, prior, shape), sizes, rank)


def statistics_of(
    rng: np.random.Generator,
    drawn: DrawnParameters,
    sizes: np.ndarray,
    rank: int,
    scatter: np.ndarray | None = None,
) -> DrawnStatistics:
    """Draw statistics of ``sizes`` records each from the normal law with these parameters (E12).

    ``scatter`` is the Bartlett factor (…, q, rank) of their scatter, if it is drawn already.
    """
    theta, variance, x_mean, x_factor = drawn
    shape, d = sizes.shape, x_mean.shape[-1]
    q = d + 1
    # A record is law_mean + law @ white noise, jointly for (x, y).
    law = np.zeros((*shape, q, q))
    law[..., :d, :d] = x_factor
    law[..., d, :d] = np.einsum("...i,...ij->...j", theta[..., :d], x_factor)
    law[..., d, d] = np.sqrt(variance)
    level = np.sum(theta[..., :d] * x_mean, axis=-1) + theta[..., d]
    law_mean = np.concatenate([x_mean, level[..., None]], axis=-1)
    root_n = np.sqrt(sizes)[..., None]
    mean = law_mean + _times(law, rng.standard_normal((*shape, q))) / root_n
    if scatter is None:
        scatter = draw_bartlett_factors(rng, sizes - 1, q, rank)
    factor = law @ scatter / root_n[..., None]
    return DrawnStatistics(mean, factor, sizes)


def towards(
    rng: np.random.Generator, drawn: DrawnStatistics, z: np.ndarray, noise: float
) -> DrawnStatistics:
    """Return draws (group, chain) moved to within ``noise`` of the group's sums z, jittered."""
    q = drawn.factor.shape[-2]
    n = drawn.n[..., None, None]
    wanted = z[:, None, : number_of_sums(q)]
    wanted = wanted + rng.laplace(0, noise, (*drawn.n.shape, wanted.shape[-1]))
    second, totals = unpack(wanted, q)
    # A mean's square is no more than its second moment, give or take the noise: with few records
    # the noise of a mean, squared, is far more than that.
    diagonal = np.diagonal(second, axis1=-2, axis2=-1)
    limit = np.sqrt(np.maximum(diagonal, noise) / n[..., 0])
    mean = np.clip(totals / n[..., 0], -limit, limit)
    values, vectors = np.linalg.eigh(second / n - _outer(mean))
    scatter = (vectors * np.maximum(values, 0)[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    # Second moments and means are linear along the way; the scatter is not.
    there, here = scatter + _outer(mean), _square(drawn.factor) + _outer(drawn.mean)
    apart = np.maximum(
        np.abs(there - here).max(axis=(-2, -1)), np.abs(mean - drawn.mean).max(axis=-1)
    )
    # The share of the way that is left at the starting point.
    left = np.minimum(1, noise / (drawn.n * np.maximum(apart, 1e-300)))
    # Sums drowned in noise say nothing: start where the prior is.
    signal = drawn.n * np.abs(here).max(axis=(-2, -1))
    left = np.maximum(left, noise**2 / (noise**2 + signal**2))
    mean = mean + left[..., None] * (drawn.mean - mean)
    second = there + left[..., None, None] * (here - there)
    # Rounding can undo what clipping and mixing made valid: add a little of the draw's own scatter.
    scatter = second - _outer(mean) + 1e-9 * _square(drawn.factor)
    return DrawnStatistics(mean, _lifted(scatter, drawn, noise), drawn.n)


def _lifted(scatter: np.ndarray, drawn: DrawnStatistics, noise: float) -> np.ndarray:
    """Return a factor of the scatter, lifted where noise hides residual sums of squares.

    Those are taken from the prior's draw.
    """
    q, rank = drawn.factor.shape[-2:]
    if rank < q:
        # The nearest scatter of that rank, and its trapezoidal factor.
        values, vectors = np.linalg.eigh(scatter)
        root = vectors[..., -rank:] * np.sqrt(np.maximum(values[..., -rank:], 1e-300))[..., None, :]
        factor = np.swapaxes(np.linalg.qr(np.swapaxes(root, -1, -2))[1], -1, -2)
        signs = np.sign(np.diagonal(factor, axis1=-2, axis2=-1))[..., None, :]
        return np.asarray(factor * signs)
    factor = np.linalg.cholesky(
        scatter + 1e-12 * np.eye(q) * np.trace(scatter, axis1=-2, axis2=-1)[..., None, None]
    )
    own = np.diagonal(drawn.factor, axis1=-2, axis2=-1) ** 2
    least = np.minimum(own, noise / drawn.n[..., None])
    at = np.arange(q)
    factor[..., at, at] = np.sqrt(np.maximum(factor[..., at, at] ** 2, least))
    return factor


def _outer(vector: np.ndarray) -> np.ndarray:
    return np.asarray(vector[..., :, None] * vector[..., None, :])


def _square(factor: np.ndarray) -> np.ndarray:
    return np.asarray(factor @ np.swapaxes(factor, -1, -2))


def _times(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    return np.asarray(np.einsum("...ij,...j->...i", matrix, vector))


def _whitened(
    rng: np.random.Generator, precision: np.ndarray, shape: tuple[int, ...]
) -> np.ndarray:
    """Draw from N(0, precision⁻¹)."""
    inverse = np.linalg.inv(np.linalg.cholesky(precision))
    return np.asarray(rng.standard_normal((*shape, len(precision))) @ inverse)
