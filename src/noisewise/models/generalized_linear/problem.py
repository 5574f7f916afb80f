"""A generalized linear model's problem: a release's noisy sums in the box, its units, its prior.

Columns stand in two orders: that of the user's x, and the sampler's, in which indicators (columns
that are at one of their bounds in every record) come first (``covariate_nodes.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from noisewise.artifact import ArgumentError, Release
from noisewise.artifact.readable_numbers import in_full
from noisewise.models.generalized_linear.covariate_nodes import order_of
from noisewise.models.generalized_linear.links import LINKS
from noisewise.models.linear_regression.prior_check import hidden_columns
from noisewise.models.linear_regression.problem import (
    RegressionProblem,
    Units,
    regression_problem,
)
from noisewise.numerics.gram_packing import (
    number_of_sums,
    pack,
    square_positions,
    total_positions,
    unpack,
)
from noisewise.priors import Predictor

BINARY_DEVIATIONS = {"gaussian": 5.0, "laplace": 8.0}
"""Deviations of its noise by which the sum of squares of a response of 0 and 1 may be off: of a
hundred thousand such releases about one is refused, or fewer (chosen)."""
INDICATOR_DEVIATIONS = 4.0
"""The same of a covariate that is taken for an indicator (chosen)."""
CERTAIN_SHARE = 0.25
"""Doubt in Σ x², as a share of n (1 - mean²), up to which a column can be told to be an indicator
(chosen)."""
LEVEL_SD = 2.5
"""Prior deviation of the predictor at the records' mean (that of rstanarm's intercepts)."""
SLOPES_SD = {"logistic": 2.5, "probit": 1.5, "poisson": 1.0}
"""Prior deviation that the slopes give to the predictor (logistic: rstanarm's 2.5; probits are
about 0.6 of logits; rates that a deviation of all columns multiplies by e^±1)."""


class PriorScales:
    """The prior of a problem, in numbers and in words: what its ``Predictor`` leaves open."""

    link: str
    prior: Predictor

    if TYPE_CHECKING:

        @property
        def largest_count(self) -> float:
            """Return the upper bound of the response."""
            ...

        @property
        def terms(self) -> int:
            """Return how many covariates share the variance that the slopes give."""
            ...

    @property
    def counts(self) -> bool:
        """Return whether the response is a count, and not 0 or 1."""
        return LINKS[self.link].counts

    @property
    def level(self) -> float:
        """Return the prior mean of the predictor at the records' mean."""
        if self.prior.level is not None:
            return self.prior.level
        # Between one event and as many as the bounds allow, on the scale of logarithms.
        return 0.5 * float(np.log(self.largest_count)) if self.counts else 0.0

    @property
    def level_sd(self) -> float:
        """Return its prior deviation."""
        if self.prior.level_sd is not None:
            return self.prior.level_sd
        return max(LEVEL_SD, self.level) if self.counts else LEVEL_SD

    @property
    def slope_sd(self) -> float:
        """Return the prior deviation of a slope per standard deviation of its column."""
        whole = SLOPES_SD[self.link] if self.prior.slopes_sd is None else self.prior.slopes_sd
        return whole / float(np.sqrt(self.terms))

    @property
    def prior_in_words(self) -> str:
        """Return the prior, for people and files."""
        where = "log rate" if self.counts else "predictor"
        return (
            f"{where} at the records' mean N({self.level:.3g}, {self.level_sd:.3g}²), slopes per "
            f"standard deviation N(0, {self.slope_sd:.3g}²); covariates anywhere, scales unknown"
        )


@dataclass(frozen=True)
class GeneralizedProblem(PriorScales):
    """Everything a method needs; arrays lead with the group, columns in the sampler's order.

    ``covariates`` holds the noisy sums of products and totals of x in the order of
    ``numerics.gram_packing``, and n after them where it is secret; ``response`` those of y and of
    y x. ``order`` gives the position in ``x`` of each of the sampler's columns. ``law`` is the law
    of the covariates: "box" (made from bounds and moments) or "normal". ``hidden`` names covariates
    whose variation the noise hides.
    """

    link: str
    x: tuple[str, ...]
    y: str
    order: np.ndarray
    indicators: np.ndarray
    covariates: np.ndarray
    response: np.ndarray
    n: np.ndarray
    noisy_n: bool
    noise_scale: float
    mechanism: str
    units: Units
    keys: tuple[str | int, ...] | None
    prior: Predictor
    law: str = "box"
    hidden: tuple[str, ...] = ()

    @property
    def largest_count(self) -> float:
        """Return the upper bound of the response."""
        return float(self.units.centre[-1] + self.units.half[-1])

    @property
    def terms(self) -> int:
        """Return how many covariates there are."""
        return len(self.x)


