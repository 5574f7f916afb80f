"""Graphical models of several groups: a mapping of results by group key, with group as an axis."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np

from noisewise.artifact import ArgumentError, Level
from noisewise.inference.results import Result
from noisewise.models.graphical_model.fitted_model import (
    MODEL_FORMAT,
    GraphicalModel,
    model_from_json,
    model_to_json,
)
from noisewise.models.graphical_model.model_files import (
    ArrayArchive,
    parse_json,
    read_json,
    write_arrays,
    write_json,
)
from noisewise.models.graphical_model.posterior import GraphicalPosterior, arviz_names
from noisewise.models.graphical_model.structure import Clique, labelled, unused_name

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from arviz import InferenceData

GROUPS_FORMAT = "noisewise-graphical-groups"
"""What a file of several fitted models calls itself."""
GROUPS_FORMAT_VERSION = 1
"""The version of that format which is written and read."""

R = TypeVar("R", bound="GraphicalModel | GraphicalPosterior")


@dataclass(frozen=True, eq=False)
class GraphicalGroups(Mapping[Level, R], Result, Generic[R]):
    """One result per group, all fitted models or all posteriors, over the same tables.

    It is a mapping: ``groups["north"]`` is that group's result. As ``keys()`` is a method of every
    mapping, the tuple of group keys is ``group_keys``.

    Example:
        >>> import noisewise as nw, pandas as pd
        >>> people = pd.DataFrame({
        ...     "owns": ["yes", "no"] * 50, "rooms": [1, 2, 2, 2] * 25,
        ...     "region": ["north"] * 50 + ["south"] * 50,
        ... })
        >>> release = nw.release.graphical_model(
        ...     people, cliques=[("owns", "rooms")],
        ...     levels={"owns": ["no", "yes"], "rooms": [1, 2]},
        ...     groups={"region": ["north", "south"]}, epsilon=1.0,
        ... )
        >>> groups = nw.infer(release)
        >>> groups["north"].columns
        ('owns', 'rooms')
        >>> groups.marginal("owns").sizes
        Frozen({'group': 2, 'owns': 2})
    """

    results: Mapping[Level, R]

    model_name: ClassVar[str] = "graphical-model"

    @property
    def title(self) -> str:
        """Return the names of the columns."""
        return self._first.title

    def __post_init__(self) -> None:
        held = dict(self.results)
        kinds = {(type(r), r.cliques, tuple(r.levels.items())) for r in held.values()}
        if len(kinds) != 1 or len({r.method for r in held.values()}) != 1:
            raise ArgumentError(
                "results: must be one or more results of one method, over the same columns, levels "
                "and cliques"
            )
        object.__setattr__(self, "results", held)

    def __getitem__(self, key: Level) -> R:
        return self.results[key]

    def __iter__(self) -> Iterator[Level]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    @property
    def group_keys(self) -> tuple[Level, ...]:
        """Return the keys of the groups, in the release's order."""
        return tuple(self.results)

    @property
    def method(self) -> str:  # type: ignore[override]
        """Return the method that all results come from."""
        return self._first.method

    @property
    def unconverged(self) -> tuple[Level, ...]:
        """Return the keys of the groups that have not converged."""
        return tuple(key for key, result in self.items() if not result.converged)

    @property
    def converged(self) -> bool:
        """Return whether every group has converged."""
        return not self.unconverged

    @property
    def status(self) -> str:
        """Say which groups have not converged, and why the first of them has not."""
        short = self.unconverged
        if not short:
            return f"converged in all {len(self)} groups"
        keys = ", ".join(map(str, short))
        return (
            f"not converged in {len(short)} of {len(self)} groups ({keys}); {short[0]}: "
            f"{self[short[0]].status}"
        )

    def summary(self, interval: float = 0.95) -> pd.DataFrame:
        """Return every group's ``summary``, indexed by (group, column, level)."""
        import pandas as pd

        tables = [result.summary(interval) for result in self.values()]
        return pd.concat(tables, keys=list(self.group_keys), names=["group"])

    def marginal(self, columns: str | Iterable[str]) -> xr.DataArray:
        """Return every group's ``marginal``, along a first dimension ``group``."""
        wanted = self._named(columns)
        values = np.stack([result.marginal_array(wanted) for result in self.values()])
        return labelled(values, wanted, self._first.levels, {"group": self.group_keys})

    @property
    def has_intervals(self) -> bool:
        """Return whether the groups' results are posteriors."""
        return self._first.has_intervals

    def interval(self, columns: str | Iterable[str], level: float = 0.95) -> xr.DataArray:
        """Return every group's ``interval``, along first dimensions ``group`` and ``bound``."""
        wanted = self._named(columns)
        ends = np.stack([p.interval_array(wanted, level) for p in self._posteriors.values()])
        leading = {"group": self.group_keys, "bound": ("lower", "upper")}
        return labelled(ends, wanted, self._first.levels, leading)

    def sample(self, n: int, *, seed: int = 0) -> pd.DataFrame:
        """Draw n synthetic records of every group, each group from a stream of its own.

        Returns:
            Levels, one column per model column, after a first column ``group``.
        """
        import pandas as pd

        seeds = np.random.SeedSequence(seed).generate_state(len(self))
        parts = []
        for (key, result), own in zip(self.items(), seeds, strict=True):
            records = result.sample(n, seed=int(own))
            records.insert(0, unused_name("group", self._first.columns), key)
            parts.append(records)
        return pd.concat(parts, ignore_index=True)

    @cached_property
    def draws(self) -> dict[Clique, np.ndarray]:  # type: ignore[override]
        """Return draws of the marginals by clique: arrays (group, chain, draw, …), as elsewhere."""
        posteriors = self._posteriors.values()
        return {c: np.stack([p.draws[c] for p in posteriors]) for c in self._first.cliques}

    def to_arviz(self) -> InferenceData:
        """Return the draws of all groups as ArviZ's InferenceData.

        As of one ``GraphicalPosterior``, with a dimension ``group`` after chain and draw.
        """
        from noisewise.inference.arviz import labelled_inference_data

        posteriors = list(self._posteriors.values())
        names, variables = arviz_names(self._first.columns, ("group",)), {}
        for clique in self._first.cliques:
            drawn = np.stack([p.draws[clique] for p in posteriors], axis=2)
            variables[f"p[{','.join(clique)}]"] = (("group", *(names[c] for c in clique)), drawn)
        tau = np.stack([p.tau for p in posteriors], axis=2)
        variables[unused_name("tau", names.values())] = (("group",), tau)
        coordinates = {names[c]: self._first.levels[c] for c in self._first.columns}
        return labelled_inference_data(variables, {"group": self.group_keys, **coordinates})

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write all groups into one file, JSON of models or npz of posteriors; return its path."""
        keys = list(self.group_keys)
        if isinstance(self._first, GraphicalModel):
            models = [model_to_json(m) for m in self.values() if isinstance(m, GraphicalModel)]
            content = {
                "format": GROUPS_FORMAT, "version": GROUPS_FORMAT_VERSION,
                "keys": keys, "models": models,
            }  # fmt: skip
            return write_json(content, Path(path))
        posteriors = list(self._posteriors.values())
        texts = [json.dumps(model_to_json(p.model), allow_nan=False) for p in posteriors]
        arrays = {
            "keys": np.array(json.dumps({"keys": keys})),
            "model": np.array(texts),
            "marginal_draws": np.stack([p.marginal_draws for p in posteriors]),
            "potential_draws": np.stack([p.potential_draws for p in posteriors]),
            "tau": np.stack([p.tau for p in posteriors]),
        }
        return write_arrays(Path(path), arrays)

    @staticmethod
    def load(
        path: str | os.PathLike[str],
    ) -> GraphicalGroups[GraphicalModel] | GraphicalGroups[GraphicalPosterior]:
        """Read what ``save`` wrote; anything wrong with the file is an error that says what."""
        loaded = load_graphical(path)
        if not isinstance(loaded, GraphicalGroups):
            raise ArgumentError(f"{path}: holds one {type(loaded).__name__}, not groups of them")
        return loaded

    @property
    def _first(self) -> R:
        return next(iter(self.results.values()))

    @cached_property
    def _posteriors(self) -> dict[Level, GraphicalPosterior]:
        held: dict[Level, GraphicalPosterior] = {
            k: r for k, r in self.items() if isinstance(r, GraphicalPosterior)
        }
        if not held:
            raise ArgumentError(f"method: {self.method!r} gives no draws; infer with 'bayes'")
        return held

    def _named(self, columns: str | Iterable[str]) -> Clique:
        """Return the columns asked for, each a column of the models and named once."""
        return self._first.point.named(columns)

    def __repr__(self) -> str:
        columns = ", ".join(self._first.columns)
        return (
            f"<GraphicalGroups of {columns} ({len(self)} groups) by {self.method}: {self.status}>"
        )


GraphicalResult = (
    GraphicalModel
    | GraphicalPosterior
    | GraphicalGroups[GraphicalModel]
    | GraphicalGroups[GraphicalPosterior]
)
"""What inference with a graphical model returns."""


def load_graphical(path: str | os.PathLike[str]) -> GraphicalResult:
    """Read any file of a graphical model: one model, one posterior, or groups of either."""
    source = Path(path)
    try:
        with source.open("rb") as file:
            is_archive = file.read(2) == b"PK"
    except OSError as error:
        raise ArgumentError(f"{source}: cannot be read ({error.strerror})") from None
    if not is_archive:
        return _models_from_json(read_json(source), source)
    with ArrayArchive(source) as archive:
        if "keys" in archive:
            return _posteriors_from_arrays(archive)
    return GraphicalPosterior.load(source)


def _models_from_json(
    content: dict[str, Any], path: Path
) -> GraphicalModel | GraphicalGroups[GraphicalModel]:
    if content.get("format") != GROUPS_FORMAT:
        return model_from_json(content, path)
    if content.get("version") != GROUPS_FORMAT_VERSION:
        version = content.get("version")
        raise ArgumentError(f"{path}: version {version!r}, this reads {GROUPS_FORMAT_VERSION}")
    models = content.get("models")
    if not isinstance(models, list) or not all(isinstance(m, dict) for m in models):
        raise ArgumentError(f"{path}: is damaged (models must be a list of {MODEL_FORMAT} objects)")
    keys = _checked_keys(content, len(models), path)
    return GraphicalGroups({k: model_from_json(m, path) for k, m in zip(keys, models, strict=True)})


def _posteriors_from_arrays(archive: ArrayArchive) -> GraphicalGroups[GraphicalPosterior]:
    texts = np.atleast_1d(archive.texts("model"))
    held = parse_json(str(archive.texts("keys")), archive.path)
    keys = _checked_keys(held, len(texts), archive.path)
    models = [model_from_json(parse_json(str(t), archive.path), archive.path) for t in texts]
    cells = models[0].structure.dimension
    marginals = archive.numbers("marginal_draws", (len(keys), None, None, cells))
    potentials = archive.numbers("potential_draws", marginals.shape)
    tau = archive.numbers("tau", marginals.shape[:3])
    return GraphicalGroups(
        {
            key: GraphicalPosterior(model, marginals[i], potentials[i], tau[i], model.details)
            for i, (key, model) in enumerate(zip(keys, models, strict=True))
        }
    )


def _checked_keys(content: Mapping[str, Any], count: int, path: Path) -> list[Level]:
    """Return the group keys of a file: as many as there are models, distinct, text or whole."""
    keys = content.get("keys")
    plain = isinstance(keys, list) and all(
        isinstance(k, str | int) and not isinstance(k, bool) for k in keys
    )
    if not plain or not isinstance(keys, list) or not len({*keys}) == len(keys) == count > 0:
        raise ArgumentError(f"{path}: is damaged (keys must be {count} distinct group keys)")
    return keys
