"""The posterior of a generalized linear model: coefficients, predictions, effects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from noisewise.artifact import ArgumentError, CellSums, Level, Release, validation
from noisewise.artifact.clamping import clamping_in_words, left_out_in_words
from noisewise.artifact.readable_numbers import in_full, range_in_full
from noisewise.artifact.user_warnings import warn_user
from noisewise.artifact.validation import text
from noisewise.formula import DesignColumn
from noisewise.inference.new_records import given_records, together
from noisewise.inference.results import Posterior, Prediction, by_name
from noisewise.models.generalized_linear.covariate_moments import CovariateMoments, DesignMoments
from noisewise.models.generalized_linear.covariate_nodes import CovariateNodes
from noisewise.models.generalized_linear.response_laws import RESPONSE_LAWS, ResponseLaw
from noisewise.models.linear_regression import (
    design_matrix,
    predicted_records,
    reference_levels,
)
from noisewise.models.linear_regression.factor_problem import noisy_sizes
from noisewise.models.linear_regression.level_counts import hidden_levels_in_words
from noisewise.models.linear_regression.posterior import restored_column

if TYPE_CHECKING:
    import pandas as pd

    from noisewise.models.generalized_linear.problem import GeneralizedProblem
    from noisewise.models.generalized_linear.problem_with_factors import FactorsProblem

LARGE_SHIFT = 1.0
"""Deviations between the medians under two laws of the covariates from which the shape decides
(chosen; docs/evidence-generalized-linear.md)."""
LARGE_SLOPE = 2.0
"""Slope per standard deviation of a column above which its shape decides (logits; chosen)."""
LARGE_LOG_RATE = 1.5
"""The same of log rates, whose exponential depends more on the shape (chosen)."""
LARGE_PREDICTOR = 3.0
"""Deviation of the predictor that is near separation (logits; chosen)."""
FEW_EVENTS = 20.0
"""Expected events, or records without, below which the normal law of sums is untested."""
FEW_RECORDS = 50
"""The same of records, with five covariates or more."""
CLAMPED_SHARE = 1e-3
"""Expected share of counts beyond their bound from which a caution is due (chosen)."""
LOGITS = {"logistic": 1.0, "probit": 1.65, "poisson": 1.0}
"""Logits in a unit of the link, for the limits above (probits: matched in the tails)."""


@dataclass(frozen=True, eq=False, repr=False)
class GeneralizedPosterior(Posterior):
    """Draws of the slopes (named as ``x``) and of ``intercept``, on the scale of the link.

    A regression by a formula has a ``design``, with a column for every slope and the intercept
    last, and the public ``levels`` of its factors. ``event`` is the level of a response that is a
    factor which counts as 1.
    """

    model_name = "logistic-regression"
    link: str
    x: tuple[str, ...]
    y: str
    moments: CovariateMoments
    design: tuple[DesignColumn, ...] = ()
    levels: Mapping[str, tuple[Level, ...]] = field(default_factory=dict)
    event: Level | None = None

    @property
    def title(self) -> str:
        """Return the model, the response and its covariates."""
        event = "" if self.event is None else f" = {self.event}"
        return f"{self.link} regression of {self.y}{event} on {', '.join(self.covariates)}"

    @property
    def covariates(self) -> tuple[str, ...]:
        """Return the columns to which a prediction needs values."""
        return design_matrix.table_columns(self.design) if self.design else self.x

    @property
    def law(self) -> ResponseLaw:
        """Return the law of the response given its predictor."""
        return RESPONSE_LAWS[self.link]

    def attributes(self) -> dict[str, object]:
        """Return link, columns and the covariates' moments, for a file."""
        named: dict[str, object] = {
            "link": self.link, "x": list(self.x), "y": self.y,
            "moments": self.moments.attributes(),
        }  # fmt: skip
        if not self.design:
            return named
        return named | {
            "design": [asdict(column) for column in self.design],
            "levels": {factor: list(levels) for factor, levels in self.levels.items()},
            "event": self.event,
        }

    @property
    def cautions(self) -> tuple[str, ...]:
        """Return what may make the numbers wrong, and what was clamped or left out."""
        words = [
            *self._hidden(),
            *self._naive(),
            *self._shape_decides,
            *self._steep(),
            *self._few_events(),
            *self._clamped_counts(),
        ]
        for release in self.releases:
            words += clamping_in_words(
                release, (*self.covariates, self.y), taken_as_normal=True, knows_cuts=False
            )
            words += hidden_levels_in_words(release, self.levels)
            words += left_out_in_words(release)
        return (*dict.fromkeys(words), *self.group_cautions)

    @cached_property
    def shape_shift(self) -> dict[str, np.ndarray]:
        """Return by how many posterior deviations the law of the covariates moves a coefficient.

        Between normal covariates and those made from the bounds; NaN where one law was asked for.
        """
        shift = self.details.get("shape_shift") or {}
        return {name: np.asarray(value, float) for name, value in shift.items()}

    @property
    def _shape_decides(self) -> list[str]:
        # Of a column that is 0 or 1 the law is known.
        numbers = [n for n, known in zip(self.x, self.moments.indicators, strict=True) if not known]
        moved = [
            name
            for name in numbers
            if np.nanmax(np.append(self.shape_shift.get(name, 0.0), 0.0)) > LARGE_SHIFT
        ]
        if not moved:
            return []
        where = self._where({n: self.shape_shift[n] > LARGE_SHIFT for n in moved})
        return [
            f"{', '.join(moved)}: the intervals rest on how the covariates are spread, which the "
            "release does not tell beyond bounds, means and covariances. Normal covariates would "
            f"move the estimate by more than a posterior standard deviation{where}. Taken is the "
            "most even spread within the bounds, which fits even, skewed and 0/1 columns, and not "
            "clusters"
        ]

    def _hidden(self) -> list[str]:
        """Return which columns the noise hides, and what would help."""
        hidden = [c for c in self.details.get("hidden") or () if c in self.x]
        if not hidden:
            return []
        verb, slope = ("varies", "its slope") if len(hidden) == 1 else ("vary", "their slopes")
        return [
            f"The noise hides how much {', '.join(hidden)} {verb}, so {slope} and the intercept "
            "may be hardly known. Narrower bounds, more records or a larger epsilon would help the "
            "next release"
        ]

    def _naive(self) -> list[str]:
        """Say what ``naive`` takes for granted, and where it found nothing."""
        if self.method != "naive":
            return []
        shape = "" if self.design else " and takes the covariates as normal"
        words = [f"Method naive ignores the noise{shape}"]
        unsolved = self.details.get("unsolved", 0)
        if unsolved:
            words.append(
                f"In {unsolved} of {len(self.keys or (None,))} the noisy sums are such as no "
                "coefficients give, and what is said there means nothing"
            )
        return words

    def _where(self, marks: Mapping[str, np.ndarray]) -> str:
        """Return in how many groups, where there are groups."""
        if self.keys is None:
            return ""
        many = int(np.any([np.asarray(m) for m in marks.values()], axis=0).sum())
        return f" in {many} of {len(self.keys)} groups"

    def _medians(self) -> np.ndarray:
        """Return posterior medians (group, slope)."""
        values = [np.median(self.draws[name], axis=(-2, -1)) for name in self.x]
        return np.stack([np.atleast_1d(v) for v in values], axis=1)

    @cached_property
    def _covariance(self) -> np.ndarray:
        half = self.moments.half
        return np.asarray(self.moments.covariance * half[:, None] * half)

    def _steep(self) -> list[str]:
        """Say where the predictor varies so much that the data are nearly separated."""
        slopes = self._medians() * LOGITS[self.link]
        sd = np.sqrt(np.diagonal(self._covariance, axis1=1, axis2=2))
        limit = LARGE_LOG_RATE if self.link == "poisson" else LARGE_SLOPE
        steep = np.abs(slopes) * sd > limit
        whole = np.sqrt(np.einsum("gi,gij,gj->g", slopes, self._covariance, slopes))
        apart = whole > LARGE_PREDICTOR
        words = []
        if steep.any():
            names = [c for c, s in zip(self.x, steep.any(axis=0), strict=True) if s]
            where = self._where({"": steep.any(axis=1)})
            much = f"changes {self.y} by more than {LARGE_SLOPE:g} logits"
            if self.link == "poisson":
                much = f"multiplies the rate of {self.y} by more than {np.exp(LARGE_LOG_RATE):.2g}"
            words.append(
                f"{', '.join(names)} {much} per standard deviation{where}: such a slope depends on "
                "the shape of the column, which the release does not tell"
            )
        if apart.any() and self.link != "poisson":
            words.append(
                f"The covariates nearly separate {self.y}{self._where({'': apart})}: coefficients "
                "rest on the few records between, and on the prior"
            )
        return words

    def _few_events(self) -> list[str]:
        """Say where events, or records, are too few for the normal law of sums."""
        sizes = self._sizes()
        if sizes is None:
            return []
        words = []
        share = self._mean_response()
        if self.link == "poisson":
            few = share * sizes < FEW_EVENTS
            if few.any():
                words.append(
                    f"Fewer than {FEW_EVENTS:g} {self.y} are expected in all"
                    f"{self._where({'': few})}: sums of so few are not normal, as this method "
                    "takes them to be"
                )
        else:
            few = np.minimum(share, 1 - share) * sizes < FEW_EVENTS
            if few.any():
                words.append(
                    f"Fewer than {FEW_EVENTS:g} records are expected with {self.y} = 1, or with "
                    f"{self.y} = 0{self._where({'': few})}: sums of so few are not normal, as this "
                    "method takes them to be"
                )
        small = sizes < FEW_RECORDS
        if len(self.x) >= 5 and small.any():
            words.append(
                f"Fewer than {FEW_RECORDS} records for {len(self.x)} covariates"
                f"{self._where({'': small})}: the central limit theorem, on which this method "
                "rests, is untested there"
            )
        return words

    def _sizes(self) -> np.ndarray | None:
        """Return the records of every group, noisy where they are secret; None without a file."""
        if not self.releases:
            return None
        release = self.releases[0]
        if release.n is not None:
            sizes = np.atleast_1d(np.asarray(release.n, float))
        else:
            sizes = np.maximum(_noisy_sizes(release), 1.0)
        if self.keys is None or release.groups is None:
            return sizes
        place = {key: i for i, key in enumerate(release.groups.keys)}
        return np.asarray(sizes[[place[key] for key in self.keys]])

    def _mean_response(self) -> np.ndarray:
        """Return the mean response (group) over the records, at posterior medians."""
        return np.array([
            nodes.weight @ self.law.mean(self._predictor_at(nodes, g))
            for g, nodes in enumerate(self._nodes)
        ])  # fmt: skip

    @cached_property
    def _nodes(self) -> tuple[CovariateNodes, ...]:
        return tuple(self.moments.nodes(g) for g in range(len(self.moments.mean)))

    def _predictor_at(self, nodes: CovariateNodes, group: int) -> np.ndarray:
        intercept = np.atleast_1d(np.median(self.draws["intercept"], axis=(-2, -1)))[group]
        return np.asarray(intercept + nodes.z @ self._medians()[group])

    def _clamped_counts(self) -> list[str]:
        """Say where the model expects counts beyond their bound, which were moved to it."""
        if self.link != "poisson" or not self.releases:
            return []
        from scipy.stats import poisson

        bound = self.releases[0].bounds[self.y].upper
        share = np.array([
            nodes.weight @ poisson.sf(np.floor(bound), self.law.mean(self._predictor_at(nodes, g)))
            for g, nodes in enumerate(self._nodes)
        ])  # fmt: skip
        if share.max() < CLAMPED_SHARE:
            return []
        return [
            f"About {share.max():.1%} of {self.y} lie above their bound, {in_full(bound)}"
            f"{self._where({'': share >= CLAMPED_SHARE})}, and were moved to it: rates come out "
            "too small"
        ]

    def predict(
        self,
        new_x: Mapping[str, float | Level | None] | pd.DataFrame | pd.Series[Any] | None = None,
        *,
        seed: int = 0,
    ) -> Prediction:
        """Return the distribution of a new record's response at given covariates.

        ``expected`` holds the draws of its probability, or of its rate, and ``mean_interval`` their
        interval; ``draws`` new records: 0 or 1, or counts.

        Args:
            new_x: a number for each covariate, in the user's units, or the level of a factor; None
                or NaN for a gap, where the release has a public value for those of its column. Or a
                pandas table with these columns, a record in each row: results then lead with the
                row. Other columns are ignored.
            seed: of the new record's scatter.
        """
        rows, many = given_records(new_x, self.covariates, self.draws["intercept"].size)
        at = [predicted_records.checked(self.releases, self.levels, row) for row in rows]
        for warning in dict.fromkeys(w for record in at for w in self._beyond_bounds(record)):
            warn_user(warning)
        rng = np.random.default_rng(seed)
        predicted = [self._predicted(record, rng) for record in at]
        return together(predicted) if many else predicted[0]

    def _predicted(self, at: Mapping[str, float], rng: np.random.Generator) -> Prediction:
        """Return the prediction of one record."""
        values: Mapping[str, float] = at
        if self.design:
            record = {name: np.array([value]) for name, value in at.items()}
            (row,) = design_matrix.design_matrix(self.design[:-1], record, 1)
            values = dict(zip(self.x, row.tolist(), strict=True))
        predictor = np.array(self.draws["intercept"])
        for column in self.x:
            predictor = predictor + self.draws[column] * values[column]
        mean = self.law.mean(predictor)
        return Prediction(self.law.records(rng, mean), mean)

    def as_released(self, column: str, value: object) -> object:
        """Return a value of a covariate as the release took it, where the file says how."""
        return predicted_records.as_released(self.releases, column, value)

    def _beyond_bounds(self, at: Mapping[str, float]) -> list[str]:
        bounds = self.releases[0].bounds if self.releases else {}
        return [
            f"{column} = {in_full(value)} lies outside its public bounds, "
            f"{range_in_full(bounds[column].lower, bounds[column].upper)}: no record was seen "
            "there, and the prediction extends the model"
            for column, value in at.items()
            if column in bounds
            and column not in self.levels
            and not bounds[column].lower <= value <= bounds[column].upper
        ]

    def effects(
        self, per: Mapping[str, float] | None = None, interval: float = 0.95
    ) -> pd.DataFrame:
        """Return what slopes mean: odds or rate ratios, and average marginal effects.

        The ratio is what one unit of the column multiplies the odds (or the rate) by, others held
        fixed; probits have none. The average effect is the change of the probability (or of the
        rate) per unit, averaged over the records, whose distribution is the one the posterior was
        inferred with; of a factor's level, the difference if all records had it to all having the
        reference.

        Args:
            per: units to speak of, such as ``{"income": 1000}``; 1 unless given.
            interval: probability of the central intervals.

        Returns:
            A table with one row per covariate (and group): ``per``; median, ``_lower`` and
            ``_upper`` of ``odds_ratio`` or ``rate_ratio``, and of ``average_effect``.

        Example:
            >>> import noisewise as nw, numpy as np, pandas as pd
            >>> rng = np.random.default_rng(0)
            >>> age = rng.uniform(20, 80, 2000)
            >>> ill = rng.random(2000) < 1 / (1 + np.exp(4 - age / 15))
            >>> release = nw.release.linear_regression(
            ...     pd.DataFrame({"age": age, "ill": ill * 1.0}), x=["age"], y="ill",
            ...     bounds={"age": (20, 80), "ill": (0, 1)}, epsilon=5.0,
            ... )
            >>> post = nw.infer(release, model="logistic")
            >>> post.effects(per={"age": 10}).shape
            (1, 7)
        """
        import pandas as pd

        if not 0 < interval < 1:
            raise ArgumentError(f"interval: must be between 0 and 1, not {interval!r}")
        units = dict(per or {})
        for name, unit in units.items():
            if name not in self.x:
                raise ArgumentError(f"per: {name!r} is no covariate; there are {', '.join(self.x)}")
            if not isinstance(unit, int | float | np.number) or not 0 < abs(unit) < np.inf:
                raise ArgumentError(f"per: {name} must be a number other than 0, not {unit!r}")
        tails = (1 - interval) / 2, 0.5, (1 + interval) / 2
        sensitivity = self.mean_slope
        rows = []
        for g, key in enumerate(self.keys or (None,)):
            for column in self.x:
                unit = float(units.get(column, 1.0))
                drawn = self.draws[column] if self.keys is None else self.draws[column][g]
                row: dict[str, object] = {} if key is None else {"group": key}
                row |= {"parameter": column, "per": unit}
                effect = (
                    self._contrast(column, g) if column in self._level_columns
                    else unit * drawn * sensitivity[g]
                )  # fmt: skip
                kinds = {"average_effect": np.quantile(effect, tails)}
                if self.law.ratio is not None:
                    with np.errstate(over="ignore"):  # A huge unit may multiply odds by infinity.
                        ratio = np.exp(np.quantile(unit * drawn, tails))
                    kinds = {self.law.ratio: ratio, **kinds}
                for name, (low, middle, high) in kinds.items():
                    row |= {name: middle, f"{name}_lower": low, f"{name}_upper": high}
                rows.append(row)
        index = "parameter" if self.keys is None else ["group", "parameter"]
        return pd.DataFrame(rows).set_index(index)

    def with_reference(self, **references: object) -> GeneralizedPosterior:
        """Return the posterior with other reference levels: the same draws, named by others.

        Args:
            **references: a level for each factor whose reference is to change.

        Example:
            >>> import noisewise as nw, pandas as pd
            >>> people = pd.DataFrame({"sex": ["f", "m"] * 50, "ill": [1.0, 0.0, 1.0, 1.0] * 25})
            >>> release = nw.release.linear_regression(
            ...     people, formula="ill ~ C(sex)", bounds={"ill": (0, 1)},
            ...     levels={"sex": ["f", "m"]}, epsilon=5.0,
            ... )
            >>> post = nw.infer(release, model="logistic").with_reference(sex="m")
            >>> list(post.draws)
            ["C(sex, contr.treatment('m'))[T.f]", 'intercept']
        """
        from noisewise.models.generalized_linear.posterior_with_factors import recoded

        design = self.design
        for factor, level in references.items():
            if factor not in self.levels:
                there = ", ".join(self.levels) or "none"
                raise ArgumentError(f"{factor}: is no factor of this regression; there are {there}")
            (wanted,) = design_matrix.codes([level], self.levels[factor], factor)
            if wanted != reference_levels.reference_of(design, self.levels, factor):
                design = reference_levels.with_reference(design, self.levels, factor, int(wanted))
        return self if design == self.design else recoded(self, design)

    @property
    def _level_columns(self) -> dict[str, str]:
        """Return the factor of every column that is a level."""
        return {c.name: c.levels[0][0] for c in self.design if c.levels}

    def _contrast(self, column: str, group: int) -> np.ndarray:
        """Return draws of the mean response if all had a level, less that of the reference."""
        nodes, factor = self._nodes[group], self._level_columns[column]
        own = np.array([self._level_columns.get(name) == factor for name in self.x])
        at = np.where(own, 0.0, nodes.z)
        drawn = [self.draws[n] for n in (*self.x, "intercept")]
        theta = np.stack([d[group] if self.keys is not None else d for d in drawn], axis=-1)
        without = theta.reshape(-1, len(drawn)) @ np.column_stack([at, np.ones(len(at))]).T
        slope = theta[..., self.x.index(column)].reshape(-1, 1)
        moved = self.law.mean(without + slope) - self.law.mean(without)
        return np.asarray((moved @ nodes.weight).reshape(theta.shape[:-1]))

    @cached_property
    def mean_slope(self) -> np.ndarray:
        """Return draws (group, chain, draw) of h'(t), averaged over the covariates' law."""
        drawn = [self.draws[n] for n in (*self.x, "intercept")]
        theta = np.stack([d if self.keys is not None else d[None] for d in drawn], axis=-1)
        groups, chains, draws, size = theta.shape
        result = np.empty((groups, chains, draws))
        for g, nodes in enumerate(self._nodes):
            design = np.column_stack([nodes.z, np.ones(len(nodes.z))])
            t = theta[g].reshape(-1, size) @ design.T
            result[g] = (self.law.slope(t) @ nodes.weight).reshape(chains, draws)
        return result


