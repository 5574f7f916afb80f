"""Every method on every table: test error, coverage and widths of 95 % intervals, CPU seconds.

A cell is one ε and the tables of one source that have equally many columns: noisewise infers all
their trials as groups of one problem (``ours``); the other methods go trial by trial (``others``).
All methods see the same records in trial k, whatever ε;
those that analyse noisy sums see the same release.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.factors.adassp import adassp, noise_scales
from experiments.field.answers import Answer, classical, design_of, robust
from experiments.field.boosted import boosted_adassp
from experiments.field.library import installed, library_fit
from experiments.field.noisy_records import noisy_records
from experiments.field.noisy_sums import bootstrap, corrected_wald, plug_in, unpacked
from experiments.field.posteriors import infer, noise_scale, packed_sums
from experiments.field.tables import Population
from experiments.field.theil_sen import theil_sen

DELTA = 1e-5
"""Of methods that need one."""
CLASSICAL, ROBUST = "least squares, classical", "least squares, robust"
LAPLACE, GAUSSIAN = "noisewise, Laplace", "noisewise, Gaussian"
MEDIAN = ", median"
"""Added to the name where the estimate is the posterior median, coefficient by coefficient."""
PLUG_IN, WALD, BOOTSTRAP = "noisy sums, plug-in", "noisy sums, Wald", "noisy sums, bootstrap"
RECORDS, ADASSP, BOOSTED = "noisy records, corrected", "AdaSSP", "BoostedAdaSSP"
THEIL_SEN, LIBRARY = "DPTheilSen", "diffprivlib"
METHODS = (
    CLASSICAL, ROBUST, LAPLACE, LAPLACE + MEDIAN, GAUSSIAN, GAUSSIAN + MEDIAN, PLUG_IN, WALD,
    BOOTSTRAP, RECORDS, ADASSP, BOOSTED, THEIL_SEN, LIBRARY,
)  # fmt: skip
"""In the order of tables and pictures."""
NEEDS_DELTA = (GAUSSIAN, GAUSSIAN + MEDIAN, RECORDS, ADASSP, BOOSTED)
"""Methods with δ = 1e-5; the other private ones have δ = 0."""


@dataclass(frozen=True, eq=False)
class Trial:
    """The records of a trial in the box, and a Laplace release of their sums."""

    records: np.ndarray
    z: np.ndarray
    scale: float
    epsilon: float


Outcome = tuple[Answer, float]
"""An answer and the CPU seconds it took."""
Method = Callable[[np.random.Generator, Trial], Answer]
"""From the source of the method's own noise, and the trial."""


def _sums(trial: Trial) -> Any:
    return unpacked(trial.z, trial.records.shape[1], len(trial.records), trial.scale)


def by_adassp(rng: np.random.Generator, trial: Trial) -> Answer:
    """Return AdaSSP's coefficients; rows have norm √(d + 1) at most."""
    x = design_of(trial.records)
    scales = noise_scales(trial.epsilon, DELTA, x.shape[1], float(np.sqrt(x.shape[1])), 1.0)
    return Answer(adassp(rng, x, trial.records[:, -1], scales))


def by_boosting(rng: np.random.Generator, trial: Trial) -> Answer:
    """Return BoostedAdaSSP's coefficients; rows are scaled to norm 1 at most, none is shortened."""
    x = design_of(trial.records)
    norm = float(np.sqrt(x.shape[1]))
    found = boosted_adassp(rng, x / norm, trial.records[:, -1], trial.epsilon, DELTA)
    return Answer(found / norm)


def by_theil_sen(rng: np.random.Generator, trial: Trial) -> Answer:
    """Return the line through private medians, for columns mapped from [-1, 1] to [0, 1]."""
    x, y = (trial.records.T + 1) / 2
    slope, intercept = theil_sen(rng, x, y, trial.epsilon)
    # y = 2 (slope (x + 1) / 2 + intercept) - 1 in the box.
    return Answer(np.array([slope, slope + 2 * intercept - 1]))


def methods(columns: int) -> dict[str, Method]:
    """Return the methods but ours, for so many columns; diffprivlib where it is installed."""
    known: dict[str, Method] = {
        CLASSICAL: lambda rng, t: classical(t.records),
        ROBUST: lambda rng, t: robust(t.records),
        PLUG_IN: lambda rng, t: plug_in(_sums(t)),
        WALD: lambda rng, t: corrected_wald(_sums(t)),
        BOOTSTRAP: lambda rng, t: bootstrap(rng, _sums(t)),
        RECORDS: lambda rng, t: noisy_records(rng, t.records, t.epsilon, DELTA),
        ADASSP: by_adassp,
        BOOSTED: by_boosting,
    }
    if columns == 2:
        known[THEIL_SEN] = by_theil_sen
    if installed():
        known[LIBRARY] = lambda rng, t: Answer(
            library_fit(int(rng.integers(2**31)), t.records, t.epsilon)
        )
    return known


