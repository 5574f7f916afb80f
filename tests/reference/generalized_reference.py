"""Logistic, probit and Poisson regression: plain, slow, obvious, and nothing of the library in it.

Everything about a response given normal covariates follows from one direction: with u = bᵀz / |b|,
and w any direction at right angles to b, y depends on z through u alone, so that

    E[y w] = 0,   E[y u w] = 0,   Var of y w after projection = E[y²] - E[y]² - E[y u]²,

and what is left is one-dimensional.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import integrate, optimize, stats
from scipy.special import expit, multigammaln, ndtr

Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]


def mean_response(link: str, t: np.ndarray) -> np.ndarray:
    """E[y | t]."""
    if link == "logistic":
        return np.asarray(expit(t))
    return np.asarray(ndtr(t) if link == "probit" else np.exp(t))


def second_moment(link: str, t: np.ndarray) -> np.ndarray:
    """E[y² | t]."""
    mean = mean_response(link, t)
    return mean + mean**2 if link == "poisson" else mean


def derivative(link: str, order: int, t: float) -> float:
    """The derivative of E[y | t], of order 0 to 3."""
    if link == "poisson":
        return float(np.exp(t))
    if link == "probit":
        density = stats.norm.pdf(t)
        return float([ndtr(t), density, -t * density, (t**2 - 1) * density][order])
    h = expit(t)
    slope = expit(t) * expit(-t)
    return float([h, slope, slope * (1 - 2 * h), slope * (1 - 6 * slope)][order])


def normal_derivative(link: str, order: int, a: float, v: float) -> float:
    """E h^(order)(t), t ~ N(a, v), by adaptive quadrature about the steep part as well."""
    sd = np.sqrt(v)
    marks = sorted(
        {float(np.clip(m, -12, 12)) for m in (-a / sd, -a / sd - 2 / sd, -a / sd + 2 / sd)}
    )
    value, _ = integrate.quad(
        lambda z: derivative(link, order, a + sd * z) * stats.norm.pdf(z), -12, 12,
        points=[m for m in marks if abs(m) < 12] or None, epsabs=1e-12, epsrel=1e-12, limit=400,
    )  # fmt: skip
    return float(value)


def draw_responses(rng: np.random.Generator, link: str, t: np.ndarray) -> np.ndarray:
    """Responses given their predictors."""
    if link == "poisson":
        return rng.poisson(np.exp(t)).astype(float)
    return (rng.random(t.shape) < mean_response(link, t)).astype(float)


def whitened_sums(
    rng: np.random.Generator, link: str, a: float, b: np.ndarray, n: int, size: int
) -> np.ndarray:
    """(Σ y, Σ y z) / n of data sets with normal covariates, whitened by their own moments."""
    d, found = len(b), []
    for _ in range(size // 500):
        z = rng.standard_normal((500, n, d))
        z -= z.mean(axis=1, keepdims=True)
        factor = np.linalg.cholesky(np.einsum("sni,snj->sij", z, z) / n)
        white = np.linalg.solve(factor, z.transpose(0, 2, 1)).transpose(0, 2, 1)
        y = draw_responses(rng, link, a + white @ b)
        found.append(np.column_stack([y.mean(axis=1), np.einsum("sn,sni->si", y, white) / n]))
    return np.concatenate(found)


def sums_given_covariates(
    rng: np.random.Generator, link: str, a: float, b: np.ndarray, n: int, size: int, draw: Draw
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance (for one record) of (Σ y, Σ y z) given Σ z = 0 and Σ zzᵀ = n I.

    Data sets are drawn as they come, and the sums regressed on those of the covariates: near the
    centre the conditional law is what that regression says. ``draw`` gives standardised covariates.
    """
    d, found, given = len(b), [], []
    rows, columns = np.triu_indices(d)
    for _ in range(size // 500):
        z = draw(rng, (500, n, d))
        y = draw_responses(rng, link, a + z @ b)
        found.append(np.column_stack([y.mean(axis=1), np.einsum("sn,sni->si", y, z) / n]))
        second = np.einsum("sni,snj->sij", z, z) / n - np.eye(d)
        given.append(np.column_stack([z.mean(axis=1), second[:, rows, columns]]))
    sums, features = np.concatenate(found), np.concatenate(given)
    design = np.column_stack([np.ones(len(sums)), features])
    fit = np.linalg.lstsq(design, sums, rcond=None)[0]
    rest = sums - design @ fit
    return fit[0], n * rest.T @ rest / (len(sums) - design.shape[1])


def normal_moments(link: str, a: float, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean m and covariance R of (y, yz) for one record, z normal: along b, and beside it."""
    length = float(np.linalg.norm(b))
    u, weight = np.polynomial.hermite_e.hermegauss(200)
    weight = weight / weight.sum()
    t = a + length * u
    mean, second = mean_response(link, t), second_moment(link, t)
    m2, r2 = projected(u[:, None], weight, mean, second)
    beside = weight @ second - (weight @ mean) ** 2 - (weight @ (mean * u)) ** 2
    d = len(b)
    along = b / length if length > 0 else np.eye(d)[0]
    turn = np.zeros((d + 1, 2))
    turn[0, 0], turn[1:, 1] = 1, along
    whole = turn @ r2 @ turn.T
    whole[1:, 1:] += beside * (np.eye(d) - np.outer(along, along))
    return turn @ m2, whole


def projected(
    z: np.ndarray, weight: np.ndarray, mean: np.ndarray, second: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """m and R of (y, yz) under any nodes: least squares of h (1, z) on (1, z, zzᵀ)."""
    one = np.column_stack([np.ones(len(z)), z])
    rows, columns = np.triu_indices(z.shape[1])
    features = np.column_stack([one, z[:, rows] * z[:, columns]])
    root = np.sqrt(weight)[:, None]
    wanted = mean[:, None] * one
    fit = np.linalg.lstsq(root * features, root * wanted, rcond=1e-10)[0]
    explained = features @ fit
    raw = (one.T * (weight * second)) @ one
    return weight @ wanted, raw - (explained.T * weight) @ explained


def log_density(
    link: str,
    x_sums: np.ndarray,
    y_sums: np.ndarray,
    scale: float,
    mechanism: str,
    y_box: tuple[float, float],
    prior: tuple[float, float, float],
    n: float,
    mean: np.ndarray,
    scatter: np.ndarray,
    log_a2: np.ndarray,
    level: float,
    slopes: np.ndarray,
    eta: np.ndarray,
    nodes: tuple[np.ndarray, np.ndarray] | None = None,
) -> float:
    """log p of (x̄, S, log a², level, γ, η) and of what was released, n flat.

    ``x_sums`` hold Σ x xᵀ (upper triangle, row by row), Σ x, and n where it is secret; ``prior``
    mean and deviation of the level and the deviation of slopes; η counts for Laplace noise only.
    """
    d = len(mean)
    a2 = np.exp(log_a2)
    value = float(np.sum(stats.betaprime.logpdf(a2, 0.15, 0.5) + log_a2))
    value += _log_scatter_density(scatter, n, a2)
    value += stats.norm.logpdf(level, prior[0], prior[1])
    value += stats.norm.logpdf(slopes, 0, prior[2]).sum()
    rows, columns = np.triu_indices(d)
    sums = np.concatenate([(scatter + n * np.outer(mean, mean))[rows, columns], n * mean])
    if len(x_sums) > len(sums):
        sums = np.append(sums, n)
    law = stats.laplace if mechanism == "laplace" else stats.norm
    value += law.logpdf(x_sums, sums, scale).sum()
    factor = np.linalg.cholesky(scatter / n)
    b = factor.T @ (slopes / np.sqrt(np.diagonal(scatter) / n))
    if nodes is None:
        m, r = normal_moments(link, level, b)
    else:
        t = level + nodes[0] @ b
        m, r = projected(*nodes, mean_response(link, t), second_moment(link, t))
    centre, half = y_box
    back = np.zeros((d + 1, d + 1))
    back[0, 0], back[1:, 0], back[1:, 1:] = 1, mean, factor
    expected = n / half * (back @ m - centre * np.append(1, mean))
    noise = np.full(d + 1, scale**2)
    if mechanism == "laplace":
        noise = 2 * scale**2 * np.exp(eta)
        value += float(np.sum(eta - np.exp(eta)))
    spread = n / half**2 * back @ r @ back.T + np.diag(noise)
    return value + float(stats.multivariate_normal.logpdf(y_sums, expected, spread))


def _log_scatter_density(scatter: np.ndarray, n: float, a2: np.ndarray) -> float:
    """log density of S ~ Wishart(n - 1, Σ), Σ ~ IW(diag a², d) integrated out."""
    d, df = len(a2), n - 1
    value = (df - d - 1) / 2 * np.linalg.slogdet(scatter)[1] - multigammaln(df / 2, d)
    value += d / 2 * np.log(a2).sum() - multigammaln(d / 2, d)
    value += multigammaln((d + df) / 2, d)
    return float(value - (d + df) / 2 * np.linalg.slogdet(np.diag(a2) + scatter)[1])


def maximum_likelihood(link: str, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients (slopes, intercept) from records, and their deviations by the sandwich."""
    design = np.column_stack([x, np.ones(len(x))])

    def loss(theta: np.ndarray) -> float:
        t = design @ theta
        if link == "poisson":
            return float(np.sum(np.exp(t) - y * t))
        p = np.clip(mean_response(link, t), 1e-15, 1 - 1e-15)
        return -float(np.sum(y * np.log(p) + (1 - y) * np.log1p(-p)))

    fit = optimize.minimize(loss, np.zeros(design.shape[1]), method="BFGS").x
    t = design @ fit
    slope = np.array([derivative(link, 1, value) for value in t])
    rest = y - mean_response(link, t)
    bread = np.linalg.inv((design.T * slope) @ design)
    meat = (design.T * rest**2) @ design
    return fit, np.sqrt(np.diagonal(bread @ meat @ bread))


def moment_solution(link: str, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Solve m(a, b) = moments of the records, x taken as normal; slopes, intercept, deviations.

    Deviations by the delta method, from R.
    """
    mean, n = x.mean(axis=0), len(x)
    factor = np.linalg.cholesky(np.cov(x.T, bias=True).reshape(x.shape[1], -1))
    z = np.linalg.solve(factor, (x - mean).T).T
    wanted = np.append(y.mean(), (y[:, None] * z).mean(axis=0))

    def off(ab: np.ndarray) -> np.ndarray:
        return normal_moments(link, ab[0], ab[1:])[0] - wanted

    ab = optimize.root(off, np.append(0.0, np.full(x.shape[1], 0.1))).x
    step = 1e-5 * np.eye(len(ab))
    slope = np.column_stack([(off(ab + e) - off(ab - e)) / 2e-5 for e in step])
    inverse = np.linalg.inv(slope)
    spread = inverse @ normal_moments(link, ab[0], ab[1:])[1] @ inverse.T / n
    beta = np.linalg.solve(factor.T, ab[1:])
    change = np.zeros((len(ab), len(ab)))
    change[:-1, 1:] = np.linalg.inv(factor.T)
    change[-1] = np.append(1.0, -mean @ np.linalg.inv(factor.T))
    return np.append(beta, ab[0] - beta @ mean), np.sqrt(np.diagonal(change @ spread @ change.T))


def draw_prior(
    rng: np.random.Generator, n: int, size: int, prior: tuple[float, float, float]
) -> tuple[np.ndarray, ...]:
    """One covariate in the box: x̄, the records' deviation, the level, γ."""
    a2 = stats.betaprime.rvs(0.15, 0.5, size=size, random_state=rng)
    variance = a2 / rng.chisquare(1, size)
    sd = np.sqrt(variance * rng.chisquare(n - 1, size) / n)
    level = rng.normal(prior[0], prior[1], size)
    return rng.uniform(-1, 1, size), sd, level, rng.normal(0, prior[2], size)


def log_scatter_prior(scatter: np.ndarray, n: int) -> np.ndarray:
    """log density of one covariate's S, its scale a² integrated out on a grid.

    S = a² χ²(n - 1) / χ²(1), so S / a² ~ BetaPrime((n - 1) / 2, 1/2), and a² is one itself.
    """
    log_a2 = np.linspace(-120, 60, 1801)
    log_s = np.linspace(-70, 40, 441)
    prior = stats.betaprime.logpdf(np.exp(log_a2), 0.15, 0.5) + log_a2
    ratio = log_s[:, None] - log_a2
    given = stats.betaprime.logpdf(np.exp(ratio), (n - 1) / 2, 0.5) + ratio
    density = integrate.trapezoid(np.exp(prior + given), log_a2, axis=1)
    return np.interp(np.log(scatter), log_s, np.log(density)) - np.log(scatter)


def importance_sample(
    rng: np.random.Generator,
    link: str,
    x_sums: np.ndarray,
    y_sums: np.ndarray,
    scale: float,
    n: int,
    size: int,
    prior: tuple[float, float, float],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Slopes, intercepts and weights of whole data sets, one covariate, Laplace noise.

    Records of x and y are drawn one by one, with no central limit theorem; released sums of y are
    of ±1. Half of the sums of x come from the prior, half from about what was released, weighted
    by the density of the mixture; data sets that weigh nothing get no records.
    """
    mean, sd, level, gamma = draw_prior(rng, n, size, prior)
    near = rng.random(size) < 0.5
    first, second = (s + rng.laplace(0, scale, size) for s in x_sums)
    mean = np.where(near, second / n, mean)
    scatter = np.where(near, first - n * mean**2, n * sd**2)
    kept = (scatter > 1e-30) & (np.abs(mean) < 1)
    mean, scatter, level, gamma = (v[kept] for v in (mean, scatter, level, gamma))
    seen = stats.laplace.logpdf(x_sums[0], scatter + n * mean**2, scale)
    seen += stats.laplace.logpdf(x_sums[1], n * mean, scale)
    before = log_scatter_prior(scatter, n) - np.log(2)
    # The sums about the released ones have the density of the noise, times d(sums) / d(mean, S).
    log = before + seen - np.logaddexp(before, seen + np.log(n))
    kept = log > log.max() - 14
    mean, level, gamma, log = (v[kept] for v in (mean, level, gamma, log))
    sd = np.sqrt(scatter[kept] / n)
    total, product = np.empty(len(mean)), np.empty(len(mean))
    for i in range(0, len(mean), 100_000):
        part = slice(i, i + 100_000)
        z = rng.standard_normal((len(mean[part]), n))
        z -= z.mean(axis=1, keepdims=True)
        z /= z.std(axis=1, keepdims=True)
        t = level[part, None] + gamma[part, None] * z
        y = 2 * draw_responses(rng, link, t) - 1
        total[part] = y.sum(axis=1)
        product[part] = mean[part] * total[part] + sd[part] * (y * z).sum(axis=1)
    log += stats.laplace.logpdf(y_sums[0], total, scale)
    log += stats.laplace.logpdf(y_sums[1], product, scale)
    weight = np.exp(log - log.max())
    slope = gamma / sd
    return slope, level - slope * mean, weight / weight.sum()
