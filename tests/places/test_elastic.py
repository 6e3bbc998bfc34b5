"""Elastic metrics and local scales: judged by brute force over balls, paths and triangles."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import metricdp as mdp
from metricdp.errors import InvalidInput
from metricdp.places import elastic, road_network, scaled

room = importlib.import_module("metricdp.places.elastic")  # the package gives the function that name

RULES: dict[str, Callable[[float], float]] = {
    "square": lambda level: level * level,
    "steps": math.floor,
    "square that ends": lambda level: min(level * level, 30.0),
    "late": lambda level: max(0.0, 5.0 * level - 2.0),
}


def paths(steps: np.ndarray) -> np.ndarray:
    """All shortest paths, by Floyd and Warshall."""
    found = steps.copy()
    for middle in range(len(found)):
        found = np.minimum(found, found[:, middle, None] + found[middle])
    return found


@given(st.integers(2, 25), st.integers(0, 10**6), st.sampled_from(sorted(RULES)))
def test_every_ball_of_every_level_holds_what_is_required(count: int, seed: int, name: str) -> None:
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 40, (count, 2)) + np.arange(count)[:, None] * 1e-3  # many equal distances, no place twice
    mass = rng.integers(1, 9, count).astype(float) if seed % 2 else rng.uniform(0.1, 3.0, count)
    try:
        apart = elastic(mdp.FiniteSpace(points, mdp.Lp(2)), mass=mass, requirement=RULES[name]).distances
    except InvalidInput:
        assert name == "square that ends"  # the places fall into parts
        return
    assert np.array_equal(apart, apart.T)
    assert np.all((apart > 0) | np.eye(count, dtype=bool))
    assert np.all(apart[:, None, :] <= apart[:, :, None] + apart[None])  # exactly: levels lie on a grid
    for level in [*np.linspace(0, 14, 29), *np.unique(apart)[::7]]:
        inside = [math.fsum(mass[row <= level]) for row in apart]
        assert min(inside) >= min(RULES[name](float(level)), math.fsum(mass)) * (1 - 1e-15)


def test_distances_are_the_paths_of_the_formula() -> None:
    rng = np.random.default_rng(3)
    points, mass = rng.normal(size=(30, 2)), rng.integers(1, 5, 30).astype(float)
    apart = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2))
    step = np.zeros((30, 30))
    for i in range(30):
        for j in range(30):
            nearer = sum(mass[k] for k in range(30) if apart[i, k] < apart[i, j])
            step[i, j] = math.sqrt(nearer / 2.0)  # the level at which 2 l^2 passes that mass
    step = np.minimum(step, step.T)
    made = elastic(mdp.FiniteSpace(points, mdp.Lp(2)), mass=mass, requirement=lambda level: 2.0 * level * level)
    assert np.allclose(made.distances, paths(step), rtol=1e-9)


def test_dense_places_are_told_apart_better_than_lonely_ones() -> None:
    points = np.concatenate([np.arange(20.0), 20.0 + 10.0 * np.arange(1, 11)])[:, None]
    made = elastic(mdp.FiniteSpace(points, mdp.Lp(1)), mass=np.ones(30), requirement=lambda level: level)
    assert made.distances[0, 10] == pytest.approx(10.0)  # ten steps of one in the town, for ten units of length
    assert made.distances[20, 21] == pytest.approx(1.0)  # one step in the country, for ten units of length
    mechanism = mdp.exponential(made, 1.0)
    assert mdp.audit(mechanism).verdict == "holds"
    assert set(np.unique(mechanism.sample(np.arange(30)))) <= set(range(30))


def test_many_places_give_the_same_distances_as_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    roads = road_network("porto", nodes=120)
    mass = np.random.default_rng(0).integers(1, 4, len(roads)).astype(float)

    def ends(level: float) -> float:
        return min(3.0 * level * level, 25.0)

    few = elastic(roads, mass=mass, requirement=ends)
    monkeypatch.setattr(room, "DENSE", 10)
    many = elastic(roads, mass=mass, requirement=ends)
    assert isinstance(many.metric, mdp.ShortestPath)
    assert np.allclose(few.distances, many.distances, rtol=1e-12)
    assert np.array_equal(many.coordinates, roads.coordinates)
    monkeypatch.setattr(room, "MOST_JOINED", 50)
    with pytest.raises(InvalidInput, match="joins more than 50 pairs"):
        elastic(roads, mass=mass, requirement=ends)


@pytest.mark.parametrize("rule", ["square that ends", "line that ends"])  # the line's levels are whole: many ways tie
def test_a_network_keeps_no_step_that_others_make_up_for(monkeypatch: pytest.MonkeyPatch, rule: str) -> None:
    roads, mass = road_network("porto", nodes=90), np.ones(90)

    def ends(level: float) -> float:
        return min(2.0 * level * level if rule == "square that ends" else level, 20.0)

    few = elastic(roads, mass=mass, requirement=ends).distances
    monkeypatch.setattr(room, "DENSE", 10)
    many = elastic(roads, mass=mass, requirement=ends)
    assert isinstance(many.metric, mdp.ShortestPath)
    assert np.allclose(many.distances, few, rtol=1e-12)
    kept = {(min(u, v), max(u, v)) for u, v in many.metric.edges.tolist()}
    between = (few[:, :, None] + few[None]).transpose(0, 2, 1)  # [u, v, middle]
    for u in range(90):
        for v in range(u):
            others = np.delete(between[u, v], [u, v])
            assert ((v, u) in kept) == (few[u, v] < others.min())


def test_what_cannot_be_elastic_is_refused_with_a_sentence() -> None:
    space = mdp.grid((3, 3))
    with pytest.raises(InvalidInput, match="`mass` must be 9 non-negative numbers"):
        elastic(space, mass=np.ones(8), requirement=lambda level: level)
    with pytest.raises(InvalidInput, match="must not fall"):
        elastic(space, mass=np.ones(9), requirement=lambda level: -level)
    with pytest.raises(InvalidInput, match="asks for none"):
        elastic(space, mass=np.ones(9), requirement=lambda level: 0.0)
    with pytest.raises(InvalidInput, match="place 4 has the mass 0"):
        elastic(space, mass=np.arange(9) != 4, requirement=lambda level: level)
    with pytest.raises(InvalidInput, match="fall into 9 parts"):
        elastic(space, mass=np.ones(9), requirement=lambda level: min(level, 1.0))
    with pytest.raises(InvalidInput, match="`requirement`"):
        elastic(space, mass=np.ones(9), requirement=lambda level: float("nan"))


def test_a_scale_counts_for_both_ends_and_along_every_way() -> None:
    rng = np.random.default_rng(5)
    points, scale = rng.normal(size=(25, 2)), rng.uniform(0.1, 2.0, 25)
    apart = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2))
    made = scaled(mdp.FiniteSpace(points, mdp.Lp(2)), scale)
    assert np.allclose(made.distances, paths(np.minimum(scale[:, None], scale[None]) * apart), rtol=1e-9)
    roads = road_network("porto", nodes=120)
    factor = rng.uniform(0.1, 2.0, len(roads))
    network = roads.network
    assert network is not None
    step = np.full((len(roads), len(roads)), np.inf)
    np.fill_diagonal(step, 0.0)
    for (u, v), length in zip(network.edges, network.lengths, strict=True):
        step[u, v] = step[v, u] = min(step[u, v], length * min(factor[u], factor[v]))
    assert np.allclose(scaled(roads, factor).distances, paths(step), rtol=1e-9)
    assert np.allclose(scaled(roads, np.ones(len(roads))).distances, roads.distances)
    with pytest.raises(InvalidInput, match="`scale` must be 25 positive numbers"):
        scaled(mdp.FiniteSpace(points, mdp.Lp(2)), np.zeros(25))


def test_the_scale_of_a_place_is_its_own_however_places_are_ordered() -> None:
    roads = road_network("porto", nodes=40)
    order, factor = np.random.default_rng(1).permutation(40), np.linspace(0.1, 1.0, 40)
    turned = scaled(roads.part(order), factor[order])
    assert np.allclose(turned.distances, scaled(roads, factor).distances[np.ix_(order, order)], rtol=1e-12)
    with pytest.raises(InvalidInput, match="this space has streets"):
        scaled(roads, factor, reach=1.0)


@given(st.integers(3, 25), st.integers(0, 10**6))
def test_steps_up_to_a_reach_make_ways_between_all_places(count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    points, scale = rng.uniform(0, 1, (count, 2)), rng.choice([0.2, 0.6, 1.0, 1.5], count)
    apart = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2))
    reach = 0.4 * float(rng.uniform(0.5, 2.0))
    step = np.where(apart <= reach, np.minimum(scale[:, None], scale[None]) * apart, np.inf)
    try:
        made = scaled(mdp.FiniteSpace(points, mdp.Lp(2)), scale, reach=reach).distances
    except InvalidInput:
        assert np.isinf(paths(step)).any()  # parts that no step joins
        return
    assert np.allclose(made, paths(step), rtol=1e-9)
    assert np.array_equal(made, made.T)
    assert np.all(made[:, None, :] <= (made[:, :, None] + made[None]) * (1 + 1e-15))
    assert np.all(made[apart <= reach] <= step[apart <= reach])  # never above what a step counts


def test_many_places_without_streets_have_steps_up_to_a_reach_and_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    space, scale = mdp.grid((12, 12)), np.where(np.arange(144) < 30, 0.3, 1.0)
    few = scaled(space, scale, reach=2.3)
    monkeypatch.setattr(room, "DENSE", 10)
    many = scaled(space, scale, reach=2.3)
    assert isinstance(many.metric, mdp.ShortestPath)
    assert np.allclose(many.distances, few.distances, rtol=1e-12)
    with pytest.raises(InvalidInput, match=r"steps between any two of 144 places are a table of 0.0 GB.*longest step"):
        scaled(space, scale)


@pytest.mark.parametrize("kind", ["elastic", "scaled"])
def test_windows_carry_metrics_of_both_kinds(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    pytest.importorskip("numba")
    monkeypatch.setattr(room, "DENSE", 10)
    roads, apart = road_network("porto", nodes=70), road_network("porto", nodes=70).distances
    if kind == "elastic":
        space = elastic(roads, mass=np.ones(70), requirement=lambda level: min(3.0 * level * level, 20.0))
    else:
        space = scaled(roads.part(np.arange(70)), np.where(apart[3] < 0.2, 0.3, 1.0))
    epsilon, window = (1.5, 6.0) if kind == "elastic" else (12.0, 0.9)
    made = mdp.optimal(mdp.Problem(space, epsilon, loss=roads), window=window, gap=0.3, seconds=20)
    assert isinstance(made, mdp.mechanisms.LocalMechanism)
    assert mdp.audit(made).verdict == "holds"
    logs = made.log_density(np.repeat(np.arange(70), 70), np.tile(np.arange(70), 70)).reshape(70, 70)
    told = np.abs(logs[:, None] - logs[None]).max(axis=2)
    assert np.all(told <= epsilon * space.distances * (1 + 1e-6))  # all pairs, though only steps were judged
    assert made.certificate.lower_bound <= (np.exp(logs) * apart).sum() / 70 <= made.certificate.loss * (1 + 1e-9)


@pytest.mark.parametrize("streets", [10, 100])
def test_along_streets_a_scale_comes_as_near_its_integral_as_streets_are_short(streets: int) -> None:
    """The scale e^x from -1 to 0 on a straight road: the eikonal solution is 1 - 1 / e, the lower sum just below."""
    places = np.linspace(-1.0, 0.0, streets + 1)
    road = mdp.ShortestPath(np.stack([np.arange(streets), np.arange(1, streets + 1)], axis=1), np.diff(places))
    made = scaled(mdp.FiniteSpace(np.arange(streets + 1), road), np.exp(places))
    short = 1.0 - made.distances[0, -1] / (1.0 - math.exp(-1.0))
    assert 0.0 < short < 0.52 / streets  # half the change of the scale along a street
    assert made.unit == "scaled km"


def test_an_epsilon_of_every_place_is_kept_by_the_mechanism() -> None:
    """Sensitive places are told apart from any other by a fifth of what others are."""
    space = mdp.grid((5, 5))
    sensitive = np.isin(np.arange(25), [6, 7, 8])
    made = mdp.optimal(mdp.Problem(scaled(space, np.where(sensitive, 0.2, 1.0)), 1.0, loss=space.distances))
    logs = np.log(made.matrix / made.matrix.sum(axis=1, keepdims=True))
    told = np.abs(logs[:, None] - logs[None]).max(axis=2)
    bound = np.where(sensitive[:, None] | sensitive[None], 0.2, 1.0) * space.distances
    assert np.all(told <= bound + 1e-9)


def test_a_large_network_of_two_parts_is_refused_and_not_searched_for_ever(monkeypatch):
    monkeypatch.setattr(importlib.import_module("metricdp.places.elastic"), "DENSE", 4)
    roads = mdp.ShortestPath([[0, 1], [1, 2], [3, 4], [4, 5]], np.ones(4), 6)
    with pytest.raises(InvalidInput, match="no way leads from place 0 to place 3"):
        mdp.elastic(mdp.FiniteSpace(np.arange(6)[:, None], roads), mass=np.ones(6), requirement=lambda level: level)


def test_what_is_no_requirement_or_has_no_distances_is_refused():
    with pytest.raises(InvalidInput, match="must be a function of the level"):
        mdp.elastic(mdp.grid((2, 2)), mass=np.ones(4), requirement=3)
    with pytest.raises(InvalidInput, match="two places or more"):
        mdp.places.scaled(mdp.grid((1, 1)), [0.5])
