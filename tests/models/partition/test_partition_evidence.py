"""The thesis' own experiments: does the corrected method beat it, and by how much?

Simulated tables have a seed; partitions and privacy noise come from the operating system. Every
figure has its standard error beside it in the output; limits are those of the issue.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from noisewise.artifact import SearchError
from noisewise.artifact.partition_answer import Answer
from noisewise.artifact.sensitivity import sensitivity
from noisewise.models.partition.conjugate_regression import Zellner, fit
from noisewise.models.partition.posterior_probability import probability_codes
from noisewise.models.partition.posterior_quantile import IntervalSearch, draw_quantile
from noisewise.privacy.mechanisms import calibrate
from tests.reference.partition_simulation import (
    probability_answers,
    quantile_blank,
    split,
    statistic,
    table,
    whole,
)

ROWS, EPSILON = 100_000, 0.25
CUTOFFS = tuple(2 + k / 2 / np.sqrt(ROWS) for k in range(-7, 8))
DATA_SETS, DRAWS = 400, 10

Errors = dict[str, np.ndarray]


def probability_errors(partitions: int) -> tuple[np.ndarray, Errors]:
    """Full-data probabilities, and release minus full, shape (data sets, draws, cutoffs)."""
    rng = np.random.default_rng(987)
    full: list[np.ndarray] = []
    errors: dict[str, list[np.ndarray]] = {}
    for _ in range(DATA_SETS):
        columns = table(rng, ROWS, 1.0)
        full.append(whole(columns).probabilities(CUTOFFS)[0])
        moments = split(columns, partitions)
        for name, found in _answers(moments, partitions).items():
            errors.setdefault(name, []).append(found - full[-1])
    return np.array(full), {name: np.array(e) for name, e in errors.items()}


def _answers(moments, partitions: int) -> Errors:  # type: ignore[no-untyped-def]
    g = Zellner(float(ROWS))
    found: Errors = {}
    for name, method, power, share in (
        ("corrected", "normality", 2.0, 2 / partitions),
        ("E16", "normality", 1.0, 1 / partitions),
        ("thesis prior", "normality", 1.0, 1.0),
        ("fisher", "fisher", 1.0, 1 / partitions),
    ):
        spec = statistic(CUTOFFS, partitions, method, power)
        posterior = fit(moments, 0, g, power, share)
        codes = probability_codes(spec, posterior.probabilities(CUTOFFS))
        draws = [probability_answers(codes, spec, EPSILON) for _ in range(DRAWS)]
        found[name] = np.array([noisy.probability for noisy, _ in draws])
        found[f"{name}, no noise"] = np.array([draws[0][1].probability] * DRAWS)
        if name in ("E16", "thesis prior"):
            label = "thesis formula" if name == "E16" else "thesis as printed"
            plain = [[dataclasses.replace(a, corrected=False) for a in pair] for pair in draws]
            found[label] = np.array([noisy.probability for noisy, _ in plain])
            found[f"{label}, no noise"] = np.array([plain[0][1].probability] * DRAWS)
    return found


def bias(error: np.ndarray) -> np.ndarray:
    return error.mean(axis=(0, 1))


def rmse(error: np.ndarray) -> np.ndarray:
    return np.sqrt((error**2).mean(axis=(0, 1)))


@pytest.mark.evidence
def test_probabilities_on_the_set_up_of_the_thesis() -> None:
    """Biases have standard errors of at most 0.005 (printed): theirs of 0.03 is no accident."""
    full, errors = probability_errors(1000)
    print("\nfull      ", np.round(full.mean(axis=0), 3))
    for name, error in errors.items():
        pooled = np.sqrt((error**2).mean())
        print(f"{name}: pooled RMSE {pooled:.4f}")
        print("   bias   ", np.round(bias(error), 3))
        print("   RMSE   ", np.round(rmse(error), 3))
    ours, theirs = errors["corrected"], errors["thesis formula"]
    error = ours.mean(axis=1).std(axis=0) / np.sqrt(DATA_SETS)
    print("bias s.e. ", np.round(error, 4))
    wrong = np.abs(bias(theirs)) >= 0.03
    assert wrong.sum() >= 6
    # The noise has no seed: two standard errors are allowed on top (seen: 0.013, and 0.021).
    assert (np.abs(bias(ours)) - 2 * error)[wrong].max() <= 0.02
    assert (ours[..., wrong] ** 2).mean() <= (theirs[..., wrong] ** 2).mean()
    # Over all cutoffs the two are close: 1 % of RMSE is the sampling error of this comparison.
    assert np.sqrt((ours**2).mean()) <= 1.01 * np.sqrt((theirs**2).mean())
    assert (ours**2).mean() <= (errors["thesis as printed"] ** 2).mean() / 4


QUANTILE_PARTITIONS, EACH, SETS = 100, 0.45, 1000


def _quantile(columns: list[np.ndarray], p: float, centred: bool, coverage: float) -> float:
    """One release on the set-up of section 4.1; a failed search is NaN."""
    moments = split(columns, QUANTILE_PARTITIONS)
    posterior = fit(moments, 0, Zellner(float(ROWS)), float(QUANTILE_PARTITIONS), 1.0)
    blank = quantile_blank(QUANTILE_PARTITIONS, p, "centred" if centred else "symmetric", EACH)
    noise = calibrate("laplace", sensitivity(blank, "replace-one"), EACH)
    search = IntervalSearch(centred, 1.0, coverage, 40, EACH)
    try:
        block = draw_quantile(posterior, blank, search, noise)
    except SearchError:
        return np.nan
    return Answer(block.statistic, block.noise, block.values[:, 0], True).quantile  # type: ignore[arg-type]


@pytest.mark.evidence
def test_quantiles_on_the_set_up_of_the_thesis() -> None:
    """The thesis' version at the best of five shares for it; RMSE is ruled by rare wide bounds."""
    rng = np.random.default_rng(654)
    shares = (0.3, 0.4, 0.5, 0.7, 0.9)
    names = ["centred", *(f"symmetric, share {s}" for s in shares)]
    errors: dict[str, list[float]] = {name: [] for name in names}
    for number in range(SETS):
        columns = table(rng, ROWS, 10.0)
        p = (0.05, 0.25, 0.5, 0.75, 0.95)[number % 5]
        full = whole(columns).quantiles(p)[0]
        errors["centred"].append(_quantile(columns, p, True, 0.5) - full)
        for share in shares:
            near = _quantile(columns, p, False, share)
            errors[f"symmetric, share {share}"].append(near - full)
    found: dict[str, float] = {}
    for name, error in errors.items():
        e = np.array(error)
        known = e[~np.isnan(e)]
        found[name] = float(np.sqrt((known**2).mean()))
        print(
            f"{name}: RMSE {found[name]:.4f}, median |error| {np.median(np.abs(known)):.4f}, "
            f"bias {known.mean():+.4f}, no bound found {np.isnan(e).mean():.1%}"
        )
    best = min(found[name] for name in names[1:])
    print(f"ratio to the best symmetric: {found['centred'] / best:.2f}")
    assert np.isnan(errors["centred"]).mean() <= 0.01
    assert found["centred"] <= 0.5 * best
