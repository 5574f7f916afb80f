"""Method ``exact`` with ``pool=True``: shares and rates of groups that learn from each other.

The model is in ``pooled_density.py``, its prior in ``pooled_population.py``.

With all θ_g integrated out, (β, ζ, γ, log ω) has few dimensions and a smooth posterior. Adaptive
importance sampling (J.-M. Cornuet et al., Scandinavian Journal of Statistics 39, 2012) fits a t law
to it; independent proposals from it are then accepted or refused by
Metropolis and Hastings, which makes them exact whatever the fit. Every proposal's density is
computed beforehand, in one batch. Each population that is kept brings its own draw of every θ_g.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from noisewise.inference.population import (
    POPULATION_ESS,
    POPULATION_RHAT,
    SIZE_POWER,
    SIZE_POWER_SD,
    PopulationPosterior,
)
from noisewise.inference.results import ESS, RHAT
from noisewise.models.base import Progress
from noisewise.models.exponential_family import pooled_density
from noisewise.models.exponential_family.parameter_grid import parameter
from noisewise.models.exponential_family.pooled_density import LikelihoodTable
from noisewise.models.exponential_family.pooled_population import (
    MEAN_DRAWS,
    Hyperprior,
    PooledProblem,
    group_sd,
    hyperprior,
    named_parameters,
    prior_draws,
)
from noisewise.models.exponential_family.posterior import FamilyPosterior, assemble_posterior
from noisewise.numerics.convergence import diagnose
from noisewise.priors import Population

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
FEWEST_DRAWS_FOR_GROUPS = 4 * ESS
"""Draws in all from which the population is to be known as well as groups are to be (chosen)."""
MAX_DOUBLINGS = 4
"""How often the number of proposals is doubled while the population has not converged (chosen)."""
# -- the population's posterior --------------------------------------------------------------------


class Target:
    """The log posterior density of (β…, ζ, γ, log ω), for batches."""

    def __init__(self, problem: PooledProblem, table: LikelihoodTable) -> None:
        self.domain, self.table = problem.domain, table
        self.public = problem.public
        self.prior = hyperprior(problem)

    def __call__(self, psi: np.ndarray) -> np.ndarray:
        """Return the log density of each row."""
        likelihood = pooled_density.all_log_marginals(self.domain, self.table, self.public, psi)
        known = np.where(np.isnan(likelihood), -np.inf, likelihood)
        return np.asarray(known + self.prior.log_density(psi))

    @property
    def start(self) -> Proposal:
        """Return where to begin: about the median of the groups' likeliest values, and wide."""
        peaks = self.table.start + self.table.step * self.table.values.argmax(axis=1)
        sd = self.prior.deviation
        mean = self.prior.mean.copy()
        mean[0] = np.clip(np.median(peaks), mean[0] - 2 * sd, mean[0] + 2 * sd)
        width = [*np.full(len(mean), min(sd, 1.0)), 1.0, SIZE_POWER_SD, 1.0]
        start = [*mean, 0.0, SIZE_POWER, np.log(START_SPREAD * self.prior.scale)]
        return Proposal(np.array(start), np.diag(width))


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
        proposal = _moments(rows, weight)
        full_rounds += power == 1
        if full_rounds == FULL_ROUNDS:
            break
    return proposal


def _moments(rows: np.ndarray, weight: np.ndarray) -> Proposal:
    """Return the t law with the mean and covariance of weighted rows."""
    centre = weight @ rows
    covariance = (rows - centre).T @ ((rows - centre) * weight[:, None])
    return Proposal(centre, np.linalg.cholesky(covariance + 1e-10 * np.eye(len(centre))))


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
    rng: np.random.Generator, problem: PooledProblem, target: Target, chains: int, draws: int
) -> tuple[np.ndarray, float]:
    """Return draws (chain, draw, β…, ζ, γ and log ω) and the share of proposals that were accepted.

    Judged are the parameters that an analyst is shown. Where they have not converged, the t law is
    fitted again, to all the draws that its last one gave, before the next and longer attempt.
    """
    proposal = fitted_proposal(rng, target)
    # Groups, which follow the population draw by draw, are judged more strictly than it is.
    many = chains * draws >= FEWEST_DRAWS_FOR_GROUPS
    most, least = (RHAT, ESS) if many else (POPULATION_RHAT, POPULATION_ESS)
    for doubling in range(MAX_DOUBLINGS + 1):
        thin = 2**doubling
        rows = proposal.draw(rng, chains * draws * thin)
        log_weight = target(rows) - proposal.log_density(rows)
        places = np.arange(len(rows)).reshape(chains, -1)
        kept = independence_chains(rng, places, log_weight)
        psi = rows[kept[:, thin - 1 :: thin]]
        shown = _named(problem, psi)
        judged = [diagnose(values) for values in shown.values()]
        if all(r < most and e >= least for r, e in judged):
            break
        weight, _ = _flattened(log_weight, LEAST_EFFECTIVE * rows.shape[-1])
        proposal = _moments(rows, weight)
    return psi, float((kept == places).mean())


# -- the method ------------------------------------------------------------------------------------


def run(
    problem: PooledProblem, seed: int, chains: int, draws: int, progress: Progress | None = None
) -> FamilyPosterior:
    """Draw the population, and every group given it, from the exact posterior."""
    rng = np.random.default_rng(seed)
    table = pooled_density.likelihood_table(problem.groups, progress)
    target = Target(problem, table)
    psi, accepted = sample_population(rng, problem, target, chains, draws)
    v = pooled_density.all_group_draws(
        jax.random.key(int(rng.integers(2**31))), problem.domain, table, target.public,
        psi.reshape(-1, psi.shape[-1]),
    )  # fmt: skip
    family = problem.groups.family
    theta = np.asarray(parameter(family, jnp.asarray(v))).T.reshape(-1, chains, draws)
    details = {**problem.groups.unknown_n_note, "pooled": True, "accepted_share": accepted}
    post = assemble_posterior(problem.groups, theta[..., None], "exact", details)
    prior = target.prior
    return replace(
        post,
        prior=str(Population(prior.scale, prior.deviation, problem.prior.by_size)),
        population=_population(problem, prior, psi),
        prior_draws=partial(prior_draws, problem.domain, family.names[0], prior),
        without_noise=None,
    )


def _named(problem: PooledProblem, psi: np.ndarray) -> dict[str, np.ndarray]:
    """Return the population's parameters by name."""
    name, unit = problem.groups.family.names[0], float(problem.public.log_size.std())
    return named_parameters(problem.domain, name, problem.features, psi, unit)


def _population(problem: PooledProblem, prior: Hyperprior, psi: np.ndarray) -> PopulationPosterior:
    name = problem.groups.family.names[0]
    before = prior.draw(np.random.default_rng(0), MEAN_DRAWS)
    rows = psi.reshape(-1, psi.shape[-1])
    rows = rows[:: max(1, len(rows) // 200)]
    public = problem.public
    laws = [pooled_density.group_law(problem.domain, jnp.asarray(row), public) for row in rows]
    sd = np.stack([group_sd(problem.domain, law) for law in laws], axis=1)
    return PopulationPosterior(
        _named(problem, psi),
        _named(problem, before),
        deviations=(f"sd of {name}",),
        variance={name: np.median(sd**2, axis=1)},
        features=problem.features,
    )
