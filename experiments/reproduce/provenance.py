"""Where a number comes from: command, settings, commit, versions, date, seconds."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from noisewise import __version__

LIBRARIES = ("numpy", "scipy", "jax", "pandas", "matplotlib")


def commit(folder: Path) -> str:
    """Of the checkout, with a mark where files differ from it; "unknown" outside of one."""
    try:
        head = _git(folder, "rev-parse", "--short=12", "HEAD")
        changed = _git(folder.parent, "status", "--porcelain", "src", "experiments")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{head}+changes" if changed else head


def provenance(
    name: str, size: str, settings: Mapping[str, Any], origins: Mapping[str, Any], seconds: float,
    computing: float, resumed: int,
) -> dict[str, Any]:  # fmt: skip
    """``seconds`` of this run; ``computing``: of all its cells, those of earlier runs included."""
    quick = " --quick" if size == "quick" else ""
    return {
        "command": f"noisewise reproduce {name}{quick}",
        "settings": dict(settings),
        "seed": settings.get("seed"),
        **{note: ", ".join(seen) for note, seen in origins.items()},
        "versions": {"noisewise": __version__, **{name: version(name) for name in LIBRARIES}},
        "python": platform.python_version(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "seconds": round(seconds, 1),
        "computing": round(computing, 1),
        "cells_from_an_earlier_run": resumed,
    }


def device() -> str:
    """What JAX computes on."""
    import jax

    first = jax.devices()[0]
    return f"{os.cpu_count()} CPU cores" if first.platform == "cpu" else str(first.device_kind)


def _git(folder: Path, *words: str) -> str:
    ended = subprocess.run(
        ["git", "-C", str(folder), *words], capture_output=True, text=True, check=True
    )
    return ended.stdout.strip()
