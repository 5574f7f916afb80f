"""The analyst's part of linear regression: problem, methods, warnings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from noisewise.artifact import ArgumentError, Censored, Release
from noisewise.artifact.clamping import clamping_in_words
from noisewise.models.base import Analyst, Method, Question
from noisewise.models.linear_regression import (
    LEAST_RECORDS,
    exact,
    gibbs_methods,
    individual_mcmc,
    naive,
    prior_check,
)
from noisewise.models.linear_regression.censoring import KNOWING_CUTS
from noisewise.models.linear_regression.posterior import RegressionPosterior
from noisewise.models.linear_regression.problem import (
    RegressionProblem,
    combined_problem,
    regression_problem,
)


class RegressionAnalyst(Analyst[RegressionProblem]):
    """Any released column on any others, by the exact sampler or one of the paper's."""

    methods: ClassVar[Mapping[str, Method[Any]]] = {
        "exact": exact.run,
        "gibbs-update": gibbs_methods.run_update,
        "gibbs-prior": gibbs_methods.run_prior,
        "gibbs-noisy": gibbs_methods.run_noisy,
        "mcmc-individual": individual_mcmc.run,
        "naive": naive.run,
    }
    combining = ("exact",)
    least_records = LEAST_RECORDS

    def default_method(self, release: Release) -> str:
        """Return ``exact``: its cost does not grow with n."""
        return "exact"

    def problem(self, releases: Sequence[Release], question: Question) -> RegressionProblem:
        """Read the Gram matrix of each release; several multiply their likelihoods."""
        question.only(("x", "y"), "linear regression")
        problems = [regression_problem(r, question.prior, **question.words) for r in releases]
        if question.prior and problems[0].cuts is not None:
            raise ArgumentError(
                "prior: leave it out where bounds cut values off. It would be taken for one of "
                "coefficients after clamping, and is meant for those before"
            )
        return problems[0] if len(problems) == 1 else combined_problem(problems)

    def cautions(
        self, problem: RegressionProblem, question: Question, releases: Sequence[Release]
    ) -> tuple[str, ...]:
        """Return warnings of clamped columns, and of columns too narrow for a default prior."""
        natural = [
            c for c in (*problem.x, problem.y) if not isinstance(releases[0].bounds[c], Censored)
        ]
        warnings = list(clamping_in_words(releases[0], natural, taken_as_normal=True))
        if problem.cuts is not None and question.method not in (None, *KNOWING_CUTS):
            warnings.append(
                f"method: {question.method} takes values at bounds that cut them off as they are; "
                "its results are of the values after clamping. exact infers those before"
            )
        # The default of exact knows no units and fits all; those of other methods do not.
        given = {"response", "covariates"} <= {*(question.prior or ())}
        if not given and not (problem.scale_free and question.method in (None, "exact")):
            warnings += filter(None, [prior_check.caution(problem)])
        return tuple(warnings)

    def restore(
        self, common: Mapping[str, Any], attributes: Mapping[str, Any]
    ) -> RegressionPosterior:
        """Return a posterior that was read from a file."""
        return RegressionPosterior(**common, x=tuple(attributes["x"]), y=attributes["y"])


ANALYST = RegressionAnalyst()
"""The analyst's part of the model."""
