"""Trees and pruning at the command: a file for every level, areas left out by name, and what people get wrong."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import metricdp as mdp
from browsers import in_node as ask
from brute import euclid, leakage
from metricdp.artifacts import load_tree, save_tree
from metricdp.errors import CorruptFile, InvalidInput
from scripts import main

PLACES = np.array([[0, 0], [1, 0.1], [0.2, 1], [1.3, 1.1], [4, 0], [5.1, 0.3], [4.2, 1.2], [9, 9.4]])
APART = euclid(PLACES)
DISTRICTS = ["b", "b", "a", "a", "c", "c", "c", "d"]
CITIES = ["south", "south", "south", "south", "south", "south", "south", "north"]
ROWS = [f"p{k},{x},{y},{d},{c}" for k, ((x, y), d, c) in enumerate(zip(PLACES, DISTRICTS, CITIES, strict=True))]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree of eight places, four districts and two cities."""
    folder = tmp_path_factory.mktemp("trees")
    (folder / "shops.csv").write_text("\n".join(["id,x,y,district,city", *ROWS]) + "\n")
    assert run(folder, f"design --points {folder}/shops.csv --levels district,city --epsilon 1 -o {folder}/tree") == 0
    return folder


def run(folder: Path, line: str) -> int:
    return main(
        line.replace("PRUNE", "export --prune TREE")
        .replace("TREE", f"{folder}/tree")
        .replace("SHOPS", f"{folder}/shops.csv")
        .split()
    )


def test_a_tree_has_a_file_for_every_level_with_one_promise_for_the_places(made: Path) -> None:
    tree = load_tree(made / "tree")
    assert [(one.name, one.file, len(one.middles)) for one in tree.levels] == [
        ("places", "places.mdp", 8), ("district", "1_district.mdp", 4), ("city", "2_city.mdp", 2)
    ]  # fmt: skip
    assert tree.levels[0].areas == tuple(f"p{k}" for k in range(8))
    assert tree.levels[1].areas == ("a", "b", "c", "d")
    assert [tree.levels[1].areas[k] for k in tree.levels[1].of] == DISTRICTS
    losses = []
    for one in tree.levels:
        distribution = mdp.load(made / "tree" / one.file)
        assert np.array_equal(distribution.inputs.points, PLACES)
        assert np.array_equal(distribution.outputs.coordinates, PLACES[one.middles])
        assert distribution.guarantee.epsilon == 1.0
        assert leakage(distribution.matrix, APART)[0] <= 1.0 + 1e-12
        away = APART[:, one.middles]
        losses.append(float((distribution.matrix * away).sum(axis=1).mean()))
        assert distribution.certificate.lower_bound <= losses[-1] * (1 + 1e-9)
        assert losses[-1] <= 1.01 * distribution.certificate.lower_bound
        for area, middle in enumerate(one.middles):  # the place with the least distance to all of its area
            members = np.flatnonzero(one.of == area)
            assert APART[middle, members].sum() == APART[np.ix_(members, members)].sum(axis=1).min()
    assert losses == sorted(losses)  # coarser costs more


def test_areas_as_secrets_have_one_law_for_all_their_places(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = f"design --points SHOPS --levels district,city --epsilon 1 --secrets areas -o {made}/areas --json"
    assert run(made, line) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["areas"] for one in told["levels"]] == [8, 4, 2]
    for level in (1, 2):
        one = load_tree(made / "areas").levels[level]
        distribution = mdp.load(made / "areas" / one.file)
        assert leakage(distribution.matrix, APART)[0] <= 1.0 + 1e-12
        for area in range(len(one.middles)):
            rows = distribution.matrix[one.of == area]
            assert np.array_equal(rows, np.repeat(rows[:1], len(rows), axis=0))


