"""The smallest ε for wanted widths, on widths that are known functions of ε and n."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest

from noisewise.artifact import ArgumentError
from noisewise.simulate.epsilon_search import WidthTarget, decisive, in_words, reached_targets

N = 1000
PLAIN = {"age": 0.1, "sex": 0.3}
NOISE = {"age": 0.2, "sex": 0.05}
"""Widths √(plain² + (noise/ε)²) at n = 1000."""


class Widths:
    """Widths by ε, and the number of ε they were asked at."""

    def __init__(self) -> None:
        self.asked: list[float] = []

    def __call__(self, epsilon: float) -> Mapping[str, float]:
        self.asked.append(epsilon)
        return {c: width(c, N, epsilon) for c in PLAIN}


def width(name: str, n: float, epsilon: float) -> float:
    plain = PLAIN[name] * math.sqrt(N / n)
    return math.hypot(plain, NOISE[name] * N / n / epsilon)


def searched(wanted: Mapping[str, float]) -> tuple[tuple[WidthTarget, ...], Widths]:
    widths = Widths()
    return reached_targets(wanted, N, (0.5, 1.0), PLAIN, widths), widths


@pytest.mark.parametrize("wanted", [0.11, 0.15, 0.3, 2.0])
def test_the_width_found_is_within_two_percent(wanted: float) -> None:
    (target,), widths = searched({"age": wanted})
    assert target.epsilon is not None
    assert 0.98 * wanted <= width("age", N, target.epsilon) <= wanted
    assert len(widths.asked) == len(set(widths.asked)) <= 8


@pytest.mark.parametrize(
    ("wanted", "before"),
    [(0.11, math.inf), (0.3, math.inf), (2.0, math.inf), (0.15, 1.0), (0.3, 1.0), (0.6, 1.0)],
)
def test_a_rough_search_asks_seldom_and_is_near(wanted: float, before: float) -> None:
    """Also where a prior keeps widths from growing like 1/ε."""
    asked: list[float] = []

    def narrowed(epsilon: float) -> float:
        return 1 / math.hypot(1 / width("age", N, epsilon), 1 / before)

    def widths(epsilon: float) -> Mapping[str, float]:
        asked.append(epsilon)
        return {"age": narrowed(epsilon)}

    (target,) = reached_targets({"age": wanted}, N, (1.0,), PLAIN, widths, rough=True)
    assert target.epsilon is not None
    assert narrowed(target.epsilon) == pytest.approx(wanted, rel=0.02)
    assert len(asked) <= 4


def test_a_rough_search_says_of_no_epsilon_what_it_has_not_simulated() -> None:
    """Nearly the width without privacy: the largest ε is simulated before it is named."""
    asked: list[float] = []

    def widths(epsilon: float) -> Mapping[str, float]:
        asked.append(epsilon)
        return {"age": width("age", N, epsilon) + 0.004}

    (target,) = reached_targets({"age": 0.101}, N, (1.0, 5.0), PLAIN, widths, rough=True)
    assert target.epsilon is None
    assert 10.0 in asked


@pytest.mark.parametrize("rough", [False, True])
@pytest.mark.parametrize("wanted", [1.0, 1.01])
def test_a_width_that_stays_above_the_one_without_privacy_is_never_promised(
    wanted: float, rough: bool
) -> None:
    """Where bounds cut, widths do not fall to that without privacy."""
    asked: list[float] = []

    def widths(epsilon: float) -> Mapping[str, float]:
        asked.append(epsilon)
        return {"age": math.sqrt(1.02**2 + 0.01 / epsilon**2)}

    (target,) = reached_targets({"age": wanted}, N, (0.5, 1.0), {"age": 0.5}, widths, rough=rough)
    assert target.epsilon is None
    assert 10.0 in asked
    assert len(asked) <= 5


def test_several_widths_share_what_was_simulated_and_the_last_decides() -> None:
    targets, widths = searched({"age": 0.15, "sex": 0.31})
    assert [w.parameter for w in targets] == ["age", "sex"]
    found = [w.epsilon or 0.0 for w in targets]
    assert decisive(targets) == targets[found.index(max(found))]
    assert (
        in_words(targets)[-1] == f"For all of these widths epsilon must be about {max(found):.3g}."
    )
    assert len(widths.asked) == len(set(widths.asked))


@pytest.mark.parametrize("wanted", [0.05, 0.1, 0.1001])
def test_records_that_would_do(wanted: float) -> None:
    (target,), _ = searched({"age": wanted})
    assert target.epsilon is None
    assert target.records is not None
    # Rounded upwards to two digits.
    assert width("age", target.records, 10.0) <= wanted < width("age", 0.9 * target.records, 10.0)
    assert f"About {target.records:,} records would, at epsilon = 10." in target.words
    assert ("even without privacy" in target.words) == (wanted <= 0.1)


def test_a_width_that_no_epsilon_gives_decides() -> None:
    targets, _ = searched({"age": 0.15, "sex": 0.01})
    assert decisive(targets) == targets[1]
    assert "together need about" in in_words(targets)[-1]


def test_a_width_that_the_least_epsilon_gives() -> None:
    (target,), _ = searched({"age": 1e6})
    assert target.epsilon is not None
    assert 0.5 / 64 <= target.epsilon < 0.5 / 4


def test_bad_wishes() -> None:
    with pytest.raises(ArgumentError, match="width: 'height' is unknown; there are age, sex"):
        searched({"height": 0.1})
    with pytest.raises(ArgumentError, match="width: must be above zero"):
        searched({"age": 0.0})
