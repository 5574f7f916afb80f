"""A fitted model as a JSON file: potentials with all their digits, and nothing that executes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from noisewise.artifact import ArgumentError
from noisewise.artifact.atomic_file import atomic_write
from noisewise.models.graphical_model.model import GraphicalModel
from noisewise.models.graphical_model.structure import structure

FORMAT = "noisewise-graphical-model"
VERSION = 1


def save(model: GraphicalModel, path: Path) -> Path:
    """The file, whole or not at all."""
    content = {
        "format": FORMAT,
        "version": VERSION,
        "columns": list(model.columns),
        "levels": {c: list(model.levels[c]) for c in model.columns},
        "cliques": [list(c) for c in model.cliques],
        "potentials": model.potentials.tolist(),
        "method": model.method,
        "n": model.n,
        "inference": model.inference,
        "converged": model.converged,
        "details": dict(model.details),
    }
    with atomic_write(
        path, lambda why: ArgumentError(f"{path}: cannot be written ({why})")
    ) as beside:
        beside.write_text(json.dumps(content, allow_nan=False), encoding="utf-8")
    return path


def load(path: Path) -> GraphicalModel:
    """The inverse of ``save``."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ArgumentError(f"{path}: cannot be read as a graphical model ({error})") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ArgumentError(f"{path}: is not a noisewise graphical model")
    if content.get("version") != VERSION:
        raise ArgumentError(f"{path}: version {content.get('version')!r}, this reads {VERSION}")
    try:
        return _model(content)
    except (KeyError, TypeError, ValueError) as error:
        raise ArgumentError(f"{path}: is damaged ({error!r})") from None


def _model(content: dict[str, Any]) -> GraphicalModel:
    levels = {c: tuple(content["levels"][c]) for c in content["columns"]}
    made = structure({c: len(v) for c, v in levels.items()}, content["cliques"])
    potentials = np.array(content["potentials"], dtype=float)
    if potentials.shape != (made.dimension,) or not np.isfinite(potentials).all():
        raise ValueError(f"potentials must be {made.dimension} finite numbers")
    return GraphicalModel(
        made, levels, potentials, str(content["method"]), float(content["n"]),
        str(content["inference"]), bool(content["converged"]), dict(content["details"]),
    )  # fmt: skip
