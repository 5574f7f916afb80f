"""Pooled regressions from a question to a posterior: features, hyperprior, units, names.

The population in the user's units has, for every coefficient c of the groups, ``mean of c`` (at
average features) and ``sd of c``, ``f on c`` for every feature f (per unit of f), correlations of
coefficients, and, where groups lie in parents, deviations and correlations between these. Of
log σ², and of the means of the covariates within groups, it has mean and sd as well; of the
covariates' spread within groups the typical one and ``likeness``, ν: the larger, the more alike.
Deviations of coefficients are those between groups of middling size (the geometric mean of all
sizes); ``size exponent``: the variance falls as the size to this power. ``log size on c``: what a
unit of log size adds to coefficient c.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial

import jax.numpy as jnp
import numpy as np

from noisewise.artifact import ArgumentError
from noisewise.inference.population import (
    LEAST_SPREAD_OF_SIZES,
    LOG_SIZE,
    SIZE_EXPONENT,
    PopulationPosterior,
    PublicFeatures,
)
from noisewise.inference.results import ESS, RHAT
from noisewise.models.base import Progress
from noisewise.models.linear_regression import pooled_exact, pooled_population
from noisewise.models.linear_regression.pooled_density import PopulationLaw, with_x_mean
from noisewise.models.linear_regression.pooled_population import PopulationPrior, PopulationShape
from noisewise.models.linear_regression.pooled_start import PooledProblem
from noisewise.models.linear_regression.posterior import RegressionPosterior
from noisewise.models.linear_regression.posterior_draws import posterior_from_user
from noisewise.models.linear_regression.problem import RegressionProblem
from noisewise.numerics.convergence import diagnose_groups
from noisewise.numerics.matrices import UNROLLED
from noisewise.priors import Population

PRIOR_DRAWS = 4000
"""Draws of the population's prior to which its posterior is compared (chosen)."""
MAX_LATE = 0.01
"""Share of the groups that may be left without convergence: where more are, sweeps go on
(chosen)."""
GROUPS_AT_ONCE = 4096
"""Groups whose draws are moved to the user's units together, so that memory stays bounded
(chosen)."""
POOLED_WORDS = "groups drawn from one population, whose own prior is weak: {prior}"
"""The prior in words, for summaries and pages."""


def population_prior(given: object, names: tuple[str, ...]) -> Population:
    """Return the population's prior; raise an ArgumentError for any other.

    Args:
        given: what the analyst gave as ``prior``.
        names: of the coefficients.
    """
    if isinstance(given, Mapping) and set(given) == {"population"}:
        given = given["population"]
    if given is None:
        return Population()
    if not isinstance(given, Population):
        raise ArgumentError(
            'prior: pooled groups take {"population": nw.priors.Population(...)}, which is learnt '
            "from, in place of one prior for each group"
        )
    by_name = given.spread if isinstance(given.spread, Mapping) else {}
    if unknown := [name for name in by_name if name not in names]:
        raise ArgumentError(
            f"prior: spread: {unknown[0]!r} is no coefficient; there are {', '.join(names)}"
        )
    return given


@dataclass(frozen=True, eq=False)
class PooledQuestion:
    """Groups that learn from each other: the problem of all, public features, hyperprior."""

    regression: RegressionProblem
    features: PublicFeatures
    prior: Population

    def __post_init__(self) -> None:
        problem = self.regression
        if problem.cuts is not None:
            raise ArgumentError(
                "pool: bounds that cut values off are not pooled; leave pool out, or release with "
                "bounds that are natural"
            )
        if len(problem.x) + 1 > UNROLLED:
            raise ArgumentError(
                f"pool: groups are pooled with up to {UNROLLED - 1} covariates, not "
                f"{len(problem.x)}; name fewer as x"
            )

    @cached_property
    def problem(self) -> PooledProblem:
        """Return the problem as the sampler takes it."""
        turned, _ = rotated(self.features.values)
        prior = _box_prior(self.regression, self.prior)
        by_size = self.prior.by_size
        return PooledProblem(self.regression, turned, self.features.parent_of, prior, by_size)

    @property
    def shape(self) -> PopulationShape:
        """Return the shape of the population."""
        return pooled_exact.setting_of(self.problem).population

    @property
    def words(self) -> str:
        """Return the prior in words."""
        return POOLED_WORDS.format(prior=self.prior)

    def named(self, law: PopulationLaw) -> dict[str, np.ndarray]:
        """Return the population's parameters by name, in the user's units."""
        drawn = population_draws(law, self.regression, self.features)
        unit = float(self.problem.log_size.std())
        if unit > LEAST_SPREAD_OF_SIZES:
            drawn |= _effect_of_size(law, self.regression, unit)
            drawn[SIZE_EXPONENT] = np.asarray(law.size_exponent)[..., 0]
        return drawn

    def prior_draws(self, number: int) -> dict[str, np.ndarray]:
        """Draw the coefficients of a group with average features from the prior."""
        return prior_draws(self, number)

    def with_sums(self, z: np.ndarray) -> PooledQuestion:
        """Return the question of other sums."""
        n, q = self.regression.n, len(self.regression.x) + 1
        sizes = np.maximum(z[:, -1], q + 2) if self.regression.noisy_n else n
        return replace(self, regression=replace(self.regression, z=z, n=sizes))

    def with_sizes(self, n: float) -> PooledQuestion:
        """Return the question with n records in every group."""
        sizes = np.full(len(self.regression.n), n)
        return replace(self, regression=replace(self.regression, n=sizes))

    def run(
        self, seed: int, chains: int, draws: int, progress: Progress | None = None
    ) -> RegressionPosterior:
        """Sample groups and population together, and return the posterior of both."""
        return run(self, seed, chains, draws, progress)


