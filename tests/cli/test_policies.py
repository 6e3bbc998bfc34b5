"""Policies at the command line: a table of edges, or a usual one by name; and what people get wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import metricdp as mdp
from metricdp import cli

POINTS = "id,lat,lon\na,41.10,-8.60\nb,41.11,-8.60\nc,41.12,-8.60\nd,41.10,-8.62\ne,41.11,-8.62\nf,41.30,-8.70\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("cells.csv").write_text(POINTS)
    Path("edges.csv").write_text("from,to\na,b\nb,c\nd,e\n")
    return tmp_path


def design(line: str) -> int:
    return cli.main(f"design --points cells.csv --builder exponential {line} -o out.mdp".split())


def test_a_table_of_edges_says_what_is_hidden_and_what_was_added_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert design("--policy edges.csv --epsilon 1/hop --isolated join --apart disclose --loss ground") == 0
    said = capsys.readouterr()
    assert "given an edge between nearest places: 2-5." in said.err
    assert "falls into 2 parts, the largest of 4 places and 0 of one place: reports may reveal the part" in said.err
    assert (
        "only between secrets of one part of the policy (up to 3 hops apart): reports may reveal the part" in said.out
    )
    assert "The loss is the distance from the truth to the report on the ground, in km." in said.out
    law = mdp.load("out.mdp")
    assert law.inputs.distances[0].tolist()[:3] == [0.0, 1.0, 2.0]
    assert not law.matrix[np.ix_([0, 1, 2, 5], [3, 4])].any()
    assert cli.main(["audit", "out.mdp"]) == 0


def test_edges_may_have_lengths_and_rows_for_names() -> None:
    Path("cells.csv").write_text(POINTS.replace("id,", "street,"))
    Path("edges.csv").write_text("u,v,length\n0,1,1.5\n1,2,2\n0,3,1\n3,4,4\n4,5,9\n")
    assert design("--policy edges.csv --epsilon 1/km --columns lat,lon") == 0
    law = mdp.load("out.mdp")
    assert law.guarantee.unit == "km"
    assert law.inputs.distances[2].tolist() == [3.5, 2.0, 0.0, 4.5, 8.5, 17.5]


def test_usual_policies_have_names() -> None:
    grid = "design --grid 41.88,12.45,41.90,12.48 --cell 1km --epsilon 1/hop --builder exponential -o cells.mdp"
    for name, longest in (("neighbours", 4), ("neighbours:8", 2), ("within:1.1km", 4), ("nearest:8", 1)):
        assert cli.main([*grid.split(), "--policy", name, "--overwrite"]) == 0
        found = mdp.load("cells.mdp").inputs
        assert (len(found), found.distances.max()) == (9, longest)
    roads = "design --roads porto --nodes 30 --policy streets --epsilon 1/hop --builder exponential -o roads.mdp"
    assert cli.main(roads.split()) == 0
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
        ("--isolated join --epsilon 1/km", "give --policy"),
    ],
    ids=str,
)
def test_a_policy_that_does_not_fit_gets_a_sentence(line: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert design(line) == 2
    assert said in capsys.readouterr().err
