"""Accounts name metrics by their scale, charge what the worst case costs, and never give a budget back."""

from __future__ import annotations

import math
import shutil
import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import books
import metricdp as mdp
from books import DAY, Clock
from metricdp.errors import BudgetExceeded, InvalidInput
from metricdp.ledger import MICRO, Ledger, Policy, accounts_for, in_words
from metricdp.metrics import METRICS
from metricdp.registry import Number, Schema, Text

DATA = Path(__file__).parents[1] / "data" / "accounts-0.1.0"
THEN = 1_790_000_000.0  # when the ledger in DATA was written
MAPS = {"key": "app", "purpose": "maps"}


def names(metric, **more):
    return [one.name for one in accounts_for(metric, **more)]


def open_old(folder: Path, **options) -> Ledger:
    """Open a copy of the ledger that version 0.1.0 wrote."""
    for file in ("ledger.db", "ledger.db.key"):
        shutil.copy(DATA / file, folder / file)
        (folder / file).chmod(0o600)
    return Ledger.open(folder / "ledger.db", **({"clock": Clock(THEN)} | options))


def release(ledger, person, request, metric, epsilon=1.0, **more):
    options = {"key": "app", "draw": lambda: b"new"} | more
    return ledger.release(person, request, metric=metric, epsilon=epsilon, **options)


# Which account


def test_metrics_of_another_scale_have_accounts_of_their_own() -> None:
    def make(factor: float) -> list[mdp.Metric]:
        ground = mdp.Mahalanobis(factor * np.eye(2))
        return [
            ground,
            mdp.Mahalanobis.ellipse(factor, 1.0, bearing=30.0),
            mdp.Precomputed(factor * np.array([[0.0, 1.0], [1.0, 0.0]])),
            mdp.Precomputed(factor * np.array([[0.0, 1.0], [1.0, 0.0]]), unit="km"),
            mdp.metrics.Bags(ground, 2),
            mdp.Frechet(ground, 2),
            mdp.Wasserstein(factor * np.array([0.0, 1.0, 2.0])),
            mdp.WordMovers(factor * np.eye(3)),
            mdp.ShortestPath([[0, 1]], [factor], unit="blocks"),
            mdp.metrics.StreetPath(mdp.ShortestPath([[0, 1]], [factor], unit="")),
        ]

    same, again, other = make(1.0), make(1.0), make(1e-6)
    assert [names(one) for one in same] == [names(one) for one in again]
    found = [names(one)[0] for one in same + other]
    assert len(set(found)) == len(found)
    for name in found:
        assert len(name.partition(".")[2].partition("/")[0]) == 16
        assert names(name) == [name]  # as people write it


def test_a_fingerprint_is_the_same_after_a_file(tmp_path) -> None:
    metric = mdp.Mahalanobis.ellipse(0.3, 0.1, bearing=77.0)
    mdp.save(mdp.laplace(metric, 1.0, dimension=2), tmp_path / "m.mdp")
    assert names(mdp.load(tmp_path / "m.mdp").guarantee.metric) == names(metric)


def test_units_of_length_are_told_apart_in_a_fingerprint() -> None:
    metres, kilometres = (mdp.Precomputed([[0.0, 5.0], [5.0, 0.0]], unit=unit) for unit in ("m", "km"))
    assert names(metres) != names(kilometres)
    assert accounts_for(metres)[0].charge(1.0) == 1000 * accounts_for(kilometres)[0].charge(1.0)


