"""The social-mobility case study, pooled beside tract by tract; every result is a line of JSON.

python -m experiments.pooling.casestudy [--tracts 3108] [--seed 41] [--epsilon 4] [--draws 500]
    [--methods pooled "exact, default prior" …] [--every-tract] [--out FILE]

Tracts, release and target are those of ``experiments.thesis_regression``: the line at a parents'
rank of a quarter. ``--tracts 73000 --seed 42`` is the nation; ``--every-tract`` keeps tracts of
extreme incomes, and simulates all of them. Runs without the owner's half, on a GPU where there is
one; ``--single-launches`` starts its kernels one by one, not as a graph.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from experiments.regression_paper.tables import WAYS, Sums, release, sums
from experiments.thesis_regression import casestudy, oi
from experiments.thesis_regression.tracts import AT, Tracts, filtered, generated
from noisewise import priors
from noisewise.inference.population import PopulationPosterior, PublicFeatures
from noisewise.models.linear_regression import exact, pooled_exact, pooled_posterior
from noisewise.models.linear_regression.problem import (
    RegressionProblem,
    default_covariates,
    default_response,
)

Row = dict[str, Any]
"""What one method gave."""
Draws = Mapping[str, np.ndarray]
"""Posterior draws (tract, chain, draw) by parameter."""
WAY = WAYS["ours"]
"""Noise of the proved sensitivity, for every method."""
POOLED, DEFAULT, THESIS = "pooled", "exact, default prior", "exact"
METHODS = (POOLED, DEFAULT, THESIS, casestudy.MATCHED, "gibbs-update", "gibbs-noisy", "naive",
           casestudy.OI)  # fmt: skip
"""All methods; ``exact`` alone has the thesis' prior, as the paper's methods have."""
GROUPS_AT_ONCE = 4096
"""Tracts whose draws are summarised together (chosen)."""
LEVELS = (0.95, 0.9, 0.5)
"""Of intervals."""
MEDIANS = (DEFAULT,)
"""Methods whose point is the median: by itself, under a weak prior, a tract may be anything, and
its posterior has hardly a mean."""


def said(row: Row, out: Path | None) -> None:
    """Print a line, and append it to a file."""
    line = json.dumps(row)
    print(line, flush=True)
    if out is not None:
        with out.open("a") as file:
            file.write(line + "\n")


def memory() -> Row:
    """Return the largest memory so far, of the device and of the process, in GiB."""
    stats = jax.local_devices()[0].memory_stats() or {}
    unit = 2.0**30
    return {
        "device": jax.local_devices()[0].device_kind,
        "device_peak_gib": round(stats.get("peak_bytes_in_use", 0) / unit, 2),
        "process_peak_gib": round(
            resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / unit, 2
        ),
    }


def noise_of(settings: Mapping[str, Any]) -> np.random.Generator:
    """Return the randomness of the release, that of the reproduced case study."""
    seeds = [settings["seed"], round(1000 * settings["epsilon"]), *WAY.name.encode()]
    return np.random.default_rng(seeds)


def published(exact_sums: Sums, settings: Mapping[str, Any]) -> RegressionProblem:
    """Return what analysts see, with the default prior."""
    response, covariates = default_response(WAY.units), default_covariates(WAY.units)
    problem = release(
        noise_of(settings), WAY, exact_sums, settings["epsilon"], response, covariates
    )
    return replace(problem, scale_free=True)


def pooled(
    problem: RegressionProblem, settings: Mapping[str, Any], tick: Callable[[Row], None]
) -> tuple[Draws, Row]:
    """Return the draws of pooled tracts, and what there is to say of their population."""
    ones = np.ones((len(problem.n), 1))
    question = pooled_posterior.PooledQuestion(problem, PublicFeatures(ones), priors.Population())
    begin = time.perf_counter()

    def progress(sweeps: int, most: int) -> None:
        if sweeps % 500 == 0:
            tick({"sweeps": sweeps, "seconds": round(time.perf_counter() - begin, 1)})

    post = pooled_posterior.run(
        question, settings["seed"], settings["chains"], settings["draws"], progress
    )
    population = post.population
    if population is None:
        raise RuntimeError("no population")
    details, chains = post.details, settings["chains"]
    row: Row = {
        "sweeps": details["sweeps"], "failures": details["failures"],
        "warm_up_seconds": details["seconds"][0], "sweep_seconds": details["seconds"][1],
        "divergent_share": float(details["divergences"].mean()) / details["sweeps"] / chains,
        "tracts_not_converged": len(post.unconverged), **spoken(population),
    }  # fmt: skip
    return post.draws, row


def spoken(population: PopulationPosterior) -> Row:
    """Return the population's convergence and where it lies."""
    table = population.summary()
    return {
        "population_rhat": round(float(table["rhat"].max()), 4),
        "population_ess": round(float(table["ess"].min())),
        "population": {
            name: [round(float(row[c]), 4) for c in ("mean", "lower", "upper")]
            for name, row in table.iterrows()
        },
        "judgement": population.judgement,
    }


