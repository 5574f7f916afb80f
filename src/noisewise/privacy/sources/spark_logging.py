"""Spark's own log, switched off while noisewise reads: it may print a record.

Spark writes a cell that failed to standard error, and PySpark logs what Spark has answered.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator
from typing import Any

TASK_PATIENCE_S = 5.0
"""Wait so long for Spark's other tasks, which may still fail at a record of their own (chosen)."""

LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""PySpark's own loggers, which write what Spark has answered."""


@contextlib.contextmanager
def spark_log_off(backend: Any) -> Iterator[None]:
    """Switch Spark's log off within the block, and set it back after; other engines have none."""
    if getattr(backend, "name", "") != "pyspark":
        yield
        return
    with _python_loggers_off(), _java_log_off(backend._session):
        yield


@contextlib.contextmanager
def _python_loggers_off() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in LOGGERS]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled


@contextlib.contextmanager
def _java_log_off(session: Any) -> Iterator[None]:
    """Set the root log level; Spark Connect runs elsewhere and prints nothing here."""
    context = getattr(session, "_sc", None)
    if context is None:
        yield
        return
    level = context._jvm.org.apache.logging.log4j.LogManager.getRootLogger().getLevel().toString()
    context.setLogLevel("OFF")
    try:
        yield
    except BaseException:
        _let_tasks_end(context)
        raise
    finally:
        context.setLogLevel(level)


def _let_tasks_end(context: Any) -> None:
    """Wait until no task runs any more; each may log a failure after the first was reported."""
    tracker = context._jsc.sc().statusTracker()
    end = time.monotonic() + TASK_PATIENCE_S
    while time.monotonic() < end:
        if not any(executor.numRunningTasks() for executor in tracker.getExecutorInfos()):
            return
        time.sleep(0.05)