class Scaled:
    """What one name may stand for, many times as far."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def __call__(self, a, b):
        return self.factor * abs(a[0] - b[0])

    steps = __call__


def scaled(factor: float):
    def steps(a, b):
        return factor * abs(a[0] - b[0])

    return steps


class Renamed(Scaled):
    """An object that says the name of a function."""

    __name__ = "steps"


def by_default(factor):
    def steps(a, b, factor=factor):
        return factor * abs(a[0] - b[0])

    return steps


def by_keyword(factor):
    def steps(a, b, *, factor=factor):
        return factor * abs(a[0] - b[0])

    return steps


def test_a_plain_function_needs_a_name_and_a_unit() -> None:
    def steps(a, b):
        return abs(a[0] - b[0])

    for bad in (
        mdp.metric(lambda a, b: abs(a[0] - b[0])),
        mdp.metric(lambda a, b: abs(a[0] - b[0]), unit="steps"),
        mdp.metric(steps),
        *(mdp.metric(one, unit="steps") for one in (scaled(1e-6), Scaled(1e-6), Scaled(1e-6).steps)),
        *(mdp.metric(one, unit="steps") for one in (Renamed(1e-6), by_default(1e-6), by_keyword(1e-6))),
        *(mdp.metric(wrap(steps), unit="steps") for wrap in (np.vectorize, lambda one: np.frompyfunc(one, 2, 1))),
    ):
        with pytest.raises(InvalidInput, match=r"mdp\.metric\(its_name, unit='steps'\)"):
            accounts_for(bad)
    assert names(mdp.metric(steps, unit="steps")) != names(mdp.metric(steps, unit="stairs"))


def test_a_class_that_is_not_declared_is_refused() -> None:
    class Mine:
        unit = ""

        def __call__(self, a, b):
            return np.abs(a - b).sum(axis=-1)

        def check(self, points):
            """Anything will do."""

    with pytest.raises(InvalidInput, match="not declared"):
        accounts_for(Mine())


def test_a_class_that_inherits_from_a_metric_is_not_taken_for_it() -> None:
    """What it measures may be anything: an l_2 that says a millionth of the distance is not charged in l2."""
    for parent, given in (
        (mdp.Lp, (2.0, "km")),
        (mdp.Haversine, ()),
        (mdp.metrics.Temporal, (24.0,)),
        (mdp.ShortestPath, ([[0, 1]], [1.0])),
        (mdp.Weighted, ([(mdp.Haversine(), [0, 1], 1.0)],)),
    ):
        tiny = type("Tiny", (parent,), {"__call__": lambda self, a, b: 1e-6 * super(type(self), self).__call__(a, b)})
        with pytest.raises(InvalidInput, match="not declared"):
            accounts_for(tiny(*given))
        with pytest.raises(InvalidInput, match=r"by a Tiny|not declared"):
            accounts_for(mdp.metrics.Bags(tiny(*given)))


@pytest.fixture
def declared():
    """Declare metrics for one test."""
    before = dict(METRICS._entries)
    yield lambda thing, name, **more: METRICS.declare(Schema(thing, name, "a distance", {"unit": Text()} | more))
    METRICS._entries.clear()
    METRICS._entries.update(before)


def test_a_class_of_a_name_that_is_taken_gets_an_account_of_its_own(declared) -> None:
    for number, name in enumerate(("Haversine", "L2", "L1", "Weighted", "FunctionMetric", "Temporal")):
        for again in range(2):
            made = type(name, (), {"unit": "km", "__call__": lambda self, a, b: 1e-6 * np.abs(a - b).sum(axis=-1)})
            declared(made, f"mine_{number}_{again}")
            (account,) = accounts_for(made())
            assert account.name.partition(".")[0] == name.lower()
            assert account.name not in names(mdp.Haversine()) + names(mdp.Lp(2, unit="km"))
            with pytest.raises(InvalidInput, match="not open"):
                Policy.parse("5/km ever").binding(account.unit, "", account.name)
    assert names(mdp.Haversine()) == ["haversine/km"]
    free = type("Free", (), {"unit": "km"})
    declared(free, "free")
    assert names(free()) == ["free/km"]  # its class says the scale, as version 0.1.0 named it


@pytest.mark.parametrize("dimension", [0, -1, 1.5, "2"])
def test_a_number_of_coordinates_is_a_whole_number_above_0(dimension) -> None:
    with pytest.raises(InvalidInput, match="whole number of at least 1"):
        accounts_for(mdp.Lp(1), dimension=dimension)


@pytest.mark.parametrize("make", [mdp.Hamming, mdp.Levenshtein, mdp.Hyperbolic])
def test_what_does_not_measure_lengths_is_not_counted_by_their_units(make) -> None:
    """A mile is 1.6 km, but one column that differs is one, whatever the unit is called."""
    for unit in ("km", "m", "mi", "ft"):
        with pytest.raises(InvalidInput, match="does not measure lengths"):
            accounts_for(make(unit=unit))
    assert [one.weight for one in accounts_for(make(unit="changes"))] == [1]


CLASSES = ["mahalanobis", "precomputed/km", "weighted", "bags", "functionmetric", "wasserstein", "mahalanobis.1"]


@pytest.mark.parametrize("name", CLASSES)
def test_the_name_of_a_class_alone_is_no_account(name) -> None:
    with pytest.raises(InvalidInput, match="fingerprint"):
        accounts_for(name)


def test_an_account_with_parameters_is_opened_by_the_policy(tmp_path, capsys) -> None:
    precise, coarse = (mdp.Mahalanobis.ellipse(size, size, bearing=0.0) for size in (1e-6, 1.0))
    place = tmp_path / "budget.db"
    with Ledger.open(place, policy="5 ever", clock=Clock()) as ledger:
        with pytest.raises(InvalidInput, match="metricdp budget policy LEDGER") as refused:
            release(ledger, "anna", "1", coarse)
        typed = str(refused.value).partition("LEDGER '")[2].partition("'")[0]
        assert ledger.history("anna") == []
    from metricdp.cli import main

    assert main(["budget", "policy", str(place), typed]) == 0  # what the refusal says to type
    with Ledger.open(place, clock=Clock()) as ledger:
        release(ledger, "anna", "1", coarse, 10.0)  # by its own limit, 10: that of metrics with a fixed scale is 5
        with pytest.raises(BudgetExceeded, match="mahalanobis"):
            release(ledger, "anna", "2", coarse, 0.1)
        with pytest.raises(InvalidInput, match="is not open"):
            release(ledger, "anna", "3", precise)
        release(ledger, "anna", "4", mdp.Lp(2), 5.0)
        assert ledger.verify().holds


def test_a_policy_with_accounts_is_read_as_it_is_written() -> None:
    text = (
        "40/km per day, 5 ever in mahalanobis.0123456789abcdef, 1 per day in mahalanobis.0123456789abcdef for ads, "
        "10/km ever in precomputed.0123456789abcdef/km, rho 1/unit2 ever in rho-mahalanobis.0123456789abcdef/unit2"
    )
    assert str(Policy.parse(text)) == text
    with pytest.raises(InvalidInput, match="no total above it"):
        Policy.parse("5 ever, 1 per day in mahalanobis.0123456789abcdef for ads")
    with pytest.raises(InvalidInput, match="not counted per km"):
        Policy.parse("5/km ever in mahalanobis.0123456789abcdef")


# What it costs


def test_a_charge_is_never_below_what_was_promised() -> None:
    (account,) = accounts_for("l2")
    for epsilon in (1e-9, 0.1, 1 / 3, 0.7, math.nextafter(2.0, 3.0)):
        assert Fraction(account.charge(epsilon), MICRO) >= Fraction(epsilon)
    assert account.charge(0.5) == 500_000


def test_l1_l2_and_linf_are_one_account(tmp_path) -> None:
    with Ledger.open(tmp_path / "budget.db", policy="10 ever", clock=Clock()) as ledger:
        assert release(ledger, "anna", "1", mdp.Lp(1), 2.0, dimension=4).charged == 4 * MICRO
        assert release(ledger, "anna", "2", mdp.Lp(2), 3.0, dimension=4).charged == 3 * MICRO
        assert release(ledger, "anna", "3", mdp.Lp(np.inf), 3.0, dimension=4).left == 0
        with pytest.raises(BudgetExceeded):
            release(ledger, "anna", "4", mdp.Lp(np.inf), 0.1)
        with pytest.raises(InvalidInput, match="`dimension`"):
            release(ledger, "ben", "5", "l1")
        rows = {"ben": 2, "cleo": 1}
        done = ledger.release_batch(
            rows, "table", key="app", metric="l1", epsilon=1.0, dimension=2, draw=lambda granted: b""
        )
        assert 2 * done.charged >= 2 * math.sqrt(2) * MICRO > 2 * (done.charged - 1)
        assert [one.metric for one in ledger.budget("ben").accounts] == ["l2"]
        assert ledger.verify().holds


def test_a_table_under_l1_is_charged_by_its_columns(tmp_path, caplog) -> None:
    import pandas as pd

    table = pd.DataFrame({"id": ["a", "a", "b"], "x": [1.0, 2.0, 3.0], "y": [0.0, 1.0, 2.0]})
    noise = mdp.laplace(mdp.Lp(1), 1.0, dimension=2)
    with Ledger.open(tmp_path / "budget.db", policy="10 ever") as ledger:
        mdp.perturb(table, noise, id="id", ledger=ledger)
        assert [(one.metric, one.amount) for one in ledger.history("a")] == [("l2", 2 * 1_414_214)]


def test_a_budget_of_a_product_begins_a_ledger_with_a_limit_for_every_account(tmp_path) -> None:
    import pandas as pd

    table = pd.DataFrame({"id": ["a"], "lat": [41.0], "lon": [-8.0], "x": [0.0], "y": [1.0]})
    both = mdp.product(mdp.laplace(mdp.Haversine(), 10.0), mdp.laplace(mdp.Lp(2, unit="km"), 2.0, dimension=2))
    names = ["lat", "lon", "x", "y"]
    mdp.perturb(table, both, columns=names, id="id", budget=12.0, ledger=str(tmp_path / "budget.db"))
    with Ledger.open(tmp_path / "budget.db") as ledger:
        assert str(ledger.policy()) == "10/km ever in haversine/km, 2/km ever in l2/km"
        assert spent(ledger, "a") == {"haversine/km": 10 * MICRO, "l2/km": 2 * MICRO}


def test_every_part_of_a_product_is_charged_in_its_own_account_at_once(tmp_path) -> None:
    trip = mdp.product(*(mdp.laplace(mdp.Haversine(unit), rate) for unit, rate in (("km", 10.0), ("m", 0.0078125))))
    both = mdp.product(*trip.parts, mdp.laplace(mdp.Lp(1, unit="min"), 0.5, dimension=1))
    metric = both.guarantee.metric
    with Ledger.open(tmp_path / "budget.db", policy="40/km ever, 5/min ever", clock=Clock()) as ledger:
        found = release(ledger, "anna", "1", metric)
        assert [(one.account, one.charged, one.left) for one in found.parts] == [
            ("haversine/km", 17_812_500, 22_187_500), ("l2/min", 500_000, 4_500_000),
        ]  # fmt: skip
        again = release(ledger, "anna", "1", metric, draw=lambda: pytest.fail("drawn twice"))
        assert (again.repeated, again.parts) == (True, found.parts)
        rows = {"anna": 2, "ben": 3}
        how = {"metric": metric, "epsilon": 1.0}
        with pytest.raises(BudgetExceeded, match=r"2 of 2 people .* 17\.8125/km a row"):
            ledger.granted(rows, **how)
        assert ledger.granted(rows, **how, partial=True) == {"anna": 1, "ben": 2}
        done = ledger.release_batch(rows, "t", key="app", **how, partial=True, draw=lambda granted: b"table")
        assert done.granted == {"anna": 1, "ben": 2}
        assert [(one.account, one.charged, dict(one.left)) for one in done.parts] == [
            ("haversine/km", 17_812_500, {"anna": 4_375_000, "ben": 4_375_000}),
            ("l2/min", 500_000, {"anna": 4_000_000, "ben": 4_000_000}),
        ]
        repeated = ledger.release_batch(
            rows, "t", key="app", **how, partial=True, draw=lambda granted: pytest.fail("drawn")
        )
        assert (repeated.repeated, repeated.granted, repeated.parts) == (True, done.granted, done.parts)
        ledger.change_policy("1000/km ever, 1/min ever")  # now the times are what there is too little of
        with pytest.raises(BudgetExceeded, match="1/min ever is spent"):
            release(ledger, "anna", "2", metric)
        spent = {one.metric: one.spent for one in ledger.budget("anna").accounts}
        assert spent == {"haversine/km": 35_625_000, "l2/min": 1_000_000}  # nothing of what was refused
        assert ledger.verify().holds
        assert ledger.erase("anna")
        assert ledger.verify().holds


def test_a_part_without_a_limit_refuses_the_whole(tmp_path) -> None:
    metric = mdp.Weighted([(mdp.Haversine(), [0, 1], 10.0), (mdp.Mahalanobis(np.eye(2)), [2, 3], 1.0)])
    with Ledger.open(tmp_path / "budget.db", policy="40/km ever", clock=Clock()) as ledger:
        with pytest.raises(InvalidInput, match="is not open"):
            release(ledger, "anna", "1", metric)
        assert ledger.history("anna") == []
        with pytest.raises(InvalidInput, match="rho"):
            ledger.release("anna", "1", key="app", metric=metric, rho=1.0, draw=lambda: b"")


def random_metric(rng, columns: int) -> mdp.Metric:
    """A metric on so many coordinates, of a class that numbers can be measured by."""
    kind = int(rng.integers(5))
    if kind == 0:
        return mdp.Lp([1.0, 1.3, 2.0, 3.0, np.inf][int(rng.integers(5))])
    if kind == 1:
        return mdp.Mahalanobis(np.diag(rng.uniform(0.01, 9.0, columns)))
    if kind == 2:
        return mdp.Hamming()
    if kind == 3 and columns >= 2:
        cut = int(rng.integers(1, columns))
        groups = (range(cut), range(cut, columns))
        return mdp.Weighted([(random_metric(rng, len(own)), own, float(rng.uniform(0.1, 5.0))) for own in groups])
    return mdp.Lp(2, unit="m")


def account_distances(metric, a, b, out) -> None:
    """Collect, by the account that has to hold it, how far two points are apart in the account's own metric."""
    if isinstance(metric, mdp.Weighted):
        for part, columns, _ in metric.parts:
            account_distances(part, a[:, list(columns)], b[:, list(columns)], out)
    elif isinstance(metric, mdp.Lp):
        euclid = np.sqrt(((a - b) ** 2).sum(axis=1))
        out.setdefault("l2/km" if metric.unit else "l2", []).append(euclid / (1000.0 if metric.unit else 1.0))
    else:
        out.setdefault(names(metric)[0], []).append(metric(a, b))


