"""From a table to a Release: limits, neighbours end to end, and what is (not) in the file."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import noisewise as nw
from noisewise.artifact import Bounds, Clamped, Gram, Monomials, PowerSums, Statistic, Tables
from noisewise.artifact.sensitivity import Relation, sensitivity
from noisewise.artifact.statistics import CellSum, CellSums
from noisewise.artifact.statistics.cell_sums import main_effects
from noisewise.privacy.lattice import Coded
from noisewise.privacy.ledger import open_ledger
from noisewise.privacy.mechanisms import Calibrated
from noisewise.privacy.sources import open_source
from noisewise.privacy.statistic_privacy import PublicColumns, find_privacy
from noisewise.privacy.sum_plan import SumPlan
from tests.privacy.conftest import spent

BOUNDS = {"a": (-2.0, 6.0), "b": (10.0, 11.0)}
NOISELESS = 1e9
"""An ε so large that noise is a few integer steps of 2**-30: the limit case noise → 0."""


def people(rows: int = 200, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "a": rng.normal(2, 3, rows),
            "b": rng.uniform(9.9, 11.1, rows),
            "g": rng.integers(0, 3, rows),
            "t": rng.choice(["x", "y"], rows),
        }
    )


def boxed(frame: pd.DataFrame) -> np.ndarray:
    columns = []
    for c, (low, high) in BOUNDS.items():
        columns.append((np.clip(frame[c], low, high) - (low + high) / 2) / ((high - low) / 2))
    return np.array(columns)


def released(frame: Any, **more: Any) -> nw.Release:
    words: dict[str, Any] = {"x": "a", "y": "b", "bounds": BOUNDS, "epsilon": NOISELESS, **more}
    return nw.release.linear_regression(frame, **words)


def values(release: nw.Release) -> pd.Series:
    return release.table().set_index("statistic")["value"]


def test_without_noise_the_gram_matrix_is_recovered() -> None:
    frame = people()
    u = np.vstack([boxed(frame), np.ones(len(frame))])
    gram = u @ u.T
    found = values(released(frame))
    expected = {"a*a": (0, 0), "a*b": (0, 1), "a": (0, 2), "b*b": (1, 1), "b": (1, 2)}
    assert list(found.index) == list(expected)
    for name, place in expected.items():
        # Lattice rounding: 200 records, half a step of 2**-15 each at most.
        assert found[name] == pytest.approx(gram[place], abs=200 * 2.0**-15)


def test_user_units_undo_the_box() -> None:
    frame = people()
    clipped = [np.clip(frame[c], *BOUNDS[c]) for c in BOUNDS]
    found = released(frame).table(units="user").set_index("statistic")["value"]
    assert found["a*b"] == pytest.approx((clipped[0] * clipped[1]).sum(), rel=1e-4)
    assert found["b"] == pytest.approx(clipped[1].sum(), rel=1e-6)


def test_fourth_moments_and_clamped_counts() -> None:
    frame = people()
    found = values(released(frame, monomials=True, count_clamped=True))
    u = boxed(frame)[0]
    for power in (1, 2, 3, 4):
        assert found[f"a^{power}"] == pytest.approx((u**power).sum(), abs=200 * 4 * 2.0**-8)
    for c, (low, high) in BOUNDS.items():
        assert found[f"clamped({c})"] == ((frame[c] < low) | (frame[c] > high)).sum()


def test_n_is_public_under_replace_one_and_noisy_under_add_remove() -> None:
    """E2: the (n, n) corner is released only where n is secret, and then with noise."""
    frame = people()
    public, secret = released(frame), released(frame, neighbours="add-remove")
    assert public.n == 200
    assert "n" not in values(public)
    assert secret.n is None
    assert values(secret)["n"] == pytest.approx(200)
    noisy = released(frame, neighbours="add-remove", epsilon=0.01)
    assert values(noisy)["n"] != 200


def test_incomplete_records_leave_under_add_remove_and_are_filled_under_replace_one() -> None:
    frame = people()
    frame.loc[:9, "a"] = np.nan
    assert values(released(frame, neighbours="add-remove"))["n"] == pytest.approx(190)
    filled = released(frame, fill={"a": 2.0})
    assert filled.n == 200
    assert values(filled)["a"] == pytest.approx(
        values(released(frame.fillna({"a": 2.0})))["a"], abs=1e-6
    )


def test_every_public_group_is_released_with_noise_even_when_absent() -> None:
    keys = [0, 1, 2, 99]
    release = released(people(), groups={"g": keys}, epsilon=1.0)
    table = release.table()
    assert list(dict.fromkeys(table["group"])) == keys
    assert (table[table["group"] == 99]["value"] != 0).all()
    public = released(people(), groups={"g": keys[:3]}, sizes="public", epsilon=1.0)
    assert public.n.tolist() == [*np.bincount(people()["g"])]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("words", "share"),
    [
        ({"neighbours": "add-remove"}, 6),
        ({"sizes": "public"}, 16 / 3),
        ({}, 12),
    ],
)
def test_group_policies_have_their_own_noise(words: dict[str, Any], share: float) -> None:
    """Parallel composition, a fixed place, and a record that may move (k = 2)."""
    release = released(people(), groups={"g": [0, 1, 2]}, epsilon=1.0, **words)
    assert release.block("gram").noise_scales[0] == pytest.approx(share)


def test_grouped_sums_add_up_to_the_ungrouped_ones() -> None:
    frame = people()
    parts = released(frame, groups={"g": [0, 1, 2]}, sizes="public").block("gram").scaled
    whole = released(frame).block("gram").scaled
    assert parts.sum(axis=1) == pytest.approx(whole[:, 0], abs=1e-5)


# -- neighbours, end to end: real tables through the real sums ------------------------------------

STATISTICS: list[Statistic] = [
    Gram(("a", "b"), count=False),
    Monomials(("a", "b")),
    PowerSums("a", -2.0, 6.0, "drop", 2, False, scale=8.0),
    PowerSums("a", -2.0, 6.0, "clamp", 1, False, bits=0),
    Clamped(("a", "b")),
    Tables((("t", "g"), ("t",)), {"t": ("x", "y"), "g": (0, 1, 2)}),
    CellSums((("a",), ("b",)), {"t": ("x", "y")}, main_effects(2, 1)),
    CellSums(
        (("a", "a"), ("b",)),
        {"t": ("x", "y")},
        (*(CellSum(p, (0,)) for p in ((), (0,), (1,), (0, 0), (0, 1))), CellSum((1, 1), ())),
    ),
]


def counted(statistic: Statistic) -> Statistic:
    """The same statistic where n is secret."""
    if isinstance(statistic, Gram | PowerSums):
        return dataclasses.replace(statistic, count=True)
    return statistic


def exact(statistic: Statistic, frame: pd.DataFrame, grouped: bool) -> np.ndarray:
    limits = {c: Bounds(*b) for c, b in BOUNDS.items()}
    group = Coded("g", (0, 1, 2)) if grouped else None
    privacy = find_privacy(statistic.kind)
    plan = SumPlan((privacy.part(statistic, PublicColumns(limits)),), group)
    return privacy.integers(statistic, open_source(frame).sum(plan).parts[0])


def record(rng: np.random.Generator) -> dict[str, Any]:
    """Extremes, interior points and values far outside, so that clamping and dropping matter."""
    a = rng.choice([-2, 6, rng.uniform(-2, 6), 1e9, -1e9, 2 - 4 / 3, 6.0000001])
    b = rng.choice([10, 11, rng.uniform(10, 11), 0, np.inf, 10.5 - 1 / 6])
    return {"a": a, "b": b, "g": rng.integers(0, 3), "t": rng.choice(["x", "y"])}


@pytest.mark.parametrize("relation", ["replace-one", "add-remove", "move"])
@pytest.mark.parametrize("statistic", STATISTICS, ids=lambda s: s.kind)
def test_neighbouring_tables_differ_by_no_more_than_claimed(
    statistic: Statistic, relation: Relation
) -> None:
    if relation != "replace-one":
        statistic = counted(statistic)
    grouped = relation == "move" and not isinstance(statistic, Tables)
    bound = sensitivity(statistic, relation)
    rng = np.random.default_rng(11)
    base: list[Any] = people(5).to_dict("records")
    largest = 0
    for _ in range(150):
        one, other = [*base, record(rng)], [*base, record(rng)]
        if relation == "add-remove":
            other = base
        first, second = (exact(statistic, pd.DataFrame(r), grouped) for r in (one, other))
        difference = [abs(int(d)) for d in (first - second).ravel()]
        assert sum(difference) <= bound.l1
        assert sum(d * d for d in difference) <= bound.l2_squared
        largest = max(largest, sum(difference))
    assert largest > 0.5 * bound.l1  # the search does come near: a bound half as large would fail


# -- the ledger ------------------------------------------------------------------------------------


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "ledger.db"
    with open_ledger(path, create=True) as ledger:
        ledger.set_budget("people", epsilon=1.0)
    return path


def test_identical_requests_are_new_spends_with_new_noise(book: Path) -> None:
    first, second = (released(people(), epsilon=0.5, ledger=book) for _ in range(2))
    assert spent(book) == 1.0
    assert first.receipt is not None
    assert first.receipt != second.receipt
    assert not np.array_equal(first.block("gram").values, second.block("gram").values)
    with pytest.raises(nw.BudgetError):
        released(people(), epsilon=1e-6, ledger=book)


def test_the_spend_is_committed_before_noise_is_drawn(
    book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def crash(self: Calibrated, exact: np.ndarray) -> np.ndarray:
        seen.append(spent(book))
        raise RuntimeError("the machine died here")

    monkeypatch.setattr(Calibrated, "draw", crash)
    with pytest.raises(RuntimeError, match="died"):
        released(people(), epsilon=0.25, ledger=book)
    assert seen == [0.25]


def test_private_bounds_pay_before_they_select(book: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def crash(*_: Any) -> int:
        seen.append(spent(book))
        raise RuntimeError("the machine died here")

    monkeypatch.setattr("noisewise.privacy.mechanisms.Calibrated.draw", crash)
    asked = {"a": nw.release.PrivateBounds((-100, 100)), "b": (10, 11)}
    with pytest.raises(RuntimeError, match="died"):
        released(people(), bounds=asked, epsilon=0.25, ledger=book, split={"gram": 1, "bounds": 9},
                 neighbours="add-remove")  # fmt: skip
    assert seen == [0.25]


# -- the other families ----------------------------------------------------------------------------


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_exponential_families_without_noise(neighbours: Any) -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "coin": rng.integers(0, 2, 300),
            "visits": rng.poisson(4, 300),
            "wait": rng.exponential(2, 300),
            "height": rng.normal(170, 10, 300),
            "kind": rng.choice(["u", "v"], 300),
        }
    )

    def total(column: str, family: str, **more: Any) -> pd.Series:
        return values(
            nw.release.exponential_family(
                frame,
                column=column,
                family=family,
                epsilon=NOISELESS,
                neighbours=neighbours,
                **more,
            )
        )

    assert total("coin", "bernoulli")["coin"] == frame["coin"].sum()
    visits = frame["visits"]
    assert total("visits", "poisson", bounds=(0, 6))["visits"] == visits[visits <= 6].sum()
    clamped = total("visits", "poisson", bounds=(0, 6), outside="clamp")["visits"]
    assert clamped == visits.clip(0, 6).sum()
    wait = frame["wait"]
    inside = wait[(wait >= 0.5) & (wait <= 5)].sum()
    assert total("wait", "exponential", bounds=(0.5, 5))["wait"] == pytest.approx(inside, rel=1e-4)
    height = frame["height"].clip(150, 200) - 175
    found = total("height", "normal", bounds=(150, 200), outside="clamp")
    assert found["(height-175.0)"] == pytest.approx(height.sum(), abs=0.3)
    assert found["(height-175.0)*(height-175.0)"] == pytest.approx((height**2).sum(), rel=1e-3)
    kinds = total("kind", "categorical", levels=["v", "u"])
    assert kinds.to_dict() == {
        "kind=v": (frame.kind == "v").sum(),
        "kind=u": (frame.kind == "u").sum(),
    }


def test_graphical_model_without_noise() -> None:
    frame = people()
    release = nw.release.graphical_model(
        frame,
        cliques=[("t", "g"), ("g",)],
        levels={"t": ["x", "y"], "g": [2, 0, 1]},
        epsilon=NOISELESS,
    )
    found = values(release)
    for t, g in itertools.product("xy", range(3)):
        assert found[f"t={t},g={g}"] == ((frame.t == t) & (frame.g == g)).sum()
    assert found[["g=0", "g=1", "g=2"]].sum() == 200
    # E3: noise for a sensitivity of 2 per table.
    assert release.block("tables").noise.sensitivity == 4


def test_gaussian_release_states_rho_and_both_epsilons() -> None:
    release = released(people(), epsilon=1.0, mechanism="gaussian", delta=1e-6)
    assert release.guarantee.rho == pytest.approx(0.028014, rel=1e-4)
    assert (release.guarantee.epsilon, release.guarantee.delta) == (1.0, 1e-6)
    assert release.block("gram").noise.cost == release.guarantee.rho
