"""The guide to engines works verbatim, against a real PostgreSQL and a real Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq
import pytest

from noisewise import datasets
from tests.documents import ROOT, run


# py4j leaves sockets to the garbage collector; the page is not the place to close them.
@pytest.mark.filterwarnings("ignore:Exception ignored in. <socket")
def test_guide(
    postgres: Any, postgres_url: str, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = datasets.social_mobility(tracts=3).select(["pir", "kir"])
    monkeypatch.chdir(tmp_path)
    pq.write_table(people, "people.parquet")
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE guide_people (pir double precision, kir double precision)")
        with connection.cursor() as cursor:
            rows = zip(*(people[c].to_pylist() for c in ("pir", "kir")), strict=True)
            cursor.executemany("INSERT INTO guide_people VALUES (%s, %s)", list(rows))
    monkeypatch.setenv("PEOPLE_URL", f"{postgres_url}#guide_people")
    assert run(ROOT / "docs" / "howto-engines.md") == 3
