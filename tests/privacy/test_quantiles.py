"""Bounds by private quantiles: scores against a plain count, their sensitivity by brute force."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest

import noisewise as nw
from noisewise.artifact import Neighbours
from noisewise.privacy.budget import Terms, terms
from noisewise.privacy.options import PrivacyOptions
from noisewise.privacy.private_quantiles import penalties, penalty_change
from noisewise.release import PrivateBounds


def agreed(neighbours: Neighbours) -> Terms:
    return terms(PrivacyOptions(epsilon=1.0, neighbours=neighbours))


def plain(points: list[int], candidates: int, a: Fraction) -> list[int]:
    return [
        abs(
            (a.denominator - a.numerator) * sum(x < c for x in points)
            - a.numerator * sum(x > c for x in points)
        )
        for c in range(candidates)
    ]


@pytest.mark.parametrize("quantile", [0.0, 0.05, 0.5, 0.999, 1.0])
def test_penalties_equal_a_plain_count(quantile: float) -> None:
    points = np.random.default_rng(5).integers(0, 9, 40).tolist()
    found, a = penalties(np.bincount(points, minlength=9), quantile)
    assert float(a) == pytest.approx(quantile)
    assert found.tolist() == plain(points, 9, a)


@pytest.mark.parametrize("quantile", [0.0, 0.1, 0.5, 0.75])
def test_one_record_moves_no_penalty_by_more_than_claimed(quantile: float) -> None:
    """All tables of up to three records on five candidates, all their neighbours."""
    a = Fraction(quantile).limit_denominator(10_000)
    reached = {"replace-one": 0, "add-remove": 0}
    for size in (1, 2, 3):
        for table in itertools.combinations_with_replacement(range(5), size):
            here = np.array(plain(list(table), 5, a))
            rest = list(table[1:])
            moved = np.abs(np.array(plain(rest, 5, a)) - here).max()
            reached["add-remove"] = max(reached["add-remove"], int(moved))
            for new in range(5):
                moved = np.abs(np.array(plain([*rest, new], 5, a)) - here).max()
                reached["replace-one"] = max(reached["replace-one"], int(moved))
    for relation, most in reached.items():
        claimed = penalty_change(a, agreed(cast(Any, relation)))
        assert most <= claimed
        # Exact but for the median, where a swap across the candidate cancels in absolute value.
        if quantile in (0.0, 0.1):
            assert most >= 0.9 * claimed


@pytest.mark.parametrize("mechanism", [{}, {"mechanism": "gaussian", "delta": 1e-6}])
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_a_generous_budget_finds_the_quantiles(mechanism: dict[str, Any], neighbours: Any) -> None:
    rng = np.random.default_rng(6)
    frame = pd.DataFrame({"x": rng.normal(50, 10, 20_000), "y": rng.random(20_000)})
    wish = PrivateBounds((-1000, 1000), quantiles=(0.05, 0.95), candidates=4001)
    release = nw.release.linear_regression(
        frame, x="x", y="y", bounds={"x": wish, "y": (0, 1)}, epsilon=20.0,
        neighbours=neighbours, **mechanism,
    )  # fmt: skip
    low, high = np.quantile(frame.x, [0.05, 0.95])
    assert release.bounds["x"].lower == pytest.approx(low, abs=1.5)
    assert release.bounds["x"].upper == pytest.approx(high, abs=1.5)
    (selection,) = release.selections
    whole = release.guarantee.epsilon if release.guarantee.rho is None else release.guarantee.rho
    assert selection.cost + release.block("gram").noise.cost == pytest.approx(whole)
    assert nw.Release.from_json(release.to_json()) == release


def test_a_tiny_budget_still_gives_valid_bounds() -> None:
    frame = pd.DataFrame({"x": [5.0] * 10, "y": [0.5] * 10})
    for _ in range(20):
        release = nw.release.linear_regression(
            frame, x="x", y="y", bounds={"x": PrivateBounds((0, 10), candidates=3), "y": (0, 1)},
            epsilon=1e-3, neighbours="add-remove",
        )  # fmt: skip
        assert 0 <= release.bounds["x"].lower < release.bounds["x"].upper <= 10
