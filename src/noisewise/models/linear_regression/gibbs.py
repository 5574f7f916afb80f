"""Gibbs-SS: Gibbs sampling of a regression and of the sums behind the noise, for all groups.

G. Bernstein, D. Sheldon, "Differentially Private Bayesian Linear Regression" (NeurIPS 2019),
section 3.4, Algorithm 1. With μ_t, Σ_t the moments of one record's statistic
(``record_moments.py``), a sweep is

    s | θ, σ², ω²  ∝  N(s; nμ_t, nΣ_t) N(z; s, diag ω²)       the central limit theorem for s
    θ, σ² | s      ~  NIG(μ_n, Λ_n, a_n, b_n)                 eq. (1)
    1/ω_j² | s     ~  InverseGaussian(1/(b|z_j - s_j|), 1/b²) Laplace noise; Gaussian: ω = b fixed

s is drawn without an inverse (errata E11): s₀ ~ N(nμ_t, nΣ_t), e ~ N(0, diag ω²), then
s = s₀ + nΣ_t (nΣ_t + diag ω²)⁻¹ (z - s₀ - e). A drawn s need not be a statistic of any data; its
scatter matrix is then projected to the nearest valid one, as in the paper, and counted (E18).

The three methods of ``gibbs_methods.py`` each bring a source of moments. Where noise outweighs the
data, s pins θ and θ pins s: successive draws are close, and the posterior's ESS says how many there
really are. Randomness comes as arrays of standard variates: a batch draws them in few large calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.inference.results import Posterior
from noisewise.models.base import Progress
from noisewise.models.linear_regression import collapsed
from noisewise.models.linear_regression.coordinates import Point, released
from noisewise.models.linear_regression.initial_values import prior_parameters
from noisewise.models.linear_regression.posterior_draws import posterior_from_box
from noisewise.models.linear_regression.problem import RegressionProblem
from noisewise.models.linear_regression.record_moments import RecordMoments
from noisewise.numerics.compilation import compiled
from noisewise.numerics.distributions import gamma, laplace_variances
from noisewise.numerics.gram_packing import number_of_products, number_of_sums, unpack
from noisewise.numerics.matrices import (
    cholesky,
    project_to_floor,
    solve_lower,
    solve_upper,
)

THIN = 10
"""Sweeps per kept draw (chosen)."""
BURN_IN = 1000
"""Sweeps before the first kept draw, or as many as draws are kept if that is more (chosen)."""
DRAWS_PER_CALL = 50
"""Kept draws of one compiled call (chosen)."""
GROUPS_PER_BATCH = 256
"""Groups that are sampled together (chosen)."""
LEAST_EIGENVALUE = 1e-9
"""Floor of the eigenvalues of a projected scatter over n, in box units (chosen)."""
ASSUMES_N = "the noisy number of records, as if it were exact"
"""What the posterior's details say where n is secret."""


class GibbsData(NamedTuple):
    """The data of one group; ``source`` is what its source of moments keeps."""

    z: jax.Array
    n: jax.Array
    noise: jax.Array
    prior: collapsed.BoxPrior
    source: Any


class GibbsState(NamedTuple):
    """One chain: coefficients, variance, the source's own parameters, and the mixture ω².

    ``projected`` counts the sweeps in which s was projected.
    """

    theta: jax.Array
    variance: jax.Array
    covariates: Any
    mixture: jax.Array
    projected: jax.Array


class SweepVariates(NamedTuple):
    """The randomness of one sweep: standard normals, uniforms, and gammas of known shapes."""

    record: jax.Array
    noise: jax.Array
    mixture: jax.Array
    coefficients: jax.Array
    covariates: jax.Array
    uniform: jax.Array
    variance: jax.Array
    wishart: jax.Array


class MomentSource(NamedTuple):
    """The source of the moments of x: the one thing in which the three methods differ.

    ``begin(mean, factor)`` keeps starting parameters of the covariates, ``moments(state, data)``
    gives μ_t and Σ_t, ``deviate(white, state, data)`` draws N(0, Σ_t), ``update(white, point,
    data)`` draws the covariates' parameters given s.
    """

    begin: Callable[[jax.Array, jax.Array], Any]
    moments: Callable[[GibbsState, GibbsData], RecordMoments]
    deviate: Callable[[jax.Array, GibbsState, GibbsData], jax.Array]
    update: Callable[[SweepVariates, Point, GibbsData], Any]


