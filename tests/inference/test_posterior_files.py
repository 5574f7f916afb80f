"""A posterior file gives the posterior back, is read by other tools, and is whole or absent."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import noisewise as nw
from noisewise.artifact import ArgumentError
from noisewise.inference import Posterior, posterior_files
from noisewise.models.exponential_family.families import Binomial, Categorical, Normal, Poisson
from noisewise.models.exponential_family.family import Family
from noisewise.models.exponential_family.posterior import FamilyPosterior
from noisewise.models.linear_regression.posterior import RegressionPosterior


def made(kind: type[Posterior], names: tuple[str, ...], groups: int = 0, **words: Any) -> Any:
    """As a method would make it, without sampling."""
    rng = np.random.default_rng(len(names))
    lead = (groups,) if groups else ()
    draws = {name: rng.gamma(3.0, 1.0, (*lead, 4, 200)) for name in names}
    rhat = {name: np.asarray(rng.uniform(1, 1.02, lead)) for name in names}
    ess = {name: np.asarray(rng.uniform(300, 900, lead)) for name in names}
    said: dict[str, Any] = {"keys": None, "prior": "weak", "guarantees": ("1-privacy", "2-privacy")}
    return kind(draws, rhat, ess, "exact", **{**said, **words})


def regression(*, x: str = "dose", y: str = "effect", groups: int = 0) -> RegressionPosterior:
    keys = tuple(f"g{i}" for i in range(groups)) or None
    return made(RegressionPosterior, (x, "intercept", "sigma2"), groups, x=(x,), y=y, keys=keys)


def of_family(family: Family, names: tuple[str, ...], groups: int = 0) -> FamilyPosterior:
    keys = tuple(range(groups)) or None
    before = {name: np.random.default_rng(9).gamma(2.0, 1.0, 20_000) for name in names}

    def prior_draws(number: int) -> dict[str, np.ndarray]:
        return {name: values[:number] for name, values in before.items()}

    words = {"family": family, "prior_draws": prior_draws}
    return made(FamilyPosterior, names, groups, y="v", keys=keys, **words)


def categories() -> FamilyPosterior:
    family = Categorical(("a/b", "x", "chain"))
    post = of_family(family, family.names)
    total = sum(post.draws.values())
    return replace(post, draws={name: v / total for name, v in post.draws.items()})


def successes() -> FamilyPosterior:
    post = of_family(Binomial(7), ("p",))
    return replace(post, draws={"p": post.draws["p"] / (1 + post.draws["p"])})


def rates() -> FamilyPosterior:
    return of_family(Poisson(), ("rate",), groups=2)


MADE = {
    "one regression": regression,
    "two regressions": lambda: regression(groups=2),
    "odd names": lambda: regression(x="draw/draw", y="a/b [é]"),
    "a dimension's name": lambda: regression(x="draw"),
    "a known parameter": successes,
    "a normal column": lambda: of_family(Normal(1.5, 2.0), ("mean", "sigma2")),
    "categories": categories,
    "rates in groups": rates,
    "no draws of the prior": lambda: replace(rates(), prior_draws=None),
}


@pytest.mark.parametrize("case", MADE)
def test_there_and_back(case: str, tmp_path: Path) -> None:
    post: Any = MADE[case]()
    path = tmp_path / "post.nc"
    assert post.save(path) == path
    back: Any = nw.load_posterior(path)
    for name in ("draws", "rhat", "ess"):
        one, two = getattr(post, name), getattr(back, name)
        assert list(one) == list(two)
        for parameter in one:
            np.testing.assert_array_equal(one[parameter], two[parameter])
    for name in ("method", "x", "y", "keys", "prior", "status", "guarantees"):
        assert getattr(back, name) == getattr(post, name), name
    assert getattr(back, "family", None) == getattr(post, "family", None)
    pd.testing.assert_frame_equal(back.summary(), post.summary())
    point = dict.fromkeys(post.x, 0.2) or None
    np.testing.assert_array_equal(back.predict(point).draws, post.predict(point).draws)
    if post.prior_draws is None:
        assert back.prior_draws is None
    else:
        assert back.prior_draws is not None
        for name, values in post.prior_draws(20_000).items():
            np.testing.assert_array_equal(values, back.prior_draws(20_000)[name])
    assert os.listdir(tmp_path) == ["post.nc"]


def test_details_of_every_group_come_back(tmp_path: Path) -> None:
    told = {"tries": np.array([1, 3]), "seconds": (0.5, 1.5), "share": np.float64(0.25), "n": "no"}
    replace(regression(groups=2), details=told).save(tmp_path / "p.nc")
    loaded: Any = nw.load_posterior(tmp_path / "p.nc")
    back = loaded.details
    np.testing.assert_array_equal(back["tries"], told["tries"])
    assert (back["seconds"], back["share"], back["n"]) == ((0.5, 1.5), 0.25, "no")


def test_other_tools_read_it(tmp_path: Path) -> None:
    """ArviZ by its own reader, and HDF5 without any of these libraries."""
    import arviz
    import h5py

    post = regression(groups=2)
    path = post.save(tmp_path / "p.nc")
    data = arviz.from_netcdf(str(path))
    assert data.groups() == ["posterior", "sample_stats"]
    assert data.posterior["dose"].dims == ("chain", "draw", "group")
    assert data.posterior["group"].values.tolist() == ["g0", "g1"]
    assert data.posterior.attrs["method"] == "exact"
    summary: Any = arviz.summary(data, round_to="none")
    assert summary.loc["dose[g1]", "mean"] == pytest.approx(post.draws["dose"][1].mean())
    with h5py.File(path) as raw:
        assert raw["posterior/sigma2"].shape == (4, 200, 2)
    assert arviz.from_netcdf(str(rates().save(path))).prior["rate"].shape == (1, 20_000)


def rewritten(path: Path, **attributes: Any) -> Path:
    import h5py

    regression().save(path)
    with h5py.File(path, "a") as raw:
        for name, value in attributes.items():
            del raw["posterior"].attrs[name]
            if value is not None:
                raw["posterior"].attrs[name] = value
    return path


@pytest.mark.parametrize(
    ("attributes", "says"),
    [
        ({"noisewise_version": 3}, "has posterior format 3, this noisewise reads 2"),
        ({"noisewise_format": "other"}, "not written by Posterior.save"),
        ({"noisewise_format": None}, "open it with ArviZ instead"),
        ({"method": None}, "lacks part of a posterior"),
        ({"parameters": "["}, "changed or damaged"),
        ({"parameters": '["pir"]'}, "changed or damaged"),
    ],
)
def test_files_of_others(attributes: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=says):
        nw.load_posterior(rewritten(tmp_path / "p.nc", **attributes))


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="No such file"):
        nw.load_posterior(tmp_path / "absent.nc")
    (tmp_path / "text.nc").write_text("x,y\n")
    with pytest.raises(ArgumentError, match="not a netCDF file"):
        nw.load_posterior(tmp_path / "text.nc")
    with pytest.raises(ArgumentError, match="is a folder, and not one of summaries"):
        nw.load_posterior(tmp_path)


def test_stored_regressions_are_read_and_reported_without_jax(tmp_path: Path) -> None:
    """Importing it takes as long as all the rest."""
    path = regression().save(tmp_path / "p.nc")
    script = (
        "import sys; sys.modules['jax'] = None\n"
        "import noisewise as nw\n"
        f"post = nw.load({str(path)!r})\n"
        "print(post.summary(), post.predict({'dose': 1.0}).interval(0.9))\n"
        f"nw.report.save(post, {str(tmp_path / 'p.html')!r})\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "p.html").stat().st_size > 1000


def test_half_a_file_is_never_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An older file stays as it was, and no temporary one remains."""
    path = regression().save(tmp_path / "p.nc")
    before = path.read_bytes()

    def fails(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(ArgumentError, match=r"cannot write .*No space left"):
        rates().save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["p.nc"]
    monkeypatch.undo()
    with pytest.raises(ArgumentError, match=r"cannot write .*: No such file or directory$"):
        rates().save(tmp_path / "no" / "p.nc")


def test_names_a_variable_may_have() -> None:
    names = ("a/b", "a_b", "chain", "chain_", "x")
    assert posterior_files.variable_names(names) == ("a_b", "a_b_", "chain_", "chain__", "x")
