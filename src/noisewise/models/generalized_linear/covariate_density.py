"""The density of the covariates' sums under a prior that knows no units, and its coordinates.

    x ~ N(μ, Σ),   Σ ~ InverseWishart(diag(a_j²), d),   a_j² ~ BetaPrime(0.15, ½),   μ flat

the covariates' part of the default prior of linear regression (``linear_regression.scale_free``),
with the same exponents and for the same reasons. With μ and Σ integrated out, the mean x̄ and the
scatter S = n L Lᵀ of n records have the density

    log p = (n-1) Σ l_j - ½ (n + d - 1) log |diag(a²) + S| + Σ [(2 · 0.15 + d) log a_j
            - 0.65 log(1 + a_j²)]

in the coordinates of ``linear_regression.coordinates``; x̄ is uniform in the box. The sampler moves
warped coordinates, as explained in ``scale_free``:

    x̄ = tanh m,   S_jj / n = c_j log(1 + exp t_j),   t = w - (k - 1) log(1 + exp(-w)),
    rows of L / diag stretched along their direction, |g_j| = sinh |h_j|,
    u_j = log a_j less the log deviation that other covariates leave of column j.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import multigammaln

from noisewise.models.linear_regression import scale_free
from noisewise.models.linear_regression.coordinates import Point, Shape, point
from noisewise.numerics.matrices import (
    Matrix,
    cholesky,
    constant,
    each,
    is_entries,
    joined,
    listed,
    log_determinant,
    scaled,
    solve_lower,
    strictly_lower,
    times_transposed,
)

TAIL = 0.5 / scale_free.COVARIATE_SCALE[0]
"""dt/dw where the noise hides a column: its tail is then exp(w / 2)."""
FARTHEST, LOWEST, OUTSIDE = scale_free.FARTHEST, scale_free.LOWEST, scale_free.OUTSIDE
"""Limits of coordinates, and what a point beyond them costs, as there."""
LEAST_SQUARE = 1e-30
"""Added to a squared length, so that a length of zero has a slope (chosen)."""


def dimension(d: int, *, noisy_n: bool) -> int:
    """Return how many coordinates the covariates have: the statistic's, then one scale each."""
    return Shape(d, d, noisy_n).statistic + d


def covariates(w: Matrix, d: int, n: jax.Array, unit: Matrix, *, noisy_n: bool) -> tuple[
    Point, jax.Array
]:  # fmt: skip
    """Return the covariates' statistic at warped coordinates, and its log density there.

    Args:
        w: coordinates: m, w of the variances, rows, log n where it is secret, and u.
        d: covariates.
        n: records, where they are public.
        unit: noise c_j of every column's variance.
        noisy_n: whether the number of records is secret.
    """
    shape = Shape(d, d, noisy_n)
    end = shape.statistic - noisy_n
    centre, u = (_within(part) for part in (w[:d], w[shape.statistic :]))
    value = -_beyond(w[:d]) - _beyond(w[shape.statistic :])
    value = (
        value - 2 * each(lambda e: jnp.abs(e) + jnp.log1p(jnp.exp(-2 * jnp.abs(e))), centre).sum()
    )
    rho, volume = _log_deviations(w[d : 2 * d], unit)
    value = value + volume
    below = w[2 * d : end]
    if d > 1:
        below, volume = _stretched(below, d)
        value = value + volume
    at = point(joined(each(jnp.tanh, centre), rho, below, w[end : shape.statistic]), shape, n)
    return at, value + _log_density(at, u, d, noisy_n=noisy_n)


def _log_density(at: Point, u: Matrix, d: int, *, noisy_n: bool) -> jax.Array:
    """Return log p(x̄, S, a) with respect to the coordinates of the statistic and of log a."""
    log_a = u + (_log_unique(at.factor) if d > 1 else at.log_diagonal)
    square = each(lambda e: jnp.exp(2 * e), log_a)
    low, high = scale_free.COVARIATE_SCALE
    scatter = scaled(at.n, times_transposed(at.factor, at.factor))
    whole = cholesky(with_diagonal(scatter, square))
    value: jax.Array = (
        (at.n - 1) * at.log_diagonal.sum()
        - 0.5 * (at.n + d - 1) * log_determinant(whole)
        + (2 * low + d) * log_a.sum()
        - (low + high) * each(jnp.log1p, square).sum()
    )
    if not noisy_n:
        return value
    # The Wishart's normaliser and dS = n^(d(d+1)/2) d(S/n); flat in n, dn = n d(log n).
    n = at.n
    return (
        value
        + (0.5 * d * (n - 1) + 1) * jnp.log(n)
        + multigammaln(0.5 * (n + d - 1), d)
        - multigammaln(jnp.maximum(0.5 * (n - 1), 0.5 * (d - 1) + 1e-6), d)
    )