@pytest.mark.parametrize("seed", range(40))
def test_no_account_is_charged_less_than_the_worst_log_ratio_of_a_unit_of_its_metric(seed) -> None:
    """Mechanisms that lose exactly epsilon d: over many pairs, the loss per unit of the accounts' own distances."""
    rng = np.random.default_rng(seed)
    columns = int(rng.integers(1, 6))
    metric, epsilon = random_metric(rng, columns), float(rng.uniform(0.01, 20.0))
    a, b = rng.normal(size=(2, 400, columns))
    b[::2] = a[::2] + rng.choice([-1.0, 1.0], size=(200, columns))  # where l1 is sqrt(n) times l2
    b[::3] = np.where(rng.random((len(a[::3]), columns)) < 0.4, b[::3], a[::3])
    loss = epsilon * metric(a, b)
    charged = {one.name: one.charge(epsilon) / MICRO for one in accounts_for(metric, dimension=columns)}
    found: dict[str, list[np.ndarray]] = {}
    account_distances(metric, a, b, found)
    assert set(found) == set(charged)
    farthest = {name: np.max(apart, axis=0) for name, apart in found.items()}
    allowed = sum(charged[name] * farthest[name] for name in charged)
    assert np.all(loss <= allowed * (1 + 1e-12) + 1e-12)
    for name in charged:  # one account alone: pairs at which nothing of the others moves
        alone = np.all([farthest[other] == 0 for other in charged if other != name], axis=0) & (farthest[name] > 0)
        if np.any(alone):
            assert np.max(loss[alone] / farthest[name][alone]) <= charged[name] * (1 + 1e-12)


