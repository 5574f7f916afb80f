"""The default prior of method ``exact``: it knows no units, so bounds guessed too wide do no harm.

    x ~ N(μ, τ²),            τ² ~ InverseWishart(diag(a_j²), d)
    y | x ~ N(θᵀ(x, 1), σ²),  slopes | σ², Sx ~ N(0, g σ² (E Sx E / n)⁻¹),  σ² ~ InverseGamma(1, b²)
    a_j² ~ BetaPrime(0.15, ½),   b² ~ BetaPrime(½, ½),   g/3 ~ BetaPrime(½, ½),   μ, E y flat

Every column has an unknown scale, a_j for covariates and b for the response's error (A. Huang,
M. P. Wand, "Simple marginally noninformative prior distributions for covariance matrices", Bayesian
Analysis 8, 2013). Slopes are thought of in units of σ / a_j, with an unknown common size √g: no
bound enters but as the unit in which b is half-Cauchy and a_j has a like distribution with more
mass near zero, where a column that uses little of its bounds is. The exponents were chosen among
those that cover on the study of real tables (docs/evidence-real-tables.md).

Slopes depend on the scatter Sx of the records' covariates, as A. Zellner's do ("On assessing prior
distributions and Bayesian regression analysis with g-prior distributions", 1986). E is diagonal,
e_j = a_j / r_j, and r_j² the variance that other covariates leave of column j: so every slope has
variance g σ² / a_j², whatever Sx, and slopes are correlated as least squares' are. Were they
independent, every one of k collinear columns would add its own precision along the direction that
they hardly leave free (diabetes, docs/evidence-real-tables.md). They are where Sx is singular.

Given the scales everything is conjugate, and ``collapsed.py`` applies. Flat means are its limit
κ0 = 0, with one degree of freedom less for τ² and half a one for σ², since a conjugate prior of the
means is in units of τ and σ and a flat one is not. The scales are sampled with the statistic:

    log a_j - log r_j,   log b - l_q,   log g           (l as in ``coordinates.py``; volume 1),

in which log r_j is what limits a_j.

Records lie in the box, so their means do: the joint density is restricted to means w̄ in [-1, 1].

*Warped coordinates.* The sampler moves m with w̄ = tanh m. A variance that is a few noise deviations
above zero has a narrow peak and, in ρ, a long plateau towards -∞; so the sampler moves t_j with
exp(2 ρ_j) = c_j log(1 + exp t_j), where c_j is the noise of the variance: linear where the column
is visible, logarithmic where it is hidden; and, since the plateau falls as slowly as exp(0.15 t_j),
in place of t_j some w_j with t_j = w_j - (k_j - 1) log(1 + exp(-w_j)), of tail exp(w_j / 2).

Rows g_j are stretched along their direction, |g_j| = sinh |h_j|: where a residual variance is
hidden, |g_j| has the tail of a power law and |h_j| that of an exponential, and the direction, which
sums may well determine, stays. Stretched entry by entry, an entry near zero would be a barrier.

The noise confines h_jk where columns j and k are visible, and leaves it to the prior, which is far
wider, where one is not; and the response's row is as small as √g if the noise hides it. These are
funnels, in which a sampler is slow. So h_jk = w_jk / √(κ + ½ s_j s_k), s_j = exp(2 ρ_j) / c_j,
about what prior and noise leave of it: κ = 0.6 q, to which the response's row adds d / g. With two
to five covariates chains were slower for it; there only the response's row is scaled,
h_qk = w_qk √(p / (p + e_k)) with p = g / d and e_k = 1 / (1 + s_k s_q): the plain coordinate where
column k and the response are visible, and one in units of √g where not.

An entry of row j is part of the covariances of all columns from j on. So that a column at the edge
of visibility moves none but its own, those that the noise hides least come first.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.models.linear_regression.collapsed import BoxPrior
from noisewise.models.linear_regression.coordinates import Point, Shape
from noisewise.models.linear_regression.initial_values import DrawnParameters
from noisewise.models.linear_regression.problem import RegressionProblem
from noisewise.numerics.distributions import draw_bartlett_factors, draw_inverse_wishart_factors
from noisewise.numerics.gram_packing import number_of_sums, total_positions, unpack
from noisewise.numerics.matrices import (
    UNROLLED,
    Matrix,
    constant,
    each,
    is_entries,
    joined,
    listed,
    scaled,
    solve_lower,
    strictly_lower,
    times_transposed,
)

COVARIATE_SCALE = (0.15, 0.5)
"""Beta-prime exponents of a_j² near zero and at infinity (the study of real tables)."""
ERROR_SCALE = (0.5, 0.5)
"""The same of b²: b is half-Cauchy (the study of real tables)."""
SLOPE_SCALE = (0.5, 0.5)
"""The same of g / SLOPE_UNIT: √g is half-Cauchy with scale √3 (the study of real tables)."""
SLOPE_UNIT = 3.0
"""The unit of g (the study of real tables)."""
ERROR_SHAPE = 1.0
"""Shape of σ² given b (chosen: a scaled inverse χ² of two degrees of freedom)."""
FARTHEST = 16.0
"""Limit of |h_j| and of the scales' coordinates (chosen). exp(-16) is far below what data or noise
could show, and beyond it rounding would make singular matrices of regular ones."""
LOWEST = 60.0
"""Limit of -t_j (chosen): a variance of exp(-60) noise deviations is zero to everyone."""
LEAST_SQUARE = 1e-30
"""Added to a squared length, so that a length of zero has a slope (chosen)."""
LEAST_SHARE = 1e-4
"""The least g / d that the response's row is scaled by (chosen)."""
HIDDEN_PRECISION = 0.6
"""Precision of an entry of h that the noise hides, for every column there is (chosen: about that of
the draws with twenty covariates)."""
SUM_PRECISION = 0.5
"""Precision that a sum of products adds to it: the inverse variance of Laplace noise of scale 1."""
OUTSIDE = 1e10
"""Taken off the log density for every coordinate beyond its limit (chosen): never accepted."""
WORDS = (
    "each column's mean anywhere and its scale unknown; slopes of either sign, their size unknown"
)
"""The prior in words, for summaries and pages."""


