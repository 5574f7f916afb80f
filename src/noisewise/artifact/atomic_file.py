"""Files that are written whole or not at all.

What is being written lies beside its target under a name that says for which target, by which
process and on which machine. A process that was killed leaves it there; the next one that writes
the same target removes it, if it is sure that nobody is writing it any more.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from noisewise.artifact.process_ending import stop_if_ending

ABANDONED_S = 24 * 3600.0
"""Age in seconds from which a file is nobody's, even if it may be another machine's (chosen)."""

BOOT = Path("/proc/sys/kernel/random/boot_id")
"""Where Linux keeps a name of its own for each start of a machine."""

_unfinished: set[Path] = set()


@contextlib.contextmanager
def atomic_write(path: Path, refusal: Callable[[str], Exception]) -> Iterator[Path]:
    """Yield a name beside the target to write to; flush and rename it once it is written.

    A reader never sees half a file, and what was there stays if writing fails. ``refusal`` makes
    the error for an operating system that says no.
    """
    if not path.parent.is_dir():
        # Before a library says it in words of its own.
        raise refusal(os.strerror(errno.ENOENT))
    _remove_leftovers(path)
    # An ordinary new file, not tempfile's private one: it is meant to be read by others.
    temporary = path.parent / f"{_start(path)}{_machine()}-{os.getpid()}-{secrets.token_hex(4)}.tmp"
    _unfinished.add(temporary)
    try:
        yield temporary
        with open(temporary, "rb+") as written:
            os.fsync(written.fileno())
        stop_if_ending()
        os.replace(temporary, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError):
            raise refusal(error.strerror or str(error)) from error
        raise
    finally:
        _unfinished.discard(temporary)


def discard_unfinished() -> None:
    """Remove what this process is writing, for a program that has to end at once."""
    for temporary in tuple(_unfinished):
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def _remove_leftovers(path: Path) -> None:
    """Remove what dead processes left of the same target."""
    for leftover in path.parent.glob(f"{_start(path)}*.tmp"):
        with contextlib.suppress(OSError, ValueError):
            machine, process, _ = leftover.name.removeprefix(_start(path)).split("-")
            old = time.time() - leftover.stat().st_mtime > ABANDONED_S
            if old or (machine == _machine() and not _lives(int(process))):
                os.unlink(leftover)


def _start(path: Path) -> str:
    """Return how names begin of what is being written for a target."""
    return f".noisewise-{_mark(os.fsencode(path.name))}-"


def _machine() -> str:
    """Return a mark of this machine, or of the container: process ids mean something here only."""
    try:
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        namespace = ""
    try:
        # Hosts may share a name, and the first namespace has one number on all of them.
        boot = BOOT.read_text()
    except OSError:
        boot = ""
    return _mark(f"{socket.gethostname()} {namespace} {boot}".encode())


def _mark(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]


def _lives(process: int) -> bool:
    """Return whether there is such a process; if in doubt, there is."""
    if os.name == "nt":
        return True  # asking would send it a signal there
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
