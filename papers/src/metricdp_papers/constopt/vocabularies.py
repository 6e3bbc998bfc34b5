"""The spaces of the ConstOPT study: clustered vocabularies and popular cells, from data where it lies at hand."""

from __future__ import annotations

from functools import cache

import numpy as np

from metricdp.arrays import Floats, Integers
from metricdp.errors import InvalidInput
from metricdp.metrics import KM_PER_DEGREE, Lp
from metricdp.places import bundled_roads
from metricdp.spaces import FiniteSpace
from metricdp_papers.common import GLOVE, DataSource, data_file, glove

NEIGHBOURS = 50  # a word is drawn at random, or from this many nearest words of one that is in
CELL = 0.005  # degrees, both ways
TOP_CELLS = 30  # of each person
# Figure 1 (200 FastText words): a loss of 1.5 is 44 % below that of a uniform answer, which is then 2.68. With GloVe a
# uniform answer to 200 review words costs 6.891 (sample 0): in this unit epsilon 2 stands where it stands in the paper.
REVIEW_UNIT = 2.68 / 6.891


@cache
def words(size: int, seed: int = 0) -> FiniteSpace:
    """Return a clustered vocabulary with GloVe vectors, as in Appendix C."""
    return FiniteSpace(sample_clusters(glove("vectors").array.astype(np.float64), size, seed=seed), Lp(2))


@cache
def review_words(size: int, seed: int = 0) -> FiniteSpace:
    """Return a clustered vocabulary of the words of two sets of film reviews (MR, SST-2), in the unit of Figure 1."""
    import pyarrow.parquet as parquet

    used: set[str] = set()
    for name in ("text_mr", "text_sst2"):
        table = parquet.read_table(data_file(f"{name}/sentences.parquet"), columns=["text"])
        used.update(word for text in table["text"].to_pylist() for word in text.split())
    found = glove("vectors", "review_extra")
    kept = np.array([name in used for name in found.words])
    vectors = found.array.astype(np.float64)[kept]
    return FiniteSpace(REVIEW_UNIT * sample_clusters(vectors, size, seed=seed), Lp(2))


def sample_clusters(vectors: Floats, size: int, *, seed: int = 0) -> Floats:
    """Return the vectors of a vocabulary sampled as the paper describes."""
    generator = np.random.default_rng(seed)
    squares = (vectors**2).sum(axis=1)
    chosen = [int(generator.integers(len(vectors)))]
    while len(chosen) < min(size, len(vectors)):
        if generator.random() < 0.5:
            word = int(generator.integers(len(vectors)))
        else:
            near = vectors[chosen[int(generator.integers(len(chosen)))]]
            away = squares - 2.0 * (vectors @ near)
            count = min(NEIGHBOURS + 1, len(vectors))
            closest = np.argpartition(away, count - 1)[:count]
            word = int(generator.choice(closest))
        if word not in chosen:
            chosen.append(word)
    return np.asarray(vectors[chosen])


def gowalla(size: int, seed: int = 0) -> FiniteSpace:
    """Return the most popular cells of Gowalla's check-ins in New York; there is one sample only."""
    return _cells("checkins_gowalla_nyc", size)


def foursquare(size: int, seed: int = 0) -> FiniteSpace:
    """Return the most popular cells of Foursquare's check-ins in New York; there is one sample only."""
    return _cells("checkins_foursquare_nyc", size)


def _cells(name: str, size: int) -> FiniteSpace:
    """Return popular cells: 0.005 degrees, and the 30 cells that a person visits most count once each.

    Distances are Euclidean between centres, in kilometres.
    """
    import pyarrow
    import pyarrow.parquet as parquet

    path = data_file(f"{name}/checkins.parquet")
    try:
        table = parquet.read_table(path, columns=["user", "lat", "lon"])
    except (OSError, pyarrow.ArrowException) as error:
        raise InvalidInput(f"{name} holds no check-ins that can be read ({error}).") from error
    places = np.stack([table["lat"].to_numpy(), table["lon"].to_numpy()], axis=1)
    return FiniteSpace(popular(table["user"].to_numpy().astype(np.int64), places, size), Lp(2))


def popular(user: Integers, places: Floats, size: int) -> Floats:
    """Return the centres, in kilometres, of the cells that are among the 30 first of most people."""
    names, code = np.unique(np.floor(places / CELL).astype(np.int64), axis=0, return_inverse=True)
    pairs, visits = np.unique(np.stack([user, code.ravel()], axis=1), axis=0, return_counts=True)
    order = np.lexsort((pairs[:, 1], -visits, pairs[:, 0]))
    starts = np.flatnonzero(np.diff(pairs[order, 0], prepend=-1))
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    popularity = np.bincount(pairs[order[rank < TOP_CELLS], 1], minlength=len(names))
    top = np.argsort(-popularity, kind="stable")[:size]
    centres = (names[top] + 0.5) * CELL * KM_PER_DEGREE
    centres[:, 1] *= np.cos(np.radians(names[top[0], 0] * CELL))
    return np.asarray(centres)


def roads(size: int, seed: int = 0) -> FiniteSpace:
    """Return crossings of the road network that comes with the package."""
    return bundled_roads(nodes=size)


DOMAINS = {
    "review words": DataSource(review_words, (GLOVE, "text_mr", "text_sst2")),  # words of MR and SST-2
    "words": DataSource(words, (GLOVE,)),
    "cells": DataSource(gowalla, ("checkins_gowalla_nyc",)),
    "Foursquare cells": DataSource(foursquare, ("checkins_foursquare_nyc",)),
    "roads": DataSource(roads),  # crossings of central Porto, © OpenStreetMap contributors
}
