"""Opening a ledger that is missing, foreign, unreachable or misspelt; and what errors give away."""

from __future__ import annotations

import os
import sqlite3
import sys
import traceback
from pathlib import Path
from typing import Any

import psycopg
import pytest

from noisewise.artifact import ArgumentError, NoisewiseError, SourceError
from noisewise.privacy.ledger import Cost, open_ledger, postgres, sqlite

SECRET = "s3cr3t-w0rd"


def database(path: Path, statement: str) -> Path:
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()
    return path


def test_a_missing_file_is_not_quietly_a_fresh_budget(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="noisewise ledger set"):
        open_ledger(tmp_path / "mistyped.db")
    assert list(tmp_path.iterdir()) == []


def test_a_path_object_and_its_text_are_one_ledger(tmp_path: Path) -> None:
    path = tmp_path / "odd ?#% name.db"
    with open_ledger(path, create=True) as ledger, open_ledger(str(path)) as again:
        assert ledger.id == again.id
    assert path.exists()


def test_memory_is_a_file_name_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with open_ledger(":memory:", create=True):
        assert (tmp_path / ":memory:").exists()


@pytest.mark.parametrize("create", [False, True])
def test_a_file_of_another_kind_is_refused_and_left_alone(tmp_path: Path, create: bool) -> None:
    text = tmp_path / "people.csv"
    text.write_text("age,income\n" * 1000)
    with pytest.raises(SourceError, match="not a SQLite database"):
        open_ledger(text, create=create)
    assert text.read_text() == "age,income\n" * 1000
    other = database(tmp_path / "other.db", "CREATE TABLE mine (x)")
    with pytest.raises(SourceError, match="not a ledger; choose another file"):
        open_ledger(other, create=create)


def test_an_empty_file_can_become_a_ledger(tmp_path: Path) -> None:
    empty = tmp_path / "empty.db"
    empty.touch()
    with pytest.raises(SourceError, match="not a ledger; create one with"):
        open_ledger(empty)
    with open_ledger(empty, create=True) as ledger:
        assert ledger.accounts() == ()


def test_a_folder_and_a_missing_folder_are_refused(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nowhere" / "ledger.db"):
        with pytest.raises(SourceError, match="cannot be used"):
            open_ledger(place, create=True)


def test_a_ledger_of_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    open_ledger(path, create=True).close()
    database(path, "UPDATE noisewise_ledger SET version = 2")
    with pytest.raises(SourceError, match="ledger version 2; this noisewise reads version 1"):
        open_ledger(path)
    database(path, "DELETE FROM noisewise_ledger")
    with pytest.raises(SourceError, match="damaged"):
        open_ledger(path)


def test_a_busy_ledger_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "LOCK_PATIENCE_S", 0.01)
    path = tmp_path / "ledger.db"
    with open_ledger(path, create=True) as ledger:
        ledger.set_budget("people", epsilon=1.0)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(SourceError, match="another process has held it"):
            ledger.spend(None, Cost("pure", 0.1, "replace-one"), "must wait")
        other.close()
        ledger.spend(None, Cost("pure", 1.0, "replace-one"), "free again")


def test_a_commit_survives_power_loss(tmp_path: Path) -> None:
    """synchronous=EXTRA (3) is what SQLite documents for that in rollback-journal mode."""
    store = sqlite.SqliteStore(tmp_path / "ledger.db", create=True)
    assert store._execute("PRAGMA synchronous") == [(3,)]
    assert store._execute("PRAGMA journal_mode") == [("delete",)]
    store.close()


def test_a_closed_ledger_says_so(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "ledger.db", create=True)
    ledger.close()
    with pytest.raises(SourceError, match="closed"):
        ledger.accounts()


@pytest.mark.parametrize("where", ["", "a\0b", 3, None, b"ledger.db", "mysql://host/db"])
def test_what_is_neither_path_nor_url_is_refused(where: Any) -> None:
    with pytest.raises(ArgumentError, match="ledger"):
        open_ledger(where)


# -- PostgreSQL --------------------------------------------------------------------------------


