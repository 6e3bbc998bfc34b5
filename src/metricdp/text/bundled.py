"""Words and sentences that come with the package, all of them public: to try things on, and to measure on."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

import numpy as np

from metricdp.arrays import Integers
from metricdp.places.folders import BUNDLED_FOLDER

BUNDLED_WORDS = BUNDLED_FOLDER / "words"
BUNDLED = "bundled"  # how the command names the vectors that come with the package


def bundled_vectors() -> Path:
    """Return the file of the bundled vectors: 2,161 frequent English words of GloVe 6B (PDDL), 100 dimensions."""
    return BUNDLED_WORDS / "vectors.npz"


@cache
def sample_sentences() -> tuple[str, ...]:
    """Return the bundled sentences. They were written for this package and are about no real person."""
    return tuple((BUNDLED_WORDS / "sample.txt").read_text(encoding="utf-8").splitlines())


@cache
def sample_reviews() -> tuple[tuple[str, ...], Integers]:
    """Return 160 short reviews and whether each praises (1) or complains (0); written for this package."""
    with (BUNDLED_WORDS / "reviews.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return tuple(row["text"] for row in rows), np.array([int(row["label"]) for row in rows])
