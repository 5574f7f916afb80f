"""A model that no file in ``src/`` knows goes all the way: release, file, infer, check, plan,
predict, report and the command line.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import noisewise as nw
from noisewise.artifact import ArgumentError, Release, ReleaseError

ROOT = Path(__file__).parents[2]
BOUNDS = {"before": (0.0, 10.0), "after": (-5.0, 5.0)}


@pytest.fixture(autouse=True)
def registered() -> Iterator[Any]:
    """Register the model for one test; other tests must not see it."""
    package = importlib.import_module("tests.toy_model")
    if "two-means" not in nw.models.names():
        nw.models.register(package.TwoMeans)
    yield package
    nw.models.unregister("two-means")


def people(n: int = 2000) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame({"before": rng.normal(4, 1.5, n), "after": rng.normal(1, 1.5, n),
                         "site": rng.choice(["n", "s"], n)})  # fmt: skip


def released(**words: Any) -> Release:
    return (
        nw.models.find("two-means")
        .owner()
        .release(people(), columns=["before", "after"], bounds=BOUNDS, epsilon=2.0, **words)
    )


def test_release_file_infer_predict_report(tmp_path: Path) -> None:
    release = nw.Release.load(released().save(tmp_path / "r.json"))
    assert release.family == "two-means"
    post = nw.infer(release, seed=1)
    assert post.converged
    for column, mean in people()[["before", "after"]].mean().items():
        row = post.summary().loc[str(column)]
        assert row["lower"] < mean < row["upper"]
    back = nw.load(post.save(tmp_path / "p.nc"))
    assert isinstance(back, nw.Posterior)
    assert back.title == "means of before and after"
    np.testing.assert_array_equal(back.draws["after"], post.draws["after"])
    low, high = back.predict().interval(0.9)
    assert low < 3 < high
    page = nw.report.render(back)
    assert "before minus after of a new record" in page
    assert "2-differential privacy" in page


def test_groups_are_an_axis(tmp_path: Path) -> None:
    post = nw.infer(released(groups={"site": ["n", "s"]}, neighbours="add-remove"))
    assert post.draws["before"].shape[0] == 2
    assert list(post.summary().index.names) == ["group", "parameter"]


def test_check_and_plan() -> None:
    blank = nw.models.find("two-means").owner().release

    def settings(epsilon: float) -> Release:
        source = nw.release.Blank(500)
        return blank(source, columns=["before", "after"], bounds=BOUNDS, epsilon=epsilon)

    checked = nw.check(settings(1.0), trials=200, seed=3)
    assert checked.recommended == "exact"
    plan = nw.plan(settings, 500, [0.5, 2.0], trials=20, guesses={"before": 4.0})
    assert plan.row(2.0, "exact", "before").width < plan.row(0.5, "exact", "before").width
    assert "means of before and after" in nw.report.render(plan)


def test_the_limit_without_noise() -> None:
    """At a huge epsilon the posterior is the textbook's normal one."""
    release = (
        nw.models.find("two-means")
        .owner()
        .release(people(), columns=["before", "after"], bounds=BOUNDS, epsilon=1e5)
    )
    row = nw.infer(release, seed=2, draws=4000).summary().loc["before"]
    assert row["sd"] == pytest.approx(5 * 0.3 / np.sqrt(2000), rel=0.03)


