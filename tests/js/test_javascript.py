"""The JavaScript module, in real headless Chromium and in Node: the laws of Python, and nothing altered gets in."""

from __future__ import annotations

import base64
import json
import math
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import browsers
import metricdp as mdp
from brute import FALSE_ALARM, fits, grid
from forging import rewritten
from instances import interpolated, local_on, place_and_hour, some_local, streets, with_zeros
from metricdp.artifacts import save
from metricdp.metrics import EARTH_RADIUS_KM

PROJECT = Path(__file__).parents[2]
RNG = np.random.default_rng(2026)


class Files:
    """Mechanism files by name, written once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: dict[str, Any] = {}
        self.private, self.public = mdp.artifacts.create_keys(folder / "me")
        plane = mdp.FiniteSpace(grid(7), mdp.Lp(2))
        words = mdp.FiniteSpace(RNG.normal(size=(5, 3)), mdp.Lp(2), coordinates=["cat", "dög", "", "bird", "no"])
        earth = mdp.FiniteSpace(np.array([[41.0, 179.9], [41.0, -179.9], [89.0, 0.0], [90.0, 0.0]]), mdp.Haversine())
        self._add("dense", mdp.exponential(plane, 1.0))
        self._add("sparse", mdp.exponential(plane, 1.0), storage="sparse")
        self._add("quantised", mdp.quantised(mdp.exponential(plane, 1.0), bits=16))
        self._add("quantised40", mdp.quantised(mdp.exponential(plane, 1.0), bits=40))
        self._add("zeros", with_zeros(), storage="sparse", licence="© somebody", key=self.private)
        self._add("local", some_local(), key=self.private)
        self._add("interpolated", interpolated())
        self._add("rounded", mdp.quantised(interpolated(), bits=20))
        self._add("product", place_and_hour())
        self._add("streets", streets(), storage="sparse")
        self._add("sphere", mdp.laplace(mdp.Haversine(), 10.0), key=self.private)
        self._add("wide", mdp.laplace(mdp.Haversine(), 1e-4))
        self._add("far", mdp.laplace(mdp.Haversine(), 4e-4))
        self._add("words", mdp.madlib(words, 2.0))
        self._add("earth", mdp.exponential(earth, 0.001))
        for name, metric, dimension in [
            ("line", mdp.Lp(1), 1), ("plane", mdp.Lp(2), 2), ("diamond", mdp.Lp(1), 2), ("square", mdp.Lp(np.inf), 2),
            ("three", mdp.Lp(3), 2), ("space", mdp.Lp(2), 3),
        ]:  # fmt: skip
            self._add(name, mdp.laplace(metric, 2.0, dimension=dimension))
        self._add("ellipse", mdp.laplace(mdp.Mahalanobis([[2.0, 0.6], [0.6, 1.0]]), 2.0))

    def _add(self, name: str, mechanism: Any, **options: Any) -> None:
        save(mechanism, self[name], **options)
        self.made[name] = mdp.load(self[name])

    def __getitem__(self, name: str) -> Path:
        return self.folder / f"{name}.mdp"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("mechanisms"))


@pytest.fixture(scope="module", params=["chromium", "node"])
def engine(request: pytest.FixtureRequest) -> Iterator[browsers.Engine]:
    if (browsers.chromium if request.param == "chromium" else browsers.node)() is None:
        pytest.skip(f"{request.param} is not installed (Debian: apt install chromium nodejs)")
    with browsers.running(request.param) as running:
        yield running


TABLES = {
    "dense": [0, 3, 24, 30, 48], "sparse": [0, 3, 24, 30, 48], "quantised": [0, 3, 24, 30, 48], "quantised40": [5],
    "zeros": [0, 1, 2, 3], "local": [0, 7, 29],
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_tables_have_the_stored_law(engine: browsers.Engine, files: Files, name: str) -> None:
    rows = TABLES[name]
    made = files.made[name]
    distribution = made.matrix / made.matrix.sum(axis=1, keepdims=True)
    counted = engine.ask("counts", file=engine.offer(files[name]), secrets=rows, count=100_000)
    for row, counts in zip(rows, counted, strict=True):
        fits(counts, distribution[row])
        ours = np.bincount(made.sample(np.full(100_000, row)), minlength=distribution.shape[1])
        both = np.array([counts, ours])[:, (np.array(counts) + ours) > 20]
        assert stats.chi2_contingency(both).pvalue > FALSE_ALARM  # and against Python's own draws
    assert np.allclose(engine.ask("laws", file=engine.offer(files[name]), secrets=rows), distribution[rows], rtol=1e-12)


BETWEEN = {
    "interpolated": [[0.0, 0.0], [1.3, 2.2], [2.0, 2.0], [3.999, 0.001], [4.0, 4.0]],
    "rounded": [[1.3, 2.2], [3.0, 1.0]],
    "streets": [[0, 0.0], [5, 2.9], [3, 1.25], [1, 2.0]],
}


@pytest.mark.parametrize("name", BETWEEN)
def test_laws_between_anchors(engine: browsers.Engine, files: Files, name: str) -> None:
    distribution = files.made[name].probabilities(np.array(BETWEEN[name], float))
    address = engine.offer(files[name])
    assert np.allclose(engine.ask("laws", file=address, secrets=BETWEEN[name]), distribution, rtol=1e-12)
    for counts, row in zip(
        engine.ask("counts", file=address, secrets=BETWEEN[name], count=50_000), distribution, strict=True
    ):
        fits(counts, row)


def halves(words: Any) -> list[list[int]]:
    return [[int(word) >> 32, int(word) & 0xFFFFFFFF] for word in words]


class Given:
    """The same words for Python."""

    def __init__(self, words: Any) -> None:
        self._words = [int(word) for word in words]

    def words(self, count: int, /) -> Any:
        taken, self._words = self._words[:count], self._words[count:]
        assert len(taken) == count
        return np.array(taken, dtype=np.uint64)


def edge_words(weights: Any) -> list[int]:
    """Words on and beside every boundary of a law, where only exact arithmetic decides."""
    total = sum((Fraction(float(w)) for w in weights), Fraction(0))
    running, found = Fraction(0), []
    for weight in weights[:-1]:
        running += Fraction(float(weight))
        edge = math.floor(running / total * 2**64)
        found += [word for word in (edge - 1, edge, edge + 1) if 0 <= word < 2**64]
    return [*found, 0, 2**64 - 1]


@pytest.mark.parametrize("name", ["dense", "sparse", "quantised", "quantised40", "zeros"])
def test_the_same_words_give_the_same_reports(engine: browsers.Engine, files: Files, name: str) -> None:
    made = files.made[name]
    draws = []
    for row in range(0, len(made.matrix), 1 if name == "zeros" else 7):
        for word in [*edge_words(made.matrix[row])[:60], *RNG.integers(0, 2**64, 10, dtype=np.uint64)]:
            draws.append((row, [int(word), *(int(w) for w in RNG.integers(0, 2**64, 3, dtype=np.uint64))]))
    theirs = engine.ask(
        "replay", file=engine.offer(files[name]), draws=[{"secret": r, "words": halves(w)} for r, w in draws]
    )
    ours = [int(made.sample(row, rng=Given(words))) for row, words in draws]
    assert theirs == ours
    for (row, words), code in zip(draws, ours, strict=True):  # and both are right
        weights = [Fraction(float(w)) for w in made.matrix[row]]
        place = sum(Fraction(w, 2 ** (64 * (k + 1))) for k, w in enumerate(words)) * sum(weights)
        assert sum(weights[:code]) <= place <= sum(weights[: code + 1])


def test_the_same_words_give_the_same_reports_of_sparse_rows(engine: browsers.Engine, files: Files) -> None:
    """At every boundary of a row's own reports, of what it leaves of the background, and in the background."""
    made, draws = files.made["local"], []
    everything = sum(Fraction(float(w)) for w in made.background)
    for row in range(0, 30, 7):
        part = slice(made.starts[row], made.starts[row + 1])
        near = [Fraction(float(w)) for w in made.values[part]]
        rest = everything - sum(Fraction(float(made.background[k])) for k in made.columns[part])
        for word in [*edge_words([*near, rest]), *RNG.integers(0, 2**64, 30, dtype=np.uint64)]:
            draws.append((row, [int(word), *(int(w) for w in RNG.integers(0, 2**64, 30, dtype=np.uint64))]))
    theirs = engine.ask(
        "replay", file=engine.offer(files["local"]), draws=[{"secret": r, "words": halves(w)} for r, w in draws]
    )
    assert theirs == [int(made.sample(row, rng=Given(words))) for row, words in draws]


