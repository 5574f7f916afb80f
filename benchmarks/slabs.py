"""Many groups in slabs: does memory grow with their number, and what does a group cost?

``python -m benchmarks.slabs make GROUPS FILE`` publishes one regression per tract of
``datasets.social_mobility`` (ε = 4, public sizes). ``python -m benchmarks.slabs run FILE FOLDER
[SEED] [METHOD] [CHAINS DRAWS]`` infers it with ``keep="summary"`` into the folder, in a
process whose peak memory is then that of the inference. ``… digest FOLDER`` hashes the numbers, to
compare runs.
"""

from __future__ import annotations

import hashlib
import os
import resource
import sys
import time

import noisewise as nw
from noisewise.inference.summaries import STATISTICS, PosteriorSummary


def make(groups: int, file: str) -> str:
    """Publish a release of so many groups."""
    tracts = nw.datasets.social_mobility(tracts=groups)
    release = nw.release.linear_regression(
        tracts, x=["pir"], y="kir", bounds={"pir": (0, 1), "kir": (0, 1)}, epsilon=4.0,
        groups={"tract": sorted(set(tracts["tract"].to_pylist()))}, sizes="public",
    )  # fmt: skip
    release.save(file)
    return f"{groups:,} groups, {len(tracts):,} people, {os.path.getsize(file) / 2**20:.1f} MiB"


def infer(
    file: str, folder: str, seed: int = 1, method: str = "exact", chains: int = 4, draws: int = 500
) -> list[str]:
    """Infer into the folder; return lines about time and memory."""
    release = nw.Release.load(file)
    loaded = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin, used = time.perf_counter(), time.process_time()
    summary = nw.infer(
        release, method, seed=seed, chains=chains, draws=draws, keep="summary", out=folder
    )
    took, used = time.perf_counter() - begin, time.process_time() - used
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert isinstance(summary, PosteriorSummary)
    groups = len(summary.keys or ())
    return [
        f"{groups:,} groups by {method}, {chains} chains × {draws} draws, seed {seed}: "
        f"{used:.0f} CPU seconds, compilation included ({groups / used:.0f} groups a CPU second), "
        f"{took:.0f} s on the clock; "
        f"not converged: {len(summary.unconverged)}; tries {dict(_counted(summary))}",
        f"peak memory {peak / 1024:.0f} MiB ({loaded / 1024:.0f} after reading the release)",
        digest(summary),
    ]


def _counted(summary: PosteriorSummary) -> list[tuple[int, int]]:
    """Return how many groups took how many tries."""
    tries = summary.tries.tolist()
    return [(number, tries.count(number)) for number in sorted(set(tries))]


def digest(summary: PosteriorSummary) -> str:
    """Return a hash of every number and key."""
    total = hashlib.sha256(repr(summary.keys).encode())
    for name in STATISTICS:
        total.update(summary.numbers[name].tobytes())
    return f"sha256 of the numbers: {total.hexdigest()[:16]}"


def main(words: list[str]) -> list[str]:
    """Carry one command out."""
    if words[0] == "make":
        return [make(int(words[1]), words[2])]
    if words[0] == "run":
        seed = int(words[3]) if len(words) > 3 else 1
        method = words[4] if len(words) > 4 else "exact"
        chains, draws = map(int, words[5:7] or ("4", "500"))
        return infer(words[1], words[2], seed, method, chains, draws)
    loaded = nw.load(words[1])
    assert isinstance(loaded, PosteriorSummary)
    return [digest(loaded)]


if __name__ == "__main__":
    for line in main(sys.argv[1:]):
        print(f"slabs: {line}", flush=True)
