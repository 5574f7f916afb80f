"""Tables named by a URL. Neither user, password nor server message reaches an error's text."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from noisewise.artifact import ArgumentError, DataError, SourceError

if TYPE_CHECKING:
    import ibis.expr.types as ir
    from ibis.backends import BaseBackend

FORM = (
    "postgresql://user@host/database#table, duckdb://file.db#table, or #schema.table instead of "
    "#table"
)
"""How a URL is written, for errors."""

CONNECT_PATIENCE_S = 30
"""Wait for a server so long, unless the URL has a ``connect_timeout`` (chosen: libpq waits for
minutes)."""


def open_table(url: str) -> tuple[ir.Table, Callable[[], None]]:
    """Return the Ibis table that a URL names, and the call that closes its connection."""
    parts = split_url(url)
    openers = {"postgresql": _postgres, "postgres": _postgres, "duckdb": _duckdb}
    if parts.scheme not in openers:
        raise ArgumentError(f"source: {parts.scheme}:// is not known; the form is {FORM}")
    if not parts.fragment:
        raise ArgumentError(f"source: the URL does not say which table; the form is {FORM}")
    backend, where = openers[parts.scheme](parts)
    schema, _, name = unquote(parts.fragment).rpartition(".")
    table = _table(backend, name, schema or None)
    if table is None:
        backend.disconnect()
        raise DataError(
            f"{where} has no table {unquote(parts.fragment)!r} that can be read (upper and lower "
            "case count)"
        )
    return table, backend.disconnect


def split_url(url: str) -> SplitResult:
    """Return the parts of a URL, or raise an ArgumentError where it is none."""
    with contextlib.suppress(ValueError):
        return urlsplit(url)
    raise ArgumentError(f"source: this is not a URL; the form is {FORM}")


def _ibis(extra: str) -> ModuleType:
    """Return the package ibis, or raise an error that names the extra to install."""
    try:
        import ibis

        if extra == "postgres":
            import psycopg  # noqa: F401
    except ImportError:
        raise ArgumentError(
            f"source: reading a database needs more packages: pip install 'noisewise[{extra}]'"
        ) from None
    package: ModuleType = ibis
    return package


def _postgres(parts: SplitResult) -> tuple[BaseBackend, str]:
    """Return a connection, and what an error calls the database."""
    ibis = _ibis("postgres")
    import psycopg

    query = parse_qs(parts.query)
    host = parts.hostname or query.get("host", ["this machine"])[0]
    database = unquote(parts.path.lstrip("/")) or query.get("dbname", ["(default)"])[0]
    where = f"PostgreSQL database {database!r} on {host!r}"
    patience: dict[str, Any] = {"connect_timeout": CONNECT_PATIENCE_S}
    if "connect_timeout" in query:
        patience = {}
    with contextlib.suppress(Exception):
        # libpq reads the URL itself: it knows sockets, services, certificates and password files.
        address = parts._replace(fragment="").geturl()
        connection = psycopg.connect(address, autocommit=True, **patience)
        return ibis.postgres.from_connection(connection), where
    raise SourceError(f"cannot connect to {where}: is it running, and are name and password right?")


def _duckdb(parts: SplitResult) -> tuple[BaseBackend, str]:
    """Return a connection, and what an error calls the file."""
    ibis = _ibis("engines")
    path = Path(unquote(parts.netloc + parts.path))
    where = f"DuckDB file {str(path)!r}"
    if not path.is_file():  # DuckDB would make an empty one
        raise SourceError(f"there is no {where}")
    with contextlib.suppress(Exception):
        return ibis.duckdb.connect(path, read_only=True), where
    raise SourceError(f"cannot open {where}: is it one, and is no other program writing to it?")


def _table(backend: BaseBackend, name: str, schema: str | None) -> ir.Table | None:
    """Return the table, or None where there is none that can be read."""
    with contextlib.suppress(Exception):
        return backend.table(name, database=schema)
    return None
