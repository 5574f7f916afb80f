"""Releases of a formula: the sums of real tables, gaps and other levels, and what is refused."""

from __future__ import annotations

import dataclasses
import datetime
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import noisewise as nw
from noisewise.artifact.clamping import left_out_in_words
from noisewise.artifact.guarantee import noise_sd
from noisewise.artifact.statistics import CellSums
from noisewise.artifact.statistics.cell_sums import product_bounds
from noisewise.models.linear_regression import LinearRegressionRelease
from noisewise.privacy import arguments
from noisewise.release import Blank, PrivateBounds
from tests.engines.engines import on_duckdb, on_polars
from tests.privacy.refusals import SECRET

Refused = Callable[..., str]

FORMULA = "wages ~ age * C(sex) + smokes + I(age**2)"
BOUNDS: dict[str, Any] = {"wages": (0, 10), "age": (0, 100)}
LEVELS: dict[str, Any] = {"sex": ["female", "male", "unknown"], "smokes": [False, True]}
WORDS: dict[str, Any] = {"formula": FORMULA, "bounds": BOUNDS, "levels": LEVELS, "epsilon": 1.0}
QUIET = {**WORDS, "epsilon": 1e9}
UNKNOWN = {"sex": "unknown"}


def people(rows: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.uniform(18, 110, rows),
            "sex": rng.choice(["female", "male"], rows),
            "smokes": rng.random(rows) < 0.3,
            "wages": rng.uniform(1, 9, rows),
        }
    )


def with_gaps() -> pd.DataFrame:
    frame = people().astype({"smokes": "boolean"})
    frame.loc[:4, "sex"] = None
    frame.loc[3:9, "age"] = np.nan
    frame.loc[12:13, "smokes"] = pd.NA
    return frame


def release(source: Any, **words: Any) -> nw.Release:
    return nw.release.linear_regression(source, **{**QUIET, **words})


def expected(made: nw.Release, frame: pd.DataFrame) -> np.ndarray:
    """The sums by pandas, block after block, of columns that are clamped and mapped to the box."""
    statistic = made.block("cell-sums").statistic
    assert isinstance(statistic, CellSums)
    box = {}
    for column in statistic.numeric:
        value = np.ones(len(frame))
        for name in column:
            limits = made.bounds[name]
            value = value * frame[name].clip(limits.lower, limits.upper).to_numpy(float)
        limits = product_bounds(column, made.bounds)
        box[column] = (value - limits.centre) / limits.half_width
    sums: list[float] = []
    for product, within in statistic.blocks:
        value = np.ones(len(frame))
        for i in product:
            value = value * box[statistic.numeric[i]]
        factors = [statistic.factors[f] for f in within]
        if not factors:
            sums.append(value.sum())
            continue
        lists = [statistic.levels[f] for f in factors]
        index = pd.MultiIndex.from_product(lists, names=factors)
        grouped = pd.Series(value).groupby([frame[f].to_numpy() for f in factors]).sum()
        sums += grouped.reindex(index if len(factors) > 1 else lists[0], fill_value=0).tolist()
    return np.array(sums)


def check(made: nw.Release, frame: pd.DataFrame) -> None:
    found = made.block("cell-sums").scaled[:, 0]
    # Two roundings to the lattice for every record, each of at most half a step.
    np.testing.assert_allclose(found, expected(made, frame), atol=len(frame) * 2.0**-14)
    assert nw.Release.from_json(made.to_json()) == made


def test_sums_of_a_table_with_text_booleans_and_numbers() -> None:
    made = release(people())
    assert made.model == {"formula": FORMULA, "y": "wages"}
    assert made.block("cell-sums").statistic.names[-1] == "n[sex=unknown,smokes=1]"
    check(made, people())


