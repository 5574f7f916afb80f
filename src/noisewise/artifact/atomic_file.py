"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path


@contextlib.contextmanager
def atomic_write(path: Path, refusal: Callable[[str], Exception]) -> Iterator[Path]:
    """Yield a name beside the target to write to; flush and rename it once it is written.

    A reader never sees half a file, and what was there stays if writing fails. ``refusal`` makes
    the error for an operating system that says no.
    """
    if not path.parent.is_dir():
        # Before a library says it in words of its own.
        raise refusal(os.strerror(errno.ENOENT))
    # An ordinary new file, not tempfile's private one: it is meant to be read by others.
    temporary = path.parent / f".noisewise-{secrets.token_hex(8)}.tmp"
    try:
        yield temporary
        with open(temporary, "rb+") as written:
            os.fsync(written.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError):
            raise refusal(error.strerror or str(error)) from error
        raise
