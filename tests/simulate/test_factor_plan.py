"""Plans and checks of regressions with factors: what they foretell comes true."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import noisewise as nw
from experiments.factors.tables import B_SHARES, Table, two_factors, wages
from noisewise.artifact import Release, process_ending
from noisewise.simulate import Plan
from noisewise.simulate.trials import Outcome

RELEASES = 50
WAGES_GUESS = {
    "education": (12.8, 2.9), "slope:education": 0.09, "C(female)[T.1]": -0.3, "wage": (10, 1),
    "sigma": 0.93, "female": {0: 0.51, 1: 0.49},
}  # fmt: skip
TWO_GUESS = {
    "x": "uniform", "slope:x": 0.5, "C(A)[T.a2]": 0.4, "C(B)[T.b2]": 0.3, "C(B)[T.b3]": -0.3,
    "C(B)[T.b4]": 0.5, "C(B)[T.b5]": -0.5, "intercept": 0.0, "sigma": 1.0,
    "B": dict(zip(("b1", "b2", "b3", "b4", "b5"), B_SHARES, strict=True)),
}  # fmt: skip


def released(source: Any, like: Table, epsilon: float) -> Release:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return nw.release.linear_regression(
            source, formula=like.formula, bounds=like.bounds, levels=like.levels, epsilon=epsilon
        )


def planned(like: Table, epsilons: list[float], guess: Mapping[str, Any], **words: Any) -> Plan:
    n = len(like)
    return nw.plan(
        lambda e: released(nw.release.Blank(n), like, e), n, epsilons, methods=["exact"],
        guesses=guess, **words,
    )  # fmt: skip


def real_widths(tables: list[Table], epsilon: float) -> dict[str, float]:
    rows = []
    for seed, table in enumerate(tables):
        post = nw.infer(released(pd.DataFrame(table.columns), table, epsilon), seed=seed)
        ends = {name: np.quantile(v, [0.025, 0.975]) for name, v in post.draws.items()}
        rows.append({name: float(high - low) for name, (low, high) in ends.items()})
    return dict(pd.DataFrame(rows).mean())


@pytest.mark.evidence
@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_wages_come_true(epsilon: float) -> None:
    """Numbers and a factor of two levels, 54,875 records: within 15 % of 50 real releases."""
    table = wages()
    foretold = planned(table, [epsilon], WAGES_GUESS)
    for name, width in real_widths([table] * RELEASES, epsilon).items():
        assert foretold.row(epsilon, "exact", name).width == pytest.approx(width, rel=0.15), name


@pytest.mark.evidence
@pytest.mark.filterwarnings("ignore:The noise hides:UserWarning")
@pytest.mark.parametrize("n", [2000, 20_000])
def test_factors_of_two_and_five_levels_come_true(n: int) -> None:
    """The level of 2 % varies most, by a quarter from one release to the next."""
    tables = [two_factors(np.random.default_rng([n, s]), n) for s in range(RELEASES)]
    foretold = planned(tables[0], [1.0], TWO_GUESS, trials=RELEASES)
    for name, width in real_widths(tables, 1.0).items():
        assert foretold.row(1.0, "exact", name).width == pytest.approx(width, rel=0.15), name


@pytest.mark.evidence
def test_the_epsilon_found_gives_the_width() -> None:
    table = wages()
    found = planned(table, [1.0], WAGES_GUESS, width={"education": 0.02, "C(female)[T.1]": 0.04})
    for target in found.targets:
        assert target.epsilon is not None
        real = real_widths([table] * 10, target.epsilon)
        assert real[target.parameter] == pytest.approx(target.width, rel=0.1)
    assert found.target == max(found.targets, key=lambda w: w.epsilon or 0)


@pytest.mark.evidence
@pytest.mark.filterwarnings("ignore:The noise hides:UserWarning")
def test_the_epsilon_found_gives_the_width_with_an_interaction() -> None:
    """Also in the mean over tables; ten real releases, of ten tables."""
    tables = [two_factors(np.random.default_rng([5, s]), 2000) for s in range(10)]
    tables = [replace(t, formula="y ~ x + C(A) + C(B) + x:C(A)") for t in tables]
    (target,) = planned(tables[0], [1.0], TWO_GUESS, width={"x": 0.5}).targets
    assert target.epsilon is not None
    assert real_widths(tables, target.epsilon)["x"] == pytest.approx(0.5, rel=0.1)


@pytest.mark.evidence
def test_the_records_said_to_suffice_do() -> None:
    table = two_factors(np.random.default_rng(0), 2000)
    (target,) = planned(table, [1.0], TWO_GUESS, width={"x": 0.1}).targets
    assert target.epsilon is None
    assert target.records is not None
    more = two_factors(np.random.default_rng(0), target.records)
    there = planned(more, [10.0], TWO_GUESS)
    assert there.row(10.0, "exact", "x").width == pytest.approx(0.1, rel=0.1)


@pytest.mark.evidence
def test_exact_is_calibrated_where_truths_come_from_the_prior() -> None:
    """A number and a factor of two levels: false alarm 1 %."""
    like = two_factors(np.random.default_rng(0), 500)
    like = Table(
        {c: like.columns[c] for c in ("x", "A", "y")}, like.bounds, {"A": like.levels["A"]},
        "y ~ x + C(A)",
    )  # fmt: skip
    found = nw.check(released(nw.release.Blank(500), like, 2.0), ["exact"], trials=200)
    assert found.of("exact").passed, found.of("exact").verdict


def test_products_of_columns_far_from_zero_are_warned_of() -> None:
    """Of each factor whose bounds lie on one side of zero; the other one may be centred."""

    def at(epsilon: float) -> Release:
        limits = {"age": (18, 90), "past": (-9, 9), "pay": (0, 9)}
        return nw.release.linear_regression(
            nw.release.Blank(500), formula="pay ~ age * past", bounds=limits, epsilon=epsilon
        )

    said = nw.plan(at, 500, [1.0], methods=["naive"], trials=10).warnings
    about = [w for w in said if "its products then vary with" in w]
    assert len(about) == 1
    assert "age - 54 with bounds -36 to 36" in about[0]


@pytest.mark.parametrize(
    ("bounds", "warned"), [((18, 90), True), ((-36, 36), False), ((0, 1), True), ((-1, 2), False)]
)
def test_powers_of_a_column_far_from_zero_are_warned_of(
    bounds: tuple[float, float], warned: bool
) -> None:
    def at(epsilon: float) -> Release:
        limits = {"age": bounds, "pay": (0, 9)}
        formula = "pay ~ age + I(age**2) + I(age**3)"
        return nw.release.linear_regression(
            nw.release.Blank(500), formula=formula, bounds=limits, epsilon=epsilon
        )

    said = nw.plan(at, 500, [1.0], methods=["naive"], trials=10).warnings
    about = [w for w in said if w.startswith("Between its bounds 'age' and its powers")]
    assert len(about) == warned
    if bounds == (18, 90):
        assert "age - 54 with bounds -36 to 36" in about[0]


@pytest.mark.parametrize(
    ("share", "said"), [(0.0, "In 10 of 10 simulated tables"), (0.005, "which the widths without")]
)
def test_levels_without_a_record_are_said(share: float, said: str) -> None:
    """In some simulated tables, or in all: least squares then has no answer."""

    def at(epsilon: float) -> Release:
        return nw.release.linear_regression(
            nw.release.Blank(300), formula="pay ~ C(town)", bounds={"pay": (0, 9)},
            levels={"town": ["a", "b", "c"]}, epsilon=epsilon,
        )  # fmt: skip

    guesses = {"town": {"a": 0.5, "b": 0.5 - share, "c": share}}
    plan = nw.plan(at, 300, [1.0], methods=["naive"], trials=10, guesses=guesses)
    assert said in plan.warnings[0]
    assert np.isfinite(list(plan.without.values())).all() == (share > 0)


def test_posteriors_that_did_not_converge_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a search for a width simulated them."""

    def at(epsilon: float) -> Release:
        return nw.release.exponential_family(
            nw.release.Blank(300), column="owns", family="bernoulli", epsilon=epsilon
        )

    simulator = type(nw.models.find("exponential-family").simulator())
    plain = simulator.run_planned

    def unsettled(self: Any, *args: Any, **words: Any) -> Outcome:
        return replace(plain(self, *args, **words), unconverged=0.25)

    monkeypatch.setattr(simulator, "run_planned", unsettled)
    said = nw.plan(at, 300, [1.0], methods=["exact"], trials=20).warnings
    assert "At epsilon = 1, 5 of 20 simulated posteriors by exact had not converged" in said[-1]


