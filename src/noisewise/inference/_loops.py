"""numpyro's compiled loops, forgotten once they have run.

numpyro compiles its sampling loop anew for every run, tied to functions made for that run alone,
and JAX keeps every one of them. Each run's hold some 1,400 memory maps: after about 45 runs in one
process the system's limit (65,530) is reached, and the process ends without a word.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import jax


def loops() -> Any:
    """The compiled function that holds them, as numpyro itself makes it."""
    body = import_module("numpyro.util")._fori_collect_loop
    return jax.jit(body, static_argnums=(0, 1), donate_argnums=3)


def forget() -> None:
    """To be called after a run, when its draws have been read."""
    loops().clear_cache()
