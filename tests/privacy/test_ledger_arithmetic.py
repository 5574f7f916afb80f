"""The ledger's arithmetic and decisions, without a store."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noisewise.artifact import ArgumentError, BudgetError, Guarantee
from noisewise.privacy.ledger import Account, Cost, cost_of, spending_rules
from noisewise.privacy.ledger.accounts import (
    UNITS_PER_ONE,
    budget_units,
    decimal,
    exact,
    spend_units,
)

AMOUNTS = st.floats(1e-9, 1000, allow_subnormal=False)


def account(budget: float = 1.0, accounting: str = "pure") -> Account:
    return spending_rules.opened("a-ledger", "people", accounting, budget, None)  # type: ignore[arg-type]


def spend(before: Account, amount: float, accounting: str = "pure") -> Account:
    cost = Cost(accounting, amount, "replace-one")  # type: ignore[arg-type]
    return spending_rules.spend(before, cost, "a release")[0]


def number_written(amount: float) -> Fraction:
    return Fraction(repr(amount))


@given(AMOUNTS)
def test_a_spend_is_rounded_up_and_a_budget_down_by_less_than_a_unit(amount: float) -> None:
    true = number_written(amount) * UNITS_PER_ONE
    assert 0 <= spend_units(exact(amount, "x"), "x") - true < 1
    assert 0 <= true - budget_units(exact(amount, "x"), "x") < 1


@given(AMOUNTS, st.lists(AMOUNTS, max_size=30))
@settings(deadline=None)
def test_what_is_accepted_never_exceeds_the_budget(budget: float, amounts: list[float]) -> None:
    state, accepted = account(budget), Fraction(0)
    for amount in amounts:
        try:
            state = spend(state, amount)
        except BudgetError:
            continue
        accepted += number_written(amount)
    assert accepted <= number_written(budget)


@given(st.integers(2, 10**15), st.data())
def test_what_remains_can_be_spent_to_the_last_unit(units: int, data: st.DataObject) -> None:
    state = account(units / UNITS_PER_ONE)
    assert state.budget_units == units
    state = spend(state, data.draw(st.integers(1, units)) / UNITS_PER_ONE)
    if state.remaining_units:
        state = spend(state, state.remaining)
    assert state.remaining == 0
    with pytest.raises(BudgetError):
        spend(state, 1e-12)


@given(AMOUNTS)
def test_pure_to_zcdp_is_half_the_square_exactly(epsilon: float) -> None:
    state = spend(account(1e6, "zcdp"), epsilon)
    rho = number_written(epsilon) ** 2 / 2
    assert 0 <= state.spent_units - rho * UNITS_PER_ONE < 1


@given(st.integers(0, 2**63 - 1))
def test_units_are_written_out_exactly(units: int) -> None:
    assert Fraction(decimal(units)) == Fraction(units, UNITS_PER_ONE)


@pytest.mark.parametrize(("amount", "times"), [(0.1, 10), (0.2, 5), (1e-3, 1000), (1 / 8, 8)])
def test_tenths_add_up_to_one(amount: float, times: int) -> None:
    state = account(1.0)
    for _ in range(times):
        state = spend(state, amount)
    assert (state.spent, state.remaining) == (1.0, 0.0)


def test_the_smallest_spend_costs_one_unit_not_nothing() -> None:
    assert spend(account(), 5e-324).spent_units == 1


def test_numpy_and_whole_numbers_are_numbers() -> None:
    assert spend(account(), np.float64(0.1)).spent == 0.1
    assert spend(account(), 1).remaining == 0


@pytest.mark.parametrize(
    "value", [0, -1.0, math.nan, math.inf, -math.inf, True, "0.1", None, 10**400, 1j, np.True_]
)
def test_what_is_not_a_positive_number_is_refused_by_name(value: object) -> None:
    with pytest.raises(ArgumentError, match="epsilon="):
        Cost("pure", value, "replace-one")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="epsilon="):
        account(value)  # type: ignore[arg-type]


def test_amounts_beyond_64_bits_are_refused() -> None:
    with pytest.raises(ArgumentError, match="epsilon is too large"):
        account(1e7)
    with pytest.raises(ArgumentError, match="too large"):
        spend(account(1e6, "zcdp"), 1e6)
    assert account(9_223_372.0).budget == 9_223_372.0


def test_a_budget_below_the_unit_is_refused() -> None:
    with pytest.raises(ArgumentError, match="at least 1e-12"):
        account(1e-13)


def test_unknown_accounting_and_empty_relation_are_refused() -> None:
    with pytest.raises(ArgumentError, match='expected "pure" or "zcdp"'):
        Cost("renyi", 1.0, "replace-one")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="neighbours="):
        Cost("pure", 1.0, "")


def test_a_gaussian_release_needs_a_zcdp_account() -> None:
    with pytest.raises(BudgetError, match="zCDP account") as refused:
        spend(account(), 0.1, "zcdp")
    assert "--rho" in str(refused.value)
    assert spend(account(1.0, "zcdp"), 0.1, "zcdp").spent == 0.1


def test_the_overdraw_message_has_all_the_numbers() -> None:
    state = spend(account(1.0), 0.9)
    with pytest.raises(BudgetError) as refused:
        spend(state, 0.2)
    for part in ("'people'", "epsilon 0.2", "0.1 remains", "budget 1,", "spent 0.9", "Nothing was"):
        assert part in str(refused.value)


def test_the_overdraw_message_shows_the_conversion() -> None:
    with pytest.raises(BudgetError, match=r"rho 0\.5 \(epsilon 1\.0, as rho = epsilon²/2\)"):
        spend(account(0.1, "zcdp"), 1.0)


def test_relations_do_not_mix() -> None:
    state = spend(account(), 0.1)
    assert state.neighbours == "replace-one"
    with pytest.raises(BudgetError, match="do not add up"):
        spending_rules.spend(state, Cost("pure", 0.1, "add-remove"), "another relation")


def test_a_long_or_odd_description_does_not_stop_a_spend() -> None:
    cost = Cost("pure", 0.1, "replace-one")
    _, entry = spending_rules.spend(account(), cost, "a\0b\ud800c\n" + "x" * 5000)
    assert entry.description.startswith("a b c x")
    assert len(entry.description) == spending_rules.MAX_DESCRIPTION_LENGTH


def test_cost_of_a_guarantee() -> None:
    pure = Guarantee(epsilon=0.5, neighbours="add-remove")
    within = Guarantee(epsilon=0.5, neighbours="replace-one", within="tract")
    zcdp = Guarantee(epsilon=5.0, neighbours="replace-one", delta=1e-6, rho=0.3)
    assert cost_of(pure) == Cost("pure", 0.5, "add-remove")
    assert cost_of(within).neighbours == "replace-one-within-tract"
    assert cost_of(zcdp) == Cost("zcdp", 0.3, "replace-one")


def test_currency_and_relation_may_change_until_something_is_spent() -> None:
    pure = spending_rules.opened("a-ledger", "people", "pure", 1.0, "add-remove")
    zcdp = spending_rules.opened("a-ledger", "people", "zcdp", 1.0, "replace-one")
    changed, _ = spending_rules.set_budget(pure, zcdp, 1.0)
    assert (changed.accounting, changed.neighbours) == ("zcdp", "replace-one")
    spent = replace(pure, spent_units=1)
    with pytest.raises(BudgetError, match="stays in epsilon"):
        spending_rules.set_budget(spent, zcdp, 1.0)
    with pytest.raises(BudgetError, match="do not add up"):
        spending_rules.set_budget(spent, replace(pure, neighbours="replace-one"), 1.0)
