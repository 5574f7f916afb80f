"""One account, one privacy unit: records and people do not add up (finding 6 of the audit)."""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest

import noisewise as nw
from noisewise.artifact import BudgetError, Receipt
from noisewise.privacy.ledger import Cost, Ledger, open_ledger
from noisewise.privacy.ledger.accounts import Entry, unit_word
from noisewise.privacy.ledger.hash_chain import digest_of

VISITS = pa.table({"user": [1, 1, 2], "house": [1, 2, 2], "place": ["a", "b", "a"]})
OLD_SCHEMA = (
    "CREATE TABLE noisewise_ledger (id TEXT NOT NULL PRIMARY KEY, version BIGINT NOT NULL)",
    """CREATE TABLE noisewise_account (dataset TEXT NOT NULL PRIMARY KEY, accounting TEXT NOT NULL,
        neighbours TEXT, budget_units BIGINT NOT NULL, spent_units BIGINT NOT NULL,
        entries BIGINT NOT NULL, head TEXT NOT NULL,
        CHECK (0 <= spent_units AND spent_units <= budget_units))""",
    """CREATE TABLE noisewise_entry (entry TEXT NOT NULL UNIQUE, dataset TEXT NOT NULL,
        number BIGINT NOT NULL, kind TEXT NOT NULL, accounting TEXT NOT NULL, asked TEXT NOT NULL,
        units BIGINT NOT NULL, former_units BIGINT, neighbours TEXT, description TEXT NOT NULL,
        created TEXT NOT NULL, previous TEXT NOT NULL, digest TEXT NOT NULL,
        PRIMARY KEY (dataset, number))""",
)
"""As version 0.1 made it."""


def cost(unit: str = "record", amount: float = 0.1) -> Cost:
    return Cost("pure", amount, "replace-one", unit)


@pytest.fixture
def ledger(where: str) -> Iterator[Ledger]:
    with open_ledger(where, create=True) as book:
        book.set_budget("people", epsilon=10.0)
        yield book


def run(where: str, *statements: str) -> None:
    if where.startswith("postgresql://"):
        with psycopg.connect(where) as connection:
            for statement in statements:
                connection.execute(statement.encode())
        return
    database = sqlite3.connect(where)
    with database:
        for statement in statements:
            database.execute(statement)
    database.close()


def old_ledger(where: str, *descriptions: str) -> Receipt | None:
    """A ledger as version 0.1 left it, with a spend of 0.1 for each description."""
    name, number = str(uuid.uuid4()), 0
    run(where, *OLD_SCHEMA, f"INSERT INTO noisewise_ledger VALUES ('{name}', 1)")
    head: str = name
    receipt: Receipt | None = None
    for description in ("budget set", *descriptions):
        number += 1
        spend = number > 1
        entry = Entry(
            entry=str(uuid.uuid4()),
            dataset="people",
            number=number,
            kind="spend" if spend else "budget",
            accounting="pure",
            asked="0.1" if spend else "1.0",
            units=10**11 if spend else 10**12,
            former_units=None,
            neighbours="replace-one" if spend else None,
            description=description,
            created="2025-01-01T00:00:00+00:00",
            previous=head,
            digest="",
        )
        head = digest_of(entry)
        receipt = Receipt(name, "people", entry.entry)
        values = [*vars(replace(entry, digest=head)).values()][:-1]
        written = ", ".join("NULL" if v is None else repr(v) for v in values)
        run(where, f"INSERT INTO noisewise_entry VALUES ({written})")
    spent = 10**11 * len(descriptions)
    relation = "'replace-one'" if descriptions else "NULL"
    row = f"'people', 'pure', {relation}, {10**12}, {spent}, {number}, '{head}'"
    run(where, f"INSERT INTO noisewise_account VALUES ({row})")
    return receipt


def test_the_first_spend_fixes_the_unit(ledger: Ledger) -> None:
    ledger.spend("people", cost("user"), "a release")
    for attempt in (ledger.check, lambda d, c: ledger.spend(d, c, "another")):
        for unit, remedy in (("record", "with unit='user'"), ("house", "with unit='user'")):
            with pytest.raises(BudgetError, match=rf"unit 'user'.*unit '{unit}'.*{remedy}"):
                attempt("people", cost(unit))
    (account,) = ledger.accounts()
    assert (account.unit, account.spent) == ("user", 0.1)
    ledger.spend("people", cost("user"), "the same unit")
    assert [e.unit for e in ledger.entries("people")] == [None, "user", "user"]
    assert ledger.audit() == ()


def test_a_budget_may_say_the_unit(ledger: Ledger) -> None:
    ledger.set_budget("people", epsilon=1.0, unit="user")
    ledger.set_budget("people", epsilon=1.0, unit="record")  # nothing is spent yet
    with pytest.raises(BudgetError, match=r"unit 'record'.*'user' was asked.*without unit="):
        ledger.spend("people", cost("user"), "people")
    ledger.spend("people", cost(), "records")
    with pytest.raises(BudgetError, match="do not add up"):
        ledger.set_budget("people", epsilon=2.0, unit="user")
    ledger.set_budget("people", epsilon=2.0)
    assert [e.unit for e in ledger.entries("people")] == [
        None,
        "user",
        "record",
        "record",
        "record",
    ]
    assert ledger.audit() == ()


def test_a_column_called_record_is_not_the_record() -> None:
    names = [None, "record", "user", "column:record", "column:user", "column:column:record"]
    assert unit_word(None) == "record"
    assert unit_word("user") == "user"
    assert len({unit_word(name) for name in names}) == len(names)


