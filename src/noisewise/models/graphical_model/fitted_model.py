"""A fitted graphical model: marginals, likelihood, divergence, synthetic records, a file."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import jax.numpy as jnp
import numpy as np

from noisewise.artifact import AbsentError, ArgumentError, Level
from noisewise.artifact.validation import is_printable
from noisewise.inference.results import Result
from noisewise.models.graphical_model.marginal_oracle import (
    DEFAULT_MEMORY,
    Oracle,
    compiled_oracle,
    describe_size,
    eliminate,
    sample_backwards,
)
from noisewise.models.graphical_model.model_files import read_json, write_json
from noisewise.models.graphical_model.problem import TablesProblem
from noisewise.models.graphical_model.structure import (
    Clique,
    Structure,
    check_probability,
    clique_vector,
    labelled,
    level_table,
    marginalise,
    split,
    structure,
)

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from noisewise.models.graphical_model.structure import CliqueVector

MAX_MARGINAL_CELLS = 10_000_000
"""Cells of a marginal beyond the model's cliques (chosen): 80 MB of probabilities."""
MODEL_FORMAT = "noisewise-graphical-model"
"""What a file of one model calls itself."""
MODEL_FORMAT_VERSION = 1
"""The version of that format which is written and read."""


class TablesResult(Result):
    """What a fitted model, and draws of one, share: columns, cliques and labelled marginals."""

    model_name: ClassVar[str] = "graphical-model"

    @property
    @abstractmethod
    def point(self) -> GraphicalModel:
        """Return the one model that stands for the result."""

    @abstractmethod
    def marginal_array(self, columns: str | Iterable[str]) -> np.ndarray:
        """Return ``marginal`` as a plain array, one axis per column."""

    @property
    def title(self) -> str:
        """Return the names of the columns."""
        return ", ".join(self.columns)

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the variables, in the order of first mention."""
        return self.point.structure.variables

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """Return the sets of columns with a potential."""
        return self.point.structure.cliques

    @property
    def keys(self) -> None:
        """Return None: one result has no groups (``GraphicalGroups`` has)."""
        return None

    def marginal(self, columns: str | Iterable[str]) -> xr.DataArray:
        """Return the joint probabilities of some columns, labelled by their public levels.

        Of draws it is the posterior mean; of sets that no clique holds, the marginal of ``point``.

        Args:
            columns: one column, or several.

        Returns:
            An array with one dimension per column, in that order, and the levels as coordinates.
        """
        wanted = self.point.named(columns)
        return labelled(self.marginal_array(wanted), wanted, self.point.levels)


@dataclass(frozen=True, eq=False)
class GraphicalModel(TablesResult):
    """p(x) ∝ exp Σ_C θ_C(x_C) over public levels; ``potentials`` is θ, clique after clique.

    ``inference`` says how its marginals are computed ("exact" or "loopy"); ``n`` is how many people
    it was fitted to. ``details`` holds iterations, gaps and settings.

    Example:
        >>> import noisewise as nw, pandas as pd
        >>> people = pd.DataFrame({"owns": ["yes", "no"] * 50, "rooms": [1, 2, 2, 2] * 25})
        >>> release = nw.release.graphical_model(
        ...     people, cliques=[("owns", "rooms")],
        ...     levels={"owns": ["no", "yes"], "rooms": [1, 2]}, epsilon=1.0,
        ... )
        >>> model = nw.infer(release)
        >>> model.marginal(["owns", "rooms"]).sizes
        Frozen({'owns': 2, 'rooms': 2})
        >>> model.sample(3).shape
        (3, 2)
        >>> nw.load(model.save("model.json")).columns
        ('owns', 'rooms')
    """

    structure: Structure
    levels: Mapping[str, tuple[Level, ...]]
    potentials: np.ndarray
    method: str
    n: float
    inference: str = "exact"
    converged: bool = True
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def point(self) -> GraphicalModel:
        """Return the model itself."""
        return self

    @property
    def status(self) -> str:
        """Say whether the fit converged, and what to do if it did not."""
        if self.converged:
            return f"converged ({self.inference} inference)"
        remedy = "a larger lam" if self.method == "naive-mle" else "a smaller spread"
        return f"not converged: the potentials are still growing. Use {remedy}"

    @property
    def draws(self) -> NoReturn:  # type: ignore[override]
        """Raise an AbsentError: a fitted model is one point, without draws."""
        raise AbsentError(f"method: {self.method!r} gives no draws; infer with 'bayes'")

    @property
    def log_partition(self) -> float:
        """Return A(θ)."""
        return float(compiled_oracle(self._oracle)(jnp.asarray(self.potentials))[0])

    def summary(self, interval: float = 0.95) -> pd.DataFrame:
        """Return the share of every level of every column, indexed by (column, level).

        Args:
            interval: as in other results' ``summary``; a fit has no intervals, so it has no effect.
        """
        check_probability("interval", interval)
        tables = self.clique_marginals()
        shares = [np.asarray(marginalise(tables, (c,))) for c in self.columns]
        return level_table(self.columns, self.levels, {"share": np.concatenate(shares)})

    def clique_marginals(self) -> dict[Clique, np.ndarray]:
        """Return the marginal of every clique of the model, computed in one pass."""
        mu = np.asarray(compiled_oracle(self._oracle)(jnp.asarray(self.potentials))[1])
        return dict(zip(self.cliques, split(mu, self.structure), strict=True))

    def marginal_array(self, columns: str | Iterable[str]) -> np.ndarray:
        """Return ``marginal`` as a plain array, one axis per column.

        Inside a clique it is read off; any other set is given a potential of zero, whose gradient
        is the marginal, if the junction tree with it fits memory.
        """
        wanted = self.named(columns)
        if not any(set(wanted) <= set(clique) for clique in self.cliques):
            return self._marginal_beyond_cliques(wanted)
        table = marginalise(self.clique_marginals(), wanted)
        return np.asarray(table)

    def _marginal_beyond_cliques(self, wanted: Clique) -> np.ndarray:
        wider = self.structure.with_clique(wanted)
        cells = int(np.prod(wider.shape(wanted)))
        if cells > MAX_MARGINAL_CELLS or wider.predicted_bytes > DEFAULT_MEMORY:
            raise ArgumentError(
                f"columns: the marginal of {', '.join(wanted)} has {cells} cells and needs a "
                f"{describe_size(wider)}; ask for fewer columns, or count sampled records"
            )
        theta = np.concatenate([self.potentials, np.zeros(cells)])
        mu = np.asarray(compiled_oracle(Oracle(wider, "exact"))(jnp.asarray(theta))[1])
        return mu[wider.slices[-1]].reshape(wider.shape(wanted))

    def loglikelihood(self, table: Any) -> float:
        """Return Σ log p(x) over records: a data frame, Arrow table or dictionary of columns."""
        codes = level_codes(table, self.levels)
        value = 0.0
        for clique, theta in zip(self.cliques, split(self.potentials, self.structure), strict=True):
            value += float(theta[tuple(codes[c] for c in clique)].sum())
        count = len(next(iter(codes.values())))
        return value - count * self.log_partition

    def kl(self, other: GraphicalModel) -> float:
        """Return KL(self‖other) in nats, for models over the same columns and levels."""
        if dict(self.levels) != dict(other.levels):
            raise ArgumentError("other: must be a model over the same columns and public levels")
        own, theirs = self.potentials, other.potentials
        marginals = self.clique_marginals()
        mean = sum(
            float((marginals[c] * t).sum())
            for c, t in zip(self.cliques, split(own, self.structure), strict=True)
        )
        cross = sum(
            float((self.marginal_array(c) * t).sum())
            for c, t in zip(other.cliques, split(theirs, other.structure), strict=True)
        )
        return mean - self.log_partition - cross + other.log_partition

    def sample(self, n: int, *, seed: int = 0) -> pd.DataFrame:
        """Draw n synthetic records exactly; return their levels, one column per model column."""
        import pandas as pd

        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise ArgumentError(f"n: must be a whole number of at least 1, not {n!r}")
        if self.inference != "exact":
            raise ArgumentError(
                "sample: exact sampling needs exact inference, and this model's "
                f"{describe_size(self.structure)} is more than was allowed"
            )
        _, buckets = eliminate(self.structure, jnp.asarray(self.potentials))
        codes = sample_backwards(buckets, int(n), np.random.default_rng(seed))
        return pd.DataFrame({c: np.array(self.levels[c])[codes[c]] for c in self.columns})

    def to_mbi(self) -> CliqueVector:
        """Return the potentials as mbi's CliqueVector."""
        tables = dict(zip(self.cliques, split(self.potentials, self.structure), strict=True))
        return clique_vector(self.structure.sizes, tables)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the model as JSON, with all digits; return the path."""
        return write_json(model_to_json(self), Path(path))

    @staticmethod
    def load(path: str | os.PathLike[str]) -> GraphicalModel:
        """Read what ``save`` wrote; anything wrong with the file is an error that says what."""
        return model_from_json(read_json(Path(path)), Path(path))

    @property
    def _oracle(self) -> Oracle:
        return Oracle(self.structure, "exact" if self.inference == "exact" else "loopy")

    def named(self, columns: str | Iterable[str]) -> Clique:
        """Return the columns asked for, after checking that each is the model's and named once."""
        wanted = (columns,) if isinstance(columns, str) else tuple(columns)
        if not wanted or len(set(wanted)) != len(wanted):
            raise ArgumentError("columns: must be one or more distinct columns")
        for column in wanted:
            if column not in self.levels:
                raise ArgumentError(
                    f"columns: {column!r} is not in the model, which has {', '.join(self.columns)}"
                )
        return wanted

    def __repr__(self) -> str:
        return (
            f"<GraphicalModel of {', '.join(self.columns)} ({len(self.cliques)} cliques) by "
            f"{self.method}: {self.status}>"
        )


