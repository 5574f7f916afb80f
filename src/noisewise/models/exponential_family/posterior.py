"""The posterior of one column's exponential family, made from draws of θ.

The width without privacy noise: had the owner published the sum s itself, the posterior would be
the conjugate one of (s, n). Which s it would have been is not known: its mean n E[t | θ] at draws
of θ from the posterior stands in, and the conjugate variances are averaged over these draws.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.artifact import ArgumentError, PowerSums
from noisewise.inference.results import CategoryPrediction, Posterior, Prediction, by_name
from noisewise.models.exponential_family.families import Categorical
from noisewise.models.exponential_family.family import Conjugate, Family, draw_parameters
from noisewise.models.exponential_family.problem import FamilyProblem
from noisewise.numerics.convergence import diagnose_groups


@dataclass(frozen=True, eq=False, repr=False)
class FamilyPosterior(Posterior):
    """Draws of the parameters of ``family``, which column ``y`` follows."""

    model_name = "exponential-family"
    y: str
    family: Family

    @property
    def x(self) -> tuple[str, ...]:
        """Return the empty tuple: there are no covariates."""
        return ()

    @property
    def title(self) -> str:
        """Return the column and its family."""
        return f"{self.y} ({self.family.name})"

    def attributes(self) -> dict[str, object]:
        """Return the column and the family with its known parameters, for a file."""
        known = dataclasses.asdict(self.family)
        return {"x": [], "y": self.y, "family": {"name": self.family.name, "known": known}}

    def predict(
        self,
        new_x: Mapping[str, float] | None = None,
        *,
        seed: int = 0,
        new_group: bool = False,
        features: Mapping[str, float] | None = None,
    ) -> Prediction:
        """Return the distribution of one new record: a draw for every draw of the parameters.

        Args:
            new_x: must be left out, since there are no covariates.
            seed: of the new record's scatter.
            new_group: of pooled groups: predict a record of a group that is not in the release.
            features: the new group's public features.
        """
        if new_x is not None and not (isinstance(new_x, Mapping) and not new_x):
            raise ArgumentError("new_x: there are no covariates; leave it out")
        if new_group:
            return self._of_new_group(features, seed)
        if features is not None:
            raise ArgumentError("features: goes with a new group; give new_group=True too")
        theta = np.stack(list(self.draws.values()), axis=-1)
        records = self.family.records(np.random.default_rng(seed), theta)
        if isinstance(self.family, Categorical):
            levels = self.family.levels
            return CategoryPrediction(np.array(levels)[records], theta, levels)
        return Prediction(records, self.family.mean(theta))

    def _of_new_group(self, features: Mapping[str, float] | None, seed: int) -> Prediction:
        """Return the distribution of a record in a group that is drawn from the population."""
        from noisewise.models.exponential_family.pooled_population import new_group

        if self.population is None:
            raise ArgumentError("new_group: goes with pooled groups; infer with pool=True")
        rng = np.random.default_rng(seed)
        (name,), (domain,) = self.family.names, self.family.domains
        theta = new_group(rng, domain, name, self.population, features)[..., None]
        return Prediction(self.family.records(rng, theta), self.family.mean(theta))

    @property
    def cautions(self) -> tuple[str, ...]:
        """Return how many records lie outside the bounds, and where two values fit the release."""
        return (*super().cautions, *self._two_modes())

    def _two_modes(self) -> list[str]:
        """Return a sentence for the first parameter that has two modes, in words on why."""
        for name, draws in self.draws.items():
            groups = [draws] if self.keys is None else list(draws)
            splits = [two_modes(group.ravel()) for group in groups]
            split = next((s for s in splits if s is not None), None)
            if split is None:
                continue
            many = sum(s is not None for s in splits)
            values = f"about {split[0]:.2g} and {split[1]:.2g}"
            where = ""
            if self.keys is not None:
                where = f"In {many} of {len(groups)} groups, "
                values = f"{values} in {self.keys[splits.index(split)]}"
            words = f"{where}two quite different values of {name} fit the release ({values})"
            return [words[0].upper() + words[1:] + self._why_two_modes()]
        return []

    def _why_two_modes(self) -> str:
        """Return why two values may fit, where records outside the bounds were dropped."""
        statistics = [block.statistic for r in self.releases for block in r.blocks]
        if not any(isinstance(s, PowerSums) and s.outside == "drop" for s in statistics):
            return ""
        return (
            ": records outside the bounds were dropped, and how many is unknown. A prior that "
            "knows which is impossible would tell them apart; so would a release with "
            "outside='clamp' (--outside clamp) in place of 'drop': ask the owner for it"
        )

    def __repr__(self) -> str:
        how = f"{self.family.name} by {self.method}, prior {self.prior}"
        return f"<Posterior of {self.y}, {how}: {self.status}>"


LEAST_MODE = 0.05
"""Share of the draws from which a mode of its own is worth a word (chosen)."""
MODE_SEPARATION = 5.0
"""Distance of two modes' means, in the sum of their deviations, from which they are separate
(chosen): halves of a normal law are 1.3 apart, of a uniform one 1.7, spike and slab up to 3.5."""


def two_modes(draws: np.ndarray) -> tuple[float, float] | None:
    """Return the medians of two separate modes, the larger one's first; None if there are not two.

    Draws are cut in two where the squares about both means are least.
    """
    x = np.sort(draws) - np.mean(draws)
    first = np.arange(1, len(x))
    below = np.cumsum(x)[:-1]
    # The total is zero: the sum above a cut is minus that below.
    between = below**2 / first + below**2 / (len(x) - first)
    cut = int(between.argmax()) + 1
    left, right = x[:cut], x[cut:]
    if min(len(left), len(right)) < LEAST_MODE * len(x):
        return None
    if right.mean() - left.mean() < MODE_SEPARATION * (left.std() + right.std()):
        return None
    larger, smaller = (left, right) if len(left) >= len(right) else (right, left)
    shift = np.mean(draws)
    return float(np.median(larger) + shift), float(np.median(smaller) + shift)


SUMS_AVERAGED = 100
"""Draws of θ, and so sums, over which conjugate variances are averaged (chosen)."""
DRAWS_PER_SUM = 400
"""Draws from each of those conjugate posteriors (chosen)."""


def assemble_posterior(
    problem: FamilyProblem, theta: np.ndarray, method: str, details: Mapping[str, Any]
) -> FamilyPosterior:
    """Return the Posterior of draws (group, chain, draw, parameter) in the user's units."""
    names, keys = problem.family.names, problem.keys
    drawn = [np.ascontiguousarray(theta[..., i]) for i in range(len(names))]
    rhat, ess = zip(*map(diagnose_groups, drawn), strict=True)
    return FamilyPosterior(
        draws=by_name(names, drawn, keys),
        rhat=by_name(names, rhat, keys),
        ess=by_name(names, ess, keys),
        method=method,
        y=problem.column,
        keys=keys,
        prior=str(problem.prior),
        details=details,
        family=problem.family,
        prior_draws=partial(prior_draws, problem.family, problem.prior),
        without_noise=(
            None if method == "naive" else partial(noise_free_deviations, problem, theta)
        ),
    )


