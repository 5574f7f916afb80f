"""People with several records in random partitions: one person changes one partition only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import noisewise as nw
from noisewise.models.partition import partition_moments
from noisewise.models.partition.partition_moments import read_partitions
from noisewise.privacy.lattice import Outside
from noisewise.privacy.sources import open_source
from noisewise.privacy.sum_plan import ProductSums, SumPlan, Whole

PARTITIONS = 6
PLAN = SumPlan(
    (ProductSums(tuple(Outside(c, 0.0, 1.0) for c in ("x", "y")), ((),)),), None, Whole("id")
)
QUESTION: dict[str, Any] = {
    "x": "x",
    "y": "y",
    "coefficient": "x",
    "partitions": 5,
    "unit": "id",
    "prior": nw.release.Zellner(g=100.0),
}


def crowd(people: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(people), rng.integers(1, 6, people))
    x = rng.standard_normal(len(owner))
    frame = pd.DataFrame({"id": owner, "x": x, "y": x + rng.standard_normal(len(owner))})
    return frame.sample(frac=1, random_state=seed, ignore_index=True)


def moments(frame: pd.DataFrame) -> list[bytes]:
    """The sums of every partition, as bits."""
    found = read_partitions(open_source(frame), PLAN, PARTITIONS).moments
    parts = zip(found.sizes, found.means, found.products, strict=True)
    return [b"".join(np.asarray(value).tobytes() for value in part) for part in parts]


def test_a_person_changes_one_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under the coupling of the proof: common people are sent where they were sent before."""
    sent = np.random.default_rng(4).integers(0, PARTITIONS, 1000)
    drawn = 0

    def assign(people: int, partitions: int) -> np.ndarray:
        nonlocal drawn
        drawn += people
        return sent[drawn - people : drawn]

    monkeypatch.setattr(partition_moments, "assign", assign)
    frame = crowd(40, 1)
    first, rest = frame.drop_duplicates("id"), frame[frame.duplicated("id")]
    rng = np.random.default_rng(2)
    for count in (0, 1, 2, 5, 30):
        wild = rng.choice([0.0, 1e3, -1e200, np.inf], (2, count))
        newcomer = pd.DataFrame({"id": 99, "x": wild[0], "y": wild[1]})
        # The others have all been seen once, so that numbers of people stay; then all is mixed.
        mixed = pd.concat([rest, newcomer]).sample(frac=1, random_state=3)
        tables = [pd.concat([first, part]) for part in (mixed[mixed.id != 99], mixed)]
        found = []
        for table in tables:
            drawn = 0
            found.append(moments(table))
        changed = sum(one != other for one, other in zip(*found, strict=True))
        assert changed == min(count, 1)


def test_records_of_a_person_share_a_partition() -> None:
    """Also over several batches, each a table of its own."""
    frame = pd.DataFrame({"id": np.repeat(np.arange(50), 4), "x": np.repeat(np.arange(50.0), 4)})
    sizes = read_partitions(open_source(frame.assign(y=0.0)), PLAN, PARTITIONS).moments.sizes
    assert sizes.sum() == 200
    assert (sizes % 4 == 0).all()


def test_releases_for_people() -> None:
    frame = crowd(200, 5)
    probability = nw.release.posterior_probability(frame, at=0.0, epsilon=1.0, **QUESTION)
    quantile = nw.release.posterior_quantile(
        frame, p=0.5, epsilon_bounds=1000.0, epsilon_value=1.0, **QUESTION
    )
    for release in (probability, quantile):
        assert release.unit == "id"
        assert release.n is None
        assert "all records of any one person by any others (all rows of one 'id')" in (
            release.statement()
        )
        assert nw.Release.from_json(release.to_json()) == release


def test_what_is_refused() -> None:
    frame = crowd(200, 5)
    with pytest.raises(nw.ArgumentError, match="prior: with unit n is secret, so Zellner's g must"):
        nw.release.posterior_probability(frame, at=0.0, epsilon=1.0, **{**QUESTION, "prior": None})
    with pytest.raises(nw.ArgumentError, match="unit: 'x' is also a column of the regression"):
        nw.release.posterior_probability(frame, at=0.0, epsilon=1.0, **{**QUESTION, "unit": "x"})
    with pytest.raises(TypeError, match="unexpected keyword argument 'max_records'"):
        nw.release.posterior_probability(
            frame, at=0.0, epsilon=1.0, **{**QUESTION, "max_records": 1}
        )
    frame = frame.astype({"id": "Int64"})
    frame.loc[3, "id"] = None
    with pytest.raises(nw.DataError, match=r"column 'id' has missing values.* say whose records"):
        nw.release.posterior_probability(frame, at=0.0, epsilon=1.0, **QUESTION)
    with_gap = {**QUESTION, "neighbours": "add-remove"}
    nw.release.posterior_probability(frame, at=0.0, epsilon=1.0, **with_gap)
