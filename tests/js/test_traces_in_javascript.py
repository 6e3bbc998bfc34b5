"""The predictive mechanism on a device: its tests, reports and costs are those of Python from the same words."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import metricdp as mdp
from browsers import PROJECT
from browsers import in_node as ask
from metricdp import mobility
from metricdp.artifacts import save
from metricdp.mechanisms.noise.arbitrary_precision import exact_ball
from metricdp.metrics import EARTH_RADIUS_KM
from metricdp.mobility import PREDICTIONS, StepCost, TraceRun
from metricdp.mobility.prediction import exact_tail, flip, tail, true_distance
from metricdp.randomness import RowWords

RNG = np.random.default_rng(23)


class Logged:
    """A source that remembers: one word for every look at a coin, a key of four for every fresh report."""

    def __init__(self) -> None:
        self.coins: list[int] = []
        self.key = b""

    def words(self, count: int) -> Any:
        drawn = RNG.integers(0, 2**64, count, dtype=np.uint64)
        if count == 1:
            self.coins.append(int(drawn[0]))
        else:
            self.key = drawn.tobytes()
        return drawn


def halves(word: int) -> list[int]:
    return [word >> 32, word & 0xFFFFFFFF]


SOURCE = """const source = ({ coins, words }) => ({ at: 0, high: 0, low: 0,
    next() { [this.high, this.low] = coins[this.at++]; },
    limb(attempt, uniform) {
      const word = words[attempt][uniform];
      return [parseInt(word.slice(0, 8), 16), parseInt(word.slice(8), 16)];
    } });"""


@pytest.mark.parametrize(
    ("metric", "prediction"),
    [(mdp.Haversine(), "linear"), (mdp.Lp(2), "parrot"), (mdp.Lp(1), "linear")],
    ids=["earth", "plane", "diamond"],
)
def test_equal_words_give_the_trace_of_python(metric: Any, prediction: str, tmp_path: Path) -> None:
    noise = mdp.laplace(metric, 4.0)
    scale = 0.01 if isinstance(metric, mdp.Haversine) else 0.5
    trace = np.array([41.0, 2.0]) + scale * RNG.normal(size=(40, 2)).cumsum(axis=0)
    test, threshold, total = 1.3, 0.8, 90.0

    def budget(run: TraceRun) -> StepCost | None:
        step = StepCost(test, 4.0, threshold) if len(run) else StepCost(0.0, 4.0)
        return step if run.fits(step, total) else None

    mechanism = mobility.predictive(metric, budget=budget, prediction=PREDICTIONS[prediction])
    run, steps = TraceRun(), []
    for place in mechanism.ground.encode(trace):
        source = Logged()
        if not mechanism.advance(run, place, rng=source):
            steps.append({"place": place.tolist(), "coins": [], "words": []})
            break
        digits, width = RowWords(source.key or bytes(32), noise.distribution.width).digits(0), noise.distribution.width
        uniforms = [[f"{digits(a, k, 1):016x}" for k in range(width)] for a in range(24)]
        steps.append({"place": place.tolist(), "coins": [halves(word) for word in source.coins], "words": uniforms})
    script = f"""{SOURCE}
        const noise = await open(given.path);
        let trace = noise.trace(given.options);
        const found = given.steps.map((step, k) => {{
          const from = JSON.parse(JSON.stringify(trace));
          if (k === 7) trace = noise.trace({{ ...given.options, from }}); // the app ended
          return trace.next(step.place, {{ words: source(step) }});
        }});
        answer = [found, trace.spent, trace.reports];"""
    options = {"test": test, "threshold": threshold, "total": total, "prediction": prediction}
    path = str(save(noise, tmp_path / "noise.mdp"))
    found, spent, reports = ask(script, path=path, steps=steps, options=options)
    given = [one for one in found if one is not None]
    assert [one["fresh"] for one in given] == run.fresh
    assert [one["point"] for one in given] == [np.asarray(report).tolist() for report in run.reports]
    assert reports == [one["point"] for one in given[5:]]  # those since it was resumed, and two before
    assert spent == run.spent <= total
    assert 2 < sum(run.fresh) < len(run)
    assert (len(given) < len(steps)) == (len(run) < len(trace))  # the same step ends it


def test_coins_are_exact_where_doubles_cannot_decide() -> None:
    """Words on the border of the probability, bit by bit: Python's answer, which arbitrary precision gives."""
    import flint

    cases, expected = [], []
    metrics = (mdp.Haversine(), mdp.Haversine("mi"), mdp.Lp(2), mdp.Lp(1), mdp.Lp(np.inf), mdp.Lp(3))
    for number in range(48):
        metric = metrics[number % len(metrics)]
        place = RNG.uniform(-80, 80, 2)
        prediction = place if number < 6 else place + RNG.normal(size=2) * 10.0 ** RNG.uniform(-9, 0)
        away = float(metric(place, prediction))
        test = float(RNG.uniform(0.2, 3.0) / max(away, 1e-3))
        threshold = float(away * RNG.uniform(0.0, 2.0))
        with flint.ctx.workprec(600):
            excess = true_distance(place, prediction, metric) - exact_ball(threshold)
            chance = exact_tail(exact_ball(test) * excess)
            border = int((chance * flint.arb(2) ** 192).floor().unique_fmpz())
        whole = border + int(RNG.integers(-1, 2))
        words = [(whole >> shift) & (2**64 - 1) for shift in (128, 64, 0)] + [int(RNG.integers(0, 2**63))] * 4
        named = {"name": type(metric).__name__, "unit": metric.unit, "parameters": {"p": getattr(metric, "p", 2.0)}}
        if named["parameters"]["p"] == np.inf:
            named["parameters"] = {"p": "Infinity"}
        cases.append([named, place.tolist(), prediction.tolist(), {"test": test, "threshold": threshold}])
        cases[-1].append([halves(word) for word in words])
        listed = iter(words)
        source: Any = type(
            "Listed", (), {"words": lambda self, count, listed=listed: np.array([next(listed)], np.uint64)}
        )()
        expected.append(flip(place, prediction, metric, test, threshold, source))
    script = f"""const {{ isNear }} = await import("{(PROJECT / "js" / "src" / "predictive.js").as_uri()}");
        answer = given.cases.map(([metric, place, prediction, step, words]) => {{
          if (metric.parameters.p === "Infinity") metric.parameters.p = Infinity;
          const source = {{ at: 0, next() {{ [this.high, this.low] = words[this.at++]; }} }};
          return isNear(metric, place, prediction, step, source);
        }});"""
    assert ask(script, cases=cases) == expected
    assert len(set(expected)) == 2


