"""From a request to a Release: the one path every model takes.

Arguments are checked and mechanisms calibrated before the table is touched; exact sums are formed
and refused if the data do not fit; the spend is committed; only then is noise drawn.
"""

from __future__ import annotations

import contextlib
import datetime
import math
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from typing import Any, ClassVar, Self

import numpy as np

from noisewise.artifact import (
    ArgumentError,
    Block,
    Bounds,
    DataError,
    Groups,
    Level,
    Noise,
    NoisewiseError,
    Population,
    Receipt,
    Release,
    ReleaseError,
    Selection,
    Statistic,
)
from noisewise.artifact import validation as wire
from noisewise.artifact.bounds import UNSURE_SHARE, visible_count
from noisewise.artifact.process_ending import stop_if_ending
from noisewise.artifact.release_files import MAX_BYTES
from noisewise.artifact.sensitivity import sensitivity
from noisewise.artifact.statistics import MAX_ROWS
from noisewise.artifact.user_warnings import warn_user
from noisewise.artifact.version import VERSION
from noisewise.privacy.arguments import PrivateBounds, widest_bounds
from noisewise.privacy.budget import (
    BOUNDS,
    PrivacyTerms,
    equal_shares,
    shares,
    warn_of_large_delta,
    warn_of_large_epsilon,
    warn_of_small_epsilon,
)
from noisewise.privacy.lattice import Coded, Outside
from noisewise.privacy.ledger import DefaultLedger, cost_of, open_ledger
from noisewise.privacy.mechanisms import Calibrated, calibrate
from noisewise.privacy.options import PrivacyOptions
from noisewise.privacy.private_bounds import (
    candidates,
    choose_bounds,
    outward,
    prepare_search,
    searched,
)
from noisewise.privacy.selection import Condition, in_words, parse_where, refuse_kept_records
from noisewise.privacy.sources import open_source
from noisewise.privacy.statistic_privacy import PublicColumns, find_privacy
from noisewise.privacy.sum_plan import (
    Capped,
    CellCounts,
    Histogram,
    Part,
    Person,
    ProductSums,
    Source,
    SumPlan,
    Sums,
)

Specify = Callable[[Mapping[str, Bounds]], tuple[Statistic, ...]]
"""Settled bounds in, the statistics to publish out."""

MAX_NAMED = 5
"""Groups that an error names (chosen)."""

MAX_VALUES = MAX_BYTES // 24
"""As many 64-bit integers as a file surely holds: nothing is spent on one that cannot be read."""


@dataclass(frozen=True)
class Blank:
    """A source for planning: n records that nobody has. What it gives is all settings.

    Nothing is read, spent or drawn; the released numbers are zeros.

    Example:
        >>> import noisewise as nw
        >>> plan = nw.release.exponential_family(
        ...     nw.release.Blank(1000), column="visits", family="poisson", bounds=(0, 20), epsilon=1
        ... )
        >>> float(plan.block("power-sums").noise_scales[0])
        20.0
    """

    n: int

    def __post_init__(self) -> None:
        if isinstance(self.n, bool) or not isinstance(self.n, int) or not 0 < self.n <= MAX_ROWS:
            raise ArgumentError(f"n: must be a whole number from 1 to {MAX_ROWS}, not {self.n!r}")


@dataclass(frozen=True)
class ReleaseRequest:
    """What a model asks for: the statistics, and the privacy with which they are released.

    ``specify`` gives the statistics once the bounds are settled. ``takes_other`` tells whether the
    owner could have named levels for what is not on a public list, as ``other`` does. ``dated``
    says of columns whether their bounds were given as dates. ``weighed`` is the person whose share
    a record is, where statistics weigh people. With fewer than ``least_records`` records in a group
    nothing could be inferred of it.
    """

    family: str
    model: Mapping[str, Any]
    kinds: tuple[str, ...]
    specify: Specify
    terms: PrivacyTerms
    options: PrivacyOptions
    bounds: Mapping[str, Bounds | PrivateBounds] = field(default_factory=dict)
    coded: tuple[str, ...] = ()
    groups: Groups | None = None
    fill: Mapping[str, float | Level] = field(default_factory=dict)
    other: Mapping[str, Level] = field(default_factory=dict)
    takes_other: bool = False
    dated: Mapping[str, bool] = field(default_factory=dict)
    weighed: Person | None = None
    least_records: int = 1

    @cached_property
    def where(self) -> tuple[Condition, ...]:
        """The conditions that select records."""
        return parse_where(self.options.where)

    @property
    def person(self) -> Person | Capped | None:
        """Whose a record is, and how a person is bounded; None where a record is a person."""
        guarantee = self.terms.guarantee
        if guarantee.unit is None or guarantee.max_records is None:
            return self.weighed
        return Capped(guarantee.unit, guarantee.max_records)

    @property
    def private_bounds(self) -> dict[str, PrivateBounds]:
        """The columns whose bounds are to be chosen privately, and how."""
        return {c: b for c, b in self.bounds.items() if isinstance(b, PrivateBounds)}

    @property
    def group_code(self) -> Coded | None:
        """The group column, coded by its public list."""
        return None if self.groups is None else Coded(self.groups.column, self.groups.keys)


