"""E-step, EM, naive fits and the posterior: against oracles, and in their limits."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from noisewise import report
from noisewise.artifact import ArgumentError
from noisewise.inference import load_posterior
from noisewise.models.graphical_model import collective_em, e_step, maximum_likelihood, nuts
from noisewise.models.graphical_model.e_step import TableNoise
from noisewise.models.graphical_model.fitted_model import GraphicalModel
from noisewise.models.graphical_model.marginal_oracle import Oracle, choose_oracle
from noisewise.models.graphical_model.posterior import GraphicalPosterior
from noisewise.models.graphical_model.problem import TablesProblem, free_parameters
from noisewise.models.graphical_model.structure import structure
from noisewise.numerics.distributions import normal_laplace_log_density
from tests.reference.graphical_reference import (
    clique_marginals,
    estep_by_scipy,
    normal_laplace,
)

SIZES = {"a": 2, "b": 3, "c": 2}
LOOP = (("a", "b"), ("b", "c"), ("c", "a"))
MODEL = structure(SIZES, LOOP)
LEVELS: dict[str, Any] = {v: tuple(range(k)) for v, k in SIZES.items()}


def problem(
    n: float = 1000.0, scale: float = 20.0, mechanism: str = "laplace", seed: int = 0,
    tied: object = None, model: Any = MODEL, kind: Any = None,
) -> TablesProblem:  # fmt: skip
    """Noisy tables of a random model; ``scale`` 0 gives the expected counts themselves."""
    rng = np.random.default_rng(seed)
    mu = clique_marginals(model.sizes, model.cliques, rng.normal(0, 1, model.dimension))
    noise = rng.laplace(size=len(mu)) if mechanism == "laplace" else rng.normal(size=len(mu))
    oracle = choose_oracle(model) if kind is None else Oracle(model, kind)
    levels: dict[str, Any] = {v: tuple(range(k)) for v, k in model.sizes.items()}
    return TablesProblem(
        model, levels, n * mu + scale * noise, n, max(scale, 1e-9), mechanism, oracle,
        free_parameters(model, tied), False,
    )  # fmt: skip


def step(given: TablesProblem, theta: np.ndarray, **words: Any) -> e_step.EStepSolution:
    noise = TableNoise(jnp.asarray(given.scale), jnp.asarray(given.n))
    return e_step.solve_dual_compiled(
        given.oracle, given.mechanism, jnp.asarray(theta), jnp.zeros(len(theta)),
        jnp.asarray(given.y / given.n), noise, **words,
    )  # fmt: skip


def primal(given: TablesProblem, theta: np.ndarray, phi: np.ndarray, mu: np.ndarray) -> float:
    """θᵀμ + H(μ) - ‖y/N - μ‖₁/b, for μ = μ(φ), whose entropy is A(φ) - φᵀμ."""
    a = float(given.oracle.log_partition(jnp.asarray(phi)))
    entropy = a - phi @ mu
    return float(theta @ mu + entropy - np.abs(given.y / given.n - mu).sum() / given.scale)


def test_the_estep_solves_the_primal() -> None:
    """SLSQP on all 12 record probabilities finds the same tables and the same value."""
    given = problem(n=200, scale=5.0)
    theta = np.random.default_rng(1).normal(0, 0.3, MODEL.dimension)
    found = step(given, theta, tolerance=1e-9, max_calls=2000)
    t = given.y / given.n
    mu, value = estep_by_scipy(SIZES, LOOP, theta, t, given.scale)
    assert float(found.gap) <= 1e-8
    np.testing.assert_allclose(found.mu, mu, atol=2e-4)
    ours = primal(given, theta, np.asarray(found.phi), np.asarray(found.mu))
    assert ours == pytest.approx(value, abs=1e-6)
    assert np.abs(np.asarray(found.phi) - theta).max() <= 1 / given.scale * (1 + 1e-12)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_the_gap_bounds_the_distance_to_the_optimum(mechanism: str) -> None:
    """Stopped early, the gap promises at least what is missing."""
    given = problem(n=500, scale=4.0, mechanism=mechanism)
    theta = np.zeros(MODEL.dimension)
    best = step(given, theta, tolerance=1e-12, max_calls=5000)
    assert float(best.gap) < 1e-9
    t, scale, n = given.y / given.n, given.scale, given.n

    def dual(phi: np.ndarray) -> float:
        a = float(given.oracle.log_partition(jnp.asarray(phi)))
        extra = 0.0 if mechanism == "laplace" else scale**2 / (2 * n) * ((phi - theta) ** 2).sum()
        return float(a - (phi - theta) @ t + extra)

    r0 = t - np.asarray(given.oracle.marginals(jnp.zeros(MODEL.dimension)))
    start = (
        np.abs(r0).sum() / scale if mechanism == "laplace" else n * (r0**2).sum() / (2 * scale**2)
    )
    for calls in (2, 4, 8):
        early = step(given, theta, tolerance=0.0, max_calls=calls)
        missing = dual(np.asarray(early.phi)) - dual(np.asarray(best.phi))
        assert -1e-9 <= missing <= float(early.gap) * start + 1e-9


def test_the_dual_is_far_closer_than_nlbp_at_equal_calls() -> None:
    given = problem(n=5000, scale=12.0)
    theta = np.zeros(MODEL.dimension)
    noise = TableNoise(jnp.asarray(given.scale), jnp.asarray(given.n))
    t = jnp.asarray(given.y / given.n)
    best = step(given, theta, tolerance=1e-12, max_calls=5000)
    value = primal(given, theta, np.asarray(best.phi), np.asarray(best.mu))
    ours = step(given, theta, tolerance=0.0, max_calls=60)
    mu, calls = jax.jit(e_step.nonlinear_belief_propagation, static_argnums=(0, 1))(
        given.oracle, "laplace", jnp.zeros(MODEL.dimension), t, noise, 60, 0.0
    )
    assert int(calls) == 60
    ours_missing = value - primal(given, theta, np.asarray(ours.phi), np.asarray(ours.mu))
    # NLBP's tables: their entropy is that of the model fitted to them.
    matched = naive_fit(given, np.asarray(mu))
    nlbp_missing = value - primal(given, theta, matched, np.asarray(mu))
    assert nlbp_missing > 0
    assert ours_missing < nlbp_missing / 10


def naive_fit(given: TablesProblem, mu: np.ndarray) -> np.ndarray:
    from noisewise.models.graphical_model.maximum_likelihood import maximise_likelihood

    place = jnp.arange(len(mu))
    return np.asarray(
        maximise_likelihood(
            given.oracle, jnp.asarray(mu), place, jnp.zeros(len(mu)), 0.0, 1e-10, 3000
        ).x
    )


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("method", ["cgm", "naive-mle"])
def test_without_noise_the_mle_is_recovered(method: str, mechanism: str) -> None:
    """The MLE matches the data's marginals (thesis prop. 1)."""
    given = problem(n=1e6, scale=0.0, mechanism=mechanism)
    given = dataclasses.replace(given, scale=0.5)
    found = collective_em.run(given) if method == "cgm" else maximum_likelihood.run(given, 1e-9)
    mu = np.concatenate([t.ravel() for t in found.clique_marginals().values()])
    np.testing.assert_allclose(mu, given.y / given.n, atol=3e-5)
    assert found.converged


