"""The contract of a statistic on the wire, and the list of those that are known.

Every statistic is a vector of sums over records of *integers* (errata E6). A column is first put on
a lattice of step ``2**-bits``; a component of degree ``g`` inside a statistic of degree ``G`` is
multiplied by ``2**(bits*(G-g))`` so that the whole vector is in one integer unit and one noise
scale fits all. ``units`` turns integers back into numbers: box units for the regression statistics,
natural units elsewhere.

A statistic is a frozen dataclass that derives from `Statistic` and is registered. It says all that
files, tables and ``inspect`` need to know of it, and how far one person can move it: noise is made
for that bound, and every file is checked against it. What to sum is registered in the privacy core
under the same kind: ``privacy/statistic_privacy.py``.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np

from noisewise.artifact import validation
from noisewise.artifact.errors import ArgumentError, ReleaseError
from noisewise.artifact.guarantee import Noise, noise_sd
from noisewise.artifact.release_forms import discover
from noisewise.artifact.sensitivity import Sensitivity
from noisewise.artifact.validation import Fields, Level

if TYPE_CHECKING:
    from noisewise.artifact.release import Block, Release

MAX_ROWS = 2**32
"""Records of a table at most: with products below 2**30 their sums fit 64-bit integers."""

MAX_COMPONENTS = 2_000_000
"""Components of one statistic at most (chosen): a file with that many is tens of megabytes."""

MAX_NAME_CHARS = 2**28
"""All component names together: every one stands in the file, so they cannot be longer than it."""

Exponents = tuple[int, ...]
"""A product of columns, as the sorted indices of its factors; () is the constant 1."""


class Statistic(ABC):
    """One kind of sums: its JSON, names and units, and what the release around it must hold.

    A subclass is a frozen dataclass whose fields are the specification in the file. It has
    ``kind``, ``columns`` (a field or a property), ``names``, ``units``, ``bound`` and ``decode``;
    the rest has defaults that suit plain counts.
    """

    kind: ClassVar[str]
    """The statistic in files and in ``split``, such as ``gram``."""

    unit_words: ClassVar[str] = "counts"
    """What the numbers are, in the words of ``inspect``."""

    over_partitions: ClassVar[bool] = False
    """Whether partitions of the table are summed rather than records."""

    if TYPE_CHECKING:
        # A field of most subclasses: a property of this class would stand in the field's way.
        @property
        def columns(self) -> tuple[str, ...]:
            """Every column that is read."""

    @property
    @abstractmethod
    def names(self) -> Sequence[str]:
        """One name per component, in the order of the values."""

    @property
    @abstractmethod
    def units(self) -> tuple[float, ...]:
        """What one integer step of each component is worth."""

    @abstractmethod
    def bound(self, replace: bool) -> Sensitivity:
        """Return a proved bound on how far one record moves the integers.

        Args:
            replace: whether the record is replaced by any other; else it is added or removed.
        """

    @classmethod
    @abstractmethod
    def decode(cls, fields: Fields) -> Self:
        """Make the statistic from its JSON fields (all but ``kind``), taking each one."""

    def encode(self) -> dict[str, Any]:
        """Return the JSON of the specification: the kind first, then the fields."""
        return {"kind": self.kind, **encode_fields(self)}

    # -- what the release around it must hold --------------------------------------------------

    @property
    def bounded_columns(self) -> tuple[str, ...]:
        """Columns whose bounds the release must state."""
        return ()

    @property
    def categories(self) -> Mapping[str, tuple[Level, ...]]:
        """The public levels of the categorical columns."""
        return {}

    @property
    def counts_records(self) -> bool | None:
        """Whether n is a component; None where the sums can be read without n."""
        return None

    @property
    def person_column(self) -> str | None:
        """The column that says whose a record is, where a person may have several."""
        return None

    @property
    def extra_cost(self) -> float:
        """What was spent on this statistic beside its noise, such as on a private search."""
        return 0.0

    def check(self, release: Release, noise: Noise) -> None:
        """Raise a ReleaseError where the statistic contradicts the rest of its release."""
        return

    # -- how it is shown -----------------------------------------------------------------------

    def in_user_units(self, release: Release, block: Block) -> tuple[np.ndarray, np.ndarray] | None:
        """Return values and noise standard deviations in the user's units.

        None leaves the statistic out of such tables.
        """
        return block.scaled, noise_sd(block.noise) * np.array(self.units)


def encode_fields(value: Any) -> dict[str, Any]:
    """Return a dataclass's fields for JSON, with tuples as they are: they may be very long."""
    fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    return {k: dict(v) if isinstance(v, Mapping) else v for k, v in fields.items()}


