"""The analyst's part of generalized linear models: problem, methods, warnings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from noisewise.artifact import ArgumentError, Censored, Release
from noisewise.formula import parse
from noisewise.inference.results import Result
from noisewise.models.base import Analyst, Method, Progress, Question
from noisewise.models.generalized_linear import clt, clt_with_factors, naive
from noisewise.models.generalized_linear.links import LINKS
from noisewise.models.generalized_linear.posterior import GeneralizedPosterior, restored
from noisewise.models.generalized_linear.problem import GeneralizedProblem, generalized_problem
from noisewise.models.generalized_linear.problem_with_factors import (
    FactorsProblem,
    problem_with_factors,
)
from noisewise.models.linear_regression import LEAST_RECORDS
from noisewise.models.linear_regression.asked_formula import formula_asked, has_cells
from noisewise.models.linear_regression.design_matrix import table_columns

DEFAULT_LINKS = {"poisson-regression": "poisson"}
"""The link of a release where the analyst names none; of others it is logistic."""


def _dispatching(plain: Method[Any], with_factors: Method[Any]) -> Method[Any]:
    """Return a method that takes problems with factors too."""

    def chosen(
        problem: GeneralizedProblem | FactorsProblem,
        seed: int,
        chains: int,
        draws: int,
        progress: Progress | None = None,
    ) -> Result:
        run = with_factors if isinstance(problem, FactorsProblem) else plain
        return run(problem, seed, chains, draws, progress)

    return chosen


class GeneralizedAnalyst(Analyst[Any]):
    """Logistic, probit and Poisson regression of a released column on any others."""

    methods: ClassVar[Mapping[str, Method[Any]]] = {
        "clt": _dispatching(clt.run, clt_with_factors.run),
        "naive": _dispatching(naive.run, naive.run_with_factors),
    }
    posterior = GeneralizedPosterior
    least_records = LEAST_RECORDS

    def problem(
        self, releases: Sequence[Release], question: Question
    ) -> GeneralizedProblem | FactorsProblem:
        """Read the sums of the release; ``x`` and ``y``, or a formula, choose the columns."""
        question.only(("x", "y", "formula", "covariate_law", "link"), "a generalized linear model")
        release, words = releases[0], dict(question.words)
        law = words.pop("covariate_law", "box")
        link = words.pop("link", DEFAULT_LINKS.get(release.family, "logistic"))
        if link not in LINKS:
            raise ArgumentError(f"link: must be one of {', '.join(LINKS)}, not {link!r}")
        if has_cells(release):
            formula = formula_asked(release, question)
            return problem_with_factors(release, link, formula, question.prior, law=law)
        if "formula" in words:
            if len({"x", "y"} & set(words)):
                raise ArgumentError("formula: it says x and y already; leave these out")
            words |= _columns(words.pop("formula"), release)
        return generalized_problem(release, link, question.prior, law=law, **words)

    def cautions(
        self, problem: GeneralizedProblem | FactorsProblem, question: Question,
        releases: Sequence[Release],
    ) -> tuple[str, ...]:  # fmt: skip
        """Return warnings of bounds that cut values off, which these models take as they are."""
        x = problem.x
        if isinstance(problem, FactorsProblem):
            x = table_columns(problem.design)
        cut = [c for c in (*x, problem.y) if isinstance(releases[0].bounds.get(c), Censored)]
        return tuple(
            f"The bounds of {c} cut values off; a {problem.link} regression takes the values after "
            "clamping as they are"
            for c in cut
        )

    def restore(
        self, common: Mapping[str, Any], attributes: Mapping[str, Any]
    ) -> GeneralizedPosterior:
        """Return a posterior that was read from a file."""
        return restored(common, attributes)


def _columns(written: object, release: Release) -> dict[str, Any]:
    """Return x and y of a formula of plain columns; other terms were not released."""
    formula = parse(written)
    for term in formula.terms:
        if term.factors or len(term.numeric) > 1:
            raise ArgumentError(
                f"formula: {term.text} was not released; there are only sums of products of "
                f"{', '.join(release.block('gram').statistic.columns)}"
            )
    return {"x": [term.numeric[0] for term in formula.terms], "y": formula.response}


ANALYST = GeneralizedAnalyst()
"""The analyst's part of both models."""
