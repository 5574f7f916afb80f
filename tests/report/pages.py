"""Posteriors to report on, made by hand: no sampling."""

from __future__ import annotations

from typing import Any

import numpy as np

from noisewise.inference import Posterior
from noisewise.models.exponential_family.families import Categorical, Poisson
from noisewise.models.exponential_family.posterior import FamilyPosterior
from noisewise.models.linear_regression.posterior import RegressionPosterior
from tests.inference.regressions import release


def regression(
    x: tuple[str, ...] = ("dose",), groups: int = 0, **words: Any
) -> RegressionPosterior:
    rng = np.random.default_rng(7)
    names = (*x, "intercept", "sigma2")
    lead = (groups,) if groups else ()
    draws = {n: rng.normal(i % 3, 0.2, (*lead, 4, 1000)) for i, n in enumerate(names)}
    draws["sigma2"] = rng.gamma(9.0, 0.1, (*lead, 4, 1000))
    tables = [rng.uniform(0, 1, (200, len(x) + 1)) for _ in range(max(groups, 1))]
    made = release(tables, dict.fromkeys((*x, "effect"), (0, 1)), grouped=bool(groups))
    flat = np.full(lead, 1.0)
    said: dict[str, Any] = {
        "keys": made.groups.keys if made.groups else None,
        "prior": "response NormalInverseGamma(…)",
        "prior_draws": lambda number: {n: rng.normal(0, 3, number) for n in names},
        "guarantees": (made.guarantee.statement(),),
        "releases": (made,),
        "without_noise": lambda: {n: np.full(lead, 0.1) for n in names},
        **words,
    }
    return RegressionPosterior(
        draws, dict.fromkeys(names, flat * 1.001), dict.fromkeys(names, flat * 900), "exact",
        x, "effect", **said,
    )  # fmt: skip


def of_family(name: str) -> Posterior:
    rng = np.random.default_rng(8)
    if name == "poisson":
        family: Any = Poisson()
        draws = {"rate": rng.gamma(90, 0.03, (4, 1000))}
    else:
        family = Categorical(("red", "<b>green</b>", "blue"))
        shares = rng.dirichlet([20, 30, 50], (4, 1000))
        draws = {n: shares[..., i] for i, n in enumerate(family.names)}
    good = dict.fromkeys(draws, np.array(1.0)), dict.fromkeys(draws, np.array(2000.0))
    return FamilyPosterior(draws, *good, "exact", "count", family, prior="weak")
