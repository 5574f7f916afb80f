"""All figures of the papers and of our own studies, with settings and claims."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from experiments.reproduce.figure import Figure
from experiments.reproduce.verdicts import Claim

PAPERS = (
    "regression_paper", "thesis_graphical", "thesis_families", "thesis_regression",
    "partition_thesis", "real_tables", "field",
)  # fmt: skip
"""Folders beside this one, each with FIGURES, settings.json and expected.json."""
HERE = Path(__file__).parents[1]


def figures() -> dict[str, Figure]:
    """By name, in the order of the papers."""
    found: dict[str, Figure] = {}
    for paper in PAPERS:
        for figure in import_module(f"experiments.{paper}").FIGURES:
            if figure.name in found:
                raise ValueError(f"two figures are called {figure.name!r}")
            found[figure.name] = figure
    return found


def settings(figure: Figure, size: str) -> Mapping[str, Any]:
    """``size`` is "full" or "quick"; figures of one study have the study's settings."""
    for paper in PAPERS:
        known = _json(paper, "settings.json")
        if figure.settings_name in known:
            return dict(known[figure.settings_name][size])
    raise ValueError(f"{figure.settings_name!r} is in no settings.json")


def claims(figure: Figure) -> list[Claim]:
    """Those about this figure, from all papers."""
    listed = [Claim.read(entry) for paper in PAPERS for entry in _json(paper, "expected.json")]
    return [claim for claim in listed if claim.figure == figure.name]


def _json(paper: str, name: str) -> Any:
    path = HERE / paper / name
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
