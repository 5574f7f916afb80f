"""Pure JAX, float64: small linear algebra and distributions that the samplers share."""

import os
from pathlib import Path
from typing import Any

import jax

# Sums of 10^8 records against noise of size 1: single precision would drown it.
_config: Any = jax.config
_config.update("jax_enable_x64", True)

# Compiling takes longer than most samplings; a second run should not wait for it again.
if not _config.jax_compilation_cache_dir:
    _home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    _config.update("jax_compilation_cache_dir", str(Path(_home) / "noisewise" / "jax"))
