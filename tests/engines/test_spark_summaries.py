"""Groups inferred on Spark: the numbers of the plain run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

import noisewise as nw
from noisewise.artifact import ArgumentError
from noisewise.models.linear_regression import analyst
from tests.documents import ROOT
from tests.inference.regressions import release, table

BOUNDS = {"x1": (-1.0, 1.0), "y": (-1.0, 1.0)}


def areas(groups: int) -> nw.Release:
    rng = np.random.default_rng(4)
    return release([table(rng, 60) for _ in range(groups)], BOUNDS, scale=0.5)


class FewSlabs:
    """Does what Spark does with tasks, in this process, the last slab first."""

    rows: pd.DataFrame
    work: Callable[[Iterator[pd.DataFrame]], Iterator[pd.DataFrame]]

    def createDataFrame(self, rows: list[Any], schema: str) -> FewSlabs:
        self.rows = pd.DataFrame(rows, columns=[part.split()[0] for part in schema.split(", ")])
        return self

    def repartitionByRange(self, count: int, column: str) -> FewSlabs:
        assert count == self.rows[column].nunique()
        return self

    def mapInPandas(self, work: Any, schema: str) -> FewSlabs:
        self.work = work
        return self

    def collect(self) -> list[Any]:
        slabs = [self.rows.iloc[[k]] for k in reversed(range(len(self.rows)))]
        return [row for part in self.work(iter(slabs)) for row in part.to_dict("records")]

    toLocalIterator = collect


def test_tasks_are_slabs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analyst, "NAIVE_GROUPS_PER_SLAB", 2)
    given, steps = areas(5), list[tuple[int, int]]()
    plain = nw.infer(given, "naive", keep="summary", seed=3, draws=100)
    there = nw.spark.infer(
        FewSlabs(), given, "naive", seed=3, draws=100, progress=lambda *at: steps.append(at)
    )
    assert isinstance(plain, nw.PosteriorSummary)
    pd.testing.assert_frame_equal(there.table(), plain.table(), check_exact=True)
    assert there.words == plain.words
    assert steps == [(1, 5), (3, 5), (5, 5)]


def test_what_spark_cannot_do() -> None:
    with pytest.raises(ArgumentError, match="session: must be a Spark session"):
        nw.spark.infer("local", areas(2))
    with pytest.raises(ArgumentError, match="keep: pooled groups are inferred together"):
        nw.spark.infer(FewSlabs(), areas(3), pool=True)
    family = nw.release.exponential_family(
        nw.release.Blank(100), column="visits", family="poisson", bounds=(0, 20), epsilon=1
    )
    with pytest.raises(ArgumentError, match="release: only groups of a linear regression"):
        nw.spark.infer(FewSlabs(), family)


# PySpark leaves the socket of what it collected to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.evidence
@pytest.mark.parametrize("method", ["naive", "exact"])
def test_spark_gives_the_numbers_of_the_plain_run(
    method: str, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """500 groups in two slabs on two workers, to the last digit."""
    monkeypatch.setattr(analyst, "NAIVE_GROUPS_PER_SLAB", 256)
    monkeypatch.setattr(analyst, "GROUPS_PER_SLAB", 256)
    monkeypatch.setitem(os.environ, "PYTHONPATH", f"{ROOT}:{ROOT}/src")
    given = areas(500)
    there = nw.spark.infer(spark, given, method, seed=3, draws=500)
    plain = nw.infer(given, method, keep="summary", seed=3, draws=500)
    assert isinstance(plain, nw.PosteriorSummary)
    pd.testing.assert_frame_equal(there.table(), plain.table(), check_exact=True)
    assert there.words == plain.words
    print(f"{method}: 500 groups in 2 tasks on 2 workers, equal to the last digit")