def test_gaps_are_filled_and_unlisted_levels_counted() -> None:
    frame = with_gaps()
    frame.loc[20:22, "sex"] = "other"
    made = release(frame, fill={**UNKNOWN, "age": 40, "smokes": False}, other=UNKNOWN)
    assert made.fill == {"sex": "unknown", "age": 40, "smokes": 0}
    filled = frame.fillna({"sex": "unknown", "age": 40, "smokes": False}).replace(
        "other", "unknown"
    )
    check(made, filled.astype({"smokes": bool}))


def test_under_add_remove_records_with_gaps_are_left_out() -> None:
    made = release(with_gaps(), neighbours="add-remove", fill={"smokes": True})
    kept = with_gaps().fillna({"smokes": True}).dropna().reset_index(drop=True)
    check(made, kept.astype({"smokes": bool}))
    assert made.n is None


@pytest.mark.parametrize("engine", ["frame", "csv", "duckdb", "polars"])
def test_records_with_gaps_are_counted(engine: str, tmp_path: Path) -> None:
    """Gaps of any column, in every engine; a filled column has none."""
    frame = with_gaps().assign(smokes=lambda t: t["smokes"].map({True: "yes", False: "no"}))
    source: Any = frame
    if engine == "csv":
        source = tmp_path / "people.csv"
        frame.to_csv(source, index=False)
    elif engine != "frame":
        table = pa.Table.from_pandas(frame, preserve_index=False)
        source = on_duckdb(table) if engine == "duckdb" else on_polars(table)
    made = release(
        source, neighbours="add-remove", fill={"smokes": "yes"}, count_left_out=True,
        levels={**LEVELS, "smokes": ["no", "yes"]},
    )  # fmt: skip
    block = made.block("left-out")
    assert block.statistic.columns == ("age", "wages", "sex", "smokes")
    assert block.values.tolist() == [[frame[["age", "sex", "wages"]].isna().any(axis=1).sum()]]
    assert nw.Release.from_json(made.to_json()) == made


def test_the_analyst_hears_of_records_left_out() -> None:
    made = release(with_gaps(), neighbours="add-remove", count_left_out=True)
    said = left_out_in_words(made)
    assert said[0].startswith("About 12 records (give or take 0) have gaps and were left out")
    none = release(people(), neighbours="add-remove", count_left_out=True)
    assert left_out_in_words(none) == left_out_in_words(release(people())) == ()
    gram = nw.release.linear_regression(
        with_gaps(), x="age", y="wages", bounds=BOUNDS, epsilon=1e9, neighbours="add-remove",
        count_left_out=True,
    )  # fmt: skip
    with pytest.warns(UserWarning, match="About 7 records"):
        nw.infer(gram, method="naive")


def test_records_left_out_are_not_counted_where_one_person_could_be_many(refused: Refused) -> None:
    words = {**WORDS, "count_left_out": True}
    door = nw.ArgumentError, nw.release.linear_regression
    assert "no record may be left out" in refused(*door, people(), **words)
    frame = people().assign(who=range(60))
    many = {**words, "neighbours": "add-remove"}
    assert "without unit=" in refused(*door, frame, **many, unit="who", max_records=2)
    assert "without groups=" in refused(*door, frame, **many, groups={"who": range(60)})


def test_private_bounds_and_clamped_counts_of_a_formula() -> None:
    bounds = {**BOUNDS, "wages": PrivateBounds((0, 1e6))}
    made = release(people(), bounds=bounds, count_clamped=True)
    assert made.bounds["wages"].upper < 20
    check(made, people())
    clamped = made.block("clamped")
    assert clamped.statistic.columns == ("age", "wages")
    assert clamped.values[0, 0] == (people()["age"] > 100).sum()


