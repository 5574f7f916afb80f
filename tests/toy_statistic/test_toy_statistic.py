"""A statistic that no file in ``src/`` knows: bounds, release, file, tables and ``inspect``."""

from __future__ import annotations

import dataclasses
import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from noisewise.artifact import (
    ArgumentError,
    Bounds,
    Gram,
    Release,
    ReleaseError,
    Statistic,
    register_statistic,
    unregister_statistic,
)
from noisewise.artifact.sensitivity import sensitivity
from noisewise.cli.verbs import app
from noisewise.privacy.budget import privacy_terms
from noisewise.privacy.lattice import Coded
from noisewise.privacy.options import PrivacyOptions
from noisewise.privacy.pipeline import ReleaseRequest, publish
from noisewise.privacy.sources import open_source
from noisewise.privacy.statistic_privacy import (
    PublicColumns,
    StatisticPrivacy,
    find_privacy,
    register_privacy,
    unregister_privacy,
)
from noisewise.privacy.sum_plan import SumPlan
from tests.documents import ROOT, blocks

KIND = "absolute-sum"
LIMITS = {"a": Bounds(-2, 6), "b": Bounds(0, 10)}
HERE = Path(__file__).parent


def load(name: str) -> ModuleType:
    """Import a toy file afresh: importing it is what registers it."""
    sys.modules.pop(f"tests.toy_statistic.{name}", None)
    return importlib.import_module(f"tests.toy_statistic.{name}")


@pytest.fixture
def toy() -> Iterator[SimpleNamespace]:
    """Both halves, registered for one test."""
    forget()
    wire, privacy = load("absolute_sum"), load("absolute_sum_privacy")
    yield SimpleNamespace(AbsoluteSum=wire.AbsoluteSum, Privacy=privacy.AbsoluteSumPrivacy)
    forget()


def forget() -> None:
    unregister_statistic(KIND)
    unregister_privacy(KIND)


