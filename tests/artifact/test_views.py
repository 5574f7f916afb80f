"""The tables a person reads: right columns, right units, and noise of the stated size."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest

from noisewise.artifact import (
    ArgumentError,
    Block,
    Bounds,
    Gram,
    Groups,
    Mechanism,
    Noise,
    Population,
    PowerSums,
    Release,
    ReleaseError,
)
from noisewise.artifact.guarantee import noise_sd
from tests.artifact.factories import (
    FACTORIES,
    TRACTS,
    guarantee,
    noise,
    regression,
    regression_with_everything,
)

ODD = {"a": Bounds(-3.7, 11.2), "b": Bounds(1e4, 1e4 + 7), "c": Bounds(-0.003, -0.001)}
F = 2**15


def lattice_records(n: int, seed: int) -> np.ndarray:
    """Records as lattice points of the box: n rows of three integers in [-F, F]."""
    return np.random.default_rng(seed).integers(-F, F + 1, (n, 3))


def in_user_units(records: np.ndarray) -> np.ndarray:
    """The same records as the data owner's table would have them."""
    centre = np.array([(b.lower + b.upper) / 2 for b in ODD.values()])
    half = np.array([(b.upper - b.lower) / 2 for b in ODD.values()])
    return centre + half * records / F


def exact_release(
    tables: list[np.ndarray], count: bool, mechanism: Mechanism = "laplace"
) -> Release:
    """A Release whose values carry no noise at all, put together by hand; one table per group."""
    gram = Gram(tuple(ODD), count)
    values = []
    for records in tables:
        u = np.column_stack([records, np.full(len(records), F)])
        pairs = list(itertools.combinations_with_replacement(range(4), 2))
        values.append([int((u[:, i] * u[:, j]).sum()) for i, j in pairs[: len(gram.names)]])
    grouped = len(tables) > 1
    sizes = () if count else tuple(len(t) for t in tables)
    return Release(
        family="linear-regression",
        model={"x": ("a", "b"), "y": "c"},
        guarantee=guarantee(
            mechanism,
            1.0,
            "add-remove" if count else "replace-one",
            "g" if grouped and not count else None,
        ),
        population=Population("noisy" if count else "public", sizes),
        blocks=(
            Block(
                gram,
                noise(mechanism, 10 * F**2, 1.0),
                np.array(values).T.copy(),
            ),
        ),
        bounds=ODD,
        groups=Groups("g", tuple(range(len(tables)))) if grouped else None,
    )


def textbook_sum(name: str, table: np.ndarray) -> float:
    """What the name says, record by record."""
    columns = [] if name == "n" else name.split("*")
    position = {c: i for i, c in enumerate(ODD)}
    return math.fsum(math.prod(row[position[c]] for c in columns) for row in table)


def test_gram_components_are_named_as_products() -> None:
    assert Gram(("a", "b"), count=True).names == ("a*a", "a*b", "a", "b*b", "b", "n")


@pytest.mark.parametrize("name", FACTORIES)
def test_box_table_has_the_promised_columns(name: str) -> None:
    release = FACTORIES[name]()
    table = release.table()
    assert list(table.columns) == ["group", "statistic", "value", "noise_scale"]
    assert len(table) == sum(block.values.size for block in release.blocks)
    assert table["value"].dtype == table["noise_scale"].dtype == np.float64


@pytest.mark.parametrize("name", FACTORIES)
def test_user_table_states_a_standard_deviation_instead(name: str) -> None:
    table = FACTORIES[name]().table("user")
    assert list(table.columns) == ["group", "statistic", "value", "noise_sd"]
    assert np.isfinite(table[["value", "noise_sd"]].to_numpy()).all()


@pytest.mark.parametrize("count", [False, True])
def test_box_values_are_sums_over_the_box(count: bool) -> None:
    records = lattice_records(200, seed=1)
    release = exact_release([records], count)
    box = dict(zip(ODD, (records / F).T, strict=True))
    table = release.table().set_index("statistic")
    for name, value in table["value"].items():
        columns = [] if name == "n" else str(name).split("*")
        assert value == pytest.approx(
            sum(np.prod([box[c] for c in columns], axis=0) * np.ones(200))
        )
    assert (table["noise_scale"] == 10).all()


@pytest.mark.parametrize("count", [False, True])
@pytest.mark.parametrize("groups", [1, 3])
def test_user_values_are_sums_over_the_table(count: bool, groups: int) -> None:
    tables = [lattice_records(50 + 10 * g, seed=g) for g in range(groups)]
    shown = exact_release(tables, count).table("user")
    assert len(shown) == groups * (9 + count)
    for _, row in shown.iterrows():
        expected = textbook_sum(row["statistic"], in_user_units(tables[row["group"] or 0]))
        assert row["value"] == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("count", [False, True])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_user_noise_is_the_noise_of_every_component_that_enters(
    count: bool, mechanism: Mechanism
) -> None:
    """Push one component at a time and see how far each sum moves: the map, found from outside."""
    release = exact_release([lattice_records(40, seed=2)], count, mechanism)
    block = release.blocks[0]
    plain = release.table("user")
    push = 10 * 4**15  # ten box units, far above rounding
    variance = np.zeros(len(plain))
    for component in range(len(plain)):
        moved = block.values.copy()
        moved[component] += push
        pushed = dataclasses.replace(release, blocks=(Block(block.statistic, block.noise, moved),))
        slope = (pushed.table("user")["value"] - plain["value"]).to_numpy() / push
        variance += slope**2 * noise_sd(block.noise) ** 2
    assert plain["noise_sd"].to_numpy() == pytest.approx(np.sqrt(variance), rel=1e-6)


