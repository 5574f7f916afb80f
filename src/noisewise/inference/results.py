"""Results of ``infer``: what each can be asked, predictions, and posteriors that are draws.

A prediction is the posterior predictive distribution of a new record: parameter uncertainty and
scatter of records together.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from noisewise.artifact import ArgumentError, Release
from noisewise.artifact.clamping import clamping_in_words
from noisewise.artifact.readable_numbers import probability, readable
from noisewise.inference.population import PopulationPosterior, exceedance, ranks

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from arviz import InferenceData

RHAT = 1.01
"""R-hat below which chains are taken to agree (Vehtari et al. 2021)."""
ESS = 400
"""Effective draws from which R-hat and quantiles are reliable (Vehtari et al. 2021)."""

MAX_NAMED = 5
"""Groups that a caution names (chosen)."""
TAILS = (
    "Pooled intervals are meant to be right on average over groups that were drawn from a "
    "population of the kind assumed: the few most extreme groups are drawn towards the others, and "
    "their intervals miss more often; so do those of groups that the noise hides, where these are "
    "unlike what their size and features let expect. Compare with the groups inferred alone"
)
"""What to know of pooled groups, whatever the method (docs/howto-small-areas.md)."""


class Result(ABC):
    """A posterior, or a fitted model, with a plain word on whether to trust it.

    Example:
        >>> import noisewise as nw, pandas as pd
        >>> release = nw.release.exponential_family(
        ...     pd.DataFrame({"owns": [0, 1, 1, 1] * 50}), column="owns", family="bernoulli",
        ...     epsilon=1.0,
        ... )
        >>> result = nw.infer(release)
        >>> result.method, list(result.summary().index)
        ('exact', ['p'])
    """

    model_name: ClassVar[str]
    """The model, as release files and the command line call it."""
    method: str
    """How it was inferred."""
    draws: Mapping[Any, np.ndarray]
    """Draws by name: arrays (chain, draw), or (group, chain, draw) where grouped."""
    predicts_clamped: ClassVar[bool] = False
    """Whether ``predict`` takes ``clamped=True``: new records moved to the bounds."""

    @property
    @abstractmethod
    def title(self) -> str:
        """Return what the result is of, such as ``spend on age, income``."""

    @property
    @abstractmethod
    def converged(self) -> bool:
        """Return whether the computation can be trusted."""

    @property
    @abstractmethod
    def status(self) -> str:
        """Say whether the computation can be trusted, and what to do if not."""

    @abstractmethod
    def summary(self, interval: float = 0.95) -> pd.DataFrame:
        """Return means and central intervals, one row per parameter (and group)."""

    @abstractmethod
    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write a file that ``nw.load`` reads back; it appears whole or not at all."""

    @property
    def covariates(self) -> tuple[str, ...]:
        """Return the columns to which a prediction needs values."""
        return ()

    @property
    def convergence(self) -> str:
        """Say whether the computation converged; ``status`` without the cautions."""
        return self.status

    @property
    def cautions(self) -> tuple[str, ...]:
        """Return what to know before the numbers, a sentence each, without its full stop."""
        return ()

    def predict(self, new_x: Mapping[str, Any] | None = None, *, seed: int = 0) -> Prediction:
        """Return the distribution of a new record, where the model has one."""
        raise ArgumentError(f"predict: a {self.model_name} result predicts no single record")

    def sample(self, n: int, *, seed: int = 0) -> pd.DataFrame:
        """Return n synthetic records, where the model makes some."""
        raise ArgumentError(f"sample: a {self.model_name} result makes no synthetic records")

    def marginal(self, columns: str | Iterable[str]) -> xr.DataArray:
        """Return the joint probabilities of some columns' levels, where the model has them."""
        raise ArgumentError(f"marginal: a {self.model_name} result has no table of levels")

    @property
    def has_intervals(self) -> bool:
        """Return whether ``interval`` gives intervals of the probabilities in ``marginal``."""
        return False

    def interval(self, columns: str | Iterable[str], level: float = 0.95) -> xr.DataArray:
        """Return central intervals of ``marginal``, along a dimension of ``lower`` and ``upper``.

        A name is added to the dimensions of ``marginal``, that of the bound.
        """
        raise ArgumentError(f"interval: a {self.model_name} result has none for a table of levels")

    def to_arviz(self) -> InferenceData:
        """Return the draws as ArviZ's own type (dims chain, draw, group)."""
        from noisewise.inference.arviz import inference_data

        return inference_data(self.draws, None)