def publish(source: Any, request: ReleaseRequest) -> Release:
    """Carry the request out; return the release."""
    if request.terms.guarantee.unit is not None and request.person is None:
        raise ArgumentError(
            f"max_records: unit={request.terms.guarantee.unit!r} needs it, the number of a "
            "person's records that may count, such as max_records=1"
        )
    names = request.kinds + ((BOUNDS,) if request.private_bounds else ())
    costs = shares(request.terms.cost, names, request.options.split, len(request.private_bounds))
    blank = _rehearse(request, costs, source.n if isinstance(source, Blank) else 0)
    settled = request.terms.with_least_noise(_least_scale(blank))
    if settled is not request.terms:
        return publish(source, replace(request, terms=settled))
    if isinstance(source, Blank):
        return blank
    warn_of_large_epsilon(request.terms, request.options)
    with Payment(request) as payment:
        return _publish(source, request, costs, payment)


def _publish(
    source: Any, request: ReleaseRequest, costs: Mapping[str, float], payment: Payment
) -> Release:
    reader = open_source(source)
    check_columns(reader, request)
    refuse_kept_records(reader.kept_records(), request.terms.guarantee.neighbours)
    if request.private_bounds:
        bounds, selections = _search(reader, request, costs[BOUNDS], payment)
    else:
        bounds = {c: b for c, b in request.bounds.items() if isinstance(b, Bounds)}
        selections = ()
    statistics = request.specify(bounds)
    prepared = [_prepare(s, request.terms, costs[s.kind]) for s in statistics]
    public = PublicColumns(bounds, request.fill, request.other)
    sums = _sum(reader, statistics, public, request)
    refuse_unfit(sums, request)
    refuse_few_records(sums.sizes, request)
    if not request.terms.count:
        warn_of_small_epsilon(request.terms, int(sums.sizes.max()))
        warn_of_large_delta(request.terms, int(sums.sizes.sum()))
    receipt = payment.pay()
    blocks = tuple(
        Block(s, c.noise, c.draw(find_privacy(s.kind).integers(s, part)))
        for s, c, part in zip(statistics, prepared, sums.parts, strict=True)
    )
    return assemble(request, bounds, selections, blocks, sums.sizes, receipt)


def _sum(
    reader: Source,
    statistics: tuple[Statistic, ...],
    public: PublicColumns,
    request: ReleaseRequest,
) -> Sums:
    """Return the sums of all statistics, part by part, and what stood in the way.

    Records left out are those selected less those complete, two counts of one record at most each.
    """
    parts = [find_privacy(s.kind).part(s, public) for s in statistics]
    apart = [find_privacy(s.kind).counts_left_out for s in statistics]
    together = tuple(part for part, alone in zip(parts, apart, strict=True) if not alone)
    plan = SumPlan(together, request.group_code, request.person, request.where, request.dated)
    sums = reader.sum(plan, request.options.progress)
    counted = iter(sums.parts)
    values = []
    for part, alone in zip(parts, apart, strict=True):
        if alone:
            plan = SumPlan((part,), where=request.where, dated=request.dated)
            everyone = reader.sum(plan, request.options.progress)
            values.append(np.array([[everyone.sizes.sum() - sums.sizes.sum()]], np.int64))
        else:
            values.append(next(counted))
    return replace(sums, parts=tuple(values))


