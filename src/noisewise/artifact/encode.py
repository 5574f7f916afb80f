"""Release → plain dictionaries, one function per type on the wire."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from noisewise.artifact.release import Block, Release
from noisewise.artifact.statistics import Statistic, Tables

Json = dict[str, Any]


def release(value: Release) -> Json:
    """Everything but the envelope (format, version, digest)."""
    return {
        "family": value.family,
        "model": {k: list(v) if isinstance(v, tuple) else v for k, v in value.model.items()},
        "guarantee": dataclasses.asdict(value.guarantee),
        "population": _listed(dataclasses.asdict(value.population)),
        "groups": None if value.groups is None else _listed(dataclasses.asdict(value.groups)),
        "bounds": {c: [b.lower, b.upper] for c, b in value.bounds.items()},
        "fill": dict(value.fill),
        "selections": [_selection(dataclasses.asdict(s)) for s in value.selections],
        "blocks": [_block(b) for b in value.blocks],
        "receipt": None if value.receipt is None else dataclasses.asdict(value.receipt),
        "software": value.software,
        "created": value.created,
    }


def _selection(fields: Json) -> Json:
    within = fields["within"]
    return _listed({**fields, "within": [within["lower"], within["upper"]]})


def _block(block: Block) -> Json:
    columns = {n: row.tolist() for n, row in zip(block.statistic.names, block.values, strict=True)}
    return {
        "statistic": statistic(block.statistic),
        "noise": dataclasses.asdict(block.noise),
        "values": columns,
    }


def statistic(value: Statistic) -> Json:
    """The specification: kind first, then its fields."""
    if isinstance(value, Tables):
        return {
            "kind": value.kind,
            "cliques": [list(c) for c in value.cliques],
            "levels": {c: list(v) for c, v in value.levels.items()},
        }
    return {"kind": value.kind, **_listed(dataclasses.asdict(value))}


def _listed(fields: Mapping[str, Any]) -> Json:
    return {k: list(v) if isinstance(v, tuple) else v for k, v in fields.items()}
