"""Bounds found by magnitude: counts against a plain one, their sensitivity by brute force, ends."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.stats import norm

import noisewise as nw
from noisewise.artifact import Bounds, CandidateCounts, Censored, Noise
from noisewise.artifact.bounds import FALSE_ALARM, RecordCounts, visible_count
from noisewise.artifact.sensitivity import Relation, sensitivity
from noisewise.privacy.lattice import evaluate
from noisewise.privacy.private_bounds import candidates, choose_bounds, outward
from noisewise.release import PrivateBounds

# -- candidates ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("within", "anchor"),
    [((0, 1e7), 0), ((-1e9, 1e9), 0), ((1900, 2100), 1900), ((-8, -2), -2), ((-1, 1e145), -1)],
)
def test_candidates_reach_from_end_to_end(within: tuple[float, float], anchor: float) -> None:
    asked = PrivateBounds(within)
    points, found = candidates(asked)
    assert found == anchor
    assert (points[0], points[-1]) == within
    assert np.all(np.diff(points) >= asked.resolution * 0.999)
    assert len(points) < 260
    # A third of an octave apart, or the resolution.
    far = np.array(points) - anchor
    for side in (far[far > 0], -far[far < 0][::-1]):
        near, next_one = side[:-1], side[1:]
        assert np.all((next_one / near < 1.51) | (next_one - near < 1.51 * asked.resolution))


def test_round_numbers_are_candidates_and_whole_ones_can_be_asked_for() -> None:
    points, _ = candidates(PrivateBounds((0, 1e7)))
    assert {0.5, 1, 5, 10, 20, 100, 1000, 20_000, 1e7} <= set(points)
    whole, _ = candidates(PrivateBounds((0, 100), resolution=1))
    assert whole[:8] == (0, 1, 2, 3, 4, 5, 6, 8)


# -- counts and their sensitivity ------------------------------------------------------------------

WISH = PrivateBounds((-4, 9), resolution=2)
VALUES = (-np.inf, -4.0, -3.0, -2.0, -0.5, -0.0, 0.0, 1.0, 2.0, 2.5, 5.0, 9.0, np.inf)


def plain(table: tuple[float, ...]) -> list[int]:
    """Count records at the next candidate away from the anchor, one by one."""
    points, anchor = candidates(WISH)
    counts = [0] * len(points)
    for x in table:
        beyond = [c for c in points if (c >= x if x >= anchor else c <= x)]
        place = min(beyond, default=points[-1]) if x >= anchor else max(beyond, default=points[0])
        counts[points.index(place)] += 1
    return counts


def test_counts_are_those_of_a_plain_count() -> None:
    feature = outward("x", WISH, None)
    assert feature.candidates == (-4, -2, 0, 2, 4, 6, 9)
    cells = evaluate(np.array(VALUES), feature).astype(int)
    assert np.bincount(cells, minlength=7).tolist() == plain(VALUES)


def moved(one: tuple[float, ...], other: tuple[float, ...]) -> np.ndarray:
    return np.abs(np.array(plain(one)) - np.array(plain(other)))


@pytest.mark.parametrize("relation", ["replace-one", "add-remove", "move"])
@pytest.mark.parametrize("most", [1, 2, 3])
def test_one_person_moves_the_counts_no_further_than_claimed(relation: Relation, most: int) -> None:
    """All people of up to ``most`` records; others cancel. Groups are pooled, so a move is one."""
    values = (-4.0, -0.5, 0.0, 2.5, 9.0)
    people = [
        table for k in range(1, most + 1)
        for table in itertools.combinations_with_replacement(values, k)
    ]  # fmt: skip
    others: list[tuple[float, ...]] = [()] if relation == "add-remove" else people
    distances = [moved(one, other) for one in people for other in others]
    l1, l2_squared = max(d.sum() for d in distances), max((d**2).sum() for d in distances)
    claimed = sensitivity(RecordCounts(), relation, most)
    assert claimed.l1 == l1
    assert claimed.l2_squared >= l2_squared
    if most == 1:
        assert claimed.l2_squared == l2_squared


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("window", [1, 2, 4])
def test_noise_alone_is_seldom_visible(mechanism: Any, window: int) -> None:
    """The threshold is right: against 4 million draws at a false alarm that they can show."""
    rng = np.random.default_rng(window)
    noise = Noise(mechanism, 5.0, 1.0, 1.0)
    draws = (
        rng.laplace(0, 5.0, (10**6, window))
        if mechanism == "laplace"
        else rng.normal(0, 5.0, (10**6, window))
    )
    # One window of one, two, three or four candidates out of two.
    share = np.mean(draws.sum(axis=1) + 0.5 > visible_count(noise, window, 2))
    assert share == pytest.approx(FALSE_ALARM / 8, rel=0.15)


# -- ends ------------------------------------------------------------------------------------------


def found(x: np.ndarray, within: tuple[float, float], scale: float = 1.0, **more: Any) -> Bounds:
    """The bounds that exact counts give, taken for noisy ones of that scale."""
    asked = PrivateBounds(within, **more)
    points, anchor = candidates(asked)
    cells = evaluate(x, outward("x", asked, None)).astype(int)
    counts = np.bincount(cells, minlength=len(points))
    noise = Noise("laplace", scale, 2.0, 2.0 / scale)
    search = CandidateCounts(points, anchor, tuple(int(c) for c in counts), noise)
    return choose_bounds(asked, search, len(x))


N = 20_000
UNIFORM = (np.arange(N) * 7919 % N + 0.5) / N
NORMAL = np.random.default_rng(7).permutation(norm.ppf(UNIFORM))  # no luck in the tails
ONES = (UNIFORM < 0.3) * 1.0
CLUSTERS = np.where(UNIFORM < 0.5, 5 + NORMAL, 100 + 10 * NORMAL)
COLUMNS: dict[str, tuple[np.ndarray, tuple[float, float], Bounds, Bounds]] = {
    "incomes": (30_000 * np.exp(0.8 * NORMAL), (0, 1e7), Bounds(4000, 200_000),
                nw.Censored(8000, 120_000)),
    "normal": (NORMAL, (-1e9, 1e9), Bounds(-2.5, 2.5), nw.Censored(-2, 2)),
    "far from zero": (50 + 10 * NORMAL, (-1e4, 1e6), Bounds(25, 80), nw.Censored(30, 80, "lower")),
    "negative": (-50 + 10 * NORMAL, (-1e6, 0), Bounds(-80, -25), nw.Censored(-80, -30, "upper")),
    "uniform": (UNIFORM, (-100, 100), Bounds(0.01, 1), nw.Censored(0.05, 1, "lower")),
    "two clusters": (CLUSTERS, (0, 1e5), Bounds(2.5, 150), Bounds(3, 120)),
    "zeros and ones": (ONES, (-1e9, 1e9), Bounds(0, 1), Bounds(0, 1)),
    "zeros and ones, in limits": (ONES, (0, 1e7), Bounds(0, 1), Bounds(0, 1)),
    "constant": (np.full(N, 37.0), (0, 1e7), Bounds(30, 40), Bounds(30, 40)),
    "ratings": (np.ceil(5 * UNIFORM), (0, 1000), Bounds(0.8, 5), Bounds(0.8, 5)),
    "years": (np.floor(1990 + 30 * UNIFORM), (1900, 2100), Bounds(1980, 2020), Bounds(1980, 2020)),
}  # fmt: skip
"""Columns, limits, and the bounds that cut about 1 and 5 per cent at either end."""


@pytest.mark.parametrize("name", COLUMNS)
def test_ends_without_noise(name: str) -> None:
    x, within, one, five = COLUMNS[name]
    assert found(x, within, quantiles=(0.01, 0.99)) == one
    assert found(x, within, quantiles=(0.05, 0.95)) == five
    mirrored = found(-x, (-within[1], -within[0]), quantiles=(0.05, 0.95))
    assert (-mirrored.upper, -mirrored.lower) == (five.lower, five.upper)


@pytest.mark.parametrize("name", COLUMNS)
def test_unless_told_it_cuts_as_little_as_can_be_seen(name: str) -> None:
    x, within, one, _ = COLUMNS[name]
    limits = found(x, within)
    assert not isinstance(limits, nw.Censored)
    assert np.sum((x < limits.lower) | (x > limits.upper)) < 40
    assert limits.upper <= 3 * one.upper or limits.upper <= 0


@pytest.mark.parametrize("name", COLUMNS)
def test_little_is_cut_where_noise_hides_four_per_cent(name: str) -> None:
    x, within, _, _ = COLUMNS[name]
    limits = found(x, within, scale=80.0)
    assert np.mean((x < limits.lower) | (x > limits.upper)) < 0.03
    assert limits.upper - limits.lower < 2.2 * max(np.ptp(x), 10)


def test_nothing_visible_leaves_the_limits() -> None:
    assert found(NORMAL, (-50, 1000), scale=1e5) == Bounds(-50, 1000)


# -- the whole way ---------------------------------------------------------------------------------

FRAME = pd.DataFrame(
    {"x": 50 + 10 * NORMAL, "y": UNIFORM, "g": np.arange(N) % 3, "id": np.arange(N) // 2}
)


def released(source: Any = FRAME, **more: Any) -> nw.Release:
    words: dict[str, Any] = {
        "epsilon": 2.0,
        "bounds": {"x": PrivateBounds((-1e6, 1e6)), "y": (0, 1)},
    }
    return nw.release.linear_regression(source, x="x", y="y", **{**words, **more})


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"neighbours": "add-remove"},
        {"mechanism": "gaussian", "delta": 1e-6},
        {"groups": {"g": [0, 1, 2]}, "sizes": "public"},
        {"groups": {"g": [0, 1, 2]}},
        {"unit": "id", "max_records": 2},
    ],
    ids=str,
)
def test_bounds_are_found_and_the_file_says_how(more: dict[str, Any]) -> None:
    """Noise of at most a hundred records hides nothing here: misses are rarer than 1e-9."""
    asked = PrivateBounds((-1e6, 1e6), quantiles=(0.05, 0.95))
    release = released(**more, bounds={"x": asked, "y": (0, 1)})
    assert (release.bounds["x"].lower, release.bounds["x"].upper) == (30, 80)
    (selection,) = release.selections
    whole = release.guarantee.epsilon if release.guarantee.rho is None else release.guarantee.rho
    assert selection.cost + release.block("gram").noise.cost == pytest.approx(whole)
    assert selection.cost == pytest.approx(whole * 0.15 / 1.15)
    again = nw.Release.from_json(release.to_json())
    assert again == release
    assert "found by a private search" in str(again)
    assert "unsure" not in str(again)


@pytest.fixture
def exact(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """Everything that noise would have been drawn for, drawn without any."""
    drawn: list[np.ndarray] = []

    def record(self: Any, values: np.ndarray) -> np.ndarray:
        drawn.append(values)
        return values

    monkeypatch.setattr("noisewise.privacy.mechanisms.Calibrated.draw", record)
    return drawn


def counts_of(release: nw.Release) -> tuple[int, ...]:
    search = release.selections[0].search
    assert search is not None
    return search.counts


def test_all_noise_is_opendps(exact: list[np.ndarray]) -> None:
    """Where its one caller draws nothing, the counts in the file are those of the records."""
    release = released()
    assert len(exact) == 2  # the histogram and the Gram matrix
    asked = PrivateBounds((-1e6, 1e6))
    cells = evaluate(FRAME.x.to_numpy(), outward("x", asked, None)).astype(int)
    assert counts_of(release) == tuple(np.bincount(cells, minlength=len(exact[0])))


def test_selected_people_groups_and_engines_are_counted_alike(exact: list[np.ndarray]) -> None:
    import ibis

    hidden: dict[str, Any] = {"neighbours": "add-remove"}
    some = counts_of(released(FRAME[FRAME.g == 1], **hidden))
    assert counts_of(released(where="g = 1", **hidden)) == some
    assert counts_of(released(groups={"g": [0, 1, 2]})) == counts_of(released())
    table = ibis.duckdb.connect().create_table("people", pa.Table.from_pandas(FRAME))
    assert counts_of(released(table)) == counts_of(released())
    assert counts_of(released(table, where="g = 1", **hidden)) == some
    one = released(unit="id", max_records=1)
    assert sum(counts_of(one)) == N / 2
    filled = FRAME.assign(x=FRAME.x.where(FRAME.g != 1))
    at_zero = counts_of(released(filled, fill={"x": 0.0}))
    assert at_zero[len(at_zero) // 2] == (FRAME.g == 1).sum()


def test_a_weak_search_says_so() -> None:
    incomes = pd.DataFrame({"x": 30_000 * np.exp(0.8 * NORMAL[:300]), "y": UNIFORM[:300]})
    bounds = {"x": PrivateBounds((0, 1e7)), "y": (0, 1)}
    with pytest.warns(UserWarning, match="search for those of 'x' may miss by up to 20 of 300"):
        release = released(incomes, bounds=bounds, split={"gram": 1.0, "bounds": 1.0})
    assert "missed by up to 20 records (6.4%) at either end: it is unsure" in str(release)
    assert "it is unsure" in release._repr_html_()


def test_a_tiny_budget_still_gives_valid_bounds() -> None:
    frame = pd.DataFrame({"x": [5.0] * 10, "y": [0.5] * 10})
    bounds = {"x": PrivateBounds((0, 10)), "y": (0, 1)}
    for _ in range(20):
        release = released(frame, bounds=bounds, epsilon=1e-3, neighbours="add-remove")
        assert "it is unsure" in str(release)
        assert 0 <= release.bounds["x"].lower < release.bounds["x"].upper <= 10


# -- evidence --------------------------------------------------------------------------------------

SHAPES: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "log-normal 0.8": lambda rng, n: 30_000 * np.exp(0.8 * rng.normal(size=n)),
    "normal around 0": lambda rng, n: rng.normal(size=n),
    "normal 50 ± 10": lambda rng, n: rng.normal(50, 10, n),
    "uniform 0 to 1": lambda rng, n: rng.uniform(0, 1, n),
    "uniform 18 to 90": lambda rng, n: rng.uniform(18, 90, n),
    "exponential": lambda rng, n: rng.exponential(3, n),
    "Pareto 1.5": lambda rng, n: rng.pareto(1.5, n) + 1,
    "gamma, negative": lambda rng, n: -rng.gamma(3, 20, n),
    "two clusters, 5 and 100": lambda rng, n: np.where(
        rng.random(n) < 0.5, rng.normal(5, 1, n), rng.normal(100, 10, n)
    ),
    "0 and 1 (30 %)": lambda rng, n: (rng.random(n) < 0.3) * 1.0,
    "ratings 1 to 5": lambda rng, n: rng.integers(1, 6, n) * 1.0,
    "43 to 79 (61.7 ± 1.4)": lambda rng, n: 61.7 + 1.2 * rng.standard_t(4, n),
}


def searched_bounds(x: np.ndarray, within: tuple[float, float], epsilon: float) -> nw.Release:
    frame = pd.DataFrame({"x": x, "y": np.zeros(len(x))})
    bounds = {"x": PrivateBounds(within), "y": (0, 1)}
    return released(frame, bounds=bounds, epsilon=2 * epsilon, split={"gram": 1, "bounds": 1})


@pytest.mark.evidence
@pytest.mark.parametrize("within", [(0, 1e7), (-1e9, 1e9)])
def test_incomes_of_60000_people(within: tuple[float, float]) -> None:
    rng, good, ends = np.random.default_rng(0), 0, []
    for _ in range(100):
        incomes = 30_000 * np.exp(0.8 * rng.normal(size=60_000))
        upper = searched_bounds(incomes, within, 1.0).bounds["x"].upper
        good += np.quantile(incomes, 0.98) <= upper <= 4 * incomes.max()
        ends.append(upper)
    print(f"\nwithin {within}: {good} of 100; upper bounds {min(ends):g} to {max(ends):g}")
    assert good >= 95


def simulated(epsilon: float, trials: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Widths over ranges and shares cut, of all shapes with noise from NumPy."""
    rng, widths, cuts = np.random.default_rng(seed), [], []
    odds = 1 - np.exp(-epsilon / 2)
    for draw in SHAPES.values():
        for trial in range(trials):
            x = draw(rng, 5000)
            asked = PrivateBounds(generous(x, rng, trial))
            points, anchor = candidates(asked)
            cells = evaluate(x, outward("x", asked, None)).astype(int)
            counts = np.bincount(cells, minlength=len(points))
            noisy = counts + rng.geometric(odds, len(points)) - rng.geometric(odds, len(points))
            noise = Noise("laplace", 2 / epsilon * (1 + 1e-12), 2.0, epsilon)
            search = CandidateCounts(points, anchor, tuple(int(c) for c in noisy), noise)
            limits = choose_bounds(asked, search, len(x))
            widths.append((limits.upper - limits.lower) / np.ptp(x))
            cuts.append(np.mean((x < limits.lower) | (x > limits.upper)))
    return np.array(widths), np.array(cuts)


