"""What could not be used afterwards is refused before anything is spent, by public numbers only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import noisewise as nw
from noisewise.artifact import ArgumentError, DataError
from noisewise.privacy.ledger import open_ledger

BOUNDS = {"x": (0, 1), "y": (0, 1), "z": (0, 1)}


@pytest.fixture
def book(tmp_path: Path) -> str:
    path = str(tmp_path / "budget.db")
    with open_ledger(path, create=True) as ledger:
        ledger.set_budget("people", epsilon=100.0)
    return path


def spent(book: str) -> float:
    with open_ledger(book) as ledger:
        (account,) = ledger.accounts()
    return float(account.spent)


def table(sizes: dict[str, int]) -> pd.DataFrame:
    n = sum(sizes.values())
    numbers = np.random.default_rng(2).uniform(0, 1, (n, 3))
    frame = pd.DataFrame(numbers, columns=list("xyz"))
    return frame.assign(place=[key for key, size in sizes.items() for _ in range(size)])


def regression(frame: pd.DataFrame, **words: Any) -> nw.Release:
    given = {"x": ["x"], "y": "y", "bounds": {c: BOUNDS[c] for c in "xy"}, "epsilon": 1.0}
    return nw.release.linear_regression(frame, **{**given, **words})


def test_groups_of_fewer_than_three_public_records(book: str) -> None:
    frame = table({"a": 50, "b": 2, "c": 3})
    groups = {"place": ["a", "b", "c", "d"]}
    with pytest.raises(
        DataError, match=r"2 of 4 have fewer than 3 records.*: 'b', 'd'\. Join"
    ) as e:
        regression(frame, groups=groups, sizes="public", ledger=book)
    assert "Nothing was spent" in str(e.value)
    assert spent(book) == 0
    # Where sizes are secret, a refusal would tell of them.
    for words in ({}, {"neighbours": "add-remove"}):
        assert regression(frame, groups=groups, **words).n is None


def test_more_columns_than_records(book: str) -> None:
    words = {"x": ["x", "z"], "bounds": BOUNDS, "ledger": book}
    with pytest.raises(DataError, match="the table has 2 records; this model needs at least 3"):
        regression(table({"a": 2}), **words)
    many = {f"c{i}": np.linspace(0, 1, 6) for i in range(7)}
    columns = list(many)
    with pytest.raises(DataError, match="has 6 records; this model needs at least 7"):
        regression(
            pd.DataFrame(many), x=columns[1:], y="c0", bounds=dict.fromkeys(columns, (0, 1)),
            ledger=book,
        )  # fmt: skip
    assert spent(book) == 0
    assert regression(table({"a": 2}), neighbours="add-remove").n is None


@pytest.mark.parametrize("noise", [{}, {"mechanism": "gaussian", "delta": 1e-6}])
def test_hopeless_private_bounds(noise: dict[str, Any], book: str) -> None:
    asked = {"x": nw.release.PrivateBounds((0, 1000)), "y": (0, 1)}
    paid = {} if noise else {"ledger": book}
    with pytest.raises(DataError, match=r"private bounds of 'x' is hopeless.*Nothing was spent"):
        regression(table({"a": 20}), bounds=asked, epsilon=0.5, **noise, **paid)
    assert spent(book) == 0
    release = regression(table({"a": 4000}), bounds=asked, epsilon=1.0, **noise, **paid)
    assert release.selections


def test_a_hopeless_search_for_a_quantile(book: str) -> None:
    words: dict[str, Any] = {"x": "x", "y": "y", "coefficient": "x", "p": 0.5, "epsilon_value": 1.0}
    with pytest.raises(ArgumentError, match=r"epsilon_bounds = 4, and needs about 20.*surely miss"):
        nw.release.posterior_quantile(
            table({"a": 400}), partitions=8, epsilon_bounds=0.5, ledger=book, **words
        )
    assert spent(book) == 0


def test_whole_number_families_round_each_record() -> None:
    frame = pd.DataFrame({"visits": [0.4, 1.6, 2.5, 3.0]})
    release = nw.release.exponential_family(
        frame, column="visits", family="poisson", bounds=(0, 20), epsilon=1e6
    )
    assert release.block("power-sums").values.tolist() == [[0 + 2 + 3 + 3]]


def test_infer_gives_the_groups_it_can() -> None:
    """A file of version 0.1, or of another program, may have groups that are too small."""
    from tests.inference.regressions import release
    from tests.inference.regressions import table as records

    rng = np.random.default_rng(4)
    given = release(
        [records(rng, n) for n in (60, 2, 80, 0)], {"x1": (-1, 1), "y": (-1, 1)}, scale=0.5
    )
    with pytest.warns(UserWarning, match=r"2 of 4 groups have fewer than 3 records.*'g1', 'g3'"):
        post = nw.infer(given, "naive", draws=100)
    assert isinstance(post, nw.Posterior)
    assert post.keys == ("g0", "g2")
    assert post.details["left_out"] == ("g1", "g3")
    assert len(post.summary()) == 2 * 3
    alone = nw.infer(given.of_groups([0, 2]), "naive", draws=100)
    pd.testing.assert_frame_equal(post.summary(), alone.summary())
    with pytest.raises(ArgumentError, match="at least 3 records in every group"):
        nw.infer(given.of_groups([1, 3]), "naive")


def test_infer_names_groups_whose_noisy_number_is_too_small() -> None:
    from tests.inference.regressions import release
    from tests.inference.regressions import table as records

    rng = np.random.default_rng(4)
    given = release(
        [records(rng, n) for n in (60, 80, 0)], {"x1": (-1, 1), "y": (-1, 1)}, scale=0.05,
        secret_n=True,
    )  # fmt: skip
    with pytest.warns(UserWarning, match=r"noisy number of records is below 3 in 1 of 3.*'g2'$"):
        post = nw.infer(given, "naive", draws=100)
    assert isinstance(post, nw.Posterior)
    assert post.keys == ("g0", "g1", "g2")