def test_user_noise_against_simulation() -> None:
    """Of 20,000 draws the sd is off by 0.5 % (one sd): 4 % is a false alarm below 1e-13."""
    release = exact_release([lattice_records(40, seed=3)], False, "gaussian")
    block, rng = release.blocks[0], np.random.default_rng(4)
    draws = np.rint(rng.normal(0, block.noise.scale, (9, 20_000))).astype(np.int64)
    groups = Groups("g", tuple(range(20_000)))
    many = dataclasses.replace(
        release,
        blocks=(Block(block.statistic, block.noise, block.values + draws),),
        groups=groups,
        guarantee=dataclasses.replace(release.guarantee, within="g"),
        population=Population("public", (40,) * 20_000),
    )
    table = many.table("user")
    spread = table.groupby("statistic", sort=False)["value"].std().to_numpy()
    assert spread == pytest.approx(table["noise_sd"].to_numpy()[:9], rel=0.04)


@pytest.mark.parametrize("scale", [1e-4, 0.01, 0.1, 0.3, 0.5, 1.0, 2.0, 5.0, 9.99, 10.01, 30.0])
def test_noise_sd_is_that_of_the_discrete_distributions(scale: float) -> None:
    k = np.arange(-3000, 3001)
    for mechanism, log_weight in (
        ("laplace", -abs(k) / scale),
        ("gaussian", -((k / scale) ** 2) / 2),
    ):
        weight = np.exp(log_weight)
        expected = math.sqrt(k**2 @ weight / weight.sum())
        found = noise_sd(Noise(mechanism, scale, scale / 1e9, 1e9))  # type: ignore[arg-type]
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-150)


def test_noise_sd_of_large_scales_is_the_continuous_one() -> None:
    assert noise_sd(noise("laplace", 1e10, 1.0)) == pytest.approx(math.sqrt(2) * 1e10)
    assert noise_sd(noise("gaussian", 1e10, 0.5)) == 1e10


def test_power_sums_are_in_natural_units() -> None:
    heights = np.array([150.0, 175.5, 209.0, 181.25])
    statistic = PowerSums("h", 140, 210, "clamp", degree=2, count=False, origin=175, scale=64.0)
    steps = np.rint((heights - 175) / 64 * F).astype(np.int64)
    values = np.array([[(steps * F).sum()], [(steps**2).sum()]])
    release = Release(
        family="exponential-family",
        model={"distribution": "normal"},
        guarantee=guarantee("laplace", 1.0, "replace-one"),
        population=Population("public", (4,)),
        blocks=(Block(statistic, noise("laplace", 4 * F**2, 1.0), values),),
        bounds={"h": Bounds(140, 210)},
    )
    table = release.table().set_index("statistic")
    assert table["value"]["(h-175.0)"] == pytest.approx((heights - 175).sum())
    assert table["value"]["(h-175.0)*(h-175.0)"] == pytest.approx(((heights - 175) ** 2).sum())
    assert list(table["noise_scale"]) == [4 * 64.0, 4 * 64.0**2]


def test_counts_are_counts() -> None:
    release = FACTORIES["categorical"]()
    table = release.table()
    assert list(table["statistic"]) == ["sex=f", "sex=m", "sex=x"]
    assert list(table["value"]) == release.blocks[0].values[:, 0].tolist()
    assert (table["noise_scale"] == 2.0).all()


def test_groups_follow_one_another_in_public_order() -> None:
    release = FACTORIES["regression-groups-add-remove"]()
    table = release.table()
    assert list(dict.fromkeys(table["group"])) == list(TRACTS.keys)
    second = table[table["group"] == "0102"]["value"].to_numpy()
    assert (second == release.blocks[0].scaled[:, 1]).all()


def test_an_ungrouped_table_has_no_group() -> None:
    assert regression().table()["group"].isna().all()


def test_monomials_stay_in_the_box() -> None:
    release = regression_with_everything()
    assert "pir^1" in set(release.table()["statistic"])
    assert "pir^1" not in set(release.table("user")["statistic"])


def test_unknown_units_are_refused() -> None:
    with pytest.raises(ArgumentError, match="units: must be 'box' or 'user', not 'metric'"):
        regression().table("metric")  # type: ignore[arg-type]


def test_a_missing_block_is_named_with_those_there() -> None:
    with pytest.raises(ReleaseError, match="no 'tables' statistics; it has: gram, monomials, clam"):
        regression_with_everything().block("tables")
