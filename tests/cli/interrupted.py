"""Interrupts of the command line at a chosen moment, and what is left afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

COMMAND = Path(sys.executable).with_name("noisewise")
"""The installed command."""


@dataclass(frozen=True)
class Interrupt:
    """How a command ended that was interrupted: ``seconds`` after the signal."""

    seconds: float
    status: int
    said: str


def interrupt(
    arguments: list[object],
    after: float | Callable[[], bool],
    folder: Path,
    command: Sequence[object] = (COMMAND,),
) -> Interrupt:
    """Start the program, send SIGINT after so many seconds or once a condition holds, and wait."""
    process = subprocess.Popen(
        [*map(str, command), *map(str, arguments)],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(os.path.abspath(p) for p in sys.path),
            # It compiles anew, and leaves no half-written program to other tests.
            "JAX_COMPILATION_CACHE_DIR": str(folder.with_name(f"{folder.name}-compiled")),
        },
        # A job in the background of a shell has SIGINT ignored, and hands that on.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    if isinstance(after, float | int):
        time.sleep(after)
    else:
        while process.poll() is None and not after():
            time.sleep(0.05)
    sent = time.monotonic()
    process.send_signal(signal.SIGINT)
    try:
        _, said = process.communicate(timeout=120)
    finally:
        process.kill()
    return Interrupt(time.monotonic() - sent, process.returncode, said)