@dataclass(frozen=True, eq=False, repr=False)
class Prediction:
    """Draws of a new y (and of its mean), shaped like the posterior's draws.

    Example:
        >>> import noisewise as nw, pandas as pd
        >>> owns = pd.DataFrame({"owns": [0, 1, 1, 1] * 50})
        >>> release = nw.release.exponential_family(
        ...     owns, column="owns", family="bernoulli", epsilon=1.0
        ... )
        >>> prediction = nw.infer(release).predict(seed=1)
        >>> prediction.draws.shape, prediction.interval(0.9).shape
        ((4, 1000), (2,))
        >>> 0 < float(prediction.mean) < 1
        True
    """

    draws: np.ndarray
    expected: np.ndarray

    def __repr__(self) -> str:
        """Say where the new record will lie; of several, how many they are."""
        if self.draws.ndim > 2:
            many = self.draws.shape[0]
            return f"<Prediction of {many} records or groups; see median, interval>"
        middle, low, high = map(readable, (float(self.median), *self.interval(0.9)))
        return (
            f"<Prediction {middle}; a new record lies between {low} and {high} with probability "
            "90 %>"
        )

    @property
    def mean(self) -> np.ndarray:
        """Return the posterior mean of a record's mean, one per group where grouped.

        Where the noise hides a column, a few far draws decide it: see ``median``.
        """
        return np.asarray(self.expected.mean(axis=(-2, -1)))

    @property
    def median(self) -> np.ndarray:
        """Return the point prediction, the median of a record's mean, one per group."""
        return np.asarray(np.median(self.expected, axis=(-2, -1)))

    def interval(self, level: float = 0.9) -> np.ndarray:
        """Return the central interval (lower, upper) of a new y, leading with the group."""
        return self._central(self.draws, level)

    def mean_interval(self, level: float = 0.9) -> np.ndarray:
        """Return the central interval of the regression line itself."""
        return self._central(self.expected, level)

    @staticmethod
    def _central(values: np.ndarray, level: float) -> np.ndarray:
        if not 0 < level < 1:
            raise ArgumentError(f"level: must be between 0 and 1, not {level!r}")
        tails = [(1 - level) / 2, (1 + level) / 2]
        return np.moveaxis(np.quantile(values, tails, axis=(-2, -1)), 0, -1)


@dataclass(frozen=True, eq=False, repr=False)
class CategoryPrediction(Prediction):
    """A new record's category: ``draws`` holds levels, ``expected`` their probabilities (last)."""

    levels: tuple[str | int, ...] = ()

    def __repr__(self) -> str:
        """Say how probable every level is; of groups, how many they are."""
        if self.draws.ndim > 2:
            return f"<Prediction of {self.draws.shape[0]} groups; see probabilities>"
        told = (f"{level} {probability(float(p))}" for level, p in self.probabilities.items())
        return f"<Prediction: {', '.join(told)}>"

    @property
    def probabilities(self) -> dict[str | int, np.ndarray]:
        """Return the probability of every level, one number per group where grouped."""
        mean = self.expected.mean(axis=(-3, -2))
        return {level: np.asarray(mean[..., i]) for i, level in enumerate(self.levels)}

    @property
    def mean(self) -> np.ndarray:
        """Raise an ArgumentError: categories have probabilities only."""
        raise ArgumentError("mean: categories have none; see probabilities")

    @property
    def median(self) -> np.ndarray:
        """Raise an ArgumentError: categories have probabilities only."""
        raise ArgumentError("median: categories have none; see probabilities")

    def interval(self, level: float = 0.9) -> np.ndarray:
        """Raise an ArgumentError: categories have probabilities only."""
        raise ArgumentError("interval: categories have none; see probabilities")

    def mean_interval(self, level: float = 0.9) -> np.ndarray:
        """Raise an ArgumentError: categories have probabilities only."""
        raise ArgumentError("mean_interval: categories have none; see probabilities")


