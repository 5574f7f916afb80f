"""The analyst's part of exponential families: problem and methods (thesis chapter 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.artifact import ArgumentError, Release
from noisewise.inference.results import Posterior
from noisewise.models.base import Analyst, Method, Progress, Question
from noisewise.models.exponential_family import exact, gibbs, pooled
from noisewise.models.exponential_family.families import find_family
from noisewise.models.exponential_family.family import Conjugate, draw_parameters
from noisewise.models.exponential_family.posterior import FamilyPosterior, assemble_posterior
from noisewise.models.exponential_family.problem import (
    FamilyProblem,
    combine_problems,
    family_problem,
)

MAX_GROUPS_EXACT_NORMAL = 200
"""Groups of a normal column up to which ``exact``, a second each, is the default (chosen)."""


def naive(
    problem: FamilyProblem, seed: int, chains: int, draws: int, progress: Progress | None = None
) -> FamilyPosterior:
    """Draw from the conjugate posterior of the noisy sums, as if they were the exact, whole ones.

    For comparison only: intervals ignore the noise, and records that were dropped or clamped. A
    noisy sum need not be a possible one; the nearest possible one is then taken, and the share of
    groups where that happened is reported (errata E18).
    """
    family, n = problem.family, jnp.asarray(problem.n)
    z = jnp.asarray(problem.z)
    valid = family.valid(z, n)
    s = jnp.where(valid[:, None], z, family.nearest(z, n))
    given = Conjugate(*map(jnp.asarray, problem.conjugate)).updated(s, n)
    shape = (len(z), chains, draws)
    wide = Conjugate(*(jnp.broadcast_to(a[:, None, None], (*shape, a.shape[-1])) for a in given))
    theta = np.asarray(draw_parameters(family, jax.random.key(seed), wide))
    share = 1 - float(np.asarray(valid).mean())
    return assemble_posterior(problem, theta, "naive", {"projected_share": share})


def _exact(
    problem: FamilyProblem | pooled.PooledProblem, seed: int, chains: int, draws: int,
    progress: Progress | None = None,
) -> Posterior:  # fmt: skip
    """Draw from the exact posterior, of each group by itself or of pooled groups."""
    if isinstance(problem, pooled.PooledProblem):
        return pooled.run(problem, seed, chains, draws, progress)
    return exact.run(problem, seed, chains, draws, progress)


class FamilyAnalyst(Analyst[Any]):
    """One column's parameters, exactly where a method exists, else by Gibbs sampling."""

    methods: ClassVar[Mapping[str, Method[Any]]] = {
        "exact": _exact,
        "gibbs": gibbs.run,
        "naive": naive,
    }
    combining = ("exact",)
    pooling = ("exact",)

    def default_method(self, release: Release) -> str:
        """Return ``exact`` where there is one and it is quick, else ``gibbs``."""
        distribution = release.model.get("distribution")
        if distribution == "normal":
            groups = 1 if release.groups is None else len(release.groups.keys)
            slow = release.n is None or groups > MAX_GROUPS_EXACT_NORMAL
            return "gibbs" if slow else "exact"
        return "exact" if exact.has_exact_method(distribution) else "gibbs"

    def problem(
        self, releases: Sequence[Release], question: Question
    ) -> FamilyProblem | pooled.PooledProblem:
        """Read the sums of each release; several are combined where noise allows it."""
        if {"x", "y"} & set(question.words):
            raise ArgumentError("x, y: go with linear regression; this release has one column")
        question.only((), "exponential family")
        if question.pool is None:
            return combine_problems([family_problem(r, question.prior) for r in releases])
        prior = pooled.population_prior(question.prior)
        alone = combine_problems([family_problem(r, None, empty=True) for r in releases])
        return pooled.pooled_problem(alone, question.pool, prior)

    def restore(self, common: Mapping[str, Any], attributes: Mapping[str, Any]) -> FamilyPosterior:
        """Return a posterior that was read from a file."""
        kept = attributes["family"]
        known = {k: tuple(v) if isinstance(v, list) else v for k, v in kept["known"].items()}
        return FamilyPosterior(
            **common, y=attributes["y"], family=find_family(kept["name"])(**known)
        )


ANALYST = FamilyAnalyst()
"""The analyst's part of the model."""
