"""Rules of spending and of setting budgets: the decisions, and nothing but the decisions.

Pure functions from an account and a request to the account afterwards and the line that goes into
its history. Both stores call these with the account's row locked, so there is one place in the
library that can say yes to a spend.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from noisewise.artifact import ArgumentError, BudgetError
from noisewise.privacy.ledger.accounts import (
    MAX_UNITS,
    NO_CAP,
    NO_RELEASE,
    PARAMETER,
    RECORD,
    Account,
    Accounting,
    Cost,
    Entry,
    budget_units,
    decimal,
    exact,
    printable,
    spend_units,
)
from noisewise.privacy.ledger.hash_chain import sealed

MAX_DESCRIPTION_LENGTH = 1000
"""Characters of a description that are kept (chosen)."""

RECORD_FAMILIES = frozenset(
    {"linear-regression", "exponential-family", "posterior-probability", "posterior-quantile"}
)
"""Families of which version 0.1 could protect records only, as it described their spends."""


def charge(account: Account, cost: Cost) -> int:
    """Return what ``cost`` takes from ``account``, in its units; refuse what does not fit."""
    _same_relation(account, cost.neighbours)
    _same_unit(account, cost.unit)
    units = _converted(account, cost)
    if units > account.remaining_units:
        raise BudgetError(_overdraw(account, cost, units))
    return units


def spend(
    account: Account, cost: Cost, description: str, name: str | None = None
) -> tuple[Account, Entry]:
    """Return the account after the spend, and the entry that records it, called ``name``."""
    units = charge(account, cost)
    after = replace(
        account,
        spent_units=account.spent_units + units,
        neighbours=cost.neighbours,
        unit=cost.unit,
    )
    return _recorded(
        after,
        kind="spend",
        accounting=cost.accounting,
        asked=cost.asked,
        units=units,
        former_units=None,
        neighbours=cost.neighbours,
        unit=cost.unit,
        description=cleaned(description),
        **({} if name is None else {"entry": name}),
    )


def asked_budget(epsilon: float | None, rho: float | None) -> tuple[Accounting, float]:
    """Return the currency and amount of a budget, of which exactly one may be given."""
    if epsilon is not None and rho is None:
        return "pure", epsilon
    if rho is not None and epsilon is None:
        return "zcdp", rho
    raise ArgumentError(
        f"epsilon={epsilon!r}, rho={rho!r}: a budget is exactly one of epsilon (pure differential "
        "privacy, Laplace noise only) or rho (zCDP, which also takes Gaussian noise)"
    )


def opened(
    ledger: str,
    dataset: str,
    accounting: Accounting,
    amount: float,
    neighbours: str | None,
    unit: str | None = None,
) -> Account:
    """Return an account with no history yet; its chain begins at the ledger's own name."""
    name = PARAMETER[accounting]
    return Account(
        dataset=dataset,
        accounting=accounting,
        neighbours=None if neighbours is None else printable(neighbours, "neighbours"),
        budget_units=budget_units(exact(amount, name), name),
        spent_units=0,
        entries=0,
        head=ledger,
        unit=None if unit is None else printable(unit, "unit"),
    )


def uncapped(ledger: str, dataset: str, cost: Cost) -> Account:
    """Return an account with no history and no cap, for releases like the one of this cost."""
    account = opened(ledger, dataset, cost.accounting, 1.0, cost.neighbours, cost.unit)
    return replace(account, budget_units=MAX_UNITS)


def set_budget(account: Account, wanted: Account, amount: float | None) -> tuple[Account, Entry]:
    """Give ``account`` the budget of ``wanted``; what is already spent binds what may change."""
    if account.spent_units:
        _same_currency(account, wanted.accounting)
        if wanted.neighbours is not None:
            _same_relation(account, wanted.neighbours)
        if wanted.unit is not None and account.unit is not None:
            _same_unit(account, wanted.unit)
    if wanted.budget_units < account.spent_units:
        raise BudgetError(
            f"dataset {account.dataset!r}: {account.parameter} {decimal(account.spent_units)} is "
            f"already spent, so the budget cannot become {decimal(wanted.budget_units)}"
        )
    after = replace(
        account,
        accounting=wanted.accounting,
        neighbours=wanted.neighbours or account.neighbours,
        unit=wanted.unit or account.unit,
        budget_units=wanted.budget_units,
    )
    return _recorded(
        after,
        kind="budget",
        accounting=wanted.accounting,
        asked=NO_CAP if amount is None else repr(float(amount)),
        units=wanted.budget_units,
        former_units=account.budget_units if account.entries else None,
        neighbours=after.neighbours,
        unit=after.unit,
        description="budget changed" if account.entries else "budget set",
    )


def lost(account: Account, spend: Entry, why: str) -> tuple[Account, Entry]:
    """Return the account, with an entry that says that a spend brought no release."""
    return _recorded(
        account,
        kind="budget",
        accounting=account.accounting,
        asked=NO_CAP if not account.capped else repr(account.budget),
        units=account.budget_units,
        former_units=account.budget_units,
        neighbours=account.neighbours,
        unit=account.unit,
        description=cleaned(f"{NO_RELEASE}{spend.entry}: {why}"),
    )


