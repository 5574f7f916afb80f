"""The density of pooled groups against plain SciPy; every move of the population alone."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from noisewise.models.linear_regression import pooled_density, pooled_moves, pooled_population
from noisewise.models.linear_regression.pooled_moves import Setting
from noisewise.models.linear_regression.pooled_population import PopulationPrior
from noisewise.numerics.matrices import entries, stacked
from tests.models.linear_regression import pooled_states
from tests.reference import pooled_reference as reference

BLOCKS = {
    "fixed_groups": ("x_units", "y_units"),
    "fixed_fit": ("coefficients", "factor", "parent_factor", "size_exponent"),
    "fixed_covariates": ("x_scale", "x_df"),
    "carried_level": ("level", "level_sd", "y_units"),
    "carried_covariates": ("x_mean", "x_spread", "x_scale", "x_df", "x_units"),
    "carried_units": ("x_units",),
    "carried_fit": ("coefficients", "factor", "parent_factor", "size_exponent", "y_units"),
}


@pytest.fixture(autouse=True)
def units_are_not_far_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pooled_population, "FARTHEST_UNIT", FARTHEST_UNIT)


def prior_of(p: int) -> PopulationPrior:
    return pooled_population.default_prior(p)


@pytest.mark.parametrize("d", [1, 2])
def test_density_is_that_of_the_generative_model_with_coefficients_and_covariances_integrated_out(
    d: int,
) -> None:
    rng = np.random.default_rng(d)
    u, sizes = np.array([1.0, 0.7]), (6, 30)
    shape = pooled_states.full_rank(d + 1)
    ours, theirs = [], []
    for _ in range(4):
        law = reference.draw_law(rng, d, 2, units=rng.normal(-1, 0.5, d + 2))
        n_mean = pooled_states.geometric_mean(sizes)
        groups = [reference.draw_group(rng, law, u, n, n_mean=n_mean) for n in sizes]
        v = np.array([reference.coordinates(rng, g.records) for g in groups])
        xi = [(g.log_variance - law.level) / law.level_sd for g in groups]
        root = np.linalg.cholesky(law.omega)
        zeta = np.array([np.linalg.solve(root, g.mu - law.x_mean) for g in groups])
        x = jnp.asarray(np.column_stack([v, xi, zeta]).T[:, None])
        stacked_law = pooled_states.stacked_laws([law])
        data = pooled_density.GroupData(
            jnp.zeros((1, 1, 2)), jnp.asarray([sizes], float), jnp.ones(()),
            jnp.asarray(np.repeat(u[:, None, None], 2, axis=2)),
            jnp.asarray(pooled_states.log_sizes(sizes)),
        )  # fmt: skip
        centre = pooled_density.centre_of(stacked_law, jnp.zeros((d + 1, 1, 1)), data)
        pooled = pooled_density.PooledData(data, stacked_law, centre)
        ours.append(pooled_density.log_prior_predictive(entries(x, 1), pooled, shape)[0])
        at = [g.records.mean(axis=0) for g in groups]
        scatter = [len(g.records) * np.cov(g.records.T, bias=True) for g in groups]
        value = [
            reference.log_density(law, u, *rest, n_mean)
            for rest in zip(groups, at, scatter, sizes, strict=True)
        ]
        # From dS dlog σ² dμ to dv dξ dζ.
        volume = [
            (d + 2) * 0.5 * np.linalg.slogdet(s)[1]
            + np.log(law.level_sd)
            + np.log(np.diag(root)).sum()
            for s in scatter
        ]
        theirs.append(np.array(value) + volume)
    apart = np.array(ours) - np.array(theirs)
    np.testing.assert_allclose(apart - apart[0], 0, atol=1e-8)


@pytest.mark.parametrize("p", [1, 2])
def test_the_hyperprior_of_deviations_is_that_of_draws(p: int) -> None:
    rng = np.random.default_rng(3)
    drawn = np.array([reference.draw_covariance(rng, p, 0.5) for _ in range(4000)])
    for k in range(p):
        assert stats.kstest(0.25 / (0.25 + drawn[:, k, k]), "uniform").pvalue > 1e-3
    # Importance weights from draws at one scale to another average to 1.
    factor = jnp.asarray(np.moveaxis(np.linalg.cholesky(drawn), 0, -1)[..., None])
    low, high = (pooled_population.log_shrinkage(factor, a)[:, 0] for a in (0.5, 0.7))
    weight = np.exp(np.asarray(high - low))
    assert weight.mean() == pytest.approx(1, abs=5 * weight.std() / np.sqrt(len(weight)))


CHAINS = 1000
FARTHEST_UNIT = np.log(5)
"""So that all chains have scales in which steps of one size are taken."""
SIZES = (0, 1, 2, 5, 9, 30)


@partial(jax.jit, static_argnums=(0, 5))
def moved(
    name: str, key: jax.Array, phi: jax.Array, position: jax.Array, white: jax.Array,
    setting: Setting, data: pooled_density.GroupData,
) -> tuple[jax.Array, ...]:  # fmt: skip
    """Return φ, positions and ω after one move."""
    population = setting.population
    groups = pooled_states.groups_at(position, white, data, setting.shape)
    law, prior = pooled_population.law_of(phi, population), prior_of(population.p)
    if name in BLOCKS:
        block = population.block(*BLOCKS[name])
        view = getattr(pooled_moves, name)(groups, law, data, setting)
        # Some chains take small steps, some large ones.
        step = jnp.eye(len(block))[..., None] * jnp.geomspace(0.002, 0.3, CHAINS)
        first, second = jax.random.split(key)
        white_steps = jax.random.normal(first, (24, len(block), CHAINS))
        logs = jnp.log(jax.random.uniform(second, (24, CHAINS)))
        phi, _ = pooled_moves.random_walk(
            white_steps, logs, phi, view, block, step, prior, population
        )
        groups = view.groups(pooled_population.law_of(phi, population))
    elif name == "conjugate":
        first, second = jax.random.split(key)
        theta = pooled_moves.draw_theta(first, groups, law, data)
        law, groups = pooled_moves.conjugate_moves(second, theta, groups, law, data, prior)
        phi = pooled_population.coordinates_of(law)
    elif name == "coefficients":
        law = pooled_moves.draw_coefficients(key, groups, law, data, prior)
        phi = pooled_population.coordinates_of(law)
    else:
        groups = pooled_moves.draw_parents(key, groups, law, data)
    return phi, pooled_states.flat(groups, position, setting.shape), groups.parents


MOVES = (*BLOCKS, "conjugate", "coefficients", "parents")


@pytest.mark.parametrize(
    "name", ["carried_covariates", "carried_units", "carried_fit", "conjugate", "parents"]
)
def test_a_move_alone_leaves_the_joint_distribution_as_it_is(name: str) -> None:
    check_move(name, "laplace", 1)


@pytest.mark.evidence
@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", MOVES)
def test_every_move_leaves_it_as_it_is(name: str, mechanism: str, d: int) -> None:
    check_move(name, mechanism, d)


def check_move(name: str, mechanism: str, d: int) -> None:
    """Draw (ψ, groups, z) from the joint; after moves given z it is distributed as before.

    A false alarm has probability 1e-5 for each quantity.
    """
    both = pooled_states.drawn(2 * CHAINS, SIZES, d, (0, 0, 1, 1, 2, 2), 3).noisy(mechanism)
    first, other = both.part(slice(CHAINS)), both.part(slice(CHAINS, None))
    phi, position, white, data, setting = first
    for number in range(8):
        key = jax.random.fold_in(jax.random.key(5), number)
        phi, position, white = moved(name, key, phi, position, white, setting, data)
    assert np.isfinite(phi).all()
    assert np.isfinite(position).all()
    changed = white != first.white_parents if name == "parents" else phi != first.phi
    assert np.asarray(changed).any(axis=0).mean() > 0.4
    at, _ = pooled_density.statistic(entries(position, 1), setting.shape, data.n)
    noise = stacked(pooled_density.noise_residuals(at, data, setting.shape)[0])
    law = stats.laplace if mechanism == "laplace" else stats.norm
    chances = {f"phi {i}": stats.ks_2samp(*pair).pvalue
               for i, pair in enumerate(zip(phi, other.phi, strict=True))}  # fmt: skip
    for g, n in enumerate(SIZES):
        for i, pair in enumerate(zip(position[..., g], other.position[..., g], strict=True)):
            chances[f"position {i} of {n}"] = stats.ks_2samp(*pair).pvalue
        for i, row in enumerate(noise[..., g]):
            chances[f"noise {i} of {n}"] = stats.kstest(row, law.cdf).pvalue
    assert not {where: chance for where, chance in chances.items() if chance < 1e-5}


@pytest.mark.parametrize(
    "name", ["carried_level", "carried_covariates", "carried_units", "carried_fit"]
)
def test_the_density_of_a_carried_move_has_the_jacobian_of_its_map(name: str) -> None:
    """What a walk accepts by is the change of the joint density and log |dv'/dv| by autodiff."""
    both = pooled_states.drawn(2 * CHAINS, SIZES, 1, (0, 0, 1, 1, 2, 2), 3).noisy("laplace")
    phi, position, white, data, setting = both.part(slice(7, 8))
    population, shape = setting.population, setting.shape
    block = population.block(*BLOCKS[name])
    moved_phi = phi.at[block].add(0.1)
    groups = pooled_states.groups_at(position, white, data, shape)
    here = getattr(pooled_moves, name)(
        groups, pooled_population.law_of(phi, population), data, setting
    )
    moved_phi = here.followed(phi, moved_phi)
    laws = [pooled_population.law_of(p, population) for p in (phi, moved_phi)]

    def view_at(x: jax.Array) -> pooled_moves.View:
        groups = pooled_states.groups_at(x, white, data, shape)
        view: pooled_moves.View = getattr(pooled_moves, name)(groups, laws[0], data, setting)
        return view

    def carried(x: jax.Array) -> jax.Array:
        return pooled_states.flat(view_at(x).groups(laws[1]), x, shape)

    def joint(x: jax.Array, law: pooled_density.PopulationLaw) -> jax.Array:
        pooled = pooled_density.PooledData(data, law, pooled_density.centre_of(law, white, data))
        _, value = pooled_density.target(shape, setting.mechanisms).density(
            entries(x, 1), pooled, jnp.ones(())
        )
        return value[0]

    view = view_at(position)
    ours = (view.log_density(laws[1]) - view.log_density(laws[0]))[0]
    # Groups move by themselves: the map of each has a Jacobian of its own.
    slope = jax.jacfwd(carried)(position)[:, 0, :, :, 0, :]
    volume = [np.linalg.slogdet(slope[:, g, :, g])[1] for g in range(len(SIZES))]
    theirs = joint(carried(position), laws[1]) - joint(position, laws[0]) + np.array(volume)
    np.testing.assert_allclose(ours, theirs, atol=1e-7)


