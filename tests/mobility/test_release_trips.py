"""One function for trips: files and data frames, the options that it has, and those that it has not."""

import json
from importlib import resources

import jsonschema
import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import metricdp as mdp
from metricdp.errors import BudgetExceeded, InvalidInput
from metricdp.ledger import Ledger
from metricdp.mobility import Absorption, Cloaked, Contextual, Distribution, Predictive, Stream, Zoned, release_trips
from metricdp.places import bundled_roads, bundled_trips, spread_places
from metricdp.tables import Charging, Disclosure, Job, People, Reading


@pytest.fixture(scope="module")
def fixes():
    table = bundled_trips(trips=6)
    whose = pa.array([f"person {number % 2}" for number in table["trip"].to_pylist()])
    return table.append_column("who", whose)


@pytest.fixture(scope="module")
def places():
    return spread_places(bundled_roads(), 5)


FRAMES = {"arrow": lambda table: table, "pandas": lambda table: table.to_pandas(), "polars": polars.from_arrow}


def ways(places):
    return [
        Contextual(places, 1.0, step_seconds=30.0),
        Predictive(4.0, total=40.0, step_seconds=30.0),
        Zoned(places, 4.0, radius_km=0.5, centre_epsilon=1.0, step_seconds=30.0),
        Cloaked(4.0, 0.1),
    ]


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("number", range(4))
def test_a_data_frame_comes_back_as_one_of_its_type(fixes, places, kind, number, caplog):
    caplog.set_level("INFO", logger="metricdp")
    frame, how = FRAMES[kind](fixes), ways(places)[number]
    reports = release_trips(frame, how)
    assert type(reports) is type(frame)
    names = list(reports.column_names if kind == "arrow" else reports.columns)
    assert names[:4] == ["trip", "t", "lat", "lon"]
    trips = set(np.asarray(reports["trip"]).tolist())
    assert trips <= set(fixes["trip"].to_pylist())
    if number in (0, 2):
        legal = {tuple(row) for row in places.coordinates.tolist()}
        lat, lon = (np.asarray(reports[name]).tolist() for name in ("lat", "lon"))
        assert set(zip(lat, lon, strict=True)) <= legal
    assert any("Not protected" in record.message for record in caplog.records)


@pytest.mark.parametrize("number", [0, 3])
def test_a_summary_of_trips_keeps_to_the_schema(fixes, places, number, tmp_path):
    schema = json.loads(resources.files("metricdp").joinpath("metricdp.schema.json").read_text())
    parquet.write_table(fixes, tmp_path / "trips.parquet")
    summary = release_trips(tmp_path / "trips.parquet", ways(places)[number], to=tmp_path / "out.csv")
    values = summary.to_dict()
    assert json.loads(json.dumps(values, allow_nan=False)) == values
    jsonschema.validate(values, {"$ref": "#/$defs/trips", "$defs": schema["$defs"]})
    assert (values["target"], values["guarantee"] is None) == ("out.csv", summary.mechanism is None)


def test_names_and_dates_of_a_frame_come_back_as_they_were():
    table = bundled_trips(trips=2).to_pandas()
    table["cab"] = [f"cab {number}" for number in table.pop("trip")]
    table["when"] = pandas.to_datetime(table.pop("t"), unit="s")
    reports = release_trips(table, Cloaked(4.0, 0.1), columns=["cab", "when", "lat", "lon"])
    assert set(reports["cab"]) <= {"cab 0", "cab 1"}
    assert pandas.api.types.is_datetime64_any_dtype(reports["when"])


def test_everybody_is_charged_for_the_trips_of_a_frame_under_any_spelling_of_their_name(fixes, tmp_path):
    spelled = pa.array(["Jos\u00e9" if number % 2 else "Jose\u0301" for number in fixes["trip"].to_pylist()])
    table = fixes.set_column(4, "who", spelled)
    with Ledger.open(tmp_path / "budget.db", policy="100000/km ever, 100/min ever") as ledger:
        people = People(id="who", ledger=ledger)
        reports = release_trips(table, Cloaked(4.0, 0.1), people=people)
        (place, time) = sorted(ledger.history("Jos\u00e9"), key=lambda one: one.metric)
        assert place.rows == time.rows == reports.num_rows
        assert place.amount == reports.num_rows * 4_000_000


def test_nobody_is_charged_and_nothing_is_drawn_where_the_ledger_does_not_hold_it(fixes, places, tmp_path):
    with Ledger.open(tmp_path / "budget.db", policy="5/km ever, 0.05/min ever, slack 1 ever") as ledger:
        for how in ways(places)[1:]:
            with pytest.raises(BudgetExceeded):
                release_trips(fixes, how, people=People(id="who", ledger=ledger))
        assert ledger.history("person 0") == ledger.history("person 1") == []


def test_a_place_of_a_ledger_is_enough_and_its_policy_stays(fixes, tmp_path):
    place = tmp_path / "budget.db"
    Ledger.open(place, policy="100000/km ever").close()
    release_trips(fixes, Predictive(4.0), people=People(id="who", ledger=place))
    with Ledger.open(place) as ledger:
        assert ledger.history("person 0")