def draw_statistic(
    white: SweepVariates,
    moments: RecordMoments,
    deviate: jax.Array,
    state: GibbsState,
    g: GibbsData,
) -> jax.Array:
    """Draw s given parameters, z and ω² (line 4 of Algorithm 1, by E11)."""
    spread = g.n * moments.covariance
    first = g.n * moments.mean + jnp.sqrt(g.n) * deviate
    noise = jnp.sqrt(state.mixture) * white.noise
    factor = cholesky(spread + jnp.diag(state.mixture))
    pull: jax.Array = solve_upper(factor, solve_lower(factor, g.z - first - noise))
    return first + spread @ pull


def valid_point(s: jax.Array, q: int, n: jax.Array) -> tuple[Point, jax.Array]:
    """Return mean and scatter of s, the scatter projected if invalid, and whether it was."""
    second, mean = unpack(s / n, q)
    scatter, projected = project_to_floor(second - jnp.outer(mean, mean), LEAST_EIGENVALUE)
    factor = cholesky(scatter)
    return Point(mean, factor, jnp.log(jnp.diagonal(factor)), n), projected


def sweep_one(
    source: MomentSource, mechanism: str, white: SweepVariates, state: GibbsState, g: GibbsData
) -> GibbsState:
    """Return the state of one chain of one group after one iteration of Algorithm 1."""
    q = state.theta.shape[0]
    moments, deviate = source.moments(state, g), source.deviate(white.record, state, g)
    s = draw_statistic(white, moments, deviate, state, g)
    at, projected = valid_point(s, q, g.n)
    s = jnp.where(projected, released(at, noisy_n=False), s)
    given = collapsed.conjugate(at, g.prior)
    variance = given.rate / white.variance
    theta = given.mean + jnp.sqrt(variance) * solve_upper(given.factor, white.coefficients)
    mixture = state.mixture
    if mechanism == "laplace":
        mixture = laplace_variances(white.mixture, white.uniform, g.z - s, g.noise)
    covariates = source.update(white, at, g)
    return GibbsState(theta, variance, covariates, mixture, state.projected + projected)


def draw_variates(key: jax.Array, batch: tuple[int, ...], q: int, data: GibbsData) -> SweepVariates:
    """Draw all randomness of one sweep of the batch: few large calls cost least."""
    normal, uniform, shapes = jax.random.split(key, 3)
    d, p = q - 1, number_of_sums(q)
    sizes = (p, p, p, q, number_of_products(d))
    whites = jax.random.normal(normal, (*batch, sum(sizes)))
    parts = jnp.split(whites, np.cumsum(sizes)[:-1], axis=-1)
    degrees = (data.prior.x_df + data.n)[:, None] - jnp.arange(d)
    shape = jnp.concatenate([(data.prior.shape + data.n / 2)[:, None], degrees / 2], axis=1)
    gammas = gamma(shapes, jnp.broadcast_to(shape[:, None], (*batch, q)))
    uniforms = jax.random.uniform(uniform, (*batch, p))
    record, noise, mixture, coefficients, covariates = parts
    return SweepVariates(
        record, noise, mixture, coefficients, covariates,
        uniforms, gammas[..., 0], gammas[..., 1:],
    )  # fmt: skip


@partial(compiled, static_argnums=(0, 1))
def sweep(
    source: MomentSource,
    mechanism: str,
    key: jax.Array,
    chains: GibbsState,
    data: GibbsData,
    thin: jax.Array,
) -> tuple[GibbsState, jax.Array]:
    """Run ``DRAWS_PER_CALL`` times ``thin`` sweeps of all chains.

    Returns:
        The state after them, and every ``thin``-th (θ, σ²).
    """
    q = chains.theta.shape[-1]
    one = partial(sweep_one, source, mechanism)
    every = jax.vmap(jax.vmap(one, in_axes=(0, 0, None)))

    def step(number: jax.Array, at: tuple[GibbsState, jax.Array]) -> tuple[GibbsState, jax.Array]:
        state, key = at
        white = draw_variates(jax.random.fold_in(key, number), state.theta.shape[:2], q, data)
        return every(white, state, data), key

    def body(state: GibbsState, key: jax.Array) -> tuple[GibbsState, jax.Array]:
        state, _ = jax.lax.fori_loop(0, thin, step, (state, key))
        return state, jnp.concatenate([state.theta, state.variance[..., None]], axis=-1)

    return jax.lax.scan(body, chains, jax.random.split(key, DRAWS_PER_CALL))


