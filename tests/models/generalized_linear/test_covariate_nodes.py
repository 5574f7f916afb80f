"""Laws of covariates made from two moments and bounds, and their nodes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from noisewise.models.generalized_linear.covariate_nodes import (
    GRID,
    LARGEST,
    box_density,
    box_nodes,
    gauss_rule,
    normal_nodes,
    padded,
)


@pytest.mark.parametrize(
    ("mean", "variance"),
    [(0.0, 1 / 3), (0.3, 0.2), (-0.7, 0.05), (0.0, 0.9), (0.4, 0.7), (0.9, 0.01), (-0.98, 3e-4),
     (0.2, 0.001)],
)  # fmt: skip
def test_a_law_on_the_box_has_its_moments(mean: float, variance: float) -> None:
    """Within 1e-6, and its logarithm is quadratic in x: the law of largest entropy."""
    law = box_density(mean, variance)
    assert law.min() >= 0
    assert law.sum() == pytest.approx(1, abs=1e-12)
    assert law @ GRID == pytest.approx(mean, abs=1e-6)
    assert law @ (GRID - mean) ** 2 == pytest.approx(variance, abs=1e-6)
    kept = law > 1e-250
    log, x = np.log(law[kept]), GRID[kept]
    np.testing.assert_allclose(np.polyval(np.polyfit(x, log, 2), x), log, atol=1e-4)


def test_a_third_is_uniform() -> None:
    law = box_density(0.0, float(np.mean(GRID**2)))
    np.testing.assert_allclose(law, 1 / len(GRID), rtol=1e-6)


@pytest.mark.parametrize("mean", [0.0, 0.4, -0.6])
def test_the_largest_variance_is_two_points(mean: float) -> None:
    """Of variance 1 - mean²: nearly all weight at the ends, in the ratio that gives the mean."""
    law = box_density(mean, 1 - mean**2)
    assert law[np.abs(GRID) > 0.98].sum() > 0.99
    assert law[GRID > 0].sum() == pytest.approx((1 + mean) / 2, abs=0.01)


def test_a_skewed_column_resembles_a_beta() -> None:
    """Given the moments of beta(1, 6): shares below any point within .03."""
    beta = stats.beta(1, 6)
    law = box_density(2 * beta.mean() - 1, 4 * beta.var())
    below = np.cumsum(law) - law / 2
    assert np.abs(below - beta.cdf((GRID + 1) / 2)).max() < 0.03


@pytest.mark.parametrize(("mean", "sd"), [(0.1, 0.15), (-0.3, 0.04), (0.2, 0.006)])
def test_a_narrow_column_is_normal(mean: float, sd: float) -> None:
    """On the grid its weights are those of the normal density, within 1e-3 of the largest."""
    law = box_density(mean, sd**2)
    wanted = stats.norm.pdf(GRID, mean, sd)
    assert np.abs(law - wanted / wanted.sum()).max() < 1e-3 * law.max()


@pytest.mark.parametrize("count", [1, 5, 12])
@pytest.mark.parametrize("law", ["uniform", "skewed", "normal"])
def test_gauss_rule_integrates_polynomials(law: str, count: int) -> None:
    """Of degree 2 count - 1 exactly, for the standardised column."""
    weights = {
        "uniform": np.full(len(GRID), 1 / len(GRID)),
        "skewed": box_density(-0.7, 0.05),
        "normal": box_density(0.1, 0.02),
    }[law]
    mean = weights @ GRID
    z = (GRID - mean) / np.sqrt(weights @ (GRID - mean) ** 2)
    nodes, weight = gauss_rule(GRID, weights, count)
    assert len(nodes) == count
    assert weight.min() > 0
    for degree in range(2 * count):
        scale = weights @ np.abs(z) ** degree
        assert weight @ nodes**degree == pytest.approx(weights @ z**degree, abs=1e-9 * scale)
    off = weights @ z ** (2 * count) - weight @ nodes ** (2 * count)
    assert abs(off) > 1e-9


def test_gauss_rule_of_two_points_is_the_two_points() -> None:
    """Asked for more nodes than the law has points, the rule gives these."""
    weights = np.zeros(len(GRID))
    weights[[0, -1]] = 0.7, 0.3
    nodes, weight = gauss_rule(GRID, weights, 8)
    np.testing.assert_allclose(sorted(nodes), [-np.sqrt(0.3 / 0.7), np.sqrt(0.7 / 0.3)])
    np.testing.assert_allclose(sorted(weight), [0.3, 0.7])


def correlated(d: int, share: float = 0.3) -> np.ndarray:
    """A covariance with common correlations."""
    sd = np.linspace(0.2, 0.45, d)
    return np.outer(sd, sd) * (share + (1 - share) * np.eye(d))


def factor_moments(levels: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance in the box of the dummies of a factor of levels + 1 equal levels."""
    share = np.full(levels, 1 / (levels + 1))
    return 2 * share - 1, 4 * (np.diag(share) - np.outer(share, share))


