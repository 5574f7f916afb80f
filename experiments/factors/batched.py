"""The calibration study with all trials side by side: for a machine with a GPU.

python -m experiments.factors.batched make FILE [--what fixed prior rare widths] [--trials 400]
python -m experiments.factors.batched run FILE OUT [--iterations 1600] [--minutes 8]
python -m experiments.factors.batched again FILE OUT [--iterations 6400] [--minutes 8]

``make`` draws the trials of ``calibration.py``, with starting points; ``run`` samples all trials of
one formula at once with the sampler of the package and writes ranks and intervals; ``again``
samples those that had not converged anew, four times as long, as ``exact`` itself does. ``run`` and
``again`` need NumPy, SciPy and JAX only; after ``--minutes`` of sampling they are content with the
draws they have.

Trajectories run in lock-step, so the longest decides the time: they are cut at forty steps, which
costs draws and no bias.
"""

from __future__ import annotations

import argparse
import inspect
import math
import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.inference import adaptation, hmc
from noisewise.inference.results import ESS, RHAT
from noisewise.models.linear_regression import factor_exact
from noisewise.models.linear_regression.factor_coefficients import draw_coefficients
from noisewise.models.linear_regression.factor_density import FactorData, Moments, moments, target
from noisewise.models.linear_regression.factor_problem import FactorProblem
from noisewise.numerics.convergence import diagnose

CHAINS = 4
LEAPFROG_STEPS = 40
"""Steps of a trajectory at the most (chosen)."""
BLOCK = 48
"""Iterations of one compiled call (chosen)."""
KEPT = 400
"""Draws kept of each chain, evenly spaced (chosen)."""
TOGETHER = 50
"""Trials whose coefficients are drawn together (chosen: memory)."""


@dataclass(frozen=True)
class Trial:
    """A problem with its truth, starting points, and the widths of least squares."""

    cell: tuple[str, int, float]
    problem: FactorProblem
    truth: np.ndarray
    plain: np.ndarray
    starts: np.ndarray


@dataclass(frozen=True)
class Outcome:
    """What a trial's posterior says of its truth; everything by parameter."""

    cell: tuple[str, int, float]
    names: tuple[str, ...]
    rank: np.ndarray
    ends: np.ndarray
    rhat: np.ndarray
    ess: np.ndarray
    plain: np.ndarray

    @property
    def converged(self) -> bool:
        """Whether every parameter meets the package's own bars."""
        return bool((self.rhat < RHAT).all() and (self.ess >= ESS).all())


def make(what: list[str], trials: int, seed: int) -> list[Trial]:
    """Draw the trials; truths of the prior all in one call, which is compiled once."""
    from experiments.factors import calibration
    from noisewise.models.linear_regression.factor_simulate import from_prior

    made = []
    for part in what:
        for cell in calibration.cells_of(part, seed):
            rng = np.random.default_rng([seed, cell.n])
            if part == "prior":
                table = calibration.skewed_table(rng, cell.n)
                drawn = from_prior(rng, calibration.problem_of(table, cell.epsilon, rng), trials)
                many = drawn.problem
                own = [
                    (replace(many, z=many.z[[k]], n=many.n[[k]], keys=None), drawn.truth[k])
                    for k in range(trials)
                ]
                rows = [(p, truth, np.full(len(truth), np.nan)) for p, truth in own]
            else:
                rows = []
                for k in range(trials):
                    rng = np.random.default_rng([seed, cell.n, round(100 * cell.epsilon), k])
                    rows.append(calibration.MAKERS[part](rng, cell))
            for problem, truth, plain in rows:
                starts = [factor_exact.start(rng, problem) for _ in range(CHAINS)]
                key = part, cell.n, cell.epsilon
                made.append(Trial(key, replace(problem, keys=None), truth, plain,
                                  np.stack(starts, axis=1)))  # fmt: skip
    return made