def generalized_problem(
    release: Release,
    link: str,
    prior: object = None,
    *,
    x: str | Iterable[str] | None = None,
    y: str | None = None,
    law: str = "box",
) -> GeneralizedProblem:
    """Return the model of a released response given any other released columns.

    Args:
        release: with a Gram matrix.
        link: one of ``LINKS``.
        prior: a ``Predictor``, or ``{"predictor": Predictor}``; None for the default.
        x: covariates; None for those the owner named.
        y: response; None for the one the owner named.
        law: of the covariates, "box" or "normal".
    """
    if law not in ("box", "normal"):
        raise ArgumentError(f"covariate_law: must be 'box' or 'normal', not {law!r}")
    linear = regression_problem(release, None, x, y)
    q = len(linear.x) + 1
    _check_response(linear, link)
    if not linear.noisy_n and (linear.n < q + 1).any():
        raise ArgumentError(
            f"release: a {link} regression on {q - 1} covariates needs at least {q + 1} records in "
            "every group"
        )
    products, totals = unpack(linear.z[:, : number_of_sums(q)], q)
    indicators = _indicators(linear)
    order = order_of(indicators)
    packed = pack(products[:, order[:, None], order], totals[:, order])
    if linear.noisy_n:
        packed = np.concatenate([packed, linear.z[:, -1:]], axis=1)
    response = np.concatenate([totals[:, -1:], products[:, -1, order]], axis=1)
    return GeneralizedProblem(
        link, linear.x, linear.y, order, indicators[order], packed, response, linear.n,
        linear.noisy_n, linear.noise_scale, linear.mechanism, linear.units, linear.keys,
        checked_prior(prior), law, tuple(c for c in hidden_columns(linear) if c in linear.x),
    )  # fmt: skip


def checked_prior(given: object) -> Predictor:
    """Return the prior, after checking what was given."""
    if given is None:
        return Predictor()
    if isinstance(given, Mapping):
        if set(given) != {"predictor"}:
            raise ArgumentError("prior: of this model it is {'predictor': nw.priors.Predictor(…)}")
        given = given["predictor"]
    if not isinstance(given, Predictor):
        raise ArgumentError(f"prior: must be a nw.priors.Predictor, not {type(given).__name__}")
    return given


def _noise_sd(problem: RegressionProblem) -> float:
    scale = np.sqrt(2.0) if problem.mechanism == "laplace" else 1.0
    return float(scale * problem.noise_scale * (np.sqrt(2.0) if problem.noisy_n else 1.0))


def _records(problem: RegressionProblem) -> np.ndarray:
    """Return n (group), or its noisy value, which errs on its own."""
    return np.asarray(problem.z[:, -1] if problem.noisy_n else problem.n)


def _check_response(problem: RegressionProblem, link: str) -> None:
    """Refuse a response that cannot be what the model says."""
    centre, half = float(problem.units.centre[-1]), float(problem.units.half[-1])
    lower, upper = centre - half, centre + half
    if LINKS[link].counts:
        if lower != 0 or upper < 1:
            raise ArgumentError(
                f"model: a poisson regression needs counts, with bounds from 0 to a number of at "
                f"least 1; {problem.y!r} has ({in_full(lower)}, {in_full(upper)})"
            )
        return
    if (lower, upper) != (0.0, 1.0):
        raise ArgumentError(
            f"model: a {link} regression needs a response that is 0 or 1, with bounds (0, 1); "
            f"{problem.y!r} has ({in_full(lower)}, {in_full(upper)})"
        )
    if not problem.z.any():
        return  # A blank release, as checks and plans make it: no data, and no noise.
    squares = problem.z[:, square_positions(len(problem.x) + 1)[-1]]
    off = np.abs(squares - _records(problem)) / _noise_sd(problem)
    if off.max() > _limit(problem):
        raise ArgumentError(
            f"model: {problem.y!r} is not 0 or 1 in every record: its sum of squares lies "
            f"{off.max():.0f} noise deviations from what it would then be"
        )


def _limit(problem: RegressionProblem) -> float:
    """Return the noise deviations that are too many in any group, by the noise's own tails."""
    more, allowed = np.log(len(problem.n)), BINARY_DEVIATIONS[problem.mechanism]
    if problem.mechanism == "gaussian":
        return float(np.sqrt(allowed**2 + 2 * more))
    return float(allowed + more / (2.0 if problem.noisy_n else np.sqrt(2.0)))


def _indicators(problem: RegressionProblem) -> np.ndarray:
    """Return which covariates are at one of their bounds in every record, as far as can be told."""
    d = len(problem.x)
    squares = problem.z[:, square_positions(d + 1)[:-1]].sum(axis=0)
    n, groups = float(_records(problem).sum()), len(problem.n)
    error = INDICATOR_DEVIATIONS * _noise_sd(problem) * np.sqrt(groups)
    mean = problem.z[:, total_positions(d + 1)[:-1]].sum(axis=0) / n
    # A column that keeps near one bound has nearly the same sum of squares.
    certain = error < CERTAIN_SHARE * n * (1 - mean**2)
    return np.asarray(certain & (np.abs(squares - n) < error + 1e-6 * n))


def subset(problem: GeneralizedProblem, rows: np.ndarray) -> GeneralizedProblem:
    """Return the problem of some groups."""
    return replace(
        problem, covariates=problem.covariates[rows], response=problem.response[rows],
        n=problem.n[rows], keys=problem.keys and tuple(problem.keys[i] for i in rows),
    )  # fmt: skip
