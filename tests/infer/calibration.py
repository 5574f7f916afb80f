"""Simulated releases with known truth, and how well a posterior covers it.

The paper's synthetic set-up (section 4.2): (θ, σ²) ~ NIG(0, .5/19 I, 20, .5), covariates normal
with (μ, τ²) ~ NIW(0, 1, I, 50); as there, noise is added to unclamped statistics. Noise comes from
NumPy: this is a simulation. The scale is the tight replace-one sensitivity (errata E1) over ε.

``python -m tests.infer.calibration`` prints every cell; all trials of a cell are one batch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from scipy import stats

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
) -> tuple[Problem, np.ndarray]:
    """A problem whose groups are the trials, and the true (θ, σ²) of each."""
    # A stream of its own for every cell: shared truths would make one unlucky draw look like many.
    rng = np.random.default_rng([seed, trials, n, round(1000 * epsilon), d])
    inner = response_prior(d)
    variance = inner.rate / rng.standard_gamma(inner.shape, trials)
    spread = np.sqrt(variance / inner.precision[0, 0])
    theta = spread[:, None] * rng.standard_normal((trials, d + 1))
    x = covariates(rng, trials, n, d)
    y = np.einsum("tnd,td->tn", x, theta[:, :d]) + theta[:, d:]
    y = y + np.sqrt(variance)[:, None] * rng.standard_normal((trials, n))
    w = np.concatenate([x, y[..., None]], axis=2)
    rows, columns = np.triu_indices(d + 1)
    gram = np.einsum("tni,tnj->tij", w, w)[:, rows, columns]
    k = d + 1
    scale = k * (k + 2) ** 2 / (2 * (k + 1)) / epsilon
    exact_sums = np.concatenate([gram, w.sum(axis=1)], axis=1)
    z = exact_sums + rng.laplace(0, scale, exact_sums.shape)
    problem = Problem(
        x=tuple(f"x{i}" for i in range(d)),
        y="y",
        z=z,
        n=np.full(trials, float(n)),
        noisy_n=False,
        noise_scale=scale,
        mechanism="laplace",
        response=inner,
        covariates=prior or paper_covariates(d),
        units=Units(np.zeros(k), np.ones(k)),
        keys=tuple(range(trials)),
    )
    return problem, np.column_stack([theta, variance])


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
    least = min(float(e.min()) for e in post.ess.values())
    return (
        f"{name}: KS {np.round(distance, 3)}, coverage {np.round(covered, 3)}, not converged "
        f"{len(post.unconverged)}, least ESS {least:.0f}, "
        f"tries {np.bincount(post.details['tries'])[1:].tolist()}"
    )


def main(trials: int = 300, seed: int = 8, robust: int = 1) -> None:
    for n, epsilon, d in PAPER:
        problem, truth = simulate(trials, n, epsilon, d, seed)
        post = exact.run(problem, seed, 4, 1000)
        print(line(f"paper n={n} eps={epsilon} d={d}", post, truth), flush=True)
    for shape, draw in SHAPES.items() if robust else ():
        for n, epsilon in ROBUST:
            problem, truth = simulate(trials, n, epsilon, 1, seed, draw, vague_covariates(1))
            post = exact.run(problem, seed, 4, 1000)
            print(line(f"{shape} n={n} eps={epsilon}", post, truth), flush=True)


if __name__ == "__main__":
    main(*(int(a) for a in sys.argv[1:]))
