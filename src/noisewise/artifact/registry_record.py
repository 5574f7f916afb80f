"""A draft record for a public registry of deployments of differential privacy, in YAML.

Dwork, Kohli and Mulligan, "Differential Privacy in Practice: Expose Your Epsilons!" (Journal of
Privacy and Confidentiality 9(2), 2019), ask that whoever deploys differential privacy says
publicly who is protected, how much, and how. The release file knows part of that; what only its
publisher knows is marked with `TO_FILL_IN`. Registries have forms of their own: the draft holds the
content, in words of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from noisewise.artifact.bounds import Censored
from noisewise.artifact.guarantee import noise_sd

if TYPE_CHECKING:
    from noisewise.artifact.release import Block, Release

TO_FILL_IN = "TO FILL IN"
"""How a value begins that the release file does not know."""

Value = str | float | int | bool | None | Sequence["Value"] | Mapping[str, "Value"]
"""What a record holds."""


def registry_record(release: Release) -> str:
    """Return the draft as YAML; nothing in it is more than the public file says."""
    head = (
        "# A draft for a public registry of deployments of differential privacy.\n"
        f"# Made from a release file by noisewise; values that begin with {TO_FILL_IN} are the\n"
        "# publisher's to give.\n"
    )
    return head + "\n".join(_lines(_content(release))) + "\n"


def _content(release: Release) -> dict[str, Value]:
    return {
        "deployment": {
            "name": _ask("a title for the public"),
            "publisher": _ask("who publishes the release, and whom to ask"),
            "purpose": _ask("what the release is for, and who uses it"),
            "data": _ask("what the sensitive table holds, whose it is, and of which time"),
            "published_at": _ask("where the release file can be had"),
            "status": _ask("planned, in use, or ended; since when"),
            "created": release.created or _ask("when the release was made"),
        },
        "privacy": _privacy(release),
        "implementation": {
            "trust_model": "central: one holder of the records adds the noise",
            "mechanisms": sorted({_mechanism(block) for block in release.blocks}),
            "software": release.software,
            "bounds": [
                {
                    "column": column,
                    "lower": bounds.lower,
                    "upper": bounds.upper,
                    "cuts_values_off": isinstance(bounds, Censored),
                    "chosen_privately": any(s.column == column for s in release.selections),
                }
                for column, bounds in release.bounds.items()
            ],
            "review": _ask("whether anybody else has looked at the code and at the choices"),
        },
        "release": {
            "model": release.family,
            "formula": str(release.model["formula"]) if "formula" in release.model else None,
            "records": _records(release),
            "selected": release.where,
            "groups": _groups(release),
            "statistics": [_statistic(block) for block in release.blocks],
        },
        "accounting": {
            "this_release": _spent(release),
            "ledger_entry": None if release.receipt is None else release.receipt.entry,
            "other_releases": _ask("of the same data, with their epsilon, and the total"),
            "choice_of_epsilon": _ask("why this much, and who decided"),
        },
    }


def _ask(what: str) -> str:
    return f"{TO_FILL_IN}: {what}"


def _privacy(release: Release) -> dict[str, Value]:
    guarantee = release.guarantee
    unit = release.unit
    return {
        "flavour": "pure differential privacy" if guarantee.rho is None else "zCDP",
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "rho": guarantee.rho,
        "unit": "one record, taken to be one person" if unit is None else "one person",
        "unit_column": unit,
        "most_records_of_a_person": guarantee.max_records,
        "neighbours": guarantee.relation,
        "in_words": release.statement(),
    }


def _spent(release: Release) -> str:
    guarantee = release.guarantee
    if guarantee.rho is None:
        return f"epsilon {guarantee.epsilon:g}"
    return f"rho {guarantee.rho:g} of zCDP"


def _mechanism(block: Block) -> str:
    return f"discrete {block.noise.mechanism.capitalize()} noise on sums of whole numbers"


def _records(release: Release) -> str:
    population = release.population
    if population.policy == "public":
        return f"{sum(population.sizes)}, publicly known"
    if all(block.statistic.over_partitions for block in release.blocks):
        return "secret"
    known = "" if population.total is None else f"; {population.total} in all is public"
    return f"secret, released with noise{known}"


def _groups(release: Release) -> dict[str, Value] | None:
    if release.groups is None:
        return None
    return {"column": release.groups.column, "number": len(release.groups.keys)}


def _statistic(block: Block) -> dict[str, Value]:
    noise = block.noise
    return {
        "kind": block.statistic.kind,
        "numbers": len(block.statistic.names),
        "unit": block.statistic.unit_words,
        "mechanism": f"discrete {noise.mechanism.capitalize()}",
        "noise_unit": "steps of the published whole numbers",
        "noise_scale": noise.scale,
        "noise_sd": noise_sd(noise),
        "sensitivity": noise.sensitivity,
        "cost": noise.cost,
    }


# -- YAML -----------------------------------------------------------------------------------------


def _lines(value: Value, indent: str = "") -> Iterator[str]:
    """Yield the lines of a mapping or of a list that is not empty."""
    if isinstance(value, Mapping):
        for key, held in value.items():
            if _is_nested(held):
                yield f"{indent}{key}:"
                yield from _lines(held, indent + "  ")
            else:
                yield f"{indent}{key}: {_scalar(held)}"
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for held in value:
            if _is_nested(held):
                first, *rest = _lines(held, indent + "  ")
                yield f"{indent}- {first.lstrip(' ')}"
                yield from rest
            else:
                yield f"{indent}- {_scalar(held)}"


def _is_nested(value: Value) -> bool:
    return isinstance(value, Mapping | Sequence) and not isinstance(value, str) and len(value) > 0


def _scalar(value: Value) -> str:
    """Return a value as YAML 1.1 and 1.2 read alike: text always in quotation marks."""
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, float):
        text = repr(value)
        mantissa, e, exponent = text.partition("e")
        # YAML 1.1 takes 1e-06 for text, and 1.0e-06 for a number.
        return f"{mantissa}.0e{exponent}" if e and "." not in mantissa else text
    if isinstance(value, bool) or value is None or isinstance(value, int):
        return json.dumps(value)
    return "[]" if isinstance(value, Sequence) else "{}"


def _quoted(text: str) -> str:
    """Return a text in double quotation marks; what is not printable as its code point."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08X}" for c in escaped) + '"'