def fitted_model(
    problem: TablesProblem, psi: np.ndarray, method: str, details: Mapping[str, Any],
    converged: bool,
) -> GraphicalModel:  # fmt: skip
    """Return the model with free parameters ``psi``; its predicted size is added to the details."""
    size = {"size": describe_size(problem.model), "secret_n": problem.secret_n}
    return GraphicalModel(
        problem.model, problem.levels, psi[problem.place], method, problem.n,
        problem.oracle.kind, converged, {**details, **size},
    )  # fmt: skip


def level_codes(table: Any, levels: Mapping[str, tuple[Level, ...]]) -> dict[str, np.ndarray]:
    """Return records as positions in the public lists; ``table[column]`` must give a column."""
    codes: dict[str, np.ndarray] = {}
    for column, listed in levels.items():
        try:
            values = np.asarray(table[column])
        except (KeyError, IndexError, TypeError, ValueError):
            raise ArgumentError(f"table: has no column {column!r}") from None
        if values.ndim != 1:
            raise ArgumentError(f"table: column {column!r} must be one-dimensional")
        places = {level: i for i, level in enumerate(listed)}
        index = np.array([places.get(v, -1) for v in values.tolist()], np.int64)
        if (index < 0).any():
            raise ArgumentError(
                f"table: column {column!r} holds a value that is not among its public levels"
            )
        codes[column] = index
    if len({len(v) for v in codes.values()}) != 1:
        raise ArgumentError("table: its columns differ in length")
    return codes


