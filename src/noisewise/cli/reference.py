"""The command-line reference as Markdown: ``python -m noisewise.cli.reference``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer
from typer.core import TyperGroup, TyperOption

from noisewise.cli.verbs import app

HEAD = """# Command line

This page is made from the program by `python -m noisewise.cli.reference`. The same is on every help
screen: `noisewise --help`, `noisewise release linear-regression --help`.

`release` and `plan` have one command for every model that is registered, models of one's own among
them. Exit codes: 0 done, 1 refused (one sentence on standard error), 2 wrong usage, 130
interrupted.
"""


def reference() -> str:
    """Return all verbs and options as Markdown."""
    sections = [section(path, command) for path, command in verbs(typer.main.get_command(app))]
    return "\n".join([HEAD, *sections])


def verbs(command: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every command below the program's, with the words that lead to it."""
    if isinstance(command, TyperGroup):
        for name, below in command.commands.items():
            yield (*path, name), below
            yield from verbs(below, *path, name)


def section(path: tuple[str, ...], command: Any) -> str:
    """Return the Markdown of one command."""
    arguments = [p for p in command.params if not isinstance(p, TyperOption)]
    options = [p for p in command.params if isinstance(p, TyperOption)]
    usage = " ".join(
        [
            "noisewise",
            *path,
            *(_argument(p) for p in arguments),
            *(["[OPTIONS]"] if options else []),
        ]
    )
    parts = [f"{'#' * (len(path) + 1)} `noisewise {' '.join(path)}`\n", f"{command.help}\n"]
    if not isinstance(command, TyperGroup):
        parts.append(f"Usage: `{usage}`\n")
        rows = [_row(p) for p in (*arguments, *options)]
        parts.append("\n".join(["| option | what it says |", "|---|---|", *rows]) + "\n")
    return "\n".join(parts)


def _argument(parameter: Any) -> str:
    name = parameter.metavar or parameter.name.upper()
    return f"{name}…" if parameter.nargs == -1 else name


def _row(parameter: Any) -> str:
    """Return a row of the table: the option with its metavar, its help, and its default."""
    if isinstance(parameter, TyperOption):
        names = [*parameter.opts, *parameter.secondary_opts]
        value = "" if parameter.is_flag else f" {parameter.metavar or 'VALUE'}"
        shown = ", ".join(f"`{name}{value}`" for name in names)
    else:
        shown = f"`{_argument(parameter)}`"
    said = " ".join((parameter.help or "").split()).replace("|", "\\|")
    return f"| {shown} | {said}{_default(parameter)} |"


def _default(parameter: Any) -> str:
    if parameter.required:
        return " Required."
    default = parameter.default
    if default is None or default is False or default == []:
        return ""
    return f" Default: `{parameter.opts[0] if default is True else default}`."


if __name__ == "__main__":
    print(reference(), end="")
