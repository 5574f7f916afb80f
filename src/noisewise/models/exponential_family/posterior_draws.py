"""From draws of θ to a Posterior: names, diagnostics, its prior, and what the noise cost.

The width without privacy noise: had the owner published the sum s itself, the posterior would be
the conjugate one of (s, n). Which s it would have been is not known: its mean n E[t | θ] at draws
of θ from the posterior stands in, and the conjugate variances are averaged over these draws.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.inference.posterior import Posterior
from noisewise.models.exponential_family.family import Conjugate, Family, draw_parameters
from noisewise.models.exponential_family.problem import FamilyProblem
from noisewise.models.linear_regression.assemble import judge

SUMS_AVERAGED = 100
"""Draws of θ, and so sums, over which conjugate variances are averaged (chosen)."""
DRAWS_PER_SUM = 400
"""Draws from each of those conjugate posteriors (chosen)."""


def assemble_posterior(
    problem: FamilyProblem, theta: np.ndarray, method: str, details: Mapping[str, Any]
) -> Posterior:
    """Return the Posterior of draws (group, chain, draw, parameter) in the user's units."""
    ungrouped = problem.keys is None
    names = problem.family.names

    def named(values: list[np.ndarray]) -> dict[str, np.ndarray]:
        return {name: v[0] if ungrouped else v for name, v in zip(names, values, strict=True)}

    drawn = [np.ascontiguousarray(theta[..., i]) for i in range(len(names))]
    rhat, ess = (list(side) for side in zip(*map(judge, drawn), strict=True))
    return Posterior(
        draws=named(drawn),
        rhat=named(rhat),
        ess=named(ess),
        method=method,
        x=(),
        y=problem.column,
        keys=problem.keys,
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