def test_a_formula_of_plain_columns_is_x_and_y() -> None:
    bounds = {**BOUNDS, "smokes": (0, 1)}
    made = release(people(), formula="wages ~ age + smokes", bounds=bounds, levels=None)
    named = release(
        people(), formula=None, x=["age", "smokes"], y="wages", bounds=bounds, levels=None
    )
    assert made.model == {**named.model, "formula": "wages ~ age + smokes"}
    assert made.block("gram").statistic == named.block("gram").statistic
    np.testing.assert_allclose(made.block("gram").scaled, named.block("gram").scaled, atol=1e-5)
    assert nw.Release.from_json(made.to_json()) == made


def test_products_without_factors_count_records_where_n_is_secret() -> None:
    words = {**WORDS, "formula": "wages ~ age + I(age**2)", "levels": None}
    public = nw.release.linear_regression(Blank(100), **words)
    secret = nw.release.linear_regression(Blank(100), **words, neighbours="add-remove")
    assert "n" not in public.block("cell-sums").statistic.names
    assert secret.block("cell-sums").statistic.names[-1] == "n"


def test_noise_does_not_grow_with_levels() -> None:
    few, many = (
        nw.release.linear_regression(
            Blank(1000), **{**WORDS, "levels": {"sex": range(count), "smokes": [0, 1]}}
        )
        for count in (2, 50)
    )
    assert few.block("cell-sums").noise.scale == many.block("cell-sums").noise.scale


def test_thousands_of_levels_are_paid_for_only_where_they_are_meant(refused: Refused) -> None:
    words = {**WORDS, "formula": "wages ~ C(sex) + age", "levels": {"sex": range(3000)}}
    said = refused(nw.ArgumentError, nw.release.linear_regression, people(), **words)
    assert "levels: the formula needs 9,003 sums, more than 2,000; noise does not grow" in said
    assert said.endswith("or, if so many are meant, say many_sums=True")
    allowed = nw.release.linear_regression(Blank(4000), **words, many_sums=True)
    assert len(allowed.block("cell-sums").values) == 9003
    said = refused(
        nw.ArgumentError, nw.release.linear_regression, people(),
        **{**words, "levels": {"sex": range(700_000)}},
    )  # fmt: skip
    assert "sums, more than a file may hold, 2000000; join levels, or leave out" in said


def test_products_that_noise_makes_useless_are_said_at_the_release() -> None:
    words = {"formula": "wages ~ age + I(age**2)", "levels": None, "epsilon": 1.0}
    with pytest.warns(UserWarning, match="Between its bounds 'age' and its powers are nearly one"):
        release(people(), **words)
    frame = people().assign(age=people()["age"] - 50)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        release(frame, **words, bounds={**BOUNDS, "age": (-50, 50)})


def test_a_release_tells_its_levels() -> None:
    made = release(people())
    assert isinstance(made, LinearRegressionRelease)
    assert made.levels == {"sex": ("female", "male", "unknown"), "smokes": (0, 1)}
    plain = nw.release.linear_regression(
        Blank(9), x="age", y="wages", bounds={c: BOUNDS[c] for c in ("age", "wages")}, epsilon=1.0
    )
    assert plain.levels == {}


def test_dates_are_days() -> None:
    ends = datetime.date(1920, 1, 1), datetime.date(2010, 1, 1)
    words = {"formula": "wages ~ born", "levels": None, "fill": {"born": datetime.date(1970, 1, 3)}}
    made = release(Blank(9), **words, bounds={"wages": (0, 1), "born": ends})
    assert (made.bounds["born"].lower, made.bounds["born"].upper) == (-18263, 14610)
    assert made.fill["born"] == 2
    noon = datetime.datetime(1970, 1, 2, 12)
    for moment in (noon, noon.date(), pd.Timestamp(noon), np.datetime64(noon, "ns")):
        assert arguments.number_or_date(moment, "fill") == 1
    for odd in (noon.replace(tzinfo=datetime.UTC), pd.NaT):
        with pytest.raises(nw.ArgumentError, match="fill: must be a date without a time zone"):
            arguments.number_or_date(odd, "fill")
    with pytest.raises(nw.ArgumentError, match="fill: must be a number"):
        arguments.number_or_date(np.datetime64("NaT"), "fill")


