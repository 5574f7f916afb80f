"""The sampler of regressions with factors: another sampler, truths from the prior, limit cases."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import noisewise as nw
from noisewise.inference import adaptation, hmc
from noisewise.models.linear_regression import factor_exact, factor_simulate
from noisewise.models.linear_regression.factor_density import (
    FactorData,
    factored,
    moments,
    target,
)
from noisewise.models.linear_regression.factor_problem import (
    FactorProblem,
    factor_problem,
    subset,
)
from noisewise.models.linear_regression.factor_records import boxed_columns, sums_within_cells
from tests.models.linear_regression.agreement import apart

BOUNDS = {"x": (0.0, 10.0), "y": (-5.0, 15.0)}
LEVELS: dict[str, list[Any]] = {"A": ["a", "b"], "B": [1, 2, 3]}
FORMULA = "y ~ x + C(B)"
SLOPES = "y ~ x + C(A) + x:C(A)"


def people(n: int, shares: tuple[float, ...] = (0.4, 0.3, 0.3)) -> pd.DataFrame:
    """A table of n records; the counts of B are as near the shares as can be."""
    rng = np.random.default_rng(n)
    counts = np.diff(np.round(n * np.cumsum([0, *shares])).astype(int))
    table = pd.DataFrame({"x": rng.uniform(0, 10, n), "B": np.repeat(LEVELS["B"], counts)})
    table["A"] = rng.choice(LEVELS["A"], n)
    table["y"] = table.x * 0.5 + (table.B == 2) + 2 * (table["A"] == "b") + rng.normal(0, 1, n)
    return table


def release(table: Any, formula: str = FORMULA, epsilon: float = 10.0, **words: Any) -> nw.Release:
    factors = {f: v for f, v in LEVELS.items() if f"C({f})" in formula}
    return nw.release.linear_regression(
        table, formula=formula, bounds=BOUNDS, levels=factors, epsilon=epsilon, **words
    )


def hidden() -> FactorProblem:
    """Thirty records under noise of scale 2, which hides how much x varies."""
    problem = factor_problem(release(nw.release.Blank(30), "y ~ x + C(A)"))
    table = people(30)
    columns = {"x": table.x, "y": table.y, "A": table["A"] == "b"}
    arrays = {c: np.asarray(v, float)[None] for c, v in columns.items()}
    box = boxed_columns(problem.statistic, problem.bounds, arrays)
    sums = sums_within_cells(problem.statistic, box, arrays)
    z = sums + np.random.default_rng(3).laplace(0, 2, sums.shape)
    return replace(problem, z=z, noise_scale=2.0)


def quantities(problem: FactorProblem, positions: np.ndarray) -> np.ndarray:
    """Coordinates and sums (quantity, 1, chain, draw)."""
    data = FactorData(
        jnp.asarray(problem.z[0]), jnp.asarray(problem.noise_scale), jnp.asarray(problem.n[0])
    )

    @jax.jit
    def at(v: jax.Array) -> jax.Array:
        return jnp.concatenate([v, moments(v, data, problem.structure).sums])

    flat = positions.reshape(-1, positions.shape[-1])
    values = np.asarray(jax.lax.map(at, jnp.asarray(flat)))
    return np.moveaxis(values.reshape(*positions.shape[:2], -1), 2, 0)[:, None]


@pytest.mark.evidence
def test_another_sampler_finds_the_same() -> None:
    """NUTS on the same density, which test_factor_density compares with records one by one."""
    numpyro_infer = pytest.importorskip("numpyro.infer")
    problem = hidden()
    data = FactorData(jnp.asarray(problem.z[0]), jnp.asarray(2.0), jnp.asarray(30.0))

    def potential(v: jax.Array) -> jax.Array:
        at = moments(v, data, problem.structure)
        return -at.log_density + jnp.abs((at.sums - data.z) / 2.0).sum()

    starts = [factor_exact.start(np.random.default_rng(i), problem) for i in range(4)]
    nuts = numpyro_infer.NUTS(potential_fn=potential, dense_mass=True, target_accept_prob=0.9)
    chains = numpyro_infer.MCMC(
        nuts, num_warmup=1000, num_samples=2500, num_chains=4, chain_method="vectorized",
        progress_bar=False,
    )  # fmt: skip
    chains.run(jax.random.key(1), init_params=jnp.asarray(np.stack(starts)))
    other = np.asarray(chains.get_samples(group_by_chain=True))
    positions, _ = factor_exact.sample(jax.random.key(7), problem, 4, 3000)
    own = np.moveaxis(np.asarray(positions)[..., 0], 2, 0)
    pairs = zip(quantities(problem, own), quantities(problem, other), strict=True)
    assert max(apart(ours[0], theirs[0]) for ours, theirs in pairs) < 4.5


def test_groups_side_by_side_have_their_own_slopes() -> None:
    """Gradients, densities and information of three groups are those of each group alone."""
    three = people(90).assign(g=[0, 1, 2] * 30)
    problem = factor_problem(release(three, SLOPES, groups={"g": [0, 1, 2]}))
    aim = target(problem.structure, problem.mechanism, 6)
    starts = [
        [factor_exact.start(np.random.default_rng([g, c]), subset(problem, [g])) for c in range(2)]
        for g in range(3)
    ]
    x = jnp.asarray(starts).transpose(2, 1, 0)
    data, heat = factor_exact._data(problem), jnp.asarray(1.0)
    gradient, density = hmc._slope(aim, x, data, heat)
    spread = jnp.asarray(factor_exact.prior_spread(problem.structure))[:, None]
    state = adaptation.start(x, jnp.repeat(spread, 3, axis=1), plain=True)
    information = hmc._information(aim, state, data, heat)
    for g in range(3):
        own = factor_exact._data(subset(problem, [g]))

        def residual(v: jax.Array, own: FactorData = own) -> jax.Array:
            return jnp.asarray(aim.residual(v, own, heat))

        seen = []
        for c in range(2):
            slope, true = jax.grad(aim.density, has_aux=True)(x[:, c, g], own, heat)
            np.testing.assert_allclose(gradient[:, c, g], slope, rtol=1e-9, atol=1e-9)
            assert density[c, g] == pytest.approx(float(true), rel=1e-12)
            seen.append(jax.jacrev(residual)(x[:, c, g]))
        wanted = np.mean([j.T @ j for j in seen], axis=0)
        np.testing.assert_allclose(information[..., g], wanted, rtol=1e-8, atol=1e-8)


def test_groups_that_did_not_converge_are_sampled_again() -> None:
    """Only those, and alone; what is reported never goes back."""
    three = people(90).assign(g=[0, 1, 2] * 30)
    problem = factor_problem(release(three, groups={"g": [0, 1, 2]}))
    told: list[tuple[int, int | None]] = []
    post = factor_exact.run(
        problem, 1, 4, 60, lambda done, total: told.append((done, total)), attempts=(1, 1)
    )
    # Sixty draws of each chain are never four hundred effective ones.
    np.testing.assert_array_equal(post.details["tries"], [2, 2, 2])
    assert told[-1] == (3, 3)
    assert {total for _, total in told} == {3}
    assert post.draws["x"].shape == (3, 4, 60)
    assert len({float(v) for v in post.draws["x"].mean(axis=(1, 2))}) == 3


@pytest.mark.parametrize("levels", [2, 5, 12, 60])
def test_no_batch_of_matrices_is_large(levels: int) -> None:
    """Half a million multiplications at once may wait for each other for ever."""
    blank = nw.release.linear_regression(
        nw.release.Blank(500), formula="y ~ x + C(B) + C(A)", bounds=BOUNDS, epsilon=1.0,
        levels={"A": [1, 2], "B": range(levels)},
    )  # fmt: skip
    structure = factor_problem(blank).structure
    atoms = 3 + levels - 1
    assert factored(structure) == atoms**3
    together = factor_exact.side_by_side(structure, 4)
    assert together == 1 or together * 4 * atoms**3 < 5e5
    assert target(structure, "laplace", 4).side_by_side == (4 * atoms**3 < 5e5)
    assert (together > 1) == (levels < 30)


@pytest.mark.evidence
def test_truths_from_the_prior_have_uniform_ranks() -> None:
    """Simulation-based calibration: 60 records, noise of scale 3, a factor of three levels."""
    problem = factor_problem(release(nw.release.Blank(60), epsilon=1.0))
    problem = replace(problem, noise_scale=3.0)
    trials = factor_simulate.from_prior(np.random.default_rng(8), problem, 100)
    post = factor_exact.run(trials.problem, 1, 4, 500)
    for k, name in enumerate(trials.names):
        draws = np.asarray(post.draws[name]).reshape(100, -1)
        ranks = (draws < trials.truth[:, [k]]).mean(axis=1)
        assert stats.kstest(ranks, "uniform").pvalue > 1e-3, (name, ranks)


def lonely(n: int) -> pd.DataFrame:
    """A table without a record of B = 3."""
    return people(n, (0.6, 0.4, 0.0))


LIMITS: dict[str, Any] = {
    "an empty level": lambda: release(lonely(300)),
    "one record in a level": lambda: release(people(300, (0.6, 0.3966, 0.0034))),
    "noise that drowns all": lambda: release(people(300), epsilon=1e-3),
    "hardly more records than coefficients": lambda: release(people(7), epsilon=30.0),
    "Gaussian noise": lambda: release(people(300), epsilon=2.0, mechanism="gaussian", delta=1e-6),
    "a secret size": lambda: release(people(300), neighbours="add-remove"),
    "an empty stratum": lambda: release(people(300).assign(A="a"), SLOPES, epsilon=5.0),
    "slopes drowned": lambda: release(people(300), SLOPES, epsilon=1e-3),
    "slopes of few": lambda: release(people(7), SLOPES, epsilon=10.0),
    "groups": lambda: release(people(400).assign(g=[0, 1] * 200), groups={"g": [0, 1]}),
}


@pytest.mark.evidence
@pytest.mark.parametrize("made", LIMITS.values(), ids=LIMITS.keys())
def test_limits(made: Any) -> None:
    """Chains agree, and all draws are numbers."""
    given = made()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        post: Any = nw.infer(given, draws=400, seed=3)
    for name, draws in post.draws.items():
        assert np.isfinite(draws).all(), name
        assert np.max(post.rhat[name]) < 1.05, name
    if given.groups is None:
        assert np.std(post.draws["sigma2"]) > 0


def test_an_empty_level_has_its_priors_effect() -> None:
    """Its effect is as uncertain as the spread of effects; that of level 2 is known."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        post: Any = nw.infer(release(lonely(300)), draws=400, seed=3)
    known, unknown = (float(np.std(post.draws[f"C(B)[T.{k}]"])) for k in (2, 3))
    assert max(map(float, post.rhat.values())) < 1.05
    assert unknown > 3 * known
    assert float(np.mean(post.draws["x"])) == pytest.approx(0.5, abs=0.25)
