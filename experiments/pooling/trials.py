"""Trials of the experiments with pooled groups, and what is counted of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

Row = dict[str, Any]
"""What one trial gave."""
LINE_AT = -0.5
"""A parents' rank of a quarter, in the box."""


def scores(theta: np.ndarray, truth: np.ndarray, name: str, line_at: float = LINE_AT) -> Row:
    """Return errors, coverage, widths and deciles of draws (draw, 2, tract) of coefficients."""
    row: Row = {}
    for what, draws, true in (
        ("slope", theta[:, 0], truth[:, 0]),
        ("line", 0.5 * (theta[:, 0] * line_at + theta[:, 1]), 0.5 * (truth @ [line_at, 1.0])),
    ):
        low, q1, q3, high = np.quantile(draws, [0.025, 0.25, 0.75, 0.975], axis=0)
        # By itself a tract may be anything: its posterior has hardly a mean.
        mean = np.median(draws, axis=0) if name == "alone" else draws.mean(axis=0)
        many = max(1, len(true) // 10)
        top = set(np.argsort(-true)[:many].tolist()) & set(np.argsort(-mean)[:many].tolist())
        row[what] = {
            "rmse": float(np.sqrt(np.mean((mean - true) ** 2))),
            "cover95": float(np.mean((low <= true) & (true <= high))),
            "cover50": float(np.mean((q1 <= true) & (true <= q3))),
            "width": float(np.mean(high - low)),
            "top_decile": len(top) / many,
        }
    return {f"{name} {what}": values for what, values in row.items()}


def coefficients(post: Any) -> np.ndarray:
    """Return draws (draw, 2, tract) of tracts that were inferred one by one."""
    both = np.stack([post.draws["pir"], post.draws["intercept"]])
    return np.asarray(both.reshape(2, both.shape[1], -1).transpose(2, 0, 1))


NAMES = (
    "mean slope", "mean level", "size on slope", "size on level", "sd slope", "sd level",
    "direction", "mean log variance", "sd log variance", "mean x", "sd x", "variance of x", "df",
)  # fmt: skip
"""Coordinates of a population of one covariate, but for the units of the hyperprior."""


def hyperparameters(phi: np.ndarray) -> Row:
    """Return whether 95 % intervals of the population (draw, coordinate) hold the truth."""
    truth = np.asarray(true_phi(1))[: len(NAMES), 0]
    low, high = np.quantile(phi[:, : len(NAMES)], [0.025, 0.975], axis=0)
    held = (low <= truth) & (truth <= high)
    return {name: bool(h) for name, h in zip(NAMES, held, strict=True)}


def true_phi(chains: int) -> Any:
    """Return the coordinates of the true population, for every chain."""
    import jax.numpy as jnp

    from experiments.pooling import tracts
    from noisewise.models.linear_regression.pooled_population import coordinates_of

    return jnp.tile(coordinates_of(tracts.line_law()), (1, chains))


def trial(settings: Mapping[str, Any], number: int) -> Row:
    """Run one trial."""
    from experiments.pooling import tracts
    from noisewise.models.linear_regression import exact, pooled_exact

    rng = np.random.default_rng([settings["seed"], number])
    n = tracts.sizes(rng, settings["groups"], settings["size"])
    truth, sums = tracts.MAKERS[settings["experiment"]](rng, n)
    narrow = settings["narrow"]
    truth, sums = tracts.narrowed(truth, sums, n, narrow)
    line_at = LINE_AT if narrow == 1 else LINE_AT / narrow + tracts.OFF_CENTRE[0]
    z = sums + rng.laplace(0, tracts.NOISE / settings["epsilon"], sums.shape)
    problem = tracts.regression(z, n, settings["epsilon"])
    begin, cpu = time.perf_counter(), time.process_time()
    marks: list[tuple[int, float]] = []
    sampled = pooled_exact.sample(
        tracts.pooled(problem), number, 4, settings["draws"],
        lambda sweeps: marks.append((sweeps, time.perf_counter())),
        max_sweeps=settings["max_sweeps"],
    )  # fmt: skip
    row: Row = {
        "trial": number, "sweeps": sampled.sweeps, "rhat": float(sampled.rhat.max()),
        "ess": float(sampled.ess.min()), "failures": sampled.failures,
        "seconds": time.perf_counter() - begin, "cpu_seconds": time.process_time() - cpu,
    }  # fmt: skip
    later = [m for m in marks if m[0] > 0]
    if len(later) > 1:
        took = (later[-1][1] - later[0][1]) / (later[-1][0] - later[0][0])
        row["us_per_sweep_and_group"] = 1e6 * took / len(n)
    theta = sampled.theta.transpose(0, 2, 1, 3).reshape(-1, 2, len(n))
    row |= scores(theta, truth, "pooled", line_at)
    if settings["experiment"] == "calibration" and narrow == 1:
        row["population"] = hyperparameters(
            sampled.phi.transpose(0, 2, 1).reshape(-1, sampled.phi.shape[1])
        )
    if settings["alone"]:
        post = exact.run(problem, number, 4, settings["draws"])
        row |= scores(coefficients(post), truth, "alone", line_at)
        row |= scores(coefficients(post), truth, "mean", line_at)
        post = exact.run(replace(problem, scale_free=False), number, 4, settings["draws"])
        row |= scores(coefficients(post), truth, "weak", line_at)
    if settings["alone"] and narrow == 1:
        known = pooled_exact.sample(
            tracts.pooled(problem), number, 4, settings["draws"], max_sweeps=1000,
            fixed=true_phi(4),
        )  # fmt: skip
        theta = known.theta.transpose(0, 2, 1, 3).reshape(-1, 2, len(n))
        row |= scores(theta, truth, "known")
    return row


def sbc_trial(settings: Mapping[str, Any], number: int) -> Row:
    """Draw population and groups from the prior, and return the ranks of the truth."""
    from experiments.pooling import tracts
    from noisewise.models.linear_regression import pooled_exact, pooled_population, pooled_simulate

    rng = np.random.default_rng([settings["seed"], number, 7])
    n = tracts.sizes(rng, settings["groups"])
    empty = tracts.pooled(tracts.regression(np.zeros((len(n), 5)), n, settings["epsilon"]))
    shape = pooled_exact.setting_of(empty).population
    for _ in range(10_000):
        law = pooled_population.draw_law(rng, shape, empty.prior, 1)
        drawn = pooled_simulate.draw_release(rng, law, empty)
        # A release that could come from records in the box, as its noisy sums say.
        slack = 4 * tracts.NOISE / settings["epsilon"]
        if (np.abs(drawn.z) <= n[:, None] + slack).all():
            break
    problem = tracts.pooled(tracts.regression(drawn.z, n, settings["epsilon"]))
    sampled = pooled_exact.sample(problem, number, 4, settings["draws"])
    truth = np.asarray(pooled_population.coordinates_of(law))[:, 0]
    phi = sampled.phi.transpose(0, 2, 1).reshape(-1, len(truth))
    ranks = {f"phi {i}": float(np.mean(phi[:, i] < truth[i])) for i in range(len(truth))}
    theta = sampled.theta.transpose(0, 2, 1, 3).reshape(-1, 2, len(n))
    for k in range(2):
        ranks[f"theta {k}"] = float(np.mean(theta[:, k, 0] < drawn.theta[0, k]))
    variance = sampled.log_variance[..., 0]
    ranks["log variance"] = float(np.mean(variance < drawn.log_variance[0]))
    return {
        "trial": number, "sweeps": sampled.sweeps, "rhat": float(sampled.rhat.max()),
        "ess": float(sampled.ess.min()), "failures": sampled.failures, "ranks": ranks,
    }  # fmt: skip


def plane_trial(settings: Mapping[str, Any], number: int) -> Row:
    """Draw tracts with two covariates from one population; return what intervals cover."""
    from experiments.pooling import tracts
    from noisewise.models.linear_regression import pooled_exact, pooled_population, pooled_simulate

    rng = np.random.default_rng([settings["seed"], number])
    n, law = tracts.sizes(rng, settings["groups"]), tracts.plane_law()
    empty = tracts.regression(np.zeros((len(n), 9)), n, settings["epsilon"])
    drawn = pooled_simulate.draw_release(rng, law, tracts.pooled(empty))
    problem = tracts.pooled(tracts.regression(drawn.z, n, settings["epsilon"]))
    sampled = pooled_exact.sample(
        problem, number, 4, settings["draws"], max_sweeps=settings["max_sweeps"]
    )
    theta = sampled.theta.transpose(1, 3, 2, 0).reshape(3, len(n), -1)
    row: Row = {
        "trial": number, "sweeps": sampled.sweeps, "rhat": float(sampled.rhat.max()),
        "ess": float(sampled.ess.min()), "failures": sampled.failures,
    }  # fmt: skip
    for k, name in enumerate(("first slope", "second slope", "level")):
        low, q1, q3, high = np.quantile(theta[k], [0.025, 0.25, 0.75, 0.975], axis=1)
        true = drawn.theta[:, k]
        row[name] = {
            "rmse": float(np.sqrt(np.mean((theta[k].mean(axis=1) - true) ** 2))),
            "cover95": float(np.mean((low <= true) & (true <= high))),
            "cover50": float(np.mean((q1 <= true) & (true <= q3))),
        }
    # The last coordinates are units of the hyperprior, which have no truth, and the exponent.
    truth = np.asarray(pooled_population.coordinates_of(law))[:-5, 0]
    phi = sampled.phi.transpose(0, 2, 1).reshape(-1, sampled.phi.shape[1])[:, : len(truth)]
    low, high = np.quantile(phi, [0.025, 0.975], axis=0)
    held = (low <= truth) & (truth <= high)
    return row | {"population": {str(i): bool(h) for i, h in enumerate(held)}}


def means(rows: list[Row]) -> Row:
    """Return the mean of every number over trials; of ranks, p-values of uniformity."""
    if "ranks" in rows[0]:
        from scipy import stats

        return {
            name: float(stats.kstest([row["ranks"][name] for row in rows], "uniform").pvalue)
            for name in rows[0]["ranks"]
        }
    flat: dict[str, list[float]] = {}
    for row in rows:
        for name, value in row.items():
            inner = value.items() if isinstance(value, dict) else [("", value)]
            for part, number in inner:
                flat.setdefault(f"{name} {part}".strip(), []).append(float(number))
    return {name: round(float(np.mean(values)), 4) for name, values in flat.items()}


WORK: dict[str, Callable[[Mapping[str, Any], int], Row]] = {
    "sbc": sbc_trial,
    "plane": plane_trial,
}
"""What runs a trial of an experiment, where it is not ``trial``."""
