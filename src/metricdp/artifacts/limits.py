"""How much opening a file may take: the one place that knows, asked before anything is allocated or computed."""

from __future__ import annotations

import os
from dataclasses import dataclass

from metricdp.errors import CorruptFile
from metricdp.registry import Effort

LEAST_MEMORY, MEMORY_PER_BYTE = 2 << 30, 64  # bytes: enough to judge 4,096 secrets with as many reports
LEAST_STEPS, STEPS_PER_BYTE = 1e11, 1e6  # of about a nanosecond
SWITCH = "METRICDP_OPEN_ANY_SIZE"


class TooLarge(CorruptFile):
    """The file asks for more than a file of its size may."""


@dataclass(frozen=True)
class LoadLimits:
    """What opening and judging a file may take at most; None leaves it to the size of the file.

    A file of b bytes may take max(2 GiB, 64 b) of memory and max(1e11, 1e6 b) elementary steps of about a nanosecond.
    With the environment variable METRICDP_OPEN_ANY_SIZE set to 1 nothing is limited that is not limited here.
    """

    memory: float | None = None
    steps: float | None = None

    def for_size(self, size: int) -> tuple[float, float]:
        """Return the bytes of memory and the steps that a file of this size may take."""
        free = os.environ.get(SWITCH) == "1"
        memory = float("inf") if free else max(LEAST_MEMORY, MEMORY_PER_BYTE * size)
        steps = float("inf") if free else max(LEAST_STEPS, STEPS_PER_BYTE * size)
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
        memory = 8.0 * self._spent.values
        if not memory <= self._memory:
            raise TooLarge(
                f"opening its {self._size:,} bytes would take {_gigabytes(memory)} of memory, above its limit of "
                f"{_gigabytes(self._memory)}, for {what}"
            )
        if not self._spent.steps <= self._steps:
            raise TooLarge(
                f"opening its {self._size:,} bytes would take about {self._spent.steps:.2g} elementary steps, above "
                f"its limit of {self._steps:.2g}, for {what}"
            )


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:.3g} GB"
