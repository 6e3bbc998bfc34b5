"""How many threads numbers use: parallel work of our own keeps the libraries below from starting more."""

from __future__ import annotations

import importlib
from contextlib import AbstractContextManager, nullcontext


def one_thread_per_product() -> AbstractContextManager[object]:
    """Keep matrix products from starting threads of their own: the caller already uses all cores."""
    try:
        threadpoolctl = importlib.import_module("threadpoolctl")
    except ImportError:
        return nullcontext()
    limits: AbstractContextManager[object] = threadpoolctl.threadpool_limits(1, "blas")
    return limits
