"""``bayes``: KL(truth‖model) against hindsight, and how often 95 % intervals cover the truth.

    python -m experiments.graphical_models.coverage prepare sample judge --work FOLDER

Three stages, so that each can run where it is fast: estimates, metrics and comparisons on many CPU
cores (``--share i/k`` takes every k-th release), all chains of one graph in one program on a GPU.
The releases are those of ``accuracy``. One JSON line per release: coverage over all cells of the
clique marginals, and of single columns, before and after the correction of
``fisher_information.py``.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.infer.hmc import hmc

from experiments.graphical_models import baselines
from experiments.graphical_models.accuracy import Cell, options, releases
from noisewise.inference.adaptation import TARGET_ACCEPTANCE
from noisewise.models.graphical_model import nuts
from noisewise.models.graphical_model.fitted_model import GraphicalModel
from noisewise.models.graphical_model.marginal_oracle import Oracle
from noisewise.models.graphical_model.posterior import GraphicalPosterior

STAGES = ("prepare", "sample", "judge")
CHAINS, DRAWS = 2, 250
HINDSIGHT = (10_000,)
"""Sizes at which the naive fit is tuned again with the truth in hand: it is slow, and ``accuracy``
has it for the same releases."""


def main() -> None:
    """The stages asked for, in order."""
    parse = options(out=False)
    parse.add_argument("stages", nargs="+", choices=STAGES)
    parse.add_argument("--work", required=True, type=Path)
    parse.add_argument("--share", default="0/1")
    parse.add_argument("--law", default="log-gamma")
    parse.add_argument("--draws", type=int, default=DRAWS)
    words = parse.parse_args()
    words.work.mkdir(parents=True, exist_ok=True)
    for stage in words.stages:
        {"prepare": prepare, "sample": sample, "judge": judge}[stage](words)


def chosen(words: argparse.Namespace) -> Iterator[tuple[Path, Cell]]:
    """This process's releases, with the beginning of their files' names."""
    part, parts = map(int, words.share.split("/"))
    number = 0
    for trial in range(words.trials):
        for kind in words.graphs:
            for cell in releases(kind, trial, words.seed, words.sizes):
                if number % parts == part:
                    yield words.work / f"{kind}-{trial}-{cell.n}-{cell.epsilon}", cell
                number += 1


def prepare(words: argparse.Namespace) -> None:
    """Estimate and metric of each release."""
    for stem, cell in chosen(words):
        ready = nuts.prepare(cell.problem)
        leaves = jax.tree.leaves(ready.data)
        start: dict[str, Any] = {"white": ready.white, "theta": ready.start.potentials}
        np.savez(stem.with_name(stem.name + ".ready.npz"), *map(np.asarray, leaves), **start)


def reloaded(stem: Path, cell: Cell) -> nuts.Prepared:
    """What ``prepare`` left."""
    with np.load(stem.with_name(stem.name + ".ready.npz")) as held:
        leaves = [jnp.asarray(held[f"arr_{i}"]) for i in range(len(held.files) - 2)]
        white, theta = jnp.asarray(held["white"]), held["theta"]
    blocks = list(zip(leaves[5::2], leaves[6::2], strict=True))
    start = GraphicalModel(cell.true.structure, cell.true.levels, theta, "cgm", cell.n)
    parts: list[Any] = [*leaves[:5], blocks]
    return nuts.Prepared(nuts.SamplerData(*parts), start, white)


def sample(words: argparse.Namespace) -> None:
    """All releases of one graph at once."""
    waiting: dict[Any, list[tuple[Path, Cell]]] = {}
    for stem, cell in chosen(words):
        waiting.setdefault(cell.problem.oracle, []).append((stem, cell))
    for oracle, found in waiting.items():
        ready = [reloaded(*one) for one in found]
        data = jax.tree.map(lambda *parts: jnp.stack(parts), *[r.data for r in ready])
        keys = jax.random.split(jax.random.key(words.seed), 2 * len(found) * CHAINS)
        keys = keys.reshape(2, len(found), CHAINS)
        white = jnp.stack([r.white for r in ready])[:, None]
        away = partial(jax.random.normal, shape=white.shape[-1:])
        starts = white + jax.vmap(jax.vmap(away))(keys[0])
        begun = time.perf_counter()
        drawn = draw(oracle, words.law, words.draws, data, starts, keys[1])
        jax.block_until_ready(drawn)
        print(f"{len(found)} releases, {time.perf_counter() - begun:.0f} s", flush=True)
        for number, (stem, _) in enumerate(found):
            q, steps, diverging = (np.asarray(part[number]) for part in drawn)
            np.savez(stem.with_name(stem.name + ".drawn.npz"), q=q, steps=steps, lost=diverging)


@partial(jax.jit, static_argnums=(0, 1, 2))
def draw(
    oracle: Oracle, law: str, draws: int, data: nuts.SamplerData, starts: jax.Array, keys: jax.Array
) -> Any:
    """The sampler of ``bayes``, over releases and chains: draws, leapfrog steps, divergences."""

    def chain(own: nuts.SamplerData, start: jax.Array, key: jax.Array) -> Any:
        begin, move = hmc(
            potential_fn_gen=lambda d: lambda q: -nuts.log_posterior(oracle, "laplace", law, d, q)
        )
        state = begin(
            start, nuts.WARM_UP, nuts.step_size(oracle), adapt_mass_matrix=False,
            target_accept_prob=TARGET_ACCEPTANCE, max_tree_depth=nuts.MAX_TREE_DEPTH,
            model_args=(own,), rng_key=key,
        )  # fmt: skip

        def step(state: Any, _: None) -> Any:
            state = move(state, model_args=(own,))
            return state, (state.z, state.num_steps, state.diverging)

        state = jax.lax.fori_loop(0, nuts.WARM_UP, lambda _, s: step(s, None)[0], state)
        return jax.lax.scan(step, state, None, length=draws)[1]

    return jax.vmap(jax.vmap(chain, in_axes=(None, 0, 0)))(data, starts, keys)


def judge(words: argparse.Namespace) -> None:
    """Coverage and divergence of each release."""
    part = words.share.replace("/", "-of-")
    with (words.work / f"judged-{part}.jsonl").open("a", encoding="utf-8") as out:
        for stem, cell in chosen(words):
            out.write(json.dumps(judged(stem, cell, words)) + "\n")
            out.flush()


def judged(stem: Path, cell: Cell, words: argparse.Namespace) -> dict[str, Any]:
    """One line."""
    with np.load(stem.with_name(stem.name + ".drawn.npz")) as held:
        q, steps, lost = jnp.asarray(held["q"]), held["steps"], held["lost"]
    ready, true = reloaded(stem, cell), cell.true
    line = {
        "graph": cell.graph, "trial": cell.trial, "n": cell.n, "epsilon": cell.epsilon,
        "seed": words.seed, "law": words.law, "uniform": true.kl(baselines.uniform(true)),
        "cgm": true.kl(ready.start), "leapfrog_steps": float(steps.mean()),
        "divergences": int(lost.sum()),
    }  # fmt: skip
    for name, corrected in (("", True), ("_as_drawn", False)):
        made = nuts.finish(cell.problem, ready, q, {}, corrected=corrected)
        line |= {
            f"bayes{name}": true.kl(made.model),
            f"coverage{name}": float(np.mean(covered(true, made))),
            f"single{name}": float(np.mean([single(true, made, v) for v in true.columns])),
            f"rhat{name}": made.rhat,
            f"ess{name}": made.ess,
        }
        line.setdefault("told", made.details["shared_sampling_noise"])
        line.setdefault("tau", float(made.tau.mean()))
    if cell.n in HINDSIGHT:
        line["hindsight"], line["lambda"] = baselines.hindsight(cell.problem, true)
    return line


def covered(true: GraphicalModel, posterior: GraphicalPosterior) -> np.ndarray:
    """Cell by cell of the clique marginals."""
    found = []
    for clique, mu in true.clique_marginals().items():
        low, high = posterior.interval_array(clique)
        found.append(((low <= mu) & (mu <= high)).ravel())
    return np.concatenate(found)


def single(true: GraphicalModel, posterior: GraphicalPosterior, column: str) -> float:
    """The same for one column's own marginal."""
    low, high = posterior.interval_array(column)
    mu = true.marginal_array(column)
    return float(np.mean((low <= mu) & (mu <= high)))


if __name__ == "__main__":
    main()