def test_the_same_words_give_the_same_reports_where_weights_are_codes(engine: browsers.Engine, tmp_path: Path) -> None:
    made = local_on(mdp.FiniteSpace(np.arange(200.0), mdp.Lp(1)), 40.0, 0.1)
    path, draws = save(made, tmp_path / "codes.mdp"), []
    for row in range(0, 200, 9):
        draws += [(row, [int(w) for w in RNG.integers(0, 2**64, 30, dtype=np.uint64)]) for _ in range(20)]
    asked = [{"secret": row, "words": halves(words)} for row, words in draws]
    theirs = engine.ask("replay", file=engine.offer(path), draws=asked)
    assert theirs == [int(made.sample(row, rng=Given(words))) for row, words in draws]


FORGED_CODES = {
    "a code beyond the table": ("codes", lambda a: np.where(np.arange(len(a)) == 3, 255, a).astype(np.uint8)),
    "a table that rises": ("table", lambda a: a[::-1].copy()),
    "a negative weight": ("table", lambda a: np.append(a[:-1], np.float32(-1))),
    "codes with a sign": ("codes", lambda a: a.astype(np.int64)),
}


@pytest.mark.parametrize("name", FORGED_CODES)
def test_forged_codes_are_refused(engine: browsers.Engine, tmp_path: Path, name: str) -> None:
    part, alter = FORGED_CODES[name]
    path = save(local_on(mdp.FiniteSpace(np.arange(200.0), mdp.Lp(1)), 40.0, 0.1), tmp_path / "codes.mdp")

    def change(manifest: Any, tensors: Any) -> None:
        where = manifest["body"]["values"][part]
        tensors[where] = alter(tensors[where])

    rewritten(path, change)
    answer = engine.ask("open", data=base64.b64encode(path.read_bytes()).decode())
    assert answer["error"] == "CorruptFile"


