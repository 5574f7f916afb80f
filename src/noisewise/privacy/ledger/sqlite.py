"""A ledger in one SQLite file: the default, for one machine.

``BEGIN IMMEDIATE`` takes the write lock before anything is read, so that of two processes asking
for the last of a budget one waits and then sees the other's spend. ``synchronous=EXTRA`` makes a
commit survive power loss: it also syncs the folder after the journal is deleted, without which the
journal could come back and undo the spend; what a killed process leaves of one is rolled back and
removed at the next opening. The file is private to its owner. Keep it on a local disk; network
file systems do not lock reliably (use PostgreSQL for a team).
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from noisewise.artifact import SourceError
from noisewise.artifact.user_warnings import warn_user
from noisewise.privacy.ledger.store import ADD_UNITS, CREATE_HINT, Rows, create_tables, identity

LOCK_PATIENCE_S = 60.0
"""Wait so long for another process that holds the file (chosen)."""
PRIVATE = 0o600
"""The permissions of a new ledger: its owner reads and writes, nobody else."""
WORLD = 0o007
"""The permissions of everybody, which an older ledger loses."""


class SqliteStore:
    """The store behind a path."""

    def __init__(self, path: Path, *, create: bool) -> None:
        self._path = path
        if not create and not path.exists():
            raise SourceError(f"there is no ledger {str(path)!r}; {CREATE_HINT}")
        if create:
            _create_private(path)
        with self._translated():
            # A URI from the absolute path: no name, not even ":memory:", has a special meaning.
            self._connection = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode={'rwc' if create else 'rw'}",
                uri=True,
                timeout=LOCK_PATIENCE_S,
                isolation_level=None,
                check_same_thread=False,
            )
        try:
            self._id = self._prepare(create)
            _make_private(path)
            self._remove_journal()
        except BaseException:
            self._connection.close()
            raise

    def _prepare(self, create: bool) -> str:
        with self._translated():
            self._execute("PRAGMA synchronous=EXTRA")
            tables = self._tables()
        if create and not tables:
            self._create()
            tables = self._tables()
        if "noisewise_ledger" not in tables:
            hint = "choose another file" if tables else CREATE_HINT
            raise SourceError(f"{self.place} is a SQLite database but not a ledger; {hint}")
        with self._translated():
            return identity(self._execute, self.place)

    def _remove_journal(self) -> None:
        """Remove the journal of a killed process.

        SQLite has undone by it what was half written, and keeps one that has nothing to undo. Under
        the exclusive lock, which a live writer would not let us have, it is nobody's.
        """
        # SQLite follows links, and keeps the journal beside the file itself.
        journal = Path(f"{self._path.resolve()}-journal")
        if not journal.exists():
            return
        with suppress(sqlite3.Error, OSError):
            self._execute("PRAGMA busy_timeout = 0")
            self._execute("BEGIN EXCLUSIVE")
            journal.unlink(missing_ok=True)
        with suppress(sqlite3.Error):
            if self._connection.in_transaction:
                self._execute("ROLLBACK")
            self._execute(f"PRAGMA busy_timeout = {int(1000 * LOCK_PATIENCE_S)}")

    def _create(self) -> None:
        with self.writing():
            # Looked at again under the lock: another process may have been quicker.
            if not self._tables():
                create_tables(self._execute)

    def _tables(self) -> set[str]:
        return {row[0] for row in self._execute("SELECT name FROM sqlite_master")}

    def _has_units(self) -> bool:
        """Tell whether the column is there that version 0.1 did not have."""
        columns = self._execute("SELECT name FROM pragma_table_info('noisewise_account')")
        return ("unit",) in columns

    @property
    def id(self) -> str:
        """Return the ledger's own name."""
        return self._id

    @property
    def place(self) -> str:
        """Return what an error calls the file."""
        return repr(str(self._path))

    @contextmanager
    def reading(self) -> Iterator[Rows]:
        """Hold a snapshot; writers wait while it is held."""
        with self._transaction("BEGIN") as rows:
            yield rows

    @contextmanager
    def writing(self) -> Iterator[Rows]:
        """Hold the write lock from the start; what was written is on disk at the end."""
        with self._transaction("BEGIN IMMEDIATE") as rows:
            yield rows

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Rows]:
        with self._translated():
            self._execute(begin)
            try:
                if begin != "BEGIN" and self._tables() and not self._has_units():
                    for statement in ADD_UNITS:
                        self._execute(statement)
                yield Rows(self._execute, units=self._has_units())
                self._execute("COMMIT")
            except BaseException:
                # A failed COMMIT may or may not have ended the transaction already.
                if self._connection.in_transaction:
                    self._execute("ROLLBACK")
                raise

    def _execute(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        return self._connection.execute(statement, values).fetchall()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise SourceError(f"the ledger {self.place} cannot be used: {_reason(error)}") from None

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def _create_private(path: Path) -> None:
    """Create an empty file that only its owner may read; SQLite's side files take after it."""
    # What goes wrong here, SQLite says in a moment.
    with suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, PRIVATE))


def _make_private(path: Path) -> None:
    """Take a ledger away from the world: version 0.1 let every user of the machine read it.

    What its group may do was somebody's decision, and stays.
    """
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & WORLD:
            path.chmod(mode & ~WORLD)
    except OSError:
        warn_user(
            f"ledger: every user of this machine can read {str(path)!r}; its owner should change "
            "that (chmod o= FILE)"
        )


def _reason(error: sqlite3.Error) -> str:
    # The low byte is the kind of error, the rest its details; errors of the module have none.
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_NOTADB:
        return "it is not a SQLite database"
    if code == sqlite3.SQLITE_BUSY:
        held = f"another process has held it for {LOCK_PATIENCE_S:g} s"
        return f"{held}; nothing was spent, try again"
    return str(error)
