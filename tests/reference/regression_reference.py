"""Oracles for noise-aware linear regression: textbook NumPy, slow and obvious.

Nothing here imports the code it judges. Statistics are the sums of a table w = (x, y):
Σ w_i w_j for i ≤ j row by row, then Σ w_i. Priors are plain numbers, in the same units as w.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, multigammaln


@dataclass(frozen=True)
class Priors:
    """NIG(m0, lam0, a0, b0) for (θ, σ²), intercept last; NIW(mu0, kappa0, psi0, nu0) for x."""

    m0: np.ndarray
    lam0: np.ndarray
    a0: float
    b0: float
    mu0: np.ndarray
    kappa0: float
    psi0: np.ndarray
    nu0: float


def paper_priors(d: int = 1) -> Priors:
    """The paper's section 4.2."""
    lam = np.eye(d + 1) * 0.5 / 19
    return Priors(np.zeros(d + 1), lam, 20.0, 0.5, np.zeros(d), 1.0, np.eye(d), 50.0)


# -- the statistic ---------------------------------------------------------------------------


def statistic(w: np.ndarray) -> np.ndarray:
    """The sums of a table."""
    q = w.shape[1]
    return np.append((w.T @ w)[np.triu_indices(q)], w.sum(axis=0))


def unpacked(s: np.ndarray, n: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean and centred scatter (not divided by n) of statistics (..., component)."""
    q = int((np.sqrt(9 + 8 * s.shape[-1]) - 3) / 2)
    rows, columns = np.triu_indices(q)
    gram = np.zeros((*s.shape[:-1], q, q))
    gram[..., rows, columns] = gram[..., columns, rows] = s[..., : len(rows)]
    mean = s[..., len(rows) :] / n
    return mean, gram - n * mean[..., :, None] * mean[..., None, :]


# -- conjugate posteriors, from raw data and from statistics -----------------------------------


def raw_posterior(
    x: np.ndarray, y: np.ndarray, p: Priors
) -> tuple[np.ndarray, np.ndarray, float, float]:
    """NIG posterior from the table itself: mean, precision, shape, rate."""
    full = np.column_stack([x, np.ones(len(y))])
    precision = full.T @ full + p.lam0
    mean = np.linalg.solve(precision, full.T @ y + p.lam0 @ p.m0)
    rate = p.b0 + 0.5 * (y @ y + p.m0 @ p.lam0 @ p.m0 - mean @ precision @ mean)
    return mean, precision, p.a0 + len(y) / 2, float(rate)


def given_statistic(
    s: np.ndarray, n: float, p: Priors
) -> tuple[np.ndarray, np.ndarray, float, np.ndarray]:
    """The same from statistics (..., component): mean, precision, shape, rate."""
    mean, scatter = unpacked(s, n)
    d = mean.shape[-1] - 1
    gram = scatter + n * mean[..., :, None] * mean[..., None, :]
    xx = np.empty((*s.shape[:-1], d + 1, d + 1))
    xx[..., :d, :d] = gram[..., :d, :d]
    xx[..., d, :d] = xx[..., :d, d] = n * mean[..., :d]
    xx[..., d, d] = n
    xy = np.concatenate([gram[..., :d, d], n * mean[..., d:]], axis=-1)
    precision = xx + p.lam0
    right = xy + p.lam0 @ p.m0
    centre = np.linalg.solve(precision, right[..., None])[..., 0]
    square = np.einsum("...i,...ij,...j->...", centre, precision, centre)
    rate = p.b0 + 0.5 * (gram[..., d, d] + p.m0 @ p.lam0 @ p.m0 - square)
    return centre, precision, p.a0 + n / 2, rate


def moments_given_statistic(s: np.ndarray, n: float, p: Priors) -> tuple[np.ndarray, np.ndarray]:
    """E and E of squares of (θ…, σ²) given each statistic."""
    mean, precision, shape, rate = given_statistic(s, n, p)
    spread = np.diagonal(np.linalg.inv(precision), axis1=-2, axis2=-1)
    variance = rate / (shape - 1)
    first = np.concatenate([mean, variance[..., None]], axis=-1)
    second = mean**2 + variance[..., None] * spread
    return first, np.concatenate([second, (variance**2 * (shape - 1) / (shape - 2))[..., None]], -1)


# -- the collapsed density ---------------------------------------------------------------------


def log_density(s: np.ndarray, n: float, p: Priors) -> np.ndarray:
    """log p(s | n) with respect to ds, every constant included; -inf where s is no statistic.

    The density of (w̄, S) is that of the records, integrated over all tables with that mean and
    scatter: for q columns n^(q/2) π^(q(n-1)/2) |S|^((n-q-2)/2) / Γ_q((n-1)/2). The records' own
    density is the evidence of the regression times the evidence of the covariates; and
    s = (S + n w̄w̄ᵀ, n w̄) has ds = n^q dw̄ dS.
    """
    mean, scatter = unpacked(s, n)
    q = mean.shape[-1]
    sign, log_det = np.linalg.slogdet(scatter)
    valid = np.linalg.eigvalsh(scatter)[..., 0] > 0
    volume = (
        q / 2 * np.log(n)
        + q * (n - 1) / 2 * np.log(np.pi)
        + (n - q - 2) / 2 * log_det
        - multigammaln((n - 1) / 2, q)
        - q * np.log(n)
    )
    with np.errstate(invalid="ignore"):
        total = volume + _log_regression(s, n, p) + _log_covariates(mean, scatter, n, p)
    return np.where(valid & (sign > 0), total, -np.inf)


def _log_regression(s: np.ndarray, n: float, p: Priors) -> np.ndarray:
    """log ∫ Π N(y_i; θᵀx̃_i, σ²) dNIG(θ, σ²)."""
    _, precision, shape, rate = given_statistic(s, n, p)
    return (
        -n / 2 * np.log(2 * np.pi)
        + 0.5 * np.linalg.slogdet(p.lam0)[1]
        - 0.5 * np.linalg.slogdet(precision)[1]
        + p.a0 * np.log(p.b0)
        - shape * np.log(rate)
        + gammaln(shape)
        - gammaln(p.a0)
    )


def _log_covariates(mean: np.ndarray, scatter: np.ndarray, n: float, p: Priors) -> np.ndarray:
    """log ∫ Π N(x_i; μ, τ²) dNIW(μ, τ²)."""
    d = mean.shape[-1] - 1
    off = mean[..., :d] - p.mu0
    weight = p.kappa0 * n / (p.kappa0 + n)
    psi = p.psi0 + scatter[..., :d, :d] + weight * off[..., :, None] * off[..., None, :]
    nu = p.nu0 + n
    return (
        -n * d / 2 * np.log(np.pi)
        + d / 2 * (np.log(p.kappa0) - np.log(p.kappa0 + n))
        + p.nu0 / 2 * np.linalg.slogdet(p.psi0)[1]
        - nu / 2 * np.linalg.slogdet(psi)[1]
        + multigammaln(nu / 2, d)
        - multigammaln(p.nu0 / 2, d)
    )


# -- draws from the prior ----------------------------------------------------------------------


def prior_parameters(
    rng: np.random.Generator, p: Priors, size: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """θ, σ², μx, τ² for one covariate."""
    variance = p.b0 / rng.gamma(p.a0, size=size)
    root = np.linalg.cholesky(np.linalg.inv(p.lam0))
    theta = p.m0 + np.sqrt(variance)[:, None] * (rng.standard_normal((size, 2)) @ root.T)
    tau2 = p.psi0[0, 0] / 2 / rng.gamma(p.nu0 / 2, size=size)
    mu = p.mu0[0] + np.sqrt(tau2 / p.kappa0) * rng.standard_normal(size)
    return theta, variance, mu, tau2


def prior_statistics(rng: np.random.Generator, n: int, p: Priors, size: int) -> np.ndarray:
    """Exact draws of s for one covariate, n ≥ 3: normal mean, Bartlett's Wishart scatter."""
    theta, variance, mu, tau2 = prior_parameters(rng, p, size)
    tau, sigma = np.sqrt(tau2), np.sqrt(variance)
    u, v = rng.standard_normal((2, size)) / np.sqrt(n)
    x_mean = mu + tau * u
    y_mean = theta[:, 0] * x_mean + theta[:, 1] + sigma * v
    # Scatter of (x, e) white: B Bᵀ; then x = tau·first, y = slope·tau·first + sigma·second.
    b11, b22 = np.sqrt(rng.chisquare(n - 1, size)), np.sqrt(rng.chisquare(n - 2, size))
    b21 = rng.standard_normal(size)
    x_row = np.stack([tau * b11, np.zeros(size)])
    y_row = np.stack([theta[:, 0] * tau * b11 + sigma * b21, sigma * b22])
    xx, xy, yy = ((a * b).sum(axis=0) for a, b in ((x_row, x_row), (x_row, y_row), (y_row, y_row)))
    return np.stack(
        [
            xx + n * x_mean**2,
            xy + n * x_mean * y_mean,
            yy + n * y_mean**2,
            n * x_mean,
            n * y_mean,
        ],
        axis=1,
    )


def brute_statistics(rng: np.random.Generator, n: int, p: Priors, size: int) -> np.ndarray:
    """The same by drawing every record."""
    theta, variance, mu, tau2 = prior_parameters(rng, p, size)
    x = mu[:, None] + np.sqrt(tau2)[:, None] * rng.standard_normal((size, n))
    noise = np.sqrt(variance)[:, None] * rng.standard_normal((size, n))
    y = theta[:, :1] * x + theta[:, 1:] + noise
    return np.stack([(x * x).sum(1), (x * y).sum(1), (y * y).sum(1), x.sum(1), y.sum(1)], axis=1)


Noisy = tuple[np.ndarray, float, str]
"""Noisy sums, the scale of their noise, and its law."""


# -- importance sampling -----------------------------------------------------------------------


@dataclass(frozen=True)
class Estimate:
    """Posterior mean and sd of (θ₁, θ₀, σ²) with standard errors; and the effective draws."""

    mean: np.ndarray
    sd: np.ndarray
    mean_error: np.ndarray
    sd_error: np.ndarray
    effective: float
    positive: float


def log_laplace(z: np.ndarray, s: np.ndarray, scale: float) -> np.ndarray:
    """Σ log Laplace(z; s, scale)."""
    return -np.abs(z - s).sum(axis=-1) / scale - z.shape[-1] * np.log(2 * scale)


def log_normal(z: np.ndarray, s: np.ndarray, scale: float) -> np.ndarray:
    """Σ log N(z; s, scale²)."""
    return -((z - s) ** 2).sum(axis=-1) / (2 * scale**2) - z.shape[-1] * np.log(
        scale * np.sqrt(2 * np.pi)
    )


def importance(
    z: np.ndarray, n: int, scale: float, p: Priors, *, draws: int = 1_000_000, seed: int = 0,
    chunk: int = 250_000, mechanism: str = "laplace", others: Sequence[Noisy] = (),
) -> Estimate:  # fmt: skip
    """The posterior of one covariate's regression by brute force, n known.

    ``others``: more noisy copies of s, whose likelihoods only multiply the weights.

    Half of the proposals are exact draws of s from the prior, half are z plus fresh noise; each is
    weighted by p(s) L(s) / (½ p(s) + ½ L(s)), which is bounded, so no single draw can dominate
    unseen. (θ, σ²) given s enter by their exact moments.
    """
    rng = np.random.default_rng(seed)
    given = rng, z, n, scale, p, chunk, mechanism, others
    parts = [_proposals(*given) for _ in range(0, draws, chunk)]
    return _weighted(*(np.concatenate(a) for a in zip(*parts, strict=True)))


def _proposals(
    rng: np.random.Generator, z: np.ndarray, n: int, scale: float, p: Priors, size: int,
    mechanism: str, others: Sequence[Noisy] = (),
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Log weights, and the moments of the parameters."""
    laplace = mechanism == "laplace"
    draw, log_noise = (rng.laplace, log_laplace) if laplace else (rng.normal, log_normal)
    from_prior = prior_statistics(rng, n, p, size // 2)
    s = np.concatenate([from_prior, z + draw(0, scale, (size // 2, len(z)))])
    prior, likelihood = log_density(s, n, p), log_noise(z, s, scale)
    weight = prior + likelihood - np.logaddexp(prior, likelihood)
    for also, its_scale, law in others:
        weight = weight + (log_laplace if law == "laplace" else log_normal)(also, s, its_scale)
    keep = weight > weight.max() - 30  # the others' sum would not show in any digit reported
    first, second = moments_given_statistic(s[keep], n, p)
    return weight[keep], first, second


def importance_secret_n(
    z: np.ndarray, scale: float, p: Priors, *, draws: int, seed: int = 0
) -> Estimate:
    """The same where n is secret, its noisy count last in z, and flat over 4, 5, … beforehand."""
    rng = np.random.default_rng(seed)
    reach = int(np.ceil(14 * scale))
    sizes = np.arange(max(4, round(z[-1]) - reach), round(z[-1]) + reach + 1)
    parts = []
    for n in sizes:
        size = max(2, draws // len(sizes))
        log_weight, first, second = _proposals(rng, z[:-1], int(n), scale, p, size, "laplace")
        parts.append((log_weight - abs(z[-1] - n) / scale, first, second))
    return _weighted(*(np.concatenate(a) for a in zip(*parts, strict=True)))


def _weighted(log_weight: np.ndarray, first: np.ndarray, second: np.ndarray) -> Estimate:
    """Self-normalised estimates; errors by the delta method."""
    w = np.exp(log_weight - log_weight.max())
    w /= w.sum()
    mean = w @ first
    sd = np.sqrt(w @ second - mean**2)
    mean_error = np.sqrt((w**2) @ (first - mean) ** 2)
    influence = second - 2 * mean * first + mean**2 - sd**2
    sd_error = np.sqrt((w**2) @ influence**2) / (2 * sd)
    positive = float(w @ (first[:, 0] > 0))
    return Estimate(mean, sd, mean_error, sd_error, 1 / float(w @ w), positive)


# -- Algorithm 1 -------------------------------------------------------------------------------


def record_moments(
    theta: np.ndarray, variance: float, mu: float, tau2: float
) -> tuple[np.ndarray, np.ndarray]:
    """μ_t and Σ_t of (x², xy, y², x, y) for x ~ N(μ, τ²), by the paper's formulas (E9)."""
    eta1, eta2 = mu, mu**2 + tau2
    eta3, eta4 = mu**3 + 3 * mu * tau2, mu**4 + 6 * mu**2 * tau2 + 3 * tau2**2
    raw = [1.0, eta1, eta2, eta3, eta4]
    fourth = np.empty((2, 2, 2, 2))
    for index in np.ndindex(2, 2, 2, 2):
        fourth[index] = raw[4 - sum(index)]  # index 0 is x, index 1 the constant
    return paper_moments(fourth, theta, variance)


def paper_moments(
    fourth: np.ndarray, theta: np.ndarray, variance: float
) -> tuple[np.ndarray, np.ndarray]:
    """μ_t and Σ_t from E[x̃⊗4] for any d: section 3.4.1 with E9, formula by formula.

    x̃ has the constant last, θ the intercept last. The columns themselves are the products x_i·1
    and y·1, so they are cases of the same formulas.
    """
    q = len(theta)
    d = q - 1
    eta = fourth[:, :, d, d]
    xi = fourth - eta[:, :, None, None] * eta[None, None]
    order: list[tuple[str, int, int]] = []
    for i in range(d):
        order += [("xx", i, j) for j in range(i, d)] + [("xy", i, 0)]
    order += [("yy", 0, 0)] + [("xx", i, d) for i in range(d)] + [("xy", d, 0)]
    mean = np.array([_mean(a, eta, theta, variance) for a in order])
    covariance = np.array([[_cov(a, b, eta, xi, theta, variance) for b in order] for a in order])
    return mean, covariance


def _mean(a: tuple[str, int, int], eta: np.ndarray, theta: np.ndarray, variance: float) -> float:
    kind, i, j = a
    if kind == "xx":
        return float(eta[i, j])
    return float(theta @ eta[i] if kind == "xy" else variance + theta @ eta @ theta)


def _cov(
    a: tuple[str, int, int], b: tuple[str, int, int], eta: np.ndarray, xi: np.ndarray,
    theta: np.ndarray, variance: float,
) -> float:  # fmt: skip
    rank = {"xx": 0, "xy": 1, "yy": 2}
    if rank[a[0]] > rank[b[0]]:
        a, b = b, a
    (left, i, j), (right, k, m) = a, b
    t = theta
    if left == "xx":
        by = {"xx": xi[i, j, k, m], "xy": xi[i, j, k] @ t, "yy": t @ xi[i, j] @ t}
        return float(by[right])
    if left == "xy" and right == "xy":
        return float(variance * eta[i, k] + t @ xi[i, :, k, :] @ t)
    if left == "xy":
        return float(np.einsum("j,k,l,jkl", t, t, t, xi[i]) + 2 * variance * t @ eta[i])
    return float(
        2 * variance**2 + np.einsum("i,j,k,l,ijkl", t, t, t, t, xi) + 4 * variance * t @ eta @ t
    )


def algorithm_1(
    z: np.ndarray, n: int, scale: float, p: Priors, *, iterations: int, burn_in: int, seed: int = 0
) -> tuple[np.ndarray, float]:
    """Gibbs-SS-Update, one covariate, as printed: draws (iteration, θ₁ θ₀ σ²), projected share."""
    rng = np.random.default_rng(seed)
    theta, variance, mu, tau2 = (v[0] for v in prior_parameters(rng, p, 1))
    omega2 = np.full(5, 2 * scale**2)
    draws, projected = np.empty((iterations, 3)), 0
    for iteration in range(-burn_in, iterations):
        mean, covariance = record_moments(theta, variance, mu, tau2)
        inverse = np.linalg.inv(n * covariance)
        spread = np.linalg.inv(inverse + np.diag(1 / omega2))
        centre = spread @ (inverse @ (n * mean) + z / omega2)
        s = rng.multivariate_normal(centre, (spread + spread.T) / 2)
        s, moved = projection(s, n)
        centre, precision, shape, rate = given_statistic(s, n, p)
        variance = float(rate / rng.gamma(shape))
        theta = rng.multivariate_normal(centre, variance * np.linalg.inv(precision))
        mu, tau2 = covariate_update(rng, s, n, p)
        omega2 = 1 / rng.wald(scale**-1 / np.abs(z - s), scale**-2)
        if iteration >= 0:
            draws[iteration] = *theta, variance
            projected += moved
    return draws, projected / iterations


def mcmc_individual(
    z: np.ndarray, n: int, scale: float, p: Priors, *, iterations: int, burn_in: int, seed: int = 0
) -> np.ndarray:
    """MCMC-Ind, one covariate: every record is unknown. Draws (iteration, θ₁ θ₀ σ²).

    Records in turn: a new one is drawn from the model given the parameters, and taken by the ratio
    of the noise's densities (Metropolis). Then the parameters, given all records.
    """
    rng = np.random.default_rng(seed)
    theta, variance, mu, tau2 = (v[0] for v in prior_parameters(rng, p, 1))
    x = rng.normal(mu, np.sqrt(tau2), n)
    w = np.column_stack([x, theta[0] * x + theta[1] + rng.normal(0, np.sqrt(variance), n)])
    draws = np.empty((iterations, 3))
    for iteration in range(-burn_in, iterations):
        s = statistic(w)
        for i in range(n):
            new = rng.normal(mu, np.sqrt(tau2))
            record = np.array([new, theta[0] * new + theta[1] + rng.normal(0, np.sqrt(variance))])
            moved = s - statistic(w[[i]]) + statistic(record[None])
            ratio = log_laplace(z, moved[None], scale) - log_laplace(z, s[None], scale)
            if np.log(rng.random()) < ratio[0]:
                w[i], s = record, moved
        centre, precision, shape, rate = given_statistic(s, n, p)
        variance = float(rate / rng.gamma(shape))
        theta = rng.multivariate_normal(centre, variance * np.linalg.inv(precision))
        mu, tau2 = covariate_update(rng, s, n, p)
        if iteration >= 0:
            draws[iteration] = *theta, variance
    return draws


def covariate_update(
    rng: np.random.Generator, s: np.ndarray, n: int, p: Priors
) -> tuple[float, float]:
    """(μx, τ²) given s, one covariate; the inverse Wishart is an inverse gamma (E13)."""
    mean, scatter = unpacked(s, n)
    kappa = p.kappa0 + n
    psi = p.psi0[0, 0] + scatter[0, 0] + p.kappa0 * n / kappa * (mean[0] - p.mu0[0]) ** 2
    tau2 = psi / 2 / rng.gamma((p.nu0 + n) / 2)
    centre = (p.kappa0 * p.mu0[0] + n * mean[0]) / kappa
    return float(rng.normal(centre, np.sqrt(tau2 / kappa))), float(tau2)


def projection(s: np.ndarray, n: int) -> tuple[np.ndarray, bool]:
    """The statistic whose scatter is the nearest positive one, means unchanged."""
    mean, scatter = unpacked(s, n)
    values, vectors = np.linalg.eigh(scatter)
    if values[0] >= n * 1e-9:
        return s, False
    nearest = vectors @ np.diag(np.maximum(values, n * 1e-9)) @ vectors.T
    gram = nearest + n * np.outer(mean, mean)
    return np.append(gram[np.triu_indices(len(mean))], n * mean), True