def test_a_database_without_a_ledger_says_how_to_make_one(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE SCHEMA IF NOT EXISTS without_a_ledger")
    with pytest.raises(SourceError, match="noisewise ledger set"):
        open_ledger(f"{postgres_url}?options=-csearch_path%3Dwithout_a_ledger")


def test_commits_are_durable_and_wait_their_turn_whatever_the_defaults(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE SCHEMA IF NOT EXISTS careless")
    settings = "-csearch_path%3Dcareless%20-csynchronous_commit%3Doff"
    careless = f"{postgres_url}?options={settings}%20-cdefault_transaction_isolation%3Dserializable"
    store = postgres.PostgresStore(careless, create=True)
    with store.writing():
        assert store._execute("SHOW synchronous_commit") == [("on",)]
        assert store._execute("SHOW transaction_isolation") == [("read committed",)]
        assert store._execute("SHOW lock_timeout") == [("1min",)]
    store.close()


def test_an_account_locked_by_a_stalled_session_is_reported(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "LOCK_PATIENCE_S", 0.01)
    with psycopg.connect(postgres_url) as stalled:
        stalled.execute("CREATE SCHEMA IF NOT EXISTS stalled")
        stalled.commit()
        with open_ledger(f"{postgres_url}?options=-csearch_path%3Dstalled", create=True) as ledger:
            ledger.set_budget("people", epsilon=1.0)
            stalled.execute("SELECT * FROM stalled.noisewise_account FOR UPDATE")
            with pytest.raises(SourceError, match=r"lock timeout.*No noise was drawn"):
                ledger.spend(None, Cost("pure", 0.1, "replace-one"), "must wait")
            stalled.rollback()
            ledger.spend(None, Cost("pure", 1.0, "replace-one"), "free again")


UNREACHABLE = {
    "refused": f"postgresql://me:{SECRET}@127.0.0.1:1/budgets",
    "in the query": f"postgres://me@127.0.0.1:1/budgets?password={SECRET}",
    "no such socket": f"postgresql://me:{SECRET}@/budgets?host=/nonexistent",
}
UNREADABLE = {
    "bare @": f"postgresql://me:a@{SECRET}@127.0.0.1:1/budgets",
    "bare /": f"postgresql://me:a/{SECRET}@127.0.0.1:1/budgets",
    "bare ?": f"postgresql://me:a?{SECRET}@127.0.0.1:1/budgets",
    "bare %": f"postgresql://me:%{SECRET}@127.0.0.1:1/budgets",
    "password as port": f"postgresql://me:{SECRET}/budgets",
    "unknown option": f"postgresql://127.0.0.1:1/budgets?{SECRET}=1",
}


def refused(url: str, kind: type[NoisewiseError]) -> str:
    """The error's whole story, as a log would show it, checked for the password."""
    with pytest.raises(kind) as caught:
        open_ledger(url)
    error = caught.value
    assert error.__cause__ is None
    assert error.__context__ is None
    story = "".join(traceback.format_exception_only(error)) + repr(error) + repr(error.args)
    assert SECRET not in story
    return story


@pytest.mark.parametrize("url", UNREACHABLE.values(), ids=UNREACHABLE.keys())
def test_an_unreachable_database_is_named_without_its_password(url: str) -> None:
    story = refused(url, SourceError)
    assert "'budgets'" in story
    assert "127.0.0.1" in story or "/nonexistent" in story


@pytest.mark.parametrize("url", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_an_unreadable_url_is_not_repeated(url: str) -> None:
    assert "not shown" in refused(url, ArgumentError)


def test_a_wrong_password_is_not_repeated(postgres_url: str) -> None:
    user, rest = postgres_url.split("@")
    story = refused(f"{user.rsplit(':', 1)[0]}:{SECRET}@{rest}", SourceError)
    assert "password authentication failed" in story


def test_neither_repr_nor_a_later_error_shows_the_password(postgres_url: str) -> None:
    password = postgres_url.split("@")[0].rsplit(":", 1)[1]
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE SCHEMA IF NOT EXISTS shown")
    ledger = open_ledger(f"{postgres_url}?options=-csearch_path%3Dshown", create=True)
    assert "127.0.0.1" in repr(ledger)
    assert password not in repr(ledger)
    ledger.close()
    with pytest.raises(SourceError, match="closed") as caught:
        ledger.accounts()
    assert password not in "".join(traceback.format_exception(caught.value))


def test_a_missing_driver_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(SourceError, match=r"noisewise\[postgres\]"):
        open_ledger("postgresql://127.0.0.1:1/budgets")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_ledger_can_be_read_not_spent(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with open_ledger(path, create=True) as ledger:
        ledger.set_budget("people", epsilon=1.0)
    path.chmod(0o400)
    with open_ledger(path) as ledger:
        assert len(ledger.accounts()) == 1
        with pytest.raises(SourceError, match="readonly"):
            ledger.spend(None, Cost("pure", 0.1, "replace-one"), "cannot")
