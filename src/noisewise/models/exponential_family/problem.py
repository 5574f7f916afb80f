"""From releases to arrays: which family, what was summed, with which noise, under which prior.

Several releases of the same records become one problem where the exact method has a place for it.
Normal noises are one normal noise. Laplace noises are not one of anything: the counts of a
categorical column are summed over one by one, so that any noise will do; the Fourier series of the
other families (``fourier_likelihood.py``) stands for one release's noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.artifact import (
    ArgumentError,
    Block,
    Bounds,
    Level,
    PowerSums,
    Release,
    ReleaseError,
    Tables,
)
from noisewise.artifact.readable_numbers import in_full
from noisewise.inference.combine import Observation, averaged, reduced
from noisewise.models.exponential_family.families import (
    Bernoulli,
    Binomial,
    Categorical,
    find_family,
)
from noisewise.models.exponential_family.family import Conjugate, Family, draw_parameters
from noisewise.models.exponential_family.truncation import Interval, interval_of

LEAST_PRIOR_MASS = 1e-9
"""Less prior probability than this inside the interval counts as none (chosen)."""
PRIOR_MASS_DRAWS = 2000
"""Draws from the prior over which the interval's probability is averaged (chosen)."""


@dataclass(frozen=True)
class FamilyProblem:
    """Everything a method needs; arrays lead with the group.

    ``z`` and ``scale`` are in the family's own units of the statistic. Where n is secret, ``n`` is
    the noisy count raised to at least one, and ``counted`` the count as it was released, with noise
    of scale ``count_scale``. Of releases combined (``combine_problems``), ``others`` are the rest,
    and z may lie ``between`` whole numbers though the sums are whole.
    """

    family: Family
    interval: Interval
    column: str
    z: np.ndarray
    n: np.ndarray
    scale: float
    mechanism: str
    prior: Any
    keys: tuple[Level, ...] | None
    counted: np.ndarray | None = None
    count_scale: float = 0.0
    others: tuple[Observation, ...] = ()
    between: bool = False

    @property
    def conjugate(self) -> Conjugate:
        """Return the prior's λ."""
        return self.family.conjugate(self.prior)

    @property
    def unknown_n_note(self) -> dict[str, str]:
        """Return what an exact method assumes of a secret n, for the posterior's details."""
        return {} if self.counted is None else {"n": "secret: flat prior over 0, 1, 2, …"}


def family_problem(release: Release, prior: Any, empty: bool = False) -> FamilyProblem:
    """Read a release of one column's sums, or of its counts by category.

    Args:
        release: a release of family ``"exponential-family"``.
        prior: a prior of the family's type, ``{parameter: prior}``, or None for a weak one.
        empty: groups without records are welcome.

    Returns:
        The problem that the methods solve.
    """
    if release.family != "exponential-family":
        raise ReleaseError(f"this release is of family {release.family!r}, not exponential-family")
    kind = find_family(release.model.get("distribution"))
    keys = None if release.groups is None else release.groups.keys
    if kind is Categorical:
        return _counts_problem(release, release.block("tables"), prior, keys)
    block = release.block("power-sums")
    statistic = block.statistic
    if not isinstance(statistic, PowerSums):
        raise ReleaseError("the 'power-sums' block does not hold power sums")
    family = kind.for_release(release.model, statistic)
    d = family.dimension
    if statistic.degree != d:
        raise ReleaseError(f"power-sums: {statistic.degree} sums, but {kind.name} needs {d}")
    interval = interval_of(statistic, kind in (Bernoulli, Binomial), family.whole)
    values, scales = _in_box(block, statistic) if d == 2 else (block.scaled.T, block.noise_scales)
    counted = values[:, d] if statistic.count else None
    n = _public_n(release) if counted is None else _raised_to_one(counted)
    chosen = _checked_prior(prior, family, Bounds(statistic.lower, statistic.upper))
    problem = FamilyProblem(
        family, interval, statistic.column, values[:, :d], n.astype(float), float(scales[0]),
        block.noise.mechanism, chosen, keys, counted, float(scales[-1]) if statistic.count else 0.0,
    )  # fmt: skip
    _refuse_impossible(problem, empty)
    return problem


def _public_n(release: Release) -> np.ndarray:
    return np.atleast_1d(np.asarray(release.n, dtype=float))


def _raised_to_one(counted: np.ndarray) -> np.ndarray:
    """Return noisy counts as whole numbers of at least one."""
    return np.asarray(np.maximum(np.rint(counted), 1.0))


def _in_box(block: Block, statistic: PowerSums) -> tuple[np.ndarray, np.ndarray]:
    """Return values and noise scales in the lattice's one unit: powers of (x - origin)/scale."""
    step = 2.0 ** (-statistic.bits * statistic.degree)
    return block.values.T * step, np.full(len(statistic.names), block.noise.scale * step)