def _log_deviations(w: Matrix, unit: Matrix) -> tuple[Matrix, jax.Array]:
    """Return ρ = ½ log(S_jj / n), and log |dρ/dw|."""
    t = each(lambda e: e - (TAIL - 1) * _softplus(-e), w)
    volume = each(lambda e: jnp.log1p((TAIL - 1) * jax.nn.sigmoid(-e)), w).sum()
    volume = volume - each(lambda e: jnp.where(e < -LOWEST, OUTSIDE, 0.0), t).sum()
    t = each(lambda e: jnp.maximum(e, -LOWEST), t)
    soft = each(_softplus, t)
    volume = volume - each(lambda e: _softplus(-e), t).sum() - each(jnp.log, soft).sum()
    return each(lambda e: 0.5 * jnp.log(e), unit * soft), volume


def _stretched(w: Matrix, d: int) -> tuple[Matrix, jax.Array]:
    """Return the rows g_j behind h_j, |g_j| = sinh |h_j|, and the log volume."""
    rows = strictly_lower(w, d, d)[1:]
    radius = each(lambda e: jnp.sqrt(e + LEAST_SQUARE), (rows**2).sum(axis=1))
    volume = -_beyond(radius)
    radius = each(lambda e: jnp.minimum(e, FARTHEST), radius)
    # sinh r = ½ (e + e / (e + 1)) with e = exp(r) - 1, which keeps its digits at small r.
    less = each(jnp.expm1, radius)
    sinh = 0.5 * (less + less / (less + 1))
    stretch = sinh / radius
    volume = volume + each(jnp.log, less + 1 - sinh).sum()
    volume = volume + (np.arange(d - 1) * each(jnp.log, stretch)).sum()
    return (rows * stretch[:, None])[np.tril_indices(d - 1, 0, d)], volume


def _log_unique(factor: Matrix) -> Matrix:
    """Return the log deviation that other covariates leave of each: -½ log diag (L Lᵀ)⁻¹."""
    size = len(factor)
    if not is_entries(factor):
        inverse = jax.scipy.linalg.solve_triangular(factor, jnp.eye(size), lower=True)
        return -0.5 * jnp.log((inverse**2).sum(axis=0))
    columns = [
        solve_lower(factor[k:, k:], constant(np.eye(size - k)[0], factor)) for k in range(size)
    ]
    return listed([-0.5 * jnp.log((column**2).sum()) for column in columns])


def with_diagonal(matrix: Matrix, diagonal: Matrix) -> Matrix:
    """Return a square matrix with a vector added to its diagonal."""
    if not is_entries(matrix):
        return matrix + jnp.diag(diagonal)
    size = len(diagonal)
    return listed(
        [[matrix[i, j] + diagonal[i] if i == j else matrix[i, j] for j in range(size)]
         for i in range(size)]
    )  # fmt: skip


def _within(values: Matrix) -> Matrix:
    return each(lambda e: jnp.clip(e, -FARTHEST, FARTHEST), values)


def _beyond(values: Matrix) -> jax.Array:
    """Return OUTSIDE for every value beyond its limit."""
    outside: jax.Array = each(
        lambda e: jnp.where(jnp.abs(e) > FARTHEST, OUTSIDE, 0.0), values
    ).sum()
    return outside


def _softplus(t: jax.Array) -> jax.Array:
    return jnp.maximum(t, 0.0) + jnp.log1p(jnp.exp(-jnp.abs(t)))


def warped(mean: np.ndarray, factor: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """Return the coordinates (…, coordinate) of means and factors, without log n and scales.

    Args:
        mean: (…, column), in the box.
        factor: lower factors (…, column, column) of S / n.
        unit: noise c_j (…, column) of every column's variance.
    """
    d = mean.shape[-1]
    centre = np.arctanh(np.clip(mean, -1 + 1e-9, 1 - 1e-9))
    ratio = np.sum(factor**2, axis=-1) / unit
    t = np.maximum(ratio + np.log(-np.expm1(-np.maximum(ratio, 1e-300))), 1 - LOWEST)
    parts = [centre, _untailed(t)]
    diagonal = np.diagonal(factor, axis1=-2, axis2=-1)
    for j in range(1, d):
        row = factor[..., j, :j] / diagonal[..., j, None]
        length = np.sqrt(np.sum(row**2, axis=-1, keepdims=True) + LEAST_SQUARE)
        parts.append(row * np.minimum(np.arcsinh(length), FARTHEST - 1) / length)
    return np.concatenate(parts, axis=-1)


def _untailed(t: np.ndarray) -> np.ndarray:
    """Return the w with t = w - (k - 1) log(1 + exp(-w)), by Newton's method."""
    w = np.where(t < 0, t / TAIL, t)
    for _ in range(30):
        off = w - (TAIL - 1) * np.logaddexp(0, -w) - t
        w = w - off / (1 + (TAIL - 1) / (1 + np.exp(np.minimum(w, 500))))
    return np.asarray(w)
