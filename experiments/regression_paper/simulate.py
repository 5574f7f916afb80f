"""Simulated releases with known truth: the paper's synthetic set-up (section 4.2).

(θ, σ²) ~ NIG(0, .5/19 I, 20, .5), covariates normal with (μ, τ²) ~ NIW(0, 1, I, 50); as there,
noise is added to unclamped statistics, from NumPy: this is a simulation. Its scale is the tight
replace-one sensitivity (errata E1) over ε, or that of another sensitivity where one is given.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from math import comb

import numpy as np
from scipy import stats

from noisewise.models.linear_regression.problem import RegressionProblem, Units, default_covariates
from noisewise.priors import NormalInverseGamma, NormalInverseWishart

Covariates = Callable[[np.random.Generator, int, int, int], np.ndarray]


@dataclass(frozen=True)
class Sensitivity:
    """L1, replace-one, of the Gram matrix and of the monomials up to degree four."""

    gram: float
    monomials: float


EXACT = Sensitivity(0.0, 0.0)
"""No noise at all: what the non-private method sees."""


def tight(d: int) -> Sensitivity:
    """Ours (docs/proofs/sensitivity.md; errata E1)."""
    k = d + 1
    t = np.linspace(-1, 1, 20_001)
    least = np.asarray(sum(comb(d + j - 1, j) * t**j for j in range(1, 5))).min()
    return Sensitivity(k * (k + 2) ** 2 / (2 * (k + 1)), float(len(_products(d)) - least))


def as_printed(d: int) -> Sensitivity:
    """The paper's (3.1 and 3.3.4), from widths of 2: 24 and 80 for one covariate and intercept."""
    p, width = d + 1, 2.0
    return Sensitivity(width**2 * (p * (p + 1) / 2 + p + 1), width**4 * comb(p + 3, 4))


def response_prior(d: int) -> NormalInverseGamma:
    """Of (θ, σ²), intercept last."""
    return NormalInverseGamma(np.zeros(d + 1), np.eye(d + 1) * 0.5 / 19, 20, 0.5)


def paper_covariates(d: int) -> NormalInverseWishart:
    """Of the mean and covariance of x."""
    return NormalInverseWishart(np.zeros(d), 1, np.eye(d), 50)


def vague_covariates(d: int) -> NormalInverseWishart:
    """The default of ``infer``, in the box."""
    return default_covariates(Units(np.zeros(d + 1), np.ones(d + 1)))


def normal(rng: np.random.Generator, trials: int, n: int, d: int) -> np.ndarray:
    """From the paper's own covariate prior."""
    law = paper_covariates(d)
    x = np.empty((trials, n, d))
    for t in range(trials):
        covariance = stats.invwishart.rvs(law.df, law.scale, random_state=rng)
        factor = np.linalg.cholesky(np.atleast_2d(covariance))
        mean = factor @ rng.standard_normal(d) / np.sqrt(law.kappa)
        x[t] = mean + rng.standard_normal((n, d)) @ factor.T
    return x


def uniform(rng: np.random.Generator, trials: int, n: int, d: int) -> np.ndarray:
    """All over the box."""
    return rng.uniform(-1, 1, (trials, n, d))


def binary(share: float) -> Covariates:
    """Columns at the ends of the box, this share of them at the upper one."""

    def draw(rng: np.random.Generator, trials: int, n: int, d: int) -> np.ndarray:
        return np.where(rng.random((trials, n, d)) < share, 1.0, -1.0)

    return draw


def skewed(rng: np.random.Generator, trials: int, n: int, d: int) -> np.ndarray:
    """Beta(1, 6), stretched to the box."""
    return 2 * rng.beta(1, 6, (trials, n, d)) - 1


def simulate(
    trials: int,
    n: int,
    epsilon: float,
    d: int,
    seed: int,
    covariates: Covariates = normal,
    prior: NormalInverseWishart | None = None,
    secret_n: bool = False,
    outside: float = 0.0,
    monomials: bool = False,
    sensitivity: Sensitivity | None = None,
) -> tuple[RegressionProblem, np.ndarray]:
    """A problem whose groups are the trials, and the true (θ, σ²) of each.

    ``secret_n``: n is released with the same noise. ``outside``: this share of all y is clamped.
    ``monomials`` of x up to degree four are released too, for half of the budget. The data do not
    depend on the sensitivity (``EXACT``: no noise).
    """
    sensitivity = sensitivity or tight(d)
    # A stream of its own for every cell: shared truths would make one unlucky draw look like many.
    rng = np.random.default_rng([seed, trials, n, round(1000 * epsilon), d])
    x, y, truth = records(rng, trials, n, d, covariates)
    if outside:
        limit = np.quantile(np.abs(y), 1 - outside)
        y = np.clip(y, -limit, limit)
    w = np.concatenate([x, y[..., None]], axis=2)
    rows, columns = np.triu_indices(d + 1)
    gram = np.einsum("tni,tnj->tij", w, w)[:, rows, columns]
    k = d + 1
    scale = sensitivity.gram / (epsilon / 2 if monomials else epsilon)
    exact_sums = np.concatenate([gram, w.sum(axis=1)], axis=1)
    if secret_n:
        exact_sums = np.column_stack([exact_sums, np.full(trials, n)])
    z = exact_sums + rng.laplace(0, scale, exact_sums.shape)
    powers = noisy_monomials(rng, x, 2 * sensitivity.monomials / epsilon) if monomials else None
    sizes = np.maximum(z[:, -1], d + 3) if secret_n else np.full(trials, float(n))
    problem = RegressionProblem(
        x=tuple(f"x{i}" for i in range(d)),
        y="y",
        z=z,
        n=sizes,
        noisy_n=secret_n,
        noise_scale=scale,
        mechanism="laplace",
        response=response_prior(d),
        covariates=prior or paper_covariates(d),
        units=Units(np.zeros(k), np.ones(k)),
        keys=tuple(range(trials)),
        moments=None if powers is None else powers[0],
        exponents=() if powers is None else powers[1],
    )
    return problem, truth


def records(
    rng: np.random.Generator, trials: int, n: int, d: int, covariates: Covariates = normal
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x (trial, n, d), y (trial, n) and the true (θ, σ²) (trial, d + 2), from the prior."""
    prior = response_prior(d)
    variance = prior.rate / rng.standard_gamma(prior.shape, trials)
    spread = np.sqrt(variance / prior.precision[0, 0])
    theta = spread[:, None] * rng.standard_normal((trials, d + 1))
    x = covariates(rng, trials, n, d)
    y = np.einsum("tnd,td->tn", x, theta[:, :d]) + theta[:, d:]
    y = y + np.sqrt(variance)[:, None] * rng.standard_normal((trials, n))
    return x, y, np.column_stack([theta, variance])


def noisy_monomials(
    rng: np.random.Generator, x: np.ndarray, scale: float
) -> tuple[np.ndarray, tuple[tuple[int, ...], ...]]:
    """Sums of all products of up to four columns, with noise."""
    products = _products(x.shape[2])
    sums = np.stack([x[:, :, list(p)].prod(axis=2).sum(axis=1) for p in products], axis=1)
    return sums + rng.laplace(0, scale, sums.shape), tuple(products)


def _products(d: int) -> list[tuple[int, ...]]:
    every = itertools.combinations_with_replacement
    return [p for j in range(1, 5) for p in every(range(d), j)]
