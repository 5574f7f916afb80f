"""Pooled regressions, plainly: the generative model in NumPy and SciPy, group by group.

a_j² ~ BetaPrime(0.15, ½), b² ~ BetaPrime(½, ½), g/3 ~ BetaPrime(½, ½), each in 1e-4 … 1e4
B ~ N(0, g b²/a_j²) of slopes, N(0, 3²) of levels, its last row ~ N(0, 0.4² T), of sizes,
T | r ~ IW(p + 1, 4 diag(1/r)), r_k ~ IG(1, 2/A_k²),
A = √g b/a_j of slopes and b of levels: A²/(A² + T_kk) is uniform
l0 ~ N(log b², 1), w² like T with A = ½, μ0 ~ N(0, 1), Ω like T with A = a_j,
Σ0 ~ Wishart(d + 3, diag(a²) / (d + 3)), log(ν - d - 1) ~ U(0, log 300)
γ ~ N(0.3, 0.45²), n̄ the geometric mean of sizes, of which none counts as one
(slopes, level at μ0)_g ~ N(Bᵀu_g + F_c ω_c, (n_g / n̄)^(-γ) T),
log σ²_g ~ N(l0, w²), μ_g ~ N(μ0, Ω), τ²_g ~ IW(νΣ0, ν)
records x ~ N(μ_g, τ²_g), y ~ N(θ_gᵀ(x, 1), σ²_g); z = sums of products and totals + noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats


@dataclass
class Law:
    """One population: matrices as they are, not their factors."""

    b: np.ndarray
    t: np.ndarray
    parents: np.ndarray | None
    level: float
    level_sd: float
    x_mean: np.ndarray
    omega: np.ndarray
    sigma0: np.ndarray
    df: float
    log_units: np.ndarray
    size_exponent: float = 0.0

    def spread_of(self, n: int, n_mean: float) -> np.ndarray:
        """Return the covariance between groups of this size."""
        return np.asarray(self.t * (max(n, 1) / n_mean) ** -self.size_exponent)

    def intercepts(self, levels: np.ndarray) -> np.ndarray:
        """Return slopes and intercept at zero, of slopes and level at μ0."""
        slopes = levels[:-1]
        return np.append(slopes, levels[-1] - slopes @ self.x_mean)


def draw_covariance(rng: np.random.Generator, p: int, scale: float | np.ndarray) -> np.ndarray:
    """Draw T | r ~ IW(p + 1, 4 diag(1/r)), r ~ IG(1, 2 scale⁻²)."""
    r = 2 * np.asarray(scale) ** -2.0 / rng.standard_gamma(1.0, p)
    return draw_inverse_wishart(rng, p + 1, np.diag(4 / r))


def draw_log_unit(rng: np.random.Generator, low: float, unit: float = 1.0) -> float:
    """Draw the logarithm of unit · BetaPrime(low, ½)."""
    return float(np.log(unit * rng.standard_gamma(low) / rng.standard_gamma(0.5)))


def draw_log_units(rng: np.random.Generator, d: int, farthest: float = np.log(1e4)) -> np.ndarray:
    """Draw log a, log b and log g, within their limits."""
    while True:
        log_a = [0.5 * draw_log_unit(rng, 0.15) for _ in range(d)]
        drawn = np.array([*log_a, 0.5 * draw_log_unit(rng, 0.5), draw_log_unit(rng, 0.5, 3.0)])
        if (np.abs(drawn) <= farthest).all():
            return drawn


def draw_wishart(rng: np.random.Generator, df: float, scale: np.ndarray) -> np.ndarray:
    """Draw by Bartlett's decomposition (SciPy's own takes a hundred times as long to set up)."""
    p = len(scale)
    root = np.tril(rng.standard_normal((p, p)), -1)
    root += np.diag(np.sqrt(rng.chisquare(df - np.arange(p))))
    factor = np.linalg.cholesky(scale) @ root
    return factor @ factor.T


def draw_inverse_wishart(rng: np.random.Generator, df: float, scale: np.ndarray) -> np.ndarray:
    return np.linalg.inv(draw_wishart(rng, df, np.linalg.inv(scale)))


def draw_normal(rng: np.random.Generator, mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    return mean + np.linalg.cholesky(covariance) @ rng.standard_normal(len(mean))


def draw_law(
    rng: np.random.Generator,
    d: int,
    k: int,
    spread: float | None = None,
    coefficients: float | None = None,
    *,
    nested: bool = False,
    units: np.ndarray | None = None,
) -> Law:
    """Draw a population; ``spread`` and ``coefficients`` are in the box, or in unknown units."""
    p = d + 1
    log_units = draw_log_units(rng, d) if units is None else units
    a, b, g = np.exp(log_units[:d]), np.exp(log_units[d]), np.exp(log_units[d + 1])
    slopes = np.sqrt(g) * b / a
    t_scale = np.append(slopes, b) if spread is None else np.full(p, spread)
    sd = np.append(slopes, 3.0) if coefficients is None else np.full(p, coefficients)
    t = draw_covariance(rng, p, t_scale)
    effects = sd * rng.standard_normal((k, p))
    effects[-1] = 0.4 * draw_normal(rng, np.zeros(p), t)
    return Law(
        effects,
        t,
        draw_covariance(rng, p, t_scale) if nested else None,
        2 * np.log(b) + rng.standard_normal(),
        float(np.sqrt(draw_covariance(rng, 1, 0.5)[0, 0])),
        rng.standard_normal(d),
        draw_covariance(rng, d, a),
        draw_wishart(rng, d + 3, np.diag(a**2) / (d + 3)),
        float(np.exp(rng.uniform(0, np.log(300)))) + d + 1,
        log_units,
        rng.normal(0.3, 0.45),
    )


@dataclass
class Group:
    """Parameters of one group and its records (n, q), the response last."""

    theta: np.ndarray
    log_variance: float
    mu: np.ndarray
    tau2: np.ndarray
    records: np.ndarray


def draw_group(
    rng: np.random.Generator,
    law: Law,
    u: np.ndarray,
    n: int,
    added: np.ndarray | float = 0.0,
    *,
    n_mean: float,
) -> Group:
    d = len(law.x_mean)
    theta = law.intercepts(draw_normal(rng, u @ law.b + added, law.spread_of(n, n_mean)))
    log_variance = law.level + law.level_sd * rng.standard_normal()
    mu = draw_normal(rng, law.x_mean, law.omega)
    tau2 = draw_inverse_wishart(rng, law.df, law.df * law.sigma0)
    x = mu + rng.standard_normal((n, d)) @ np.linalg.cholesky(tau2).T
    y = x @ theta[:d] + theta[d] + np.exp(0.5 * log_variance) * rng.standard_normal(n)
    return Group(theta, log_variance, mu, tau2, np.column_stack([x, y]))


def packed_sums(records: np.ndarray) -> np.ndarray:
    """Return products of columns, upper triangle row by row, and totals."""
    q = records.shape[1]
    products = [records[:, i] @ records[:, j] for i in range(q) for j in range(i, q)]
    return np.array([*products, *records.sum(axis=0)])


def coordinates(rng: np.random.Generator, records: np.ndarray) -> np.ndarray:
    """Return the coordinates of the records' statistic; unused ones are standard normal."""
    n, q = records.shape
    size = 2 * q + q * (q - 1) // 2
    v = rng.standard_normal(size)
    if n == 0:
        return v
    v[:q] = records.mean(axis=0)
    m = min(q, n - 1)
    factor = np.zeros((q, m))
    if m:
        r = np.linalg.qr(records - records.mean(axis=0))[1][:m]
        factor = (r * np.sign(np.diag(r))[:, None]).T / np.sqrt(n)
    place = 2 * q
    for j in range(q):
        if j < m:
            v[q + j] = 0.5 * np.log(np.sum(factor[j] ** 2))
        for k in range(j):
            if k < m:
                v[place] = factor[j, k] / factor[j, j] if j < m else factor[j, k]
            place += 1
    return v


