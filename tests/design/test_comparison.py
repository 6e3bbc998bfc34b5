"""Comparisons: the same promise for all, intervals that hold, and runs that go on where they were killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import metricdp as mdp
from metricdp.design import BUILDERS, Builder, ComparisonSpec, Figure, Measure, select_builders, simulated_figure
from metricdp.errors import Infeasible, InvalidInput
from metricdp.places import bundled_roads

POINTS = np.round(np.random.default_rng(8).uniform(0, 3, size=(12, 2)), 2)
SPACE = mdp.FiniteSpace(POINTS, mdp.Lp(2))
QUICK = ["exponential", "laplace", "dictionary"]


def test_a_measured_loss_lies_in_its_interval_as_often_as_it_says() -> None:
    """Draws of a table, whose loss is known: the interval misses it in about one of twenty comparisons."""
    mechanism = mdp.exponential(SPACE, 1.0)
    distribution = mechanism.matrix / mechanism.matrix.sum(axis=1, keepdims=True)
    rows = (distribution * np.linalg.norm(POINTS[:, None] - POINTS[None], axis=2)).sum(axis=1)
    prior = np.arange(1.0, 13.0) / 78.0
    streams = iter(np.random.default_rng(0).spawn(10_000))
    truth = {"expected": float(prior @ rows), "worst": float(rows.max())}
    for objective, most in (("expected", 40), ("worst", 30)):
        missed = 0
        for _ in range(400):
            stream = next(streams)
            figure = simulated_figure(
                SPACE, lambda codes, _, own=stream: mechanism.sample(codes, rng=own),
                Measure(objective=objective), prior, 1200,
            )  # fmt: skip
            missed += not figure.low <= truth[objective] <= figure.high
        assert missed <= most
    assert isinstance(figure, Figure)


def test_many_places_are_drawn_by_the_prior() -> None:
    prior = np.zeros(12)
    prior[3] = 1.0
    figure = simulated_figure(SPACE, lambda codes, _: np.full(len(codes), 5), Measure(), prior, 24)
    assert figure.loss == pytest.approx(np.linalg.norm(POINTS[3] - POINTS[5]))
    assert figure.draws == 24


def test_noise_on_roads_is_set_to_the_promise_of_the_roads() -> None:
    """Epsilon / ratio along great circles: no pair of places is farther apart for it than epsilon allows by road."""
    roads = bundled_roads(nodes=40)
    found = mdp.compare(roads, [10.0], builders=["laplace"], draws=400)
    (trial,) = found.trials
    rate = 10.0 if trial.noise_epsilon is None else trial.noise_epsilon
    a, b = np.radians(roads.coordinates[:, None]), np.radians(roads.coordinates[None])
    half = np.sin((a - b)[..., 0] / 2) ** 2 + np.cos(a[..., 0]) * np.cos(b[..., 0]) * np.sin((a - b)[..., 1] / 2) ** 2
    crow = 2 * 6371.009 * np.arcsin(np.sqrt(half))
    assert np.all(rate * crow <= 10.0 * roads.distances * (1 + 1e-9) + 1e-9)


def test_bounds_speak_about_their_own_loss_prior_and_promise_only() -> None:
    question, prior = ComparisonSpec(SPACE), np.arange(1.0, 13.0) / 78.0
    optimal, constopt, exponential = (named(name) for name in NAMES)
    worst = mdp.constopt(mdp.Problem(SPACE, 2.0), nearest=3)
    assert not question.bounds_all(worst, constopt, 2.0, Measure())
    assert question.bounds_all(worst, constopt, 2.0, Measure(objective="worst"))
    near = mdp.optimal(mdp.Problem(SPACE, 2.0, radius=1.0))
    assert not question.bounds_all(near, optimal, 2.0, Measure())  # another promise: only near pairs
    other = mdp.optimal(mdp.Problem(SPACE, 1.0))
    assert not question.bounds_all(other, optimal, 2.0, Measure())  # a stronger promise costs more
    assert question.bounds_all(other, optimal, 1.0, Measure())
    assert ComparisonSpec(SPACE, prior).bounds_all(other, optimal, 1.0, Measure())
    with pytest.raises(InvalidInput, match="another guarantee"):
        ComparisonSpec(SPACE).trial(near_only(exponential.name), 1.0, Measure())


NAMES = ("optimal", "constopt", "exponential")


def named(name: str):
    return BUILDERS.named(name)


def near_only(name: str) -> Builder:
    """A builder whose mechanism protects near pairs only."""
    return Builder(name, lambda problem: mdp.optimal(mdp.Problem(SPACE, 1.0, radius=0.5), gap=0.05), "near pairs")


def test_the_worst_distance_has_a_bound_even_without_a_search() -> None:
    found = mdp.compare(SPACE, [0.5, 1.0], builders=["exponential"], measures=[Measure(objective="worst")])
    for trial in found.trials:
        bound = found.bound(trial)
        assert bound is not None
        best = mdp.optimal(mdp.Problem(SPACE, trial.epsilon), objective="worst", gap=1e-3).certificate.loss
        assert 0 < bound <= best * (1 + 1e-9)


def test_reasons_are_given_for_what_does_not_fit() -> None:
    words = mdp.vocabulary(["a", "b", "c"], np.eye(3))
    fit, missing = select_builders(ComparisonSpec(words), None)
    assert "madlib" in {builder.name for builder in fit}
    assert missing["laplace"] == "noise on words is madlib"
    fit, missing = select_builders(ComparisonSpec(SPACE), None)
    assert "laplace" in {builder.name for builder in fit}
    assert "for places it is laplace" in missing["madlib"]
    assert {builder.name for builder in select_builders(ComparisonSpec(SPACE), ["madlib"])[0]} == {"madlib"}
    with pytest.raises(InvalidInput, match="no builder fits: product"):
        mdp.compare(SPACE, [1.0], builders=["product"])
    with pytest.raises(Infeasible, match="tight_constraints at epsilon"):
        mdp.compare(SPACE, [0.01], builders=["tight_constraints"])


def test_a_finished_comparison_leaves_no_journal_and_another_question_is_not_mixed_in(tmp_path: Path) -> None:
    place = tmp_path / "c.unfinished"
    first = mdp.compare(SPACE, [1.0], builders=QUICK, draws=500, checkpoint=place)
    assert not place.exists()
    assert first.continued == 0
    header = json.dumps({"format": "metricdp.compare", "digest": "of another question"})
    place.write_text(header + "\n" + json.dumps({"key": ["exponential", 1.0, "distance", "expected"]}) + "\n")
    again = mdp.compare(SPACE, [1.0], builders=QUICK, draws=500, checkpoint=place)
    assert again.continued == 0
    assert [one.loss for one in again.trials] == [one.loss for one in first.trials]


SCRIPT = """
import sys, time
import numpy as np
import metricdp as mdp
from metricdp.design import ComparisonSpec
space = mdp.FiniteSpace(np.array(eval_free), mdp.Lp(2))
true = ComparisonSpec.trial
def slow(self, builder, epsilon, measure):
    if epsilon > 1.5 and builder.name == "dictionary":
        print("waiting", flush=True); time.sleep(60)
    return true(self, builder, epsilon, measure)
