"""The posterior of a linear regression: coefficients, error variance, predictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from noisewise.artifact import ArgumentError, Bounds, Censored, Level, Release, validation
from noisewise.artifact.clamping import clamping_in_words, left_out_in_words
from noisewise.artifact.readable_numbers import in_full, range_in_full
from noisewise.artifact.statistics.cell_sums import numeric_name
from noisewise.artifact.user_warnings import warn_user
from noisewise.formula import INTERCEPT, DesignColumn
from noisewise.inference.new_records import given_records, together
from noisewise.inference.results import Posterior, Prediction
from noisewise.models.linear_regression import (
    design_matrix,
    predicted_records,
    reference_levels,
)
from noisewise.models.linear_regression.censoring import KNOWING_CUTS, clamped_margin
from noisewise.models.linear_regression.level_counts import hidden_levels_in_words
from noisewise.numerics.convergence import diagnose_groups

if TYPE_CHECKING:
    import pandas as pd
    from arviz import InferenceData
    from scipy.sparse import csr_array


TAILS = (0.025, 0.975)
"""Of the intervals whose widths with and without privacy are compared."""
NORMAL = 1.959964
"""Deviations from the mean to the ends of such an interval of a normal law."""


@dataclass(frozen=True, eq=False, repr=False)
class RegressionPosterior(Posterior):
    """Draws of the slopes (named as ``x``), of ``intercept`` and of ``sigma2``.

    A regression by a formula has a ``design``: a column for every slope, the intercept last, made
    of the table's numeric columns and of factors, whose public levels are ``levels``.
    """

    model_name = "linear-regression"
    predicts_clamped = True
    x: tuple[str, ...]
    y: str
    design: tuple[DesignColumn, ...] = ()
    levels: Mapping[str, tuple[Level, ...]] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The response and its covariates."""
        return f"{self.y} on {', '.join(self.covariates)}"

    @cached_property
    def design_columns(self) -> tuple[DesignColumn, ...]:
        """The columns of the design; without a formula, the covariates themselves."""
        plain = (*(DesignColumn(c, (c,), (), c) for c in self.x), DesignColumn(INTERCEPT))
        return self.design or plain

    @property
    def covariates(self) -> tuple[str, ...]:
        """The columns to which a prediction needs values."""
        return design_matrix.table_columns(self.design_columns)

    @property
    def cautions(self) -> tuple[str, ...]:
        """Return which columns were clamped, and which columns and levels the noise hides."""
        columns = (*self.covariates, self.y)
        words = [w for release in self.releases for w in self._clamped(release, columns)]
        words += self._hidden()
        for release in self.releases:
            words += hidden_levels_in_words(release, self.levels)
            words += left_out_in_words(release)
        return (*dict.fromkeys(words), *self.group_cautions)

    def _clamped(self, release: Release, columns: Sequence[str]) -> tuple[str, ...]:
        if self.design:
            return clamping_by_formula(release, columns)
        return clamping_in_words(
            release, columns, taken_as_normal=True, knows_cuts=self.method in KNOWING_CUTS
        )

    def _hidden(self) -> list[str]:
        """Return which columns the noise hides, and what would help."""
        there = {numeric_name(c.numeric) for c in self.design_columns}
        hidden = [c for c in self.details.get("hidden") or () if c in there]
        words = []
        if hidden:
            verb, slope = ("varies", "its slope") if len(hidden) == 1 else ("vary", "their slopes")
            words.append(
                f"The noise hides how much {', '.join(hidden)} {verb}, so {slope} and the "
                "intercept may be hardly known"
            )
        if self.y in (self.details.get("hidden") or ()):
            words.append(f"The noise hides how much {self.y} varies, so sigma2 is hardly known")
        if words:
            words.append(
                "Narrower bounds, more records or a larger epsilon would help the next release"
            )
        return words

    def attributes(self) -> dict[str, object]:
        """Return the columns, for a file."""
        named: dict[str, object] = {"x": list(self.x), "y": self.y}
        if self.design:
            named["design"] = [asdict(column) for column in self.design]
            named["levels"] = {factor: list(levels) for factor, levels in self.levels.items()}
        return named

    def summary(self, interval: float = 0.95) -> pd.DataFrame:
        """Return where each parameter lies, R-hat and effective draws, one row per parameter.

        Terms stand in the formula's order, the intercept after them. Of a release with a formula
        ``times_wider`` says about how many times the 95 % interval is what it would be without
        privacy, which is inferred too. Where the noise hides how much a column varies
        (``cautions`` name it) it may be two or three times too large or too small.

        Args:
            interval: probability of the central interval.

        Returns:
            A table with index ``parameter``, or (``group``, ``parameter``) where there are groups.
        """
        table = super().summary(interval)
        if not self.design:
            return table
        # Computing them without a formula would mean sampling again, so they are left out.
        if self.without_noise is not None:
            alone = self.without_noise()
            without = np.concatenate([np.atleast_1d(alone[name]) for name in self.draws])
            ends = [np.quantile(v, TAILS, axis=(-2, -1)) for v in self.draws.values()]
            width = np.concatenate([np.atleast_1d(high - low) for low, high in ends])
            wider = width / (2 * NORMAL * without)
            table.insert(list(table).index("rhat"), "times_wider", wider)
        return table

    def with_reference(self, **references: object) -> RegressionPosterior:
        """Return the posterior with other reference levels: the same draws, named by others.

        What ``infer`` gives of the owner's formula with ``C(sex, contr.treatment("male"))``, but
        without sampling: coefficients of one coding are sums and differences of another's.

        Args:
            **references: a level for each factor whose reference is to change.

        Example:
            >>> import noisewise as nw, pandas as pd
            >>> people = pd.DataFrame({"sex": ["f", "m"] * 50, "pay": [3.0, 4.0] * 50})
            >>> release = nw.release.linear_regression(
            ...     people, formula="pay ~ C(sex)", bounds={"pay": (0, 9)},
            ...     levels={"sex": ["f", "m"]}, epsilon=5.0,
            ... )
            >>> post = nw.infer(release).with_reference(sex="m")
            >>> list(post.draws)
            ["C(sex, contr.treatment('m'))[T.f]", 'intercept', 'sigma2']
        """
        design = self.design_columns
        for factor, level in references.items():
            if factor not in self.levels:
                there = ", ".join(self.levels) or "none"
                raise ArgumentError(f"{factor}: is no factor of this regression; there are {there}")
            (wanted,) = design_matrix.codes([level], self.levels[factor], factor)
            if wanted != reference_levels.reference_of(design, self.levels, factor):
                design = reference_levels.with_reference(design, self.levels, factor, int(wanted))
        return self if design == self.design_columns else self._recoded(design)

    def _recoded(self, design: tuple[DesignColumn, ...]) -> RegressionPosterior:
        """Return the posterior whose coefficients are those of another coding."""
        change = reference_levels.change_of_coding(self.design_columns, design, self.levels)
        names = tuple(c.name for c in design)

        def mapped(values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
            old = np.stack([values[c.name] for c in self.design_columns])
            new = (change @ old.reshape(len(old), -1)).reshape(-1, *old.shape[1:])
            return {**dict(zip(names, new, strict=True)), "sigma2": values["sigma2"]}

        draws = mapped(self.draws)
        rhat, ess = {}, {}
        for name, values in draws.items():
            if np.array_equal(values, self.draws.get(name, ())):
                rhat[name], ess[name] = self.rhat[name], self.ess[name]
                continue
            judged = diagnose_groups(values if self.keys is not None else values[None])
            rhat[name], ess[name] = (v if self.keys is not None else v[0] for v in judged)
        before = self.prior_draws
        return replace(
            self, draws=draws, rhat=rhat, ess=ess, x=names[:-1], design=design,
            prior_draws=None if before is None else lambda number: mapped(before(number)),
            without_noise=self._recoded_deviations(change, names),
        )  # fmt: skip

    def _recoded_deviations(
        self, change: csr_array, names: tuple[str, ...]
    ) -> Callable[[], dict[str, np.ndarray]] | None:
        """Return deviations without noise of coefficients that change their sign at most.

        Those of sums of coefficients are not known from the coefficients' own: they are NaN.
        """
        without = self.without_noise
        if without is None:
            return None

        def deviations() -> dict[str, np.ndarray]:
            alone = without()
            old = np.stack([np.asarray(alone[c.name]) for c in self.design_columns])
            new = (abs(change) @ old.reshape(len(old), -1)).reshape(-1, *old.shape[1:])
            new[np.diff(change.indptr) != 1] = np.nan
            return {**dict(zip(names, new, strict=True)), "sigma2": np.asarray(alone["sigma2"])}

        return deviations

    def to_arviz(self) -> InferenceData:
        """Return the draws as ArviZ's own type (dims chain, draw, group).

        A term with factors is one variable, its levels along a dimension. With factors there are
        groups ``posterior``, ``observed_data`` (the noisy sums) and ``constant_data`` (their
        noise's scale); without, ``prior`` too. Predictions need covariates: ask ``predict``.
        """
        if not self.levels:
            return super().to_arviz()
        from noisewise.inference.arviz import add_prediction_and_observed, labelled_inference_data

        terms: dict[str, list[DesignColumn]] = {}
        for column in self.design_columns:
            terms.setdefault(column.term if column.levels else column.name, []).append(column)
        group = () if self.keys is None else ("group",)
        coordinates: dict[str, Sequence[Level]] = {"group": self.keys} if self.keys else {}
        variables: dict[str, tuple[tuple[str, ...], np.ndarray]] = {}
        for term, columns in {**terms, "sigma2": []}.items():
            drawn = np.stack([self.draws[c.name] for c in columns] or [self.draws[term]], axis=-1)
            drawn = drawn if self.keys is None else np.moveaxis(drawn, 0, -2)
            if any(c.levels for c in columns):
                coordinates[f"{term}_level"] = self._labels(columns)
                variables[term] = (*group, f"{term}_level"), drawn
            else:
                variables[term] = group, drawn[..., 0]
        data = labelled_inference_data(variables, coordinates)
        return add_prediction_and_observed(data, self)

    def _labels(self, columns: Sequence[DesignColumn]) -> list[str]:
        """Return the levels of a term's columns, or their names where levels do not suffice."""
        labels = [", ".join(str(self.levels[f][i]) for f, i in c.levels) for c in columns]
        return labels if len(set(labels)) == len(labels) else [c.name for c in columns]

    def predict(
        self,
        new_x: Mapping[str, float | Level | None] | pd.DataFrame | pd.Series[Any] | None = None,
        *,
        seed: int = 0,
        clamped: bool = False,
        new_group: bool = False,
        features: Mapping[str, float] | None = None,
    ) -> Prediction:
        """Return the posterior predictive of y at given covariates, in the user's units.

        y = θᵀ(x, 1) + N(0, σ²), draw by draw, x the columns of the design. A UserWarning tells of
        covariates outside the release's public bounds, where no record was seen.

        Args:
            new_x: a value for each covariate, ``{"age": 40, "sex": "male"}``: the level of a
                factor, a number for the others; None or NaN for a gap, where the release has a
                public value for those of its column. Or a pandas table with these columns, a
                record in each row: results then lead with the row. Other columns are ignored.
            seed: of the new record's scatter.
            clamped: move new records to the bounds of y, as the owner moves those beyond them.
            new_group: of a group that was not released, drawn from the population of pooled ones.
            features: what is publicly known of the new group, where groups have features.
        """
        rows, many = given_records(new_x, self.covariates, self.draws["intercept"].size)
        at = [predicted_records.checked(self.releases, self.levels, row) for row in rows]
        for warning in dict.fromkeys(w for record in at for w in self._beyond_bounds(record)):
            warn_user(warning)
        if features is not None and not new_group:
            raise ArgumentError("features: go with new_group=True; leave them out")
        draws = self._new_group(features, seed) if new_group else self.draws
        rng = np.random.default_rng(seed)
        predicted = [self._predicted(draws, record, rng, clamped) for record in at]
        return together(predicted) if many else predicted[0]

    def _predicted(
        self,
        draws: Mapping[str, np.ndarray],
        at: Mapping[str, float],
        rng: np.random.Generator,
        clamped: bool,
    ) -> Prediction:
        """Return the prediction of one record."""
        record = {name: np.array([value]) for name, value in at.items()}
        (row,) = design_matrix.design_matrix(self.design_columns, record, 1)
        linear_predictor = np.array(draws["intercept"])
        for column, value in zip(self.x, row, strict=False):
            linear_predictor = linear_predictor + draws[column] * value
        scatter = rng.standard_normal(linear_predictor.shape)
        records = linear_predictor + scatter * np.sqrt(draws["sigma2"])
        if not clamped:
            return Prediction(records, linear_predictor)
        if not self.releases:
            raise ArgumentError("clamped: this posterior has no release that says the bounds")
        bounds = self.releases[0].bounds[self.y]
        return Prediction(
            np.clip(records, bounds.lower, bounds.upper),
            _expected_within(linear_predictor, np.sqrt(draws["sigma2"]), bounds),
        )

    def _new_group(
        self, features: Mapping[str, float] | None, seed: int
    ) -> Mapping[str, np.ndarray]:
        """Draw the parameters (chain, draw) of a group that was not released."""
        from noisewise.models.linear_regression.pooled_posterior import new_group

        if self.population is None or self.population.features is None:
            raise ArgumentError("new_group: goes with pooled groups; infer with pool=True")
        known = self.population.features
        row = {} if features is None else features
        names = (*self.x, INTERCEPT)
        rng = np.random.default_rng([seed, 1])
        return new_group(rng, self.population.draws, names, known, row)

    def as_released(self, column: str, value: object) -> object:
        """Return a value of a covariate as the release took it, where the file says how."""
        return predicted_records.as_released(self.releases, column, value)

    def _beyond_bounds(self, at: Mapping[str, float]) -> list[str]:
        """Return a sentence for each covariate beyond its bounds, which a release says."""
        bounds = self.releases[0].bounds if self.releases else {}
        return [
            f"{column} = {in_full(value)} lies outside its public bounds, "
            f"{range_in_full(bounds[column].lower, bounds[column].upper)}: "
            f"{_seen_there(bounds[column])}, and the prediction extends a straight line"
            for column, value in at.items()
            if column in bounds
            and column not in self.levels
            and not bounds[column].lower <= value <= bounds[column].upper
        ]


def clamping_by_formula(release: Release, columns: Sequence[str]) -> tuple[str, ...]:
    """Return a sentence for every clamped column of a regression by a formula.

    Its methods take values at bounds that cut them off as they are.
    """
    cut = [c for c in columns if isinstance(release.bounds.get(c), Censored)]
    natural = [c for c in columns if c not in cut]
    return (
        *(
            f"The bounds of {c}, "
            f"{range_in_full(release.bounds[c].lower, release.bounds[c].upper)}, cut values off; "
            "a regression by a formula takes the values after clamping as they are"
            for c in cut
        ),
        *clamping_in_words(release, natural, taken_as_normal=True),
    )


def _seen_there(bounds: Bounds) -> str:
    return "records there were cut off" if isinstance(bounds, Censored) else "no record was seen"


def _expected_within(mean: np.ndarray, deviation: np.ndarray, bounds: Bounds) -> np.ndarray:
    """Return the mean of normal records that are moved to their bounds."""
    half = bounds.half_width
    boxed = clamped_margin((mean - bounds.centre) / half, deviation / half, True, True)
    return bounds.centre + half * boxed.mean


def restored(common: Mapping[str, Any], attributes: Mapping[str, Any]) -> RegressionPosterior:
    """Return a posterior that was read from a file; a ValueError where it cannot be one."""
    levels = {
        factor: validation.levels(listed, f"levels of {factor}")
        for factor, listed in attributes.get("levels", {}).items()
    }
    design = tuple(restored_column(c, levels) for c in attributes.get("design", ()))
    x = tuple(attributes["x"])
    if design and tuple(c.name for c in design[:-1]) != x:
        raise ValueError("x and the design name unlike columns")
    return RegressionPosterior(**common, x=x, y=attributes["y"], design=design, levels=levels)


def restored_column(
    content: Mapping[str, Any], levels: Mapping[str, tuple[Level, ...]]
) -> DesignColumn:
    """Return a column of the design as a file holds it; a ValueError where it cannot be one."""
    pairs = tuple((factor, code) for factor, code in content["levels"])
    for factor, code in pairs:
        if factor not in levels or not isinstance(code, int) or not 0 <= code < len(levels[factor]):
            raise ValueError("a column of the design has an unknown level")
    numeric = tuple(validation.text(c, "design") for c in content["numeric"])
    name, term = (validation.text(content[word], "design") for word in ("name", "term"))
    return DesignColumn(name, numeric, pairs, term)