def test_the_accuracy_of_sparse_rows_holds_what_it_says(engine: browsers.Engine, files: Files) -> None:
    """Never below the exact radius; the rows here leave more than 5 % to the background, so that all reports count."""
    made, wanted = files.made["local"], 0.0
    for row, distribution in enumerate(made.matrix):
        away = [math.dist(made.inputs.points[row], place) for place in made.outputs.points]
        order = np.argsort(away)
        reached = int(np.searchsorted(np.cumsum(distribution[order] / distribution.sum()), 0.95))
        wanted = max(wanted, away[order[reached]])
    assert engine.ask("accuracy", file=engine.offer(files["local"]))[0] == pytest.approx(wanted, rel=1e-12)


def test_reports_beyond_65536_are_counted_in_blocks(engine: browsers.Engine, tmp_path: Path) -> None:
    places, reports = mdp.FiniteSpace(np.arange(2.0), mdp.Lp(1)), mdp.FiniteSpace(np.arange(150_000.0), mdp.Lp(1))
    columns = [0, 65_535, 65_536, 131_071, 149_999, 65_536, 149_999]
    bare = local_on(places, 0.5)
    values, background = np.linspace(1, 2, 7), np.full(150_000, 1e-6)
    promise, certificate = replace(bare.guarantee, epsilon=20.0), replace(bare.certificate, epsilon=20.0)
    made = mdp.mechanisms.LocalMechanism(places, reports, [0, 5, 7], columns, values, background, promise, certificate)
    path = save(made, tmp_path / "wide.mdp")
    laws = np.array(engine.ask("laws", file=engine.offer(path), secrets=[0, 1]))
    for row, own in enumerate((columns[:5], columns[5:])):
        weights = background.astype(np.float32).astype(float)
        weights[own] = values[:5] if row == 0 else values[5:].astype(np.float32)
        assert np.allclose(laws[row], weights / weights.sum(), rtol=1e-6, atol=0)


