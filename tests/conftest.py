"""Fixtures shared by the whole suite; what only one room needs lives in that room's tests."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.postgres import PostgresMissing, postgres_server

# Half of the suite's time is compiling and waiting for threads, and no result depends on either.
# Read when the libraries are first used, here and in the processes that tests start.
for name, value in {
    # Two workers on two cores: a second thread only waits for the first (NPROC is XLA's).
    "NPROC": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    # XLA's older emitter of fused loops, which does without MLIR, and none of LLVM's passes (few of
    # them in modules that use the fixture ``optimised``): half the time of compiling.
    "XLA_FLAGS": "--xla_backend_optimization_level=1 --xla_cpu_use_fusion_emitters=false",
    "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    # What one worker compiled, however small, the other and later runs load; `make clean` drops it.
    "JAX_COMPILATION_CACHE_DIR": str(Path(__file__).parents[1] / "build" / "tests" / "jax"),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
}.items():
    os.environ.setdefault(name, value)

# What is counted of sources that are no local files goes to a folder of the tests, here and in the
# processes that tests start, never to the user's own.
os.environ["NOISEWISE_HOME"] = tempfile.mkdtemp(prefix="noisewise-tests-")
atexit.register(shutil.rmtree, os.environ["NOISEWISE_HOME"], ignore_errors=True)


@pytest.fixture(scope="module")
def optimised() -> Iterator[None]:
    """Compile with optimisations, for modules whose programs run for longer than that takes."""
    import jax

    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The URL of an empty database on a real PostgreSQL that lives as long as the session."""
    try:
        with postgres_server() as url:
            yield url
    except PostgresMissing as reason:
        pytest.skip(f"no PostgreSQL: {reason}")