# -- the known statistics ----------------------------------------------------------------------

PARTS = ("kind", "columns", "names", "units", "bound", "decode")
"""What every statistic must say of itself."""

_STATISTICS: dict[str, type[Statistic]] = {}

S = TypeVar("S", bound=type[Statistic])


def register_statistic(statistic: S) -> S:
    """Make a statistic known to every reader of release files; usable as a decorator.

    Args:
        statistic: a frozen dataclass that derives from `Statistic` and has all `PARTS`.

    Returns:
        The class itself.
    """
    if not (isinstance(statistic, type) and issubclass(statistic, Statistic)):
        raise ArgumentError("statistic: must be a subclass of noisewise.artifact.Statistic")
    given = set(getattr(statistic, "__dataclass_fields__", ()))
    abstract: frozenset[str] = getattr(statistic, "__abstractmethods__", frozenset())
    missing = [p for p in PARTS if p in abstract or not (p in given or hasattr(statistic, p))]
    if missing:
        raise ArgumentError(
            f"statistic: {statistic.__name__} lacks {', '.join(missing)}; "
            f"a statistic has {', '.join(PARTS)}"
        )
    if statistic.kind in _STATISTICS:
        raise ArgumentError(
            f"statistic: there is a kind {statistic.kind!r} already; "
            f"there are {', '.join(_STATISTICS)}"
        )
    _STATISTICS[statistic.kind] = statistic
    return statistic


def unregister_statistic(kind: str) -> None:
    """Forget a statistic that was registered from outside; those of noisewise stay."""
    if kind in _STATISTICS and _STATISTICS[kind].__module__.startswith("noisewise."):
        raise ReleaseError(f"statistic: {kind!r} comes with noisewise and stays")
    _STATISTICS.pop(kind, None)


def known_statistics() -> tuple[str, ...]:
    """Return the kinds of all statistics that can be read."""
    return tuple(_STATISTICS)


def find_statistic(kind: object) -> type[Statistic]:
    """Return the statistic of that kind; a ReleaseError names those there are."""
    if isinstance(kind, str) and kind not in _STATISTICS:
        discover()
    if not isinstance(kind, str) or kind not in _STATISTICS:
        raise ReleaseError(
            f"statistic: 'kind' {validation.shown(kind)} is not known to this version; "
            f"there are {', '.join(_STATISTICS)}"
        )
    return _STATISTICS[kind]


def decode_statistic(value: object) -> Statistic:
    """Return the statistic that a JSON object specifies."""
    fields = Fields(value, "statistic")
    statistic = find_statistic(fields.take("kind")).decode(fields)
    fields.done()
    return statistic


# -- shared checks -----------------------------------------------------------------------------


def check_columns(values: tuple[str, ...], where: str) -> tuple[str, ...]:
    """Return distinct column names, at least one; a ReleaseError says what is wrong."""
    names = tuple(validation.text(v, f"{where}[{i}]") for i, v in enumerate(values))
    if not names:
        raise ReleaseError(f"{where} must name at least one column")
    validation.distinct(names, where)
    return names


def check_size(kind: str, components: int, characters: int) -> None:
    """Raise a ReleaseError where a statistic has more components or names than a file can hold.

    Asked before a name or product is built: a small file must not claim all of memory.
    """
    if components > MAX_COMPONENTS:
        raise ReleaseError(f"{kind}: {components} components, more than {MAX_COMPONENTS}")
    if characters > MAX_NAME_CHARS:
        raise ReleaseError(f"{kind}: the component names exceed {MAX_NAME_CHARS} characters in all")
