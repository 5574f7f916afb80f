"""Valid releases without a table or a mechanism: the wire's own types, numbers from a seed.

``FACTORIES`` has one maker per shape a file can take; tests run over all of them.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from noisewise.artifact import (
    Block,
    Bounds,
    CandidateCounts,
    Censored,
    Clamped,
    Gram,
    Groups,
    Guarantee,
    Mechanism,
    Monomials,
    Neighbours,
    Noise,
    Population,
    PowerSums,
    ProbabilitySums,
    QuantileSum,
    Receipt,
    Release,
    Selection,
    Statistic,
    Tables,
)
from noisewise.artifact.bounds import RecordCounts
from noisewise.artifact.guarantee import zcdp_epsilon
from noisewise.artifact.sensitivity import Relation, relation_of, sensitivity
from noisewise.artifact.statistics import CellSum, CellSums
from noisewise.artifact.statistics.cell_sums import main_effects

DELTA = 1e-6
BOUNDS = {"pir": Bounds(0, 1), "kir": Bounds(-2.5, 7.25), "alter": Bounds(16, 120)}
COLUMNS = tuple(BOUNDS)
TRACTS = Groups("tract", ("0101", "0102", "0103", "größer"))
YEARS = Groups("year", (2019, 2020, 2021))


def noise(mechanism: Mechanism, sensitivity: float, cost: float) -> Noise:
    """Just enough noise for the cost."""
    if mechanism == "laplace":
        return Noise(mechanism, sensitivity / cost, sensitivity, cost)
    return Noise(mechanism, sensitivity / math.sqrt(2 * cost), sensitivity, cost)


def calibrated(
    statistic: Statistic, mechanism: Mechanism, relation: Relation, cost: float
) -> Noise:
    """Just enough noise for a statistic; rounded up, as the owner's half rounds."""
    bound = sensitivity(statistic, relation)
    needed = noise(mechanism, bound.l1 if mechanism == "laplace" else bound.l2, cost)
    short = bound.cost(needed) > cost
    return replace(needed, scale=needed.scale * (1 + 2**-50)) if short else needed


def guarantee(
    mechanism: Mechanism, cost: float, neighbours: Neighbours, within: str | None = None
) -> Guarantee:
    """The guarantee whose whole budget is ``cost``: an epsilon, or a rho."""
    if mechanism == "laplace":
        return Guarantee(cost, neighbours, within=within)
    return Guarantee(zcdp_epsilon(cost, DELTA), neighbours, DELTA, cost, within)


def block(statistic: Statistic, noise: Noise, groups: int = 1, seed: int = 0) -> Block:
    """Any integers will do: the wire does not judge them."""
    size = (len(statistic.names), groups)
    drawn = np.random.default_rng(seed).normal(1e5, noise.scale, size)
    return Block(statistic, noise, drawn.astype(np.int64))


def regression(
    mechanism: Mechanism = "laplace",
    neighbours: Neighbours = "replace-one",
    groups: Groups | None = None,
    sizes: tuple[int, ...] = (1000,),
    total: int | None = None,
    **extra: Any,
) -> Release:
    """A Gram matrix of three columns; empty ``sizes`` make n secret."""
    gram = Gram(COLUMNS, count=not sizes)
    cost = 0.25
    within = groups.column if groups is not None and sizes else None
    promise = guarantee(mechanism, 1.0, neighbours, within)
    spent = calibrated(gram, mechanism, relation_of(promise, groups is not None), cost)
    return Release(
        family="linear-regression",
        model={"x": COLUMNS[:-1], "y": COLUMNS[-1]},
        guarantee=promise,
        population=Population("public" if sizes else "noisy", sizes, total),
        blocks=(
            block(gram, spent, 1 if groups is None else len(groups.keys)),
            *extra.pop("blocks", ()),
        ),
        bounds=extra.pop("bounds", BOUNDS),
        groups=groups,
        **extra,
    )


def regression_with_factors(mechanism: Mechanism, neighbours: Neighbours, **extra: Any) -> Release:
    """Sums within cells; with factors that interact with nothing, or with a covariate."""
    public, grouped = neighbours == "replace-one", extra.get("groups") is not None
    numeric: tuple[tuple[str, ...], ...]
    factors: dict[str, tuple[str | int, ...]]
    if mechanism == "laplace":
        numeric, factors = (
            (("pir",), ("kir", "kir"), ("alter",)),
            {"sex": ("f", "m"), "ort": (0, 1)},
        )
        formula, blocks = "alter ~ pir + I(kir**2) + C(sex) + C(ort)", main_effects(3, 2)
    else:
        numeric, factors = (("pir",), ("alter",)), {"sex": ("f", "m", "x")}
        within, together = ((), (0,), (1,), (0, 0), (0, 1)), ((1, 1),)
        formula = "alter ~ pir * C(sex)"
        blocks = (*(CellSum(p, (0,)) for p in within), *(CellSum(p, ()) for p in together))
    statistic = CellSums(numeric, factors, blocks)
    promise = guarantee(mechanism, 1.0, neighbours)
    spent = calibrated(statistic, mechanism, relation_of(promise, grouped), 1.0)
    return Release(
        family="linear-regression",
        model={"formula": formula, "y": "alter"},
        guarantee=promise,
        population=Population("public", (1000,)) if public else Population("noisy"),
        blocks=(block(statistic, spent, len(extra["groups"].keys) if grouped else 1),),
        bounds={c: BOUNDS[c] for column in numeric for c in column},
        fill={"pir": 0.5, "sex": "m"} if public else {},
        **extra,
    )


