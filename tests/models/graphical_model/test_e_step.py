"""The last E-step: its curvature against the Hessian, its solution against slower routes."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from noisewise.models.graphical_model import collective_em, e_step, log_partition_hessian
from noisewise.models.graphical_model.e_step import EStepSolution, TableNoise
from noisewise.models.graphical_model.log_partition_hessian import additive_curvature
from noisewise.models.graphical_model.marginal_oracle import Oracle, choose_oracle, compiled_oracle
from noisewise.models.graphical_model.structure import Structure, structure
from tests.reference.graphical_reference import clique_marginals, covariance, estep_by_scipy

TREE = structure(
    {"a": 3, "b": 2, "c": 4, "d": 3, "e": 2},
    [("a", "b"), ("c", "b"), ("c", "d"), ("c", "e"), ("d",)],
)
MIXED = structure(
    {"a": 3, "b": 2, "c": 3, "d": 2, "e": 1, "f": 3},
    [("a", "b", "c"), ("c", "d"), ("d", "a"), ("d", "e"), ("f",), ("b",)],
)
FIVE = structure(dict.fromkeys("abcde", 6), [*itertools.pairwise("abcde")])
FOUR = structure(dict.fromkeys("abcd", 5), [*itertools.combinations("abcd", 2)])


def at(model: Structure, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Random potentials, and their marginals."""
    theta = np.random.default_rng(seed).normal(0, 1, model.dimension)
    return theta, clique_marginals(model.sizes, model.cliques, theta)


def noisy(model: Structure, n: float, epsilon: float, seed: int) -> tuple[jax.Array, TableNoise]:
    """Tables of n records of a random model as shares, with the noise of a release."""
    rng = np.random.default_rng(seed)
    theta = [np.log(rng.dirichlet(np.ones(w.stop - w.start))) for w in model.slices]
    mu = np.asarray(compiled_oracle(choose_oracle(model))(jnp.concatenate(theta))[1])
    scale = 2 * len(model.cliques) / epsilon
    y = n * mu + np.sqrt(n * mu) * rng.normal(size=len(mu)) + scale * rng.laplace(size=len(mu))
    return jnp.asarray(y / n), TableNoise(jnp.asarray(scale), jnp.asarray(n))


def test_on_a_tree_the_curvature_is_the_hessian() -> None:
    theta, mu = at(TREE)
    theirs = covariance(TREE.sizes, TREE.cliques, theta)
    ours = additive_curvature(TREE, mu).times(np.eye(TREE.dimension))
    np.testing.assert_allclose(ours, theirs, atol=1e-12)