def test_columns_of_dates_are_summed_as_days() -> None:
    days = np.arange(0, 600, 10)
    words: dict[str, Any] = {"formula": "wages ~ born * C(sex)", "levels": {"sex": LEVELS["sex"]}}
    words["bounds"] = {"wages": (0, 10), "born": (datetime.date(1970, 1, 1), pd.Timestamp("1971"))}
    frame = people().assign(born=days)
    dated = frame.assign(born=pd.to_datetime(days, unit="D"))
    check(release(dated, **words), frame)
    dated["born"] = dated["born"].dt.date
    check(release(dated, **words), frame)


def test_bounds_of_dates_are_dates(tmp_path: Path) -> None:
    """Days, years and the like clamp every date to one of a few days, and nobody would see it."""
    frame = people().assign(born=pd.date_range("1940-01-01", periods=60))
    frame.to_csv(tmp_path / "dates.csv", index=False)
    numbers = people().assign(born=range(1940, 2000))
    numbers.to_csv(tmp_path / "numbers.csv", index=False)
    words: dict[str, Any] = {"formula": "wages ~ born * C(sex)", "levels": {"sex": LEVELS["sex"]}}
    days, years = (datetime.date(1920, 1, 1), datetime.date(2010, 1, 1)), (1920, 2010)
    sources: tuple[tuple[bool, Any], ...] = (
        (True, frame), (True, tmp_path / "dates.csv"),
        (False, numbers), (False, tmp_path / "numbers.csv"),
    )  # fmt: skip
    for dated, source in sources:
        fitting, other = (days, years) if dated else (years, days)
        release(source, **words, bounds={"wages": (0, 10), "born": fitting})
        release(source, **words, bounds={"wages": (0, 10), "born": nw.Bounds(0, 30_000)})
        for odd in (other, (days[0], 30_000)) if dated else (other,):
            with pytest.raises(nw.DataError, match=r"'born' holds .*, but its bounds are "):
                release(source, **words, bounds={"wages": (0, 10), "born": odd})


@pytest.mark.parametrize(("bounds", "held"), [((0, 9999), "dates"), (("1970", "2020"), "numbers")])
def test_a_column_of_dates_and_numbers(bounds: Any, held: str, tmp_path: Path) -> None:
    """Which cells fit follows from the bounds, wherever the one stands that does not."""
    ends = tuple(np.datetime64(b) if isinstance(b, str) else b for b in bounds)
    words: dict[str, Any] = {"formula": "wages ~ born", "levels": None}
    for odd in (0, 59):
        usual, other = ("500", "1990-01-01") if held == "dates" else ("1990-01-01", "500")
        cells = [usual] * 60
        cells[odd] = other
        people().assign(born=cells).to_csv(tmp_path / "mixed.csv", index=False)
        with pytest.raises(nw.DataError, match=f"'born' holds {held}, but its bounds"):
            release(tmp_path / "mixed.csv", **words, bounds={"wages": (0, 10), "born": ends})


def test_lists_of_numbers_and_of_texts_fit_either_source(tmp_path: Path) -> None:
    frame = people().assign(sex=np.arange(60) % 3)
    texts = frame.assign(sex=frame["sex"].astype(str), smokes=frame["smokes"].astype(str))
    frame.to_csv(tmp_path / "people.csv", index=False)
    wanted = release(frame, levels={**LEVELS, "sex": [0, 1, 2]}).block("cell-sums").scaled
    floats = frame.astype({"sex": float})
    lists: tuple[Any, ...] = ([0, 1, 2], ["0", "1", "2"])
    for source in (frame, texts, floats, tmp_path / "people.csv"):
        for listed in lists:
            flags = [False, True] if source is not texts else ["False", "True"]
            made = release(source, levels={"sex": listed, "smokes": flags})
            np.testing.assert_allclose(made.block("cell-sums").scaled, wanted, atol=1e-3)


