"""Linear regression: the Gram matrix of the columns, once, for every regression among them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from noisewise.artifact import (
    ArgumentError,
    Bounds,
    Clamped,
    Gram,
    Mechanism,
    Monomials,
    Neighbours,
    Release,
    Statistic,
)
from noisewise.privacy import arguments
from noisewise.privacy.arguments import PrivateBounds
from noisewise.privacy.budget import terms
from noisewise.privacy.plan import Progress
from noisewise.privacy.publish import Order, publish


def linear_regression(
    source: Any,
    *,
    x: str | Iterable[str],
    y: str,
    bounds: Mapping[str, tuple[float, float] | Bounds | PrivateBounds] | None = None,
    epsilon: float,
    mechanism: Mechanism = "laplace",
    delta: float | None = None,
    neighbours: Neighbours = "replace-one",
    groups: Mapping[str, Iterable[Any]] | None = None,
    sizes: str | None = None,
    fill: Mapping[str, float] | None = None,
    monomials: bool = False,
    count_clamped: bool = False,
    split: Mapping[str, float] | None = None,
    ledger: str | Path | None = None,
    dataset: str | None = None,
    progress: Progress | None = None,
) -> Release:
    """Release everything a Bayesian linear regression needs, with calibrated noise, once.

    Args:
        source: path or glob, database URL with ``#table``, data frame, Arrow or Ibis table.
        x: covariate columns.
        y: response column. (Any released column may play either part when the file is read.)
        bounds: public bounds per column, ``{"age": (0, 120)}``, never read from the data; or a
            ``PrivateBounds`` to let part of the budget choose them. Values outside are clamped.
        epsilon: the whole budget.
        mechanism: ``"laplace"`` (pure ε), or ``"gaussian"`` with ``delta`` (zCDP).
        delta: for Gaussian noise.
        neighbours: ``"replace-one"`` (n is public) or ``"add-remove"`` (n is secret and noisy).
        groups: ``{"tract": [public list]}`` for one regression per group.
        sizes: ``"public"`` where group sizes are public knowledge: neighbours then replace a record
            within its group.
        fill: public values for missing numbers; required for columns with NULLs under replace-one.
        monomials: also release all monomials of ``x`` up to degree four (for ``gibbs-noisy``).
        count_clamped: also release a noisy count of clamped records per column.
        split: relative shares of the budget, by part: ``gram``, ``monomials``, ``clamped``,
            ``bounds``. By default Gram and monomials share evenly.
        ledger: path or URL of a budget ledger; the spend is durable before noise is drawn.
        dataset: the ledger's account, where it has several.
        progress: called with rows done and rows in all.
    """
    covariates = arguments.names(x, "x")
    response = arguments.name(y, "y")
    if response in covariates:
        raise ArgumentError(f"y: {response!r} is among x; the response must be another column")
    columns = (*covariates, response)
    limits = arguments.all_bounds(columns, bounds)
    keyed = arguments.groups(groups)
    agreed = terms(
        epsilon=epsilon,
        mechanism=mechanism,
        delta=delta,
        neighbours=neighbours,
        sizes=sizes,
        group=None if keyed is None else keyed.column,
    )

    def specify(settled: Mapping[str, Bounds]) -> tuple[Statistic, ...]:
        found: list[Statistic] = [Gram(columns, agreed.count)]
        if monomials:
            found.append(Monomials(covariates))
        if count_clamped:
            found.append(Clamped(columns))
        return tuple(found)

    order = Order(
        family="linear-regression",
        model={"x": covariates, "y": response},
        kinds=tuple(s.kind for s in specify({})),
        specify=specify,
        terms=agreed,
        bounds=limits,
        groups=keyed,
        fill=arguments.numeric_fill(fill, limits),
        split=split,
        ledger=ledger,
        dataset=dataset,
        progress=progress,
    )
    return publish(source, order)
