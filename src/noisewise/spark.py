"""Many groups on Spark: the slabs of a release as tasks, with the same results as on one machine.

Needs PySpark on the driver, and noisewise on every worker: ``pip install 'noisewise[spark]'``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from noisewise.artifact import ArgumentError, Release
from noisewise.inference import PosteriorSummary
from noisewise.inference.api import prepared, reporting
from noisewise.inference.slabs import Slabs, check_keep, of_slabs, slab_seed, summarise_slab
from noisewise.inference.summaries import STATISTICS, GroupSummaries

if TYPE_CHECKING:
    from noisewise.inference.api import AnyOptions, ReleaseLike

__all__ = ["infer"]

RESULTS = "slab long, number array<double>, tries array<long>"
"""The columns of what tasks return, one row per slab."""
OF_EVERY_MODEL = (
    "model", "prior", "same_population", "pool", "features", "parent", "groups",
)  # fmt: skip
"""Options of ``infer`` that are not words of a model."""


def infer(
    session: Any,
    release: ReleaseLike | Iterable[ReleaseLike],
    method: str | None = None,
    **options: Unpack[AnyOptions],
) -> PosteriorSummary:
    """Infer groups on Spark, each slab a task, and return their summary.

    The numbers equal those of ``nw.infer(release, …, keep="summary")`` with the same seed, where
    workers have processors and libraries like the driver's.

    Args:
        session: a Spark session; its workers must have noisewise, under the Python that
            ``PYSPARK_PYTHON`` names.
        release: as for ``infer``; the driver reads it.
        method: ``exact`` or ``naive``, of a linear regression without factors.
        **options: those of ``infer``, but for pooling, ``keep``, ``out`` and ``part``.

    Returns:
        A `PosteriorSummary`, which fits the driver's memory: some 80 bytes for each group and
        parameter.

    Example:
        >>> import noisewise as nw
        >>> release = nw.release.exponential_family(
        ...     nw.release.Blank(1000), column="visits", family="poisson", bounds=(0, 20), epsilon=1
        ... )
        >>> nw.spark.infer(None, release)
        Traceback (most recent call last):
        ...
        noisewise.artifact.errors.ArgumentError: session: must be a Spark session ...
    """
    if not hasattr(session, "createDataFrame"):
        raise ArgumentError(
            "session: must be a Spark session (pyspark.sql.SparkSession), not "
            f"{type(session).__name__}; PySpark comes with pip install 'noisewise[spark]'"
        )
    words: dict[str, Any] = {**options}
    check_keep("summary", None, None, pooled=words.get("pool") is True)
    progress, seed = words.pop("progress", None), words.pop("seed", 0)
    sampling = words.pop("chains", 4), words.pop("draws", 1000)
    named = {name: words.pop(name) for name in OF_EVERY_MODEL if name in words}
    asked_for = prepared(
        release, method, words, chains=sampling[0], draws=sampling[1], keep="summary", **named
    )
    slabs = asked_for.slabs(seed, *sampling)
    if slabs is None:
        raise ArgumentError(
            "release: only groups of a linear regression without factors, by exact or naive, are "
            "inferred in slabs; use nw.infer"
        )
    with reporting(progress, f"sampling on Spark ({slabs.question.method})") as report:
        parts = _collected(session, slabs, report)
    return of_slabs(slabs, parts)


def _collected(
    session: Any, slabs: Slabs, report: Callable[[int, int], None] | None
) -> dict[int, GroupSummaries]:
    """Return the numbers of all slabs, one task each."""
    rows = [
        (k, slab_seed(slabs.seed, k), [r.to_json() for r in slabs.releases_of(k)])
        for k in range(slabs.count)
    ]
    table = session.createDataFrame(rows, "slab long, seed long, releases array<string>")
    done = table.repartitionByRange(slabs.count, "slab").mapInPandas(_task(slabs), RESULTS)
    parts: dict[int, GroupSummaries] = {}
    groups = 0
    for row in done.toLocalIterator() if report is not None else done.collect():
        shape = len(STATISTICS), len(slabs.parameters), len(row["tries"])
        parts[row["slab"]] = GroupSummaries(
            np.array(row["number"]).reshape(shape), np.array(row["tries"], int)
        )
        groups += shape[-1]
        if report is not None:
            report(groups, len(slabs.keys))
    return parts


def _task(slabs: Slabs) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return what a worker does with rows of slabs."""
    model, question = slabs.model, slabs.question
    chains, draws = slabs.chains, slabs.draws

    def work(frames: Iterator[Any]) -> Iterator[Any]:
        import pandas as pd

        for frame in frames:
            for slab, seed, texts in frame.itertuples(index=False):
                given = [Release.from_json(text) for text in texts]
                numbers, tries = summarise_slab(model, given, question, seed, chains, draws)
                content = {"slab": [slab], "number": [numbers.ravel()], "tries": [tries]}
                yield pd.DataFrame(content)

    return work
