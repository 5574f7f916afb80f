"""How XLA compiles the programs of this library: options that save compiling, not sampling.

Most posteriors take longer to compile than to sample. On a CPU, XLA's newer emitter of fused loops
doubles the time that a sampler takes to compile and leaves its speed as it is; so does code made in
parts, which costs a quarter more processor time (three covariates, CPU seconds: 8.7 with both, 3.9
without the emitter, 3.1 without either; `docs/evidence.md`).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np

import noisewise.numerics.jax_settings  # noqa: F401  # float64

_CPU_OPTIONS: dict[str, Any] = {
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_parallel_codegen_split_count": 1,
}
_KNOWN_TO = ((0, 10),)
"""Versions of JAX known to have these options; another refuses what it does not know."""
_GPU_OPTIONS: dict[str, Any] = {
    "xla_gpu_enable_command_buffer": "FUSION,CUBLAS,CUSTOM_CALL,CONDITIONAL,WHILE",
    "xla_gpu_graph_min_graph_size": 1,
}
"""Launch a whole trajectory as one graph: small kernels on a GPU cost mostly launches."""

OPTIONS = _GPU_OPTIONS | (_CPU_OPTIONS if jax.__version_info__[:2] in _KNOWN_TO else {})
"""XLA's options; a device ignores those of the other kind."""

compiled = partial(jax.jit, compiler_options=OPTIONS)
"""``jax.jit`` with these options, for functions that are never called while another is traced."""


def placed(array: np.ndarray | float) -> jax.Array:
    """Return an array on the device; ``jnp.asarray`` would compile a program for every shape."""
    on_device: jax.Array = jax.device_put(np.asarray(array))
    return on_device
