"""Figure 3.4: KL(truth‖model) by population size, for three kinds of graph and every method."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from experiments.graphical_models import baselines, dpsgd
from experiments.graphical_models.accuracy import timed
from experiments.reproduce.figure import Figure
from experiments.reproduce.looks import named, panels, style
from experiments.reproduce.store import TrialStore
from experiments.thesis_graphical import setups
from experiments.thesis_graphical.setups import Setup
from noisewise.models.graphical_model import collective_em, maximum_likelihood
from noisewise.models.graphical_model.problem import TablesProblem

WORDS = {
    "chain": "first-order chain",
    "third-order": "third-order chain",
    "erdos-renyi": "ER graph",
}
HINDSIGHT = "naive, best λ in hindsight"
NOISY = 10_000
"""Up to here privacy noise dominates in every panel."""


def run(settings: Mapping[str, Any], trials: TrialStore) -> pd.DataFrame:
    """Graph, N, epsilon, population, replication, method: KL, and seconds of compiled fits."""
    rows: list[Mapping[str, Any]] = []
    for kind, sizes in settings["graphs"].items():
        for population in range(settings["populations"]):
            for n in sizes:
                for epsilon in settings["epsilons"]:
                    key = {"graph": kind, "population": population, "n": n, "epsilon": epsilon}
                    rows += trials.cell(key, lambda k=key: compared(settings, **k))
    for nodes in settings["other_nodes"]:
        for population in range(settings["populations"]):
            other = {"graph": f"chain of {nodes}", "population": population}
            rows += trials.cell(other, lambda k=nodes, p=population: resized(settings, k, p))
    return pd.DataFrame(rows)


def resized(settings: Mapping[str, Any], nodes: int, population: int) -> list[Mapping[str, Any]]:
    """A shorter or a longer chain, at one N and ε."""
    epsilon = settings["epsilons"][-1]
    setup = setups.of(settings, "chain", population, NOISY, nodes)
    problem = setup.released(epsilon)
    return [
        {"n": NOISY, "epsilon": epsilon, "method": name, "kl": setup.true.kl(fit(problem))}
        for name, fit in (("naive", maximum_likelihood.run), ("cgm", collective_em.run))
    ]


def compared(
    settings: Mapping[str, Any], graph: str, population: int, n: int, epsilon: float
) -> list[Mapping[str, Any]]:
    """One population: replications of the private methods, references once."""
    setup = setups.of(settings, graph, population, n)
    first = setup.released(epsilon)
    rng = np.random.default_rng([*setup.stream, 7])
    shares = np.concatenate([rng.dirichlet(np.ones(w.stop - w.start)) for w in first.model.slices])
    references = {
        "non-private": baselines.matched(first, setup.exact / n, maximum_likelihood.DEFAULT_LAMBDA),
        "random": baselines.matched(first, shares, settings["lambdas"][-1]),
    }
    rows: list[Mapping[str, Any]] = [
        {"method": name, "kl": setup.true.kl(model)} for name, model in references.items()
    ]
    rows.append({"method": "DP-SGD", **stochastic(setup, epsilon, rng, settings)})
    for again in range(settings["replications"]):
        problem = setup.released(epsilon, again=again)
        rows += [{"replication": again, **row} for row in private(setup, problem, settings)]
        if graph in settings["printed"]:
            printed = setup.released(epsilon, 1, again)
            rows += [
                {"replication": again, "method": f"{name}, |C|", "kl": setup.true.kl(fit(printed))}
                for name, fit in (("naive", maximum_likelihood.run), ("cgm", collective_em.run))
            ]
    return rows


def private(
    setup: Setup, problem: TablesProblem, settings: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The methods that see the noisy tables only (and one that also sees the truth)."""
    found: list[dict[str, Any]] = []
    for name, fit in (("naive", maximum_likelihood.run), ("cgm", collective_em.run)):
        model, seconds = timed(fit, problem)
        found.append({"method": name, "kl": setup.true.kl(model), "seconds": seconds})
    best, _ = baselines.hindsight(problem, setup.true, settings["lambdas"])
    found.append({"method": HINDSIGHT, "kl": min(best, found[0]["kl"])})
    if len(problem.model.cliques) == len(problem.model.variables) - 1:
        model, seconds = timed(lambda p: collective_em.run(p, "nlbp"), problem)
        found.append({"method": "cgm, NLBP", "kl": setup.true.kl(model), "seconds": seconds})
    return found


