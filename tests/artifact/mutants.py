"""Ways to spoil a release file: as bytes, as tokens, and as parsed JSON. All from a seed."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable
from typing import Any

RawMutation = Callable[[random.Random, str], str | bytes]
TreeMutation = Callable[[random.Random, Any], None]

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null|[{}\[\]:,]')
NUMBER = re.compile(r"-?\d[\d.eE+-]*")
KEY = re.compile(r'"((?:[^"\\]|\\.)*)":')

NUMBERS = (
    *("0", "-0", "-0.0", "1", "-1", "2", "0.5", "1.0", "1e5", "1E-5", "1e308", "1e-320", "1e999"),
    *("-1e999", "NaN", "Infinity", "00", "01", "+1", ".5", "1.", "0x10", "1_000", "--1", ""),
    *(str(2**63), str(-(2**63)), str(2**64), "9" * 5000, "9" * 4000, "1" + "0" * 400, "true"),
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 0.0, -0.0, 0.5, 1e308, 5e-324, 2**31, 2**63, -(2**63), 10**400),
    *("", "a", "pir", "gram", "noisy", "replace-one", "\u202e", "\ud800", "\x00", "é" * 5000),
    *([], {}, [[]], [{}], [0], ["a"], [0, 1], {"a": 0}, [None] * 3, {"kind": "gram"}),
)


# -- bytes and tokens --------------------------------------------------------------------------


def flip_bits(rng: random.Random, text: str) -> bytes:
    data = bytearray(text.encode())
    for _ in range(rng.choice((1, 1, 2, 8))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def insert_bytes(rng: random.Random, text: str) -> bytes:
    data, at = text.encode(), rng.randrange(len(text))
    return data[:at] + rng.choice((rng.randbytes(1), rng.randbytes(5), b" ", b"\n")) + data[at:]


def delete_bytes(rng: random.Random, text: str) -> bytes:
    data, at = text.encode(), rng.randrange(len(text))
    return data[:at] + data[at + rng.choice((1, 1, 2, 10, 100)) :]


def truncate(rng: random.Random, text: str) -> str:
    return text[: rng.randrange(len(text))]


def _exchange(text: str, one: re.Match[str], other: re.Match[str]) -> str:
    first, last = sorted((one, other), key=re.Match.start)
    middle = text[first.end() : last.start()]
    return text[: first.start()] + last[0] + middle + first[0] + text[last.end() :]


def swap_tokens(rng: random.Random, text: str) -> str:
    return _exchange(text, *rng.sample(list(TOKEN.finditer(text)), 2))


def swap_numbers(rng: random.Random, text: str) -> str:
    return _exchange(text, *rng.sample(list(NUMBER.finditer(text)), 2))


def _replace(text: str, found: re.Match[str], new: str) -> str:
    return text[: found.start()] + new + text[found.end() :]


def edit_number(rng: random.Random, text: str) -> str:
    return _replace(text, rng.choice(list(NUMBER.finditer(text))), rng.choice(NUMBERS))


def edit_digit(rng: random.Random, text: str) -> str:
    found = rng.choice(list(re.finditer(r"\d", text)))
    return _replace(text, found, rng.choice("0123456789"))


def retype_token(rng: random.Random, text: str) -> str:
    new = rng.choice(('"1"', "1", "true", "null", "[]", "{}", "[1]", '{"a": 1}', "1.0"))
    return _replace(text, rng.choice(list(TOKEN.finditer(text))), new)


def rename_key(rng: random.Random, text: str) -> str:
    found, other = rng.sample(list(KEY.finditer(text)), 2)
    new = rng.choice((other[1], found[1] + "x", found[1][:-1], found[1].upper(), "\\ud800", ""))
    return _replace(text, found, f'"{new}":')


def repeat_lines(rng: random.Random, text: str) -> str:
    lines = text.splitlines(keepends=True)
    at = rng.randrange(len(lines))
    chunk = lines[at : at + rng.choice((1, 1, 2, 7))]
    to = rng.choice((at, rng.randrange(len(lines))))
    return "".join(lines[:to] + chunk + lines[to:])


def swap_lines(rng: random.Random, text: str) -> str:
    lines = text.splitlines(keepends=True)
    i, j = rng.sample(range(len(lines)), 2)
    lines[i], lines[j] = lines[j], lines[i]
    return "".join(lines)


RAW: tuple[RawMutation, ...] = (
    *(flip_bits, insert_bytes, delete_bytes, truncate, swap_tokens, swap_numbers, edit_number),
    *(edit_digit, retype_token, rename_key, repeat_lines, swap_lines),
)


# -- parsed JSON -------------------------------------------------------------------------------


def _holders(tree: Any) -> list[Any]:
    """Every non-empty object and list of the tree."""
    found, todo = [], [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, dict | list) and node:
            found.append(node)
            todo += node.values() if isinstance(node, dict) else node
    return found


def _spot(rng: random.Random, tree: Any) -> tuple[Any, Any]:
    holder = rng.choice(_holders(tree))
    keys = list(holder) if isinstance(holder, dict) else range(len(holder))
    return holder, rng.choice(keys)


def remove(rng: random.Random, tree: Any) -> None:
    holder, key = _spot(rng, tree)
    del holder[key]


def replace(rng: random.Random, tree: Any) -> None:
    holder, key = _spot(rng, tree)
    holder[key] = copy.deepcopy(rng.choice(VALUES))


def transplant(rng: random.Random, tree: Any) -> None:
    """One value of the file to the place of another."""
    (source, one), (target, other) = _spot(rng, tree), _spot(rng, tree)
    target[other] = json.loads(json.dumps(source[one]))


def rename(rng: random.Random, tree: Any) -> None:
    holder, key = _spot(rng, [n for n in _holders(tree) if isinstance(n, dict)])
    if isinstance(holder, dict):
        holder[rng.choice((key + "x", key.upper(), "", "\ud800", "n"))] = holder.pop(key)


def nudge(rng: random.Random, tree: Any) -> None:
    """A number a little, or a lot, larger or smaller."""
    spots = [
        (node, key)
        for node in _holders(tree)
        for key in (list(node) if isinstance(node, dict) else range(len(node)))
        if isinstance(node[key], int | float) and not isinstance(node[key], bool)
    ]
    holder, key = rng.choice(spots)
    by = rng.choice((1 + 1e-9, 1 - 1e-9, 0.5, 2.0, 1e3, -1.0, 1e-300, 1e300))
    moved = holder[key] * by
    whole = isinstance(holder[key], int) and abs(moved) < 2**70
    holder[key] = round(moved) if whole else moved if abs(moved) < 1e308 else 0.0


def grow(rng: random.Random, tree: Any) -> None:
    """A list or an object gets a member twice, or many times."""
    holder, key = _spot(rng, tree)
    if isinstance(holder, list):
        plain = not isinstance(holder[key], list | dict)
        holder[key:key] = [holder[key]] * rng.choice((1, 3, 1000 if plain else 5))
    else:
        holder[f"{key}2"] = holder[key]


def wrap(rng: random.Random, tree: Any) -> None:
    holder, key = _spot(rng, tree)
    for _ in range(rng.choice((1, 2, 200))):
        holder[key] = [holder[key]] if rng.random() < 0.5 else {"a": holder[key]}


def overclaim(rng: random.Random, tree: Any) -> None:
    """Change only numbers on which the promise rests: scales, sensitivities, costs, lattices."""
    names = (
        *("scale", "sensitivity", "cost", "epsilon", "rho", "delta", "bits", "degree", "lower"),
        *("upper", "origin", "neighbours", "search_cost", "partitions", "floor", "count"),
    )
    spots = [(n, k) for n in _holders(tree) if isinstance(n, dict) for k in n if k in names]
    for _ in range(rng.choice((1, 2, 3))):
        holder, key = rng.choice(spots)
        if isinstance(holder[key], bool):
            holder[key] = not holder[key]
        elif isinstance(holder[key], str):
            holder[key] = rng.choice(("replace-one", "add-remove"))
        elif holder[key] is not None:
            by = rng.choice((0.5, 2.0, 1e-3, 1e3, 1e-9, 1e-15, 1 - 1e-12, 1 + 1e-12, 1e300))
            whole = isinstance(holder[key], int)
            moved = holder[key] * by
            holder[key] = holder[key] + rng.choice((-1, 1)) if whole else moved


TREE: tuple[TreeMutation, ...] = (
    remove, replace, transplant, rename, nudge, grow, wrap, overclaim,
)  # fmt: skip
