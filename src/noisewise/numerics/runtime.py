"""One thread for products of small matrices."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any


def one_blas_thread() -> AbstractContextManager[Any]:
    """Two threads for a matrix of fifty rows wait for each other longer than either works."""
    controller = _controller()
    return nullcontext() if controller is None else controller.limit(limits=1, user_api="blas")


@cache
def _controller() -> Any:
    """Found once: looking through a process' libraries takes longer than a small posterior."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController()