@pytest.mark.parametrize("name", ["interpolated", "rounded", "streets"])
def test_the_same_words_round_to_the_same_anchor(engine: browsers.Engine, files: Files, name: str) -> None:
    made = files.made[name]
    axes = 1 if name == "streets" else 2
    draws = []
    for _ in range(300):
        secret = [int(RNG.integers(6)), float(RNG.uniform(0, 1))] if axes == 1 else RNG.uniform(0, 4, 2).tolist()
        draws.append((secret, [int(w) for w in RNG.integers(0, 2**64, axes + 4, dtype=np.uint64)]))
    theirs = engine.ask(
        "replay", file=engine.offer(files[name]), draws=[{"secret": s, "words": halves(w)} for s, w in draws]
    )
    assert theirs == [int(made.sample(np.array([s], float), rng=Given(w))[0]) for s, w in draws]


def test_coins_are_exact_where_doubles_cannot_decide(engine: browsers.Engine) -> None:
    """Words on both sides of theta, found with 400-bit balls."""
    import flint

    cases, wanted = [], []
    with flint.ctx.workprec(400):
        for ratio in (0.0, 1e-9, 0.3, 1.0, 2.5, 40.0, 300.0):
            for top, bottom in ((1, 3), (1, 1000), (499, 1000), (2, 3), (1, 2**60)):
                a = flint.arb(ratio)
                length = 2 * ((1 + a.exp()) / 2).log()
                near = flint.arb(flint.fmpq(min(top, bottom - top), bottom))
                share = ((length * near).exp() - 1) / (a.exp() - 1) if ratio > 0 else near
                share = 1 - share if 2 * top > bottom else share
                place = int((share * flint.arb(2) ** 256).floor().unique_fmpz())  # theta = place / 2**256 and a rest
                for shift in (-(2**60), -1, 1, 2**60, -(2**180), 2**180):
                    word = place + shift
                    if 0 <= word < 2**256:
                        parts = [word >> 192, (word >> 128) % 2**64, (word >> 64) % 2**64, word % 2**64, 7, 7]
                        cases.append({"top": str(top), "bottom": str(bottom), "ratio": ratio, "words": halves(parts)})
                        wanted.append(shift < 0)
    assert engine.ask("flips", cases=cases) == wanted


PLACES = [[0.0, 0.0], [41.15, -8.61], [-33.9, 151.2], [89.99, 120.0], [90.0, 0.0], [12.0, 179.9999], [-90.0, 33.0]]


def unit(points: Any) -> Any:
    north, east = np.radians(np.asarray(points, float)).T
    return np.stack([np.cos(north) * np.cos(east), np.cos(north) * np.sin(east), np.sin(north)], axis=-1)


@pytest.mark.parametrize(("name", "epsilon"), [("sphere", 10.0), ("wide", 1e-4), ("far", 4e-4)])
def test_the_sphere(engine: browsers.Engine, files: Files, name: str, epsilon: float) -> None:
    """Radius by its closed form, bearing uniform: at the equator, the poles and the antimeridian."""
    drawn = engine.ask("reports", file=engine.offer(files[name]), secrets=PLACES, count=20_000)
    rate, end = epsilon * EARTH_RADIUS_KM, np.pi

    def below(t: Any) -> Any:  # integral of exp(-rate t) sin t, normalised
        part = 1.0 - np.exp(-rate * t) * (np.cos(t) + rate * np.sin(t))
        return part / (1.0 + np.exp(-rate * end))

    for place, points in zip(PLACES, drawn, strict=True):
        reports = np.array(points)
        pitch = files.made[name].lattice.pitch
        assert np.allclose(np.rint(reports / pitch) * pitch, reports, atol=1e-9)
        assert np.all(np.abs(reports[:, 0]) <= 90)
        assert np.all((reports[:, 1] >= -180) & (reports[:, 1] < 180))
        centre, others = unit([place])[0], unit(reports)
        angle = 2 * np.arctan2(np.linalg.norm(others - centre, axis=1), np.linalg.norm(others + centre, axis=1))
        assert stats.kstest(angle, below).pvalue > FALSE_ALARM
        east = np.array([-np.sin(np.radians(place[1])), np.cos(np.radians(place[1])), 0.0])
        bearing = np.arctan2(others @ east, others @ np.cross(centre, east))
        assert stats.kstest((bearing / (2 * np.pi)) % 1.0, "uniform").pvalue > FALSE_ALARM


