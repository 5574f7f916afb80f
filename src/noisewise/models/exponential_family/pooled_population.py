"""The population that pooled groups of one parameter are drawn from: prior, units, new groups.

The model is in ``pooled_density.py``. Hyperprior, proper and weak:

    β₁ ~ N(link(c), s²), other β ~ N(0, s²), s = 2.5;   A²/(A² + ω²) ~ U(0, 1), A = ½;
    ζ ~ N(0, 1), γ ~ N(0.3, 0.45²), as of regressions (``inference/population.py``),

ω below 1 for shares; c is the mean of the family's own weak prior, which the public bounds give.
``priors.Population`` sets s and A. The prior of ω is that of uniform shrinkage (M. Daniels,
Canadian Journal of Statistics 27, 1999): its median is A. Half-t laws, flat at ω = 0, shrank a few
groups too much: 95 % intervals of ten groups held the truth in 92 to 93 of 100 cases
(docs/evidence-expfam.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from noisewise.artifact import ArgumentError
from noisewise.inference.population import (
    LEAST_SPREAD_OF_SIZES,
    LOG_SIZE,
    SIZE_EXPONENT,
    SIZE_POWER,
    SIZE_POWER_SD,
    PopulationPosterior,
    PublicFeatures,
    log_relative_sizes,
    standard_sizes,
)
from noisewise.models.exponential_family.family import TINY, Domain, draw_parameters
from noisewise.models.exponential_family.pooled_density import (
    MAX_CONCENTRATION,
    GroupLaw,
    PublicGroups,
    concentration,
    size_effect,
)
from noisewise.models.exponential_family.problem import FamilyProblem
from noisewise.priors import Population

COEFFICIENT_SD = 2.5
"""Prior deviation of β on the link scale (chosen): shares of .01 and .99 are 4.6 from a half."""
SPREAD_SCALE = 0.5
"""Median of ω before any release (chosen: half of the largest spread that shares can have)."""
MEAN_DRAWS = 20_000
"""Draws of the weak prior whose mean is the population's middle (chosen)."""


@dataclass(frozen=True, eq=False)
class PooledProblem:
    """A release with groups, their public features, and the population's prior."""

    groups: FamilyProblem
    features: PublicFeatures
    prior: Population

    @property
    def domain(self) -> Domain:
        """Return where the groups' parameter lives: ``unit`` or ``positive``."""
        return self.groups.family.domains[0]

    @property
    def public(self) -> PublicGroups:
        """Return what is public of the groups; of secret sizes, as the release says them."""
        groups = self.groups
        noise = 0.0 if groups.counted is None else groups.count_scale or groups.scale
        log_size = log_relative_sizes(groups.n, noise) * self.prior.by_size
        standard = standard_sizes(log_size)
        return PublicGroups(*map(jnp.asarray, (self.features.values, log_size, standard)))


def population_prior(given: Any) -> Population:
    """Return the population's prior; raise an ArgumentError for any other."""
    if isinstance(given, Mapping) and set(given) == {"population"}:
        given = given["population"]
    if given is None:
        return Population()
    if not isinstance(given, Population):
        raise ArgumentError(
            'prior: pooled groups take {"population": nw.priors.Population(...)}, which is learnt '
            f"from, in place of one prior for each group; not {type(given).__name__}"
        )
    return given


def pooled_problem(
    problem: FamilyProblem, features: PublicFeatures, prior: Population
) -> PooledProblem:
    """Return the problem of pooled groups; raise an ArgumentError where there is no method."""
    family = problem.family
    if len(family.parameters) > 1 or family.names != family.parameters:
        raise ArgumentError(
            f"pool: {family.name} columns have several parameters; columns with one can pool: "
            "bernoulli, binomial, geometric, poisson, gamma and exponential"
        )
    if family.domains[0] == "real":
        raise ArgumentError(f"pool: there is no population for the parameter of {family.name}")
    if features.parent is not None:
        raise ArgumentError(
            "parent: groups of one column learn from one population; give the parent's own "
            "features instead"
        )
    if isinstance(prior.spread, Mapping):
        unknown = [name for name in prior.spread if name not in family.parameters]
        if unknown:
            raise ArgumentError(
                f"prior: spread: {unknown[0]!r} is no parameter; there is {family.parameters[0]}"
            )
    return PooledProblem(problem, features, prior)


@dataclass(frozen=True)
class Hyperprior:
    """Means and deviation of β, scale of ω, and the largest ω."""

    mean: np.ndarray
    deviation: float
    scale: float
    largest: float

    def log_density(self, psi: np.ndarray) -> np.ndarray:
        """Return the log density of (β…, ζ, γ, log ω) along the last axis, up to a constant."""
        beta, spread = psi[..., :-3], np.exp(psi[..., -1])
        normal = -(((beta - self.mean) / self.deviation) ** 2).sum(axis=-1) / 2
        normal = normal - psi[..., -3] ** 2 / 2
        normal = normal - ((psi[..., -2] - SIZE_POWER) / SIZE_POWER_SD) ** 2 / 2
        # The density of ω is ω/(1 + ω²/A²)²; one more ω is the Jacobian of its logarithm.
        shrinking = 2 * psi[..., -1] - 2 * np.log1p((spread / self.scale) ** 2)
        return np.asarray(np.where(spread < self.largest, normal + shrinking, -np.inf))

    def draw(self, rng: np.random.Generator, number: int) -> np.ndarray:
        """Draw (number, β…, ζ, γ and log ω)."""
        beta = self.mean + self.deviation * rng.standard_normal((number, len(self.mean)))
        least = 1 / (1 + (self.largest / self.scale) ** 2)
        factor = least + (1 - least) * (1 - rng.random(number))
        spread = self.scale * np.sqrt(np.maximum(1 / factor - 1, TINY))
        exponent = SIZE_POWER + SIZE_POWER_SD * rng.standard_normal(number)
        return np.column_stack([beta, rng.standard_normal(number), exponent, np.log(spread)])


