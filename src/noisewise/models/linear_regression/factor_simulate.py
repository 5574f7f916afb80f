"""Simulated regressions with factors, for ``check`` and ``plan``.

A plan makes records at one guessed truth, every column by its own law (``column_laws.py``), clamps
and sums them as the owner would, and adds the noise of a release. Every trial is then inferred as
an analyst would, in a plan by shorter chains; since each takes seconds there are fewer trials than
for other models, and widths differ little from one to the next. Widths without privacy are those of
least squares.

Unless guesses say otherwise, main effects share half of the response's variance evenly (effects of
a factor's levels are evenly spaced), and products and interactions have no effect.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from scipy import stats

from noisewise.artifact import ArgumentError, Bounds
from noisewise.diagnostics import Coverage
from noisewise.formula import DesignColumn
from noisewise.models.base import Progress
from noisewise.models.linear_regression import factor_exact
from noisewise.models.linear_regression.column_laws import (
    ColumnLaw,
    factor_law,
    numeric_law,
    separated,
)
from noisewise.models.linear_regression.design_matrix import design_matrix
from noisewise.models.linear_regression.factor_coefficients import owner_response
from noisewise.models.linear_regression.factor_density import atoms_gram, released_sums
from noisewise.models.linear_regression.factor_prior import (
    FARTHEST,
    covariate_prior,
    response_prior,
    scale_names,
)
from noisewise.models.linear_regression.factor_problem import (
    FactorProblem,
    atoms_of_design,
    noisy_sizes,
)
from noisewise.models.linear_regression.factor_records import boxed_columns, sums_within_cells
from noisewise.models.linear_regression.factor_structure import Structure
from noisewise.models.linear_regression.latent_cell_counts import (
    BEYOND,
    CELL_SHARE,
    LOG_ASSOCIATION,
    LatentCounts,
    latent_counts_at,
    pairs,
)
from noisewise.models.linear_regression.scale_free import (
    COVARIATE_SCALE,
    ERROR_SCALE,
    ERROR_SHAPE,
    SLOPE_SCALE,
    SLOPE_UNIT,
)
from noisewise.simulate.trials import CELLS, CHAINS, Outcome, Trials, check_guesses, noise

EXPLAINED = 0.5
"""Share of the response's variance that the main effects are taken to explain (chosen)."""
SAMPLE = 20_000
"""Records behind the mean of the design, from which the intercept follows (chosen)."""
TRIALS, TRIALS_OF_MANY = 12, 3
"""Trials of a plan, and those with many columns, each of which takes minutes (chosen)."""
MANY_COLUMNS = 20
"""Columns of a design that are many (chosen)."""

PLANNED_DRAWS = 250
"""Draws of each chain in a trial of a plan (chosen): an interval's width is then known within some
six percent, and differs by more from one release to the next."""
PLANNED_RHAT = 1.05
"""R-hat above which a trial of a plan counts as not converged (chosen: chains are short, and a mean
width needs less)."""

SINGULAR, TINY = 1e-9, 1e-300
"""Eigenvalue of a correlation matrix, and squared length, that are zero (chosen)."""
ROUNDING = 1e-13
"""Share of a column's mean square below which its variance is rounding (chosen)."""
PROPOSALS, MAX_BATCHES = 2000, 500
"""Draws from the prior in one batch, and batches before giving up: a million in all (chosen)."""
REACH = 4
"""Noise scales by which a noisy sum may lie outside what records in the box add up to (chosen)."""
MEANS = 1.3
"""Half the range of records' means that are drawn (chosen): beyond, the wall lets nothing pass."""


@dataclass(frozen=True, eq=False)
class FactorGuess:
    """One truth: laws of the table's columns, coefficients of the design, error deviation."""

    laws: Mapping[str, ColumnLaw]
    theta: np.ndarray
    sigma: float

    def columns(self, rng: np.random.Generator, shape: tuple[int, int]) -> dict[str, np.ndarray]:
        """Return records (trial, record) of all columns but the response."""
        return {name: law.quantile(rng.standard_normal(shape)) for name, law in self.laws.items()}