def test_charges_are_the_least_millionths_that_cover_the_rule() -> None:
    for dimension in range(1, 60):
        (one,) = accounts_for(mdp.Lp(1), dimension=dimension)
        for epsilon in (1.0, 0.1, 12.5):
            exact = Fraction(epsilon) ** 2 * dimension * MICRO**2  # the square of what it has to cover
            charged = one.charge(epsilon)
            assert charged**2 >= exact
            assert (charged - 1) ** 2 < exact + 4 * charged  # a millionth more at most


# What earlier versions charged


def spent(ledger, person):
    return {one.metric: one.spent for one in ledger.budget(person).accounts}


def test_old_rows_keep_their_names_and_amounts(tmp_path) -> None:
    with open_old(tmp_path) as ledger:
        assert ledger.verify().holds
        assert spent(ledger, "mahalanobis") == {"mahalanobis": 2_500_000}
        assert spent(ledger, "gauss") == {"rho-mahalanobis/unit2": 3_000_000}
        assert spent(ledger, "minutes") == {"l1/min": 2_000_000}
        assert spent(ledger, "crowd") == {"mahalanobis": 1_500_000}
        assert ledger.budget("l1", metric="l1").accounts[0].spent == 2_000_000


def function_steps(a, b):
    return abs(a[0] - b[0])


