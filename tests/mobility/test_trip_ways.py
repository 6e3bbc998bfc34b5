"""Trips with home zones, with hidden times, and by prediction with books: the command, its sentences, its kills."""

import os
import re
import signal
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import metricdp as mdp
from books import fork, quick_folder
from metricdp.errors import BudgetExceeded
from metricdp.ledger import Ledger
from metricdp.mobility import Predictive, Walks, home_of, load_traces, release_trips, stay_points
from metricdp.places import bundled_trips, road_network, spread_places
from metricdp.tables import Charging, Job, People
from scripts import main

TEST_SHARE = 0.5 * np.log(5) / 3.8897201698674295 * (1 + 1 / 0.8)


@pytest.fixture(scope="module")
def trips(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ways")
    table = bundled_trips(trips=8)
    whose = pa.array([f"person {number % 3}" for number in table["trip"].to_pylist()])
    parquet.write_table(table.append_column("who", whose), folder / "trips.parquet")
    return folder / "trips.parquet"


def released(*words):
    return main(["trajectories", *map(str, words)])


# --- zones ------------------------------------------------------------------------------------------------------------

ZONED = ["--places", "porto", "--count", "8", "--zones", "home", "--centre-epsilon", "1/km", "--zone-radius", "1.5km"]


def test_home_zones_are_released_in_one_command_that_says_what_the_border_reveals_and_no_place(trips, tmp_path, capsys):
    out = tmp_path / "out.parquet"
    words = [*ZONED, "--epsilon", "4/km", "--step", "20", "--stay", "30s", "--id", "who"]
    assert released(trips, *words, "-o", out) == 0
    said, reports = capsys.readouterr().out, parquet.read_table(out)
    places = spread_places(road_network("porto"), 8)
    legal = {tuple(row) for row in places.coordinates.tolist()}
    assert {(row["lat"], row["lon"]) for row in reports.to_pylist()} <= legal
    assert f"{reports.num_rows:,} reports of 8 trips of 3 persons over 8 places" in said
    assert "4 per km for any two places, and 0.8 per km for two places of one zone" in said
    assert "A visit to the border" in said
    assert "not the home but a report of it" in said
    assert "above it" in said  # the loss beside its bound
    for row in places.coordinates.tolist():  # neither a centre nor any other place is printed
        assert not any(re.search(rf"\b{value:.3f}", said) for value in row)


def test_public_centres_of_zones_come_from_a_file(trips, tmp_path, capsys):
    (tmp_path / "districts.csv").write_text("lat,lon\n41.15,-8.61\n")
    out = tmp_path / "out.csv"
    words = ["--places", "porto", "--count", "6", "--zones", tmp_path / "districts.csv", "--epsilon", "2/km"]
    assert released(trips, *words, "--step", "30", "-o", out) == 0
    assert "The positions of the 1 zones are public" in capsys.readouterr().out


def test_the_books_keep_the_centre_of_a_home_zone_so_that_it_is_drawn_and_charged_once(trips, tmp_path, capsys):
    books = tmp_path / "budget.db"
    Ledger.open(books, policy="10000/km ever, slack 10000 ever").close()
    words = [*ZONED, "--epsilon", "4/km", "--step", "30", "--id", "who", "--ledger", books]
    assert released(trips, *words, "-o", tmp_path / "one.csv") == 0
    assert "later tables use it again" in capsys.readouterr().out
    with Ledger.open(books) as ledger:
        first = [one for one in ledger.history("person 1") if one.report is not None]
    assert released(trips, *words, "-o", tmp_path / "two.csv") == 0
    with Ledger.open(books) as ledger:
        again = [one for one in ledger.history("person 1") if one.report is not None]
        batches = [one for one in ledger.history("person 1") if one.report is None]
    assert [one.report for one in again] == [one.report for one in first]
    assert [one.amount for one in first] == [1_000_000]
    rows = sum(1 for line in (tmp_path / "one.csv").read_text().splitlines()[1:] if int(line.split(",")[0]) % 3 == 1)
    assert [one.rows for one in batches] == [rows, rows]
    assert batches[0].amount == rows * 4_000_000


def test_a_home_is_where_the_stays_are_longest_and_everybody_has_one():
    places = mdp.FiniteSpace([[41.0, -8.0], [41.1, -8.0], [41.2, -8.0]], mdp.Haversine())
    still = [(0, t, 41.1, -8.0) for t in range(0, 2000, 100)] + [(0, t, 41.2, -8.0) for t in range(4000, 5000, 100)]
    moving = [(1, t, 41.0 + t / 1e4, -8.0) for t in range(0, 400, 100)]
    table = pa.table(dict(zip(("trip", "t", "lat", "lon"), map(list, zip(*still, *moving, strict=False)), strict=True)))
    traces = load_traces(table)
    stays = stay_points(traces, radius_km=0.2, least_seconds=600)
    walks = Walks(traces.trip, traces.seconds, places.nearest(traces.coordinates)[0], traces.owner)
    assert home_of(stays, walks, places, np.array([0])) == 1
    assert home_of(stays, walks, places, np.array([1])) == 0  # no stay: where most steps are


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ([*ZONED[:6], "--epsilon", "4/km"], "never around the home itself"),
        ([*ZONED, "--epsilon", "4/km", "--predict", "parrot"], "choose one"),
        ([*ZONED[:-1], "90km", "--epsilon", "4/km"], "holds all 8 places"),
        ([*ZONED, "--zone-scale", "0", "--epsilon", "4/km"], "above 0 and at most 1"),
        ([*ZONED, "--learn", "1", "--epsilon", "4/km"], "--learn goes without it"),
        (["--places", "porto", "--zone-radius", "2km", "--epsilon", "4/km"], "belong to --zones"),
        (["--places", "porto", "--id", "who", "--epsilon", "4/km"], "--id and --ledger go with"),
        ([*ZONED, "--epsilon", "4/km", "--id", "nobody"], "must have the columns nobody"),
        ([*ZONED, "--epsilon", "4/km", "--stay", "long"], "a time is written such as"),
        ([*ZONED, "--epsilon", "4/km", "--refused", "report"], "--refused report goes with --predict"),
        (["--clock", "15min", "--epsilon", "4/km"], "--clock belongs to --times"),
        (["--times", "0.1", "--epsilon", "4/km"], "per time, such as 0.5/min"),
        (["--times", "0.1/min", "--places", "porto", "--epsilon", "4/km"], "--places goes without it"),
        (["--times", "0.1/min", "--clock", "7min", "--epsilon", "4/km"], "equal parts"),
        (["--predict", "parrot", "--epsilon", "4/km", "--ledger", "nowhere.db"], "nowhere.db"),
    ],
)
def test_mistakes_are_answered_and_nothing_is_written(trips, tmp_path, capsys, monkeypatch, words, answer):
    monkeypatch.chdir(tmp_path)
    assert released(trips, *words, "-o", "out.parquet") == 2
    assert answer in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


