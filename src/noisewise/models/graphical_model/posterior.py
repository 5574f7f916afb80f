"""Draws of a graphical model: marginals with intervals, and one model to stand for them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from noisewise.artifact import ArgumentError, Level
from noisewise.models.graphical_model.fitted_model import (
    GraphicalModel,
    TablesResult,
    model_from_json,
    model_to_json,
)
from noisewise.models.graphical_model.model_files import ArrayArchive, parse_json, write_arrays
from noisewise.models.graphical_model.structure import (
    Clique,
    check_probability,
    labelled,
    level_table,
    marginalise,
    split,
    unused_name,
)
from noisewise.numerics.convergence import diagnose

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from arviz import InferenceData

MAX_RHAT = 1.05
"""R-hat that the worst of hundreds or thousands of cells must stay below (chosen; the few
parameters of other models must meet 1.01)."""
MIN_ESS = 100
"""Effective draws that the worst cell must reach (chosen; the parameters of other models: 400)."""
MIN_MOVEMENT = 1e-13
"""Standard deviation below which a cell counts as constant, with nothing to converge."""


@dataclass(frozen=True, eq=False)
class GraphicalPosterior(TablesResult):
    """Posterior draws of a graphical model, and the one ``model`` that stands for them.

    ``model`` has the posterior mean's marginals: it minimises the expected KL divergence.
    ``marginal_draws`` and ``potential_draws`` are arrays (chain, draw, cell), clique after clique;
    ``tau`` (chain, draw) is the potentials' scale.

    Example:
        ``nw.infer(release, "bayes")`` draws it; here the draws are made up.

        >>> import noisewise as nw, pandas as pd
        >>> people = pd.DataFrame({"owns": ["yes", "no"] * 50, "rooms": [1, 2, 2, 2] * 25})
        >>> release = nw.release.graphical_model(
        ...     people, cliques=[("owns", "rooms")],
        ...     levels={"owns": ["no", "yes"], "rooms": [1, 2]}, epsilon=1.0,
        ... )
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> drawn = rng.dirichlet([20, 30, 25, 25], (2, 500))
        >>> post = nw.GraphicalPosterior(
        ...     nw.infer(release), drawn, np.log(drawn), rng.gamma(5, size=(2, 500))
        ... )
        >>> post.converged
        True
        >>> post.interval("owns", 0.9).sizes
        Frozen({'bound': 2, 'owns': 2})
    """

    model: GraphicalModel
    marginal_draws: np.ndarray
    potential_draws: np.ndarray
    tau: np.ndarray
    details: Mapping[str, Any] = field(default_factory=dict)
    method: str = "bayes"

    @property
    def point(self) -> GraphicalModel:
        """Return ``model``."""
        return self.model

    @property
    def levels(self) -> Mapping[str, tuple[Level, ...]]:
        """Return the public levels by column."""
        return self.model.levels

    @cached_property
    def draws(self) -> dict[Clique, np.ndarray]:  # type: ignore[override]
        """Return draws of the marginals by clique: arrays (chain, draw, one axis per column)."""
        parts = split(self.marginal_draws, self.model.structure)
        return dict(zip(self.model.cliques, parts, strict=True))

    def summary(self, interval: float = 0.95) -> pd.DataFrame:
        """Summarise the share of every level of every column, indexed by (column, level).

        Args:
            interval: probability of the central interval.

        Returns:
            Columns ``share`` (the posterior mean), ``sd``, ``lower``, ``upper``, ``rhat`` and
            ``ess``; the last two are NaN where a share is constant, as of a column with one level.
        """
        check_probability("interval", interval)
        tails = [(1 - interval) / 2, (1 + interval) / 2]
        parts = [np.asarray(marginalise(self.draws, (c,), leading=2)) for c in self.columns]
        cells = np.moveaxis(np.concatenate(parts, axis=-1), -1, 0)
        flat = cells.reshape(len(cells), -1)
        low, high = np.quantile(flat, tails, axis=1)
        moving = flat.std(axis=1) > MIN_MOVEMENT
        rhat, ess = np.full(len(cells), np.nan), np.full(len(cells), np.nan)
        if moving.any():
            rhat[moving], ess[moving] = diagnose(cells[moving])
        values = {
            "share": flat.mean(axis=1), "sd": flat.std(axis=1, ddof=1), "lower": low, "upper": high,
            "rhat": rhat, "ess": ess,
        }  # fmt: skip
        return level_table(self.columns, self.levels, values)

    def marginal_array(self, columns: str | Iterable[str]) -> np.ndarray:
        """Return the posterior mean as a plain array, one axis per column."""
        drawn = marginalise(self.draws, self.model.named(columns), leading=2)
        if drawn is None:
            return self.model.marginal_array(columns)
        return np.asarray(drawn.mean(axis=(0, 1)))

    @property
    def has_intervals(self) -> bool:
        """Return True: there are draws."""
        return True

    def interval(self, columns: str | Iterable[str], level: float = 0.95) -> xr.DataArray:
        """Return central intervals of some columns' joint probabilities, cell by cell.

        Args:
            columns: one column, or several of one clique.
            level: probability of each interval.

        Returns:
            As of ``marginal``, with a first dimension ``bound`` of ``"lower"`` and ``"upper"``.
        """
        wanted = self.model.named(columns)
        ends = self.interval_array(wanted, level)
        return labelled(ends, wanted, self.levels, {"bound": ("lower", "upper")})

    def interval_array(self, columns: str | Iterable[str], level: float = 0.95) -> np.ndarray:
        """Return ``interval`` as a plain array, lower and upper ends along a first axis of two."""
        check_probability("level", level)
        drawn = marginalise(self.draws, self.model.named(columns), leading=2)
        if drawn is None:
            raise ArgumentError(
                "columns: there are draws of sets inside one clique only; of others marginal() "
                "gives the mean model's probabilities"
            )
        tails = [(1 - level) / 2, (1 + level) / 2]
        return np.asarray(np.quantile(drawn, tails, axis=(0, 1)))

    def loglikelihood(self, table: Any) -> float:
        """Return the log-likelihood of records under ``model``."""
        return self.model.loglikelihood(table)

    def sample(self, n: int, *, seed: int = 0) -> pd.DataFrame:
        """Draw n synthetic records from ``model``; return their levels."""
        return self.model.sample(n, seed=seed)

    def kl(self, other: GraphicalModel) -> float:
        """Return KL(model‖other) in nats."""
        return self.model.kl(other)

    def to_arviz(self) -> InferenceData:
        """Return the draws as ArviZ's InferenceData.

        The marginal of each clique is a variable such as ``p[a,b]``, with dimensions chain, draw
        and one per column, whose coordinates are the levels; ``tau`` is the potentials' scale.
        There is group ``posterior`` only: neither draws of the prior nor the release are kept.
        """
        from noisewise.inference.arviz import labelled_inference_data

        names, variables = arviz_names(self.columns), {}
        for clique, drawn in self.draws.items():
            variables[f"p[{','.join(clique)}]"] = (tuple(names[c] for c in clique), drawn)
        variables[unused_name("tau", names.values())] = ((), self.tau)
        return labelled_inference_data(variables, {names[c]: self.levels[c] for c in self.columns})

    @cached_property
    def _diagnostics(self) -> tuple[np.ndarray, np.ndarray]:
        """Return R-hat and effective draws of every cell that moves, and of τ."""
        cells = np.moveaxis(self.marginal_draws, -1, 0)
        moving = cells[cells.std(axis=(1, 2)) > MIN_MOVEMENT]
        rhat, ess = diagnose(np.concatenate([moving, self.tau[None]]))
        return np.asarray(rhat), np.asarray(ess)

    @property
    def rhat(self) -> float:
        """Return the worst R-hat of any marginal cell, or of τ."""
        return float(self._diagnostics[0].max())

    @property
    def ess(self) -> float:
        """Return the least effective number of draws of any marginal cell, or of τ."""
        return float(self._diagnostics[1].min())

    @property
    def converged(self) -> bool:
        """Return whether R-hat is below 1.05 and there are 100 effective draws for every cell.

        Looser than for models of a few parameters (1.01 and 400), because the worst of hundreds or
        thousands of cells has to meet it.
        """
        return self.rhat < MAX_RHAT and self.ess >= MIN_ESS

    @property
    def status(self) -> str:
        """Say whether the chains converged, and what to do if they did not."""
        evidence = f"R-hat up to {self.rhat:.3f}, {self.ess:.0f} effective draws at the least"
        if self.details.get("divergences"):
            evidence += f", {self.details['divergences']} divergent transitions"
        if self.converged:
            return f"converged: {evidence}"
        rhat, ess = self._diagnostics
        short = int(((rhat >= MAX_RHAT) | (ess < MIN_ESS)).sum())
        return (
            f"not converged: {evidence} (wanted: below {MAX_RHAT}, {MIN_ESS}); {short} of "
            f"{len(rhat)} quantities fall short. Ask for more draws; method 'cgm' fits one model, "
            "and needs none"
        )

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write draws and model into one .npz file; return its path."""
        arrays = {
            "marginal_draws": self.marginal_draws,
            "potential_draws": self.potential_draws,
            "tau": self.tau,
            "model": np.array(json.dumps(model_to_json(self.model), allow_nan=False)),
        }
        return write_arrays(Path(path), arrays)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> GraphicalPosterior:
        """Read what ``save`` wrote, or what version 0.1 wrote; nothing in the file can execute.

        Version 0.1 kept the model in a second file, ``path`` with ``.model.json`` added.
        """
        source = Path(path)
        with ArrayArchive(source) as archive:
            if "keys" in archive:
                raise ArgumentError(
                    f"{source}: holds several groups; read it with nw.load_posterior(path)"
                )
            if "model" in archive:
                text = str(archive.texts("model"))
                model = model_from_json(parse_json(text, source), source)
            else:
                model = GraphicalModel.load(source.with_name(source.name + ".model.json"))
            cells = model.structure.dimension
            marginals = archive.numbers("marginal_draws", (None, None, cells))
            potentials = archive.numbers("potential_draws", marginals.shape)
            tau = archive.numbers("tau", marginals.shape[:2])
        return GraphicalPosterior(model, marginals, potentials, tau, model.details)

    def __repr__(self) -> str:
        return f"<GraphicalPosterior of {', '.join(self.model.columns)}: {self.status}>"


def arviz_names(columns: Iterable[str], reserved: tuple[str, ...] = ()) -> dict[str, str]:
    """Return a dimension name for every column: its own, unless ArviZ or ``reserved`` has it."""
    names: dict[str, str] = {}
    taken = {"chain", "draw", *reserved}
    for column in columns:
        names[column] = unused_name(column, taken)
        taken.add(names[column])
    return names
