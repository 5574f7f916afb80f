"""The ledger on both of its stores: what it allows, refuses, survives and finds out."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import stat
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import psycopg
import pytest

import noisewise as nw
from noisewise.artifact import ArgumentError, BudgetError
from noisewise.privacy.ledger import Cost, Ledger, Receipt, open_ledger
from noisewise.privacy.ledger.hash_chain import digest_of
from tests.privacy import ledger_workers as workers

RACERS = 16


def pure(amount: float, neighbours: str = "replace-one") -> Cost:
    return Cost("pure", amount, neighbours)


@pytest.fixture
def ledger(where: str) -> Iterator[Ledger]:
    with open_ledger(where, create=True) as book:
        yield book


def run(where: str, statement: str) -> list[Any]:
    """Raw SQL, as someone with access to the database could type it."""
    if where.startswith("postgresql://"):
        with psycopg.connect(where) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []
    database = sqlite3.connect(where)
    try:
        with database:
            return database.execute(statement).fetchall()
    finally:
        database.close()


def only(ledger: Ledger) -> Any:
    (account,) = ledger.accounts()
    return account


# -- budgets and spends ------------------------------------------------------------------------


def test_ten_tenths_fit_and_an_eleventh_does_not(ledger: Ledger) -> None:
    ledger.set_budget("people", epsilon=1.0)
    for _ in range(10):
        ledger.spend("people", pure(0.1), "a tenth")
    assert (only(ledger).spent, only(ledger).remaining) == (1.0, 0.0)
    for attempt in (ledger.check, lambda d, c: ledger.spend(d, c, "too much")):
        with pytest.raises(BudgetError, match=r"asks for epsilon 0\.000000001,"):
            attempt("people", pure(1e-9))
    assert len(ledger.entries("people")) == 11
    assert ledger.audit() == ()


def test_a_spend_is_there_for_the_next_who_opens(where: str, ledger: Ledger) -> None:
    ledger.set_budget("people", rho=1.0, neighbours="add-remove")
    receipt = ledger.spend(None, Cost("zcdp", 0.25, "add-remove"), "a release")
    with open_ledger(where) as again:
        assert again.id == ledger.id == receipt.ledger
        entry = again.entries()[-1]
        assert (entry.entry, entry.amount, entry.description) == (receipt.entry, 0.25, "a release")
        assert only(again).remaining == 0.75


def test_the_same_request_twice_is_two_spends(ledger: Ledger) -> None:
    ledger.set_budget("people", epsilon=1.0)
    first, second = (ledger.spend("people", pure(0.3), "same") for _ in range(2))
    assert first.entry != second.entry
    assert only(ledger).spent == 0.6


def test_check_writes_nothing(ledger: Ledger) -> None:
    ledger.set_budget("people", epsilon=1.0)
    before = ledger.accounts()
    ledger.check(None, pure(1.0))
    assert ledger.accounts() == before
    assert only(ledger).neighbours is None


def test_the_first_spend_fixes_the_relation(ledger: Ledger) -> None:
    ledger.set_budget("people", epsilon=1.0)
    ledger.spend("people", pure(0.1, "add-remove"), "first")
    with pytest.raises(BudgetError, match=r"'add-remove' neighbours.*do not add up"):
        ledger.spend("people", pure(0.1), "second")
    assert only(ledger).spent == 0.1


def test_a_zcdp_account_takes_both_currencies(ledger: Ledger) -> None:
    ledger.set_budget("people", rho=1.0)
    ledger.spend("people", pure(1.0), "Laplace")
    ledger.spend("people", Cost("zcdp", 0.5, "replace-one"), "Gaussian")
    assert only(ledger).remaining == 0
    assert [e.asked for e in ledger.entries("people")] == ["1.0", "1.0", "0.5"]


def test_changes_of_budget_are_history(ledger: Ledger) -> None:
    ledger.set_budget("people", epsilon=1.0)
    ledger.spend("people", pure(0.5), "half")
    ledger.set_budget("people", epsilon=3.0)
    ledger.set_budget("people", epsilon=0.5)
    with pytest.raises(BudgetError, match=r"epsilon 0\.5 is already spent"):
        ledger.set_budget("people", epsilon=0.4)
    history = [(e.kind, e.former, e.amount) for e in ledger.entries("people")]
    assert history == [
        ("budget", None, 1.0),
        ("spend", None, 0.5),
        ("budget", 1.0, 3.0),
        ("budget", 3.0, 0.5),
    ]
    assert only(ledger).remaining == 0
    assert ledger.audit() == ()


def test_accounts_are_separate(ledger: Ledger) -> None:
    ledger.set_budget("b", epsilon=1.0)
    ledger.set_budget("A", rho=1.0)
    ledger.set_budget("ä [red]%s?", epsilon=2.0)
    ledger.spend("ä [red]%s?", pure(0.5, "add-remove"), "100% ? {odd}")
    ledger.spend("b", pure(0.5), "plain")
    assert [(a.dataset, a.spent) for a in ledger.accounts()] == [
        ("a", 0.0),
        ("b", 0.5),
        ("ä [red]%s?", 0.5),
    ]
    assert ledger.audit() == ()


def test_the_only_account_need_not_be_named(ledger: Ledger) -> None:
    with pytest.raises(BudgetError, match="no accounts: set one with `noisewise ledger set`"):
        ledger.spend(None, pure(0.1), "none there")
    ledger.set_budget("people", epsilon=1.0)
    assert ledger.spend(None, pure(0.1), "the only one").dataset == "people"
    ledger.set_budget("places", epsilon=1.0)
    with pytest.raises(BudgetError, match="'people', 'places': pass dataset="):
        ledger.spend(None, pure(0.1), "which?")
    with pytest.raises(BudgetError, match=r"dataset='pepole' has no budget.*'people', 'places'"):
        ledger.check("pepole", pure(0.1))


@pytest.mark.parametrize("budget", [{}, {"epsilon": 1.0, "rho": 1.0}, {"epsilon": 0}])
def test_a_budget_is_one_positive_number(ledger: Ledger, budget: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match="epsilon="):
        ledger.set_budget("people", **budget)
    assert ledger.accounts() == ()


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "a\0b", "\ud800", "x" * 201, 3])
def test_odd_dataset_names_are_refused(ledger: Ledger, name: Any) -> None:
    with pytest.raises(ArgumentError, match="dataset="):
        ledger.set_budget(name, epsilon=1.0)


def test_threads_may_share_a_ledger(ledger: Ledger) -> None:
    ledger.set_budget("people", epsilon=1.0)
    with ThreadPoolExecutor(4) as pool:
        spends = [pool.submit(ledger.spend, "people", pure(0.1), "thread") for _ in range(12)]
    assert sum(spend.exception() is None for spend in spends) == 10
    assert only(ledger).remaining == 0


# -- races and crashes -------------------------------------------------------------------------


def racing(task: Callable[..., Any], *arguments: Any) -> list[Any]:
    barrier = workers.CONTEXT.Barrier(RACERS)
    with ProcessPoolExecutor(RACERS, workers.CONTEXT, workers.line_up, (barrier,)) as pool:
        return [f.result() for f in [pool.submit(task, *arguments) for _ in range(RACERS)]]


def test_sixteen_processes_race_for_a_budget_of_ten(where: str, ledger: Ledger) -> None:
    ledger.set_budget("people", epsilon=10.0)
    receipts = [r for r in racing(workers.race, where, 1.0) if r is not None]
    assert len(receipts) == len({r.entry for r in receipts}) == 10
    assert only(ledger).remaining == 0
    assert ledger.audit([(r, pure(1.0)) for r in receipts]) == ()


def test_sixteen_processes_race_to_create_one_ledger(where: str) -> None:
    assert len(set(racing(workers.race_to_create, where, 1.0))) == 1
    with open_ledger(where) as ledger:
        assert only(ledger).entries == RACERS
        assert ledger.audit() == ()


def test_a_killed_process_loses_no_spend_it_was_told_of(where: str, ledger: Ledger) -> None:
    ledger.set_budget("people", epsilon=1000.0)
    told: list[Receipt] = []
    kills = 20
    for kill in range(kills):
        ours, theirs = workers.CONTEXT.Pipe(duplex=False)
        process = workers.CONTEXT.Process(target=workers.spend_for_ever, args=(where, theirs))
        process.start()
        theirs.close()
        told += [ours.recv() for _ in range(1 + kill % 3)]
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        with suppress(EOFError):
            while True:  # what it had reported but we had not read
                told.append(ours.recv())
        ours.close()
    spends = [e.entry for e in ledger.entries("people") if e.kind == "spend"]
    assert {r.entry for r in told} <= set(spends)
    assert len(told) <= len(spends) <= len(told) + kills
    assert ledger.audit([(r, pure(0.001)) for r in told]) == ()


def test_a_process_killed_before_its_commit_has_spent_nothing(where: str, ledger: Ledger) -> None:
    ledger.set_budget("people", epsilon=1.0)
    process = workers.CONTEXT.Process(target=workers.die_while_writing, args=(where,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    ledger.spend(None, pure(1.0), "all of it, and the lock is free")
    assert ledger.audit() == ()


def test_a_forked_ledger_is_refused(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger.set_budget("people", epsilon=1.0)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(ArgumentError, match="open_ledger again"):
        ledger.spend(None, pure(0.1), "from a child")


def test_an_interrupted_spend_leaves_nothing(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.set_budget("people", epsilon=1.0)
    with monkeypatch.context() as patch:
        patch.setattr("noisewise.privacy.ledger.store.astuple", lambda row: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            ledger.spend(None, pure(0.1), "interrupted")
    ledger.spend(None, pure(1.0), "all of it")
    assert ledger.audit() == ()


# -- audit -------------------------------------------------------------------------------------

TAMPERING = {
    "amount": "UPDATE noisewise_entry SET units = 1 WHERE number = 2",
    "asked": "UPDATE noisewise_entry SET asked = '0.01' WHERE number = 2",
    "description": "UPDATE noisewise_entry SET description = 'harmless' WHERE number = 3",
    "date": "UPDATE noisewise_entry SET created = '2020-01-01' WHERE number = 2",
    "relation": "UPDATE noisewise_entry SET neighbours = NULL WHERE number = 2",
    "kind": "UPDATE noisewise_entry SET kind = 'budget' WHERE number = 2",
    "order": "UPDATE noisewise_entry SET number = 9 - number WHERE number > 1",
    "digest": "UPDATE noisewise_entry SET digest = 'x' WHERE number = 2",
    "first deleted": "DELETE FROM noisewise_entry WHERE number = 1",
    "middle deleted": "DELETE FROM noisewise_entry WHERE number = 2",
    "last deleted": "DELETE FROM noisewise_entry WHERE number = 3",
    "all deleted": "DELETE FROM noisewise_entry",
    "spent": "UPDATE noisewise_account SET spent_units = 0",
    "budget": "UPDATE noisewise_account SET budget_units = budget_units * 2",
    "currency": "UPDATE noisewise_account SET accounting = 'zcdp'",
    "account relation": "UPDATE noisewise_account SET neighbours = 'add-remove'",
    "account deleted": "DELETE FROM noisewise_account",
}


@pytest.mark.parametrize("statement", TAMPERING.values(), ids=TAMPERING.keys())
def test_tampering_is_found(where: str, ledger: Ledger, statement: str) -> None:
    ledger.set_budget("people", epsilon=1.0)
    for amount in (0.1, 0.2):
        ledger.spend("people", pure(amount), "a release")
    assert ledger.audit() == ()
    run(where, statement)
    findings = ledger.audit()
    assert findings
    assert all(finding.dataset == "people" for finding in findings)


def test_the_database_itself_refuses_an_overdraw(where: str, ledger: Ledger) -> None:
    ledger.set_budget("people", epsilon=1.0)
    with pytest.raises((sqlite3.IntegrityError, psycopg.IntegrityError)):
        run(where, "UPDATE noisewise_account SET spent_units = budget_units + 1")


def test_a_recomputed_history_is_found_by_a_receipt(where: str, ledger: Ledger) -> None:
    """The chain has no key; what pins it down is the receipt in the released file."""
    ledger.set_budget("people", epsilon=1.0)
    receipt = ledger.spend("people", pure(0.8), "a release")
    spent = ledger.entries("people")[-1]
    forged = replace(spent, units=10**10, asked="0.01")
    digest = digest_of(forged)
    run(
        where,
        f"UPDATE noisewise_entry SET units = {forged.units}, asked = '{forged.asked}', "
        f"digest = '{digest}' WHERE number = 2",
    )
    run(where, f"UPDATE noisewise_account SET spent_units = {forged.units}, head = '{digest}'")
    assert ledger.audit() == ()
    (finding,) = ledger.audit([(receipt, pure(0.8))])
    assert "paid for epsilon 0.01, the release costs epsilon 0.8" in str(finding)


def test_receipts_must_match(ledger: Ledger) -> None:
    ledger.set_budget("people", epsilon=1.0)
    ledger.set_budget("places", epsilon=1.0)
    receipt = ledger.spend("people", pure(0.1), "a release")
    unknown = str(uuid.uuid4())
    cases = [
        ((receipt, pure(0.2)), "paid for epsilon 0.1, the release costs epsilon 0.2"),
        ((receipt, Cost("zcdp", 0.1, "replace-one")), "costs rho 0.1"),
        ((receipt, pure(0.1, "add-remove")), "under 'replace-one' neighbours"),
        ((replace(receipt, entry=unknown), pure(0.1)), "is not here"),
        ((replace(receipt, dataset="places"), pure(0.1)), "is not here"),
        ((replace(receipt, ledger=unknown), pure(0.1)), "of another ledger"),
    ]
    for pair, problem in cases:
        (finding,) = ledger.audit([pair])
        assert problem in str(finding)
        assert finding.entry == pair[0].entry
    (finding,) = ledger.audit([(receipt, pure(0.1))] * 2)
    assert "claimed by two releases" in str(finding)
    assert ledger.audit([(receipt, pure(0.1))]) == ()


def test_a_reader_sees_one_moment(where: str, ledger: Ledger) -> None:
    """An audit beside busy writers must not mistake a spend in flight for tampering."""
    ledger.set_budget("people", epsilon=1000.0)
    done = threading.Event()

    def spend_until_done() -> None:
        with open_ledger(where) as other:
            while not done.is_set():
                other.spend(None, pure(0.001), "busy")

    with ThreadPoolExecutor(1) as pool:
        busy = pool.submit(spend_until_done)
        try:
            assert [ledger.audit() for _ in range(20)] == [()] * 20
        finally:
            done.set()
        busy.result()


# -- the chain at every spend ------------------------------------------------------------------


@pytest.mark.parametrize("statement", TAMPERING.values(), ids=TAMPERING.keys())
def test_an_edited_account_spends_no_more(where: str, ledger: Ledger, statement: str) -> None:
    ledger.set_budget("people", epsilon=1.0)
    ledger.set_budget("places", epsilon=1.0)
    for amount in (0.1, 0.2):
        ledger.spend("people", pure(amount), "a release")
    run(where, statement + (" AND" if "WHERE" in statement else " WHERE") + " dataset = 'people'")
    before = run(where, "SELECT count(*) FROM noisewise_entry")
    for attempt in (ledger.check, lambda d, c: ledger.spend(d, c, "another")):
        with pytest.raises(BudgetError):
            attempt("people", pure(0.1))
    assert run(where, "SELECT count(*) FROM noisewise_entry") == before
    ledger.spend("places", pure(0.1), "another account is not concerned")


def test_a_ledger_put_back_is_found_by_the_releases_made_since(tmp_path: Path) -> None:
    path, copy = tmp_path / "ledger.db", tmp_path / "backup.db"
    people = pd.DataFrame({"owns": [0, 1, 1]})

    def release() -> nw.Release:
        return nw.release.exponential_family(
            people, column="owns", family="bernoulli", epsilon=0.4, ledger=path
        )

    with open_ledger(path, create=True) as ledger:
        ledger.set_budget("people", epsilon=1.0)
    first = release()
    shutil.copy(path, copy)
    second = release()
    shutil.copy(copy, path)
    with open_ledger(path) as ledger:
        assert ledger.audit([first]) == ()
        (finding,) = ledger.audit([first, second])
        assert "an older copy of the ledger, put back" in str(finding)
        unpaid = replace(first, receipt=None)
        assert "no ledger paid" in str(ledger.audit([unpaid])[0])


# -- files -------------------------------------------------------------------------------------


def modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


def test_a_ledger_and_its_side_files_are_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        path = tmp_path / "ledger.db"
        with open_ledger(path, create=True) as ledger:
            ledger.set_budget("people", epsilon=1.0)
            with ledger._writing() as rows:
                rows._execute("UPDATE noisewise_account SET neighbours = 'replace-one'")
                seen = modes(tmp_path)
    finally:
        os.umask(before)
    assert seen == {"ledger.db": 0o600, "ledger.db-journal": 0o600}


@pytest.mark.parametrize(("old", "new"), [(0o644, 0o640), (0o666, 0o660), (0o660, 0o660)])
def test_an_old_ledger_is_taken_from_the_world(tmp_path: Path, old: int, new: int) -> None:
    path = tmp_path / "ledger.db"
    open_ledger(path, create=True).close()
    path.chmod(old)
    open_ledger(path).close()
    assert modes(tmp_path) == {"ledger.db": new}


def test_through_a_link_the_journal_of_the_ledger_itself_is_cleaned(tmp_path: Path) -> None:
    path, link = tmp_path / "ledger.db", tmp_path / "elsewhere" / "link.db"
    with open_ledger(path, create=True) as ledger:
        ledger.set_budget("people", epsilon=1.0)
    link.parent.mkdir()
    link.symlink_to("../ledger.db")
    stranger = Path(f"{link}-journal")
    stranger.write_text("another's")
    process = workers.CONTEXT.Process(target=workers.die_while_writing, args=(str(path),))
    process.start()
    process.join()
    with open_ledger(link) as ledger:
        assert only(ledger).spent == 0
    assert not (tmp_path / "ledger.db-journal").exists()
    assert stranger.read_text() == "another's"


def test_what_a_kill_leaves_is_cleaned_at_the_next_opening(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with open_ledger(path, create=True) as ledger:
        ledger.set_budget("people", epsilon=1.0)
    process = workers.CONTEXT.Process(target=workers.die_while_writing, args=(str(path),))
    process.start()
    process.join()
    assert (tmp_path / "ledger.db-journal").exists()
    with open_ledger(path) as ledger:
        assert only(ledger).spent == 0
    assert [p.name for p in tmp_path.iterdir()] == ["ledger.db"]
