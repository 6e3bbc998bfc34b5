"""Names that become metrics, places, builders and mechanisms in Python, the same as at the command."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import metricdp as mdp
from metricdp.specs import (
    BuilderOptions,
    PlaceSpec,
    PruneSpec,
    build,
    point_space,
    prune,
    read_design,
    read_metric,
    read_places,
    read_tree,
)
from scripts import main

POINTS = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [3.0, 3.0], [3.5, 3.0], [9.0, 0.5]])
DISTRICTS = ["a", "a", "a", "b", "b", "c"]
PEOPLE = [5, 1, 2, 8, 1, 3]


@pytest.fixture
def table(tmp_path: Path) -> str:
    """A table of six places with a district and a number of people each."""
    rows = [f"{x},{y},{d},{n}" for (x, y), d, n in zip(POINTS, DISTRICTS, PEOPLE, strict=True)]
    (tmp_path / "places.csv").write_text("\n".join(["x,y,district,people", *rows]) + "\n")
    return str(tmp_path / "places.csv")


def where(table: str, **options: str) -> PlaceSpec:
    return PlaceSpec(points=table, columns=("x", "y"), **options)


def test_a_mechanism_by_names_is_that_of_the_command(table: str, tmp_path: Path) -> None:
    out = str(tmp_path / "out.mdp")
    asked = ["--points", table, "--columns", "x,y", "--epsilon", "1.0", "--builder", "exponential"]
    assert main(["design", *asked, "--loss", "squared", "-o", out]) == 0
    made = build("exponential", where(table), 1.0, loss="squared")
    assert np.array_equal(made.matrix, mdp.load(out).matrix)
    assert made.certificate.loss == mdp.load(out).certificate.loss
    direct = build("exponential", mdp.FiniteSpace(POINTS, mdp.Lp(2)), "1.0")
    assert np.array_equal(direct.matrix, made.matrix)


def test_a_prior_is_a_table_or_an_array(table: str, tmp_path: Path) -> None:
    prior = tmp_path / "prior.csv"
    prior.write_text("\n".join(["share", *map(str, PEOPLE)]) + "\n")
    spec = read_design("optimal", where(table), BuilderOptions(prior=str(prior), gap=0.01), epsilon=1.0)
    assert spec.prior == pytest.approx(np.array(PEOPLE) / 20)
    assert any("sums to 20" in note for note in spec.notes)
    by_array = read_design("optimal", where(table), BuilderOptions(gap=0.01), epsilon=1.0, prior=spec.prior)
    assert spec.build().certificate.loss == pytest.approx(by_array.build().certificate.loss)


def test_places_are_counted_in_hops_of_a_policy_or_in_levels(table: str) -> None:
    hops = read_places(where(table, policy="areas:district", apart="disclose", isolated="disclose"))
    assert hops.space.unit == "hop"
    assert any("falls into 3 parts" in note for note in hops.notes)
    levels = read_places(where(table, elastic="column:people", requirement="3,20"))
    assert levels.before is not None
    assert np.array_equal(levels.before.points, POINTS)
    assert levels.space.unit == "level"


def test_a_wish_is_kept_by_what_is_built(table: str) -> None:
    spec = read_design("exponential", where(table), protect="2x@0.5")
    made = spec.build()
    assert made.guarantee.epsilon * 0.5 <= np.log(2.0)
    assert "0.5" in spec.check_level(made.guarantee)[0]


def test_a_tree_and_its_pruning_by_names(table: str, tmp_path: Path) -> None:
    tree = read_tree("optimal", PlaceSpec(points=table, columns=("x", "y")), ["district"], epsilon=1.0)
    places, districts = tree.build()
    assert (len(places.outputs), len(districts.outputs)) == (6, 3)
    assert tree.areas[1] == ["a", "b", "c"]
    file = str(tmp_path / "places.mdp")
    mdp.save(places, file)
    pruned = prune(file, PruneSpec(areas=["5"]))
    assert pruned.reports.tolist() == [5]
    assert not pruned.mechanism.matrix[:, 5].any()
    assert pruned.mechanism.guarantee.epsilon == places.guarantee.epsilon
    assert pruned.loss_before == pytest.approx(places.certificate.loss)


def test_plain_points_never_name_a_file(table: str) -> None:
    space = point_space(POINTS.tolist(), "l2")
    assert np.array_equal(space.points, POINTS)
    with pytest.raises(mdp.MetricdpError, match="unknown metric"):
        point_space(POINTS.tolist(), f"mahalanobis={table}")
    with pytest.raises(mdp.MetricdpError, match="same number of coordinates"):
        point_space([[0.0], [1.0, 2.0]], "l2")


def test_a_metric_may_name_numbers_and_files(tmp_path: Path) -> None:
    np.save(tmp_path / "s.npy", np.diag([4.0, 1.0]))
    metric = read_metric(f"mahalanobis={tmp_path / 's.npy'}")
    assert metric(np.zeros((1, 2)), np.array([[2.0, 0.0]]))[0] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "say where secrets are"),
        ({"points": "p.csv", "roads": "rome"}, "--points and --roads"),
        ({"roads": "rome", "metric": "l2"}, "--metric belongs to --points"),
        ({"grid": "0,0,1,1"}, "--grid and --cell belong together"),
        ({"points": "p.csv", "lengths": "hop"}, "--lengths says more about a policy"),
        ({"points": "p.csv", "elastic": "one"}, "--elastic needs --requirement"),
    ],
)
def test_places_that_make_no_sense_are_refused(options: dict[str, str], sentence: str) -> None:
    with pytest.raises(mdp.MetricdpError, match=sentence):
        read_places(PlaceSpec(**options))


def test_builders_are_refused_with_what_they_do_not_take() -> None:
    space = mdp.FiniteSpace(POINTS, mdp.Lp(2))
    with pytest.raises(mdp.MetricdpError, match="--gap is not an option of exponential"):
        build("exponential", space, 1.0, gap=0.1)
    with pytest.raises(mdp.MetricdpError, match="not built from places"):
        build("laplace", space, 1.0)
    with pytest.raises(mdp.MetricdpError, match="--epsilon or --protect"):
        build("exponential", space)
