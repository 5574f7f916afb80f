"""What a user may write: every public function of the package, and what a type checker makes of it.

``test_user_script.py`` runs ``mypy --strict`` on this file as a user would; nobody runs the file
itself (the examples in the docstrings are run, by ``tests/test_examples.py``). ``assert_type``
fails where mypy knows less than is claimed, hence also where it knows nothing (``Any``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, NoReturn, assert_type

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import xarray as xr
from arviz import InferenceData
from matplotlib.figure import Figure

import noisewise as nw
from noisewise.artifact import PartitionRelease
from noisewise.diagnostics import KS, Coverage, Wider
from noisewise.models import Analyst, Method, Model, Owner, Question, Simulator, Word
from noisewise.models.exponential_family import ExponentialFamilyRelease
from noisewise.models.exponential_family.posterior import FamilyPosterior
from noisewise.models.generalized_linear import (
    LogisticRegressionRelease,
    PoissonRegressionRelease,
)
from noisewise.models.generalized_linear.posterior import GeneralizedPosterior
from noisewise.models.graphical_model import GraphicalModelRelease
from noisewise.models.linear_regression import LinearRegressionRelease
from noisewise.models.linear_regression.posterior import RegressionPosterior
from noisewise.simulate import Check, MethodCheck, Plan

OWN_OPTIONS: dict[str, Any] = {"order": 2}
"""Options of a model from outside the package."""


def owner() -> None:
    """Publish every kind of release."""
    options = nw.release.PrivacyOptions(epsilon=1.0, mechanism="gaussian", delta=1e-6)
    assert_type(options.epsilon, float)
    regression = nw.release.linear_regression(
        "people.parquet",
        x=["age"],
        y="income",
        bounds={
            "age": nw.Censored(18, 90, sides="upper"),
            "income": nw.release.PrivateBounds((0, 1_000_000)),
        },
        epsilon=1.0,
        mechanism="gaussian",
        delta=1e-6,
        neighbours="add-remove",
        groups={"region": ["north", "south"]},
        ledger="budget.db",
    )
    assert_type(regression, LinearRegressionRelease)
    assert_type(regression.save("release.json"), Path)
    assert_type(regression.table(units="user"), pd.DataFrame)
    assert_type(regression.statement(), str)
    nw.release.register_family("rayleigh", lowest=0)
    family = nw.release.exponential_family(
        pd.DataFrame({"visits": [1, 2]}), column="visits", family="poisson", bounds=(0, 20),
        epsilon=0.5,
    )  # fmt: skip
    assert_type(family, ExponentialFamilyRelease)
    tables = nw.release.graphical_model(
        nw.datasets.wifi_log(users=10),
        cliques=[("a", "b")],
        levels={"a": [0, 1], "b": ["x", "y"]},
        unit="person",
        epsilon=1,
    )
    assert_type(tables, GraphicalModelRelease)
    probability = nw.release.posterior_probability(
        nw.datasets.cirrhosis_path(), x="age", y="income", coefficient="age", at=[0.0, 1.0],
        partitions=100, prior=nw.release.Zellner(50), epsilon=1.0,
    )  # fmt: skip
    assert_type(probability, PartitionRelease)
    assert_type(probability.interval(0.9), tuple[float, float] | np.ndarray)
    quantile = nw.release.posterior_quantile(
        nw.datasets.cirrhosis(), x="age", y="income", coefficient="age", p=0.5, partitions=100,
        epsilon_bounds=0.5, epsilon_value=0.5,
    )  # fmt: skip
    assert_type(quantile, PartitionRelease)
    assert_type(quantile.quantile, float)


def analyst(regression: LinearRegressionRelease, family: ExponentialFamilyRelease) -> None:
    """Infer from releases whose model is known; the class of the result follows from it."""
    post = nw.infer(regression, "exact", x=["age"], y="income", draws=2000, seed=1)
    assert_type(post, RegressionPosterior)
    assert_type(nw.infer([regression, regression], same_population=True), RegressionPosterior)
    by_sex = nw.infer(regression, formula="income ~ age + C(sex)")
    assert_type(by_sex.with_reference(sex="male"), RegressionPosterior)
    assert_type(by_sex.predict({"age": 40, "sex": "male"}), nw.Prediction)
    assert_type(post.draws["age"], np.ndarray)
    assert_type(post.converged, bool)
    assert_type(post.status, str)
    assert_type(post.summary(), pd.DataFrame)
    assert_type(post.to_arviz(), InferenceData)
    assert_type(post.save("posterior.nc"), Path)
    prediction = post.predict({"age": 40})
    assert_type(prediction, nw.Prediction)
    assert_type(prediction.interval(0.5), np.ndarray)
    prior = {"response": nw.priors.NormalInverseGamma(np.zeros(2), np.eye(2), 2.0, 1.0)}
    assert_type(nw.infer(regression, prior=prior), RegressionPosterior)
    counts = nw.infer(family, prior=nw.priors.Gamma(1, 1))
    assert_type(counts, FamilyPosterior)
    assert_type(counts.family, nw.Family)
    assert_type(counts.predict(), nw.Prediction)


def many_groups(regression: LinearRegressionRelease, family: ExponentialFamilyRelease) -> None:
    """Keep summaries of groups, here or on Spark, which ships its own types."""
    summary = nw.infer(regression, keep="summary", out="slabs", part=(3, 16))
    assert_type(summary, nw.PosteriorSummary)
    assert_type(nw.infer(family, "exact", keep="summary", seed=1), nw.PosteriorSummary)
    assert_type(nw.infer(regression, keep="draws"), RegressionPosterior)
    assert_type(nw.infer("release.json", keep="summary", out="slabs"), nw.Result)
    assert_type(summary.by_group("age"), pd.DataFrame)
    assert_type(summary.table(), pd.DataFrame)
    assert_type(summary.converged, bool)
    assert_type(summary.save("summary.parquet"), Path)
    session: Any = None
    assert_type(nw.spark.infer(session, regression, draws=500), nw.PosteriorSummary)


def modeller(tables: GraphicalModelRelease) -> None:
    """Fit graphical models. Groups are in the release, not in its type: hence the two classes."""
    fitted = nw.infer(tables)
    assert_type(fitted, nw.GraphicalModel | nw.GraphicalGroups[nw.GraphicalModel])
    assert_type(
        nw.infer(tables, "naive-mle", lam=1e-4),
        nw.GraphicalModel | nw.GraphicalGroups[nw.GraphicalModel],
    )
    # What both can do needs no distinction.
    assert_type(fitted.summary(), pd.DataFrame)
    assert_type(fitted.marginal(["a", "b"]), xr.DataArray)
    assert_type(fitted.sample(100), pd.DataFrame)
    if isinstance(fitted, nw.GraphicalModel):
        assert_type(fitted.kl(fitted), float)
    else:
        assert_type(fitted["north"], nw.GraphicalModel)
    drawn = nw.infer(tables, "bayes", draws=200)
    assert_type(drawn, nw.GraphicalPosterior | nw.GraphicalGroups[nw.GraphicalPosterior])
    assert_type(drawn.interval("a"), xr.DataArray)
    assert_type(drawn.to_arviz(), InferenceData)


def from_files() -> None:
    """Read files, whose content a type checker cannot know."""
    release = nw.Release.load("release.json")
    assert_type(release, nw.Release)
    assert_type(nw.Release.from_json(release.to_json()), nw.Release)
    assert_type(nw.infer(release), nw.Result)
    assert_type(nw.infer("release.json", "bayes", law="normal"), nw.Result)
    assert_type(nw.infer(release, **OWN_OPTIONS), nw.Result)
    assert_type(nw.infer(["first.json", Path("second.json")]), nw.Result)
    assert_type(nw.load_posterior("posterior.nc"), nw.Result)
    loaded = nw.load("anything")
    assert_type(loaded, nw.Release | nw.Result)
    if isinstance(loaded, nw.Posterior):
        assert_type(loaded.draws["rate"], np.ndarray)
        assert_type(nw.plots.trace(loaded, draws=100), Figure)
        assert_type(nw.plots.caterpillar(loaded, "rate"), Figure)
        assert_type(nw.plots.posterior_against_prior(loaded, group="north"), Figure)
    elif isinstance(loaded, LinearRegressionRelease):
        assert_type(nw.infer(loaded), RegressionPosterior)


def settings(epsilon: float) -> ExponentialFamilyRelease:
    """Return what a release would be made of, without data."""
    return nw.release.exponential_family(
        nw.release.Blank(1000), column="visits", family="poisson", bounds=(0, 20), epsilon=epsilon
    )


def planner() -> None:
    """Simulate before anything is spent, and check a method afterwards."""
    planned = nw.plan(settings, 1000, [0.5, 1.0], width=0.2, parameter="rate")
    assert_type(planned, Plan)
    assert_type(planned.epsilons, tuple[float, ...])
    assert_type(planned.to_json(), str)
    checked = nw.check(settings(1.0), ["exact"], trials=100)
    assert_type(checked, Check)
    assert_type(checked.of("exact"), MethodCheck)
    assert_type(checked.save("check.json"), Path)
    assert_type(nw.simulate.load_check("check.json"), Check)
    assert_type(nw.simulate.check(settings(1.0)), Check)
    assert_type(nw.simulate.plan(settings, 1000, [1.0]), Plan)
    assert_type(nw.report.render(checked), str)
    assert_type(nw.report.save(planned, "plan.html"), Path)
    assert_type(nw.report.findings(nw.infer(settings(1.0))), tuple[str, ...])


def estimator(release: LinearRegressionRelease) -> None:
    """Use the estimator for scikit-learn."""
    model = nw.sklearn.NoisyLinearRegression(draws=500).fit(release)
    assert_type(model, nw.sklearn.NoisyLinearRegression)
    odds = nw.sklearn.NoisyLogisticRegression(draws=500).fit(release)
    assert_type(odds, nw.sklearn.NoisyLogisticRegression)
    assert_type(model.predict([[40.0]]), np.ndarray)
    assert_type(model.predict([[40.0]], return_std=True), tuple[np.ndarray, np.ndarray])


def data() -> None:
    """Make tables. PyArrow ships no types, so that these are ``Any`` to every type checker."""
    nw.datasets.social_mobility(tracts=5)
    nw.datasets.wages(people=100)
    nw.datasets.hour_segments(nw.datasets.wifi_log(users=5, days=2))


def diagnose(draws: np.ndarray, truth: np.ndarray) -> None:
    """Ask whether posteriors are honest, and draw the answer."""
    u = nw.diagnostics.ranks(draws, truth)
    assert_type(u, np.ndarray)
    assert_type(nw.diagnostics.ks(u), KS)
    assert_type(nw.diagnostics.ks_limit(100), float)
    assert_type(nw.diagnostics.coverage(draws, truth), Coverage)
    assert_type(nw.diagnostics.wider(draws, draws), Wider)
    assert_type(nw.diagnostics.share_band(0.9, 100), tuple[float, float])
    assert_type(nw.diagnostics.uniform_band(100), tuple[np.ndarray, np.ndarray])
    assert_type(nw.diagnostics.kl(u, u), float)
    assert_type(nw.diagnostics.log_predictive(draws), float)
    assert_type(nw.diagnostics.mean_absolute_error(u, truth), float)
    assert_type(nw.diagnostics.mmd2(draws, draws), np.ndarray)
    confusion = nw.diagnostics.decile_confusion(u, truth)
    assert_type(nw.diagnostics.outer_deciles_kept(confusion), tuple[float, float])
    journal = nw.diagnostics.Journal("journal.jsonl")
    trials = nw.diagnostics.run_trials(
        lambda rng, number: {"u": rng.random(number)}, 100, seed=0, journal=journal
    )
    assert_type(trials, dict[str, np.ndarray])
    assert_type(nw.plots.rank_ecdf({"exact": u}), Figure)
    assert_type(nw.plots.coverage_points({"exact": 0.9}, 0.9, 100), Figure)


def priors() -> None:
    """State what is believed beforehand."""
    nw.priors.Beta(1, 1)
    nw.priors.Population(spread={"pir": 0.1}, coefficients=1)
    nw.priors.Predictor(slopes_sd=1.0)
    nw.priors.Dirichlet(np.ones(3))
    nw.priors.NormalInverseWishart(np.zeros(1), 1.0, np.eye(1), 3.0)
    assert_type(
        nw.priors.CovariateMoments.from_draws(np.zeros((10, 1))), nw.priors.CovariateMoments
    )


@nw.register_family
class Rayleigh(nw.Family):
    """A family of one's own: squares of waiting times."""

    name = "rayleigh"
    parameters = ("rate",)
    domains = ("positive",)
    support = (0.0, np.inf)
    prior = nw.priors.Gamma

    def natural(self, theta: jax.Array) -> jax.Array:
        """Return η."""
        return -theta

    def log_partition(self, eta: jax.Array) -> jax.Array:
        """Return A(η)."""
        return -jnp.log(-eta[0])

    def cdf(self, x: jax.Array, eta: jax.Array) -> jax.Array:
        """Return P(X ≤ x)."""
        return -jnp.expm1(eta[0] * jnp.maximum(x, 0))

    def default_prior(self, bounds: nw.Bounds) -> nw.priors.Gamma:
        """Return a weak prior."""
        return nw.priors.Gamma(1.0, bounds.upper)

    def conjugate(self, prior: nw.priors.Gamma) -> nw.Conjugate:
        """Return λ."""
        return nw.Conjugate(jnp.array([prior.rate]), jnp.array([prior.shape]))

    def draw(self, key: jax.Array, given: nw.Conjugate) -> jax.Array:
        """Draw the rate."""
        return jax.random.gamma(key, given.counts) / given.sums

    def records(self, rng: np.random.Generator, theta: np.ndarray) -> np.ndarray:
        """Draw a record for each rate."""
        return rng.exponential(1 / theta[..., 0])


