"""The analyst's part: from noisy sums to the posterior of the means.

In the box, where a column's bounds are [-1, 1], a noisy sum is

    z = n μ + √n spread ζ + noise,   μ ~ uniform(-1, 1),  ζ ~ N(0, 1),

so the likelihood of μ is the density of normal plus privacy noise, and one grid gives the
posterior.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from noisewise.artifact import Release
from noisewise.inference import Posterior, Prediction
from noisewise.inference.results import by_name
from noisewise.models import Analyst, Method, Question
from noisewise.models.base import Progress
from noisewise.numerics.convergence import diagnose_groups
from noisewise.numerics.distributions import noisy_normal_log_density

DEFAULT_SPREAD = 0.3
"""Standard deviation of the records, in half widths of their bounds (chosen)."""
GRID = np.linspace(-1, 1, 4001)
"""Means at which the posterior is computed."""


@dataclass(frozen=True, eq=False)
class TwoMeansProblem:
    """Noisy sums ``z`` (group, column) in the box, of ``n`` records, and their units."""

    columns: tuple[str, ...]
    z: np.ndarray
    n: np.ndarray
    noise_scale: float
    mechanism: str
    spread: float
    centre: np.ndarray
    half: np.ndarray
    keys: tuple[str | int, ...] | None


@dataclass(frozen=True, eq=False, repr=False)
class TwoMeansPosterior(Posterior):
    """Draws of the two means, named as their columns."""

    model_name = "two-means"
    columns: tuple[str, ...]
    spread: Mapping[str, float]

    @property
    def title(self) -> str:
        """Return what the posterior is of."""
        return f"means of {' and '.join(self.columns)}"

    def attributes(self) -> dict[str, object]:
        """Return what a file keeps beside the draws."""
        return {"columns": list(self.columns), "spread": dict(self.spread)}

    def predict(self, new_x: Mapping[str, float] | None = None, *, seed: int = 0) -> Prediction:
        """Return the distribution of a new record's first column minus its second."""
        one, two = (self.draws[c] for c in self.columns)
        scatter = np.random.default_rng(seed).standard_normal(one.shape)
        first, second = (self.spread[c] for c in self.columns)
        deviation = np.hypot(first, second)
        return Prediction(one - two + deviation * scatter, one - two)


def two_means_problem(release: Release, question: Question) -> TwoMeansProblem:
    """Read the sums of a release."""
    question.only(("spread",), "two-means model")
    block = release.block("gram")
    columns = block.statistic.columns
    rows = [block.statistic.names.index(c) for c in columns]
    sizes = block.scaled[block.statistic.names.index("n")] if release.n is None else release.n
    bounds = [release.bounds[c] for c in columns]
    return TwoMeansProblem(
        columns=columns,
        z=block.scaled[rows].T,
        n=np.maximum(np.atleast_1d(np.asarray(sizes, dtype=float)), 1.0),
        noise_scale=float(block.noise_scales[0]),
        mechanism=block.noise.mechanism,
        spread=float(question.words.get("spread", DEFAULT_SPREAD)),
        centre=np.array([b.centre for b in bounds]),
        half=np.array([b.half_width for b in bounds]),
        keys=None if release.groups is None else release.groups.keys,
    )


def log_likelihood(problem: TwoMeansProblem, residual: np.ndarray, n: float) -> np.ndarray:
    """Return log p(z | μ) up to a constant, at residuals z - n μ."""
    variance = np.full_like(residual, n * problem.spread**2)
    return noisy_normal_log_density(residual, variance, problem.noise_scale, problem.mechanism)


def exact(
    problem: TwoMeansProblem, seed: int, chains: int, draws: int, progress: Progress | None = None
) -> TwoMeansPosterior:
    """Draw from the posterior on a grid, by its inverse distribution function."""
    rng = np.random.default_rng(seed)
    groups = len(problem.z)
    box = np.empty((2, groups, chains, draws))
    for g in range(groups):
        for j in range(2):
            weights = log_likelihood(problem, problem.z[g, j] - problem.n[g] * GRID, problem.n[g])
            cumulative = np.cumsum(np.exp(weights - weights.max()))
            uniform = rng.random((chains, draws)) * cumulative[-1]
            box[j, g] = np.interp(uniform, cumulative, GRID)
        if progress is not None:
            progress(g + 1, groups)
    user = problem.centre[:, None, None, None] + problem.half[:, None, None, None] * box
    rhat, ess = zip(*map(diagnose_groups, user), strict=True)
    columns, keys = problem.columns, problem.keys

    def prior_draws(number: int) -> dict[str, np.ndarray]:
        uniform = np.random.default_rng(0).uniform(-1, 1, (2, number))
        user = problem.centre[:, None] + problem.half[:, None] * uniform
        return dict(zip(columns, user, strict=True))

    return TwoMeansPosterior(
        draws=by_name(columns, user, keys),
        rhat=by_name(columns, rhat, keys),
        ess=by_name(columns, ess, keys),
        method="exact",
        columns=columns,
        spread=dict(zip(columns, (problem.half * problem.spread).tolist(), strict=True)),
        keys=keys,
        prior="means uniform on the bounds",
        prior_draws=prior_draws,
    )


class TwoMeansAnalyst(Analyst[TwoMeansProblem]):
    """One exact method."""

    methods: ClassVar[Mapping[str, Method[Any]]] = {"exact": exact}
    posterior = TwoMeansPosterior

    def problem(self, releases: Sequence[Release], question: Question) -> TwoMeansProblem:
        """Read one release."""
        (release,) = releases
        return two_means_problem(release, question)


ANALYST = TwoMeansAnalyst()
