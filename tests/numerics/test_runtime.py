"""numpyro's loops are forgotten: without that, some 45 runs end the process."""

from __future__ import annotations

import jax
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS

from noisewise.numerics import clear_numpyro_loops, numpyro_sampling_loop


def test_forgotten_loops_do_not_pile_up() -> None:
    mcmc = MCMC(
        NUTS(lambda: numpyro.sample("x", dist.Normal())), num_warmup=5, num_samples=5,
        progress_bar=False,
    )  # fmt: skip
    clear_numpyro_loops()
    for seed in (0, 1):
        mcmc.run(jax.random.key(seed))
    # If numpyro ever keeps its loop, this says so, and clear_numpyro_loops() may go.
    assert numpyro_sampling_loop()._cache_size() == 2
    clear_numpyro_loops()
    assert numpyro_sampling_loop()._cache_size() == 0
