"""Files of sparse rows over a background: small, exact, and checked before anything is believed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import metricdp as mdp
from forging import opened, rewritten
from instances import local_on, some_local, some_matrix
from metricdp.artifacts import LoadLimits, dumps, inspect, load, loads, save
from metricdp.artifacts.limits import LoadBudget
from metricdp.errors import CorruptFile, InvalidInput, NotPrivate
from metricdp.mechanisms import MECHANISMS, Certificate, Guarantee, LocalMechanism
from metricdp.mechanisms.kinds.local import pack_rows


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "city.mdp"


def same(one: LocalMechanism, two: Any) -> bool:
    names = ("starts", "columns", "values", "background")
    return all(
        getattr(one, name).dtype == getattr(two, name).dtype and np.array_equal(getattr(one, name), getattr(two, name))
        for name in names
    )


@pytest.mark.parametrize(
    "metric", [mdp.Lp(2), mdp.Lp(1, unit="m"), mdp.metric(lambda a, b: np.abs(a - b).sum(axis=-1))]
)
def test_every_bit_comes_back(metric: Any, path: Path) -> None:
    points = np.random.default_rng(5).uniform(0, 10, (30, 2))
    made = local_on(mdp.FiniteSpace(points, metric), 3.5)
    save(made, path)
    found = inspect(path)
    assert same(made, found.mechanism)
    assert (found.kind, found.storage) == ("local", "sparse")
    assert found.mechanism.certificate.stated == ("loss", "lower_bound")
    assert not found.mechanism.loss_basis.known  # type: ignore[attr-defined]
    assert np.array_equal(made.sample([3] * 50, rng=np.random.default_rng(1)),
                          found.mechanism.sample([3] * 50, rng=np.random.default_rng(1)))  # fmt: skip


def test_reports_beyond_65536_are_counted_in_blocks(path: Path) -> None:
    """Two places and 150,000 reports: three blocks, of which rows use any."""
    places = mdp.FiniteSpace(np.arange(2.0), mdp.Lp(1))
    reports = mdp.FiniteSpace(np.arange(150_000.0), mdp.Lp(1))
    columns = [0, 65_535, 65_536, 131_071, 149_999, 65_536, 149_999]
    promise = Guarantee(1.0, places.metric, basis="certificate")
    bare = Certificate(loss=1.0, lower_bound=0.0, method="by hand", epsilon=1.0)
    made = LocalMechanism(
        places, reports, [0, 5, 7], columns, np.linspace(1, 2, 7), np.full(150_000, 0.9), promise, bare
    )
    assert np.asarray(pack_rows(made)["lengths"]).tolist() == [[2, 2, 1], [0, 1, 1]]
    assert same(made, loads(dumps(made)))


def test_the_first_file_of_sparse_rows_loads_forever() -> None:
    found = inspect(Path(__file__).parents[1] / "data" / "v2-local.mdp")
    assert (found.version, found.kind, found.storage) == (2, "local", "sparse")
    assert found.mechanism.guarantee.epsilon == 1.0
    assert np.isclose(found.mechanism.log_density(3, 3), -1.9047995, atol=1e-6)


def test_it_takes_six_bytes_for_every_near_report(path: Path) -> None:
    n = 1000
    space = mdp.FiniteSpace(np.arange(float(n)), mdp.Lp(1))
    made = local_on(space, 100.0, 0.1)
    size = len(dumps(made))
    assert size < 6 * len(made.columns) + 40 * n + 4000
    assert size < len(dumps(some_matrix())) + 8 * n * n / 4


def change(name: str, alter: Any) -> Any:
    def apply(manifest: Any, tensors: Any) -> None:
        tensors[manifest["body"][name]] = alter(tensors[manifest["body"][name]])

    return apply


def with_value(at: int, value: Any) -> Any:
    def alter(array: Any) -> Any:
        array.reshape(-1)[at] = value
        return array

    return alter


FORGED = {
    "a row more than it has": (change("lengths", with_value(0, 200)), "lengths"),
    "lengths of another shape": (change("lengths", lambda a: a.reshape(1, -1)), "lengths"),
    "lengths that overflow": (change("lengths", lambda a: a.astype(np.uint64) + np.uint64(2**63)), "not possible"),
    "columns out of order": (change("columns", lambda a: a[::-1].copy()), "increase|from 0 to"),
    "a column twice": (change("columns", lambda a: np.concatenate([a[:1], a[:1], a[2:]])), "increase"),
    "a report that is not there": (change("columns", with_value(-1, 200)), "from 0 to"),
    "columns with a sign": (change("columns", lambda a: a.astype(np.int64)), "right type"),
    "doubles": (change("values", lambda a: a.astype(np.float64)), "right type"),
    "values of another length": (change("values", lambda a: a[:-1].copy()), "one weight per column"),
    "a negative value": (change("values", with_value(3, -1.0)), "not possible"),
    "an infinite value": (change("values", with_value(3, np.inf)), "not possible"),
    "a background of nothing": (change("background", with_value(3, np.nan)), "not possible"),
    "a background too long": (change("background", lambda a: np.append(a, a[:1])), "background"),
    "a report that tells all": (change("values", with_value(0, 1e6)), "does not keep the guarantee"),
    "another kind": (lambda manifest, _: manifest.update(kind="matrix"), "does not know|does not say"),
    "more than its kind has": (lambda manifest, _: manifest["body"].update(more=1), "does not know"),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_rows_are_refused(name: str, path: Path) -> None:
    alter, message = FORGED[name]
    save(some_local(), path)
    rewritten(path, alter)
    with pytest.raises(CorruptFile, match=message):
        load(path)


def few_kinds(n: int = 200) -> LocalMechanism:
    """Places on a line: one weight for every distance."""
    return local_on(mdp.FiniteSpace(np.arange(float(n)), mdp.Lp(1)), 40.0, 0.1)


def test_weights_of_few_kinds_take_two_bytes_at_most_and_come_back_bit_by_bit(path: Path) -> None:
    made = few_kinds()
    save(made, path)
    found: Any = load(path)
    assert same(made, found)
    kinds = np.unique(made.values)
    manifest, tensors = opened(path.read_bytes())
    table, codes = (tensors[manifest["body"]["values"][name]] for name in ("table", "codes"))
    assert table.tolist() == kinds[::-1].tolist()
    assert (table.dtype, codes.dtype) == (np.float32, np.uint8 if len(kinds) <= 256 else np.uint16)
    assert np.array_equal(table[codes], made.values)
    assert len(dumps(made)) < 4 * len(made.values) + 40 * len(made.inputs) + 4000


def coded(name: str, alter: Any) -> Any:
    def apply(manifest: Any, tensors: Any) -> None:
        tensors[manifest["body"]["values"][name]] = alter(tensors[manifest["body"]["values"][name]])

    return apply


FORGED_CODES = {
    "a code beyond the table": (coded("codes", with_value(3, 255)), "code that its table"),
    "codes with a sign": (coded("codes", lambda a: a.astype(np.int64)), "right type"),
    "codes in a square": (coded("codes", lambda a: a.reshape(-1, 2)), "right type"),
    "codes too few": (coded("codes", lambda a: a[:-1].copy()), "one weight per column"),
    "a table of doubles": (coded("table", lambda a: a.astype(np.float64)), "right type"),
    "a table that rises": (coded("table", lambda a: a[::-1].copy()), "not decreasing"),
    "a table with one number twice": (coded("table", with_value(1, 1.0)), "not decreasing"),
    "a table with nothing in it": (coded("table", with_value(4, np.nan)), "not decreasing"),
    "an infinite weight": (coded("table", with_value(0, np.inf)), "not possible"),
    "a negative weight": (coded("table", with_value(-1, -1.0)), "not possible"),
    "a weight that tells all": (coded("table", with_value(0, 1e6)), "does not keep the guarantee"),
    "a table too long": (coded("table", lambda a: np.linspace(1, 0.1, 65_537, dtype=np.float32)), "too long"),
    "no table": (lambda manifest, _: manifest["body"]["values"].pop("table"), "does not say"),
    "a table that is not there": (lambda manifest, _: manifest["body"]["values"].update(table="no"), "not there"),
    "more than codes": (lambda manifest, _: manifest["body"]["values"].update(more=1), "does not know"),
    "codes of the background": (
        lambda manifest, _: manifest["body"].update(background=manifest["body"]["values"]), "not the name"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED_CODES)
def test_forged_codes_are_refused(name: str, path: Path) -> None:
    alter, message = FORGED_CODES[name]
    save(few_kinds(), path)
    rewritten(path, alter)
    with pytest.raises(CorruptFile, match=message):
        load(path)


def test_single_floats_are_no_probabilities_of_a_table(path: Path) -> None:
    save(some_matrix(), path, storage="dense")
    rewritten(path, lambda manifest, tensors: tensors.update(matrix=tensors["matrix"].astype(np.float32)))
    with pytest.raises(CorruptFile, match="right type"):
        load(path)


def test_a_broken_law_gets_no_file_and_other_storages_are_refused(path: Path) -> None:
    made = some_local()
    with pytest.raises(NotPrivate):
        save(replace(made, guarantee=replace(made.guarantee, epsilon=0.1)), path)
    with pytest.raises(InvalidInput, match="stored sparse"):
        save(made, path, storage="dense")
    with pytest.raises(InvalidInput, match="`bits` = 16"):
        mdp.quantised(made, bits=12)
    assert not path.exists()


CITIES = {  # secrets, streets, near reports each: what is open by itself, and what is not
    "Rome": (43_160, 60_000, 600, True),
    "New York": (264_346, 366_000, 600, True),
    "a million crossings": (1_000_000, 1_400_000, 100, True),
    "a grid of 300 x 300": (90_000, 0, 1_250, True),
    "a million places that store nothing": (1_000_000, 0, 1, False),
}


@pytest.mark.parametrize("name", CITIES)
def test_cities_open_with_the_usual_limits_and_a_file_is_bounded_by_its_size(name: str) -> None:
    secrets, streets, near, opens = CITIES[name]
    metric = mdp.ShortestPath(np.tile([0, 1], (streets, 1)), np.ones(streets), secrets) if streets else mdp.Lp(2)
    points = np.broadcast_to(0.0, (secrets, 1 if streets else 2))
    stored = SimpleNamespace(
        inputs=SimpleNamespace(metric=metric, points=points),
        columns=np.broadcast_to(np.uint16(0), (secrets * near,)),
        background=np.broadcast_to(np.float32(0), (secrets,)),
    )
    effort = MECHANISMS.named("local").effort
    assert effort is not None
    budget = LoadBudget(LoadLimits(), 6 * secrets * near + 20 * secrets + 24 * streets)
    if opens:
        budget.spend(effort(stored), "judging it")
    else:
        with pytest.raises(CorruptFile, match="elementary steps"):
            budget.spend(effort(stored), "judging it")
