"""Checks across the fields of a Release: content that contradicts itself is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noisewise.artifact import validation
from noisewise.artifact.claim_check import check_claim
from noisewise.artifact.errors import ReleaseError
from noisewise.artifact.release_forms import ReleaseForm, find_form
from noisewise.artifact.validation import Level

if TYPE_CHECKING:
    from noisewise.artifact.release import Release


def check_release(release: Release) -> None:
    """Raise a ReleaseError at the first contradiction."""
    form = find_form(release.family)
    if not release.blocks:
        raise ReleaseError("blocks: a release holds at least one statistic")
    validation.distinct([b.statistic.kind for b in release.blocks], "blocks: kinds")
    validation.text(release.software, "software")
    _check_entries(release)
    _check_form(release, form)
    for block in release.blocks:
        block.statistic.check(release, block.noise)
    _check_shapes(release)
    _check_unit(release)
    _check_population(release)
    _check_bounds(release)
    check_claim(release)


def _check_entries(release: Release) -> None:
    for key, value in release.model.items():
        where = f"model: {validation.shown(validation.text(key, 'model: key'))}"
        if isinstance(value, tuple):
            for item in value:
                validation.text(item, where)
        elif isinstance(value, str):
            validation.text(value, where)
        else:
            validation.real(value, where)
    if release.created != "":
        validation.text(release.created, "created")
    if release.where is not None:
        validation.text(release.where, "where")
        if release.guarantee.neighbours != "add-remove":
            raise ReleaseError(
                "where: how many records are selected is secret under add-remove only"
            )
    _check_fill(release)


def _check_fill(release: Release) -> None:
    """Require a number for a numeric column, one of its levels for a categorical one."""
    levels: dict[str, tuple[Level, ...]] = {}
    for block in release.blocks:
        levels |= block.statistic.categories
    used = _columns(release)
    for column, fill in release.fill.items():
        if column not in used:
            raise ReleaseError(f"fill: {validation.shown(column)} is not a column of this release")
        if column not in levels:
            validation.real(fill, f"fill: {validation.shown(column)}")
        elif validation.level(fill, f"fill: {validation.shown(column)}") not in levels[column]:
            raise ReleaseError(f"fill: {validation.shown(fill)} is not a level of {column!r}")


def _check_form(release: Release, form: ReleaseForm) -> None:
    """Require the statistics and entries that the model's methods will look up."""
    kinds = [b.statistic.kind for b in release.blocks]
    if not set(form.statistics) & set(kinds):
        raise ReleaseError(f"blocks: a {form.name} release needs {' or '.join(form.statistics)}")
    form.check(release)


def _columns(release: Release) -> set[str]:
    return {c for b in release.blocks for c in b.statistic.columns}


def _check_shapes(release: Release) -> None:
    groups = 1 if release.groups is None else len(release.groups.keys)
    for block in release.blocks:
        if block.values.shape[1] != groups:
            raise ReleaseError(
                f"{block.statistic.kind}: values for {block.values.shape[1]} groups, "
                f"but the release has {groups}"
            )
    if release.groups is not None and release.groups.column in _columns(release):
        raise ReleaseError("groups: the group column must not be among the statistics' columns")


def _check_population(release: Release) -> None:
    """Require a noisy count wherever n is secret and sums need it, and only there (E2)."""
    population, guarantee = release.population, release.guarantee
    groups = 1 if release.groups is None else len(release.groups.keys)
    public = population.policy == "public"
    if public and len(population.sizes) != groups:
        raise ReleaseError(f"population: {len(population.sizes)} sizes for {groups} groups")
    if public and guarantee.hides_size:
        raise ReleaseError(f"population: under {_relation(release)} n is secret, hence noisy")
    column = release.groups.column if release.groups is not None and public else None
    if guarantee.within != column:
        raise ReleaseError(
            "population: public group sizes go with a guarantee within that group column"
        )
    if not public and release.groups is None and not guarantee.hides_size:
        raise ReleaseError("population: under replace-one neighbours n is public")
    if population.total is not None and guarantee.hides_size:
        raise ReleaseError(f"population: under {_relation(release)} the total is secret too")
    for block in release.blocks:
        statistic = block.statistic
        if statistic.counts_records == public:
            rule = "is public: no noisy count" if public else "is secret: a noisy count"
            raise ReleaseError(f"{statistic.kind}: n {rule} belongs to the statistic")


def _relation(release: Release) -> str:
    """Return in words what makes the number of records a secret."""
    if release.guarantee.neighbours == "add-remove":
        return "add-remove neighbours"
    return "replaced people with several records"


def _check_unit(release: Release) -> None:
    """Require a cap on a person's records, or statistics that bound a person by themselves."""
    guarantee = release.guarantee
    weighed = {b.statistic.person_column for b in release.blocks}
    if len(weighed) > 1:
        raise ReleaseError("blocks: all statistics must weigh people of one column, or none may")
    if guarantee.unit is None:
        return
    if weighed != {None}:
        raise ReleaseError("guarantee: unit is that of the statistic already")
    if guarantee.unit in _columns(release):
        raise ReleaseError("guarantee: unit must not be among the statistics' columns")
    if guarantee.max_records is None and not all(
        b.statistic.over_partitions for b in release.blocks
    ):
        raise ReleaseError(
            "guarantee: a unit needs max_records, the records that count of a person"
        )
    if release.groups is not None and release.groups.column == guarantee.unit:
        raise ReleaseError("guarantee: unit must not be the group column")


def _check_bounds(release: Release) -> None:
    need = {c for block in release.blocks for c in block.statistic.bounded_columns}
    if odd := need ^ set(release.bounds):
        which = "not one of them" if min(odd) in release.bounds else "missing"
        raise ReleaseError(
            "bounds: must be given for exactly the numeric columns released; "
            f"{validation.shown(min(odd))} is {which}"
        )
    for selection in release.selections:
        bounds = release.bounds.get(selection.column)
        if bounds is None:
            raise ReleaseError(f"selection: {selection.column!r} has no bounds in this release")
        if not (selection.within.lower <= bounds.lower and bounds.upper <= selection.within.upper):
            raise ReleaseError(f"selection: bounds of {selection.column!r} lie outside the search")
