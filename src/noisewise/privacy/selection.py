"""Which of the owner's records a source hands over, and which neighbour relation that allows.

A table as it is has one row per record. A filter that looks at one record at a time keeps some of
them, and how many is then a secret. Anything else (a join, a limit, distinct rows) may answer one
changed record with several changed rows. The proof is in ``docs/proofs/selection.md``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from noisewise.artifact import ArgumentError, Neighbours

Kept = Literal["all", "some", "unknown"]
"""How many records of its table a source keeps, as far as can be told."""
_ORDER = ("all", "some", "unknown")


@dataclass(frozen=True)
class KeptRecords:
    """What a source keeps of its table: all records, some by a filter, or who knows what.

    ``by`` says in words what does it, for an error message.
    """

    kept: Kept
    by: str = ""


ALL = KeptRecords("all")
"""What a source without any filter keeps."""


def some(by: str) -> KeptRecords:
    """Return the selection of a filter that looks at one record at a time."""
    return KeptRecords("some", by)


def unknown(by: str) -> KeptRecords:
    """Return the selection of an operation in which one record may change several rows."""
    return KeptRecords("unknown", by)


def whole() -> KeptRecords:
    """Return the selection of a table as it is."""
    return ALL


def strictest(found: Iterable[KeptRecords]) -> KeptRecords:
    """Return the one among several steps that allows least."""
    return max(found, key=lambda selection: _ORDER.index(selection.kept), default=ALL)


def refuse_selection(selection: KeptRecords, neighbours: Neighbours) -> None:
    """Raise an ArgumentError where the neighbour relation does not go with the selection."""
    if selection.kept == "unknown":
        raise ArgumentError(
            f"source: it is made by {selection.by}, where one record may change more than one "
            "row, so that no noise is known to suffice; write it to a table with one row per "
            "record first and release that table"
        )
    if selection.kept == "some" and neighbours == "replace-one":
        raise ArgumentError(
            f"source: it is made by {selection.by}, so the number of records kept is a secret, "
            "but under replace-one neighbours that number is made public; release with "
            "neighbours='add-remove' (where= selects records of any source), or give the table "
            "itself"
        )