ComparisonSpec.trial = slow
mdp.compare(space, [1.0, 2.0], builders=["exponential", "laplace", "dictionary"], draws=500, checkpoint=sys.argv[1])
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_comparison_goes_on_where_it_stopped(tmp_path: Path, how: signal.Signals) -> None:
    place = tmp_path / "c.unfinished"
    script = SCRIPT.replace("eval_free", repr(POINTS.tolist()))
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(place)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env=os.environ,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "waiting\n"
    process.send_signal(how)
    process.wait(timeout=20)
    process.stdout.close()
    assert len(place.read_text().splitlines()) == 1 + 5  # all but the last one
    with place.open("a") as file:
        file.write('{"key": ["dictionary", 2.0, "dist')  # a line that was cut off
    started = time.perf_counter()
    found = mdp.compare(SPACE, [1.0, 2.0], builders=QUICK, draws=500, checkpoint=place)
    assert time.perf_counter() - started < 20
    assert found.continued == 5
    assert len(found.trials) == 6
    fresh = mdp.compare(SPACE, [1.0, 2.0], builders=QUICK, draws=500)
    assert [one.loss for one in found.trials] == [one.loss for one in fresh.trials]
    assert found.bounds == fresh.bounds
    assert not place.exists()


def test_a_notebook_shows_it_as_a_table_without_anything_unescaped() -> None:
    found = mdp.compare(SPACE, [1.0], builders=QUICK, measures=[Measure("<i>own</i>", about="<b>")], draws=300)
    html = found._repr_html_()
    assert "<i>own" not in html
    assert "&lt;b&gt;" in html
    assert html.count("<tr>") == 4
    assert "above the bound for these reports" in html


