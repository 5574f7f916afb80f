"""The smallest ε for wanted widths, on widths that are known functions of ε and n."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import pytest

from noisewise.artifact import ArgumentError
from noisewise.simulate.epsilon_search import (
    WidthTarget,
    check_wanted,
    decisive,
    in_words,
    reached_targets,
)

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
    assert narrowed(target.epsilon) == pytest.approx(wanted, rel=0.05)
    assert len(asked) <= 4


@pytest.mark.parametrize(("known", "wanted"), [(5.0, 0.1025), (1.0, 0.14), (1.0, 0.125)])
def test_a_rough_search_names_an_epsilon_beside_one_that_was_simulated(
    known: float, wanted: float
) -> None:
    """Also where widths without privacy, by another method, are no smaller than those with it."""
    asked: list[float] = []

    def law(epsilon: float) -> float:
        return 0.1 * math.sqrt(0.98**2 + 0.736 / epsilon**2)

    def widths(epsilon: float) -> Mapping[str, float]:
        asked.append(epsilon)
        return {"age": law(epsilon)}

    without = {"age": 0.1 if known > 1 else 0.135}
    (target,) = reached_targets({"age": wanted}, N, (known,), without, widths, rough=True)
    assert target.epsilon is not None
    assert min(asked) <= target.epsilon <= max(asked)
    assert law(target.epsilon) == pytest.approx(wanted, rel=0.06)


def test_a_width_that_a_prior_gives_at_every_epsilon_is_soon_known() -> None:
    asked: list[float] = []

    def widths(epsilon: float) -> Mapping[str, float]:
        asked.append(epsilon)
        return {"age": 0.5 / math.hypot(1, epsilon)}

    (target,) = reached_targets({"age": 0.55}, N, (1.0,), {"age": 0.01}, widths)
    assert target.epsilon == 1 / 64
    assert len(asked) <= 4
    assert target.words == (
        "Already epsilon = 0.0156 gives intervals for age that are 0.4999 wide in the mean, and "
        "0.55 is wanted; no smaller one was simulated."
    )


@pytest.mark.parametrize("rough", [False, True])
@pytest.mark.parametrize(
    ("grid", "wanted"),
    [((0.05, 5.0), 0.4), ((0.05, 5.0), 0.45), ((0.01, 1.0), 0.45), ((0.01, 1.0), 0.49)],
)
def test_widths_that_a_prior_keeps_level_do_not_hide_where_they_fall(
    grid: tuple[float, float], wanted: float, rough: bool
) -> None:
    asked: list[float] = []

    def law(epsilon: float) -> float:
        return 0.5 / math.hypot(1, epsilon)

    def widths(epsilon: float) -> Mapping[str, float]:
        asked.append(epsilon)
        return {"age": law(epsilon)}

    (target,) = reached_targets({"age": wanted}, N, grid, {"age": 0.01}, widths, rough=rough)
    true = math.sqrt((0.5 / wanted) ** 2 - 1)
    assert target.epsilon is not None
    assert true / 1.5 <= target.epsilon <= 1.5 * true
    assert law(target.epsilon) == pytest.approx(wanted, rel=0.06)
    assert len(asked) <= 11


def test_a_search_that_ran_out_of_steps_promises_no_more_than_it_knows() -> None:
    """A width that falls at once, far from where any law would have it."""

    def widths(epsilon: float) -> Mapping[str, float]:
        return {"age": 0.5 if epsilon < 0.3 else 0.1}

    (target,) = reached_targets({"age": 0.3}, N, (0.01, 10.0), {"age": 0.01}, widths)
    assert target.epsilon == pytest.approx(0.3, rel=0.1)
    assert "at most about" in target.words


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
    assert f"At least {target.records:,} records would, at epsilon = 10." in target.words
    assert ("even without privacy" in target.words) == (wanted <= 0.1)


def test_a_width_that_no_epsilon_gives_decides() -> None:
    targets, _ = searched({"age": 0.15, "sex": 0.01})
    assert decisive(targets) == targets[1]
    assert "together need about" in in_words(targets)[-1]


def test_a_width_that_the_least_epsilon_gives() -> None:
    (target,), _ = searched({"age": 1e6})
    assert target.epsilon is not None
    assert 0.5 / 64 <= target.epsilon < 0.5 / 4


def test_more_records_than_are_worth_naming() -> None:
    targets, _ = searched({"age": 1e-90, "sex": 0.31})
    assert targets[0].records is None
    assert "More than 1,000,000,000,000 records would" in targets[0].words
    assert decisive(targets) == targets[0]
    assert in_words(targets)[-1].endswith("need more than 1,000,000,000,000 records.")


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"height": 0.1}, "width: 'height' is unknown; there are age, sex"),
        ({"age": 0.0}, "width: must be between 1e-100 and 1e+100, not 0.0"),
        ({"age": 1e-160}, "width: must be between 1e-100 and 1e+100, not 1e-160"),
        ({"age": math.nan}, "width: must be between 1e-100 and 1e+100, not nan"),
        ({"age": math.inf}, "width: must be between 1e-100 and 1e+100, not inf"),
        ({"age": "wide"}, "width: must be a number, not 'wide'"),
        ({"age": 10**400}, "width: must be between"),
        ({"age": True}, "width: must be a number, not True"),
    ],
)
def test_bad_wishes(wanted: dict[str, float], message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        check_wanted(wanted, PLAIN)
