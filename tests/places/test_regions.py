"""Scales of places from circles, tiles and lists."""

import numpy as np
import pytest

import metricdp as mdp
from metricdp.errors import InvalidInput

PLACES = mdp.FiniteSpace([[41.0, 12.0], [41.01, 12.0], [41.1, 12.1], [41.2, 12.2]], mdp.Haversine())


def test_the_smallest_scale_of_all_regions_around_a_place_counts():
    circles = {"lat": [41.0, 41.01], "lon": [12.0, 12.0], "radius": [0.5, 2.0], "scale": [0.2, 0.5]}
    assert mdp.places.region_scale(PLACES, circles).tolist() == [0.2, 0.5, 1.0, 1.0]  # 1.1 km between the first two
    tiles = {
        "south": [41.05, 0.0],
        "west": [12.05, 0.0],
        "north": [41.1, 90.0],
        "east": [12.1, 90.0],
        "scale": [0.3, 0.9],
    }
    assert mdp.places.region_scale(PLACES, tiles).tolist() == [0.9, 0.9, 0.3, 0.9]
    assert mdp.places.region_scale(PLACES, {"scale": [1.0, 0.1, 1.0, 1.0]}).tolist() == [1.0, 0.1, 1.0, 1.0]
    plane = mdp.FiniteSpace([[0.0, 0.0], [3.0, 0.0]], mdp.Lp(2), columns=("x", "y"))
    assert mdp.places.region_scale(plane, {"x": [2.5], "y": [0.0], "radius": [1.0], "scale": [0.4]}).tolist() == [
        1.0,
        0.4,
    ]


def test_a_category_has_one_scale_and_places_without_one_count_in_full():
    regions = {"category": ["clinic", "school"], "scale": [0.2, 0.6]}
    kinds = ["school", None, "clinic", "shop"]
    assert mdp.places.region_scale(PLACES, regions, categories=kinds).tolist() == [0.6, 1.0, 0.2, 1.0]
    for wrong, found, words in (
        (regions, None, "belong together"),
        ({"scale": [0.5]}, kinds, "belong together"),
        (regions, kinds[:3], "one a place, 4, got 3"),
        ({"category": ["clinic", "shcool"], "scale": [0.2, 0.6]}, kinds, "'shcool'.*Did you mean 'school'"),
        ({"category": ["shop", "shop"], "scale": [0.2, 0.6]}, kinds, "every `category` once"),
        ({"category": ["shop"], "scale": [0.2], "radius": [1.0]}, kinds, "the columns category and scale"),
    ):
        with pytest.raises(InvalidInput, match=words):
            mdp.places.region_scale(PLACES, wrong, categories=found)


def test_distances_that_count_less_are_not_called_kilometres():
    made = mdp.places.scaled(PLACES, mdp.places.region_scale(PLACES, {"scale": [1.0, 0.5, 1.0, 1.0]}))
    assert made.unit == "scaled km"
    assert np.all(made.distances <= PLACES.distances)
    assert made.distances[0, 1] == pytest.approx(0.5 * PLACES.distances[0, 1])


@pytest.mark.parametrize(
    ("regions", "words"),
    [
        ({"lat": [41.0]}, "must have a column `scale`"),
        ({"scale": [0.0, 1.0, 1.0, 1.0]}, "above 0 and at most 1"),
        ({"scale": [2.0, 1.0, 1.0, 1.0]}, "above 0 and at most 1"),
        ({"scale": [0.5]}, "one number a place, 4, got 1"),
        ({"lat": [41.0], "lon": [12.0], "scale": [0.5]}, "lat, lon and radius, or south, west, north, east"),
        ({"lat": [41.0], "lon": [12.0, 13.0], "radius": [1.0], "scale": [0.5]}, "columns of equal length"),
    ],
)
def test_regions_that_say_nothing_are_refused(regions, words):
    with pytest.raises(InvalidInput, match=words):
        mdp.places.region_scale(PLACES, regions)
