"""A regression problem: a release's noisy sums in the box, its units and its priors.

Every column is mapped to [-1, 1], the box, by its public bounds; ``Units`` maps back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from noisewise.artifact import (
    ArgumentError,
    Bounds,
    Censored,
    Gram,
    Monomials,
    Release,
    ReleaseError,
)
from noisewise.inference.combine import Observation, averaged, reduced
from noisewise.models.linear_regression import LEAST_RECORDS
from noisewise.models.linear_regression.censoring import Cuts
from noisewise.models.linear_regression.collapsed import BoxPrior
from noisewise.numerics.compilation import placed
from noisewise.numerics.gram_packing import number_of_sums, product_pairs
from noisewise.priors import CovariateMoments, NormalInverseGamma, NormalInverseWishart


@dataclass(frozen=True)
class Units:
    """The map x = centre + half · u of every column, the response last."""

    centre: np.ndarray
    half: np.ndarray

    @property
    def to_box(self) -> tuple[np.ndarray, np.ndarray]:
        """Return (A, a) with θ_box = A θ_user + a: slopes in order, intercept last."""
        d = len(self.centre) - 1
        matrix = np.diag(np.append(self.half[:d], 1.0)) / self.half[d]
        matrix[d, :d] = self.centre[:d] / self.half[d]
        offset = np.zeros(d + 1)
        offset[d] = -self.centre[d] / self.half[d]
        return matrix, offset

    @property
    def from_box(self) -> tuple[np.ndarray, np.ndarray]:
        """Return (B, b) with (θ, σ²)_user = B (θ, σ²)_box + b."""
        matrix, offset = self.to_box
        inverse = np.linalg.inv(matrix)
        whole = np.eye(len(offset) + 1) * self.half[-1] ** 2
        whole[:-1, :-1] = inverse
        return whole, np.append(-inverse @ offset, 0.0)

    def to_user(self, parameters: np.ndarray) -> np.ndarray:
        """Return draws (..., slopes, intercept, σ²) in the user's units, from those in the box."""
        whole, shift = self.from_box
        return np.asarray(parameters @ whole.T + shift)


@dataclass(frozen=True)
class RegressionProblem:
    """Everything a method needs; arrays lead with the group.

    ``z`` holds the noisy sums in the order of ``numerics.gram_packing``, columns (x, y).
    ``moments`` holds noisy sums of monomials of x in the box where the release has them (group,
    monomial); ``exponents`` names each by the sorted positions in ``x`` of its factors. ``others``
    are further observations of the same sums, from releases combined. ``scale_free``: no prior was
    given, and method ``exact`` takes the one that knows no units (``scale_free.py``) in place of
    ``response`` and ``covariates``. ``cuts``: which bounds cut values off (``censoring.py``); None
    where all are natural.
    """

    x: tuple[str, ...]
    y: str
    z: np.ndarray
    n: np.ndarray
    noisy_n: bool
    noise_scale: float
    mechanism: str
    response: NormalInverseGamma
    covariates: NormalInverseWishart | CovariateMoments
    units: Units
    keys: tuple[str | int, ...] | None
    moments: np.ndarray | None = None
    exponents: tuple[tuple[int, ...], ...] = ()
    others: tuple[Observation, ...] = ()
    scale_free: bool = False
    cuts: Cuts | None = None

    @property
    def observation(self) -> Observation:
        """Return the first observation of the sums, in most problems the only one."""
        return Observation(self.z, self.noise_scale, self.mechanism)

    @property
    def box_prior(self) -> BoxPrior:
        """Return both priors in the box; moments of the covariates are refused."""
        if isinstance(self.covariates, CovariateMoments):
            raise ArgumentError(
                "prior['covariates']: moments serve method gibbs-prior only; "
                "give a NormalInverseWishart to the others"
            )
        matrix, offset = self.units.to_box
        inner = self.response.mapped(matrix, offset, float(self.units.half[-1]))
        outer = self.covariates.mapped(self.units.centre[:-1], self.units.half[:-1])
        fields = (inner.mean, inner.precision, inner.shape, inner.rate,
                  outer.mean, outer.kappa, outer.scale, outer.df)  # fmt: skip
        return BoxPrior(*(placed(np.asarray(f, float)) for f in fields))


