"""The ledger: who may spend how much, and what was spent.

The spend is committed before :meth:`Ledger.spend` returns, and callers draw noise only after it
has returned. A crash in between wastes budget; it can never overdraw it. Asking twice for the same
release is two spends: the noise is drawn anew, so the guarantee is spent anew.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from noisewise.artifact import ArgumentError, BudgetError, Receipt
from noisewise.privacy.ledger import hash_chain, rules
from noisewise.privacy.ledger.accounts import Account, Cost, Entry, Finding, printable
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
        accounting, amount = rules.asked_budget(epsilon, rho)
        wanted = rules.opened(self.id, dataset, accounting, amount, neighbours, unit)
        with self._writing() as rows:
            rows.open(wanted)
            account = self._find(rows, dataset)
            rules.refuse_untrue_unit(account, wanted, rows.entries(dataset))
            after, entry = rules.set_budget(account, wanted, amount)
            rows.append(after, entry)
        return after

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
            rules.charge(self._find(rows, dataset), cost)

    def spend(self, dataset: str | None, cost: Cost, description: str) -> Receipt:
        """Take ``cost`` from the budget for good, or raise :class:`BudgetError` and take nothing.

        ``dataset=None`` means the only account. The spend is on disk when this returns.
        """
        with self._writing() as rows:
            after, entry = rules.spend(self._find(rows, dataset), cost, description)
            rows.append(after, entry)
        return Receipt(ledger=self.id, dataset=entry.dataset, entry=entry.entry)

    def audit(self, receipts_and_costs: Iterable[tuple[Receipt, Cost]] = ()) -> tuple[Finding, ...]:
        """Return what is wrong with the ledger, or with releases that say it paid for them.

        Nothing found means: no account is overdrawn, no history was edited or cut, and every
        given release was paid for here, once and in full.
        """
        findings: list[Finding] = []
        entries: list[Entry] = []
        with self._reading() as rows:
            for account in rows.accounts():
                history = rows.entries(account.dataset)
                findings += hash_chain.verify(self.id, account, history)
                entries += history
            for dataset in rows.strays():
                findings.append(Finding(dataset, "the account is gone, its history is not"))
                entries += rows.entries(dataset)
        findings += hash_chain.match(self.id, entries, receipts_and_costs)
        return tuple(findings)

    def close(self) -> None:
        """Let go of the file or the database session."""
        self._store.close()

    def _find(self, rows: Rows, dataset: str | None) -> Account:
        if dataset is None:
            dataset = self._only(rows)
        account = rows.account(printable(dataset, "dataset"))
        if account is None:
            raise BudgetError(
                f"dataset={dataset!r} has no budget in {self._store.place}; it has "
                f"{_names(rows)}. Set one with `noisewise ledger set`"
            )
        if account.unit is None and account.spent_units:
            return rules.with_known_unit(account, rows.entries(account.dataset))
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