def generous(x: np.ndarray, rng: np.random.Generator, trial: int) -> tuple[float, float]:
    """Limits 10 to 1,000 times too wide; of columns above zero every other time from zero on."""
    reach = 10.0 ** rng.integers(1, 4) * (np.ptp(x) + np.abs(x).max())
    return 0.0 if x.min() >= 0 and trial % 2 else -reach, reach


@pytest.mark.evidence
@pytest.mark.parametrize("columns", [2, 4])
def test_share_of_the_budget(columns: int) -> None:
    noises = {}
    for weight in (0.025, 0.05, 0.1, 0.15, 0.3):
        each = weight / (1 + weight * columns)
        widths, cuts = simulated(each, 40, 3)
        noises[weight] = np.exp(np.mean(2 * np.log(widths))) * (1 + weight * columns)
        print(
            f"\n| {columns} | {weight} | {each:.3f} | {noises[weight]:.2f} | {cuts.mean():.1%} | "
            f"{np.mean(cuts > 0.03):.0%} |", end="",
        )  # fmt: skip
    assert noises[0.15] < 1.25 * min(noises.values())


DESIGNS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "five candidates a decade": {"PREFERRED": ("1", "1.5", "2.5", "4", "6")},
    "twenty": {"PREFERRED": (
        "1", "1.1", "1.2", "1.4", "1.6", "1.8", "2", "2.2", "2.5", "2.8",
        "3.2", "3.6", "4", "4.5", "5", "5.6", "6.3", "7", "8", "9",
    )},
    "single counts": {"MAX_WINDOW": 1},
    "windows of eight": {"MAX_WINDOW": 8},
    "tails from 2 T": {"WALL": 2},
    "tails from 6 T": {"WALL": 6},
}  # fmt: skip


