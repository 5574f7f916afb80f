"""A process in which Spark meets a cell that it cannot read, with its log as talkative as ever."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa

from noisewise.artifact import Bounds, SourceError
from noisewise.privacy.lattice import boxed
from noisewise.privacy.sources.ibis import IbisSource
from noisewise.privacy.sum_plan import ProductSums, SumPlan
from tests.engines.engines import on_spark, spark_session


def main(folder: Path) -> None:
    session = spark_session(folder)
    session.sparkContext.setLogLevel("WARN")
    table = on_spark(pa.table({"diary": ["1.5", "SECRET"]}), session, folder)
    plan = SumPlan((ProductSums((boxed("bad", Bounds(0.0, 1.0), bits=15),), ((0,),)),))
    try:
        IbisSource(table.mutate(bad=table["diary"].cast("float64"))).sum(plan)
    except SourceError as error:
        print(error)
    log = session._jvm.org.apache.logging.log4j.LogManager.getRootLogger()
    print(f"level {log.getLevel().toString()}, as its owner had it")
    session.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
