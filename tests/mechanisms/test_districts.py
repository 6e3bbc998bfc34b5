"""Districts: the rows of some secrets, with the promise, the reports and the distances of the whole."""

import numpy as np
import pytest

import metricdp as mdp
from brute import leakage
from instances import local_on
from metricdp.errors import InvalidInput

RNG = np.random.default_rng(3)
EARTH = np.array([41.9, 12.48]) + RNG.uniform(-0.05, 0.05, (40, 2))
RING = np.column_stack([np.arange(40), np.roll(np.arange(40), -1)])
ROADS = mdp.FiniteSpace(
    np.arange(40.0)[:, None],
    mdp.ShortestPath(RING, RNG.uniform(0.2, 0.6, 40)),
    coordinates=EARTH,
    ground=mdp.Haversine(),
    columns=("lat", "lon"),
)


def far(place, places):
    """Great circles in kilometres, by the cosine rule."""
    a, b = np.radians(place), np.radians(places)
    cosine = np.sin(a[0]) * np.sin(b[:, 0]) + np.cos(a[0]) * np.cos(b[:, 0]) * np.cos(a[1] - b[:, 1])
    return 6371.009 * np.arccos(np.clip(cosine, -1, 1))


@pytest.mark.parametrize("build", [lambda: local_on(ROADS, 2.0, 1.0), lambda: mdp.exponential(ROADS, 1.0)])
def test_a_district_has_the_rows_the_reports_and_the_distances_of_the_whole(build):
    whole = build()
    part = whole.around([41.9, 12.48], 3.0)
    inside = np.flatnonzero(far(np.array([41.9, 12.48]), EARTH) <= 3.0)
    assert 5 < len(inside) < 30
    assert np.array_equal(part.inputs.coordinates, EARTH[inside])
    assert np.array_equal(part.matrix, whole.matrix[inside])
    assert part.outputs is whole.outputs
    assert part.guarantee == whole.guarantee
    # Ways may leave the district: the ring outside it is as long as it was.
    assert np.array_equal(part.inputs.distances, whole.inputs.distances[np.ix_(inside, inside)])
    assert leakage(part.matrix, part.inputs.distances)[0] <= 1.0
    assert mdp.audit(part).verdict == "holds"
    assert part.certificate.stated == ("loss", "lower_bound")
    assert "whole mechanism on 40 secrets" in part.certificate.note
    assert not part.loss_basis.known


def test_the_surroundings_of_nobody_are_refused_with_how_far_somebody_is():
    whole = local_on(ROADS, 2.0)
    away = far(np.array([43.0, 12.48]), EARTH).min()
    with pytest.raises(InvalidInput, match=f"no secret lies within 3 km of that place: the nearest is {away:.3f}"):
        whole.around([43.0, 12.48], 3.0)
    with pytest.raises(InvalidInput, match="radius"):
        whole.around([41.9, 12.48], 0.0)
    with pytest.raises(InvalidInput, match="2 columns"):
        whole.around([41.9], 1.0)
    with pytest.raises(InvalidInput, match="latitude"):
        whole.around([141.9, 12.48], 1.0)
