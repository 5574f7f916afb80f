"""The ledger of a source for which the owner named none: every spend is counted, without a cap.

Beside a local file it is ``.noisewise-ledger.db`` in the file's folder, one account per source. A
folder or pattern is a source of its own only if it names several files, none of which has a budget.
Elsewhere, and where that folder has no ledger and cannot be written, it is ``ledger.db`` in the
user's own folder: ``NOISEWISE_HOME``, or ``noisewise`` below ``XDG_DATA_HOME`` or
``~/.local/share``.

Promises of unlike kinds do not add up, so a source has one account for each: its own name for
epsilon, replace-one neighbours and records, and the name with the kind in brackets otherwise. Where
the owner sets a budget for the source's own name, that account alone pays, and refuses the others.
"""

from __future__ import annotations

import glob
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import SplitResult, parse_qs, unquote

from noisewise.artifact import ArgumentError, BudgetError, NoisewiseError
from noisewise.privacy.ledger import spending_rules
from noisewise.privacy.ledger.accounts import (
    RECORD,
    Account,
    Cost,
    fitting,
    hash_mark,
    likeness,
    one_form,
)
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
        account = spending_rules.uncapped(self.id, kind_name(self._dataset, cost), cost)
        return self._set(rows, account, None)


def kind_name(dataset: str, cost: Cost) -> str:
    """Return the account of a dataset for releases of one kind of promise."""
    kinds = (
        ("rho", cost.accounting == "zcdp"),
        (_told_apart(cost.neighbours), cost.neighbours != "replace-one"),
        (f"unit {_told_apart(cost.unit)}", cost.unit != RECORD),
    )
    listed = ", ".join(word for word, unusual in kinds if unusual)
    return _fitting(f"{dataset} ({listed})" if listed else dataset)


def _told_apart(word: str) -> str:
    """Return a relation or unit, with a hash where names of accounts do not keep its letters."""
    return word if likeness(word) == word else f"{word} {hash_mark(word)}"


def source_ledger(source: str) -> DefaultLedger:
    """Return the ledger of a path, a pattern or a database URL.

    A folder or a pattern that names one file is that file. One of several files has an account of
    its own, unless a budget was set for some of them.
    """
    if "://" in source:
        return _table_ledger(source)
    files = _files(source)
    ledger = _beside(*_local_place(str(files[0]) if len(files) == 1 else source))
    _refuse_other_caps(source, files, ledger)
    return ledger


def _table_ledger(url: str) -> DefaultLedger:
    """Return the ledger of a table in a database."""
    from noisewise.privacy.sources.database_url import split_url

    parts = split_url(url)
    if parts.scheme != "duckdb":
        return DefaultLedger(users_ledger(), _fitting(_address(parts)))
    folder, name = _local_place(unquote(parts.netloc + parts.path))
    return _beside(folder, f"{name}#{unquote(parts.fragment).removeprefix('main.')}")


def _beside(folder: Path, name: str) -> DefaultLedger:
    """Return the ledger in a folder; the user's own where there is none and none can be made."""
    beside, writable = folder / FILE_NAME, os.access(folder, os.W_OK)
    if beside.exists() and not (writable and os.access(beside, os.R_OK | os.W_OK)):
        raise ArgumentError(
            f"ledger: {str(beside)!r} counts what is spent on these data, and you may not write "
            "there. Ask its owner for permission; or name a ledger with ledger="
        )
    if writable:
        return DefaultLedger(beside, _fitting(name))
    aside = f"{str(folder)!r} cannot be written"
    return DefaultLedger(users_ledger(), _fitting(str(folder / name)), aside)


def _files(source: str) -> list[Path]:
    """Return the files that a path or a pattern names, links followed; none where it is wrong."""
    from noisewise.privacy.sources.files import find_files

    # What is wrong with it, the release says in a moment: it lists the files again.
    with suppress(NoisewiseError, OSError):
        return [Path(file).resolve() for file in find_files(source)]
    return []


