"""Small linear algebra, distributions and convergence measures that the samplers share.

Importing this package changes global settings of JAX: float64, and a compilation cache on disk.
``runtime.configure_jax`` is the one place in noisewise that does so, and says why.
"""

from noisewise.numerics.runtime import configure_jax

configure_jax()
