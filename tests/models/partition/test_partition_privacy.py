"""How far one record moves a partition release, by brute force; and the noise under audit.

Audits (``audit.py``) exceed a true claim with probability at most 1 % each. Above-threshold is
audited exactly: its output distribution is summed, not sampled.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from noisewise.artifact import Noise, ProbabilitySums, QuantileSum, SearchError
from noisewise.artifact.sensitivity import Sensitivity, sensitivity
from noisewise.models.partition import posterior_quantile as search
from noisewise.models.partition.conjugate_regression import Zellner, fit
from noisewise.models.partition.partition_moments import MomentsAccumulator
from noisewise.models.partition.posterior_probability import probability_codes
from noisewise.models.partition.posterior_quantile import quantile_codes
from noisewise.privacy.mechanisms import calibrate
from tests.privacy.audit import epsilon_lower_bound
from tests.reference.partition_reference import stopping_distribution

PARTITIONS, ROWS = 4, 24
WILD = (0.0, 1.0, -1.0, 1e3, -1e3, 1e12, -1e12, 1e200, math.inf, -math.inf, math.nan)
AT = (-1.0, 0.0, 0.7)
PARTITION = np.arange(ROWS) % PARTITIONS


def tables() -> list[tuple[np.ndarray, int, np.ndarray]]:
    """A table, a row, and that row's replacement: every pair of wild values, in every partition."""
    rng = np.random.default_rng(12)
    found = []
    for row in range(PARTITIONS):
        base = np.array([rng.standard_normal(ROWS), rng.standard_normal(ROWS)])
        base[1] += 0.5 * base[0]
        for x, y in itertools.product(WILD, WILD):
            new = base.copy()
            new[:, row] = x, y
            found.append((base, row, new))
    return found


def marginals(columns: np.ndarray, power: float, share: float):  # type: ignore[no-untyped-def]
    accumulator = MomentsAccumulator(2, PARTITIONS)
    accumulator.add(list(columns), PARTITION)
    return fit(accumulator.result(), 0, Zellner(50.0), power, share)


def _codes(spec: ProbabilitySums, columns: np.ndarray) -> np.ndarray:
    found = marginals(columns, spec.power, spec.power / PARTITIONS)
    return probability_codes(spec, found.probabilities(AT))


PROBABILITIES = [
    ProbabilitySums(("x", "y"), "x", AT, PARTITIONS),
    ProbabilitySums(("x", "y"), "x", AT, PARTITIONS, power=2.0),
    ProbabilitySums(("x", "y"), "x", AT, PARTITIONS, "fisher", 0.001),
]


@pytest.mark.parametrize("spec", PROBABILITIES, ids=("normality", "sharpened", "fisher"))
def test_one_record_moves_probability_sums_by_one_lattice_value(spec: ProbabilitySums) -> None:
    """E4: by the whole range of one partition; dividing by M is refuted by the same search."""
    bound = sensitivity(spec, "replace-one")
    assert bound.l1 == len(AT) * 2**spec.bits
    most = 0
    for base, row, new in tables():
        before, after = (_codes(spec, t) for t in (base, new))
        assert after.min() >= 0
        assert after.max() <= 2**spec.bits
        others = np.arange(PARTITIONS) != PARTITION[row]
        assert (before[others] == after[others]).all()
        most = max(most, int(np.abs(after.sum(axis=0) - before.sum(axis=0)).sum()))
    assert most <= bound.l1
    assert most > bound.l1 / 2 > bound.l1 / PARTITIONS


def test_the_bound_is_attained() -> None:
    """A partition that is sure the coefficient is low, and one that is sure it is high."""
    for spec in PROBABILITIES:
        low, high = (probability_codes(spec, np.full((1, 3), p)) for p in (0.0, 1.0))
        assert int(np.abs(high - low).sum()) == sensitivity(spec, "add-remove").l1


