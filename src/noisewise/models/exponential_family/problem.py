"""From a Release to arrays: which family, what was summed, with which noise, under which prior."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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
from noisewise.inference.observation import Observation
from noisewise.models.exponential_family.families import Bernoulli, Binomial, Categorical, find
from noisewise.models.exponential_family.family import Conjugate, Family, draw
from noisewise.models.exponential_family.observed import Interval, interval

LEAST_MASS = 1e-9
"""Less prior probability than this inside the interval is none."""


@dataclass(frozen=True)
class Problem:
    """Everything a method needs; arrays lead with the group.

    ``z`` and ``scale`` are in the family's own units of the statistic. Where n is secret, ``n`` is
    the noisy count raised to at least one, and ``counted`` the count as it was released, with noise
    of scale ``count_scale``. Of releases combined (``several.py``), ``others`` are the rest,
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
        """The prior's λ."""
        return self.family.conjugate(self.prior)


def problem(release: Release, prior: Any) -> Problem:
    """Read a release of one column's sums, or of its counts by category."""
    if release.family != "exponential-family":
        raise ReleaseError(f"this release is of family {release.family!r}, not exponential-family")
    kind = find(release.model.get("distribution"))
    keys = None if release.groups is None else release.groups.keys
    if kind is Categorical:
        return _counts(release, release.block("tables"), prior, keys)
    block = release.block("power-sums")
    statistic = block.statistic
    if not isinstance(statistic, PowerSums):
        raise ReleaseError("the 'power-sums' block does not hold power sums")
    family = kind.for_release(release.model, statistic)
    if statistic.degree != family.dimension:
        raise ReleaseError(
            f"power-sums: {statistic.degree} sums, but {kind.name} needs {family.dimension}"
        )
    bounded = kind in (Bernoulli, Binomial)
    cut = interval(statistic, bounded, family.whole)
    values, scales = _in_box(block, statistic) if family.dimension == 2 else _natural(block)
    d = family.dimension
    counted = values[:, d] if statistic.count else None
    n = _public(release) if counted is None else np.maximum(np.rint(counted), 1.0)
    given = _prior(prior, family, Bounds(statistic.lower, statistic.upper))
    made = Problem(
        family, cut, statistic.column, values[:, :d], n.astype(float), float(scales[0]),
        block.noise.mechanism, given, keys, counted, float(scales[-1]) if statistic.count else 0.0,
    )  # fmt: skip
    _check(made)
    return made


def _public(release: Release) -> np.ndarray:
    return np.atleast_1d(np.asarray(release.n, dtype=float))


def _natural(block: Block) -> tuple[np.ndarray, np.ndarray]:
    return block.scaled.T, block.noise_scales


def _in_box(block: Block, statistic: PowerSums) -> tuple[np.ndarray, np.ndarray]:
    """Every component in the one unit of the lattice: the powers of u = (x - origin)/scale."""
    step = 2.0 ** (-statistic.bits * statistic.degree)
    return block.values.T * step, np.full(len(statistic.names), block.noise.scale * step)


def _counts(release: Release, block: Block, prior: Any, keys: Any) -> Problem:
    statistic = block.statistic
    if not isinstance(statistic, Tables) or len(statistic.cliques) != 1:
        raise ReleaseError("a categorical release holds the counts of one column")
    column = statistic.columns[0]
    family = Categorical(statistic.levels[column])
    z = block.scaled.T
    secret = release.n is None
    n = np.maximum(np.rint(z.sum(axis=1)), 1.0) if secret else _public(release)
    given = _prior(prior, family, Bounds(0, 1))
    made = Problem(
        family, Interval(0.0, len(family.levels) - 1.0, "keep"), column, z, n.astype(float),
        float(block.noise_scales[0]), block.noise.mechanism, given, keys,
        z.sum(axis=1) if secret else None,
    )  # fmt: skip
    _check(made)
    return made


def _prior(given: Any, family: Family, bounds: Bounds) -> Any:
    """The user's prior, alone or as {parameter: prior}; a weak one where there is none."""
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


def _check(problem: Problem) -> None:
    """At least one record, and an interval that the prior gives some probability."""
    if (problem.n < 1).any():
        raise ArgumentError("release: inference needs at least one record in every group")
    if problem.interval.outside == "keep":
        return
    mass = prior_mass(problem.family, problem.interval, problem.conjugate)
    if float(mass) < LEAST_MASS:
        raise ArgumentError(
            f"prior: gives the public interval ({problem.interval.lower:g}, "
            f"{problem.interval.upper:g}) of {problem.column!r} no probability; check the prior's "
            "units, or ask the owner for another interval"
        )


@partial(jax.jit, static_argnums=0)
def prior_mass(family: Family, interval: Interval, prior: Conjugate) -> jax.Array:
    """Probability of the interval, averaged over 2,000 draws from the prior."""
    many = Conjugate(*(jnp.broadcast_to(a, (2000, *a.shape)) for a in prior))
    theta = draw(family, jax.random.key(0), many)
    low, high = interval.below(family.whole), interval.above(family.whole)

    def inside(th: jax.Array) -> jax.Array:
        eta = family.natural(th)
        return family.cdf(jnp.asarray(high), eta) - family.cdf(jnp.asarray(low), eta)

    return jnp.nan_to_num(jax.vmap(inside)(theta)).mean()
