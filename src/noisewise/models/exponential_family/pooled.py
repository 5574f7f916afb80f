"""Method ``exact`` with ``pool=True``: shares and rates of groups that learn from each other.

The model is in ``pooled_density.py``. Hyperprior, proper and weak:

    β₁ ~ N(link(c), s²), other β ~ N(0, s²), s = 2.5;   ω ~ half-t₂(A), A = ½, below 1 for shares,

c being the mean of the family's own weak prior, which the public bounds give. The density of ω is
flat at zero, where groups are alike. ``priors.Population`` sets s and A.

With all θ_g integrated out, (β, log ω) has few dimensions and a smooth posterior. Adaptive
importance sampling (J.-M. Cornuet et al., Scandinavian Journal of Statistics 39, 2012) fits a t law
to it; independent proposals from it are then accepted or refused by
Metropolis and Hastings, which makes them exact whatever the fit. Every proposal's density is
computed beforehand, in one batch. Each population that is kept brings its own draw of every θ_g.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from noisewise.artifact import ArgumentError
from noisewise.inference.population import (
    POPULATION_ESS,
    POPULATION_RHAT,
    PopulationPosterior,
    PublicFeatures,
)
from noisewise.models.base import Progress
from noisewise.models.exponential_family import pooled_density
from noisewise.models.exponential_family.family import Domain, draw_parameters
from noisewise.models.exponential_family.parameter_grid import parameter
from noisewise.models.exponential_family.pooled_density import LikelihoodTable
from noisewise.models.exponential_family.posterior import FamilyPosterior, assemble_posterior
from noisewise.models.exponential_family.problem import FamilyProblem
from noisewise.numerics.convergence import diagnose
from noisewise.priors import Population

COEFFICIENT_SD = 2.5
"""Prior deviation of β on the link scale (chosen): shares of .01 and .99 are 4.6 from a half."""
SPREAD_SCALE = 0.5
"""Scale of the half-t₂ law of ω (chosen: half of the largest spread that shares can have)."""
PROPOSAL_DF = 5.0
"""Degrees of freedom of the proposals (chosen): tails heavier than those of the posterior."""
START_SPREAD = 0.4
"""First guess of ω, in scales of its prior (chosen)."""
ADAPTING_DRAWS, FULL_ROUNDS, MAX_ROUNDS = 256, 3, 30
"""Draws in every round that fits the proposals, rounds with unflattened weights that are enough,
and rounds at most (chosen)."""
LEAST_EFFECTIVE, LEAST_POWER = 15, 1e-6
"""Effective draws for each dimension below which weights are flattened, and the least power to
which they are taken (chosen)."""
MAX_DOUBLINGS = 4
"""How often the number of proposals is doubled while the population has not converged (chosen)."""
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


# -- the hyperprior --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Hyperprior:
    """Means and deviation of β, scale of ω, and the largest ω."""

    mean: np.ndarray
    deviation: float
    scale: float
    largest: float

    def log_density(self, psi: np.ndarray) -> np.ndarray:
        """Return the log density of (β…, log ω) along the last axis, up to a constant."""
        beta, spread = psi[..., :-1], np.exp(psi[..., -1])
        normal = -(((beta - self.mean) / self.deviation) ** 2).sum(axis=-1) / 2
        half_t = -1.5 * np.log1p((spread / self.scale) ** 2 / 2) + psi[..., -1]
        return np.asarray(np.where(spread < self.largest, normal + half_t, -np.inf))

    def draw(self, rng: np.random.Generator, number: int) -> np.ndarray:
        """Draw (number, β… and log ω)."""
        beta = self.mean + self.deviation * rng.standard_normal((number, len(self.mean)))
        # The CDF of half-t₂ is x/√(x² + 2).
        ratio = self.largest / self.scale
        top = 1.0 if np.isinf(ratio) else ratio / np.sqrt(ratio**2 + 2)
        u = top * rng.random(number)
        spread = self.scale * np.sqrt(2) * u / np.sqrt(1 - u**2)
        return np.column_stack([beta, np.log(spread)])


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


# -- the population's posterior --------------------------------------------------------------------


class Target:
    """The log posterior density of (β…, log ω), for batches."""

    def __init__(self, problem: PooledProblem, table: LikelihoodTable) -> None:
        self.domain, self.table = problem.domain, table
        self.features = jnp.asarray(problem.features.values)
        self.prior = hyperprior(problem)

    def __call__(self, psi: np.ndarray) -> np.ndarray:
        """Return the log density of each row."""
        likelihood = pooled_density.all_log_marginals(self.domain, self.table, self.features, psi)
        known = np.where(np.isnan(likelihood), -np.inf, likelihood)
        return np.asarray(known + self.prior.log_density(psi))

    @property
    def start(self) -> Proposal:
        """Return where to begin: about the median of the groups' likeliest values, and wide."""
        peaks = self.table.start + self.table.step * self.table.values.argmax(axis=1)
        sd = self.prior.deviation
        mean = self.prior.mean.copy()
        mean[0] = np.clip(np.median(peaks), mean[0] - 2 * sd, mean[0] + 2 * sd)
        width = np.append(np.full(len(mean), min(sd, 1.0)), 1.0)
        return Proposal(np.append(mean, np.log(START_SPREAD * self.prior.scale)), np.diag(width))


