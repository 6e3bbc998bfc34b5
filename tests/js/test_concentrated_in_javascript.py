"""Concentrated promises in JavaScript: the words and numbers of Python, and never a pure word about them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import metricdp as mdp
from browsers import PROJECT, outcomes
from browsers import in_node as ask
from forging import rewritten
from metricdp import messages
from metricdp.artifacts import save
from metricdp.mechanisms import ConcentratedGuarantee

RHO = 5.0


@pytest.fixture(scope="module")
def earth(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(mdp.gaussian(mdp.Haversine(), RHO), tmp_path_factory.mktemp("normal") / "earth.mdp")


def test_sentences_are_those_of_python() -> None:
    cases = [
        ConcentratedGuarantee(0.0031, mdp.Haversine()),
        ConcentratedGuarantee(5.0, mdp.Haversine("mi"), radius=0.05, basis="certificate"),
        ConcentratedGuarantee(1e9, mdp.Mahalanobis(np.eye(2)), "renyi"),
    ]
    given = [
        {"rho": one.rho, "form": one.form, "radius": one.radius, "unit": one.unit, "basis": one.basis}
        | {"metric": type(one.metric).__name__}
        for one in cases
    ]
    folder = (PROJECT / "js" / "src").as_uri()
    script = f"""const said = await import("{folder}/approximate.js");
        const {{ ConcentratedGuarantee }} = await import("{folder}/concentrated.js");
        answer = given.cases.map((one) => {{
          const p = new ConcentratedGuarantee(one);
          const lines = words.tableLines(said.concentratedHead(p), said.concentratedMeanings(p));
          return [said.concentratedShort(p), said.concentratedNumbers(p), lines, said.concentratedTogether(p, 1200)];
        }});"""
    for promise, found in zip(cases, ask(script, cases=given), strict=True):
        expected = [messages.short_sentence(promise), messages.guarantee_text(promise), messages.meaning_lines(promise)]
        assert found == [*expected, messages.together(promise, 1200)]


def test_what_is_proven_at_a_distance_is_what_python_proves(earth: Path) -> None:
    script = """const { guarantee } = await open(given.path);
        const all = guarantee.composed(30);
        answer = given.asked.map(([distance, epsilon, delta]) => [all.epsilonAt(distance, delta),
          all.deltaAt(distance, epsilon), all.distanceAt(epsilon, delta)]).concat([[all.rho]]);"""
    asked = [[0.05, 1.0, 1e-6], [0.2, 5.0, 1e-9], [0.003, 0.01, 0.1], [3.0, 800.0, 1e-200], [50.0, 1e5, 1e-6]]
    promise = mdp.load(earth).guarantee.composed(times=30)
    *found, [rho] = ask(script, path=str(earth), asked=asked)
    assert rho == promise.rho
    for (distance, epsilon, delta), row in zip(asked, found, strict=True):
        at = promise.epsilon_at(distance, delta), promise.delta_at(distance, epsilon)
        assert row == pytest.approx([*at, promise.distance_at(epsilon, delta)], rel=1e-11)


def test_nothing_pure_is_said_of_a_concentrated_promise(earth: Path) -> None:
    script = """const m = await open(given.path);
        const said = (call) => { try { return String(call()); } catch (error) { return error.name; } };
        const device = { getCurrentPosition: (success) => success({ coords: { latitude: 41, longitude: 2 } }) };
        const storage = { getItem: () => null, setItem() {} };
        const plan = planDay(m, { budget: 41 });
        const wrapped = protectGeolocation(m, { ...plan, geolocation: device, storage });
        const { coords } = await new Promise((done, failed) => wrapped.getCurrentPosition(done, failed));
        answer = { lines: m.explain().lines, json: JSON.stringify([m.guarantee, m.certificate]),
          plan, spent: wrapped.spent(), pure: m.isPure, accuracy: coords.accuracy,
          refused: [() => m.guarantee.epsilon, () => m.guarantee.slack, () => m.factor(0.1), () => m.reach(2),
            () => m.slack(), () => m.guarantee.epsilonAt(0.1), () => m.guarantee.deltaAt(0.1)].map(said),
          snapped: [() => m.sample([41, 2], { snap: 0.1 }), () => m.explain({ snap: 0.1 })].map(said),
          asked: [m.factor(0.1, { delta: 1e-6 }), m.reach(2, { delta: 1e-6 })] };"""
    found = ask(script, path=str(earth))
    assert found["pure"] is False
    assert found["refused"] == ["NotPure"] * 5 + ["InvalidInput"] * 2
    assert found["snapped"] == ["InvalidInput"] * 2
    everything = " ".join([*found["lines"], found["json"], found["plan"]["sentence"], *found["plan"], *found["spent"]])
    assert not re.search(r"epsilon|slack|(?<!not )\bpure\b", everything, re.IGNORECASE)
    assert "approximate and not pure" in found["plan"]["sentence"]
    assert found["plan"]["perDay"] == 8
    assert found["plan"]["rho"] == 8 * RHO
    promise = mdp.load(earth).guarantee
    assert found["lines"][0] == messages.short_sentence(promise)
    assert found["asked"] == pytest.approx(
        [np.exp(promise.epsilon_at(0.1, 1e-6)), promise.distance_at(np.log(2), 1e-6)]
    )
    sigma = (0.5 / RHO) ** 0.5
    assert found["accuracy"] == pytest.approx(1000 * sigma * np.sqrt(-2 * np.log(0.05)), rel=0.01)


def test_noise_that_is_too_small_for_its_rho_is_refused(earth: Path, tmp_path: Path) -> None:
    def smaller(sigma: float) -> Any:
        return lambda manifest, tensors: manifest["body"].update(sigma=sigma)

    right = mdp.load(earth).sigma
    changes: dict[str, Any] = {
        "right": smaller(right),
        "less": smaller(float(np.nextafter(right, 0.0))),
        "pure": lambda manifest, tensors: manifest["guarantee"].update(epsilon=1.0),
        "certified": lambda manifest, tensors: manifest["certificate"].update(epsilon=1.0),
        "elsewhere": lambda manifest, tensors: manifest.update(kind="spherical-laplace"),
    }
    for name, change in changes.items():
        path = tmp_path / f"{name}.mdp"
        path.write_bytes(earth.read_bytes())
        rewritten(path, change)
    found = outcomes(tmp_path)
    assert {name: answer["outcome"] for name, answer in found.items()} == {
        f"{name}.mdp": "opened" if name == "right" else "refused" for name in changes
    }
