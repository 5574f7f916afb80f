"""A ledger in a PostgreSQL database, for a team.

``SELECT … FOR UPDATE`` claims the account's row before it is read: of two sessions asking for the
last of a budget one waits and then sees the other's spend. All a decision needs is in that row, so
READ COMMITTED is enough. A session or server that trades durability for speed
(``synchronous_commit = off``) is overruled for the ledger's own transactions.

A URL carries a password. It is in no message raised here, and a failed connection is reported
outside the handler of the driver's own error, so that none is chained to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from noisewise.artifact import ArgumentError, SourceError
from noisewise.privacy.ledger.store import ADD_UNITS, CREATE_HINT, Rows, create_tables, identity

if TYPE_CHECKING:
    import psycopg

LOCK_PATIENCE_S = 60.0
"""Seconds to wait for another session's lock (chosen)."""
IDLE_PATIENCE_S = 60.0
"""Seconds after which the server takes back our own lock if this process is suspended (chosen)."""
SERVER_PATIENCE_S = 10
"""Wait so long for the server, unless the URL says otherwise (chosen)."""
CREATION_LOCK = 6_647_935_241
"""An advisory lock that keeps two first users from creating the tables at once (chosen: any
constant will do)."""
TABLES = (
    "SELECT tablename FROM pg_catalog.pg_tables "
    "WHERE tablename = 'noisewise_ledger' AND schemaname = ANY (current_schemas(false))"
)
"""Asks whether the ledger's tables exist. Not to_regclass(): its cache would not see the tables a
racing session has just created."""
UNITS = (
    "SELECT 1 FROM pg_catalog.pg_attribute WHERE attrelid = 'noisewise_account'::regclass "
    "AND attname = 'unit' AND NOT attisdropped"
)
"""Asks whether the column is there that version 0.1 did not have."""
DURABLE = (
    "SELECT set_config('synchronous_commit', 'on', true) "
    "WHERE current_setting('synchronous_commit') = 'off'"
)
"""Makes a transaction wait for the disk where the server's settings would not."""


class PostgresStore:
    """The store behind a ``postgresql://`` URL."""

    def __init__(self, url: str, *, create: bool) -> None:
        options = _options(url)
        self._place = f"{options.get('dbname', 'default')!r} at {options.get('host', 'local')!r}"
        self._secrets = [str(options[k]) for k in ("password", "sslpassword") if options.get(k)]
        self._units = False
        self._connection = self._connect(options)
        try:
            self._id = self._prepare(create)
        except BaseException:
            self._connection.close()
            raise

    def _connect(self, options: dict[str, Any]) -> psycopg.Connection:
        import psycopg

        problem = ""
        try:
            # No prepared statements: they do not survive a connection pooler.
            connection = psycopg.connect(**options, autocommit=True, prepare_threshold=None)
            # Whatever the server's default: stricter levels fail where this one waits its turn.
            connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
            return connection
        except psycopg.Error as error:
            problem = self._reason(error)
        raise SourceError(f"the ledger database {self._place} cannot be reached{problem}")

    def _prepare(self, create: bool) -> str:
        with self._transaction():
            if create and not self._has_tables():
                self._execute("SELECT pg_advisory_xact_lock(?)", (CREATION_LOCK,))
                if not self._has_tables():
                    create_tables(self._execute)
            if not self._has_tables():
                raise SourceError(f"there is no ledger in {self.place}; {CREATE_HINT}")
            return identity(self._execute, self.place)

    def _has_tables(self) -> bool:
        return bool(self._execute(TABLES))

    def _has_units(self) -> bool:
        """Tell whether the column is there that version 0.1 did not have."""
        self._units = self._units or bool(self._execute(UNITS))
        return self._units

    @property
    def id(self) -> str:
        """Return the ledger's own name."""
        return self._id

    @property
    def place(self) -> str:
        """Return database and host."""
        return f"the database {self._place}"

    @contextmanager
    def reading(self) -> Iterator[Rows]:
        """Hold one snapshot; writers are not kept waiting."""
        with self._transaction():
            self._execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield Rows(self._execute, units=self._has_units())

    @contextmanager
    def writing(self) -> Iterator[Rows]:
        """Lock accounts as they are read; what was written is on disk at the end."""
        with self._transaction():
            self._execute(DURABLE)
            # Neither wait for ever for another's lock, nor hold our own for ever if suspended.
            for name, seconds in (
                ("lock_timeout", LOCK_PATIENCE_S),
                ("idle_in_transaction_session_timeout", IDLE_PATIENCE_S),
            ):
                self._execute("SELECT set_config(?, ?, true)", (name, f"{seconds}s"))
            if not self._has_units():
                self._execute("SELECT pg_advisory_xact_lock(?)", (CREATION_LOCK,))
                for statement in ADD_UNITS:
                    self._execute(statement.replace("COLUMN", "COLUMN IF NOT EXISTS"))
            yield Rows(self._execute, lock=" FOR UPDATE")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        import psycopg

        problem = ""
        try:
            with self._connection.transaction():
                yield
        except psycopg.Error as error:
            problem = self._reason(error)
        if problem:
            raise SourceError(
                f"the ledger in {self.place} cannot be used{problem}. No noise was drawn; "
                "`noisewise ledger show` tells whether the spend was recorded"
            ) from None

    def _execute(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(statement.replace("?", "%s").encode(), values)
        return cursor.fetchall() if cursor.description else []

    def _reason(self, error: psycopg.Error) -> str:
        text = " ".join((error.diag.message_primary or str(error)).split())
        safe = text and not any(secret in text for secret in self._secrets)
        return f": {text}" if safe else f" ({type(error).__name__})"

    def close(self) -> None:
        """End the session."""
        self._connection.close()


def _options(url: str) -> dict[str, Any]:
    """Return the URL taken apart, or raise an error that does not repeat it."""
    try:
        import psycopg
    except ImportError:
        raise SourceError(
            "a PostgreSQL ledger needs psycopg: pip install 'noisewise[postgres]'"
        ) from None
    _no_stray_separators(url)
    options: dict[str, Any] = {"port": "unreadable"}
    # The driver's message would quote the URL, so it ends here.
    with suppress(psycopg.Error):
        options = dict(psycopg.conninfo.conninfo_to_dict(url))
    if not str(options.get("port", "0")).replace(",", "").isdigit():
        raise ArgumentError(
            "the ledger's URL cannot be read (not shown, it may hold a password); expected "
            "postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
        )
    return {"connect_timeout": SERVER_PATIENCE_S, "application_name": "noisewise", **options}


def _no_stray_separators(url: str) -> None:
    """Refuse a bare @, / or ? in a password: part of it would pass for the host in errors."""
    rest = url.split("://", 1)[1]
    authority = rest.replace("?", "/").split("/", 1)[0]
    if rest.count("@") > authority.count("@") or authority.count("@") > 1:
        raise ArgumentError(
            "the ledger's URL has an @ in an unexpected place (not shown, it may hold a "
            "password): in user names and passwords write %40 for @, %2F for / and %3F for ?"
        )
