"""The end of the process, announced: from then on no file appears and no budget is spent.

An interrupt ends the command line while other threads still compute. They ask here before each
step that others could see.
"""

from __future__ import annotations

import threading
import time

_ending = threading.Event()


def begin_ending() -> None:
    """Let no other file appear and no budget be spent: the process is about to end."""
    _ending.set()


def stop_if_ending() -> None:
    """Go no further, for ever, once another thread has begun to end the process."""
    while _ending.is_set():
        time.sleep(1.0)
