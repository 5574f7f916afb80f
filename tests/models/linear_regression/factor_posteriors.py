"""Posteriors of regressions with factors, made by hand: no sampling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from noisewise.artifact import Level
from noisewise.formula import parse
from noisewise.models.linear_regression.posterior import RegressionPosterior

LEVELS: dict[str, tuple[Level, ...]] = {
    "sex": ("female", "male"),
    "region": (1, 2, 3, 9),
    "degree": ("none", "school", "bachelor or equivalent", "doctorate"),
}
FORMULA = "wages ~ age + C(sex) + educ + C(region) + age:C(sex) + I(age**2)"
WIDE = f"{FORMULA} + C(degree)"
BOUNDS = {"age": (16.0, 90.0), "educ": (0.0, 22.0), "wages": (0.0, 100.0)}


def factor_posterior(
    formula: str = FORMULA,
    levels: Mapping[str, tuple[Level, ...]] = LEVELS,
    groups: int = 0,
    **words: Any,
) -> RegressionPosterior:
    """A posterior of independent normal draws; coefficient i is about 1 + i."""
    parsed = parse(formula, levels)
    used = {f: tuple(levels[f]) for f in parsed.factors}
    design = parsed.design(used)
    names = tuple(c.name for c in design)
    rng = np.random.default_rng(3)
    lead = (groups,) if groups else ()
    draws = {n: rng.normal(1 + i, 0.2, (*lead, 4, 500)) for i, n in enumerate(names)}
    draws["sigma2"] = rng.gamma(9.0, 0.1, (*lead, 4, 500))
    flat = np.ones(lead)
    given: dict[str, Any] = {
        "design": design,
        "levels": used,
        "keys": tuple(range(groups)) if groups else None,
        "prior_draws": lambda number: {n: rng.normal(0, 3, number) for n in draws},
        "without_noise": lambda: dict.fromkeys(draws, flat * 0.1),
        **words,
    }
    return RegressionPosterior(
        draws, dict.fromkeys(draws, flat * 1.001), dict.fromkeys(draws, flat * 900), "exact",
        names[:-1], parsed.response, **given,
    )  # fmt: skip