def others(
    tables: Sequence[Population], epsilon: float, trials: int, seed: int
) -> list[dict[str, Any]]:
    """Return a row for every table and method but ours."""
    rows = []
    for table in tables:
        found: dict[str, list[Outcome]] = {}
        for trial in range(trials):
            given = drawn(table, epsilon, trial, seed)
            for name, method in methods(table.columns).items():
                rng = _rng(seed, table, epsilon, trial, name)
                start = time.process_time()
                answer = method(rng, given)
                found.setdefault(name, []).append((answer, time.process_time() - start))
        bases = [answer for answer, _ in found[CLASSICAL]]
        rows += [_row(table, name, seed, found[name], bases) for name in found]
    return rows


def ours(
    tables: Sequence[Population], epsilon: float, trials: int, seed: int
) -> list[dict[str, Any]]:
    """Return rows for every table and both kinds of noise, by posterior mean and median.

    Seconds are those of all posteriors of the cell together, over their number.
    """
    given = [drawn(table, epsilon, k, seed) for table in tables for k in range(trials)]
    bases = [classical(t.records) for t in given]
    n = np.array([len(t.records) for t in given])
    laplace = np.array([t.z for t in given])
    scale = noise_scale("gaussian", tables[0].columns, epsilon, DELTA)
    gaussian = np.array([packed_sums(t.records) for t in given])
    gaussian += [
        _rng(seed, table, epsilon, k, GAUSSIAN).normal(0, scale, gaussian.shape[1])
        for table in tables
        for k in range(trials)
    ]
    rows = []
    for name, mechanism, z, noise in (
        (LAPLACE, "laplace", laplace, given[0].scale),
        (GAUSSIAN, "gaussian", gaussian, scale),
    ):
        post = infer(z, n, mechanism, noise, seed)
        each = post.seconds / len(n)
        for i, table in enumerate(tables):
            at = range(i * trials, (i + 1) * trials)
            for suffix, centre in (("", post.mean), (MEDIAN, post.median)):
                found = [(Answer(centre[k], post.low[k], post.high[k]), each) for k in at]
                row = _row(table, name + suffix, seed, found, [bases[k] for k in at])
                rows.append({**row, "converged": float(post.converged[list(at)].mean())})
    return rows


def drawn(table: Population, epsilon: float, trial: int, seed: int) -> Trial:
    """Return a trial; its Laplace release is the one that ours and other methods analyse."""
    records = table.sample(seed, trial)
    scale = noise_scale("laplace", table.columns, epsilon, DELTA)
    exact = packed_sums(records)
    noise = _rng(seed, table, epsilon, trial, LAPLACE).laplace(0, scale, len(exact))
    return Trial(records, exact + noise, scale, epsilon)


def _rng(
    seed: int, table: Population, epsilon: float, trial: int, name: str
) -> np.random.Generator:
    what = zlib.crc32(f"{table.name}, {name}".encode())
    return np.random.default_rng([seed, round(1000 * epsilon), trial, what])


def _row(
    table: Population, name: str, seed: int, found: Sequence[Outcome], bases: Sequence[Answer]
) -> dict[str, Any]:
    told = judged(table, found, bases)
    head = {"table": table.name, "n": table.n, "method": name, "trials": len(found), "seed": seed}
    return {**head, **told, "converged": None}


def judged(table: Population, found: Sequence[Outcome], bases: Sequence[Answer]) -> dict[str, Any]:
    """Return test errors over those of least squares without privacy, coverage, widths, seconds.

    Coefficients are slopes, then the intercept, in the box. Intervals that do not exist cover
    nothing.
    """
    errors = np.array([table.errors(answer.theta) for answer, _ in found])
    without = np.array([table.errors(base.theta) for base in bases])
    mean = errors.mean(axis=0) / without.mean(axis=0)
    ratios = errors / without
    told: dict[str, Any] = {
        "error": float(mean[0]), "error_median": float(np.median(ratios[:, 0])),
        "error_90": float(np.quantile(ratios[:, 0], 0.9)), "error_clamped": float(mean[1]),
        "coverage": None, "coverages": None, "width": None, "width_median": None,
        "seconds": float(np.mean([spent for _, spent in found])),
    }  # fmt: skip
    ends = [(a.low, a.high) for a, _ in found if a.low is not None and a.high is not None]
    if ends:
        low, high = (np.array(e) for e in zip(*ends, strict=True))
        held = (low <= table.truth) & (table.truth <= high)
        own = np.array([b.high - b.low for b in bases if b.high is not None and b.low is not None])
        told |= {
            "coverage": float(held.mean()), "coverages": held.mean(axis=0).tolist(),
            "width": ((high - low).mean(axis=0) / own.mean(axis=0)).tolist(),
            "width_median": np.median((high - low) / own, axis=0).tolist(),
        }  # fmt: skip
    return told