def by_name(
    names: Iterable[str], values: Iterable[np.ndarray], keys: tuple[str | int, ...] | None
) -> dict[str, np.ndarray]:
    """Return arrays (group, …) by parameter; without groups (``keys`` is None) that of the one."""
    return {n: v[0] if keys is None else v for n, v in zip(names, values, strict=True)}


def poorly_sampled(rhat: np.ndarray, ess: np.ndarray) -> np.ndarray:
    """Return whether each group lacks convergence, by R-hat and ESS (parameter, group)."""
    return np.asarray(~((np.max(rhat, axis=0) < RHAT) & (np.min(ess, axis=0) >= ESS)))


def convergence_in_words(bad: int, groups: int | None, rhat: np.ndarray, ess: np.ndarray) -> str:
    """Say whether all converged, and what to do if not.

    Args:
        bad: how many groups have not.
        groups: how many there are; None where the posterior has none.
        rhat: of every parameter and group.
        ess: effective draws, likewise.
    """
    if not bad:
        return f"converged: R-hat < {RHAT} and at least {ESS} effective draws everywhere"
    many = "" if groups is None else f" in {bad} of {groups} groups"
    return (
        f"not converged{many}: R-hat up to {np.max(rhat):.3f}, {np.min(ess):.0f} effective draws "
        f"at the least (wanted: below {RHAT}, at least {ESS}). Ask for more draws; where they do "
        "not help, the release says so little that only a prior which knows more would"
    )


