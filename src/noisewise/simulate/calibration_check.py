"""Is a method trustworthy here? Simulation-based calibration with a release's own settings.

The result holds verdicts in words, and is kept in a file that a report can show.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from scipy import stats

from noisewise.artifact import ArgumentError, Release
from noisewise.artifact.atomic_file import atomic_write
from noisewise.artifact.version import VERSION as SOFTWARE
from noisewise.diagnostics import coverage, ks, ranks, wider
from noisewise.inference.api import asked, check_at_least, reporting
from noisewise.models.base import Progress
from noisewise.simulate.trials import LEVEL, Outcome, Trials, choose_methods, settings_of, simulated

if TYPE_CHECKING:
    from noisewise.models.graphical_model import GraphicalOptions

CHECK_FORMAT = "noisewise-check"
"""What the file of a check calls itself."""
CHECK_FORMAT_VERSION = 1
"""The version of that format which is written and read."""
ALARM = 0.01
"""A calibrated method is flagged with at most this probability."""
MAX_WIDTH_RATIO = 0.03
"""Intervals this much wider or narrower (in logarithms) than the exact ones are others (chosen)."""
MAX_UNCONVERGED = 0.05
"""Share of trials without convergence from which a method is not to be trusted (chosen)."""
FEWEST_TRIALS = 50
"""Trials of a check: with fewer, coverage cannot be told from chance (chosen)."""


@dataclass(frozen=True)
class MethodCheck:
    """One method: per parameter its KS p-value, coverage and mean width of 95 % intervals.

    ``ranks`` (parameter, trial): the share of posterior draws below the truth. ``wider``: mean
    logarithm of the widths over those of ``exact`` in the same trials, with its standard error; a
    method can be far from the exact posterior and yet cover about as often as it says.

    Example:
        >>> import noisewise as nw
        >>> settings = nw.release.exponential_family(
        ...     nw.release.Blank(500), column="visits", family="poisson", bounds=(0, 20),
        ...     epsilon=1.0,
        ... )
        >>> exact = nw.check(settings, ["exact"], trials=50).of("exact")
        >>> exact.parameters, exact.trials, exact.passed
        (('rate',), 50, True)
    """

    method: str
    parameters: tuple[str, ...]
    p_values: tuple[float, ...]
    coverage: tuple[float, ...]
    width: tuple[float, ...]
    unconverged: float
    ranks: tuple[tuple[float, ...], ...]
    wider: tuple[float, ...] | None = None
    wider_error: tuple[float, ...] | None = None

    def times_as_wide(self, parameter: int) -> float:
        """Return how many times as wide its intervals are as those of ``exact``; NaN if unknown."""
        return float("nan") if self.wider is None else float(np.exp(self.wider[parameter]))

    @property
    def trials(self) -> int:
        """Return the number of trials."""
        return len(self.ranks[0])

    @property
    def passed(self) -> bool:
        """Return whether it converges, and is no further off than chance allows (1 %)."""
        return self.unconverged <= MAX_UNCONVERGED and self._calibrated and self._furthest is None

    @property
    def _calibrated(self) -> bool:
        least = stats.binom.ppf(self._each, self.trials, LEVEL) / self.trials
        return bool(min(self.p_values) >= self._each and min(self.coverage) >= least)

    @property
    def _each(self) -> float:
        """Return the level of each test: three for every parameter share the alarm."""
        return ALARM / 3 / len(self.parameters)

    @property
    def _furthest(self) -> int | None:
        """Return the parameter whose intervals differ most from the exact ones, beyond chance."""
        if self.wider is None or self.wider_error is None:
            return None
        apart, error = np.array(self.wider), np.array(self.wider_error)
        sure = np.abs(apart) > np.maximum(MAX_WIDTH_RATIO, stats.norm.isf(self._each / 2) * error)
        return int(np.argmax(np.where(sure, np.abs(apart), 0))) if sure.any() else None

    @property
    def verdict(self) -> str:
        """Say whether the method can be trusted, and why not."""
        if self.passed:
            return "calibrated, as far as these trials can tell"
        if self.unconverged > MAX_UNCONVERGED:
            return f"did not converge in {self.unconverged:.0%} of the trials"
        worst, far = int(np.argmin(self.coverage)), self._furthest
        if self._calibrated and far is not None and self.wider is not None:
            share = np.expm1(self.wider[far])
            how = f"{abs(share):.0%} {'wider' if share > 0 else 'narrower'}"
            return (
                f"not the posterior: its intervals of {self.parameters[far]} are {how} than those "
                "of exact in the same trials"
            )
        return (
            f"not calibrated: its 95 % intervals of {self.parameters[worst]} held the truth in "
            f"{self.coverage[worst]:.0%} of the trials"
            if self.coverage[worst] < LEVEL - 0.02
            else "not calibrated: the truth's ranks are not uniform"
        )


@dataclass(frozen=True)
class Check:
    """What was simulated, what each method made of it, and which to use.

    Example:
        >>> import noisewise as nw
        >>> words = {"column": "owns", "family": "bernoulli", "epsilon": 1.0}
        >>> settings = nw.release.exponential_family(nw.release.Blank(500), **words)
        >>> check = nw.check(settings, ["exact"], trials=50, seed=1)
        >>> check.advice
        'Use exact.'
    """

    settings: Mapping[str, Any]
    methods: tuple[MethodCheck, ...]

    @property
    def recommended(self) -> str | None:
        """Return the first calibrated method, best to worst; None where there is none."""
        return next((m.method for m in self.methods if m.passed), None)

    @property
    def cautions(self) -> tuple[str, ...]:
        """Return what the release itself says against its results, a sentence each."""
        return tuple(self.settings.get("cautions", ()))

    @property
    def advice(self) -> str:
        """Say which methods to use, and which not."""
        if self.recommended is None:
            return (
                "None of the methods tried is calibrated here. Give a prior that knows more, or "
                "ask the owner for a release with less noise."
            )
        flagged = [m.method for m in self.methods if not m.passed]
        also = f" Do not use {', '.join(flagged)} here." if flagged else ""
        return f"Use {self.recommended}.{also}"

    @property
    def widths(self) -> str:
        """Say why no widths are shown, but how they compare."""
        return (
            "Widths are compared, not shown: truths are drawn from the prior, which makes most of "
            "them. How wide the intervals of this release are, its posterior says."
        )

    def of(self, method: str) -> MethodCheck:
        """Return what was found of one method."""
        return next(m for m in self.methods if m.method == method)

    def to_json(self) -> str:
        """Return the content of the file."""
        content = {
            "format": CHECK_FORMAT, "version": CHECK_FORMAT_VERSION, "software": SOFTWARE,
            "settings": self.settings, "recommended": self.recommended, "advice": self.advice,
            "methods": [
                {**asdict(m), "passed": m.passed, "verdict": m.verdict} for m in self.methods
            ],
        }  # fmt: skip
        return json.dumps(content, indent=1)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write a JSON file that ``load_check`` reads; it appears whole or not at all."""
        file = Path(path)
        with atomic_write(
            file, lambda why: ArgumentError(f"cannot write {str(file)!r}: {why}")
        ) as beside:
            beside.write_text(self.to_json(), encoding="utf-8")
        return file