def _counts_problem(
    release: Release, block: Block, prior: Any, keys: tuple[Level, ...] | None
) -> FamilyProblem:
    """Read the counts of a categorical column."""
    statistic = block.statistic
    if not isinstance(statistic, Tables) or len(statistic.cliques) != 1:
        raise ReleaseError("a categorical release holds the counts of one column")
    column = statistic.columns[0]
    family = Categorical(statistic.levels[column])
    z = block.scaled.T
    counted = z.sum(axis=1) if release.n is None else None
    n = _public_n(release) if counted is None else _raised_to_one(counted)
    problem = FamilyProblem(
        family, Interval(0.0, len(family.levels) - 1.0, "keep"), column, z, n.astype(float),
        float(block.noise_scales[0]), block.noise.mechanism,
        _checked_prior(prior, family, Bounds(0, 1)), keys, counted,
    )  # fmt: skip
    _refuse_impossible(problem)
    return problem


def _checked_prior(given: object, family: Family, bounds: Bounds) -> object:
    """Return the user's prior, given alone or as {parameter: prior}; a weak one for None."""
    if isinstance(given, Mapping):
        if len(given) != 1:
            raise ArgumentError(f"prior: give one {family.prior.__name__}, or leave it out")
        ((name, given),) = given.items()
        if name not in family.parameters:
            raise ArgumentError(
                f"prior: {name!r} is no parameter of {family.name}, "
                f"which has {', '.join(family.parameters)}"
            )
    if given is None:
        return family.default_prior(bounds)
    if not isinstance(given, family.prior):
        raise ArgumentError(
            f"prior: {family.name} takes a {family.prior.__name__}, not {type(given).__name__}"
        )
    sizes = {"alpha": family.dimension, "mean": 1}
    for field, size in sizes.items():
        value = getattr(given, field, None)
        if isinstance(value, np.ndarray) and value.shape != (size,):
            raise ArgumentError(f"prior: {field} must have length {size} for {family.name}")
    return given


def _refuse_impossible(problem: FamilyProblem, empty: bool = False) -> None:
    """Raise where a group has no record, or the prior gives the interval no probability."""
    if (problem.n < 1).any() and not empty:
        raise ArgumentError("release: inference needs at least one record in every group")
    if problem.interval.outside == "keep":
        return
    mass = prior_mass(problem.family, problem.interval, problem.conjugate)
    if float(mass) < LEAST_PRIOR_MASS:
        raise ArgumentError(
            f"prior: gives the public interval ({in_full(problem.interval.lower)}, "
            f"{in_full(problem.interval.upper)}) of {problem.column!r} no probability; check the "
            "prior's units, or ask the owner for another interval"
        )


@partial(jax.jit, static_argnums=0)
def prior_mass(family: Family, interval: Interval, prior: Conjugate) -> jax.Array:
    """Return the probability of the interval, averaged over draws from the prior."""
    theta = draw_parameters(family, jax.random.key(0), prior.repeated(PRIOR_MASS_DRAWS))
    low, high = interval.below(family.whole), interval.above(family.whole)

    def inside(th: jax.Array) -> jax.Array:
        eta = family.natural(th)
        return family.cdf(jnp.asarray(high), eta) - family.cdf(jnp.asarray(low), eta)

    return jnp.nan_to_num(jax.vmap(inside)(theta)).mean()


def combine_problems(problems: Sequence[FamilyProblem]) -> FamilyProblem:
    """Return one problem for releases alike but for their noise; one alone is left as it is."""
    one = problems[0]
    if len(problems) == 1:
        return one
    kept = reduced([Observation(p.z, p.scale, p.mechanism) for p in problems])
    if len(kept) > 1 and not isinstance(one.family, Categorical):
        raise ArgumentError(
            f"release: releases of a {one.family.name} column can be combined where all have "
            "Gaussian noise; with Laplace noise, those of a categorical column and of a linear "
            "regression can"
        )
    first, *others = kept
    combined = replace(
        one, z=first.z, scale=first.noise_scale, mechanism=first.mechanism, others=tuple(others),
        between=one.family.whole and first.mechanism == "gaussian",
    )  # fmt: skip
    if one.counted is None:
        return combined
    if isinstance(one.family, Categorical):
        counted, scale = averaged(kept).z.sum(axis=1), 0.0
    else:
        sizes = averaged([_size_observation(p) for p in problems])
        counted, scale = sizes.z[:, 0], sizes.noise_scale
    return replace(combined, counted=counted, count_scale=scale, n=_raised_to_one(counted))


def _size_observation(problem: FamilyProblem) -> Observation:
    counted = np.asarray(problem.counted)
    return Observation(counted[:, None], problem.count_scale, problem.mechanism)
