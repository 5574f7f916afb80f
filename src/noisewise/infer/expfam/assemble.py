"""From draws to a Posterior, with names and diagnostics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from noisewise.infer.expfam.problem import Problem
from noisewise.infer.linear.assemble import judge
from noisewise.infer.posterior import Posterior


def posterior(
    problem: Problem, theta: np.ndarray, method: str, details: Mapping[str, Any]
) -> Posterior:
    """Draws (group, chain, draw, parameter) in the user's units."""
    only = problem.keys is None
    names = problem.family.names

    def named(values: list[np.ndarray]) -> dict[str, np.ndarray]:
        return {name: v[0] if only else v for name, v in zip(names, values, strict=True)}

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
    )
