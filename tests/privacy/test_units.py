"""People with several records, of whom at most k count: brute force against every claim.

A person's contribution is the sum of up to k records, whichever were kept of however many; so all
sums of up to k records are all that a person can add, and all pairs of them all that replacing a
person can change (docs/proofs/units.md).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import noisewise as nw
from noisewise.artifact import (
    ArgumentError,
    Bounds,
    Clamped,
    DataError,
    Gram,
    Monomials,
    PowerSums,
    ReleaseError,
    Statistic,
    Tables,
)
from noisewise.artifact.sensitivity import Relation, sensitivity
from noisewise.artifact.statistics import CellSums
from noisewise.artifact.statistics.cell_sums import main_effects
from noisewise.privacy.lattice import Coded
from noisewise.privacy.mechanisms import Calibrated
from noisewise.privacy.sources import open_source
from noisewise.privacy.sources import people as capped
from noisewise.privacy.statistic_privacy import PublicColumns, find_privacy, power_sums_lattice
from noisewise.privacy.sum_plan import Capped, SumPlan
from tests.reference.sensitivity_reference import (
    largest_distances,
    lattice_points,
    monomial_contribution,
    power_contribution,
)
from tests.reference.sums_reference import reference_sums

RELATIONS: tuple[Relation, ...] = ("add-remove", "replace-one", "move")
LEVELS = {"a": (0, 1), "b": (0, 1, 2)}


def records_of(statistic: Statistic, *, fine: bool = False) -> np.ndarray:
    """The integers that any one record can add."""
    if isinstance(statistic, Gram | Monomials):
        points = lattice_points(len(statistic.columns), statistic.bits)
        counted = isinstance(statistic, Gram) and statistic.count
        return np.array([monomial_contribution(statistic, p, count=counted) for p in points])
    if isinstance(statistic, PowerSums):
        lattice = power_sums_lattice(statistic)
        values: list[int | None] = list(range(lattice.low, lattice.high + 1))
        values += [None] if statistic.outside == "drop" else []
        return np.array([power_contribution(statistic, u, count=statistic.count) for u in values])
    if isinstance(statistic, Clamped):
        return np.array(list(itertools.product((0, 1), repeat=len(statistic.columns))))
    assert isinstance(statistic, Tables)
    rows = []
    for record in itertools.product(*(range(len(statistic.levels[c])) for c in statistic.columns)):
        of = dict(zip(statistic.columns, record, strict=True))
        row: list[int] = []
        for clique in statistic.cliques:
            cells = np.zeros([len(statistic.levels[c]) for c in clique], int)
            cells[tuple(of[c] for c in clique)] = 1
            row += cells.ravel().tolist()
        rows.append(row)
    return np.array(rows)


def people(records: np.ndarray, fewest: int, most: int) -> np.ndarray:
    """All sums of that many records, which need not differ."""
    sums = [
        records[list(chosen)].sum(axis=0)
        for count in range(max(fewest, 1), most + 1)
        for chosen in itertools.combinations_with_replacement(range(len(records)), count)
    ]
    nobody = [np.zeros(records.shape[1], int)] if fewest == 0 else []
    return np.unique(np.array(nobody + sums), axis=0)


def largest_change(
    statistic: Statistic, relation: Relation, most: int, records: np.ndarray | None = None
) -> tuple[int, int]:
    """L1 and squared L2 over all people with 1 to ``most`` kept records, by exhaustion."""
    single = records_of(statistic) if records is None else records
    if relation == "move":  # of two groups
        nothing = np.zeros_like(single)
        single = np.concatenate([np.hstack([single, nothing]), np.hstack([nothing, single])])
    if relation == "add-remove":
        added = people(single, 1, most)
        return int(np.abs(added).sum(axis=1).max()), int((added**2).sum(axis=1).max())
    return largest_distances(people(single, 1, most))


def counted(relation: Relation, most: int) -> bool:
    """Whether n is a secret, and a component."""
    return relation != "replace-one" or most > 1


def statistics(relation: Relation, most: int) -> Iterator[tuple[str, Statistic, float, float]]:
    """A statistic of every kind, and the shares of L1 and squared L2 that must be reached."""
    n = counted(relation, most)
    yield "gram of 1", Gram(("x",), n, bits=3 if most < 3 else 2), 0.99, 0.99
    yield "gram of 2", Gram(("x", "y"), n, bits=1), 0.9, 0.99
    yield "monomials", Monomials(("x",), bits=2), 0.9, 0.8
    yield "whole sum", PowerSums("x", 0, 4, "clamp", 1, n, bits=0), 1.0, 0.7
    yield "bernoulli", PowerSums("x", 0, 1, "clamp", 1, n, bits=0), 1.0, 0.7
    yield "square", PowerSums("x", -1, 1, "clamp", 2, n, bits=2), 0.95, 0.7
    yield "dropped", PowerSums("x", 0.25, 1, "drop", 2, n, bits=2), 0.7, 0.5
    yield "tables", Tables((("a", "b"), ("b",)), LEVELS), 1.0, 1.0
    yield "clamped", Clamped(("x", "y")), 1.0, 1.0


@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("relation", RELATIONS)
def test_no_person_changes_more_than_the_claim(relation: Relation, most: int) -> None:
    for name, statistic, share, share_squared in statistics(relation, most):
        if relation == "move" and most == 3:
            continue  # too many pairs for every test run: see the evidence below
        l1, l2 = largest_change(statistic, relation, most)
        claim = sensitivity(statistic, relation, most)
        assert share * claim.l1 <= l1 <= claim.l1, name
        assert share_squared * claim.l2_squared <= l2 <= claim.l2_squared, name


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("relation", RELATIONS)
def test_the_claim_for_the_gram_matrix_is_reached(
    relation: Relation, most: int, columns: int
) -> None:
    """At least 99 %, on the lattice that releases use; the worst records of section 3."""
    statistic = Gram(("x", "y")[:columns], counted(relation, most))
    corners = lattice_points(columns, 0) * 2**15
    inner = np.full((1, columns), round(-(2**15) / (columns + 1)))
    points = np.concatenate([corners, inner])
    records = np.array(
        [monomial_contribution(statistic, p, count=statistic.count) for p in points], dtype=object
    )
    l1, l2 = _largest_exact(statistic, relation, most, records)
    claim = sensitivity(statistic, relation, most)
    assert 0.99 * claim.l1 <= l1 <= claim.l1
    assert 0.99 * claim.l2_squared <= l2 <= claim.l2_squared


def _largest_exact(
    statistic: Statistic, relation: Relation, most: int, records: np.ndarray
) -> tuple[int, int]:
    """As `largest_change`, in Python's own integers: squares exceed 64 bits."""
    if relation == "move":
        nothing = np.zeros_like(records)
        records = np.concatenate([np.hstack([records, nothing]), np.hstack([nothing, records])])
    sums = [
        records[list(chosen)].sum(axis=0)
        for count in range(1, most + 1)
        for chosen in itertools.combinations_with_replacement(range(len(records)), count)
    ]
    others = [np.zeros(records.shape[1], object)] if relation == "add-remove" else sums
    apart = [np.abs(one - other) for one in sums for other in others]
    return max(int(d.sum()) for d in apart), max(int((d * d).sum()) for d in apart)


