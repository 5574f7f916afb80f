"""Posterior files by anyone: an equal posterior or one of our errors, and little memory."""

from __future__ import annotations

import json
import random
import re
import resource
import subprocess
import sys
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import noisewise as nw
from noisewise.artifact import ArgumentError, NoisewiseError
from tests.inference.test_posterior_files import MADE, regression

GRAPHICAL = Path(__file__).parents[1] / "fixtures" / "version_0_1" / "graphical-bayes.npz"
SEED = 17
MANY = 12_000


def flip_bits(rng: random.Random, data: bytearray) -> None:
    for _ in range(rng.choice((1, 1, 2, 8))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def edit_metadata(rng: random.Random, data: bytearray) -> None:
    """Near the beginning, where HDF5 keeps what it needs to find the rest."""
    for _ in range(rng.choice((1, 2, 4))):
        data[rng.randrange(min(len(data), 6000))] = rng.choice((0, 255, rng.randrange(256)))


def truncate(rng: random.Random, data: bytearray) -> None:
    del data[rng.randrange(len(data)) :]


def scribble(rng: random.Random, data: bytearray) -> None:
    start, length = rng.randrange(len(data)), rng.choice((1, 8, 64))
    data[start : start + length] = rng.randbytes(length)


def edit_size(rng: random.Random, data: bytearray) -> None:
    """A number of four or eight bytes becomes nothing, or vast."""
    start, length = rng.randrange(len(data)), rng.choice((4, 8))
    new = rng.choice((b"\xff" * 8, b"\0" * 8, (2**31).to_bytes(8, "little")))
    data[start : start + length] = new[:length]


MUTATIONS: tuple[Callable[[random.Random, bytearray], None], ...] = (
    flip_bits, edit_metadata, truncate, scribble, edit_size,
)  # fmt: skip


def words_of(result: Any) -> tuple[Any, ...]:
    """Everything that a reader may rely on, for comparison."""
    draws = {k: v.tobytes() for k, v in getattr(result, "draws", {}).items()}
    said = [getattr(result, name, None) for name in ("method", "keys", "prior", "guarantees")]
    return draws, said, result.summary().to_json() if draws else None


def originals(folder: Path) -> list[bytes]:
    """Two regressions, rates in groups, categories, and draws of a graphical model."""
    cases = ("two regressions", "rates in groups", "categories", "no draws of the prior")
    kept: Any = nw.load_posterior(GRAPHICAL)
    graphical = kept.save(folder / "graphical.npz").read_bytes()
    return [MADE[c]().save(folder / "a.nc").read_bytes() for c in cases] + [graphical]


def judge(folder: Path, count: int, seed: int) -> Counter[str]:
    """Load spoilt files, count what becomes of them, and fail on anything but the two."""
    rng, outcomes = random.Random(seed), Counter[str]()
    files, path = originals(folder), folder / "m.nc"
    before = []
    for content in files:
        path.write_bytes(content)
        before.append(words_of(nw.load_posterior(path)))
    for number in range(count):
        which = number % len(files)
        data = bytearray(files[which])
        MUTATIONS[rng.randrange(len(MUTATIONS))](rng, data)
        path.write_bytes(data)
        refusal = ""
        try:
            assert words_of(nw.load_posterior(path)) == before[which], (seed, number)
        except NoisewiseError as error:
            refusal = str(error)
        assert not refusal or refusal.isprintable()
        assert len(refusal) < 1000
        outcomes["refused" if refusal else "equal"] += 1
    return outcomes


def test_spoilt_files_load_unchanged_or_are_refused(tmp_path: Path) -> None:
    outcomes = judge(tmp_path, 250, SEED)
    assert min(outcomes.values()) > 20


@pytest.mark.evidence
def test_thousands_of_spoilt_files(tmp_path: Path) -> None:
    judge(tmp_path, 10, SEED)  # what the libraries take once is not counted
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcomes = judge(tmp_path, MANY, SEED + 1)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"{MANY} spoilt posterior files: {dict(outcomes)}, memory grew by {grown:.0f} MiB")
    assert grown < 256


def spoilt(path: Path, edit: Callable[[h5py.File], None], **made: Any) -> Path:
    """A posterior as version 0.1 wrote it, without a digest, and then edited."""
    regression(**made).save(path)
    with h5py.File(path, "r+") as file:
        del file["posterior"].attrs["noisewise_sha256"]
        file["posterior"].attrs["noisewise_version"] = 1
        edit(file)
    return path


def put(name: str, value: Any) -> Callable[[h5py.File], None]:
    return lambda file: file["posterior"].attrs.__setitem__(name, value)


def vast(file: h5py.File) -> None:
    del file["posterior/dose"]
    file["posterior"].create_dataset("dose", (4, 2**31), "f8", chunks=(1, 4096))


def linked(file: h5py.File) -> None:
    """One array of four megabytes under hundreds of names."""
    kept = file["sample_stats"].create_dataset("a0", data=np.zeros(2**19), compression="gzip")
    for number in range(1, 300):
        file["sample_stats"][f"a{number}"] = kept


def inflated(file: h5py.File) -> None:
    """A chunk of 8 kB in which a gigabyte of zeros is deflated."""
    press = zlib.compressobj(9)
    packed = b"".join(press.compress(bytes(2**20)) for _ in range(2**10)) + press.flush()
    kept = file["sample_stats"].create_dataset(
        "bomb", (1000,), "f8", chunks=(1000,), compression="gzip"
    )
    kept.id.write_direct_chunk((0,), packed)


