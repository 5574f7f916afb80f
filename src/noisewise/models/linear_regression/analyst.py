"""The analyst's part of linear regression: problem, methods, warnings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from noisewise.artifact import Release
from noisewise.models.base import Analyst, Method, Question
from noisewise.models.linear_regression import (
    LEAST_RECORDS,
    exact,
    gibbs_methods,
    individual_mcmc,
    naive,
    prior_check,
)
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
        return problems[0] if len(problems) == 1 else combined_problem(problems)

    def cautions(self, problem: RegressionProblem, question: Question) -> tuple[str, ...]:
        """Return a warning where a column uses so little of its bounds that a default misfits.

        The default of ``exact`` knows no units and fits all; defaults of other methods do not.
        """
        if problem.scale_free and question.method in (None, "exact"):
            return ()
        if {"response", "covariates"} <= {*(question.prior or ())}:
            return ()
        warning = prior_check.caution(problem)
        return () if warning is None else (warning,)

    def restore(
        self, common: Mapping[str, Any], attributes: Mapping[str, Any]
    ) -> RegressionPosterior:
        """Return a posterior that was read from a file."""
        return RegressionPosterior(**common, x=tuple(attributes["x"]), y=attributes["y"])


ANALYST = RegressionAnalyst()
"""The analyst's part of the model."""