def test_one_record_moves_the_quantile_sum_by_the_interval() -> None:
    spec = QuantileSum(("x", "y"), "x", 0.3, PARTITIONS, 0.25, 0.5, "centred", 1.0)
    bound = sensitivity(spec, "replace-one")
    assert bound.l1 == 2 * 2**spec.bits
    most = 0
    for base, row, new in tables():
        before, after = (
            quantile_codes(spec, marginals(t, PARTITIONS, 1.0).quantiles(0.3)) for t in (base, new)
        )
        assert np.abs(after).max() <= 2**spec.bits
        others = np.arange(PARTITIONS) != PARTITION[row]
        assert (before[others] == after[others]).all()
        most = max(most, abs(int(after.sum() - before.sum())))
    assert bound.l1 / 2 < most <= bound.l1


def test_what_cannot_be_fitted_has_a_place_on_the_lattice() -> None:
    half = probability_codes(PROBABILITIES[0], np.full((1, 3), np.nan))
    assert (half == 2**29).all()
    spec = QuantileSum(("x", "y"), "x", 0.3, 2, 5.0, 0.5, "centred", 1.0)
    found = quantile_codes(spec, np.array([np.nan, np.inf, -np.inf, 1e308]))
    assert found.ravel().tolist() == [0, 2**30, -(2**30), 2**30]


# -- the searches --------------------------------------------------------------------------------


def quantile_pairs() -> list[tuple[np.ndarray, np.ndarray]]:
    """Partition quantiles of neighbouring tables: one of them differs, in any way."""
    rng = np.random.default_rng(13)
    values = (0.0, 0.4, -1.0, 2.0, 100.0, -1e6, 1e30, np.nan)
    found = []
    for old, new in itertools.permutations(values, 2):
        rest = rng.normal(0.5, 1, 9)
        found.append((np.append(rest, old), np.append(rest, new)))
    return found


def test_no_count_moves_by_more_than_one_and_all_move_the_same_way() -> None:
    """Nested intervals: counts are monotone, which E5's noise does not even need."""
    radii = 0.01 * 2.0 ** np.arange(60)
    reached = 0
    for old, new in quantile_pairs():
        difference = search.counts(new, -radii, radii) - search.counts(old, -radii, radii)
        assert np.abs(difference).max() <= 1
        assert difference.min() >= 0 or difference.max() <= 0
        reached = max(reached, int(np.abs(difference).max()))
    assert reached == 1


def test_no_penalty_of_a_candidate_moves_by_more_than_claimed() -> None:
    found = search.candidates(0.5)
    reached = 0
    for old, new in quantile_pairs():
        change = search.penalties(new, found, 0.3) - search.penalties(old, found, 0.3)
        reached = max(reached, int(np.abs(change).max()))
        assert change[-1] == 0  # "no interval" is public
    assert reached <= search.MAX_WORTH
    assert reached > search.MAX_WORTH / 2


def test_counts_equal_a_loop() -> None:
    q = np.array([0.0, 1.0, 1.0, 2.5, np.nan, -np.inf, np.inf])
    lower, upper = np.array([0.0, 1.0, -5.0, 3.0]), np.array([1.0, 1.0, 5.0, 9.0])
    plain = [sum(a <= v <= b for v in q) for a, b in zip(lower, upper, strict=True)]
    assert search.counts(q, lower, upper).tolist() == plain == [3, 2, 4, 0]


def loss(pair: tuple[list[int], list[int]], level: int, scales: tuple[float, float]) -> float:
    """The largest log-ratio of any outcome that is not astronomically rare."""
    p, q = (stopping_distribution(queries, level, *scales) for queries in pair)
    seen = (p > 1e-12) & (q > 1e-12)
    return float(np.abs(np.log(p[seen] / q[seen])).max())


def query_pairs(monotone: bool) -> list[tuple[list[int], list[int]]]:
    """Counts that differ by at most one each, chosen to be told apart as well as possible."""
    found = []
    for before, last, length in itertools.product((-30, -12, 0), (-30, 0, 30), (1, 30)):
        old = [before] * length + [last]
        for move in (-1, 1):
            new = [q + move for q in old]
            new[-1] = last if monotone else last - move
            found.append((old, new))
    return found


