"""Errors and warnings in the words of the command line.

The library speaks Python: ``delta: mechanism='gaussian' needs one, such as delta=1e-6``. At a shell
the same sentence reads ``--delta: --mechanism gaussian needs one, such as --delta 1e-6``. The names
come from the options of the command that ran, from the registry of models and from the privacy
options; no model is known here. Text that is already in the words of the command line stays as it
is, so that nothing is lost by translating twice.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from noisewise.artifact import NoisewiseError

MODEL_OPTION = "option"
"""The parameter of commands that take a model's own options as ``--option NAME=VALUE``."""


@dataclass(frozen=True)
class Flag:
    """An option of the command line, and what stands behind it in help screens.

    ``separator`` stands between the option and its value.
    """

    text: str
    metavar: str = ""
    separator: str = " "


_SPEECH = re.compile(
    r"""
    (?P<shell>--[a-z][\w-]*(?:[ ][^\s,;:()]+(?:,[^\s;:()]+)*)?)  # already --bounds a=0,1
    | (?<![\w=\[])(?P<quoted>'[^'\n]*')(?!\w)                    # a name or a value: not ours
    | (?<![\w.'"/=-])(?P<name>[a-z_][a-z0-9_]*)=                 # name=value
      (?P<value>'[^']*'|"[^"]*"|\{[^{}]*\}|\([^()]*\)|True|False|None
        |[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?|(?=[\s,;.)]|$))
    | (?<![\w.'"/=-])(?P<item>[a-z_][a-z0-9_]*)\[(?P<key>'[^']*'|"[^"]*"|\d+)\]  # name['column']
    | (?<![\w.'"/=-])name[ ]a[ ]public[ ](?P<public>[a-z_]+)     # name a public fill
    | (?<![\w.'"/=-])(?P<plain>[a-z]+(?:_[a-z]+)+)(?![\w(])      # epsilon_bounds
    """,
    re.VERBOSE,
)

_HEAD = re.compile(r"[a-z_][a-z0-9_]*(?:, [a-z_][a-z0-9_]*)*(?=: )")
"""The arguments that a message is about, before its colon."""

FUNCTIONS = {"load_posterior opens": "noisewise report, predict, sample and marginal take"}
"""What a message says of a function, and what a person at a shell can do instead."""

_UNKNOWN_OPTION = re.compile(r"([a-z_][a-z0-9_]*)(?=: is no option of )")


def translate(message: str, flags: Mapping[str, Flag]) -> str:
    """Return a message of the library in the words of the command line.

    Args:
        message: the library's sentence.
        flags: the options, by the library's name for them.
    """
    if MODEL_OPTION in flags and not message.startswith(flags[MODEL_OPTION].text):
        message = _UNKNOWN_OPTION.sub(rf"{flags[MODEL_OPTION].text} \1", message)
    for function, command in FUNCTIONS.items():
        message = message.replace(function, command)
    head = _HEAD.match(message)
    start, rest = (head.group(), message[head.end() :]) if head else ("", message)
    heads = [flags[name].text if name in flags else name for name in start.split(", ")]

    def spoken(match: re.Match[str]) -> str:
        return _spoken(match, flags) or match.group()

    text = ", ".join(heads) + _SPEECH.sub(spoken, rest)
    # Where the library names the flag itself, once is enough.
    return re.sub(r"(--[\w-]+) \(\1\)", r"\1", text)


def _spoken(match: re.Match[str], flags: Mapping[str, Flag]) -> str | None:
    """Return one piece of a message in the words of the command line, or None to leave it."""
    if match["name"]:
        flag = flags.get(match["name"]) or _elsewhere(match["name"])
        if flag is not None:
            return _assigned(flag, match["value"])
        if MODEL_OPTION in flags:
            value = match["value"].strip("'\"") or "..."
            return f"{flags[MODEL_OPTION].text} {match['name']}={value}"
        return None
    named = match["item"] or match["public"] or match["plain"]
    if not named or named not in flags:
        return None
    flag = flags[named]
    if match["item"]:
        key = match["key"]
        return f"{flag.text} number {int(key) + 1}" if key.isdigit() else f"{flag.text} {key[1:-1]}"
    if match["public"]:
        return f"give a public value with {flag.text} {flag.metavar}"
    return flag.text


def _assigned(flag: Flag, text: str) -> str:
    """Return ``name=value`` as a person types it."""
    if not text:
        return flag.text
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return f"{flag.text} {flag.metavar}".rstrip()
    if value is None:
        return f"no {flag.text}"
    if isinstance(value, bool):
        return flag.text if value else f"--no-{flag.text.removeprefix('--')}"
    if not isinstance(value, dict):
        # A number stays as it was written: 1e-6, not 1e-06.
        typed = text if isinstance(value, int | float) else _typed(value)
        return f"{flag.text}{flag.separator}{typed}"
    by_column = "=" in flag.metavar
    return " ".join(
        f"{flag.text} {f'{key}=' if by_column else ''}{_typed(held)}" for key, held in value.items()
    )


def _typed(value: object) -> str:
    if value is ...:
        return "..."
    if isinstance(value, tuple | list):
        return ",".join(map(str, value))
    return shlex.quote(str(value))


def _elsewhere(name: str) -> Flag | None:
    """Return the option of a release command, where another command's message names it."""
    from noisewise import models
    from noisewise.cli.model_commands import argument_flags

    for model in models.names():
        try:
            flags = argument_flags(models.find(model).owner())
        except ImportError:
            continue  # An analyst's machine need not have the owner's libraries.
        if name in flags:
            return flags[name]
    return None


def command_flags(command: Any, arguments: Sequence[str]) -> dict[str, Flag]:
    """Return the options of the command that a line asks for, by the name of their parameter.

    Args:
        command: the program's command, a group of groups.
        arguments: the line, without the program's name.
    """
    from typer.core import TyperGroup, TyperOption

    for word in arguments:
        if not isinstance(command, TyperGroup) or word not in command.commands:
            break
        command = command.commands[word]
    return {
        param.name: Flag(param.opts[0], param.metavar or "")
        for param in command.params
        if isinstance(param, TyperOption)
    }


@contextmanager
def in_shell_words(flags: Mapping[str, Flag]) -> Iterator[None]:
    """Translate the errors that leave the context; their kinds stay as they are."""
    try:
        yield
    except NoisewiseError as error:
        error.args = (translate(str(error), flags), *error.args[1:])
        raise