@pytest.mark.parametrize("model", [TREE, MIXED, FOUR])
def test_the_curvature_is_solved_with(model: Structure) -> None:
    _, mu = at(model)
    known, rng = additive_curvature(model, mu), np.random.default_rng(1)
    whole = known.times(np.eye(model.dimension))
    diagonal = 10 ** rng.uniform(-7, 1, model.dimension)
    q = rng.normal(size=(3, model.dimension))
    theirs = np.linalg.solve(whole + np.diag(diagonal), q.T).T
    np.testing.assert_allclose(known.solver(diagonal)(q), theirs, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(known.solver(diagonal)(q[0]), theirs[0], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(whole, whole.T, atol=1e-14)
    assert np.linalg.eigvalsh(whole).min() > -1e-12


@pytest.mark.parametrize("model", [TREE, MIXED, FOUR])
def test_what_changes_no_probability_has_no_curvature(model: Structure) -> None:
    """A function of one column taken from one table and given to another."""
    theta, mu = at(model)
    rng = np.random.default_rng(2)
    for v in model.variables:
        holders = [i for i, c in enumerate(model.cliques) if v in c]
        for i, j in itertools.pairwise(holders):
            move, part = np.zeros(model.dimension), rng.normal(size=model.sizes[v])
            for k, sign in ((i, 1), (j, -1)):
                clique = model.cliques[k]
                spread = [-1 if u == v else 1 for u in clique]
                table = np.broadcast_to(part.reshape(spread), model.shape(clique))
                move[model.slices[k]] = sign * table.ravel()
            same = clique_marginals(model.sizes, model.cliques, theta + 3 * move)
            np.testing.assert_allclose(same, mu, atol=1e-12)
            assert np.abs(additive_curvature(model, mu).times(move)).max() < 1e-12


@pytest.mark.parametrize("model", [TREE, MIXED])
def test_cells_without_anyone_are_no_trouble(model: Structure) -> None:
    _, mu = at(model)
    mu[:2] = 0.0
    solve = additive_curvature(model, mu).solver(np.full(model.dimension, 1e-6))
    assert np.isfinite(solve(np.ones(model.dimension))).all()


def test_from_inside_solves_the_primal() -> None:
    """SLSQP on all record probabilities finds the same tables."""
    sizes, loop = {"a": 2, "b": 3, "c": 2}, (("a", "b"), ("b", "c"), ("c", "a"))
    model = structure(sizes, loop)
    t, noise = noisy(model, 2000.0, 1.0, seed=3)
    theta = jnp.asarray(np.random.default_rng(1).normal(0, 0.3, model.dimension))
    oracle = choose_oracle(model)
    begun = e_step.solve_dual_compiled(
        oracle, "laplace", theta, jnp.zeros_like(theta), t, noise, 1e-9, 2
    )
    found = e_step.solve_from_inside(oracle, theta, begun, t, noise, 1e-9, 60)
    mu, _ = estep_by_scipy(sizes, loop, np.asarray(theta), np.asarray(t), float(noise.scale))
    assert float(found.gap) <= 1e-9
    np.testing.assert_allclose(found.mu, mu, atol=2e-4)
    np.testing.assert_allclose(found.mu, oracle.marginals(found.phi), atol=1e-12)
    assert np.abs(np.asarray(found.phi - theta)).max() <= 1 / float(noise.scale)
    slow = e_step.solve_dual_compiled(
        oracle, "laplace", theta, jnp.zeros_like(theta), t, noise, 1e-9, 5000
    )  # fmt: skip
    np.testing.assert_allclose(found.mu, slow.mu, atol=1e-6)


def last_steps(
    model: Structure, n: float, epsilon: float, seed: int
) -> tuple[EStepSolution, EStepSolution]:
    """At the end of EM: by projected L-BFGS alone, and as ``cgm`` does it."""
    t, noise = noisy(model, n, epsilon, seed)
    oracle, zero = choose_oracle(model), jnp.zeros(model.dimension)
    path = collective_em.climb_em(
        oracle,
        "laplace",
        "dual",
        False,
        t,
        noise,
        jnp.arange(model.dimension),
        zero,
        collective_em.DEFAULT_SPREAD,
    )
    given: Any = (oracle, "laplace", path.before, path.best_move, t, noise)
    return e_step.solve_dual_compiled(*given), e_step.solve_dual_accurately(*given)


@pytest.mark.parametrize(
    ("model", "n", "epsilon", "seed"),
    [(FIVE, 1e6, 10.0, 2), (FIVE, 1e8, 1.0, 2), (FOUR, 1e6, 10.0, 2)],
)
def test_hard_last_steps_are_solved_in_time(
    model: Structure, n: float, epsilon: float, seed: int
) -> None:
    """Where projected L-BFGS still searches after 150 calls, and would need 300 to 500."""
    projected, ours = last_steps(model, n, epsilon, seed)
    assert float(projected.gap) > e_step.GAP_TOLERANCE
    assert float(ours.gap) <= e_step.GAP_TOLERANCE
    assert int(ours.calls) <= 75


def test_tables_of_one_and_three_columns_are_solved_too() -> None:
    _, ours = last_steps(MIXED, 1e6, 10.0, 1)
    assert float(ours.gap) <= e_step.GAP_TOLERANCE
    assert int(ours.calls) <= e_step.MAX_E_STEP_CALLS


@pytest.mark.parametrize(
    ("mechanism", "kind"), [("gaussian", "exact"), ("laplace", "loopy"), ("laplace", "large")]
)
def test_other_last_steps_are_left_alone(
    mechanism: str, kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "large":
        monkeypatch.setattr(log_partition_hessian, "MAX_ARRAY_ENTRIES", 100)
        kind = "exact"
    t, noise = noisy(TREE, 1e6, 1.0, seed=0)
    theta = jnp.asarray(at(TREE, seed=5)[0])
    given: Any = (Oracle(TREE, kind), mechanism, theta, jnp.zeros_like(theta), t, noise)
    theirs, ours = e_step.solve_dual_compiled(*given), e_step.solve_dual_accurately(*given)
    np.testing.assert_array_equal(ours.phi, theirs.phi)
    assert int(ours.calls) == int(theirs.calls)


def test_numerical_trouble_leaves_the_calls_to_the_other_method(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def singular(*_: object) -> None:
        raise np.linalg.LinAlgError("singular")

    monkeypatch.setattr(e_step, "additive_curvature", singular)
    _, ours = last_steps(FIVE, 1e8, 1.0, 2)
    assert int(ours.calls) >= e_step.MAX_E_STEP_CALLS
    assert e_step.GAP_TOLERANCE < float(ours.gap) < 1