@pytest.mark.parametrize("name", ["line", "plane", "diamond", "square", "three", "space", "ellipse"])
def test_noise_of_vectors(engine: browsers.Engine, files: Files, name: str) -> None:
    made = files.made[name]
    dimension = made.inputs.dimension
    centre = np.linspace(0.3, 1.0, dimension)
    reports = np.array(
        engine.ask("reports", file=engine.offer(files[name]), secrets=[centre.tolist()], count=20_000)[0]
    )
    radius = made.inputs.metric(reports, centre)
    assert (
        stats.kstest(radius, stats.gamma(dimension, scale=0.5).cdf).statistic < 0.027
    )  # of which the lattice takes up to 0.007
    ours = made.sample(np.tile(centre, (20_000, 1)))
    for direction in np.eye(dimension).tolist() + ([[0.6, -0.8]] if dimension == 2 else []):
        assert stats.ks_2samp(reports @ direction, ours @ direction).pvalue > FALSE_ALARM


def test_the_nearest_word(engine: browsers.Engine, files: Files) -> None:
    made = files.made["words"]
    counted = engine.ask("counts", file=engine.offer(files["words"]), secrets=[0, "dög", ""], count=20_000)
    for code, counts in zip((0, 1, 2), counted, strict=True):
        ours = np.bincount(made.sample(np.full(20_000, code)), minlength=5)
        assert stats.chi2_contingency(np.array([counts, ours]) + 1).pvalue > FALSE_ALARM
    assert engine.ask("error", file=engine.offer(files["words"]), secret="dog")["error"] == "OutOfDomain"


def test_products_are_drawn_part_by_part(engine: browsers.Engine, files: Files) -> None:
    address = engine.offer(files["product"])
    drawn = engine.ask("reports", file=address, secrets=[[[41.0, 2.0], 5, [1.0, 2.0]]], count=20_000)[0]
    _, hour, cell = files.made["product"].parts
    for part, row, values in ((hour, 5, [d[1] for d in drawn]), (cell, 7, [d[2] for d in drawn])):
        fits(np.bincount(part.outputs.encode(values), minlength=len(part.outputs)), part.matrix[row])
    away = mdp.Haversine()(np.array([d[0] for d in drawn]), np.array([41.0, 2.0]))
    assert stats.kstest(away, stats.gamma(2, scale=0.1).cdf).pvalue > FALSE_ALARM
    for bad in ([[41.0, 2.0], 5], 3, [[41.0, 2.0], 24, 7], [[95.0, 2.0], 5, 7]):
        assert engine.ask("error", file=address, secret=bad)["error"] in ("OutOfDomain", "InvalidInput")


def test_secrets_are_found_as_in_python(engine: browsers.Engine, files: Files) -> None:
    address = engine.offer(files["dense"])
    assert "report" in engine.ask("error", file=address, secret=[3.0, 4.0])
    assert engine.ask("error", file=address, secret=[3.2, 4.0])["error"] == "OutOfDomain"
    assert "report" in engine.ask("error", file=address, secret=[3.2, 4.0], snap=0.3)
    assert engine.ask("error", file=address, secret=[3.2, 4.0], snap=0.1)["error"] == "OutOfDomain"
    for bad in (-1, 49, 1.5, [1.0], [1.0, None], "cat", None):
        assert engine.ask("error", file=address, secret=bad)["error"] in ("OutOfDomain", "InvalidInput"), bad
    places = RNG.uniform(-1, 7, (40, 2))
    distribution = engine.ask("counts", file=address, secrets=places.tolist(), count=1, snap=5)
    assert all(sum(counts) == 1 for counts in distribution)
    earth = engine.offer(files["earth"])
    laws = files.made["earth"].matrix / files.made["earth"].matrix.sum(axis=1, keepdims=True)
    for place, code in (([41.0, -180.1], 0), ([41.0, 180.1], 1), ([90.0, 77.0], 3)):
        assert np.allclose(engine.ask("laws", file=earth, secrets=[place])[0], laws[code])
        assert int(files.made["earth"].inputs.encode([place])[0]) == code
    assert engine.ask("error", file=earth, secret=[95.0, 0.0])["error"] == "InvalidInput"
    assert engine.ask("error", file=engine.offer(files["interpolated"]), secret=[4.1, 0])["error"] == "OutOfDomain"
    assert engine.ask("error", file=engine.offer(files["streets"]), secret=[0, 9.0])["error"] == "OutOfDomain"


