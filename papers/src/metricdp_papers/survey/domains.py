"""The data of the comparison: one small set of secrets a domain, a public prior, what is lost, and the epsilons."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from metricdp.arrays import Floats
from metricdp.errors import check_extra
from metricdp.metrics import Angular, Bags, Frechet, Haversine, Hyperbolic, Lp, Precomputed, Temporal
from metricdp.places import bundled_roads, bundled_trips, grid
from metricdp.spaces import FiniteSpace

STEPS = 3  # of a trace
STAYS = 0.6  # the probability of staying where one is, for a step


@dataclass(frozen=True)
class ComparisonDomain:
    """Secrets of one sort: what they are, how likely, and the epsilons at which families are compared.

    `loss` is what a guess costs, the distance of the space unless given.
    """

    about: str
    space: Callable[[], FiniteSpace]
    prior: Callable[[FiniteSpace], Floats]
    epsilons: tuple[float, ...]
    loss: Callable[[FiniteSpace], Floats] | None = None


def _roads() -> FiniteSpace:
    return bundled_roads(nodes=60)


def _cells() -> FiniteSpace:
    return grid((7, 7))


def _words() -> FiniteSpace:
    from metricdp.text import vocabulary

    words, vectors = _vectors(60)
    return vocabulary(words, vectors)


def _directions() -> FiniteSpace:
    vectors = _vectors(60)[1]
    return FiniteSpace(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), Angular())


def _hierarchy() -> FiniteSpace:
    """Return a tree of words in the Poincare disk: a root, three branches, three of each, two of each of these."""
    places = [np.zeros(2)]
    for one in range(3):
        for depth, wide, reach in ((0, 1, 1.6), (1, 3, 3.0), (2, 6, 4.4)):
            angles = 2.0 * np.pi * (one + (np.arange(wide) - (wide - 1) / 2) / (1.5 * wide) * (depth > 0)) / 3.0
            places += [np.tanh(reach / 2.0) * np.array([np.cos(angle), np.sin(angle)]) for angle in angles]
    return FiniteSpace(np.stack(places), Hyperbolic())


def _documents() -> FiniteSpace:
    """Return 40 documents of three words each, every word by its first four principal components."""
    vectors = _vectors(60)[1]
    middle = vectors - vectors.mean(axis=0)
    words = middle @ np.linalg.svd(middle, full_matrices=False)[2][:4].T
    chosen = np.random.default_rng(7).integers(0, len(words), (40, 3))
    return FiniteSpace(np.unique(words[chosen].reshape(len(chosen), -1), axis=0), Bags(Lp(2), 4))


def _digits() -> FiniteSpace:
    check_extra("sklearn", "decompose")
    from sklearn.datasets import load_digits

    images = np.asarray(load_digits().data[:400:8], dtype=np.float64)
    return FiniteSpace(images, Lp(2))


def _hours() -> FiniteSpace:
    return FiniteSpace(np.arange(0.0, 24.0, 0.5)[:, None], Temporal(period=24.0, unit="h"))


def _trips() -> FiniteSpace:
    """Return 40 simulated trips as curves of six places in kilometres, under the discrete Frechet distance."""
    table = bundled_trips(trips=40)
    trip = table["trip"].to_numpy()
    places = np.stack([table["lat"].to_numpy(), table["lon"].to_numpy()], axis=1)
    middle = places.mean(axis=0)
    flat = (places - middle) * Haversine().degree * np.array([1.0, np.cos(np.radians(middle[0]))])
    curves = []
    for number in np.unique(trip):
        line = flat[trip == number]
        curves.append(line[np.linspace(0, len(line) - 1, 6).round().astype(int)].ravel())
    return FiniteSpace(np.stack(curves), Frechet(Lp(2, unit="km")))


def street() -> FiniteSpace:
    """Return the places of the traces: four along a street, a kilometre apart."""
    return FiniteSpace(np.arange(4.0)[:, None], Lp(1, unit="km"))


def walks() -> np.ndarray:
    """Return all traces of the street, one a row."""
    return np.array(list(itertools.product(range(len(street())), repeat=STEPS)))


def _walk_space() -> FiniteSpace:
    """Return the traces; two are as far apart as where they are farthest apart."""
    at, apart = walks(), street().distances
    return FiniteSpace(np.arange(len(at)), Precomputed(apart[at[:, None], at[None]].max(axis=2), "km"))


def _along(_: FiniteSpace) -> Floats:
    """What is lost of a trace: the mean distance of its steps."""
    at, apart = walks(), street().distances
    return np.asarray(apart[at[:, None], at[None]].mean(axis=2))


def _walking(_: FiniteSpace) -> Floats:
    """Somebody begins anywhere, stays with a probability of 0.6, and goes to a neighbour otherwise."""
    size = len(street())
    near = np.abs(np.arange(size)[:, None] - np.arange(size)) == 1
    moves = STAYS * np.eye(size) + (1.0 - STAYS) * near / near.sum(axis=1, keepdims=True)
    at = walks()
    return np.asarray(np.prod([moves[at[:, t], at[:, t + 1]] for t in range(STEPS - 1)], axis=0) / size)


def _central(space: FiniteSpace) -> Floats:
    """The nearer to the middle the likelier, as in the centre of a town."""
    apart = space.distances.mean(axis=1)
    return _shares(np.exp(-3.0 * (apart - apart.min()) / apart.mean()))


def _rank_prior(space: FiniteSpace) -> Floats:
    """Zipf's law: the words are in the order of how frequent they are."""
    return _shares(1.0 / np.arange(1.0, len(space) + 1.0))


