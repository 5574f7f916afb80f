"""Simulated releases with known truth, and how well a posterior covers it.

The paper's synthetic set-up (section 4.2): (θ, σ²) ~ NIG(0, .5/19 I, 20, .5), covariates normal
with (μ, τ²) ~ NIW(0, 1, I, 50); as there, noise is added to unclamped statistics. Noise comes from
NumPy: this is a simulation. The scale is the tight replace-one sensitivity (errata E1) over ε.

``python -m tests.infer.calibration TRIALS SEED [paper beside robust secret clamped]`` prints every
cell; all trials of a cell are one batch.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from math import comb

import numpy as np
from scipy import stats

from noisewise.infer import METHODS
from noisewise.infer.linear import exact
from noisewise.infer.linear.problem import Problem, Units, default_covariates
from noisewise.infer.posterior import Posterior
from noisewise.priors import NormalInverseGamma, NormalInverseWishart

Covariates = Callable[[np.random.Generator, int, int, int], np.ndarray]


def response_prior(d: int) -> NormalInverseGamma:
    return NormalInverseGamma(np.zeros(d + 1), np.eye(d + 1) * 0.5 / 19, 20, 0.5)


def paper_covariates(d: int) -> NormalInverseWishart:
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
    return rng.uniform(-1, 1, (trials, n, d))


def binary(share: float) -> Covariates:
    def draw(rng: np.random.Generator, trials: int, n: int, d: int) -> np.ndarray:
        return np.where(rng.random((trials, n, d)) < share, 1.0, -1.0)

    return draw


def skewed(rng: np.random.Generator, trials: int, n: int, d: int) -> np.ndarray:
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
) -> tuple[Problem, np.ndarray]:
    """A problem whose groups are the trials, and the true (θ, σ²) of each.

    ``secret_n``: n is released with the same noise. ``outside``: this share of all y is clamped.
    ``monomials`` of x up to degree four are released too, for half of the budget.
    """
    # A stream of its own for every cell: shared truths would make one unlucky draw look like many.
    rng = np.random.default_rng([seed, trials, n, round(1000 * epsilon), d])
    inner = response_prior(d)
    variance = inner.rate / rng.standard_gamma(inner.shape, trials)
    spread = np.sqrt(variance / inner.precision[0, 0])
    theta = spread[:, None] * rng.standard_normal((trials, d + 1))
    x = covariates(rng, trials, n, d)
    y = np.einsum("tnd,td->tn", x, theta[:, :d]) + theta[:, d:]
    y = y + np.sqrt(variance)[:, None] * rng.standard_normal((trials, n))
    if outside:
        limit = np.quantile(np.abs(y), 1 - outside)
        y = np.clip(y, -limit, limit)
    w = np.concatenate([x, y[..., None]], axis=2)
    rows, columns = np.triu_indices(d + 1)
    gram = np.einsum("tni,tnj->tij", w, w)[:, rows, columns]
    k = d + 1
    scale = k * (k + 2) ** 2 / (2 * (k + 1)) / (epsilon / 2 if monomials else epsilon)
    exact_sums = np.concatenate([gram, w.sum(axis=1)], axis=1)
    if secret_n:
        exact_sums = np.column_stack([exact_sums, np.full(trials, n)])
    z = exact_sums + rng.laplace(0, scale, exact_sums.shape)
    powers = noisy_monomials(rng, x, epsilon / 2) if monomials else (None, ())
    sizes = np.maximum(z[:, -1], d + 3) if secret_n else np.full(trials, float(n))
    problem = Problem(
        x=tuple(f"x{i}" for i in range(d)),
        y="y",
        z=z,
        n=sizes,
        noisy_n=secret_n,
        noise_scale=scale,
        mechanism="laplace",
        response=inner,
        covariates=prior or paper_covariates(d),
        units=Units(np.zeros(k), np.ones(k)),
        keys=tuple(range(trials)),
        moments=powers[0],
        exponents=powers[1],
    )
    return problem, np.column_stack([theta, variance])


def noisy_monomials(
    rng: np.random.Generator, x: np.ndarray, epsilon: float
) -> tuple[np.ndarray, tuple[tuple[int, ...], ...]]:
    """Sums of all products of up to four columns; sensitivity as in docs/proofs/sensitivity.md."""
    d = x.shape[2]
    products = [
        p for j in range(1, 5) for p in itertools.combinations_with_replacement(range(d), j)
    ]
    sums = np.stack([x[:, :, list(p)].prod(axis=2).sum(axis=1) for p in products], axis=1)
    t = np.linspace(-1, 1, 20_001)
    least = sum(comb(d + j - 1, j) * t**j for j in range(1, 5)).min()
    return sums + rng.laplace(0, (len(products) - least) / epsilon, sums.shape), tuple(products)


def judged(post: Posterior, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Per parameter: KS distance of the truth's ranks from uniform, coverage of 95 % intervals."""
    ranks = np.array(
        [
            (values < truth[:, i, None, None]).mean(axis=(1, 2))
            for i, values in enumerate(post.draws.values())
        ]
    )
    distance = np.array([stats.kstest(r, "uniform").statistic for r in ranks])
    return distance, ((ranks > 0.025) & (ranks < 0.975)).mean(axis=1)


