"""Snapshots: all queries of a plan see one state of the table, where the engine has such a thing.

A plan is several queries. Were a record written between two of them, tables of counts would differ
in how many people they are of, and a check made by one query would not hold for the next.
PostgreSQL and DuckDB are asked in one transaction. Others have none: each query is then right by
itself, and so is its sensitivity, and tables of counts that do not add up to the same are refused.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from noisewise.artifact import ArgumentError, SourceError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from ibis.backends import BaseBackend


def snapshot(backend: BaseBackend) -> contextlib.AbstractContextManager[None]:
    """Return a context in which every query to the backend sees the same records."""
    if backend.name == "postgres":
        return _postgres_transaction(backend.con)
    if backend.name == "duckdb":
        return _duckdb_transaction(backend.con)
    return contextlib.nullcontext()


def changed() -> SourceError:
    """Return the error to raise where two readings of the table do not agree."""
    return SourceError(
        "the table changed while it was read, which takes more than one reading; release from a "
        "copy that nobody writes to"
    )


@contextlib.contextmanager
def _postgres_transaction(connection: Any) -> Iterator[None]:
    """Hold a repeatable-read transaction; not READ ONLY, for public lists as temporary tables."""
    from psycopg.pq import TransactionStatus

    idle = connection.info.transaction_status == TransactionStatus.IDLE
    with connection.transaction():
        if idle:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        elif connection.execute("SHOW transaction_isolation").fetchone()[0].startswith("read "):
            raise ArgumentError(
                "source: the table's connection has a transaction open that sees what others "
                "write between two queries; commit it, or begin it as REPEATABLE READ"
            )
        yield


@contextlib.contextmanager
def _duckdb_transaction(connection: DuckDBPyConnection) -> Iterator[None]:
    """Hold a transaction; any of DuckDB's is a snapshot, so the owner's own will do."""
    if _in_transaction(connection):
        yield
        return
    connection.begin()
    try:
        yield
    except BaseException:
        with contextlib.suppress(Exception):
            connection.rollback()
        raise
    connection.commit()


def _in_transaction(connection: DuckDBPyConnection) -> bool:
    """Return whether two statements have one transaction number, without disturbing the owner's.

    Outside a transaction every statement is one, with a number of its own. To begin one, and see
    whether that fails, would end the owner's.
    """
    one, other = (connection.execute("SELECT txid_current()").fetchone() for _ in range(2))
    return bool(one == other)