def test_with_endless_noise_cgm_stays_near_uniform() -> None:
    for seed in range(5):
        given = problem(n=100, scale=1e5, seed=seed)
        found = collective_em.run(given)
        assert np.abs(found.potentials).max() < 0.05


def test_nlbp_as_published_fits_too() -> None:
    given = problem(n=20_000, scale=10.0)
    ours, theirs = collective_em.run(given), collective_em.run(given, estep="nlbp")
    gap = np.abs(ours.marginal(("a", "b")) - theirs.marginal(("a", "b"))).max()
    assert theirs.details["estep"] == "nlbp"
    assert gap < 0.02


@pytest.mark.parametrize("method", [collective_em.run, maximum_likelihood.run])
def test_tied_potentials_are_equal_and_use_all_tables(method: Any) -> None:
    names = [f"x{i}" for i in range(4)]
    pairs = [*itertools.pairwise(names)]
    chain = structure(dict.fromkeys(names, 3), [*pairs, ("x0",)])
    given = problem(n=5000, scale=5.0, model=chain, tied=[pairs])
    found = method(given)
    parts = [found.potentials[w] for w in chain.slices]
    for part in parts[1:3]:
        np.testing.assert_array_equal(part, parts[0])
    assert given.free == 9 + 3
    free = method(problem(n=5000, scale=5.0, model=chain))
    assert np.abs(free.potentials[chain.slices[0]] - free.potentials[chain.slices[1]]).max() > 0.1


def test_loopy_inference_fits_a_tree_like_exact() -> None:
    chain = structure({"a": 2, "b": 3, "c": 2}, [("a", "b"), ("b", "c")])
    exact, loopy = (
        collective_em.run(problem(n=2000, scale=5.0, model=chain, kind=k))
        for k in ("exact", "loopy")
    )
    np.testing.assert_allclose(exact.marginal(("b", "c")), loopy.marginal(("b", "c")), atol=1e-3)
    with pytest.raises(ArgumentError, match="exact sampling needs exact inference"):
        loopy.sample(10)


def test_projection_is_the_nearest_point_of_the_simplex() -> None:
    from scipy.optimize import minimize

    y = np.array([0.5, -0.2, 0.9, 0.1])
    found = minimize(
        lambda p: ((p - y) ** 2).sum(), np.full(4, 0.25), bounds=[(0, 1)] * 4,
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1}, options={"ftol": 1e-14},
    )  # fmt: skip
    np.testing.assert_allclose(maximum_likelihood.project_to_simplex(y), found.x, atol=1e-6)