USER_UNITS: tuple[dict[str, Any], ...] = (
    {},
    {"neighbours": "add-remove"},
    {"formula": "wages ~ age + I(age**2)", "levels": None},
    {"formula": "wages ~ age:C(sex) + C(smokes)"},
)


@pytest.mark.parametrize("words", USER_UNITS)
def test_sums_in_the_units_of_the_user(words: dict[str, Any]) -> None:
    """Sums of the clamped columns by pandas; noise as every released number moves each sum."""
    made, frame = release(people(), **words), people()
    for name, limits in made.bounds.items():
        frame[name] = frame[name].clip(limits.lower, limits.upper)
    table = made.table(units="user")
    block = made.block("cell-sums")
    assert tuple(table["statistic"]) == block.statistic.names
    for _, name, value, sd in table.itertuples(index=False):
        product, _, cell = name.partition("[")
        rows = frame
        for pair in cell.rstrip("]").split(",") if cell else ():
            factor, _, level = pair.partition("=")
            rows = rows[rows[factor].map(lambda v: str(int(v) if v in (0, 1) else v)) == level]
        columns = [c.partition("^") for c in product.split("*") if c != "n"]
        wanted = np.prod([rows[c] ** int(k or 1) for c, _, k in columns] or [rows.age**0], axis=0)
        assert value == pytest.approx(wanted.sum(), rel=1e-3, abs=0.1 + 20 * sd), name
    step = 10**9
    moved = []
    for i in range(len(block.values)):
        values = block.values.copy()
        values[i] += step
        other = dataclasses.replace(made, blocks=(dataclasses.replace(block, values=values),))
        moved.append((other.table(units="user")["value"] - table["value"]) / step)
    deviation = noise_sd(block.noise) * np.linalg.norm(np.array(moved), axis=0)
    np.testing.assert_allclose(table["noise_sd"], deviation, rtol=1e-5)


# -- refusals --------------------------------------------------------------------------------------