def table(rows: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(7)
    return pd.DataFrame({"a": rng.normal(2, 3, rows), "b": rng.uniform(-1, 11, rows)})


def request_for(toy: SimpleNamespace, **privacy: Any) -> ReleaseRequest:
    gram = Gram(("a", "b"), count=False)
    options = PrivacyOptions(**{"epsilon": 1.0, **privacy})
    return ReleaseRequest(
        family="linear-regression",
        model={"x": ("a",), "y": "b"},
        kinds=(gram.kind, KIND),
        specify=lambda bounds: (gram, toy.AbsoluteSum("b")),
        terms=privacy_terms(options),
        options=options,
        bounds=LIMITS,
    )


@pytest.mark.parametrize("bits", [1, 2, 5])
def test_the_bound_is_reached_and_never_exceeded(toy: SimpleNamespace, bits: int) -> None:
    """Every pair of lattice records, in every relation, through the sums themselves."""
    statistic = toy.AbsoluteSum("b", bits)
    frame = pd.DataFrame({"b": np.linspace(0, 10, 2 ** (bits + 1) + 1), "g": 0})
    each = frame.assign(g=range(len(frame)))
    privacy, public = find_privacy(KIND), PublicColumns(LIMITS)
    plan = SumPlan((privacy.part(statistic, public),), Coded("g", tuple(range(len(frame)))))
    single = privacy.integers(statistic, open_source(each).sum(plan).parts[0])[0]
    assert sorted(set(single)) == list(range(2**bits + 1))
    changes = np.abs(single[:, None] - single[None, :])
    assert changes.max() == sensitivity(statistic, "replace-one").l1
    assert single.max() == sensitivity(statistic, "add-remove").l1
    assert (single**2).max() == sensitivity(statistic, "add-remove").l2_squared
    assert sensitivity(statistic, "move").l1 == 2 * single.max()


def test_from_the_table_to_the_file_and_back(toy: SimpleNamespace, tmp_path: Path) -> None:
    frame = table()
    release = publish(frame, request_for(toy, epsilon=1e6))
    path = release.save(tmp_path / "toy.json")
    again = Release.load(path)
    assert again == release
    assert again.block(KIND).statistic == toy.AbsoluteSum("b")
    clamped = frame["b"].clip(0, 10)
    expected = ((clamped - 5) / 5).abs().sum()
    for units in ("box", "user"):
        shown = again.table(units).set_index("statistic")
        assert shown["value"]["|b|"] == pytest.approx(expected, abs=len(frame) * 2**-8 + 0.1)
    stated = json.loads(path.read_text())["blocks"][1]["statistic"]
    assert stated == {"kind": KIND, "column": "b", "bits": 7}


def test_inspect_shows_it(toy: SimpleNamespace, tmp_path: Path) -> None:
    path = publish(table(), request_for(toy)).save(tmp_path / "toy.json")
    printed = CliRunner().invoke(app, ["inspect", str(path)]).output
    assert "absolute-sum: sum of distances from the middle, in half widths" in " ".join(
        printed.split()
    )
    listed = json.loads(CliRunner().invoke(app, ["inspect", str(path), "--json"]).output)
    assert [s["kind"] for s in listed["statistics"]] == ["gram", KIND]


def test_the_budget_is_split_by_weight(toy: SimpleNamespace) -> None:
    usual = publish(table(), request_for(toy, epsilon=1.2))
    assert usual.block(KIND).noise.cost == pytest.approx(0.2)
    own = publish(table(), request_for(toy, epsilon=1.2, split={"gram": 1, KIND: 1}))
    assert own.block(KIND).noise.cost == pytest.approx(0.6)


def test_bounds_are_demanded(toy: SimpleNamespace) -> None:
    release = publish(table(), request_for(toy))
    toys = tuple(b for b in release.blocks if b.statistic.kind == "gram")
    stray = dataclasses.replace(release.block(KIND), statistic=toy.AbsoluteSum("c"))
    with pytest.raises(ReleaseError, match="numeric columns released; 'c' is missing"):
        dataclasses.replace(release, blocks=(*toys, stray))


def test_a_statistic_registered_twice(toy: SimpleNamespace) -> None:
    with pytest.raises(ArgumentError, match="a kind 'absolute-sum' already; there are "):
        register_statistic(toy.AbsoluteSum)
    with pytest.raises(ArgumentError, match=r"'absolute-sum' has a privacy part already"):
        register_privacy(KIND)(toy.Privacy)


def test_a_statistic_that_lacks_a_part() -> None:
    class Half(Statistic):
        kind = "half"

    with pytest.raises(
        ArgumentError,
        match="Half lacks columns, names, units, bound, decode; a statistic has",
    ):
        register_statistic(Half)

    class HalfPrivacy(StatisticPrivacy[Gram]):
        weight = 2.0

    with pytest.raises(ArgumentError, match="HalfPrivacy lacks part; the privacy part of"):
        register_privacy("half")(HalfPrivacy)
    with pytest.raises(ArgumentError, match=r"a subclass of noisewise\.artifact\.Statistic"):
        register_statistic(int)  # type: ignore[type-var]
    with pytest.raises(ArgumentError, match="must be a subclass of StatisticPrivacy"):
        register_privacy("half")(int)  # type: ignore[type-var]


def test_a_file_with_an_unknown_kind(toy: SimpleNamespace, tmp_path: Path) -> None:
    path = publish(table(), request_for(toy)).save(tmp_path / "toy.json")
    unregister_statistic(KIND)
    with pytest.raises(ReleaseError, match="'absolute-sum' is not known to this version; there ar"):
        Release.load(path)


def test_an_order_without_a_privacy_part(toy: SimpleNamespace) -> None:
    unregister_privacy(KIND)
    with pytest.raises(ArgumentError, match=r"'absolute-sum' has no privacy part.*there are gram"):
        publish(table(), request_for(toy))


def test_the_guide_quotes_these_files() -> None:
    page = ROOT / "docs" / "guide-add-a-statistic.md"
    quoted = [content for language, content in blocks(page) if language == "python"]
    assert quoted == [
        (HERE / name).read_text() for name in ("absolute_sum.py", "absolute_sum_privacy.py")
    ]
    assert (HERE / "proof.md").read_text().strip() in page.read_text()
