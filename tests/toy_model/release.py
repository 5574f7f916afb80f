"""The owner's part: which sums are published, and how the owner asks for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Unpack

from noisewise.artifact import ArgumentError, Bounds, Gram, Release
from noisewise.models import Owner, Word
from noisewise.privacy import arguments
from noisewise.privacy.budget import privacy_terms
from noisewise.privacy.options import (
    MomentOptions,
    PrivacyOptions,
    command_line_options,
    with_options,
)
from noisewise.privacy.pipeline import ReleaseRequest, publish


@with_options(MomentOptions)
def two_means(
    source: Any,
    *,
    columns: Iterable[str],
    bounds: Mapping[str, tuple[float, float] | Bounds],
    **privacy: Unpack[MomentOptions],
) -> Release:
    """Release the noisy sums of two bounded columns.

    The Gram matrix is a statistic that exists, with a proof. It also holds products, which this
    model does not read; a model in earnest would bring a statistic of its own.

    Args:
        source: path or glob, database URL, data frame, Arrow or Ibis table.
        columns: the two columns.
        bounds: public bounds of both.
        **privacy: the privacy options, of which ``epsilon`` must be given.
    """
    options = PrivacyOptions.of(MomentOptions, privacy)
    names = arguments.names(columns, "columns")
    if len(names) != 2:
        raise ArgumentError(f"columns: must be two, not {len(names)}")
    groups = arguments.groups(options.groups)
    agreed = privacy_terms(options, None if groups is None else groups.column)
    gram = Gram(names, agreed.count)
    request = ReleaseRequest(
        family="two-means",
        model={"columns": names},
        kinds=(gram.kind,),
        specify=lambda settled: (gram,),
        terms=agreed,
        options=options,
        bounds=arguments.all_bounds(names, bounds),
        groups=groups,
    )
    return publish(source, request)


OWNER = Owner(
    release=two_means,
    summary="Release the sums of two bounded columns, for their means.",
    words=(
        Word("columns", "columns", "one of the two columns; repeat", required=True),
        Word("bounds", "bounds", "public bounds, for both columns", required=True),
    ),
    privacy=command_line_options(MomentOptions),
)
