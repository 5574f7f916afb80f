"""Small linear algebra, distributions and convergence measures that the samplers share.

``jax_settings`` changes JAX's global settings: every module that imports JAX imports it, directly
or through another. BLAS threads and numpyro's caches are looked after here. What reads results
needs no JAX, and this package imports none until a sampler does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


QUIET_BY_JAX = "1"
"""The level of XLA's messages that JAX sets in the environment, unless the user chose one."""
FATAL = 3
"""The level at which XLA writes only what ends the process."""


@contextmanager
def without_compile_alarm() -> Iterator[None]:
    """Keep XLA's "Very slow compile?" off the screen while the context lasts.

    XLA writes it where one compilation takes minutes, as an error with advice for its developers. A
    compilation that fails raises an exception, which nothing here silences. A level of messages
    that the user chose in the environment stays.
    """
    import jax  # noqa: F401  # sets the level in the environment
    from jaxlib import utils

    if os.environ.get("TF_CPP_MIN_LOG_LEVEL") != QUIET_BY_JAX:
        yield
        return
    set_level: Callable[[int], None] = utils.absl_set_min_log_level
    set_level(FATAL)
    try:
        yield
    finally:
        set_level(int(QUIET_BY_JAX))


def one_blas_thread() -> AbstractContextManager[object]:
    """Return a context in which BLAS uses one thread; does nothing without threadpoolctl.

    Two threads for a matrix of fifty rows wait for each other longer than either works.
    """
    controller = _thread_controller()
    return nullcontext() if controller is None else controller.limit(limits=1, user_api="blas")


@cache
def _thread_controller() -> ThreadpoolController | None:
    """Return threadpoolctl's controller, or None where it is not installed.

    Cached, because looking through a process' libraries takes longer than a small posterior.
    """
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController()


class CompiledLoop(Protocol):
    """A function that JAX compiles, as far as its cache is concerned."""

    def clear_cache(self) -> None:
        """Drop what was compiled."""

    def _cache_size(self) -> int:
        """Return how many programs are held."""


def numpyro_sampling_loop() -> CompiledLoop:
    """Return the compiled function in whose cache numpyro's sampling loops are held."""
    import jax

    import noisewise.numerics.jax_settings  # noqa: F401

    body: Callable[..., Any] = import_module("numpyro.util")._fori_collect_loop
    return cast(CompiledLoop, jax.jit(body, static_argnums=(0, 1), donate_argnums=3))


def clear_numpyro_loops() -> None:
    """Drop numpyro's compiled sampling loops; call it after a run, when its draws have been read.

    numpyro compiles its loop anew for every run, tied to functions made for that run alone, and JAX
    keeps every one of them. Each run's hold some 1,400 memory maps: after about 45 runs in one
    process the system's limit (65,530) is reached, and the process ends without a message.
    """
    numpyro_sampling_loop().clear_cache()
