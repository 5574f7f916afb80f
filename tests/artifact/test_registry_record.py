"""The draft for a registry: YAML that a parser reads back to what the file says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

import noisewise as nw
from noisewise.artifact import registry_record
from noisewise.artifact.registry_record import TO_FILL_IN

yaml = pytest.importorskip("yaml")

PEOPLE = pd.DataFrame({"age": [20.0, 30, 50, 65, 70] * 20, "sex": ["f", "m"] * 50})
ODD = 'a: "b" \\ # - {x} é 数'


def record(**words: Any) -> Any:
    frame = PEOPLE.rename(columns={"age": ODD})
    release = nw.release.exponential_family(
        frame, column=ODD, family="normal", bounds=(0, 120), epsilon=0.5, **words
    )
    return release, yaml.safe_load(release.registry_record())


def test_it_says_what_the_file_says() -> None:
    release, read = record()
    privacy = read["privacy"]
    assert (privacy["epsilon"], privacy["delta"], privacy["rho"]) == (0.5, 0.0, None)
    assert privacy["neighbours"] == "replace-one"
    assert privacy["in_words"] == release.statement()
    assert read["implementation"]["bounds"][0]["column"] == ODD
    assert read["release"]["records"] == "100, publicly known"
    assert read["release"]["groups"] is None
    (statistic,) = read["release"]["statistics"]
    assert statistic["noise_scale"] == release.blocks[0].noise.scale
    assert statistic["kind"] == release.blocks[0].statistic.kind
    assert read["deployment"]["publisher"].startswith(TO_FILL_IN)


def test_gaussian_noise_and_groups() -> None:
    _, read = record(
        mechanism="gaussian", delta=1e-7, neighbours="add-remove", groups={"sex": ["f", "m"]}
    )
    assert read["privacy"]["delta"] == 1e-7
    assert read["privacy"]["rho"] > 0
    assert read["release"]["groups"] == {"column": "sex", "number": 2}
    assert read["release"]["records"].startswith("secret")
    assert "Gaussian" in read["implementation"]["mechanisms"][0]


def test_every_scalar_reads_back() -> None:
    values: list[Any] = [
        1e-7, 1e22, 0.1, 3, -4, True, None, "yes", "1.0", "null", "", " padded ", "a\nb", "\u2028",
        "\x7f", "😀", "a: b", "- c", "#", ODD, [], {}, ["x", {"y": [1, 2], "z": []}],
    ]  # fmt: skip
    lines = "\n".join(registry_record._lines({"values": values, "deep": {"a": {"b": "c"}}}))
    assert yaml.safe_load(lines) == {"values": values, "deep": {"a": {"b": "c"}}}


def test_nothing_is_said_of_numbers_that_were_released() -> None:
    release, _ = record()
    (block,) = release.blocks
    other = replace(release, blocks=(replace(block, values=block.values + 7),))
    assert other.registry_record() == release.registry_record()
