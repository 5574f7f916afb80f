"""Fixtures shared by the whole suite; what only one room needs lives in that room's tests."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator

import pytest

from tests.engines.postgres import PostgresMissing, postgres_server

# What is counted of sources that are no local files goes to a folder of the tests, here and in the
# processes that tests start, never to the user's own.
os.environ["NOISEWISE_HOME"] = tempfile.mkdtemp(prefix="noisewise-tests-")
atexit.register(shutil.rmtree, os.environ["NOISEWISE_HOME"], ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The URL of an empty database on a real PostgreSQL that lives as long as the session."""
    try:
        with postgres_server() as url:
            yield url
    except PostgresMissing as reason:
        pytest.skip(f"no PostgreSQL: {reason}")
