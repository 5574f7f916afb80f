"""A release's settings, as what a simulator fills with trials."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from noisewise import models
from noisewise.artifact import ArgumentError, Release
from noisewise.inference.api import usable_groups
from noisewise.models.base import Question, Simulator


def simulated(
    release: Release, question: Question, n: int | None = None
) -> tuple[Simulator[Any], Any]:
    """Return the model's simulator, and the problem of this release with n records."""
    model = models.find(release.family)
    simulator = model.simulator()
    analyst = model.analyst()
    usable, _ = usable_groups([release], analyst.least_records)
    problem = analyst.problem(usable, question)
    return simulator, simulator.template(problem, n)


def choose_methods(
    release: Release, methods: Iterable[str] | None, default: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the methods asked for, if they exist and give intervals."""
    model = models.find(release.family)
    known = model.simulator().interval_methods or tuple(model.analyst().methods)
    wanted = default if methods is None else tuple(methods)
    for method in wanted:
        if method not in known:
            raise ArgumentError(f"method: must be one of {', '.join(known)}, not {method!r}")
    if not wanted:
        raise ArgumentError("method: name at least one, or leave it out")
    return wanted


def settings_of(release: Release, problem: Any, simulator: Simulator[Any]) -> dict[str, Any]:
    """Return what was simulated, for people and files."""
    said = {
        "family": release.family,
        **simulator.settings(problem),
        "epsilon": release.guarantee.epsilon,
    }
    if release.bounds:
        said["bounds"] = {c: [b.lower, b.upper] for c, b in release.bounds.items()}
    return said
