"""Calls that are to be refused, and the secrets that no refusal may betray."""

from __future__ import annotations

import traceback
from typing import Any

import pandas as pd

import noisewise as nw

SECRET = "SECRET-7291"
NUMBER = 7291.125
MARKS = (SECRET, "7291")

GOOD = {"x": [0.25, 0.5, 0.75], "y": [1.0, 2.0, 3.0], "g": [0, 1, 0], "t": ["a", "b", "a"]}
BOUNDS = {"x": (0, 1), "y": (0, 3)}


def people(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame({**GOOD, **columns})


def regression(source: Any, **more: Any) -> nw.Release:
    words = {"x": "x", "y": "y", "bounds": BOUNDS, "epsilon": 0.1, **more}
    return nw.release.linear_regression(source, **words)


def family(source: Any, **more: Any) -> nw.Release:
    words = {"column": "x", "family": "normal", "bounds": (0, 1), "epsilon": 0.1, **more}
    return nw.release.exponential_family(source, **words)


def tables(source: Any, **more: Any) -> nw.Release:
    words = {"cliques": [("t",)], "levels": {"t": ["a", "b"]}, "epsilon": 0.1, **more}
    return nw.release.graphical_model(source, **words)


def everything_said(error: BaseException) -> str:
    """Messages and arguments of the whole chain, and the traceback as a log file would have it."""
    said = traceback.format_exception(error)
    chain: list[BaseException | None] = [error]
    while chain:
        link = chain.pop()
        if link is not None:
            said += [str(link), repr(link), repr(link.args), repr(getattr(link, "__notes__", ()))]
            chain += [link.__cause__, link.__context__]
    return "\n".join(said)
