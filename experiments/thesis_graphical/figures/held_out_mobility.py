"""Figure 3.6: held-out log-likelihood of a chain for wifi data, by ε and population size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from experiments.graphical_models import baselines, dpsgd
from experiments.graphical_models.accuracy import timed
from experiments.reproduce.canvas import grid
from experiments.reproduce.figure import Figure
from experiments.reproduce.looks import legend, style
from experiments.reproduce.store import TrialStore
from experiments.thesis_graphical.wifi import People, people
from noisewise.models.graphical_model import collective_em, maximum_likelihood
from noisewise.models.graphical_model.fitted_model import GraphicalModel, fitted_model
from noisewise.models.graphical_model.problem import TablesProblem

HINDSIGHT = "naive, best λ in hindsight"
RUN_ON = "cgm, EM run on"
WIDE = 50.0
"""Spread of the potentials in cgm's stopping rule that stops nothing: EM as the thesis has it."""


def run(settings: Mapping[str, Any], trials: TrialStore) -> pd.DataFrame:
    """N, epsilon, trial, method: log-likelihood of a held-out hour, seconds of compiled fits."""
    rows: list[Mapping[str, Any]] = []
    for n in settings["sizes"]:
        for epsilon in settings["epsilons"]:
            for trial in range(settings["trials"]):
                key = {"n": n, "epsilon": epsilon, "trial": trial}
                rows += trials.cell(key, lambda k=key: compared(settings, **k))
    return pd.DataFrame(rows)


def compared(
    settings: Mapping[str, Any], n: int, epsilon: float, trial: int
) -> list[Mapping[str, Any]]:
    """One release of the first n learners."""
    given = people(settings["users"], settings["places"], settings["seed"])
    rng = np.random.default_rng([settings["seed"], n, round(1e6 * epsilon), trial])
    problem = given.released(n, epsilon, 2, rng)
    printed = given.released(n, epsilon, 1, rng)
    exact = given.released(n, np.inf, 2, rng)
    fits: dict[str, Callable[[TablesProblem], GraphicalModel]] = {
        "naive": maximum_likelihood.run,
        "cgm": collective_em.run,
        RUN_ON: lambda p: collective_em.run(p, spread=WIDE),
    }
    rows: list[Mapping[str, Any]] = []
    for name, fit in fits.items():
        model, seconds = timed(fit, problem)
        rows.append({"method": name, "score": given.score(model), "seconds": seconds})
        rows.append({"method": f"{name}, |C|", "score": given.score(fit(printed))})
    tried = [given.score(maximum_likelihood.run(problem, lam)) for lam in settings["lambdas"]]
    rows.append({"method": HINDSIGHT, "score": max([*tried, rows[0]["score"]])})
    reference = baselines.matched(exact, exact.y / n, maximum_likelihood.DEFAULT_LAMBDA)
    rows.append({"method": "non-private", "score": given.score(reference)})
    rows.append({"method": "DP-SGD", **stochastic(given, problem, n, epsilon, rng, settings)})
    shares = np.concatenate([rng.dirichlet(np.ones(w.stop - w.start)) for w in exact.model.slices])
    rows.append({"method": "random", "score": given.score(baselines.matched(exact, shares, 1e-3))})
    return rows


def stochastic(
    given: People, problem: TablesProblem, n: int, epsilon: float, rng: np.random.Generator,
    settings: Mapping[str, Any],
) -> dict[str, float]:  # fmt: skip
    """DP-SGD on the same people."""
    own, kind = given.learners[:n], settings["accountant"]
    found = dpsgd.tuned(
        lambda rate: dpsgd.fit(given.model, given.place, own, epsilon, rng, rate, kind),
        lambda psi: given.score(fitted_model(problem, psi, "dp-sgd", {}, True)),
        settings["rates"],
    )
    return {"score": found.score, "rate": found.rate, "seconds": found.seconds}


def measure(table: pd.DataFrame) -> dict[str, float]:
    """Differences of log-likelihoods in nats per hour, cell by cell (means over trials)."""
    by = ["n", "epsilon"]
    score = table.pivot_table(index=by, columns="method", values="score")
    times = table.pivot_table(index=by, columns="method", values="seconds", aggfunc="median")
    cgm_by_n = score["cgm"].unstack("epsilon")
    return {
        "cgm_minus_naive_worst": float((score["cgm"] - score["naive"]).min()),
        "cgm_minus_hindsight_worst": float((score["cgm"] - score[HINDSIGHT]).min()),
        "run_on_minus_naive_worst": float((score[RUN_ON] - score["naive"]).min()),
        "run_on_minus_hindsight_worst": float((score[RUN_ON] - score[HINDSIGHT]).min()),
        "run_on_minus_cgm_mean": float((score[RUN_ON] - score["cgm"]).mean()),
        "run_on_minus_dpsgd_add_remove_mean": float(
            (score[f"{RUN_ON}, |C|"] - score["DP-SGD"]).mean()
        ),
        "cgm_minus_dpsgd_worst": float((score["cgm"] - score["DP-SGD"]).min()),
        "naive_minus_dpsgd_worst": float((score["naive"] - score["DP-SGD"]).min()),
        "cgm_gain_with_n": float(cgm_by_n.diff().min().min()),
        "cgm_gain_with_epsilon": float(cgm_by_n.diff(axis=1).min().min()),
        "cgm_minus_random_worst": float((score["cgm"] - score["random"]).min()),
        "naive_minus_random_worst": float((score["naive"] - score["random"]).min()),
        "dpsgd_minus_random_worst": float((score["DP-SGD"] - score["random"]).min()),
        "cgm_slower": float((times["cgm"] / times["naive"]).median()),
        "dpsgd_slower": float((times["DP-SGD"] / times["naive"]).median()),
        "printed_gain": float((score["cgm, |C|"] - score["cgm"]).mean()),
    }


def draw(table: pd.DataFrame) -> Any:
    """A panel for each population size."""
    sizes = sorted(table["n"].unique())
    caption = (
        "Generated log of the published form (the real one is not public): hours of ten-minute "
        "steps, 'none' when unseen; time-homogeneous chain; a person weighs one. Noise 2|C|/ε "
        "(E3). naive: λ = 1e-5; hindsight and DP-SGD's step size are picked on the held-out people."
    )
    title = "Held-out log-likelihood of mobility data (thesis Fig. 3.6)"
    figure, axes = grid(1, len(sizes), title, caption, sharey=True, width=3.8, height=3.4)
    for axis, n in zip(axes[0], sizes, strict=True):
        for method, group in table[table["n"] == n].groupby("method", sort=False):
            if not str(method).endswith("|C|"):
                mean = group.groupby("epsilon")["score"].mean()
                axis.plot(mean.index, mean, **style(str(method)))
        shown = table.loc[table["method"].isin(["cgm", "random", "non-private"]), "score"]
        low, high = shown.min(), shown.max()
        axis.set_ylim(low - 0.6 * (high - low), high + 0.05 * (high - low))
        axis.set(xscale="log", xlabel="ε", title=f"N = {n:,} people")
    axes[0, 0].set_ylabel("log-likelihood of a held-out hour, nats")
    legend(figure, axes)
    return figure


FIGURE = Figure(
    "graphical-3.6", "thesis_graphical", "Held-out likelihood of mobility data", run, draw, measure
)
