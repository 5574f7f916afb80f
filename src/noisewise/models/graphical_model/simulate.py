"""Simulated contingency tables with a release's own settings: n, cliques, levels and noise.

What is judged is the share of every level of every column but its last (the first dozen of them).
``from_prior`` draws potentials as ``bayes`` believes them: log τ normal about log(π/√6), θ/τ the
logarithm of an exponential variable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np

from noisewise.artifact import ArgumentError, Release
from noisewise.models.base import Progress, Simulator
from noisewise.models.graphical_model import nuts
from noisewise.models.graphical_model.analyst import GroupedTables
from noisewise.models.graphical_model.collective_em import DEFAULT_SPREAD
from noisewise.models.graphical_model.marginal_oracle import (
    compiled_oracle,
    eliminate,
    sample_backwards,
)
from noisewise.models.graphical_model.nuts import LOG_TAU_SD
from noisewise.models.graphical_model.problem import TablesProblem, estimated_sizes
from noisewise.models.graphical_model.structure import marginalise, split
from noisewise.simulate.trials import (
    Outcome,
    Trials,
    check_guesses,
    interval_widths,
    median_size,
    noise,
)

MAX_SHARES = 12
"""Shares of levels that are judged (chosen: what a person reads)."""
PRIOR_MODELS = 400
"""Models drawn from the prior for the width of its intervals (chosen; each needs its marginals)."""
TRIAL_CHAINS, TRIAL_DRAWS = 2, 500
"""Seconds a trial: as few as tell whether a marginal has converged (chosen)."""


def level_shares(problem: TablesProblem, cells: np.ndarray) -> tuple[tuple[str, ...], np.ndarray]:
    """Return names and shares (…, level) from marginals of the cliques (…, cell)."""
    tables = dict(zip(problem.model.cliques, split(cells, problem.model), strict=True))
    names = [f"p[{c}={v}]" for c in problem.model.variables for v in problem.levels[c][:-1]]
    columns = [
        np.asarray(marginalise(tables, (column,), leading=cells.ndim - 1))[..., :-1]
        for column in problem.model.variables
    ]
    return tuple(names[:MAX_SHARES]), np.concatenate(columns, axis=-1)[..., :MAX_SHARES]


def from_prior(
    rng: np.random.Generator, problem: TablesProblem, trials: int
) -> Trials[GroupedTables]:
    """Draw potentials from the prior, records from the model, and the release's noise."""
    theta = prior_potentials(rng, problem, trials)
    counts = np.stack([tables_of(rng, problem, row) for row in theta])
    return noisy(rng, problem, counts, theta)


def prior_potentials(rng: np.random.Generator, problem: TablesProblem, number: int) -> np.ndarray:
    """Draw θ (draw, cell) from the prior."""
    tau = DEFAULT_SPREAD * np.exp(LOG_TAU_SD * rng.standard_normal((number, 1)))
    law = np.log(rng.standard_exponential((number, problem.model.dimension))) / DEFAULT_SPREAD
    return np.asarray(tau * law)


def tables_of(rng: np.random.Generator, problem: TablesProblem, theta: np.ndarray) -> np.ndarray:
    """Draw n records of the model; return their exact counts, clique after clique."""
    if problem.oracle.kind != "exact":
        raise ArgumentError("release: records of a model this large cannot be drawn exactly")
    _, buckets = eliminate(problem.model, jnp.asarray(theta))
    codes = sample_backwards(buckets, round(problem.n), rng)
    parts = []
    for clique in problem.model.cliques:
        shape = problem.model.shape(clique)
        at = np.ravel_multi_index([codes[c] for c in clique], shape)
        parts.append(np.bincount(at, minlength=int(np.prod(shape))))
    return np.concatenate(parts).astype(float)


def noisy(
    rng: np.random.Generator, problem: TablesProblem, counts: np.ndarray, theta: np.ndarray
) -> Trials[GroupedTables]:
    """Return trials whose exact tables are given, with this problem's noise on them."""
    y = counts + noise(rng, problem.scale, problem.mechanism, counts.shape, whole=True)
    sizes = estimated_sizes(problem.model, y) if problem.secret_n else np.full(len(y), problem.n)
    each = [replace(problem, y=row, n=float(n)) for row, n in zip(y, sizes, strict=True)]
    names, truth = level_shares(problem, marginals(problem, theta))
    return Trials(GroupedTables(tuple(each), tuple(range(len(each)))), truth, names)


def marginals(problem: TablesProblem, theta: np.ndarray) -> np.ndarray:
    """Return the marginals of the cliques (draw, cell) at potentials (draw, cell)."""
    each = compiled_oracle(problem.oracle)
    return np.stack([np.asarray(each(jnp.asarray(row))[1]) for row in theta])