def regression_problem(
    release: Release,
    prior: Mapping[str, object] | None,
    x: str | Iterable[str] | None = None,
    y: str | None = None,
    *,
    empty: bool = False,
) -> RegressionProblem:
    """Return the regression of any released column on any others.

    Args:
        release: of family linear-regression.
        prior: ``{"response": …, "covariates": …}``, either or both; None for the defaults.
        x: covariates; None for those the owner named.
        y: response; None for the one the owner named.
        empty: groups of any size are welcome, of one record or none.
    """
    if not any(block.statistic.kind == "gram" for block in release.blocks):
        raise ReleaseError(
            f"this {release.family} release holds no Gram matrix of a linear-regression"
        )
    block = release.block("gram")
    statistic = block.statistic
    if not isinstance(statistic, Gram):
        raise ReleaseError("the 'gram' block does not hold a Gram matrix")
    covariates, response = _columns(release, x, y)
    order = [statistic.columns.index(c) for c in (*covariates, response)]
    index = {p: row for row, p in enumerate(statistic.products)}
    q = len(order)
    pairs = zip(*product_pairs(q), strict=True)
    wanted = [tuple(sorted((order[i], order[j]))) for i, j in pairs]
    wanted += [(i,) for i in order] + ([()] if statistic.count else [])
    z = block.scaled[[index[p] for p in wanted]].T
    bounds = [release.bounds[c] for c in (*covariates, response)]
    units = Units(np.array([b.centre for b in bounds]), np.array([b.half_width for b in bounds]))
    sizes = np.maximum(z[:, -1], q + 2) if release.n is None else np.atleast_1d(release.n)
    if (sizes < LEAST_RECORDS).any() and not empty:
        raise ArgumentError(
            f"release: a regression needs at least {LEAST_RECORDS} records in every group"
        )
    inner, outer = _priors(prior, units, len(covariates))
    return RegressionProblem(
        covariates, response, z, sizes.astype(float), statistic.count, float(block.noise_scales[0]),
        block.noise.mechanism, inner, outer, units,
        None if release.groups is None else release.groups.keys,
        *_monomials(release, covariates), scale_free=not prior, cuts=_cuts(bounds),
    )  # fmt: skip


def _cuts(bounds: Sequence[Bounds]) -> Cuts | None:
    """Return which ends of the columns' bounds cut values off; None where none does."""
    cut = [(b.cuts_lower, b.cuts_upper) if isinstance(b, Censored) else (False, False)
           for b in bounds]  # fmt: skip
    return Cuts(*np.array(cut).T) if np.any(cut) else None


def _monomials(
    release: Release, x: tuple[str, ...]
) -> tuple[np.ndarray | None, tuple[tuple[int, ...], ...]]:
    """Return the released monomials of these covariates, in order; none unless all are there."""
    for block in release.blocks:
        statistic = block.statistic
        if isinstance(statistic, Monomials) and set(x) <= set(statistic.columns):
            place = {statistic.columns.index(c): i for i, c in enumerate(x)}
            rows = [r for r, p in enumerate(statistic.products) if set(p) <= set(place)]
            renamed = (statistic.products[r] for r in rows)
            return block.scaled[rows].T, tuple(tuple(sorted(place[i] for i in p)) for p in renamed)
    return None, ()


def _columns(
    release: Release, x: str | Iterable[str] | None, y: str | None
) -> tuple[tuple[str, ...], str]:
    """Return covariates and response, after checking that they were released."""
    there = release.block("gram").statistic.columns
    response = str(release.model["y"]) if y is None else y
    if x is None:
        known = release.model["x"]
        given = (
            tuple(known)
            if isinstance(known, tuple) and y is None
            else tuple(c for c in there if c != response)
        )
    else:
        given = (x,) if isinstance(x, str) else tuple(x)
    for column in (*given, response):
        if column not in there:
            raise ArgumentError(
                f"column {column!r} was not released; there are: {', '.join(there)}"
            )
    if not given or len({*given, response}) != len(given) + 1:
        raise ArgumentError("x: must be one or more distinct columns, y not among them")
    return given, response


