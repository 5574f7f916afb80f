"""Log-partition function, marginals, sampling: against enumeration of every record."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from noisewise.artifact import ArgumentError
from noisewise.models.graphical_model.contrasts import contrasts
from noisewise.models.graphical_model.fitted_model import GraphicalModel
from noisewise.models.graphical_model.marginal_oracle import (
    Oracle,
    bethe_log_partition,
    choose_oracle,
    compiled_oracle,
    eliminated_log_partition,
)
from noisewise.models.graphical_model.structure import Structure, clique_vector, structure
from tests.reference.graphical_reference import clique_marginals, joint, marginal

SIZES = {"a": 2, "b": 3, "c": 2, "d": 4}
GRAPHS: dict[str, tuple[tuple[str, ...], ...]] = {
    "one": (("a", "b", "c", "d"),),
    "chain": (("a", "b"), ("b", "c"), ("c", "d")),
    "loop": (("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")),
    "triples": (("b", "a", "c"), ("d", "c"), ("c", "b"), ("d",)),
    "star": (("b", "a"), ("b", "c"), ("d", "b")),
}
TREES = ("one", "chain", "star")


def model(name: str) -> Structure:
    return structure(SIZES, GRAPHS[name])


def potentials(found: Structure, seed: int = 0, size: float = 1.5) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, size, found.dimension)


def fitted(name: str, seed: int = 0) -> GraphicalModel:
    found = model(name)
    levels: dict[str, Any] = {v: tuple(f"{v}{i}" for i in range(k)) for v, k in SIZES.items()}
    return GraphicalModel(found, levels, potentials(found, seed), "test", 1.0)


@pytest.mark.parametrize("name", GRAPHS)
def test_exact_inference_equals_enumeration(name: str) -> None:
    found = model(name)
    theta = potentials(found)
    a, mu = compiled_oracle(Oracle(found, "exact"))(jnp.asarray(theta))
    assert float(a) == pytest.approx(joint(SIZES, GRAPHS[name], theta)[0], abs=1e-12)
    np.testing.assert_allclose(mu, clique_marginals(SIZES, GRAPHS[name], theta), atol=1e-13)
    assert mu.dtype == jnp.float64


def test_gradient_is_the_marginals_by_finite_differences() -> None:
    found = model("loop")
    theta, step = potentials(found), 1e-5
    value = jax.jit(lambda t: eliminated_log_partition(found, t))
    slopes = [
        (float(value(theta + step * e)) - float(value(theta - step * e))) / (2 * step)
        for e in np.eye(found.dimension)
    ]
    np.testing.assert_allclose(slopes, jax.grad(value)(jnp.asarray(theta)), atol=1e-9)


def test_extreme_potentials_do_not_overflow() -> None:
    found = model("loop")
    theta = potentials(found, size=2000.0)
    a, mu = compiled_oracle(Oracle(found, "exact"))(jnp.asarray(theta))
    assert np.isfinite(float(a))
    np.testing.assert_allclose(mu, clique_marginals(SIZES, GRAPHS["loop"], theta), atol=1e-10)


@pytest.mark.parametrize("name", TREES)
def test_loopy_is_exact_on_trees(name: str) -> None:
    found = model(name)
    theta = jnp.asarray(potentials(found))
    both = [
        jax.jit(jax.value_and_grad(partial(w, found)))
        for w in (bethe_log_partition, eliminated_log_partition)
    ]
    for ours, truth in zip(*(f(theta) for f in both), strict=True):
        np.testing.assert_allclose(ours, truth, atol=1e-8)


def test_loopy_gradient_is_that_of_its_own_value() -> None:
    """On a loop it is not exact, but the beliefs still are the Bethe value's gradient."""
    found = model("loop")
    theta, step = potentials(found, size=0.7), 1e-4
    value = jax.jit(lambda t: bethe_log_partition(found, t))
    grad = jax.grad(value)(jnp.asarray(theta))
    for i in (0, 7, 15):
        e = step * np.eye(found.dimension)[i]
        slope = (float(value(theta + e)) - float(value(theta - e))) / (2 * step)
        assert slope == pytest.approx(float(grad[i]), abs=1e-6)
    exactly = clique_marginals(SIZES, GRAPHS["loop"], theta)
    assert 1e-6 < np.abs(np.asarray(grad) - exactly).max() < 0.05


@pytest.mark.parametrize(
    "columns", ["c", ("c", "b"), ("a", "d"), ("d", "a", "b"), ("d", "c", "b", "a")]
)
def test_marginals_of_any_set(columns: str | tuple[str, ...]) -> None:
    found = fitted("chain")
    probabilities = joint(SIZES, GRAPHS["chain"], found.potentials)[1]
    wanted = (columns,) if isinstance(columns, str) else columns
    np.testing.assert_allclose(
        found.marginal(columns), marginal(SIZES, probabilities, wanted), atol=1e-13
    )


