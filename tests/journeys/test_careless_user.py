"""The careless user: a messy file of real trips, mistakes on purpose, and advice that is followed as it is printed."""

from __future__ import annotations

import csv
import datetime as dt
import re
import shlex
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from metricdp.places import data_folder
from scripts import main

ROWS = 3000
HEADER = ["taxi", "trip", "pickup time", "pickup_lat", "pickup_lng", "lat_e3", "zone", "fare", "passenger_count", "ip"]


def trips() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Trip, time, latitude and longitude of taxis in Porto; walks of the same shape where the data are not here."""
    folder = data_folder() / "traj_porto_taxi"
    if (folder / "points.parquet").is_file():
        table = pq.read_table(folder / "points.parquet").slice(0, ROWS)
        return tuple(np.asarray(table[name]) for name in ("trip", "t", "lat", "lon"))
    rng = np.random.default_rng(0)
    trip = np.repeat(np.arange(ROWS // 40), 40)
    place = rng.normal([41.15, -8.62], [0.02, 0.03], (len(trip) // 40, 2))[trip] + rng.normal(0, 0.003, (len(trip), 2))
    return trip, 1_372_636_858 + 15 * np.arange(len(trip)), place[:, 0], place[:, 1]


@pytest.fixture(scope="module")
def rows() -> list[list[str]]:
    trip, time, lat, lon = trips()
    rng = np.random.default_rng(1)
    fares = rng.gamma(3.0, 3.0, int(trip.max()) + 1).round(2)
    made = []
    for number in range(len(trip)):
        when = dt.datetime.fromtimestamp(int(time[number]), dt.UTC).strftime("%Y-%m-%d %H:%M:%S")
        north, east, whose = float(lat[number]), float(lon[number]), int(trip[number])
        zone = f"Z{int(north * 150) % 97}-{int(east * 150) % 89}"
        address = f"81.20.{number % 251}.{number % 13}"
        made.append([f"T{whose % 17}", str(whose), when, repr(north), repr(east), str(int(north * 1000)), zone,
                     str(fares[whose]), str(1 + whose % 4), address])  # fmt: skip
    return made


class Desk:
    """Somebody at a terminal: types, and reads what comes back."""

    def __init__(self, folder: Path, rows: list[list[str]], capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capsys = folder, capsys
        self.values = {row[column] for row in rows for column in (3, 4)}
        self.save(rows)

    def save(self, rows: list[list[str]]) -> None:
        with (self.folder / "trips.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, delimiter=";").writerows([HEADER, *rows])

    def types(self, options: str) -> tuple[int, list[str]]:
        out = self.folder / "out.csv"
        words = ["perturb", str(self.folder / "trips.csv"), "--epsilon", "10/km", "-o", str(out), *shlex.split(options)]
        code = main(words)
        shown = self.capsys.readouterr()
        text = shown.out + shown.err
        assert not set(re.findall(r"-?\d+\.\d{3,}", text)) & self.values, "a place of somebody was printed"
        assert "Traceback" not in text
        assert (code == 0) == out.exists()
        return code, [line.replace(str(self.folder), "HERE") for line in text.splitlines()]

    def result(self) -> list[dict[str, str]]:
        with (self.folder / "out.csv").open(newline="", encoding="utf-8") as file:
            found = list(csv.DictReader(file, delimiter=";"))
        (self.folder / "out.csv").unlink()
        return found


@pytest.fixture
def desk(tmp_path: Path, rows: list[list[str]], capsys: pytest.CaptureFixture[str]) -> Desk:
    return Desk(tmp_path, rows, capsys)


def refused(desk: Desk, options: str) -> str:
    code, lines = desk.types(options)
    assert code == 2
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    return lines[0]


RIGHT = "--columns pickup_lat,pickup_lng"


def test_mistakes_in_the_columns_are_told_and_not_carried_out(desk: Desk, rows: list[list[str]]) -> None:
    assert "no latitude column: expected one named lat or latitude" in refused(desk, "")
    said = refused(desk, "--columns pickup_lng,pickup_lat")
    assert "look exchanged by their names: the latitude comes first, --columns pickup_lat,pickup_lng" in said
    assert said.endswith("force=True (--force).")
    assert "Did you mean 'pickup_lng'" in refused(desk, "--columns pickup_lat,pickup_lon")

    lost = [list(row) for row in rows]
    lost[7][3:5] = ["0", "0.0"]
    desk.save(lost)
    assert "pickup_lat, pickup_lng are 0 and 0 in row 7 (the first is row 0)" in refused(desk, RIGHT)

    flipped = [list(row) for row in rows]
    flipped[2500][4] = flipped[2500][4].removeprefix("-")
    desk.save(flipped)
    said = refused(desk, RIGHT)
    assert "1 of 3,000 rows lie far from all others, such as row 2500 (the first is row 0)" in said
    assert desk.types(f"{RIGHT} --force")[0] == 0


def test_the_advice_of_strict_works_as_it_is_printed(desk: Desk) -> None:
    code, lines = desk.types(RIGHT)
    assert code == 0
    text = "\n".join(lines)
    for line in (
        "3,000 rows written to HERE/out.csv in",
        "Unchanged and not protected: taxi, trip, pickup time, lat_e3, zone, fare, passenger_count, ip.",
        "Check lat_e3: it is a copy of the protected place (equal, rounded, scaled or projected).",
        "Check ip: it holds internet addresses, from which places and households can be looked up.",
        "Check pickup time: it holds times to the second: someone who saw a person at that time finds the row.",
        "Columns were checked by their names, and by their values on 3,000 rows. ",
    ):
        assert line in text
    assert "zone" in "".join(line for line in lines if line.startswith("Check "))
    for harmless in ("fare", "passenger_count"):
        assert harmless not in "".join(line for line in lines if line.startswith(("Check ", "Drop or ")))
    desk.result()

    said = refused(desk, f"{RIGHT} --strict")
    advice = re.search(r"Drop or coarsen what is not needed: (.*?) \(or --keep", said)
    assert advice is not None
    code, lines = desk.types(f"{RIGHT} --strict {advice[1]}")
    assert code == 0
    assert not [line for line in lines if line.startswith("Check ")]
    assert any(line.startswith("Dropped, as requested: ") and "lat_e3" in line and "ip" in line for line in lines)
    assert "Coarsened, as requested: pickup time to 1h." in lines
    result = desk.result()
    assert set(result[0]) >= {"pickup time", "pickup_lat", "pickup_lng", "fare", "passenger_count"}
    assert not set(result[0]) & {"lat_e3", "zone", "ip"}
    assert {row["pickup time"][13:] for row in result} == {":00:00"}


def test_forty_rows_of_one_person_cost_what_was_allowed(desk: Desk, rows: list[list[str]]) -> None:
    quiet = f"{RIGHT} --drop lat_e3,zone,ip,trip --coarsen 'pickup time=1h' --id taxi"
    most = max(Counter(row[0] for row in rows).values())
    _, lines = desk.types(quiet)
    assert any(f"is protected at {most:,} x 10 = {most * 10} per km" in line for line in lines)
    desk.result()

    said = refused(desk, f"{quiet} --budget 40/km")
    assert f"somebody has {most:,} rows, which cost {most:,} x 10 together, more than the budget of 40" in said
    assert "--allocation even, or keep fewer with --max-rows 4" in said
    assert "has no unit" in refused(desk, f"{quiet} --budget 40 --allocation even")
    assert "with --id" in refused(desk, f"{RIGHT} --budget 40/km --allocation even")

    _, lines = desk.types(f"{quiet} --budget 40/km --max-rows 4")
    assert f"{sum(min(4, n) for n in Counter(row[0] for row in rows).values()):,} rows written to" in lines[0]
    assert "together are protected at 40 per km." in "\n".join(lines)
    assert "The choice does not depend on the secrets" in "\n".join(lines)
    kept = desk.result()
    assert max(Counter(row["taxi"] for row in kept).values()) == 4

    _, lines = desk.types(f"{quiet} --budget 40/km --allocation even")
    text = "\n".join(lines)
    share = 40_000_000 // min(Counter(row[0] for row in rows).values()) / 1e6  # in millionths, of who has fewest rows
    assert f"Guarantee per row: at most epsilon {share:.6g} per km (Haversine), by theorem; less for persons" in text
    assert "The budget of 40 per km is divided evenly: each row gets the budget divided by the number" in text
    assert "together are protected at 40 per km." in text
    assert "The table shows how many rows each taxi has" in text
    assert "costs every person as much again: 2 x 40 = 80 per km for all their rows." in text
    assert len(desk.result()) == len(rows)
