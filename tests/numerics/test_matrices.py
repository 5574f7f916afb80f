"""Small matrices per group: against NumPy, and from two threads at once."""

from __future__ import annotations

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.numerics import matrices

AT_ONCE = """
from concurrent.futures import ThreadPoolExecutor
import jax, jax.numpy as jnp, numpy as np
from noisewise.numerics import matrices

root = np.random.default_rng(0).normal(size=(14, 40, 256))
matrix = jnp.asarray(np.einsum("ikg,jkg->ijg", root, root))

@jax.jit
def often(matrix):
    def again(_, at):
        return matrix + 1e-9 * matrices.factors(at)[0]
    return jax.lax.fori_loop(0, 100, again, matrix)

with ThreadPoolExecutor(2) as pool:
    print(len(list(pool.map(lambda _: jax.block_until_ready(often(matrix)), range(6)))))
"""


def test_factors_and_squares() -> None:
    root = np.random.default_rng(1).normal(size=(5, 9, 3))
    matrix = np.einsum("ikg,jkg->ijg", root, root)
    factor, inverse = jax.jit(matrices.factors)(jnp.asarray(matrix))
    np.testing.assert_allclose(matrices.squared(factor), matrix, rtol=1e-12)
    for g in range(3):
        np.testing.assert_allclose(factor[..., g], np.linalg.cholesky(matrix[..., g]), rtol=1e-12)
        np.testing.assert_allclose(inverse[..., g] @ factor[..., g], np.eye(5), atol=1e-12)


def test_two_programs_at_once_do_not_wait_for_each_other() -> None:
    """They did, for ever: in a process of its own, so that this would fail and not hang."""
    done = subprocess.run(
        [sys.executable, "-c", AT_ONCE], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.strip() == "6"