def check_columns(reader: Source, request: ReleaseRequest, numeric: tuple[str, ...] = ()) -> None:
    """Raise a DataError unless the columns of the request exist and have a usable type."""
    group = () if request.groups is None else (request.groups.column,)
    unit = request.person.column if request.person is not None else request.terms.guarantee.unit
    person = () if unit is None else (unit,)
    compared = tuple(c.column for c in request.where if c.is_numeric)
    named = tuple(c.column for c in request.where if not c.is_numeric)
    reader.check((*request.bounds, *numeric, *compared), (*request.coded, *group, *person, *named))


def _rehearse(request: ReleaseRequest, costs: Mapping[str, float], n: int) -> Release:
    """Assemble the release with zeros: what the wire or a mechanism refuses costs nothing here.

    Bounds that are still to be chosen take the widest values they can have. ``n`` is the size of
    every group.
    """
    bounds = {c: widest_bounds(b) for c, b in request.bounds.items()}
    groups = 1 if request.groups is None else len(request.groups.keys)
    each = (
        equal_shares(costs[BOUNDS], len(request.private_bounds)) if request.private_bounds else 0.0
    )
    try:
        statistics = request.specify(bounds)
        _check_names(statistics, groups)
        prepared = [_prepare(s, request.terms, costs[s.kind]) for s in statistics]
        public = PublicColumns(bounds, request.fill, request.other)
        for statistic in statistics:
            if not statistic.over_partitions:
                find_privacy(statistic.kind).part(statistic, public)
        blocks = tuple(
            Block(s, c.noise, np.zeros((len(s.names), groups), np.int64))
            for s, c in zip(statistics, prepared, strict=True)
        )
        selections = tuple(_unsearched(request, each))
        return assemble(request, bounds, selections, blocks, np.full(groups, n, np.int64), None)
    except ReleaseError as error:
        raise ArgumentError(str(error)) from None


def _least_scale(release: Release) -> float:
    searches = [s.search.noise for s in release.selections if s.search is not None]
    return min(noise.scale for noise in [*(b.noise for b in release.blocks), *searches])


def _unsearched(request: ReleaseRequest, cost: float) -> Iterator[Selection]:
    """Yield what the file will say of searches for bounds, with zeros for counts."""
    for column, private in request.private_bounds.items():
        zeros = np.zeros(len(candidates(private)[0]), np.int64)
        noise = prepare_search(request.terms, cost).noise
        yield searched(column, private, noise, zeros, None)[1]


def _check_names(statistics: tuple[Statistic, ...], groups: int) -> None:
    for statistic in statistics:
        names = statistic.names
        if len(set(names)) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ArgumentError(
                f"two numbers of the release would be called {twice!r} ('n' is the number of "
                "records, '*' a product): rename a column"
            )
    values = groups * sum(len(statistic.names) for statistic in statistics)
    if values > MAX_VALUES:
        what = "groups" if groups > 1 else "levels"
        raise ArgumentError(f"{what}: {values} numbers in all, more than the {MAX_VALUES} allowed")


def _prepare(statistic: Statistic, terms: PrivacyTerms, cost: float) -> Calibrated:
    bound = sensitivity(statistic, terms.relation, terms.records)
    return calibrate(terms.mechanism, bound, cost, terms.guarantee.smoothing)


