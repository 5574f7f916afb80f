"""Releases by a formula with factors: how sums are read, the density, and a whole posterior."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import noisewise as nw
from noisewise.models.generalized_linear.cell_nodes import cell_nodes, fitted_cells, pair_tables
from noisewise.models.generalized_linear.clt_with_factors import (
    density_data,
    layout_of,
    nodes_of,
    start,
)
from noisewise.models.generalized_linear.density_with_factors import residuals
from noisewise.models.generalized_linear.posterior import GeneralizedPosterior
from noisewise.models.generalized_linear.problem_with_factors import (
    FactorsProblem,
    problem_with_factors,
)
from tests.reference import generalized_reference as reference

LEVELS = {"sex": ["f", "m"], "region": ["n", "s", "w"], "smokes": ["no", "yes"]}
BOUNDS = {"age": (20, 80), "bmi": (15, 45), "ill": (0, 1)}


def people(n: int = 3000, seed: int = 0) -> pd.DataFrame:
    """Records whose log odds of illness depend on age, region and sex."""
    rng = np.random.default_rng(seed)
    region = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    age = np.clip(rng.normal(50 + 3 * region, 11, n), 20, 80)
    sex = rng.random(n) < 0.4 + 0.1 * region
    odds = 0.04 * (age - 50) + np.array([0.0, 0.7, -0.5])[region] + 0.5 * sex - 0.6
    return pd.DataFrame({
        "age": age, "bmi": np.clip(rng.normal(28, 4, n) + 0.05 * age, 15, 45),
        "sex": np.where(sex, "m", "f"), "region": np.array(["n", "s", "w"])[region],
        "smokes": np.where(rng.random(n) < 0.3, "yes", "no"),
        "ill": (rng.random(n) < 1 / (1 + np.exp(-odds))) * 1.0,
    })  # fmt: skip


def released(formula: str, epsilon: float = 2.0, n: int = 3000) -> nw.Release:
    """A release of people by a formula."""
    named = [c for c in LEVELS if c in formula]
    limits = {c: b for c, b in BOUNDS.items() if c in formula}
    return nw.release.linear_regression(
        people(n), formula=formula, bounds=limits, levels={c: LEVELS[c] for c in named},
        epsilon=epsilon,
    )  # fmt: skip


CASES = {
    "numbers and factors": ("ill ~ age + C(sex) + bmi + C(region)", None),
    "one factor": ("ill ~ C(region)", None),
    "three factors": ("ill ~ age + C(sex) + C(region) + C(smokes)", None),
    "fewer terms": ("ill ~ age + C(sex) + bmi + C(region)", "ill ~ bmi + C(region)"),
    "no factor of the design": ("ill ~ age + C(sex) + bmi + C(region)", "ill ~ age"),
    "another response": ("bmi ~ age + ill + C(region)", "ill ~ age + C(region)"),
    "a factor as response": ("age ~ bmi + C(smokes) + C(sex)", "smokes ~ bmi + C(sex)"),
    "the only factor": ("age ~ bmi + C(smokes)", "smokes ~ bmi + age"),
    "another reference": ("ill ~ C(region) + age", "ill ~ age + C(region, contr.treatment('s'))"),
    "powers": ("ill ~ age + I(age**2) + C(sex)", None),
    "no factors at all": ("ill ~ age + I(age**2)", None),
}


@pytest.mark.parametrize("case", CASES)
def test_sums_follow_from_the_atoms(case: str) -> None:
    """What was released, but for the noise, against sums over the records themselves."""
    owner, asked = CASES[case]
    given = problem_with_factors(released(owner, epsilon=1e7), "logistic", asked)
    table = people()
    y = table[given.y].to_numpy()
    y = (y == given.event) * 1.0 if given.event is not None else y
    design = np.ones((len(table), len(given.design)))
    for k, column in enumerate(given.design):
        for name in column.numeric:
            design[:, k] *= table[name].to_numpy()
        for factor, code in column.levels:
            design[:, k] *= table[factor] == LEVELS[factor][code]
    atoms = design @ np.linalg.inv(given.change)
    assert np.abs(atoms).max() < 1 + 1e-9  # All in the box, constant and indicators among them.
    wanted = given.sums.of_covariates @ atoms.sum(axis=0) + given.sums.of_response @ (y @ atoms)
    np.testing.assert_allclose(given.sums.cells @ given.response[0], wanted, atol=0.05)
    assert given.total[0] == pytest.approx(y.sum(), abs=0.1)
    assert len(wanted) >= len(given.design)


def test_the_density_of_the_response_is_the_formulas() -> None:
    """Against SciPy's normal density with moments summed over the nodes one by one."""
    given = problem_with_factors(released("ill ~ age + C(region)", epsilon=0.5), "logistic")
    second = np.array(
        [[1, 0.3, 0.2, 0.1], [0.3, 0.3, 0, 0.05], [0.2, 0, 0.2, 0.01], [0.1, 0.05, 0.01, 0.2]]
    )
    nodes = nodes_of(given, second)
    data, layout = density_data(given, nodes), layout_of(given, nodes=True)
    v = jnp.asarray(start(np.random.default_rng(3), given, layout))
    p, _, off, determinant = residuals(v, data, layout, jnp.ones(()))
    z, weight = np.asarray(nodes.z).T, np.asarray(nodes.weight)
    root, theta = np.asarray(p.root), np.asarray(p.theta)
    atoms = np.column_stack([np.ones(len(z)), z]) @ root.T
    h = reference.mean_response("logistic", float(p.level) + z @ np.asarray(p.white))
    m, spread = reference.projected(z, weight, h, h)
    np.testing.assert_allclose(atoms @ theta, float(p.level) + z @ np.asarray(p.white), atol=1e-9)
    n, wide = float(p.n), given.sums.of_response @ root
    mean = n * (given.sums.of_covariates @ root[:, 0] + wide @ m)
    noise = 2 * given.noise_scale**2 * np.exp(np.asarray(p.eta))
    covariance = n * wide @ spread @ wide.T + given.sums.cells @ np.diag(noise) @ given.sums.cells.T
    wanted = stats.multivariate_normal(mean, covariance).logpdf(
        given.sums.cells @ given.response[0]
    )
    found = -0.5 * float(off @ off) - 0.5 * float(determinant) - 0.5 * len(mean) * np.log(2 * np.pi)
    assert found == pytest.approx(wanted, abs=1e-6)