def planned_trials(problem: FactorProblem) -> int:
    """Return the trials of a plan, unless their number is given."""
    return TRIALS if len(problem.design) <= MANY_COLUMNS else TRIALS_OF_MANY


def run_planned(
    trials: Trials[FactorProblem], seed: int, progress: Progress | None = None
) -> Outcome:
    """Infer the trials of a plan by ``exact``, with short chains and no second attempt.

    The plan says how many trials had not converged.
    """
    post = factor_exact.run(trials.problem, seed, CHAINS, PLANNED_DRAWS, progress, attempts=(1,))
    flat = [post.draws[name].reshape(len(trials.truth), -1) for name in trials.names]
    rhat = np.stack([np.ravel(post.rhat[name]) for name in trials.names])
    return Outcome(np.stack(flat, axis=-1), float((rhat > PLANNED_RHAT).any(axis=0).mean()))


def table_bounds(problem: FactorProblem) -> dict[str, Bounds]:
    """Return the bounds of the table's numeric columns."""
    numeric = problem.statistic.numeric
    bounds = {c[0]: b for c, b in zip(numeric, problem.bounds, strict=True) if len(c) == 1}
    for column in (c for product in numeric for c in product if c not in bounds):
        raise ArgumentError(
            f"formula: {column} stands in products only, so a plan does not know how it is "
            f"distributed; add {column} as a term of its own"
        )
    return bounds


def guessed(
    problem: FactorProblem, given: Mapping[str, Any]
) -> tuple[FactorGuess, dict[str, float]]:
    """Return the truth from guesses of columns, coefficients, ``intercept`` and ``sigma``."""
    bounds = table_bounds(problem)
    about, numbers = separated(given, (*bounds, *problem.levels))
    covariates = [c for c in bounds if c != problem.y]
    moments = [f"{m}:{c}" for c in covariates for m in ("mean", "sd")]
    check_guesses(numbers, (*problem.x, "intercept", "sigma", *moments))
    laws = {
        c: numeric_law(c, bounds[c], about.get(c), numbers.get(f"mean:{c}"), numbers.get(f"sd:{c}"))
        for c in covariates
    }
    known = {f"{m}:{c}": float(getattr(laws[c], m)) for c in covariates for m in ("mean", "sd")}
    for factor, levels in problem.levels.items():
        laws[factor] = factor_law(factor, levels, about.get(factor))
        shares = zip(levels, laws[factor].shares, strict=True)
        known |= {f"{factor}={level}": share for level, share in shares}
    response = numeric_law(problem.y, bounds[problem.y], about.get(problem.y), None, None)
    default = _default_effects(problem, laws, response.sd)
    known |= {c: float(numbers.get(c, default[c])) for c in problem.x}
    slopes = np.array([known[c] for c in problem.x])
    records = FactorGuess(laws, slopes, 0.0).columns(np.random.default_rng(0), (1, SAMPLE))
    mean = _design(problem.design, records)[0, :, :-1].mean(axis=0)
    known["intercept"] = float(numbers.get("intercept", response.mean - mean @ slopes))
    known["sigma"] = float(numbers.get("sigma", response.sd * np.sqrt(1 - EXPLAINED)))
    if not known["sigma"] > 0:
        raise ArgumentError(f"guess: sigma must be above zero, not {known['sigma']!r}")
    return FactorGuess(laws, np.append(slopes, known["intercept"]), known["sigma"]), known


def _default_effects(
    problem: FactorProblem, laws: Mapping[str, ColumnLaw], deviation: float
) -> dict[str, float]:
    """Return coefficients of which main effects share the variance that is explained."""
    main = {
        c.term for c in problem.design[:-1] if len(c.numeric) + len({f for f, _ in c.levels}) == 1
    }
    each = deviation * np.sqrt(EXPLAINED / max(1, len(main)))
    effects: dict[str, float] = {}
    for column in problem.design[:-1]:
        effects[column.name] = 0.0
        if column.term not in main:
            continue
        if column.numeric:
            effects[column.name] = float(each / laws[column.numeric[0]].sd)
        else:
            ((factor, level),) = column.levels
            coded = {dict(c.levels)[factor] for c in problem.design if c.term == column.term}
            reference = min(set(range(len(problem.levels[factor]))) - coded)
            spread = laws[factor].sd or 1.0
            effects[column.name] = float(each * (level - reference) / spread)
    return effects


