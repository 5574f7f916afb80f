"""Peak resident memory of one piece of work, in a fresh process."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

CODE = "import sys; from benchmarks.memory import report; report(*sys.argv[1:])"


def peak_mib(work: Callable[[Path], Any], path: Path) -> float:
    """Of a function of this package, called with a path."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, work.__module__, work.__name__, str(path)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return float(done.stdout)


def report(module: str, name: str, path: str) -> None:
    """From the kernel's high-water mark: ru_maxrss would include the parent's memory at fork."""
    getattr(importlib.import_module(module), name)(Path(path))
    status = Path("/proc/self/status").read_text()
    print(int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) / 1024)
