"""Places for ledgers, and ``refused``: a bad call, with proof that nothing was drawn or spent."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

import noisewise as nw
from noisewise.privacy.ledger import open_ledger
from noisewise.privacy.mechanisms import Calibrated
from tests.privacy.refusals import MARKS, everything_said


@pytest.fixture(params=["sqlite", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place for a ledger, as yet empty; in PostgreSQL a schema of its own."""
    if request.param == "sqlite":
        return str(tmp_path / "ledger.db")
    url: str = request.getfixturevalue("postgres_url")
    schema = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(url) as connection:
        connection.execute(f"CREATE SCHEMA {schema}".encode())
    return f"{url}?options=-csearch_path%3D{schema}"


@pytest.fixture(scope="session")
def fresh_ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A budget of 0.5 for one dataset, to be copied."""
    path = tmp_path_factory.mktemp("ledger") / "fresh.db"
    with open_ledger(path, create=True) as ledger:
        ledger.set_budget("people", epsilon=0.5)
    return path


def spent(book: Path) -> float:
    with open_ledger(book) as ledger:
        return float(ledger.accounts()[0].spent)


@pytest.fixture
def refused(
    fresh_ledger: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., str]:
    """Call, expect exactly that class of error, and give back its message.

    A ledger stands ready, and every source of noise is replaced by one that fails.
    """
    book = tmp_path_factory.mktemp("book") / "ledger.db"
    shutil.copy(fresh_ledger, book)

    def drawn(*_: Any) -> Any:
        raise AssertionError("noise was drawn for a release that had to be refused")

    def check(
        kind: type[nw.NoisewiseError], make: Callable[..., nw.Release], source: Any, **words: Any
    ) -> str:
        with monkeypatch.context() as patch:
            patch.setattr(Calibrated, "draw", drawn)
            with pytest.raises(kind) as caught:
                make(source, **{"ledger": book, **words})
        assert type(caught.value) is kind
        assert spent(book) == 0
        said = everything_said(caught.value)
        for mark in MARKS:
            assert mark not in said
        message = str(caught.value)
        assert message.isprintable()
        return message

    return check
