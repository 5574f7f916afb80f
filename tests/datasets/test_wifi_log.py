"""The loader of wifi logs on a log one can check by hand, and the form of a generated one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import noisewise as nw
from noisewise.datasets import UNSEEN, place_names


def log(*sessions: tuple[int, str, str, str]) -> pa.Table:
    user, place, start, end = zip(*sessions, strict=True)
    times = [np.array([f"2024-05-01T{t}" for t in side], "datetime64[s]") for side in (start, end)]
    return pa.table({"user": user, "place": place, "start": times[0], "end": times[1]})


def test_where_someone_is_every_ten_minutes() -> None:
    """Marks in [start, end); an overlap goes to the later session; unseen hours are left out."""
    found = nw.datasets.hour_segments(
        log(
            (7, "a", "08:00:00", "08:25:00"),
            (7, "b", "08:20:00", "08:31:00"),
            (7, "a", "10:55:00", "11:00:00"),  # between two marks: never seen
            (9, "b", "23:50:00", "23:50:01"),
            (7, "a", "12:10:00", "13:10:00"),
        )
    )
    rows = found.to_pylist()
    steps = [[row[f"t{j}"] for j in range(6)] for row in rows]
    none = UNSEEN
    assert steps == [
        ["a", "a", "b", "b", none, none],
        [none, "a", "a", "a", "a", "a"],
        ["a", none, none, none, none, none],
        [none, none, none, none, none, "b"],
    ]
    assert [(row["person"], row["hour"]) for row in rows] == [(0, 8), (0, 12), (0, 13), (1, 23)]


def test_a_file_of_a_real_log_and_days_that_are_people_of_their_own(tmp_path: Path) -> None:
    night = pa.table(
        {
            "user": ["u", "v"],
            "place": ["x", "y"],
            "start": np.array(["2024-05-01T23:45", "2024-05-02T09:00"], "datetime64[s]"),
            "end": np.array(["2024-05-02T00:15", "2024-05-02T09:01"], "datetime64[s]"),
        }
    )
    pyarrow.csv.write_csv(night, tmp_path / "log.csv")
    found = nw.datasets.hour_segments(tmp_path / "log.csv")
    assert found.equals(nw.datasets.hour_segments(night))
    assert found["person"].to_pylist() == [0, 1, 3]
    assert found["hour"].to_pylist() == [23, 0, 9]
    with pytest.raises(ValueError, match="log: has no column 'place'"):
        nw.datasets.hour_segments(night.drop_columns(["place"]))


def test_the_generated_log_is_of_the_published_form() -> None:
    made = nw.datasets.wifi_log(users=400, seed=3)
    assert made.equals(nw.datasets.wifi_log(users=400, seed=3))
    assert not made.equals(nw.datasets.wifi_log(users=400, seed=4))
    segments = nw.datasets.hour_segments(made)
    hours = np.unique(segments["person"].to_numpy(), return_counts=True)[1]
    # Heavy-tailed: the busiest hundredth has several times the median.
    assert np.quantile(hours, 0.99) >= 4 * np.median(hours)
    seen = np.stack([segments[f"t{j}"].to_numpy() for j in range(6)])
    assert set(np.unique(seen)) <= {UNSEEN, *place_names(15)}
    assert 0.2 < (seen == UNSEEN).mean() < 0.6
    assert (seen != UNSEEN).any(axis=0).all()
    with pytest.raises(ValueError, match="users: must be at least 1, not 0"):
        nw.datasets.wifi_log(users=0)


def test_it_goes_through_a_release_that_protects_people() -> None:
    segments = nw.datasets.hour_segments(nw.datasets.wifi_log(users=60, places=2, seed=1))
    levels = [UNSEEN, *place_names(2)]
    release = nw.release.graphical_model(
        segments.drop_columns(["hour"]),
        cliques=[("t0", "t1"), ("t1", "t2")],
        levels={f"t{j}": levels for j in range(3)},
        unit="person",
        epsilon=50.0,
    )
    model = nw.infer(release, tied=True)
    stay = model.marginal(("t1", "t2"))
    assert np.trace(stay) > 0.6
