"""What JavaScript says about a promise: the sentences of Python, radius and snapping included, and where values go."""

from __future__ import annotations

import math
import random
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import metricdp as mdp
from browsers import in_node as ask
from forging import rewritten
from instances import SPACES
from metricdp import messages
from metricdp.artifacts import save
from metricdp.metrics import route_phrase

FOLDER = Path(__file__).parents[2] / "js"
CELLS = np.array([[41.15 + 0.002 * i, -8.61 + 0.002 * j] for i in range(4) for j in range(4)])


def test_numbers_are_written_as_python_writes_them() -> None:
    draw = random.Random(3)
    values = [
        0.0,
        1.0,
        -2.5,
        2.0000000000000004,
        0.1,
        999.5,
        1e-6,
        9.9999e-7,
        1e21,
        1e22,
        5e-324,
        1.7976931348623157e308,
    ]
    values += [draw.choice([-1, 1]) * 10 ** draw.uniform(-12, 25) for _ in range(300)]
    values += [round(10 ** draw.uniform(-3, 6), draw.randint(0, 4)) for _ in range(300)]
    cases = [[value, draw.randint(1, 9), rounding] for value in values for rounding in ("nearest", "up", "down")]
    found = ask(
        "answer = given.cases.map(([value, digits, how]) => words.numberWords(value, digits, how));", cases=cases
    )
    assert found == [messages.number(*case) for case in cases]


def test_sentences_are_those_of_python() -> None:
    cases = [
        {"epsilon": epsilon, "unit": unit, "slack": slack, "radius": radius, "basis": basis, "metric": name}
        for epsilon, (unit, name), slack, radius, basis in product(
            (0.003, 1.0, 3.4120796, 1e6),
            (("km", "Haversine"), ("", "Lp"), ("h", "Temporal"), ("m", "ShortestPath"), ("km", "StreetPath")),
            (0.0, 0.007862679781460848, 2.0),
            (None, 0.05, 300.0),
            ("theorem", "certificate", "none"),
        )
    ]
    script = """answer = given.cases.map((p) => [words.shortWords(p), words.guaranteeNumbers(p), words.meaningLines(p),
        words.reachOf(p), words.largestFactor(p, 0.06), words.distanceWords(p.epsilon, p.unit)]);"""
    for case, answer in zip(cases, ask(script, cases=cases), strict=True):
        metric = type(case["metric"], (getattr(mdp.metrics, case["metric"]),), {"unit": case["unit"]})
        promise: Any = SimpleNamespace(**case | {"metric": metric.__new__(metric), "in_parts": False})  # type: ignore[call-overload]
        promise.along = route_phrase(promise.metric)
        short_sentence, guarantee_text, lines, reach, factor, distance = answer
        assert short_sentence == messages.short_sentence(promise)
        assert guarantee_text == messages.guarantee_text(promise)
        assert lines == messages.meaning_lines(promise)
        assert distance == messages.distance(promise.epsilon, promise.unit)
        assert reach == pytest.approx(messages.reach(promise), rel=1e-14)
        assert float(factor) == pytest.approx(messages.largest_factor(promise, 0.06), rel=1e-13)


def test_a_radius_is_part_of_everything_that_is_said(tmp_path: Path) -> None:
    problem = mdp.Problem(mdp.FiniteSpace(CELLS, mdp.Haversine()), 1.0, radius=0.3)
    save(mdp.optimal(problem, gap=0.1), tmp_path / "near.mdp")
    script = """const m = await open(given.path);
        answer = [m.factor(0.29), m.factor(0.31), m.reach(2), m.explain()];"""
    near, far, reach, said = ask(script, path=str(tmp_path / "near.mdp"))
    assert near == pytest.approx(math.exp(0.29))
    assert far == "Infinity"
    assert reach == 0.3  # ln(2) / 1 = 0.69 km is beyond what the promise covers
    assert "Two places farther apart than 300 m are not protected from each other." in said["short"]
    assert any("only between secrets within 300 m" in line for line in said["lines"])
    assert any("1 km" in line and "not protected" in line for line in said["lines"])


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("cells") / "cells.mdp"
    save(mdp.exponential(mdp.FiniteSpace(CELLS, mdp.Haversine()), 3.0), path)
    return str(path)


def test_clamping_is_the_nearest_place_whoever_asks(cells: str) -> None:
    """The law of a clamped value is that of the nearest place: that is the whole promise."""
    rng = np.random.default_rng(5)
    places = np.concatenate([rng.uniform([41.14, -8.62], [41.17, -8.59], (40, 2)), rng.uniform(-80, 80, (40, 2))])
    script = """const m = await open(given.path);
        answer = given.places.map((place) => Array.from(m.distribution(place, { clamp: true })));"""
    laws = np.array(ask(script, path=cells, places=places.tolist()))
    mechanism = mdp.load(cells)
    nearest = [min(range(16), key=lambda k: float(mdp.Haversine()(place, CELLS[k]))) for place in places]
    assert np.allclose(laws, mechanism.matrix[nearest], rtol=1e-12)


