"""Simulated releases with known truth: parameters from the prior, records, noise, per trial.

The thesis keeps the middle 95 % of individuals of a truncated family; so do we, of the prior
predictive distribution, fixed before any trial. Sensitivities are replace-one (errata E3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noisewise import priors
from noisewise.models.exponential_family import families
from noisewise.models.exponential_family.family import Conjugate, Family, draw_parameters
from noisewise.models.exponential_family.problem import FamilyProblem
from noisewise.models.exponential_family.truncation import Interval
from noisewise.simulate.trials import discrete_laplace


@dataclass(frozen=True)
class Model:
    """A family and a prior from which truths are drawn."""

    family: Family
    prior: Any
    interval: tuple[float, float] | None = None


MODELS = {
    "bernoulli": Model(families.Bernoulli(), priors.Beta(1, 1)),
    "categorical": Model(families.Categorical(("a", "b", "c")), priors.Dirichlet([1, 1, 1])),
    "exponential": Model(families.Exponential(), priors.Gamma(5, 5), (0.025, 5.46)),
    "exponential-cut": Model(families.Exponential(), priors.Gamma(20, 20), (0.3, 1.5)),
    "binomial": Model(families.Binomial(5), priors.Beta(1, 1)),
    "poisson": Model(families.Poisson(), priors.Gamma(8, 2), (0, 10)),
    "geometric": Model(families.Geometric(), priors.Beta(8, 16), (1, 13)),
    "gamma": Model(families.Gamma(2.5), priors.Gamma(8, 4), (0.2, 4.3)),
    "normal": Model(
        families.Normal(0.0, 8.0), priors.NormalInverseGamma([0], [[2]], 6, 10), (-4.0, 4.0)
    ),
}


@dataclass(frozen=True)
class Trials:
    """A problem whose groups are the trials, the truths, and the sums nobody may see."""

    problem: FamilyProblem
    truth: np.ndarray
    sums: np.ndarray
    n: int


def sensitivity(family: Family, cut: Interval) -> float:
    """L1, replace-one, of one record's contribution (docs/proofs/sensitivity.md)."""
    if isinstance(family, families.Categorical):
        return 2.0
    low, high = float(cut.lower), float(cut.upper)
    if cut.outside == "drop":
        low, high = min(low, 0.0), max(high, 0.0)
    if isinstance(family, families.Normal):
        # |u - w| + |u² - w²| on a box that is symmetric about 0 (section 5).
        m = high / family.scale
        w = np.linspace(-m, m, 20001)
        return float(((m - w) * (1 + np.abs(m + w))).max())
    return high - low


def simulate(name: str, trials: int, n: int, epsilon: float, outside: str, seed: int) -> Trials:
    """Every cell has a random stream of its own."""
    model = MODELS[name]
    family = model.family
    stream = [seed, trials, n, round(1e6 * epsilon), *name.encode(), *outside.encode()]
    rng = np.random.default_rng(stream)
    bounded = model.interval is None
    top = float(getattr(family, "trials", 1.0))
    ends = (0.0, top) if model.interval is None else model.interval
    cut = Interval(float(ends[0]), float(ends[1]), "keep" if bounded else outside)  # type: ignore
    prior = family.conjugate(model.prior)
    many = Conjugate(*(jnp.broadcast_to(a, (trials, *a.shape)) for a in prior))
    truth = np.asarray(draw_parameters(family, jax.random.key(int(rng.integers(2**31))), many))
    x = family.records(rng, np.broadcast_to(truth[:, None], (trials, n, truth.shape[-1])))
    t = jax.vmap(jax.vmap(family.statistic))
    sums = np.asarray(t(jnp.asarray(x, float)).sum(axis=1))
    kept = np.asarray(t(jnp.asarray(np.clip(x, *ends), float)))
    if cut.outside == "drop":
        kept = kept * ((x >= ends[0]) & (x <= ends[1]))[..., None]
    observed = sums if bounded else kept.sum(axis=1)
    scale = sensitivity(family, cut) / epsilon
    if family.whole:
        noise = discrete_laplace(rng, scale, observed.shape)
    else:
        noise = rng.laplace(0, scale, observed.shape)
    problem = FamilyProblem(
        family, cut, "x", observed + noise, np.full(trials, float(n)), scale, "laplace",
        model.prior, tuple(range(trials)),
    )  # fmt: skip
    return Trials(problem, truth, sums, n)
