"""One server or session of each engine for all tests of this room."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from noisewise.privacy.sources.arrow import ArrowSource, TableBatches
from noisewise.privacy.sources.ibis import IbisSource
from noisewise.privacy.sum_plan import Source
from tests.engines import engines

Load = Callable[[pa.Table], Any]


@pytest.fixture(scope="session")
def postgres(postgres_url: str) -> Iterator[Any]:
    connection = engines.postgres_connection(postgres_url)
    yield connection
    connection.close()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    try:
        session = engines.spark_session(tmp_path_factory.mktemp("spark"))
    except engines.JavaMissing as reason:
        pytest.skip(str(reason))
    yield session
    session.stop()


@pytest.fixture(scope="session")
def load(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """``load(engine, table)``: a Source over the same records in that engine.

    A server or session starts when its engine is first asked for; a table is loaded once.
    """
    folder: Path = tmp_path_factory.mktemp("engines")
    loaded: dict[tuple[str, int], tuple[pa.Table, Source]] = {}
    loaders: dict[str, Load] = {
        "duckdb": engines.on_duckdb,
        "polars": engines.on_polars,
        "postgres": lambda t: engines.on_postgres(t, request.getfixturevalue("postgres")),
        "spark": lambda t: engines.on_spark(t, request.getfixturevalue("spark"), folder),
    }

    def source(engine: str, table: pa.Table) -> Source:
        if engine == "arrow":
            return ArrowSource(TableBatches(table))
        key = engine, id(table)
        if key not in loaded:  # the table is kept with it, so that its id stays its own
            loaded[key] = table, IbisSource(loaders[engine](table))
        return loaded[key][1]

    return source