def plain_coordinates(w: Matrix, shape: Shape, unit: Matrix) -> tuple[Matrix, jax.Array]:
    """Return the coordinates v behind warped ones, scales last, and log |dv/dw|.

    Args:
        w: warped coordinates.
        shape: of the statistic, with unknown scales.
        unit: noise c_j of every column's variance.
    """
    q, m = shape.q, shape.rank
    end = shape.statistic - shape.noisy_n
    log_n, u = w[end : shape.statistic], w[shape.statistic :]
    beyond = _beyond(w[:q]) + _beyond(u)
    centre, u = (each(lambda e: jnp.clip(e, -FARTHEST, FARTHEST), part) for part in (w[:q], u))
    t, volume = _tails(w[q : q + m], shape)
    beyond = beyond + each(lambda e: jnp.where(e < -LOWEST, OUTSIDE, 0.0), t).sum()
    t = each(lambda e: jnp.maximum(e, -LOWEST), t)
    soft = each(_softplus, t)
    rho = each(lambda e: 0.5 * jnp.log(e), unit[:m] * soft)
    volume = volume - each(lambda e: _softplus(-e), t).sum() - each(jnp.log, soft).sum()
    below, stretched = _stretched_rows(w[q + m : end], soft, u[q], shape)
    # 1 - tanh² loses all digits far out; 2 log(2 / (e^m + e^-m)) does not.
    volume = (
        volume
        + stretched
        - beyond
        - 2 * each(lambda e: jnp.abs(e) + jnp.log1p(jnp.exp(-2 * jnp.abs(e))), centre).sum()
    )
    return joined(each(jnp.tanh, centre), rho, below, log_n, u), volume


def _beyond(values: Matrix) -> jax.Array:
    """Return OUTSIDE for every value beyond its limit."""
    outside: jax.Array = each(
        lambda e: jnp.where(jnp.abs(e) > FARTHEST, OUTSIDE, 0.0), values
    ).sum()
    return outside


def _slopes(shape: Shape) -> np.ndarray:
    """Return dt/dw of every column where it is hidden: then all tails are exp(w / 2)."""
    low = np.append(np.full(shape.q - 1, COVARIATE_SCALE[0]), ERROR_SCALE[0])
    return 0.5 / low[: shape.rank]


def _tails(w: Matrix, shape: Shape) -> tuple[Matrix, jax.Array]:
    """Return t = w - (k - 1) log(1 + exp(-w)), k as ``_slopes``, and log |dt/dw|."""
    extra = constant(_slopes(shape) - 1, w)
    slope = 1 + extra * each(lambda e: jax.nn.sigmoid(-e), w)
    return w - extra * each(lambda e: _softplus(-e), w), each(jnp.log, slope).sum()