class Payment:
    """One payment to a ledger: checked at once, made before the first draw.

    Used as a context: where it is left by an error after the spend, the ledger is told that no
    release came of it.
    """

    unfinished: ClassVar[set[Payment]] = set()
    """Payments whose releases are being made, for a program that has to end at once."""
    _held: ClassVar[bool] = False

    def __init__(self, request: ReleaseRequest) -> None:
        self._family = request.family
        unit = request.terms.guarantee.unit if request.weighed is None else request.weighed.column
        self._cost = cost_of(request.terms.guarantee, unit)
        self._receipt: Receipt | None = None
        self._entry = str(uuid.uuid4())
        self._options = options = request.options
        if options.ledger is None and options.dataset is not None:
            raise ArgumentError("dataset: names an account of a ledger, and no ledger is given")
        first = isinstance(options.ledger, DefaultLedger) and not options.ledger.exists
        if options.ledger is not None and not first:
            with open_ledger(options.ledger) as ledger:
                ledger.check(options.dataset, self._cost)

    def pay(self) -> Receipt | None:
        """Pay once; return the receipt, or None without a ledger.

        The spend is durable when this returns. A crash afterwards wastes budget, and never
        overdraws it.
        """
        options = self._options
        if options.ledger is not None and self._receipt is None:
            self.unfinished.add(self)
            stop_if_ending()
            with open_ledger(options.ledger) as ledger:
                self._receipt = ledger.spend(
                    options.dataset, self._cost, self._family, entry=self._entry
                )
        return self._receipt

    def note_lost(self, why: str) -> bool:
        """Tell the ledger that no release came of the spend; return whether there was one."""
        if self._options.ledger is None:
            return False
        with open_ledger(self._options.ledger) as ledger:
            return ledger.note_lost(self._entry, why)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self in self.unfinished and kind is not None:
            # The error itself matters more than a ledger that is out of reach by now.
            with contextlib.suppress(NoisewiseError):
                self.note_lost(kind.__name__)
        if kind is not None or not self._held:
            self.unfinished.discard(self)

    @classmethod
    @contextlib.contextmanager
    def held(cls) -> Iterator[None]:
        """Count payments as unfinished until this context ends: until their releases are saved.

        An interrupt leaves them so, for whoever ends the program.
        """
        cls._held = True
        try:
            yield
        except Exception:
            cls.unfinished.clear()
            raise
        finally:
            cls._held = False
        cls.unfinished.clear()


def _search(
    reader: Source, request: ReleaseRequest, cost: float, payment: Payment
) -> tuple[dict[str, Bounds], tuple[Selection, ...]]:
    """Find bounds: count at the candidates, refuse unfit data, pay, draw noise, and choose."""
    fills = {c: v for c, v in request.fill.items() if isinstance(v, int | float)}
    maps = {c: outward(c, w, fills.get(c)) for c, w in request.private_bounds.items()}
    # Every column takes part, so that a record is complete here exactly when it is later.
    present = tuple(Outside(c, 0.0, 1.0, fills.get(c)) for c in request.bounds)
    codes = _codes(request)
    parts: tuple[Part, ...] = (
        *(Histogram(f) for f in maps.values()),
        ProductSums(present, ((),)),
        *((CellCounts(codes, tuple((i,) for i in range(len(codes)))),) if codes else ()),
    )
    plan = SumPlan(parts, request.group_code, request.person, request.where, request.dated)
    sums = reader.sum(plan, request.options.progress)
    refuse_unfit(sums, request)
    refuse_few_records(sums.sizes, request)
    prepared = prepare_search(request.terms, equal_shares(cost, len(maps)))
    known = None if request.terms.guarantee.hides_size else int(sums.sizes.sum())
    if known is not None:
        judge_search(known, request, prepared.noise)
    payment.pay()
    bounds = {c: b for c, b in request.bounds.items() if isinstance(b, Bounds)}
    selections = []
    for column, counts in zip(maps, sums.parts[: len(maps)], strict=True):
        private = request.private_bounds[column]
        # Groups are searched together: their counts are added up before noise is.
        noisy = prepared.draw(counts.sum(axis=1))
        search, selection = searched(column, private, prepared.noise, noisy, known)
        bounds[column] = choose_bounds(private, search, known)
        selections.append(selection)
    return {c: bounds[c] for c in request.bounds}, tuple(selections)


def _codes(request: ReleaseRequest) -> tuple[Coded, ...]:
    """Return the categorical columns of a request's statistics, coded by their public lists."""
    bounds = {c: widest_bounds(b) for c, b in request.bounds.items()}
    levels = {c: v for s in request.specify(bounds) for c, v in s.categories.items()}
    return PublicColumns(bounds, request.fill, request.other).coded(levels)