@pytest.mark.parametrize("monotone", [True, False])
def test_above_threshold_spends_its_budget_and_no_more(monotone: bool) -> None:
    """Exact: all outcomes, all neighbouring pairs of a family. Half of the noise is caught."""
    epsilon = 0.8
    noise = search.threshold_noise(epsilon)
    scales = noise.threshold.noise.scale, noise.query.noise.scale
    assert scales == pytest.approx((2 / epsilon, 4 / epsilon), rel=1e-12)
    pairs = query_pairs(monotone)
    honest = max(loss(pair, 0, scales) for pair in pairs)
    halved = max(loss(pair, 0, (scales[0] / 2, scales[1] / 2)) for pair in pairs)
    print(f"above-threshold, claim {epsilon}: exact loss {honest:.3f}, half the noise {halved:.3f}")
    # 1/s + 2/s' = ε is attained in general, 1/s + 1/s' = 3ε/4 by counts of nested intervals.
    assert honest == pytest.approx(0.75 * epsilon if monotone else epsilon, rel=0.02)
    assert honest <= epsilon * (1 + 1e-9)
    assert halved > epsilon


def test_the_search_costs_exactly_its_budget() -> None:
    noise = search.threshold_noise(0.45)
    assert noise.threshold.noise.cost + noise.query.noise.cost == 0.45


def test_above_threshold_stops_as_its_distribution_says() -> None:
    """False alarm 1e-6."""
    epsilon, queries, level, runs = 1.5, [0, 4, 6, 9], 7, 2500
    noise = search.threshold_noise(epsilon)
    expected = stopping_distribution(queries, level, 2 / epsilon, 4 / epsilon)
    stops = [search.above_threshold(np.array(queries), level, noise) for _ in range(runs)]
    observed = [stops.count(i) for i in range(len(queries))] + [stops.count(None)]
    assert stats.chisquare(observed, runs * expected).pvalue > 1e-6


@pytest.mark.parametrize(("centre", "spread", "scale"), [(2, 0.3, 1), (-900, 40, 30), (0, 1e-3, 1)])
def test_a_generous_budget_finds_a_close_interval(
    centre: float, spread: float, scale: float
) -> None:
    q = np.random.default_rng(14).normal(centre, spread, 2000)
    c, r = search.centred_interval(q, scale, 50.0)
    assert np.mean(np.abs(q - c) <= r) > 0.8
    assert r < 8 * spread


def test_a_search_that_finds_nothing_says_so() -> None:
    q = np.full(500, 1e9)
    with pytest.raises(SearchError, match=r"no interval was found .* the budget stays spent"):
        search.centred_interval(q, 1.0, 5.0)
    with pytest.raises(SearchError, match=r"found no bound within its cap: up to ±8, .* stays"):
        search.symmetric_radius(q, 1.0, 0.5, 3, search.threshold_noise(5.0))
    with pytest.raises(SearchError, match="no bound within its cap"):
        search.symmetric_radius(np.full(500, np.nan), 1.0, 0.5, 3, search.threshold_noise(5.0))


# -- the audit that guards the other mechanisms --------------------------------------------------


@pytest.mark.parametrize("spec", PROBABILITIES[1:], ids=("normality", "fisher"))
def test_audit_passes_the_true_sensitivity_and_catches_e4(spec: ProbabilitySums) -> None:
    epsilon = 1.0
    low = np.full(3, PARTITIONS * 2**29, np.int64)
    high = low + 2**spec.bits  # one partition from "surely below" to "surely above"
    honest = calibrate("laplace", sensitivity(spec, "replace-one"), epsilon)
    found = epsilon_lower_bound(honest, low, high, 40_000)
    assert 0.6 * epsilon < found <= epsilon
    divided = Sensitivity(sensitivity(spec, "replace-one").l1 // PARTITIONS, 1)
    assert epsilon_lower_bound(calibrate("laplace", divided, epsilon), low, high, 40_000) > epsilon


def test_audit_of_the_quantile_sum() -> None:
    spec = QuantileSum(("x", "y"), "x", 0.3, PARTITIONS, 0.0, 0.5, "centred", 1.0)
    low, high = np.array([-(2**30)]), np.array([2**30])
    honest = calibrate("laplace", sensitivity(spec, "replace-one"), 1.0)
    assert 0.7 < epsilon_lower_bound(honest, low, high, 40_000) <= 1.0
    half = calibrate("laplace", Sensitivity(2**30, 2**60), 1.0)
    assert epsilon_lower_bound(half, low, high, 40_000) > 1.0
    assert isinstance(honest.noise, Noise)