@pytest.mark.parametrize("variance", [0.01, 1.0, 400.0])
def test_normal_laplace_density(variance: float) -> None:
    """Against quadrature in the middle; in the tails, all Laplace, against their slope."""
    scale = 3.0
    for x in (-8.0, -0.5, 0.0, 2.0, 30.0):
        found = float(
            normal_laplace_log_density(jnp.asarray(x), jnp.asarray(variance), jnp.asarray(scale))
        )
        assert found == pytest.approx(normal_laplace(x, variance, scale), abs=1e-6)
    far = np.array([5000.0, 5003.0])
    ends = np.asarray(
        normal_laplace_log_density(jnp.asarray(far), jnp.asarray(variance), jnp.asarray(scale))
    )
    assert ends[0] - ends[1] == pytest.approx(1.0, abs=1e-6)


@pytest.fixture(scope="module")
def posterior() -> tuple[TablesProblem, GraphicalPosterior]:
    given = problem(n=100, scale=12.0)
    return given, nuts.run(given, seed=0, chains=2, draws=400)


def test_bayes_has_draws_intervals_and_a_model(posterior: Any) -> None:
    _, found = posterior
    assert found.draws["a", "b"].shape == (2, 400, 2, 3)
    low, high = found.interval(("b", "a"), 0.9)
    mean = found.marginal(("b", "a"))
    assert low.shape == (3, 2)
    assert ((low < mean) & (mean < high)).all()
    np.testing.assert_allclose(found.model.marginal(("b", "a")), mean, atol=1e-5)
    np.testing.assert_allclose(found.marginal("a"), found.marginal(("a", "c")).sum("c"), atol=0.01)
    assert found.rhat < 1.1
    with pytest.raises(ArgumentError, match="draws of sets inside one clique only"):
        found.interval(("a", "b", "c"))
    with pytest.raises(ArgumentError, match="one or more distinct columns"):
        found.interval(("a", "a"))
    with pytest.raises(ArgumentError, match="'z' is not in the model, which has a, b, c"):
        found.marginal("z")


def test_bayes_agrees_with_importance_sampling(posterior: Any) -> None:
    """Prior draws weighted by the likelihood: another route to the posterior mean."""
    given, found = posterior
    rng = np.random.default_rng(0)
    d, many = MODEL.dimension, 60_000
    tau = collective_em.DEFAULT_SPREAD * np.exp(nuts.LOG_TAU_SD * rng.normal(size=(many, 1)))
    theta = tau / collective_em.DEFAULT_SPREAD * np.log(rng.exponential(size=(many, d)))
    import jax

    mu = np.asarray(jax.jit(jax.vmap(given.oracle.marginals))(jnp.asarray(theta)))
    safe = np.maximum(mu, nuts.MIN_MARGINAL)
    fit = normal_laplace_log_density(
        jnp.asarray(given.y - given.n * safe), jnp.asarray(given.n * safe * (1 - safe)),
        jnp.asarray(given.scale),
    )  # fmt: skip
    weight = np.asarray(fit).sum(axis=1)
    weight = np.exp(weight - weight.max())
    weight /= weight.sum()
    effective = 1 / (weight**2).sum()
    assert effective > 20
    mean = weight @ mu
    spread = np.sqrt(weight @ (mu - mean) ** 2)
    ours = found.marginal_draws.reshape(-1, d).mean(axis=0)
    # Either mean errs by spread/√draws; five of those for the worst of 16 cells (1 in 100,000).
    assert (np.abs(ours - mean) < 5 * spread * np.sqrt(1 / effective + 1 / found.ess)).all()


def test_a_posterior_is_saved(posterior: Any, tmp_path: Any) -> None:
    _, found = posterior
    again = GraphicalPosterior.load(found.save(tmp_path / "p.npz"))
    np.testing.assert_array_equal(again.marginal_draws, found.marginal_draws)
    assert isinstance(again.model, GraphicalModel)
    assert isinstance(load_posterior(tmp_path / "p.npz"), GraphicalPosterior)
    assert isinstance(load_posterior(found.model.save(tmp_path / "m.json")), GraphicalModel)


def test_a_posterior_has_a_page(posterior: Any) -> None:
    _, found = posterior
    made = report.render(found)
    low, high = found.interval("a")
    assert f"{low[0]:.2%}" in made
    assert f"{high[0]:.2%}" in made
    assert found.status in made
    for thing in ({"group": found}, "p.npz"):
        with pytest.raises(ArgumentError, match="report makes a page of what infer"):
            report.render(thing)  # type: ignore[arg-type]


def test_what_has_not_converged_is_counted(posterior: Any) -> None:
    _, found = posterior
    short = dataclasses.replace(
        found, marginal_draws=found.marginal_draws[:, :20], tau=found.tau[:, :20],
        details={**found.details, "divergences": 2},
    )  # fmt: skip
    assert "of 17 quantities fall short. Ask for more draws; method 'cgm'" in short.status
    assert "2 divergent transitions" in short.status
