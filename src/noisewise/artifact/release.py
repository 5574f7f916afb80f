"""The wire: everything an analyst may know about a sensitive table, in one frozen value."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from noisewise.artifact import validation
from noisewise.artifact.bounds import Bounds, Selection
from noisewise.artifact.errors import ArgumentError, ReleaseError
from noisewise.artifact.guarantee import Guarantee, Noise
from noisewise.artifact.readable_numbers import readable
from noisewise.artifact.release_forms import release_type
from noisewise.artifact.statistics import MAX_ROWS, Statistic
from noisewise.artifact.validation import Level

if TYPE_CHECKING:
    import pandas as pd

MAX_NOTEBOOK_ROWS = 200
"""Rows that are made for a notebook, which shows fewer."""


@dataclass(frozen=True)
class Receipt:
    """Where the spend is written down: a ledger, its dataset, and the entry."""

    ledger: str
    dataset: str
    entry: str

    def __post_init__(self) -> None:
        for name in ("ledger", "dataset", "entry"):
            validation.text(getattr(self, name), f"receipt: {name}")


@dataclass(frozen=True)
class Groups:
    """A public list of groups; every one is released, empty or not."""

    column: str
    keys: tuple[Level, ...]

    def __post_init__(self) -> None:
        validation.text(self.column, "groups: column")
        object.__setattr__(self, "keys", validation.levels(self.keys, "groups: keys"))


@dataclass(frozen=True)
class Population:
    """How many records there are, and whether that is public.

    ``public``: exactly known (``sizes`` has one number, or one per group where group sizes are
    public). ``noisy``: a secret, released with noise among the statistics; ``total`` is known where
    only the distribution over groups is secret.
    """

    policy: Literal["public", "noisy"]
    sizes: tuple[int, ...] = ()
    total: int | None = None

    def __post_init__(self) -> None:
        validation.one_of(self.policy, ("public", "noisy"), "population: policy")
        for i, size in enumerate(self.sizes):
            validation.integer(size, f"population: sizes[{i}]", 0, MAX_ROWS)
        if (self.policy == "public") != bool(self.sizes):
            raise ReleaseError("population: sizes go with policy 'public', and only with it")
        if self.total is not None:
            validation.integer(self.total, "population: total", 0, MAX_ROWS)
            if self.policy == "public" and self.total != sum(self.sizes):
                raise ReleaseError(
                    f"population: total must be the sum of sizes, {sum(self.sizes)}, "
                    f"not {self.total}"
                )


@dataclass(frozen=True, eq=False)
class Block:
    """One statistic, its noise, and the noisy integers: a row per component, a column per group."""

    statistic: Statistic
    noise: Noise
    values: np.ndarray

    def __post_init__(self) -> None:
        # A large array that the reader of a file made, and that nobody can change, is not copied.
        frozen = isinstance(self.values, np.ndarray) and not self.values.flags.writeable
        values = self.values if frozen else np.array(self.values)
        if values.dtype != np.int64 or values.ndim != 2:
            raise ReleaseError(f"{self.statistic.kind}: values must be a matrix of 64-bit integers")
        if values.shape[0] != len(self.statistic.names) or values.shape[1] < 1:
            raise ReleaseError(
                f"{self.statistic.kind}: {len(self.statistic.names)} components were announced, "
                f"{values.shape[0]} are there, for {values.shape[1]} groups"
            )
        validation.distinct(self.statistic.names, f"{self.statistic.kind}: component names")
        values.flags.writeable = False
        object.__setattr__(self, "values", values)

    @property
    def scaled(self) -> np.ndarray:
        """Values as numbers (box units, or natural units where no box is involved)."""
        return np.asarray(self.values * np.array(self.statistic.units)[:, None])

    @property
    def noise_scales(self) -> np.ndarray:
        """The noise scale of each component, in the units of ``scaled``."""
        return np.asarray(self.noise.scale * np.array(self.statistic.units))


@dataclass(frozen=True, eq=False)
class Release:
    """One small public file. Build it with ``nw.release``, read it with ``Release.load``.

    ``model`` holds the few entries a model needs ("x", "y", the distribution); everything about
    privacy and noise has a field of its own. ``where`` is the public condition that selected the
    records, such as ``age >= 18``; None where all of the table's were taken.

    Example:
        >>> import noisewise as nw
        >>> release = nw.release.exponential_family(
        ...     nw.release.Blank(1000), column="visits", family="poisson", bounds=(0, 20), epsilon=1
        ... )
        >>> nw.Release.from_json(release.to_json()) == release
        True
    """

    family: str
    model: Mapping[str, str | int | float | tuple[str, ...]]
    guarantee: Guarantee
    population: Population
    blocks: tuple[Block, ...]
    bounds: Mapping[str, Bounds] = field(default_factory=dict)
    groups: Groups | None = None
    fill: Mapping[str, float | Level] = field(default_factory=dict)
    selections: tuple[Selection, ...] = ()
    receipt: Receipt | None = None
    software: str = "noisewise"
    created: str = ""
    where: str | None = None

    def __new__(cls, family: str = "", *_: object, **__: object) -> Release:
        """Make an instance of the class that stands for releases of this family."""
        return super().__new__(release_type(family) if cls is Release else cls)

    def __post_init__(self) -> None:
        from noisewise.artifact.consistency import check_release

        object.__setattr__(self, "bounds", dict(self.bounds))
        object.__setattr__(self, "fill", dict(self.fill))
        object.__setattr__(self, "model", dict(self.model))
        check_release(self)

    # -- content ---------------------------------------------------------------------------

    def block(self, kind: str) -> Block:
        """Return the block of that kind; a ReleaseError lists what there is."""
        for block in self.blocks:
            if block.statistic.kind == kind:
                return block
        there = ", ".join(b.statistic.kind for b in self.blocks)
        raise ReleaseError(f"this release has no {kind!r} statistics; it has: {there}")

    @property
    def n(self) -> int | np.ndarray | None:
        """Number of records where public (one per group where grouped), else None: it is noisy."""
        if self.population.policy == "noisy":
            return None
        if self.groups is None:
            return self.population.sizes[0]
        return np.array(self.population.sizes)

    def of_groups(self, chosen: Sequence[int]) -> Release:
        """Return the release of some groups, by their positions: a part says nothing new."""
        if self.groups is None:
            raise ReleaseError("this release has no groups to choose from")
        rows = list(chosen)
        sizes = tuple(self.population.sizes[i] for i in rows) if self.n is not None else ()
        return replace(
            self,
            groups=replace(self.groups, keys=tuple(self.groups.keys[i] for i in rows)),
            population=Population(self.population.policy, sizes),
            blocks=tuple(replace(b, values=b.values[:, rows]) for b in self.blocks),
        )

    def table(self, units: Literal["box", "user"] = "box") -> pd.DataFrame:
        """Return the noisy statistics as a DataFrame: group, statistic, value, noise_scale.

        ``units="box"`` (default): regression statistics of columns mapped to [-1, 1]; counts are
        counts. ``units="user"``: sums in the units of the bounds, with the noise's standard
        deviation ``noise_sd`` instead of a scale, since a sum of several noises has no single one.
        """
        from noisewise.artifact import release_tables

        if units not in ("box", "user"):
            raise ArgumentError(f"units: must be 'box' or 'user', not {units!r}")
        return release_tables.box_table(self) if units == "box" else release_tables.user_table(self)

    def registry_record(self) -> str:
        """Return a draft record, in YAML, for a public registry of deployments.

        It says who is protected, how much and how; what only the publisher knows is marked with
        ``TO FILL IN``.

        Example:
            >>> import noisewise as nw, pandas as pd
            >>> release = nw.release.exponential_family(
            ...     pd.DataFrame({"owns": [0, 1, 1, 1] * 50}), column="owns", family="bernoulli",
            ...     epsilon=1.0,
            ... )
            >>> "epsilon: 1.0" in release.registry_record()
            True
        """
        from noisewise.artifact import registry_record

        return registry_record.registry_record(self)

    # -- the file --------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the file; it appears whole or not at all.

        Another release of that name is kept as ``path~1~``, the next as ``path~2~``, and a warning
        says so.
        """
        from noisewise.artifact import release_files

        return release_files.save(self, Path(path))

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Release:
        """Return the release in a file; anything odd is a ReleaseError that says what and where."""
        from noisewise.artifact import release_files

        return release_files.load(Path(path))

    def to_json(self) -> str:
        """Return the content of the file."""
        from noisewise.artifact import release_files

        return release_files.dumps(self)

    @staticmethod
    def from_json(content: str | bytes) -> Release:
        """Return the release in a text: the inverse of ``to_json``, as strict as ``load``."""
        from noisewise.artifact import release_files

        return release_files.loads(content)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Release):
            return NotImplemented
        from noisewise.artifact import release_files

        return release_files.canonical_digest(self) == release_files.canonical_digest(other)

    def __hash__(self) -> int:
        from noisewise.artifact import release_files

        return hash(release_files.canonical_digest(self))

    def statement(self) -> str:
        """Return the promise in words: of one record, or of all records of a person."""
        return self.guarantee.statement(self.unit)

    @property
    def unit(self) -> str | None:
        """The column that says whose a record is, where people are protected; else None."""
        columns = (self.guarantee.unit, *(b.statistic.person_column for b in self.blocks))
        return next((c for c in columns if c is not None), None)

    def searches_in_words(self) -> list[str]:
        """Return, for every column whose bounds were chosen privately, how sure the choice is."""
        known = self.population.policy == "public" or self.population.total is not None
        total = self.population.total or sum(self.population.sizes)
        return [
            f"The bounds of {s.column!r} were {s.in_words(total if known else None)}"
            for s in self.selections
        ]

    def __repr__(self) -> str:
        names = ", ".join(f"{b.statistic.kind}[{len(b.statistic.names)}]" for b in self.blocks)
        groups = "" if self.groups is None else f", {len(self.groups.keys)} groups"
        searched = "".join(f" {words}." for words in self.searches_in_words())
        return f"<Release {self.family}: {names}{groups}; {self.statement()}{searched}>"

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: the promise, and the first numbers with their noise."""
        from noisewise.artifact import notebook_html

        head = ("group", "statistic", "value", "noise scale")
        first = self.table().head(MAX_NOTEBOOK_ROWS)
        rows = [
            ("" if key is None else str(key), str(name), readable(value, 6), readable(scale))
            for key, name, value, scale in first.itertuples(index=False)
        ]
        grouped = self.groups is not None
        shown = [row if grouped else row[1:] for row in rows]
        many = "" if self.groups is None else f"{len(self.groups.keys)} groups"
        return notebook_html.fragment(
            f"Release: {self.family}", (self.statement(), many, *self.searches_in_words()),
            head if grouped else head[1:], shown,
        )  # fmt: skip