@dataclass(frozen=True, eq=False)
class TablesScene:
    """A plan's tables: columns independent of each other, with the guessed shares."""

    problem: TablesProblem
    theta: np.ndarray
    counts: np.ndarray
    names: tuple[str, ...]
    guess: Mapping[str, float]
    outside: Mapping[str, float]

    def trials(self, problem: GroupedTables, seed: int) -> Trials[GroupedTables]:
        """Return trials with that problem's noise on the tables."""
        many = np.tile(self.theta, (len(self.counts), 1))
        return noisy(np.random.default_rng([seed, 1]), problem.groups[0], self.counts, many)

    def width_without_privacy(self, seed: int, level: float) -> np.ndarray:
        """Return widths without noise: a share of n records is normal about the truth."""
        from scipy.stats import norm

        p = np.array([self.guess[name] for name in self.names])
        reach = 2 * float(norm.ppf((1 + level) / 2))
        return np.asarray(reach * np.sqrt(p * (1 - p) / self.problem.n))

    def prior_width(self, level: float) -> dict[str, float]:
        """Return the widths of the prior's own intervals."""
        drawn = prior_potentials(np.random.default_rng(0), self.problem, PRIOR_MODELS)
        _, values = level_shares(self.problem, marginals(self.problem, drawn))
        return interval_widths(dict(zip(self.names, values.T, strict=True)), level)


def scene(
    problem: TablesProblem, given: Mapping[str, float], trials: int, seed: int
) -> TablesScene:
    """Make tables at guessed shares such as ``p[a=u]``; levels not named share the rest evenly."""
    known = {f"p[{c}={v}]" for c in problem.model.variables for v in problem.levels[c]}
    check_guesses(given, tuple(sorted(known)))
    theta = np.zeros(problem.model.dimension)
    for column in problem.model.variables:
        theta += _alone(problem, column, _column_shares(problem, column, given))
    rng = np.random.default_rng([seed, 0])
    counts = np.stack([tables_of(rng, problem, theta) for _ in range(trials)])
    names, truth = level_shares(problem, marginals(problem, theta[None]))
    guess = dict(zip(names, truth[0].tolist(), strict=True))
    return TablesScene(problem, theta, counts, names, guess, {})


def _column_shares(problem: TablesProblem, column: str, given: Mapping[str, float]) -> np.ndarray:
    """Return the guessed share of every level; those not given share the rest evenly."""
    names = [f"p[{column}={level}]" for level in problem.levels[column]]
    said = np.array([given.get(name, np.nan) for name in names])
    left, open_ = 1 - np.nansum(said), int(np.isnan(said).sum())
    if (said <= 0).any() or left < -1e-9 or (open_ and left <= 0) or (not open_ and left > 1e-6):
        raise ArgumentError(
            f"guess: the shares of {column!r} must be above zero and add up to 1 over its levels"
        )
    return np.where(np.isnan(said), left / max(open_, 1), said)


def _alone(problem: TablesProblem, column: str, share: np.ndarray) -> np.ndarray:
    """Return potentials that give a column these shares: logarithms, in one of its cliques."""
    theta = np.zeros(problem.model.dimension)
    number = next(i for i, c in enumerate(problem.model.cliques) if column in c)
    clique = problem.model.cliques[number]
    shape = [1] * len(clique)
    shape[clique.index(column)] = len(share)
    table = np.broadcast_to(np.log(share).reshape(shape), problem.model.shape(clique))
    theta[problem.model.slices[number]] = table.ravel()
    return theta


class GraphicalSimulator(Simulator[GroupedTables]):
    """Simulated tables for ``check`` and ``plan``; what is judged is shares of levels."""

    interval_methods = ("bayes",)

    def usual_methods(self, release: Release) -> tuple[str, ...]:
        """Return ``bayes``, the one method that gives intervals."""
        return ("bayes",)

    def template(self, problem: GroupedTables, n: int | None) -> GroupedTables:
        """Return the problem with one group of n records."""
        sizes = np.array([tables.n for tables in problem.groups])
        return GroupedTables((replace(problem.groups[0], n=median_size(sizes, n)),))

    def from_prior(
        self, rng: np.random.Generator, problem: GroupedTables, trials: int
    ) -> Trials[GroupedTables]:
        """Draw truths from the prior, and simulated tables of each."""
        return from_prior(rng, problem.groups[0], trials)

    def planned_trials(self, problem: GroupedTables) -> int:
        """Return fewer than for other models: every trial is sampled by itself."""
        return 20

    def scene(
        self, problem: GroupedTables, n: int, guesses: Mapping[str, float], trials: int, seed: int
    ) -> TablesScene:
        """Make tables at one guessed truth, for every trial of a plan."""
        return scene(problem.groups[0], guesses, trials, seed)

    def run(
        self,
        trials: Trials[GroupedTables],
        method: str,
        seed: int,
        progress: Progress | None = None,
    ) -> Outcome:
        """Infer trial after trial."""
        drawn, stuck = [], 0
        for number, problem in enumerate(trials.problem.groups):
            post = nuts.run(problem, seed + number, TRIAL_CHAINS, TRIAL_DRAWS)
            stuck += not post.converged
            drawn.append(
                level_shares(problem, post.marginal_draws)[1].reshape(-1, len(trials.names))
            )
            if progress is not None:
                progress(number + 1, len(trials.problem.groups))
        return Outcome(np.stack(drawn), stuck / len(drawn))

    def settings(self, problem: GroupedTables) -> dict[str, object]:
        """Return what is simulated, for people and files."""
        (tables,) = problem.groups
        return {
            "what": f"tables of {', '.join(tables.model.variables)}",
            "n": round(float(tables.n)),
            "mechanism": tables.mechanism,
            "noise_scale": tables.scale,
        }


SIMULATOR = GraphicalSimulator()
"""The simulator of the model."""