def load_check(path: str | os.PathLike[str]) -> Check:
    """Read what ``Check.save`` wrote.

    Args:
        path: the file.

    Returns:
        The same verdicts.

    Example:
        >>> import noisewise as nw
        >>> words = {"column": "owns", "family": "bernoulli", "epsilon": 1.0}
        >>> settings = nw.release.exponential_family(nw.release.Blank(500), **words)
        >>> check = nw.check(settings, ["exact"], trials=50, seed=1)
        >>> nw.simulate.load_check(check.save("check.json")) == check
        True
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        why = getattr(error, "strerror", None) or "it is not JSON"
        raise ArgumentError(f"check: {str(path)!r} cannot be read: {why}") from None
    if not isinstance(content, dict) or content.get("format") != CHECK_FORMAT:
        raise ArgumentError(f"check: {str(path)!r} was not written by noisewise check")
    if content.get("version") != CHECK_FORMAT_VERSION:
        raise ArgumentError(
            f"check: {str(path)!r} has version {content.get('version')!r}, this reads "
            f"{CHECK_FORMAT_VERSION}"
        )
    try:
        return Check(content["settings"], tuple(_method(m) for m in content["methods"]))
    except (KeyError, TypeError) as error:
        raise ArgumentError(f"check: {str(path)!r} is damaged ({error!r})") from None


def _method(content: Mapping[str, Any]) -> MethodCheck:
    fields: dict[str, Any] = {
        k: tuple(content[k]) if isinstance(content[k], list) else content[k]
        for k in MethodCheck.__dataclass_fields__
    }
    return MethodCheck(**{**fields, "ranks": tuple(map(tuple, fields["ranks"]))})


def check(
    release: Release | str | os.PathLike[str],
    methods: Iterable[str] | None = None,
    *,
    model: str | None = None,
    prior: Any = None,
    x: str | Iterable[str] | None = None,
    y: str | None = None,
    trials: int = 200,
    seed: int = 0,
    progress: Progress | bool | None = None,
    pool: bool = False,
    features: Any = None,
    parent: str | None = None,
    **options: Unpack[GraphicalOptions],
) -> Check:
    """Simulate releases like this one, with truths from the prior, and see who finds them.

    Args:
        release: a release, or the path of its file; its n, ε, bounds and noise are taken, and its
            numbers are not looked at, but for a count of clamped records.
        methods: which to try; the usual ones of the family unless named.
        model: as for ``infer``, such as ``"logistic"``.
        prior: of the analysis, as for ``infer``.
        x: covariates, if others than the owner named.
        y: response, likewise.
        trials: simulated releases for every method.
        seed: of the simulation.
        progress: as for ``infer``.
        pool: let groups learn from each other; one trial is then a release of all groups.
        features: of pooled groups, as for ``infer``.
        parent: likewise.
        options: of the model, as for ``infer``.

    Returns:
        Verdicts on every method, and which to use.

    Example:
        >>> import noisewise as nw
        >>> release = nw.release.exponential_family(
        ...     nw.release.Blank(1000), column="visits", family="poisson", bounds=(0, 20),
        ...     epsilon=1.0,
        ... )
        >>> nw.check(release, ["exact"], trials=50).recommended
        'exact'
    """
    if isinstance(trials, int) and trials < FEWEST_TRIALS:
        raise ArgumentError(
            f"trials: must be at least {FEWEST_TRIALS}, not {trials!r}: with fewer, coverage "
            "cannot be told from chance"
        )
    check_at_least("trials", trials, FEWEST_TRIALS)
    release = release if isinstance(release, Release) else Release.load(release)
    simulator, problem = simulated(
        release, asked(prior, x=x, y=y, **options), None, pool, features, parent, model
    )
    chosen = choose_methods(release, methods, simulator.usual_methods(release), pool, model)
    posed = {method: simulator.posed(problem, method) for method in chosen}
    checked: dict[str, MethodCheck] = {}
    # Methods with the problem's own prior, then those whose default is another.
    for alike in ([m for m in chosen if posed[m] is problem],
                  [m for m in chosen if posed[m] is not problem]):  # fmt: skip
        if not alike:
            continue
        rng = np.random.default_rng([seed, trials])
        made = simulator.from_prior(rng, posed[alike[0]], trials)
        outcomes: dict[str, Outcome] = {}
        for method in dict.fromkeys((*simulator.yardstick(tuple(alike)), *alike)):
            with reporting(progress, f"{trials} trials ({method})") as report:
                outcomes[method] = simulator.run(made, method, seed, report)
        reference = outcomes.get(simulator.reference_method or "")
        checked |= {m: _judged(m, made, outcomes[m], reference) for m in alike}
    settings = {**settings_of(release, problem, simulator), "trials": trials, "seed": seed}
    return Check(settings, tuple(checked[method] for method in chosen))


def _judged(
    method: str, trials: Trials[Any], outcome: Outcome, reference: Outcome | None
) -> MethodCheck:
    """Return ranks, coverage and widths of one method over all trials."""
    # A trial without an answer is one that did not converge; it has no rank.
    finite = np.isfinite(outcome.draws).all(axis=(1, 2))
    if not finite.any():
        raise ArgumentError(f"method: {method!r} found no finite answer in any trial")
    draws, truth = outcome.draws[finite], trials.truth[finite]
    u = ranks(draws, truth)
    covered = coverage(draws, truth, LEVEL)
    apart = None
    if reference is not None and reference is not outcome:
        apart = wider(draws, reference.draws[finite], LEVEL)
    return MethodCheck(
        method, trials.names,
        tuple(ks(column).p_value for column in u.T),
        tuple(float(s) for s in covered.share),
        tuple(float(w) for w in covered.width),
        float(outcome.unconverged),
        tuple(tuple(round(float(v), 5) for v in column) for column in u.T),
        None if apart is None else tuple(apart.mean.tolist()),
        None if apart is None else tuple(apart.error.tolist()),
    )  # fmt: skip
