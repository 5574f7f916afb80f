"""Commands made from the registry: a model's words become options, and their text its arguments.

``release`` and ``plan`` have one command per model, which nobody writes by hand. A model says its
words (`noisewise.models.Word`) and which privacy options it takes; this module says, once for every
kind of word, how such an option looks and how its text becomes a Python value. Commands are made
when somebody asks for them, so that looking into a ledger does not load a model's libraries.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, cast

import typer
from typer.core import TyperCommand, TyperGroup

from noisewise import models
from noisewise.artifact import ArgumentError, Level, NoisewiseError
from noisewise.cli import options
from noisewise.cli.messages import Flag
from noisewise.models import Model, Owner, Word
from noisewise.models.base import WordKind
from noisewise.privacy.options import OPTIONS


@dataclass(frozen=True)
class PublicLists:
    """The public lists of a command: the type of a fill value is that of its column's list."""

    of_columns: Mapping[str, list[Level]] | None = None
    of_the_column: list[Level] | None = None


Reader = Callable[[Any, str, PublicLists], object]
"""What Typer hands over, the option and the public lists in; the argument's value out."""


@dataclass(frozen=True)
class OptionForm:
    """How a kind of word looks on the command line, and how its text is read."""

    metavar: str | None
    annotation: Any
    read: Reader


def _as_it_is(given: Any, option: str, lists: PublicLists) -> object:
    return given


def _bounds(given: Iterable[str], option: str, lists: PublicLists) -> object:
    texts = options.parse_assignments(given, option)
    return {column: options.parse_bounds(b, f"{option} {column}") for column, b in texts.items()}


def _censored(given: Iterable[str], option: str, lists: PublicLists) -> object:
    texts = options.parse_assignments(given, option)
    return {column: options.parse_censored(b, f"{option} {column}") for column, b in texts.items()}


def _levels(given: Iterable[str], option: str, lists: PublicLists) -> object:
    texts = options.parse_assignments(given, option)
    return {column: options.parse_list(text, option) for column, text in texts.items()}


def _fill(given: Iterable[str], option: str, lists: PublicLists) -> object:
    listed = lists.of_columns or {}
    values: dict[str, Level | float] = {}
    for column, text in options.parse_assignments(given, option).items():
        try:
            values[column] = options.parse_level(text, listed.get(column), f"{option} {column}")
        except ArgumentError:
            if not listed:
                raise
            # Its list may be missing or misspelt: the release function says which.
            values[column] = text
    return values


def _level(given: Iterable[str], option: str, lists: PublicLists) -> object:
    listed = lists.of_columns or {}
    return {
        column: options.parse_level(text, listed.get(column, [text]), f"{option} {column}")
        for column, text in options.parse_assignments(given, option).items()
    }


def _value(given: str, option: str, lists: PublicLists) -> object:
    return options.parse_level(given, lists.of_the_column, option)


FORMS: dict[WordKind, OptionForm] = {
    "column": OptionForm("COLUMN", str, _as_it_is),
    "columns": OptionForm("COLUMN", list[str], _as_it_is),
    "bounds": OptionForm("COLUMN=LOWER,UPPER", list[str], _bounds),
    "interval": OptionForm("LOWER,UPPER", str, lambda t, o, _: options.parse_bounds(t, o)),
    "censored": OptionForm("COLUMN=LOWER,UPPER[,SIDES]", list[str], _censored),
    "censored-interval": OptionForm(
        "LOWER,UPPER[,SIDES]", str, lambda t, o, _: options.parse_censored(t, o)
    ),
    "cliques": OptionForm(
        "COLUMN,COLUMN", list[str], lambda given, o, _: [options.parse_names(t) for t in given]
    ),
    "levels": OptionForm("COLUMN=LIST", list[str], _levels),
    "list": OptionForm("LIST", str, lambda text, o, _: options.parse_list(text, o)),
    "fill": OptionForm("COLUMN=VALUE", list[str], _fill),
    "level": OptionForm("COLUMN=LEVEL", list[str], _level),
    "value": OptionForm("VALUE", str, _value),
    "assignments": OptionForm(
        "NAME=NUMBER", list[str], lambda given, o, _: options.parse_numbers(given, o)
    ),
    "number": OptionForm("NUMBER", float, _as_it_is),
    "numbers": OptionForm("NUMBER", list[float], _as_it_is),
    "count": OptionForm("N", int, _as_it_is),
    "flag": OptionForm(None, bool, _as_it_is),
    "text": OptionForm("TEXT", str, _as_it_is),
}
"""Every kind of word: its metavar, its type for Typer, and its reader."""

LIST_HELP = "a LIST is a,b,c or 0..9 or a file with one entry per line"
"""What is added to the help of public lists."""


def flag_of(word: Word) -> Flag:
    """Return the option of a word, such as ``--count-clamped``."""
    return Flag(f"--{word.name.replace('_', '-')}", FORMS[word.kind].metavar or "")


def privacy_words(owner: Owner) -> tuple[Word, ...]:
    """Return the privacy options that a model takes."""
    return tuple(OPTIONS[name] for name in owner.privacy)


