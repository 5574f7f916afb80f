"""Exact posterior of category probabilities: the counts are sampled on their integer lattice.

With a Dirichlet(α) prior the counts s are Dirichlet-multinomial, so given noisy counts z

    p(s | z) ∝ [n! Γ(A)/Γ(n + A)] Π_j w_j(s_j),   w_j(s) = Γ(s + α_j)/s! · K(z_j - s),   Σ s_j = n.

Factors of one count each under one constraint: f_j(m) = Σ_s w_j(s) f_{j-1}(m - s) adds categories
one at a time (a convolution), and counts are drawn backwards from the last to the first. No
chain and no approximation; a secret n, with a flat prior, is drawn first. Then p | s ~
Dirichlet(α + s).
"""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from scipy.signal import fftconvolve
from scipy.special import gammaln

from noisewise.artifact import ArgumentError
from noisewise.inference.combine import Observation
from noisewise.inference.results import Posterior
from noisewise.models.base import Progress
from noisewise.models.exponential_family.family import Conjugate, draw_parameters
from noisewise.models.exponential_family.posterior import assemble_posterior
from noisewise.models.exponential_family.problem import FamilyProblem

MAX_RECORDS_EXACT = 30_000
"""Records up to which counts are convolved (chosen); above, the normal approximation of ``gibbs``
is as good."""
MAX_DIRECT_LENGTH = 4096
"""Up to this length (chosen) convolutions are done term by term, whose rounding is relative to
each sum; a fast Fourier transform's is relative to the largest."""
COUNT_REACH = 45
"""Scales of noise in a secret total beyond which a larger n has weight e^-45: none."""


def run(
    problem: FamilyProblem, seed: int, chains: int, draws: int, progress: Progress | None = None
) -> Posterior:
    """Draw independently from the exact posterior of every group."""
    prior = np.asarray(problem.conjugate.sums)
    groups = len(problem.z)
    counts = np.empty((groups, chains * draws, len(prior)))
    for group in range(groups):
        rng = np.random.default_rng([seed, group])
        size = None if problem.counted is not None else int(problem.n[group])
        others = tuple(replace(o, z=o.z[group]) for o in problem.others)
        counts[group] = draw_counts(
            rng, problem.z[group], prior, size, problem.scale, problem.mechanism, chains * draws,
            others,
        )  # fmt: skip
        if progress is not None:
            progress(group + 1, groups)
    given = Conjugate(jnp.asarray(counts) + prior, jnp.zeros((1,)))
    theta = np.asarray(draw_parameters(problem.family, jax.random.key(seed), given))
    shaped = theta.reshape(groups, chains, draws, len(prior))
    return assemble_posterior(problem, shaped, "exact", problem.unknown_n_note)


def draw_counts(
    rng: np.random.Generator, z: np.ndarray, alpha: np.ndarray, n: int | None, scale: float,
    mechanism: str, size: int, others: tuple[Observation, ...] = (),
) -> np.ndarray:  # fmt: skip
    """Draw counts (draw, category) given noisy ones, perhaps noisy several times over."""
    reach = COUNT_REACH * scale * np.sqrt(len(z))
    most = n if n is not None else int(np.ceil(max(z.sum(), 0) + reach + 1))
    if most > MAX_RECORDS_EXACT:
        raise ArgumentError(
            f"method: exact adds up counts one by one, for up to {MAX_RECORDS_EXACT} records, "
            f"not {most}; use method='gibbs', whose normal approximation is good there"
        )
    weights = _weights((Observation(z, scale, mechanism), *others), alpha, most)
    sums = [weights[0]]
    for weight in weights[1:]:
        both = _convolved(sums[-1], weight)[: most + 1]
        sums.append(both / both.max())
    left = np.full(size, most) if n is not None else _draw_sizes(rng, sums[-1], alpha, size)
    counts = np.empty((size, len(z)))
    for j in range(len(z) - 1, 0, -1):
        counts[:, j] = _draw_last_count(rng, weights[j], sums[j - 1], left)
        left = left - counts[:, j].astype(int)
    counts[:, 0] = left
    return counts


def _weights(observed: tuple[Observation, ...], alpha: np.ndarray, most: int) -> np.ndarray:
    """Return w_j(s) for s = 0 … most, shape (category, count), each scaled to a peak of one."""
    s = np.arange(most + 1)
    log = gammaln(s + alpha[:, None]) - gammaln(s + 1)
    for one in observed:
        d = (s - one.z[:, None]) / one.noise_scale
        log = log - (np.abs(d) if one.mechanism == "laplace" else d**2 / 2)
    return np.asarray(np.exp(log - log.max(axis=1, keepdims=True)))


def _convolved(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the convolution, term by term where that is affordable."""
    if len(one) <= MAX_DIRECT_LENGTH:
        return np.convolve(one, other)
    return np.asarray(np.maximum(fftconvolve(one, other), 0.0))


def _draw_sizes(
    rng: np.random.Generator, sums: np.ndarray, alpha: np.ndarray, size: int
) -> np.ndarray:
    """Draw a secret n from its posterior under a flat prior."""
    m, total = np.arange(len(sums)), alpha.sum()
    log = gammaln(m + 1) - gammaln(m + total)
    cumulative = np.cumsum(sums * np.exp(log - log.max()))
    places = np.searchsorted(cumulative, rng.random(size) * cumulative[-1], side="right")
    return np.asarray(places)


def _draw_last_count(
    rng: np.random.Generator, weight: np.ndarray, sums: np.ndarray, left: np.ndarray
) -> np.ndarray:
    """Draw the last category's count given what all add up to; once per distinct total."""
    counts = np.empty(len(left))
    totals, which = np.unique(left, return_inverse=True)
    uniform = rng.random(len(left))
    for place, total in enumerate(totals):
        cumulative = np.cumsum(weight[: total + 1] * sums[total::-1])
        mine = which == place
        counts[mine] = np.searchsorted(cumulative, uniform[mine] * cumulative[-1], side="right")
    return counts
