"""Bounds that cut values off: the same sums and noise as plain ones, and the file says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import noisewise as nw

PEOPLE = pd.DataFrame({"age": [20.0, 35, 50, 65, 71], "wages": [5.0, 12, 18, 31, 44]})
NATURAL, CUT = nw.Bounds(0, 20), nw.Censored(0, 20, "upper")


def released(wages: Any, **more: Any) -> nw.Release:
    bounds = {"age": (0, 120), "wages": wages}
    return nw.release.linear_regression(
        PEOPLE, x="age", y="wages", bounds=bounds, epsilon=1.0, **more
    )


def test_the_file_says_which_ends_cut() -> None:
    again = nw.Release.from_json(released(CUT, count_clamped=True).to_json())
    assert again.bounds["wages"] == CUT
    assert again.bounds["age"] == nw.Bounds(0, 120)
    assert NATURAL != CUT
    assert '"cut"' not in released(NATURAL).to_json()


@pytest.mark.parametrize(
    ("bounds", "ends"),
    [
        (nw.Censored(0, 20), (True, True)),
        (nw.Censored(0, 20, "lower"), (True, False)),
        (CUT, (False, True)),
    ],
)
def test_sides(bounds: nw.Censored, ends: tuple[bool, bool]) -> None:
    assert (bounds.cuts_lower, bounds.cuts_upper) == ends
    with pytest.raises(nw.ReleaseError, match="sides must be one of both, lower, upper, not 'up'"):
        nw.Censored(0, 20, "up")  # type: ignore[arg-type]


def test_sums_and_noise_are_those_of_plain_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[np.ndarray] = []

    def record(self: Any, exact: np.ndarray) -> np.ndarray:
        drawn.append(exact)
        return exact

    monkeypatch.setattr("noisewise.privacy.mechanisms.Calibrated.draw", record)
    plain, cut = (released(b, count_clamped=True) for b in (NATURAL, CUT))
    assert [b.noise for b in plain.blocks] == [b.noise for b in cut.blocks]
    for one, other in zip(drawn[:2], drawn[2:], strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_family_carries_them() -> None:
    release = nw.release.exponential_family(
        PEOPLE, column="wages", family="exponential", bounds=CUT, epsilon=1.0
    )
    assert nw.Release.from_json(release.to_json()).bounds == {"wages": CUT}
