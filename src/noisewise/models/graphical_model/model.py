"""A fitted graphical model: marginals, likelihood, divergence, synthetic records, a file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from noisewise.artifact import ArgumentError, Level
from noisewise.inference.result import Result
from noisewise.models.graphical_model import exact, records, sampling
from noisewise.models.graphical_model.junction import Clique, clique_vector
from noisewise.models.graphical_model.oracle import MEMORY, Oracle, compiled, size_in_words
from noisewise.models.graphical_model.problem import Problem
from noisewise.models.graphical_model.structure import Structure, split

MOST_CELLS = 10_000_000


@dataclass(frozen=True, eq=False)
class GraphicalModel(Result):
    """p(x) ∝ exp Σ_C θ_C(x_C) over public levels; ``potentials`` is θ, clique after clique.

    ``inference`` says how its marginals are computed ("exact" or "loopy"); ``n`` is how many people
    it was fitted to. ``details`` tells iterations, gaps and settings.
    """

    structure: Structure
    levels: Mapping[str, tuple[Level, ...]]
    potentials: np.ndarray
    method: str
    n: float
    inference: str = "exact"
    converged: bool = True
    details: Mapping[str, Any] = field(default_factory=dict)

    model_name = "graphical-model"

    @property
    def title(self) -> str:
        """The columns."""
        return ", ".join(self.columns)

    def summary(self, interval: float = 0.95) -> Any:
        """Return shares."""
        raise NotImplementedError

    @property
    def columns(self) -> tuple[str, ...]:
        """The variables, in the order of first mention."""
        return self.structure.variables

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """The sets of columns with a potential."""
        return self.structure.cliques

    @property
    def status(self) -> str:
        """In words, with what to do."""
        if self.converged:
            return f"converged ({self.inference} inference)"
        return (
            "not converged: the potentials are still growing. Use a larger lam (naive-mle) or a "
            "smaller spread (cgm)"
        )

    @property
    def log_partition(self) -> float:
        """A(θ)."""
        return float(compiled(self._oracle)(jnp.asarray(self.potentials))[0])

    def clique_marginals(self) -> dict[Clique, np.ndarray]:
        """The marginal of every clique of the model, in one pass."""
        mu = np.asarray(compiled(self._oracle)(jnp.asarray(self.potentials))[1])
        return dict(zip(self.cliques, split(mu, self.structure), strict=True))

    def marginal(self, columns: str | Iterable[str]) -> np.ndarray:
        """Probabilities over the public levels of some columns, one axis each, in that order.

        Inside a clique it is read off; any other set is given a potential of zero, whose gradient
        is the marginal, if the junction tree with it fits memory.
        """
        wanted = self.named(columns)
        for clique in self.cliques:
            if set(wanted) <= set(clique):
                table = self.clique_marginals()[clique]
                rest = tuple(i for i, c in enumerate(clique) if c not in wanted)
                left = [c for c in clique if c in wanted]
                return np.transpose(table.sum(axis=rest), [left.index(c) for c in wanted])
        return self._marginal_beyond(wanted)

    def _marginal_beyond(self, wanted: Clique) -> np.ndarray:
        wider = self.structure.with_clique(wanted)
        cells = int(np.prod(wider.shape(wanted)))
        if cells > MOST_CELLS or wider.predicted_bytes > MEMORY:
            raise ArgumentError(
                f"columns: the marginal of {', '.join(wanted)} has {cells} cells and needs a "
                f"{size_in_words(wider)}; ask for fewer columns, or count sampled records"
            )
        theta = np.concatenate([self.potentials, np.zeros(cells)])
        mu = np.asarray(compiled(Oracle(wider, "exact"))(jnp.asarray(theta))[1])
        return mu[wider.slices[-1]].reshape(wider.shape(wanted))

    def loglikelihood(self, table: Any) -> float:
        """Σ over records of log p(x): a data frame, Arrow table or dictionary of columns."""
        codes = records.codes(table, self.levels)
        value = 0.0
        for clique, theta in zip(self.cliques, split(self.potentials, self.structure), strict=True):
            value += float(theta[tuple(codes[c] for c in clique)].sum())
        count = len(next(iter(codes.values())))
        return value - count * self.log_partition

    def kl(self, other: GraphicalModel) -> float:
        """KL(self‖other) in nats, for models over the same columns and levels."""
        if dict(self.levels) != dict(other.levels):
            raise ArgumentError("other: must be a model over the same columns and public levels")
        own, theirs = self.potentials, other.potentials
        marginals = self.clique_marginals()
        mean = sum(
            float((marginals[c] * t).sum())
            for c, t in zip(self.cliques, split(own, self.structure), strict=True)
        )
        cross = sum(
            float((self.marginal(c) * t).sum())
            for c, t in zip(other.cliques, split(theirs, other.structure), strict=True)
        )
        return mean - self.log_partition - cross + other.log_partition

    def sample(self, n: int, *, seed: int = 0) -> dict[str, np.ndarray]:
        """Synthetic records, drawn exactly: {column: array of levels}."""
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise ArgumentError(f"n: must be a whole number of at least 1, not {n!r}")
        if self.inference != "exact":
            raise ArgumentError(
                "sample: exact sampling needs exact inference, and this model's "
                f"{size_in_words(self.structure)} is more than was allowed"
            )
        _, buckets = exact.eliminate(self.structure, jnp.asarray(self.potentials))
        codes = sampling.backwards(buckets, int(n), np.random.default_rng(seed))
        return {c: np.array(self.levels[c])[codes[c]] for c in self.columns}

    def to_mbi(self) -> Any:
        """The potentials as mbi's CliqueVector."""
        tables = dict(zip(self.cliques, split(self.potentials, self.structure), strict=True))
        return clique_vector(self.structure.sizes, tables)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the model as JSON."""
        from noisewise.models.graphical_model.files import save

        return save(self, Path(path))

    @staticmethod
    def load(path: str | os.PathLike[str]) -> GraphicalModel:
        """Read a model; anything odd is an error that says what."""
        from noisewise.models.graphical_model.files import load

        return load(Path(path))

    @property
    def _oracle(self) -> Oracle:
        return Oracle(self.structure, "exact" if self.inference == "exact" else "loopy")

    def named(self, columns: str | Iterable[str]) -> Clique:
        """The columns asked for, all of them the model's and each once."""
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


def fitted(
    problem: Problem, psi: np.ndarray, method: str, details: Mapping[str, Any], converged: bool
) -> GraphicalModel:
    """The model with these free parameters; what was predicted of its size goes along."""
    size = {"size": size_in_words(problem.model), "secret_n": problem.secret_n}
    return GraphicalModel(
        problem.model, problem.levels, psi[problem.place], method, problem.n,
        problem.oracle.kind, converged, {**details, **size},
    )  # fmt: skip
