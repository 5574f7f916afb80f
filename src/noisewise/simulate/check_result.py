"""What a check found: verdicts in words, and a file that a report can show."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from noisewise.artifact import ArgumentError
from noisewise.artifact.atomic_file import atomic_write
from noisewise.artifact.version import VERSION as SOFTWARE

FORMAT = "noisewise-check"
"""What the file of a check calls itself."""
VERSION = 1
"""The version of that format which is written and read."""
ALARM = 0.01
"""A calibrated method is flagged with at most this probability."""
LEVEL = 0.95
"""Probability of the intervals whose coverage is checked (chosen)."""
APART = 0.03
"""Intervals this much wider or narrower (in logarithms) than the exact ones are others."""
STUCK = 0.05
"""Share of trials without convergence from which a method is not to be trusted, right or wrong."""


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

    @property
    def trials(self) -> int:
        """How many."""
        return len(self.ranks[0])

    @property
    def passed(self) -> bool:
        """It converges, and what was found is no further off than chance allows (1 %)."""
        return self.unconverged <= STUCK and self._calibrated and self._furthest is None

    @property
    def _calibrated(self) -> bool:
        least = stats.binom.ppf(self._each, self.trials, LEVEL) / self.trials
        return bool(min(self.p_values) >= self._each and min(self.coverage) >= least)

    @property
    def _each(self) -> float:
        """Three tests for every parameter share the alarm."""
        return ALARM / 3 / len(self.parameters)

    @property
    def _furthest(self) -> int | None:
        """The parameter whose intervals are least like the exact ones, if that is not chance."""
        if self.wider is None or self.wider_error is None:
            return None
        apart, error = np.array(self.wider), np.array(self.wider_error)
        sure = np.abs(apart) > np.maximum(APART, stats.norm.isf(self._each / 2) * error)
        return int(np.argmax(np.where(sure, np.abs(apart), 0))) if sure.any() else None

    @property
    def verdict(self) -> str:
        """In words."""
        if self.passed:
            return "calibrated, as far as these trials can tell"
        if self.unconverged > STUCK:
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
        >>> settings = nw.release.exponential_family(
        ...     nw.release.Blank(500), column="visits", family="poisson", bounds=(0, 20),
        ...     epsilon=1.0,
        ... )
        >>> check = nw.check(settings, ["exact"], trials=50)
        >>> check.advice
        'Use exact.'
    """

    settings: Mapping[str, Any]
    methods: tuple[MethodCheck, ...]

    @property
    def recommended(self) -> str | None:
        """The first calibrated method, in the order best to worst; None where there is none."""
        return next((m.method for m in self.methods if m.passed), None)

    @property
    def advice(self) -> str:
        """In words."""
        if self.recommended is None:
            return (
                "None of the methods tried is calibrated here. Give a prior that knows more, or "
                "ask the owner for a release with less noise."
            )
        flagged = [m.method for m in self.methods if not m.passed]
        also = f" Do not use {', '.join(flagged)} here." if flagged else ""
        return f"Use {self.recommended}.{also}"

    def of(self, method: str) -> MethodCheck:
        """One method's part."""
        return next(m for m in self.methods if m.method == method)

    def to_json(self) -> str:
        """For a file."""
        said = {"format": FORMAT, "version": VERSION, "software": SOFTWARE}
        told = {"recommended": self.recommended, "advice": self.advice}
        methods = [{**asdict(m), "passed": m.passed, "verdict": m.verdict} for m in self.methods]
        return json.dumps({**said, "settings": self.settings, **told, "methods": methods}, indent=1)

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
        >>> settings = nw.release.exponential_family(
        ...     nw.release.Blank(500), column="visits", family="poisson", bounds=(0, 20),
        ...     epsilon=1.0,
        ... )
        >>> check = nw.check(settings, ["exact"], trials=50)
        >>> nw.simulate.load_check(check.save("check.json")) == check
        True
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        why = getattr(error, "strerror", None) or "it is not JSON"
        raise ArgumentError(f"check: {str(path)!r} cannot be read: {why}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ArgumentError(f"check: {str(path)!r} was not written by noisewise check")
    if content.get("version") != VERSION:
        raise ArgumentError(
            f"check: {str(path)!r} has version {content.get('version')!r}, this reads {VERSION}"
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
