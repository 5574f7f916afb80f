"""Coefficients of a formula, given the sums behind the noise.

Where the formula spans the atoms of the response, as the owner's own does unless a factor
interacts with some covariates and not with others, the prior of
``factor_density.py`` is used with the scales that were sampled with the sums. Any other formula has
a weak prior of its own: slopes and effects of a tenth of a record's information.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from noisewise.models.linear_regression.factor_density import Moments
from noisewise.models.linear_regression.factor_problem import FactorProblem, atoms_of_design
from noisewise.models.linear_regression.posterior import RegressionPosterior
from noisewise.models.linear_regression.scale_free import ERROR_SHAPE

WEAK = 0.1
"""Records' worth of information of the prior of a formula that is not the owner's (chosen)."""
RIDGE = 1e-13
"""Added to the diagonal of correlations (chosen): the noise may hide that a column varies."""
WORDS = (
    "each column's scale unknown; levels of a factor alike, their spread learnt; slopes of either "
    "sign, their size unknown"
)
"""The prior in words."""
WEAK_WORDS = "slopes and effects of either sign, a tenth of a record's worth of information"
"""The prior of any other formula in words."""


def draw_coefficients(
    rng: np.random.Generator, problem: FactorProblem, at: Moments
) -> tuple[np.ndarray, np.ndarray]:
    """Draw (parameter, chain, draw) in the user's units, and median deviations given the sums."""
    design, response = atoms_of_design(problem)
    gram = np.asarray(at.gram)
    batch = gram.shape[:2]
    flat = gram.reshape(-1, *gram.shape[2:])
    n = np.asarray(at.n).reshape(-1)
    own = owner_response(problem, design, response)
    if own is not None:
        precision = np.asarray(at.precision).reshape(-1, *np.shape(at.precision)[2:])
        rate = np.asarray(at.rate).reshape(-1)
        theta, variance, spread = _conjugate(rng, flat, n, precision, rate)
        half = problem.bounds[-1].half_width
        back, shift = own
        theta = half * theta @ back.T
        theta[:, -1] += shift
        deviations = half * np.sqrt(np.einsum("ij,tjk,ik->ti", back, spread, back))
        variance = half**2 * variance
    else:
        drawn, widths = draw_given_gram(rng, problem, flat, n)
        return drawn.reshape(-1, *batch), widths
    drawn = np.column_stack([theta, variance]).T.reshape(-1, *batch)
    return drawn, _median_widths(deviations, variance, n)


def draw_given_gram(
    rng: np.random.Generator, problem: FactorProblem, gram: np.ndarray, n: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Draw (parameter, draw) of any formula under a weak prior, and median deviations.

    Args:
        rng: the analyst's own randomness.
        problem: with the formula.
        gram: Gram matrices of the atoms (draw, atom, atom), the owner's response last.
        n: records (draw).
    """
    both = np.column_stack(atoms_of_design(problem))
    moved = both.T @ gram @ both
    inner = moved[:, :-1, :-1]
    # The variance that other columns leave of each: a column of years is not its distance from 0.
    unique = 1 / (n[:, None] * (_inverse_root(inner) ** 2).sum(axis=1))
    precision = np.zeros_like(inner)
    steps = np.arange(inner.shape[-1] - 1)
    precision[:, steps, steps] = WEAK * unique[:, steps]
    total = moved[:, -1, -1] - moved[:, -2, -1] ** 2 / n
    rate = 1e-3 * np.maximum(total, 1e-12) / n
    theta, variance, spread = _conjugate(rng, moved, n, precision, rate)
    deviations = np.sqrt(np.diagonal(spread, axis1=1, axis2=2))
    return np.column_stack([theta, variance]).T, _median_widths(deviations, variance, n)


def _median_widths(deviations: np.ndarray, variance: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Return median deviations of the coefficients and of σ², given the sums."""
    sigma2 = variance / np.sqrt(ERROR_SHAPE - 0.5 + n / 2)
    return np.asarray(np.median(np.column_stack([deviations, sigma2]), axis=0))


def owner_response(
    problem: FactorProblem, design: np.ndarray, response: np.ndarray
) -> tuple[np.ndarray, float] | None:
    """Return the map from atoms' coefficients to the design's, and the response's centre.

    None where the response is another column, or the design does not span the atoms.
    """
    if response[-1] == 0 or problem.formula.response != problem.statistic.numeric[-1][0]:
        return None
    inner = design[:-1]
    if design[-1].any() or inner.shape[0] != inner.shape[1]:
        return None
    if np.linalg.matrix_rank(inner / np.abs(inner).max(axis=0)) < len(inner):
        return None
    return np.linalg.inv(inner), problem.bounds[-1].centre


def _conjugate(
    rng: np.random.Generator,
    gram: np.ndarray,
    n: np.ndarray,
    precision: np.ndarray,
    rate: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw (θ, σ²) given Gram matrices with the response last; and Cov(θ | sums) (draw, …)."""
    cross = gram[:, :-1, -1]
    root = _inverse_root(precision + gram[:, :-1, :-1])
    inverse = np.swapaxes(root, 1, 2) @ root
    mean = np.einsum("tij,tj->ti", inverse, cross)
    # y'y - θ'Λn θ; where the noise hides y, rounding may take more than there is.
    left = gram[:, -1, -1] - np.einsum("ti,ti->t", mean, cross)
    bn = rate + 0.5 * np.maximum(left, 0.0)
    shape = ERROR_SHAPE - 0.5 + n / 2
    variance = bn / rng.standard_gamma(shape)
    white = rng.standard_normal(mean.shape)
    theta = mean + np.sqrt(variance)[:, None] * np.einsum("tji,tj->ti", root, white)
    return theta, variance, (bn / np.maximum(shape - 1, 0.5))[:, None, None] * inverse


def _inverse_root(gram: np.ndarray) -> np.ndarray:
    """Return L⁻¹ of Gram matrices L L' whose columns may be as good as dependent."""
    scale = np.sqrt(np.diagonal(gram, axis1=1, axis2=2))
    unit = gram / (scale[:, :, None] * scale[:, None]) + RIDGE * np.eye(gram.shape[-1])
    return np.asarray(np.linalg.inv(np.linalg.cholesky(unit)) / scale[:, None])


def posterior_of_factors(
    problem: FactorProblem,
    user: np.ndarray,
    rhat: np.ndarray,
    ess: np.ndarray,
    widths: np.ndarray | None,
    method: str,
    details: Mapping[str, Any],
) -> RegressionPosterior:
    """Return the posterior of draws (parameter, group, chain, draw) in the user's units."""
    names = (*problem.x, "intercept", "sigma2")
    single = problem.keys is None
    own = method == "exact" and owner_response(problem, *atoms_of_design(problem)) is not None

    def named(values: np.ndarray) -> dict[str, Any]:
        return {name: v[0] if single else v for name, v in zip(names, values, strict=True)}

    return RegressionPosterior(
        draws=named(user),
        rhat=named(rhat),
        ess=named(ess),
        method=method,
        x=problem.x,
        y=problem.y,
        keys=problem.keys,
        prior=WORDS if own else WEAK_WORDS,
        details=details,
        latent={},
        prior_draws=None,
        without_noise=None if widths is None else partial(dict, named(widths)),
    )
