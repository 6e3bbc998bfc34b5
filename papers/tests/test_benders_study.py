"""The decomposition study: its measures against brute force, its pieces, and what the paper prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from metricdp.design import Neighbours
from metricdp_papers.benders import maps, parts, printed, runs
from metricdp_papers.benders.data import DATA, gaussian
from metricdp_papers.benders.study import STUDY, Setting, picture
from metricdp_papers.common import StudyTable

TINY = Setting("synthetic", 24, 2.0, 5, 3)


def rows_about(rows: Any, **wanted: Any) -> Any:
    return [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]


def test_the_exponential_mechanism_is_the_one_of_equation_47() -> None:
    problem = gaussian(12, 0, epsilon=1.5, reports=4)
    found = parts.printed_exponential(problem)
    points, reports = problem.inputs.points, problem.outputs.points
    for i in range(12):
        weights = [np.exp(-1.5 * np.sqrt(((points[i] - reports[k]) ** 2).sum()) / 2.0) for k in range(4)]
        np.testing.assert_allclose(found[i], np.array(weights) / sum(weights), rtol=1e-12)


def test_broken_ratios_are_counted_pair_by_pair() -> None:
    problem = gaussian(10, 1, epsilon=2.0, reports=3)
    matrix = np.random.default_rng(0).dirichlet(np.ones(3), 10)
    matrix[0] = (1.0, 0.0, 0.0)
    above, most, count = 0, 0.0, 0
    points = problem.inputs.points
    for i in range(10):
        for j in range(i + 1, 10):
            apart = float(np.sqrt(((points[i] - points[j]) ** 2).sum()))
            if apart > 2.0:
                continue
            for a, b in zip(matrix[i], matrix[j], strict=True):
                count += 1
                leak = 0.0 if a == b == 0.0 else np.inf if 0.0 in (a, b) else abs(np.log(a / b)) / apart
                above, most = above + (leak > 2.0 * (1 + 1e-6)), max(most, leak)
    share, largest = runs.violation_rate(matrix, problem)
    if count:
        assert share == pytest.approx(above / count)
    assert largest == pytest.approx(most)


def test_components_by_pairs_of_different_subsets_alone() -> None:
    # a path 0-1-2-3-4-5 in subsets 001122 joins 1-2 and 3-4 across; 2-3 is inside
    adjacency = np.zeros((6, 6), dtype=bool)
    for i in range(5):
        adjacency[i, i + 1] = adjacency[i + 1, i] = True
    labels = np.array([0, 0, 1, 1, 2, 2])
    assert sorted(parts.across_components(labels, adjacency).tolist()) == [2, 2]


def brute_components(records: list[int], joined: Any) -> list[set[int]]:
    """Grow one set after the other until nothing joins."""
    left, found = set(records), []
    while left:
        grown, one = {left.pop()}, set()
        while grown:
            one |= grown
            grown = {j for j in left for i in grown if joined(i, j)}
            left -= grown
        found.append(one)
    return found


def test_cuts_join_components_of_the_master_as_counted_by_hand() -> None:
    setting = Setting("synthetic", 150, 2.0, 5, 4)
    problem = setting.problem(0)
    points = problem.inputs.points
    labels = setting.labels(problem, Neighbours.of(problem), "distances")
    near = (np.sqrt(((points[:, None] - points) ** 2).sum(axis=-1)) <= 2.0) & ~np.eye(150, dtype=bool)
    edge = [i for i in range(150) if any(near[i, j] and labels[i] != labels[j] for j in range(150))]
    touched = [{i for i in edge if any(near[i, j] and labels[j] == label and j not in edge for j in range(150))}
               for label in range(4)]  # fmt: skip
    rules = {
        maps.ACROSS: lambda i, j: near[i, j] and labels[i] != labels[j],
        maps.ALL_PAIRS: lambda i, j: near[i, j],
        maps.CUTS: lambda i, j: near[i, j] or any({i, j} <= one for one in touched),
    }
    rows = maps.component_rows(setting, 0)
    for rule, joined in rules.items():
        sizes = [len(one) for one in brute_components(edge, joined) if rule != maps.ACROSS or len(one) > 1]
        told = {row["measure"]: row.get("as_published", row.get("corrected"))
                for row in rows_about(rows, joined_by=rule) if "component" not in row}  # fmt: skip
        assert (told["components"], told["records of the largest component"]) == (len(sizes), max(sizes))
    assert sum(row["as_published"] for row in rows if "component" in row) == sum(
        len(one) for one in brute_components(edge, rules[maps.ACROSS]) if len(one) > 1
    )


def test_subsets_on_the_map_hold_every_record_once() -> None:
    rows = maps.partition_rows(TINY, 0)
    points = TINY.problem(0).inputs.points
    for name in ("k-m-DV", "k-m-rec", "k-m-adj", "BSC"):
        sizes = [row["as_published"] for row in rows_about(rows, partition=name, measure="records of this subset")]
        assert sum(sizes) == len(points)
        (most,) = rows_about(rows, partition=name, measure="records of the largest subset")
        assert most["as_published"] == max(sizes)
    flat = maps.positions("synthetic", TINY.problem(0))
    middle = points - points.mean(axis=0)
    values = np.linalg.eigvalsh(middle.T @ middle)[::-1]
    np.testing.assert_allclose((flat**2).sum(axis=0), values[:2], rtol=1e-9)


def test_a_published_run_fills_its_tables_and_says_how_it_ended() -> None:
    rows = runs.published_rows(TINY, "distances", "boundary counted once", 0, 200, 20.0)
    assert {row["table"] for row in rows} == {"3", "4", "figure 8", "figure 10", "figure 17"}
    (ended,) = rows_about(rows, table="4", measure="iterations")
    assert ended["note"].startswith("ended after")
    (loss,) = rows_about(rows, table="4", measure="loss of the best matrix")
    assert loss["bound"] <= loss["corrected"] + 1e-9
    short = runs.published_rows(TINY, "distances", "as printed", 0, 1, 20.0)
    (ended,) = rows_about(short, table="4", measure="iterations")
    assert ended["as_published"] == 1
    if not rows_about(short, measure="share of runs that converged")[0]["as_published"]:
        assert ended["note"].startswith("not converged after 1 iterations")


def test_solvers_of_the_whole_program_agree_with_the_decomposition() -> None:
    ours = runs.ours_rows(TINY, "balanced", "engine", 0, 1e-4, 20.0)
    (mine,) = rows_about(ours, table="4", measure="loss of the best matrix")
    for method in ("simplex", "ipx"):
        rows = runs.classic_rows(TINY, method, 0, 20.0)
        (theirs,) = rows_about(rows, table="4", measure="loss of the best matrix")
        assert mine["bound"] - 1e-6 <= theirs["as_published"] <= mine["corrected"] + 1e-6


def test_every_piece_of_the_full_study_is_named_once_and_fills_tables_that_exist() -> None:
    full = STUDY.work(True, STUDY.tables)
    assert len({piece.key for piece in full}) == len(full) > 300
    for number in ("3", "figure 6", "figure 7"):
        assert STUDY.work(True, STUDY.select_tables([number]))
    sizes = [piece for piece in full if piece.tables == ("1", "2")]
    assert len(sizes) == 10 * (len(DATA) + 1)


def test_what_the_paper_prints_is_given_with_its_spread() -> None:
    assert printed.cell(printed.ITERATIONS, "synthetic", "distances") == {
        "published": 142.0,
        "note": "published ± 11 (1.96 standard deviations)",
    }
    assert printed.cell(printed.SECONDS, "road", "spectral") == {"published": "max iter. ex."}
    assert printed.cell(printed.SECONDS, "road", "balanced") == {}
    # no 25 subsets of 500 records have 44.7 inner records each: said in the study
    assert 25 * printed.SUBPROBLEM_MEAN["text"]["neighbours"][0] > 500


def test_pictures_are_drawn_where_there_is_something_to_see(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    base = {"data": "grid", "records": 60, "epsilon": 2.0, "partition": "k-m-DV", "method": "as printed"}
    rows = [
        {**base, "iteration": count, "measure": measure, "as_published": value}
        for count in (1, 2, 5)
        for measure, value in (("lower bound", 1.0 - 1.0 / count), ("upper bound", 1.0 + 1.0 / count))
    ]
    picture(StudyTable("figure 17", ""), rows, tmp_path / "closing.png")
    assert (tmp_path / "closing.png").read_bytes().startswith(b"\x89PNG")
    picture(StudyTable("figure 13", ""), maps.partition_rows(TINY, 0), tmp_path / "subsets.png")
    picture(
        StudyTable("figure 5", ""),
        maps.component_rows(Setting("synthetic", 150, 2.0, 5, 4), 0),
        tmp_path / "components.png",
    )
    assert (tmp_path / "subsets.png").is_file()
    assert (tmp_path / "components.png").is_file()
    picture(StudyTable("3", ""), rows, tmp_path / "none.png")
    picture(StudyTable("figure 17", ""), [], tmp_path / "none.png")
    assert not (tmp_path / "none.png").exists()
