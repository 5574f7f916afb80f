"""Making the posterior of a generalized linear model with factors, and coding it anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np

from noisewise.formula import DesignColumn
from noisewise.inference.results import by_name
from noisewise.models.generalized_linear.covariate_moments import DesignMoments
from noisewise.models.generalized_linear.posterior import (
    GeneralizedPosterior,
    deviations_without_noise,
    posterior_class,
)
from noisewise.models.generalized_linear.problem_with_factors import FactorsProblem
from noisewise.models.linear_regression import reference_levels
from noisewise.numerics.convergence import diagnose_groups


def posterior_with_factors(
    problem: FactorsProblem,
    user: np.ndarray,
    rhat: np.ndarray,
    ess: np.ndarray,
    method: str,
    details: Mapping[str, Any],
    shift: np.ndarray | None,
    second: np.ndarray,
) -> GeneralizedPosterior:
    """Return the posterior of draws (parameter, group, chain, draw) in the user's units.

    Args:
        problem: with the design.
        user: coefficients of the design, the intercept last.
        rhat: of parameters (parameter, group).
        ess: likewise.
        method: by which it was inferred.
        details: of the sampling.
        shift: the shape shift (parameter, group), where it is known.
        second: products of the atoms per record (group, atom, atom), posterior means.
    """
    names = (*problem.x, "intercept")
    moved = problem.change.T @ second @ problem.change
    mean = moved[:, :-1, -1]
    covariance = moved[:, :-1, :-1] - mean[:, :, None] * mean[:, None]
    ones = np.ones(len(problem.x))
    moments = DesignMoments(
        mean, 0.5 * (covariance + np.swapaxes(covariance, 1, 2)), 0 * ones, ones,
        np.array([bool(c.levels) for c in problem.design[:-1]]), problem.law, problem.sizes,
        problem.change,
    )  # fmt: skip
    known = dict(details)
    if shift is not None and not np.isnan(shift).all():
        known["shape_shift"] = {k: np.asarray(v).tolist() for k, v in
                                by_name(names, shift, problem.keys).items()}  # fmt: skip
    return posterior_class(problem.link)(
        draws=by_name(names, user, problem.keys), rhat=by_name(names, rhat, problem.keys),
        ess=by_name(names, ess, problem.keys), method=method, keys=problem.keys,
        prior=problem.prior_in_words, details=known, link=problem.link, x=problem.x, y=problem.y,
        moments=moments, design=problem.design, levels=problem.levels, event=problem.event,
        prior_draws=partial(prior_draws, problem, moments),
        without_noise=partial(deviations_without_noise, problem, moments, user),
    )  # fmt: skip


def prior_draws(
    problem: FactorsProblem, moments: DesignMoments, number: int, seed: int = 0
) -> dict[str, np.ndarray]:
    """Draw coefficients from the prior, at the moments of the first group's covariates."""
    rng = np.random.default_rng(seed)
    mean, covariance = moments.atoms(0)
    slopes, place = np.empty((number, len(mean))), 0
    for c in problem.sizes:
        share = mean[place : place + c - 1]
        spread = 1 - share @ share - (1 - share.sum()) ** 2
        effects = problem.slope_sd / np.sqrt(spread) * rng.standard_normal((number, c))
        slopes[:, place : place + c - 1] = effects[:, 1:] - effects[:, :1]
        place += c - 1
    sd = np.sqrt(np.diagonal(covariance)[place:])
    slopes[:, place:] = problem.slope_sd * rng.standard_normal((number, len(sd))) / sd
    level = problem.level + problem.level_sd * rng.standard_normal(number)
    theta = np.column_stack([level - slopes @ mean, slopes])
    user = np.linalg.solve(problem.change, theta.T)
    return dict(zip((*problem.x, "intercept"), user, strict=True))


def recoded(post: GeneralizedPosterior, design: Sequence[DesignColumn]) -> GeneralizedPosterior:
    """Return the posterior with the coefficients of another coding: the same draws."""
    change = reference_levels.change_of_coding(post.design, design, post.levels).toarray()
    names = tuple(c.name for c in design)
    old = np.stack([post.draws[c.name] for c in post.design])
    new = np.tensordot(change, old, axes=1)
    draws = dict(zip(names, new, strict=True))
    rhat, ess = {}, {}
    for name, values in draws.items():
        judged = diagnose_groups(values if post.keys is not None else values[None])
        rhat[name], ess[name] = (v if post.keys is not None else v[0] for v in judged)
    details = {k: v for k, v in post.details.items() if k != "shape_shift"}
    numbers = {c.name for c in design if not c.levels and c.name != "intercept"}
    if post.shape_shift:  # Those of numbers stay; levels have a law that is known.
        details["shape_shift"] = {
            k: np.asarray(v).tolist() for k, v in post.shape_shift.items() if k in numbers
        }
    return replace(
        post, draws=draws, rhat=rhat, ess=ess, details=details, x=names[:-1], design=tuple(design),
        moments=cast(DesignMoments, post.moments).recoded(change),
        prior_draws=None, without_noise=None,
    )  # fmt: skip
