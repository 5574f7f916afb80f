"""Draw the pictures of docs/architecture.md: the way of a record, and the way of a release.

Each step names the function that takes it, as ``module:name`` without the leading ``noisewise.``.
A test (tests/test_architecture.py) checks that every function exists and that the SVG files are
what this script writes. Run it after a change:

    python docs/_pictures/ways.py
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

DOCS = Path(__file__).parents[1]

WIDTH, MARGIN, TOP, ROW, GAP = 900, 14, 58, 44, 12
"""Sizes in the units of the drawing: page, border, title, one step, and the arrow between two."""

COLOURS = {
    "owner": ("#f3ede2", "#b08d4f", "#6e5423"),
    "wire": ("#e3eee9", "#2f5d50", "#2f5d50"),
    "analyst": ("#e6eff5", "#4f7f9f", "#2c536d"),
}
"""Fill, border and text of a step, by who takes it; those of docs/halves.svg."""


@dataclass(frozen=True)
class Step:
    """One step: who takes it, what happens in plain words, and the function that does it."""

    who: str
    what: str
    function: str


RECORD = (
    Step("owner", "Check the owner's words; say which statistics are wanted",
         "models.linear_regression.release:linear_regression"),
    Step("owner", "Share what ε and δ allow among the statistics",
         "privacy.budget:shares"),
    Step("owner", "Look up how far one person can move each statistic",
         "artifact.sensitivity:sensitivity"),
    Step("owner", "Choose the least noise whose privacy map keeps the promise",
         "privacy.mechanisms:calibrate"),
    Step("owner", "Open the table; refuse filters that the neighbours do not allow",
         "privacy.selection:refuse_kept_records"),
    Step("owner", "Put each record on the integer lattice, record by record",
         "privacy.lattice:to_lattice"),
    Step("owner", "Add the whole numbers, here or inside the engine",
         "privacy.sum_plan:Source.sum"),
    Step("owner", "Refuse data that do not fit: nothing is spent yet",
         "privacy.pipeline:refuse_unfit"),
    Step("owner", "Write the spend to the ledger, durably",
         "privacy.pipeline:Payment.pay"),
    Step("owner", "Draw discrete noise and add it: the one place where secrets become public",
         "privacy.mechanisms:Calibrated.draw"),
    Step("owner", "Assemble the release",
         "privacy.pipeline:assemble"),
    Step("wire", "Refuse a release that contradicts itself",
         "artifact.consistency:check_release"),
    Step("wire", "Write one JSON file with a digest, whole or not at all",
         "artifact.release_files:save"),
)  # fmt: skip
"""From a row of the sensitive table to the file, for linear regression."""

RELEASE = (
    Step("wire", "Read the file strictly, compare its digest",
         "artifact.release_files:load"),
    Step("wire", "Refuse a release that contradicts itself, or costs more than it claims",
         "artifact.consistency:check_release"),
    Step("analyst", "Find the model by the name in the file",
         "models.base:find"),
    Step("analyst", "See whether several releases may go into one posterior",
         "inference.combine:check"),
    Step("analyst", "Turn noisy integers, noise and priors into arrays",
         "models.linear_regression.problem:regression_problem"),
    Step("analyst", "Run one of the model's methods",
         "models.linear_regression.exact:run"),
    Step("analyst", "Move all chains of all groups one stretch further",
         "inference.hmc:advance"),
    Step("analyst", "Put the draws into the user's units, with R-hat and ESS",
         "models.linear_regression.posterior_draws:posterior_from_box"),
    Step("analyst", "Predict new records",
         "models.linear_regression.posterior:RegressionPosterior.predict"),
    Step("analyst", "Simulate such releases with known truth: is the method right here?",
         "simulate.calibration_check:check"),
    Step("analyst", "Write one page about the result",
         "report:render"),
    Step("analyst", "Keep the posterior as netCDF",
         "inference.posterior_files:save"),
)  # fmt: skip
"""From the file to a posterior, its check, its page and its own file, for linear regression."""

PICTURES = {
    "way-of-a-record.svg": ("The way of a record, from the table to the file", RECORD),
    "way-of-a-release.svg": ("The way of a release, from the file to a posterior", RELEASE),
}
"""File, title and steps of every picture."""


def drawn(title: str, steps: tuple[Step, ...]) -> str:
    """Return the picture as SVG: a column of steps, top to bottom, each beside its function."""
    height = TOP + len(steps) * (ROW + GAP) - GAP + MARGIN
    words = escape(title, quote=True)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'font-family="Helvetica, Arial, sans-serif" role="img" aria-label="{words}">',
        f'  <rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'  <text x="{MARGIN}" y="36" font-size="19" font-weight="bold" fill="#222222">'
        f"{words}</text>",
    ]
    for number, step in enumerate(steps):
        lines += _row(step, TOP + number * (ROW + GAP), last=number == len(steps) - 1)
    return "\n".join([*lines, "</svg>", ""])


def _row(step: Step, y: int, *, last: bool) -> list[str]:
    fill, border, dark = COLOURS[step.who]
    arrow = (
        f'  <path d="M40 {y + ROW} v{GAP - 5} m-4 -1 h8 l-4 6 z" fill="{border}" '
        f'stroke="{border}" stroke-width="1.5"/>'
    )
    return [
        f'  <rect x="{MARGIN}" y="{y}" width="{WIDTH - 2 * MARGIN}" height="{ROW}" rx="8" '
        f'fill="{fill}" stroke="{border}"/>',
        f'  <text x="{MARGIN + 14}" y="{y + 19}" font-size="15" fill="#222222">'
        f"{escape(step.what)}</text>",
        f'  <text x="{MARGIN + 14}" y="{y + 36}" font-size="12" font-family="monospace" '
        f'fill="{dark}">{escape(step.function)}</text>',
        f'  <text x="{WIDTH - MARGIN - 14}" y="{y + 19}" font-size="12" text-anchor="end" '
        f'fill="{dark}">{step.who}</text>',
        *([] if last else [arrow]),
    ]


def main() -> None:
    """Write the pictures beside the pages."""
    for name, (title, steps) in PICTURES.items():
        (DOCS / name).write_text(drawn(title, steps), encoding="utf-8")


if __name__ == "__main__":
    main()
