"""Small files that describe a mechanism, read for Python as for the command: points, and what tables say of places."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import metricdp as mdp
from metricdp.errors import InvalidInput
from metricdp.tables import PlaceTable, PointFile, read_pairs, read_points

TOWNS = "id,lat,lon,town,people\na,41.10,-8.60,P,3\nb,41.11,-8.60,P,4\nc,41.10,-8.60,P,5\nd,41.30,-8.70,Q,0\n"


@pytest.fixture
def towns(tmp_path: Path) -> PointFile:
    place = tmp_path / "towns.csv"
    place.write_text(TOWNS)
    return read_points(str(place))


def test_rows_that_repeat_a_point_are_one_place_and_their_numbers_add_up(towns: PointFile) -> None:
    found = towns.distinct()
    assert towns.geographic
    assert found.points.tolist() == [[41.1, -8.6], [41.11, -8.6], [41.3, -8.7]]
    assert found.rows is not None
    assert found.rows.tolist() == [0, 1, 0, 2]
    assert found.sums("people").tolist() == [8.0, 4.0, 0.0]
    assert found.labels("town") == ["P", "P", "Q"]
    assert "1 of 4" in found.notes[0]
    assert found.space().metric == mdp.Haversine()
    assert found.distinct() is found
    with pytest.raises(InvalidInput, match="repeats a point with another 'id'"):
        found.labels("id")


def test_degrees_are_not_taken_for_lengths(towns: PointFile) -> None:
    with pytest.raises(InvalidInput, match="holds degrees"):
        towns.space("l2")


def test_shares_of_places_are_read_by_where_rows_lie_or_in_their_order(towns: PointFile, tmp_path: Path) -> None:
    file = towns.distinct()
    table = PlaceTable(file.space(), file)
    visits = tmp_path / "visits.csv"
    visits.write_text("lat,lon\n41.1,-8.6\n41.1001,-8.6\n41.3,-8.7\n60,0\n")
    assert table.shares(str(visits)) == pytest.approx(np.array([2, 0, 1]) / 3)
    assert any("left out" in note for note in table.notes)
    visits.write_text("count\n1\n2\n3\n4\n")  # one a row of the file of points
    assert table.shares(str(visits)) == pytest.approx(np.array([4, 2, 4]) / 10)


def test_edges_name_points_or_rows(towns: PointFile, tmp_path: Path) -> None:
    edges = tmp_path / "edges.csv"
    edges.write_text("from,to\na,b\nc,d\n")
    file = towns.distinct()
    assert PlaceTable(file.space(), file).edges(str(edges))[0].tolist() == [[0, 1], [0, 2]]
    edges.write_text("from,to\n0,1\n1,7\n")
    with pytest.raises(InvalidInput, match=r"row 1 leads to a point that is not there; .*from 0 to 2"):
        PlaceTable(file.space()).edges(str(edges))
    edges.write_text("from,to\nP,Q\n")
    assert read_pairs(str(edges), ["P", "Q"]) == [["P", "Q"]]