CANARY = [41.1579438, -8.6291053]
STRANGERS: dict[str, list[Any]] = {
    "dense": [CANARY, [3.1579438, 2.6291053], 41579438, -6291053, 4.1579438, ["41579438", 1.0], [41579438, None],
              "41579438"],
    "earth": [CANARY, [141.1579438, 0.0], [0.0, 41579438.5], [CANARY[0]], [*CANARY, 6291053.0]],
    "words": ["wort41579438", ["wort41579438"], [41579438.0, 6291053.0, 0.5], 41579438],
    "interpolated": [CANARY, [41.1579438], [None, 41.1579438], 41579438, "41579438"],
    "streets": [CANARY, [0, 41.1579438], [41579438, 0.5], [1.1579438, 0.5]],
    "sphere": [[141.1579438, 0.0], [0.0, 1579438.5], ["41.1579438", "-8.6291053"], [True, 41.1579438],
               [41.1579438], None],
    "plane": [[1.1579438e300, 0.0], [41.1579438], [41.1579438, "6291053"], [None, None], 41579438],
    "product": [CANARY, [CANARY, 41579438, 7], [[141.1579438, 0.0], 5, 7], [CANARY, 5, [6291053.0, 0.5]]],
}  # fmt: skip


@pytest.mark.parametrize("name", STRANGERS)
def test_an_error_about_a_secret_says_nothing_about_it(engine: browsers.Engine, files: Files, name: str) -> None:
    """Every bad value carries digits of its own; none of them, and no distance, may come out."""
    for snap in (0, 0.01) if name in ("dense", "earth") else (0,):
        for said in engine.ask("strangers", file=engine.offer(files[name]), secrets=STRANGERS[name], snap=snap):
            assert said["name"] in ("InvalidInput", "OutOfDomain"), said
            for canary in ("1579438", "6291053", "579438", "nearest is"):
                assert canary not in said["all"], said["message"]
            digits = re.findall(r"-?\d+(?:\.\d+)?", said["message"])
            assert set(digits) <= {"0", "-90", "90", "-360", "360"}, said["message"]  # the ends of degrees and of codes


def test_geolocation_never_hands_out_the_position_in_an_error(engine: browsers.Engine, files: Files) -> None:
    address = engine.offer(files["earth"])
    found = engine.ask("standing", file=address, places=[CANARY, [1.1579438, 6.291053], [41.0, 179.9]])
    refused = [answer["error"] for answer in found["answers"][:2]]
    assert refused == [{"code": 2, "message": "no protected position is available"}] * 2
    assert "coords" in found["answers"][2]
    assert "1579438" not in json.dumps(found)
    assert found["spent"]["reports"] == 1
    assert found["spent"]["refused"] == 2
    # Within a window the refusal stands, even where the person has come inside: asking often does not tell when.
    found = engine.ask("standing", file=address, places=[CANARY, [41.0, 179.9], [41.0, 179.9]], pause=10)
    assert [answer["error"]["code"] for answer in found["answers"]] == [2, 2, 2]
    assert found["asked"] == 1
    found = engine.ask("standing", file=address, places=[CANARY] * 9, perDay=4)
    assert found["asked"] == 4
    # What the device itself says may hold a position as well.
    failures = [
        {"code": 3, "message": "stuck at 41.1579438"},
        {"message": "41.1579438"},
        {"code": 99, "message": "41.1579438"},
    ]
    found = engine.ask("standing", file=address, places=[CANARY] * 3, failures=failures)
    assert [answer["error"]["code"] for answer in found["answers"]] == [3, 2, 2]
    assert "1579438" not in json.dumps(found)


