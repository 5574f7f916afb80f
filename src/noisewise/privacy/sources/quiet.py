"""Keep an engine from printing a record: Spark writes the cell that failed to standard error."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator
from typing import Any

PATIENCE_S = 5.0
"""Wait so long for Spark's other tasks, which may still fail at a record of their own."""

LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""PySpark's own, which write what Spark has answered."""


@contextlib.contextmanager
def quiet(backend: Any) -> Iterator[None]:
    """Switch the engine's log off within the block, and set it back after."""
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
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if not any(executor.numRunningTasks() for executor in tracker.getExecutorInfos()):
            return
        time.sleep(0.05)
