"""Logistic, probit and Poisson regression from the noisy sums of a linear regression.

A Gram matrix of covariates and a response that is 0 or 1, or a count, holds what these models
need: no new budget is spent. The owner's file is ``release``, for a response that is meant for
them. The analyst's, in the order of reading: ``analyst`` (methods), ``problem`` (a release as
arrays in the box), ``links`` (moments of a response under a normal predictor, in JAX),
``response_laws`` (its law, in NumPy), ``covariate_nodes`` (laws of covariates made of their moments
and bounds), ``response_moments`` (mean and covariance of the response's sums given the
covariates'), ``covariate_density`` (the law of the covariates' own sums), ``density`` (the
posterior), ``starting_values``, ``clt`` (its sampler), ``naive`` (ignores the noise) and
``posterior`` (what an analyst gets; ``covariate_moments`` is what it keeps of the covariates).
Releases by a formula with factors have files of their own: ``problem_with_factors``, ``cell_nodes``
(laws of covariates by the cells of factors), ``density_with_factors``, ``clt_with_factors`` and
``posterior_with_factors``. ``simulate`` makes trials for ``check`` and ``plan``,
``report`` a page.

The law of the covariates' sums, coordinates and batches are those of ``models.linear_regression``,
whose releases these models read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from noisewise.artifact import Release, ReleaseError
from noisewise.artifact.validation import shown, text
from noisewise.models.base import Model, register

if TYPE_CHECKING:
    from noisewise.inference.results import Posterior


class LogisticRegressionRelease(Release):
    """Noisy sums of products of covariates and of a response that is 0 or 1."""


class PoissonRegressionRelease(Release):
    """Noisy sums of products of covariates and of a response that counts."""


class _GeneralizedModel(Model):
    """What the models of this folder share."""

    statistics = ("gram",)
    also_reads = ("linear-regression",)

    def check(self, release: Release) -> None:
        """Raise a ReleaseError unless the sums of x and y are there, and y has fitting bounds."""
        y = text(release.model.get("y"), "model: 'y'")
        x = release.model.get("x")
        if not isinstance(x, tuple) or not x:
            raise ReleaseError("model: 'x' must be a list of columns")
        columns = release.block("gram").statistic.columns
        for column in (*x, y):
            if column not in columns:
                raise ReleaseError(f"model: {shown(column)} is not a column of the gram")
        self.check_bounds(release, y)

    def check_bounds(self, release: Release, y: str) -> None:
        """Raise a ReleaseError unless the bounds of the response fit the model."""
        raise NotImplementedError

    def restore(self, common: Mapping[str, Any], attributes: Mapping[str, Any]) -> Posterior:
        """Return a posterior that was read from a file."""
        from noisewise.models.generalized_linear.posterior import restored

        return restored(common, attributes)


@register
class LogisticRegression(_GeneralizedModel):
    """A response that is 0 or 1, whose log odds (or probit) are linear in covariates."""

    name = "logistic-regression"
    release_type = LogisticRegressionRelease
    asked_as: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "logistic": {"link": "logistic"},
        "probit": {"link": "probit"},
    }

    def check_bounds(self, release: Release, y: str) -> None:
        """Raise a ReleaseError unless the response is between 0 and 1."""
        bounds = release.bounds[y]
        if (bounds.lower, bounds.upper) != (0, 1):
            raise ReleaseError(f"bounds: {shown(y)} of a logistic regression must have (0, 1)")


@register
class PoissonRegression(_GeneralizedModel):
    """A response that counts, the logarithm of whose rate is linear in covariates."""

    name = "poisson-regression"
    release_type = PoissonRegressionRelease
    owner_file = "poisson_release"
    asked_as: ClassVar[Mapping[str, Mapping[str, Any]]] = {"poisson": {"link": "poisson"}}

    def check_bounds(self, release: Release, y: str) -> None:
        """Raise a ReleaseError unless the response begins at 0."""
        if release.bounds[y].lower != 0 or release.bounds[y].upper < 1:
            raise ReleaseError(f"bounds: {shown(y)} of a poisson regression must begin at 0")