@pytest.mark.parametrize(
    "name", ["dense", "sparse", "quantised", "zeros", "local", "interpolated", "streets", "sphere", "words", "product"]
)
def test_nothing_altered_gets_in(engine: browsers.Engine, files: Files, name: str) -> None:
    size = files[name].stat().st_size
    flips = [[int(p), int(m)] for p, m in zip(RNG.integers(0, size, 1000), RNG.integers(1, 256, 1000), strict=True)]
    found = engine.ask("alter", file=engine.offer(files[name]), flips=flips, cuts=RNG.uniform(0, 1, 40).tolist())
    assert found["accepted"] == []
    assert set(found["names"]) == {"CorruptFile"}


def test_files_are_judged_as_in_python(engine: browsers.Engine, files: Files, tmp_path: Path) -> None:
    def opened(path: Path, **options: Any) -> Any:
        return engine.ask("open", file=engine.offer(path), **options)

    kept = sorted((PROJECT / "tests" / "data").glob("v*.mdp"))
    assert len(kept) == 12
    for path in kept:
        assert opened(path)["version"] == int(path.name[1])
    found = opened(files["zeros"])
    assert (found["storage"], found["signature"], found["licence"]) == ("sparse", "good", "© somebody")
    public = files.public.read_text()
    assert opened(files["zeros"], trusted=public)["signature"] == "trusted"
    assert opened(files["zeros"], trusted=[found["signedBy"]])["signature"] == "trusted"
    _, other = mdp.artifacts.create_keys(tmp_path / "other")
    assert "not a key that you trust" in opened(files["zeros"], trusted=other.read_text())["message"]
    assert "no signature" in opened(files["dense"], trusted=public)["message"]
    assert opened(files["dense"], trusted="me.pub")["error"] == "InvalidInput"
    forged = tmp_path / "forged.mdp"
    forged.write_bytes(files["sphere"].read_bytes())
    rewritten(forged, lambda m, t: m["body"].update(epsilon=99.0))
    assert "altered after it was signed" in opened(forged)["message"]
    forged.write_bytes(files["dense"].read_bytes())
    rewritten(forged, lambda m, t: m.update(version=3))
    assert "Update metricdp" in opened(forged)["message"]
    forged.write_bytes(files["quantised"].read_bytes())
    rewritten(forged, lambda m, t: t["matrix.counts"].__setitem__((0, 0), 1))
    assert "does not sum" in opened(forged)["message"]
    forged.write_bytes(files["dense"].read_bytes())
    rewritten(forged, lambda m, t: t.update(extra=np.zeros(3)))
    assert "nothing refers to" in opened(forged)["message"]
    for content in (b"", b"lat,lon\n1,2\n", bytes(100), b"\xff" * 64):
        assert engine.ask("open", data=base64.b64encode(content).decode())["error"] == "CorruptFile"
    assert "factor of two" in opened(files["sphere"])["explain"]["short"]


def test_a_forged_table_fails_the_audit(engine: browsers.Engine, files: Files, tmp_path: Path) -> None:
    for name in ("dense", "quantised", "zeros", "earth"):
        found = engine.ask("audit", file=engine.offer(files[name]))
        assert found["holds"]
        assert found["epsilon"] == pytest.approx(mdp.audit(files.made[name]).epsilon, rel=1e-9)
    forged = tmp_path / "forged.mdp"
    forged.write_bytes(files["dense"].read_bytes())

    def steal(manifest: Any, tensors: Any) -> None:
        tensors["matrix"][0, 0] += tensors["matrix"][0, 1] * 0.999
        tensors["matrix"][0, 1] *= 0.001

    rewritten(forged, steal)
    assert not engine.ask("audit", file=engine.offer(forged))["holds"]


def test_a_draw_takes_microseconds(engine: browsers.Engine, files: Files, tmp_path: Path) -> None:
    space = mdp.FiniteSpace(grid(20), mdp.Lp(2))
    save(mdp.exponential(space, 0.5), tmp_path / "big.mdp")
    address = engine.offer(tmp_path / "big.mdp")
    assert engine.ask("speed", file=address, secrets=list(range(400)), count=100_000) < 50
    assert engine.ask("speed", file=engine.offer(files["sphere"]), secrets=[[41.15, -8.61]], count=20_000) < 50
    assert engine.ask("speed", file=engine.offer(files["interpolated"]), secrets=[[1.3, 2.2]], count=20_000) < 50