def _no_groups(law: pooled_density.PopulationLaw) -> pooled_moves.Groups:
    raise AssertionError(law)


@pytest.mark.parametrize("correlation", [0.0, -0.9])
def test_a_random_walk_with_correlated_steps_leaves_the_hyperprior_as_it_is(
    correlation: float,
) -> None:
    """A level and a deviation that is often near zero, 4,000 chains that begin in the target."""
    shape, prior = pooled_population.PopulationShape(1, 2), prior_of(2)
    chains, rng = 4000, np.random.default_rng(0)
    begin = pooled_population.coordinates_of(pooled_population.draw_law(rng, shape, prior, chains))
    block = shape.block("level", "level_sd")
    size = np.array([1.5, 0.8])
    covariance = np.array([[1.0, correlation], [correlation, 1.0]]) * np.outer(size, size)
    step = jnp.asarray(np.linalg.cholesky(covariance))[..., None]
    nothing = pooled_moves.View(lambda law: jnp.zeros((chains, 1)), _no_groups)
    white = jnp.asarray(rng.standard_normal((60, 2, chains)))
    log_uniform = jnp.log(jnp.asarray(rng.random((60, chains))))
    phi, _ = pooled_moves.random_walk(white, log_uniform, begin, nothing, block, step, prior, shape)
    for row in block:
        assert stats.ks_2samp(np.asarray(begin)[row], np.asarray(phi)[row]).pvalue > 1e-4


