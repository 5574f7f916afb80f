"""Lists that are parsed in pieces are JSON, or refused as JSON's own parser refuses them."""

from __future__ import annotations

import json

import pytest

from noisewise.artifact import low_memory_json


@pytest.mark.parametrize("form", [b"[%b]", b'{"values": {"a": [%b]}}'])
@pytest.mark.parametrize("end", [b"", b" \n"])
def test_a_comma_too_many_where_a_piece_ends(form: bytes, end: bytes) -> None:
    numbers = b"1," * (low_memory_json.CHUNK // 2 + 1) + end
    low_memory_json.parse([form % (numbers + b"1")], dict)
    with pytest.raises(json.JSONDecodeError):
        low_memory_json.parse([form % numbers], dict)


def test_an_empty_list_of_many_blanks() -> None:
    assert low_memory_json.parse([b"[%b]" % (b" " * 100)], dict) == []
