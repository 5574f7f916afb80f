"""The privacy options that all release functions share: each is named and described once, here.

A release function takes those of one form, such as `MomentOptions`, as ``**privacy``. Type checkers
know them from the form (PEP 692), ``help`` shows them because `with_options` writes them into the
function's signature and docstring, and the command line asks for `OPTIONS`.
"""
# No ``from __future__ import annotations``: a TypedDict would not see what is Required.

import dataclasses
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field
from pathlib import Path
from typing import Any, Required, Self, TypedDict, TypeVar, get_args, get_origin

from noisewise.artifact import Mechanism, Neighbours
from noisewise.models.base import Word, WordKind
from noisewise.privacy.ledger.default_ledger import DefaultLedger
from noisewise.privacy.sum_plan import Progress

WIDTH = 100
"""Columns of a docstring, as in the rest of the package."""

F = TypeVar("F", bound=Callable[..., Any])


def _about(kind: WordKind | None, help: str, planned: bool = False) -> dict[str, Any]:
    """Describe an option in words, and how the command line reads it (None: it does not ask)."""
    return {"kind": kind, "help": help, "planned": planned}


@dataclass(frozen=True, kw_only=True)
class PrivacyOptions:
    """What an owner says about privacy: the budget, the noise, who is protected, who keeps count.

    A release function takes the fields as keyword arguments; not every function takes all.

    Example:
        >>> from noisewise.privacy.options import PrivacyOptions
        >>> PrivacyOptions(epsilon=1.0).neighbours
        'replace-one'
    """

    epsilon: float = field(metadata=_about("number", "the whole privacy budget of this release"))
    mechanism: Mechanism = field(
        default="laplace",
        metadata=_about(
            "text", "laplace (pure epsilon), or gaussian, which needs a delta (zCDP)", planned=True
        ),
    )
    delta: float | None = field(
        default=None,
        metadata=_about(
            "number", "for gaussian noise, such as 1e-6: far below one over n", planned=True
        ),
    )
    neighbours: Neighbours = field(
        default="replace-one",
        metadata=_about(
            "text",
            "replace-one (n is public) or add-remove (n is secret, hence noisy)",
            planned=True,
        ),
    )
    groups: Mapping[str, Iterable[Any]] | None = field(
        default=None,
        metadata=_about(
            "levels", "a column and the public list of its groups: one result for each group"
        ),
    )
    sizes: str | None = field(
        default=None,
        metadata=_about(
            "text",
            "public where group sizes are public knowledge: neighbours then replace a record "
            "within its group",
        ),
    )
    unit: str | None = field(
        default=None,
        metadata=_about(
            "column",
            "the column that says whose a record is, in text or whole numbers (in a CSV file any "
            "text, compared as written), where people have several: the guarantee is then for "
            "people with all of their records; left out, a record is a person",
            planned=True,
        ),
    )
    max_records: int | None = field(
        default=None,
        metadata=_about(
            "count",
            "with unit: how many records of a person count at most, chosen at random where there "
            "are more; noise grows with it, and from 2 on n is secret. Left out for a graphical "
            "model, each of K records weighs 1/K",
            planned=True,
        ),
    )
    where: str | None = field(
        default=None,
        metadata=_about(
            "text",
            "which records to take, by public conditions such as \"age >= 18 and sex = 'f'\"; "
            "with add-remove neighbours only, since their number is a secret",
        ),
    )
    split: Mapping[str, float] | None = field(
        default=None,
        metadata=_about(
            "assignments",
            "relative shares of the budget by part: the kinds of statistics, such as gram, "
            "monomials, power-sums or clamped, and bounds where they are chosen privately",
            planned=True,
        ),
    )
    ledger: str | Path | DefaultLedger | None = field(
        default=None,
        metadata=_about(
            "text", "path or URL of a budget ledger; the spend is durable before noise is drawn"
        ),
    )
    dataset: str | None = field(
        default=None, metadata=_about("text", "the ledger's account, where it has several")
    )
    large_epsilon: bool = field(
        default=False,
        metadata=_about("flag", "an epsilon above 100 is meant, although it protects next to none"),
    )
    progress: Progress | None = field(
        default=None, metadata=_about(None, "called with rows done and rows in all")
    )

    @classmethod
    def of(cls, form: type, given: Mapping[str, Any], **settled: Any) -> Self:
        """Return the options that a caller gave, as the form allows them.

        Args:
            form: the TypedDict of the options that the function takes.
            given: the function's keyword arguments.
            settled: options that the function decides itself.

        Raises:
            TypeError: an unknown option, or a required one that is missing; as Python would.
        """
        names = option_names(form)
        given = _british(given)
        for name in given:
            if name not in names:
                raise TypeError(
                    f"unexpected keyword argument {name!r}; the privacy options are "
                    f"{', '.join(names)}"
                )
        for name in names:
            if name not in given and name in _REQUIRED:
                raise TypeError(
                    f"missing keyword argument {name!r}: {FIELDS[name].metadata['help']}"
                )
        return cls(**given, **settled)


