"""The posterior's log density, against a dense one in plain coordinates times the Jacobian."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from noisewise.models.generalized_linear import covariate_density
from noisewise.models.generalized_linear.clt import density_data, layout_of, nodes_of
from noisewise.models.generalized_linear.covariate_nodes import box_nodes
from noisewise.models.generalized_linear.density import Layout, parts, target
from noisewise.models.generalized_linear.problem import GeneralizedProblem
from noisewise.models.generalized_linear.starting_values import variance_units
from noisewise.numerics.matrices import UNROLLED, entries
from tests.models.generalized_linear.problems import PRIOR, problem
from tests.reference import generalized_reference as reference


def points(rng: np.random.Generator, given: GeneralizedProblem, count: int) -> np.ndarray:
    """Coordinates (point, coordinate) spread about what the data say, n among them."""
    layout = layout_of(given, nodes=False)
    v = rng.normal(0, 0.5, (count, layout.dimension))
    d = layout.d
    v[:, d : 2 * d] += 3.0  # Variances of several noise units.
    if given.noisy_n:
        v[:, layout.covariates - d - 1] = np.log(given.n[0]) + rng.normal(0, 0.1, count)
    return v


def densities(given: GeneralizedProblem, v: np.ndarray, layout: Layout) -> np.ndarray:
    """The library's log density at every point."""
    nodes = None
    if layout.nodes:
        mean, covariance = MOMENTS[layout.d]
        nodes = nodes_of(given, mean[None], covariance[None])
    data = density_data(given, nodes)
    density = target(layout).density
    if layout.d + 1 > UNROLLED:
        one = jax.jit(lambda w: density(w, data, jnp.ones(()))[1])
        return np.array([one(jnp.asarray(w)) for w in v])
    return np.asarray(density(entries(jnp.asarray(v.T[:, :, None]), 1), data, jnp.ones(()))[1])[
        :, 0
    ]


MOMENTS = {
    d: (np.full(d, 0.1), 0.09 * (np.eye(d) * 0.6 + 0.4)) for d in (1, 2, 3)
}  # fmt: skip
"""Mean and covariance of the covariates of which nodes are made."""


def plain_coordinates(given: GeneralizedProblem, v: np.ndarray) -> tuple[list[np.ndarray], float]:
    """x̄, S, n, log a² and the rest at one point, and log |d(these) / dv|."""
    layout = layout_of(given, nodes=False)
    d, first = layout.d, layout.covariates
    unit, n = jnp.asarray(variance_units(given)[0]), jnp.asarray(given.n[0])
    data = density_data(given, None)._replace(unit=unit, n=n)
    rows, columns = np.tril_indices(d)

    def mapped(w: jax.Array) -> jax.Array:
        p = parts(w, data, layout)
        at = p.at
        share = at.factor @ at.factor.T
        # u is log a less the log deviation that other covariates leave of each column.
        alone = -0.5 * jnp.log(jnp.diagonal(jnp.linalg.inv(share)))
        log_a2 = 2 * (w[first - d : first] + alone)
        count = [at.n[None]] if given.noisy_n else []
        scatter = (at.n * share)[rows, columns]
        rest = [p.level[None], p.slopes, p.eta]
        return jnp.concatenate([at.mean, scatter, *count, log_a2, *rest])

    value = np.asarray(mapped(jnp.asarray(v)))
    slope = jax.jit(jax.jacfwd(mapped))(jnp.asarray(v))
    size = len(rows)
    scatter = np.zeros((d, d))
    scatter[rows, columns] = value[d : d + size]
    scatter = scatter + np.tril(scatter, -1).T
    rest = value[d + size + given.noisy_n :]
    number = value[d + size] if given.noisy_n else given.n[0]
    found = [value[:d], scatter, np.asarray(number), rest[:d], *np.split(rest[d:], [1, d + 1])]
    return found, float(np.linalg.slogdet(np.asarray(slope))[1])


def dense(given: GeneralizedProblem, v: np.ndarray, *, nodes: bool = False) -> float:
    """The oracle's log density with respect to v."""
    (mean, scatter, n, log_a2, level, slopes, eta), volume = plain_coordinates(given, v)
    law: tuple[np.ndarray, np.ndarray] | None = None
    if nodes:
        made = box_nodes(*MOMENTS[len(mean)], given.indicators)
        law = made.z, made.weight
    return volume + reference.log_density(
        given.link, given.covariates[0], given.response[0], given.noise_scale, given.mechanism,
        (float(given.units.centre[-1]), float(given.units.half[-1])),
        (given.level, given.level_sd, given.slope_sd), float(n), mean, scatter, log_a2,
        float(level[0]), slopes, eta, law,
    )  # fmt: skip


EVIDENCE = pytest.mark.evidence
CASES = [
    pytest.param(1, "logistic", "laplace", False, False, id="one covariate"),
    pytest.param(2, "probit", "gaussian", False, False, id="gaussian noise"),
    pytest.param(2, "logistic", "laplace", True, True, id="secret n, nodes"),
    pytest.param(3, "poisson", "laplace", False, False, id="three covariates, counts"),
    pytest.param(
        3, "logistic", "gaussian", True, False, id="secret n, gaussian noise", marks=EVIDENCE
    ),
    pytest.param(6, "logistic", "laplace", False, False, id="looped"),
    pytest.param(6, "poisson", "gaussian", True, False, id="looped, secret n", marks=EVIDENCE),
]