def _stretched_rows(
    w: Matrix, soft: Matrix, log_g: jax.Array, shape: Shape
) -> tuple[Matrix, jax.Array]:
    """Return the g_j behind their warped coordinates, and the log volume."""
    q, m = shape.q, shape.rank
    volume = jnp.zeros(())
    if m == q:
        width = _widths(soft, log_g)
        volume = each(jnp.log, width).sum()
        w = w * width
    rows = strictly_lower(w, q, m)[1:]
    radius = _lengths(rows)
    volume = volume - _beyond(radius)
    radius = each(lambda e: jnp.minimum(e, FARTHEST), radius)
    # sinh r = ½ (e + e / (e + 1)) with e = exp(r) - 1, which keeps its digits at small r.
    less = each(jnp.expm1, radius)
    sinh = 0.5 * (less + less / (less + 1))
    stretch = sinh / radius
    volume = volume + each(jnp.log, less + 1 - sinh).sum()
    volume = volume + ((_row_lengths(shape) - 1) * each(jnp.log, stretch)).sum()
    return (rows * stretch[:, None])[np.tril_indices(q - 1, 0, m)], volume


def plain_rows(q: int) -> bool:
    """Tell whether rows of covariates are not in units of what the noise leaves of them."""
    return 2 < q <= UNROLLED