def sample(
    trials: list[Trial], iterations: int, warm: int, seed: int, minutes: float = math.inf
) -> list[Outcome]:
    """Return the outcomes of trials of one formula.

    Args:
        trials: with one structure and one mechanism.
        iterations: kept ones of each chain, before thinning.
        warm: warm-up, in units of that of ``exact``.
        seed: of the chains.
        minutes: of sampling, at the most.
    """
    hmc.MAX_LEAPFROG_STEPS = LEAPFROG_STEPS
    structure = trials[0].problem.structure
    aim = target(structure, trials[0].problem.mechanism)
    spread = jnp.asarray(factor_exact.prior_spread(structure))[:, None]
    problems = [t.problem for t in trials]
    data = FactorData(
        jnp.asarray(np.stack([p.z[0] for p in problems])),
        jnp.asarray([float(p.noise_scale) for p in problems]),
        jnp.asarray([float(p.n[0]) for p in problems]),
    )
    starts = np.stack([t.starts for t in trials])[..., None]
    state = begun(starts, np.asarray(spread))
    # The function inside the compiled one: compiler options are for the outermost alone.
    inner: Any = inspect.unwrap(hmc.advance)
    advance = jax.jit(
        jax.vmap(lambda s, d, key, plan: inner(aim, s, d, spread, key, plan), (0, 0, 0, None))
    )
    windows = tuple(warm * w for w in (100, 150, 120))
    begin = adaptation.in_blocks(
        adaptation.warmup_schedule(rungs=2, rung=25 * warm, windows=windows), BLOCK
    )
    rest = adaptation.in_blocks(adaptation.sampling_schedule(iterations), BLOCK)
    thin = max(1, iterations // KEPT)
    key, kept, clock = jax.random.key(seed), [], time.perf_counter()
    for number, schedule in enumerate(begin + rest):
        keys = jax.random.split(jax.random.fold_in(key, number), len(trials))
        state, (positions, _) = jax.block_until_ready(advance(state, data, keys, schedule))
        if number == len(begin) - 1:
            state = state._replace(log_step=state.averaged)
        if number >= len(begin):
            kept.append(positions[:, thin - 1 :: thin, ..., 0])
        print(f"block {number + 1} of {len(begin + rest)}, {time.perf_counter() - clock:.0f} s",
              flush=True)  # fmt: skip
        if kept and time.perf_counter() - clock > 60 * minutes:
            print("the time is up")
            break
    return _outcomes(trials, jnp.concatenate(kept, axis=1), data, seed)


def begun(starts: np.ndarray, spread: np.ndarray) -> adaptation.ChainState:
    """Return the state of all trials' chains; starts have shape (trial, coordinate, chain, 1)."""
    scales = jnp.asarray(spread)
    states = [adaptation.start(jnp.asarray(x), scales, plain=True) for x in starts]
    stacked: adaptation.ChainState = jax.tree.map(lambda *parts: jnp.stack(parts), *states)
    return stacked


def _outcomes(
    trials: list[Trial], positions: jax.Array, data: FactorData, seed: int
) -> list[Outcome]:
    """Draw coefficients given positions (trial, draw, coordinate, chain), and judge them."""
    structure = trials[0].problem.structure

    # On a CPU one after the other: batched LAPACK calls of one program may wait for each other.
    side_by_side = jax.default_backend() != "cpu"

    def over(f: Callable[..., Moments], along: Any) -> Moments:
        every: Moments = jax.vmap(f)(along) if side_by_side else jax.lax.map(f, along)
        return every

    @jax.jit
    def at(position: jax.Array, own: FactorData) -> Moments:
        def of_trial(both: tuple[jax.Array, FactorData]) -> Moments:
            chains = jnp.moveaxis(both[0], 2, 0)
            return over(lambda c: over(lambda v: moments(v, both[1], structure), c), chains)

        return over(of_trial, (position, own))

    outcomes = []
    for first in range(0, len(trials), TOGETHER):
        # The last share is filled up, so that all have one shape.
        rows = np.minimum(np.arange(first, first + TOGETHER), len(trials) - 1)
        share = jax.tree.map(np.asarray, at(positions[rows], FactorData(*(a[rows] for a in data))))
        for k, trial in enumerate(trials[first : first + TOGETHER]):
            own = Moments(*(part[k] for part in share))
            drawn, _ = draw_coefficients(
                np.random.default_rng([seed, first + k]), trial.problem, own
            )
            rhat, ess = diagnose(drawn[:, None])
            flat = drawn.reshape(len(drawn), -1)
            outcomes.append(Outcome(
                trial.cell, (*trial.problem.x, "intercept", "sigma2"),
                (flat < trial.truth[:, None]).mean(axis=1),
                np.quantile(flat, [0.025, 0.975], axis=1), rhat[:, 0], ess[:, 0], trial.plain,
            ))  # fmt: skip
    return outcomes


def by_structure(trials: list[Trial]) -> list[list[int]]:
    """Return the indices of trials that can run side by side."""
    places: dict[Any, list[int]] = {}
    for i, trial in enumerate(trials):
        places.setdefault(trial.problem.structure, []).append(i)
    return list(places.values())


def summary(outcomes: list[Outcome]) -> str:
    """Return coverage and median widths over least squares', cell by cell."""
    lines = []
    for cell in dict.fromkeys(o.cell for o in outcomes):
        own = [o for o in outcomes if o.cell == cell]
        rank = np.array([o.rank for o in own])
        held = (rank >= 0.025) & (rank <= 0.975)
        width = np.array([(o.ends[1] - o.ends[0]) / o.plain for o in own])
        apart = np.mean([not o.converged for o in own])
        what, n, epsilon = cell
        lines.append(f"{what}: n {n}, epsilon {epsilon:g}, {len(own)} trials, not converged "
                     f"{apart:.3f}; all coefficients {held[:, :-1].mean():.3f}")  # fmt: skip
        for i, name in enumerate(own[0].names):
            known = width[np.isfinite(width[:, i]), i]
            wide = f"  over least squares' {np.median(known):.2f}" if len(known) else ""
            lines.append(f"  {name:16} coverage {held[:, i].mean():.3f}{wide}")
    return "\n".join(lines)


def main() -> None:
    """Make trials, sample them, or sample again those that had not converged."""
    parser = argparse.ArgumentParser("python -m experiments.factors.batched")
    parser.add_argument("step", choices=("make", "run", "again"))
    parser.add_argument("trials_file", type=Path)
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--what", nargs="*", default=["fixed", "prior", "rare", "widths"])
    parser.add_argument("--trials", type=int, default=400)
    parser.add_argument("--iterations", type=int)
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    if given.step == "make":
        given.trials_file.write_bytes(pickle.dumps(make(given.what, given.trials, given.seed)))
        return
    if given.out is None:
        parser.error("name the file for the outcomes")
    # Files that this program wrote: pickles of others are never read.
    trials: list[Trial] = pickle.loads(given.trials_file.read_bytes())  # noqa: S301
    again = given.step == "again"
    outcomes: list[Any] = [None] * len(trials)
    if again:
        outcomes = pickle.loads(given.out.read_bytes())  # noqa: S301
    for places in by_structure(trials):
        left = [i for i in places if outcomes[i] is None or not outcomes[i].converged]
        if left:
            found = sample(
                [trials[i] for i in left], given.iterations or (6400 if again else 1600),
                2 if again else 1, given.seed + again, given.minutes,
            )  # fmt: skip
            for i, outcome in zip(left, found, strict=True):
                outcomes[i] = outcome
    given.out.write_bytes(pickle.dumps(outcomes))
    print(summary(outcomes))


if __name__ == "__main__":
    main()
