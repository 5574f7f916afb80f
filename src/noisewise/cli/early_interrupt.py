"""Ctrl-C while the command still loads its libraries: nothing is begun yet, and it ends at once.

The package imports this first of all where it is loaded by the command ``noisewise`` itself; later
`noisewise.cli.main` takes over.
"""

from __future__ import annotations

# Built into Python; the module ``signal`` would load others first.
import _signal as signal  # type: ignore[import-not-found]
import os


def _end(*_: object) -> None:
    os.write(2, b"interrupted\n")
    os._exit(130)


if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, _end)
