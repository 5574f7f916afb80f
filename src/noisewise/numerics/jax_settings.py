"""JAX's global settings: float64, and a compilation cache on disk.

Importing this module makes them; nothing else in noisewise does.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import jax


def configure_jax() -> None:
    """Switch JAX to float64 and, unless the user chose one, give it a compilation cache on disk.

    Sums of 10⁸ records are compared with noise of size 1, which single precision cannot hold.
    Compiling takes longer than most samplings; a second process should not wait for it again. The
    cache lies under ``$XDG_CACHE_HOME/noisewise/jax`` (by default ``~/.cache/noisewise/jax``). It
    keeps small programs too, which JAX leaves out: compiling them again took half a second of CPU.
    """
    config: Any = jax.config
    config.update("jax_enable_x64", True)
    if not config.jax_compilation_cache_dir:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        config.update("jax_compilation_cache_dir", str(Path(home) / "noisewise" / "jax"))
        config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


configure_jax()
