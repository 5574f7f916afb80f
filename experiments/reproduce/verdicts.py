"""Claims, and what the measurements say of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

HOLDS, FAILS = "holds", "does not hold"


@dataclass(frozen=True)
class Claim:
    """One sentence of a paper in our words, and the test that decides it.

    ``expect`` is "holds", "does not", or "differs because …" (then ``why`` says more). The test
    names a measure and a limit; ``quick`` holds looser limits for few trials.
    """

    id: str
    figure: str
    claim: str
    where: str
    paper: str
    test: Mapping[str, Any]
    expect: str = HOLDS
    why: str = ""
    quick: Mapping[str, Any] | None = None

    @staticmethod
    def read(entry: Mapping[str, Any]) -> Claim:
        """From expected.json, refusing what cannot be decided."""
        fields: dict[str, Any] = {k: str(v) if k == "paper" else v for k, v in entry.items()}
        claim = Claim(**fields)
        for test in (claim.test, claim.quick or claim.test):
            limits = [k for k in test if k in ("at_most", "at_least", "between")]
            if len(limits) != 1:
                raise ValueError(f"claim {claim.id!r}: needs one of at_most, at_least, between")
        if claim.expect not in (HOLDS, "does not") and not claim.expect.startswith("differs"):
            raise ValueError(f"claim {claim.id!r}: cannot expect {claim.expect!r}")
        if claim.expect != HOLDS and not claim.why:
            raise ValueError(f"claim {claim.id!r}: says that it {claim.expect}, but not why")
        return claim


@dataclass(frozen=True)
class Verdict:
    """A claim beside what was measured."""

    claim: Claim
    ours: float
    limit: str
    verdict: str
    as_expected: bool

    def row(self) -> dict[str, Any]:
        """For a table or a file."""
        c = self.claim
        return {
            "id": c.id, "figure": c.figure, "claim": c.claim, "where": c.where, "paper": c.paper,
            "measure": c.test["measure"], "ours": self.ours, "limit": self.limit,
            "verdict": self.verdict, "expected": c.expect, "as_expected": self.as_expected,
            "why": c.why,
        }  # fmt: skip


def judge(claim: Claim, measures: Mapping[str, float], size: str) -> Verdict:
    """Decide one claim."""
    test = claim.quick if size == "quick" and claim.quick else claim.test
    measure = str(claim.test["measure"])
    if measure not in measures:
        raise ValueError(
            f"claim {claim.id!r}: {measure!r} was not measured; there are {', '.join(measures)}"
        )
    ours = float(measures[measure])
    met, limit = _met(ours, test)
    expected = met == (claim.expect == HOLDS)
    missed = claim.expect if claim.expect.startswith("differs") else FAILS
    verdict = HOLDS if met else missed
    return Verdict(claim, ours, limit, verdict, expected)


def _met(value: float, test: Mapping[str, Any]) -> tuple[bool, str]:
    """A number that is none meets nothing."""
    if "at_most" in test:
        return value <= test["at_most"], f"≤ {test['at_most']:g}"
    if "at_least" in test:
        return value >= test["at_least"], f"≥ {test['at_least']:g}"
    low, high = test["between"]
    return low <= value <= high, f"{low:g} … {high:g}"