@dataclass(frozen=True, eq=False, repr=False)
class PoissonPosterior(GeneralizedPosterior):
    """The posterior of a regression of counts."""

    model_name = "poisson-regression"


def _noisy_sizes(release: Release) -> np.ndarray:
    """Return the noisy number of records (group)."""
    for block in release.blocks:
        if isinstance(block.statistic, CellSums):
            return noisy_sizes(block.scaled.T, block.statistic)
    sums = release.block("gram")
    return np.asarray(sums.scaled[sums.statistic.names.index("n")])


def posterior_class(link: str) -> type[GeneralizedPosterior]:
    """Return the class of the posteriors of a link."""
    return PoissonPosterior if link == "poisson" else GeneralizedPosterior


def posterior_of(
    problem: GeneralizedProblem,
    user: np.ndarray,
    rhat: np.ndarray,
    ess: np.ndarray,
    method: str,
    details: Mapping[str, Any],
    shift: np.ndarray | None,
    mean: np.ndarray,
    covariance: np.ndarray,
) -> GeneralizedPosterior:
    """Return the posterior of draws (parameter, group, chain, draw) in the user's units.

    Args:
        problem: whose columns stand in the sampler's order.
        user: slopes in the user's order, the intercept last.
        rhat: of parameters (parameter, group).
        ess: likewise.
        method: by which it was inferred.
        details: of the sampling.
        shift: the shape shift (parameter, group), where it is known.
        mean: posterior mean of x̄ (group, column), the sampler's order.
        covariance: likewise of S / n.
    """
    names = (*problem.x, "intercept")
    inverse = np.argsort(problem.order)
    moments = CovariateMoments(
        mean[:, inverse], covariance[:, inverse][:, :, inverse], problem.units.centre[:-1],
        problem.units.half[:-1], problem.indicators[inverse], problem.law,
    )  # fmt: skip
    known = dict(details)
    if shift is not None and not np.isnan(shift).all():
        known["shape_shift"] = {k: np.asarray(v).tolist() for k, v in
                                by_name(names, shift, problem.keys).items()}  # fmt: skip
    return posterior_class(problem.link)(
        draws=by_name(names, user, problem.keys), rhat=by_name(names, rhat, problem.keys),
        ess=by_name(names, ess, problem.keys), method=method, keys=problem.keys,
        prior=problem.prior_in_words, details=known, link=problem.link, x=problem.x, y=problem.y,
        moments=moments,
        prior_draws=partial(prior_draws, problem, moments),
        without_noise=partial(deviations_without_noise, problem, moments, user),
    )  # fmt: skip