CASES = {
    "1": (np.array([0.2]), np.array([[0.1]]), np.array([False])),
    "2, one at a bound": (np.array([-0.7, 0.1]), correlated(2), np.zeros(2, bool)),
    "4": (np.linspace(-0.3, 0.3, 4), correlated(4), np.zeros(4, bool)),
    "8": (np.linspace(-0.3, 0.3, 8), correlated(8), np.zeros(8, bool)),
    "20": (np.linspace(-0.3, 0.3, 20), correlated(20), np.zeros(20, bool)),
    "12 indicators": (*factor_moments(12), np.ones(12, bool)),
    "factor of 4 levels": (*factor_moments(3), np.ones(3, bool)),
}


@pytest.mark.parametrize("case", list(CASES))
def test_nodes_are_standardised(case: str) -> None:
    """Weights are positive, means 0 and covariances I, whatever the number of columns."""
    z, weight = box_nodes(*CASES[case])
    assert z.shape == (len(weight), len(CASES[case][0]))
    assert len(weight) <= LARGEST
    assert weight.min() > 0
    assert weight.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(weight @ z, 0, atol=1e-8)
    np.testing.assert_allclose((z.T * weight) @ z, np.eye(z.shape[1]), atol=1e-6)


@pytest.mark.parametrize("d", [1, 3, 6])
def test_nodes_of_a_normal_law_have_its_moments(d: int) -> None:
    """Up to the fourth: 3 on the diagonal, 1 between two columns; 20 % where they are drawn."""
    z, weight = normal_nodes(d)
    np.testing.assert_allclose((z.T * weight) @ z, np.eye(d), atol=1e-6)
    fourth = np.einsum("q,qi,qj->ij", weight, z**2, z**2)
    np.testing.assert_allclose(fourth, 1 + 2 * np.eye(d), rtol=0.2 if d > 4 else 1e-6)


def test_dummies_of_a_factor_never_meet() -> None:
    """Levels exclude each other: nodes are the factor's cells, with their shares."""
    mean, covariance = factor_moments(3)
    z, weight = box_nodes(mean, covariance, np.ones(3, bool))
    x = (1 + mean + z @ np.linalg.cholesky(covariance).T) / 2
    together = x.sum(axis=1) > 1.5
    assert weight[together].sum() < 0.005
    shares = [
        weight[np.abs(x - cell).max(axis=1) < 0.2].sum() for cell in [np.zeros(3), *np.eye(3)]
    ]
    np.testing.assert_allclose(shares, 0.25, atol=0.005)


def test_independent_indicators_have_cells_of_products() -> None:
    """Two of shares .3 and .6, uncorrelated, beside a numeric column that comes before them."""
    share = np.array([0.3, 0.6])
    mean = np.append(0.2, 2 * share - 1)
    covariance = np.diag(np.append(0.05, 4 * share * (1 - share)))
    z, weight = box_nodes(mean, covariance, np.array([False, True, True]))
    x = (1 + mean[1:] + z[:, :2] * np.sqrt(np.diagonal(covariance)[1:])) / 2
    np.testing.assert_allclose(x, np.rint(x), atol=1e-4)
    for cell in np.ndindex(2, 2):
        wanted = np.prod(np.where(cell, share, 1 - share))
        assert weight[(np.rint(x) == cell).all(axis=1)].sum() == pytest.approx(wanted, abs=1e-4)


def test_padding_weighs_nothing() -> None:
    nodes = box_nodes(*CASES["1"])
    more = padded(nodes, 64)
    assert more.z.shape == (64, 1)
    np.testing.assert_array_equal(more.weight[len(nodes.weight) :], 0)
    np.testing.assert_array_equal(more.z[: len(nodes.z)], nodes.z)
