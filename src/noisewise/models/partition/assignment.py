"""Which partition a record goes to: uniform, independent, from the operating system's generator.

The assignment is part of the mechanism. Each record is assigned on its own and never looked at, so
that the assignment has the same distribution for every table of n rows, in whatever order an engine
delivers them, and a record that is replaced, added or removed leaves the others where they are
(``docs/proofs/partition.md``, section 1). Sizes are therefore multinomial, not equal.
"""

from __future__ import annotations

import os

import numpy as np

_SHORT = 2**12
"""Up to here two random bytes per record suffice: at most a sixteenth of the draws is rejected."""


def assign(rows: int, partitions: int) -> np.ndarray:
    """A partition number for each of the next rows; exactly uniform, by rejection."""
    found = np.empty(rows, np.intp)
    done = 0
    while done < rows:
        fresh = _draw(rows - done, partitions)
        found[done : done + len(fresh)] = fresh
        done += len(fresh)
    return found


def _draw(rows: int, partitions: int) -> np.ndarray:
    kind = np.dtype(np.uint16 if partitions <= _SHORT else np.uint32)
    drawn = np.frombuffer(os.urandom(rows * kind.itemsize), kind)
    span = 2 ** (8 * kind.itemsize)
    most = span - span % partitions
    kept = drawn if most == span else drawn[drawn < most]
    return np.asarray(kept % kind.type(partitions))