def rotated(features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return features (group, k) with orthogonal columns, and the rotation that made them so.

    The constant stays: standardised features are orthogonal to it already. A rotation leaves
    coefficients that are independent and alike in the prior so.
    """
    turn = np.eye(features.shape[1])
    if features.shape[1] > 2:
        turn[1:, 1:] = np.linalg.eigh(features[:, 1:].T @ features[:, 1:])[1]
    return features @ turn, turn


def _box_prior(problem: RegressionProblem, prior: Population) -> PopulationPrior:
    """Return the scales of the hyperprior in the box."""
    d, half = len(problem.x), problem.units.half
    unit = np.append(half[:d], 1.0) / half[d]
    names = (*problem.x, "intercept")
    default = pooled_population.default_prior(d + 1)
    spread = np.array(default.spread[:, 0, 0])
    for k, name in enumerate(names):
        given = prior.spread_of(name, np.nan)
        spread[k] = spread[k] if np.isnan(given) else given * unit[k]
    coefficients = np.array(default.coefficients[:, 0, 0])
    if prior.coefficients is not None:
        coefficients = prior.coefficients * unit
    return PopulationPrior(
        jnp.asarray(spread[:, None, None]), jnp.asarray(coefficients[:, None, None])
    )


def population_draws(
    law: PopulationLaw, problem: RegressionProblem, features: PublicFeatures
) -> dict[str, np.ndarray]:
    """Return the population's parameters by name, in the user's units; arrays end as the law's."""
    d, names = len(problem.x), (*problem.x, "intercept")
    half, centre = problem.units.half, problem.units.centre
    matrix, offset = problem.units.to_box
    back = np.linalg.inv(matrix)
    turn = rotated(features.values)[1]
    lines = with_x_mean(law, jnp.zeros_like(law.x_mean))
    own = np.asarray(lines.coefficients)[:-1, ..., 0]
    coefficients = np.einsum("ij,jp...->ip...", turn, own)
    user = np.einsum("pq,kq...->kp...", back, coefficients)
    mean = user[0] - (back @ offset)[:, None]
    draws = {f"mean of {name}": mean[i] for i, name in enumerate(names)}
    draws |= _spread(lines.factor, back, names, "")
    for k, (feature, unit) in enumerate(zip(features.names, features.unit, strict=True), start=1):
        draws |= {f"{feature} on {name}": user[k, i] / unit for i, name in enumerate(names)}
    if lines.parent_factor is not None:
        draws |= _spread(lines.parent_factor, back, names, f" between {features.parent}")
    draws["mean of log sigma2"] = np.asarray(law.level)[..., 0] + 2 * np.log(half[d])
    draws["sd of log sigma2"] = np.asarray(law.level_sd)[..., 0]
    x_spread, x_scale = (np.asarray(a)[..., 0] for a in (law.x_spread, law.x_scale))
    for j, name in enumerate(problem.x):
        level = np.asarray(law.x_mean)[j, ..., 0]
        draws[f"mean of group means of {name}"] = centre[j] + half[j] * level
        draws[f"sd of group means of {name}"] = half[j] * np.sqrt((x_spread[j] ** 2).sum(axis=0))
        draws[f"{name} within groups"] = half[j] * np.sqrt((x_scale[j] ** 2).sum(axis=0))
    draws["likeness of covariates within groups"] = np.asarray(law.x_df)[..., 0]
    return draws


def _effect_of_size(
    law: PopulationLaw, problem: RegressionProblem, unit: float
) -> dict[str, np.ndarray]:
    """Return what a unit of log size adds to every coefficient, in the user's units."""
    lines = with_x_mean(law, jnp.zeros_like(law.x_mean))
    back = np.linalg.inv(problem.units.to_box[0])
    user = np.einsum("pq,q...->p...", back, np.asarray(lines.coefficients)[-1, ..., 0]) / unit
    names = (*problem.x, "intercept")
    return {f"{LOG_SIZE} on {name}": user[i] for i, name in enumerate(names)}


def _spread(
    factor: object, back: np.ndarray, names: tuple[str, ...], where: str
) -> dict[str, np.ndarray]:
    """Return deviations and correlations of coefficients in the user's units."""
    root = np.einsum("pq,qr...->pr...", back, np.asarray(factor)[..., 0])
    covariance = np.einsum("pr...,qr...->pq...", root, root)
    sd = np.sqrt(np.einsum("pp...->p...", covariance))
    draws = {f"sd of {name}{where}": sd[i] for i, name in enumerate(names)}
    for i, name in enumerate(names):
        for j in range(i):
            label = f"correlation of {names[j]} and {name}{where}"
            draws[label] = covariance[i, j] / np.maximum(sd[i] * sd[j], np.finfo(float).tiny)
    return draws


def run(
    question: PooledQuestion,
    seed: int,
    chains: int,
    draws: int,
    progress: Progress | None = None,
) -> RegressionPosterior:
    """Sample groups and population together, and return the groups' posterior with both."""
    problem, features, shape = question.problem, question.features, question.shape
    regression = question.regression

    def named(phi: np.ndarray) -> dict[str, np.ndarray]:
        """Return parameters (chain, draw) by name of φ (draw, coordinate, chain)."""
        count, _, chains = phi.shape
        flat = jnp.asarray(np.moveaxis(phi, 1, 0).reshape(phi.shape[1], -1))
        law = pooled_population.law_of(flat, shape)
        drawn = question.named(law)
        return {name: v.reshape(count, chains).T for name, v in drawn.items()}

    def tick(sweeps: int) -> None:
        if progress is not None:
            progress(sweeps, pooled_exact.MAX_SWEEPS)

    def settled(theta: np.ndarray, log_variance: np.ndarray) -> bool:
        """Tell whether nearly all of these groups converged, or too few draws are wanted for it."""
        if chains * draws < 2 * ESS:
            return True
        judged = [diagnose_groups(v) for v in _user_draws(theta, log_variance, regression)]
        rhat, ess = (np.stack(side) for side in zip(*judged, strict=True))
        late = ~((rhat < RHAT) & (ess >= ESS)).all(axis=0)
        return bool(late.mean() <= MAX_LATE)

    sampled = pooled_exact.sample(
        problem, seed, chains, draws, tick, lambda phi: np.stack(list(named(phi).values())), settled
    )
    user = _user_draws(sampled.theta, sampled.log_variance, regression)
    judged = [diagnose_groups(values) for values in user]
    rhat, ess = (np.stack(side) for side in zip(*judged, strict=True))
    details = {
        "pooled": True,
        "sweeps": sampled.sweeps,
        "failures": sampled.failures,
        "divergences": sampled.divergences,
        "seconds": sampled.seconds,
    }
    post = posterior_from_user(regression, user, rhat, ess, "exact", details)
    names, drawn = (*regression.x, "intercept"), named(sampled.phi)
    flat = jnp.asarray(np.moveaxis(sampled.phi, 1, 0).reshape(sampled.phi.shape[1], -1))
    population = PopulationPosterior(
        drawn,
        prior_population(question, pooled_population.law_of(flat, shape)),
        deviations=tuple(name for name in drawn if name.startswith("sd of ")),
        variance={name: _between(drawn, name, problem, features) for name in names},
        features=features,
    )
    return replace(
        post,
        prior=question.words,
        population=population,
        prior_draws=partial(prior_draws, question),
    )


def _user_draws(
    theta: np.ndarray, log_variance: np.ndarray, problem: RegressionProblem
) -> np.ndarray:
    """Return draws (parameter, group, chain, draw) in the user's units, some groups at a time."""
    whole, shift = problem.units.from_box
    draws, p, chains, groups = theta.shape
    user = np.empty((p + 1, groups, chains, draws), theta.dtype)
    for begin in range(0, groups, GROUPS_AT_ONCE):
        some = slice(begin, begin + GROUPS_AT_ONCE)
        variance = np.exp(log_variance[..., some])[:, None]
        box = np.concatenate([theta[..., some], variance], axis=1)
        user[:, some] = np.einsum("ij,tjcg->igct", whole, box) + shift[:, None, None, None]
    return user


def _between(
    drawn: Mapping[str, np.ndarray], name: str, problem: PooledProblem, features: PublicFeatures
) -> np.ndarray:
    """Return the median variance (group) between groups of its size about what features say.

    Deviations have heavy tails in the prior, so that a mean of their squares may not exist.
    """
    own = drawn[f"sd of {name}"].ravel() ** 2
    shared = np.zeros(1)
    if features.parent is not None:
        shared = drawn[f"sd of {name} between {features.parent}"].ravel() ** 2
    exponent = drawn.get(SIZE_EXPONENT, np.zeros(1)).ravel()
    sizes = problem.log_size
    return np.array([np.median(own * np.exp(-exponent * size) + shared) for size in sizes])


def prior_population(question: PooledQuestion, law: PopulationLaw) -> dict[str, np.ndarray]:
    """Return draws of the population before any release was seen, given its columns' scales.

    These are taken from a posterior: sums tell the scales of columns long before they tell
    anything of slopes, and a prior of slopes in unknown units is so wide that these would seem
    learnt. How large slopes are in such units is told by slopes alone, and comes from the prior.
    Where covariates lie is taken from the posterior too, since lines are reported at zero.

    Args:
        question: groups, features and hyperprior.
        law: draws of the posterior (flat).
    """
    rng = np.random.default_rng(0)
    some = np.linspace(0, law.level.shape[0] - 1, PRIOR_DRAWS).round().astype(int)
    units = np.array(law.log_units)[:, some, 0].T
    units[:, -1] = pooled_population.draw_units(rng, question.shape.d, PRIOR_DRAWS)[:, -1]
    prior = question.problem.prior
    before = pooled_population.draw_law(rng, question.shape, prior, PRIOR_DRAWS, units)
    own = question.named(before)
    there = question.named(before._replace(x_mean=law.x_mean[:, some]))
    means = [f"mean of group means of {name}" for name in question.regression.x]
    return {**there, **{name: own[name] for name in means}}


def prior_draws(question: PooledQuestion, number: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Draw the coefficients of a group with average features, before any release was seen."""
    rng = np.random.default_rng(seed)
    law = pooled_population.draw_law(rng, question.shape, question.problem.prior, number)
    names = (*question.regression.x, "intercept")
    return new_group(rng, question.named(law), names, question.features, None)


def new_group(
    rng: np.random.Generator,
    drawn: Mapping[str, np.ndarray],
    names: tuple[str, ...],
    features: PublicFeatures,
    row: Mapping[str, float] | None,
) -> dict[str, np.ndarray]:
    """Draw coefficients and σ² of a group that was not released, from every draw of the population.

    Args:
        rng: the analyst's own randomness.
        drawn: the population's parameters by name, arrays of one shape.
        names: of the coefficients.
        features: of the released groups.
        row: features of the new group; None for average ones.

    Returns:
        Arrays of that shape, by name of the parameter.
    """
    theta = np.stack([drawn[f"mean of {name}"] for name in names])
    if row is not None:
        standard = features.row(row)[1:]
        for feature, unit, value in zip(features.names, features.unit, standard, strict=True):
            theta = theta + value * unit * np.stack([drawn[f"{feature} on {n}"] for n in names])
    wheres = [""] if features.parent is None else ["", f" between {features.parent}"]
    for where in wheres:
        theta = theta + _deviation(rng, drawn, names, where)
    white = rng.standard_normal(theta.shape[1:])
    log_variance = drawn["mean of log sigma2"] + drawn["sd of log sigma2"] * white
    return {**dict(zip(names, theta, strict=True)), "sigma2": np.exp(log_variance)}


def _deviation(
    rng: np.random.Generator, drawn: Mapping[str, np.ndarray], names: tuple[str, ...], where: str
) -> np.ndarray:
    """Draw what a group (or a parent) deviates by, of every coefficient."""
    sd = np.stack([drawn[f"sd of {name}{where}"] for name in names])
    p = len(names)
    correlation = np.broadcast_to(np.eye(p), (*sd.shape[1:], p, p)).copy()
    for i in range(p):
        for j in range(i):
            label = f"correlation of {names[j]} and {names[i]}{where}"
            correlation[..., i, j] = correlation[..., j, i] = drawn[label]
    # Rounding may leave a correlation of 1 a little above it.
    values, vectors = np.linalg.eigh(correlation)
    white = rng.standard_normal((*sd.shape[1:], p)) * np.sqrt(np.maximum(values, 0))
    return np.asarray(sd * np.moveaxis(np.einsum("...ij,...j->...i", vectors, white), -1, 0))