@pytest.mark.parametrize(("d", "link", "mechanism", "noisy_n", "nodes"), CASES)
def test_density_is_the_dense_one_times_the_jacobian(
    d: int, link: str, mechanism: str, noisy_n: bool, nodes: bool
) -> None:
    """Up to one constant for all points (and all n, where n is secret), within 1e-5."""
    given = problem(d, link=link, mechanism=mechanism, noisy_n=noisy_n)
    layout = layout_of(given, nodes=nodes)
    v = points(np.random.default_rng(d), given, 5)
    found = densities(given, v, layout)
    wanted = np.array([dense(given, w, nodes=nodes) for w in v])
    assert np.ptp(wanted) > 1
    offset = found - wanted
    np.testing.assert_allclose(offset, offset[0], atol=1e-5)


def test_the_surrogate_is_near_the_density() -> None:
    """What trajectories follow differs by half a knee in every kink at most, and is above none."""
    given = problem(2)
    data, layout = density_data(given, None), layout_of(given, nodes=False)
    v = points(np.random.default_rng(0), given, 20)
    smooth, true = target(layout).density(
        entries(jnp.asarray(v.T[:, :, None]), 1), data, jnp.ones(())
    )
    off = np.asarray(true - smooth)
    assert (off >= -1e-9).all()
    assert (off <= 5 * 0.5 / 2).all()
    assert off.max() > 0


def test_no_slope_is_nothing_special() -> None:
    """At γ = 0 the density has the derivatives that differences on both sides tell."""
    given = problem(2)
    layout = layout_of(given, nodes=False)
    first = layout.covariates + 1
    v = points(np.random.default_rng(2), given, 1)[0]
    v[first : first + 2] = 0

    step = 1e-4 * np.eye(layout.dimension)[first : first + 2]
    at = np.stack([v, *(v + step), *(v - step), *(v + 2 * step), *(v - 2 * step)])
    value = densities(given, at, layout)
    ahead, behind, far, back = value[1:3], value[3:5], value[5:7], value[7:9]
    central, wide = (ahead - behind) / 2e-4, (far - back) / 4e-4
    np.testing.assert_allclose(central, wide, rtol=1e-4, atol=1e-4)
    # A kink or a cone at 0 would make one-sided slopes differ by more than the curvature does.
    np.testing.assert_allclose((ahead - value[0]) / 1e-4, (value[0] - behind) / 1e-4, atol=0.05)

    data = density_data(given, None)

    def along(g: jax.Array) -> jax.Array:
        w = jnp.asarray(v).at[first : first + 2].set(g)
        return target(layout).density(entries(w[:, None, None], 1), data, jnp.ones(()))[1][0, 0]

    np.testing.assert_allclose(jax.grad(along)(jnp.zeros(2)), central, atol=1e-4)


def flipped(given: GeneralizedProblem, what: str) -> tuple[GeneralizedProblem, np.ndarray]:
    """The problem with its first column, or y, turned round, and the signs of its coordinates."""
    layout = layout_of(given, nodes=False)
    signs, d, first = np.ones(layout.dimension), layout.d, layout.covariates
    if what == "y":
        signs[first : first + 1 + d] = -1
        prior = replace(PRIOR, level=-0.3)
        return replace(given, response=-given.response, prior=prior), signs
    signs[0], signs[first + 1] = -1, -1
    rows, columns = np.triu_indices(d)
    sums = np.concatenate([1 - 2 * ((rows == 0) ^ (columns == 0)), [-1], np.ones(d - 1)])
    # Rows of L: the factor's first column turns with x_1, so g of every later row does.
    below = np.tril_indices(d, -1)
    signs[2 * d : 2 * d + len(below[0])] = np.where(below[1] == 0, -1, 1)
    response = given.response * np.array([1, -1, *[1] * (d - 1)])
    return replace(given, covariates=given.covariates * sums, response=response), signs


@pytest.mark.parametrize("what", ["x", "y"])
@pytest.mark.parametrize("link", ["logistic", "probit"])
def test_turning_a_column_round_turns_its_slope_round(link: str, what: str) -> None:
    """The density at the mirrored point of the mirrored problem is the same."""
    given = problem(2, link=link)
    layout = layout_of(given, nodes=False)
    other, signs = flipped(given, what)
    v = points(np.random.default_rng(5), given, 4)
    np.testing.assert_allclose(
        densities(other, v * signs, layout), densities(given, v, layout), atol=1e-8
    )


def test_the_order_of_columns_does_not_matter() -> None:
    """In plain coordinates, under normal covariates, the density is the same in either order."""
    given = problem(2)
    layout = layout_of(given, nodes=False)
    product = given.covariates[:, [2, 1, 0, 4, 3]]
    other = replace(given, covariates=product, response=given.response[:, [0, 2, 1]])
    first = layout.covariates
    for v in points(np.random.default_rng(6), given, 3):
        (mean, scatter, _, _, level, slopes, _), volume = plain_coordinates(given, v)
        factor = np.linalg.cholesky(scatter[::-1, ::-1] / given.n[0])
        white = factor.T @ (slopes / np.sqrt(np.diagonal(scatter) / given.n[0]))[::-1]
        w = covariate_density.warped(mean[::-1], factor, variance_units(other)[0])
        turn = np.array([0, 2, 1])
        # log a has the same two values in the other order; u is relative to the same deviations.
        swapped = np.concatenate([
            w, v[first - 2 : first][::-1], level, white, v[first + 3 :][turn]
        ])  # fmt: skip
        _, volume_there = plain_coordinates(other, swapped)
        here, there = (densities(p, x[None], layout)[0] for p, x in
                       ((given, v), (other, swapped)))  # fmt: skip
        assert here - volume == pytest.approx(there - volume_there, abs=1e-6)