def test_every_noise_is_compared_as_itself_and_none_as_another() -> None:
    """Unit vectors: Laplace and von Mises-Fisher noise are two laws; Gaussian noise keeps no such promise."""
    vectors = np.random.default_rng(3).normal(size=(8, 3))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    flat = mdp.FiniteSpace(vectors, mdp.Lp(2))
    fit, missing = select_builders(ComparisonSpec(flat), None)
    noises = [builder.name for builder in fit if builder.start == "metric"]
    assert noises == ["laplace", "von_mises_fisher"]
    assert "approximate" in missing["gaussian"]
    found = {one.builder: one.loss for one in mdp.compare(flat, [4.0], builders=noises, draws=40_000).trials}
    expected = {"laplace": _drawn_laplace(vectors, 4.0), "von_mises_fisher": _drawn_fisher(vectors, 4.0)}
    for name, loss in expected.items():
        assert found[name] == pytest.approx(loss, rel=0.04), name
    assert abs(found["laplace"] / found["von_mises_fisher"] - 1) > 0.1
    assert "unit vectors" in select_builders(ComparisonSpec(SPACE), None)[1]["von_mises_fisher"]


def _drawn_laplace(vectors: np.ndarray, epsilon: float) -> float:
    """Noise of the l_2 ball in three dimensions, length Gamma(3), then the nearest vector."""
    rng = np.random.default_rng(9)
    way = rng.normal(size=(8, 20_000, 3))
    way *= (rng.gamma(3.0, 1 / epsilon, (8, 20_000)) / np.linalg.norm(way, axis=2))[..., None]
    return _nearest_loss(vectors, vectors[:, None] + way)


def _drawn_fisher(vectors: np.ndarray, epsilon: float) -> float:
    """Reports on the sphere weighted by exp(epsilon <x, y>), from points that are drawn evenly."""
    evenly = np.random.default_rng(9).normal(size=(60_000, 3))
    evenly /= np.linalg.norm(evenly, axis=1, keepdims=True)
    weights = np.exp(epsilon * vectors @ evenly.T)
    weights /= weights.sum(axis=1, keepdims=True)
    near = vectors[(evenly @ vectors.T).argmax(axis=1)]
    return float((weights * np.linalg.norm(vectors[:, None] - near[None], axis=2)).sum(axis=1).mean())


def _nearest_loss(vectors: np.ndarray, reports: np.ndarray) -> float:
    near = vectors[np.linalg.norm(reports[:, :, None] - vectors, axis=3).argmin(axis=2)]
    return float(np.linalg.norm(vectors[:, None] - near, axis=2).mean())


@pytest.mark.parametrize("kind", ["angle", "hyperbolic", "bags", "curves"])
def test_noise_of_other_spaces_reports_the_nearest_secret_in_their_own_distance(kind: str) -> None:
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(7, 4))
    spaces = {
        "angle": mdp.FiniteSpace(rows / np.linalg.norm(rows, axis=1, keepdims=True), mdp.Angular()),
        "hyperbolic": mdp.FiniteSpace(0.3 * np.tanh(rows[:, :2]), mdp.Hyperbolic()),
        "bags": mdp.FiniteSpace(rows, mdp.metrics.Bags(mdp.Lp(2), 2)),
        "curves": mdp.FiniteSpace(rows, mdp.Frechet(mdp.Lp(2))),
    }
    space = spaces[kind]
    strong = mdp.compare(space, [2_000.0], builders=["laplace"], draws=70).trials[0]
    weak = mdp.compare(space, [2.0], builders=["laplace"], draws=700).trials[0]
    assert strong.loss == 0.0  # next to no noise: everybody is the nearest to themselves
    assert 0 < weak.loss < space.distances.max()


def test_masks_and_small_spaces_are_compared_too() -> None:
    few = mdp.FiniteSpace(POINTS[:6], mdp.Lp(2))
    found = mdp.compare(few, [1.0], builders=["masked", "constopt", "weighted_exponential"], draws=100)
    assert [one.builder for one in found.trials] == ["masked", "constopt"]
    assert "it is exponential" in found.missing["weighted_exponential"]