def test_the_prior_of_the_effect_of_sizes_is_normal_with_the_covariance_between_groups() -> None:
    rng = np.random.default_rng(4)
    prior, effects = prior_of(2), rng.standard_normal((2, 2))
    shape = pooled_population.PopulationShape(1, 2)
    laws = pooled_population.draw_law(rng, shape, prior, 2)

    def value(chain: int, effect: np.ndarray) -> float:
        law = jax.tree.map(lambda a: a[..., chain : chain + 1, :], laws)
        rows = law.coefficients.at[-1].set(jnp.asarray(effect)[:, None, None])
        law = law._replace(coefficients=rows)
        without = pooled_population.log_shrinkage(
            law.factor, pooled_population.fit_scales(law, prior)[0]
        )
        first = pooled_population.log_fit_prior(law, prior) - without
        return float(first[0, 0])

    for chain in range(2):
        root = np.asarray(laws.factor)[..., chain, 0]
        normal = stats.multivariate_normal(np.zeros(2), 0.16 * root @ root.T)
        ours = value(chain, effects[0]) - value(chain, effects[1])
        assert ours == pytest.approx(normal.logpdf(effects[0]) - normal.logpdf(effects[1]))
    # And between covariances: all else of the two laws apart from T is made the same.
    same = laws._replace(
        coefficients=laws.coefficients[..., :1, :].repeat(2, axis=-2),
        log_units=laws.log_units[..., :1, :].repeat(2, axis=-2),
    )
    both = pooled_population.log_fit_prior(same, prior) - pooled_population.log_shrinkage(
        same.factor, pooled_population.fit_scales(same, prior)[0]
    )
    effect = np.asarray(same.coefficients)[-1, :, 0, 0]
    roots = [np.asarray(same.factor)[..., c, 0] for c in range(2)]
    logs = [stats.multivariate_normal(np.zeros(2), 0.16 * f @ f.T).logpdf(effect) for f in roots]
    assert float(both[0, 0] - both[1, 0]) == pytest.approx(logs[0] - logs[1])