def _priors(
    given: Mapping[str, object] | None, units: Units, d: int
) -> tuple[NormalInverseGamma, NormalInverseWishart | CovariateMoments]:
    """Return the priors of response and covariates, after checking those that were given."""
    if given is not None and not isinstance(given, Mapping):
        raise ArgumentError("prior: must be {'response': …, 'covariates': …}, either or both")
    given = dict(given or {})
    inner = given.pop("response", None) or default_response(units)
    outer = given.pop("covariates", None) or default_covariates(units)
    if given:
        raise ArgumentError(f"prior: {min(given)!r} is unknown; give 'response' and 'covariates'")
    if not isinstance(inner, NormalInverseGamma) or len(inner.mean) != d + 1:
        raise ArgumentError(
            f"prior['response']: must be a NormalInverseGamma of {d + 1} coefficients, "
            "the intercept last"
        )
    if isinstance(outer, CovariateMoments) and outer.columns == d:
        return inner, outer
    if not isinstance(outer, NormalInverseWishart) or len(outer.mean) != d:
        raise ArgumentError(f"prior['covariates']: must be a NormalInverseWishart of {d} columns")
    return inner, outer


def combined_problem(problems: Sequence[RegressionProblem]) -> RegressionProblem:
    """Return one problem for releases alike but for their noise, whose likelihoods multiply."""
    observations = reduced([p.observation for p in problems])
    first, *others = observations
    n = problems[0].n
    if problems[0].noisy_n:
        n = np.maximum(averaged(observations).z[:, -1], len(problems[0].x) + 3)
    return replace(
        problems[0], z=first.z, n=n, noise_scale=first.noise_scale, mechanism=first.mechanism,
        others=tuple(others), moments=None, exponents=(),
    )  # fmt: skip


def subset(problem: RegressionProblem, rows: np.ndarray) -> RegressionProblem:
    """Return the problem of some groups."""
    others = tuple(replace(o, z=o.z[rows]) for o in problem.others)
    return replace(problem, z=problem.z[rows], n=problem.n[rows], others=others)


def reordered(problem: RegressionProblem, order: np.ndarray) -> RegressionProblem:
    """Return the same problem, without released monomials, of covariates in another order.

    ``order`` holds their positions in the given problem.
    """
    q = len(problem.x) + 1
    columns = np.append(order, q - 1)
    place = np.empty((q, q), int)
    first, second = product_pairs(q)
    place[first, second] = place[second, first] = np.arange(len(first))
    sums = place[columns[first], columns[second]], len(first) + columns
    rows = np.concatenate([*sums, np.arange(number_of_sums(q), problem.z.shape[1])])
    units = Units(problem.units.centre[columns], problem.units.half[columns])
    cuts = None if problem.cuts is None else Cuts(*(side[columns] for side in problem.cuts))
    inner, outer = problem.response, problem.covariates
    inner = NormalInverseGamma(
        inner.mean[columns], inner.precision[np.ix_(columns, columns)], inner.shape, inner.rate
    )
    if isinstance(outer, NormalInverseWishart):
        scale = outer.scale[np.ix_(order, order)]
        outer = NormalInverseWishart(outer.mean[order], outer.kappa, scale, outer.df)
    return replace(
        problem, x=tuple(problem.x[j] for j in order), z=problem.z[:, rows], units=units, cuts=cuts,
        others=tuple(replace(o, z=o.z[:, rows]) for o in problem.others),
        response=inner, covariates=outer, moments=None, exponents=(),
    )  # fmt: skip


def default_response(units: Units) -> NormalInverseGamma:
    """Return a weak prior: slopes of either sign up to tens of σ, σ a third of the box or less.

    Slopes are thought of in units of σ, and bounds that are three times too wide make a slope three
    times as large and σ smaller: a precision of 0.1, which sufficed for tight bounds, then rules
    the truth out (docs/evidence-journey.md).
    """
    d = len(units.centre) - 1
    box = NormalInverseGamma(np.zeros(d + 1), np.eye(d + 1) * 0.01, 1.0, 0.1)
    matrix, offset = units.to_box
    inverse = np.linalg.inv(matrix)
    return box.mapped(inverse, -inverse @ offset, 1 / float(units.half[-1]))


def default_covariates(units: Units) -> NormalInverseWishart:
    """Return a prior that is vague in the box, and serves uniform, binary and skewed columns too.

    A column's variance given the others is IG(d/2, d/20), about 0.1: it allows small variances (a
    scale matrix of 1 rules out the 0.06 of a beta(1, 6) column, whose slope it then covers at 82 %:
    docs/evidence-regression.md). A scale that did not grow with d would say that columns are
    collinear.
    """
    d = len(units.centre) - 1
    box = NormalInverseWishart(np.zeros(d), 0.03, 0.1 * d * np.eye(d), float(d))
    return box.mapped(-units.centre[:-1] / units.half[:-1], 1 / units.half[:-1])