ONLY_SEX = {"sex": LEVELS["sex"]}
REFUSED: tuple[tuple[dict[str, Any], str], ...] = (
    ({"formula": None, "levels": None}, "x: name the covariates (x=) and the response (y=), or"),
    ({"formula": None, "levels": None, "x": "age"}, "y: name the covariates (x=) and the response"),
    ({"formula": None, "x": "age", "y": "wages"}, "levels: go with a formula, such as formula="),
    ({"x": "age"}, "x: the formula names all columns; give one of the two"),
    ({"y": "wages"}, "y: the formula names all columns; give one of the two"),
    ({"monomials": True}, "monomials: are those of x; name x and y in place of a formula"),
    ({"formula": "wages ~ age +"}, "formula: 'wages ~ age +' cannot be read"),
    ({"formula": pd.Series([SECRET])}, "formula: must be a text such as 'wages ~ age', not Series"),
    ({"formula": "wages ~ age + wages"}, "formula: the response 'wages' is among the terms"),
    ({"formula": "C(sex) ~ age"}, "formula: the response is a factor, C(sex); it must be a number"),
    ({"formula": "sex ~ age + smokes"}, "levels: 'sex' is the response, which must be a number"),
    ({"formula": "wages ~ C(sex, contr.treatment('x')) + smokes"}, "'x' is not a level of sex"),
    ({"formula": "wages ~ C(sex) + I(age**2) + I(age*age)"}, "are the same column"),
    ({"formula": "wages ~ sex + C(sex)"}, "formula: 'sex' is written as sex and as C(sex)"),
    ({"levels": None}, "levels: none for the factor 'sex'; levels are public knowledge: give them"),
    ({"levels": pd.Series([SECRET])}, "levels: must be a dictionary"),
    (
        {"levels": {**LEVELS, "smokes": pd.Series([NAN := float("nan")])}},
        "levels['smokes']: entry 0",
    ),
    ({"levels": {**LEVELS, "smokes": [True]}}, "levels['smokes']: a factor has two or more levels"),
    ({"levels": {**LEVELS, "area": ["a", "b"]}}, "levels: 'area' is not in the formula"),
    (
        {"levels": {**LEVELS, "area": []}, "formula": "wages ~ age + (C(sex)"},
        "cannot be read: a parenthesis lacks its partner",
    ),
    (
        {"bounds": {"educ": (0, 1), "wages": (0, 10), "age": (9, 0)}},
        "bounds['age']: lower",
    ),
    ({"bounds": {"wages": (0, 10), "agee": (0, 100)}}, "'agee' has bounds but is no column"),
    ({"levels": {**LEVELS, "wages": [1, 2]}}, "levels: 'wages' is the response"),
    (
        {"formula": "wages ~ I(age**2) + C(sex)", "levels": {**ONLY_SEX, "age": [1, 2]}},
        "levels: 'age' is a number in I(age ** 2); only a factor, C(age), has levels",
    ),
    (
        {"formula": "wages ~ C(sex) + age:C(age)", "levels": {**ONLY_SEX, "age": [1, 2]}},
        "formula: 'age' is written as age and as C(age)",
    ),
    ({"formula": "wages ~ age + C(age)"}, "formula: 'age' is used as a number and as a factor"),
    ({"bounds": {**BOUNDS, "sex": (0, 1)}}, "bounds: 'sex' is a factor, which has levels and no"),
    ({"bounds": {"wages": (0, 10)}}, "bounds: none for column 'age'"),
    ({"bounds": None}, "bounds: none; bounds are public knowledge"),
    ({"bounds": {**BOUNDS, "educ": (0, 1)}}, "bounds: 'educ' is not among the columns age, wages"),
    ({"bounds": {**BOUNDS, "age": (0, 1e100)}}, "bounds: those of age^2 lie beyond"),
    ({"fill": {"sex": "x"}}, "fill['sex']: 'x' is not among the column's levels"),
    ({"fill": {"age": 200}}, "fill['age']: 200 lies outside the column's bounds"),
    ({"fill": {"educ": 1}}, "fill: 'educ' is not among age, wages, sex, smokes"),
    ({"other": {"sex": "x"}}, "other['sex']: 'x' is not among the column's levels"),
    ({"other": {"age": 1}}, "other: 'age' is not among sex, smokes"),
    ({"groups": {"sex": ["female", "male"]}}, "groups: the group column must not be among"),
    ({"unit": "sex", "max_records": 1}, "unit must not be among the statistics' columns"),
    (
        {"formula": "wages ~ age", "levels": None, "other": {"sex": "x"}},
        "other: 'sex' has no levels",
    ),
)


@pytest.mark.parametrize(("words", "said"), REFUSED)
def test_bad_words_cost_nothing(words: dict[str, Any], said: str, refused: Refused) -> None:
    given = {**WORDS, "epsilon": 0.1, **words}
    message = refused(nw.ArgumentError, nw.release.linear_regression, people(), **given)
    assert said in message


UNFIT: tuple[tuple[dict[str, Any], dict[str, Any], str], ...] = (
    ({"sex": SECRET}, {}, "column 'sex' holds a value outside its public list"),
    (
        {"sex": None},
        {},
        "column 'sex' has missing values. Under replace-one neighbours n is public",
    ),
    ({"sex": SECRET}, {"bounds": {**BOUNDS, "wages": PrivateBounds((0, 10))}}, "public list"),
    ({"sex": None}, {"bounds": {**BOUNDS, "wages": PrivateBounds((0, 10))}}, "has missing values"),
    ({"age": SECRET}, {}, "column 'age' must be numeric, but holds text"),
)


