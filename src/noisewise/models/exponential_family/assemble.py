"""From draws to a Posterior, with names and diagnostics."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.models.exponential_family.family import Conjugate, Family, draw
from noisewise.models.exponential_family.posterior import FamilyPosterior
from noisewise.models.exponential_family.problem import Problem
from noisewise.models.exponential_family.without_noise import deviations
from noisewise.numerics.convergence import diagnose_groups


def posterior(
    problem: Problem, theta: np.ndarray, method: str, details: Mapping[str, Any]
) -> FamilyPosterior:
    """Draws (group, chain, draw, parameter) in the user's units."""
    only = problem.keys is None
    names = problem.family.names

    def named(values: list[np.ndarray]) -> dict[str, np.ndarray]:
        return {name: v[0] if only else v for name, v in zip(names, values, strict=True)}

    drawn = [np.ascontiguousarray(theta[..., i]) for i in range(len(names))]
    rhat, ess = (list(side) for side in zip(*map(diagnose_groups, drawn), strict=True))
    return FamilyPosterior(
        draws=named(drawn),
        rhat=named(rhat),
        ess=named(ess),
        method=method,
        y=problem.column,
        keys=problem.keys,
        prior=str(problem.prior),
        details=details,
        family=problem.family,
        prior_draws=partial(prior_draws, problem.family, problem.prior),
        without_noise=None if method == "naive" else partial(deviations, problem, theta),
    )


def prior_draws(family: Family, prior: Any, number: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Draws of every parameter before anything is seen."""
    given = Conjugate(
        *(
            jnp.broadcast_to(a, (number, *a.shape))
            for a in map(jnp.asarray, family.conjugate(prior))
        )
    )
    theta = np.asarray(draw(family, jax.random.key(seed), given))
    return {name: theta[:, i] for i, name in enumerate(family.names)}
