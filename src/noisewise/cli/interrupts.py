"""Ctrl-C: the program ends within two seconds, whatever it is doing, and leaves nothing half done.

Python runs a signal's handler between two instructions of its own, and compiled inference or the
compilation itself may not return to Python for minutes. So there are two ways out. The handler
raises KeyboardInterrupt in the main thread, which unwinds as any error does: files are written
whole or not at all, databases roll back, and the ledger is told where a spend brought no release. A
watcher thread, woken by the signal itself, waits `GRACE_S` for that; then it removes unfinished
files, tells the ledger, and ends the process.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from typing import Any, NoReturn

STATUS = 130
"""The exit status after an interrupt, as shells have it: 128 + SIGINT."""
GRACE_S = 0.5
"""Seconds that the main thread has to end in good order (chosen: two seconds are promised)."""
LEDGER_S = 0.5
"""Seconds that the ledger has to note a spend without a release (chosen likewise)."""


@contextlib.contextmanager
def watched() -> Iterator[None]:
    """Turn SIGINT into KeyboardInterrupt in the main thread, or into the end of the process.

    Where SIGINT is ignored, as for a job in the background of a script, it stays so.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield
        return
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    former_wakeup = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    former = signal.signal(signal.SIGINT, _raise)
    former_hook = sys.unraisablehook
    threading.Thread(target=_watch, args=(ours,), daemon=True).start()

    def end_if_swallowed(problem: Any) -> None:
        # It came in a callback of a library, such as a garbage collection's: errors are only shown.
        if isinstance(problem.exc_value, KeyboardInterrupt):
            end_by_interrupt()
        former_hook(problem)

    sys.unraisablehook = end_if_swallowed

    def restore() -> None:
        # The command has done its work: an interrupt of Python's own end would only hide that.
        done = "noisewise.cli.first_moments" in sys.modules
        signal.signal(signal.SIGINT, signal.SIG_IGN if done else former)
        signal.set_wakeup_fd(former_wakeup)
        sys.unraisablehook = former_hook
        theirs.close()  # the watcher reads the end of it, and ends

    try:
        yield
    except BaseException as error:
        # Whatever a library made of it, such as Typer a SystemExit: it was the interrupt.
        if _received or isinstance(error, KeyboardInterrupt):
            end_by_interrupt()
        restore()
        raise
    restore()


_received: list[int] = []


def _raise(number: int, *_: object) -> None:
    _received.append(number)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # once is enough: the way out is not disturbed
    raise KeyboardInterrupt


def _watch(wakeups: socket.socket) -> None:
    """Wait for an interrupt; then for the main thread; then end the process."""
    with wakeups:
        while signals := wakeups.recv(64):
            if signal.SIGINT in signals:
                threading.Event().wait(GRACE_S)
                end_by_interrupt()


_ending = threading.Lock()


def end_by_interrupt() -> NoReturn:
    """Say so in one line, remove unfinished files, tell the ledger, and end the process.

    Nothing is waited for: libraries join their threads at an ordinary exit, for as long as those
    compute.
    """
    with _ending:  # never released: whoever comes second waits for the end
        from noisewise.artifact.atomic_file import discard_unfinished

        discard_unfinished()
        _note_lost_spends()
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        with contextlib.suppress(OSError, ValueError):
            os.write(2, b"interrupted\n")
        os._exit(STATUS)


def _note_lost_spends() -> None:
    """Tell the ledger of spends whose releases are not made, as far as time allows."""
    pipeline = sys.modules.get("noisewise.privacy.pipeline")
    if pipeline is None or not pipeline.Payment.unfinished:
        return

    def note() -> None:
        for payment in tuple(pipeline.Payment.unfinished):
            with contextlib.suppress(Exception):  # an ending program has nobody to tell
                payment.note_lost("interrupted")

    thread = threading.Thread(target=note, daemon=True)
    thread.start()
    thread.join(LEDGER_S)
