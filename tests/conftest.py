"""Fixtures shared by the whole suite; what only one room needs lives in that room's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.engines.postgres import PostgresMissing, postgres_server


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The URL of an empty database on a real PostgreSQL that lives as long as the session."""
    try:
        with postgres_server() as url:
            yield url
    except PostgresMissing as reason:
        pytest.skip(f"no PostgreSQL: {reason}")
