"""Estimators for scikit-learn: regressions that are fitted to a release, not to a table.

Needs scikit-learn: ``pip install 'noisewise[sklearn]'``.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal, TypeVar, overload

import numpy as np

from noisewise.artifact import ArgumentError, Release
from noisewise.inference import Result, infer
from noisewise.inference.summary_table import beyond_interval
from noisewise.models.generalized_linear.posterior import GeneralizedPosterior
from noisewise.models.linear_regression import design_matrix
from noisewise.models.linear_regression.posterior import RegressionPosterior

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.utils.validation import check_array, check_is_fitted, validate_data
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] != "sklearn":
        raise
    raise ModuleNotFoundError(
        "noisewise.sklearn: scikit-learn is not installed; pip install 'noisewise[sklearn]'",
        name="sklearn",
    ) from error

__all__ = ["NoisyLinearRegression", "NoisyLogisticRegression"]

R = TypeVar("R", bound=Result)


def _fitted(releases: Any, given_y: None, kind: type[R], wanted: str, **options: Any) -> R:
    """Infer from a release, or several; an ArgumentError for anything else.

    Args:
        releases: what ``fit`` was given.
        given_y: likewise; the response is in the release.
        kind: the class of the result.
        wanted: the release that gives it, in words.
        **options: of ``infer``.
    """
    given = [releases] if isinstance(releases, Release) else releases
    if isinstance(given, list | tuple) and any(
        isinstance(r, Release) and r.groups is not None for r in given
    ):
        raise ArgumentError(
            "X: this release has groups, an estimator is one regression; "
            "nw.infer(release) gives a posterior for every group"
        )
    if not isinstance(given, list | tuple) or not all(isinstance(r, Release) for r in given):
        raise ArgumentError(
            f"X: must be a Release, or a list of them, not {type(releases).__name__}; read a file "
            "with nw.Release.load(path). A table is not fitted here: its owner releases it"
        )
    if given_y is not None:
        raise ArgumentError("y: must be left out; the response is in the release")
    post = infer(given, **options)
    if not isinstance(post, kind):
        raise ArgumentError(f"X: must be a release of {wanted}")
    if not post.converged:
        warnings.warn(post.status, ConvergenceWarning, stacklevel=3)
    if beyond_interval(post.summary()).any():
        warnings.warn(
            "the noise hides a column, so that means and deviations say nothing; take medians and "
            "intervals, from posterior_.summary() and posterior_.predict()", UserWarning,
            stacklevel=3,
        )  # fmt: skip
    return post


def _filled(estimator: Any, X: Any, post: RegressionPosterior | GeneralizedPosterior) -> np.ndarray:
    """Return the numbers of rows of covariates, gaps filled where the release says how."""
    fills = np.array([post.as_released(c, np.nan) for c in post.covariates], float)
    finite = "allow-nan" if np.isfinite(fills).any() else True
    X = validate_data(estimator, X, reset=False, dtype=np.float64, ensure_all_finite=finite)
    return np.asarray(X if finite is True else check_array(np.where(np.isnan(X), fills, X)))


class NoisyLinearRegression(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # no stubs
    """Bayesian linear regression that accounts for the noise of a release.

    Parameters are those of ``noisewise.infer``, ``random_state`` being its ``seed``.

    After ``fit``: ``coef_``, one for each of ``terms_``, and ``intercept_`` (posterior means, in
    the user's units), ``posterior_`` (everything else; without ``latent``, so that the estimator
    can be pickled), ``feature_names_in_`` and ``n_features_in_``: the columns of the table that a
    prediction needs. Columns that are factors (categories, texts, whole numbers, booleans) are
    given to ``predict`` as they are, since their levels are in the release: no OneHotEncoder.

    Example:
        >>> import noisewise as nw, pandas as pd
        >>> release = nw.release.linear_regression(
        ...     nw.datasets.social_mobility(tracts=5), x="pir", y="kir",
        ...     bounds={"pir": (0, 1), "kir": (0, 1)}, epsilon=1.0,
        ... )
        >>> model = nw.sklearn.NoisyLinearRegression(method="naive").fit(release)
        >>> children = pd.DataFrame({"pir": [0.2, 0.8]})
        >>> mean, deviation = model.predict(children, return_std=True)
        >>> mean.shape, deviation.shape
        ((2,), (2,))
    """

    def __init__(
        self,
        *,
        method: str = "exact",
        prior: Any = None,
        x: str | Iterable[str] | None = None,
        y: str | None = None,
        formula: str | None = None,
        random_state: int = 0,
        chains: int = 4,
        draws: int = 1000,
        same_population: bool = False,
    ) -> None:
        self.method = method
        self.prior = prior
        self.x = x
        self.y = y
        self.formula = formula
        self.random_state = random_state
        self.chains = chains
        self.draws = draws
        self.same_population = same_population

    def fit(self, X: Release | Iterable[Release], y: None = None) -> NoisyLinearRegression:
        """Infer from a release.

        Args:
            X: the release, or several of the same records.
            y: must be left out, since the response is in the release.

        Returns:
            The estimator itself.
        """
        post = _fitted(
            X, y, RegressionPosterior, "a linear regression", method=self.method,
            prior=self.prior, x=self.x, y=self.y, formula=self.formula, seed=self.random_state,
            chains=self.chains, draws=self.draws, same_population=self.same_population,
        )  # fmt: skip
        self.feature_names_in_ = np.array(post.covariates, dtype=object)
        return self._keep(post)

    def _keep(self, post: RegressionPosterior) -> NoisyLinearRegression:
        """Keep moments of the draws: all that a prediction's mean and deviation need."""
        names = (*post.x, "intercept")
        drawn = np.stack([post.draws[name].ravel() for name in names])
        self.posterior_ = replace(post, latent={}, prior_draws=None, without_noise=None)
        self.n_features_in_ = len(post.covariates)
        self.terms_ = np.array(post.x, dtype=object)
        self.coef_ = drawn[:-1].mean(axis=1)
        self.intercept_ = float(drawn[-1].mean())
        self._covariance = np.atleast_2d(np.cov(drawn))
        self._variance = float(post.draws["sigma2"].mean())
        return self

    @overload
    def predict(self, X: Any, return_std: Literal[False] = False) -> np.ndarray: ...

    @overload
    def predict(self, X: Any, return_std: Literal[True]) -> tuple[np.ndarray, np.ndarray]: ...

    @overload
    def predict(self, X: Any, return_std: bool) -> np.ndarray | tuple[np.ndarray, np.ndarray]: ...

    def predict(
        self, X: Any, return_std: bool = False
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Predict y at every row of X.

        The deviation holds the scatter of records and the uncertainty of the coefficients, hence
        the privacy noise: Var y = E σ² + x̃ᵀ Cov(θ) x̃ with x̃ = (x, 1).

        Args:
            X: rows of covariates, in the order of ``feature_names_in_`` or named like them; those
                with factors best in a data frame.
            return_std: also return the standard deviation of a new record at every row.

        Returns:
            The mean of y at every row, or that and the standard deviation. Where the noise hides a
            column there may be neither, and a warning says so: ``posterior_.predict`` has medians
            and intervals.
        """
        check_is_fitted(self)
        full = self._design(X)
        mean = np.asarray(full[:, :-1] @ self.coef_ + self.intercept_)
        if not return_std:
            return mean
        line = np.einsum("ij,jk,ik->i", full, self._covariance, full)
        return mean, np.sqrt(self._variance + line)

    def _design(self, X: Any) -> np.ndarray:
        """Return the design (row, term), the intercept last, of rows of covariates."""
        post = self.posterior_
        if not post.levels:
            X = _filled(self, X, post)
            if not post.design:
                return np.column_stack([X, np.ones(len(X))])
            named = dict(zip(post.covariates, X.T, strict=True))
            return design_matrix.design_matrix(post.design, named, len(X))
        X = validate_data(self, X, reset=False, skip_check_array=True)
        named = {}
        for i, column in enumerate(post.covariates):
            values = X[column] if hasattr(X, "columns") else np.asarray(X, object)[:, i]
            values = [post.as_released(column, value) for value in np.asarray(values, object)]
            if column in post.levels:
                named[column] = design_matrix.codes(values, post.levels[column], f"X[{column!r}]")
            else:
                rows = np.array(values, object)[:, None]
                named[column] = check_array(rows, dtype=np.float64)[:, 0]
        return design_matrix.design_matrix(post.design, named, len(values))


class NoisyLogisticRegression(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # no stubs
    """Bayesian logistic or probit regression that accounts for the noise of a release.

    Parameters are those of ``noisewise.infer``, ``random_state`` being its ``seed``; ``link`` is
    "logistic" or "probit".

    After ``fit``: ``classes_``, 0 and 1; ``coef_`` (1, covariate) and ``intercept_`` (1,),
    posterior means in the user's units; ``posterior_``, everything else; ``feature_names_in_`` and
    ``n_features_in_``. Probabilities are averages over the posterior's draws.

    Example:
        >>> import noisewise as nw, numpy as np, pandas as pd
        >>> rng = np.random.default_rng(0)
        >>> people = pd.DataFrame({"age": rng.uniform(20, 80, 500)})
        >>> people["ill"] = (rng.random(500) < people["age"] / 100) * 1
        >>> release = nw.release.logistic_regression(
        ...     people, x="age", y="ill", bounds={"age": (20, 80)}, epsilon=2.0
        ... )
        >>> model = nw.sklearn.NoisyLogisticRegression(method="naive").fit(release)
        >>> model.predict_proba(people[["age"]].head(3)).shape
        (3, 2)
    """

    def __init__(
        self,
        *,
        link: str = "logistic",
        method: str = "clt",
        prior: Any = None,
        x: str | Iterable[str] | None = None,
        y: str | None = None,
        random_state: int = 0,
        chains: int = 4,
        draws: int = 1000,
    ) -> None:
        self.link = link
        self.method = method
        self.prior = prior
        self.x = x
        self.y = y
        self.random_state = random_state
        self.chains = chains
        self.draws = draws

    def fit(self, X: Release, y: None = None) -> NoisyLogisticRegression:
        """Infer from a release.

        Args:
            X: the release, of a linear or a logistic regression.
            y: must be left out, since the response is in the release.

        Returns:
            The estimator itself.
        """
        if self.link not in ("logistic", "probit"):
            raise ArgumentError(f"link: must be 'logistic' or 'probit', not {self.link!r}")
        post = _fitted(
            X, y, GeneralizedPosterior, "a regression whose response is 0 or 1", model=self.link,
            method=self.method, prior=self.prior, x=self.x, y=self.y, seed=self.random_state,
            chains=self.chains, draws=self.draws,
        )  # fmt: skip
        if post.design:
            raise ArgumentError(
                "X: this estimator takes releases without a formula; nw.infer(release, "
                f"model={self.link!r}) takes those with one, and its predict their levels"
            )
        self.feature_names_in_ = np.array(post.x, dtype=object)
        self.n_features_in_ = len(post.x)
        self.classes_ = np.array([0, 1])
        self.posterior_ = replace(post, latent={}, prior_draws=None, without_noise=None)
        self.coef_ = np.array([[float(post.draws[name].mean()) for name in post.x]])
        self.intercept_ = np.array([float(post.draws["intercept"].mean())])
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities (row, class) of 0 and of 1 at every row of X.

        Args:
            X: rows of covariates, in the order of ``feature_names_in_`` or named like them.
        """
        check_is_fitted(self)
        post = self.posterior_
        X = _filled(self, X, post)
        slopes = np.stack([post.draws[name].ravel() for name in post.x])
        intercept = post.draws["intercept"].ravel()
        one = np.array([post.law.mean(row @ slopes + intercept).mean() for row in X])
        return np.column_stack([1 - one, one])

    def predict(self, X: Any) -> np.ndarray:
        """Return the more probable class of every row of X."""
        return np.asarray(self.classes_[np.argmax(self.predict_proba(X), axis=1)])