def moments_of(columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return columns.mean(axis=0), np.cov(columns.T, ddof=0)


def test_cells_are_those_of_the_tables() -> None:
    """Two factors: their table; three: the pairs' tables, and levels of one factor never meet."""
    rng = np.random.default_rng(1)
    a = rng.choice(3, 20_000, p=[0.5, 0.3, 0.2])
    b = (rng.random(20_000) < 0.2 + 0.2 * a).astype(int)
    c = (rng.random(20_000) < 0.3 + 0.3 * b).astype(int)
    x = np.column_stack([a == 1, a == 2, b, c, np.clip(rng.normal(0.2 * b, 0.3), -1, 1)]) * 1.0
    mean, covariance = moments_of(x)
    sizes = (3, 2, 2)
    cells = fitted_cells(pair_tables(mean[:4], covariance[:4, :4], sizes), sizes).reshape(sizes)
    for axes, own in (((2,), (a, b)), ((1,), (a, c)), ((0,), (b, c))):
        counted = np.zeros([sizes[f] for f in range(3) if f not in axes])
        np.add.at(counted, own, 1 / len(a))
        np.testing.assert_allclose(cells.sum(axis=axes), counted, atol=1e-6)
    nodes = cell_nodes(mean, covariance, sizes)
    np.testing.assert_allclose(nodes.weight @ nodes.z, 0, atol=1e-8)
    np.testing.assert_allclose((nodes.z.T * nodes.weight) @ nodes.z, np.eye(5), atol=1e-6)
    back = mean + nodes.z @ np.linalg.cholesky(covariance).T
    assert np.abs(back[:, 0] * back[:, 1]).max() < 0.02
    assert np.minimum(np.abs(back[:, :4]), np.abs(back[:, :4] - 1)).max() < 0.02


@pytest.mark.parametrize("sizes", [(9, 8, 5), (20, 20, 20)])
def test_many_cells_are_drawn(sizes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(2)
    levels = [rng.integers(0, c, 50_000) for c in sizes]
    columns = [
        (own[:, None] == np.arange(1, c)) * 1.0 for own, c in zip(levels, sizes, strict=True)
    ]
    x = np.column_stack([*columns, rng.uniform(-1, 1, 50_000)])
    nodes = cell_nodes(*moments_of(x), sizes)
    assert len(nodes.weight) <= 512
    np.testing.assert_allclose((nodes.z.T * nodes.weight) @ nodes.z, np.eye(x.shape[1]), atol=1e-6)


@pytest.fixture(scope="module")
def posterior() -> GeneralizedPosterior:
    given = released("ill ~ age + C(region)", epsilon=20.0)
    return cast(GeneralizedPosterior, nw.infer(given, model="logistic", draws=250, seed=1))


def test_little_noise_finds_maximum_likelihood(posterior: GeneralizedPosterior) -> None:
    table = people()
    x = np.column_stack([table.age, table.region == "s", table.region == "w"]).astype(float)
    best, deviation = reference.maximum_likelihood("logistic", x, table.ill.to_numpy())
    assert list(posterior.draws) == ["age", "C(region)[T.s]", "C(region)[T.w]", "intercept"]
    for k, drawn in enumerate(posterior.draws.values()):
        assert abs(drawn.mean() - best[k]) < 0.35 * deviation[k]
        assert 0.85 < drawn.std() / deviation[k] < 1.3


def test_levels_in_predictions_and_effects(posterior: GeneralizedPosterior) -> None:
    draws = posterior.draws
    at = posterior.predict({"age": 60, "region": "w"})
    t = draws["intercept"] + 60 * draws["age"] + draws["C(region)[T.w]"]
    np.testing.assert_allclose(at.expected, 1 / (1 + np.exp(-t)))
    with pytest.raises(nw.ArgumentError, match=r"new_x\['region'\]: must be one of 'n', 's', 'w'"):
        posterior.predict({"age": 60, "region": "x"})
    table, effects = people(), posterior.effects()
    theta = {c: float(np.median(d)) for c, d in draws.items()}
    base = theta["intercept"] + theta["age"] * table.age.to_numpy()
    moved = [1 / (1 + np.exp(-(base + e))) for e in (theta["C(region)[T.s]"], 0.0)]
    wanted = np.mean(moved[0] - moved[1])
    assert effects.loc["C(region)[T.s]", "average_effect"] == pytest.approx(wanted, abs=0.01)
    assert "region" in posterior.title


def test_another_reference_has_the_same_fit(
    posterior: GeneralizedPosterior, tmp_path: Path
) -> None:
    other = posterior.with_reference(region="w")
    record: dict[str, float | str | int] = {"age": 33, "region": "s"}
    np.testing.assert_allclose(other.predict(record).expected, posterior.predict(record).expected)
    nodes, before = other.moments.nodes(0), posterior.moments.nodes(0)
    np.testing.assert_allclose(nodes.weight, before.weight)
    np.testing.assert_allclose(nodes.z[:, 0], before.z[:, 0], atol=1e-8)
    other.save(tmp_path / "posterior.nc")
    read = cast(GeneralizedPosterior, nw.load(tmp_path / "posterior.nc"))
    assert read.design == other.design
    pd.testing.assert_frame_equal(read.effects(), other.effects())
    assert "held at their first levels" in nw.report.render(read)


def test_no_noise_leaves_about_the_deviations_seen(posterior: GeneralizedPosterior) -> None:
    alone = posterior.without_noise
    assert alone is not None
    for name, deviation in alone().items():
        assert 0.8 < posterior.draws[name].std() / float(deviation) < 1.4


def test_the_prior_knows_no_reference() -> None:
    """Draws of the prior: every pair of levels differs alike, and each term weighs the same."""
    given = problem_with_factors(released("ill ~ age + C(region)"), "logistic")
    swapped = problem_with_factors(
        released("ill ~ age + C(region)"), "logistic", "ill ~ age + C(region, contr.treatment('w'))"
    )
    assert isinstance(given, FactorsProblem)
    assert given.terms == swapped.terms == 2
    assert replace(given, law="normal").slope_sd == pytest.approx(2.5 / np.sqrt(2))


@pytest.mark.parametrize(
    ("owner", "asked", "words"),
    [
        ("ill ~ age * C(sex)", None, "whose factors do not interact"),
        ("ill ~ age + C(sex)", "ill ~ age:C(sex)", "is an interaction with a factor"),
        ("ill ~ age + C(sex)", "ill ~ bmi", "bmi is no covariate here; there are age, ill, sex"),
        ("ill ~ age + C(region)", "region ~ age", "'region' is a factor of 3 levels"),
        ("ill ~ age + C(sex)", "age ~ ill", "needs a response that is 0 or 1"),
        ("ill ~ age + C(sex)", "zeal ~ age", "'zeal' was not released"),
    ],
)
def test_what_cannot_be_asked(owner: str, asked: str | None, words: str) -> None:
    given = released(owner, epsilon=50.0, n=400)
    with pytest.raises(nw.ArgumentError, match=words):
        nw.infer(given, model="logistic", formula=asked) if asked else nw.infer(
            given, model="logistic"
        )


def test_a_response_between_the_bounds_is_refused() -> None:
    table = people(400).assign(ill=0.5)
    given = nw.release.linear_regression(
        table, formula="ill ~ age + C(sex)", bounds={"ill": (0, 1), "age": (20, 80)},
        levels={"sex": LEVELS["sex"]}, epsilon=20.0,
    )  # fmt: skip
    with pytest.raises(nw.ArgumentError, match="'ill' is not 0 or 1 in every record"):
        nw.infer(given, model="logistic")


def test_simulations_are_refused() -> None:
    given = released("ill ~ age + C(sex)", n=400)
    with pytest.raises(nw.ArgumentError, match="with factors are not simulated"):
        nw.check(given, model="logistic")