def _widths(soft: Matrix, log_g: jax.Array) -> Matrix:
    """Return what entries of rows are multiples of: about what prior and noise leave of each."""
    size = len(soft)
    if plain_rows(size):
        prior = jnp.exp(log_g) / (size - 1) + LEAST_SHARE
        hidden = each(lambda e: 1 / (1 + e * soft[size - 1]), soft[: size - 1])
        last = each(lambda e: jnp.sqrt(prior / (prior + e)), hidden)
        ones = constant(np.ones((size - 1) * (size - 2) // 2), soft)
        return joined(ones, last)
    row, column = np.tril_indices(size, -1)
    known = each(lambda e: HIDDEN_PRECISION * size + SUM_PRECISION * e, soft[row] * soft[column])
    slope = 1 / (jnp.exp(log_g) / (size - 1) + LEAST_SHARE)
    response = each(lambda e: e + slope, known[1 - size :])
    return each(lambda e: 1 / jnp.sqrt(e), joined(known[: 1 - size], response))


def _lengths(rows: Matrix) -> Matrix:
    """Return the lengths of rows."""
    return each(lambda e: jnp.sqrt(e + LEAST_SQUARE), (rows**2).sum(axis=1))


def _row_lengths(shape: Shape) -> np.ndarray:
    """Return how many entries rows 2 … q of the factor have left of its diagonal."""
    return np.minimum(np.arange(1, shape.q), shape.rank)


def warped_coordinates(v: np.ndarray, shape: Shape, unit: np.ndarray) -> np.ndarray:
    """Return the warped coordinates (group, …, coordinate): the inverse, without the scales'.

    Where the noise hides the response's row, that is its place at g = 1.
    """
    q, m = shape.q, shape.rank
    ratio = np.exp(2 * v[..., q : q + m]) / unit[:, None, :m]
    t = np.maximum(ratio + np.log(-np.expm1(-ratio)), 1 - LOWEST)
    end = shape.statistic - shape.noisy_n
    below, lengths = v[..., q + m : end], _row_lengths(shape)
    square = np.add.reduceat(below**2, np.cumsum(lengths) - lengths, axis=-1)
    radius = np.sqrt(square + LEAST_SQUARE)
    shrink = np.minimum(np.arcsinh(radius), FARTHEST - 1) / radius
    below = below * np.repeat(shrink, lengths, axis=-1)
    if m == q:
        row, column = np.tril_indices(q, -1)
        soft = np.logaddexp(0, t)
        prior, both = 1 / (q - 1) + LEAST_SHARE, soft[..., row] * soft[..., column]
        if plain_rows(q):
            below = np.where(row == q - 1, below * np.sqrt((prior + 1 / (1 + both)) / prior), below)
        else:
            slopes = (row == q - 1) / prior
            below = below * np.sqrt(HIDDEN_PRECISION * q + slopes + SUM_PRECISION * both)
    centre = np.arctanh(np.clip(v[..., :q], -1 + 1e-9, 1 - 1e-9))
    return np.concatenate([centre, _untailed(t, _slopes(shape)), below, v[..., end:]], axis=-1)


def _untailed(t: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """Return the w of ``_tails``, by Newton's method from where both tails meet."""
    w = np.where(t < 0, t / slopes, t)
    for _ in range(30):
        off = w - (slopes - 1) * np.logaddexp(0, -w) - t
        w = w - off / (1 + (slopes - 1) / (1 + np.exp(np.minimum(w, 500))))
    return np.asarray(w)


def variance_units(problem: RegressionProblem) -> np.ndarray:
    """Return the noise c_j (group, column) of the variances that the released sums give."""
    q = len(problem.x) + 1
    n = problem.n[:, None]
    mean = np.clip(problem.z[:, total_positions(q)] / n, -1, 1)
    return np.asarray(problem.noise_scale / n * np.sqrt(1 + 4 * mean**2))


def visible_first(problem: RegressionProblem) -> np.ndarray:
    """Return the covariates of a problem in the order in which they are sampled.

    By their released variance in units of its noise, in the median group, the largest first.
    """
    q = len(problem.x) + 1
    second, totals = unpack(problem.z[:, : number_of_sums(q)], q)
    n = problem.n[:, None]
    variance = np.diagonal(second, axis1=1, axis2=2) / n - np.clip(totals / n, -1, 1) ** 2
    visible = np.median(variance / variance_units(problem), axis=0)
    return np.argsort(-visible[:-1], kind="stable")


def prior_at(
    p: Point, v: Matrix, shape: Shape, prior: BoxPrior | None
) -> tuple[BoxPrior, jax.Array]:
    """Return the conjugate prior at coordinates v, and the log density of its scales.

    The given one, whose scales are known; or, where it is None, this module's.
    """
    if prior is None:
        return conjugate_prior(p, v, shape)
    return prior.entries() if is_entries(v) else prior, jnp.zeros(())


def conjugate_prior(p: Point, v: Matrix, shape: Shape) -> tuple[BoxPrior, jax.Array]:
    """Return the prior given the scales in v, and the scales' log density.

    The density holds what ``collapsed`` takes for constant: the normalisers of both conjugate
    priors, which are powers of the scales.
    """
    log_a, log_b, log_g = _log_scales(p, v, shape)
    d = shape.q - 1
    square, rate, g = each(lambda e: jnp.exp(2 * e), log_a), jnp.exp(2 * log_b), jnp.exp(log_g)
    low, high = COVARIATE_SCALE
    root, size = _root_precision(p, v, shape, log_a)
    value = size + (2 * low + d) * log_a.sum() - (low + high) * each(jnp.log1p, square).sum()
    low, high = ERROR_SCALE
    value = value + 2 * (low + ERROR_SHAPE) * log_b - (low + high) * jnp.log1p(rate)
    low, high = SLOPE_SCALE
    value = value + (low - 0.5 * d) * log_g - (low + high) * jnp.log1p(g / SLOPE_UNIT)
    prior = BoxPrior(
        constant(np.zeros(d), v), scaled(1 / g, times_transposed(root, root)),
        jnp.asarray(ERROR_SHAPE - 0.5), rate,
        constant(np.zeros(d), v), jnp.zeros(()), _diagonal(square), jnp.asarray(d - 1.0),
    )  # fmt: skip
    return prior, value


def _root_precision(p: Point, v: Matrix, shape: Shape, log_a: Matrix) -> tuple[Matrix, jax.Array]:
    """Return a root of the slopes' prior precision at g = 1 and σ² = 1, and its log determinant."""
    d = shape.q - 1
    if shape.rank < d:
        return _diagonal(each(jnp.exp, log_a)), log_a.sum()
    # a_j in units of the deviation that other columns leave.
    log_ratio = v[shape.statistic :][:d]
    root = p.factor[:d, :d] * each(jnp.exp, log_ratio)[:, None]
    return root, log_ratio.sum() + p.log_diagonal[:d].sum()


def _log_scales(p: Point, v: Matrix, shape: Shape) -> tuple[Matrix, jax.Array, jax.Array]:
    """Return log a (covariate), log b and log g."""
    q, m = shape.q, shape.rank
    d, rho, u = q - 1, v[q : q + m], v[shape.statistic :]
    if m < q:
        rows = (p.factor[m:] ** 2).sum(axis=1)
        rho = joined(rho, each(lambda e: 0.5 * jnp.log(e), rows))
    last = p.log_diagonal[d] if m == q else rho[d]
    unique = _log_unique(p.factor[:d, :d]) if m >= d > 1 else rho[:d]
    return u[:d] + unique, u[d] + last, u[d + 1]


def _log_unique(factor: Matrix) -> Matrix:
    """Return the log deviation that other covariates leave of each: -½ log diag (L Lᵀ)⁻¹."""
    size = len(factor)
    if not is_entries(factor):
        inverse = jax.scipy.linalg.solve_triangular(factor, jnp.eye(size), lower=True)
        return -0.5 * jnp.log((inverse**2).sum(axis=0))
    # Column k of the inverse begins at row k.
    columns = [
        solve_lower(factor[k:, k:], constant(np.eye(size - k)[0], factor)) for k in range(size)
    ]
    return listed([-0.5 * jnp.log((column**2).sum()) for column in columns])


def typical_scales(shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    """Return where the scales' coordinates usually are if columns are visible, and how far apart.

    Given the records a_j² is nearly gamma with (d + 1) / 2 degrees, of mean (d + 1) times the
    variance that other covariates leave of the column.
    """
    if not shape.scale_free:
        return np.zeros(0), np.ones(0)
    d = shape.q - 1
    centre = np.append(np.full(d, 0.5 * np.log(d + 1)), [0.0, 0.0])
    return centre, np.append(np.full(d, 1 / np.sqrt(2 * (d + 1))), [0.5, 1.0])


def _softplus(t: jax.Array) -> jax.Array:
    return jnp.maximum(t, 0.0) + jnp.log1p(jnp.exp(-jnp.abs(t)))


def _diagonal(values: Matrix) -> Matrix:
    """Return a square matrix with these values on its diagonal."""
    if not is_entries(values):
        return jnp.diag(values)
    size = len(values)
    return listed([[values[i] if i == j else 0.0 for j in range(size)] for i in range(size)])


def draw_scales(
    rng: np.random.Generator, shape: tuple[int, ...], d: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw a (…, covariate), b and g from their prior, in the box."""

    def beta_prime(exponents: tuple[float, float], size: tuple[int, ...]) -> np.ndarray:
        # By logarithms: a gamma variate of shape 0.15 may be too small for a floating number.
        logs = [np.log(rng.standard_gamma(e + 1, size)) + np.log(rng.random(size)) / e
                for e in exponents]  # fmt: skip
        return np.asarray(np.exp(np.clip(logs[0] - logs[1], -200, 200)))

    a = np.sqrt(beta_prime(COVARIATE_SCALE, (*shape, d)))
    return a, np.sqrt(beta_prime(ERROR_SCALE, shape)), SLOPE_UNIT * beta_prime(SLOPE_SCALE, shape)


def draw_parameters(
    rng: np.random.Generator, shape: tuple[int, ...], d: int, n: float
) -> tuple[DrawnParameters, np.ndarray, np.ndarray]:
    """Draw parameters from the prior, and what comes with them of the means and scatter of records.

    Means of n records (…, column) are uniform in the box, whatever the scales; given them, the
    law's means are normal around them, as a flat prior says. The scatter is law B Bᵀ lawᵀ with the
    returned B (…, column, rank), on which slopes depend.
    """
    a, b, g = draw_scales(rng, shape, d)
    variance = b**2 / rng.standard_gamma(ERROR_SHAPE, shape)
    unit = draw_inverse_wishart_factors(rng, np.eye(d), np.full(shape, float(d)))
    rank = max(1, min(d + 1, int(n - 1)))
    scatter = draw_bartlett_factors(rng, np.full(shape, max(n - 1.0, 1.0)), d + 1, rank)
    slopes = np.sqrt(g * variance)[..., None] / a * _unit_slopes(rng, unit @ scatter[..., :d, :d])
    x_factor = a[..., :, None] * unit
    means = rng.uniform(-1, 1, (*shape, d + 1))
    white = np.einsum("...ij,...j->...i", x_factor, rng.standard_normal((*shape, d)))
    x_mean = means[..., :d] + white / np.sqrt(n)
    error = np.sqrt(variance / n) * rng.standard_normal(shape)
    intercept = means[..., d] - np.sum(slopes * means[..., :d], axis=-1) - error
    theta = np.concatenate([slopes, intercept[..., None]], axis=-1)
    return DrawnParameters(theta, variance, x_mean, x_factor), means, scatter


def _unit_slopes(rng: np.random.Generator, root: np.ndarray) -> np.ndarray:
    """Draw slopes of variance 1, correlated as least squares' of records with scatter root rootᵀ.

    Independent where the scatter is singular.
    """
    white = rng.standard_normal(root.shape[:-1])
    if root.shape[-1] < root.shape[-2]:
        return white
    inverse = np.linalg.inv(root)
    drawn = np.einsum("...ij,...i->...j", inverse, white)
    return np.asarray(drawn / np.sqrt(np.sum(inverse**2, axis=-2)))
