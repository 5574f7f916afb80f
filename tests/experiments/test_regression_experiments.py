"""Pieces of the regression experiments against plain oracles."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from experiments.regression_paper.measures import growth, measures
from experiments.regression_paper.simulate import EXACT, as_printed, records, simulate, tight
from experiments.regression_paper.tables import WAYS, release, sums
from experiments.thesis_regression import casestudy, oi
from experiments.thesis_regression.tracts import AT, Tracts, filtered, generated, loaded
from noisewise.models.linear_regression import naive


def test_sensitivities_of_one_covariate() -> None:
    """The paper's 3.1 and 3.3.4 with widths of 2; ours by errata E1."""
    assert (as_printed(1).gram, as_printed(1).monomials) == (24, 80)
    assert tight(1).gram == pytest.approx(16 / 3)
    assert tight(1).monomials < as_printed(1).monomials


def test_data_do_not_depend_on_the_noise() -> None:
    exact, truth = simulate(3, 20, 0.1, 2, seed=5, sensitivity=EXACT)
    noisy, same = simulate(3, 20, 0.1, 2, seed=5, sensitivity=as_printed(2))
    np.testing.assert_array_equal(truth, same)
    x, y, _ = records(np.random.default_rng([5, 3, 20, 100, 2]), 3, 20, 2)
    np.testing.assert_allclose(exact.z[:, 0], (x[..., 0] ** 2).sum(axis=1))
    np.testing.assert_allclose(exact.z[:, -1], y.sum(axis=1))
    assert noisy.noise_scale == as_printed(2).gram / 0.1
    assert (noisy.z != exact.z).all()


def people(seed: int = 0, tracts: int = 6) -> Tracts:
    return filtered(generated(tracts, seed))


def test_both_ways_say_the_same_of_exact_sums() -> None:
    """Coordinates differ, the posterior in the units of the ranks does not: to 1 % of its sd."""
    known = people()
    means = []
    for way in WAYS.values():
        exact = sums(way.boxed(known.pir), way.boxed(known.kir), known.tract, len(known.names))
        rng = np.random.default_rng(0)
        given = release(
            rng, way, exact, 1.0, casestudy.RESPONSE, casestudy.COVARIATES, private=False
        )
        assert given.noise_scale == 0
        post = naive.run(given, 1, 2, 2000)
        means.append(post.draws["intercept"].mean(axis=(1, 2)))
        spread = post.draws["intercept"].std(axis=(1, 2))
    # Means of 4000 draws each: false alarm below 1e-5 over all tracts.
    assert (np.abs(means[0] - means[1]) < 5 * np.sqrt(2 / 4000) * spread).all()


def test_sums_and_least_squares_are_what_a_loop_gives() -> None:
    known = people(1)
    found = sums(known.pir, known.kir, known.tract, len(known.names))
    line = oi.predictions(found.gram, found.n)
    for number in range(len(known.names)):
        pir, kir = known.people(number)
        assert found.n[number] == len(pir)
        np.testing.assert_allclose(found.powers[number], [(pir**p).sum() for p in (1, 2, 3, 4)])
        assert line[number] == pytest.approx(np.polyval(np.polyfit(pir, kir, 1), AT))


def test_generated_tracts_have_the_published_form() -> None:
    """363 of 3108 left out; a binomial of that share stays within 0.094 … 0.141 but for 1e-4."""
    every = generated(3108, 7)
    kept = filtered(every)
    assert (every.sizes.min(), every.sizes.max()) == (20, 446)
    assert 0.094 < 1 - len(kept.names) / 3108 < 0.141
    assert kept.kir.min() >= 0
    assert kept.kir.max() <= 1
    medians = pd.Series(kept.kir).groupby(kept.tract).median()
    assert medians.between(0.1, 0.9).all()


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    table = pd.DataFrame({"tract": ["b", "a", "b"], "pir": [0.1, 0.2, 0.3], "kir": [0, 0.5, 1]})
    path = tmp_path / "mine.csv"
    table.to_csv(path, index=False)
    known = loaded(path)
    assert known.names.tolist() == ["a", "b"]
    assert known.sizes.tolist() == [1, 2]
    table.drop(columns="kir").to_csv(path, index=False)
    with pytest.raises(ValueError, match=r"mine\.csv: has no column 'kir'"):
        loaded(path)
    table.assign(kir=2).to_csv(path, index=False)
    with pytest.raises(ValueError, match="from 0 to 1"):
        loaded(path)


def test_measures_of_a_made_up_study() -> None:
    rows = [
        {"method": m, "sensitivity": "ours", "n": n, "epsilon": 0.1, "kind": k, "ks": ks,
         "beyond": ks - 0.05, "p_value": p, "coverage": 0.95, "mmd": ks, "ess": 100.0 * n,
         "seconds": s}
        for m, ks, p, s in (("naive", 0.4, 1e-9, 1.0), ("exact", 0.1, 0.02, 2.0))
        for n in (10, 20)
        for k in ("slope", "variance")
    ]  # fmt: skip
    found = measures(pd.DataFrame(rows))
    assert found["KS beyond chance: exact, ours"] == pytest.approx(0.05)
    assert found["largest KS over naive's: exact, ours"] == pytest.approx(0.25)
    assert found["smallest p, Bonferroni: exact, ours"] == pytest.approx(0.08)
    assert found["largest MMD over naive's: exact, ours"] == pytest.approx(0.25)
    assert growth(pd.DataFrame(rows))["growth with n: exact"] == 1.0
