"""Positions on a device: what a day costs, clocks, snapping, pages side by side, and devices without positions."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import metricdp as mdp
from browsers import in_node
from metricdp.artifacts import save

CELLS = np.array([[41.15 + 0.002 * i, -8.61 + 0.002 * j] for i in range(4) for j in range(4)])
DEVICE = """const m = await open(given.path);
    const kept = new Map();
    const storage = { getItem: (k) => kept.get(k) ?? null, setItem: (k, v) => kept.set(k, v) };
    let asked = 0;
    const [latitude, longitude] = given.at;
    const device = { getCurrentPosition(success) { asked += 1; success({ coords: { latitude, longitude } }); } };
    const placed = ({ coords }) => [coords.latitude, coords.longitude];
    const question = (g) => new Promise((done) => g.getCurrentPosition((found) => done(placed(found)), done));
    const protect = (options) => protectGeolocation(m, { geolocation: device, storage, ...options });
"""


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("geolocation") / "cells.mdp"
    save(mdp.exponential(mdp.FiniteSpace(CELLS, mdp.Haversine()), 3.0), path)
    return str(path)


@pytest.fixture(scope="module")
def earth(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("geolocation") / "earth.mdp"
    save(mdp.laplace(mdp.Haversine(), 4.0), path)
    return str(path)


def test_what_was_spent_includes_the_slack_of_snapping(cells: str) -> None:
    script = (
        DEVICE
        + """let clock = Date.UTC(2030, 0, 1, 12);
        const g = protect({ snap: 0.1, everySeconds: 60, perDay: 5, now: () => clock });
        for (let k = 0; k < 3; k++) { await question(g); clock += 60_000; }
        answer = g.spent();"""
    )
    found = in_node(script, path=cells, at=[41.15, -8.6101])
    assert found["epsilon"] == pytest.approx(3 * 3.0)
    assert found["slack"] == pytest.approx(3 * 2 * 3.0 * 0.1)
    assert (found["reports"], found["left"], found["perDay"]) == (3, 2, 5)


def test_a_snap_whose_slack_is_no_promise_is_refused_until_it_is_confirmed(cells: str) -> None:
    """ln 2 / (2 * 3.0) = 115.5 m: a snap of 115 m is taken, one of 116 m is not."""
    script = (
        DEVICE
        + """const said = (options) => {
          try { protect(options); return "taken"; } catch (error) { return error.message; } };
        const snap = 0.116;
        answer = [{ snap: 0.115 }, { snap }, { snap, confirmSlack: true }, { snap, confirmSlack: 1 }].map(said);"""
    )
    taken, refused, confirmed, nearly = in_node(script, path=cells, at=[41.15, -8.61])
    assert (taken, confirmed) == ("taken", "taken")
    assert refused == nearly
    assert "adds 0.696 to the slack of every report" in refused
    assert "factor of 2.01 more" in refused
    assert "confirmSlack: true" in refused


def test_a_clock_that_is_set_back_refreshes_nothing(earth: str) -> None:
    script = (
        DEVICE
        + """let clock = Date.UTC(2030, 0, 2, 12);
        const g = protect({ everySeconds: 600, perDay: 2, now: () => clock });
        const seen = [];
        for (const hours of [0, 1, 2, -24, -48, -1, 24]) {
          clock = Date.UTC(2030, 0, 2, 12) + hours * 3600_000;
          seen.push(JSON.stringify(await question(g)));
        }
        answer = [seen, asked, g.spent().reports];"""
    )
    seen, asked, reports = in_node(script, path=earth, at=[41.15, -8.61])
    assert seen[1] != seen[0]
    assert set(seen[1:6]) == {seen[1]}  # the day's last report, whatever the clock says, until the next day
    assert seen[6] != seen[1]
    assert (asked, reports) == (3, 1)


def test_pages_side_by_side_share_one_report_a_window(earth: str) -> None:
    """Two pages with one storage and the browser's locks: the second looks again once it has its turn."""
    script = (
        DEVICE
        + """const queues = new Map();
        const request = (name, work) => {
          const turn = (queues.get(name) ?? Promise.resolve()).then(work);
          queues.set(name, turn.catch(() => {}));
          return turn;
        };
        Object.defineProperty(globalThis, "navigator", { value: { locks: { request } }, configurable: true });
        Object.defineProperty(globalThis, "localStorage", { value: storage, configurable: true });
        const slow = { getCurrentPosition: (success) => setTimeout(() => device.getCurrentPosition(success), 20) };
        const pages = [0, 1, 2].map(() => protectGeolocation(m, { geolocation: slow }));
        const seen = await Promise.all(pages.map(question));
        answer = [new Set(seen.map(String)).size, asked, pages[0].spent().reports];"""
    )
    assert in_node(script, path=earth, at=[41.15, -8.61]) == [1, 1, 1]


