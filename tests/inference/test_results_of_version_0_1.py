"""Results for fixed seeds are those of version 0.1, on releases that version 0.1 wrote.

The numbers in ``numbers.json`` are mean, sd and the ends of the 95 % interval of every parameter,
with seed 3, two chains and 200 draws. On the machine that made them they are equal to the last bit;
elsewhere a processor may round differently, hence the tolerance. A regression's default prior of
method ``exact`` is another now; with the prior that it was, results are the same.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import noisewise as nw
from tests.inference.regressions import conjugate_defaults

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "fixtures" / "version_0_1"
NUMBERS = json.loads((FIXTURES / "numbers.json").read_text(encoding="utf-8"))
TOLERANCE = 1e-6
"""Relative."""
CASES = [
    "linear-groups/naive",
    "linear-gaussian/gibbs-update",
    "poisson/exact",
    "categorical/exact",
    "categorical/gibbs",
    "categorical/naive",
]
"""In every run; the others compile for longer."""
CORRECTED = "normal/exact"
"""Version 0.1 missed narrow posteriors of a normal column; the search now resolves this one too,
and its draws fall otherwise, within the error of 400 of them."""
CHAOTIC = ["linear-gaussian/exact", pytest.param("linear/gibbs-update", marks=pytest.mark.evidence)]
"""Equal to the last bit under the compiler's default settings. With the fewer passes that these
tests ask for (conftest.py), version 0.1 itself gives other draws: a rounding redirects a chain.
So they run in a process of their own that asks for nothing."""
SLOW = [
    name
    for name in NUMBERS
    if name.startswith(("linear", "poisson/", "normal/", "categorical/"))
    and name not in (*CASES, "linear-gaussian/exact", "linear/gibbs-update", CORRECTED)
]


def check(name: str) -> None:
    fixture, method = name.split("/")
    release = nw.Release.load(FIXTURES / f"{fixture}.json")
    with warnings.catch_warnings():
        # So few draws, and the method gibbs where n is small, give warnings.
        warnings.simplefilter("ignore", UserWarning)
        prior = conjugate_defaults(release) if fixture.startswith("linear") else None
        table = nw.infer(release, method, prior=prior, seed=3, chains=2, draws=200).summary()
    assert {str(row) for row in table.index} == set(NUMBERS[name])
    for row, numbers in zip(
        table.index, table[["mean", "sd", "lower", "upper"]].to_numpy(), strict=True
    ):
        np.testing.assert_allclose(
            numbers, NUMBERS[name][str(row)], rtol=TOLERANCE, err_msg=str(row)
        )


@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_version_0_1(name: str) -> None:
    check(name)


@pytest.mark.parametrize("name", CHAOTIC)
def test_chaotic_results_are_those_of_version_0_1(name: str) -> None:
    code = f"from tests.inference.{Path(__file__).stem} import check; check({name!r})"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "XLA_FLAGS": "", "JAX_DISABLE_MOST_OPTIMIZATIONS": "0"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.evidence
@pytest.mark.parametrize("name", SLOW)
def test_further_results_are_those_of_version_0_1(name: str) -> None:
    check(name)


def test_a_corrected_result_is_near() -> None:
    """400 draws: means within 0.25 deviations, deviations within 25 %, five errors of each."""
    release = nw.Release.load(FIXTURES / "normal.json")
    table = nw.infer(release, "exact", seed=3, chains=2, draws=200).summary()
    for row in table.index:
        mean, sd, _, _ = NUMBERS[CORRECTED][str(row)]
        assert abs(table.loc[row, "mean"] - mean) < 0.25 * sd
        assert abs(table.loc[row, "sd"] / sd - 1) < 0.25