def _local_place(source: str) -> tuple[Path, str]:
    """Return the folder of local data, links followed, and their name in it."""
    path = Path(os.path.expanduser(source))
    if path.exists() or not glob.has_magic(str(path)):
        path = path.resolve()
        return path.parent, path.name
    wild = next(i for i, part in enumerate(path.parts) if glob.has_magic(part))
    return Path(*path.parts[:wild]).resolve(), "/".join(path.parts[wild:])


def _refuse_other_caps(source: str, files: list[Path], own: DefaultLedger) -> None:
    """Raise a BudgetError where a file has a budget under another name than the source's own.

    Such a budget is a file's, a folder's or a pattern's, in the ledger of any folder above it. The
    ledgers beside the files must be usable; others that are not, are not this user's.
    """
    for folder in {file.parent for file in files}:
        _beside(folder, "")
    caps: dict[Path, list[str]] = {}
    for file in files:
        places = [
            (folder / FILE_NAME, file.relative_to(folder).as_posix()) for folder in file.parents
        ]
        for path, name in (*places, (users_ledger(), str(file))):
            if path not in caps:
                caps[path] = _capped(path)
            for cap in caps[path]:
                if (path, cap) != (own.path, own.dataset) and _covers(cap, name):
                    raise BudgetError(
                        f"source: {source!r} has records of dataset {cap!r}, for which a budget is "
                        f"set in {str(path)!r}. Nothing was drawn. Say which account pays, with "
                        "ledger= and dataset="
                    )


def _capped(path: Path) -> list[str]:
    """Return the sources with a budget in a ledger, with and without the kind in brackets."""
    from noisewise.privacy.ledger.sqlite import SqliteStore

    with suppress(NoisewiseError, OSError):
        if path.exists():
            with Ledger(SqliteStore(path, create=False)) as book:
                names = [account.dataset for account in book.accounts() if account.capped]
            return names + [n.rpartition(" (")[0] for n in names if n.endswith(")")]
    return []


def _covers(account: str, file: str) -> bool:
    """Return whether an account's name is that of a file, or of a folder or pattern with it."""
    name = _fitting(file)
    if name == account or name.startswith(f"{account}/"):
        return True
    as_deep = "**" in account or account.count("/") == name.count("/")
    return as_deep and fnmatchcase(name, account.replace("**/", "*"))


def _address(parts: SplitResult) -> str:
    """Return what names a table of PostgreSQL, however its URL is written.

    Options overrule the rest of a URL, and the environment fills its gaps, as libpq has it. Users,
    passwords and other options are left out.
    """
    options = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    user, _, place = parts.netloc.rpartition("@")
    ported = re.fullmatch(r"(.*?)(?::(\d+))?", place)
    written, at = ported.groups() if ported else (place, None)
    host = options.get("host") or options.get("hostaddr") or unquote(written)
    port = options.get("port") or at or os.environ.get("PGPORT") or "5432"
    place = f"{(host or os.environ.get('PGHOST', '')).lower()}:{port}"
    place = re.sub(r":5432(?=,|$)", "", place)
    named = options.get("dbname") or unquote(parts.path.lstrip("/"))
    database = named or os.environ.get("PGDATABASE") or unquote(user.partition(":")[0])
    service = f"?service={options['service']}" if "service" in options else ""
    scheme = "postgresql" if parts.scheme == "postgres" else parts.scheme
    table = unquote(parts.fragment).removeprefix("public.")
    return f"{scheme}://{place}/{database}{service}#{table}"


def users_ledger() -> Path:
    """Return the ledger in the user's own folder."""
    home = os.environ.get("NOISEWISE_HOME")
    shared = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(home or os.path.join(shared, "noisewise")).expanduser() / "ledger.db"


def _fitting(name: str) -> str:
    """Return a name that a ledger can keep: of one form, printable and not too long."""
    return fitting(one_form(name))