def drawn(
    method: str, problem: RegressionProblem, exact_sums: Sums, settings: Mapping[str, Any],
    tick: Callable[[Row], None],
) -> tuple[Draws, Row]:  # fmt: skip
    """Return a method's draws, and what else there is to say."""
    if method == POOLED:
        return pooled(problem, settings, tick)
    if method == DEFAULT:
        post = exact.run(problem, settings["seed"], settings["chains"], settings["draws"])
        return post.draws, {"tracts_not_converged": len(post.unconverged)}
    noise = noise_of(settings)
    draws = casestudy.draws(method, WAY, exact_sums, settings["epsilon"], noise, settings)
    return draws, {"tracts_of_few_draws": int((draws["ess"] < 400).sum())}


def lines(draws: Draws, method: str) -> dict[str, np.ndarray]:
    """Return point and interval ends of the line at ``AT`` and of the slope, tract by tract."""
    tails = sorted({(1 + sign * level) / 2 for level in LEVELS for sign in (-1, 1)})
    parts: dict[str, list[np.ndarray]] = {"line": [], "slope": []}
    for begin in range(0, len(draws["x"]), GROUPS_AT_ONCE):
        some = slice(begin, begin + GROUPS_AT_ONCE)
        slope = np.asarray(draws["x"][some], float)
        line = slope * AT + draws["intercept"][some]
        for name, values in (("line", line), ("slope", slope)):
            flat = values.reshape(len(values), -1)
            point = np.median(flat, axis=1) if method in MEDIANS else flat.mean(axis=1)
            parts[name].append(np.vstack([point, np.quantile(flat, tails, axis=1)]))
    return {name: np.concatenate(part, axis=1) for name, part in parts.items()}


def scores(found: np.ndarray, truth: np.ndarray, reference: np.ndarray) -> Row:
    """Return errors, deciles and coverage of one quantity: point, then interval ends if any."""
    point = found[0]
    many = max(1, len(truth) // 10)

    def kept(sign: int) -> float:
        top = (set(np.argsort(sign * v)[:many].tolist()) for v in (truth, point))
        return round(len(set.intersection(*top)) / many, 4)

    row: Row = {
        "mean_absolute_error": float(np.abs(point - truth).mean()),
        "rmse": float(np.sqrt(((point - truth) ** 2).mean())),
        "from_the_records_fit": float(np.abs(point - reference).mean()),
        "top_decile": kept(-1), "bottom_decile": kept(1),
    }  # fmt: skip
    ends = found[1:]
    for i, level in enumerate(LEVELS if len(ends) else ()):
        low, high = ends[i], ends[-1 - i]
        row[f"cover {level:.0%}"] = float(((low <= truth) & (truth <= high)).mean())
        row[f"width {level:.0%}"] = float((high - low).mean())
    return {k: round(v, 5) for k, v in row.items()}


def run(settings: Mapping[str, Any], out: Path | None) -> None:
    """Simulate the release, and say what every method makes of it."""
    every = generated(settings["tracts"], settings["seed"])
    known = every if settings["every_tract"] else filtered(every)
    tracts, truth = len(known.names), _truth(known)
    exact_sums = sums(WAY.boxed(known.pir), WAY.boxed(known.kir), known.tract, tracts)
    plain = sums(known.pir, known.kir, known.tract, tracts)
    problem = published(exact_sums, settings)
    said({**settings, "tracts": tracts, "people": len(known.pir), **memory()}, out)
    fitted = {"line": oi.predictions(plain.gram, plain.n), "slope": _slopes(plain)}
    for method in settings["methods"]:
        begin = time.perf_counter()
        extra: Row = {}
        if method == casestudy.OI:
            noise = noise_of(settings)
            found = {"line": oi.released(noise, known, plain.gram, settings["epsilon"])[None]}
        else:
            draws, extra = drawn(method, problem, exact_sums, settings, lambda row: said(row, out))
            extra["seconds"] = round(time.perf_counter() - begin, 1)
            said({"method": method, **extra, **memory()}, out)
            found = lines(draws, method)
            del draws
        for what, values in found.items():
            own = scores(values, truth[what], fitted[what])
            said({"method": method, "of": what, **own}, out)
        said({"method": method, "all_seconds": round(time.perf_counter() - begin, 1)}, out)


def _truth(known: Tracts) -> dict[str, np.ndarray]:
    if known.truth is None:
        raise RuntimeError("tracts were not generated")
    slope, intercept, _ = known.truth.T
    return {"line": intercept + slope * AT, "slope": slope}


def _slopes(plain: Sums) -> np.ndarray:
    """Return slopes of least squares."""
    xx, xy, _, x, y = plain.gram.T
    return np.asarray((xy - x * y / plain.n) / (xx - x**2 / plain.n))


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(prog="python -m experiments.pooling.casestudy")
    parser.add_argument("--tracts", type=int, default=3108)
    parser.add_argument("--seed", type=int, default=41)
    parser.add_argument("--epsilon", type=float, default=4.0)
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=(POOLED, DEFAULT))
    parser.add_argument("--every-tract", action="store_true")
    parser.add_argument("--single-launches", action="store_true")
    parser.add_argument("--out", type=Path)
    settings = vars(parser.parse_args())
    out = settings.pop("out")
    if settings.pop("single_launches"):
        plain: Any = pooled_exact.advance
        pooled_exact.advance = jax.jit(plain.__wrapped__, static_argnums=0)
    run(settings, out)


if __name__ == "__main__":
    main()
