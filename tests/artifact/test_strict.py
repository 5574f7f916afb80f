"""Bad content, one kind at a time: refused with a ReleaseError that says what and where."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from noisewise.artifact import Release, ReleaseError, release_files
from tests.artifact.factories import FACTORIES, content_of, redigested, regression
from tests.artifact.refusals import check_case, drop, put, refused

TEXT = regression().to_json()
DEEP = 100_000


# -- text that is no JSON, or not ours ---------------------------------------------------------


def swapped(old: str, new: str) -> str:
    """The file with one piece of text exchanged, and its digest left as it was."""
    assert TEXT.count(old) == 1, old
    return TEXT.replace(old, new)


NOT_A_RELEASE = {
    "an empty file": (b"", "the file is empty"),
    "white space only": (b" \n ", "not valid JSON (line 2"),
    "truncated": (TEXT[: len(TEXT) // 2], "not valid JSON (line"),
    "two documents": (TEXT + TEXT, "Extra data"),
    "a list": ("[]", "must be a JSON object, not a list of 0"),
    "a number": ("1", "must be a JSON object, not 1"),
    "null": ("null", "must be a JSON object, not null"),
    "Latin-1": (TEXT.replace("alter", "älter").encode("latin-1"), "not UTF-8 text (byte"),
    "UTF-16": (TEXT.encode("utf-16"), "not UTF-8 text (byte 0)"),
    "UTF-16 without a mark": (TEXT.encode("utf-16-le"), "not valid JSON (line 1, column 2)"),
    "a byte-order mark": (TEXT.encode("utf-8-sig"), "BOM"),
    "a byte-order mark in text": ("\ufeff" + TEXT, "BOM"),
    "a posterior": (b"\x89HDF\r\n", "load_posterior opens"),
    "a surrogate in UTF-8": (b'{"a": "\xed\xa0\x80"}', "not UTF-8 text (byte 7)"),
    "deep lists": ("[" * DEEP + "]" * DEEP, "nested too deeply"),
    "deep objects": ('{"a":' * DEEP + "1" + "}" * DEEP, "nested too deeply"),
    "deep and unclosed": ("[" * DEEP, "nested too deeply"),
    "NaN": (swapped('"epsilon": 1.0', '"epsilon": NaN'), "NaN stands for a number"),
    "Infinity": (swapped('"epsilon": 1.0', '"epsilon": Infinity'), "Infinity stands"),
    "-Infinity": (swapped('"epsilon": 1.0', '"epsilon": -Infinity'), "-Infinity stands"),
    "1e999": (swapped('"epsilon": 1.0', '"epsilon": 1e999'), "epsilon must be finite, not inf"),
    "-1e999": (swapped("[-2.5, 7.25]", "[-1e999, 7.25]"), "'kir': bounds: lower must be finite"),
    "5000 digits": (swapped('"epsilon": 1.0', '"epsilon": ' + "9" * 5000), "thousands of digits"),
    "4000 digits": (
        swapped('"epsilon": 1.0', '"epsilon": ' + "9" * 4000),
        "epsilon is too large: a whole number of more than 40 digits",
    ),
    "a key twice": (
        swapped('"epsilon": 1.0', '"epsilon": 1.0, "epsilon": 1.0'),
        "keys of a JSON object must not repeat an entry: 'epsilon' stands twice",
    ),
    "a comment": ("// mine\n" + TEXT, "not valid JSON (line 1, column 1)"),
    "single quotes": (TEXT.replace('"', "'"), "not valid JSON (line 2, column 3)"),
    "a trailing comma": (swapped('"created": ""', '"created": "",'), "not valid JSON"),
    "another format": (swapped("noisewise-release", "geojson"), "not 'geojson'; this is some"),
    "no format": (swapped('"format": "noisewise-release",', ""), "'format' is missing"),
    "version 0": (swapped('"version": 1', '"version": 0'), "version must be a whole number in [1"),
    "version 2": (swapped('"version": 1', '"version": 2'), "has version 2, this noisewise reads"),
    "version as text": (swapped('"version": 1', '"version": "1"'), "whole number in [1"),
    "version true": (swapped('"version": 1', '"version": true'), "not true"),
    "version 1.0": (swapped('"version": 1', '"version": 1.0'), "not 1.0"),
    "a changed number": (swapped("[-2.5, 7.25]", "[-2.5, 7.5]"), "does not match its sha256"),
    "a changed sign of zero": (swapped("[0.0, 1.0]", "[-0.0, 1.0]"), "does not match its sha256"),
    "no digest": (TEXT.replace("sha256", "sha255"), "'sha256' is missing"),
}


@pytest.mark.parametrize(("content", "fragment"), NOT_A_RELEASE.values(), ids=NOT_A_RELEASE.keys())
def test_text_that_is_no_release(content: str | bytes, fragment: str) -> None:
    refused(content, fragment)


def test_a_number_written_another_way_is_the_same_number() -> None:
    assert Release.from_json(swapped('"epsilon": 1.0', '"epsilon": 10E-1')) == regression()


@pytest.mark.parametrize("content", ['{"type": "FeatureCollection"}', "[1]", "id,bmi\n1,20\n", ""])
def test_other_files_are_said_to_be_no_release(content: str, tmp_path: Path) -> None:
    refused(content, "release: this is not a noisewise release")
    path = tmp_path / "other.json"
    path.write_text(content)
    unreadable(path, f"release: '{path}' is not a noisewise release")


# -- paths -------------------------------------------------------------------------------------


def unreadable(path: str | Path, fragment: str) -> None:
    with pytest.raises(ReleaseError, match=re.escape(fragment)):
        Release.load(path)


def test_a_missing_file(tmp_path: Path) -> None:
    unreadable(tmp_path / "none.json", "none.json: No such file or directory")


def test_a_folder(tmp_path: Path) -> None:
    unreadable(tmp_path, f"cannot read {tmp_path}: Is a directory")


def test_a_path_that_cannot_be_one() -> None:
    unreadable("a\0b", r"'a\x00b' is not a file name")


def test_an_oversize_file_is_refused_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "big.json"
    with path.open("wb") as file:
        file.truncate(release_files.MAX_BYTES + 1)  # sparse: it takes no disk
    monkeypatch.setattr(release_files, "open", lambda *_: pytest.fail("was opened"), raising=False)
    unreadable(path, "big.json is larger than 256 MiB")


def test_a_pipe_is_read_only_as_far_as_a_release_may_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(release_files, "MAX_BYTES", 1000)
    read, write = os.pipe()
    os.write(write, b" " * 50_000)
    unreadable(f"/dev/fd/{read}", "larger than")
    assert len(os.read(read, 50_000)) > 10_000  # the rest was left where it is
    os.close(read)
    os.close(write)


def test_oversize_content_is_refused_unparsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release_files, "MAX_BYTES", len(TEXT) - 1)
    refused(TEXT, "larger than")


# -- content with a right digest ---------------------------------------------------------------


FULL = "regression-with-everything"
NOISE, GRAM = "blocks.0.noise", "blocks.0.statistic"
FIELDS = [
    *(f"{name}" for name in content_of(regression()) if name not in ("format", "version")),
    *(f"guarantee.{n}" for n in ("epsilon", "neighbours", "delta", "rho", "within")),
    *(f"population.{n}" for n in ("policy", "sizes", "total")),
    *(f"receipt.{n}" for n in ("ledger", "dataset", "entry")),
    *(f"selections.0.{n}" for n in ("column", "within", "half_candidates", "quantiles", "cost")),
    *(f"blocks.0.{n}" for n in ("statistic", "noise")),
    *(f"{NOISE}.{n}" for n in ("mechanism", "scale", "sensitivity", "cost")),
    *(f"{GRAM}.{n}" for n in ("kind", "columns", "count", "bits")),
    *(f"blocks.1.statistic.{n}" for n in ("columns", "degree", "bits")),
]


@pytest.mark.parametrize("path", [f for f in FIELDS if f != "sha256"])
def test_a_missing_field_is_named(path: str) -> None:
    check_case(FULL, drop(path), f"{path.split('.')[-1]!r} is missing")


PLACES = ["guarantee", "population", "receipt", "selections.0", "blocks.0", NOISE, GRAM]


@pytest.mark.parametrize("place", ["", *(f"{p}." for p in PLACES)])
def test_an_unknown_field_is_named(place: str) -> None:
    check_case(FULL, put(f"{place}comment", "hello"), "unknown field 'comment'")


@pytest.mark.parametrize("path", [f for f in FIELDS if f not in ("created", "sha256")])
@pytest.mark.parametrize("value", [True, "12", 7, 0.5, None, [], {}], ids=repr)
def test_a_wrong_type_is_refused_everywhere(path: str, value: object) -> None:
    """Or it is another valid value: whatever loads must save and load again."""
    content = content_of(FACTORIES[FULL]())
    put(path, value)(content)
    try:
        release = Release.from_json(redigested(content))
    except ReleaseError as error:
        assert str(error).isprintable()  # noqa: PT017
    else:
        assert Release.from_json(release.to_json()) == release


WRONG_TYPES = {
    "a bool for a size": ("population.sizes", [True], "population: sizes[0] must be a whole"),
    "a float for a size": ("population.sizes", [10.0], "sizes[0] must be a whole number"),
    "a bool for a value": ("blocks.0.values.pir", [True], "'pir' must be 64-bit whole numbers"),
    "a float for a value": ("blocks.0.values.pir", [1.0], "whole numbers, not 1.0"),
    "a value beyond 64 bits": ("blocks.0.values.pir", [2**63], "not 9223372036854775808"),
    "a bool for bits": (f"{GRAM}.bits", True, "gram: bits must be a whole number in [1, 15]"),
    "a bool for epsilon": ("guarantee.epsilon", True, "guarantee: epsilon must be a number"),
    "text for epsilon": ("guarantee.epsilon", "1", "epsilon must be a number, not '1'"),
    "a number for a flag": (f"{GRAM}.count", 1, "'count' must be true or false, not 1"),
    "a number for a group": ("guarantee.within", 0, "guarantee: within must be"),
    "text for a list": (f"{GRAM}.columns", "pir", "'columns' must be a list, not 'pir'"),
    "a list for an object": ("bounds", [], "'bounds' must be a JSON object, not a list of 0"),
    "an object for a block": ("blocks", [[]], "blocks[0]: must be a JSON object"),
    "a number for a column": (f"{GRAM}.columns", [1, 2, 3], "columns[0] must be a non-empty"),
    "an empty column": (f"{GRAM}.columns", ["", "b", "c"], "columns[0] must be a non-empty"),
    "an endless column": (f"{GRAM}.columns", ["a" * 5000], "columns[0] must be a non-empty"),
    "a line break": ("software", "a\nb", r"software must be printable text, not 'a\nb'"),
    "a terminal escape": ("software", "\x9b2J", r"printable text, not '\x9b2J'"),
    "a lone surrogate": ("software", "\ud800", r"printable text, not '\ud800'"),
    "a lone surrogate key": ("model.\udfff", 1, "model: key must be printable text"),
    "a lone surrogate bound": ("bounds.\udfff", [0, 1], r"'\udfff' is not one"),
    "a list in the model": ("model.x", [["a"]], "model: 'x' must be a non-empty text"),
    "null in the model": ("model.z", None, "model: 'z' must be a number, not null"),
    "a bool in the model": ("model.z", False, "model: 'z' must be a number, not false"),
    "an unknown family": ("family", "magic", "family must be one of linear-regression"),
    "a kind unknown": (f"{GRAM}.kind", "median", "blocks[0]: statistic: 'kind' 'median' is not"),
    "a kind of wrong type": (f"{GRAM}.kind", ["gram"], "'kind' a list of 1 is not known"),
    "an unknown mechanism": (f"{NOISE}.mechanism", "uniform", "blocks[0]: noise: mechanism must"),
    "three bounds": ("bounds.pir", [0, 1, 2], "'pir': must be [lower, upper], not a list of 3"),
    "bounds upside down": ("bounds.pir", [1, 0], "'pir': bounds: lower must be below upper"),
    "bounds too wide": ("bounds.pir", [-1e300, 1], "'pir': bounds: must lie within"),
    "bounds too close": ("bounds.pir", [0, 1e-300], "be at least 2e-145 apart"),
    "bounds of text": ("bounds.pir", "0,1", "'pir': must be [lower, upper], not '0,1'"),
    "one quantile": ("selections.0.quantiles", [0.1], "'quantiles' must be [low, high]"),
    "quantiles crossed": ("selections.0.quantiles", [0.9, 0.1], "selections[0]: selection: quant"),
    "no candidates": ("selections.0.half_candidates", 0, "half_candidates must be a whole number"),
    "a receipt of numbers": ("receipt.entry", 12, "receipt: entry must be a non-empty text"),
    "a date of numbers": ("created", 2025, "created must be a non-empty text"),
    "degree three": ("blocks.1.statistic.degree", 3, "monomials: degree must be 2 or 4"),
    "bounds within a list": ("selections.0.within", 3, "selections[0]: within: must be [lower"),
}


CUT = {"lower": 0, "upper": 1, "cut": "both"}
WRONG_CUTS = {
    "an unknown side": ({**CUT, "cut": "left"}, "'pir': bounds: sides must be one of both, lower"),
    "no side": ({**CUT, "cut": None}, "'pir': bounds: sides must be one of both, lower, upper"),
    "sides left out": ({"lower": 0, "upper": 1}, "'pir': 'cut' is missing"),
    "an end left out": ({"lower": 0, "cut": "both"}, "'pir': 'upper' is missing"),
    "one thing more": ({**CUT, "sides": "both"}, "'pir': unknown field 'sides'"),
    "upside down": ({**CUT, "upper": -1}, "'pir': bounds: lower must be below upper"),
    "an end of text": ({**CUT, "lower": "0"}, "'pir': bounds: lower must be a number"),
}


@pytest.mark.parametrize(("value", "fragment"), WRONG_CUTS.values(), ids=WRONG_CUTS.keys())
def test_bounds_that_cut_are_read_strictly(value: object, fragment: str) -> None:
    check_case("regression-censored", put("bounds.pir", value), fragment)


@pytest.mark.parametrize(
    ("path", "value", "fragment"), WRONG_TYPES.values(), ids=WRONG_TYPES.keys()
)
def test_a_wrong_value_is_named_with_its_place(path: str, value: object, fragment: str) -> None:
    check_case(FULL, put(path, value), fragment)
