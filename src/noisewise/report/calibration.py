"""What ``noisewise check`` found, on the page."""

from __future__ import annotations

from typing import Any

from noisewise.report import html


def calibration(check: Any) -> str:
    """Nothing where nothing was checked but the way to do it."""
    return html.paragraphs(
        "Not checked. Run noisewise check on the release, and give its file to --check."
    )
