"""Threads: who starts them, so that threads do not wait for threads."""

from __future__ import annotations

import importlib
import os
from contextlib import AbstractContextManager, nullcontext
from typing import Any

ONE_THREAD = {"threads": 1, "parallel": "off"}  # options of HiGHS


def cores() -> int:
    """Return how many threads to start: OMP_NUM_THREADS where it is a number, as several processes share a machine."""
    named = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, int(named)) if named.isdecimal() else os.cpu_count() or 1


def limit_product_threads() -> AbstractContextManager[object]:
    """Keep matrix products from starting threads of their own, where the caller uses all cores or has none to gain.

    Without threadpoolctl (the extra `fast`) they start them as before, which only costs time.
    """
    try:
        threadpoolctl = importlib.import_module("threadpoolctl")
    except ImportError:
        return nullcontext()
    limits: AbstractContextManager[object] = threadpoolctl.threadpool_limits(1, "blas")
    return limits


def run_on_one_thread(highspy: Any, highs: Any) -> Any:
    """Run a model of HiGHS that has the options of ONE_THREAD.

    HiGHS keeps its threads for the next model and refuses one that asks for another number of them: where somebody else
    has used more here, they are ended first.
    """
    status = highs.run()
    if status == highspy.HighsStatus.kError and highs.getModelStatus() == highspy.HighsModelStatus.kNotset:
        highspy.Highs.resetGlobalScheduler(True)
        status = highs.run()
    return status
