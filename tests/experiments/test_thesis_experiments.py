"""Figures of chapters 3 and 4 and of the partition thesis, at sizes that take seconds.

Every claim must find its measure, every figure must draw; what the numbers are is for
``noisewise reproduce`` to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from experiments.exponential_families import printed
from experiments.graphical_models import dpsgd
from experiments.reproduce import catalogue
from experiments.reproduce.store import TrialStore
from experiments.reproduce.verdicts import judge
from experiments.thesis_families.cells import COMPARED, METHODS
from noisewise.models.exponential_family import families, truncation
from noisewise.models.exponential_family.truncation import Interval
from noisewise.models.graphical_model.structure import structure

SMALL: dict[str, dict[str, Any]] = {
    "partition-probabilities": {"data_sets": 3, "n": 2000, "partition_size": 20},
    "partition-quantiles": {"data_sets": 3, "n": 2000, "partition_size": 20},
    "graphical-3.1": {"sizes": [100, 200], "epsilons": [0.1, 10.0]},
    "graphical-3.2": {"sizes": [100, 200], "states": 3},
    "graphical-3.4": {
        "graphs": {"chain": [100], "third-order": [100], "erdos-renyi": [100]}, "states": 3,
        "lambdas": [1e-2], "epsilons": [1.0], "other_nodes": [5],
    },
    "graphical-3.5": {"sizes": [100, 200], "states": 3},
    "graphical-3.3": {"n": 200, "trials": 1, "lambdas": [1e-3, 1e-2, 0.1]},
    "graphical-3.6": {
        "users": 20, "places": 2, "sizes": [40, 80], "epsilons": [0.5, 1.0], "lambdas": [1e-2],
    },
    "families-b.1": {"n": 50, "sweeps": 60},
}  # fmt: skip


class MadeUp(TrialStore):
    """Rows of chapter 4's study without its samplers."""

    def cell(self, key: Mapping[str, Any], compute: object) -> list[dict[str, Any]]:
        rng = np.random.default_rng(0)
        return [
            {
                **key, "method": method, "trials": 20, "truth": rng.random(20).tolist(),
                "rank": rng.random(20).tolist(), "coverage": 0.9, "ks_worst": 0.1,
                **({"mmd2": 0.1, "error": 0.01} if method in COMPARED else {}),
            }
            for method in METHODS[key["model"]]
        ]  # fmt: skip


def looked_at(name: str, folder: Path) -> dict[str, float]:
    figure = catalogue.figures()[name]
    study = figure.settings_name
    settings = {**catalogue.settings(figure, "quick"), **SMALL.get(study, {})}
    kind = MadeUp if study == "families" else TrialStore
    table = pd.DataFrame(figure.run(settings, kind(folder / "trials.jsonl", settings)))
    figure.draw(table).savefig(folder / "figure.png")
    measures = figure.measure(table)
    for claim in catalogue.claims(figure):
        judge(claim, measures, "quick")
    assert catalogue.claims(figure)
    return measures


@pytest.mark.parametrize("number", ["3.1", "3.2", "3.3", "3.4", "4.1", "4.2"])
def test_the_partition_thesis(number: str, tmp_path: Path) -> None:
    found = looked_at(f"partition-{number}", tmp_path)
    if number == "3.3":
        # Errata E4: noise divided by M is good for M times the ε, here M = 100.
        assert found["formula_spent"] == pytest.approx(100 * 0.25, rel=1e-6)
        assert found["corrected_spent"] == pytest.approx(0.25, rel=1e-6)


@pytest.mark.parametrize("number", ["4.2", "4.3", "4.4", "b.1"])
def test_chapter_four(number: str, tmp_path: Path) -> None:
    looked_at(f"families-{number}", tmp_path)


@pytest.mark.parametrize("number", [pytest.param("3.1", marks=pytest.mark.evidence), "3.3", "3.6"])
def test_chapter_three(number: str, tmp_path: Path) -> None:
    found = looked_at(f"graphical-{number}", tmp_path)
    if number == "3.1":
        assert found["printed_epsilon_ratio"] == 2.0  # errata E3


@pytest.mark.evidence
@pytest.mark.parametrize("number", ["3.2", "3.4", "3.5"])
def test_chapter_three_on_graphs_with_loops(number: str, tmp_path: Path) -> None:
    """They take longer to compile than to run."""
    looked_at(f"graphical-{number}", tmp_path)


def test_the_printed_sampler_has_the_moments_of_a_region() -> None:
    """RS-CLT with its two misprints mended equals the library's moments of what is kept."""
    rate, low, high, n = 1.3, 0.3, 1.5, 50
    mean, variance = printed.random_sum(np.array([rate]), low, high, n)
    cut = Interval(jnp.asarray(low), jnp.asarray(high), "drop")
    family = families.Exponential()
    joint = truncation.joint_moments(family, cut, family.natural(jnp.array([rate])))
    assert mean[0] == pytest.approx(n * float(joint.mean[0]), rel=1e-9)
    assert variance[0] == pytest.approx(n * float(joint.covariance[0, 0]), rel=1e-9)
    parts = [(0.0, low), (low, high), (high, np.inf)]
    whole = sum(printed.random_sum(np.array([rate]), a, b, n)[0][0] for a, b in parts)
    assert whole == pytest.approx(n / rate, rel=1e-9)


def test_clipped_gradients_one_by_one() -> None:
    """The sparse sum over people against a loop, some of whom have several records."""
    rng = np.random.default_rng(2)
    model = structure({"a": 3, "b": 4, "c": 2}, [("a", "b"), ("b", "c")])
    records = {v: rng.integers(0, k, 30) for v, k in model.sizes.items()}
    cells = dpsgd.features(model, records)
    assert (cells.sum(axis=1) == 2).all()
    people = (cells[:15] + cells[15:]) / 2
    mean = rng.dirichlet(np.ones(model.dimension)) * 3
    wanted = np.zeros(model.dimension)
    for row in people.toarray():
        gradient = row - mean
        wanted += gradient * min(1.0, dpsgd.CLIP / np.linalg.norm(gradient))
    squares = np.asarray(people.multiply(people).sum(axis=1)).ravel()
    np.testing.assert_allclose(dpsgd.clipped_sum(people, squares, mean), wanted, atol=1e-12)