@pytest.mark.evidence
@pytest.mark.parametrize("design", DESIGNS)
def test_other_designs(design: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in DESIGNS[design].items():
        monkeypatch.setattr(f"noisewise.privacy.private_bounds.{name}", value)
        if name == "MAX_WINDOW":
            monkeypatch.setattr(f"noisewise.artifact.bounds.{name}", value)
    cells = []
    for epsilon in (0.05, 0.1):
        widths, cuts = simulated(epsilon, 40, 4)
        shown = (
            np.exp(np.mean(np.log(widths))),
            cuts.mean(),
            np.mean(cuts > 0.03),
            (widths > 3).mean(),
        )
        cells.append(f"{shown[0]:.2f} | {shown[1]:.1%} | {shown[2]:.0%} | {shown[3]:.0%}")
    print(f"\n| {design} | {' | '.join(cells)} |", end="")


@pytest.mark.evidence
@pytest.mark.filterwarnings("ignore:bounds")
@pytest.mark.parametrize("epsilon", [0.05, 0.1])
def test_columns_of_5000_records(epsilon: float) -> None:
    rng = np.random.default_rng(1)
    print(f"\nepsilon {epsilon}: width over range, median and 90 %; share cut, median and 90 %")
    for name, draw in SHAPES.items():
        widths, cuts = [], []
        for trial in range(60):
            x = draw(rng, 5000)
            limits = searched_bounds(x, generous(x, rng, trial), epsilon).bounds["x"]
            widths.append((limits.upper - limits.lower) / np.ptp(x))
            cuts.append(np.mean((x < limits.lower) | (x > limits.upper)))
        shown = [*np.quantile(widths, [0.5, 0.9]), *np.quantile(cuts, [0.5, 0.9])]
        print(f"| {name} | {shown[0]:.2f} | {shown[1]:.2f} | {shown[2]:.4f} | {shown[3]:.4f} |")
        assert shown[0] < (3 if epsilon < 0.1 else 2.2)


def test_a_cluster_far_beyond_an_end_is_a_cut() -> None:
    """A fifth of the records at zero, with nothing between them and the others."""
    rng = np.random.default_rng(1)
    values = np.concatenate([np.zeros(1000), rng.normal(50_000, 1000, 4000)])
    bounds = found(values, (0, 1e6), quantiles=(0.25, 0.99))
    assert isinstance(bounds, Censored)
    assert bounds.cuts_lower


def test_where_one_value_alone_is_visible_the_limits_stay() -> None:
    """A rare yes: nothing is known of it, and bounds of zero to next to nothing would be wrong."""
    assert found(np.zeros(5000), (0, 100)) == Bounds(0, 100)


def test_a_falling_density_is_no_wall() -> None:
    """Of an exponential tail next to nothing is cut, though its last candidate holds many."""
    values = np.random.default_rng(2).exponential(1.0, 50_000)
    bounds = found(values, (0, 1e6))
    assert (values > bounds.upper).sum() <= 20
    assert bounds.upper < 3 * values.max()
