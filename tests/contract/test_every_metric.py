"""One list of properties for EVERY metric: what the package asks of it is answered, or refused in a sentence."""

from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args

import flint
import numpy as np
import pytest

import metricdp as mdp
from metricdp import plugins
from metricdp.artifacts import dumps, loads
from metricdp.errors import InvalidInput
from metricdp.ledger import accounts_for
from metricdp.mechanisms import Mechanism
from metricdp.metrics import (
    METRICS,
    MetricKind,
    Sort,
    distance_phrase,
    measuring_effort,
    pairwise,
    route_phrase,
    tree_of,
)
from metricdp.registry import Schema

ROADS = mdp.ShortestPath([[0, 1], [1, 2], [2, 0]], [1.0, 2.0, 1.5])
RAILS = mdp.ShortestPath([[0, 1], [2, 3]], [1.0, 2.0], nodes=4)
PLANE = np.array([[0.0, 0.0], [3.0, 4.0], [0.25, -1.5]])
LINE = np.array([[0.0], [1.0], [2.0]])
METRIC: dict[str, tuple[Any, Any]] = {  # one of every metric, and points of it
    "Lp": (mdp.Lp(2), PLANE),
    "Mahalanobis": (mdp.Mahalanobis([[2.0, 0.5], [0.5, 1.0]]), PLANE),
    "Haversine": (mdp.Haversine(), np.array([[41.1, -8.6], [41.2, -8.5], [-33.0, 151.0]])),
    "ShortestPath": (ROADS, LINE),
    "StreetPath": (mdp.metrics.StreetPath(ROADS), np.array([[0.0, 0.5], [1.0, 0.25], [2.0, 1.0]])),
    "PolicyGraph": (mdp.metrics.PolicyGraph(RAILS, 9.0), LINE),
    "Hamming": (mdp.Hamming(), PLANE),
    "Levenshtein": (mdp.Levenshtein(), np.array(["cat", "cot", "dog"])[:, None]),
    "Precomputed": (mdp.Precomputed([[0, 1, 2], [1, 0, 1], [2, 1, 0]]), LINE),
    "Angular": (mdp.Angular(), PLANE + 1.0),
    "Hyperbolic": (mdp.Hyperbolic(), PLANE / 9.0),
    "Temporal": (mdp.Temporal(24.0, "h"), LINE),
    "Weighted": (mdp.Weighted([(mdp.Lp(1), [0], 2.0), (mdp.Temporal(), [1], 0.5)]), PLANE),
    "Wasserstein": (mdp.Wasserstein([0.0, 1.0, 2.5]), np.eye(3)),
    "WordMovers": (mdp.WordMovers([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]]), np.eye(3)),
    "Frechet": (mdp.Frechet(mdp.Lp(2), 1), PLANE),
    "Bags": (mdp.metrics.Bags(mdp.Lp(2), 1), PLANE),
}
ASKED = sorted({one.name for one in fields(MetricKind)} - {one.name for one in fields(Schema)})
PLUGIN = Path(__file__).parents[2] / "examples" / "extend" / "metric.py"


@dataclass(frozen=True)
class Undeclared:
    """A metric that nobody declared."""

    unit: str = ""

    def __call__(self, a: Any, b: Any, /) -> Any:
        return np.abs(np.asarray(a, float) - np.asarray(b, float)).sum(axis=-1)

    def check(self, points: Any, /) -> None:
        pass


def is_norm(metric: Any, points: Any, apart: Any, found: Any) -> bool:
    norm = found(metric)
    size = (np.abs(norm.whiten(points[0] - points[1])) ** norm.exponent).sum() ** norm.root
    return bool(np.isclose(apart[0, 1], size)) and norm.stretch() > 0 and norm.fits(points.shape[1])


def is_sum(metric: Any, points: Any, apart: Any, found: Any) -> bool:
    one, other = points[:2]
    terms = [weight * part(one[list(group)], other[list(group)]) for part, group, weight in found(metric)]
    return bool(np.isclose(apart[0, 1], sum(terms)))


def is_tree(metric: Any, points: Any, apart: Any, found: Any) -> bool:
    tree = found(metric)
    rows = tree.rows(points)
    away = tree.away(mdp.Lp(tree.exponent)(rows[0], rows[1]))
    return bool(np.isclose(away, apart[0, 1])) and tree.half_cell(np.ones(2)) > 0


def is_ball(metric: Any, points: Any, apart: Any, found: Any) -> bool:
    with flint.ctx.workprec(200):
        return bool(found(metric, points[0], points[1]) >= flint.arb(float(apart[0, 1])) - 1e-30)


def are_balls(metric: Any, points: Any, apart: Any, found: Any) -> bool:
    balls = found(metric, points, 0, 100)
    return balls is None or np.allclose([float(ball) for ball in balls][1:], apart[0, 1:])