@dataclass(frozen=True, eq=False)
class Proposal:
    """A multivariate t law."""

    centre: np.ndarray
    factor: np.ndarray

    def draw(self, rng: np.random.Generator, number: int) -> np.ndarray:
        """Draw rows."""
        normal = rng.standard_normal((number, len(self.centre))) @ self.factor.T
        chi = np.sqrt(rng.chisquare(PROPOSAL_DF, number) / PROPOSAL_DF)
        return np.asarray(self.centre + normal / chi[:, None])

    def log_density(self, psi: np.ndarray) -> np.ndarray:
        """Return the log density of each row, up to a constant that all proposals share."""
        z = np.linalg.solve(self.factor, (psi - self.centre).T)
        size = (PROPOSAL_DF + len(self.centre)) / 2
        falling = size * np.log1p((z**2).sum(axis=0) / PROPOSAL_DF)
        return np.asarray(-falling - np.log(np.diag(self.factor)).sum())


def fitted_proposal(rng: np.random.Generator, target: Target) -> Proposal:
    """Fit a t law to the target by the moments of weighted draws, round after round.

    All draws so far are weighted as draws of the mixture of all proposals so far. While few of them
    are effective, weights are flattened: a power of them keeps the next proposal wide enough.
    """
    proposal, mixed = target.start, []
    size = len(proposal.centre)
    rows, values = np.empty((0, size)), np.empty(0)
    full_rounds = 0
    for _ in range(MAX_ROUNDS):
        fresh = proposal.draw(rng, ADAPTING_DRAWS)
        rows, values = np.vstack([rows, fresh]), np.append(values, target(fresh))
        mixed.append(proposal)
        mixture = special.logsumexp([p.log_density(rows) for p in mixed], axis=0)
        weight, power = _flattened(values - mixture, LEAST_EFFECTIVE * size)
        centre = weight @ rows
        covariance = (rows - centre).T @ ((rows - centre) * weight[:, None])
        proposal = Proposal(centre, np.linalg.cholesky(covariance + 1e-10 * np.eye(size)))
        full_rounds += power == 1
        if full_rounds == FULL_ROUNDS:
            break
    return proposal


def _flattened(log_weight: np.ndarray, effective: float) -> tuple[np.ndarray, float]:
    """Return weights that add up to one, so flat that enough draws are effective, and the power."""
    power = 1.0
    while True:
        weight = np.exp(power * (log_weight - log_weight.max()))
        weight /= weight.sum()
        if 1 / (weight**2).sum() >= effective or power < LEAST_POWER:
            return weight, power
        power /= 2


def independence_chains(
    rng: np.random.Generator, proposed: np.ndarray, log_weight: np.ndarray
) -> np.ndarray:
    """Accept or refuse proposals (chain, step), one after the other; return the places kept.

    Args:
        rng: of the decisions.
        proposed: the places of the proposals, (chain, step).
        log_weight: of each place, its target's log density less its proposal's.

    Returns:
        The place of the state after every step, (chain, step).
    """
    chains, steps = proposed.shape
    weight = np.exp(log_weight - log_weight.max())
    state = np.asarray(rng.choice(len(weight), chains, p=weight / weight.sum()))
    kept = np.empty((chains, steps), int)
    logs = np.log(rng.random((chains, steps)))
    for i in range(steps):
        better = logs[:, i] < log_weight[proposed[:, i]] - log_weight[state]
        state = np.where(better, proposed[:, i], state)
        kept[:, i] = state
    return kept


