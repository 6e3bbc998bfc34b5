"""How much opening a file may take: the one place that knows, asked before anything is allocated or computed."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

from metricdp.errors import CorruptFile
from metricdp.registry import Effort

LEAST_MEMORY, MEMORY_PER_BYTE = 2 << 30, 64  # bytes: enough to audit 4,096 secrets with as many reports
LEAST_STEPS, STEPS_PER_BYTE = 1e11, 1e6  # of about a nanosecond
SWITCH = "METRICDP_OPEN_ANY_SIZE"


class TooLarge(CorruptFile):
    """The file asks for more than a file of its size may."""


@dataclass(frozen=True)
class LoadLimits:
    """What opening and auditing a file may take at most; None leaves it to the size of the file.

    A file of b bytes may take max(2 GiB, 64 b) of memory and max(1e11, 1e6 b) elementary steps of about a nanosecond.
    With the environment variable METRICDP_OPEN_ANY_SIZE set to 1 nothing is limited that is not limited here.
    """

    memory: float | None = None
    steps: float | None = None

    def for_size(self, size: int) -> tuple[float, float]:
        """Return the bytes of memory and the steps that a file of this size may take."""
        free = math.inf if os.environ.get(SWITCH) == "1" else 0.0
        memory = max(LEAST_MEMORY, MEMORY_PER_BYTE * size, free)
        steps = max(LEAST_STEPS, STEPS_PER_BYTE * size, free)
        return memory if self.memory is None else self.memory, steps if self.steps is None else self.steps


class LoadBudget:
    """What is left of the limits of one file."""

    def __init__(self, limits: LoadLimits, size: int) -> None:
        self._limits, self._size = limits, 0
        self._spent = Effort()
        self.grow(size)

    def grow(self, size: int) -> None:
        """Count further bytes that belong to the file: vectors in a file of their own, found and verified."""
        self._size += size
        self._memory, self._steps = self._limits.for_size(self._size)

    def spend(self, effort: Effort, what: str) -> None:
        """Refuse the file where this would be too much, on top of everything before."""
        self._spent += effort
        memory, steps = 8.0 * self._spent.values, self._spent.steps
        too_much = ""
        if not memory <= self._memory:
            too_much = f"{memory / 1e9:.3g} GB of memory, above its limit of {self._memory / 1e9:.3g} GB"
        elif not steps <= self._steps:
            too_much = f"about {steps:.2g} elementary steps, above its limit of {self._steps:.2g}"
        if too_much:
            raise TooLarge(f"opening its {self._size:,} bytes would take {too_much}, for {what}")
