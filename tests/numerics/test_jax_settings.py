"""JAX's settings, in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_small_programs_are_kept_for_the_next_process(tmp_path: Path) -> None:
    """JAX itself would leave out what took less than a second to compile."""
    others = {k: v for k, v in os.environ.items() if "CACHE" not in k}
    program = "import noisewise.numerics.jax_settings, jax; jax.jit(lambda a: a + 1)(1.0)"
    subprocess.run(
        [sys.executable, "-c", program], env=others | {"XDG_CACHE_HOME": str(tmp_path)}, check=True
    )
    assert list((tmp_path / "noisewise" / "jax").glob("*-cache"))
