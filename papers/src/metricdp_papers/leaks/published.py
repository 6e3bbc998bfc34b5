"""Published defects in a few lines each: re-implementations, labelled as such, of what was read or measured elsewhere.

They repeat one property of a program that cannot be installed here, not the program. Each is a sampler
`draw(secret, count)`; randomness is a generator with a fixed seed, so that a study gives the same rows again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from metricdp.arrays import Floats, Points

Draw = Callable[[Any, int], Points]
METRES_PER_DEGREE = 111_320.0
VOCABULARY = np.random.default_rng(11).uniform(0.0, 10.0, (120, 2))  # vectors of made-up words


def _planar(rng: np.random.Generator, epsilon: float, count: int) -> Floats:
    far, turn = rng.gamma(2.0, 1.0 / epsilon, count), rng.uniform(0.0, 2.0 * np.pi, count)
    return np.stack([far * np.cos(turn), far * np.sin(turn)], axis=1)


def doubles() -> Draw:
    """Planar Laplace noise added to the secret in doubles: the low bits of the sum show the secret (Mironov 2012)."""
    rng = np.random.default_rng(1)
    return lambda secret, count: np.asarray(secret) + _planar(rng, 1.0, count)


def snapping_of_android() -> Draw:
    """LocationFudger of Android: an offset that stays for an hour, then the nearest corner of a grid of 2 km.

    Within the hour the report is a function of the place, so that two places on both sides of a line never share one.
    """
    rng = np.random.default_rng(2)
    offset = rng.normal(0.0, 500.0, 2) / METRES_PER_DEGREE

    def draw(secret: Any, count: int) -> Points:
        step = 2000.0 / METRES_PER_DEGREE
        corner = np.round((np.asarray(secret) + offset) / step) * step
        return np.tile(corner, (count, 1))

    return draw


def policy_graph_without_half() -> Draw:
    """The exponential mechanism on a policy graph with exp(-epsilon d) / N instead of exp(-epsilon d / 2) / N.

    A leaf and the hub amid all leaves: N differs by up to exp(epsilon d) as well, so that nearly twice epsilon leaks.
    """
    rng = np.random.default_rng(3)
    probabilities = np.exp(-star_distances())
    probabilities /= probabilities.sum(axis=1, keepdims=True)

    def draw(secret: Any, count: int) -> Points:
        return rng.choice(len(probabilities), count, p=probabilities[int(np.ravel(secret)[0])])[:, None].astype(float)

    return draw


def star_distances() -> Floats:
    """Return hops on the graph: 0 is the hub, 1 to 31 are leaves."""
    depth = np.array([0.0, *[1.0] * 31])
    apart = depth[:, None] + depth[None]
    np.fill_diagonal(apart, 0.0)
    return np.asarray(apart)


def truncated_of_mldp(epsilon: float = 4.0) -> Draw:
    """TEM with the score 2 ln(|V| / |L|) / epsilon for all words beyond the limit gamma together.

    The paper has 2 ln|V minus L| / epsilon - gamma. Far words get far more than words just within the limit, so that
    crossing it is told.
    """
    rng = np.random.default_rng(4)
    apart = np.linalg.norm(VOCABULARY[:, None] - VOCABULARY[None], axis=2)
    words, limit = len(apart), 2.0 / epsilon * np.log(0.999 * (len(apart) - 1) / 0.001)
    near = apart <= limit
    weights = np.where(near, np.exp(-epsilon * apart / 2.0), 0.0)
    far = words / near.sum(axis=1)  # exp(epsilon / 2 * score)
    weights += np.where(near, 0.0, (far / np.maximum(words - near.sum(axis=1), 1))[:, None])
    return _rows(weights, rng)


def second_nearest_of_mldp(epsilon: float = 2.0) -> Draw:
    """Vickrey without the first choice: the nearest word to the noisy vector, but never the word itself."""
    rng = np.random.default_rng(5)

    def draw(secret: Any, count: int) -> Points:
        word = word_of(secret)
        noisy = VOCABULARY[word] + _planar(rng, epsilon, count)
        apart = np.linalg.norm(noisy[:, None] - VOCABULARY[None], axis=2)
        apart[:, word] = np.inf
        return np.asarray(VOCABULARY[apart.argmin(axis=1)])

    return draw


def unknown_words_pass() -> Draw:
    """Words outside the vocabulary are returned as they are; others get noise."""
    rng = np.random.default_rng(6)
    known = np.array(["bread", "butter", "cheese"])

    def draw(secret: Any, count: int) -> Points:
        word = str(np.ravel(secret)[0])
        return rng.choice(known, count) if word in known else np.full(count, word)

    return draw


def true_point_of_geopriv4j() -> Draw:
    """Planar Laplace whose Lambert W is divided as whole numbers: radii are multiples of 1 / epsilon, often 0."""
    rng = np.random.default_rng(7)

    def draw(secret: Any, count: int) -> Points:
        far, turn = np.floor(rng.gamma(2.0, 1.0, count)), rng.uniform(0.0, 2.0 * np.pi, count)
        return np.asarray(np.asarray(secret) + np.stack([far * np.cos(turn), far * np.sin(turn)], axis=1))

    return draw


def argmax_of_geopriv4j() -> Draw:
    """An optimal mechanism of which the likeliest report of every row is released, instead of a draw from the row."""

    def draw(secret: Any, count: int) -> Points:
        likeliest = np.linalg.norm(cells(5) - np.asarray(secret), axis=1).argmin()  # the place itself
        return np.tile(cells(5)[likeliest], (count, 1))

    return draw


def equator_of_privkit() -> Draw:
    """Noise added to geocentric x and y with z kept: towards the equator nothing moves north or south."""
    rng = np.random.default_rng(8)
    radius = 6371.0

    def draw(secret: Any, count: int) -> Points:
        latitude, longitude = np.radians(np.asarray(secret, dtype=float))
        noise = _planar(rng, 10.0, count)  # per kilometre
        x = radius * np.cos(latitude) * np.cos(longitude) + noise[:, 0]
        y = radius * np.cos(latitude) * np.sin(longitude) + noise[:, 1]
        z = np.full(count, radius * np.sin(latitude))
        return np.asarray(np.degrees(np.stack([np.arctan2(z, np.hypot(x, y)), np.arctan2(y, x)], axis=1)))

    return draw


def seed_for_every_point() -> Draw:
    """A generator that is seeded anew for every point: the same noise each time, and taking it off gives the secret."""

    def draw(secret: Any, count: int) -> Points:
        return np.asarray(secret) + np.tile(_planar(np.random.default_rng(7), 1.0, 1), (count, 1))

    return draw


def relaxed_program() -> Floats:
    """The optimal program of 5 x 5 cells with every row relaxed by 0.01 and every entry at least 0.001."""
    points = cells(5)
    return _program(np.linalg.norm(points[:, None] - points[None], axis=2), np.inf, relaxed=0.01, floor=0.001)


def vertex_of_solver() -> Floats:
    """The optimal program of 20 places on a line, neighbours constrained, as a simplex solver returns it."""
    return _program(np.abs(np.subtract.outer(np.arange(20.0), np.arange(20.0))), 1.0)


def _program(apart: Floats, reach: float, *, relaxed: float = 0.0, floor: float = 0.0) -> Floats:
    """Solve min sum of distances with z_i <= exp(d_ij) z_j + relaxed up to d_ij = reach, without any repair."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_array, eye_array, kron

    count = len(apart)
    first, second = np.nonzero((apart > 0) & (apart <= reach))
    rows = np.arange(len(first))
    entries = np.concatenate([np.ones(len(first)), -np.exp(apart[first, second])])
    places = (np.concatenate([rows, rows]), np.concatenate([first, second]))
    found = linprog(
        apart.ravel() / count,
        A_ub=kron(coo_array((entries, places), shape=(len(first), count)), eye_array(count), format="csr"),
        b_ub=np.full(len(first) * count, relaxed),
        A_eq=kron(eye_array(count), np.ones((1, count)), format="csr"),
        b_eq=np.ones(count),
        bounds=(floor, None),
        method="highs-ds",
    )
    return np.asarray(found.x).reshape(count, count)


def cells(side: int) -> Floats:
    """Return the centres of side x side cells of size 1."""
    return np.array([(i, j) for i in range(side) for j in range(side)], dtype=float)


def word_of(secret: Any) -> int:
    """Return the number of a made-up word by its vector."""
    return int(np.linalg.norm(VOCABULARY - np.asarray(secret), axis=1).argmin())


def _rows(weights: Floats, rng: np.random.Generator) -> Draw:
    probabilities = weights / weights.sum(axis=1, keepdims=True)
    return lambda secret, count: VOCABULARY[rng.choice(len(probabilities), count, p=probabilities[word_of(secret)])]
