"""What an owner publishes of an exponential family: sums over a public interval, or counts."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Unpack, cast

from noisewise.artifact import ArgumentError, Bounds, Clamped, PowerSums, Statistic, Tables
from noisewise.models.base import Owner, Word, renaming, with_censored_bounds
from noisewise.models.exponential_family import ExponentialFamilyRelease
from noisewise.privacy import arguments
from noisewise.privacy.arguments import PrivateBounds, mapping, positive, shown
from noisewise.privacy.budget import PrivacyTerms, privacy_terms
from noisewise.privacy.options import (
    MomentOptions,
    PrivacyOptions,
    command_line_options,
    with_options,
)
from noisewise.privacy.pipeline import ReleaseRequest, publish

Outside = Literal["drop", "clamp"]
"""What becomes of records outside the interval."""


@dataclass(frozen=True)
class Shape:
    """What a family's sufficient statistic looks like.

    ``whole``: whole numbers, summed as such; ``degree`` 2 adds the sum of squares; ``centred``: a
    location family, whose origin may sit anywhere, so the middle of the interval wastes least;
    ``lowest``: no record can be below it, so an interval must reach beyond it.
    """

    whole: bool = False
    degree: int = 1
    centred: bool = False
    parameters: tuple[str, ...] = ()
    lowest: float = -math.inf


SHAPES = {
    "bernoulli": Shape(whole=True),
    "binomial": Shape(whole=True, parameters=("trials",)),
    "poisson": Shape(whole=True, lowest=0),
    "geometric": Shape(whole=True, lowest=0),
    "exponential": Shape(lowest=0),
    "gamma": Shape(parameters=("shape",), lowest=0),
    "normal": Shape(degree=2, centred=True),
}
"""How every family is summed, by name; ``categorical`` is counted instead."""

SYNONYMS = {"multinomial": "categorical"}
"""Other names of families."""


def known_families() -> tuple[str, ...]:
    """Return the names of all families that can be released, registered ones included."""
    return (*SHAPES, "categorical")


def register_family(
    name: str,
    *,
    whole: bool = False,
    squares: bool = False,
    centred: bool = False,
    parameters: Iterable[str] = (),
    lowest: float = -math.inf,
) -> None:
    """Make a family of one's own known to ``exponential_family``.

    What is released of it is the sum of the column over a public interval, and with ``squares``
    the sum of its squares; sensitivities, noise and the file are those of the built-in families.
    A statistic that is no power of x, such as log x, is a column of its own: make it first.

    Args:
        name: the word in the release file, under which the analyst registers the same family.
        whole: records are whole numbers.
        squares: sum squares too.
        centred: the origin may move to the middle of the interval (location families only).
        parameters: known parameters, given as ``known={...}`` at each release.
        lowest: the least possible record.

    Example:
        >>> import noisewise as nw
        >>> nw.release.register_family("waiting-time", lowest=0)
        >>> settings = nw.release.exponential_family(
        ...     nw.release.Blank(100), column="wait", family="waiting-time", bounds=(0, 60),
        ...     epsilon=1.0,
        ... )
        >>> settings.model
        {'distribution': 'waiting-time'}
    """
    word = arguments.name(name, "name")
    if word in known_families() or word in SYNONYMS:
        raise ArgumentError(f"name: there is a family {word!r} already; choose another name")
    SHAPES[word] = Shape(whole, 2 if squares else 1, centred, tuple(parameters), float(lowest))


LATTICE_BITS = 15
"""Lattice of sums of real numbers: squares are at most 2**30, as in the Gram matrix."""

MIN_LATTICE_STEPS = 16
"""Lattice steps that an interval must span at least (chosen)."""

MAX_WHOLE = 2**30
"""Whole numbers below this size fit 2**32 records into 64-bit sums."""


@with_options(MomentOptions)
def exponential_family(
    source: Any,
    *,
    column: str,
    family: str,
    bounds: tuple[float, float] | Bounds | PrivateBounds | None = None,
    outside: Outside = "drop",
    levels: Iterable[Any] | None = None,
    trials: int | None = None,
    shape: float | None = None,
    known: Mapping[str, float] | None = None,
    fill: Any = None,
    count_clamped: bool = False,
    **privacy: Unpack[MomentOptions],
) -> ExponentialFamilyRelease:
    """Release the noisy sufficient statistic of a one-column exponential family.

    Args:
        source: path or glob, database URL with ``#table``, data frame, Arrow or Ibis table.
        column: the column that follows the family.
        family: ``bernoulli``, ``binomial``, ``categorical``, ``poisson``, ``geometric``,
            ``exponential``, ``gamma`` or ``normal``, or one made known by ``register_family``.
            ``geometric`` counts trials up to the first success: 1, 2, 3, … Families of whole
            numbers round each record to the nearest one, whatever the others hold.
        bounds: the public interval of an unbounded family, or a ``PrivateBounds``; a `nw.Censored`
            is carried in the file, and means the same here: the models know of their interval.
        outside: ``"drop"`` leaves records outside the interval out of the sum (they still count
            as records); ``"clamp"`` moves them to its nearer end, and is the better choice for
            nearly every column: with ``"drop"`` one sum may fit two quite different parameters,
            even where no record is outside, since nobody knows that none is. Records that the
            family cannot have, such as negative waiting times, are treated like any other: begin
            the interval at 0 and they are left out, or clamped to 0. Dropping is the
            way of the thesis, and the default for its sake.
        levels: the public categories of ``categorical``.
        trials: trials per record of ``binomial``.
        shape: the known shape of ``gamma``.
        known: the known parameters of a registered family.
        fill: public value for missing entries; required for NULLs under replace-one.
        count_clamped: also release a noisy count of records outside the interval.
        **privacy: the privacy options, of which ``epsilon`` must be given (`PrivacyOptions`).

    Returns:
        The release, ready to be saved.

    Example:
        >>> import noisewise as nw
        >>> import pandas as pd
        >>> visits = pd.DataFrame({"visits": [0, 2, 1, 4, 3]})
        >>> release = nw.release.exponential_family(
        ...     visits, column="visits", family="poisson", bounds=(0, 20), epsilon=1.0
        ... )
        >>> release.model
        {'distribution': 'poisson'}
    """
    options = PrivacyOptions.of(MomentOptions, privacy)
    name, family = arguments.name(column, "column"), _family(family)
    if not isinstance(outside, str) or outside not in ("drop", "clamp"):
        raise ArgumentError(f"outside: must be 'drop' or 'clamp', not {shown(outside)}")
    groups = arguments.groups(options.groups)
    agreed = privacy_terms(options, None if groups is None else groups.column)
    shared: dict[str, Any] = {
        "family": "exponential-family",
        "terms": agreed,
        "options": options,
        "groups": groups,
    }
    model = _model(family, {"trials": trials, "shape": shape, **_known(known)})
    if family == "categorical":
        request = _categorical(name, levels, bounds, fill, model, shared)
    elif levels is not None:
        raise ArgumentError(f"levels: go with family='categorical', not {family!r}")
    else:
        request = _sums(name, family, bounds, outside, fill, count_clamped, model, shared)
    return cast(ExponentialFamilyRelease, publish(source, request))


def _family(given: object) -> str:
    """Return the name of a family that can be released."""
    name = SYNONYMS.get(given, given) if isinstance(given, str) else given
    if not isinstance(name, str) or name not in known_families():
        listed = ", ".join(known_families())
        raise ArgumentError(f"family: must be one of {listed}, not {shown(name)}")
    return name


def _known(known: object) -> dict[str, Any]:
    """Return known parameters by name; the built-in ones have arguments of their own."""
    given = mapping(known, "known", "{parameter: value}")
    return {arguments.name(k, "known"): v for k, v in given.items()}


def _model(family: str, given: Mapping[str, float | None]) -> dict[str, Any]:
    """Return the distribution and its known parameters, each where it belongs."""
    wanted = SHAPES[family].parameters if family in SHAPES else ()
    for parameter in wanted:
        if given.get(parameter) is None:
            raise ArgumentError(f"{parameter}: family={family!r} needs it")
    model: dict[str, Any] = {"distribution": family}
    for parameter, value in given.items():
        if (value is not None) != (parameter in wanted):
            verb = "needs" if parameter in wanted else "does not take"
            raise ArgumentError(f"{parameter}: family={family!r} {verb} it")
        if value is not None:
            model[parameter] = positive(value, parameter)
    if "trials" in model:
        if not model["trials"].is_integer() or model["trials"] >= MAX_WHOLE:
            raise ArgumentError(
                f"trials: must be a whole number below 2**30, not {shown(given['trials'])}"
            )
        model["trials"] = int(model["trials"])
    return model


def _interval(
    column: str, family: str, given: Any, model: Mapping[str, Any]
) -> Bounds | PrivateBounds:
    """Return the public interval; bounded families bring their own."""
    if family in ("bernoulli", "binomial"):
        if given is not None:
            raise ArgumentError(f"bounds: family={family!r} has its own; leave them out")
        return Bounds(0, model.get("trials", 1))
    limits = arguments.all_bounds((column,), None if given is None else {column: given})[column]
    widest, lowest = arguments.widest_bounds(limits), SHAPES[family].lowest
    if widest.upper <= lowest:
        raise ArgumentError(
            f"bounds: no record of family={family!r} is below {lowest:g}; the interval "
            f"{shown((widest.lower, widest.upper))} would hold none"
        )
    if SHAPES[family].whole:
        return _on_whole_numbers(limits, family)
    return limits if SHAPES[family].centred else _on_fine_lattice(limits, family)


def _on_fine_lattice(limits: Bounds | PrivateBounds, family: str) -> Bounds | PrivateBounds:
    """Return the interval; refuse one so far from zero that it spans few lattice steps."""
    widest = arguments.widest_bounds(limits)
    step = _power_of_two(max(abs(widest.lower), abs(widest.upper))) * 2.0**-LATTICE_BITS
    steps = (widest.upper - widest.lower) / step
    fewest = MIN_LATTICE_STEPS * (2 if isinstance(limits, PrivateBounds) else 1)
    if steps < fewest:
        raise ArgumentError(
            f"bounds: family={family!r} is anchored at zero; so far from it, the interval "
            f"{shown((widest.lower, widest.upper))} is too narrow to be resolved"
        )
    if isinstance(limits, PrivateBounds) and not widest.lower <= 0 <= widest.upper:
        # So that any two candidates are that many steps apart. Those that are measured from zero
        # are apart by a part of themselves, and the lattice becomes as fine as they are.
        return dataclasses.replace(
            limits, resolution=max(limits.resolution, MIN_LATTICE_STEPS * step)
        )
    return limits


def _on_whole_numbers(limits: Bounds | PrivateBounds, family: str) -> Bounds | PrivateBounds:
    """Return the interval; refuse one without two whole numbers, whose sum would be constant."""
    widest = arguments.widest_bounds(limits)
    steps = math.floor(widest.upper) - math.ceil(widest.lower)
    fewest = 2 if isinstance(limits, PrivateBounds) else 1
    if steps < fewest or max(-widest.lower, widest.upper) >= MAX_WHOLE:
        raise ArgumentError(
            f"bounds: family={family!r} counts in whole numbers; the bounds must hold a few of "
            f"them, and lie within ±2**30, not {shown((widest.lower, widest.upper))}"
        )
    if isinstance(limits, PrivateBounds):
        # Candidates a whole step apart or more never round to one and the same number.
        return dataclasses.replace(limits, resolution=max(limits.resolution, 1.0))
    return limits


def _power_sums(
    column: str, limits: Bounds, shape: Shape, outside: Outside, agreed: PrivacyTerms
) -> PowerSums:
    """Return the sums. A power-of-two scale keeps round numbers on lattice points."""
    origin = limits.centre if shape.centred else 0.0
    reach = max(abs(limits.lower - origin), abs(limits.upper - origin))
    return PowerSums(
        column=column,
        lower=limits.lower,
        upper=limits.upper,
        outside=outside,
        degree=shape.degree,
        count=agreed.count,
        origin=origin,
        scale=1.0 if shape.whole else _power_of_two(reach),
        bits=0 if shape.whole else LATTICE_BITS,
    )


def _power_of_two(reach: float) -> float:
    """Return the least power of two that is not below ``reach``, without a rounded logarithm."""
    mantissa, exponent = math.frexp(reach)
    return math.ldexp(1.0, exponent - (mantissa == 0.5))


def _sums(
    name: str, family: str, bounds: Any, outside: Outside, fill: Any, count_clamped: bool,
    model: dict[str, Any], shared: Mapping[str, Any],
) -> ReleaseRequest:  # fmt: skip
    """Return the request for a family that is summed over an interval."""
    limits = _interval(name, family, bounds, model)
    # Where the interval is the family's whole support, nothing can be truncated by it.
    kept: Outside = "clamp" if family in ("bernoulli", "binomial") else outside

    def specify(settled: Mapping[str, Bounds]) -> tuple[Statistic, ...]:
        sums = _power_sums(name, settled[name], SHAPES[family], kept, shared["terms"])
        return (sums, Clamped((name,))) if count_clamped else (sums,)

    return ReleaseRequest(
        model=model,
        kinds=("power-sums", "clamped") if count_clamped else ("power-sums",),
        specify=specify,
        bounds={name: limits},
        fill=arguments.numeric_fill(None if fill is None else {name: fill}, {name: limits}),
        **shared,
    )


def _categorical(
    column: str, levels: Any, bounds: Any, fill: Any, model: Any, shared: Mapping[str, Any]
) -> ReleaseRequest:
    """Return the request for a column that is counted by category."""
    if levels is None:
        raise ArgumentError("levels: family='categorical' needs the public list of categories")
    if bounds is not None:
        raise ArgumentError("bounds: family='categorical' has levels, not bounds")
    listed = {column: arguments.levels(levels, "levels")}
    tables = Tables(((column,),), listed)
    return ReleaseRequest(
        model=model,
        kinds=(tables.kind,),
        specify=lambda _: (tables,),
        coded=(column,),
        fill=arguments.level_fill(None if fill is None else {column: fill}, listed),
        **shared,
    )


OWNER = Owner(
    release=exponential_family,
    summary="Release the sufficient statistic of a one-column exponential family.",
    words=(
        Word("column", "column", "the column that follows the family", required=True,
             plan_default="value"),
        Word("family", "text",
             "bernoulli, binomial, categorical, poisson, geometric, exponential, gamma or normal",
             required=True),
        Word("bounds", "interval", "the public interval; private:LOWER,UPPER lets part of the "
             "budget find it within limits that may be far too wide"),
        Word("censored", "censored-interval", "the public interval where it cuts values off; SIDES "
             "is both (the default), lower or upper"),
        Word("outside", "text",
             "what becomes of records outside the interval: clamp moves them to its nearer end, "
             "and is the better choice for nearly every column; drop leaves them out of the sum, "
             "which two quite different parameters may then fit", default="drop"),
        Word("levels", "list", "public categories of categorical"),
        Word("binomial_trials", "count", "trials per record of binomial"),
        Word("shape", "number", "known shape of gamma"),
        Word("known", "assignments", "known parameter of a registered family; repeat"),
        Word("fill", "value", "public value for missing entries", planned=False),
        Word("count_clamped", "flag", "also release how many records lie outside the interval"),
    ),
    privacy=command_line_options(MomentOptions),
    # --trials of a plan are its simulated releases.
    prepare=lambda words: renaming(binomial_trials="trials")(with_censored_bounds(words)),
)  # fmt: skip
"""The owner's part of the model, for the command line."""