AFTER = {
    "mahalanobis": (mdp.Mahalanobis(7.0 * np.eye(2)), 2_500_000),
    "precomputed": (mdp.Precomputed([[0.0, 9.0], [9.0, 0.0]], unit="km"), 2_000_000),
    "bags": (mdp.metrics.Bags(mdp.Lp(1)), 2_000_000),
    "wasserstein": (mdp.Wasserstein([0.0, 3.0]), 2_000_000),
    "function": (mdp.metric(function_steps, unit="steps"), 2_000_000),
}


@pytest.mark.parametrize("person", AFTER)
def test_what_was_spent_under_a_class_counts_in_every_new_account_of_the_class(tmp_path, person) -> None:
    metric, before = AFTER[person]
    (name,) = names(metric)
    unit = name.partition("/")[2]
    limit = f"10{f'/{unit}' if unit else ''} ever in {name}"
    clock = Clock(THEN)
    with open_old(tmp_path, clock=clock) as ledger:
        ledger.change_policy(
            f"10 ever, {limit}, {limit.replace('10', '4', 1).replace('ever', 'per day')}, 9 ever for maps"
        )
        how = {"metric": metric, "purpose": "maps"}
        assert ledger.budget(person, metric=metric).left == 4_000_000 - before
        for one in (person, "somebody else"):  # all at once, and one by one
            fits = (4_000_000 - (before if one == person else 0)) // 500_000
            assert ledger.granted({one: 99}, epsilon=0.5, partial=True, **how) == {one: fits}
        left = (4_000_000 - before) / MICRO
        with pytest.raises(BudgetExceeded, match=r"was charged as .* by an earlier version"):
            release(ledger, person, "new", metric, left + 0.001, purpose="maps")
        assert release(ledger, person, "new", metric, left, purpose="maps").left == 0
        clock.now += DAY  # the day is over; "ever" never is
        assert ledger.budget(person, metric=metric).left == 4_000_000
        ledger.change_policy(f"10 ever, {limit}, 9 ever for maps")
        for one, gone in ((person, before), ("somebody else", 0)):
            mine = 10_000_000 - gone - (4_000_000 - before if one == person else 0)
            assert ledger.budget(one, metric=metric).left == mine
            assert ledger.granted({one: 99}, epsilon=0.5, partial=True, **how) == {one: mine // 500_000}
        assert ledger.verify().holds


def test_what_a_class_spent_before_it_was_declared_counts_in_its_new_account(tmp_path, declared) -> None:
    """Version 0.1.0 charged any class by its name; a command line that opens the ledger first knows none of them."""
    place = tmp_path / "budget.db"
    with Ledger.open(place, policy="10 ever") as ledger:
        release(ledger, "anna", "1", "mine", 8.0)
    with closing(sqlite3.connect(place)) as books:
        books.execute("ALTER TABLE books DROP COLUMN replaced")
        books.execute("UPDATE books SET version = 2")
        books.commit()
    Ledger.open(place).close()
    metric = type("Mine", (), {"unit": "", "scale": 1.0})()
    declared(type(metric), "Mine", scale=Number())
    with Ledger.open(place) as ledger:
        ledger.change_policy(f"10 ever, 10 ever in {names(metric)[0]}")
        assert ledger.granted({"anna": 9}, metric=metric, epsilon=1.0, partial=True) == {"anna": 2}
        with pytest.raises(BudgetExceeded, match="was charged as mine by an earlier version"):
            release(ledger, "anna", "2", metric, 2.5)
        assert ledger.verify().holds


def test_what_was_spent_under_rho_counts_in_the_new_account(tmp_path) -> None:
    metric = mdp.Mahalanobis(np.eye(2))
    (account,) = accounts_for(metric, concentrated=True)
    with open_old(tmp_path) as ledger:
        ledger.change_policy(f"10 ever, 9 ever for maps, rho 5 ever in {account.name}")
        how = {"key": "app", "metric": metric, "purpose": "maps", "draw": lambda: b""}
        with pytest.raises(BudgetExceeded):
            ledger.release("gauss", "new", rho=2.1, **how)
        assert ledger.release("gauss", "new", rho=2.0, **how).left == 0


def test_linf_of_before_counts_once_in_l2_and_l1_as_in_the_most_coordinates_there_are(tmp_path) -> None:
    with open_old(tmp_path) as ledger:
        assert ledger.budget("linf", metric="l2").left == 2_000_000  # 4 a day
        assert release(ledger, "linf", "new", mdp.Lp(1), 1.0, dimension=4, purpose="maps").left == 0
        for metric in (mdp.Lp(1), mdp.Lp(2)):
            with pytest.raises(BudgetExceeded, match="charged as l1 by an earlier version"):
                release(ledger, "l1", "new", metric, 0.001, dimension=2, purpose="maps")
        with pytest.raises(BudgetExceeded):
            ledger.granted({"l1": 1}, metric="l2", epsilon=0.001, purpose="maps")
        ledger.change_policy("1000 ever, 1000/min ever, 900 ever for maps")
        assert ledger.budget("l1", metric="l2").accounts[0].balances[0].left == (1000 - 2 * 256) * MICRO
        assert ledger.granted({"l1": 999, "ben": 999}, metric="l2", epsilon=1.0, purpose="maps", partial=True) == {
            "l1": 900 - 2 * 256, "ben": 900,
        }  # fmt: skip
        assert ledger.budget("minutes", metric="l2/min").left == (1000 - 2 * 256) * MICRO
        assert ledger.budget("l1", metric="l2/min").left == 1000 * MICRO


def test_a_product_of_before_counts_in_every_account_of_a_product_and_its_limits_go_on(tmp_path) -> None:
    metric = mdp.Weighted([(mdp.Haversine(), [0, 1], 1.0), (mdp.Haversine(), [2, 3], 1.0)])
    how = {"metric": metric, "epsilon": 1.0, "purpose": "maps"}
    with open_old(tmp_path) as ledger:
        assert release(ledger, "weighted", "1", metric, 1.0, purpose="maps").left == 0  # 2 of 4 a day were spent
        with pytest.raises(BudgetExceeded, match="4 per day is spent"):
            release(ledger, "weighted", "2", metric, 0.1, purpose="maps")
        with pytest.raises(BudgetExceeded, match="4 per day is spent"):
            ledger.granted({"weighted": 1, "ben": 1}, **how)
        assert ledger.granted({"weighted": 1, "ben": 1}, partial=True, **how) == {"ben": 1}
        release(ledger, "ben", "1", metric, 100.0, purpose="maps")
        release(ledger, "weighted", "3", mdp.Haversine(), 1.0, purpose="maps")  # no product


def test_a_request_that_an_earlier_version_answered_gets_its_report_and_costs_nothing(tmp_path) -> None:
    sums = mdp.Weighted([(mdp.Haversine(), [0, 1], 10.0), (mdp.Haversine(), [2, 3], 10.0)])
    ball = mdp.Mahalanobis(np.eye(2))
    asked = {"weighted": sums, "mahalanobis": ball, "l1": mdp.Lp(1), "linf": mdp.Lp(np.inf), "l2": mdp.Lp(2)}
    with open_old(tmp_path) as ledger:
        ledger.change_policy(f"10 ever, 9 ever for maps, 1000/km ever, 5 ever in {names(ball)[0]}")
        before = {person: spent(ledger, person) for person in (*asked, "crowd")}
        for person, metric in asked.items():
            found = release(
                ledger, person, "first", metric, 2.0, dimension=2, purpose="maps", draw=lambda: pytest.fail("drawn")
            )
            assert (found.report, found.repeated) == (b"old report", True)
        again = ledger.release_batch(
            {"mahalanobis": 1, "crowd": 3}, "table", metric=ball, epsilon=0.5, draw=lambda granted: b"", **MAPS
        )
        assert (again.report, again.repeated, again.granted) == (b"old table", True, {"mahalanobis": 1, "crowd": 3})
        assert {person: {k: v for k, v in spent(ledger, person).items() if v} for person in before} == before


def test_names_of_before_that_the_ledger_does_not_note_are_a_fault(tmp_path) -> None:
    import sqlite3

    with open_old(tmp_path) as ledger:
        assert ledger.verify().holds
    with sqlite3.connect(tmp_path / "ledger.db") as raw:
        raw.execute("UPDATE books SET replaced = ''")
    with Ledger.open(tmp_path / "ledger.db", clock=Clock(THEN)) as ledger:
        assert not ledger.verify().holds


def test_an_earlier_version_refuses_a_ledger_of_this_one(tmp_path) -> None:
    """What 0.1.0 looks at when it opens a ledger: a version above 2 is refused with its sentence."""
    import sqlite3

    with open_old(tmp_path):
        pass
    with sqlite3.connect(tmp_path / "ledger.db") as raw:
        assert raw.execute("SELECT version FROM books").fetchone()[0] > 2


def test_old_names_on_a_server_count_as_in_a_file(tmp_path) -> None:
    if books.postgres() is None:
        pytest.skip("PostgreSQL is not installed")
    import sqlalchemy as sa

    metric = AFTER["mahalanobis"][0]
    (name,) = names(metric)
    sums = mdp.Weighted([(mdp.Haversine(), [0, 1], 1.0), (mdp.Lp(2), [2, 3], 1.0)])
    with books.server() as server:
        address, key = server.fresh("ledger"), tmp_path / "ledger.key"
        policy = f"10 ever, 10 ever in {name}, 100/km ever"
        with Ledger.open(address, policy=policy, key_file=key, clock=Clock()) as ledger:
            release(ledger, "anna", "1", metric, 3.0)
            release(ledger, "ben", "1", sums, 3.0)
            done = ledger.release_batch(
                {"anna": 2, "ben": 1}, "t", key="app", metric=sums, epsilon=1.0, draw=lambda granted: b"table"
            )
            assert [one.charged for one in done.parts] == [MICRO, MICRO]
            assert ledger.verify().holds
        engine = sa.create_engine(address.replace("postgresql", "postgresql+psycopg"))
        with engine.begin() as connection:  # as version 2 had it
            connection.execute(sa.text("UPDATE accounts SET metric = 'mahalanobis' WHERE metric LIKE 'mahalanobis%'"))
            connection.execute(sa.text("ALTER TABLE books DROP COLUMN replaced"))
            connection.execute(sa.text("UPDATE books SET version = 2"))
        engine.dispose()
        with Ledger.open(address, key_file=key, clock=Clock()) as ledger:
            assert ledger.granted({"anna": 99, "ben": 99}, metric=metric, epsilon=1.0, partial=True) == {
                "anna": 7, "ben": 10,
            }  # fmt: skip
            assert release(ledger, "anna", "2", metric, 2.0).left == 5 * MICRO


def test_the_command_that_charges_a_table_says_every_part_in_its_unit(tmp_path, capsys) -> None:
    from metricdp.cli import main

    place, out = tmp_path / "trips.csv", tmp_path / "out.csv"
    place.write_text("who,lat,lon,lat2,lon2\na,41.1,-8.6,41.2,-8.5\na,41.1,-8.6,41.2,-8.5\n")
    mdp.save(mdp.product(mdp.laplace(mdp.Haversine(), 10.0), mdp.laplace(mdp.Haversine(), 10.0)), tmp_path / "trip.mdp")
    Ledger.open(tmp_path / "budget.db", policy="100/km ever").close()
    words = ["perturb", place, "--mechanism", tmp_path / "trip.mdp", "--columns", "lat,lon,lat2,lon2", "--id", "who"]
    assert main([str(one) for one in (*words, "--ledger", tmp_path / "budget.db", "-o", out)]) == 0
    told = capsys.readouterr().out
    assert "epsilon 10 per km (Haversine) for each part, 20 per km for all 2 parts together" in told
    assert "A row cost 20/km in haversine/km." in told
    assert "40 per km for all 2 parts together" in told
    with Ledger.open(tmp_path / "budget.db") as ledger:
        assert spent(ledger, "a") == {"haversine/km": 40 * MICRO}
        assert in_words(ledger.budget("a").left, "km") == "60/km"
