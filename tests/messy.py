"""A messy file of real trips: what a privacy engineer gets from the fleet's spreadsheet.

One row a trip: start and end, in two pairs of columns with the same names. The trips are those of Porto's taxis where
the data folder has them, else the simulated ones that come with the package.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from metricdp.places import bundled_trips, data_folder

HEADER = ["Trip No", "Driver", "Started", "Lat", "Lon", "Remark", "Lat", "Lon"]
BAD = {17: ("", None), 40: ("k.A.", None), 63: ("411,552660", None)}  # row -> what stands for latitude, longitude


@dataclass(frozen=True)
class Trip:
    """What one row of the file is made of."""

    number: int
    start: tuple[float, float]
    end: tuple[float, float]
    began: int


def trips(count: int = 120) -> list[Trip]:
    """Return trips with their first and last position."""
    path = Path(data_folder()) / "traj_porto_taxi" / "points.parquet"
    table: Any = pq.read_table(path) if path.is_file() else bundled_trips(trips=count)
    held: dict[int, list[tuple[float, float, int]]] = {}
    for trip, t, lat, lon in zip(*(table[name].to_pylist() for name in ("trip", "t", "lat", "lon")), strict=True):
        held.setdefault(trip, []).append((lat, lon, int(t)))
    return [Trip(number, fixes[0][:2], fixes[-1][:2], fixes[0][2]) for number, fixes in list(held.items())[:count]]


def comma(value: float) -> str:
    return f"{value:.7f}".replace(".", ",")


def lines(count: int = 120) -> list[list[str]]:
    """Return the cells below the header, bad ones included."""
    rows = []
    for row, trip in enumerate(trips(count)):
        remark = 'left at the\r\n"old" bridge; waited' if row % 11 == 0 else ""
        latitude, longitude = BAD.get(row, (None, None))
        rows.append([
            str(trip.number), f"D{row % 7:03d}", str(trip.began),
            comma(trip.start[0]) if latitude is None else latitude,
            comma(trip.start[1]) if longitude is None else longitude,
            remark, comma(trip.end[0]), comma(trip.end[1]),
        ])  # fmt: skip
    return rows


def spreadsheet(count: int = 120) -> bytes:
    """Return the file: semicolons, decimal commas, a byte order mark, CRLF, quoted line breaks, repeated names."""
    held = io.StringIO(newline="")
    writer = csv.writer(held, delimiter=";", lineterminator="\r\n")
    writer.writerow(HEADER)
    writer.writerows(lines(count))
    return b"\xef\xbb\xbf" + held.getvalue().encode()


def cells(data: bytes) -> list[list[str]]:
    """Return the cells of such a file, header first."""
    assert data.startswith(b"\xef\xbb\xbf")
    return list(csv.reader(io.StringIO(data[3:].decode(), newline=""), delimiter=";"))
