"""Method ``naive``: the conjugate update on the noisy sum as if it were the exact, whole one.

For comparison only: its intervals ignore the noise, and records that were dropped or clamped. A
noisy sum need not be a possible one; the nearest possible one is then taken, and the share of
groups where that happened is reported (errata E18).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.inference._bar import Report
from noisewise.inference.posterior import Posterior
from noisewise.models.exponential_family.family import Conjugate, draw_parameters
from noisewise.models.exponential_family.posterior_draws import assemble_posterior
from noisewise.models.exponential_family.problem import FamilyProblem


def run(
    problem: FamilyProblem, seed: int, chains: int, draws: int, progress: Report | None = None
) -> Posterior:
    """Draw independently from the conjugate posterior of the noisy sums; quick, so unreported."""
    family, n = problem.family, jnp.asarray(problem.n)
    z = jnp.asarray(problem.z)
    valid = family.valid(z, n)
    s = jnp.where(valid[:, None], z, family.nearest(z, n))
    given = Conjugate(*map(jnp.asarray, problem.conjugate)).updated(s, n)
    shape = (len(z), chains, draws)
    wide = Conjugate(*(jnp.broadcast_to(a[:, None, None], (*shape, a.shape[-1])) for a in given))
    theta = np.asarray(draw_parameters(family, jax.random.key(seed), wide))
    share = 1 - float(np.asarray(valid).mean())
    return assemble_posterior(problem, theta, "naive", {"projected_share": share})