def regression_with_everything() -> Release:
    """Monomials, clamped counts, a private choice of bounds, fills, a receipt, a date."""
    return regression(
        blocks=(
            block(
                Monomials(COLUMNS[:-1]),
                calibrated(Monomials(COLUMNS[:-1]), "laplace", "replace-one", 0.25),
                seed=1,
            ),
            block(Clamped(COLUMNS), noise("laplace", 3, 0.125), seed=2),
        ),
        selections=(Selection("alter", Bounds(0, 150), 512, (0.01, 0.99), 0.125),),
        fill={"pir": 0.5, "kir": 0},
        receipt=Receipt("ledger-7f", "people 2024", "entry-12"),
        software="noisewise 0.1.0, opendp 0.16.0",
        created="2025-01-31T12:00:00+00:00",
    )


def regression_searched(mechanism: Mechanism, neighbours: Neighbours, most: int | None) -> Release:
    """Bounds that were found by noisy counts of records, or of people."""
    gram = Gram(COLUMNS, count=neighbours == "add-remove" or most is not None)
    promise = guarantee(mechanism, 1.0, neighbours)
    if most is not None:
        promise = replace(promise, unit="person", max_records=most)
    relation, records = relation_of(promise, False), most or 1
    bounds = [sensitivity(s, relation, records) for s in (gram, RecordCounts())]
    parts = [noise(mechanism, b.l1 if mechanism == "laplace" else b.l2, 0.25) for b in bounds]
    spent, counted = (replace(p, scale=p.scale * (1 + 2**-50)) for p in parts)
    points = (-150.0, -10.0, 0.0, 10.0, 16.0, 120.0, 150.0)
    search = CandidateCounts(points, 0.0, (-3, 0, 12, 5, 400, 590, -1), counted)
    return Release(
        family="linear-regression",
        model={"x": COLUMNS[:-1], "y": COLUMNS[-1]},
        guarantee=promise,
        population=Population("noisy") if gram.count else Population("public", (1000,)),
        blocks=(block(gram, spent),),
        bounds={**BOUNDS, "alter": Censored(16, 120)},
        selections=(Selection("alter", Bounds(-150, 150), None, (0.01, 0.99), 0.25, search),),
    )


def power_sums(statistic: PowerSums, distribution: str, **model: float) -> Release:
    """One column that follows a distribution."""
    public = not statistic.count
    neighbours: Neighbours = "replace-one" if public else "add-remove"
    return Release(
        family="exponential-family",
        model={"distribution": distribution, **model},
        guarantee=guarantee("laplace", 0.5, neighbours),
        population=Population("public", (250,)) if public else Population("noisy"),
        blocks=(block(statistic, calibrated(statistic, "laplace", neighbours, 0.5)),),
        bounds={statistic.column: Bounds(statistic.lower, statistic.upper)},
    )


def regression_of_people(neighbours: Neighbours, most: int, **extra: Any) -> Release:
    """A Gram matrix of people of whom several records may count."""
    gram = Gram(COLUMNS, count=True)
    promise = replace(guarantee("laplace", 1.0, neighbours), unit="person", max_records=most)
    bound = sensitivity(gram, relation_of(promise, False), most)
    return Release(
        family="linear-regression",
        model={"x": COLUMNS[:-1], "y": COLUMNS[-1]},
        guarantee=promise,
        population=Population("noisy"),
        blocks=(block(gram, noise("laplace", bound.l1, 1.0)),),
        bounds=BOUNDS,
        **extra,
    )


def tables(
    cliques: tuple[tuple[str, ...], ...],
    family: str,
    model: Mapping[str, str],
    mechanism: Mechanism = "laplace",
) -> Release:
    """Contingency tables; one column has whole numbers for levels."""
    known = {"sex": ("f", "m", "x"), "smokes": ("no", "yes"), "children": (0, 1, 2, 3)}
    used = {c for clique in cliques for c in clique}
    statistic = Tables(cliques, {c: v for c, v in known.items() if c in used})
    return Release(
        family=family,
        model=model,
        guarantee=guarantee(mechanism, 1.0, "replace-one"),
        population=Population("public", (5000,)),
        blocks=(block(statistic, calibrated(statistic, mechanism, "replace-one", 1.0)),),
        fill={cliques[0][0]: known[cliques[0][0]][0]},
    )