def prior_draws(
    problem: GeneralizedProblem, moments: CovariateMoments, number: int, seed: int = 0
) -> dict[str, np.ndarray]:
    """Draw coefficients from the prior, at the moments of the first group's covariates."""
    rng = np.random.default_rng(seed)
    covariance = moments.covariance[0] * moments.half[:, None] * moments.half
    slopes = problem.slope_sd * rng.standard_normal((number, len(problem.x)))
    slopes /= np.sqrt(np.diagonal(covariance))
    level = problem.level + problem.level_sd * rng.standard_normal(number)
    intercept = level - slopes @ (moments.centre + moments.half * moments.mean[0])
    return dict(zip((*problem.x, "intercept"), [*slopes.T, intercept], strict=True))


def deviations_without_noise(
    problem: GeneralizedProblem | FactorsProblem, moments: CovariateMoments, user: np.ndarray
) -> dict[str, np.ndarray]:
    """Return the deviation of every coefficient had the sums been published as they are.

    By the delta method at posterior medians: the sums (Σ y, Σ y x) have covariance n V, their
    means the slopes n A = n E[h'(t) (1, x)(1, x)ᵀ], and the prior adds its precision.
    """
    law, names = RESPONSE_LAWS[problem.link], (*problem.x, "intercept")
    found = np.empty((len(names), len(problem.n)))
    for g, n in enumerate(problem.n):
        nodes = moments.nodes(g)
        design = np.column_stack([nodes.z, np.ones(len(nodes.z))])
        # Standardised columns keep the arithmetic well conditioned.
        size = np.sqrt(nodes.weight @ (nodes.z - nodes.weight @ nodes.z) ** 2)
        change = np.diag(np.append(1 / size, 1.0))
        change[:-1, -1] = -(nodes.weight @ nodes.z) / size
        white = design @ change.T
        t = design @ np.median(user[:, g], axis=(1, 2))
        slope = (white.T * (nodes.weight * law.slope(t))) @ white
        scatter = (white.T * (nodes.weight * law.variance(t))) @ white / n
        deviations = np.append(np.full(len(problem.x), problem.slope_sd), problem.level_sd)
        precision = slope @ np.linalg.pinv(scatter, hermitian=True) @ slope
        covariance = np.linalg.inv(precision + np.diag(deviations**-2.0))
        found[:, g] = np.sqrt(np.diagonal(change.T @ covariance @ change))
    return by_name(names, found, problem.keys)


