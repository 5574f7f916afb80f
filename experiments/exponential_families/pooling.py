"""Pooled shares and rates: do intervals of groups and of the population hold the truth?

    python -m experiments.exponential_families.pooling REPETITIONS SEED [WORLD ...]

Worlds: ``own`` (the model's own population, for 3, 10 and 50 groups), ``two`` (two populations) and
``tails`` (t₃ on the link scale), both with 50 groups and beside groups that are not pooled. Groups
of 5 to 120 people; noise of scale 1/ε for shares, 20/ε for rates, whose records are clamped to 20.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
from scipy import special

from noisewise import priors
from noisewise.inference.population import PublicFeatures
from noisewise.models.exponential_family import exact, pooled
from noisewise.models.exponential_family.families import Bernoulli, Poisson
from noisewise.models.exponential_family.pooled_population import PooledProblem, mean_and_sd
from noisewise.models.exponential_family.posterior import FamilyPosterior
from noisewise.models.exponential_family.problem import FamilyProblem
from noisewise.models.exponential_family.truncation import Interval

MIDDLE = {"shares": float(special.logit(0.3)), "rates": float(np.log(2.0))}
"""The population's mean on the link scale."""
SPREAD = {"shares": 0.18, "rates": 0.3}
"""ω: shares have a standard deviation of 0.082, rates of 0.6."""
MOST_VISITS = 20.0
"""Records of rates are clamped there."""
CHAINS, DRAWS = 4, 400


def truths(rng: np.random.Generator, kind: str, world: str, groups: int) -> np.ndarray:
    """Return the groups' shares or rates."""
    middle, spread = MIDDLE[kind], SPREAD[kind]
    if world == "own":
        if kind == "shares":
            k = 1 / spread**2 - 1
            return rng.beta(k * special.expit(middle), k * special.expit(-middle), groups)
        return rng.gamma(1 / spread**2, spread**2 * np.exp(middle), groups)
    if world == "two":
        linear = middle + np.where(rng.random(groups) < 0.5, -0.5, 0.5)
    else:
        linear = middle + 0.25 * rng.standard_t(3, groups)
    return np.asarray(special.expit(linear) if kind == "shares" else np.exp(linear))


def problem(
    rng: np.random.Generator, kind: str, theta: np.ndarray, epsilon: float
) -> FamilyProblem:
    """Return the release of groups of 5 to 120 people."""
    n = rng.integers(5, 121, len(theta))
    keys = tuple(range(len(theta)))
    if kind == "shares":
        scale = 1 / epsilon
        sums = rng.binomial(n, theta)
        family, interval, weak = Bernoulli(), Interval(0.0, 1.0, "keep"), priors.Beta(1, 1)
    else:
        scale = MOST_VISITS / epsilon
        pairs = zip(theta, n, strict=True)
        sums = np.array([np.minimum(rng.poisson(t, m), MOST_VISITS).sum() for t, m in pairs])
        family, interval = Poisson(), Interval(0.0, MOST_VISITS, "clamp")  # type: ignore[assignment]
        weak = priors.Gamma(1.0, 2 / MOST_VISITS)  # type: ignore[assignment]
    z = sums + np.rint(rng.laplace(0, scale, len(theta)))
    return FamilyProblem(
        family, interval, "y", z[:, None], n.astype(float), scale, "laplace", weak, keys
    )


def inside(draws: np.ndarray, truth: np.ndarray, level: float) -> np.ndarray:
    """Tell which central intervals hold the truth."""
    tails = ((1 - level) / 2, (1 + level) / 2)
    low, high = np.quantile(draws, tails, axis=-1)
    return np.asarray((low <= truth) & (truth <= high))


def of_groups(post: FamilyPosterior, truth: np.ndarray) -> dict[str, float]:
    """Return coverage and squared error of one release's groups."""
    (draws,) = post.draws.values()
    flat = draws.reshape(len(truth), -1)
    low, high = np.quantile(flat, (0.025, 0.975), axis=1)
    return {
        "95 %": float(inside(flat, truth, 0.95).mean()),
        "50 %": float(inside(flat, truth, 0.5).mean()),
        "square": float(((flat.mean(axis=1) - truth) ** 2).mean()),
        "width": float((high - low).mean()),
    }


def repetitions(
    kind: str, world: str, groups: int, epsilon: float, number: int, seed: int
) -> Iterator[dict[str, float]]:
    """Yield what each simulated release gave."""
    for rep in range(number):
        rng = np.random.default_rng([seed, rep, groups])
        theta = truths(rng, kind, world, groups)
        given = problem(rng, kind, theta, epsilon)
        posed = PooledProblem(given, PublicFeatures(np.ones((groups, 1))), priors.Population())
        post = pooled.run(posed, rep, CHAINS, DRAWS)
        result = of_groups(post, theta)
        shared = post.population
        if shared is None:
            raise RuntimeError("no population")
        result["converged"] = float(shared.converged)
        if world == "own":
            domain = posed.domain
            wanted = mean_and_sd(domain, np.array(MIDDLE[kind]), np.array(SPREAD[kind]))
            for name, truth in zip(("mean", "sd"), wanted, strict=True):
                drawn = shared.draws[f"{name} of {given.family.names[0]}"]
                result[name] = float(inside(drawn.reshape(1, -1), truth, 0.95)[0])
        alone = of_groups(exact.run(given, rep, CHAINS, DRAWS), theta)  # type: ignore[arg-type]
        result |= {f"alone {name}": value for name, value in alone.items()}
        yield result


def main() -> None:
    """Print a line for each cell."""
    number, seed, *worlds = sys.argv[1:]
    for world in worlds or ("own", "two", "tails"):
        for groups in (3, 10, 50) if world == "own" else (50,):
            for kind in ("shares", "rates"):
                for epsilon in (1.0, 4.0):
                    cell = repetitions(kind, world, groups, epsilon, int(number), int(seed))
                    rows = list(cell)
                    mean = {k: float(np.mean([r[k] for r in rows])) for k in rows[0]}
                    rmse = np.sqrt(mean["square"] / mean["alone square"])
                    said = " ".join(f"{k} {v:.3f}" for k, v in mean.items() if "square" not in k)
                    print(f"{world} {kind} G={groups} ε={epsilon:g}: {said} RMSE ratio {rmse:.3f}",
                          flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
