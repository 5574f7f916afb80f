"""``noisewise``: where the program begins, and where errors become a message and an exit code.

Little is imported here: an interrupt must be understood while the libraries still load.

Ctrl-C ends the program within two seconds, whatever it is doing, and leaves nothing half done.
Python runs a signal's handler between two instructions of its own, and compiled inference or the
compilation itself may not return to Python for minutes. An exception that the handler raises may
also come in a callback of a library, which swallows it or aborts. So the handler does nothing, and
a watcher thread, woken by the signal itself, ends the process: it lets no file appear and no budget
be spent from then on, removes unfinished files, and tells the ledger where a spend brought no
release. Databases roll back what was not committed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import NoReturn

from noisewise.artifact import atomic_file, process_ending


def run() -> None:
    """Run the program.

    Exit codes: 0 done, 1 refused (message on stderr), 2 wrong usage, 130 interrupted.
    """
    with watched():
        _run()


def _run() -> None:
    from noisewise.artifact import NoisewiseError
    from noisewise.cli.console import say
    from noisewise.cli.verbs import app

    speak = _shell_words(sys.argv[1:])

    def warn(message: Warning | str, *_: object, **__: object) -> None:
        # Without the line of code, which says nothing to whoever runs a command.
        say(f"warning: {speak(str(message))}", "yellow")

    with warnings.catch_warnings():
        warnings.showwarning = warn
        # Ours are for the person at the terminal: each once, whatever Python was told to do.
        warnings.filterwarnings("default", category=UserWarning)
        try:
            app(prog_name="noisewise")
        except NoisewiseError as error:
            say(f"error: {speak(str(error))}", "red")
            sys.exit(1)


def _shell_words(arguments: list[str]) -> Callable[[str], str]:
    """Return the translation of messages for the command that these arguments ask for."""
    import typer

    from noisewise.cli.messages import command_flags, translate
    from noisewise.cli.verbs import app

    return lambda message: translate(message, command_flags(typer.main.get_command(app), arguments))


STATUS = 130
"""The exit status after an interrupt, as shells have it: 128 + SIGINT."""
SETTLE_S = 0.1
"""Seconds in which a file or a spend that is under way comes to its end (chosen)."""
LEDGER_S = 1.0
"""Seconds that the ledger has to note a spend without a release (chosen: two are promised)."""
SHOW_CURSOR = b"\x1b[?25h"
"""What a terminal is told to show its cursor, which a progress bar hides."""


@contextlib.contextmanager
def watched() -> Iterator[None]:
    """Let SIGINT end the process while the context lasts.

    Where SIGINT is ignored, as for a job in the background of a script, it stays so.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield
        return
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    former_wakeup = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    former = signal.signal(signal.SIGINT, lambda *_: None)
    threading.Thread(target=_watch, args=(ours,), daemon=True).start()
    try:
        yield
    except KeyboardInterrupt:
        end_by_interrupt()  # raised by a library that looks at signals itself
    finally:
        # The command has done its work: an interrupt of Python's own end would only hide that.
        done = "noisewise.cli.early_interrupt" in sys.modules
        signal.signal(signal.SIGINT, signal.SIG_IGN if done else former)
        signal.set_wakeup_fd(former_wakeup)
        theirs.close()  # the watcher reads the end of it, and ends


def _watch(wakeups: socket.socket) -> None:
    """Wait for an interrupt, and end the process; or for the end of the command."""
    with wakeups:
        while signals := wakeups.recv(64):
            if signal.SIGINT in signals:
                end_by_interrupt()


_ending = threading.Lock()


def end_by_interrupt() -> NoReturn:
    """Say so in one line, remove unfinished files, tell the ledger, and end the process.

    Nothing is waited for: libraries join their threads at an ordinary exit, for as long as those
    compute.
    """
    with _ending:  # never released: whoever comes second waits for the end
        said = b""
        with contextlib.suppress(Exception):
            said = process_ending.all_last_words().encode()
        with contextlib.suppress(Exception):  # whatever happens, it ends
            process_ending.begin_ending()
            time.sleep(SETTLE_S)
            atomic_file.discard_unfinished()
            _note_lost_spends()
        with contextlib.suppress(OSError):
            os.write(2, (SHOW_CURSOR if os.isatty(2) else b"") + b"interrupted" + said + b"\n")
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
