"""Fisher information of noisy tables, and what follows from it: a correction and a mass matrix.

*The sandwich correction* is for noise that cells share: ``bayes`` multiplies the densities of
single cells. Privacy noise is independent from cell to cell; sampling noise is not: one person sits
in a cell of every table. With G = N ∇²A = ∂(Nμ)/∂θ, P the prior's precision and w_i the Fisher
information of cell i about its own mean, to first order

    H = Gᵀ diag(w) G + P              the information that the product of densities claims,
    J = Gᵀ K G + P,                   the variance that its score has, where
    K_ii = w_i,   K_ij = w_i w_j N (∇²A)_ij,

because N ∇²A is the covariance of the exact tables. Draws θ have variance H⁻¹, their centre errs by
H⁻¹ J H⁻¹. With J U = H U Λ and Uᵀ H U = 1, the map Ω = U √Λ Uᵀ H turns one into the other, and is
the identity wherever privacy noise or the prior dominates:

    θ ← θ̄ + Ω (θ - θ̄).

It is the "open-faced sandwich" of composite likelihoods (B. Shaby, JCGS 23, 2014) with a prior.

The matrices' size is the square of the number of cells, so they are for models of a few thousand.

*The mass matrix* is the inverse of the posterior's covariance at a first estimate. Up to a few
thousand cells it is the whole matrix (``dense_mass_matrix``). Beyond, it is made set by set
(``block_mass_matrix``): a table y_C = N μ_C + noise informs about θ_C through
∂μ_C/∂θ_C = diag(μ) - μμᵀ, with precision 1/(b² + Nμ) per cell (Fisher information of Laplace noise
is 1/b²). In contrasts the information of all tables that contain a set S of variables adds up to
one block per S; across sets it is left out. Where n is large and noise small that costs the chain
many steps: what tables say about single columns and about pairs is correlated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg

from noisewise.models.graphical_model.contrasts import Contrasts, helmert
from noisewise.models.graphical_model.marginal_oracle import Oracle
from noisewise.models.graphical_model.problem import TablesProblem
from noisewise.numerics.distributions import normal_laplace_log_density

MAX_DENSE_CELLS = 5000
"""Cells up to which matrices over all of them are made: 200 MB each (chosen)."""
BATCH = 32
"""Columns of a matrix computed at a time (chosen)."""
GRID_POINTS = 401
"""Points of the sum that stands for the integral over the noise (chosen; tests use quadrature)."""
NEGLIGIBLE_SHARE = 0.01
"""Share of sampling noise in the noisiest cell's variance below which nothing is corrected
(chosen)."""
TAIL_SCALES = 5.0
"""Counts, in units of b, at which half of the spread is in the left tail of a log-potential
(chosen)."""
MAX_BLOCK = 1000
"""Coordinates of a dense block; of a larger one only the diagonal is used (chosen)."""


def cell_weights(mechanism: str, g: jax.Array, scale: jax.Array) -> jax.Array:
    """Return each cell's Fisher information on its mean; ``g`` is the exact tables' covariance."""
    sampling = jnp.maximum(jnp.diag(g), 0.0)
    if mechanism == "laplace":
        return normal_laplace_information(sampling, scale)
    weight: jax.Array = 1 / (sampling + scale**2)
    return weight


def cell_covariance(oracle: Oracle, theta: jax.Array) -> jax.Array:
    """Return ∇²A(θ), the covariance of one record's cell indicators."""

    def column(direction: jax.Array) -> jax.Array:
        change: jax.Array = jax.jvp(oracle.marginals, (theta,), (direction,))[1]
        return change

    hessian: jax.Array = jax.lax.map(column, jnp.eye(len(theta)), batch_size=BATCH)
    symmetric: jax.Array = (hessian + hessian.T) / 2
    return symmetric