def stochastic(
    setup: Setup, epsilon: float, rng: np.random.Generator, settings: Mapping[str, Any]
) -> dict[str, float]:
    """DP-SGD on as many records of the same truth."""
    model, true = setup.true.structure, setup.true
    people = dpsgd.features(model, true.sample(setup.n, seed=int(rng.integers(2**31))))
    place = np.arange(model.dimension)
    found = dpsgd.tuned(
        lambda rate: dpsgd.fit(model, place, people, epsilon, rng, rate, settings["accountant"]),
        lambda theta: -true.kl(dataclasses.replace(true, potentials=theta, method="dp-sgd")),
        settings["rates"],
    )
    return {"kl": -found.score, "rate": found.rate, "seconds": found.seconds}


def measure(table: pd.DataFrame) -> dict[str, float]:
    """Ratios of medians, cell by cell; "noisy" cells have at most ``NOISY`` records."""
    by = ["graph", "n", "epsilon"]
    other = table[~table["graph"].isin(WORDS)].pivot_table(
        index=by, columns="method", values="kl", aggfunc="median"
    )
    table = table[table["graph"].isin(WORDS)]
    kl = table.pivot_table(index=by, columns="method", values="kl", aggfunc="median")
    times = table.pivot_table(index=by, columns="method", values="seconds", aggfunc="median")
    noisy = kl.index.get_level_values("n") <= NOISY
    to_naive, to_best = kl["cgm"] / kl["naive"], kl["cgm"] / kl[HINDSIGHT]
    chain = kl.xs("chain")
    nlbp = chain["cgm, NLBP"] / chain["cgm"]
    slower = (times["cgm"] / times["naive"]).groupby("graph").median()
    return {
        "cgm_over_naive_worst": float(to_naive.max()),
        "cgm_over_naive_noisy_worst": float(to_naive[noisy].max()),
        "cgm_over_naive_other_lengths_worst": float((other["cgm"] / other["naive"]).max()),
        "cgm_over_hindsight_worst": float(to_best.max()),
        "cgm_over_hindsight_median": float(to_best.median()),
        "cgm_over_dpsgd_worst": float((kl["cgm"] / kl["DP-SGD"]).max()),
        "cgm_over_dpsgd_add_remove_worst": float((kl["cgm, |C|"] / kl["DP-SGD"]).max()),
        "naive_over_random_worst": float((kl["naive"] / kl["random"]).max()),
        "cgm_over_random_worst": float((kl["cgm"] / kl["random"]).max()),
        "nlbp_over_dual_worst": float(np.abs(np.log(nlbp)).max()),
        "cgm_slower_third_order": float(slower["third-order"]),
        "cgm_slower_erdos_renyi": float(slower["erdos-renyi"]),
        "dpsgd_not_attained": float(kl["DP-SGD"].isna().mean()),
        "dpsgd_slower": float((times["DP-SGD"] / times["naive"]).median()),
        "printed_over_ours": float((chain["cgm, |C|"] / chain["cgm"]).median()),
    }


def draw(table: pd.DataFrame) -> Any:
    """A row for each kind of graph, a column for each ε."""
    kinds = [k for k in WORDS if (table["graph"] == k).any()]
    epsilons = sorted(table["epsilon"].unique())
    caption = (
        f"Ten nodes of ten states; {table['population'].nunique()} populations, "
        f"{int(table['replication'].max()) + 1} releases of each; medians. Noise 2|C|/ε (E3). "
        "naive: λ = 1e-5. Hindsight picks λ by the truth. DP-SGD: (ε, 1/N), its step size picked "
        "by the truth."
    )

    def plot(axis: Any, method: str, own: pd.DataFrame) -> None:
        median = own.groupby("n")["kl"].median()
        axis.plot(median.index, median, **style(method))
        axis.set(yscale="log")

    figure, axes = panels(
        table[~table["method"].str.endswith("|C|")], ("graph", kinds), ("epsilon", epsilons), plot,
        lambda kind, epsilon: f"{WORDS[kind]}, ε = {epsilon:g}",
        "Divergence from the truth by population size (thesis Fig. 3.4)", caption, sharey="row",
    )  # fmt: skip
    named(axes, "population size N", "KL(truth‖model), nats")
    return figure


FIGURE = Figure(
    "graphical-3.4", "thesis_graphical", "Divergence from the truth", run, draw, measure
)
