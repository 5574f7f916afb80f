"""Draws of a graphical model: marginals with intervals, and one model to stand for them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from noisewise.artifact import ArgumentError
from noisewise.artifact.atomic_file import atomic_write
from noisewise.models.graphical_model.junction import Clique
from noisewise.models.graphical_model.model import GraphicalModel
from noisewise.models.graphical_model.structure import split
from noisewise.numerics.convergence import diagnose

RHAT = 1.05
ESS = 100
"""Of the worst of thousands of cells; the few parameters of other models must meet 1.01 and 400."""


@dataclass(frozen=True, eq=False)
class GraphicalPosterior:
    """``model`` has the posterior mean's marginals: it minimises the expected KL divergence.

    ``marginal_draws`` and ``potential_draws`` are arrays (chain, draw, cell), clique after clique;
    ``tau`` (chain, draw) is the potentials' scale.
    """

    model: GraphicalModel
    marginal_draws: np.ndarray
    potential_draws: np.ndarray
    tau: np.ndarray
    details: Mapping[str, Any] = field(default_factory=dict)
    method: str = "bayes"

    @cached_property
    def draws(self) -> dict[Clique, np.ndarray]:
        """Marginals by clique: arrays (chain, draw, one axis per column)."""
        parts = split(self.marginal_draws, self.model.structure)
        return dict(zip(self.model.cliques, parts, strict=True))

    def marginal(self, columns: str | Iterable[str]) -> np.ndarray:
        """The posterior mean (outside cliques: the marginal of ``model``)."""
        found = self._within(columns)
        return self.model.marginal(columns) if found is None else found.mean(axis=(0, 1))

    def interval(self, columns: str | Iterable[str], level: float = 0.95) -> np.ndarray:
        """Lower and upper ends, cell by cell, along a first axis of two."""
        if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level < 1:
            raise ArgumentError(f"level: must be between 0 and 1, not {level!r}")
        found = self._within(columns)
        if found is None:
            raise ArgumentError(
                "columns: there are draws of sets inside one clique only; of others marginal() "
                "gives the mean model's probabilities"
            )
        tails = [(1 - level) / 2, (1 + level) / 2]
        return np.asarray(np.quantile(found, tails, axis=(0, 1)))

    def loglikelihood(self, table: Any) -> float:
        """Of records under ``model``."""
        return self.model.loglikelihood(table)

    def sample(self, n: int, *, seed: int = 0) -> dict[str, np.ndarray]:
        """Synthetic records from ``model``."""
        return self.model.sample(n, seed=seed)

    def kl(self, other: GraphicalModel) -> float:
        """KL(model‖other)."""
        return self.model.kl(other)

    @cached_property
    def _judged(self) -> tuple[np.ndarray, np.ndarray]:
        # A cell that never moves (one state everywhere) has nothing to converge.
        cells = np.moveaxis(self.marginal_draws, -1, 0)
        moving = cells[cells.std(axis=(1, 2)) > 1e-13]
        rhat, ess = diagnose(np.concatenate([moving, self.tau[None]]))
        return np.asarray(rhat), np.asarray(ess)

    @property
    def rhat(self) -> float:
        """The worst R-hat of any marginal cell, or of τ."""
        return float(self._judged[0].max())

    @property
    def ess(self) -> float:
        """The least effective number of draws of any marginal cell, or of τ."""
        return float(self._judged[1].min())

    @property
    def converged(self) -> bool:
        """R-hat below 1.05 and at least 100 effective draws for every cell.

        Looser than for models of a few parameters (1.01 and 400), because the worst of hundreds or
        thousands of cells has to meet it.
        """
        return self.rhat < RHAT and self.ess >= ESS

    @property
    def status(self) -> str:
        """In words, with what to do."""
        told = f"R-hat up to {self.rhat:.3f}, {self.ess:.0f} effective draws at the least"
        if self.details.get("divergences"):
            told += f", {self.details['divergences']} divergent transitions"
        if self.converged:
            return f"converged: {told}"
        rhat, ess = self._judged
        short = int(((rhat >= RHAT) | (ess < ESS)).sum())
        return (
            f"not converged: {told} (wanted: below {RHAT}, {ESS}); {short} of {len(rhat)} "
            "quantities fall short. Ask for more draws"
        )

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Draws as an .npz file, the model as JSON beside it."""
        target = Path(path)
        beside = target.with_name(target.name + ".model.json")
        self.model.save(beside)
        with (
            atomic_write(
                target, lambda why: ArgumentError(f"{target}: cannot be written ({why})")
            ) as new,
            new.open("wb") as out,
        ):
            np.savez_compressed(
                out,
                marginal_draws=self.marginal_draws,
                potential_draws=self.potential_draws,
                tau=self.tau,
            )
        return target

    @staticmethod
    def load(path: str | os.PathLike[str]) -> GraphicalPosterior:
        """The inverse of ``save``; nothing in the files can execute."""
        source = Path(path)
        model = GraphicalModel.load(source.with_name(source.name + ".model.json"))
        try:
            with np.load(source, allow_pickle=False) as held:
                parts = [held[name] for name in ("marginal_draws", "potential_draws", "tau")]
        except (OSError, ValueError, KeyError) as error:
            raise ArgumentError(f"{source}: cannot be read as draws ({error})") from None
        marginals, potentials, tau = parts
        return GraphicalPosterior(model, marginals, potentials, tau, model.details)

    def _within(self, columns: str | Iterable[str]) -> np.ndarray | None:
        wanted = self.model.named(columns)
        for clique, drawn in self.draws.items():
            if set(wanted) <= set(clique):
                rest = tuple(i + 2 for i, c in enumerate(clique) if c not in wanted)
                left = [c for c in clique if c in wanted]
                order = [0, 1, *(left.index(c) + 2 for c in wanted)]
                return np.transpose(drawn.sum(axis=rest), order)
        return None

    def __repr__(self) -> str:
        return f"<GraphicalPosterior of {', '.join(self.model.columns)}: {self.status}>"