def log_density(
    law: Law,
    u: np.ndarray,
    group: Group,
    mean: np.ndarray,
    scatter: np.ndarray,
    n: int,
    n_mean: float,
) -> float:
    """Return log p(x̄ȳ, S, log σ², μ | ψ) with θ and τ² integrated out, for n > q records.

    By p(s) = p(s, θ, τ²) / p(θ, τ² | s) at the group's own θ and τ²: the conditionals are normal
    and inverse Wishart.
    """
    d = len(law.x_mean)
    theta, tau2, mu = group.theta, group.tau2, group.mu
    variance = np.exp(group.log_variance)
    joint = np.zeros((d + 1, d + 1))
    joint[:d, :d] = tau2
    joint[d, :d] = joint[:d, d] = tau2 @ theta[:d]
    joint[d, d] = theta[:d] @ tau2 @ theta[:d] + variance
    law_mean = np.append(mu, theta[:d] @ mu + theta[d])
    # Slopes and intercepts of the population, from those with levels at μ0.
    shear = np.eye(d + 1)
    shear[d, :d] = -law.x_mean
    centre, t = shear @ (u @ law.b), shear @ law.spread_of(n, n_mean) @ shear.T
    value = stats.multivariate_normal(law_mean, joint / n).logpdf(mean)
    value += stats.wishart(n - 1, joint).logpdf(scatter)
    value += stats.multivariate_normal(centre, t).logpdf(theta)
    value += stats.invwishart(law.df, law.df * law.sigma0).logpdf(tau2)
    value += stats.norm(law.level, law.level_sd).logpdf(group.log_variance)
    value += stats.multivariate_normal(law.x_mean, law.omega).logpdf(mu)
    # The conditional of θ given x and y, and of τ² given x.
    cross = np.zeros((d + 1, d + 1))
    x_scatter = scatter[:d, :d]
    cross[:d, :d] = x_scatter + n * np.outer(mean[:d], mean[:d])
    cross[:d, d] = cross[d, :d] = n * mean[:d]
    cross[d, d] = n
    right = np.append(scatter[:d, d] + n * mean[:d] * mean[d], n * mean[d])
    precision = np.linalg.inv(t) + cross / variance
    fit = np.linalg.solve(precision, np.linalg.solve(t, centre) + right / variance)
    value -= stats.multivariate_normal(fit, np.linalg.inv(precision)).logpdf(theta)
    off = mean[:d] - mu
    after = law.df * law.sigma0 + x_scatter + n * np.outer(off, off)
    value -= stats.invwishart(law.df + n, after).logpdf(tau2)
    return float(value)
