"""Mechanisms and spaces that several rooms' tests use: one of every metric, and of several kinds and shapes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import metricdp as mdp
from brute import euclid, grid
from metricdp.mechanisms import Certificate, Guarantee, LocalMechanism, MatrixMechanism

RNG = np.random.default_rng(7)
PLANE = RNG.uniform(0, 3, (12, 2))
RING = np.arange(6)[:, None]
EDGES = [[i, (i + 1) % 6] for i in range(6)]
LINE = np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))
HISTOGRAMS = RNG.dirichlet(np.ones(4), 6)

SPACES: dict[str, Callable[[], mdp.FiniteSpace]] = {
    "l1": lambda: mdp.FiniteSpace(PLANE, mdp.Lp(1)),
    "l2 with names": lambda: mdp.FiniteSpace(PLANE, mdp.Lp(2), columns=("east", "north")),
    "linf": lambda: mdp.FiniteSpace(PLANE, mdp.Lp(np.inf)),
    "earth": lambda: mdp.FiniteSpace(PLANE + np.array([41.0, -8.0]), mdp.Haversine()),
    "roads": lambda: mdp.FiniteSpace(
        RING,
        mdp.ShortestPath(EDGES, [1.0, 2.0, 1.0, 2.5, 1.0, 3.0], one_way="longer"),
        coordinates=PLANE[:6],
        ground=mdp.Haversine(),
    ),
    "policy in parts": lambda: mdp.policy(
        mdp.FiniteSpace(PLANE + np.array([41.0, -8.0]), mdp.Haversine()),
        [[0, 1], [1, 2], [2, 3], [0, 3], [4, 5], [5, 6], [6, 7], [8, 9], [9, 10]],
        isolated="disclose",
        parts="disclose",
    ),
    "mahalanobis": lambda: mdp.FiniteSpace(PLANE, mdp.Mahalanobis([[2.0, 0.3], [0.3, 1.0]])),
    "angular": lambda: mdp.FiniteSpace(PLANE + 0.1, mdp.Angular()),
    "hyperbolic": lambda: mdp.FiniteSpace(PLANE / 5, mdp.Hyperbolic()),
    "hamming": lambda: mdp.FiniteSpace([["a", "b"], ["a", "c"], ["", "ü"]], mdp.Hamming()),
    "levenshtein": lambda: mdp.FiniteSpace(["cat", "cart", "dög", ""], mdp.Levenshtein()),
    "clock": lambda: mdp.FiniteSpace([[1.0], [9.0], [23.0]], mdp.Temporal(24.0, unit="h")),
    "weighted": lambda: mdp.FiniteSpace(
        np.column_stack([PLANE, np.arange(12.0)]),
        mdp.Weighted([(mdp.Weighted([(mdp.Lp(2), [0, 1], 0.5)]), [0, 1], 2.0), (mdp.Temporal(), [2], 0.1)], unit="km"),
    ),
    "precomputed": lambda: mdp.FiniteSpace(np.arange(5.0)[:, None], mdp.Precomputed(LINE, unit="hops")),
    "transport": lambda: mdp.FiniteSpace(HISTOGRAMS, mdp.Wasserstein(LINE[:4, :4])),
    "transport on a line": lambda: mdp.FiniteSpace(HISTOGRAMS, mdp.Wasserstein([0.0, 1.0, 3.0, 4.0])),
    "documents": lambda: mdp.FiniteSpace(HISTOGRAMS, mdp.WordMovers(PLANE[:4], mdp.Lp(1))),
    "curves": lambda: mdp.FiniteSpace(RNG.normal(size=(5, 6)), mdp.Frechet(mdp.Lp(1), 2)),
    "bags": lambda: mdp.FiniteSpace(PLANE.reshape(4, 6), mdp.metrics.Bags(mdp.Lp(1), 2)),
}
WORDS = mdp.FiniteSpace(RNG.normal(size=(4, 3)), mdp.Lp(2), coordinates=["cat", "dög", "", "bird"])
OTHERS: dict[str, Callable[[], Any]] = {
    "sphere": lambda: mdp.laplace(mdp.Haversine(), 10.0),
    "line": lambda: mdp.laplace(mdp.Lp(1), 0.3, dimension=1),
    "space": lambda: mdp.laplace(mdp.Lp(np.inf), 2.0, dimension=5, pitch=0.25),
    "ellipse": lambda: mdp.laplace(mdp.Mahalanobis([[2.0, 0.3], [0.3, 1.0]]), 1.0),
    "words": lambda: mdp.madlib(WORDS, 2.0),
}


def some_matrix(epsilon: float = 1.0) -> MatrixMechanism:
    return mdp.exponential(mdp.FiniteSpace(grid(5), mdp.Lp(2)), epsilon)


def with_zeros() -> MatrixMechanism:
    """Two towns that need not hide from each other (a radius), and a report that nobody uses."""
    points = np.array([[0.0], [1.0], [50.0], [51.0]])
    space = mdp.FiniteSpace(points, mdp.Lp(2))
    matrix = np.array([[0.7, 0.3, 0, 0, 0], [0.3, 0.7, 0, 0, 0], [0, 0, 0, 0.6, 0.4], [0, 0, 0, 0.4, 0.6]])
    outputs = mdp.FiniteSpace(np.arange(5.0)[:, None], mdp.Lp(2))
    near = mdp.exponential(space, 1.0, outputs=outputs)
    promise = replace(near.guarantee, radius=2.0)
    return replace(near, matrix=matrix, guarantee=promise)


def interpolated() -> Any:
    corners = np.array([[x, y] for x in (1.0, 3.0) for y in (1.0, 3.0)])
    places = np.random.default_rng(3).uniform(0, 4, (30, 2))
    return mdp.interpolated(
        mdp.Box([0, 0], [4, 4], mdp.Lp(2)), mdp.FiniteSpace(corners, mdp.Lp(2)), 0.8,
        loss=(places, euclid(places, corners)), anchors=(2, 2), rule="exact",
    )  # fmt: skip


def streets() -> Any:
    ring = mdp.ShortestPath([[i, (i + 1) % 6] for i in range(6)], [1.0, 2.0, 1.0, 2.5, 1.0, 3.0])
    return mdp.interpolated(
        mdp.FiniteSpace(np.arange(6)[:, None], ring), mdp.FiniteSpace([[0], [3]], ring), 0.7, anchors=1
    )


def hours() -> MatrixMechanism:
    return mdp.exponential(mdp.FiniteSpace(np.arange(24.0)[:, None], mdp.Temporal(24.0, unit="h")), 0.3)


def place_and_hour() -> Any:
    return mdp.product(mdp.laplace(mdp.Haversine(), 10.0), hours(), some_matrix())


def local_on(space: mdp.FiniteSpace, radius: float, epsilon: float = 1.0) -> LocalMechanism:
    """The exponential mechanism on min(distance, radius): near reports by their weights, all others in the background.

    min(d, radius) is a metric and its kernel at half of epsilon keeps epsilon; float32 takes a thousandth of it.
    """
    apart = space.distances
    rows, columns = np.nonzero(apart <= radius)
    rate = 0.4995 * epsilon
    starts = np.append(0, np.cumsum(np.bincount(rows, minlength=len(space))))
    background = np.full(len(space), np.exp(-rate * radius))
    promise = Guarantee(epsilon, space.metric, basis="certificate")
    bare = Certificate(loss=radius, lower_bound=0.0, method="by hand", epsilon=epsilon)
    return LocalMechanism(
        space, space, starts, columns, np.exp(-rate * apart[rows, columns]), background, promise, bare
    )


def some_local() -> LocalMechanism:
    """Thirty places in the plane, about a dozen near reports each."""
    points = np.random.default_rng(5).uniform(0, 10, (30, 2))
    return local_on(mdp.FiniteSpace(points, mdp.Lp(2)), 3.5)


def some_kernel() -> mdp.mechanisms.KernelMechanism:
    """Two dozen words, their vectors singles as files have them, with weights."""
    vectors = np.random.default_rng(6).normal(size=(24, 3)).astype(np.float32).astype(float)
    space = mdp.vocabulary([f"word{i}" for i in range(24)], vectors)
    found = mdp.weighted_exponential(space, 1.2, weights=np.linspace(1.0, 2.0, 24), form="kernel")
    assert isinstance(found, mdp.mechanisms.KernelMechanism)
    return found


SQUARE_OF_NINE = mdp.grid((3, 3))
FOUR = mdp.FiniteSpace(np.arange(4.0)[:, None], mdp.Lp(1))
ROME, NUMBERS, CURVE = [41.9, 12.5], [3.0, 4.0], [1.0, 3.0, 2.0]


def on_a_line() -> Any:
    places = np.linspace(0, 3, 13)[:, None]
    loss = (places, np.abs(places - FOUR.points[:, 0]))
    return mdp.interpolated(
        mdp.Box([0.0], [3.0], mdp.Lp(1)), FOUR, 1.0, loss=loss, prior=np.full(13, 1 / 13), anchors=(2,)
    )


def along_three_streets() -> Any:
    roads = mdp.ShortestPath([[0, 1], [1, 2], [2, 0]], [1.0, 2.0, 1.5])
    places = [[41.0, -8.0], [41.0, -8.01], [41.02, -8.0]]
    corners = mdp.FiniteSpace(np.arange(3), roads, coordinates=places, ground=mdp.Haversine())
    return mdp.interpolated(corners, corners, 1.0, anchors=1)


KINDS: dict[str, tuple[Any, Any]] = {  # one of every kind, and a secret as a row of a table holds it
    "matrix": (lambda: mdp.exponential(SQUARE_OF_NINE, 1.0), [1.0, 2.0]),
    "local": (lambda: local_on(SQUARE_OF_NINE, 1.5), [1.0, 2.0]),
    "kernel": (some_kernel, None),
    "interpolated": (on_a_line, [1.3]),
    "streets": (along_three_streets, None),
    "spherical-laplace": (lambda: mdp.laplace(mdp.Haversine(), 10.0), ROME),
    "vector-laplace": (lambda: mdp.laplace(mdp.Mahalanobis.ellipse(2.0, 0.5, bearing=25.0), 1.0), NUMBERS),
    "gaussian-noise": (lambda: mdp.gaussian(mdp.Lp(2), 0.5), NUMBERS),
    "spherical-gaussian": (lambda: mdp.gaussian(mdp.Haversine(), 0.5), ROME),
    "projected-laplace": (lambda: mdp.laplace(mdp.Lp(2), 1.0, projection=[[0.6, 0.8]]), NUMBERS),
    "direction-noise": (lambda: mdp.laplace(mdp.Angular(), 3.0, dimension=3, normalise=True), CURVE),
    "hyperbolic-laplace": (lambda: mdp.laplace(mdp.Hyperbolic(), 2.0, dimension=2), [0.3, -0.2]),
    "bag-laplace": (lambda: mdp.laplace(mdp.metrics.Bags(mdp.Lp(2), 1), 1.0, dimension=3), CURVE),
    "outline-laplace": (lambda: mdp.laplace(mdp.Frechet(mdp.Lp(1), 1), 1.0, dimension=3), CURVE),
    "nearest": (lambda: mdp.madlib(SQUARE_OF_NINE, 1.0), [1.0, 2.0]),
    "product": (lambda: mdp.product(mdp.exponential(SQUARE_OF_NINE, 1.0), mdp.exponential(FOUR, 1.0)), None),
}