PEOPLE = 120
"""People in every run of the tests; the evidence takes ten times as many, and all pairs of them."""


@pytest.mark.parametrize("size", [PEOPLE, pytest.param(10 * PEOPLE, marks=pytest.mark.evidence)])
@pytest.mark.parametrize("most", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("relation", RELATIONS)
def test_people_with_up_to_five_records(relation: Relation, most: int, size: int) -> None:
    """Through the real sums: what each of many people adds, and all pairs of them."""
    limits = PublicColumns({"x": Bounds(-1, 1), "y": Bounds(-1, 1)})
    table = random_people(np.random.default_rng(17 + most), size)
    group = Coded("cell", tuple(range(2 * size)))  # whose it is, and in which of two groups
    for name, statistic, _, _ in statistics(relation, most):
        privacy = find_privacy(statistic.kind)
        plan = SumPlan((privacy.part(statistic, limits),), group, Capped("id", most))
        values = privacy.integers(statistic, open_source(table).sum(plan).parts[0])
        by_group = values.reshape(len(values), size, 2).transpose(1, 0, 2)
        added = by_group.reshape(size, -1) if relation == "move" else by_group.sum(axis=2)
        if relation == "add-remove":
            l1, l2 = int(np.abs(added).sum(axis=1).max()), int((added**2).sum(axis=1).max())
        else:
            l1, l2 = largest_distances(added)
        claim = sensitivity(statistic, relation, most)
        assert l1 <= claim.l1, name
        assert l2 <= claim.l2_squared, name
        shares = f"{l1 / claim.l1:.3f} of L1, {l2 / claim.l2_squared:.3f} of squared L2"
        print(f"{relation}, at most {most} of up to 5 records, {name}: {shares}")


def random_people(rng: np.random.Generator, size: int) -> pd.DataFrame:
    """One to five records each, mostly at corners, alike as often as not."""
    rows = []
    for person in range(size):
        count, alike = int(rng.integers(1, 6)), rng.random() < 0.5
        drawn = [
            {
                "id": person,
                "x": rng.choice([-2.0, -1.0, -0.5, -1 / 3, 0.0, 1.0, 4.0]),
                "y": rng.choice([-1.0, -1 / 3, 1.0, 1.0, 3.0]),
                "a": rng.integers(0, 2),
                "b": rng.integers(0, 3),
                "cell": 2 * person + rng.integers(0, 2),
            }
            for _ in range(count)
        ]
        rows += [drawn[0]] * count if alike else drawn
    return pd.DataFrame(rows)


# -- which records are kept ------------------------------------------------------------------------


@pytest.fixture
def first_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """Priorities that grow with the rows: of each person the first records are kept."""
    given = itertools.count()

    def rising(records: int) -> np.ndarray:
        return np.array([next(given) for _ in range(records)], np.uint64)

    monkeypatch.setattr(capped, "priorities", rising)


@pytest.fixture
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Releases without noise, to see the integers that noise is added to."""
    monkeypatch.setattr(Calibrated, "draw", lambda _, integers: integers)


def gram_plan(most: int, group: bool = True) -> SumPlan:
    statistic = Gram(("x", "y"), True)
    columns = PublicColumns({"x": Bounds(-1, 1), "y": Bounds(0, 2)})
    part = find_privacy("gram").part(statistic, columns)
    tables = find_privacy("tables").part(Tables((("a",),), {"a": (0, 1)}), columns)
    sums = CellSums((("x",), ("y", "y")), {"a": (0, 1)}, main_effects(2, 1))
    cells = find_privacy("cell-sums").part(sums, columns)
    return SumPlan((part, tables, cells), Coded("g", (0, 1)) if group else None, Capped("id", most))


def crowd(rows: int, seed: int, gaps: bool = False) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {"id": rng.integers(0, 9, rows), "x": rng.uniform(-1.2, 1.2, rows)}
    columns |= {"y": rng.uniform(-0.2, 2.2, rows), "g": rng.integers(0, 2, rows)}
    frame = pd.DataFrame({**columns, "a": rng.integers(0, 2, rows)})
    return frame.mask(rng.random(frame.shape) < 0.1).astype("Float64") if gaps else frame


@pytest.mark.usefixtures("first_come")
@pytest.mark.parametrize("most", [1, 2, 3, 100])
@pytest.mark.parametrize("compact", [1, 16, 2**20])
def test_sums_are_the_oracles(monkeypatch: pytest.MonkeyPatch, most: int, compact: int) -> None:
    monkeypatch.setattr(capped, "COMPACT_ROWS", compact)
    for seed in range(5):
        frame = crowd(80, seed, gaps=seed % 2 == 1)
        rows: list[Any] = frame.astype(object).where(frame.notna(), None).to_dict("records")
        for plan in (gram_plan(most), gram_plan(most, group=False)):
            found, expected = open_source(frame).sum(plan), reference_sums(rows, plan)
            for part, other in zip(found.parts, expected.parts, strict=True):
                np.testing.assert_array_equal(part, other)
            np.testing.assert_array_equal(found.sizes, expected.sizes)
            assert found.missing == expected.missing


def test_a_person_decides_nothing_about_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same random numbers for the same records: others' records are kept as before."""
    plan, claim = gram_plan(2, group=False), sensitivity(Gram(("x", "y"), True), "add-remove", 2)

    def seeded(records: int) -> np.ndarray:
        return np.random.default_rng(5).integers(0, 2**63, records, np.uint64)

    monkeypatch.setattr(capped, "priorities", seeded)
    frame = crowd(60, 3)
    for count in range(6):
        newcomer = crowd(count, 100 + count).assign(id=99)
        sums = [
            find_privacy("gram").integers(Gram(("x", "y"), True), open_source(t).sum(plan).parts[0])
            for t in (frame, pd.concat([frame, newcomer]))
        ]
        assert np.abs(sums[0] - sums[1]).sum() <= claim.l1
        assert sums[1][-1, 0] - sums[0][-1, 0] == min(count, 2) * 4**15


def test_the_choice_is_fair(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(11)
    monkeypatch.setattr(
        capped, "priorities", lambda n: rng.integers(0, 2**64, n, np.uint64, endpoint=False)
    )
    frame = pd.DataFrame({"id": 1, "a": [0, 1, 1, 1, 1]})
    plan = SumPlan(
        (find_privacy("tables").part(Tables((("a",),), {"a": (0, 1)}), PublicColumns()),),
        None,
        Capped("id", 1),
    )
    zeros = sum(int(open_source(frame).sum(plan).parts[0][0, 0]) for _ in range(2000))
    assert 320 <= zeros <= 480  # 400 are expected, with a deviation of 18


def test_priorities_are_random_bits() -> None:
    assert len(np.unique(capped.priorities(1000))) == 1000
    assert len(capped.priorities(0)) == 0


# -- releases --------------------------------------------------------------------------------------

WORDS: dict[str, Any] = {"x": "x", "y": "y", "bounds": {"x": (-1, 1), "y": (0, 2)}, "epsilon": 1.0}


@pytest.mark.usefixtures("exact")
def test_what_is_public_about_the_number_of_records() -> None:
    """With one record each it is that of people; with more it is a secret, under both relations."""
    frame = crowd(80, 1)
    groups = {"g": [0, 1]}
    one = nw.release.linear_regression(frame, **WORDS, unit="id", max_records=1)
    assert (one.n, one.unit) == (9, "id")
    two = nw.release.linear_regression(frame, **WORDS, unit="id", max_records=2)
    assert two.population.policy == "noisy"
    assert two.block("gram").scaled[-1, 0] == 18
    both = nw.release.linear_regression(frame, **WORDS, unit="id", max_records=2, groups=groups)
    assert both.population.total is None
    assert both.block("gram").scaled[-1].sum() == 18
    alone = nw.release.linear_regression(frame, **WORDS, unit="id", max_records=1, groups=groups)
    assert alone.population.total == 9
    for release in (one, two, both, alone):
        assert nw.Release.from_json(release.to_json()) == release


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("most", [1, 2, 5])
def test_noise_is_that_of_the_claim(relation: Any, grouped: bool, most: int) -> None:
    shared: dict[str, Any] = {"neighbours": relation, "unit": "id", "max_records": most}
    shared |= {"groups": {"g": [0, 1]}} if grouped else {}
    frame = crowd(80, 2)
    releases = [
        nw.release.linear_regression(frame, **WORDS, count_clamped=True, monomials=True, **shared),
        nw.release.exponential_family(
            frame, column="x", family="normal", bounds=(-1, 1), epsilon=1.0, **shared
        ),
        nw.release.graphical_model(
            frame, cliques=[("a",)], levels={"a": [0, 1]}, epsilon=1.0, **shared
        ),
    ]
    asked: Relation = "move" if grouped and relation == "replace-one" else relation
    for release in releases:
        assert f"(all rows of one 'id', of which at most {most} count" in release.statement()
        for block in release.blocks:
            claim = sensitivity(block.statistic, asked, most)
            assert block.noise.sensitivity == claim.l1
            assert block.statistic.counts_records in (None, counted(asked, most))


@pytest.mark.filterwarnings("ignore:bounds")  # nine people are few
def test_private_bounds_are_found_for_people() -> None:
    """Counts move k times as far, and the search costs its share whatever k is."""
    limits = {"x": nw.release.PrivateBounds(within=(-2, 2)), "y": (0, 2)}
    for relation, one in (("replace-one", 2), ("add-remove", 1)):
        for most in (1, 2, 7):
            words = {**WORDS, "bounds": limits, "neighbours": relation, "max_records": most}
            words |= {"epsilon": 90.0}
            made = nw.release.linear_regression(crowd(500, 3), **words, unit="id")
            (selection,) = made.selections
            assert selection.search is not None
            assert selection.search.noise.sensitivity == most * one


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"unit": "id"}, r"max_records: unit='id' needs it, .* such as max_records=1"),
    ({"max_records": 2}, "max_records: goes with unit"),
    ({"unit": "id", "max_records": 0}, r"max_records: must be in \[1, 1048576\], not 0"),
    ({"unit": "id", "max_records": True}, "max_records: must be a whole number, not"),
    ({"unit": "id", "max_records": 2.0}, "max_records: must be a whole number, not 2.0"),
    ({"unit": 3, "max_records": 1}, "unit: must be a column name, not int"),
    ({"unit": "x", "max_records": 1}, "unit must not be among the statistics' columns"),
    ({"unit": "g", "max_records": 1, "groups": {"g": [0, 1]}}, "unit: 'g' is the column of the g"),
    (
        {"unit": "id", "max_records": 1, "groups": {"g": [0, 1]}, "sizes": "public"},
        "sizes: goes without unit=; a person may have records in several groups",
    ),
]