PAPER = [(n, e, 1) for n in (10, 100, 1000) for e in (0.1, 1.0)] + [(500, 1.0, 3)]
ROBUST = [(100, 1.0), (400, 4.0), (5000, 1.0)]
SHAPES = {
    "uniform": uniform,
    "binary 0.3": binary(0.3),
    "binary 0.05": binary(0.05),
    "beta(1,6)": skewed,
}


def line(name: str, post: Posterior, truth: np.ndarray) -> str:
    distance, covered = judged(post, truth)
    ess = np.min(list(post.ess.values()), axis=0)
    tries = ""
    if "tries" in post.details:
        tries = f", tries {np.bincount(post.details['tries'])[1:].tolist()}"
    return (
        f"{name} [{post.method}]: KS {np.round(distance, 3)}, coverage {np.round(covered, 3)}, "
        f"not converged {len(post.unconverged)}, ESS least {ess.min():.0f} "
        f"median {np.median(ess):.0f}{tries}"
    )


BESIDE = ("gibbs-update", "gibbs-prior", "gibbs-noisy", "naive")


def cells(trials: int, seed: int, chosen: Sequence[str]) -> Iterator[str]:
    for n, epsilon, d in PAPER:
        for method in ("exact", *BESIDE) if "beside" in chosen else ("exact",):
            if "paper" in chosen or method != "exact":
                powers = method == "gibbs-noisy"
                problem, truth = simulate(trials, n, epsilon, d, seed, monomials=powers)
                post = METHODS["linear-regression"][method](problem, seed, 4, 1000, None)
                yield line(f"paper n={n} eps={epsilon} d={d}", post, truth)
    for shape, draw in SHAPES.items() if "robust" in chosen else ():
        for n, epsilon in ROBUST:
            problem, truth = simulate(trials, n, epsilon, 1, seed, draw, vague_covariates(1))
            yield line(f"{shape} n={n} eps={epsilon}", exact.run(problem, seed, 4, 1000), truth)
    for n, epsilon in [(100, 1.0), (1000, 0.1), (1000, 1.0)] if "secret" in chosen else ():
        problem, truth = simulate(trials, n, epsilon, 1, seed, secret_n=True)
        yield line(f"secret n={n} eps={epsilon}", exact.run(problem, seed, 4, 1000), truth)
    for share in (0.01, 0.05, 0.15, 0.33) if "clamped" in chosen else ():
        problem, truth = simulate(trials, 1000, 1.0, 1, seed, outside=share)
        name = f"clamped {share:.0%} of y, n=1000 eps=1.0"
        yield line(name, exact.run(problem, seed, 4, 1000), truth)


def main(trials: str = "300", seed: str = "8", *chosen: str) -> None:
    for told in cells(int(trials), int(seed), chosen or ("paper", "robust")):
        print(told, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
