"""One cell of chapter 4: a model at one n and ε, its simulated trials, every method's draws.

Priors are flat for the bounded families and Gamma(5, 5) for the exponential one, whose middle 95 %
of the prior predictive is kept (thesis 4.4; it does not print its priors). Noise is NumPy's: these
are simulations. Sensitivities are replace-one and, in this chapter, equal the printed definition.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.exponential_families import printed
from experiments.exponential_families.baselines import one_posterior_sampling, untruncated
from experiments.exponential_families.calibration import infer
from experiments.exponential_families.simulate import Trials, simulate
from experiments.reproduce.store import TrialStore
from noisewise.diagnostics import coverage, ks, mmd2, ranks
from noisewise.models.exponential_family import gibbs, truncation
from noisewise.models.exponential_family.family import Conjugate, draw_parameters

SHOWN = ("binomial", "multinomial", "exponential")
HALF_CUT = "exponential, half cut off"
WORDS = dict(zip(("bernoulli", "categorical", "exponential"), SHOWN, strict=True)) | {
    "exponential-cut": HALF_CUT
}
"""The thesis' names of its three models, and one more where its Algorithm 2 shows its error."""
HALF_CUT_CELL = {"model": "exponential-cut", "n": 200, "epsilon": 5.0}

OPS, INFORMED_OPS = "one-posterior sampling", "one-posterior sampling, informative prior"
INFORMED = 10.0
"""Beta(10, 10), for that method only: under a flat prior, a posterior that learns nothing is
calibrated, and one cannot see that one-posterior sampling is too diffuse."""

METHODS = {
    "bernoulli": ("exact", "gibbs", "naive", OPS, INFORMED_OPS, "non-private"),
    "categorical": ("exact", "gibbs", "naive", "non-private"),
    "exponential": ("exact", "gibbs", "gibbs as printed", "naive, untruncated", "non-private"),
    "exponential-cut": ("gibbs", "gibbs as printed"),
}

COMPARED = ("exact", "gibbs", "naive", "naive, untruncated")
EXACT_CATEGORIES = 1000
"""Exact tables of three categories take the square of n; above this the cell has no ``exact``."""


def methods(model: str, n: int) -> tuple[str, ...]:
    """Those that can be run at this size."""
    too_large = model == "categorical" and n > EXACT_CATEGORIES
    return tuple(m for m in METHODS[model] if not (too_large and m == "exact"))


def study(settings: Mapping[str, Any], trials: TrialStore) -> list[dict[str, Any]]:
    """Every cell; Figures 4.2 to 4.4 look at the same trials."""
    shown = [model for model, words in WORDS.items() if words in SHOWN]
    grid = itertools.product(shown, settings["sizes"], settings["epsilons"])
    keys = [dict(zip(("model", "n", "epsilon"), cell, strict=True)) for cell in grid]
    rows: list[dict[str, Any]] = []
    for key in [*keys, HALF_CUT_CELL]:
        rows += trials.cell(key, lambda k=key: judged(settings, **k))
    return [{**row, "model": WORDS[row["model"]]} for row in rows]


def judged(settings: Mapping[str, Any], model: str, n: int, epsilon: float) -> list[dict[str, Any]]:
    """One cell: ranks of the truth (first parameter) and MMD² to the non-private posterior."""
    given = simulate(model, settings["trials"], n, epsilon, "drop", settings["seed"])
    target = non_private(given, settings["seed"], settings["compared"])
    found = []
    for method in methods(model, n):
        sample, truth = draws(method, given, epsilon, settings)
        first = sample[..., 0]
        own = ranks(first, truth)
        others = ranks(sample[..., 1:], given.truth[:, 1 : sample.shape[-1]])
        row = {
            "method": method, "trials": settings["trials"], "truth": truth.tolist(),
            "rank": own.tolist(), "coverage": float(coverage(first, truth).share),
            "ks_worst": max(ks(u).statistic for u in (own, *others.T)),
        }  # fmt: skip
        if method in COMPARED:
            thin = sample.shape[1] // settings["compared"]
            apart = mmd2(sample[:, ::thin][:, : settings["compared"]], target)
            row |= {"mmd2": float(apart.mean()), "error": float(apart.std() / np.sqrt(len(apart)))}
        found.append(row)
    return found


def draws(
    method: str, given: Trials, epsilon: float, settings: Mapping[str, Any]
) -> tuple[np.ndarray, np.ndarray]:
    """Posterior draws (trial, draw, parameter) by one method, and the truths of its trials."""
    seed = settings["seed"]
    rng = np.random.default_rng([seed, given.n, round(1e6 * epsilon), *method.encode()])
    truth = given.truth[..., 0]
    if method == INFORMED_OPS:
        truth = rng.beta(INFORMED, INFORMED, len(truth))
        sums = rng.binomial(given.n, truth)
        found = one_posterior_sampling(rng, sums, given.n, epsilon, INFORMED, INFORMED)[..., None]
    elif method == OPS:
        found = one_posterior_sampling(rng, given.sums[:, 0], given.n, epsilon)[..., None]
    elif method == "non-private":
        found = non_private(given, seed + 1, settings["draws"])
    elif method == "naive, untruncated":
        found = infer("naive", untruncated(given, rng), seed)
    elif method == "gibbs as printed":
        found = as_printed(rng, given, settings)
    elif method == "gibbs":
        found = sampled(given, settings)
    else:
        found = infer(method, given, seed)
    return found, truth


def as_printed(rng: np.random.Generator, given: Trials, settings: Mapping[str, Any]) -> np.ndarray:
    """Thesis Algorithm 2 before errata E14."""
    problem, cut = given.problem, given.problem.interval
    found = printed.exponential(
        rng, problem.z[:, 0], given.n, problem.scale, problem.prior,
        (float(cut.lower), float(cut.upper)), settings["sweeps"], settings["burn_in"],
    )  # fmt: skip
    return found[:, :: settings["thin"], None]


def sampled(given: Trials, settings: Mapping[str, Any]) -> np.ndarray:
    """The library's Gibbs sampler, with as many sweeps as the settings ask for."""
    problem, thin = given.problem, settings["thin"]
    values, _ = gibbs.sample(
        problem.family, truncation.joint_moments, problem.mechanism,
        jax.random.key(settings["seed"]),
        gibbs.group_data(problem, slice(None)), settings["chains"], settings["sweeps"] // thin,
        thin, settings["burn_in"],
    )  # fmt: skip
    return values.reshape(len(values), -1, values.shape[-1])


def non_private(given: Trials, seed: int, count: int) -> np.ndarray:
    """The conjugate posterior of the data nobody may see."""
    problem = given.problem
    prior = problem.family.conjugate(problem.prior)
    post = Conjugate(*map(jnp.asarray, prior)).updated(
        jnp.asarray(given.sums), jnp.asarray(problem.n)
    )
    wide = Conjugate(*(jnp.broadcast_to(a[:, None], (len(a), count, a.shape[-1])) for a in post))
    return np.asarray(draw_parameters(problem.family, jax.random.key(seed + 1), wide))
