"""Linear regression from a noisy Gram matrix.

The owner's file is ``release``. The analyst's, in the order of reading: ``analyst`` (the methods,
to which ``infer`` comes), ``problem`` (a release as arrays in the box), ``collapsed`` (the
posterior of the sums behind the noise), ``coordinates`` (where every point is a valid sum),
``scale_free`` (the default prior), ``initial_values`` (draws from the prior, and where chains
start), ``exact`` (the sampler of that posterior, in batches by ``batching``, with ``kinked_hmc``
for many columns), ``posterior_draws`` (draws into the user's units), ``censoring`` (values beyond
bounds that cut them off) and ``posterior`` (what an analyst gets). ``gibbs``, ``gibbs_methods``,
``individual_mcmc`` and ``record_moments`` are the paper's own methods, ``naive`` ignores the noise.
``prior_check`` warns of columns that use little of their bounds, ``simulate`` makes trials for
``check`` and ``plan``, ``report`` a page.
"""

from __future__ import annotations

from noisewise.artifact import Release, ReleaseError
from noisewise.artifact.validation import shown, text
from noisewise.models.base import Model, register

LEAST_RECORDS = 3
"""Records of a group without which nothing can be inferred of it (chosen)."""


class LinearRegressionRelease(Release):
    """A noisy Gram matrix: every linear regression among its columns."""


@register
class LinearRegression(Model):
    """A response that is linear in covariates, from their noisy second moments."""

    name = "linear-regression"
    statistics = ("gram",)
    release_type = LinearRegressionRelease

    def check(self, release: Release) -> None:
        """Raise a ReleaseError unless x and y are columns of the Gram matrix."""
        x, y = release.model.get("x"), text(release.model.get("y"), "model: 'y'")
        if not isinstance(x, tuple) or not x:
            raise ReleaseError("model: 'x' must be a list of columns")
        for column in (*x, y):
            if column not in release.block("gram").statistic.columns:
                raise ReleaseError(f"model: {shown(column)} is not a column of the gram")
