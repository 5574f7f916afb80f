"""``noisewise infer --keep summary``: one file, a folder, and parts of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import noisewise as nw
from noisewise.models.linear_regression import analyst
from tests.inference.regressions import release, table

Run = Callable[..., Any]
BOUNDS = {"x1": (-1.0, 1.0), "y": (-1.0, 1.0)}
WORDS = ("--method", "naive", "--draws", "100", "--keep", "summary")


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Five groups, in three slabs."""
    monkeypatch.setattr(analyst, "NAIVE_GROUPS_PER_SLAB", 2)
    rng = np.random.default_rng(4)
    made = release([table(rng, 60) for _ in range(5)], BOUNDS, scale=0.5)
    return made.save(tmp_path / "r.json")


def test_a_file_and_a_folder(noisewise: Run, published: Path, tmp_path: Path) -> None:
    file, folder = tmp_path / "s.parquet", tmp_path / "slabs"
    seen = noisewise("infer", published, *WORDS, "--out", file)
    assert seen.code == 0
    assert "Posterior of y on x1, method naive" in seen.out
    assert noisewise("infer", published, *WORDS, "--out", folder).code == 0
    one, two = nw.load(file), nw.load(folder)
    assert isinstance(one, nw.PosteriorSummary)
    assert isinstance(two, nw.PosteriorSummary)
    pd.testing.assert_frame_equal(one.table(), two.table(), check_exact=True)
    said = json.loads(noisewise("infer", published, *WORDS, "--out", folder, "--json").out)
    assert len(said["parameters"]) == 15
    assert said["prior"] == one.prior
    for words in (
        ("predict", file, "--at", "x1=0"),
        ("ranks", file),
        ("report", file, "--out", tmp_path / "p.html"),
    ):
        refused = noisewise(*words)
        assert refused.code == 1
        assert "--keep draws" in " ".join(refused.err.split()), refused.err


def test_parts(noisewise: Run, published: Path, tmp_path: Path) -> None:
    folder = tmp_path / "slabs"
    for part in ("2/3", "1/3"):
        assert noisewise("infer", published, *WORDS, "--out", folder, "--part", part).code == 0
    refused = noisewise("infer", published, *WORDS, "--out", folder)
    assert refused.code == 1
    assert "--part: 1 of 3 slabs are missing" in " ".join(refused.err.split())
    assert noisewise("infer", published, *WORDS, "--out", folder, "--part", "3/3").code == 0
    assert noisewise("infer", published, *WORDS, "--out", folder).code == 0
    for part in ("3", "0/3", "a/b", "4/3"):
        refused = noisewise("infer", published, *WORDS, "--out", folder, "--part", part)
        assert refused.code == 1
        assert refused.err.startswith("error: --part: must be"), refused.err
