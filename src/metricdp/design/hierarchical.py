"""Several steps down a tree of places: each step chooses among few, and their budgets add up."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from metricdp.arrays import Floats, Integers, as_positive
from metricdp.auditing.exact import float_leakage
from metricdp.design._certify import certify, safe_epsilon
from metricdp.design.components import build_by_component, is_disconnected
from metricdp.errors import InvalidInput
from metricdp.mechanisms import MatrixMechanism
from metricdp.mechanisms.kernel_distribution import LARGEST_EXPONENT
from metricdp.problems import Problem

TRIES = 12  # at spending what the composition leaves over
MOST = 16.0  # times their share that budgets are tried at


@dataclass(frozen=True, eq=False)
class Node:
    """A set of places, divided among its children; a single place has none."""

    places: Integers
    centre: int
    depth: int
    children: tuple[Node, ...] = ()

    def inner(self) -> Iterator[Node]:
        """Yield the nodes that are divided, parents first."""
        if self.children:
            yield self
            for child in self.children:
                yield from child.inner()


def hierarchical(problem: Problem, *, branching: int = 8, growth: float = 1.0) -> MatrixMechanism:
    """Build a mechanism that walks down a tree of places: at each node it draws one of few children.

        Pr[y | x] = product over the nodes v on the way to y of  n_c exp(-a_v d(x, m_c)) / sum over siblings,

    with m_c the middle of child c and n_c its number of places. A step is an exponential mechanism from ALL secrets to
    the children, so it keeps 2 a_v d in the metric itself, and the steps of a way add up: with 2 a_v the share of v's
    level in epsilon the whole keeps epsilon d. Shares are 1 : growth : growth^2 ... from the coarsest level on. What
    the exact leak leaves over, since no pair is at its worst in every step, is spent by scaling all of them.

    The published mechanism moves x to the centre of its cell before each step, and to a random cell of the chosen one
    where it lies outside. Two secrets on either side of a border then differ by the distance of the centres, not by
    theirs, so that it does not keep epsilon times the distance.

    References: Ahuja, Ghinita and Shahabi (2019).
    """
    started = time.perf_counter()
    if is_disconnected(problem):
        return build_by_component(problem, hierarchical, inside=True, branching=branching, growth=growth)
    if problem.radius is not None or problem.outputs is not problem.inputs:
        raise InvalidInput(
            "`hierarchical` protects all pairs and reports the secrets: leave `radius` and `outputs` out."
        )
    if branching < 2:
        raise InvalidInput(f"`branching` must be at least 2, got {branching}.")
    distances = problem.inputs.distances
    tree = _tree(distances, int(branching))
    nodes = list(tree.inner())
    depth = max((node.depth for node in nodes), default=0) + 1
    shares = as_positive(growth, "growth") ** np.arange(depth)
    goal = safe_epsilon(problem.epsilon, distances)
    rates = goal / 2.0 * shares / shares.sum()
    # Every scale that is taken was looked at; one, which the composition proves, is where it starts.
    low, high, matrix = 1.0, MOST, _leaf_distribution(tree, distances, rates)
    for _ in range(TRIES if len(nodes) > 0 else 0):
        middle = (low * high) ** 0.5
        tried = _leaf_distribution(tree, distances, middle * rates)
        if float_leakage(tried, distances) <= goal:
            low, matrix = middle, tried
        else:
            high = middle
    method = f"hierarchical, {len(nodes)} steps on {depth} levels, budgets {low:.3f} times their share"
    return certify(problem, matrix, method=method, started=started)


def _tree(distances: Floats, branching: int) -> Node:
    """Divide places by centres that lie far apart, each place with the nearest, until they are single."""

    def grow(places: Integers, depth: int) -> Node:
        apart = distances[np.ix_(places, places)]
        middle = int(apart.sum(axis=1).argmin())
        if len(places) == 1:
            return Node(places, int(places[0]), depth)
        centres = [middle]
        away = apart[middle].copy()
        while len(centres) < min(branching, len(places)):
            away[centres] = -1.0  # places at distance zero are told apart too, last
            centres.append(int(away.argmax()))
            away = np.minimum(away, apart[centres[-1]])
        nearest = apart[centres].argmin(axis=0)
        nearest[centres] = np.arange(len(centres))
        parts = (places[nearest == one] for one in range(len(centres)))
        return Node(places, int(places[middle]), depth, tuple(grow(part, depth + 1) for part in parts))

    return grow(np.arange(len(distances)), 0)


def _leaf_distribution(tree: Node, distances: Floats, rates: Floats) -> Floats:
    """Return the distribution of the places that walks end at, with these rates on the levels."""
    distribution = np.ones((len(distances), len(distances)))
    reached = {id(tree): np.ones(len(distances))}
    limit = LARGEST_EXPONENT / len(rates)  # min(d, a constant) is a metric too, and no probability becomes zero
    for node in tree.inner():
        apart = np.minimum(distances[:, [child.centre for child in node.children]] * rates[node.depth], limit)
        sizes = np.array([len(child.places) for child in node.children], dtype=np.float64)
        step = sizes * np.exp(apart.min(axis=1, keepdims=True) - apart)
        step /= step.sum(axis=1, keepdims=True)
        arrived = reached.pop(id(node))
        for at, child in enumerate(node.children):
            if child.children:
                reached[id(child)] = arrived * step[:, at]
            else:
                distribution[:, child.centre] = arrived * step[:, at]
    return distribution