def parameter(word: Word, *, required: bool, default: object) -> inspect.Parameter:
    """Return a word as a parameter of a function that Typer makes a command of."""
    form, flag = FORMS[word.kind], flag_of(word).text
    annotation = form.annotation
    if word.kind == "flag":
        default = bool(default)
        flag = f"{flag}/--no-{flag.removeprefix('--')}" if default else flag
    elif not required and default is None:
        annotation = annotation | None
    option = typer.Option(flag, metavar=form.metavar, help=_sentence(word))
    return keyword(word.name, Annotated[annotation, option], required=required, default=default)


def keyword(
    name: str, annotation: object, *, required: bool = False, default: object = None
) -> inspect.Parameter:
    """Return a keyword parameter with Typer's annotation."""
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if required else default,
        annotation=annotation,
    )


def _sentence(word: Word) -> str:
    """Return the help of a word as a sentence; a text may begin with a value, kept as it is."""
    said = word.help if word.kind == "text" else word.help[:1].upper() + word.help[1:]
    return f"{said}; {LIST_HELP}." if word.kind in ("levels", "list") else f"{said}."


# -- from text to arguments ----------------------------------------------------------------------


def read_words(words: Iterable[Word], given: Mapping[str, Any]) -> dict[str, object]:
    """Return the arguments that were given, by the name of their word.

    Args:
        words: the words of one model, or the privacy options.
        given: what Typer hands over, by the name of the word; None or empty where left out.
    """
    told = {w.name: (w, given[w.name]) for w in words if given.get(w.name) not in (None, [])}
    lists = _public_lists(told)
    return {
        name: FORMS[word.kind].read(value, flag_of(word).text, lists)
        for name, (word, value) in told.items()
    }


def _public_lists(given: Mapping[str, tuple[Word, Any]]) -> PublicLists:
    by_kind: dict[str, Any] = {
        word.kind: FORMS[word.kind].read(value, flag_of(word).text, PublicLists())
        for word, value in given.values()
        if word.kind in ("levels", "list")
    }
    return PublicLists(by_kind.get("levels"), by_kind.get("list"))


def release_arguments(owner: Owner, given: Mapping[str, Any]) -> dict[str, object]:
    """Return the keyword arguments of the release function, its own and the privacy options."""
    own = owner.prepare(read_words(owner.words, given))
    return {**own, **read_words(privacy_words(owner), given)}


def argument_flags(owner: Owner) -> dict[str, Flag]:
    """Return the option of every argument of the release function, by the argument's name.

    ``prepare`` may call an argument otherwise than its word (``--clique`` becomes ``cliques``);
    what it does with a word is seen by handing it one.
    """
    flags = {word.name: flag_of(word) for word in (*owner.words, *privacy_words(owner))}
    for word in owner.words:
        marker = object()
        try:
            prepared = owner.prepare({word.name: marker})
        except (NoisewiseError, TypeError, ValueError):
            continue  # It looks into the value: such a word is no argument under another name.
        flags |= {name: flag_of(word) for name, value in prepared.items() if value is marker}
    return flags


# -- commands ------------------------------------------------------------------------------------


def command(
    name: str, summary: str, parameters: Iterable[inspect.Parameter], run: Callable[..., None]
) -> TyperCommand:
    """Return a command for Typer's groups.

    Args:
        name: of the command.
        summary: its help.
        parameters: what ``run`` is called with.
        run: the function.
    """
    listed = list(parameters)
    names = [p.name for p in listed]
    for repeated in {n for n in names if names.count(n) > 1}:
        flag = repeated.replace("_", "-")
        raise ArgumentError(f"model: {name!r} has a word --{flag}, which the command has itself")

    def call(**given: Any) -> None:
        run(**given)

    call.__signature__ = inspect.Signature(listed)  # type: ignore[attr-defined]
    alone = typer.Typer(add_completion=False)
    alone.command(name, help=summary)(call)
    return cast(TyperCommand, typer.main.get_command(alone))


class ModelCommands(Mapping[str, TyperCommand]):
    """The commands of a group by name: one per model, made when it is asked for."""

    def __init__(self, make: Callable[[Model], TyperCommand], has: Callable[[Owner], bool]) -> None:
        self._make, self._has = make, has

    def __iter__(self) -> Iterator[str]:
        return (name for name in models.names() if self._has(models.find(name).owner()))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __getitem__(self, name: str) -> TyperCommand:
        if name not in models.names() or not self._has(models.find(name).owner()):
            raise KeyError(name)
        return self._make(models.find(name))


def model_group(
    make: Callable[[Model], TyperCommand], has: Callable[[Owner], bool] = lambda owner: True
) -> type[TyperGroup]:
    """Return the class of a group with one command per model.

    Args:
        make: makes a model's command.
        has: whether there is one for this model.
    """

    class ModelGroup(TyperGroup):
        """A group whose commands come from the registry of models."""

        def __init__(self, **settings: Any) -> None:
            super().__init__(**settings)
            self.commands = cast(Any, ModelCommands(make, has))

    return ModelGroup
