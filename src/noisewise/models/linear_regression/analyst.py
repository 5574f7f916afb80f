"""The analyst's part of linear regression: problem, methods, warnings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, cast

import numpy as np

from noisewise.artifact import ArgumentError, Censored, Release
from noisewise.artifact.clamping import clamping_in_words, left_out_in_words
from noisewise.formula import parse
from noisewise.inference.population import PublicFeatures
from noisewise.inference.results import MAX_NAMED, Posterior, Result
from noisewise.inference.slabs import GROUPS_PER_SLAB, SlabMethod
from noisewise.models.base import Analyst, Method, Progress, Question
from noisewise.models.linear_regression import (
    LEAST_RECORDS,
    batching,
    exact,
    factor_exact,
    factor_naive,
    gibbs_methods,
    individual_mcmc,
    naive,
    prior_check,
)
from noisewise.models.linear_regression.asked_formula import formula_asked, has_cells
from noisewise.models.linear_regression.censoring import KNOWING_CUTS
from noisewise.models.linear_regression.factor_problem import FactorProblem, factor_problem
from noisewise.models.linear_regression.level_counts import hidden_levels_in_words
from noisewise.models.linear_regression.pooled_posterior import PooledQuestion, population_prior
from noisewise.models.linear_regression.posterior import (
    RegressionPosterior,
    clamping_by_formula,
    restored,
)
from noisewise.models.linear_regression.problem import (
    RegressionProblem,
    combined_problem,
    regression_problem,
)

NAIVE_GROUPS_PER_SLAB = 1024
"""Groups of a slab of method ``naive`` (chosen), which holds the draws of a slab."""
FACTOR_METHODS: Mapping[str, Callable[..., Posterior]] = {
    "exact": factor_exact.run,
    "naive": factor_naive.run,
}
"""The methods of regressions with factors."""


def _dispatching(name: str, run: Method[RegressionProblem]) -> Method[Any]:
    """Return a method that also takes problems of pooled groups, and those with factors.

    The posterior of the latter has the design.
    """

    def chosen(
        problem: RegressionProblem | FactorProblem | PooledQuestion,
        seed: int,
        chains: int,
        draws: int,
        progress: Progress | None = None,
    ) -> Result:
        if isinstance(problem, PooledQuestion):
            return problem.run(seed, chains, draws, progress)
        if not isinstance(problem, FactorProblem):
            return run(problem, seed, chains, draws, progress)
        post = cast(
            RegressionPosterior, FACTOR_METHODS[name](problem, seed, chains, draws, progress)
        )
        levels = {f: tuple(problem.levels[f]) for f in problem.formula.factors}
        return replace(post, design=problem.design, levels=levels)

    return chosen


class RegressionAnalyst(Analyst[Any]):
    """Infers a released column from any others, by the exact sampler or the paper's."""

    methods: ClassVar[Mapping[str, Method[Any]]] = {
        "exact": _dispatching("exact", exact.run),
        "gibbs-update": gibbs_methods.run_update,
        "gibbs-prior": gibbs_methods.run_prior,
        "gibbs-noisy": gibbs_methods.run_noisy,
        "mcmc-individual": individual_mcmc.run,
        "naive": _dispatching("naive", naive.run),
    }
    combining = ("exact",)
    pooling = ("exact",)
    least_records = LEAST_RECORDS

    def default_method(self, release: Release) -> str:
        """Return ``exact``: its cost does not grow with n."""
        return "exact"

    def problem(
        self, releases: Sequence[Release], question: Question
    ) -> RegressionProblem | FactorProblem | PooledQuestion:
        """Read the sums of each release; several multiply their likelihoods.

        A Gram release is queried by ``x`` and ``y``, or by a formula of plain columns; a release
        with factors, by a formula.
        """
        question.only(("x", "y", "formula"), "linear regression")
        if "formula" in question.words and len(question.words) > 1:
            raise ArgumentError("formula: it says x and y already; leave these out")
        if has_cells(releases[0]):
            return self._of_cells(releases, question)
        if question.pool is not None:
            return self._pooled(releases, question, question.pool)
        words = _plain_columns(releases[0], question)
        problems = [regression_problem(r, question.prior, **words) for r in releases]
        if question.prior and problems[0].cuts is not None:
            raise ArgumentError(
                "prior: leave it out where bounds cut values off. It would be taken for one of "
                "coefficients after clamping, and is meant for those before"
            )
        return problems[0] if len(problems) == 1 else combined_problem(problems)

    def _pooled(
        self, releases: Sequence[Release], question: Question, features: PublicFeatures
    ) -> PooledQuestion:
        """Return the problem of groups that learn from each other."""
        words = _plain_columns(releases[0], question)
        problems = [regression_problem(r, None, **words, empty=True) for r in releases]
        problem = problems[0] if len(problems) == 1 else combined_problem(problems)
        prior = population_prior(question.prior, (*problem.x, "intercept"))
        return PooledQuestion(problem, features, prior)

    def _of_cells(self, releases: Sequence[Release], question: Question) -> FactorProblem:
        """Return the problem of sums within cells, for the methods that take one."""
        if question.pool is not None:
            raise ArgumentError("pool: regressions with factors do not pool; name plain columns")
        if len(releases) > 1:
            raise ArgumentError(
                "release: several releases with factors are not combined, of the same records or "
                "of others; give one"
            )
        if question.method not in (None, *FACTOR_METHODS):
            able = " or ".join(FACTOR_METHODS)
            raise ArgumentError(f"method: {question.method} takes no factors; ask for {able}")
        return factor_problem(releases[0], formula_asked(releases[0], question), question.prior)

    def cautions(
        self,
        problem: RegressionProblem | FactorProblem | PooledQuestion,
        question: Question,
        releases: Sequence[Release],
    ) -> tuple[str, ...]:
        """Return warnings of clamped columns, of hidden levels, and of columns too narrow."""
        if isinstance(problem, FactorProblem):
            formula = problem.formula
            columns = [c for c in formula.columns if c not in formula.factors]
            hidden = hidden_levels_in_words(releases[0], formula.factors)
            gaps = left_out_in_words(releases[0])
            return (*clamping_by_formula(releases[0], columns), *hidden, *gaps)
        pooled = isinstance(problem, PooledQuestion)
        few: tuple[str, ...] = ()
        if isinstance(problem, PooledQuestion):
            problem = problem.regression
            few = _perhaps_too_few(problem)
        natural = [
            c for c in (*problem.x, problem.y)
            if not isinstance(releases[0].bounds.get(c), Censored)
        ]  # fmt: skip
        warnings = [*few, *clamping_in_words(releases[0], natural, taken_as_normal=True)]
        if problem.cuts is not None and question.method not in (None, *KNOWING_CUTS):
            warnings.append(
                f"method: {question.method} takes values at bounds that cut them off as they are; "
                "its results are of the values after clamping. exact infers those before"
            )
        # The default of exact knows no units and fits all; those of other methods do not.
        given = {"response", "covariates"} <= {*(question.prior or ())}
        if (
            not pooled
            and not given
            and not (problem.scale_free and question.method in (None, "exact"))
        ):
            warnings += filter(None, [prior_check.caution(problem)])
        return (*warnings, *(words for release in releases for words in left_out_in_words(release)))

    def in_slabs(
        self, problem: RegressionProblem | FactorProblem | PooledQuestion, method: str
    ) -> SlabMethod | None:
        """Return how groups without factors are summed up by ``exact`` and ``naive``."""
        if not isinstance(problem, RegressionProblem) or problem.keys is None:
            return None
        if method == "exact":
            # At least a batch, which on a GPU is larger: less would leave it idle.
            size = max(GROUPS_PER_SLAB, batching.batch_sizes()[-1])
            return SlabMethod(exact.outline(problem), exact.summarise, size)
        if method == "naive":
            return SlabMethod(naive.outline(problem), naive.summarise, NAIVE_GROUPS_PER_SLAB)
        return None

    def restore(
        self, common: Mapping[str, Any], attributes: Mapping[str, Any]
    ) -> RegressionPosterior:
        """Return a posterior that was read from a file."""
        return restored(common, attributes)


