"""Policies at the command line: a table of edges, or a usual one by name; and what people get wrong."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import metricdp as mdp
from scripts import main

AREAS = (
    "id,lat,lon,town\na,41.10,-8.60,P\nb,41.11,-8.60,P\nc,41.12,-8.60,P\n"
    "d,41.10,-8.62,Q\ne,41.11,-8.62,Q\nf,41.3,-8.7,R\n"
)
POINTS = "id,lat,lon\na,41.10,-8.60\nb,41.11,-8.60\nc,41.12,-8.60\nd,41.10,-8.62\ne,41.11,-8.62\nf,41.30,-8.70\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("cells.csv").write_text(POINTS)
    Path("edges.csv").write_text("from,to\na,b\nb,c\nd,e\n")
    return tmp_path


def design(line: str) -> int:
    return main(f"design --points cells.csv --builder exponential {line} -o out.mdp".split())


def test_a_table_of_edges_says_what_is_hidden_and_what_was_added_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert design("--policy edges.csv --epsilon 1/hop --isolated join --apart disclose --loss ground") == 0
    said = capsys.readouterr()
    assert "given 1 edge between nearest places: 2-5." in said.err
    assert "falls into 2 parts, the largest of 4 places: reports may reveal the part" in said.err
    assert (
        "only between secrets of one part of the policy (up to 3 hops apart): reports may reveal the part" in said.out
    )
    assert "The loss is the distance from the truth to the report on the ground, in km." in said.out
    distribution = mdp.load("out.mdp")
    assert distribution.inputs.distances[0].tolist()[:3] == [0.0, 1.0, 2.0]
    assert not distribution.matrix[np.ix_([0, 1, 2, 5], [3, 4])].any()
    assert main(["audit", "out.mdp"]) == 0
    assert main(["inspect", "out.mdp"]) == 0
    assert "a graph of 6 places and 4 edges" in capsys.readouterr().out


def test_edges_may_have_lengths_and_rows_for_names() -> None:
    Path("cells.csv").write_text(POINTS.replace("id,", "street,"))
    Path("edges.csv").write_text("u,v,length\n0,1,1.5\n1,2,2\n0,3,1\n3,4,4\n4,5,9\n")
    assert design("--policy edges.csv --epsilon 1/km --columns lat,lon") == 0
    distribution = mdp.load("out.mdp")
    assert distribution.guarantee.unit == "km"
    assert distribution.inputs.distances[2].tolist() == [3.5, 2.0, 0.0, 4.5, 8.5, 17.5]


def test_usual_policies_have_names() -> None:
    grid = "design --grid 41.88,12.45,41.90,12.48 --cell 1km --epsilon 1/hop --builder exponential -o cells.mdp"
    for name, longest in (("neighbours", 4), ("neighbours:8", 2), ("within:1.1km", 4), ("nearest:8", 1)):
        assert main([*grid.split(), "--policy", name, "--overwrite"]) == 0
        found = mdp.load("cells.mdp").inputs
        assert (len(found), found.distances.max()) == (9, longest)
    roads = "design --roads porto --nodes 30 --policy streets --epsilon 1/hop --builder exponential -o roads.mdp"
    assert main(roads.split()) == 0
    assert mdp.load("roads.mdp").guarantee.unit == "hop"


@pytest.mark.parametrize(
    ("edges", "line", "said"),
    [
        ("from,to\na,x\n", "", "'edges.csv': the edge in row 0 leads to a point that is not there; an end is the id"),
        ("from,to\na,b\nc,c\n", "", "the edge in row 1 joins a point to itself"),
        ("from,to\na,b\nb,c\nb,a\n", "", "the edges in rows 0 and 2 join the same two points"),
        ("a,b\n1,2\n", "", "an edge has the columns from and to"),
        ("from,to\n", "", "has no rows"),
        ("from,to\na,b\n", "", "the places 2, 3, 4, 5 have no edge"),
        ("from,to,length\na,b,-1\n", "", "the edge in row 0 has no length above 0"),
        ("from,to,length\na,b,far\n", "", "length"),
        ("from,to\na,b\nb,c\nd,e\n", "--isolated join", "falls into 2 parts"),
    ],
    ids=str,
)
def test_a_bad_table_of_edges_gets_a_sentence(
    edges: str, line: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("edges.csv").write_text(edges)
    assert design(f"--policy edges.csv --epsilon 1/hop {line}") == 2
    assert said in capsys.readouterr().err
    assert not Path("out.mdp").exists()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--policy neighbours --epsilon 1/hop", "belongs to --grid"),
        ("--policy streets --epsilon 1/hop", "belongs to --roads"),
        ("--policy everybody --epsilon 1/hop", "--policy must be a file of edges"),
        ("--policy nearest:two --epsilon 1/hop", "say how many nearest places"),
        ("--policy within:3 --epsilon 1/hop", "within:3km"),
        ("--policy edges.csv --epsilon 1 --isolated join --apart join", "such as --epsilon 1/hop"),
        ("--isolated join --epsilon 1/km", "--isolated says more about a policy: give --policy"),
        ("--policy areas --epsilon 1/hop", "say which column names the areas, such as areas:district"),
        ("--policy areas:town --epsilon 1/hop", "no column 'town'. The columns are 'id', 'lat', 'lon'"),
        ("--policy nearest:2 --bordering 1km --epsilon 1/hop", "it belongs to --policy areas:COLUMN"),
        ("--policy within:1m --epsilon 1/hop", "no two places are that near"),
    ],
    ids=str,
)
def test_a_policy_that_does_not_fit_gets_a_sentence(line: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert design(line) == 2
    assert said in capsys.readouterr().err


def test_a_column_of_areas_hides_places_of_one_area_and_tells_areas_apart_when_asked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("cells.csv").write_text(AREAS)
    assert design("--policy areas:town --epsilon 1/hop") == 2
    assert "place 5 has no edge of the policy, so that reports would tell it exactly" in capsys.readouterr().err
    assert design("--policy areas:town --epsilon 1/hop --isolated join") == 2
    assert "falls into 2 parts that no edge joins" in capsys.readouterr().err
    assert design("--policy areas:town --epsilon 1/hop --isolated disclose --apart disclose") == 0
    assert "falls into 3 parts, the largest of 3 places and 1 of one place" in capsys.readouterr().err
    distribution = mdp.load("out.mdp")
    town = np.array(["P", "P", "P", "Q", "Q", "R"])
    assert np.array_equal(distribution.matrix > 0, town[:, None] == town[None])
    assert distribution.guarantee.radius == 1.0
    assert design("--policy areas:town --lengths distance --epsilon 1/km --isolated disclose --apart disclose "
                  "--overwrite") == 0  # fmt: skip
    inside = mdp.load("out.mdp")
    assert inside.guarantee.unit == "km"
    assert inside.inputs.distances[0, 2] == pytest.approx(2.224, abs=1e-3)


def test_neighbouring_areas_are_hidden_from_each_other_by_a_distance_or_a_table(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("cells.csv").write_text(AREAS.replace("lat,lon", "y,x"))  # coordinates are what is left beside the names
    for bordering in ("0.1", "borders.csv"):
        Path("borders.csv").write_text("from,to\nP,Q\n")
        line = f"--policy areas:town --bordering {bordering} --epsilon 1/hop --isolated join --overwrite"
        assert design(line) == 0
        found = mdp.load("out.mdp").inputs.distances
        assert found[:5, :5].max() == 1.0
        assert found[5].tolist() == [2.0, 2.0, 1.0, 2.0, 2.0, 0.0] or found[5].max() == 2.0
    capsys.readouterr()
    for text, said in (
        ("from,to\nP,X\n", "'borders.csv': row 0 names the area 'X', and no place lies in it"),
        ("from,to\nP,P\n", "'borders.csv': row 0 names one area twice"),
        ("from,to\n", "'borders.csv' has no rows"),
        ("one,two\nP,Q\n", "an edge has the columns from and to"),
    ):
        Path("borders.csv").write_text(text)
        assert design("--policy areas:town --bordering borders.csv --epsilon 1/hop --overwrite") == 2
        assert said in capsys.readouterr().err
    assert design("--policy areas:town --bordering 0.001 --epsilon 1/hop --isolated join --apart join --overwrite") == 0
    assert "no two areas lie within 0.001 of each other" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("points", "said"),
    [
        (AREAS.replace(",Q\ne", ",\ne"), "row 3 has no 'town'"),
        (AREAS + "g,41.3,-8.7,P\n", "row 6 repeats a point with another 'town'"),
        ("lat,lon,town\n1,2,a\n1.1,2,b\n1.2,2,c\n", "every place has a 'town' of its own"),
        ("lat,lon,town\n", "has no rows"),
    ],
    ids=["empty", "twice", "alone", "none"],
)
def test_a_bad_column_of_areas_gets_a_sentence(points: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("cells.csv").write_text(points)
    assert design("--policy areas:town --epsilon 1/hop --force") == 2
    assert said in capsys.readouterr().err
    grid = "design --grid 41.88,12.45,41.90,12.48 --cell 1km --epsilon 1/hop --policy areas:town -o cells.mdp"
    assert main(grid.split()) == 2
    assert "it belongs to --points" in capsys.readouterr().err


def test_builders_are_compared_under_a_policy_with_the_bound_of_its_parts(capsys: pytest.CaptureFixture[str]) -> None:
    Path("cells.csv").write_text(AREAS)
    line = (
        "compare --points cells.csv --policy areas:town --isolated disclose --apart disclose --epsilon 1/hop "
        "--loss distance,ground --builders exponential,optimal,laplace,gaussian -o found.csv"
    )
    assert main(line.split()) == 0
    said = capsys.readouterr()
    assert "between places of one part of the policy: reports may reveal the part" in said.out
    assert "noise may end in another part of the policy" in said.err
    assert "gaussian: its guarantee is concentrated" in said.err
    with Path("found.csv").open() as file:
        rows = {(row["builder"], row["measure"]): row for row in csv.DictReader(file)}
    assert set(rows) == {(b, m) for b in ("exponential", "optimal") for m in ("distance", "ground")} | {
        ("laplace", "ground")
    }
    # three places one hop from each other, two, and one: 2 / (e + 2) and 1 / (e + 1) hops, by hand
    best = (3 * 2 / (np.e + 2) + 2 / (np.e + 1)) / 6
    for name in ("exponential", "optimal"):
        assert float(rows[name, "distance"]["loss"]) == pytest.approx(best, rel=1e-3)
    for row in rows.values():
        assert float(row["lower_bound"]) <= float(row["loss"])
    # noise keeps epsilon for a hop of 2.2 km, the longest edge
    assert float(rows["laplace", "ground"]["noise_epsilon"]) == pytest.approx(1 / 2.224, rel=1e-3)


def test_a_report_from_another_part_has_no_distance_in_hops(capsys: pytest.CaptureFixture[str]) -> None:
    Path("cells.csv").write_text("lat,lon,town\n41.1,-8.6,P\n41.2,-8.6,P\n41.101,-8.6,Q\n41.199,-8.6,Q\n")
    losses = np.array([[1, 1, 0, 1], [1, 1, 1, 0], [0, 1, 1, 1], [1, 0, 1, 1]])
    np.savetxt("loss.csv", losses, delimiter=",", fmt="%d")
    line = "design --points cells.csv --policy areas:town --apart disclose --epsilon 1/hop --loss loss.csv -o out.mdp"
    assert main(line.split()) == 0
    said = capsys.readouterr().out
    assert "hops from the truth" not in said
    assert mdp.load("out.mdp").matrix[0, 2] > 0.5


def test_tables_are_protected_under_a_policy_and_charged_to_its_own_account(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("cells.csv").write_text(AREAS)
    assert design("--policy areas:town --epsilon 1/hop --isolated disclose --apart disclose") == 0
    Path("rows.csv").write_text("who,lat,lon\nanna,41.1001,-8.6\nben,41.11,-8.62\nanna,41.3,-8.7\n")
    capsys.readouterr()
    line = "perturb rows.csv --mechanism out.mdp --snap 100m --id who --budget 2/hop --ledger books.db -o out.csv"
    assert main(line.split()) == 0
    assert "Snapping up to 100 m can move one place to secrets 0 hops apart" in capsys.readouterr().out
    with Path("out.csv").open() as file:
        reports = [(float(row["lat"]), float(row["lon"])) for row in csv.DictReader(file)]
    assert reports[0][1] == -8.6  # in town P
    assert reports[1][1] == -8.62
    assert reports[2] == (41.3, -8.7)  # told, as asked
    assert main(line.replace("out.csv", "again.csv").split()) == 2
    assert "the budget of 2/hop ever is spent" in capsys.readouterr().err
    assert main(["budget", "show", "books.db", "--person", "anna"]) == 0
    assert "policy." in capsys.readouterr().out
    # another graph on the same places is another promise, with a budget of its own
    assert design("--policy nearest:2 --epsilon 1/hop --overwrite --apart join") == 0
    assert main(line.replace("out.csv", "other.csv").split()) == 0