def partitioned(
    statistic: ProbabilitySums | QuantileSum, neighbours: Neighbours = "replace-one", **model: Any
) -> Any:
    """A posterior probability or quantile by partitions."""
    quantile = isinstance(statistic, QuantileSum)
    *x, y = statistic.columns
    words: dict[str, Any] = {"x": tuple(x), "y": y, "coefficient": statistic.coefficient}
    public = neighbours == "replace-one"
    return Release(
        family="posterior-quantile" if quantile else "posterior-probability",
        model={
            **words,
            "prior": "zellner",
            **({} if quantile else {"rescaling": "corrected"}),
            **model,
        },
        guarantee=guarantee("laplace", 1.0, neighbours),
        population=Population("public", (9000,)) if public else Population("noisy"),
        blocks=(block(statistic, noise("laplace", statistic.reach, 0.5)),),
        fill={"pir": 0.5},
    )


FACTORIES: dict[str, Callable[[], Any]] = {
    "regression": regression,
    "regression-gaussian": lambda: regression("gaussian"),
    "regression-add-remove": lambda: regression(neighbours="add-remove", sizes=()),
    "regression-gaussian-add-remove": lambda: regression("gaussian", "add-remove", sizes=()),
    "regression-public-sizes": lambda: regression(groups=TRACTS, sizes=(9, 0, 120, 4)),
    "regression-moving-between-groups": lambda: regression(groups=YEARS, sizes=(), total=700),
    "regression-groups-add-remove": lambda: regression(
        neighbours="add-remove", groups=TRACTS, sizes=()
    ),
    "regression-with-everything": regression_with_everything,
    "regression-with-factors": lambda: regression_with_factors("laplace", "replace-one"),
    "regression-with-interactions": lambda: regression_with_factors("gaussian", "add-remove"),
    "regression-with-factors-groups": lambda: regression_with_factors(
        "laplace", "add-remove", groups=TRACTS
    ),
    "regression-censored": lambda: regression(
        bounds={**BOUNDS, "kir": Censored(-2.5, 7.25), "alter": Censored(16, 120, "upper")}
    ),
    "regression-searched": lambda: regression_searched("laplace", "replace-one", None),
    "regression-searched-people": lambda: regression_searched("gaussian", "add-remove", 3),
    "regression-of-people": lambda: regression_of_people("replace-one", 2),
    "regression-of-people-selected": lambda: regression_of_people(
        "add-remove", 3, where="age >= 18 and \"wohnt in\" != 'Köln'"
    ),
    "bernoulli": lambda: power_sums(
        PowerSums("owns", 0, 1, "clamp", degree=1, count=False, bits=0), "bernoulli"
    ),
    "binomial": lambda: power_sums(
        PowerSums("hits", 0, 10, "clamp", degree=1, count=False, bits=0), "binomial", trials=10
    ),
    "exponential-dropped": lambda: power_sums(
        PowerSums("wait", 0, 3.5, "drop", degree=1, count=False, scale=4.0), "exponential"
    ),
    "gamma-clamped-secret-n": lambda: power_sums(
        PowerSums("rain", 0, 3.5, "clamp", degree=1, count=True, scale=4.0), "gamma", shape=2.5
    ),
    "normal-squares": lambda: power_sums(
        PowerSums("height", 140, 210, "drop", degree=2, count=True, origin=175, scale=64.0),
        "normal",
    ),
    "categorical": lambda: tables(
        (("sex",),), "exponential-family", {"distribution": "categorical"}
    ),
    "graphical": lambda: tables(
        (("sex", "smokes"), ("smokes", "children"), ("sex",)), "graphical-model", {}
    ),
    "posterior-probability": lambda: partitioned(
        ProbabilitySums(COLUMNS, "pir", (0.0, -1.5, 2.25), 100, power=2.0)
    ),
    "posterior-probability-fisher": lambda: partitioned(
        ProbabilitySums(COLUMNS, "intercept", (0.5,), 1, "fisher", 0.001, bits=12),
        "add-remove",
        rescaling="thesis",
        prior_g=100.0,
    ),
    "posterior-quantile": lambda: partitioned(
        QuantileSum(COLUMNS, "kir", 0.05, 1000, -2.0, 0.25, "centred", 0.5)
    ),
    "posterior-quantile-symmetric": lambda: partitioned(
        QuantileSum(COLUMNS, "kir", 0.95, 64, 0.0, 8.0, "symmetric", 0.25)
    ),
    "graphical-gaussian": lambda: tables(
        (("sex", "smokes", "children"),), "graphical-model", {}, "gaussian"
    ),
}


def content_of(release: Release) -> dict[str, Any]:
    """The file as plain dictionaries, free to be spoilt."""
    found: dict[str, Any] = json.loads(release.to_json())
    return found


def redigested(content: Mapping[str, Any]) -> str:
    """The file as a careful forger writes it: whatever it says, the digest is right."""
    head = ("format", "version", "sha256")
    below = {k: v for k, v in content.items() if k not in head}
    canonical = json.dumps(below, sort_keys=True, separators=(",", ":"))
    return json.dumps({**content, "sha256": hashlib.sha256(canonical.encode()).hexdigest()})