def prior_draws(family: Family, prior: Any, number: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Draw every parameter from its prior; return arrays of that number by name."""
    given = family.conjugate(prior).repeated(number)
    theta = np.asarray(draw_parameters(family, jax.random.key(seed), given))
    return {name: theta[:, i] for i, name in enumerate(family.names)}


def noise_free_deviations(problem: FamilyProblem, theta: np.ndarray) -> dict[str, np.ndarray]:
    """Return posterior deviations without privacy noise, by parameter, in the user's units.

    Args:
        problem: the release and its prior.
        theta: posterior draws (group, chain, draw, parameter).

    Returns:
        One number per parameter, or one per group where there are groups.
    """
    flat = theta.reshape(len(theta), -1, theta.shape[-1])
    flat = flat[:, :: max(1, flat.shape[1] // SUMS_AVERAGED)][:, :SUMS_AVERAGED]
    prior = Conjugate(*map(jnp.asarray, problem.conjugate))
    rows = zip(flat, problem.n, strict=True)
    deviations = np.stack(
        [_group_deviations(problem.family, prior, jnp.asarray(t), n) for t, n in rows]
    )
    values = deviations.T if problem.keys is not None else deviations[0]
    return dict(zip(problem.family.names, values, strict=True))


def _group_deviations(family: Family, prior: Conjugate, theta: jax.Array, n: float) -> np.ndarray:
    """Return one group's deviations: roots of conjugate variances averaged over θ."""
    after = Conjugate(
        *(
            jnp.broadcast_to(a[:, None], (len(a), DRAWS_PER_SUM, a.shape[-1]))
            for a in _mean_sum_posterior(family, prior, theta, n)
        )
    )
    drawn = np.asarray(draw_parameters(family, jax.random.key(0), after))
    return np.asarray(np.sqrt(drawn.var(axis=1, ddof=1).mean(axis=0)))


@partial(jax.jit, static_argnums=0)
def _mean_sum_posterior(family: Family, prior: Conjugate, theta: jax.Array, n: float) -> Conjugate:
    """Return the conjugate posterior of n records whose statistics add up to their mean at θ."""
    mean = jax.vmap(lambda th: jax.grad(family.log_partition)(family.natural(th)))(theta)
    return prior.repeated(len(theta)).updated(n * mean, jnp.full(len(theta), n))
