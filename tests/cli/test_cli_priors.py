"""Priors from a small file: ``--prior`` of infer, check and plan."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import noisewise as nw
from noisewise.priors.prior_files import FAMILIES, read_prior

Run = Callable[..., Any]

RESPONSE = {
    "family": "NormalInverseGamma",
    "mean": [0, 0.5],
    "precision": [[1, 0], [0, 1]],
    "shape": 5,
    "rate": 0.2,
}
COVARIATES = {
    "family": "NormalInverseWishart", "mean": [0.5], "kappa": 1, "scale": [[0.1]], "df": 5,
}  # fmt: skip
GAMMA = {"family": "Gamma", "shape": 20, "rate": 10}


@pytest.fixture
def prior(tmp_path: Path) -> Callable[[object], Path]:
    def write(content: object) -> Path:
        path = tmp_path / "prior.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return write


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    frame = pd.DataFrame({"visits": [0, 2, 1, 4, 3] * 20})
    return nw.release.exponential_family(
        frame, column="visits", family="poisson", bounds=(0, 20), epsilon=1.0
    ).save(tmp_path / "visits.json")


def test_every_prior_of_the_package_can_be_written() -> None:
    assert set(FAMILIES) == set(nw.priors.__all__)


def test_one_prior(prior: Callable[[object], Path]) -> None:
    assert read_prior(prior(GAMMA)) == nw.priors.Gamma(20, 10)
    assert read_prior(prior({"family": "Beta"})) == nw.priors.Beta(1, 1)
    dirichlet = read_prior(prior({"family": "Dirichlet", "alpha": [1, 2, 3]}))
    assert isinstance(dirichlet, nw.priors.Dirichlet)
    assert dirichlet.alpha.tolist() == [1, 2, 3]


def test_several_priors_by_name(prior: Callable[[object], Path]) -> None:
    both = read_prior(prior({"response": RESPONSE, "covariates": COVARIATES}))
    assert isinstance(both, dict)
    assert isinstance(both["response"], nw.priors.NormalInverseGamma)
    assert isinstance(both["covariates"], nw.priors.NormalInverseWishart)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "is no JSON: "),
        ("[]", "must be an object such as"),
        ({"response": 3}, 'response: must be an object with a "family": Beta, '),
        ({"family": "Gama"}, "family: there is no 'Gama'; there are Beta, CovariateMoments, "),
        ({"family": "Gamma", "shape": 1}, "Gamma needs 'rate'; it takes shape, rate"),
        ({**GAMMA, "scale": 1}, "Gamma has no 'scale'; it takes shape, rate"),
        ({**GAMMA, "rate": "1"}, "rate: must be a number, or a list of numbers, not '1'"),
        ({**GAMMA, "rate": True}, "rate: must be a number, or a list of numbers, not True"),
        ({**GAMMA, "rate": -1}, "rate: must be above zero, not -1.0"),
        ({"response": {**RESPONSE, "precision": [[1]]}}, "response: precision: must be 2 × 2"),
        ('{"family": "Gamma", "shape": NaN, "rate": 1}', "NaN is no finite number"),
        ('{"family": "Gamma", "shape": 1, "shape": 2, "rate": 1}', "'shape' is given twice"),
    ],
)
def test_bad_files(
    content: object, says: str, prior: Callable[[object], Path], noisewise: Run, visits: Path
) -> None:
    path = prior(content)
    seen = noisewise("infer", visits, "--prior", path, "--out", visits.with_suffix(".nc"))
    assert (seen.code, seen.out) == (1, "")
    assert seen.err.startswith(f"error: --prior: '{path}'")
    assert says in seen.err


def test_a_file_that_is_not_there(noisewise: Run, visits: Path) -> None:
    seen = noisewise("infer", visits, "--prior", "none.json", "--out", visits.with_suffix(".nc"))
    assert "--prior: 'none.json' cannot be read: No such file" in seen.err


def test_infer_with_a_prior(
    noisewise: Run, visits: Path, prior: Callable[[object], Path], tmp_path: Path
) -> None:
    out = tmp_path / "p.nc"
    seen = noisewise("infer", visits, "--prior", prior(GAMMA), "--out", out)
    assert seen.code == 0, seen.err
    expected = nw.infer(nw.Release.load(visits), prior=nw.priors.Gamma(20, 10))
    kept = nw.load_posterior(out)
    np.testing.assert_array_equal(kept.draws["rate"], expected.draws["rate"])


def test_the_wrong_prior_for_the_model(
    noisewise: Run, visits: Path, prior: Callable[[object], Path], tmp_path: Path
) -> None:
    seen = noisewise("infer", visits, "--prior", prior({"family": "Beta"}), "-o", tmp_path / "p.nc")
    assert seen.code == 1
    assert seen.err.startswith("error: --prior: ")


def test_check_and_plan_with_a_prior(
    noisewise: Run, visits: Path, prior: Callable[[object], Path]
) -> None:
    path = prior(GAMMA)
    words = ("--method", "naive", "--trials", "50", "--json")
    with_prior = json.loads(noisewise("check", visits, "--prior", path, *words).out)
    assert with_prior != json.loads(noisewise("check", visits, *words).out)
    plan = ("plan", "exponential-family", "--family", "poisson", "--bounds", "0,20", "--n", "20")
    more = ("--epsilon", "1", "--trials", "10", "--method", "naive", "--json")
    narrow = json.loads(noisewise(*plan, *more, "--prior", path).out)["rows"][0]["width"]
    wide = json.loads(noisewise(*plan, *more).out)["rows"][0]["width"]
    assert narrow < wide
