"""Method ``naive`` of a regression with factors: the noisy sums taken as if they were exact.

For comparison only: its intervals ignore the noise. Sums that were released more than once are
averaged by least squares; a Gram matrix that is none is projected to the nearest.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from noisewise.inference.results import Posterior
from noisewise.models.base import Progress
from noisewise.models.linear_regression.factor_coefficients import (
    draw_given_gram,
    posterior_of_factors,
)
from noisewise.models.linear_regression.factor_density import atoms_gram, observation
from noisewise.models.linear_regression.factor_problem import FactorProblem
from noisewise.models.linear_regression.factor_structure import Structure
from noisewise.models.linear_regression.latent_cell_counts import indicator_gram
from noisewise.numerics.convergence import diagnose

LEAST_EIGENVALUE = 1e-6
"""Floor of the eigenvalues of a projected Gram matrix over n, in box units (chosen)."""


def run(
    problem: FactorProblem, seed: int, chains: int, draws: int, progress: Progress | None = None
) -> Posterior:
    """Return independent draws of the coefficients given the noisy sums."""
    names = len(problem.x) + 2
    user = np.empty((names, len(problem.n), chains, draws))
    projected = np.zeros(len(problem.n))
    for row, (z, n) in enumerate(zip(problem.z, problem.n, strict=True)):
        gram, projected[row] = _projected(noisy_gram(problem, z, n), n)
        rng = np.random.default_rng([seed, row])
        repeated = np.broadcast_to(gram, (chains * draws, *gram.shape))
        drawn, _ = draw_given_gram(rng, problem, repeated, np.full(chains * draws, n))
        user[:, row] = drawn.reshape(names, chains, draws)
    rhat, ess = diagnose(user)
    details = {"projected_share": float(projected.mean())}
    return posterior_of_factors(problem, user, rhat, ess, None, "naive", details)


def _projected(gram: np.ndarray, n: float) -> tuple[np.ndarray, bool]:
    """Return the nearest Gram matrix, and whether it is another."""
    values, vectors = np.linalg.eigh(gram / n)
    clipped = np.maximum(values, LEAST_EIGENVALUE)
    return n * (vectors * clipped) @ vectors.T, bool(values[0] < LEAST_EIGENVALUE)


def noisy_gram(problem: FactorProblem, z: np.ndarray, n: float) -> np.ndarray:
    """Return the Gram matrix of the atoms, the response last, that one group's noisy sums give."""
    structure = problem.structure
    d, strata = structure.covariates, len(structure.stratum_levels)
    seen = {b: z[p] for b, p in zip(structure.blocks, problem.statistic.slices, strict=True)}
    read = dict(zip(structure.blocks, observation(structure), strict=True))

    def column_sums(j: int) -> np.ndarray:
        blocks = [b for b in structure.blocks if b.product == (j,)]
        matrix = np.concatenate([read[b][2] for b in blocks])
        wanted = np.concatenate([seen[b] for b in blocks])
        return np.asarray(np.linalg.lstsq(matrix, wanted, rcond=None)[0])

    counts = {b.within: seen[b] for b in structure.blocks if not b.product}
    first = _level_gram(structure, counts, n)
    levels = len(structure.x_columns)
    whole = np.zeros((strata, levels + d, levels + d))
    for j in range(d):
        sums = column_sums(j).reshape(strata, levels)
        whole[:, :levels, levels + j] = whole[:, levels + j, :levels] = sums
        for i in range(j + 1):
            product = next(v for b, v in seen.items() if b.product == (i, j))
            whole[:, levels + i, levels + j] = whole[:, levels + j, levels + i] = product
    atoms = np.asarray(atoms_gram(structure, jnp.asarray(first), jnp.asarray(whole)))
    cross = [next(v for b, v in seen.items() if b.product == (j, d)) for j in range(d)]
    last = np.concatenate([column_sums(d), *cross])
    square = next(v for b, v in seen.items() if b.product == (d, d))
    return np.block([[atoms, last[:, None]], [last[None], square[:, None]]])


def _level_gram(
    structure: Structure, counts: dict[tuple[int, ...], np.ndarray], n: float
) -> np.ndarray:
    """Return the Gram matrix of the response's level columns from noisy counts."""
    if structure.pairwise:
        return indicator_gram(structure, counts, n)
    if not counts:
        return np.array([[n]])
    margins = np.concatenate([structure.margin(within) for within in counts])
    table = np.linalg.lstsq(margins, np.concatenate(list(counts.values())), rcond=None)[0]
    return np.asarray(structure.y_grid.T @ (table[:, None] * structure.y_grid))
