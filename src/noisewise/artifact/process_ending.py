"""The end of the process, announced: from then on no file appears and no budget is spent.

An interrupt ends the command line while other threads still compute. They ask here before each
step that others could see. What takes long leaves word here of what it knows so far.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_ending = threading.Event()


def begin_ending() -> None:
    """Let no other file appear and no budget be spent: the process is about to end."""
    _ending.set()


def stop_if_ending() -> None:
    """Go no further, for ever, once another thread has begun to end the process."""
    while _ending.is_set():
        time.sleep(1.0)


_last_words: list[Callable[[], str]] = []


@contextmanager
def last_words(say: Callable[[], str]) -> Iterator[None]:
    """Have an interrupt say this too while the context lasts: a note of the exception has it."""
    _last_words.append(say)
    try:
        yield
    except KeyboardInterrupt as error:
        error.add_note(say())
        raise
    finally:
        _last_words.remove(say)


def all_last_words() -> str:
    """Return what is to be said at an interrupt, each after a semicolon."""
    return "".join(f"; {say()}" for say in tuple(_last_words))
