"""Columns that give the secret away are found where they are planted, and harmless ones are left alone."""

from __future__ import annotations

import base64
import gzip
import json
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import metricdp as mdp
from metricdp.errors import InvalidInput, NotPrivate
from metricdp.tables import Disclosure, findings_in, perturb, task_for
from metricdp.tables.disclosure.findings import SecretSample, find_disclosures, kind_by_name, sample_rows

EARTH = mdp.laplace(mdp.Haversine(), 10.0)
ROWS = 3000


def trips(seed: int = 0, rows: int = ROWS) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Walks of forty points each through a city: latitudes, longitudes, and the number of the walk."""
    rng = np.random.default_rng(seed)
    walk = np.repeat(np.arange(rows // 40 + 1), 40)[:rows]
    start = rng.normal([41.15, -8.62], [0.02, 0.03], (walk.max() + 1, 2))
    steps = rng.normal(0, 0.0008, (rows, 2))
    place = start[walk]
    for number in np.unique(walk):
        place[walk == number] += np.cumsum(steps[walk == number], axis=0)
    return place[:, 0], place[:, 1], walk


def found(extra: dict[str, object], seed: int = 0, **options: object) -> dict[str, tuple[str, str]]:
    lat, lon, _ = trips(seed)
    table = pa.table({"lat": lat, "lon": lon, **extra})
    task = task_for(table.schema.names, EARTH, disclosure=options.pop("care", Disclosure()))
    return {one.column: (one.kind, one.evidence) for one in findings_in(table, task, **options)}


def geohash(lat: float, lon: float, length: int) -> str:
    """The textbook way: halve, longitude first, five bits a letter."""
    letters, bits, bounds, even = "", [], [[-180.0, 180.0], [-90.0, 90.0]], True
    while len(letters) < length:
        value, bound = (lon, bounds[0]) if even else (lat, bounds[1])
        middle = sum(bound) / 2
        bits.append(value >= middle)
        bound[0 if value >= middle else 1] = middle
        even = not even
        if len(bits) == 5:
            letters += "0123456789bcdefghjkmnpqrstuvwxyz"[int("".join(str(int(bit)) for bit in bits), 2)]
            bits = []
    return letters


Plant = Callable[[np.ndarray, np.ndarray], object]


def each(make: Callable[[float, float], object]) -> Plant:
    return lambda lat, lon: pa.array([make(a, b) for a, b in zip(lat, lon, strict=True)])


def rowwise(make: Callable[[int], object]) -> Plant:
    return lambda lat, lon: pa.array([make(number) for number in range(len(lat))])


def polyline(points: list[tuple[float, float]], digits: int = 5) -> str:
    """The textbook way: differences, shifted, the sign in the last bit, five bits a letter, the lowest first."""
    letters, before = "", (0, 0)
    for point in points:
        whole = tuple(round(value * 10**digits) for value in point)
        for now, last in zip(whole, before, strict=True):
            value = (now - last) << 1
            value = ~value if now - last < 0 else value
            while value >= 32:
                letters += chr((32 | (value & 31)) + 63)
                value >>= 5
            letters += chr(value + 63)
        before = whole
    return letters


def base64_of(make: Callable[[float, float], bytes | str]) -> Plant:
    def encode(lat: float, lon: float) -> str:
        made = make(lat, lon)
        return base64.b64encode(made.encode() if isinstance(made, str) else made).decode()

    return each(encode)


FULL_HOUR = 1_600_000_000 // 3600 * 3600
PLANTED: dict[str, tuple[Plant, set[str]]] = {
    "the same numbers": (lambda lat, lon: lat, {"copy"}),
    "rounded to three digits": (lambda lat, lon: np.round(lon, 3), {"copy"}),
    "whole numbers of 1e-7 degrees": (lambda lat, lon: np.rint(lat * 1e7).astype(np.int64), {"copy"}),
    "radians": (lambda lat, lon: np.radians(lon), {"copy"}),
    "with another sign": (lambda lat, lon: -lon, {"copy"}),
    "Mercator's north": (lambda lat, lon: 6378137 * np.log(np.tan(np.pi / 4 + np.radians(lat) / 2)), {"copy"}),
    "turned axes": (lambda lat, lon: lat + 2 * lon, {"copy"}),
    "as text": (each(lambda a, b: f"{a:.6f}"), {"copy"}),
    "nearly the same": (lambda lat, lon: lat + np.random.default_rng(3).normal(0, 0.004, len(lat)), {"narrows"}),
    "the square of it": (lambda lat, lon: (lat - 41.15) ** 2, {"follows", "narrows"}),
    "how far from the centre": (lambda lat, lon: np.hypot(lat - 41.15, lon + 8.62), {"follows", "narrows"}),
    "a cell": (lambda lat, lon: np.floor(lat * 200) * 1000 + np.floor(lon * 200), {"stands", "narrows", "copy"}),
    "a cell with a made-up name": (
        each(lambda a, b: f"z{(int(a * 300) * 7919 + int(b * 300) * 104729) % 999983}"),
        {"stands", "narrows"},
    ),
    "a district of twelve": (
        each(lambda a, b: f"d{int(a * 30) % 4}{int(b * 30) % 3}"),
        {"stands", "narrows", "follows"},
    ),
    "a geohash": (each(lambda a, b: geohash(a, b, 8)), {"cell"}),
    "a point as text": (each(lambda a, b: f"POINT ({b} {a})"), {"geometry"}),
    "a point as bytes": (each(lambda a, b: struct.pack("<BIdd", 1, 1, b, a)), {"geometry"}),
    "bytes as digits": (each(lambda a, b: struct.pack("<BIdd", 1, 1, b, a).hex()), {"geometry"}),
    "two numbers in a text": (each(lambda a, b: f"{a:.5f}, {b:.5f}"), {"coordinates"}),
    "hemispheres as letters": (each(lambda a, b: f"N{a:.3f}W{-b:.3f}"), {"coordinates"}),
    "letters behind": (each(lambda a, b: f"{a:.3f} N, {-b:.3f} W"), {"coordinates"}),
    "minutes": (
        each(lambda a, b: f"N{int(a)}d{a % 1 * 60:.2f}mW{int(-b)}d{-b % 1 * 60:.2f}m"),
        {"coordinates"},
    ),
    "a map's address": (each(lambda a, b: f"https://maps.example/@{a:.5f},{b:.5f},15z"), {"coordinates"}),
    "GeoJSON": (each(lambda a, b: f'{{"type": "Point", "coordinates": [{b}, {a}]}}'), {"geometry"}),
    "a line": (each(lambda a, b: polyline([(a, b), (a + 0.003, b - 0.002), (a + 0.004, b)])), {"geometry"}),
    "a line elsewhere": (each(lambda a, b: polyline([(a + 9, b + 9), (a + 9.01, b + 9)])), {"geometry"}),
    "a line of one point": (each(lambda a, b: polyline([(a, b)])), {"geometry"}),
    "base 64 of a line": (base64_of(lambda a, b: polyline([(a, b), (a + 0.003, b)])), {"geometry"}),
    "bytes as a database writes them": (
        each(lambda a, b: "\\x" + struct.pack("<BIdd", 1, 1, b, a).hex()),
        {"geometry"},
    ),
    "digits of doubles": (each(lambda a, b: struct.pack("<dd", a, b).hex()), {"coordinates"}),
    "digits of a text": (each(lambda a, b: f"0x{f'{a:.5f} {b:.5f}'.encode().hex()}"), {"coordinates"}),
    "a geohash after a word": (each(lambda a, b: f"gh:{geohash(a, b, 7)}"), {"cell"}),
    "whole numbers of 1e-7 degrees in a text": (each(lambda a, b: f"{a * 1e7:.0f};{b * 1e7:.0f}"), {"coordinates"}),
    "base 64 of whole numbers": (
        base64_of(lambda a, b: struct.pack("<ii", int(a * 1e7), int(b * 1e7))),
        {"coordinates"},
    ),
    "base 64 of WKB": (base64_of(lambda a, b: struct.pack("<BIdd", 1, 1, b, a)), {"geometry"}),
    "base 64 of doubles": (base64_of(lambda a, b: struct.pack(">dd", b, a)), {"coordinates"}),
    "base 64 of floats": (base64_of(lambda a, b: struct.pack("<ff", a, b)), {"coordinates"}),
    "base 64 of JSON": (base64_of(lambda a, b: json.dumps({"lat": a, "lng": b})), {"coordinates"}),
    "base 64 of GeoJSON": (base64_of(lambda a, b: json.dumps({"type": "Point", "coordinates": [b, a]})), {"geometry"}),
    "base 64 of two numbers": (base64_of(lambda a, b: f"{a:.5f},{b:.5f}"), {"coordinates"}),
    "base 64 for addresses of the web": (
        each(lambda a, b: base64.urlsafe_b64encode(f"{a:.6f}~{b:.6f}?".encode()).decode().rstrip("=")),
        {"coordinates"},
    ),
    "JSON with names of its own": (each(lambda a, b: json.dumps({"p": [b, a], "n": 7})), {"coordinates"}),
    "JSON as bytes": (each(lambda a, b: json.dumps({"p": {"la": a, "lo": b}}).encode()), {"coordinates"}),
    "two doubles as bytes": (each(lambda a, b: struct.pack("<dd", a, b)), {"coordinates"}),
    "three words": (lambda lat, lon: pa.array(["filled.count.soap", "index.home.raft"] * (len(lat) // 2)), {"cell"}),
    "a plus code": (lambda lat, lon: pa.array(["8CGRC9XX+2V", "8CGRC9XX+3W"] * (len(lat) // 2)), {"cell"}),
    "an H3 cell": (lambda lat, lon: pa.array(["8a2a1072b59ffff", "8a2a1072b5affff"] * (len(lat) // 2)), {"cell"}),
    "an internet address": (rowwise(lambda i: f"93.184.{i % 200}.{i % 7}"), {"address"}),
    "a newer one": (rowwise(lambda i: f"2001:db8::{i:x}"), {"address"}),
    "a device": (rowwise(lambda i: f"00:1b:44:11:3a:{i % 99:02d}"), {"device"}),
    "mail": (rowwise(lambda i: f"user{i}@example.org"), {"person"}),
    "a ticket": (rowwise(lambda i: f"T-{i * 7919 % 100003}"), {"unique"}),
    "times": (lambda lat, lon: pa.array(1.6e9 + np.arange(len(lat)) * 7.0), {"seconds"}),
    "milliseconds": (lambda lat, lon: pa.array(1_600_000_000_123 + np.arange(len(lat)) * 7013), {"seconds"}),
    "a typed time": (
        lambda lat, lon: pa.array(1_600_000_000 + np.arange(len(lat)) * 61, pa.timestamp("s")),
        {"seconds"},
    ),
    "a time in words": (rowwise(lambda i: f"2020-05-01 {i // 60 % 24:02d}:{i % 60:02d}"), {"minutes"}),
}


@pytest.mark.parametrize("what", PLANTED)
def test_what_gives_a_place_away_is_found_by_its_values(what: str) -> None:
    lat, lon, _ = trips()
    plant, kinds = PLANTED[what]
    kind, evidence = found({"column_7": plant(lat, lon)}).get("column_7", ("nothing", ""))
    assert kind in kinds
    assert evidence == "value"


def test_what_lies_inside_structs_and_lists_is_found() -> None:
    lat, lon, _ = trips()
    inner = pa.StructArray.from_arrays([pa.array(lat), pa.array(np.ones(ROWS))], names=["a", "b"])
    pairs = pa.FixedSizeListArray.from_arrays(pa.array(np.column_stack([lat, lon]).ravel()), 2)
    loose = pa.array([[a, b] for a, b in zip(lat, lon, strict=True)])
    seen = found({"s": inner, "p": pairs, "q": loose, "d": pa.array(np.round(lat, 4)).dictionary_encode()})
    assert set(seen) == {"s.a", "p[0]", "p[1]", "q[0]", "q[1]", "d"}
    assert {kind for kind, _ in seen.values()} == {"copy"}


HARMLESS: dict[str, Plant] = {
    "one fare a trip": lambda lat, lon: np.repeat(np.random.default_rng(5).gamma(3, 3, 80), 40)[: len(lat)].round(2),
    "people on board": lambda lat, lon: np.repeat(np.random.default_rng(6).integers(1, 5, 80), 40)[: len(lat)],
    "a kind of call": lambda lat, lon: pa.array(np.random.default_rng(7).choice(["A", "B", "C"], len(lat))),
    "a temperature": lambda lat, lon: np.random.default_rng(8).normal(20, 5, len(lat)),
    "nothing": lambda lat, lon: pa.nulls(len(lat)),
    "one word": lambda lat, lon: pa.array(["ok"] * len(lat)),
    "yes and no": lambda lat, lon: pa.array(np.random.default_rng(9).random(len(lat)) < 0.1),
    "the number of the row": lambda lat, lon: np.arange(len(lat)),
    "a day": lambda lat, lon: pa.array(np.arange(len(lat)) // 100 + 18000, pa.int32()).cast(pa.date32()),
    "full hours": lambda lat, lon: pa.array(FULL_HOUR + np.arange(len(lat)) // 9 * 3600, pa.timestamp("s")),
    "words in capitals": lambda lat, lon: pa.array(
        np.random.default_rng(3).choice(["HELLO", "YES", "NO_SHOW"], len(lat))
    ),
    "words in small letters": lambda lat, lon: pa.array(
        np.random.default_rng(3).choice(["hello", "none", "ok~"], len(lat))
    ),
    "base 64 of noise": lambda lat, lon: pa.array(
        np.random.default_rng(2).choice([base64.b64encode(bytes([i] * 16)).decode() for i in range(40)], len(lat))
    ),
    "prices in a text": lambda lat, lon: pa.array(
        np.random.default_rng(2).choice(["9.50 of 12.00", "3.25 of 4.75"], len(lat))
    ),
    "names of parts": lambda lat, lon: pa.array([f"s12e{i % 9}" for i in range(len(lat))]),
    "remarks": lambda lat, lon: pa.array(np.random.default_rng(4).choice(["late", "fine", "no cash", "dog"], len(lat))),
}


@pytest.mark.parametrize("what", HARMLESS)
def test_what_gives_nothing_away_is_left_alone(what: str) -> None:
    assert found({"column_7": HARMLESS[what](*trips()[:2])}) == {}


@given(seed=st.integers(0, 10**6), scale=st.floats(0.01, 1e8), shift=st.floats(-1e3, 1e3), turn=st.floats(0, 6.3))
@settings(max_examples=12, deadline=None)
def test_any_linear_copy_is_found_and_any_noise_is_not(seed: int, scale: float, shift: float, turn: float) -> None:
    lat, lon, walk = trips(seed % 50)
    rng = np.random.default_rng(seed)
    copy = scale * (np.cos(turn) * (lat - 41) + np.sin(turn) * (lon + 8)) + shift
    noise = {
        "each": rng.normal(size=ROWS),
        "few": rng.integers(0, 6, ROWS),
        "walk": rng.normal(size=walk.max() + 1)[walk],
        "word": pa.array(rng.choice(list("abcdefgh"), ROWS)),
    }
    seen = found({"copy": copy, **noise}, seed % 50)
    assert seen == {"copy": ("copy", "value")}


def test_one_value_a_person_is_found_where_persons_are_named() -> None:
    _, _, walk = trips()
    numbers = np.random.default_rng(2).permutation(walk.max() + 1) + 500
    extra = {"person": walk, "customer": numbers[walk], "party": walk % 5}
    assert found(extra, person="person") == {"customer": ("same_person", "value")}
    assert found({"group": walk}) == {"group": ("links", "value")}  # nobody said whose rows they are


def test_words_that_go_with_the_secret_are_found() -> None:
    words = mdp.FiniteSpace([[0.0, 0], [1, 0], [0, 1]], mdp.Lp(2), coordinates=["cat", "dog", "bird"])
    secret = np.random.default_rng(1).choice(["cat", "dog", "bird"], 500)
    table = pa.table(
        {"w": secret, "code": [{"cat": 4, "dog": 9, "bird": 2}[word] for word in secret], "n": np.arange(500) % 7}
    )
    task = task_for(table.schema.names, mdp.exponential(words, 1.0), columns="w")
    assert [(one.column, one.kind) for one in findings_in(table, task)] == [("code", "stands")]


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        ("pickup_latitude ip ip_address geohash address home_addr postcode h3 what3words plus_code lat_e7", "place"),
        ("Längengrad Straße code_postal ciudad indirizzo 经度 широта pos.lat GPSLat lat2 zip-code x", "place"),
        ("tpep_pickup_datetime t ts created_at fecha Uhrzeit heure 時刻 event.time", "time"),
        ("user_id userName e-mail phone_number IMEI plate birthDate Kennzeichen deviceId taxi", "person"),
        ("id ID _id ids trip_id rideId order_ID Kennung identifiant", "person"),
        ("product_id store_id width valid idle vendor_id fluid category_id video", ""),
        ("speed heading altitude trip_distance gps_accuracy_x_speed", None),
        ("fare passenger_count tip_amount payment_type VendorID platform relation template lateness translation", ""),
        ("category occupied street_count tz_offset_min city_tax airport_fee salt result temperature duration", ""),
    ],
)
def test_names_are_read_word_by_word(names: str, kind: str | None) -> None:
    for name in names.split():
        assert kind is None or (kind_by_name(name) or "") == kind, name


def test_strict_refuses_and_kept_or_coarsened_columns_pass() -> None:
    lat, lon, _ = trips()
    table = pa.table({"lat": lat, "lon": lon, "copy": lat, "t": pa.array(np.arange(ROWS) * 61, pa.timestamp("s"))})

    def find_disclosures(**asked: object) -> tuple[object, ...]:
        return findings_in(table, task_for(table.schema.names, EARTH, disclosure=Disclosure(strict=True, **asked)))

    with pytest.raises(NotPrivate, match=r"copy.*--drop copy --coarsen t=1h") as error:
        find_disclosures()
    assert not any(f"{value:.4f}" in str(error.value) for value in lat[:100])
    with pytest.raises(NotPrivate, match="Check t"):
        find_disclosures(drop="copy")
    assert find_disclosures(drop="copy", coarsen={"t": "1h"}) == ()
    assert find_disclosures(keep=["copy", "t"]) == ()
    for asked, words in (
        ({"drop": "lat"}, "protected"),
        ({"drop": "coppy"}, "Did you mean 'copy'"),
        ({"keep": "u"}, "no column"),
    ):
        with pytest.raises(InvalidInput, match=words):
            find_disclosures(**asked)


def test_few_rows_are_looked_at_all_and_many_in_blocks_of_neighbours() -> None:
    assert np.array_equal(sample_rows(7), np.arange(7))
    rows = sample_rows(10**7)
    assert (len(rows), rows.min(), rows.max()) == (20_000, 0, 10**7 - 1)
    assert np.mean(np.diff(rows) == 1) > 0.99


def test_a_leak_is_found_wherever_in_the_table_it_begins_and_in_whatever_order_the_rows_are(tmp_path: Path) -> None:
    rows, rng = 116_000, np.random.default_rng(0)
    lat, lon = rng.normal(41.15, 0.02, rows), rng.normal(-8.62, 0.03, rows)
    late = np.arange(rows) >= 104_000
    copies = pa.array(lat, mask=~late)
    lines = pa.array([polyline([(a, b)]) if there else None for a, b, there in zip(lat, lon, late, strict=True)])
    table = pa.table({"lat": lat, "lon": lon, "c": copies, "e": lines})
    for order in (np.arange(rows), np.arange(rows)[::-1], rng.permutation(rows)):
        given = table.take(pa.array(order))
        task = task_for(given.schema.names, EARTH)
        assert {one.column: one.kind for one in findings_in(given, task)} == {"c": "copy", "e": "geometry"}
    with pytest.raises(NotPrivate, match="Check c"):
        mdp.perturb(table, EARTH, strict=True)
    pq.write_table(table, tmp_path / "in.parquet")
    with pytest.raises(NotPrivate, match="Check c"):
        perturb(tmp_path / "in.parquet", EARTH, to=tmp_path / "out.parquet", strict=True)
    assert not (tmp_path / "out.parquet").exists()
    made = perturb(tmp_path / "in.parquet", EARTH, to=tmp_path / "out.parquet")
    assert {one.column for one in made.findings} == {"c", "e"}
    assert "20,000 rows spread over all 116,000" in "".join(made.lines())


def test_a_column_that_the_rows_are_sorted_by_is_looked_at() -> None:
    lat, lon, _ = trips()
    order = np.argsort(lat)
    table = pa.table({"lat": lat[order], "lon": lon[order], "c": np.exp((lat[order] - 41) * 50)})
    task = task_for(table.schema.names, EARTH)
    assert [one.column for one in findings_in(table, task)] == ["c"]


def test_odd_columns_are_no_obstacle() -> None:
    odd = {
        "empty": pa.nulls(ROWS, pa.string()),
        "maps": pa.array([[("a", 1)]] * ROWS, pa.map_(pa.string(), pa.int64())),
        "none": pa.array([[]] * ROWS, pa.list_(pa.float64())),
        "tenths": pa.array([None, 1] * (ROWS // 2), pa.decimal128(5, 2)),
        "letters": pa.array([b"S\xe3o"] * ROWS).view(pa.string()),  # another encoding, as CSV files have
        "infinite": np.where(np.arange(ROWS) % 2, np.inf, np.nan),
        "spans": pa.array([5] * ROWS, pa.duration("s")),
        "bytes": pa.array([b"\x00\x01"] * ROWS),
    }
    assert found(odd) == {}


@pytest.mark.parametrize("kind", ["six digits", "gzip", "zlib", "short"])
def test_places_are_found_in_finer_lines_packed_texts_and_numbers_cut_short(kind: str) -> None:
    rng = np.random.default_rng(5)
    places = np.repeat(np.c_[np.round(41.1 + rng.random(300), 2), np.round(-8.6 + rng.random(300), 2)], 4, axis=0)
    texts = []
    for north, east in places:
        plain = json.dumps({"a": north, "b": east}).encode()
        if kind == "six digits":
            texts.append(polyline([(10 * north, 10 * east)]))
        elif kind == "short":
            texts.append(f"{north}_{east}")
        else:
            packed = gzip.compress(plain, mtime=0) if kind == "gzip" else zlib.compress(plain)
            texts.append(base64.b64encode(packed).decode())
    (found,) = find_disclosures(pa.table({"note": texts}), SecretSample(("lat", "lon"), places, None, geographic=True))
    assert found.kind == ("geometry" if kind == "six digits" else "coordinates")