def _british(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments with ``neighbors`` as ``neighbours``, the one word spelt in two ways."""
    if "neighbors" not in given:
        return given
    if "neighbours" in given:
        raise TypeError("'neighbors' and 'neighbours' are one argument; give it once")
    return {"neighbours" if name == "neighbors" else name: v for name, v in given.items()}


FIELDS = {f.name: f for f in dataclasses.fields(PrivacyOptions)}
"""The fields by name, each with what it is in words."""

_REQUIRED = tuple(name for name, f in FIELDS.items() if f.default is MISSING)

OPTIONS: dict[str, Word] = {
    name: Word(
        name,
        f.metadata["kind"],
        f.metadata["help"],
        required=f.default is MISSING,
        default=None if f.default is MISSING else f.default,
        planned=f.metadata["planned"],
    )
    for name, f in FIELDS.items()
    if f.metadata["kind"] is not None
}
"""The options as the command line asks for them, by name."""


# -- the forms: which functions take which options -----------------------------------------------


class QuantileOptions(TypedDict, total=False):
    """Options of a function that has budgets of its own."""

    neighbours: Neighbours
    unit: str | None
    where: str | None
    ledger: str | Path | None
    dataset: str | None
    large_epsilon: bool
    progress: Progress | None


class ProbabilityOptions(QuantileOptions, total=False):
    """Options of a function that answers one question for one budget."""

    epsilon: Required[float]


class NoisySumOptions(ProbabilityOptions, total=False):
    """Options of every function that publishes sums over records."""

    mechanism: Mechanism
    delta: float | None
    groups: Mapping[str, Iterable[Any]] | None
    sizes: str | None
    max_records: int | None


class MomentOptions(NoisySumOptions, total=False):
    """Options of sums of numbers: several statistics may share the budget."""

    split: Mapping[str, float] | None


def option_names(form: type) -> tuple[str, ...]:
    """Return the names of a form's options, in the order of `PrivacyOptions`."""
    return tuple(name for name in FIELDS if name in form.__annotations__)


def command_line_options(form: type) -> tuple[str, ...]:
    """Return the names of a form's options for which a command line can ask."""
    return tuple(name for name in option_names(form) if name in OPTIONS)


# -- in signatures and docstrings ----------------------------------------------------------------

_PLACE = re.compile(r"^( *)\*\*privacy:.*\n", re.MULTILINE)


def with_options(form: type) -> Callable[[F], F]:
    """Return a decorator that writes the form's options where ``**privacy`` stands.

    Args:
        form: the TypedDict that the function's ``**privacy: Unpack[...]`` names.

    Returns:
        A decorator that changes signature and docstring, and leaves the function as it is.
    """

    def decorate(function: F) -> F:
        own = inspect.signature(function)
        kept = [p for p in own.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        shared = [_parameter(name, form.__annotations__[name]) for name in option_names(form)]
        function.__signature__ = own.replace(parameters=kept + shared)  # type: ignore[attr-defined]
        if function.__doc__ is not None:
            function.__doc__ = _PLACE.sub(
                lambda place: _described(form, place.group(1)), function.__doc__
            )
        return function

    return decorate


def _parameter(name: str, annotation: Any) -> inspect.Parameter:
    plain = get_args(annotation)[0] if get_origin(annotation) is Required else annotation
    default = FIELDS[name].default
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if default is MISSING else default,
        annotation=plain,
    )


def _described(form: type, indent: str) -> str:
    """Return the entries of an ``Args:`` section."""
    entries = [
        textwrap.fill(
            f"{name}: {FIELDS[name].metadata['help']}.",
            WIDTH,
            initial_indent=indent,
            subsequent_indent=indent + "    ",
        )
        for name in option_names(form)
    ]
    return "\n".join(entries) + "\n"


def reference_table() -> str:
    """Return all options as a table for the Python reference, which names them once."""
    rows = [
        f"| `{name}` | {'required' if f.default is MISSING else f'`{f.default!r}`'} | "
        f"{f.metadata['help']} |"
        for name, f in FIELDS.items()
    ]
    return "\n".join(["| option | default | what it says |", "|---|---|---|", *rows])
