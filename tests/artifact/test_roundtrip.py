"""Release → file → Release changes nothing, and the file is a good citizen of its disk."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import os
import stat
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from noisewise.artifact import Block, Release, ReleaseError, atomic_file, release_files
from noisewise.artifact.schema import schema
from tests.artifact.factories import FACTORIES, content_of, redigested, regression
from tests.artifact.refusals import Edit, drop, put

each_release = pytest.mark.parametrize("make", FACTORIES.values(), ids=FACTORIES.keys())
VALIDATOR = jsonschema.Draft202012Validator(schema())


@each_release
def test_json_and_back_is_the_same_release(make: Callable[[], Release]) -> None:
    release = make()
    again = Release.from_json(release.to_json())
    assert again == release
    assert hash(again) == hash(release)
    assert again.to_json() == release.to_json()
    assert repr(again) == repr(release)


@each_release
def test_file_and_back_is_the_same_release(make: Callable[[], Release], tmp_path: Path) -> None:
    release = make()
    path = release.save(tmp_path / "release.json")
    assert Release.load(path) == release
    assert Release.load(str(path)) == release
    assert path.read_text(encoding="utf-8") == release.to_json()


@each_release
def test_the_helper_that_redigests_agrees_with_the_codec(make: Callable[[], Release]) -> None:
    assert Release.from_json(redigested(content_of(make()))) == make()


def test_unlike_releases_are_unequal() -> None:
    made = [make() for make in FACTORIES.values()]
    assert len(set(made)) == len(made)
    assert made[0] != made[0].to_json()


def test_the_order_of_keys_carries_no_meaning() -> None:
    content = content_of(regression())
    content["bounds"] = dict(reversed(content["bounds"].items()))
    assert Release.from_json(redigested(dict(reversed(content.items())))) == regression()


def test_every_64_bit_integer_survives() -> None:
    plain = regression()
    ends = np.array([[-(2**63)], [2**63 - 1], *[[0]] * 7], np.int64)
    first = Block(plain.blocks[0].statistic, plain.blocks[0].noise, ends)
    release = dataclasses.replace(plain, blocks=(first,))
    assert (Release.from_json(release.to_json()).blocks[0].values == ends).all()


def test_values_cannot_be_changed_in_place() -> None:
    with pytest.raises(ValueError, match="read-only"):
        regression().blocks[0].values[0, 0] = 1


# -- the file on disk --------------------------------------------------------------------------


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o027, 0o640), (0o000, 0o666)])
def test_others_may_read_it_as_far_as_the_umask_allows(
    mask: int, mode: int, tmp_path: Path
) -> None:
    before = os.umask(mask)
    try:
        path = regression().save(tmp_path / "release.json")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.fixture
def old(tmp_path: Path) -> Iterator[Path]:
    """An earlier release in a folder of its own, which must outlive every failed save."""
    path = regression().save(tmp_path / "release.json")
    before = path.read_bytes()
    yield path
    assert path.read_bytes() == before
    assert {p.name for p in tmp_path.iterdir()} <= {path.name, f"{path.name}~1~"}


def full_disk(*_: object) -> None:
    raise OSError(28, "No space left on device")


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_file_and_says_so(
    step: str, old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, step, full_disk)
    with pytest.raises(ReleaseError, match=r"cannot write .*release\.json: No space left"):
        regression("gaussian").save(old)


@pytest.mark.parametrize(("place", "step"), [(os, "fsync"), (release_files, "dumps")])
def test_a_save_that_is_interrupted_or_cannot_be_encoded_leaves_the_old_file(
    place: Any, step: str, old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, step, interrupted)
    with pytest.raises(KeyboardInterrupt):
        regression("gaussian").save(old)


def test_saving_over_other_releases_keeps_every_one(tmp_path: Path) -> None:
    """Version 0.1 kept one: the first of three was lost (finding 11 of the audit)."""
    path = regression().save(tmp_path / "release.json")
    regression().save(path)
    assert list(tmp_path.iterdir()) == [path]
    for number in (1, 2, 3):
        made = dataclasses.replace(regression("gaussian"), created=str(number))
        with pytest.warns(UserWarning, match=rf"release\.json~{number}~"):
            made.save(path)
        assert Release.load(path) == made
    kept = [Release.load(f"{path}~{number}~") for number in (1, 2, 3)]
    assert kept[0] == regression()
    assert [release.created for release in kept[1:]] == ["1", "2"]
    with pytest.warns(UserWarning, match=r"release\.json~4~"):
        kept[0].save(path)
    kept[1].save(path)  # what it replaces is kept already
    assert len(list(tmp_path.iterdir())) == 5


def test_processes_that_save_to_one_name_lose_none(tmp_path: Path) -> None:
    path = tmp_path / "release.json"
    with multiprocessing.get_context("fork").Pool(4) as pool:
        pool.starmap(save_one, [(path, f"{i}") for i in range(24)], chunksize=1)
    found = {Release.load(p).created for p in tmp_path.iterdir()}
    assert found == {f"{i}" for i in range(24)}


def save_one(path: Path, created: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dataclasses.replace(regression(), created=created).save(path)


def test_what_a_killed_process_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "release.json"

    def left(process: int, target: Path = path, machine: str | None = None) -> Path:
        name = f"{atomic_file._start(target)}{machine or atomic_file._machine()}-{process}-0.tmp"
        (tmp_path / name).write_text("half")
        return tmp_path / name

    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    gone = [left(dead.pid), left(dead.pid, machine="elsewhere1")]
    os.utime(gone[1], (0, 0))  # of another machine, and years old
    stays = [
        left(os.getpid()),
        left(os.getppid()),
        left(dead.pid, tmp_path / "other.json"),
        left(dead.pid, machine="elsewhere2"),
    ]
    stranger = tmp_path / ".noisewise-diary.tmp"
    stranger.write_text("not ours")
    regression().save(path)
    assert {*tmp_path.iterdir()} == {path, stranger, *stays}


def test_two_machines_of_one_name_have_different_marks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks = set()
    for boot in ("one", "two", None):
        monkeypatch.setattr(atomic_file, "BOOT", tmp_path / str(boot))
        if boot is not None:
            atomic_file.BOOT.write_text(boot)
        marks.add(atomic_file._machine())
    assert len(marks) == 3


def test_saving_into_a_missing_folder_names_the_path(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match=r"nowhere/release\.json: No such file"):
        regression().save(tmp_path / "nowhere" / "release.json")


# -- the published schema ----------------------------------------------------------------------


@each_release
def test_schema_accepts_every_release(make: Callable[[], Release]) -> None:
    VALIDATOR.validate(content_of(make()))


def test_schema_is_itself_valid_and_fresh_each_time() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    schema().clear()
    assert schema()["properties"]["version"] == {
        "description": schema()["properties"]["version"]["description"],
        "const": release_files.RELEASE_VERSION,
    }


def objects(node: Any) -> Iterator[dict[str, Any]]:
    """Every sub-schema that lists the fields of an object."""
    if isinstance(node, dict):
        if node.get("type") == "object":
            yield node
        for child in node.values():
            yield from objects(child)
    elif isinstance(node, list):
        for child in node:
            yield from objects(child)


def test_schema_describes_every_field_and_allows_no_other() -> None:
    definitions = schema()["$defs"]
    for node in objects(schema()):
        fixed = node.get("properties", {})
        assert (node["additionalProperties"] is False) == bool(fixed)
        # Absent where nothing is selected and nobody has several records, as in version 0.1.
        assert set(fixed) - set(node.get("required", ())) <= {"where", "unit", "max_records"}
        for name, field in fixed.items():
            own = field.get("description") or definitions[field["$ref"].split("/")[-1]].get(
                "description"
            )
            assert own, name
            assert own.endswith("."), name


WRONG = {
    "another format": put("format", "something-else"),
    "another version": put("version", 2),
    "a field too few": drop("guarantee"),
    "a field too many": put("extra", 1),
    "a field too many inside": put("blocks.0.noise.extra", 1),
    "an unknown family": put("family", "magic"),
    "text for a number": put("guarantee.epsilon", "1.0"),
    "no budget": put("guarantee.epsilon", 0),
    "delta with pure epsilon": put("guarantee.delta", 1e-6),
    "an unknown relation": put("guarantee.neighbours", "replace-two"),
    "a number for a flag": put("guarantee.within", 1),
    "public policy without sizes": put("population.sizes", []),
    "negative sizes": put("population.sizes", [-1]),
    "noisy policy with sizes": put("population.policy", "noisy"),
    "no statistics": put("blocks", []),
    "an unknown statistic": put("blocks.0.statistic.kind", "median"),
    "too fine a lattice": put("blocks.0.statistic.bits", 16),
    "a column twice": put("blocks.0.statistic.columns", ["pir", "pir"]),
    "broken numbers among the values": put("blocks.0.values.pir", [0.5]),
    "values beyond 64 bits": put("blocks.0.values.pir", [2**63]),
    "no noise": put("blocks.0.noise.scale", 0),
    "a bound too few": put("bounds.pir", [0]),
    "an unprintable name": put("software", "a\nb"),
    "mixed groups": put("groups", {"column": "g", "keys": ["a", 1]}),
}


@pytest.mark.parametrize("edit", WRONG.values(), ids=WRONG.keys())
def test_schema_and_reader_refuse_what_is_plainly_wrong(
    edit: Edit,
) -> None:
    content = content_of(regression())
    edit(content)
    assert not VALIDATOR.is_valid(content)
    with pytest.raises(ReleaseError):
        Release.from_json(redigested(content))


def test_schema_and_reader_refuse_a_digest_that_is_none() -> None:
    content = {**content_of(regression()), "sha256": "0x12"}
    assert not VALIDATOR.is_valid(content)
    with pytest.raises(ReleaseError, match="does not match its sha256"):
        Release.from_json(json.dumps(content))
