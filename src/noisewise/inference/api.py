"""``infer``: find the release's model, run one of its methods, and say whether it converged."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, overload

import numpy as np

from noisewise import models
from noisewise.artifact import ArgumentError, Level, Release
from noisewise.artifact.guarantee import noise_sd
from noisewise.artifact.release_files import MAX_BYTES
from noisewise.artifact.user_warnings import warn_user
from noisewise.artifact.validation import shown
from noisewise.inference import combine, slabs
from noisewise.inference.population import FEWEST_GROUPS, PublicFeatures, public_features
from noisewise.inference.results import Posterior, Result
from noisewise.inference.slabs import Part
from noisewise.inference.summaries import PosteriorSummary, summarised, words_of
from noisewise.models.base import Analyst, Method, Model, Progress, Question, refuse_reserved
from noisewise.numerics import without_compile_alarm

if TYPE_CHECKING:
    from noisewise.models.exponential_family import ExponentialFamilyRelease
    from noisewise.models.exponential_family.posterior import FamilyPosterior
    from noisewise.models.generalized_linear import (
        LogisticRegressionRelease,
        PoissonRegressionRelease,
    )
    from noisewise.models.generalized_linear.posterior import GeneralizedPosterior
    from noisewise.models.graphical_model import GraphicalModelRelease, GraphicalOptions
    from noisewise.models.graphical_model.fitted_model import GraphicalModel
    from noisewise.models.graphical_model.grouped_results import GraphicalGroups
    from noisewise.models.graphical_model.posterior import GraphicalPosterior
    from noisewise.models.linear_regression import LinearRegressionRelease
    from noisewise.models.linear_regression.posterior import RegressionPosterior

    class KeepDraws(TypedDict, total=False):
        """What is kept unless a summary is asked for."""

        keep: Literal["draws"]

    class SamplingOptions(TypedDict, total=False):
        """Options of every model."""

        seed: int
        chains: int
        draws: int
        progress: Progress | bool | None
        groups: Iterable[Level] | None

    class FamilyOptions(SamplingOptions, total=False):
        """Options of exponential families."""

        prior: Any
        same_population: bool
        pool: bool
        features: Any
        parent: str | None

    class FamilyDrawsOptions(FamilyOptions, KeepDraws, total=False):
        """The same, where draws are kept."""

    class RegressionOptions(FamilyDrawsOptions, total=False):
        """Options of linear regression."""

        x: str | Iterable[str] | None
        y: str | None
        formula: str | None
        model: Literal["linear"] | None

    class GeneralizedOptions(FamilyDrawsOptions, total=False):
        """Options of logistic, probit and Poisson regression."""

        x: str | Iterable[str] | None
        y: str | None
        formula: str | None
        covariate_law: Literal["box", "normal"]

    class TablesOptions(SamplingOptions, GraphicalOptions, KeepDraws, total=False):
        """Options of graphical models."""

    class AnyOptions(FamilyOptions, GraphicalOptions, total=False):
        """Options of a model that is not known before the file is read."""

        x: str | Iterable[str] | None
        y: str | None
        formula: str | None
        model: str | None
        covariate_law: Literal["box", "normal"]

    class AnyKeptOptions(AnyOptions, total=False):
        """The same, whatever is kept."""

        keep: Literal["draws", "summary"]
        out: str | os.PathLike[str] | None
        part: Part | None


ReleaseLike = Release | str | os.PathLike[str]
"""A release, or the path of a release file."""

FEWEST_CHAINS = 2
"""R-hat compares chains."""
MAX_NAMED = 5
"""Groups that a warning names (chosen)."""
ZERO_SDS = 3
"""Deviations of the noise above which a number of records is surely not 0 (chosen)."""
FEWEST_DRAWS = 100
"""Below this no effective sample size can be told (chosen)."""


@overload
def infer(
    release: LinearRegressionRelease
    | LogisticRegressionRelease
    | PoissonRegressionRelease
    | ExponentialFamilyRelease
    | Iterable[LinearRegressionRelease]
    | Iterable[ExponentialFamilyRelease],
    method: str | None = None,
    *,
    keep: Literal["summary"],
    out: str | os.PathLike[str] | None = None,
    part: Part | None = None,
    **options: Unpack[AnyOptions],
) -> PosteriorSummary: ...


@overload
def infer(
    release: LinearRegressionRelease
    | LogisticRegressionRelease
    | PoissonRegressionRelease
    | Iterable[LinearRegressionRelease],
    method: str | None = None,
    *,
    model: Literal["logistic", "probit", "poisson"],
    **options: Unpack[GeneralizedOptions],
) -> GeneralizedPosterior: ...


@overload
def infer(
    release: LogisticRegressionRelease | PoissonRegressionRelease,
    method: str | None = None,
    **options: Unpack[GeneralizedOptions],
) -> GeneralizedPosterior: ...


@overload
def infer(
    release: LinearRegressionRelease | Iterable[LinearRegressionRelease],
    method: str | None = None,
    **options: Unpack[RegressionOptions],
) -> RegressionPosterior: ...


@overload
def infer(
    release: ExponentialFamilyRelease | Iterable[ExponentialFamilyRelease],
    method: str | None = None,
    **options: Unpack[FamilyDrawsOptions],
) -> FamilyPosterior: ...


@overload
def infer(
    release: GraphicalModelRelease, method: Literal["bayes"], **options: Unpack[TablesOptions]
) -> GraphicalPosterior | GraphicalGroups[GraphicalPosterior]: ...


@overload
def infer(
    release: GraphicalModelRelease,
    method: Literal["cgm", "naive-mle"] | None = None,
    **options: Unpack[TablesOptions],
) -> GraphicalModel | GraphicalGroups[GraphicalModel]: ...


@overload
def infer(
    release: ReleaseLike | Iterable[ReleaseLike],
    method: str | None = None,
    **options: Unpack[AnyKeptOptions],
) -> Result: ...


def infer(
    release: Any,
    method: str | None = None,
    *,
    model: str | None = None,
    prior: Any = None,
    x: str | Iterable[str] | None = None,
    y: str | None = None,
    formula: str | None = None,
    seed: int = 0,
    chains: int = 4,
    draws: int = 1000,
    progress: Progress | bool | None = None,
    same_population: bool = False,
    pool: bool = False,
    features: Any = None,
    parent: str | None = None,
    groups: Iterable[Level] | None = None,
    keep: Literal["draws", "summary"] = "draws",
    out: str | os.PathLike[str] | None = None,
    part: Part | None = None,
    **options: Any,
) -> Result:
    """Infer a posterior that accounts for the noise of a release.

    Args:
        release: what the owner published, or the path of its file; or several releases of the same
            records (of the same columns and bounds, with other ε or mechanisms), whose likelihoods
            multiply.
        method: left out, the model's best. Linear regression: ``exact`` (models data and noise
            exactly, at a cost that does not grow with n); the paper's ``gibbs-update``,
            ``gibbs-prior`` and ``gibbs-noisy`` (sums normal by the central limit theorem, moments
            of x inferred, from the prior, or released) and ``mcmc-individual`` (every record a
            latent variable); or ``naive`` (ignores the noise; for comparison only). Exponential
            families: ``exact`` (``normal``: if n is public), ``gibbs`` (sums normal by the central
            limit theorem) and ``naive``. Graphical models: ``cgm`` (the default; EM that accounts
            for the noise) and ``naive-mle`` (ignores it) give a ``GraphicalModel``, ``bayes`` a
            ``GraphicalPosterior``.
        model: how the response depends on the covariates, where another than the release's own is
            wanted: ``"logistic"`` or ``"probit"`` for a response that is 0 or 1, ``"poisson"`` for
            counts. Their methods are ``clt`` (the default: the response's sums are normal given
            the covariates', by the central limit theorem) and ``naive``. The shape of the
            covariates matters to them: it is made of bounds and moments, or normal where
            ``covariate_law="normal"``.
        prior: ``{"response": NormalInverseGamma, "covariates": NormalInverseWishart}`` in the
            user's units; with one of them, the other is weak and made from the bounds; with
            neither, the prior of ``exact`` knows no units. Logistic, probit and Poisson
            regressions: one ``Predictor``. Exponential families: one ``Beta``,
            ``Gamma``, ``Dirichlet`` or ``NormalInverseGamma``.
        x: covariates, if others than the owner named: any released columns.
        y: response, likewise. The Gram matrix is released once; every regression on it is free.
        formula: in place of both, such as ``"educ ~ C(sex)"``: any model whose sums follow from
            those released, the owner's unless given. ``C(sex, contr.treatment("male"))`` names a
            factor's reference level. Formulas with factors take ``exact`` and ``naive``.
        seed: the analyst's own randomness; the same seed gives the same draws.
        chains: independent chains, started apart.
        draws: draws kept per chain.
        progress: a bar on a terminal unless False; True shows one anywhere; or a function to be
            called with steps done and steps in all.
        same_population: several releases are of the same records. To be said by the analyst, unless
            they name one dataset of one ledger. Sums further apart than the noise of both allows
            are refused in either case.
        pool: let groups learn from each other: they are drawn from a population, which is inferred
            with them. At least three groups; linear regressions and families of one parameter, by
            ``exact``. The population speaks for shares and rates of groups without records;
            pooled regressions take every group of secret size to have a few.
        features: of pooled groups, what is publicly known of each: a data frame, or columns by
            name, one row per group, whose key is in the column named as in the release or in the
            index. Features must be public, since no noise protects them.
        parent: the column of ``features`` that says in which larger group each group lies.
        groups: the keys of the groups to infer; all unless given. Pooled groups learn from these.
        keep: ``"draws"``, or ``"summary"`` for means, deviations, quantiles and convergence of
            every group and parameter without the draws. Groups of a linear regression without
            factors, by ``exact`` or ``naive``, are then sampled in slabs of a fixed number of
            groups, and few draws are held at a time; any other posterior is inferred as usual and
            then summed up. Of pooled groups and graphical models there is none.
        out: with a summary, a folder for its slabs, one Parquet file each. A slab that is there is
            not inferred again: a run that was killed goes on where it stopped.
        part: with a folder, infer only these slabs: ``(3, 16)`` is the third of sixteen parts, as a
            scheduler runs them. Afterwards a call without ``part`` collects them.
        options: of graphical models. ``lam`` (naive-mle; 1e-5), ``estep`` (cgm; ``"dual"`` or
            ``"nlbp"``), ``spread`` (cgm; π/√6), ``law`` of the potentials (bayes; ``"log-gamma"``
            or ``"normal"``), ``tied`` (True, or lists of cliques that share a potential),
            ``inference`` (``"auto"``, ``"exact"``, ``"loopy"``), ``memory`` (bytes an exact
            junction tree may take). A model from outside may have options of its own, which type
            checkers do not know: give them as ``**{"name": value}``.

    Returns:
        With ``keep="summary"`` a `PosteriorSummary`; else
        a result with ``summary()``, ``draws``, ``save()`` and, where the model predicts records,
        ``predict()``. Type checkers know its class from that of the release; of a path they know a
        `Result`. A graphical release with groups gives ``GraphicalGroups``.

    Example:
        >>> import noisewise as nw
        >>> release = nw.release.linear_regression(
        ...     nw.datasets.social_mobility(tracts=20), x=["pir"], y="kir",
        ...     bounds={"pir": (0, 1), "kir": (0, 1)}, epsilon=1.0,
        ... )
        >>> post = nw.infer(release)
        >>> list(post.draws)
        ['pir', 'intercept', 'sigma2']
    """
    words = {"x": x, "y": y, "formula": formula, **options}
    slabs.check_keep(keep, out, part, pooled=pool is True)
    asked_for = prepared(
        release, method, words, model=model, prior=prior, same_population=same_population,
        pool=pool, features=features, parent=parent, groups=groups, chains=chains, draws=draws,
        keep=keep,
    )  # fmt: skip
    with reporting(progress, f"sampling ({asked_for.question.method})") as report:
        if keep == "summary":
            return _summary(asked_for, seed, chains, draws, out, part, report)
        return asked_for.infer(seed, chains, draws, report)


@dataclass(frozen=True)
class Prepared:
    """What ``infer`` was asked, checked and read, before anything is sampled.

    ``releases`` are all that were given, ``usable`` those of the groups with enough records.
    """

    model: str
    analyst: Analyst[Any]
    question: Question
    problem: Any
    releases: list[Release]
    usable: list[Release]
    left_out: tuple[Level, ...]

    def infer(self, seed: int, chains: int, draws: int, report: Progress | None) -> Result:
        """Return the result of the method."""
        method = self.analyst.methods[self.question.method or ""]
        return self.described(method(self.problem, seed, chains, draws, report))

    def described(self, result: Result) -> Result:
        """Return a result that knows its releases, and which groups were left out."""
        if not isinstance(result, Posterior):
            return result
        promised = tuple(r.statement() for r in self.releases)
        details = dict(result.details)
        if self.left_out:
            why = f"they have fewer than {self.analyst.least_records} records"
            details |= {"left_out": self.left_out, "why_left_out": why}
        return replace(result, guarantees=promised, releases=tuple(self.releases), details=details)

    def slabs(self, seed: int, chains: int, draws: int) -> slabs.Slabs | None:
        """Return the slabs of groups; None where the method has none."""
        method = self.analyst.in_slabs(self.problem, self.question.method or "")
        if method is None:
            return None
        outline = self.described(method.outline)
        assert isinstance(outline, Posterior)  # noqa: S101  # described keeps the class
        return slabs.Slabs(
            self.model, tuple(self.usable), self.question, seed, chains, draws,
            tuple(outline.draws), words_of(outline), method.groups_per_slab,
        )  # fmt: skip


def _summary(
    asked_for: Prepared, seed: int, chains: int, draws: int,
    out: str | os.PathLike[str] | None, part: Part | None, report: Progress | None,
) -> PosteriorSummary:  # fmt: skip
    """Return the summary: of slabs, or where the method has none, of the posterior."""
    in_slabs = asked_for.slabs(seed, chains, draws)
    if in_slabs is not None:
        return slabs.run(in_slabs, out, part, report)
    if out is not None:
        raise ArgumentError(
            "out: only groups of a linear regression without factors, by exact or naive, are "
            "inferred in slabs; leave it out, and save() the summary"
        )
    result = asked_for.infer(seed, chains, draws, report)
    if not isinstance(result, Posterior):
        raise ArgumentError(f"keep: {asked_for.model} has no draws to sum up; leave it out")
    return summarised(result)


def prepared(
    release: Any,
    method: str | None,
    words: Mapping[str, Any],
    *,
    chains: int,
    draws: int,
    keep: Literal["draws", "summary"],
    model: str | None = None,
    prior: Any = None,
    same_population: bool = False,
    pool: bool = False,
    features: Any = None,
    parent: str | None = None,
    groups: Iterable[Level] | None = None,
) -> Prepared:
    """Check and read what ``infer`` is asked, and warn of what may go wrong; sample nothing.

    The arguments are those of ``infer``; ``words`` are those of the model, such as ``x``.
    """
    releases = of_named_groups(_listed(release), groups)
    first = releases[0]
    if len(releases) > 1:
        combine.check(releases, same_population=same_population)
    kind, stands_for = models.find_asked(first.family, model)
    analyst = kind.analyst()
    if keep == "summary" and not analyst.summarising:
        raise ArgumentError(
            f"keep: results of a {kind.name} are no draws by parameter that could be summed up; "
            "leave it out"
        )
    shared = pooled_features(kind, first, pool, features, parent)
    chosen = _chosen_method(analyst, first, method, shared is not None)
    _check_method(analyst, chosen, len(releases))
    check_at_least("chains", chains, FEWEST_CHAINS)
    check_at_least("draws", draws, FEWEST_DRAWS)
    refuse_reserved(kind, words)
    question = replace(asked(prior, **{**words, **stands_for}), method=chosen, pool=shared)
    usable, left_out = releases, tuple[Level, ...]()
    if shared is None:  # The population speaks for a pooled group without records.
        usable, left_out = usable_groups(releases, analyst.least_records)
    _warn_if_empty(usable)
    problem = analyst.problem(usable, question)
    for caution in analyst.cautions(problem, question, usable):
        warn_user(caution)
    return Prepared(kind.name, analyst, question, problem, releases, usable, left_out)


def of_named_groups(releases: list[Release], groups: Iterable[Level] | None) -> list[Release]:
    """Return the releases of the groups with these keys, in the order of the release."""
    if groups is None:
        return releases
    there = releases[0].groups
    if there is None:
        raise ArgumentError("groups: this release has none; leave it out")
    if isinstance(groups, str | int):
        raise ArgumentError(f"groups: must be a list of keys, such as [{groups!r}]")
    wanted = set(groups)
    if not wanted:
        raise ArgumentError("groups: must name at least one")
    if unknown := [key for key in wanted if key not in there.keys]:
        named = ", ".join(map(shown, there.keys[:MAX_NAMED]))
        more = ", …" if len(there.keys) > MAX_NAMED else ""
        raise ArgumentError(
            f"groups: {shown(unknown[0])} is no group of the release, which has {named}{more}"
        )
    rows = [i for i, key in enumerate(there.keys) if key in wanted]
    return [r.of_groups(rows) for r in releases]


def pooled_features(
    model: Model, release: Release, pool: bool, features: Any, parent: str | None
) -> PublicFeatures | None:
    """Return the features of pooled groups; None where they are not pooled."""
    if not isinstance(pool, bool):
        raise ArgumentError(f"pool: must be True or False, not {pool!r}")
    if not pool:
        for name, value in (("features", features), ("parent", parent)):
            if value is not None:
                raise ArgumentError(f"{name}: goes with pooled groups; give pool=True too")
        return None
    if not model.analyst().pooling:
        raise ArgumentError(
            f"pool: a {model.name} cannot pool its groups; linear regressions and families of one "
            "parameter can, by exact"
        )
    if release.groups is None:
        raise ArgumentError("pool: this release has no groups; leave it out")
    if len(release.groups.keys) < FEWEST_GROUPS:
        raise ArgumentError(
            f"pool: at least {FEWEST_GROUPS} groups are needed to learn how they differ, not "
            f"{len(release.groups.keys)}; leave it out"
        )
    return public_features(features, release.groups.keys, release.groups.column, parent)


def _chosen_method(
    analyst: Analyst[Any], release: Release, method: str | None, pooled: bool
) -> str:
    """Return the method that was named, or the model's best; one that pools where asked to."""
    if not pooled:
        return analyst.default_method(release) if method is None else method
    if method is not None and method in analyst.methods and method not in analyst.pooling:
        able = ", ".join(map(repr, analyst.pooling))
        raise ArgumentError(f"pool: {method!r} takes every group by itself; groups pool by {able}")
    return analyst.pooling[0] if method is None else method


def usable_groups(
    releases: Sequence[Release], least: int
) -> tuple[list[Release], tuple[Level, ...]]:
    """Return the releases of the groups that have enough records, and the keys of the others.

    A warning names the others. Of secret sizes it names the groups whose noisy number of records
    is too small, but leaves none out: how many they have nobody knows.

    Args:
        releases: of the same groups.
        least: records that a group must have.
    """
    groups = releases[0].groups
    sizes = [_sizes(r) for r in releases]
    if groups is None or any(s is None for s in sizes):
        return list(releases), ()
    few = np.any([np.asarray(s) < least for s in sizes], axis=0)
    secret = releases[0].n is None
    if not few.any() or (few.all() and not secret):
        return list(releases), ()
    named = ", ".join(shown(groups.keys[i]) for i in np.flatnonzero(few)[:MAX_NAMED])
    more = ", …" if few.sum() > MAX_NAMED else ""
    if secret:
        warn_user(
            f"release: the noisy number of records is below {least} in {few.sum()} of {len(few)} "
            f"groups; what is inferred of these rests on the prior: {named}{more}"
        )
        return list(releases), ()
    warn_user(
        f"release: {few.sum()} of {len(few)} groups have fewer than {least} records and are left "
        f"out, since nothing can be inferred of them: {named}{more}"
    )
    kept = np.flatnonzero(~few).tolist()
    left_out = tuple(groups.keys[i] for i in np.flatnonzero(few))
    return [r.of_groups(kept) for r in releases], left_out


def _warn_if_empty(releases: Sequence[Release]) -> None:
    """Warn where no release without groups tells its secret number of records from 0."""
    counts = [_noisy_n(r) for r in releases]
    if any(n is None or n[0] > ZERO_SDS * n[1] for n in counts):
        return
    n, sd = counts[0] or (0.0, 0.0)
    where = releases[0].where
    asked_for = "" if where is None else f" with {where}"
    warn_user(
        f"release: the noisy number of records{asked_for} is {n:.0f}, with noise of a standard "
        f"deviation of {sd:.1f}: there may be none, and what is inferred then rests on the prior"
    )


def _noisy_n(release: Release) -> tuple[float, float] | None:
    """Return the noisy n and the noise's deviation; None where n is public, by group or unknown."""
    counted = [b for b in release.blocks if b.statistic.counts_records]
    if release.n is not None or release.groups is not None or not counted:
        return None
    place = counted[0].statistic.names.index("n")
    sd = noise_sd(counted[0].noise) * counted[0].statistic.units[place]
    return float(counted[0].scaled[place, 0]), sd


def _sizes(release: Release) -> np.ndarray | None:
    """Return the number of records in each group, public or noisy; None where nobody counted."""
    if release.n is not None:
        return np.atleast_1d(release.n)
    counted = [b for b in release.blocks if b.statistic.counts_records]
    return counted[0].scaled[counted[0].statistic.names.index("n")] if counted else None


def methods(model: str) -> Mapping[str, Method[Any]]:
    """Return the methods of a model by name, best first.

    Example:
        >>> from noisewise.inference import methods
        >>> list(methods("exponential-family"))
        ['exact', 'gibbs', 'naive']
    """
    return models.find(model).analyst().methods


def asked(prior: object, **words: object) -> Question:
    """Return the analyst's question: the prior, and the words that were given."""
    return Question(prior, {name: value for name, value in words.items() if value is not None})


@contextmanager
def reporting(progress: Progress | bool | None, what: str) -> Iterator[Progress | None]:
    """Give the callback to call while the context lasts, or None where nobody is watching.

    XLA does not complain of slow compilations meanwhile.

    Args:
        progress: a callback, which is given as it is, or what its ``about`` makes of the words if
            it has one; True for a bar; False for none; None for a bar that vanishes at the end, if
            standard error is a terminal.
        what: the words beside the bar.
    """
    with without_compile_alarm(), _watched(progress, what) as report:
        yield report


@contextmanager
def _watched(progress: Progress | bool | None, what: str) -> Iterator[Progress | None]:
    """Give the callback of ``reporting``."""
    if callable(progress):
        yield progress.about(what) if hasattr(progress, "about") else progress
        return
    if progress is False or (progress is None and not sys.stderr.isatty()):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=progress is None) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def check_at_least(name: str, value: object, least: int) -> None:
    """Raise an ArgumentError unless the argument is a whole number that is large enough."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ArgumentError(f"{name}: must be a whole number of at least {least}, not {value!r}")


def _check_method(analyst: Analyst[Any], method: str, releases: int) -> None:
    """Raise an ArgumentError unless the model has that method, for so many releases."""
    if method not in analyst.methods:
        raise ArgumentError(f"method: must be one of {', '.join(analyst.methods)}, not {method!r}")
    if releases > 1 and method not in analyst.combining:
        able = ", ".join(map(repr, analyst.combining))
        which = f"by {able} only" if able else "by no method of this model"
        raise ArgumentError(f"method: {method!r} takes one release; several are combined {which}")


def _listed(release: Any) -> list[Release]:
    """Return one release or several as a list; paths are read."""
    given = [release] if isinstance(release, Release | str | os.PathLike) else release
    if isinstance(given, Iterable):
        listed = [Release.load(r) if isinstance(r, str | os.PathLike) else r for r in given]
        if listed and all(isinstance(r, Release) for r in listed):
            return listed
    raise ArgumentError(
        "release: must be a Release, or a list of them, or the path of a release file, "
        f"not {type(release).__name__}"
    )


def load(path: str | os.PathLike[str]) -> Release | Result:
    """Read any file that noisewise wrote: a release, or a result of ``infer``.

    Args:
        path: the file; its content says what it is, whatever its ending.

    Returns:
        A `Release`, or the result with the class it was saved from.

    Example:
        >>> import noisewise as nw
        >>> release = nw.release.exponential_family(
        ...     nw.datasets.social_mobility(tracts=20), column="kir", family="exponential",
        ...     bounds=(0, 1), epsilon=1.0,
        ... )
        >>> nw.load(release.save("release.json")) == release
        True
    """
    from noisewise.inference.posterior_files import HEAD, load_posterior

    file = Path(path)
    if file.is_dir():
        return load_posterior(file)
    try:
        with file.open("rb") as opened:
            head = opened.read(HEAD)
            # Other programs may write the keys of a release in another order.
            text = head + opened.read(MAX_BYTES) if head.lstrip().startswith(b"{") else head
            is_release = b'"noisewise-release"' in text
    except OSError as error:
        raise ArgumentError(f"path: cannot read {str(file)!r}: {error.strerror}") from None
    return Release.load(file) if is_release else load_posterior(file)
