"""The published JSON Schema of the release file, for readers who do not use this library.

It describes the shape of the file. That the parts do not contradict each other, and that the digest
is right, only ``Release.load`` checks.
"""

from __future__ import annotations

import json
from importlib import resources
from typing import Any


def schema() -> dict[str, Any]:
    """Return the schema of version 1 (JSON Schema, draft 2020-12) as a fresh dictionary."""
    file = resources.files("noisewise.artifact").joinpath("release.schema.json")
    content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return content