def test_the_command_line(tmp_path: Path) -> None:
    """An installed package declares the model as an entry point; nothing else is said."""
    declared = tmp_path / "toy_model-1.dist-info"
    declared.mkdir()
    (declared / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-model\nVersion: 1\n")
    (declared / "entry_points.txt").write_text("[noisewise.models]\ntwo-means = tests.toy_model\n")
    people().to_csv(tmp_path / "people.csv", index=False)

    words = ("--columns", "before", "--columns", "after", "--bounds", "before=0,10",
             "--bounds", "after=-5,5")  # fmt: skip
    commands = [
        ("release", "two-means", "people.csv", *words, "--epsilon", "2", "--out", "r.json"),
        ("inspect", "r.json"),
        ("infer", "r.json", "--out", "p.nc"),
        ("predict", "p.nc", "--json"),
        ("report", "p.nc", "--out", "page.html"),
        ("plan", "two-means", *words, "--n", "500", "--epsilon", "1,2", "--trials", "10"),
        ("check", "r.json", "--trials", "50"),
    ]
    paths = [str(tmp_path), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    ended = subprocess.run(
        [sys.executable, "-c", ONE_AFTER_THE_OTHER, json.dumps(commands)], cwd=tmp_path,
        capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    _, inspected, inferred, predicted, _, planned, checked = json.loads(ended.stdout)
    assert "two-means" in inspected
    assert "means of before and after" in inferred
    (row,) = json.loads(predicted)
    assert row["lower"] < 3 < row["upper"]
    assert "before minus after" in (tmp_path / "page.html").read_text()
    assert "means of before and after" in planned
    assert "Use exact" in checked


ONE_AFTER_THE_OTHER = """
import contextlib, io, json, sys
from noisewise.cli.main import run
said = []
for words in json.loads(sys.argv[1]):
    sys.argv = ["noisewise", *words]
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            run()
        except SystemExit as ended:
            if ended.code:
                sys.exit(ended.code)
    said.append(out.getvalue())
print(json.dumps(said))
"""
"""A process of its own that runs commands: the package's entry points are read when it starts."""


def test_a_model_registered_twice(registered: Any) -> None:
    with pytest.raises(ArgumentError, match="there is a model 'two-means' already; there are lin"):
        nw.models.register(registered.TwoMeans)


def test_a_model_that_lacks_parts() -> None:
    class Half(nw.models.Model):
        name = "half"

        def owner(self) -> nw.models.Owner:
            raise NotImplementedError

    with pytest.raises(ArgumentError, match="Half lacks statistics, analyst, simulator, page; a m"):
        nw.models.register(Half)
    with pytest.raises(ArgumentError, match=r"must be a subclass of noisewise\.models\.Model"):
        nw.models.register(int)  # type: ignore[type-var]


def test_a_folder_that_lacks_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts are looked for beside the description; those that are absent are named at once."""
    folder = tmp_path / "half_model"
    folder.mkdir()
    (folder / "release.py").write_text("OWNER = None\n")
    (folder / "__init__.py").write_text(
        "import noisewise as nw\n\n"
        "class Half(nw.models.Model):\n    name, statistics = 'half', ('gram',)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    half = importlib.import_module("half_model").Half
    with pytest.raises(ArgumentError, match="Half lacks analyst, simulator, page; a model has na"):
        nw.models.register(half)
    assert half().owner() is None


def test_a_release_of_an_unknown_model(tmp_path: Path) -> None:
    path = released().save(tmp_path / "r.json")
    nw.models.unregister("two-means")
    with pytest.raises(ReleaseError, match=r"family must be one of linear.*two-means"):
        nw.Release.load(path)
    with pytest.raises(ArgumentError, match="there is no 'two-means'; there are linear-regression"):
        nw.models.find("two-means")


def test_a_method_and_an_option_the_model_has_not() -> None:
    release = released()
    with pytest.raises(ArgumentError, match="method: must be one of exact, not 'gibbs'"):
        nw.infer(release, "gibbs")
    with pytest.raises(ArgumentError, match=r"lam: is no option of this model .*; it takes spread"):
        nw.infer(release, lam=1.0)


def test_check_and_plan_take_the_options_of_infer() -> None:
    release = (
        nw.models.find("two-means")
        .owner()
        .release(nw.release.Blank(500), columns=["before", "after"], bounds=BOUNDS, epsilon=5.0)
    )
    narrow, wide = (nw.check(release, trials=50, seed=1, spread=s) for s in (0.05, 0.9))
    assert narrow.of("exact").width[0] < wide.of("exact").width[0] / 3
    with pytest.raises(ArgumentError, match="lam: is no option of this model"):
        nw.check(release, lam=1.0)


def test_what_comes_with_noisewise_stays() -> None:
    from noisewise.artifact import unregister_statistic
    from noisewise.privacy.statistic_privacy import unregister_privacy

    with pytest.raises(ArgumentError, match="'linear-regression' comes with noisewise and stays"):
        nw.models.unregister("linear-regression")
    with pytest.raises(ReleaseError, match="'gram' comes with noisewise and stays"):
        unregister_statistic("gram")
    import noisewise.privacy  # noqa: F401  # registers the built-in parts

    with pytest.raises(ArgumentError, match="its proved bound stays"):
        unregister_privacy("gram")


def test_a_broken_package_of_somebody_else_is_left_out(tmp_path: Path) -> None:
    declared = tmp_path / "broken-1.dist-info"
    declared.mkdir()
    (declared / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (declared / "entry_points.txt").write_text("[noisewise.models]\nbroken = no_such_module\n")
    code = "import noisewise as nw; print(nw.models.names())"
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert "linear-regression" in ended.stdout
    assert "the model 'broken' of another package" in ended.stderr


def test_keys_in_another_order(tmp_path: Path) -> None:
    content = json.loads(released().to_json())
    path = tmp_path / "sorted.json"
    path.write_text(json.dumps(content, sort_keys=True))
    assert nw.load(path) == nw.Release.load(path)