def test_an_edited_unit_is_found(where: str, ledger: Ledger) -> None:
    ledger.spend("people", cost(), "a release")
    run(where, "UPDATE noisewise_entry SET unit = 'user' WHERE number = 2")
    assert "was edited" in str(ledger.audit()[0])
    run(where, "UPDATE noisewise_entry SET unit = 'record' WHERE number = 2")
    assert ledger.audit() == ()
    for unit in ("'user'", "NULL"):
        run(where, f"UPDATE noisewise_account SET unit = {unit}")
        assert "the account says unit" in str(ledger.audit()[0])


def test_version_one_cannot_spend_without_a_unit(where: str, ledger: Ledger) -> None:
    values = "'x', 'people', 9, 'spend', 'pure', '1', 1, NULL, 'replace-one', 'd', 'c', 'p', 'd'"
    columns = "entry, dataset, number, kind, accounting, asked, units, former_units, neighbours"
    insert = f"INSERT INTO noisewise_entry ({columns}, description, created, previous, digest)"
    with pytest.raises((sqlite3.IntegrityError, psycopg.IntegrityError)):
        run(where, f"{insert} VALUES ({values})")


def test_a_receipt_of_another_unit_is_found(ledger: Ledger) -> None:
    receipt = ledger.spend("people", cost("user"), "a release")
    (finding,) = ledger.audit([(receipt, cost())])
    assert "per 'user', the release per 'record'" in str(finding)
    assert ledger.audit([(receipt, cost("user"))]) == ()


# -- ledgers of version 0.1 --------------------------------------------------------------------


def test_an_old_ledger_is_read_as_it_is(where: str) -> None:
    receipt = old_ledger(where, "graphical-model")
    with open_ledger(where) as ledger:
        (account,) = ledger.accounts()
        assert (account.unit, account.spent) == (None, 0.1)
        assert receipt is not None
        assert ledger.audit([(receipt, cost())]) == ()


def test_an_old_account_without_spends_is_like_a_new_one(where: str) -> None:
    old_ledger(where)
    with open_ledger(where) as ledger:
        ledger.spend("people", cost("user"), "a release")
        assert ledger.accounts()[0].unit == "user"
        assert ledger.audit() == ()


def test_an_old_account_of_records_alone_goes_on(where: str) -> None:
    old_ledger(where, "linear-regression", "exponential-family", "posterior-quantile")
    with open_ledger(where) as ledger:
        with pytest.raises(BudgetError, match=r"unit 'record'.*'user' was asked"):
            ledger.spend("people", cost("user"), "a release")
        ledger.spend("people", cost(), "a release")
        assert ledger.accounts()[0].unit == "record"
        assert ledger.audit() == ()


@pytest.mark.parametrize("unit", ["record", "user"])
def test_an_old_account_whose_unit_is_not_known_must_be_told(where: str, unit: str) -> None:
    old_ledger(where, "graphical-model")
    with open_ledger(where) as ledger:
        for asked in ("record", "user"):
            with pytest.raises(BudgetError, match=r"version 0\.1.*--unit record"):
                ledger.spend("people", cost(asked), "a release")
        ledger.set_budget("people", epsilon=1.0, unit=unit)
        other = {"record": "user", "user": "record"}[unit]
        with pytest.raises(BudgetError, match="do not add up"):
            ledger.spend("people", cost(other), "a release")
        ledger.spend("people", cost(unit), "a release")
        assert ledger.audit() == ()


def test_people_cannot_be_stated_over_spends_on_records(where: str) -> None:
    old_ledger(where, "graphical-model", "linear-regression")
    with open_ledger(where) as ledger:
        with pytest.raises(BudgetError, match="spends that protect records"):
            ledger.set_budget("people", epsilon=1.0, unit="user")
        ledger.set_budget("people", epsilon=1.0, unit="record")


def test_a_spend_of_version_one_among_ours_is_found(where: str) -> None:
    old_ledger(where)
    with open_ledger(where) as ledger:
        ledger.spend("people", cost("user"), "ours")
        last = ledger.entries("people")[-1]
        theirs = replace(last, entry="theirs", number=3, previous=last.digest, unit=None)
        theirs = replace(theirs, digest=digest_of(theirs))
        values = ", ".join("NULL" if v is None else repr(v) for v in vars(theirs).values())
        run(
            where,
            f"INSERT INTO noisewise_entry VALUES ({values})",
            "UPDATE noisewise_account SET spent_units = 200000000000, entries = 3, "
            f"head = '{theirs.digest}'",
        )
        assert "made by version 0.1" in str(ledger.audit()[0])


# -- releases ----------------------------------------------------------------------------------


def release(ledger: str, unit: str | None) -> nw.Release:
    return nw.release.graphical_model(
        VISITS,
        cliques=[("place",)],
        levels={"place": ["a", "b"]},
        unit=unit,
        epsilon=0.5,
        ledger=ledger,
    )


def test_unlike_releases_of_one_table_are_refused(tmp_path: Path) -> None:
    """Version 0.1 booked all three in one account."""
    path = str(tmp_path / "ledger.db")
    with open_ledger(path, create=True) as ledger:
        ledger.set_budget("visits", epsilon=10.0)
        made = release(path, "user")
        assert made.unit == "user"
        for unit in (None, "house"):
            with pytest.raises(BudgetError, match="unit 'user'"):
                release(path, unit)
        with pytest.raises(BudgetError, match="unit 'record' was asked"):
            nw.release.exponential_family(
                VISITS, column="place", family="categorical", levels=["a", "b"], epsilon=0.5,
                ledger=path,
            )  # fmt: skip
        assert ledger.accounts()[0].spent == 0.5
        assert ledger.audit() == ()
