"""The ledger of a source for which the owner named none: every spend is counted, without a cap.

Beside a local file it is ``.noisewise-ledger.db`` in the file's folder, one account per source.
Elsewhere, and where that folder cannot be written, it is ``ledger.db`` in the user's own folder:
``NOISEWISE_HOME``, or ``noisewise`` below ``XDG_DATA_HOME`` or ``~/.local/share``.

Promises of unlike kinds do not add up, so a source has one account for each: its own name for
epsilon, replace-one neighbours and records, and the name with the kind in brackets otherwise. Where
the owner sets a budget for the source's own name, that account alone pays, and refuses the others.
"""

from __future__ import annotations

import glob
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from noisewise.artifact import ArgumentError
from noisewise.privacy.ledger import rules
from noisewise.privacy.ledger.account_names import one_form
from noisewise.privacy.ledger.accounts import MAX_NAME_LENGTH, RECORD, Account, Cost
from noisewise.privacy.ledger.ledger import Ledger
from noisewise.privacy.ledger.store import Rows, Store

FILE_NAME = ".noisewise-ledger.db"
"""The ledger beside the data; hidden, so that no folder or pattern takes it for data."""


@dataclass(frozen=True)
class DefaultLedger:
    """Where the spends of a source are counted, and under which name.

    ``aside`` says why it is not beside the data, where it could be.
    """

    path: Path
    dataset: str
    aside: str = ""

    @property
    def exists(self) -> bool:
        """Return whether anything was counted yet; an ArgumentError where nothing ever can be."""
        folder = self.path.parent
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise self._nowhere(error.strerror or str(error)) from None
        if not os.access(folder, os.W_OK):
            raise self._nowhere("no permission to write there")
        return self.path.exists()

    def _nowhere(self, why: str) -> ArgumentError:
        return ArgumentError(
            f"ledger: the spend cannot be counted in {str(self.path)!r}: {why}; name a ledger"
        )


class CountingLedger(Ledger):
    """A ledger that opens accounts without a cap for one dataset, as releases come."""

    def __init__(self, store: Store, dataset: str) -> None:
        super().__init__(store)
        self._dataset = dataset

    def _payer(self, rows: Rows, dataset: str | None, cost: Cost) -> Account | None:
        own = self._named(rows, self._dataset)
        if own is not None and own.capped:
            return own
        return self._named(rows, kind_name(self._dataset, cost))

    def _opened(self, rows: Rows, cost: Cost) -> Account:
        account = rules.uncapped(self.id, kind_name(self._dataset, cost), cost)
        return self._set(rows, account, None)


def kind_name(dataset: str, cost: Cost) -> str:
    """Return the account of a dataset for releases of one kind of promise."""
    kinds = (
        ("rho", cost.accounting == "zcdp"),
        (cost.neighbours, cost.neighbours != "replace-one"),
        (f"unit {cost.unit}", cost.unit != RECORD),
    )
    told = ", ".join(word for word, unusual in kinds if unusual)
    return _fitting(f"{dataset} ({told})" if told else dataset)


def source_ledger(source: str) -> DefaultLedger:
    """Return the ledger of a path, a pattern or a database URL."""
    place = _local_place(source)
    if place is None:
        return DefaultLedger(_users_ledger(), _fitting(_address(source)))
    folder, name = place
    beside = folder / FILE_NAME
    if all(os.access(p, os.W_OK) for p in (folder, beside) if p == folder or p.exists()):
        return DefaultLedger(beside, _fitting(name))
    aside = f"{str(folder)!r} cannot be written"
    return DefaultLedger(_users_ledger(), _fitting(str(folder / name)), aside)


def _local_place(source: str) -> tuple[Path, str] | None:
    """Return the folder of local data, links followed, and their name in it; None if elsewhere."""
    table = ""
    if "://" in source:
        parts = urlsplit(source)
        if parts.scheme != "duckdb":
            return None
        source, table = unquote(parts.netloc + parts.path), f"#{unquote(parts.fragment)}"
    path = Path(os.path.expanduser(source))
    if path.exists() or not glob.has_magic(str(path)):
        path = path.resolve()
        return path.parent, path.name + table
    wild = next(i for i, part in enumerate(path.parts) if glob.has_magic(part))
    return Path(*path.parts[:wild]).resolve(), "/".join(path.parts[wild:])


def _address(url: str) -> str:
    """Return a database URL without user, password and options: what names the same table."""
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}#{unquote(parts.fragment)}"


def _users_ledger() -> Path:
    """Return the ledger in the user's own folder."""
    home = os.environ.get("NOISEWISE_HOME")
    shared = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(home or os.path.join(shared, "noisewise")).expanduser() / "ledger.db"


def _fitting(name: str) -> str:
    """Return a name that a ledger can keep: of one form, printable and not too long."""
    plain = "".join(c if c.isprintable() else "?" for c in one_form(name))
    if len(plain) <= MAX_NAME_LENGTH and "?" not in plain:
        return plain
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{plain[: MAX_NAME_LENGTH - 13]} {mark}"
