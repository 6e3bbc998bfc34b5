"""What a text may cost: which mechanism its words get, and which of them the budget does not pay for."""

from __future__ import annotations

import numpy as np

from metricdp.arrays import Booleans, Floats, Integers

ROUNDING = 1.0 + 1e-9  # forty times 0.1 is 4


def levels_of(rows: Integers, texts: int, fixed: Floats, words: Booleans, rates: Floats, budget: float) -> Integers:
    """Return for each text the first of the falling epsilons at which all of it is paid for, else the last one.

    The total of a text is the sum of the epsilons of its words, `rates[level]` each, and of its numbers (`fixed`).
    """
    numbers = np.bincount(rows, weights=np.where(words, 0.0, fixed), minlength=texts)
    counts = np.bincount(rows, weights=words, minlength=texts)
    totals = numbers[:, None] + counts[:, None] * rates
    fits = totals <= budget * ROUNDING
    return np.where(fits.any(axis=1), fits.argmax(axis=1), len(rates) - 1)


def paid(rows: Integers, costs: Floats, budget: float) -> Booleans:
    """Tell which places are paid for, from the beginning of each text; `rows` rise."""
    total = np.cumsum(costs)
    first = np.flatnonzero(np.diff(rows, prepend=-1))
    before = np.repeat((total - costs)[first], np.diff(np.append(first, len(rows))))
    return np.asarray(total - before <= budget * ROUNDING)
