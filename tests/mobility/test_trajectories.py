"""The command about trips: every tick gets a place, the sentences are true, mistakes are answered."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from pyarrow import csv

import metricdp as mdp
from metricdp.files import lock_target
from metricdp.places import bundled_roads, bundled_trips, road_network, spread_places
from scripts import main


@pytest.fixture(scope="module")
def trips(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trips")
    table = bundled_trips(trips=30)
    parquet.write_table(table, folder / "trips.parquet")
    named = table.set_column(0, "cab", pa.array([f"cab {number}" for number in table["trip"].to_pylist()]))
    with (folder / "trips.csv").open("w") as file:  # as a spreadsheet writes it: semicolons and decimal commas
        file.write("cab;when;lat;lon\n")
        for row in named.to_pylist():
            place = f"{row['lat']!r};{row['lon']!r}".replace(".", ",")
            file.write(f"{row['cab']};{np.datetime64(int(row['t']), 's')};{place}\n")
    return folder


def test_a_file_of_trips_is_released_in_one_command(trips, tmp_path, capsys):
    out = tmp_path / "out.parquet"
    command = [str(trips / "trips.parquet"), "--places", "porto", "--count", "6", "--epsilon", "0.5/km"]
    assert main(["trajectories", *command, "-o", str(out), "--mechanism", str(tmp_path / "m.mdp")]) == 0
    said = capsys.readouterr().out
    reports = parquet.read_table(out)
    assert reports.schema.names == ["trip", "t", "lat", "lon"]
    assert f"{reports.num_rows:,} reports of 30 trips over 6 places" in said
    legal = {tuple(row) for row in spread_places(road_network("porto"), 6).coordinates.tolist()}
    assert {(row["lat"], row["lon"]) for row in reports.to_pylist()} <= legal
    ticks = np.diff(reports["t"].to_numpy())[np.diff(reports["trip"].to_numpy()) == 0]
    assert np.all(ticks % 60 == 0)
    assert mdp.audit(mdp.load(tmp_path / "m.mdp")).verdict == "holds"


def test_other_names_and_text_labels_come_back_as_they_were(trips, tmp_path, capsys):
    out = tmp_path / "out.csv"
    places = tmp_path / "places.csv"
    at = spread_places(bundled_roads(), 5).coordinates
    csv.write_csv(pa.table({"lat": at[:, 0], "lon": at[:, 1]}), places)
    command = ["--places", str(places), "--epsilon", "1/km", "--columns", "cab,when,lat,lon", "--learn", "2"]
    assert main(["trajectories", str(trips / "trips.csv"), *command, "-o", str(out)]) == 0
    reports = csv.read_csv(out)
    assert set(reports["cab"].to_pylist()) <= {f"cab {number}" for number in range(30)}
    assert pa.types.is_timestamp(reports["when"].type)
    assert "budget of 2 for one whole trip" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("mistake", "answer"),
    [
        (["--epsilon", "0.5"], "no unit"),
        (["--epsilon", "0.5/km", "--weights", "half"], "--weights must be numbers"),
        (["--epsilon", "0.5/km", "--columns", "trip,t"], "must be four"),
        (["--epsilon", "0.5/km", "--learn", "1", "--history", "x.csv"], "choose one"),
        (["--epsilon", "0.5/km", "--columns", "cab,t,lat,lon"], "must have the columns"),
        (["--epsilon", "0.5/km", "--columns", "trip,t,lon,lat"], "look exchanged by their names"),
    ],
)
def test_a_mistake_is_answered_and_nothing_is_written(trips, tmp_path, capsys, mistake, answer):
    out = tmp_path / "out.parquet"
    command = [str(trips / "trips.parquet"), "--places", "porto", "--count", "4", *mistake, "-o", str(out)]
    assert main(["trajectories", *command]) == 2
    assert answer in capsys.readouterr().err
    assert not out.exists()


def test_two_releases_of_one_output_are_not_made_at_once(trips, tmp_path, capsys):
    out = tmp_path / "out.parquet"
    command = [str(trips / "trips.parquet"), "--places", "porto", "--count", "4", "--epsilon", "0.5/km"]
    with lock_target(out):
        assert main(["trajectories", *command, "-o", str(out)]) == 2
    assert "is at work on it" in capsys.readouterr().err
    assert not out.exists()


def test_predicted_trips_spend_at_most_their_total_and_say_what_they_spent(trips, tmp_path, capsys):
    out = tmp_path / "out.parquet"
    command = [str(trips / "trips.parquet"), "--predict", "parrot", "--epsilon", "4/km", "--total", "30/km"]
    assert main(["trajectories", *command, "--step", "20", "-o", str(out)]) == 0
    said, reports = capsys.readouterr().out, parquet.read_table(out)
    assert reports.schema.names == ["trip", "t", "lat", "lon", "fresh"]
    fresh, rows = reports["fresh"].to_numpy(), reports["trip"].to_numpy()
    at = np.column_stack([reports["lat"].to_numpy(), reports["lon"].to_numpy()])
    test = 4 * 0.5 * np.log(5) / 3.8897201698674295 * (1 + 1 / 0.8)
    for trip in np.unique(rows):
        mine = fresh[rows == trip]
        assert mine[0]
        assert 4 * mine.sum() + test * (len(mine) - 1) <= 30
    repeated = np.flatnonzero(~fresh)
    assert np.array_equal(at[repeated], at[repeated - 1])  # a parrot
    assert f"{len(rows):,} reports of 30 trips, {fresh.sum():,} of them fresh" in said
    assert "no trip could have spent more than 30 per km" in said


@pytest.mark.parametrize(
    ("options", "answer"),
    [
        (["--predict", "parrot", "--places", "porto"], "--places"),
        (["--predict", "magic"], "one of parrot, linear"),
        (["--predict", "parrot", "--total", "1/km"], "pay for one report"),
        (["--places", "porto", "--total", "9/km"], "--total"),
        ([], "--predict parrot"),
    ],
)
def test_mistakes_about_predicted_trips_are_answered(trips, tmp_path, capsys, options, answer):
    out = tmp_path / "out.parquet"
    assert main(["trajectories", str(trips / "trips.parquet"), "--epsilon", "4/km", *options, "-o", str(out)]) == 2
    assert answer in capsys.readouterr().err
    assert not out.exists()
