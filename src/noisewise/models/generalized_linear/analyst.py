"""The analyst's part of generalized linear models: problem, methods, warnings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from noisewise.artifact import ArgumentError, Censored, Release
from noisewise.formula import parse
from noisewise.models.base import Analyst, Method, Question
from noisewise.models.generalized_linear import clt, naive
from noisewise.models.generalized_linear.links import LINKS
from noisewise.models.generalized_linear.posterior import GeneralizedPosterior, restored
from noisewise.models.generalized_linear.problem import GeneralizedProblem, generalized_problem
from noisewise.models.linear_regression import LEAST_RECORDS

DEFAULT_LINKS = {"poisson-regression": "poisson"}
"""The link of a release where the analyst names none; of others it is logistic."""


class GeneralizedAnalyst(Analyst[GeneralizedProblem]):
    """Logistic, probit and Poisson regression of a released column on any others."""

    methods: ClassVar[Mapping[str, Method[Any]]] = {"clt": clt.run, "naive": naive.run}
    posterior = GeneralizedPosterior
    least_records = LEAST_RECORDS

    def problem(self, releases: Sequence[Release], question: Question) -> GeneralizedProblem:
        """Read the sums of the release; ``x`` and ``y``, or a formula, choose the columns."""
        question.only(("x", "y", "formula", "covariate_law", "link"), "a generalized linear model")
        release, words = releases[0], dict(question.words)
        law = words.pop("covariate_law", "box")
        link = words.pop("link", DEFAULT_LINKS.get(release.family, "logistic"))
        if link not in LINKS:
            raise ArgumentError(f"link: must be one of {', '.join(LINKS)}, not {link!r}")
        if any(block.statistic.kind == "cell-sums" for block in release.blocks):
            raise ArgumentError(
                f"model: a {link} regression needs sums over all records of products of two "
                "columns, and this release holds those of a formula with factors or products. "
                "Release the levels as columns of 0 and 1 beside the others (x=, y=) to ask for it"
            )
        if "formula" in words:
            if len({"x", "y"} & set(words)):
                raise ArgumentError("formula: it says x and y already; leave these out")
            words |= _columns(words.pop("formula"), release)
        return generalized_problem(release, link, question.prior, law=law, **words)

    def cautions(
        self, problem: GeneralizedProblem, question: Question, releases: Sequence[Release]
    ) -> tuple[str, ...]:
        """Return warnings of bounds that cut values off, which these models take as they are."""
        cut = [
            c for c in (*problem.x, problem.y) if isinstance(releases[0].bounds.get(c), Censored)
        ]
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