def cleaned(description: str) -> str:
    """Return a description any store can keep: a spend must not fail over a stray character."""
    if not isinstance(description, str):
        raise ArgumentError(f"description={description!r}: expected a text")
    text = "".join(c if c.isprintable() else " " for c in description)
    return text[:MAX_DESCRIPTION_LENGTH]


def _recorded(after: Account, **what: Any) -> tuple[Account, Entry]:
    entry = sealed(
        **{"entry": str(uuid.uuid4()), **what},
        dataset=after.dataset,
        number=after.entries + 1,
        created=datetime.now(UTC).isoformat(timespec="microseconds"),
        previous=after.head,
    )
    return replace(after, entries=entry.number, head=entry.digest), entry


def _converted(account: Account, cost: Cost) -> int:
    amount = exact(cost.amount, PARAMETER[cost.accounting])
    if account.accounting == "pure" and cost.accounting == "zcdp":
        raise BudgetError(
            f"dataset {account.dataset!r} has a pure epsilon account, and a Gaussian release "
            f"({cost}) has no pure epsilon. Nothing was drawn. Use Laplace noise, or open a zCDP "
            "account under another dataset name: `noisewise ledger set LEDGER --dataset NAME "
            "--rho R`; it takes Laplace and Gaussian releases alike"
        )
    if account.accounting == "zcdp" and cost.accounting == "pure":
        return spend_units(amount**2 / 2, f"rho of {cost}")
    return spend_units(amount, PARAMETER[cost.accounting])


def _same_relation(account: Account, neighbours: str) -> None:
    if account.neighbours not in (None, neighbours):
        raise BudgetError(
            f"dataset {account.dataset!r} is accounted under {account.neighbours!r} neighbours, "
            f"and neighbours={neighbours!r} was asked for: guarantees under different relations "
            f"do not add up. Nothing was drawn. Release with neighbours={account.neighbours!r}, or "
            "set a budget under another dataset name"
        )


def with_known_unit(account: Account, history: Iterable[Entry]) -> Account:
    """Return the account with its unit, where version 0.1 did not record one but it is plain.

    Version 0.1 could weigh people in graphical models alone. Where it booked nothing but releases
    of other families, the unit is the record.
    """
    if account.unit is not None or not account.spent_units:
        return account
    spends = [entry.description for entry in history if entry.kind == "spend"]
    return replace(account, unit=RECORD) if set(spends) <= RECORD_FAMILIES else account


def refuse_untrue_unit(account: Account, wanted: Account, history: Iterable[Entry]) -> None:
    """Raise a BudgetError where people are stated as the unit of spends that protect records."""
    if account.unit is not None or wanted.unit in (None, RECORD):
        return
    if any(entry.description in RECORD_FAMILIES for entry in history if entry.kind == "spend"):
        raise BudgetError(
            f"dataset {account.dataset!r} has spends that protect records, so its unit cannot be "
            f"{wanted.unit!r}. Set a budget under another dataset name"
        )


def refuse_twins(account: Account, twins: Iterable[Account]) -> None:
    """Raise a BudgetError where an account of version 0.1 has a twin with budget of its own.

    Version 0.1 kept "people" and "People " apart: two budgets that a person takes for one.
    """
    for twin in twins:
        if twin.dataset != account.dataset and twin.remaining_units > 1:
            raise BudgetError(
                f"dataset {account.dataset!r} and dataset {twin.dataset!r} are one name, which "
                "version 0.1 kept as two budgets. Nothing was drawn. Decide for one of them, and "
                "close the other: set its budget to what it has spent (or next to nothing), "
                f"{decimal(twin.spent_units or 1)}, with `noisewise ledger set`"
            )


def _same_unit(account: Account, unit: str) -> None:
    if account.unit is None and account.spent_units:
        raise BudgetError(
            f"dataset {account.dataset!r} has spends of version 0.1, which did not record whether "
            f"they protect records or people, and unit {unit!r} was asked for. Nothing was drawn. "
            "State the unit once, with `noisewise ledger set` and --unit record (or the column "
            "that was given as unit=), or set a budget under another dataset name"
        )
    if account.unit not in (None, unit):
        raise BudgetError(
            f"dataset {account.dataset!r} is accounted per unit {account.unit!r}, and unit "
            f"{unit!r} was asked for: guarantees for different units do not add up. Nothing was "
            f"drawn. Release {_by_unit(account.unit)}, or set a budget under another dataset name"
        )


def _by_unit(unit: str | None) -> str:
    return "without unit=" if unit == RECORD else f"with unit={unit!r}"


def _same_currency(account: Account, accounting: Accounting) -> None:
    if account.accounting != accounting:
        raise BudgetError(
            f"dataset {account.dataset!r} has spent {account.parameter} "
            f"{decimal(account.spent_units)}, so its budget stays in {account.parameter}; "
            f"{PARAMETER[accounting]} was given. Set a budget under another dataset name"
        )


def _overdraw(account: Account, cost: Cost, units: int) -> str:
    converted = f" ({cost}, as rho = epsilon²/2)" if cost.accounting != account.accounting else ""
    return (
        f"dataset {account.dataset!r}: the release asks for {account.parameter} {decimal(units)}"
        f"{converted}, and {decimal(account.remaining_units)} remains (budget "
        f"{decimal(account.budget_units)}, spent {decimal(account.spent_units)}). Nothing was drawn"
    )