@pytest.mark.parametrize(("more", "message"), REFUSED)
def test_refused_before_the_table_is_read(more: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        nw.release.linear_regression("nowhere.parquet", **WORDS, **more)


def test_nobody_may_be_left_out_under_replace_one() -> None:
    frame = crowd(40, 4).astype({"id": "Float64"})
    frame.loc[3, "id"] = None
    for most, why in ((1, "n is public"), (2, "nobody is left out")):
        with pytest.raises(DataError, match=f"column 'id' .* {why}.* say whose records they are"):
            nw.release.linear_regression(frame, **WORDS, unit="id", max_records=most)
    nw.release.linear_regression(frame, **WORDS, unit="id", max_records=2, neighbours="add-remove")


def test_a_file_cannot_claim_a_unit_it_does_not_bound() -> None:
    made = nw.release.linear_regression(crowd(40, 5), **WORDS, unit="id", max_records=2)
    text = made.to_json()
    for wrong, said in (
        (text.replace('"max_records": 2', '"max_records": 1'), "n is public|sha256"),
        (text.replace(',\n    "max_records": 2', ""), "a unit needs max_records"),
        (text.replace('"unit": "id"', '"unit": "x"'), "unit must not be among the statistics"),
        (text.replace('"unit": "id",\n    ', ""), "max_records goes with a unit"),
        (text.replace('"max_records": 2', '"max_records": 2.5'), "max_records must be a whole"),
    ):
        assert wrong != text
        with pytest.raises(ReleaseError, match=said):
            nw.Release.from_json(wrong)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_a_file_cannot_claim_more_records_than_its_noise_covers(mechanism: Any) -> None:
    delta: dict[str, Any] = {"delta": 1e-6} if mechanism == "gaussian" else {}
    made = nw.release.linear_regression(
        crowd(40, 5), **WORDS, unit="id", max_records=2, mechanism=mechanism, **delta
    )
    with pytest.raises(ReleaseError, match="its noise gives"):
        replace(made, guarantee=replace(made.guarantee, max_records=3))


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_an_analyst_reads_them(relation: Any) -> None:
    """From n that is a secret under either relation, with and without groups."""
    frame = crowd(300, 7).assign(v=lambda t: t.a + 1)
    shared: dict[str, Any] = {"unit": "id", "max_records": 100, "neighbours": relation}
    for groups in (None, {"g": [0, 1]}):
        words: dict[str, Any] = {**shared, "epsilon": 300.0, "groups": groups}
        family = nw.release.exponential_family(
            frame, column="v", family="poisson", bounds=(0, 5), outside="clamp", **words
        )
        tables = nw.release.graphical_model(frame, cliques=[("a",)], levels={"a": [0, 1]}, **words)
        rate = nw.infer(family, draws=200, chains=2, progress=False).draws["rate"]
        assert 0.5 < float(np.mean(rate)) < 3
        fitted = nw.infer(tables)
        assert fitted.converged


def test_an_account_has_one_unit(tmp_path: Any) -> None:
    from noisewise.privacy.ledger import open_ledger

    path = tmp_path / "ledger.db"
    with open_ledger(path, create=True) as ledger:
        ledger.set_budget("people", epsilon=10.0)
    frame = crowd(40, 6)
    shared: dict[str, Any] = {"ledger": path, "dataset": "people"}
    nw.release.linear_regression(frame, **WORDS, unit="id", max_records=2, **shared)
    nw.release.linear_regression(frame, **WORDS, unit="id", max_records=1, **shared)
    with pytest.raises(nw.BudgetError, match="unit"):
        nw.release.linear_regression(frame, **WORDS, **shared)