def _perhaps_too_few(problem: RegressionProblem) -> tuple[str, ...]:
    """Return a sentence on groups of secret size that may hold hardly any records."""
    least = len(problem.x) + 2
    if not problem.noisy_n or problem.keys is None:
        return ()
    few = np.flatnonzero(problem.z[:, -1] < least + 2 * problem.noise_scale)
    if not len(few):
        return ()
    named = ", ".join(str(problem.keys[i]) for i in few[:MAX_NAMED])
    return (
        f"pool: {len(few)} of {len(problem.keys)} groups may have fewer than {least} records, and "
        "pooled regressions take every group to have as many: what is said of these, and what the "
        f"population learns from them, is wrong where they have fewer. Leave them out by groups=: "
        f"{named}{', …' if len(few) > MAX_NAMED else ''}",
    )


def _plain_columns(release: Release, question: Question) -> dict[str, Any]:
    """Return x and y of a formula of plain columns; other terms were not released."""
    if "formula" not in question.words:
        return dict(question.words)
    formula = parse(question.words["formula"])
    for term in formula.terms:
        if term.factors or len(term.numeric) > 1:
            raise ArgumentError(
                f"formula: {term.text} was not released; there are only sums of products of "
                f"{', '.join(release.block('gram').statistic.columns)}, all records together"
            )
    return {"x": [term.numeric[0] for term in formula.terms], "y": formula.response}


ANALYST = RegressionAnalyst()
"""The analyst's part of the model."""
