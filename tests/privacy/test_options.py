"""One object of privacy options: the same in signatures, docstrings, type checks and tables."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import noisewise as nw
from noisewise.artifact import PartitionRelease
from noisewise.models.exponential_family import ExponentialFamilyRelease
from noisewise.models.graphical_model import GraphicalModelRelease
from noisewise.models.linear_regression import LinearRegressionRelease
from noisewise.privacy import options
from noisewise.privacy.options import FIELDS, OPTIONS, PrivacyOptions, option_names

ROOT = Path(__file__).parents[2]
FORMS: dict[str, type] = {
    "linear_regression": options.MomentOptions,
    "exponential_family": options.MomentOptions,
    "graphical_model": options.NoisySumOptions,
    "posterior_probability": options.ProbabilityOptions,
    "posterior_quantile": options.QuantileOptions,
}


def function(name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(nw.release, name)
    return found


@pytest.mark.parametrize(("name", "form"), FORMS.items())
def test_help_shows_every_option_with_its_description(name: str, form: type) -> None:
    release = function(name)
    parameters = inspect.signature(release).parameters
    text = inspect.getdoc(release) or ""
    assert "**privacy" not in text
    assert "privacy" not in parameters
    for option in option_names(form):
        parameter = parameters[option]
        assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
        if option != "epsilon":
            assert parameter.default == FIELDS[option].default
        words = " ".join(text.split())
        assert f" {option}: {FIELDS[option].metadata['help']}." in words


def test_epsilon_is_required_everywhere() -> None:
    for name in FORMS:
        epsilon = inspect.signature(function(name)).parameters.get("epsilon")
        assert (epsilon is None) == (name == "posterior_quantile")
        assert epsilon is None or epsilon.default is inspect.Parameter.empty


def test_the_forms_name_options_that_there_are_and_nothing_else() -> None:
    for form in FORMS.values():
        assert set(form.__annotations__) <= set(FIELDS)
    named = {name for form in FORMS.values() for name in form.__annotations__}
    assert named == set(FIELDS)


def test_the_command_line_is_told_all_but_the_progress() -> None:
    assert set(OPTIONS) == set(FIELDS) - {"progress"}
    assert OPTIONS["epsilon"].required
    assert OPTIONS["neighbours"].default == "replace-one"
    planned = {name for name, word in OPTIONS.items() if word.planned}
    assert planned == {"mechanism", "delta", "neighbours", "split", "unit", "max_records"}


def test_the_reference_has_the_same_words() -> None:
    assert options.reference_table() in (ROOT / "docs" / "api.md").read_text()


FRAME = pd.DataFrame({"a": [0.1, 0.5, 0.9], "k": ["u", "v", "u"]})


def test_a_missing_epsilon_is_named_before_anything_else() -> None:
    with pytest.raises(TypeError, match="missing keyword argument 'epsilon': the whole privacy"):
        nw.release.linear_regression(FRAME, x=1, y=2)  # type: ignore[call-arg, arg-type]


def test_neighbors_is_neighbours() -> None:
    form = FORMS["linear_regression"]
    words = {"epsilon": 1.0, "neighbors": "add-remove"}
    assert PrivacyOptions.of(form, words).neighbours == "add-remove"
    with pytest.raises(TypeError, match="are one argument; give it once"):
        PrivacyOptions.of(form, {**words, "neighbours": "add-remove"})


def test_an_unknown_option_is_named_with_those_there_are() -> None:
    with pytest.raises(TypeError, match="argument 'epsilom'; the privacy options are epsilon, mec"):
        nw.release.linear_regression(FRAME, x="a", y="k", epsilom=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'split'"):
        nw.release.graphical_model(  # type: ignore[call-arg]
            FRAME, cliques=[("k",)], levels={"k": ["u", "v"]}, epsilon=1, split={"tables": 1}
        )


def test_releases_have_the_class_of_their_model() -> None:
    bounds = (0.0, 1.0)
    frame = pd.DataFrame({"a": [i / 40 for i in range(40)], "b": [(7 * i) % 40 for i in range(40)]})
    made = [
        nw.release.linear_regression(
            frame, x="a", y="b", bounds={"a": bounds, "b": (0, 40)}, epsilon=1
        ),
        nw.release.exponential_family(frame, column="a", family="normal", bounds=bounds, epsilon=1),
        nw.release.graphical_model(FRAME, cliques=[("k",)], levels={"k": ["u", "v"]}, epsilon=1),
        nw.release.posterior_probability(
            frame, x="a", y="b", coefficient="a", at=0, partitions=2, epsilon=1
        ),
    ]
    assert [type(release) for release in made] == [
        LinearRegressionRelease,
        ExponentialFamilyRelease,
        GraphicalModelRelease,
        PartitionRelease,
    ]


def test_options_can_be_kept_and_compared() -> None:
    assert PrivacyOptions(epsilon=1.0) == PrivacyOptions(epsilon=1.0, mechanism="laplace")


SCRIPT = """
import noisewise as nw
from noisewise.models.linear_regression import LinearRegressionRelease

release = nw.release.linear_regression("t.csv", x="a", y="b", epsilon=1.0, delta=1e-6)
typed: LinearRegressionRelease = release
nw.release.graphical_model("t.csv", cliques=[("a",)], levels={"a": [0]}, epsilon=1.0, unit="id")
nw.release.linear_regression("t.csv", x="a", y="b")  # line 8
nw.release.linear_regression("t.csv", x="a", y="b", epsilon="1")  # line 9
nw.release.linear_regression("t.csv", x="a", y="b", epsilon=1.0, mechanism="uniform")  # line 10
nw.release.linear_regression("t.csv", x="a", y="b", epsilon=1.0, unit="id")  # line 11
"""


@pytest.mark.evidence  # a minute without a cache
def test_mypy_accepts_right_calls_and_rejects_wrong_ones(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    ended = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", str(script)],
        cwd=ROOT, capture_output=True, text=True, env={"MYPYPATH": str(ROOT / "src"), "PATH": ""},
    )  # fmt: skip
    lines = {int(line.split(":")[1]) for line in ended.stdout.splitlines() if "script.py:" in line}
    assert lines == {8, 9, 10, 11}, ended.stdout + ended.stderr


def test_warnings_name_the_line_that_called_the_library(tmp_path: Path) -> None:
    people = pd.DataFrame({"owns": [0, 1, 1]})

    def save(epsilon: float) -> None:
        made = nw.release.exponential_family(
            people, column="owns", family="bernoulli", epsilon=epsilon
        )
        made.save(tmp_path / "r.json")

    save(1.0)
    with pytest.warns(UserWarning, match="is above 100|held another file") as caught:
        save(1000.0)
    assert [Path(warning.filename) for warning in caught] == [Path(__file__)] * 2