# --- times ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("clock", [[], ["--clock", "30min"]])
def test_hidden_times_come_back_sorted_with_a_promise_for_places_and_times(trips, tmp_path, capsys, clock):
    out = tmp_path / "out.parquet"
    assert released(trips, "--times", "2/h", *clock, "--epsilon", "4/km", "-o", out) == 0
    said, before, reports = capsys.readouterr().out, parquet.read_table(trips), parquet.read_table(out)
    assert reports.num_rows == before.num_rows
    trip, seconds = reports["trip"].to_numpy(), reports["t"].to_numpy()
    assert np.all(np.diff(seconds)[np.diff(trip) == 0] >= 0)
    assert "4 per km that its place moves, and 0.033" in said
    if clock:
        assert np.all(seconds % 1800 == 0)
        days = {
            one: set((before["t"].to_numpy()[before["trip"].to_numpy() == one] // 86400).astype(int))
            for one in range(8)
        }
        assert all(int(t // 86400) in days[int(one)] for one, t in zip(trip, seconds, strict=True))
        assert "a slack of 1," in said  # 2 per hour, and half an hour that two times can be moved apart
        assert "above it" in said
    else:
        assert np.ptp(seconds) > np.ptp(before["t"].to_numpy())  # half an hour of noise on trips of minutes


def test_places_and_times_are_charged_both_or_neither(trips, tmp_path, capsys):
    books = tmp_path / "budget.db"
    Ledger.open(books, policy="10000/km ever, 0.01/min ever").close()
    words = ["--times", "2/h", "--epsilon", "4/km", "--id", "who", "--ledger", books, "-o", tmp_path / "out.csv"]
    assert released(trips, *words) == 2
    assert not (tmp_path / "out.csv").exists()
    with Ledger.open(books) as ledger:
        assert ledger.history("person 0") == []
        ledger.change_policy("10000/km ever, 100/min ever")
    assert released(trips, *words) == 0
    assert "3 persons were charged" in capsys.readouterr().out
    with Ledger.open(books) as ledger:
        assert sorted(one.metric for one in ledger.history("person 0")) == ["haversine/km", "l2/min"]


@pytest.fixture
def in_memory():
    with tempfile.TemporaryDirectory(dir=quick_folder()) as folder:
        yield Path(folder)


# --- prediction with books --------------------------------------------------------------------------------------------


def books_of(place):
    with Ledger.open(place) as ledger:
        return [one.amount for name in range(3) for one in ledger.history(f"person {name}")]


def spent_in(table):
    """What the rows of a table cost: noise where fresh, a test everywhere but at the first report of a trip."""
    trip, fresh = table["trip"].to_numpy(), table["fresh"].to_numpy()
    return 4 * fresh.sum() + 4 * TEST_SHARE * (len(trip) - len(np.unique(trip)))


def deadly(release, calls):
    """A release that kills the process right after so many charges were committed, before an answer is used."""
    left = [calls]

    def charged_and_killed(*words, **options):
        receipt = release(*words, **options)
        left[0] -= not receipt.repeated
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        return receipt

    return charged_and_killed


def test_a_predicted_table_that_is_killed_goes_on_and_everything_is_charged_once(trips, tmp_path, in_memory):
    place, out = in_memory / "budget.db", tmp_path / "out.parquet"
    Ledger.open(place, policy="10000/km ever").close()
    how = Predictive(4.0, step_seconds=40.0)
    for number, calls in enumerate((1, 8)):
        child = fork()
        if child == 0:
            with Ledger.open(place) as ledger:
                ledger.release = deadly(ledger.release, calls)
                release_trips(trips, how, to=out, people=People(id="who", ledger=ledger))
            os._exit(1)
        assert os.waitpid(child, 0)[1] == signal.SIGKILL
        assert not out.exists()
        assert len(books_of(place)) == (1, 9)[number]
    with Ledger.open(place) as ledger:
        summary = release_trips(trips, how, to=out, people=People(id="who", ledger=ledger))
        assert ledger.verify().holds
    table, charged = parquet.read_table(out), books_of(place)
    tests = sum(run.tests for run in summary.runs)
    assert len(charged) == tests + table["fresh"].to_numpy().sum()
    assert sum(charged) / 1e6 == pytest.approx(spent_in(table), abs=1e-6 * len(charged))
    assert sum(charged) / 1e6 >= sum(run.spent for run in summary.runs) - 1e-9
    assert "9 answers were drawn and charged before" in "\n".join(summary.lines())
    with Ledger.open(place) as ledger:  # the same wish again is the same release; another wish is another one
        people = People(id="who", ledger=ledger)
        again = release_trips(trips, how, to=out, people=people, job=Job(overwrite=True))
    assert books_of(place) == charged
    assert parquet.read_table(out).equals(table)
    assert again.runs[0].reports[0].tolist() == summary.runs[0].reports[0].tolist()


def test_books_that_might_not_hold_all_trips_refuse_before_anything_is_drawn_or_end_the_trips(trips, tmp_path):
    place, out = tmp_path / "budget.db", tmp_path / "out.parquet"
    how = Predictive(4.0, step_seconds=20.0)
    with Ledger.open(place, policy="30/km ever") as ledger:
        with pytest.raises(BudgetExceeded):
            release_trips(trips, how, to=out, people=People(id="who", ledger=ledger))
        assert ledger.history("person 0") == []
        summary = release_trips(trips, how, to=out, people=People(id="who", ledger=Charging(ledger, refused="report")))
    assert sum(books_of(place)) <= 3 * 30_000_000
    assert summary.lost > 0
    assert sum(len(run) for run in summary.runs) == summary.reports
    assert "have none, since the budget" in summary.lines()[-1]