def model_to_json(model: GraphicalModel) -> dict[str, Any]:
    """Return the content of a model's file."""
    return {
        "format": MODEL_FORMAT,
        "version": MODEL_FORMAT_VERSION,
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


def model_from_json(content: Mapping[str, Any], path: Path) -> GraphicalModel:
    """Return the model of a file's content, after checking all of it."""
    if content.get("format") != MODEL_FORMAT:
        raise ArgumentError(f"{path}: is not a noisewise graphical model")
    if content.get("version") != MODEL_FORMAT_VERSION:
        version = content.get("version")
        raise ArgumentError(f"{path}: version {version!r}, this reads {MODEL_FORMAT_VERSION}")
    try:
        levels = _checked_levels(content["columns"], content["levels"])
        model = structure(
            {c: len(v) for c, v in levels.items()}, _checked_cliques(content["cliques"], levels)
        )
        potentials = _checked_potentials(content["potentials"], model)
        method, inference = content["method"], content["inference"]
        converged, details = content["converged"], content["details"]
        _require(_is_number(content["n"]) and content["n"] >= 0, "n must be a number of people")
        n = float(content["n"])
        _require(inference in ("exact", "loopy"), "inference must be exact or loopy")
        _require(isinstance(method, str), "method must be text")
        _require(isinstance(converged, bool), "converged must be true or false")
        _require(isinstance(details, dict), "details must be an object")
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ArgumentError(f"{path}: is damaged ({error!r})") from None
    return GraphicalModel(model, levels, potentials, method, n, inference, converged, details)


def _checked_levels(columns: Any, levels: Any) -> dict[str, tuple[Level, ...]]:
    _require(isinstance(columns, list) and isinstance(levels, dict), "columns must have levels")
    _require(
        len(columns) > 0 and len({*columns}) == len(columns) == len(levels)
        and all(isinstance(c, str) for c in columns),
        "columns must be distinct names, each with levels",
    )  # fmt: skip
    for column in columns:
        listed = levels[column]
        _require(
            isinstance(listed, list) and len(listed) > 0 and len({*listed}) == len(listed)
            and all(isinstance(v, str | int) and not isinstance(v, bool) for v in listed)
            and all(is_printable(str(v)) for v in (column, *listed)),
            f"levels of {column!r} must be distinct printable texts or whole numbers",
        )  # fmt: skip
    return {c: tuple(levels[c]) for c in columns}


def _checked_cliques(cliques: Any, levels: Mapping[str, tuple[Level, ...]]) -> list[Clique]:
    _require(
        isinstance(cliques, list) and len(cliques) > 0
        and all(isinstance(c, list) and len(c) > 0 and len({*c}) == len(c) for c in cliques),
        "cliques must be lists of distinct columns",
    )  # fmt: skip
    _require({v for c in cliques for v in c} == set(levels), "cliques must hold every column")
    return [tuple(c) for c in cliques]


def _checked_potentials(potentials: Any, model: Structure) -> np.ndarray:
    """Return θ; its length is compared with the cliques' before an array is made."""
    _require(
        isinstance(potentials, list) and len(potentials) == model.dimension
        and all(_is_number(v) for v in potentials),
        f"potentials must be {model.dimension} finite numbers",
    )  # fmt: skip
    return np.array(potentials, dtype=float)


def _is_number(value: object) -> bool:
    """Return whether a value of a JSON file is a number; the reader refused infinite ones."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _require(holds: bool, requirement: str) -> None:
    if not holds:
        raise ValueError(requirement)