def packed_twice(file: h5py.File) -> None:
    """An array that is deflated, and deflated again: each makes it a thousand times larger."""
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_chunk((1000,))
    properties.set_deflate(9)
    properties.set_deflate(9)
    space = h5py.h5s.create_simple((1000,))
    group = file["sample_stats"].id
    h5py.h5d.create(group, b"bomb", h5py.h5t.NATIVE_DOUBLE, space, properties)


def outside(file: h5py.File) -> None:
    del file["posterior/dose"]
    file["posterior/dose"] = h5py.ExternalLink("/etc/other.nc", "/posterior/dose")


def elsewhere(file: h5py.File) -> None:
    del file["posterior/dose"]
    place = [("/etc/passwd", 0, 6400)]
    file["posterior"].create_dataset("dose", (4, 200), "f8", external=place)


def not_finite(file: h5py.File) -> None:
    file["posterior/dose"][0, 0] = np.nan


HOSTILE: dict[str, tuple[Callable[[h5py.File], None], str]] = {
    "an array of 60 GiB": (vast, "claims 68719476736 bytes, more than such a file can hold"),
    "one array under many names": (linked, "more than such a file can hold"),
    "a gigabyte in a chunk of 8 kB": (inflated, "has a chunk that is larger than it claims"),
    "an array that is packed twice": (packed_twice, "packed in a way that no posterior is"),
    "a link to another file": (outside, "'dose' is a link"),
    "numbers of another file": (elsewhere, "lies outside the file"),
    "draws that are not finite": (not_finite, "holds draws that are not finite"),
    "deep JSON": (put("details", "[" * 50_000), "details is nested too deeply"),
    "JSON of a few hundred levels": (
        put("details", '{"a":' + "[" * 500 + "]" * 500 + "}"), "details is nested too deeply"
    ),
    "names that turn the text around": (
        put("attributes", json.dumps({"x": ["dose"], "y": "\u202egnp.exe"})), "printable text"
    ),
    "escapes for a terminal": (put("prior", "\x1b[2Jweak"), "prior must be printable text"),
    "a method of numbers": (put("method", 3), "method must be a non-empty text"),
    "other parameters": (put("parameters", '["dose", "dose", "sigma2"]'), "changed or damaged"),
    "an unknown model": (put("model", "time-series"), "time-series"),
}  # fmt: skip


@pytest.mark.parametrize(("edit", "says"), HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_files(edit: Callable[[h5py.File], None], says: str, tmp_path: Path) -> None:
    path = spoilt(tmp_path / "p.nc", edit)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ArgumentError) as caught:
        nw.load_posterior(path)
    assert says in str(caught.value)
    assert str(caught.value).isprintable()
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert grown < 2**28 + 40 * path.stat().st_size


def test_one_text_to_which_thousands_of_elements_point(tmp_path: Path) -> None:
    def texts(file: h5py.File) -> None:
        kept = file["sample_stats"].create_dataset("texts", (20_000,), h5py.string_dtype())
        kept[0] = "x" * 60_000
        places.append(kept.id.get_offset())

    places: list[int] = []
    path = spoilt(tmp_path / "p.nc", texts)
    content = bytearray(path.read_bytes())
    (start,) = places
    content[start : start + 16 * 20_000] = content[start : start + 16] * 20_000
    path.write_bytes(content)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ArgumentError, match="more than such a file can hold"):
        nw.load_posterior(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**20  # 1 GiB would be all


@pytest.mark.parametrize(("number", "size"), [(0, 0), (1, 2**64 - 16), (1, 2**64 - 64)])
def test_a_heap_in_which_hdf5_would_read_for_ever(number: int, size: int, tmp_path: Path) -> None:
    path = regression().save(tmp_path / "p.nc")
    content = bytearray(path.read_bytes())
    for start in (m.start() for m in re.finditer(b"GCOL", content)):
        content[start + 16 : start + 18] = number.to_bytes(2, "little")
        content[start + 24 : start + 32] = size.to_bytes(8, "little")
    path.write_bytes(content)
    read = "import sys, noisewise as nw; nw.load_posterior(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", read, path], capture_output=True, text=True, timeout=300, check=False
    )
    assert "cannot be read as a posterior: a heap of texts is damaged" in done.stderr


def test_a_refusal_does_not_quote_the_whole_file(tmp_path: Path) -> None:
    kept: Any = nw.load_posterior(GRAPHICAL)
    path = kept.save(tmp_path / "a.npz")
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        starts = [member.header_offset for member in archive.infolist()]
    for start in starts:  # the length of the name that stands before the member itself
        content[start + 26 : start + 28] = b"\xff\x3f"
    path.write_bytes(content)
    with pytest.raises(ArgumentError, match="cannot be read as draws") as caught:
        nw.load_posterior(path)
    assert len(str(caught.value)) < 1000


def test_an_array_whose_head_is_no_python(tmp_path: Path) -> None:
    kept: Any = nw.load_posterior(GRAPHICAL)
    path = kept.save(tmp_path / "a.npz")
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content.replace(b"}", b"(") if "draws" in name else content)
    with pytest.raises(ArgumentError, match="cannot be read as draws"):
        nw.load_posterior(path)


def test_a_changed_draw_is_found(tmp_path: Path) -> None:
    path = regression().save(tmp_path / "p.nc")
    with h5py.File(path, "r+") as file:
        file["posterior/dose"][1, 2] += 1e-9
    with pytest.raises(ArgumentError, match="its content does not match its sha256"):
        nw.load_posterior(path)