def test_areas_are_pruned_by_name_at_any_level_and_the_promise_stays(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = mdp.load(made / "tree" / "places.mdp").matrix
    for line, gone in (
        ("--areas c --level district", [4, 5, 6]),
        ("--areas p3,p7", [3, 7]),
        ("--areas north", [7]),
        ("--around 0.5,0.5 --radius 0.8", [0, 1, 2]),
    ):
        assert run(made, f"export --prune TREE/places.mdp --tree TREE {line} -o {made}/mine.mdp --overwrite") == 0
        said = capsys.readouterr().out
        are = "is" if len(gone) == 1 else "are"
        assert f"{len(gone)} of 8 reports {are} never given (cheapest)" in said
        assert "must be a standing wish" in said
        distribution = mdp.load(made / "mine.mdp")
        kept = [k for k in range(8) if k not in gone]
        assert not distribution.matrix[:, gone].any()
        expected = before.copy()
        for k in gone:
            cost = [math.fsum(before[:, k] * APART[:, t]) for t in kept]
            expected[:, kept[int(np.argmin(cost))]] += before[:, k]
        assert np.allclose(distribution.matrix[:, kept], expected[:, kept], rtol=1e-12)
        assert leakage(distribution.matrix, APART)[0] <= 1.0 + 1e-12
    assert (
        run(made, f"export --prune TREE/1_district.mdp --tree TREE --areas north -o {made}/mine.mdp --overwrite") == 0
    )
    assert not mdp.load(made / "mine.mdp").matrix[:, 3].any()


def test_a_pruned_file_is_drawn_from_in_a_browser(made: Path) -> None:
    assert run(made, f"export --prune TREE/places.mdp --areas 0,1 --rule nearest -o {made}/phone.mdp") == 0
    script = """const m = await open(given.path);
        answer = Array.from({ length: 300 }, () => m.sample([0, 0]).code);"""
    assert not {0, 1} & set(ask(script, path=str(made / "phone.mdp")))


def test_a_device_opens_the_folder_and_prunes_as_python_does(made: Path) -> None:
    assert run(made, f"export --prune TREE/places.mdp --tree TREE --areas c -o {made}/ours.mdp") == 0
    script = """const tree = await openTree(given.path);
        const mine = await tree.open("places", { avoid: { district: ["c"] } });
        const coarse = await tree.open("district", { avoid: { city: ["north"] } });
        answer = [tree.levels.map(({ name, size }) => [name, size]), Array.from(mine.distribution([0, 0])),
                  Array.from(coarse.distribution([0, 0]))];"""
    levels, distribution, coarse = ask(script, path=str(made / "tree" / "tree.json"))
    assert levels == [["places", 8], ["district", 4], ["city", 2]]
    assert np.allclose(distribution, mdp.load(made / "ours.mdp").matrix[0], rtol=1e-9, atol=1e-15)
    assert coarse[3] == 0.0
    assert sum(coarse) == pytest.approx(1.0)


def test_renormalising_is_refused_unless_the_law_was_made_for_it(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "--areas 0,1 --rule renormalise"
    assert run(made, f"export --prune TREE/places.mdp {line} -o {made}/bad.mdp") == 2
    assert "Take --rule cheapest, which keeps every guarantee" in capsys.readouterr().err
    assert not (made / "bad.mdp").exists()
    (made / "four.csv").write_text("\n".join(["id,x,y,district,city", *ROWS[:4]]) + "\n")
    asked = f"--points {made}/four.csv --columns x,y --levels city --epsilon 1 --prunable 2"
    assert run(made, f"design {asked} -o {made}/any") == 0
    assert run(made, f"export --prune {made}/any/places.mdp {line} -o {made}/good.mdp") == 0
    left = np.delete(mdp.load(made / "good.mdp").matrix, [0, 1], axis=1)
    assert leakage(left, APART[:4, :4])[0] <= 1.0 + 1e-12


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("PRUNE/places.mdp --tree TREE --areas x -o TREE/m.mdp", "no level has all of these areas"),
        ("PRUNE/places.mdp --tree TREE --level city --areas a -o TREE/m.mdp", "no area 'a'; its areas are north"),
        ("PRUNE/places.mdp --tree TREE --level town --areas a -o TREE/m.mdp", "no level 'town'; its levels"),
        ("PRUNE/2_city.mdp --tree TREE --areas a -o TREE/m.mdp", "cannot be left out of them"),
        ("PRUNE/places.mdp --areas 8 -o TREE/m.mdp", "numbers of reports from 0 to 7, got '8'"),
        ("PRUNE/places.mdp --level city --areas 1 -o TREE/m.mdp", "give it with --tree"),
        ("PRUNE/places.mdp --areas , -o TREE/m.mdp", "--areas must name areas with commas between"),
        ("design --points SHOPS --levels , --epsilon 1 -o TREE/new", "--levels must name areas with commas between"),
        ("design --points SHOPS --levels 31 --epsilon 1 --columns x,y -o TREE/new", "from 1 to 30"),
        ("PRUNE/places.mdp -o TREE/m.mdp", "say what is never reported"),
        ("PRUNE/places.mdp --areas 1 --around 0,0 --radius 1 -o TREE/m.mdp", "say what is never reported"),
        ("PRUNE/places.mdp --around 0,0 -o TREE/m.mdp", "say what is never reported"),
        ("PRUNE/places.mdp --around 0 --radius 1 -o TREE/m.mdp", "must be 2 numbers"),
        ("PRUNE/places.mdp --around 50,50 --radius 1 -o TREE/m.mdp", "no report lies within 1"),
        ("PRUNE/2_city.mdp --tree TREE --areas north,south -o TREE/m.mdp", "one kept"),
        ("PRUNE/places.mdp --areas 1 --rule nearest --loss squared -o TREE/m.mdp", "belong to --rule cheapest"),
        ("PRUNE/places.mdp --tree SHOPS --areas a -o TREE/m.mdp", "it is not a tree that metricdp wrote"),
        ("design --points SHOPS --levels city,district --epsilon 1 -o TREE/new", "lies in several areas of level 2"),
        ("design --points SHOPS --levels town --epsilon 1 -o TREE/new", "no column 'town'"),
        ("design --points SHOPS --levels district,district --epsilon 1 -o TREE/new", "names a column twice"),
        ("design --points SHOPS --levels district --epsilon 1 -o TREE", "it is there already"),
        ("design --points SHOPS --levels 2 --epsilon 1 --prunable 2 --builder optimal -o TREE/new", "remove --builder"),
        ("design --grid 0,0,3,3 --cell 1 --metric l2 --levels district --epsilon 1 -o TREE/new", "give a number"),
        ("design --metric l2 --builder laplace --levels 2 --epsilon 1 -o TREE/new", "is not built on places"),
    ],
)  # fmt: skip
def test_mistakes_get_a_sentence_and_write_nothing(
    made: Path, line: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(made, line) == 2
    assert said in capsys.readouterr().err
    assert not (made / "tree" / "m.mdp").exists()
    assert not (made / "tree" / "new").exists()


def test_a_file_of_another_tree_is_refused(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mdp.save(mdp.exponential(mdp.FiniteSpace(PLACES, mdp.Lp(2)), 1.0), made / "other.mdp")
    assert run(made, f"export --prune {made}/other.mdp --tree TREE --areas a -o {made}/m.mdp") == 2
    assert "is none of the files of the tree" in capsys.readouterr().err


def altered(found: dict[str, Any], change: Any) -> Any:
    again = json.loads(json.dumps(found))
    change(again)
    return again


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.update(version=2),
        lambda t: t.update(format="other"),
        lambda t: t.update(places=7),
        lambda t: t.update(places=True),
        lambda t: t.update(levels=[]),
        lambda t: t["levels"][1].update(of=[0] * 8),
        lambda t: t["levels"][1]["of"].append(0),
        lambda t: t["levels"][1]["of"].__setitem__(0, 9),
        lambda t: t["levels"][1]["of"].__setitem__(0, 1.0),
        lambda t: t["levels"][1]["middles"].__setitem__(0, 0),
        lambda t: t["levels"][1].update(areas=["a", "a", "c", "d"]),
        lambda t: t["levels"][1].update(areas=["a", 2, "c", "d"]),
        lambda t: t["levels"][1].update(file="../places.mdp"),
        lambda t: t["levels"][1].update(sha256="00"),
        lambda t: t["levels"][2].update(name="district"),
        lambda t: t["levels"][2].update(of=[0, 1, 1, 1, 1, 1, 1, 1]),
        lambda t: t["levels"][2].pop("of"),
    ],
)
def test_a_tree_that_was_altered_is_refused(made: Path, tmp_path: Path, change: Any) -> None:
    found = json.loads((made / "tree" / "tree.json").read_text())
    (tmp_path / "tree.json").write_text(json.dumps(altered(found, change)))
    with pytest.raises(CorruptFile, match="was refused"):
        load_tree(tmp_path)


def test_what_is_no_mechanism_of_a_level_is_not_saved(tmp_path: Path) -> None:
    space = mdp.FiniteSpace(PLACES, mdp.Lp(2))
    tree, distribution = mdp.places.location_tree(space, [DISTRICTS]), mdp.exponential(space, 1.0)
    with pytest.raises(InvalidInput, match="`mechanisms` must be 2"):
        save_tree(tree, [distribution], tmp_path / "new")
    with pytest.raises(InvalidInput, match="level 1 must have 8 secrets and 4 reports"):
        save_tree(tree, [distribution, distribution], tmp_path / "new")
    with pytest.raises(InvalidInput, match="1 different names"):
        save_tree(tree, [distribution, tree.coarsen(distribution, 1)], tmp_path / "new", names=["places"])
    assert not (tmp_path / "new").exists()
    (tmp_path / "tree.json").write_text("[[[[")
    with pytest.raises(CorruptFile, match="not a tree that metricdp wrote"):
        load_tree(tmp_path)
