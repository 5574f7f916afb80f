"""One case per family: what the conformance suite needs to know of it.

To put a family of one's own under the same tests, add a case (docs/guide-your-own-family.md).
Noise comes from NumPy: these are simulations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from noisewise import priors
from noisewise.models.exponential_family import families
from noisewise.models.exponential_family.family import Family
from noisewise.models.exponential_family.problem import FamilyProblem
from noisewise.models.exponential_family.truncation import Interval

GROUPS, CHAINS, DRAWS = 4, 4, 1000


@dataclass(frozen=True)
class Case:
    """``posterior(s, n)``: SciPy's marginal laws of the parameters after an exact statistic s.

    ``wide`` covers all data; ``narrow`` cuts some off. The prior weighs about as much as a fifth of
    100 records, so that a Gibbs chain can cross it.
    """

    family: Family
    prior: Any
    theta: Sequence[float]
    wide: tuple[float, float]
    narrow: tuple[float, float]
    law: Any
    posterior: Callable[[np.ndarray, int], list[Any]]

    @property
    def bounded(self) -> bool:
        return isinstance(self.family, families.Binomial | families.Categorical)

    def interval(self, outside: str = "drop", wide: bool = False) -> Interval:
        ends = self.wide if wide else self.narrow
        low, high = map(float, ends)
        return Interval(low, high, "keep" if self.bounded else outside)  # type: ignore[arg-type]

    def records(self, rng: np.random.Generator, n: int, theta: Any = None) -> np.ndarray:
        chosen = np.asarray(self.theta if theta is None else theta, float)
        return self.family.records(rng, np.broadcast_to(chosen, (n, len(chosen)))).astype(float)


def contribution(family: Family, interval: Interval, x: np.ndarray) -> np.ndarray:
    """What the owner sums, record by record."""
    clipped = np.clip(x, interval.lower, interval.upper)
    if interval.outside == "keep":
        clipped = x
    t = np.asarray(jax.vmap(family.statistic)(jnp.asarray(clipped)))
    if interval.outside == "drop":
        t = t * ((x >= interval.lower) & (x <= interval.upper))[:, None]
    return t


def problem(
    case: Case, tables: Sequence[np.ndarray], scale: float, *, interval: Interval | None = None,
    mechanism: str = "laplace", seed: int = 0, grouped: bool = True,
) -> FamilyProblem:  # fmt: skip
    """Noisy sums of tables, one per group; whole numbers stay whole."""
    rng = np.random.default_rng(seed)
    cut = interval or case.interval()
    sums = np.array([contribution(case.family, cut, x).sum(axis=0) for x in tables])
    noise = (rng.laplace if mechanism == "laplace" else rng.normal)(0, scale, sums.shape)
    if case.family.whole:
        noise = np.rint(noise)
    keys = tuple(range(len(tables))) if grouped else None
    n = np.array([float(len(x)) for x in tables])
    return FamilyProblem(case.family, cut, "x", sums + noise, n, scale, mechanism, case.prior, keys)


def _nig(m: float, k: float, a: float, b: float) -> Callable[[np.ndarray, int], list[Any]]:
    """The case's box is [-1, 1] · 4 about 0: s holds sums of u and u², u = x/4."""

    def after(s: np.ndarray, n: int) -> list[Any]:
        s1, s2 = 4 * s[0], 16 * s[1]
        kn, an = k + n, a + n / 2
        mn = (k * m + s1) / kn
        bn = b + (s2 + k * m * m - kn * mn * mn) / 2
        spread = np.sqrt(bn / (an * kn))
        return [stats.t(2 * an, mn, spread), stats.invgamma(an, scale=bn)]

    return after


CASES = {
    "bernoulli": Case(
        families.Bernoulli(), priors.Beta(6, 14), (0.3,), (0, 1), (0, 1), stats.bernoulli(0.3),
        lambda s, n: [stats.beta(6 + s[0], 14 + n - s[0])],
    ),
    "binomial": Case(
        families.Binomial(7), priors.Beta(42, 98), (0.3,), (0, 7), (0, 7), stats.binom(7, 0.3),
        lambda s, n: [stats.beta(42 + s[0], 98 + 7 * n - s[0])],
    ),
    "categorical": Case(
        families.Categorical(("a", "b", "c")), priors.Dirichlet([4, 6, 10]), (0.2, 0.3, 0.5),
        (0, 2), (0, 2), None,
        lambda s, n: [stats.beta(a, 20 + n - a) for a in np.array([4, 6, 10]) + s],
    ),
    "exponential": Case(
        families.Exponential(), priors.Gamma(20, 10), (2.0,), (0, 30), (0.05, 1.2),
        stats.expon(scale=0.5), lambda s, n: [stats.gamma(20 + n, scale=1 / (10 + s[0]))],
    ),
    "gamma": Case(
        families.Gamma(2.5), priors.Gamma(50, 25), (2.0,), (0, 30), (0.3, 2.5),
        stats.gamma(2.5, scale=0.5),
        lambda s, n: [stats.gamma(50 + 2.5 * n, scale=1 / (25 + s[0]))],
    ),
    "geometric": Case(
        families.Geometric(), priors.Beta(20, 47), (0.3,), (1, 150), (1, 6), stats.geom(0.3),
        lambda s, n: [stats.beta(20 + n, 47 + s[0] - n)],
    ),
    "normal": Case(
        families.Normal(0.0, 4.0), priors.NormalInverseGamma([0.5], [[20]], 12, 16), (0.5, 1.5),
        (-30, 30), (-1.5, 3.0), stats.norm(0.5, 1.5**0.5), _nig(0.5, 20, 12, 16),
    ),
    "poisson": Case(
        families.Poisson(), priors.Gamma(60, 20), (3.0,), (0, 60), (1, 5), stats.poisson(3.0),
        lambda s, n: [stats.gamma(60 + s[0], scale=1 / (20 + n))],
    ),
}  # fmt: skip


def truncated_family_moments(
    family: Family, v: float, w: float, eta: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return μ̂ and Σ̂ of t among records in (v, w] (thesis eq. 4.3 and 4.4)."""

    def log_partition(e: jax.Array) -> jax.Array:
        mass = family.cdf(jnp.asarray(w), e) - family.cdf(jnp.asarray(v), e)
        return family.log_partition(e) + jnp.log(mass)

    return jax.grad(log_partition)(eta), jax.hessian(log_partition)(eta)