def test_mechanisms_and_functions_of_ones_own_stand_beside_named_builders(tmp_path: Path) -> None:
    matrix = mdp.exponential(SPACE, 0.5).matrix
    mine = mdp.from_matrix(SPACE, matrix, epsilon=0.5)

    def halved(problem: mdp.Problem) -> mdp.mechanisms.MatrixMechanism:
        return mdp.exponential(problem.inputs, problem.epsilon / 2)

    place = tmp_path / "c.unfinished"
    found = mdp.compare(SPACE, [0.25, 1.0], builders=["exponential", mine, halved], checkpoint=place)
    losses = {(one.builder, one.epsilon): one.loss for one in found.trials}
    expected = float((matrix / matrix.sum(axis=1, keepdims=True) * SPACE.distances).sum(axis=1).mean())
    assert losses["own", 1.0] == pytest.approx(expected)
    assert losses["halved", 1.0] == pytest.approx(expected)
    assert ("own", 0.25) not in losses  # it leaks more than that
    assert any(name.startswith("own at epsilon 0.25") for name in found.missing)
    twice = mdp.compare(SPACE, [1.0], builders=[mine, mdp.exponential(SPACE, 1.0)])
    assert {one.builder for one in twice.trials} == {"own", "own_2"}
    with pytest.raises(InvalidInput, match="places that are compared"):
        mdp.compare(SPACE, [1.0], builders=[mdp.exponential(mdp.grid((2, 2)), 1.0)])
    with pytest.raises(InvalidInput, match="must hold names"):
        mdp.compare(SPACE, [1.0], builders=[3])  # type: ignore[list-item]
    with pytest.raises(InvalidInput, match="a list"):
        mdp.compare(SPACE, [1.0], builders="exponential")
    with pytest.raises(Infeasible, match="returned float"):
        mdp.compare(SPACE, [1.0], builders=[lambda problem: 0.5])  # type: ignore[list-item,return-value]


def test_a_matrix_in_the_place_of_the_objective_is_refused_with_the_way_to_give_it() -> None:
    with pytest.raises(InvalidInput, match="loss=matrix"):
        Measure("time", SPACE.distances)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="'expected' or 'worst'"):
        Measure("time", "median")  # type: ignore[arg-type]
    assert Measure("time", loss=SPACE.distances).costs(SPACE).shape == (len(SPACE),) * 2
    assert Measure("time", loss=SPACE.distances.tolist()).costs(SPACE).shape == (len(SPACE),) * 2
    with pytest.raises(InvalidInput, match="finite"):
        Measure("time", loss=np.full((2, 2), np.nan))


def test_what_a_mechanism_of_ones_own_counted_bounds_no_other() -> None:
    dear = mdp.optimal(mdp.Problem(SPACE, 1.0, loss=3.0 * SPACE.distances))
    corner = np.full(len(SPACE), 1e-3)
    corner[0] = 1.0
    skewed = mdp.optimal(mdp.Problem(SPACE, 1.0, prior=corner / corner.sum()))
    found = mdp.compare(SPACE, 1, builders=["exponential", dear, skewed])
    assert found.bounds == {("distance", "expected", 1.0): 0.0}
    assert all(found.bound(one) is None for one in found.trials)


def test_functions_of_ones_own_that_report_other_places_are_left_out() -> None:
    def finer(problem: mdp.Problem) -> mdp.mechanisms.MatrixMechanism:
        return mdp.optimal(mdp.Problem(problem.inputs, problem.epsilon, outputs="finer"))

    def moved(problem: mdp.Problem) -> mdp.mechanisms.MatrixMechanism:
        return mdp.exponential(mdp.FiniteSpace(problem.inputs.points + 1.0, mdp.Lp(2)), problem.epsilon)

    found = mdp.compare(SPACE, [1.0], builders=["exponential", finer, moved], measures=Measure())
    assert [one.builder for one in found.trials] == ["exponential"]
    assert all("other places" in found.missing[f"{name} at epsilon 1"] for name in ("finer", "moved"))


def test_a_builder_is_called_by_its_name_in_one_way() -> None:
    prior = np.arange(1.0, 13.0) / 78.0
    for name, options in (("exponential", {}), ("remapped", {}), ("optimal", {"gap": 0.1}), ("constopt", {})):
        made = named(name).build(SPACE, 1.0, prior=prior, **options)
        assert made.guarantee.epsilon == 1.0, name
        assert mdp.audit(made).holds
    with pytest.raises(InvalidInput, match="needs lengths along axes"):
        named("interpolated").build(mdp.FiniteSpace(np.array([[41.0, 12.0], [41.1, 12.1]]), mdp.Haversine()), 1.0)
