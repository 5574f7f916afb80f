"""Compiling takes most of these tests' time: half as long with fewer of LLVM's passes.

Read when JAX first touches a device, which importing does not do. Results do not depend on it;
sampling takes about a sixth longer.
"""

from __future__ import annotations

import os

FLAG = "--xla_backend_optimization_level"

if FLAG not in os.environ.get("XLA_FLAGS", ""):
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {FLAG}=1".strip()
