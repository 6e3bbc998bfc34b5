"""Secrets that are probably wrong are refused with the reason, unless somebody insists; real tables are not."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import metricdp as mdp
from metricdp.errors import InvalidInput, OutOfDomain
from metricdp.places import data_folder
from metricdp.tables import formats, perturb

EARTH = mdp.laplace(mdp.Haversine(), 10.0)
PLANE = mdp.laplace(mdp.Lp(2), 0.01)
ROWS = 400


def city(seed: int = 0, rows: int = ROWS) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(41.15, 0.02, rows), rng.normal(-8.62, 0.03, rows)


def put(values: np.ndarray, row: int, value: float) -> np.ndarray:
    changed = values.copy()
    changed[row] = value
    return changed


Broken = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
MISTAKES: dict[str, tuple[Broken, str]] = {
    "nowhere": (lambda a, b: (put(a, 17, 0.0), put(b, 17, 0.0)), r"0 and 0 in row 17 "),
    "one number": (lambda a, b: (np.full(ROWS, 41.5), b), r"lat holds one and the same number in all 400 rows"),
    "the same twice": (lambda a, b: (a, a), r"same numbers in every row"),
    "radians": (lambda a, b: (np.radians(a), np.radians(b)), r"radians"),
    "a lost sign": (lambda a, b: (a, put(b, 33, 8.62)), r"1 of 400 rows lie far from all others, such as row 33 "),
    "a lost point": (lambda a, b: (put(a, 5, 4.1), b), r"1 of 400 rows .* row 5 "),
    "one row exchanged": (lambda a, b: (put(a, 9, -8.62), put(b, 9, 41.15)), r"row 9 "),
    "seven digits": (lambda a, b: (np.rint(a * 1e7), np.rint(b * 1e7)), r"--scale 1e-7"),
    "metres": (lambda a, b: (a * 1e5 + 0.5, b * 1e5 + 0.5), r"--crs"),
}


ALIKE = ("one number", "the same twice")


@pytest.mark.parametrize("kind", ["frame", "file"])
@pytest.mark.parametrize("what", MISTAKES)
def test_mistakes_are_refused_with_the_reason(
    what: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(formats.parquet, "BATCH_ROWS", 50)  # seen in pieces
    make, reason = MISTAKES[what]
    lat, lon = make(*city())
    table = pa.table({"lat": lat, "lon": lon})
    target = tmp_path / "out.parquet"

    def protect(**options: object) -> object:
        if kind == "frame":
            return perturb(table, EARTH, **options)
        pq.write_table(table, tmp_path / "in.parquet")
        return perturb(tmp_path / "in.parquet", EARTH, to=target, **options)

    if kind == "frame" and what in ALIKE:  # a program may hand over one place of one person: told, not refused
        with caplog.at_level("WARNING", logger="metricdp"):
            protect()
        assert re.search(reason, caplog.text)
        return
    with pytest.raises(InvalidInput, match=reason) as error:
        protect()
    assert "--force" in str(error.value)
    assert not target.exists()
    assert not set(re.findall(r"-?\d+\.\d+", str(error.value))) & {f"{value:g}" for value in (*lat[:50], *lon[:50])}
    if what in ("seven digits", "metres"):
        with pytest.raises(OutOfDomain):  # no degrees, whatever anybody says
            protect(force=True)
    else:
        protect(force=True)


def test_names_that_are_exchanged_are_refused(caplog: pytest.LogCaptureFixture) -> None:
    lat, lon = city()
    table = pa.table({"lat": lat, "lon": lon, "pickup_longitude": lon, "pickup_latitude": lat})
    with pytest.raises(InvalidInput, match=r"exchanged by their names.*--columns lat,lon"):
        perturb(table, EARTH, columns=["lon", "lat"])
    with pytest.raises(InvalidInput, match=r"--columns pickup_latitude,pickup_longitude"):
        perturb(table, EARTH, columns=["pickup_longitude", "pickup_latitude"])
    perturb(table, EARTH, columns=["lon", "lat"], force=True)
    perturb(table, PLANE, columns=["lat", "lon"])
    assert re.search(r"degrees by their names.*haversine", caplog.text)


@pytest.mark.parametrize("on_error", ["drop", "null"])
def test_latitudes_that_fit_longitudes_are_not_dropped_in_silence(on_error: str) -> None:
    lat, lon = city()
    table = pa.table({"a": lon - 100.0, "b": lat})
    with pytest.raises(
        InvalidInput, match=r"400 of 400 rows a lies beyond 90 degrees and would fit a longitude, such as rows 0, 1"
    ):
        perturb(table, EARTH, columns=["a", "b"], on_error=on_error)
    with pytest.raises(OutOfDomain, match="exchanged"):
        perturb(table, EARTH, columns=["a", "b"])
    assert perturb(table, EARTH, columns=["a", "b"], on_error=on_error, force=True).num_rows in (0, ROWS)


def test_a_mistake_in_the_last_batch_leaves_no_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats.parquet, "BATCH_ROWS", 1000)
    lat, lon = city(rows=130_000)
    pq.write_table(pa.table({"lat": put(lat, 129_999, 0.0), "lon": put(lon, 129_999, 0.0)}), tmp_path / "in.parquet")
    with pytest.raises(InvalidInput, match=r"row 129999 "):
        perturb(tmp_path / "in.parquet", EARTH, to=tmp_path / "out.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


def test_places_elsewhere_on_the_plane_are_found_too() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(0, 1e3, ROWS), rng.normal(5e5, 1e3, ROWS)
    perturb(pa.table({"x": x, "y": y}), PLANE)
    with pytest.raises(InvalidInput, match=r"1 of 400 rows lie far from all others, such as row 3 "):
        perturb(pa.table({"x": put(x, 3, 9e8), "y": y}), PLANE)
    perturb(pa.table({"x": put(x, 3, 9e8), "y": y}), PLANE, force=True)


@given(
    seed=st.integers(0, 10**6),
    spread=st.floats(0.001, 60.0),
    centre=st.tuples(st.floats(-80, 80), st.floats(-179, 179)),
    rows=st.integers(1, 300),
)
@settings(max_examples=60, deadline=None)
def test_places_that_lie_as_places_do_are_never_refused(
    seed: int, spread: float, centre: tuple[float, float], rows: int
) -> None:
    """One city or half the Earth, across the end of the longitudes too."""
    rng = np.random.default_rng(seed)
    lat = np.clip(centre[0] + spread * rng.uniform(-1, 1, rows), -90, 90)
    lon = (centre[1] + spread * rng.uniform(-1, 1, rows) + 180) % 360 - 180
    if np.abs(lat).max() <= np.pi / 2 and np.abs(lon).max() <= np.pi:
        lon += 10.0  # off the rectangle of radians, which is open sea
    perturb(pa.table({"lat": lat, "lon": lon}), EARTH)


def test_few_rows_may_lie_anywhere() -> None:
    perturb(pa.table({"lat": [41.0, 41.0, -33.9], "lon": [-8.6, -8.6, 151.2]}), EARTH)
    perturb(pa.table({"lat": [41.0] * 50, "lon": [-8.6] * 50}), EARTH)


@pytest.mark.parametrize("name", ["traj_porto_taxi", "traj_rome_taxi", "checkins_foursquare_nyc"])
def test_real_tables_are_not_refused(name: str) -> None:
    folder = data_folder()
    found = (
        [] if folder is None else [*(folder / name).glob("points.parquet"), *(folder / name).glob("checkins.parquet")]
    )
    if not found:
        pytest.skip("the shared data are not here")
    table = pq.read_table(found[0], columns=["lat", "lon"]).slice(0, 20_000)
    assert perturb(table, EARTH).num_rows == table.num_rows