def family_of_mine() -> type[Rayleigh]:
    """Return the family: the decorator leaves its type alone."""
    return Rayleigh


class Mine(Model):
    """A model of one's own, as far as types go."""

    name = "mine"
    statistics = ("gram",)
    methods: ClassVar[dict[str, Method[Any]]] = {}

    def owner(self) -> Owner:
        """Return the owner's part."""
        return Owner(owner_of_mine, (Word("x", "column", "a column"),), "Release mine.", ())

    def analyst(self) -> Analyst[nw.Release]:
        """Return the analyst's part."""
        raise NotImplementedError(Question().words)

    def simulator(self) -> Simulator[nw.Release]:
        """Return the simulator."""
        raise NotImplementedError

    def page(self, result: nw.Result | nw.Release, check: Check | None = None) -> str:
        """Return a page."""
        return str(result)


def owner_of_mine(source: object, *, x: str) -> nw.Release:
    """Publish nothing yet."""
    raise NotImplementedError(source, x)


def generalized(table: pd.DataFrame, linear: LinearRegressionRelease) -> None:
    """Ask for logistic, probit and Poisson regressions."""
    ill = nw.release.logistic_regression(
        table, x="age", y="ill", bounds={"age": (0, 120)}, epsilon=1.0
    )
    assert_type(ill, LogisticRegressionRelease)
    visits = nw.release.poisson_regression(
        table, x="age", y="visits", bounds={"age": (0, 120), "visits": (0, 30)}, epsilon=1.0
    )
    assert_type(visits, PoissonRegressionRelease)
    assert_type(nw.infer(ill), GeneralizedPosterior)
    assert_type(nw.infer(linear, model="logistic"), GeneralizedPosterior)
    assert_type(nw.infer(visits).effects({"age": 10}), pd.DataFrame)


def models() -> None:
    """Look at the models that are known."""
    assert_type(nw.models.names(), tuple[str, ...])
    assert_type(nw.models.find("linear-regression"), Model)
    assert_type(nw.models.find_asked("linear-regression", "probit")[0], Model)
    assert_type(nw.models.BUILT_IN, tuple[str, str, str, str, str])
    assert_type(nw.models.register(Mine), type[Mine])
    nw.models.unregister("mine")
    assert_type(nw.__version__, str)


def explain(error: nw.NoisewiseError) -> str:
    """Tell the errors apart."""
    match error:
        case nw.ArgumentError():
            return "the call cannot be carried out"
        case nw.DataError() | nw.SourceError():
            return "the table does not fit, or cannot be read"
        case nw.BudgetError():
            return "the budget is spent"
        case nw.SearchError() | nw.ReleaseError():
            return "no answer, or no valid file"
    return str(error)


def stop(error: nw.NoisewiseError) -> NoReturn:
    """End with a sentence."""
    raise SystemExit(explain(error))