def test_whoever_stays_spends_little_and_a_total_is_never_exceeded(tmp_path: Path) -> None:
    """At one place most tests pass; the chance is the tail of the distance; costs are those of `FixedUtility`."""
    path = str(save(mdp.laplace(mdp.Haversine(), 10.0), tmp_path / "noise.mdp"))
    script = """const m = await open(given.path);
        const trace = m.trace({ total: 60, rest: 1 });
        const steps = [];
        for (let step = trace.next([41, 2]); step !== null && steps.length < 400; step = trace.next([41, 2]))
          steps.push(step.fresh);
        const coins = m.trace({ test: 5, threshold: 0.1 });
        const { isNear } = await import(given.module);
        const metric = { name: "Haversine", unit: "km", parameters: {} };
        const chance = { next() { [this.high, this.low] = crypto.getRandomValues(new Uint32Array(2)); } };
        let near = 0;
        for (let k = 0; k < 6000; k++) near += isNear(metric, [41, 2], [41.0027, 2], coins, chance) ? 1 : 0;
        answer = { steps, spent: trace.spent, test: trace.test, threshold: trace.threshold, near };"""
    found = ask(script, path=path, module=(PROJECT / "js" / "src" / "predictive.js").as_uri())
    tuning = mobility.FixedUtility(1.0).tuning
    assert found["test"] == pytest.approx(tuning.share * 10.0, rel=1e-12)
    assert found["threshold"] == pytest.approx(tuning.step(10.0).threshold, rel=1e-12)
    steps, fresh = found["steps"], sum(found["steps"])
    assert steps[0]
    assert found["spent"] <= 60
    tests = sum(1 for k in range(1, len(steps)) if not steps[k - 1])  # the step after a fresh report rests
    rate = Fraction(found["test"])
    assert Fraction(found["spent"]) == pytest.approx(float(10 * fresh + tests * rate), rel=1e-12)
    away = EARTH_RADIUS_KM * np.radians(0.0027)
    chance = float(tail(5 * (away - 0.1)))
    assert abs(found["near"] / 6000 - chance) < 6 * np.sqrt(chance * (1 - chance) / 6000)


def test_what_is_no_trace_is_refused(tmp_path: Path) -> None:
    made = {
        "noise": mdp.laplace(mdp.Haversine(), 1.0),
        "table": mdp.exponential(mdp.grid((2, 2)), 1.0),
        "normal": mdp.gaussian(mdp.Haversine(), 1.0),
        "ellipse": mdp.laplace(mdp.Mahalanobis(np.eye(2)), 1.0),
    }
    paths = {name: str(save(one, tmp_path / f"{name}.mdp")) for name, one in made.items()}
    calls = [
        "m.table.trace()", "m.normal.trace()", "m.ellipse.trace()", "m.noise.trace({ total: 0.5 })",
        "m.noise.trace({ rest: -1 })", "m.noise.trace({ prediction: 'else' })", "m.noise.trace({ test: 1 })",
        "m.noise.trace({ test: 0, threshold: 1 })", "m.noise.trace({ confidence: 0.4 })", "m.noise.trace({ slope: 0 })",
        "m.noise.trace().next([91, 0])", "m.noise.trace().next(null)", "m.noise.trace({ from: {} })",
        "m.noise.trace({ from: { ...m.noise.trace().toJSON(), spent: '0' } })", "m.noise.trace({ from: 'x' })",
        "m.noise.trace({ from: { ...m.noise.trace().toJSON(), sha256: '0' } })",
    ]  # fmt: skip
    script = f"""const m = {{}};
        for (const [name, path] of Object.entries(given.paths)) m[name] = await open(path);
        const said = (call) => {{ try {{ return call(); }} catch (error) {{ return error.name; }} }};
        answer = [{", ".join(f"() => {call}" for call in calls)}].map(said);"""
    assert ask(script, paths=paths) == ["Unsupported"] * 3 + ["InvalidInput"] * 13
