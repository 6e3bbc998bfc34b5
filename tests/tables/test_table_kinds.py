"""The kernel on every kind of mechanism: reports in a table follow the exact law, and no secret stays in it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.stats import chisquare

import metricdp as mdp
from instances import local_on
from metricdp.errors import InvalidInput, NotPrivate, OutOfDomain
from metricdp.mechanisms import StreetMechanism
from metricdp.tables import perturb, perturb_batch

ROWS = 40_000
LINE = mdp.FiniteSpace(np.arange(4.0)[:, None], mdp.Lp(1))


def fits(counts, distribution) -> bool:
    """Tell whether counts are a draw from the law: chi-square over the cells that can be told apart."""
    counts, expected = np.asarray(counts, float), np.asarray(distribution, float) * np.sum(counts)
    assert counts[expected == 0].sum() == 0
    rare = expected < 5
    if rare.any():
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
        counts, expected = counts[expected > 0], expected[expected > 0]
    return chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > 1e-4


def drawn(mechanism, row: dict, **options):
    """Return the protected table of one row repeated."""
    table = pa.table({name: [value] * ROWS for name, value in row.items()} | {"id": np.arange(ROWS)})
    result = perturb(table, mechanism, rng=np.random.default_rng(11), **options)
    assert result["id"].equals(table["id"])
    return result


def counted(values, support):
    return np.array([(np.asarray(values) == value).sum() for value in support])


def laplace_mass(low, high):
    """The mass of the standard Laplace law between two points."""

    def below(x):
        return 0.5 * np.exp(np.minimum(x, 0)) * (x < 0) + (1 - 0.5 * np.exp(-np.maximum(x, 0))) * (x >= 0)

    return below(np.asarray(high, float)) - below(np.asarray(low, float))


def test_noise() -> None:
    mechanism = mdp.laplace(mdp.Lp(1), 0.7, dimension=1, pitch=0.5)
    result = drawn(mechanism, {"x": 3.0})
    cells = np.arange(-40, 41)
    distribution = laplace_mass(0.7 * 0.5 * (cells - 0.5), 0.7 * 0.5 * (cells + 0.5))
    assert fits(counted(result["x"], 3.0 + 0.5 * cells), distribution / distribution.sum())


def test_matrix() -> None:
    mechanism = mdp.exponential(LINE, 0.8)
    assert fits(counted(drawn(mechanism, {"x": 2.0})["x"], range(4)), mechanism.matrix[2])


def test_interpolated() -> None:
    box = mdp.Box([0.0], [3.0], mdp.Lp(1))
    places = np.linspace(0, 3, 31)[:, None]
    losses = np.abs(places - LINE.points[:, 0])
    mechanism = mdp.interpolated(box, LINE, 1.0, loss=(places, losses), prior=np.full(31, 1 / 31), anchors=(3,))
    distribution = np.exp([float(mechanism.log_density([[1.3]], [k])[0]) for k in range(4)])
    assert distribution.sum() == pytest.approx(1.0)
    assert fits(counted(drawn(mechanism, {"x": 1.3})["x"], range(4)), distribution)


def test_remapped_and_nearest() -> None:
    noisy = mdp.exponential(LINE, 1.5)
    prior = np.array([0.5, 0.2, 0.15, 0.15])
    remapped = mdp.remapped(noisy, prior=prior)
    # The best guess for every report under the prior, by hand.
    joint = prior[:, None] * noisy.matrix
    guess = [int((joint[:, k, None] * np.abs(LINE.points - LINE.points[:, 0])).sum(0).argmin()) for k in range(4)]
    assert len(set(guess)) > 1
    distribution = np.zeros(4)
    np.add.at(distribution, guess, noisy.matrix[1])
    assert fits(counted(drawn(remapped, {"x": 1.0})["x"], range(4)), distribution)
    words = mdp.FiniteSpace([[0.0], [1.0], [3.0]], mdp.Lp(1), coordinates=["cat", "dog", "bird"])
    nearest = mdp.madlib(words, 0.9)
    distribution = laplace_mass(
        0.9 * np.array([-np.inf, -0.5, 1.0]), 0.9 * np.array([-0.5, 1.0, np.inf])
    )  # seen from "dog"
    assert fits(counted(drawn(nearest, {"word": "dog"}, columns="word")["word"], ["cat", "dog", "bird"]), distribution)


@pytest.fixture(scope="module")
def streets() -> StreetMechanism:
    roads = mdp.ShortestPath([[0, 1], [1, 2], [2, 0]], [1.0, 2.0, 1.5], 3, unit="km")
    space = mdp.FiniteSpace(
        np.arange(3), roads, coordinates=[[41.0, -8.0], [41.0, -8.01], [41.02, -8.0]], ground=mdp.Haversine()
    )
    return mdp.interpolated(space, space, 1.0, anchors=1)


def test_streets(streets: StreetMechanism) -> None:
    result = drawn(streets, {"street": 1, "offset": 0.6})
    assert result.column_names == ["id", "lat", "lon"]  # the secret is gone
    distribution = np.exp([float(streets.log_density([[1, 0.6]], [k])[0]) for k in range(3)])
    places = streets.outputs.coordinates
    counts = [(np.asarray(result["lat"]) == lat) & (np.asarray(result["lon"]) == lon) for lat, lon in places]
    assert fits([c.sum() for c in counts], distribution)
    beyond = pa.table({"street": [1, 1], "offset": [2.0, 2.1]})
    with pytest.raises(OutOfDomain, match=r"row 1 .*offsets run from 0 to the street's length"):
        perturb(beyond, streets)
    with pytest.raises(OutOfDomain, match=r"row 1 .*offset is 2\.1; .* lies on no street"):
        perturb(beyond, streets, show_values=True)
    dropped = perturb(pa.table({"street": [0.5, 2, 9], "offset": [0.1, 0.2, 0.3]}), streets, on_error="drop")
    assert dropped.num_rows == 1
    with pytest.raises(InvalidInput, match="there is another 'lat'"):
        perturb(pa.table({"street": [1], "offset": [1.0], "lat": [41.0]}), streets)


def contextual_of(base: mdp.FiniteSpace):
    histories = np.array([[a, b] for a in range(4) for b in range(4) if abs(a - b) <= 1])
    augmented = mdp.spaces.Augmented(base, histories, [0.5])
    loss = base.distances[histories[:, 0]]
    return augmented, mdp.contextual(mdp.Problem(augmented.space, 1.0, outputs=base, loss=loss))


def test_contextual_takes_the_places_of_every_step_and_leaves_none_of_them() -> None:
    augmented, mechanism = contextual_of(LINE)
    result = drawn(mechanism, {"place": 2, "place_1": 1}, columns=["place", "place_1"])
    assert result.column_names == ["place", "id"]
    distribution = mechanism.matrix[augmented.encode([[2, 1]])[0]]
    assert fits(counted(result["place"], range(4)), distribution)
    strange = pa.table({"place": [3, 3], "place_1": [3, 0]})
    with pytest.raises(OutOfDomain, match=r"row 1 .*place is 3, place_1 is 0; .* is not a secret"):
        perturb(strange, mechanism, columns=["place", "place_1"], show_values=True)


def test_contextual_on_coordinates_and_words() -> None:
    places = [[41.0 + 0.01 * i, -8.6] for i in range(4)]
    earth = mdp.FiniteSpace(places, mdp.Haversine(), columns=["lat", "lon"])
    augmented, mechanism = contextual_of(earth)
    row = {"lat": 41.0201, "lon": -8.6, "lat_1": 41.01, "lon_1": -8.6}
    result = drawn(mechanism, row, snap=0.05)
    assert result.column_names == ["lat", "lon", "id"]
    distribution = mechanism.matrix[augmented.encode([[2, 1]])[0]]
    assert fits(counted(result["lat"], earth.points[:, 0]), distribution)
    with pytest.raises(OutOfDomain, match="beyond the declared snap"):
        perturb(pa.table({name: [value] for name, value in row.items()}), mechanism, snap=0.005)
    # Snapping every step by itself finds the nearest history, as the plain search over all of them does.
    rng = np.random.default_rng(3)
    values = np.tile(places, 2)[rng.integers(0, 4, 200)] + rng.normal(0, 0.01, (200, 4))
    every = np.stack([augmented.space.ground(values, history) for history in augmented.space.coordinates])
    assert np.array_equal(augmented.space.nearest(values)[0], every.argmin(axis=0))
    words = mdp.FiniteSpace(LINE.points, mdp.Lp(1), coordinates=["a", "b", "c", "d"], columns=["word"])
    augmented, mechanism = contextual_of(words)
    result = drawn(mechanism, {"word": "c", "word_1": "b"})
    assert result.column_names == ["word", "id"]
    assert fits(counted(result["word"], "abcd"), mechanism.matrix[augmented.encode([[2, 1]])[0]])
    with pytest.raises(OutOfDomain, match=r"\(d, a\) is not a word"):
        perturb(pa.table({"word": ["d"], "word_1": ["a"]}), mechanism, show_values=True)


WORDS = mdp.FiniteSpace([[0.0], [1.0], [3.0]], mdp.Lp(1), coordinates=["cat", "dog", "bird"])


def parts():
    hours = mdp.FiniteSpace(np.arange(3.0)[:, None], mdp.Temporal(24.0))
    return mdp.exponential(LINE, 0.8), mdp.exponential(hours, 0.4), mdp.exponential(WORDS, 1.1)


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars"])
def test_a_product_protects_every_part_on_its_own(kind: str) -> None:
    place, hour, word = parts()
    mechanism = mdp.product(place, hour, word)
    table = pa.table({"p": [2.0] * ROWS, "id": np.arange(ROWS), "h": [1] * ROWS, "w": ["dog"] * ROWS})
    frame = {"arrow": lambda: table, "pandas": table.to_pandas, "polars": lambda: pl.from_arrow(table)}[kind]()
    result = perturb(frame, mechanism, columns=["p", "h", "w"], rng=np.random.default_rng(4))
    assert type(result) is type(frame)
    assert np.array_equal(np.asarray(result["id"]), np.arange(ROWS))
    distribution = np.einsum("i,j,k->ijk", place.matrix[2], hour.matrix[1], word.matrix[1])
    seen = pd.DataFrame({name: np.asarray(result[name]) for name in "phw"}).value_counts()
    joint = [seen.get((p, h, w), 0) for p in range(4) for h in range(3) for w in ("cat", "dog", "bird")]
    assert fits(joint, distribution.ravel())


def test_the_promise_of_a_product_is_the_sum() -> None:
    place, hour, word = parts()
    mechanism = mdp.product(place, hour, word)
    sets = [part.inputs for part in (place, hour, word)]
    rows = np.stack(np.meshgrid(range(4), range(3), range(3), indexing="ij"), -1).reshape(-1, 3)
    joint = np.stack([np.kron(np.kron(place.matrix[a], hour.matrix[b]), word.matrix[c]) for a, b, c in rows])
    epsilons = (0.8, 0.4, 1.1)
    bound = sum(
        e * s.distances[np.ix_(rows[:, i], rows[:, i])] for i, (e, s) in enumerate(zip(epsilons, sets, strict=True))
    )
    leaked = np.abs(np.log(joint)[:, None] - np.log(joint)[None]).max(axis=2)
    assert np.all(leaked <= bound + 1e-12)
    off = bound > 0
    assert mdp.audit(mechanism).epsilon == pytest.approx((leaked[off] / bound[off]).max(), rel=1e-9)
    assert mdp.audit(mechanism).verdict == "holds"
    assert (mechanism.guarantee.epsilon, mechanism.guarantee.slack) == (1.0, 0.0)
    points = np.concatenate([s.points[rows[:, i]] for i, s in enumerate(sets)], axis=1)
    assert mechanism.guarantee.metric(points[5], points[20]) == pytest.approx(bound[5, 20])
    codes = [rows[:, i] for i in range(3)]
    again = mechanism.log_density(codes, [c[::-1] for c in codes])
    assert again == pytest.approx(np.log(joint[np.arange(36), np.arange(36)[::-1]]))
    broken = mdp.mechanisms.MatrixMechanism(
        LINE, LINE, mdp.exponential(LINE, 2.0).matrix, place.guarantee, place.certificate
    )
    assert mdp.audit(mdp.product(hour, broken)).verdict == "violated"


def test_a_product_with_noise() -> None:
    place = mdp.laplace(mdp.Haversine(), 10.0)
    mechanism = mdp.product(place, mdp.exponential(WORDS, 1.0))
    assert mechanism.guarantee.slack == place.guarantee.slack
    assert mdp.audit(mechanism).verdict == "holds"
    table = pa.table({"lat": [41.0, 95.0, 41.0], "lon": [-8.0] * 3, "word": ["cat", "dog", "fish"]})
    with pytest.raises(OutOfDomain, match=r"row 1 .*latitude must lie"):
        perturb(table, mechanism, columns=["lat", "lon", "word"])
    result = perturb(table, mechanism, columns=["lat", "lon", "word"], on_error="null")
    assert [result[name].null_count for name in ("lat", "lon", "word")] == [2, 2, 2]  # a bad row is bad as a whole
    assert perturb(table, mechanism, columns=["lat", "lon", "word"], on_error="drop").num_rows == 1
    batch = perturb_batch(table.slice(0, 1).to_batches()[0], mechanism, ["lat", "lon", "word"])
    assert batch.column("word")[0].as_py() in ("cat", "dog", "bird")


def test_products_that_make_no_sense() -> None:
    place, hour, word = parts()
    with pytest.raises(InvalidInput, match="two or more"):
        mdp.product(place)
    with pytest.raises(InvalidInput, match="in one call"):
        mdp.product(mdp.product(place, hour), word)
    promise = mdp.Guarantee(1.0, LINE.metric, basis="none")
    comparison = mdp.mechanisms.MatrixMechanism(LINE, LINE, np.eye(4), promise, place.certificate)
    with pytest.raises(NotPrivate, match="comparison"):
        mdp.product(hour, comparison)
    with pytest.raises(InvalidInput, match="several parts"):
        perturb(pa.table({"x": [1.0], "h": [1.0]}), mdp.product(place, hour), columns=["x", "h"], snap=0.1)
    with pytest.raises(InvalidInput, match="needs 2 columns, got 1"):
        perturb(pa.table({"x": [1.0], "h": [1.0]}), mdp.product(place, hour), columns=["x"])
    with pytest.raises(InvalidInput, match="one per part"):
        mdp.product(place, hour).sample([[1, 2]])


def test_files_without_the_secret(tmp_path, streets: StreetMechanism) -> None:
    import pyarrow.parquet as pq

    pq.write_table(
        pa.table({"street": [0, 1, 2] * 50, "offset": [0.1, 0.2, 0.1] * 50, "n": np.arange(150)}), tmp_path / "in.pq"
    )
    summary = perturb(tmp_path / "in.pq", streets, to=tmp_path / "out.pq")
    result = pq.read_table(tmp_path / "out.pq")
    assert result.column_names == ["n", "lat", "lon"]
    assert summary.kept_columns == ("n",)
    assert set(result["lat"].to_pylist()) <= {41.0, 41.02}


@pytest.mark.parametrize("metric", [mdp.Haversine(), mdp.Lp(1), mdp.Lp(2), mdp.Lp(np.inf)], ids=str)
def test_the_remembered_grid_finds_the_nearest(metric) -> None:
    rng = np.random.default_rng(8)
    places = rng.uniform([60.0, 170.0], [61.0, 181.0], (50, 2))
    space = mdp.FiniteSpace(places, metric)
    rows = rng.uniform([59.8, 169.0], [61.2, 182.0], (20_000, 2))
    away = np.stack([metric(rows, place) for place in places])
    limit = float(np.quantile(away.min(axis=0), 0.6))
    for _ in range(2):  # the second time cells are remembered
        inside, codes = space.admit(rows, snap=limit)
        assert np.array_equal(away.min(axis=0), away[codes, np.arange(len(rows))])
        assert np.array_equal(inside, away.min(axis=0) <= limit)


def test_sparse_rows_and_a_background() -> None:
    mechanism = local_on(LINE, 1.0, 0.8)
    weights = np.exp(-0.4995 * 0.8 * np.minimum(np.abs(np.arange(4.0) - 2.0), 1.0))
    result = drawn(mechanism, {"p": 2.0}, columns=["p"])
    assert fits(counted(result["p"], range(4)), weights / weights.sum())
    snapped = perturb(pa.table({"p": [1.8, 2.2]}), mechanism, columns=["p"], snap=0.25)
    assert set(snapped["p"].to_pylist()) <= {0.0, 1.0, 2.0, 3.0}
    with pytest.raises(OutOfDomain):
        perturb(pa.table({"p": [1.5]}), mechanism, columns=["p"])


def test_every_kind_travels_as_a_file(streets: StreetMechanism) -> None:
    from metricdp.tables import Draws, protect_table, spec_of, task_for

    place, hour, word = parts()
    cases = [
        (mdp.product(place, hour, word), {"p": [2.0], "h": [1.0], "w": ["dog"]}),
        (mdp.product(mdp.laplace(mdp.Haversine(), 10.0), word), {"lat": [41.0], "lon": [-8.0], "w": ["cat"]}),
        (mdp.madlib(WORDS, 0.9), {"w": ["dog"]}),
        (contextual_of(LINE)[1], {"place": [2.0], "place_1": [1.0]}),
        (streets, {"street": [1.0], "offset": [0.5]}),
        (local_on(LINE, 1.0), {"p": [2.0]}),
    ]
    for mechanism, row in cases:
        table = pa.table({name: values * 500 for name, values in row.items()})
        task = task_for(table.column_names, mechanism, columns=list(row))
        parcel = spec_of(task)
        assert parcel.applied == spec_of(task).applied
        draws = Draws(bytes(32), "a", 0, parcel.applied)
        here, there = (protect_table(table, t, draws) for t in (task, parcel.task(table.column_names)))
        assert here.equals(there)
        assert parcel.task(table.column_names).guarantee.epsilon == mechanism.guarantee.epsilon
    slower = replace(place, certificate=replace(place.certificate, seconds=9.0))  # designed again, for --resume
    names = ["p", "h", "w"]
    again = [task_for(names, mdp.product(first, hour, word), columns=names) for first in (place, slower)]
    assert spec_of(again[0]).applied == spec_of(again[1]).applied


def test_reports_that_are_no_numbers_of_the_secret_have_names_of_their_own() -> None:
    hours = pa.table({"one": [1.0], "two": [3.0], "three": [2.0], "four": [0.0]})
    series = mdp.laplace(mdp.Frechet(mdp.Lp(1), 1), 1.0, dimension=4)  # as many numbers as the outline has
    assert perturb(hours, series, columns=hours.column_names).column_names == ["start", "end", "least", "largest"]
    plane = mdp.laplace(mdp.Frechet(mdp.Lp(2), 2), 1.0, dimension=4)
    assert perturb(hours, plane, columns=hours.column_names).column_names[:3] == ["start_1", "start_2", "end_1"]
    turned = mdp.laplace(mdp.Lp(2), 1.0, projection=[[0.0, 1.0], [-1.0, 0.0]])
    assert perturb(hours, turned, columns=["one", "two"]).column_names == ["three", "four", "report_1", "report_2"]
