"""From draws in the box to a Posterior in the user's units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from noisewise.infer.linear.problem import Problem
from noisewise.infer.posterior import Posterior
from noisewise.numerics.convergence import diagnose

_SLAB = 4096


def posterior(
    problem: Problem, parameters: np.ndarray, method: str, details: Mapping[str, Any]
) -> Posterior:
    """Parameters (group, chain, draw, θ… σ²) in the box; names, units and diagnostics added."""
    user = problem.units.to_user(parameters)
    names = (*problem.x, "intercept", "sigma2")
    draws = {name: user[..., i] for i, name in enumerate(names)}
    judged = {name: judge(values) for name, values in draws.items()}
    if problem.keys is None:
        draws = {name: values[0] for name, values in draws.items()}
        judged = {name: (r[0], e[0]) for name, (r, e) in judged.items()}
    return Posterior(
        draws=draws,
        rhat={name: r for name, (r, _) in judged.items()},
        ess={name: e for name, (_, e) in judged.items()},
        method=method,
        x=problem.x,
        y=problem.y,
        keys=problem.keys,
        prior=f"response {problem.response}; covariates {problem.covariates}",
        details=details,
    )


_diagnose = jax.jit(diagnose)


def judge(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """R-hat and ESS per group, a slab at a time so that memory stays bounded."""
    parts = [_diagnose(values[i : i + _SLAB]) for i in range(0, len(values), _SLAB)]
    rhat, ess = zip(*parts, strict=True)
    return np.concatenate(rhat), np.concatenate(ess)