def start(
    rng: np.random.Generator,
    source: MomentSource,
    mechanism: str,
    data: GibbsData,
    prior: collapsed.BoxPrior,
    chains: int,
) -> GibbsState:
    """Return chains at draws from the prior: far apart, so that R-hat can tell."""
    groups, p = data.z.shape
    drawn = prior_parameters(rng, prior, (groups, chains))
    theta, variance, mean, factor = (jnp.asarray(a) for a in drawn)
    mixture = np.broadcast_to(np.asarray(data.noise)[:, None, None] ** 2, (groups, chains, p))
    if mechanism == "laplace":
        mixture = 2 * mixture * rng.standard_exponential(mixture.shape)
    own = source.begin(mean, factor)
    return GibbsState(theta, variance, own, jnp.asarray(mixture), jnp.zeros((groups, chains)))


def sample(
    key: jax.Array,
    source: MomentSource,
    mechanism: str,
    data: GibbsData,
    state: GibbsState,
    draws: int,
    thin: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return draws (group, chain, draw, θ… σ²) in the box, and the share of sweeps projected."""
    warm = -(-max(BURN_IN, draws) // (DRAWS_PER_CALL * thin))
    kept: list[np.ndarray] = []
    blocks = -(-draws // DRAWS_PER_CALL)
    for number in range(warm + blocks):
        if number == warm:
            state = state._replace(projected=jnp.zeros_like(state.projected))
        state, values = sweep(
            source, mechanism, jax.random.fold_in(key, number), state, data, jnp.asarray(thin)
        )
        if number >= warm:
            kept.append(np.asarray(values))
    parameters = np.moveaxis(np.concatenate(kept)[:draws], 0, 2)
    return parameters, np.asarray(state.projected.mean(axis=1)) / (blocks * DRAWS_PER_CALL * thin)


def run(
    method: str,
    source: MomentSource,
    moments: Any,
    problem: RegressionProblem,
    seed: int,
    chains: int,
    draws: int,
    progress: Progress | None,
    details: Mapping[str, Any],
) -> Posterior:
    """Sample all groups with one source of moments, whose own ``moments`` lead with the group."""
    groups, prior = len(problem.n), problem.box_prior
    key, rng = jax.random.key(seed), np.random.default_rng(seed)
    drawn, shares = [], []
    for first in range(0, groups, GROUPS_PER_BATCH):
        rows = np.arange(first, min(first + GROUPS_PER_BATCH, groups))
        data = _data(problem, prior, moments, rows)
        state = start(rng, source, problem.mechanism, data, prior, chains)
        fresh = jax.random.fold_in(key, first)
        values, share = sample(fresh, source, problem.mechanism, data, state, draws, THIN)
        drawn.append(values)
        shares.append(share)
        if progress is not None:
            progress(int(rows[-1]) + 1, groups)
    share_of_sweeps = float(np.concatenate(shares).mean())
    details = {"projected_share": share_of_sweeps, "thin": THIN, **details}
    if problem.noisy_n:
        details = {**details, "assumes": ASSUMES_N}
    return posterior_from_box(problem, np.concatenate(drawn), method, details)


def _data(
    problem: RegressionProblem, prior: collapsed.BoxPrior, moments: Any, rows: np.ndarray
) -> GibbsData:
    """Return some groups' data; where n is secret its noisy count is no component here."""
    q, size = len(problem.x) + 1, len(rows)
    return GibbsData(
        jnp.asarray(problem.z[rows, : number_of_sums(q)]),
        jnp.asarray(problem.n[rows]),
        jnp.full(size, problem.noise_scale),
        jax.tree.map(lambda a: jnp.broadcast_to(a, (size, *a.shape)), prior),
        jax.tree.map(lambda a: a[rows], moments),
    )