def normal_laplace_information(variance: jax.Array, scale: jax.Array) -> jax.Array:
    """Return the information of an observation on its mean, under normal plus Laplace noise.

    1/b² without normal noise, 1/variance without Laplace noise; between, a sum over a grid.
    """
    ratio = jnp.maximum(variance / scale**2, 1e-12)

    def one(r: jax.Array) -> jax.Array:
        # Cubed, the grid is fine around zero, where little normal noise leaves a kink.
        u = jnp.linspace(-1, 1, GRID_POINTS)
        density = jax.value_and_grad(lambda x: normal_laplace_log_density(x, r, jnp.ones(())))
        level, slope = jax.vmap(density)(u**3 * (30 + 8 * jnp.sqrt(r)))
        p = jnp.exp(level) * u**2
        mean: jax.Array = (slope**2 * p).sum() / p.sum()
        return mean

    relative = jax.lax.map(one, ratio, batch_size=BATCH)
    weight: jax.Array = relative / scale**2
    return weight


def sampling_noise_matters(mu: jax.Array, n: float, variance: float) -> bool:
    """Return whether sampling noise can be seen behind privacy noise of that variance."""
    sampling = float((n * mu * (1 - mu)).max())
    return sampling > NEGLIGIBLE_SHARE * (sampling + variance)


@partial(jax.jit, static_argnums=(0, 1))
def sandwich_correction(
    oracle: Oracle, mechanism: str, theta: jax.Array, n: jax.Array, scale: jax.Array, tau: jax.Array
) -> jax.Array:
    """Return Ω at potentials ``theta``, whose prior standard deviation is ``tau``."""
    g = n * cell_covariance(oracle, theta)
    weight = cell_weights(mechanism, g, scale)
    shared = g * weight[:, None] * weight
    shared = shared - jnp.diag(jnp.diag(shared)) + jnp.diag(weight)
    prior = jnp.eye(len(theta)) / tau**2
    claimed = g.T @ (weight[:, None] * g) + prior
    actual = g.T @ shared @ g + prior
    # λ(J, H) through the Cholesky factor of H, which P keeps away from singular.
    factor = jnp.linalg.cholesky(claimed)
    half = jax.scipy.linalg.solve_triangular(factor, actual, lower=True)
    whole = jax.scipy.linalg.solve_triangular(factor, half.T, lower=True)
    size, turned = jnp.linalg.eigh((whole + whole.T) / 2)
    u = jax.scipy.linalg.solve_triangular(factor.T, turned, lower=False)
    # √Λ - 1, so that what is not corrected stays exactly as it was.
    change = jnp.sqrt(jnp.maximum(size, 0.0)) - 1
    omega: jax.Array = jnp.eye(len(theta)) + (u * change) @ (factor @ turned).T
    return omega


@dataclass(frozen=True, eq=False)
class MassMatrix:
    """A factor of its inverse: dense blocks by size (cells, factors), scales elsewhere.

    ``centred`` says for each coordinate how much data inform about it, from 0 (prior only) to 1.
    """

    blocks: tuple[tuple[np.ndarray, np.ndarray], ...]
    scales: np.ndarray
    centred: np.ndarray


def unwhiten(
    blocks: list[tuple[jax.Array, jax.Array]], scales: jax.Array, q: jax.Array
) -> jax.Array:
    """Return the coordinates of white ones."""
    z = scales * q
    for cells, factors in blocks:
        z = z.at[cells].set(jnp.einsum("sij,sj->si", factors, q[cells]))
    return z


