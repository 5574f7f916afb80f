"""Notebooks of scripts that were run, kept until the script or the library changes.

A notebook's name holds a digest of the script, of the library's files and version, and of these
files. So one that is out of date is never found, and a page cannot show it.
"""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
KEPT = ROOT / "build" / "gallery"
"""Where notebooks are kept."""
SWITCH = "NOISEWISE_GALLERY"
"""Environment variable: ``off`` builds pages without running scripts, and they say so."""
JOBS = "NOISEWISE_GALLERY_JOBS"
"""Environment variable: how many scripts run at once."""
DIGITS = 16
"""Of the digest that names a notebook (chosen)."""
DEPENDENCIES = ("numpy", "jax", "opendp", "mbi", "matplotlib", "pandas")
"""Libraries whose versions change what an example gives."""

log = logging.getLogger("mkdocs.gallery")


class ExampleError(Exception):
    """A script did not run; the message is what it printed."""


def notebooks(scripts: list[Path]) -> list[dict[str, Any] | None]:
    """Return the notebook of every script, run where need be; None for each where switched off."""
    if os.environ.get(SWITCH) == "off":
        return [None] * len(scripts)
    jobs = int(os.environ.get(JOBS) or min(2, os.cpu_count() or 1))
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(_notebook, scripts))


def digest(script: Path) -> str:
    """Return what names the notebook of a script as it is today."""
    return hashlib.sha256(script.read_bytes() + library().encode()).hexdigest()[:DIGITS]


@functools.cache
def library() -> str:
    """Return a digest of all that a script's outputs depend on, but the script."""
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "src").rglob("*.csv")]
    files += Path(__file__).parent.glob("*.py")
    found = hashlib.sha256(version("noisewise").encode())
    for name in DEPENDENCIES:
        found.update(version(name).encode())
    for path in sorted(files):
        found.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    return found.hexdigest()


def _notebook(script: Path) -> dict[str, Any]:
    kept = KEPT / f"{script.parent.name}-{script.stem}-{digest(script)}.ipynb"
    if not kept.exists():
        _run(script, kept)
    made: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))
    if not made["metadata"]["noisewise"]["complete"]:
        # Tried again by the next build, which may find the server.
        kept.unlink()
    return made


def _run(script: Path, kept: Path) -> None:
    """Run a script in a process of its own; of older notebooks of it none is kept."""
    log.info("running %s", script.relative_to(script.parents[1]))
    KEPT.mkdir(parents=True, exist_ok=True)
    fresh = kept.with_suffix(".new")
    words = [sys.executable, str(Path(__file__).with_name("running.py")), str(script), str(fresh)]
    source = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]).rstrip(":")
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": source},
    )  # fmt: skip
    if done.returncode:
        raise ExampleError(f"{script.name} did not run:\n{done.stdout}{done.stderr}")
    # Of this script alone: another's name may begin with the same words.
    for older in KEPT.glob(f"{script.parent.name}-{script.stem}-{'[0-9a-f]' * DIGITS}.ipynb"):
        older.unlink()
    fresh.replace(kept)
