"""When work has to be back: one deadline for a builder and for everything that it calls.

    with time_limit(seconds):               # the builder says how long it may take
        ...
        if seconds_left() < expected: ...  # every long loop asks, however deep it is

Blocks inside one another keep to the nearest end. `reserve` keeps time back for what comes after a block, such as the
audit after a search. A deadline belongs to the thread that set it; threads started for parts of a sum have
none; every request to a worker says how long it may take.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

import numpy as np

LARGE = 2_000_000  # secrets squared times reports from which an answer takes so long that time must be reserved
SPARE = 2.0  # seconds by which a first answer may be late: a small one is made also where no time was given
PASSES = 40  # over a table that is gone through several times, as a bound goes through its multipliers
clock: Callable[[], float] = time.perf_counter
_end: ContextVar[float] = ContextVar("end", default=math.inf)


@contextmanager
def time_limit(seconds: float | None, *, reserve: float = 0.0) -> Iterator[None]:
    """Hold this block to that many seconds from now (None: no limit of its own), and to what is left less `reserve`."""
    end = math.inf if seconds is None else clock() + seconds
    token = _end.set(min(end, _end.get() - reserve))
    try:
        yield
    finally:
        _end.reset(token)


def seconds_left() -> float:
    """Return the seconds that are left, infinite without a deadline, below zero behind it."""
    end = _end.get()
    return end if math.isinf(end) else end - clock()


@cache
def seconds_per_number() -> float:
    """Return how long one number of such a table takes on this machine, measured once."""
    numbers = np.arange(100_000.0)
    np.maximum(numbers, 1.0)
    started = time.perf_counter()
    for _ in range(PASSES):
        np.maximum(numbers, 1.0)
    return (time.perf_counter() - started) / len(numbers)


def fits_deadline(work: float) -> bool:
    """Return whether one pass over that many numbers fits into the time that is left."""
    return seconds_left() >= work * seconds_per_number()


def has_deadline() -> bool:
    """Return whether there is a deadline."""
    return not math.isinf(_end.get())


def cap_seconds(seconds: float | None = None) -> float | None:
    """Return the seconds that are left and no more than `seconds`; None without either. It is never below 0.01."""
    remaining = min(seconds_left(), math.inf if seconds is None else seconds)
    return None if math.isinf(remaining) else max(remaining, 0.01)