def test_clamping_into_a_box_moves_no_two_points_apart(tmp_path: Path) -> None:
    """In every l_p, so that the promise on the box holds for all points of the plane as it stands."""
    path = Path(__file__).parents[1] / "data" / "v2-interpolated.mdp"
    rng = np.random.default_rng(6)
    pairs = rng.normal(2, 6, (60, 2, 2))
    pairs[:30, 1] = pairs[:30, 0] + rng.normal(0, 0.5, (30, 2))
    script = """const m = await open(given.path);
        answer = given.pairs.map((pair) => pair.map((place) => Array.from(m.distribution(place, { clamp: true }))));"""
    mechanism = mdp.load(path)
    for (one, two), (x, y) in zip(ask(script, path=str(path), pairs=pairs.tolist()), pairs, strict=True):
        loss = np.max(np.abs(np.log(one) - np.log(two)))
        assert loss <= mechanism.guarantee.epsilon * np.linalg.norm(x - y) * (1 + 1e-9)


def test_a_clamped_geolocation_never_tells_inside_from_outside(cells: str) -> None:
    script = """const m = await open(given.path);
        const seen = [];
        for (const [latitude, longitude] of given.places) {
          const device = { getCurrentPosition: (success) => success({ coords: { latitude, longitude } }) };
          const storage = { getItem: () => null, setItem() {} };
          const wrapped = protectGeolocation(m, { geolocation: device, storage, clamp: true });
          const { coords } = await new Promise((done) => wrapped.getCurrentPosition(done, () => done({})));
          seen.push([coords.latitude, coords.longitude]);
        }
        answer = seen;"""
    far = [[0.0, 0.0], [-90.0, 0.0], [41.1579438, -8.6291053], [41.15, -8.61]] * 5
    seen = ask(script, path=cells, places=far)
    assert len(seen) == 20
    assert {tuple(place) for place in seen} <= {tuple(place) for place in CELLS.tolist()}


def test_snapping_where_roads_are_measured_costs_what_it_can_cost(tmp_path: Path) -> None:
    """Two crossings 20 m apart as the bird flies and 5 km by road: a snap of 15 m reaches both from one place."""
    points = np.array([[41.0, 2.0], [41.00018, 2.0], [41.02, 2.0]])
    roads = mdp.ShortestPath([[0, 2], [2, 1]], [2.5, 2.5])
    space = mdp.FiniteSpace(np.arange(3)[:, None], roads, coordinates=points, ground=mdp.Haversine())
    save(mdp.exponential(space, 0.2), tmp_path / "roads.mdp")
    script = """const m = await open(given.path);
        answer = [0, 0.005, 0.015, 3].map((snap) => m.slack(snap));"""
    assert ask(script, path=str(tmp_path / "roads.mdp")) == pytest.approx([0, 0, 0.2 * 5, 0.2 * 5])


def test_snapping_in_the_metric_of_the_promise_costs_twice_the_distance(cells: str) -> None:
    script = """const m = await open(given.path);
        answer = [m.slack(0.1), m.factor(0.2, { snap: 0.1 }), m.reach(2, { snap: 0.01 })];"""
    assert ask(script, path=cells) == pytest.approx([0.6, math.exp(1.2), (math.log(2) - 0.06) / 3.0])


NOT_MEASURED = {"transport", "transport on a line", "documents", "curves", "bags"}


def test_distances_are_those_of_python_in_the_unit_that_is_stated(tmp_path: Path) -> None:
    """The audited epsilon divides by every distance, so a unit that is only a label would show."""
    spaces = {name: make() for name, make in SPACES.items() if name not in NOT_MEASURED}
    for unit in ("m", "mi", "ft"):
        spaces[unit] = mdp.FiniteSpace(CELLS, mdp.Haversine(unit=unit))
    directions = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [-1.0, 0.1]])
    spaces["degrees"] = mdp.FiniteSpace(directions, mdp.Angular(unit="deg"))
    for name, space in spaces.items():
        save(mdp.exponential(space, 1.0 / float(np.median(space.distances))), tmp_path / f"{name}.mdp")
    script = """answer = [];
        for (const name of given.names) answer.push((await open(`${given.folder}/${name}.mdp`)).audit().epsilon);"""
    found = ask(script, folder=str(tmp_path), names=list(spaces))
    for name, epsilon in zip(spaces, found, strict=True):
        assert epsilon == pytest.approx(mdp.audit(mdp.load(tmp_path / f"{name}.mdp")).epsilon, rel=1e-9), name