def test_geolocation_hands_out_one_report_per_window(engine: browsers.Engine, files: Files) -> None:
    found = engine.ask("geolocation", file=engine.offer(files["sphere"]), windows=5, times=4, perDay=3)
    places = [{(a["coords"]["latitude"], a["coords"]["longitude"]) for a in answers} for answers in found["seen"]]
    assert [len(seen) for seen in places] == [1, 1, 1, 1, 1]  # asking again changes nothing
    assert len(set.union(*places)) == 3  # three reports a day, then the last one again
    assert found["asked"] == 3
    assert found["spent"]["reports"] == 3
    assert found["spent"]["epsilon"] == 30.0
    for answer in (*found["seen"][0], found["watched"]):
        coords = answer["coords"]
        assert (coords["latitude"], coords["longitude"]) != (41.15, -8.61)
        assert all(coords[name] is None for name in ("altitude", "altitudeAccuracy", "heading", "speed"))
        assert coords["accuracy"] == pytest.approx(474.4 + 0.4, abs=0.1)  # 95 % of Gamma(2) / epsilon, and the lattice
    assert "41.15," not in json.dumps(found["kept"])
    assert engine.ask("accuracy", file=engine.offer(files["sphere"]))[1] == pytest.approx(math.log(2) / 10, rel=0.02)


def page_of(folder: Path, profile: Path) -> str:
    """Return the example page in Chromium, with a made-up place, after twenty questions."""
    program = browsers.chromium()
    if program is None:
        pytest.skip("chromium is not installed (Debian: apt install chromium)")
    with browsers.serving(folder) as address:
        options = [
            *browsers.CHROMIUM_OPTIONS,
            f"--user-data-dir={profile}",
            "--virtual-time-budget=10000",
            "--dump-dom",
        ]
        done = subprocess.run(
            [program, *options, f"{address}/example/?demo=20"], capture_output=True, text=True, timeout=100, check=False
        )
    assert 'data-ready="yes"' in done.stdout, done.stdout[-2000:]
    return done.stdout


def test_the_example_page(tmp_path: Path) -> None:
    """The app's panel shows a report, the promise and what was spent."""
    page = page_of(PROJECT / "js", tmp_path)
    for words in (
        "20 questions, 1 answer",
        "up to 200 m apart",
        "1 of 24 reports",
        "signature trusted",
        "accuracy   1370 m",
    ):
        assert words in page
    latitude, longitude = (float(re.search(rf"{name} +(-?[0-9.]+)", page)[1]) for name in ("latitude", "longitude"))  # type: ignore[index]
    assert (latitude, longitude) != (41.14961, -8.61099)
    assert float(mdp.Haversine()([latitude, longitude], [41.14961, -8.61099])) < 10.0


def test_the_example_page_never_calls_a_concentrated_promise_pure(tmp_path: Path) -> None:
    """The same page with a file of normal noise: its promise in its own words, in rho and with a delta."""
    shutil.copytree(PROJECT / "js" / "example", tmp_path / "example")
    shutil.copytree(PROJECT / "js" / "dist", tmp_path / "dist")
    mdp.artifacts.create_keys(tmp_path / "me")
    shutil.copy(tmp_path / "me.pub", tmp_path / "example" / "example.pub")
    noise = mdp.gaussian(mdp.Haversine(), mdp.mechanisms.rho_for(2, 0.2, 1e-6))
    save(noise, tmp_path / "example" / "position.mdp", key=tmp_path / "me.key")
    said = re.sub(r"<(script|style).*?</\1>", "", page_of(tmp_path, tmp_path / "profile"), flags=re.DOTALL)
    for words in ("Approximate, not pure", "200 m apart", "rho 0.354 per km^2 in all", "spherical-gaussian"):
        assert words in said
    assert not re.search(r"epsilon|(?<!not )\bpure\b", said)


def test_the_example_file_says_two_at_200_metres() -> None:
    found = mdp.load(PROJECT / "js" / "example" / "position.mdp", trusted=PROJECT / "js" / "example" / "example.pub")
    assert found.guarantee.bound(0.2) == pytest.approx(math.log(2), rel=1e-9)
