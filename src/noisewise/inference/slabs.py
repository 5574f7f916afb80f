"""Many groups in slabs: each is sampled, summed up and, where a folder is given, kept in a file.

A slab is a fixed number of groups in the order of the release. Its draws depend on the seed, on the
slab's number and on the settings, and on nothing else: not on which process, machine or engine
sampled it, nor on what was sampled before. So slabs may be spread over machines, and a run that was
killed goes on where it stopped, with equal results. The first slab has the seed that was given: of
releases that fit one slab, the summary is that of the draws that ``keep="draws"`` gives.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from noisewise import models
from noisewise.artifact import ArgumentError, Release
from noisewise.artifact.release_files import canonical_digest
from noisewise.artifact.version import VERSION as SOFTWARE
from noisewise.inference import summary_files
from noisewise.inference.results import Posterior
from noisewise.inference.summaries import (
    GroupSummaries,
    PosteriorSummary,
    SummaryWords,
    posterior_summary,
)
from noisewise.models.base import Progress, Question
from noisewise.numerics import one_blas_thread

GROUPS_PER_SLAB = 4096
"""Groups of a slab (chosen): enough that second tries fill a batch, and few seconds' work."""
AT_ONCE = 2
"""Slabs that a CPU works on together: while one waits for its last groups, the other keeps the
cores busy (chosen)."""

Part = tuple[int, int]
"""The third of sixteen parts: (3, 16)."""


@dataclass(frozen=True)
class SlabMethod:
    """A method of a model that sums groups up while it samples them.

    ``outline`` is the posterior without its draws, from which words are taken; ``summarise`` takes
    problem, seed, chains, draws per chain and progress, as methods do.
    """

    outline: Posterior
    summarise: Callable[[Any, int, int, int, Progress | None], GroupSummaries]
    groups_per_slab: int = GROUPS_PER_SLAB