@dataclass(frozen=True, eq=False)
class Posterior(Result):
    """Draws by parameter name: arrays (chain, draw), or (group, chain, draw) where grouped.

    A model derives its own class, which says what the posterior is of and how it predicts.

    ``rhat`` and ``ess`` hold one number (or one per group) for each parameter. ``keys`` are the
    groups. ``prior_draws(number)`` draws the parameters from the prior. ``latent`` holds what else
    a method infers, where it fits memory: for ``exact`` regression the sums behind the noise ``s``
    (in the box), and the mean ``mu_x`` and covariance ``tau2`` of the covariates (user's units),
    arrays (…, chain, draw, …). ``details`` holds tries, divergences, projections and seconds.
    ``guarantees`` says in words what each release promised the people behind it; ``releases`` are
    the public files themselves. ``without_noise()`` gives the standard deviation to be expected of
    every parameter had the sums been published as they are. ``population`` holds the parameters of
    the population where groups were pooled.

    Example:
        >>> import noisewise as nw, pandas as pd
        >>> owns = pd.DataFrame({"owns": [0, 1, 1, 1] * 50})
        >>> release = nw.release.exponential_family(
        ...     owns, column="owns", family="bernoulli", epsilon=1.0
        ... )
        >>> post = nw.infer(release)
        >>> post.method, post.draws["p"].shape
        ('exact', (4, 1000))
        >>> list(post.summary().columns)
        ['mean', 'sd', 'median', 'lower', 'upper', 'rhat', 'ess']
        >>> sorted(post.to_arviz().groups())
        ['constant_data', 'observed_data', 'posterior', 'posterior_predictive', 'prior']
    """

    draws: Mapping[str, np.ndarray]
    rhat: Mapping[str, np.ndarray]
    ess: Mapping[str, np.ndarray]
    method: str
    keys: tuple[str | int, ...] | None = field(default=None, kw_only=True)
    prior: str = field(default="", kw_only=True)
    details: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    latent: Mapping[str, np.ndarray] = field(default_factory=dict, kw_only=True)
    prior_draws: Callable[[int], Mapping[str, np.ndarray]] | None = field(
        default=None, kw_only=True
    )
    guarantees: tuple[str, ...] = field(default=(), kw_only=True)
    releases: tuple[Release, ...] = field(default=(), kw_only=True)
    without_noise: Callable[[], Mapping[str, np.ndarray]] | None = field(default=None, kw_only=True)
    population: PopulationPosterior | None = field(default=None, kw_only=True)

    @property
    def title(self) -> str:
        """Return what the posterior is of: its parameters, unless the model knows better."""
        return ", ".join(self.draws)

    def attributes(self) -> dict[str, object]:
        """Return what a file must keep beside the draws, in JSON's types, for ``restore``."""
        return {}

    @property
    def unconverged(self) -> tuple[str | int | None, ...]:
        """Return the keys of the groups that have not converged (None: the only one)."""
        rhat, ess = ([np.atleast_1d(v) for v in side.values()] for side in (self.rhat, self.ess))
        bad = poorly_sampled(np.array(rhat), np.array(ess))
        keys = (None,) if self.keys is None else self.keys
        return tuple(k for k, b in zip(keys, bad, strict=True) if b)

    @property
    def converged(self) -> bool:
        """Return whether R-hat is below 1.01 and 400 draws are effective, everywhere.

        Of a population: below 1.02, and 200 draws.
        """
        pooled = self.population
        return not self.unconverged and (pooled is None or pooled.converged)

    @property
    def cautions(self) -> tuple[str, ...]:
        """Return what to know before the numbers, a sentence each, without its full stop."""
        clamped = (clamping_in_words(r, taken_as_normal=False) for r in self.releases)
        return (*(words for said in clamped for words in said), *self.group_cautions)

    @property
    def group_cautions(self) -> tuple[str, ...]:
        """Return what to know of pooled groups, and how many groups were not inferred, and why."""
        pooled: tuple[str, ...] = ()
        if self.population is not None:
            learnt = self.population.cautions if self.population.converged else ()
            pooled = (*learnt, TAILS)
        failures = self.details.get("failures", 0)
        if failures:
            pooled += (f"Arithmetic failed in {failures} moves of the sampler, which were skipped",)
        return (*pooled, *self._left_out())

    def _left_out(self) -> tuple[str, ...]:
        """Say how many groups were not inferred, and why."""
        absent = self.details.get("left_out", ())
        if not absent:
            return ()
        named = ", ".join(map(str, absent[:MAX_NAMED])) + (", …" if len(absent) > MAX_NAMED else "")
        many = len(absent) + len(self.keys or ())
        why = self.details.get("why_left_out", "they have too few records")
        return (f"{len(absent)} of {many} groups could not be inferred, since {why}: {named}",)

    @property
    def status(self) -> str:
        """Say whether it converged, what to do if not, and what else to know."""
        return ". ".join((self.convergence, *self.cautions))

    @property
    def convergence(self) -> str:
        """Say whether it converged, and what to do if not."""
        pooled = self.population
        if pooled is not None and not pooled.converged:
            return pooled.convergence
        groups = None if self.keys is None else len(self.keys)
        rhat, ess = (np.array([*side.values()]) for side in (self.rhat, self.ess))
        return convergence_in_words(len(self.unconverged), groups, rhat, ess)

    def summary(self, interval: float = 0.95) -> pd.DataFrame:
        """Return where each parameter lies, R-hat and effective draws, one row per parameter.

        ``mean``, ``sd``, ``median``, and ``lower`` and ``upper`` of a central interval. Lead with
        the median: where the noise hides a column, a posterior's tails are so long that its mean
        and sd say nothing, and they are not printed.

        Args:
            interval: probability of the central interval.

        Returns:
            A table with index ``parameter``, or (``group``, ``parameter``) where there are groups.
        """
        import pandas as pd

        from noisewise.inference.summary_table import summary_table

        if not 0 < interval < 1:
            raise ArgumentError(f"interval: must be between 0 and 1, not {interval!r}")
        at = (1 - interval) / 2, 0.5, (1 + interval) / 2
        frames = []
        for name, values in self.draws.items():
            flat = values.reshape(-1 if self.keys is not None else 1, np.prod(values.shape[-2:]))
            low, middle, high = np.quantile(flat, at, axis=1)
            frame = pd.DataFrame(
                {
                    "parameter": name,
                    "mean": flat.mean(axis=1),
                    "sd": flat.std(axis=1, ddof=1),
                    "median": middle,
                    "lower": low,
                    "upper": high,
                    "rhat": np.atleast_1d(self.rhat[name]),
                    "ess": np.atleast_1d(self.ess[name]),
                }
            )
            if self.keys is not None:
                frame.insert(0, "group", list(self.keys))
            frames.append(frame)
        table = pd.concat(frames, ignore_index=True)
        named = ["group", "parameter"] if self.keys is not None else "parameter"
        return summary_table(table.set_index(named), interval)

    @property
    def shrinkage(self) -> dict[str, np.ndarray]:
        """Return 1 - (posterior variance)/(variance between groups), by parameter, one per group.

        Near 1 a group's own records speak, near 0 the population. Of pooled groups only.
        """
        if self.population is None:
            raise ArgumentError("shrinkage: goes with pooled groups; infer with pool=True")
        return self.population.shrinkage(self.draws)

    def quantity(
        self, parameter: str | None = None, at: Mapping[str, float] | None = None
    ) -> np.ndarray:
        """Return draws (group, chain, draw) of a parameter, or of the mean of a record at ``at``.

        Args:
            parameter: a name among ``draws``; may be left out where there is one only.
            at: values of the covariates, instead.
        """
        if self.keys is None:
            raise ArgumentError("parameter: groups are compared, and this posterior has none")
        if at is not None:
            if parameter is not None:
                raise ArgumentError("at: goes without parameter; give one of the two")
            return self._predicted_at(at).expected
        named = tuple(self.draws) if parameter is None else (parameter,)
        if len(named) > 1 or named[0] not in self.draws:
            there = ", ".join(self.draws)
            where = "; or give at= for the mean of a record" if self.covariates else ""
            raise ArgumentError(f"parameter: must be one of {there}, not {parameter!r}{where}")
        return self.draws[named[0]]

    def _predicted_at(self, at: Mapping[str, float]) -> Prediction:
        """Return the prediction of a record; errors speak of ``at``."""
        try:
            return self.predict(at)
        except ArgumentError as error:
            raise ArgumentError(str(error).replace("new_x", "at", 1)) from None

    def ranks(
        self,
        parameter: str | None = None,
        *,
        at: Mapping[str, float] | None = None,
        interval: float = 0.95,
    ) -> pd.DataFrame:
        """Return where every group ranks, 1 for the largest, with intervals and deciles.

        Args:
            parameter: what is ranked; may be left out where there is one only.
            at: values of the covariates, to rank the mean of a record there instead.
            interval: probability of a rank's central interval.

        Returns:
            A table with index ``group``: ``rank`` (median), ``lower``, ``upper``, and the
            probabilities ``top_decile`` and ``bottom_decile``.
        """
        return ranks(self.quantity(parameter, at), self.keys or (), interval)

    def probability_above(
        self,
        threshold: float,
        parameter: str | None = None,
        *,
        at: Mapping[str, float] | None = None,
        interval: float = 0.95,
    ) -> pd.DataFrame:
        """Return the probability that a parameter, or a mean, is above a threshold, by group.

        Args:
            threshold: in the units of the data.
            parameter: which; may be left out where there is one only.
            at: values of the covariates, to ask of the mean of a record there instead.
            interval: probability of the central interval beside it.

        Returns:
            A table with index ``group``: ``probability``, and the quantity's ``mean``, ``lower``
            and ``upper``.
        """
        return exceedance(self.quantity(parameter, at), self.keys or (), threshold, interval)

    def by_group(
        self,
        parameter: str | None = None,
        *,
        at: Mapping[str, float] | None = None,
        above: float | None = None,
        interval: float = 0.95,
    ) -> pd.DataFrame:
        """Return one row per group, for a map: where a quantity lies, and where the group ranks.

        Args:
            parameter: which; may be left out where there is one only.
            at: values of the covariates, to ask of the mean of a record there instead.
            above: a threshold; the probability of being above it is added.
            interval: probability of the central intervals.

        Returns:
            A table whose index holds the groups' keys, named as in the release: ``mean``,
            ``median``, ``lower``, ``upper``, ``rank``, ``rank_lower``, ``rank_upper``,
            ``top_decile``, ``bottom_decile``, with a threshold ``probability_above``, and of pooled
            groups' parameters ``shrinkage``.
        """
        values, keys = self.quantity(parameter, at), self.keys or ()
        table = exceedance(values, keys, 0.0 if above is None else above, interval)
        probability = table.pop("probability")
        placed = ranks(values, keys, interval)
        placed = placed.rename(columns={"lower": "rank_lower", "upper": "rank_upper"})
        table = table.join(placed)
        if above is not None:
            table["probability_above"] = probability
        name = parameter or next(iter(self.draws))
        if self.population is not None and at is None and name in self.population.variance:
            table["shrinkage"] = self.shrinkage[name]
        columns = [r.groups.column for r in self.releases if r.groups is not None]
        return table.rename_axis(columns[0] if columns else "group")

    def to_arviz(self) -> InferenceData:
        """Return the draws as ArviZ's own type (dims chain, draw, group), with what belongs to it.

        Group ``posterior`` is always there. ``prior`` holds draws of the prior, without groups,
        where the posterior has them (``prior_draws``), which regressions with factors have not.
        ``posterior_predictive`` holds a new record where that needs no covariates, which is so in
        families of one column; of others ask ``predict``. ``observed_data`` holds the noisy sums as
        they were released, and ``constant_data`` the scale of their noise. ``sample_stats`` and the
        log-likelihood of records do not exist: nobody has the records.
        """
        from noisewise.inference import arviz

        data: Any = arviz.inference_data(self.draws, self.keys)
        if self.prior_draws is not None:
            before = self.prior_draws(arviz.PRIOR_DRAWS)
            drawn = {name: np.asarray(values)[None] for name, values in before.items()}
            data.extend(arviz.inference_data(drawn, None, "prior"))
        return arviz.add_prediction_and_observed(data, self)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write a netCDF file that ArviZ and others read; it appears whole or not at all.

        ``nw.load_posterior(path)`` gives the posterior back, without ``latent``.
        """
        from noisewise.inference import posterior_files

        return posterior_files.save(self, Path(path))

    def __repr__(self) -> str:
        return f"<Posterior of {self.title} by {self.method}: {self.status}>"

    def _repr_html_(self) -> str:
        """Return for notebooks where the parameters lie, and whether to trust it."""
        from noisewise.artifact import notebook_html as notebook
        from noisewise.inference.summary_table import told_rows

        rows = self.summary().head(notebook.MOST_ROWS + 1).reset_index()
        head, shown = told_rows(rows, ("median", "lower", "upper", "mean", "sd"))
        return notebook.fragment(
            f"Posterior of {self.title}",
            (f"Method {self.method}; 95 % intervals. {self.status}", *self.guarantees),
            head, shown,
        )  # fmt: skip