@pytest.mark.parametrize(("columns", "words", "said"), UNFIT)
def test_unfit_tables_cost_nothing(
    columns: dict[str, Any], words: dict[str, Any], said: str, refused: Refused
) -> None:
    frame, given = people().assign(**columns), {**WORDS, "epsilon": 0.1, **words}
    assert said in refused(nw.DataError, nw.release.linear_regression, frame, **given)


def test_a_formula_of_other_columns(refused: Refused) -> None:
    words = {"formula": "wages ~ height", "bounds": {"wages": (0, 1), "height": (0, 1)}}
    said = refused(nw.DataError, nw.release.linear_regression, people(), **words, epsilon=0.1)
    assert said.startswith("column 'height' is not in the data frame; it has: 'age', 'sex'")


# -- files whose formula and sums differ -----------------------------------------------------------

CONTRADICTIONS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"formula": None}, "model: 'formula' must be a non-empty text"),
    ({"formula": "wages ~"}, "model: formula: 'wages ~' has no term beside the intercept"),
    ({"formula": "wages ~ (a+b+c+d+e+f+g+h)**99"}, "model: formula: has more than 300 terms"),
    ({"formula": "wages ~ C(area)"}, "model: formula: 'area' has no levels"),
    ({"formula": "wages ~ C(sex, contr.treatment('x'))"}, "'x' is not a level of sex"),
    ({"formula": "age ~ sex"}, "model: 'y' is not the response of 'formula'"),
    ({"y": 5}, "model: 'y' must be a non-empty text"),
    ({"formula": "wages ~ educ"}, "model: 'formula' needs educ, which is not released"),
    (
        {"formula": "age ~ wages * C(sex)", "y": "age"},
        "model: 'formula' needs wages * wages within the levels of sex, which is not released",
    ),
)


@pytest.mark.parametrize(("words", "said"), CONTRADICTIONS)
def test_files_that_contradict_themselves(words: dict[str, Any], said: str) -> None:
    made = release(Blank(100))
    model = {k: v for k, v in {**made.model, **words}.items() if v is not None}
    with pytest.raises(nw.ReleaseError) as refused:
        dataclasses.replace(made, model=model)
    assert said in str(refused.value)


def test_the_formula_of_a_gram_names_its_columns() -> None:
    made = release(Blank(100), formula="wages ~ age", levels=None)
    for model, said in (
        ({**made.model, "formula": "wages ~ age + educ"}, "'formula' and 'x' name different"),
        ({**made.model, "formula": "age ~ wages"}, "model: 'y' is not the response of 'formula'"),
    ):
        with pytest.raises(nw.ReleaseError, match=said):
            dataclasses.replace(made, model=model)


def test_a_list_of_one_group_counts_every_record_once() -> None:
    table = pd.DataFrame(
        {"y": [0.0, 1.0] * 20, "x": [0.5] * 40, "f": ["a", "b"] * 20, "g": ["one"] * 40}
    )
    words: dict[str, Any] = {
        "formula": "y ~ x + C(f)",
        "bounds": {"y": (0, 1), "x": (0, 1)},
        "levels": {"f": ["a", "b"]},
        "epsilon": 1e9,
        "large_epsilon": True,
    }
    alone = nw.release.linear_regression(table, **words)
    grouped = nw.release.linear_regression(table, groups={"g": ["one"]}, **words)
    first, second = (r.block("cell-sums") for r in (alone, grouped))
    np.testing.assert_allclose(first.scaled[:, 0], second.scaled[:, 0], atol=1e-3)


def test_too_few_records_for_the_levels_are_refused_before_anything_is_spent() -> None:
    table = pd.DataFrame({"y": [0.0, 1.0] * 6, "f": [0, 1] * 6})
    with pytest.raises(nw.NoisewiseError, match="records"):
        nw.release.linear_regression(
            table,
            formula="y ~ C(f)",
            bounds={"y": (0, 1)},
            levels={"f": list(range(20))},
            epsilon=1.0,
        )
