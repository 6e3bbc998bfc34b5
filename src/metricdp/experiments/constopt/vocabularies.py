"""The spaces of the ConstOPT study: clustered vocabularies and popular cells, from data where it lies at hand."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass

import numpy as np

from metricdp.arrays import Floats
from metricdp.metrics import KM_PER_DEGREE, Lp
from metricdp.places import bundled_roads, data_folder
from metricdp.spaces import FiniteSpace

NEIGHBOURS = 50  # a word is drawn at random, or from this many nearest words of one that is in
CELL = 0.005  # degrees, both ways
TOP_CELLS = 30  # of each person


@dataclass(frozen=True, eq=False)
class Setting:
    """A space of the study: what it is, where it comes from, and which published table it stands beside."""

    domain: str  # "words", "cells" or "roads"
    origin: str
    space: FiniteSpace


def words(size: int, *, seed: int = 0) -> Setting | str:
    """Return a clustered vocabulary with GloVe vectors, or the reason why there is none.

    It begins with one random word; each further one is random with probability one half, and otherwise one of the 50
    nearest words of a random word that is in.
    """
    path = data_folder() / "glove_6b_100d" / "vectors.npz"
    if not path.is_file():
        return "no word vectors: glove_6b_100d/vectors.npz is not in the data folder (set METRICDP_DATA)"
    try:
        with np.load(path, allow_pickle=False) as stored:
            vectors = np.asarray(stored["vectors"], dtype=np.float64)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        return f"no word vectors: {path.name} cannot be read ({error})"
    return Setting("words", "GloVe 6B, 100 dimensions", FiniteSpace(clustered(vectors, size, seed=seed), Lp(2)))


def clustered(vectors: Floats, size: int, *, seed: int = 0) -> Floats:
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


def cells(size: int) -> Setting | str:
    """Return the most popular cells of the check-ins in New York, or the reason why there are none.

    Cells of 0.005 degrees; the 30 cells that a person visits most count once each. Distances are Euclidean between
    centres, in kilometres.
    """
    path = data_folder() / "checkins_gowalla_nyc" / "checkins.parquet"
    if not path.is_file():
        return "no check-ins: checkins_gowalla_nyc/checkins.parquet is not in the data folder (set METRICDP_DATA)"
    import pyarrow
    import pyarrow.parquet as parquet

    try:
        table = parquet.read_table(path, columns=["user", "lat", "lon"])
    except (OSError, pyarrow.ArrowException) as error:
        return f"no check-ins: {path.name} cannot be read ({error})"
    user = table["user"].to_numpy().astype(np.int64)
    places = np.floor(np.stack([table["lat"].to_numpy(), table["lon"].to_numpy()], axis=1) / CELL).astype(np.int64)
    names, code = np.unique(places, axis=0, return_inverse=True)
    pairs, visits = np.unique(np.stack([user, code.ravel()], axis=1), axis=0, return_counts=True)
    order = np.lexsort((pairs[:, 1], -visits, pairs[:, 0]))
    starts = np.flatnonzero(np.diff(pairs[order, 0], prepend=-1))
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    popularity = np.bincount(pairs[order[rank < TOP_CELLS], 1], minlength=len(names))
    top = np.argsort(-popularity, kind="stable")[:size]
    centres = (names[top] + 0.5) * CELL * KM_PER_DEGREE
    centres[:, 1] *= np.cos(np.radians(names[top[0], 0] * CELL))
    return Setting("cells", "Gowalla check-ins, New York", FiniteSpace(centres, Lp(2)))


def roads(size: int) -> Setting:
    """Return crossings of the road network that comes with the package."""
    return Setting("roads", "crossings of central Porto, © OpenStreetMap contributors", bundled_roads(nodes=size))