def dense_mass_matrix(
    problem: TablesProblem, theta: jax.Array, contrasts: Contrasts, spread: float
) -> MassMatrix:
    """Return one block of all coordinates, at ``theta``, whose prior deviation is ``spread``."""
    data = (jnp.asarray(problem.y), jnp.asarray(problem.n), jnp.asarray(problem.scale))
    block = np.asarray(_information(problem.oracle, problem.mechanism, contrasts, theta, *data))
    information = np.maximum(np.diag(block), 0.0)
    size = len(block)
    lower = np.linalg.cholesky(block + np.eye(size) / spread**2)
    factor = scipy.linalg.solve_triangular(lower, np.eye(size), lower=True).T
    centred = information * spread**2 / (1 + information * spread**2)
    return MassMatrix(((np.arange(size)[None], factor[None]),), np.full(size, spread), centred)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _information(
    oracle: Oracle, mechanism: str, contrasts: Contrasts, theta: jax.Array, y: jax.Array,
    n: jax.Array, scale: jax.Array,
) -> jax.Array:  # fmt: skip
    """Return Gᵀ diag(w) G in contrasts, where G = N ∇²A, with less weight for rare cells.

    A rare cell's log-potential has a long left tail, in which a count says nothing: the density is
    a narrow peak at y beside a wide plateau. The estimate sees the peak only, and often has more
    people in it than y (EM stops early), so its curvature promises information that is not there,
    and chains take tiny steps. So a cell counts c = min(Nμ, y₊ + b) people, and informs less where
    c is a few b or none.
    """
    g = n * cell_covariance(oracle, theta)
    fitted = jnp.maximum(jnp.diag(g), 1e-300)
    count = jnp.minimum(fitted, jnp.maximum(y, 0.0) + scale)
    trust = count / fitted * count / (count + TAIL_SCALES * scale)
    weight = cell_weights(mechanism, g, scale) * trust**2
    turn = jax.vmap(contrasts.coordinates)
    block: jax.Array = turn(turn(g.T @ (weight[:, None] * g)).T)
    return block


def block_mass_matrix(
    problem: TablesProblem, mu: np.ndarray, contrasts: Contrasts, spread: float
) -> MassMatrix:
    """Return one block per set, at marginals ``mu``, for potentials of deviation ``spread``."""
    dimension = problem.model.dimension
    scales, centred = np.full(dimension, spread), np.zeros(dimension)
    factors_by_size: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {}
    for cells, block in _blocks_by_set(problem, mu, contrasts):
        information = np.diag(block) if block.ndim == 2 else block
        centred[cells] = information * spread**2 / (1 + information * spread**2)
        scales[cells] = 1 / np.sqrt(1 / spread**2 + information)
        if block.ndim == 2:
            lower = np.linalg.cholesky(block + np.eye(len(cells)) / spread**2)
            factors_by_size.setdefault(len(cells), []).append((cells, np.linalg.inv(lower).T))
    blocks = tuple(
        (np.stack([c for c, _ in group]), np.stack([f for _, f in group]))
        for group in factors_by_size.values()
    )
    return MassMatrix(blocks, scales, centred)


def _blocks_by_set(
    problem: TablesProblem, mu: np.ndarray, contrasts: Contrasts
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return each set's coordinates and information: a matrix, or the diagonal of a large one."""
    information: dict[int, np.ndarray] = {}
    places: dict[int, np.ndarray] = {}
    parts_by_clique = _clique_parts(problem, contrasts)
    for where, clique in zip(problem.model.slices, problem.model.cliques, strict=True):
        own = mu[where]
        jacobian = problem.n * (np.diag(own) - np.outer(own, own))
        variance = problem.scale**2 + problem.n * own
        rotation = np.ones((1, 1))
        for states in problem.model.shape(clique):
            rotation = np.kron(rotation, helmert(states))
        turned = (jacobian / np.sqrt(variance)[:, None]) @ rotation
        for number, (columns, cells, weight) in parts_by_clique[where.start].items():
            part = weight * turned[:, columns]
            block = part.T @ part if len(cells) <= MAX_BLOCK else (part**2).sum(axis=0)
            information[number] = information.get(number, 0.0) + block
            places[number] = cells
    return [(places[number], block) for number, block in information.items()]


CliquePart = tuple[np.ndarray, np.ndarray, float]
"""Columns within the clique, the identifiable coordinates that move them, and how much."""


def _clique_parts(problem: TablesProblem, contrasts: Contrasts) -> dict[int, dict[int, CliquePart]]:
    """Return every clique's part in every set, by where the clique starts and the set's number."""
    starts = np.array([w.start for w in problem.model.slices])
    parts: dict[int, dict[int, CliquePart]] = {int(s): {} for s in starts}
    for shared in contrasts.shared:
        for number in np.unique(shared.sets):
            chosen = shared.cells[:, shared.sets == number]
            for row, weight in zip(chosen, shared.rotation[:, 0], strict=True):
                start = int(starts[np.searchsorted(starts, row[0], side="right") - 1])
                parts[start][int(number)] = (row - start, chosen[0], float(weight))
    return parts