@dataclass(frozen=True)
class Slabs:
    """All slabs of a run: what is asked, and how the groups are split.

    ``releases`` are of the groups to be inferred, several of the same records; ``words`` are those
    of the whole.
    """

    model: str
    releases: tuple[Release, ...]
    question: Question
    seed: int
    chains: int
    draws: int
    parameters: tuple[str, ...]
    words: SummaryWords
    size: int

    @property
    def keys(self) -> tuple[str | int, ...]:
        """Return the keys of all groups."""
        groups = self.releases[0].groups
        return () if groups is None else groups.keys

    @property
    def count(self) -> int:
        """Return how many slabs there are."""
        return -(-len(self.keys) // self.size)

    def groups(self, number: int) -> range:
        """Return the positions of a slab's groups."""
        return range(number * self.size, min((number + 1) * self.size, len(self.keys)))

    def releases_of(self, number: int) -> list[Release]:
        """Return the releases of a slab's groups."""
        return [r.of_groups(self.groups(number)) for r in self.releases]

    def settings(self) -> dict[str, Any]:
        """Return, in JSON's types, everything that the numbers depend on."""
        return {
            "format": [summary_files.FORMAT, summary_files.FORMAT_VERSION],
            "software": SOFTWARE,
            "model": self.model,
            "method": self.question.method,
            "seed": self.seed,
            "chains": self.chains,
            "draws": self.draws,
            "slab_groups": self.size,
            "slabs": self.count,
            "groups": len(self.keys),
            "releases": [canonical_digest(r) for r in self.releases],
            "prior": _in_json(self.question.prior),
            "words": _in_json(self.question.words),
        }


def summarise_slab(
    model: str, releases: Sequence[Release], question: Question, seed: int, chains: int, draws: int,
    progress: Progress | None = None,
) -> GroupSummaries:  # fmt: skip
    """Infer the groups of one slab; on any machine, with equal results.

    Args:
        model: the name of the model.
        releases: of the slab's groups.
        question: what is asked, the method among it.
        seed: of this slab (``slab_seed``).
        chains: independent chains per group.
        draws: draws per chain.
        progress: called with groups done and groups in all.
    """
    analyst = models.find(model).analyst()
    problem = analyst.problem(releases, question)
    method = analyst.in_slabs(problem, question.method or "")
    if method is None:
        raise ArgumentError(f"method: {question.method!r} has no slabs")
    return method.summarise(problem, seed, chains, draws, progress)


def slab_seed(seed: int, number: int) -> int:
    """Return the seed of a slab: of the first that which was given, of others a hash of both."""
    if number == 0:
        return seed
    return int.from_bytes(hashlib.sha256(f"{seed} {number}".encode()).digest()[:7], "big")


def check_keep(keep: object, out: object, part: Any, *, pooled: bool) -> None:
    """Raise an ArgumentError where what is to be kept, and where, do not go together."""
    if keep not in ("draws", "summary"):
        raise ArgumentError(f"keep: must be 'draws' or 'summary', not {keep!r}")
    if keep == "draws":
        for name, value in (("out", out), ("part", part)):
            if value is not None:
                raise ArgumentError(f"{name}: goes with keep='summary'; leave it out")
        return
    if pooled:
        raise ArgumentError(
            "keep: pooled groups are inferred together with their population, and keep draws; "
            "leave keep out"
        )
    if part is not None:
        if out is None:
            raise ArgumentError("part: its slabs go to a folder; give one, such as out='slabs'")
        whole = isinstance(part, tuple | list) and len(part) == 2
        if not whole or not all(type(p) is int for p in part) or not 1 <= part[0] <= part[1]:
            raise ArgumentError(
                f"part: must be two whole numbers, such as (3, 16) for the third of sixteen parts, "
                f"not {part!r}"
            )


def run(
    slabs: Slabs,
    out: str | os.PathLike[str] | None,
    part: Part | None,
    progress: Progress | None = None,
) -> PosteriorSummary:
    """Infer all slabs, or those of a part, and return the summary of their groups.

    Slabs that are in the folder are read and not inferred again. Where the folder is filled by
    parts, a call without a part only collects.

    Args:
        slabs: what to infer.
        out: the folder that keeps the slabs; None keeps them in memory.
        part: the third of sixteen is (3, 16).
        progress: called with groups done and groups in all.
    """
    wanted = [*range(slabs.count)]
    if part is not None:
        wanted = [k for k in wanted if k % part[1] == part[0] - 1]
    folder = None if out is None else Path(out)
    settings = slabs.settings() if folder is not None else {}
    there: dict[int, GroupSummaries] = {}
    if folder is not None:
        in_parts = begin(folder, settings, in_parts=part is not None)
        for k in wanted:
            if (folder / summary_files.slab_name(k)).is_file():
                there[k] = _kept(folder, k, slabs, settings)
        if in_parts and part is None and len(there) < len(wanted):
            raise ArgumentError(
                f"part: {len(wanted) - len(there)} of {len(wanted)} slabs are missing in "
                f"{str(folder)!r}, which is filled by parts; run the parts that are missing"
            )
    todo = [k for k in wanted if k not in there]
    finished = _Finished(progress, [len(slabs.groups(k)) for k in todo])

    def work(place: int) -> None:
        number = todo[place]
        numbers = summarise_slab(
            slabs.model, slabs.releases_of(number), slabs.question, slab_seed(slabs.seed, number),
            slabs.chains, slabs.draws, finished.of(place),
        )  # fmt: skip
        if folder is not None:
            path = folder / summary_files.slab_name(number)
            summary_files.save(of_slabs(slabs, {number: numbers}), path,
                               {**settings, "slab": number})  # fmt: skip
        there[number] = numbers

    _side_by_side(work, len(todo))
    return of_slabs(slabs, there)


def of_slabs(slabs: Slabs, parts: Mapping[int, GroupSummaries]) -> PosteriorSummary:
    """Return the summary of some slabs, in their order."""
    numbers = sorted(parts)
    keys = tuple(slabs.keys[i] for k in numbers for i in slabs.groups(k))
    return posterior_summary(slabs.parameters, [parts[k] for k in numbers], keys, slabs.words)


def begin(folder: Path, settings: Mapping[str, Any], *, in_parts: bool) -> bool:
    """Make the folder, or see that it is of the same run; return whether it is filled by parts."""
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise ArgumentError(f"out: cannot make {str(folder)!r}: {error.strerror}") from None
    kept = summary_files.read_settings(folder)
    if kept is None:
        # A part that begins at the same time may be writing its own settings there.
        others = [p.name for p in folder.iterdir() if not p.name.startswith(".noisewise-")]
        kept = summary_files.read_settings(folder)
        if kept is None and others:
            raise ArgumentError(
                f"out: {str(folder)!r} holds other things, such as {min(others)!r}; give a folder "
                "that is empty or not there"
            )
    if kept is None:
        summary_files.write_settings(folder, settings, in_parts=in_parts)
        return in_parts
    if kept.settings != settings:
        raise ArgumentError(
            f"out: {str(folder)!r} is of {summary_files.difference(kept.settings, settings)}; give "
            "another folder"
        )
    if in_parts and not kept.in_parts:
        summary_files.write_settings(folder, settings, in_parts=True)
    return kept.in_parts


def _kept(
    folder: Path, number: int, slabs: Slabs, settings: Mapping[str, Any]
) -> GroupSummaries:  # fmt: skip
    """Return the numbers of a slab in a file, which must be of its groups."""
    summary = summary_files.read_slab(folder, number, settings)
    keys = tuple(slabs.keys[i] for i in slabs.groups(number))
    if summary.keys != keys or summary.parameters != slabs.parameters:
        name = str(folder / summary_files.slab_name(number))
        raise ArgumentError(f"out: {name!r} is of other groups; give another folder")
    return summary_files.numbers_of(summary)


def _side_by_side(work: Callable[[int], None], count: int) -> None:
    """Call ``work`` with 0 … count - 1, on a CPU some at a time."""
    import jax

    import noisewise.numerics.jax_settings  # noqa: F401

    workers = min(count, AT_ONCE if jax.default_backend() == "cpu" else 1)
    if workers < 2:
        for place in range(count):
            work(place)
        return
    # One limit around all: those of slabs that end at different times would undo each other.
    with one_blas_thread():
        pool = ThreadPoolExecutor(workers)
        try:
            for _ in pool.map(work, range(count)):
                pass
        finally:
            pool.shutdown(cancel_futures=True)


class _Finished:
    """Counts groups over slabs: of each, the share of its current try."""

    def __init__(self, progress: Progress | None, sizes: Sequence[int]) -> None:
        self._progress, self._sizes = progress, sizes
        self._done, self._lock = [0.0] * len(sizes), Lock()

    def of(self, place: int) -> Progress | None:
        """Return the callback of one slab; later tries do not count back."""
        report = self._progress
        if report is None:
            return None

        def tick(done: int, total: int) -> None:
            with self._lock:
                share = self._sizes[place] * done / max(total, 1)
                self._done[place] = max(self._done[place], share)
                report(round(sum(self._done)), sum(self._sizes))

        return tick


def _in_json(value: Any) -> Any:
    """Return a prior, or words of a question, as JSON with every digit."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return {"family": type(value).__name__, **_in_json(fields)}
    if isinstance(value, Mapping):
        return {str(k): _in_json(v) for k, v in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return _in_json(value.tolist())
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [_in_json(v) for v in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)