def is_measured(metric: Any, points: Any, apart: Any, found: Any) -> bool:
    known = found(metric, points)
    return np.allclose(known.rows(np.arange(3)), apart, atol=1e-9) and 0 <= known.relative < 1e-9


def is_account(metric: Any, points: Any, apart: Any, found: Any) -> bool:
    one = found(metric, points.shape[1])
    return one is None or (isinstance(one[0], str) and isinstance(one[2], Fraction))


def builds(build: Any) -> Any:
    def check(metric: Any, points: Any, apart: Any, found: Any) -> bool:
        made = build(metric, 3.0, dimension=points.shape[1])
        return isinstance(made, Mechanism) and made.guarantee.metric == metric

    return check


RIGHT: dict[str, Any] = {  # of a facet that was found, of a metric, three points and their distances
    "points": lambda metric, points, apart, found: found in get_args(Sort),
    "norm": is_norm,
    "parts": is_sum,
    "graph": lambda metric, points, apart, found: found(metric).nodes >= len(points),
    "policy": lambda metric, points, apart, found: found(metric).apart > 0,
    "tree": is_tree,
    "distance_phrase": lambda metric, points, apart, found: " " in distance_phrase(metric),
    "route_phrases": lambda metric, points, apart, found: route_phrase(metric) in found and len(found) == 2,
    "point_rule": lambda metric, points, apart, found: " " in found,
    "extra": lambda metric, points, apart, found: len(found) == 2,
    "distance_ball": is_ball,
    "distance_balls": are_balls,
    "zero_distance": lambda metric, points, apart, found: not found(metric, points[0], points[1]),
    "bounded_distances": is_measured,
    "account": is_account,
    "scale": lambda metric, points, apart, found: found in ("class", "length", "count"),
    "identity": lambda metric, points, apart, found: all(isinstance(part, bytes) for part in found(metric)),
    "noise": lambda metric, points, apart, found: isinstance(found, type),
    "laplace": builds(mdp.laplace),
    "gaussian": builds(mdp.gaussian),
}


def asked(name: str, metric: Any, points: Any) -> None:
    """Ask for a facet: an answer of its kind, or a refusal that is a sentence."""
    if METRICS.has(name, metric):
        assert RIGHT[name](metric, points, pairwise(metric, points, points), METRICS.facet(name, metric))
        return
    with pytest.raises(InvalidInput, match=r"^[^ ]+( [^ ]+){5,}\.$"):
        METRICS.facet(name, metric)


def test_no_metric_is_left_out() -> None:
    assert set(METRIC) == set(METRICS.names)
    assert set(RIGHT) == set(ASKED)


@pytest.mark.parametrize("facet", ASKED)
@pytest.mark.parametrize("name", sorted(METRIC))
def test_every_metric_answers_for_every_facet_or_refuses_with_a_sentence(name: str, facet: str) -> None:
    asked(facet, *METRIC[name])


@pytest.mark.parametrize("name", sorted(METRIC))
def test_every_metric_measures_is_stored_and_is_charged_in_an_account(name: str) -> None:
    metric, points = METRIC[name]
    metric.check(points)
    assert measuring_effort(metric, 3, 3, points.shape[1]).steps > 0
    assert all(account.name for account in accounts_for(metric, dimension=points.shape[1]))
    if name == "StreetPath":
        return  # its places cannot be listed
    space = mdp.FiniteSpace(points, metric, ground=None if tree_of(metric) is None else metric)
    made = mdp.from_matrix(space, np.full((3, 3), 1 / 3), epsilon=1.0)
    again: Any = loads(dumps(made)).inputs.metric
    np.testing.assert_array_equal(pairwise(again, points, points), pairwise(metric, points, points))


def test_the_plugin_of_one_file_answers_too() -> None:
    metric = plugins.load(str(PLUGIN)).Walking()
    points = np.array([[0.0, 0.0, 0.0], [8.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    for facet in ASKED:
        asked(facet, metric, points)
    assert METRICS.has("distance_phrase", metric)


def test_what_nobody_declared_is_refused_for_every_facet_and_measures_all_the_same() -> None:
    metric = Undeclared()
    for facet in ASKED:
        assert not METRICS.has(facet, metric)
        with pytest.raises(InvalidInput, match=r"\.$"):
            METRICS.facet(facet, metric)
    assert distance_phrase(metric) == "in the distance of Undeclared"
    assert mdp.exponential(mdp.FiniteSpace(PLANE, metric), 1.0).guarantee.along == ""


def test_a_class_that_extends_one_answers_as_that_one() -> None:
    class Mine(mdp.Lp):
        """The same distance under another name."""

    assert distance_phrase(Mine(1)) == distance_phrase(mdp.Lp(1))
    assert mdp.laplace(Mine(1), 2.0).guarantee.metric.p == 1.0
