"""The ledger: who may spend how much, and what was spent.

The spend is committed before :meth:`Ledger.spend` returns, and callers draw noise only after it
has returned. A crash in between wastes budget; it can never overdraw it. Asking twice for the same
release is two spends: the noise is drawn anew, so the guarantee is spent anew.

Every spend replays the account's history first and is refused where its hash chain is broken. That
reads the entries of one account, some 20 microseconds each.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from noisewise.artifact import ArgumentError, BudgetError, Receipt, Release
from noisewise.privacy.ledger import hash_chain, spending_rules
from noisewise.privacy.ledger.accounts import (
    NO_RELEASE,
    Account,
    Cost,
    Entry,
    Finding,
    account_name,
    cost_of,
    likeness,
)
from noisewise.privacy.ledger.store import Rows, Store


class Ledger:
    """Budgets by dataset, in a store. Use it as a context manager, or close it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._turn = threading.Lock()
        self._process = os.getpid()

    @property
    def id(self) -> str:
        """Return the ledger's own name, a UUID given when it was created."""
        return self._store.id

    def set_budget(
        self,
        dataset: str,
        *,
        epsilon: float | None = None,
        rho: float | None = None,
        neighbours: str | None = None,
        unit: str | None = None,
    ) -> Account:
        """Open an account, or change its budget; either way it becomes part of the history.

        Currency, neighbour relation and privacy unit ("record", or the column that says whose a
        record is) may change only while nothing is spent, and no budget may fall below what is
        spent. A unit that version 0.1 did not record may be stated once.
        """
        accounting, amount = spending_rules.asked_budget(epsilon, rho)
        with self._writing() as rows:
            twins = self._alike(rows, dataset)
            name = twins[0].dataset if len(twins) == 1 else dataset
            if name not in {twin.dataset for twin in twins}:
                name = account_name(dataset)
            wanted = spending_rules.opened(self.id, name, accounting, amount, neighbours, unit)
            return self._set(rows, wanted, amount)

    def accounts(self) -> tuple[Account, ...]:
        """Return all accounts, by name."""
        with self._reading() as rows:
            return rows.accounts()

    def entries(self, dataset: str | None = None) -> tuple[Entry, ...]:
        """Return the history of one account, oldest first: spends and changes of budget."""
        with self._reading() as rows:
            return rows.entries(self._find(rows, dataset).dataset)

    def check(self, dataset: str | None, cost: Cost) -> None:
        """Raise :class:`BudgetError` if ``cost`` would not fit now; writes nothing.

        It lets a caller fail before hours of work. Only :meth:`spend` is binding.
        """
        with self._reading() as rows:
            account = self._payer(rows, dataset, cost)
            if account is not None:
                spending_rules.charge(self._sound(rows, account), cost)

    def spend(
        self, dataset: str | None, cost: Cost, description: str, *, entry: str | None = None
    ) -> Receipt:
        """Take ``cost`` from the budget for good, or raise :class:`BudgetError` and take nothing.

        ``dataset=None`` means the only account. The spend is on disk when this returns. It is
        refused where the account's history does not pass an audit.

        Args:
            dataset: the account, however its name is typed.
            cost: what to take.
            description: what it is for.
            entry: the name of the entry, a new UUID; chosen here unless given.
        """
        with self._writing() as rows:
            account = self._payer(rows, dataset, cost) or self._opened(rows, cost)
            after, spent = spending_rules.spend(
                self._sound(rows, account), cost, description, entry
            )
            rows.append(after, spent)
        return Receipt(ledger=self.id, dataset=spent.dataset, entry=spent.entry)

    def note_lost(self, entry: str, why: str) -> bool:
        """Write down that a spend brought no release; return whether there is such a spend."""
        with self._writing() as rows:
            spend = rows.entry(entry)
            account = None if spend is None else rows.account(spend.dataset)
            if spend is None or account is None:
                return False
            words = (e.description for e in rows.entries(account.dataset))
            if any(told.startswith(NO_RELEASE + entry) for told in words):
                return True
            rows.append(*spending_rules.lost(account, spend, why))
        return True

    def audit(self, paid: Iterable[Release | tuple[Receipt, Cost]] = ()) -> tuple[Finding, ...]:
        """Return what is wrong with the ledger, or with releases that say it paid for them.

        Nothing found means: no account is overdrawn, no history was edited or cut, and every
        given release was paid for here, once and in full. An older copy of the ledger that was put
        back is found by the releases made since, and by nothing else: give them all.

        Args:
            paid: releases, or their receipts and costs.
        """
        findings: list[Finding] = []
        entries: list[Entry] = []
        claims: list[tuple[Receipt, Cost]] = []
        for claim in paid:
            if not isinstance(claim, Release):
                claims.append(claim)
            elif claim.receipt is None:
                findings.append(Finding(None, "no ledger paid for one of the releases"))
            else:
                claims.append((claim.receipt, cost_of(claim.guarantee, claim.unit)))
        with self._reading() as rows:
            for account in rows.accounts():
                history = rows.entries(account.dataset)
                findings += hash_chain.verify(self.id, account, history)
                entries += history
            for dataset in rows.strays():
                findings.append(Finding(dataset, "the account is gone, its history is not"))
                entries += rows.entries(dataset)
        findings += hash_chain.match(self.id, entries, claims)
        return tuple(findings)

    def close(self) -> None:
        """Let go of the file or the database session."""
        self._store.close()

    def _set(self, rows: Rows, wanted: Account, amount: float | None) -> Account:
        """Open the account unless it is there, and give it the wanted budget."""
        rows.open(wanted)
        account = self._stored(rows, wanted.dataset)
        spending_rules.refuse_untrue_unit(account, wanted, rows.entries(account.dataset))
        after, entry = spending_rules.set_budget(account, wanted, amount)
        rows.append(after, entry)
        return after

    def _payer(self, rows: Rows, dataset: str | None, cost: Cost) -> Account | None:
        """Return the account that pays; None where one would have to be opened for it."""
        return self._find(rows, dataset)

    def _opened(self, rows: Rows, cost: Cost) -> Account:
        raise NotImplementedError("only a ledger that counts opens accounts by itself")

    def _find(self, rows: Rows, dataset: str | None) -> Account:
        if dataset is None:
            dataset = self._only(rows)
        account = self._named(rows, dataset)
        if account is None:
            raise BudgetError(
                f"dataset={account_name(dataset)!r} has no budget in {self._store.place}; it has "
                f"{_names(rows)}. Set one with `noisewise ledger set`"
            )
        return account

    def _named(self, rows: Rows, dataset: str) -> Account | None:
        """Return the account of that name, however it is typed, or None."""
        twins = self._alike(rows, dataset)
        exact = [twin for twin in twins if twin.dataset == dataset]
        chosen = exact or twins
        if not chosen:
            return None
        spending_rules.refuse_twins(chosen[0], twins)
        return self._stored(rows, chosen[0].dataset)

    def _alike(self, rows: Rows, dataset: str) -> list[Account]:
        """Return the accounts whose names a person may take for this one."""
        if not isinstance(dataset, str):
            account_name(dataset)
        looks = likeness(dataset)
        return [account for account in rows.accounts() if likeness(account.dataset) == looks]

    def _stored(self, rows: Rows, dataset: str) -> Account:
        """Return an account that is there, kept from other writers."""
        account = rows.account(dataset)
        if account is None:
            raise BudgetError(f"dataset={dataset!r} has gone from {self._store.place} meanwhile")
        if account.unit is None and account.spent_units:
            return spending_rules.with_known_unit(account, rows.entries(account.dataset))
        return account

    def _sound(self, rows: Rows, account: Account) -> Account:
        """Return the account once its history has passed the audit."""
        row = rows.account(account.dataset)
        for finding in hash_chain.verify(self.id, row or account, rows.entries(account.dataset)):
            raise BudgetError(
                f"the ledger {self._store.place} was edited: dataset {str(finding)!r}. Nothing "
                "was drawn. `noisewise ledger audit` says more; restore a sound copy, or set a "
                "budget in another ledger"
            )
        return account

    def _only(self, rows: Rows) -> str:
        accounts = rows.accounts()
        if len(accounts) != 1:
            raise BudgetError(
                f"which budget is to be spent? {self._store.place} has {_names(rows)}: "
                + ("pass dataset=" if accounts else "set one with `noisewise ledger set`")
            )
        return accounts[0].dataset

    @contextmanager
    def _reading(self) -> Iterator[Rows]:
        with self._alone(), self._store.reading() as rows:
            yield rows

    @contextmanager
    def _writing(self) -> Iterator[Rows]:
        with self._alone(), self._store.writing() as rows:
            yield rows

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the connection: one transaction at a time, and none over one cloned by fork."""
        if os.getpid() != self._process:
            raise ArgumentError(
                "this ledger was opened in another process, whose connection cannot be shared: "
                "call open_ledger again in this one"
            )
        with self._turn:
            yield

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Ledger {self.id} in {self._store.place}>"


def _names(rows: Rows) -> str:
    names = [repr(account.dataset) for account in rows.accounts()]
    return f"accounts for {', '.join(names)}" if names else "no accounts"
