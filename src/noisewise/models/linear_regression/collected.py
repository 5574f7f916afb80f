"""What the tries of all groups have given so far."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from noisewise.inference.posterior import ESS, RHAT
from noisewise.models.linear_regression import latent, slabs
from noisewise.models.linear_regression.coordinates import Shape, full_rank
from noisewise.models.linear_regression.problem import Problem


class Sampled(NamedTuple):
    """Draws (parameter, group, chain, draw) in the user's units; R-hat and ESS per parameter.

    ``divergences`` per group; ``positions`` (draw, coordinate, chain, group) where they fit.
    """

    user: np.ndarray
    rhat: np.ndarray
    ess: np.ndarray
    divergences: np.ndarray
    positions: np.ndarray | None


def shape_of(problem: Problem) -> Shape:
    """Columns and rank of the scatter; one rank for all groups."""
    q = len(problem.x) + 1
    rank = q if problem.noisy_n else int(min(q, problem.n.min() - 1))
    return Shape(q, rank, problem.noisy_n)


class Collected:
    """Later tries of a group overwrite earlier ones."""

    def __init__(self, problem: Problem, chains: int, draws: int) -> None:
        groups, size = len(problem.n), len(problem.x) + 2
        self.user = np.empty((size, groups, chains, draws))
        self.rhat, self.ess = np.empty((size, groups)), np.empty((size, groups))
        self.tries, self.divergences = np.zeros(groups, int), np.zeros(groups, int)
        self._positions: dict[tuple[int, ...], np.ndarray] = {}
        shape = full_rank(len(problem.x) + 1, noisy_n=problem.noisy_n)
        self._wanted = latent.fits(shape, groups * chains * draws)

    def put(self, rows: np.ndarray, part: Sampled) -> None:
        """A slab's groups; padding beyond them is dropped."""
        count = len(rows)
        self.user[:, rows] = part.user[:, :count]
        self.rhat[:, rows], self.ess[:, rows] = part.rhat[:, :count], part.ess[:, :count]
        self.divergences[rows] = part.divergences[:count]
        self.tries[rows] += 1
        if self._wanted and part.positions is not None:
            self._positions[tuple(rows.tolist())] = part.positions[..., :count]

    def latent(self, problem: Problem, seed: int) -> Mapping[str, np.ndarray]:
        """Draws of s, μx and τ², when asked for; later tries overwrite earlier ones."""
        if not self._wanted:
            return {}
        only = problem.keys is None

        def make() -> Mapping[str, np.ndarray]:
            whole: dict[str, np.ndarray] = {}
            for number, (rows, positions) in enumerate(self._positions.items()):
                some = slabs.subset(problem, np.array(rows))
                rng = np.random.default_rng([seed, number])
                more = latent.latent(rng, some, shape_of(some), positions)
                for name, values in more.items():
                    into = whole.setdefault(name, np.empty((len(problem.n), *values.shape[1:])))
                    into[list(rows)] = values
            return {name: v[0] if only else v for name, v in whole.items()}

        return latent.Latent(make)

    @property
    def unconverged(self) -> np.ndarray:
        """Groups that need another try."""
        return np.flatnonzero(~((self.rhat < RHAT) & (self.ess >= ESS)).all(axis=0))
