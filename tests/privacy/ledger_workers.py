"""What the ledger tests run in other processes: plain functions, importable by name."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext

import psycopg  # noqa: F401  imported once by the server, not by every worker

from noisewise.artifact import BudgetError
from noisewise.privacy.ledger import Cost, Receipt, open_ledger
from noisewise.privacy.ledger.store import Rows

_start_line: list[threading.Barrier] = []

# A clean server process that imports once and forks for each worker: quick, and no test's threads,
# locks or connections are inherited.
CONTEXT: ForkServerContext = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.privacy.ledger_workers"])


def line_up(barrier: threading.Barrier) -> None:
    """Give a pool's worker the barrier at which all start together."""
    _start_line.append(barrier)


def race(where: str, amount: float) -> Receipt | None:
    """Open the ledger, wait for the others, then try to spend."""
    with open_ledger(where) as ledger:
        _start_line[0].wait()
        try:
            return ledger.spend("people", Cost("pure", amount, "replace-one"), "race")
        except BudgetError:
            return None


def race_to_create(where: str, epsilon: float) -> str:
    """All create the same ledger and set the same account's budget at once."""
    _start_line[0].wait()
    with open_ledger(where, create=True) as ledger:
        ledger.set_budget("people", epsilon=epsilon)
        return ledger.id


def spend_for_ever(where: str, receipts: Connection) -> None:
    """Spend in a loop, reporting each receipt as soon as it is in hand; ends by being killed."""
    with open_ledger(where) as ledger:
        while True:
            receipts.send(ledger.spend(None, Cost("pure", 0.001, "replace-one"), "loop"))


def die_while_writing(where: str) -> None:
    """Be killed at the worst moment: everything is written, nothing committed."""
    append: Callable[..., None] = Rows.append

    def append_and_die(self: Rows, *row: object) -> None:
        append(self, *row)
        os.kill(os.getpid(), signal.SIGKILL)

    Rows.append = append_and_die  # type: ignore[method-assign, assignment]
    with open_ledger(where) as ledger:
        ledger.spend(None, Cost("pure", 0.001, "replace-one"), "never seen again")
