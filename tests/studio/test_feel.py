"""The room Feel: its factors hold for positions, and what is far away is not taken for near."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import metricdp as mdp
from metricdp.errors import InvalidInput
from metricdp.places import bundled_roads
from metricdp.studio import CROSSINGS, FACTOR_DISTANCES, SNAP, ReportClouds

EARTH = 6371.0088  # km
CENTRE = np.array([41.1496, -8.611])
SPAIN = np.array([40.4168, -3.7038])


def kilometres(one: Any, two: Any) -> Any:
    """The haversine formula, with nothing from the library."""
    a, b = np.radians(one), np.radians(two)
    half = np.sin((a - b) / 2.0) ** 2
    return 2.0 * EARTH * np.arcsin(np.sqrt(half[..., 0] + np.cos(a[..., 0]) * np.cos(b[..., 0]) * half[..., 1]))


def moved(places: Any, km: Any, rng: np.random.Generator) -> Any:
    """Places that lie so far away in any direction."""
    turn = rng.uniform(0.0, 2.0 * np.pi, len(places))
    north = np.degrees(np.asarray(km) / EARTH)[..., None]
    return places + north * np.stack([np.cos(turn), np.sin(turn) / np.cos(np.radians(places[:, 0]))], axis=1)


class Quick(ReportClouds):
    """The room with mechanisms that are quickly made: its table is read off any matrix in the same way."""

    def _optimal(self, epsilon: float) -> Any:
        return mdp.truncated_exponential(bundled_roads(nodes=CROSSINGS), epsilon)


@pytest.fixture(scope="module")
def feel() -> ReportClouds:
    return Quick()


def test_no_two_positions_are_told_apart_by_more_than_the_table_of_the_optimum_says(feel: ReportClouds) -> None:
    rng = np.random.default_rng(27)
    crossings = np.asarray(bundled_roads(nodes=CROSSINGS).coordinates)
    said = feel.optimum(CENTRE, 2.0, 0.2, 1)["factors"]
    matrix = np.asarray(feel._optimal(said_epsilon(2.0, 0.2)).matrix)
    rows = matrix / matrix.sum(axis=1, keepdims=True)
    assert [one["metres"] for one in said] == list(FACTOR_DISTANCES)
    exceeded = 0
    for metres, factor in ((one["metres"], one["factor"]) for one in said):
        near = crossings[rng.integers(len(crossings), size=4_000)]
        one = moved(near, rng.uniform(0.0, SNAP, len(near)), rng)
        two = moved(one, 0.999 * metres / 1000.0, rng)
        nearest = [kilometres(part[:, None], crossings[None]) for part in (one, two)]
        inside = (nearest[0].min(axis=1) <= SNAP) & (nearest[1].min(axis=1) <= SNAP)
        a, b = (away.argmin(axis=1)[inside] for away in nearest)
        worst = (rows[a] / rows[b]).max(axis=1)
        assert inside.sum() > 1_000
        assert worst.max() <= factor
        exceeded += int((worst > 1.001 * 2.0 ** (metres / 200.0)).sum())
    assert exceeded > 100  # and what holds between crossings by road would not hold between positions


def said_epsilon(factor: float, km: float) -> float:
    return float(np.log(factor) / km)


def test_the_factors_of_noise_are_those_of_straight_distances(feel: ReportClouds) -> None:
    for one in feel.noise(SPAIN, 2.0, 0.02, 3)["factors"]:
        assert one["factor"] == pytest.approx(2.0 ** (one["metres"] / 20.0))


def test_a_position_is_put_on_the_nearest_crossing_and_distances_are_measured_from_itself(feel: ReportClouds) -> None:
    crossings = np.asarray(bundled_roads(nodes=CROSSINGS).coordinates)
    code = int(kilometres(crossings, CENTRE).argmin())
    found = feel.optimum(CENTRE, 2.0, 0.2, 4)
    assert found["crossing"] == crossings[code].tolist()
    assert found["place"] == CENTRE.tolist()
    matrix = np.asarray(feel._optimal(said_epsilon(2.0, 0.2)).matrix)
    away = 1000.0 * kilometres(crossings, CENTRE)
    row = matrix[code] / matrix[code].sum()
    assert found["mean"] == pytest.approx(float(row @ away), rel=1e-4)
    assert row[away <= found["radii"]["half"] * 1.0001].sum() >= 0.5
    assert row[away < found["radii"]["half"] * 0.9999].sum() < 0.5


def test_a_place_that_is_far_from_these_streets_is_refused_and_never_put_on_one(feel: ReportClouds) -> None:
    with pytest.raises(InvalidInput, match=r"from the nearest crossing.*central Porto.*choose noise"):
        feel.optimum(SPAIN, 2.0, 0.2, 3)
    north = np.array([bundled_roads(nodes=CROSSINGS).coordinates[:, 0].max() + 0.003, CENTRE[1]])  # 330 m
    with pytest.raises(InvalidInput, match="up to 200 m from a crossing"):
        feel.optimum(north, 2.0, 0.2, 3)
    assert len(feel.noise(SPAIN, 2.0, 0.2, 3)["reports"]) == 3