def _design(design: tuple[DesignColumn, ...], columns: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the design (trial, record, column)."""
    trials, size = next(iter(columns.values())).shape
    flat = {name: column.ravel() for name, column in columns.items()}
    return design_matrix(design, flat, trials * size).reshape(trials, size, len(design))


@dataclass(frozen=True, eq=False)
class FactorScene:
    """Sums of clamped records, and least squares of the records as they are and as clamped.

    ``plain`` and ``clamped`` are Gram matrices (trial, column, column), the response last.
    """

    problem: FactorProblem
    n: int
    truth: FactorGuess
    sums: np.ndarray
    plain: np.ndarray
    clamped: np.ndarray
    guess: Mapping[str, float]
    outside: Mapping[str, float]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the design, the intercept, the error variance."""
        return (*self.problem.x, "intercept", "sigma2")

    def trials(self, problem: FactorProblem, seed: int) -> Trials[FactorProblem]:
        """Return trials with that problem's noise on the sums."""
        truth = np.append(self.truth.theta, self.truth.sigma**2)
        rng = np.random.default_rng([seed, 1])
        return noisy_trials(rng, problem, self.sums, np.tile(truth, (len(self.sums), 1)), self.n)

    def _least_squares(self, gram: np.ndarray, level: float) -> Coverage:
        """Return widths and coverage of the intervals of least squares, where it has an answer."""
        answered = _has_full_rank(gram[:, :-1, :-1])
        if not answered.any():
            nothing = np.full(gram.shape[1], np.nan)
            return Coverage(level, nothing, nothing, 0)
        gram = gram[answered]
        inverse = np.linalg.inv(gram[:, :-1, :-1])
        cross = gram[:, :-1, -1]
        theta = np.einsum("tij,tj->ti", inverse, cross)
        free = self.n - theta.shape[1]
        variance = (gram[:, -1, -1] - np.einsum("ti,ti->t", theta, cross)) / free
        error = np.sqrt(variance[:, None] * np.diagonal(inverse, axis1=1, axis2=2))
        reach = float(stats.t.ppf((1 + level) / 2, free))
        estimate = np.column_stack([theta, variance])
        half = reach * np.column_stack([error, variance * np.sqrt(2 / free)])
        truth = np.append(self.truth.theta, self.truth.sigma**2)
        held = np.abs(estimate - truth) <= half
        return Coverage(level, held.mean(axis=0), 2 * half.mean(axis=0), len(held))

    def cautions(self) -> tuple[str, ...]:
        """Return what is to be known of simulated tables to which least squares has no answer."""
        empty = int((~_has_full_rank(self.plain[:, :-1, :-1])).sum())
        if not empty:
            return ()
        rest = (
            "so no width without privacy is known"
            if empty == len(self.plain)
            else "which the widths without privacy leave out"
        )
        return (
            f"In {empty} of {len(self.plain)} simulated tables some level has no record, or terms "
            f"of the formula cannot be told apart, {rest}. Join rare levels, or leave a term out.",
        )

    def width_without_privacy(self, seed: int, level: float) -> np.ndarray:
        """Return mean widths of least squares of the records as they are."""
        return np.asarray(self._least_squares(self.plain, level).width)

    def coverage_without_noise(self, seed: int, level: float) -> np.ndarray:
        """Return how often intervals of least squares of clamped records hold the guess."""
        return np.asarray(self._least_squares(self.clamped, level).share)

    def prior_width(self, level: float) -> dict[str, float]:
        """Return what bounds alone say: the prior is learnt, and has no width of its own."""
        bounds = dict(zip(self.problem.statistic.numeric, self.problem.bounds, strict=True))
        reach = 2 * bounds[(self.problem.y,)].half_width
        width = {
            c.name: 2 * reach / (2 * bounds[c.numeric].half_width if c.numeric else 1.0)
            for c in self.problem.design
        }
        return {**width, "sigma2": reach**2 / 4}


def _has_full_rank(gram: np.ndarray) -> np.ndarray:
    """Return of every Gram matrix whether no column is a combination of others.

    The intercept is the last column; the others are compared about their means, since years and
    their squares, say, are nearly multiples of a constant and of each other.
    """
    if gram.shape[1] == 1:
        return np.ones(len(gram), bool)
    mean = gram[:, :-1, -1]
    about = gram[:, :-1, :-1] - mean[:, :, None] * mean[:, None, :] / gram[:, -1:, -1:]
    variance = np.diagonal(about, axis1=1, axis2=2)
    square = np.diagonal(gram, axis1=1, axis2=2)[:, :-1]
    varies = (variance > np.maximum(ROUNDING * square, TINY)).all(axis=1)
    size = np.sqrt(np.maximum(variance, TINY))
    correlation = about / size[:, :, None] / size[:, None, :]
    return np.asarray(varies & (np.linalg.eigvalsh(correlation)[:, 0] > SINGULAR))


def noisy_trials(
    rng: np.random.Generator,
    problem: FactorProblem,
    sums: np.ndarray,
    truth: np.ndarray,
    n: int,
) -> Trials[FactorProblem]:
    """Return trials whose exact sums (trial, component) are given, with this problem's noise."""
    z = sums + noise(rng, problem.noise_scale, problem.mechanism, sums.shape, whole=False)
    return _as_trials(problem, z, truth, n)


def _as_trials(
    problem: FactorProblem, z: np.ndarray, truth: np.ndarray, n: int
) -> Trials[FactorProblem]:
    """Return noisy sums (trial, component) as the groups of one problem."""
    least = len(problem.design) + 2
    sizes = np.full(len(z), float(n))
    if problem.noisy_n:
        sizes = np.maximum(noisy_sizes(z, problem.statistic), least)
    many = replace(problem, z=z, n=sizes, keys=tuple(range(len(z))))
    return Trials(many, truth, (*problem.x, "intercept", "sigma2"))


def scene(
    problem: FactorProblem, n: int, given: Mapping[str, Any], trials: int, seed: int
) -> FactorScene:
    """Make records at one guessed truth, for every trial of a plan."""
    truth, guess = guessed(problem, given)
    statistic, bounds = problem.statistic, table_bounds(problem)
    rng = np.random.default_rng([seed, 0])
    columns = len(problem.design) + 1
    sums = np.zeros((trials, problem.z.shape[1]))
    plain, clamped = np.zeros((2, trials, columns, columns))
    outside = dict.fromkeys(bounds, 0.0)
    step = max(1, CELLS // (trials * columns))
    for begin in range(0, n, step):
        shape = trials, min(step, n - begin)
        made = truth.columns(rng, shape)
        design = _design(problem.design, made)
        made[problem.y] = design @ truth.theta + truth.sigma * rng.standard_normal(shape)
        kept = {c: np.clip(made[c], b.lower, b.upper) for c, b in bounds.items()}
        for c in bounds:
            outside[c] += float((made[c] != kept[c]).sum()) / (n * trials)
        inside = made | kept
        sums += sums_within_cells(statistic, boxed_columns(statistic, problem.bounds, inside), made)
        for total, table in ((plain, made), (clamped, inside)):
            own = design if table is made else _design(problem.design, table)
            both = np.concatenate([own, table[problem.y][..., None]], axis=-1)
            total += np.swapaxes(both, 1, 2) @ both
    return FactorScene(problem, n, truth, sums, plain, clamped, guess, outside)


# -- truths from the prior -------------------------------------------------------------------------


def from_prior(
    rng: np.random.Generator, problem: FactorProblem, trials: int
) -> Trials[FactorProblem]:
    """Draw truths from the prior, sums given them, and noise of the release's scale.

    Draws count with the weight of the wall around means within cells, and those whose *noisy* sums
    could not come from records in the box are left out: a posterior is right for every z, hence
    also for those kept.
    """
    own = owner_response(problem, *atoms_of_design(problem))
    if own is None:
        raise ArgumentError("formula: a check needs the owner's own; leave it out")
    back, shift = own
    n, half = float(problem.n[0]), problem.bounds[-1].half_width
    slack = REACH * problem.noise_scale
    kept_sums: list[np.ndarray] = []
    kept_truth: list[np.ndarray] = []
    for _ in range(MAX_BATCHES):
        keys = jax.random.split(jax.random.key(int(rng.integers(2**31))), PROPOSALS)
        size = jnp.asarray(n), jnp.asarray(problem.noise_scale)
        drawn = _drawn_sums(keys, *size, problem.structure)
        sums, theta, variance, wall = (np.asarray(part) for part in drawn)
        z = sums + noise(rng, problem.noise_scale, problem.mechanism, sums.shape, whole=False)
        fits = (np.abs(z) <= n + slack).all(axis=1) & np.isfinite(sums).all(axis=1)
        fits &= np.log(rng.random(PROPOSALS)) < wall
        truth = half * theta @ back.T
        truth[:, -1] += shift
        kept_sums.append(z[fits])
        kept_truth.append(np.column_stack([truth, half**2 * variance])[fits])
        if sum(map(len, kept_sums)) >= trials:
            z, truth = np.concatenate(kept_sums)[:trials], np.concatenate(kept_truth)[:trials]
            return _as_trials(problem, z, truth, round(n))
    raise ArgumentError(
        f"prior: of {MAX_BATCHES * PROPOSALS:,} draws from it fewer than the {trials} trials "
        "wanted fit the bounds; ask for fewer trials"
    )


@partial(jax.jit, static_argnums=3)
def _drawn_sums(
    keys: jax.Array, n: jax.Array, scale: jax.Array, structure: Structure
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Return released sums, coefficients of atoms, σ² and the log weight of the walls, per key."""
    # One after the other: batched LAPACK calls of one program may wait for each other for ever.
    drawn: tuple[jax.Array, jax.Array, jax.Array, jax.Array] = jax.lax.map(
        lambda key: _drawn(key, n, scale, structure), keys
    )
    return drawn


def _drawn(
    key: jax.Array, n: jax.Array, scale: jax.Array, structure: Structure
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Draw as ``factor_density.py`` describes: cells, covariates in order, the response."""
    fresh = iter(jax.random.split(key, 4 + 6 * (structure.covariates + 1)))
    strata, d = len(structure.stratum_levels), structure.covariates
    scales = _drawn_scales(next(fresh), structure)
    tables, below = _drawn_latent_counts(next(fresh), n, scale, scales, structure)
    sizes = tables.x_gram[:, 0, 0]
    factor = jnp.linalg.cholesky(tables.x_gram)
    for j in range(d):
        rate = _beta_prime_draw(next(fresh), COVARIATE_SCALE)
        precision = covariate_prior(structure, scales, j, factor, sizes)[0]
        e, residual, _, _ = jax.vmap(_drawn_column, in_axes=(0, 0, 0, 0, None))(
            jax.random.split(next(fresh), strata), sizes, factor, precision, rate
        )
        row = jnp.concatenate([e, jnp.sqrt(residual)[:, None]], axis=1)[:, None]
        factor = jnp.concatenate([jnp.pad(factor, ((0, 0), (0, 0), (0, 1))), row], axis=1)
    whole = jnp.einsum("skl,sml->skm", factor, factor)
    gram = atoms_gram(structure, tables.y_gram, whole)
    chol = jnp.linalg.cholesky(gram)
    precision = response_prior(structure, scales, factor, n)[0]
    rate = _beta_prime_draw(next(fresh), ERROR_SCALE)
    e, residual, theta, variance = _drawn_column(next(fresh), n, chol, precision, rate)
    cross = chol @ e
    gram = jnp.block([[gram, cross[:, None]], [cross[None], (e @ e + residual)[None, None]]])
    sums, wall = released_sums(structure, tables, whole, gram, scale)
    return sums, theta, variance, wall + below


def _drawn_latent_counts(
    key: jax.Array,
    n: jax.Array,
    scale: jax.Array,
    scales: Mapping[tuple[str, int, int], jax.Array],
    structure: Structure,
) -> tuple[LatentCounts, jax.Array]:
    """Draw tables as ``latent_cell_counts`` describes, and the log weight of cells below zero."""
    if not structure.pairwise:
        logits = _drawn_logits(key, math.prod(structure.cells))
        return latent_counts_at(logits, n, scale, jnp.zeros(0), structure), jnp.zeros(())
    keys = iter(jax.random.split(key, len(structure.sizes) + len(pairs(structure))))
    w = [_drawn_logits(next(keys), c) for c in structure.sizes]
    roots = [jnp.sqrt(n * jax.nn.softmax(jnp.concatenate([jnp.zeros(1), v]))) for v in w]
    spreads = jnp.array([scales["association", f, g] for f, g in pairs(structure)])
    for (f, g), log_nu in zip(pairs(structure), spreads, strict=True):
        a, b = roots[f], roots[g]
        white = jax.random.normal(next(keys), (len(a), len(b)))
        # Rows and columns of E add up to zero.
        white = white - jnp.outer(a, a @ white) / n
        white = white - jnp.outer(white @ b, b) / n
        known = jnp.exp(log_nu) * jnp.outer(a, b)
        apart, unit = (known * white)[1:, 1:], known[1:, 1:]
        w.append((apart * jnp.sqrt(1 / scale**2 + 1 / unit**2)).reshape(-1))
    tables = latent_counts_at(jnp.concatenate(w), n, scale, spreads, structure)
    cells = jnp.concatenate([tables.cells(pair) for pair in pairs(structure)])
    return tables, -0.5 * (jnp.minimum(cells / (BEYOND * scale), 0.0) ** 2).sum()


def _drawn_logits(key: jax.Array, cells: int) -> jax.Array:
    """Draw shares ~ Dirichlet(½) as logits against the first."""
    logs = jax.random.loggamma(key, CELL_SHARE, (cells,))
    return logs[1:] - logs[0]


def _drawn_column(
    key: jax.Array, n: jax.Array, factor: jax.Array, precision: jax.Array, rate: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Draw e and R of a column given its design's factor, its coefficients and its variance.

    The constant, the first, is flat: the mean of the records is even in the box, and the law's
    constant is normal around what that says.
    """
    first, second, third, fourth, fifth = jax.random.split(key, 5)
    k = len(factor)
    variance = rate / jax.random.gamma(first, ERROR_SHAPE)
    white = jax.random.normal(second, (k,))
    slopes = jnp.zeros(0)
    if k > 1:
        chol = jnp.linalg.cholesky(precision[1:, 1:])
        normal = jax.random.normal(third, (k - 1,))
        slopes = jnp.sqrt(variance) * solve_triangular(chol, normal, lower=True, trans=1)
    mean = jax.random.uniform(fourth, minval=-MEANS, maxval=MEANS) * jnp.sqrt(n)
    constant = mean - jnp.sqrt(variance) * white[0] - factor[1:, 0] @ slopes
    theta = jnp.concatenate([constant[None] / factor[0, 0], slopes])
    e = factor.T @ theta + jnp.sqrt(variance) * white
    free = jnp.maximum(n - k, 1.0)
    return e, variance * 2 * jax.random.gamma(fifth, free / 2), theta, variance


def _drawn_scales(key: jax.Array, structure: Structure) -> dict[tuple[str, int, int], jax.Array]:
    """Draw log τ of effects and strata, log g of slopes, log ν of tables."""
    names = scale_names(structure)
    keys = jax.random.split(key, len(names))
    return {
        name: jnp.log(SLOPE_UNIT * _beta_prime_draw(own, SLOPE_SCALE))
        if name[0] == "slopes"
        else jax.random.normal(own) + LOG_ASSOCIATION * (name[0] == "association")
        for name, own in zip(names, keys, strict=True)
    }


def _beta_prime_draw(key: jax.Array, exponents: tuple[float, float]) -> jax.Array:
    """Draw from BetaPrime(low, high), a ratio of gammas, in logarithms for tiny shapes."""
    above, below = (
        jax.random.loggamma(own, shape)
        for own, shape in zip(jax.random.split(key), exponents, strict=True)
    )
    return jnp.exp(jnp.clip(above - below, -2 * FARTHEST, 2 * FARTHEST))
