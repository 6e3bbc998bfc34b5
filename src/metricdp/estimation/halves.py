"""Reports split at random into two halves, so that what one half chooses is right for the other."""

from __future__ import annotations

import numpy as np

from metricdp.arrays import Floats, Integers


def split(counts: Floats, seed: int) -> tuple[Integers, Integers]:
    """Return counts of a random half of the reports, and of the others; the same for the same seed."""
    whole = np.rint(counts).astype(np.int64)
    there = np.flatnonzero(whole)
    reports = np.repeat(there, whole[there])
    np.random.default_rng(seed).shuffle(reports)  # nothing private is drawn
    half = np.bincount(reports[: len(reports) // 2], minlength=len(whole))
    return half, whole - half