def hyperprior(problem: PooledProblem) -> Hyperprior:
    """Return the population's prior on the link scale."""
    family = problem.groups.family
    weak = problem.groups.conjugate.repeated(MEAN_DRAWS)
    middle = float(np.mean(draw_parameters(family, jax.random.key(0), weak)))
    mean = np.zeros(problem.features.values.shape[1])
    unit = problem.domain == "unit"
    mean[0] = special.logit(middle) if unit else np.log(middle)
    sd = problem.prior.coefficients or COEFFICIENT_SD
    scale = problem.prior.spread_of(family.parameters[0], SPREAD_SCALE)
    return Hyperprior(mean, sd, scale, 1.0 if unit else np.inf)


def named_parameters(
    domain: Domain, name: str, features: PublicFeatures, psi: np.ndarray, size_unit: float
) -> dict[str, np.ndarray]:
    """Return the population in people's units: mean and sd at mean features, then coefficients.

    Args:
        domain: where the groups' parameter lives.
        name: of the groups' parameter.
        features: the public ones.
        psi: (β…, ζ, γ, log ω) along the last axis.
        size_unit: the deviation of log sizes; zero where sizes do not matter.
    """
    mean, sd = mean_and_sd(domain, psi[..., 0], np.exp(psi[..., -1]))
    pairs = zip(features.names, features.unit, strict=True)
    slopes = {feature: psi[..., i] / unit for i, (feature, unit) in enumerate(pairs, start=1)}
    sizes = {}
    if size_unit > LEAST_SPREAD_OF_SIZES:
        sizes[LOG_SIZE] = np.asarray(size_effect(domain, psi)) / size_unit
        sizes[SIZE_EXPONENT] = psi[..., -2]
    return {f"mean of {name}": mean, f"sd of {name}": sd, **slopes, **sizes}


def mean_and_sd(
    domain: Domain, linear: np.ndarray, spread: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and deviation of groups whose mean is ``linear`` on the link scale."""
    if domain == "positive":
        return np.exp(linear), spread * np.exp(linear)
    mean = special.expit(linear)
    return mean, spread * np.sqrt(mean * special.expit(-linear))


def group_sd(domain: Domain, law: GroupLaw) -> np.ndarray:
    """Return the deviation of every group's parameter."""
    centre, k = np.asarray(law.centre), np.asarray(law.concentration)
    spread = 1 / np.sqrt(k + 1 if domain == "unit" else k)
    return mean_and_sd(domain, centre, spread)[1]


def prior_draws(
    domain: Domain, name: str, prior: Hyperprior, number: int, seed: int = 0
) -> dict[str, np.ndarray]:
    """Draw the parameter of a group with mean features, before any release was seen."""
    rng = np.random.default_rng(seed)
    psi = prior.draw(rng, number)
    return {name: draw_group(rng, domain, psi[:, 0], np.exp(psi[:, -1]))}


def draw_group(
    rng: np.random.Generator, domain: Domain, linear: np.ndarray, spread: np.ndarray
) -> np.ndarray:
    """Draw the parameter of a group of middling size from each population."""
    kappa = np.clip(concentration(domain, jnp.asarray(spread)), 1e-6, MAX_CONCENTRATION)
    return draw_groups(rng, domain, GroupLaw(jnp.asarray(linear), jnp.asarray(kappa)))


def draw_groups(rng: np.random.Generator, domain: Domain, law: GroupLaw) -> np.ndarray:
    """Draw the parameter of every group."""
    linear, k = np.asarray(law.centre), np.asarray(law.concentration)
    if domain == "positive":
        return np.asarray(rng.gamma(k) * np.exp(linear) / k)
    return np.asarray(rng.beta(k * special.expit(linear), k * special.expit(-linear)))


def new_group(
    rng: np.random.Generator, domain: Domain, name: str, population: PopulationPosterior,
    features: Mapping[str, float] | None,
) -> np.ndarray:  # fmt: skip
    """Draw the parameter of a group that is not in the release, (chain, draw).

    Args:
        rng: of the group's place in the population.
        domain: where the groups' parameter lives.
        name: of the groups' parameter.
        population: the posterior of the population.
        features: of the new group, a number for each public feature.
    """
    mean, sd = (population.draws[f"{what} of {name}"] for what in ("mean", "sd"))
    public = population.features or PublicFeatures(np.ones((1, 1)))
    row = public.row(features)[1:] * public.unit
    slopes = zip(public.names, row, strict=True)
    linear = np.log(mean) if domain == "positive" else special.logit(mean)
    spread = sd / (mean if domain == "positive" else np.sqrt(mean * (1 - mean)))
    for feature, distance in slopes:
        linear = linear + population.draws[feature] * distance
    return draw_group(rng, domain, linear, spread)