def test_an_interrupted_plan_says_what_was_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a note of the exception; and nothing is left behind for later interrupts."""

    def at(epsilon: float) -> Release:
        return nw.release.exponential_family(
            nw.release.Blank(300), column="owns", family="bernoulli", epsilon=epsilon
        )

    simulator = type(nw.models.find("exponential-family").simulator())
    plain = simulator.run_planned
    limits = [0, 1]

    def interrupted(self: Any, *args: Any, **words: Any) -> Outcome:
        limits[0] += 1
        if limits[0] > limits[1]:
            raise KeyboardInterrupt
        return plain(self, *args, **words)

    monkeypatch.setattr(simulator, "run_planned", interrupted)
    for finished, said in (
        (0, "no epsilon had been simulated to the end"),
        (1, r"mean widths of intervals by naive so far: at epsilon = 0\.5 p 0\.\d+$"),
        # The grid is done, and the search for a width had begun.
        (2, r"so far: at epsilon = 0\.5 p 0\.\d+; at epsilon = 1 p 0\.\d+$"),
    ):
        limits[:] = [0, finished]
        with pytest.raises(KeyboardInterrupt) as caught:
            nw.plan(at, 300, [0.5, 1.0], methods=["naive"], trials=10, width=1e-4)
        (note,) = caught.value.__notes__
        assert re.search(said, note), note
        assert process_ending.all_last_words() == ""


def test_the_standard_error_of_widths_is_that_of_other_trials() -> None:
    def at(epsilon: float) -> Release:
        return nw.release.exponential_family(
            nw.release.Blank(300), column="owns", family="bernoulli", epsilon=epsilon
        )

    plans = [nw.plan(at, 300, [1.0], methods=["exact"], trials=10, seed=s) for s in range(40)]
    rows = [plan.row(1.0, "exact", "p") for plan in plans]
    wanted = np.std([r.width for r in rows], ddof=1)
    assert np.mean([r.error for r in rows]) == pytest.approx(wanted, rel=0.4)
    assert plans[0].relative_errors == (rows[0].error / rows[0].width,)