def restored(common: Mapping[str, Any], attributes: Mapping[str, Any]) -> GeneralizedPosterior:
    """Return a posterior that was read from a file; a ValueError where it cannot be one."""
    if not isinstance(attributes["x"], list) or attributes["link"] not in RESPONSE_LAWS:
        raise ValueError("the covariates are no list, or the link is unknown")
    x = tuple(text(column, "x") for column in attributes["x"])
    y, link = text(attributes["y"], "y"), attributes["link"]
    if set(common["draws"]) != {*x, "intercept"}:
        raise ValueError("the draws are not those of the covariates")
    levels = {
        factor: validation.levels(listed, f"levels of {factor}")
        for factor, listed in attributes.get("levels", {}).items()
    }
    design = tuple(restored_column(c, levels) for c in attributes.get("design", ()))
    event = attributes.get("event")
    if event is None and any(y not in release.bounds for release in common["releases"]):
        raise ValueError("the response is not in the release")
    _check_shift(common["details"].get("shape_shift", {}), (*x, "intercept"))
    if design:
        if tuple(c.name for c in design) != (*x, "intercept"):
            raise ValueError("x and the design name unlike columns")
        moments: CovariateMoments = DesignMoments.read(attributes["moments"], len(x))
    else:
        moments = CovariateMoments.from_attributes(attributes["moments"], len(x))
    groups = 1 if common["keys"] is None else len(common["keys"])
    if len(moments.mean) != groups:
        raise ValueError("moments are not of as many groups")
    return posterior_class(link)(
        **common, link=link, x=x, y=y, moments=moments, design=design, levels=levels, event=event
    )


def _check_shift(shift: object, names: Sequence[str]) -> None:
    """Raise a ValueError unless a file's shape shift is a number for each name, or one a group."""
    if not isinstance(shift, Mapping) or not set(shift) <= set(names):
        raise ValueError("the shape shift is not of the coefficients")
    for values in shift.values():
        if np.asarray(values).dtype.kind not in "if" or np.ndim(values) > 1:
            raise ValueError("the shape shift is no number")