def sample_population(
    rng: np.random.Generator, target: Target, chains: int, draws: int
) -> tuple[np.ndarray, float]:
    """Return draws (chain, draw, β… and log ω) and the share of proposals that were accepted."""
    proposal = fitted_proposal(rng, target)
    for doubling in range(MAX_DOUBLINGS + 1):
        thin = 2**doubling
        rows = proposal.draw(rng, chains * draws * thin)
        log_weight = target(rows) - proposal.log_density(rows)
        places = np.arange(len(rows)).reshape(chains, -1)
        kept = independence_chains(rng, places, log_weight)
        psi = rows[kept[:, thin - 1 :: thin]]
        judged = [diagnose(psi[..., i]) for i in range(psi.shape[-1])]
        good = all(r < POPULATION_RHAT and e >= POPULATION_ESS for r, e in judged)
        if good:
            break
    return psi, float((kept == places).mean())


# -- the method ------------------------------------------------------------------------------------


def run(
    problem: PooledProblem, seed: int, chains: int, draws: int, progress: Progress | None = None
) -> FamilyPosterior:
    """Draw the population, and every group given it, from the exact posterior."""
    rng = np.random.default_rng(seed)
    table = pooled_density.likelihood_table(problem.groups, progress)
    target = Target(problem, table)
    psi, accepted = sample_population(rng, target, chains, draws)
    v = pooled_density.all_group_draws(
        jax.random.key(int(rng.integers(2**31))), problem.domain, table, target.features,
        psi.reshape(-1, psi.shape[-1]),
    )  # fmt: skip
    family = problem.groups.family
    theta = np.asarray(parameter(family, jnp.asarray(v))).T.reshape(-1, chains, draws)
    details = {**problem.groups.unknown_n_note, "pooled": True, "accepted_share": accepted}
    post = assemble_posterior(problem.groups, theta[..., None], "exact", details)
    prior = target.prior
    return replace(
        post,
        prior=str(Population(prior.scale, prior.deviation)),
        population=_population(problem, prior, psi),
        prior_draws=partial(_prior_draws, problem.domain, family.names[0], prior),
        without_noise=None,
    )


def named_parameters(
    domain: Domain, name: str, features: PublicFeatures, psi: np.ndarray
) -> dict[str, np.ndarray]:
    """Return the population in people's units: mean and sd at mean features, then coefficients.

    Args:
        domain: where the groups' parameter lives.
        name: of the groups' parameter.
        features: the public ones.
        psi: (β…, log ω) along the last axis.
    """
    mean, sd = mean_and_sd(domain, psi[..., 0], np.exp(psi[..., -1]))
    pairs = zip(features.names, features.unit, strict=True)
    slopes = {feature: psi[..., i] / unit for i, (feature, unit) in enumerate(pairs, start=1)}
    return {f"mean of {name}": mean, f"sd of {name}": sd, **slopes}


def mean_and_sd(
    domain: Domain, linear: np.ndarray, spread: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and deviation of groups whose mean is ``linear`` on the link scale."""
    if domain == "positive":
        return np.exp(linear), spread * np.exp(linear)
    mean = special.expit(linear)
    return mean, spread * np.sqrt(mean * special.expit(-linear))


def _population(problem: PooledProblem, prior: Hyperprior, psi: np.ndarray) -> PopulationPosterior:
    name, domain = problem.groups.family.names[0], problem.domain
    before = prior.draw(np.random.default_rng(0), MEAN_DRAWS)
    rows = psi.reshape(-1, psi.shape[-1])
    rows = rows[:: max(1, len(rows) // 200)]
    linear = problem.features.values @ rows[:, :-1].T
    _, sd = mean_and_sd(domain, linear, np.exp(rows[:, -1]))
    return PopulationPosterior(
        named_parameters(domain, name, problem.features, psi),
        named_parameters(domain, name, problem.features, before),
        deviations=(f"sd of {name}",),
        variance={name: (sd**2).mean(axis=1)},
        features=problem.features,
    )


def _prior_draws(
    domain: Domain, name: str, prior: Hyperprior, number: int, seed: int = 0
) -> dict[str, np.ndarray]:
    """Draw the parameter of a group with mean features, before any release was seen."""
    rng = np.random.default_rng(seed)
    psi = prior.draw(rng, number)
    return {name: draw_group(rng, domain, psi[:, 0], np.exp(psi[:, -1]))}


def draw_group(
    rng: np.random.Generator, domain: Domain, linear: np.ndarray, spread: np.ndarray
) -> np.ndarray:
    """Draw a group's parameter from each population."""
    one = jnp.zeros((1, 1))
    law = pooled_density.group_law(domain, one[0], jnp.asarray(spread), one)
    k = np.asarray(law.concentration)
    if domain == "positive":
        return np.asarray(rng.gamma(k) * np.exp(linear) / k)
    return np.asarray(rng.beta(k * special.expit(linear), k * special.expit(-linear)))
