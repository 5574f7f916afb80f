"""Everything a user may call: the names that the package and its public modules promise."""

from __future__ import annotations

import types
from collections.abc import Iterator

import noisewise as nw

PUBLIC_MODULES: tuple[types.ModuleType, ...] = (
    nw, nw.datasets, nw.diagnostics, nw.models, nw.plots, nw.priors, nw.release, nw.report,
    nw.simulate, nw.sklearn, nw.spark,
)  # fmt: skip


def public_names() -> Iterator[tuple[str, object]]:
    """Yield ``nw.name`` or ``nw.module.name`` and what it is, modules left out."""
    for module in PUBLIC_MODULES:
        prefix = module.__name__.replace("noisewise", "nw", 1)
        for name in module.__all__:
            value = getattr(module, name)
            if not isinstance(value, types.ModuleType):
                yield f"{prefix}.{name}", value
