"""Files that version 0.1 wrote still load, and say what they said then."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import noisewise as nw
from noisewise.artifact import PartitionRelease
from noisewise.simulate import load_check

FOLDER = Path(__file__).parents[1] / "fixtures" / "version_0_1"
NUMBERS = json.loads((FOLDER / "numbers.json").read_text())
RELEASES = [
    p.name
    for p in sorted(FOLDER.glob("*.json"))
    if '"format": "noisewise-release"' in p.read_text()[:100]
]


@pytest.mark.parametrize("name", RELEASES)
def test_a_release(name: str) -> None:
    release = nw.load(FOLDER / name)
    assert isinstance(release, nw.Release)
    assert release.software.startswith("noisewise 0.1.0")
    assert len(release.table()) > 0
    assert nw.Release.from_json(release.to_json()) == release


def test_there_are_releases_of_every_model() -> None:
    families = {nw.Release.load(FOLDER / name).family for name in RELEASES}
    later = {"logistic-regression", "poisson-regression"}
    assert families == set(nw.models.names()) - later


@pytest.mark.parametrize("name", ["linear-groups", "normal", "poisson"])
def test_a_posterior(name: str) -> None:
    post = nw.load(FOLDER / f"{name}.nc")
    assert isinstance(post, nw.Posterior)
    table = post.summary()
    for index, numbers in NUMBERS[f"{name}/exact"].items():
        (row,) = [table.loc[i] for i in table.index if str(i) == index]
        np.testing.assert_allclose(row[["mean", "sd", "lower", "upper"]], numbers, rtol=1e-12)
    point = dict.fromkeys(post.covariates, 40.0) or None
    assert np.isfinite(post.predict(point).interval(0.9)).all()
    assert post.releases[0] == nw.Release.load(FOLDER / f"{name}.json")


def test_answers_by_partitions() -> None:
    one, two = (nw.load(FOLDER / f"{name}.json") for name in ("probability", "quantile"))
    assert isinstance(one, PartitionRelease)
    assert isinstance(two, PartitionRelease)
    np.testing.assert_allclose(one.probability, NUMBERS["probability"]["values"], rtol=1e-12)
    np.testing.assert_allclose(two.quantile, NUMBERS["quantile"]["values"][0], rtol=1e-12)


def test_a_check() -> None:
    kept = load_check(FOLDER / "check-poisson.json")
    assert {m.method: list(m.coverage) for m in kept.methods} == NUMBERS["check-poisson"]


def test_graphical_results() -> None:
    model, draws = (
        nw.load(FOLDER / name) for name in ("graphical-cgm.json", "graphical-bayes.npz")
    )
    assert isinstance(model, nw.GraphicalModel)
    assert isinstance(draws, nw.GraphicalPosterior)
    for result, entry in ((model, "graphical/cgm"), (draws, "graphical/bayes")):
        found = np.asarray(result.marginal(("a", "b"))).ravel()
        np.testing.assert_allclose(found, NUMBERS[entry]["a,b"], rtol=1e-9)