def test_without_a_navigator_it_says_what_to_do(earth: str) -> None:
    script = (
        DEVICE
        + """Object.defineProperty(globalThis, "navigator", { value: undefined, configurable: true });
        const warned = [];
        globalThis.console.warn = (text) => warned.push(text);
        const g = protectGeolocation(m, { storage });
        g.getCurrentPosition(() => {});
        answer = [await question(g), g.spent().reports, warned];"""
    )
    failure, reports, warned = in_node(script, path=earth, at=[0, 0])
    assert failure["code"] == 2
    assert "there is no navigator.geolocation here" in failure["message"]
    assert "pass `geolocation`" in failure["message"]
    assert warned == [failure["message"]]
    assert reports == 0


@pytest.mark.parametrize(("budget", "reports"), [(40, 10), (39.9, 9), (4, 1), (4.4, 1), (4000, 1000)])
def test_a_day_is_planned_within_its_budget(earth: str, budget: float, reports: int) -> None:
    script = (
        DEVICE
        + "const { sentence, ...plan } = planDay(m, { budget: given.budget, hours: 16 }); answer = [plan, sentence];"
    )
    plan, sentence = in_node(script, path=earth, budget=budget, at=[0, 0])
    assert plan["perDay"] == reports
    assert plan["epsilon"] == pytest.approx(4.0 * reports)
    assert plan["epsilon"] <= budget
    assert plan["everySeconds"] == 60 * max(1, math.ceil(16 * 60 / reports))
    assert f"at most {reports} a day" in sentence
    assert f"an epsilon of {4 * reports} per km." in sentence


def test_a_plan_is_what_a_day_then_costs(earth: str) -> None:
    script = (
        DEVICE
        + """let clock = Date.UTC(2030, 0, 1, 6);
        const plan = planDay(m, { budget: 40, hours: 16 });
        const g = protect({ now: () => clock, ...plan });
        for (; clock < Date.UTC(2030, 0, 1, 24); clock += 60_000) await question(g);
        clock -= 60_000;
        answer = [g.spent(), asked];"""
    )
    spent, asked = in_node(script, path=earth, at=[41.15, -8.61])
    assert (spent["epsilon"], spent["left"], asked) == (40.0, 0, 10)


def test_a_plan_that_pays_for_nothing_is_refused(earth: str) -> None:
    script = (
        DEVICE
        + """const said = (options) => { try { return planDay(m, options); } catch (error) { return error.message; } };
        answer = [{ budget: 3 }, { budget: NaN }, { budget: 40, hours: 0 }, { budget: 40, hours: 25 }, {}].map(said);"""
    )
    little, *others = in_node(script, path=earth, at=[0, 0])
    assert little.startswith("a budget of 3 a day does not pay for one report, which costs 4 per km")
    assert all("must be" in sentence for sentence in others)


def test_types_leave_nothing_open() -> None:
    types = (Path(__file__).parents[2] / "js" / "dist" / "metricdp.d.ts").read_text(encoding="utf-8")
    code = "\n".join(line for line in types.splitlines() if not line.lstrip().startswith(("*", "/*")))
    assert ": any" not in code
    assert "Function" not in code
