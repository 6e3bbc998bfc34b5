"""Snapping is charged what it costs: on roads, the way between crossings that one place can be put on."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pyarrow as pa
import pytest

import metricdp as mdp
from metricdp.errors import InvalidInput
from metricdp.tables import RowTally, Summary, TablePair, task_for

# Two crossings twenty metres apart across a river, and four kilometres by road.
RIVER = np.array([[41.0, -8.0], [41.00018, -8.0], [41.01, -8.0]])


def river(way: float = 4.0) -> mdp.FiniteSpace:
    roads = mdp.ShortestPath([[0, 2], [2, 1]], [way / 2, way / 2], 3)
    return mdp.FiniteSpace(np.arange(3), roads, coordinates=RIVER, ground=mdp.Haversine())


def log_ratio(mechanism, a, b, snap) -> float:
    """The largest log-ratio of the laws of two fixes, by the matrix alone."""
    first, second = mechanism.inputs.encode([a, b], snap=snap)
    rows = mechanism.matrix / mechanism.matrix.sum(axis=1, keepdims=True)
    return float(np.abs(np.log(rows[first]) - np.log(rows[second])).max())


def test_two_fixes_side_by_side_keep_the_promise_that_is_stated() -> None:
    mechanism = mdp.exponential(river(), 1.0)
    snap = 0.0105
    middle = RIVER[:2].mean(axis=0)
    fixes = [(middle[0] - 1.4e-6, -8.0), (middle[0] + 1.4e-6, -8.0)]  # 32 centimetres apart
    leaked = log_ratio(mechanism, *fixes, snap)
    assert leaked > 2 * 1.0 * snap  # what used to be stated, and is not true here
    promise = task_for(["lat", "lon"], mechanism, snap=snap).guarantee
    assert leaked <= promise.slack
    assert promise.slack == pytest.approx(1.0 * 4.0)


def test_the_summary_says_between_what_distances_are_meant() -> None:
    task = task_for(["lat", "lon"], mdp.exponential(river(), 1.0), snap=0.0105)
    pair = TablePair(source="a", target="b", names=["lat", "lon"], simulated=False)
    tally = RowTally(rows=1, written=1, bad=0, bad_rows=())
    summary = Summary.of(pair, task, tally, people=None, seconds=0.1)
    line = next(line for line in summary.lines() if "Snapping" in line)
    assert "one place to secrets 4 km apart" in line
    assert "1 x 4 = 4 to the slack" in line
    assert "between the secrets that values were moved to" in line
    assert summary.snap == 0.0105


def test_no_secret_within_reach_of_another_costs_nothing() -> None:
    mechanism = mdp.exponential(river(), 1.0)
    assert task_for(["lat", "lon"], mechanism, snap=0.009).guarantee.slack == 0  # no place reaches two crossings
    # Whatever two fixes are put on, the promise holds for the way between those.
    rng = np.random.default_rng(0)
    distances = mechanism.inputs.distances
    for _ in range(100):
        near = RIVER[rng.integers(0, 3, 2)] + rng.uniform(-5e-5, 5e-5, (2, 2))
        a, b = mechanism.inputs.encode(near, snap=0.009)
        assert log_ratio(mechanism, *near, 0.009) <= distances[a, b] + 1e-9


def test_where_the_ground_is_the_metric_it_is_twice_the_snap() -> None:
    cells = mdp.FiniteSpace([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], mdp.Lp(2))
    earth = mdp.FiniteSpace(RIVER, mdp.Haversine(), ground=mdp.Haversine())
    for space in (cells, earth):
        assert space.same_ground
        assert space.charge(0.05) == 0.1
        assert space.charge(0.0) == 0.0
    assert not river().same_ground
    other = mdp.FiniteSpace([[0.0], [1.0]], mdp.Lp(1), coordinates=[[5.0], [5.1]])
    assert not other.same_ground  # one metric on two scales
    assert other.charge(0.06) == 1.0


@pytest.mark.parametrize(
    "ground",
    [
        mdp.Haversine(),
        mdp.Haversine("mi"),
        mdp.Haversine("m"),
        mdp.Lp(1),
        mdp.Lp(np.inf),
        mdp.Mahalanobis([[2.0, 0.3], [0.3, 0.5]]),
    ],
)
def test_the_charge_is_the_largest_over_all_pairs_within_reach(ground) -> None:
    rng = np.random.default_rng(4)
    coordinates = rng.uniform(0, 1, (300, 2))
    distances = mdp.Precomputed(np.abs(np.subtract.outer(*[rng.permutation(300).astype(float)] * 2)))
    space = mdp.FiniteSpace(np.arange(300), distances, coordinates=coordinates, ground=ground)
    apart = [(float(ground(coordinates[i], coordinates[j])), i, j) for i, j in itertools.combinations(range(300), 2)]
    for snap in np.quantile([gap for gap, _, _ in apart], [0.0005, 0.01, 0.2]) / 2:
        truth = max(float(distances.distances[i, j]) for gap, i, j in apart if gap <= 2 * snap)
        assert space.charge(float(snap)) == truth
    assert space.charge(1e-9) == 0.0


def test_what_leaves_no_promise_is_refused_before_any_row_is_read() -> None:
    island = mdp.FiniteSpace(
        np.arange(3), mdp.ShortestPath([[0, 2], [2, 1]], [1.0, 1.0], 3), coordinates=RIVER, ground=mdp.Haversine()
    )
    assert island.charge(0.0105) == 2.0
    mechanism = mdp.exponential(river(40.0), 1.0)
    with pytest.raises(InvalidInput, match=r"snapping up to 0\.0105 km can put one place on secrets 40 km apart"):
        mdp.perturb(pa.table({"lat": [1.0], "lon": [2.0]}), mechanism, snap=0.0105)
    broken = mdp.ShortestPath([[0, 2]], [1.0], 3)
    lost = mdp.FiniteSpace(np.arange(3), broken, coordinates=RIVER, ground=mdp.Haversine())
    assert math.isinf(lost.charge(0.0105))


def test_of_a_product_the_part_that_is_snapped_is_charged_at_its_own_epsilon() -> None:
    words = mdp.FiniteSpace([[0.0], [1.0]], mdp.Lp(1), coordinates=["a", "b"])
    mechanism = mdp.product(mdp.exponential(river(), 0.5), mdp.exponential(words, 2.0))
    task = task_for(["lat", "lon", "word"], mechanism, columns=["lat", "lon", "word"], snap=0.0105)
    assert task.guarantee.slack == pytest.approx(0.5 * 4.0)