def refuse_unfit(sums: Sums, request: ReleaseRequest) -> None:
    """Raise a DataError, naming columns only, for data that do not fit: nothing is spent yet."""
    if sums.unlisted:
        raise DataError(
            # Which level is nearest would tell how a record is spelt: the rule is said instead.
            f"column {sums.unlisted[0]!r} holds a value outside its public list. Texts must be "
            "spelt as on the list, capitals and blanks included; and the list must cover every "
            "record (add an 'other' entry and recode the data"
            + (f", or other={{{sums.unlisted[0]!r}: ...}})" if request.takes_other else ")")
        )
    if request.terms.guarantee.neighbours == "add-remove":
        return
    if sums.missing:
        column = sums.missing[0]
        why = "nobody is left out" if request.terms.guarantee.hides_size else "n is public"
        raise DataError(
            f"column {column!r} has missing values. Under replace-one neighbours {why}, so "
            f"no record may be left out: {_remedy(column, request)}, or use neighbours='add-remove'"
        )
    if not sums.sizes.any():
        raise DataError("the table has no rows; only under add-remove neighbours may it be empty")


def refuse_few_records(sizes: np.ndarray, request: ReleaseRequest) -> None:
    """Raise a DataError where public sizes say that a group's release could not be used.

    Where sizes are secret nothing is refused: the refusal would tell of them.
    """
    if request.terms.count:
        return
    few = np.flatnonzero(sizes < request.least_records)
    if not len(few):
        return
    if request.groups is None:
        raise DataError(
            f"the table has {sizes[0]} records; this model needs at least {request.least_records}, "
            "and nothing could be inferred from the release. Nothing was spent"
        )
    named = ", ".join(wire.shown(request.groups.keys[i]) for i in few[:MAX_NAMED])
    raise DataError(
        f"groups: {len(few)} of {len(sizes)} have fewer than {request.least_records} records, and "
        f"nothing could be inferred of them: {named}{', …' if len(few) > MAX_NAMED else ''}. Join "
        "them with others, take empty ones off the list, or leave out sizes='public'. Nothing was "
        "spent"
    )


def judge_search(n: int, request: ReleaseRequest, noise: Noise) -> None:
    """Warn of a search for bounds that will be unsure; refuse one that cannot find any.

    Raises a DataError where not even half of all records at one candidate would be visible. It is
    said before anything is paid, and where n is public: elsewhere the words would tell of it, and
    the release says it afterwards, from its noisy counts.
    """
    for column, private in request.private_bounds.items():
        hidden = visible_count(noise, 1, len(candidates(private)[0]))
        if n < 2 * hidden:
            raise DataError(
                f"bounds: for {n} records the budget of {noise.cost:.3g} for the private bounds of "
                f"{column!r} is hopeless, since noise could hide {math.ceil(hidden)} of them: it "
                f"takes {2 * hidden / n:.2g} times as much, or as many records. Give public "
                "bounds, raise epsilon or the share split['bounds']. Nothing was spent"
            )
        if hidden > UNSURE_SHARE * n:
            warn_user(
                f"bounds: the private search for those of {column!r} may miss by up to "
                f"{math.ceil(hidden)} of {n} records at either end, and is unsure; public bounds, "
                "more records or a larger share split['bounds'] would help"
            )


def _remedy(column: str, request: ReleaseRequest) -> str:
    if request.groups is not None and column == request.groups.column:
        return "put such records into a group of the list"
    if column in (request.terms.guarantee.unit, request.weighed and request.weighed.column):
        return "say whose records they are"
    return "name a public fill"


def assemble(
    request: ReleaseRequest,
    bounds: Mapping[str, Bounds],
    selections: tuple[Selection, ...],
    blocks: tuple[Block, ...],
    sizes: np.ndarray,
    receipt: Receipt | None,
) -> Release:
    """Return the release, dated, with the versions of the programs that made it."""
    now = datetime.datetime.now(datetime.UTC)
    return Release(
        family=request.family,
        model=request.model,
        guarantee=request.terms.guarantee,
        population=_population(request.terms, sizes),
        blocks=blocks,
        bounds=bounds,
        groups=request.groups,
        fill=request.fill,
        selections=selections,
        receipt=receipt,
        software=f"noisewise {VERSION}, opendp {version('opendp')}",
        created=now.isoformat(timespec="seconds"),
        where=in_words(request.where),
    )


def _population(terms: PrivacyTerms, sizes: np.ndarray) -> Population:
    if not terms.count:
        return Population("public", tuple(int(n) for n in sizes))
    # A record that moves between groups leaves the total alone: only then is it public.
    return Population("noisy", total=None if terms.guarantee.hides_size else int(sizes.sum()))