@pytest.mark.parametrize("kind", [Distribution, Absorption])
def test_rows_of_a_table_are_steps_of_a_stream_whose_windows_cost_at_most_a_total(kind, tmp_path):
    rows = 12
    frame = pandas.DataFrame({"who": ["a", "b"] * rows, "t": np.arange(2.0 * rows), "lat": 41.0, "lon": -8.0})
    frame["lat"] += 0.01 * np.arange(2 * rows)
    with Ledger.open(tmp_path / "budget.db", policy="1000/km ever") as ledger:
        people, job = People(id="who", ledger=ledger), Job(name="mine")
        reports = release_trips(frame, kind(4, 20.0), people=people, job=job, disclosure=Disclosure(force=True))
        assert list(reports.columns) == ["who", "t", "lat", "lon", "fresh"]
        assert reports["who"].tolist() == frame["who"].tolist()
        stream = Stream(Charging(ledger), kind(4, 20.0), name="mine")
        again = stream.step("a", 22.0, (0.0, 0.0))  # the last row of a
        assert again.latitude == reports["lat"].iloc[-2]
        assert ledger.budget("a").accounts[0].spent <= 1e6 * 20.0 * rows / 4
        with pytest.raises(InvalidInput, match="first of `columns`"):
            release_trips(frame, kind(4, 20.0), columns=["who", "t", "lat", "lon"], people=people)
    with pytest.raises(InvalidInput, match="a stream needs a ledger"):
        release_trips(frame, kind(4, 20.0), people=People(id="who"), disclosure=Disclosure(force=True))


@pytest.mark.parametrize(
    ("options", "answer"),
    [
        ({"to": "out.csv"}, "`to` is for files; a Table comes back"),
        ({"reading": Reading(scale=1e-7)}, "`scale` is for files, and a Table is not a file"),
        ({"job": Job(overwrite=True)}, "`overwrite` is for files"),
        ({"job": Job(name="mine")}, "`name` is for streams"),
        ({"disclosure": Disclosure(drop=["who"])}, "`drop` is not an option of `release_trips`"),
        ({"people": People(id="who", budget=4.0)}, "`budget` is not an option"),
        ({"people": People(purpose="x")}, "`purpose` is for a ledger that is charged"),
        ({"people": People(id="nobody")}, "must have the columns nobody"),
        ({"people": "who"}, "`people` must be `mdp.People"),
        ({"columns": ["trip", "t"]}, "must be four"),
        ({"columns": ["trip", "t", "place"]}, "the Table must have the columns place"),
    ],
)
def test_what_trips_have_no_use_for_is_refused(fixes, options, answer):
    with pytest.raises(InvalidInput, match=answer):
        release_trips(fixes, Predictive(4.0), **options)


def test_mistakes_about_the_way_of_release_are_answered(fixes, places, tmp_path):
    with pytest.raises(InvalidInput, match="`how` must be Contextual, Predictive, Zoned, Cloaked, Distribution"):
        release_trips(fixes, mdp.laplace(mdp.Haversine(), 1.0))
    with pytest.raises(InvalidInput, match="a mechanism with history has none"):
        release_trips(fixes, Contextual(places, 1.0), people=People(id="who"))
    with pytest.raises(InvalidInput, match="learn"):
        Contextual(places, 1.0, learn=1.0, history="old.csv")
    with pytest.raises(InvalidInput, match="one of parrot, linear"):
        Predictive(1.0, predict="magic")
    with pytest.raises(InvalidInput, match="zones are measured in kilometres"):
        Zoned(mdp.FiniteSpace([[0.0], [1.0]], mdp.Lp(1)), 1.0, 1.0, centre_epsilon=1.0)
    with Ledger.open(tmp_path / "budget.db", policy="1/km ever") as ledger:
        people = People(id="who", ledger=ledger, refused="report")
        with pytest.raises(InvalidInput, match="`refused` is for predicted trips"):
            release_trips(fixes, Cloaked(1.0, 1.0), people=people)
    parquet.write_table(fixes, tmp_path / "fixes.parquet")
    with pytest.raises(InvalidInput, match="such as to="):
        release_trips(tmp_path / "fixes.parquet", Predictive(4.0))


def test_a_frame_that_mixes_values_shows_none_of_them():
    frame = pandas.DataFrame({"trip": [1, "secret"], "t": [0, 1], "lat": [41.0, 41.0], "lon": [-8.0, -8.0]})
    with pytest.raises(InvalidInput, match="mixes kinds of values") as told:
        release_trips(frame, Predictive(4.0))
    assert "secret" not in str(told.value)
    assert told.value.__context__ is None


def test_a_file_says_what_was_done_and_keeps_the_fixes_of_a_trip_of_two_persons(fixes, tmp_path):
    source, out = tmp_path / "fixes.parquet", tmp_path / "out.csv"
    parquet.write_table(fixes, source)
    summary = release_trips(source, Predictive(4.0, step_seconds=30.0), to=out, people=People(id="who"))
    assert summary.target == str(out)
    assert summary.reports == sum(len(run) for run in summary.runs) == len(out.read_text().splitlines()) - 1
    assert summary.lines()[0].startswith(f"{out}: {summary.reports:,} reports of 6 trips")
    mixed = fixes.set_column(4, "who", pa.array([str(row % 2) for row in range(fixes.num_rows)]))
    with pytest.raises(InvalidInput, match="rows of two persons in 'who'"):
        release_trips(mixed, Predictive(4.0), people=People(id="who"))


def test_the_old_place_of_a_stream_warns():
    from metricdp.tables import streams

    with pytest.warns(DeprecationWarning, match=r"metricdp\.mobility\.Stream now"):
        assert streams.Stream is Stream
    with pytest.raises(AttributeError):
        _ = streams.Answer
