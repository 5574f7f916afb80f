"""XLA's words about slow compilations are off the screen while noisewise samples, then only."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SLOW = """
import jax, numpy as np
from noisewise.inference.api import reporting

def fold(places):
    constant = np.arange(places, dtype=np.float32)
    jax.jit(lambda: jax.lax.reduce_window(
        constant, np.float32(0), jax.lax.add, (60,), (1,), "SAME"
    ))()

with reporting(False, "sampling"):
    fold(200_000)
print("#####", flush=True)
fold(200_001)
"""
"""Two constants whose folding takes XLA more than the second after which it speaks up."""


@pytest.mark.parametrize("chosen", [None, "0"])
def test_the_alarm_is_silent_while_sampling(chosen: str | None) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "TF_CPP_MIN_LOG_LEVEL"}
    environment["JAX_ENABLE_COMPILATION_CACHE"] = "0"
    if chosen is not None:
        environment["TF_CPP_MIN_LOG_LEVEL"] = chosen
    ended = subprocess.run(
        [sys.executable, "-c", SLOW], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=environment, check=True,
    )  # fmt: skip
    during, after = ended.stdout.split("#####")
    assert "slow_operation_alarm" in after
    assert ("slow_operation_alarm" in during) == (chosen is not None)
