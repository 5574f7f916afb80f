"""Posteriors with two modes, where records outside the bounds were dropped: none is lost."""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import noisewise as nw
from noisewise import priors
from noisewise.models.exponential_family import (
    exact,
    families,
    normal_exact,
    parameter_grid,
)
from noisewise.models.exponential_family.family import Family
from noisewise.models.exponential_family.normal_likelihood import BoxInterval, NoisySums
from noisewise.models.exponential_family.posterior import two_modes
from noisewise.models.exponential_family.problem import FamilyProblem
from noisewise.models.exponential_family.truncation import Interval
from tests.reference import expfam_reference as reference

pytestmark = pytest.mark.xdist_group("expfam")


def dropped(family: Family, upper: float, z: list[float], n: int, scale: float) -> FamilyProblem:
    keys = tuple(range(len(z)))
    return FamilyProblem(
        family, Interval(0.0, upper, "drop"), "x", np.array(z)[:, None], np.full(len(z), float(n)),
        scale, "laplace", priors.Gamma(1, 1), keys,
    )  # fmt: skip


def log_gamma_1_1(rate: np.ndarray) -> np.ndarray:
    return -rate


def shares_above(given: FamilyProblem, split: float) -> np.ndarray:
    """The mass above a value of the parameter, on the grids of ``exact``."""
    shares = np.empty(len(given.z))
    for rows in exact.rows_by_size(given):
        for part, density in exact.densities(given, rows):
            width = np.diff(density.v)
            cell = width * (density.values[:, 1:] + density.values[:, :-1])
            above = density.v[:-1] > np.log(split)
            shares[part] = cell[:, above].sum(axis=1) / cell.sum(axis=1)
    return shares


@pytest.mark.parametrize("n", [2000, 20_000, 1_000_000])
@pytest.mark.parametrize("upper", [6.0, 20.0])
def test_both_modes_of_a_dropped_exponential_have_their_weights(upper: float, n: int) -> None:
    """Rates near 1 and near 1/13 or 1/100: within 0.005 of a plain quadrature."""
    moments = partial(reference.dropped_exponential_moments, upper=upper)
    z = float(n * moments(np.ones(1))[0][0] + upper)
    share = reference.share_above(0.5, moments, z, n, upper, log_gamma_1_1, (1e-4, 10.0))
    assert 0.1 < share < 0.99
    found = shares_above(dropped(families.Exponential(), upper, [z], n, upper), 0.5)
    assert abs(found[0] - share) < 0.005


def test_both_modes_of_a_dropped_poisson_have_their_weights() -> None:
    """Rates near 2 and near 8, of which 1 % holds: within 0.001 of a plain quadrature."""
    n, upper = 20_000, 6
    moments = partial(reference.dropped_poisson_moments, upper=upper)
    z = float(round(n * moments(np.array([2.0]))[0][0]))
    share = reference.share_above(4.0, moments, z, n, upper, log_gamma_1_1, (1e-2, 100.0))
    assert 0.001 < share < 0.1
    found = shares_above(dropped(families.Poisson(), upper, [z], n, upper), 4.0)
    assert abs(found[0] - share) < 0.001


def test_groups_share_grids_and_keep_both_modes() -> None:
    """Eleven groups whose narrow modes lie apart, some of them between those that are located."""
    n, upper = 20_000, 6.0
    moments = partial(reference.dropped_exponential_moments, upper=upper)
    rates = np.linspace(0.8, 1.3, 11)
    z = (n * moments(rates)[0]).tolist()
    found = shares_above(dropped(families.Exponential(), upper, z, n, upper), 0.4)
    for value, share in zip(z, found, strict=True):
        wanted = reference.share_above(
            0.4, moments, value, n, upper, log_gamma_1_1, (1e-3, 10.0)
        )  # fmt: skip
        assert abs(share - wanted) < 0.005


def test_a_hump_between_two_points_of_the_first_grid_is_found() -> None:
    """Poisson, only 9,000 to 10,000 kept: the expected sum is nothing at every point of it."""
    z, n = 9_400.0 * 500, 500
    given = FamilyProblem(
        families.Poisson(), Interval(9000.0, 10_000.0, "drop"), "x", np.array([[z]]),
        np.array([float(n)]), 1e4, "laplace", priors.Gamma(1, 1e-4), None,
    )  # fmt: skip
    span = parameter_grid.locate(given, z, float(n))
    assert any(low < np.log(9_400) < high for low, high in span.stretches)


def test_a_posterior_with_two_modes_says_so() -> None:
    """Two exponential rates fit; none does where records are clamped, and one mode is no two."""
    table = pd.DataFrame({"e": np.random.default_rng(0).exponential(1, 20_000)})
    cases: tuple[tuple[Literal["drop", "clamp"], int], ...] = (("drop", 1), ("clamp", 0))
    for outside, many in cases:
        release = nw.release.exponential_family(
            table, column="e", family="exponential", bounds=(0, 6), epsilon=1.0, outside=outside,
            neighbours="replace-one",
        )  # fmt: skip
        post = nw.infer(release, seed=0, draws=500)
        assert len(post.cautions) == many
        assert ("Two quite different values of rate fit the release (about 1 and 0.07" in
                post.status) == bool(many)  # fmt: skip


def test_modes_are_told_from_wide_and_skewed_laws() -> None:
    """Two separate clusters are two modes; normal, uniform, exponential and heavy tails are one."""
    rng = np.random.default_rng(1)
    both = np.concatenate([rng.normal(1, 0.01, 3000), rng.normal(0.07, 0.001, 1000)])
    larger, smaller = two_modes(both) or (0.0, 0.0)
    assert abs(larger - 1) < 0.01
    assert abs(smaller - 0.07) < 0.001
    one_mode = (rng.normal, rng.uniform, rng.exponential, rng.standard_cauchy)
    for law in (*(draw(size=4000) for draw in one_mode), np.exp(3 * rng.normal(size=4000))):
        assert two_modes(law) is None
    assert two_modes(np.concatenate([both[:3000], both[3000:3100]])) is None


def test_a_dropped_normal_s_grid_about_one_mode_misses_the_other() -> None:
    """200,000 of N(1, 2²) in (0, 6), in units of 3 about 3: another mode is 1/80 as high."""
    n = 200_000
    u = stats.norm(-2 / 3, 2 / 3).ppf((np.arange(n) + 0.5) / n)
    u = np.where(np.abs(u) <= 1, u, 0.0)
    cut = BoxInterval(-1.0, 1.0, False)
    given = NoisySums(np.array([u.sum(), (u**2).sum()]), float(n), 0.6, "laplace", cut, 16.0)
    prior = normal_exact.NormalBoxPrior(0.0, 0.1, 1.0, 0.1)
    first = prior.coordinates(-2 / 3, 4 / 9)
    frame = normal_exact._frame_about(given, prior, first[None])
    missed = normal_exact._missed_peaks(given, prior, frame)
    assert (np.abs(missed - first).max(axis=1) > 0.1).any()
