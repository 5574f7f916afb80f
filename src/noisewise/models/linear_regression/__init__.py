"""Linear regression from noisy sums: a Gram matrix, or sums within the cells of factors.

The owner's file is ``release``, with ``required_sums`` (which sums a formula needs). The analyst's,
in the order of reading: ``analyst`` (the methods, to which ``infer`` comes), ``problem`` (a release
as arrays in the box, which is [-1, 1] for every column: ``docs/notation.md``), ``collapsed`` (the
posterior of the sums behind the noise), ``coordinates`` (where every point is a valid sum),
``scale_free`` (the default prior), ``initial_values`` (draws from the prior, and where chains
start), ``exact`` (the sampler of that posterior, in batches by ``batching``, with ``kinked_hmc``
for many columns), ``posterior_draws`` (draws into the user's units), ``censoring`` (values beyond
bounds that cut them off) and ``posterior`` (what an analyst gets). ``gibbs``, ``gibbs_methods``,
``individual_mcmc`` and ``record_moments`` are the methods of G. Bernstein, D. Sheldon,
"Differentially Private Bayesian Linear Regression" (NeurIPS 2019), "the paper" in these files;
``naive`` ignores the noise.

Regressions with factors, or with products of columns, have files of their own: ``factor_problem``
(a release and what is asked of it), ``factor_structure`` (which sums follow from which),
``latent_cell_counts`` (records in the cells of factors, behind the noise), ``factor_prior``,
``factor_density`` (the posterior of the sums), ``factor_exact`` (its sampler), ``factor_naive``,
``factor_coefficients`` (coefficients given sums), ``design_matrix`` (columns of the design),
``reference_levels`` (coefficients against another level), ``level_counts`` (levels that the noise
hides).

Groups that learn from each other: ``pooled_posterior`` (from a question to a result),
``pooled_density`` (a group given the population), ``pooled_population`` (hyperprior, coordinates),
``pooled_moves`` (moves of the population), ``pooled_start`` (starting values), ``pooled_exact``
(sweeps) and ``pooled_simulate`` (releases of a population).

``prior_check`` warns of columns that use little of their bounds, ``simulate`` makes trials for
``check`` and ``plan`` (with factors ``factor_simulate``, which sums by ``factor_records``), of
columns with guessed laws (``column_laws``), ``report`` a page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from noisewise.artifact import ArgumentError, Level, Release, ReleaseError
from noisewise.artifact.statistics import CellSums
from noisewise.artifact.validation import shown, text
from noisewise.models.base import Model, register

if TYPE_CHECKING:
    from noisewise.formula import Formula
    from noisewise.inference.results import Posterior

LEAST_RECORDS = 3
"""Records of a group without which nothing can be inferred of it (chosen)."""


class LinearRegressionRelease(Release):
    """Noisy sums of products: every linear regression among their columns."""

    @property
    def levels(self) -> Mapping[str, tuple[Level, ...]]:
        """The public levels of every factor, the owner's reference first; empty without factors."""
        sums = next((b.statistic for b in self.blocks if isinstance(b.statistic, CellSums)), None)
        return {} if sums is None else dict(sums.levels)


@register
class LinearRegression(Model):
    """A response that is linear in covariates, from their noisy second moments."""

    name = "linear-regression"
    statistics = ("gram", "cell-sums")
    release_type = LinearRegressionRelease
    asked_as: ClassVar[Mapping[str, Mapping[str, Any]]] = {"linear": {}}

    def restore(self, common: Mapping[str, Any], attributes: Mapping[str, Any]) -> Posterior:
        """Return a posterior that was read from a file."""
        from noisewise.models.linear_regression.posterior import restored

        return restored(common, attributes)

    def check(self, release: Release) -> None:
        """Raise a ReleaseError unless the sums of x and y, or of the formula, are there."""
        y = text(release.model.get("y"), "model: 'y'")
        sums = next(b.statistic for b in release.blocks if b.statistic.kind in self.statistics)
        if isinstance(sums, CellSums):
            _check_formula(release, sums.levels, y)
            return
        x = release.model.get("x")
        if not isinstance(x, tuple) or not x:
            raise ReleaseError("model: 'x' must be a list of columns")
        for column in (*x, y):
            if column not in sums.columns:
                raise ReleaseError(f"model: {shown(column)} is not a column of the gram")
        if "formula" in release.model:
            formula = _check_formula(release, {}, y)
            if formula.numeric != tuple((column,) for column in x) or formula.factors:
                raise ReleaseError("model: 'formula' and 'x' name different columns")


def _check_formula(release: Release, levels: Mapping[str, tuple[Level, ...]], y: str) -> Formula:
    """Return the formula of a release; a ReleaseError where it does not fit the sums."""
    from noisewise.formula import parse
    from noisewise.models.linear_regression.required_sums import missing_sum

    try:
        formula = parse(text(release.model.get("formula"), "model: 'formula'"), levels)
        formula.check_references(levels)
    except ArgumentError as error:
        raise ReleaseError(f"model: {error}") from None
    if formula.response != y:
        raise ReleaseError("model: 'y' is not the response of 'formula'")
    sums = next((b.statistic for b in release.blocks if isinstance(b.statistic, CellSums)), None)
    if sums is not None and (missing := missing_sum(formula, sums)) is not None:
        raise ReleaseError(f"model: 'formula' needs {missing}, which is not released")
    return formula
