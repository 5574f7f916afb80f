"""Release → plain dictionaries, one function per type on the wire."""

from __future__ import annotations

import dataclasses
from typing import Any

from noisewise.artifact.release import Block, Release, Selection
from noisewise.artifact.statistics import PersonTables, Statistic, Tables

Json = dict[str, Any]


def release(value: Release) -> Json:
    """Everything but the envelope (format, version, digest)."""
    return {
        "family": value.family,
        "model": {k: list(v) if isinstance(v, tuple) else v for k, v in value.model.items()},
        "guarantee": _fields(value.guarantee),
        "population": _fields(value.population),
        "groups": None if value.groups is None else _fields(value.groups),
        "bounds": {c: [b.lower, b.upper] for c, b in value.bounds.items()},
        "fill": dict(value.fill),
        "selections": [_selection(s) for s in value.selections],
        "blocks": [_block(b) for b in value.blocks],
        "receipt": None if value.receipt is None else _fields(value.receipt),
        "software": value.software,
        "created": value.created,
    }


def _selection(value: Selection) -> Json:
    return {**_fields(value), "within": [value.within.lower, value.within.upper]}


def _block(block: Block) -> Json:
    columns = {n: row.tolist() for n, row in zip(block.statistic.names, block.values, strict=True)}
    return {
        "statistic": statistic(block.statistic),
        "noise": _fields(block.noise),
        "values": columns,
    }


def statistic(value: Statistic) -> Json:
    """The specification: kind first, then its fields."""
    if isinstance(value, Tables):
        return {
            "kind": value.kind,
            "cliques": [list(c) for c in value.cliques],
            "levels": {c: list(v) for c, v in value.levels.items()},
            **({"unit": value.unit, "bits": value.bits} if isinstance(value, PersonTables) else {}),
        }
    return {"kind": value.kind, **_fields(value)}


def _fields(value: Any) -> Json:
    """One level deep: ``dataclasses.asdict`` would deep-copy each of 70,000 group keys."""
    found = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    return {k: list(v) if isinstance(v, tuple) else v for k, v in found.items()}