def _daily(space: FiniteSpace) -> Floats:
    """A morning and an evening with much to do, and a quiet night."""
    hour = space.points[:, 0]
    morning, evening = (np.exp(-0.5 * ((hour - at) / 2.0) ** 2) for at in (8.0, 17.5))
    return _shares(0.1 + morning + evening)


def _alike(space: FiniteSpace) -> Floats:
    return _shares(np.ones(len(space)))


def _shares(weights: Floats) -> Floats:
    return np.asarray(weights / weights.sum())


def _vectors(count: int) -> tuple[list[str], Floats]:
    """Return the first words of the bundled vectors that have more than three letters."""
    from metricdp.text import bundled_vectors, read_vectors

    found = read_vectors(bundled_vectors())
    words, vectors = list(found.words), found.array
    kept = [at for at, word in enumerate(words) if len(word) > 3][:count]
    return [words[at] for at in kept], np.asarray(vectors, dtype=np.float64)[kept]


DOMAINS = {
    "roads": ComparisonDomain("60 crossings of central Porto, km along the streets, the middle likelier", _roads,
                              _central, (2.0, 10.0)),
    "grid": ComparisonDomain("7 x 7 cells of a map, Euclidean, a cell the unit, the middle likelier", _cells, _central,
                             (0.5, 1.0, 2.0)),
    "words": ComparisonDomain("60 frequent words of GloVe, 100 coordinates, Euclidean, by Zipf's law", _words,
                              _rank_prior, (0.5, 1.0)),
    "embeddings": ComparisonDomain("the same 60 vectors as directions, angle in radians", _directions, _rank_prior,
                                   (2.0, 4.0)),
    "hierarchy": ComparisonDomain("31 words of a tree in the Poincare disk, hyperbolic distance, by Zipf's law",
                                  _hierarchy, _rank_prior, (1.2, 2.0)),
    "documents": ComparisonDomain("40 documents of three words, four components each, total distance of the best "
                                  "pairing, all alike", _documents, _alike, (0.5, 1.0)),
    "images": ComparisonDomain("50 digits of 8 x 8 pixels, Euclidean, all alike", _digits, _alike, (0.05, 0.15)),
    "trajectories": ComparisonDomain("40 simulated trips in Porto, six places each, Frechet in km, all alike", _trips,
                                     _alike, (1.0, 3.0)),
    "traces": ComparisonDomain("64 traces of three steps between four places a km apart, the largest distance of a "
                               "step in km, by a lazy walk; the loss is the mean distance of the steps", _walk_space,
                               _walking, (2.0, 4.0), _along),
    "time": ComparisonDomain("48 half hours of a day, around the clock, in hours, busy mornings and evenings", _hours,
                             _daily, (0.5, 1.0)),
}  # fmt: skip