def test_kl_and_loglikelihood_by_enumeration() -> None:
    p, q = fitted("loop"), fitted("triples", seed=1)
    tables = [joint(SIZES, m.cliques, m.potentials)[1] for m in (p, q)]
    assert p.kl(q) == pytest.approx((tables[0] * np.log(tables[0] / tables[1])).sum(), abs=1e-12)
    assert p.kl(p) == pytest.approx(0, abs=1e-12)
    records = p.sample(50, seed=3)
    cells = tuple(np.array([p.levels[v].index(x) for x in records[v].tolist()]) for v in SIZES)
    assert q.loglikelihood(records) == pytest.approx(np.log(tables[1][cells]).sum(), abs=1e-9)


@pytest.mark.parametrize("name", ["loop", "triples"])
def test_sampled_records_reproduce_the_joint(name: str) -> None:
    """χ² over all 48 records; false alarm 1 in 10,000 (seed fixed)."""
    from scipy.stats import chi2

    found, n = fitted(name), 100_000
    drawn = found.sample(n, seed=1)
    cells = tuple(np.array([found.levels[v].index(x) for x in drawn[v].tolist()]) for v in SIZES)
    counts = np.bincount(np.ravel_multi_index(cells, tuple(SIZES.values())), minlength=48)
    expected = n * joint(SIZES, GRAPHS[name], found.potentials)[1].ravel()
    many = expected > 5
    statistic = ((counts - expected)[many] ** 2 / expected[many]).sum()
    assert statistic < chi2.isf(1e-4, many.sum() - 1)


def test_contrasts_are_orthonormal_and_find_the_gauge() -> None:
    found = model("triples")
    held, d = contrasts(found), found.dimension
    basis = np.asarray(jax.jit(jax.jacobian(held.potentials))(jnp.zeros(d)))
    np.testing.assert_allclose(basis.T @ basis, np.eye(d), atol=1e-13)
    back = held.coordinates(held.potentials(jnp.arange(d, dtype=float)))
    np.testing.assert_allclose(back, np.arange(d), atol=1e-10)
    curve = jax.jit(jax.hessian(lambda t: eliminated_log_partition(found, t)))
    curvature = np.asarray(curve(jnp.asarray(potentials(found))))
    gauge = np.delete(basis, held.identifiable, axis=1)
    np.testing.assert_allclose(curvature @ gauge, 0, atol=1e-12)
    assert np.linalg.matrix_rank(curvature, tol=1e-9) == len(held.identifiable)


def test_size_is_predicted_and_refused_before_anything_is_built() -> None:
    """A complete graph of 40 columns with 10 states: 10^40 cells."""
    names = [f"x{i}" for i in range(40)]
    pairs = [(u, v) for i, u in enumerate(names) for v in names[i + 1 :]]
    huge = structure(dict.fromkeys(names, 10), pairs)
    assert huge.cells == 10**40
    with pytest.raises(ArgumentError, match=r"over 40 columns.*MiB allowed. Raise memory="):
        choose_oracle(huge, "exact")
    with pytest.warns(UserWarning, match="loopy belief propagation is used instead"):
        assert choose_oracle(huge).kind == "loopy"
    with pytest.warns(UserWarning, match="more than the 9.54e-06 MiB allowed"):
        assert choose_oracle(model("loop"), memory=10).kind == "loopy"
    assert choose_oracle(model("loop")).kind == "exact"


def test_a_marginal_that_would_not_fit_is_refused() -> None:
    names = [f"x{i}" for i in range(12)]
    long = structure(dict.fromkeys(names, 10), list(itertools.pairwise(names)))
    levels: dict[str, Any] = {v: tuple(range(10)) for v in names}
    found = GraphicalModel(long, levels, np.zeros(long.dimension), "test", 1.0)
    with pytest.raises(ArgumentError, match="has 1000000000000 cells"):
        found.marginal(names)


def test_mbi_agrees_and_reads_our_potentials() -> None:
    import mbi

    found = fitted("loop")
    theirs = mbi.marginal_oracles.message_passing_stable(found.to_mbi(), 1.0)
    for clique, ours in found.clique_marginals().items():
        np.testing.assert_allclose(theirs[clique].values, ours, atol=1e-10)
    assert clique_vector(SIZES, found.clique_marginals()).domain.size() == 48


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.marginal("z"), "'z' is not in the model, which has a, b, c, d"),
        (lambda m: m.marginal(("a", "a")), "distinct columns"),
        (lambda m: m.sample(0), "at least 1, not 0"),
        (lambda m: m.loglikelihood({"a": ["a0"]}), "has no column 'b'"),
        (
            lambda m: m.loglikelihood({v: ["nowhere"] for v in SIZES}),
            "column 'a' holds a value that is not among its public levels",
        ),
    ],
)  # fmt: skip
def test_misuse_is_explained(call: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        call(fitted("chain"))


def test_a_saved_model_is_the_same(tmp_path: Any) -> None:
    found = fitted("triples")
    again = GraphicalModel.load(found.save(tmp_path / "m.json"))
    np.testing.assert_array_equal(again.potentials, found.potentials)
    assert (again.structure, again.levels) == (found.structure, found.levels)
    (tmp_path / "m.json").write_text("{}")
    with pytest.raises(ArgumentError, match="is not a noisewise graphical model"):
        GraphicalModel.load(tmp_path / "m.json")