@pytest.mark.parametrize("unit", ["km", "m", "mi"])
def test_noise_is_drawn_in_the_unit_that_is_stated(unit: str, tmp_path: Path) -> None:
    """At epsilon per unit the mean distance of planar Laplace noise is 2 / epsilon units, and 95 % lie within 4.744."""
    rate = {"km": 5.0, "m": 0.005, "mi": 8.0}[unit]
    metric = mdp.Haversine(unit=unit)
    save(mdp.laplace(metric, rate), tmp_path / "noise.mdp")
    script = """const m = await open(given.path);
        answer = [m.accuracy(0.95), Array.from({ length: 6000 }, () => m.sample([41, 2]).point)];"""
    accuracy, reports = ask(script, path=str(tmp_path / "noise.mdp"))
    away = metric(np.array(reports), np.array([41.0, 2.0]))
    assert np.mean(away) == pytest.approx(2 / rate, rel=0.06)
    assert np.mean(away <= accuracy) == pytest.approx(0.95, abs=0.02)
    assert accuracy == pytest.approx(4.744 / rate, rel=0.02)


SAID = """const m = await open(given.path);
    const device = { getCurrentPosition() {} };
    const said = (call) => { try { return JSON.stringify(call()); } catch (error) { return error.name; } };
    answer = [CALLS].map(said);"""


def spelled(calls: list[str]) -> str:
    return ", ".join(f"() => {call}" for call in calls)


BAD_OPTIONS = [
    "m.sample(0, { snap: -1 })", "m.sample(0, { snap: NaN })", "m.sample(0, { snap: '1' })",
    "m.sample(0, { clamp: 1 })", "m.factor(NaN)", "m.factor(-1)", "m.factor('1')", "m.reach(0.5)", "m.reach(null)",
    "m.accuracy(1)", "m.accuracy('x')", "m.secretAt([0, 0])", "m.secretAt(1.5)", "m.secretAt(99)",
    "m.slack(Infinity)", "m.explain({ snap: [1] })", "protectGeolocation(m, { geolocation: device, perDay: NaN })",
    "protectGeolocation(m, { geolocation: device, everySeconds: 0 })", "protectGeolocation(m, { geolocation: {} })",
    "protectGeolocation(m, { geolocation: device, snap: -1 })",
]  # fmt: skip
BAD_SECRETS = [
    "null", "undefined", "NaN", "true", "[null, null]", "[undefined, 1]", "['41', '2']", "[true, false]", "[NaN, 1]",
    "[1]", "[1, 2, 3]", "{}", "{ length: 2, 0: 1, 1: 2 }", "new Map()", "[[1], [2]]", "() => [1, 2]", "new Date()",
    "10n", "[10n, 2n]", "Symbol()", "new DataView(new ArrayBuffer(16))", "'41, 2'",
]  # fmt: skip


@pytest.mark.parametrize(
    "file", ["cells", "v2-spherical-laplace", "v1-vector-laplace", "v2-interpolated", "v2-streets"]
)
def test_only_numbers_are_numbers(file: str, cells: str) -> None:
    path = cells if file == "cells" else str(Path(__file__).parents[1] / "data" / f"{file}.mdp")
    calls = [f"m.sample({secret}, {{ clamp: {clamp} }})" for secret in BAD_SECRETS for clamp in ("true", "false")]
    assert set(ask(SAID.replace("CALLS", spelled(calls)), path=path)) <= {"InvalidInput", "OutOfDomain"}


def test_options_are_checked(cells: str) -> None:
    found = ask(SAID.replace("CALLS", spelled(BAD_OPTIONS)), path=cells)
    assert set(found) <= {"InvalidInput", "OutOfDomain"}, dict(zip(BAD_OPTIONS, found, strict=True))


def test_a_mechanism_in_a_plane_is_none_for_positions(tmp_path: Path) -> None:
    save(mdp.laplace(mdp.Lp(2, unit="km"), 3.0), tmp_path / "plane.mdp")
    script = """const m = await open(given.path);
        const device = { getCurrentPosition() {} };
        try { protectGeolocation(m, { geolocation: device }); } catch (error) { answer = error.message; }"""
    assert "latitude" in ask(script, path=str(tmp_path / "plane.mdp"))


def test_the_audit_says_when_it_cannot_judge(tmp_path: Path) -> None:
    """No pair within the radius: nothing was judged, so nothing holds."""
    path = tmp_path / "some.mdp"
    save(mdp.exponential(mdp.FiniteSpace(np.arange(3.0)[:, None], mdp.Lp(1)), 1.0), path)
    script = "answer = (await open(given.path)).audit();"
    assert ask(script, path=str(path))["verdict"] == "holds"
    rewritten(path, lambda manifest, tensors: manifest["guarantee"].update(radius=0.5))
    found = ask(script, path=str(path))
    assert (found["verdict"], found["holds"], found["pairs"]) == ("cannot judge", False, 0)
    rewritten(path, lambda manifest, tensors: tensors.update({"inputs.points": np.array([[0.0], [1e299], [2e299]])}))
    assert ask(script, path=str(path))["verdict"] == "cannot judge"
