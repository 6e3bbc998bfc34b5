"""What the values of a column look like: numbers that tell a place, texts that say where or who, and fine times.

What looks like a cell name by chance (a geohash is any short word without a, i, l, o) is decoded and compared with the
protected place; what cannot be anything else (a WKT geometry, an IP address) is found by its shape alone.

How much of the place a column tells is measured on a sample, as shares of variance, corrected for chance. How much of
the place the column explains: rows are grouped by the column, and the places of a group compared with all places. How
much of the column the place explains: rows are grouped by place, and so the other way round; a distance from the centre
tells no coordinate, and is still a function of the place. Both are

    1 - (squares within groups / (n - k)) / (squares in all / (n - 1))

for n rows in k groups, which is 0 on average where the column tells nothing. Many rows in a row with one value of the
column (a trip with its fare) count as one row, or everything that a trip has would seem to tell where it was.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import itertools
import re
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metricdp.arrays import Booleans, Floats, Integers
from metricdp.tables.values import doubles_of, holds_numbers, is_list, is_text, lengths_of, ticks_of, whole

PLACES = 4  # of a list: a point has two to four numbers
PARSED = 0.99  # the share of a text column that must be numbers for it to be one


@dataclass(frozen=True, repr=False)
class Leaf:
    """A plain column: `column` is the one of the table it lies in, `path` what it is called."""

    column: str
    path: str
    array: pa.Array

    def numbers(self) -> Floats | None:
        """Return the values as doubles, NaN where there is none; None where they are no numbers."""
        kind = self.array.type
        if holds_numbers(kind):
            return doubles_of(self.array)
        if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
            return doubles_of(ticks_of(self.array))
        return self._parse_numbers() if self.is_text else None

    @property
    def is_text(self) -> bool:
        return is_text(self.array.type)

    def _parse_numbers(self) -> Floats | None:
        text = pc.utf8_trim_whitespace(self.array)
        filled = pc.and_kleene(text.is_valid(), pc.greater(pc.binary_length(text), 0))
        proper = pc.match_substring_regex(text, r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$")
        many = pc.sum(filled).as_py() or 0
        if not many or (pc.sum(proper).as_py() or 0) < PARSED * many:
            return None
        return doubles_of(pc.if_else(proper.fill_null(False), text, pa.scalar(None, text.type)))


def leaves(table: pa.Table | pa.RecordBatch, *, without: frozenset[str]) -> Iterator[Leaf]:
    """Yield the plain columns of a table but some; paths in `without` may lie inside structs."""
    for name, column in zip(table.schema.names, table.columns, strict=True):
        if name not in without:
            held = whole(column)
            if isinstance(held, pa.ChunkedArray):  # too long for one piece
                held = held.chunk(0)
            yield from (leaf for leaf in _leaves_inside(name, name, held) if leaf.path not in without)


def _leaves_inside(column: str, path: str, array: Any) -> Iterator[Leaf]:
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        yield from _leaves_inside(column, path, array.storage)
    elif pa.types.is_dictionary(kind):
        yield from _leaves_inside(column, path, array.dictionary_decode())
    elif pa.types.is_struct(kind):
        for number in range(kind.num_fields):
            yield from _leaves_inside(column, f"{path}.{kind.field(number).name}", pc.struct_field(array, [number]))
    elif pa.types.is_map(kind):
        yield Leaf(column, path, array)  # its name is all that is looked at
    elif is_list(kind):
        for number, items in enumerate(_places(array)):
            yield from _leaves_inside(column, f"{path}[{number}]", items)
    else:
        leaf = Leaf(column, path, array)
        yield Leaf(column, path, _readable(array)) if leaf.is_text else leaf


def _readable(array: Any) -> Any:
    """Return texts that can be read; letters of another encoding are replaced."""
    try:
        return array.cast(pa.large_binary()).cast(pa.large_string())
    except pa.ArrowInvalid:
        raw = array.cast(pa.large_binary()).to_pylist()
        return pa.array([None if one is None else one.decode("utf-8", "replace") for one in raw], pa.large_string())


def _places(array: Any) -> Iterator[Any]:
    """Yield the first items of all lists, the second, and so on, null where a list is shorter."""
    lengths = np.maximum(lengths_of(array), 0)
    start = np.cumsum(lengths) - lengths
    values = array.flatten()
    for number in range(min(PLACES, int(lengths.max(initial=0)))):
        there: Booleans = lengths > number
        yield values.take(pa.array(np.where(there, start + number, 0), pa.int64(), mask=~there))


ROWS_INSPECTED = 400  # texts of a column, spread over the sample
MOST = 0.8  # the share of them that must be of one kind
NUMBER = r"[+-]?\d{1,3}[.,]\d{2,}"
HALF = r"\d{1,3}(\.\d+|[d°_ -]\d{1,2}(\.\d+)?['m′]?)(['m′_ -]?\d{1,2}(\.\d+)?[\"s″]?)?"  # degrees, minutes, seconds
SHAPES: tuple[tuple[str, str], ...] = (
    ("geometry", r"(?i)(srid=\d+;)?\s*(multi)?(point|linestring|polygon)\s*z?m?\s*\(.*"),
    ("geometry", r"(?i)(srid=\d+;)?\s*geometrycollection\s*\(.*"),
    ("geometry", r"(?i)(\\x|0x)?0[01][0-9a-f]{8}([0-9a-f]{8}){4,}"),  # WKB as hexadecimal digits
    ("geometry", r'(?s)\s*\{.*"coordinates"\s*:.*'),
    ("coordinates", r'(?si)\s*\{.*"(lat|latitude|lng|lon|longitude)"\s*:.*'),
    ("coordinates", rf"(?i)(geo:|point\s*)?[\(\[]?\s*{NUMBER}\s*[,; ]\s*{NUMBER}\s*([,;]\s*[\d.]+\s*)?[\)\]]?"),
    ("coordinates", r"(?i).*[@=/]-?\d{1,3}\.\d{3,},-?\d{1,3}\.\d{3,}.*"),  # an address of a map on the web
    ("coordinates", r"(?i)\s*\d{1,3}\s*°.*[nsew]\b.*"),
    ("coordinates", rf"(?i)[ns]\s?{HALF}[\s,;_-]*[ew]\s?{HALF}|{HALF}\s?[ns][\s,;_-]*{HALF}\s?[ew]"),
    ("cell", r"(?i)[23456789cfghjmpqrvwx]{2,8}0*\+[23456789cfghjmpqrvwx]{0,7}.*"),  # plus codes
    ("cell", r"(?i)8[0-9a-f]{1}[0-9a-f]{4,12}f{0,14}(?<=f)"),  # H3, below its finest level
    ("cell", r"(?i)8f[0-9a-f]{13}"),
    ("cell", r"(///)?[^\W\d_]{3,}\.[^\W\d_]{3,}\.[^\W\d_]{3,}"),  # what3words
    ("cell", r"(?i)\d{1,2}[c-x]\s?[a-hj-np-z]{2}\s?\d{2,5}\s?\d{2,5}"),  # MGRS
    ("device", r"(?i)([0-9a-f]{2}[:-]){5}[0-9a-f]{2}"),
    ("person", r"[^@\s]+@[^@\s]+\.[^@\s]+"),
    ("person", r"(\+|00)\d[\d ()/.-]{7,}\d"),
)
DATED = r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([T ]\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?.*)?|\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?.*"
HEX = re.compile(r"(?:\\x|0x)?((?:[0-9A-Fa-f]{2}){8,})")
BASE64 = re.compile(r"[A-Za-z0-9+/_-]{11,}={0,2}")
DECIMAL = re.compile(r"[+-]?\d{1,3}\.\d+")  # a number that was 8.60 is often written as 8.6
WHOLE = re.compile(r"(?<!\d)[+-]?\d{6,10}(?!\d)")  # degrees are often kept as whole numbers of their parts
PARTS = (1e5, 1e6, 1e7)  # of a degree
CODE = re.compile(r"[0-9A-Za-z]{5,}")  # a cell with a word before it, as in gh:dr5regw
POLYLINE = re.compile(r"[?-~]{4,}")  # the letters that Google's encoding of lines uses: no digits among them
COMPRESSED_HEADS = (b"\x1f\x8b", b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
FORMS = (
    *((order + form, 1.0) for order in "<>" for form in ("2d", "2f")),
    *((order + form, part) for order in "<>" for form in ("2i", "2q") for part in PARTS),
)
UNPACKED_BYTES = 4096  # of a packed value are looked at
FARTHEST = 0.02  # degrees between a row's place and one that its text holds: two kilometres
BASE32 = "0123456789bcdefghjkmnpqrstuvwxyz"


def text_kind(array: pa.Array, places: Floats | None) -> str | None:
    """Return what the texts of a column are, by their shape; `places` are (latitude, longitude) of the same rows."""
    rows = _some_rows(array)
    texts = _texts_at(array, rows)
    if not texts:
        return None
    near = None if places is None else places[rows]
    kind = _kind_of(texts, near)
    if kind is not None:
        return kind
    if _most(texts, _is_address):
        return "address"
    if near is not None:
        for decoded in (_geohash, _quadkey):
            if _near([[decoded(text), *map(decoded, CODE.findall(text[:2000]))] for text in texts], near):
                return "cell"
    for shape, unpacked in ((HEX, _unpack_hex), (BASE64, _unpack_base64)):
        if _most(texts, shape.fullmatch):
            packed = _kind_of_bytes([unpacked(text) for text in texts], near)
            if packed is not None:
                return packed
    return None


def _kind_of(texts: Sequence[str], places: Floats | None) -> str | None:
    """Return what texts are that cannot be anything else, or that hold the place of their row."""
    for kind, shape in SHAPES:
        if _most(texts, re.compile(shape).fullmatch):
            return kind
    if _most(texts, POLYLINE.fullmatch):
        lines = [_polyline(text, 5) for text in texts]
        finer = [_polyline(text, 6) for text in texts]  # with six digits many words are lines: the place decides
        near = places is not None and (_hold(lines, places) or _hold(finer, places))
        if near or _most(lines, _is_line):
            return "geometry"
    if places is not None and _hold([_pairs(text) for text in texts], places):
        return "coordinates"
    return None


def bytes_kind(array: pa.Array, places: Floats | None = None) -> str | None:
    """Return whether a column of bytes holds geometries (WKB), numbers or texts that say where a row lies."""
    rows = _some_rows(array)
    return _kind_of_bytes(array.take(pa.array(rows)).to_pylist(), None if places is None else places[rows])


def _kind_of_bytes(values: Sequence[bytes], places: Floats | None) -> str | None:
    if not values:
        return None
    values = [_inflate(value) for value in values]
    if _most(values, _is_wkb):
        return "geometry"
    if places is not None:
        for form, parts in FORMS:
            if _hold([_two_numbers(value, form, parts) for value in values], places):
                return "coordinates"
    texts = [_read(value) for value in values]
    return _kind_of([text for text in texts if text is not None], places) if None not in texts else None


def _inflate(value: bytes) -> bytes:
    """Return how bytes that are packed with gzip or zlib begin; others as they are."""
    if value[:2] not in COMPRESSED_HEADS:
        return value
    try:
        return zlib.decompressobj(wbits=47).decompress(value, UNPACKED_BYTES)
    except zlib.error:
        return value


def _two_numbers(value: bytes, form: str, parts: float) -> list[tuple[float, float]]:
    """Return the numbers that bytes begin with, in parts of a degree, as latitude and longitude in either order."""
    if len(value) < struct.calcsize(form):
        return []
    one, other = (number / parts for number in struct.unpack_from(form, value))
    return [(one, other), (other, one)] if abs(one) <= 360 and abs(other) <= 360 else []


def _read(value: bytes) -> str | None:
    """Return bytes as the text that they are; None where they are none."""
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return text if text.isprintable() or "\n" in text else None


def _unpack_hex(text: str) -> bytes:
    """Return what is written in hexadecimal digits, also as databases mark them (`\\x`, `0x`)."""
    digits = HEX.fullmatch(text)
    return b"" if digits is None else bytes.fromhex(digits[1])


def _unpack_base64(text: str) -> bytes:
    """Return what is written in base 64, in either alphabet, with or without its padding."""
    plain = text.rstrip("=").translate(str.maketrans("-_", "+/"))
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        return b""


def _pairs(text: str) -> list[tuple[float, float]]:
    """Return numbers that follow each other in a text, as latitude and longitude in either order.

    They are decimals, or whole numbers of a part of a degree.
    """
    whole = [float(number) for number in WHOLE.findall(text[:2000])]
    rows = [[float(number) for number in DECIMAL.findall(text[:2000])]]
    rows += [[number / part for number in whole] for part in PARTS]
    return [pair for row in rows for one, other in itertools.pairwise(row) for pair in ((one, other), (other, one))]


def _hold(found: Sequence[Sequence[tuple[float, ...]]], places: Floats) -> bool:
    """Tell whether most rows hold a point near the place of the row."""
    hits = sum(
        any(abs(north - place[0]) <= FARTHEST and abs(east - place[1]) <= FARTHEST for north, east in points)
        for points, place in zip(found, places, strict=True)
    )
    return len(found) >= 3 and hits >= MOST * len(found)


def _polyline(text: str, digits: int) -> list[tuple[float, float]]:
    """Return the points of a line that is encoded as Google does, with so many digits; none where it is no line."""
    numbers, value, shift = [], 0, 0
    for letter in text:
        bits = ord(letter) - 63
        value |= (bits & 31) << shift
        shift += 5
        if shift > 35:
            return []
        if bits < 32:
            numbers.append(~(value >> 1) if value & 1 else value >> 1)
            value = shift = 0
    if shift or len(numbers) % 2:
        return []
    norths, easts = (np.cumsum(numbers[side::2]) / 10.0**digits for side in (0, 1))
    return list(zip(norths.tolist(), easts.tolist(), strict=True))


def _is_line(points: Sequence[tuple[float, float]]) -> bool:
    """Tell whether points are places on the Earth that lie together, and not what any letters decode to."""
    if len(points) < 2 or max(map(abs, points[0])) < 1.0:
        return False
    on_earth = all(abs(north) <= 90 and abs(east) <= 180 for north, east in points)
    return on_earth and all(abs(a[0] - b[0]) <= 1.0 and abs(a[1] - b[1]) <= 1.0 for a, b in itertools.pairwise(points))


def names_place(names: Sequence[str], places: Floats) -> bool:
    """Tell whether a number in names of files is a coordinate of the rows' places, in degrees or parts of a degree."""
    rows = np.unique(np.linspace(0, len(names) - 1, ROWS_INSPECTED).astype(int))
    called, near = [names[int(row)] for row in rows], places[rows]
    if len(set(called)) < 3:
        return False
    for side in near.T:
        hits = 0
        for name, place in zip(called, side, strict=True):
            numbers = [float(number) for number in DECIMAL.findall(name)]
            for digits in re.findall(r"\d{4,10}", name):
                numbers += [sign * float(digits) / 10.0**part for part in range(2, 8) for sign in (1, -1)]
            hits += any(abs(number - place) <= FARTHEST for number in numbers)
        if hits >= MOST * len(called):
            return True
    return False


def is_dated(array: pa.Array) -> bool:
    """Tell whether a column of text holds dates or times."""
    texts = _texts_at(array, _some_rows(array))
    return bool(texts) and _most(texts, re.compile(DATED).fullmatch)


def _texts_at(array: pa.Array, rows: Any) -> list[str]:
    return [text.strip() for text in array.take(pa.array(rows)).to_pylist()]


def _some_rows(array: pa.Array) -> Any:
    """Return the numbers of some rows that hold something, spread over all."""
    length = pc.binary_length(array).fill_null(0).to_numpy(zero_copy_only=False)
    filled = np.flatnonzero(length)
    return filled[:: max(1, len(filled) // ROWS_INSPECTED)][:ROWS_INSPECTED]


def _most(values: Sequence[Any], test: Callable[[Any], Any]) -> bool:
    return sum(bool(test(value)) for value in values) >= MOST * len(values)


def _is_address(text: str) -> bool:
    if not 3 <= len(text) <= 60 or not ("." in text or ":" in text):
        return False
    try:
        ipaddress.ip_interface(text.partition("%")[0])
    except ValueError:
        return False
    return "." not in text or text.count(".") == 3


def _is_wkb(value: bytes) -> bool:
    if len(value) < 21 or value[0] not in (0, 1):
        return False
    kind = struct.unpack("<I" if value[0] else ">I", value[1:5])[0]
    return bool((kind & 0x0FFFFFFF) % 1000 in range(1, 8))


def _near(found: Sequence[Sequence[tuple[float, float, float] | None]], places: Floats) -> bool:
    """Tell whether most texts hold a cell (latitude, longitude, size in degrees) that the row's place lies in."""
    hits = 0
    for cells, place in zip(found, places, strict=True):
        hits += any(cell is not None and np.all(np.abs(place - np.array(cell[:2])) <= 1.01 * cell[2]) for cell in cells)
    return len(found) >= 3 and hits >= MOST * len(found)


def _geohash(text: str) -> tuple[float, float, float] | None:
    if not 3 <= len(text) <= 12 or any(letter not in BASE32 for letter in text.lower()):
        return None
    low, high = [-180.0, -90.0], [180.0, 90.0]
    bits = "".join(f"{BASE32.index(letter):05b}" for letter in text.lower())
    for number, bit in enumerate(bits):  # of the longitude and the latitude by turns
        axis = number % 2
        (low if bit == "1" else high)[axis] = (low[axis] + high[axis]) / 2
    return (low[1] + high[1]) / 2, (low[0] + high[0]) / 2, max(high[0] - low[0], high[1] - low[1]) / 2


def _quadkey(text: str) -> tuple[float, float, float] | None:
    if not 8 <= len(text) <= 23 or any(letter not in "0123" for letter in text):
        return None
    column = int("".join(str(int(letter) & 1) for letter in text), 2)
    row = int("".join(str(int(letter) >> 1) for letter in text), 2)
    size = 2.0 ** -len(text)
    north = np.degrees(np.arctan(np.sinh(np.pi * (1 - 2 * (row + 0.5) * size))))
    return float(north), (column + 0.5) * size * 360.0 - 180.0, 180.0 * size


Fineness = Literal["seconds", "minutes", "coarse"]
PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
EPOCH = (1.0e9, 2.2e9)  # seconds since 1970, from 2001 to 2039
CLOCK = r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}))?"


def fineness(array: pa.Array) -> Fineness | None:
    """Return how fine the times of a column are; None where it holds no times.

    Numbers are times where they lie where seconds (or milli-, micro-, nanoseconds) since 1970 lie.
    """
    kind = array.type
    if pa.types.is_date(kind):
        return "coarse"
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        return _fineness_of(doubles_of(ticks_of(array)) / PER_SECOND[kind.unit])
    leaf = Leaf("", "", array)
    if leaf.is_text and is_dated(array):
        return _clock(array)
    numbers = leaf.numbers()
    if numbers is None or pa.types.is_temporal(kind):
        return None
    seconds = since_epoch(numbers)
    return None if seconds is None else _fineness_of(seconds)


def since_epoch(numbers: Floats) -> Floats | None:
    """Return seconds where nearly all numbers lie where a count since 1970 lies; else None."""
    filled = numbers[np.isfinite(numbers)]
    if len(filled) < 3:
        return None
    for scale in PER_SECOND.values():
        if np.mean((filled >= EPOCH[0] * scale) & (filled <= EPOCH[1] * scale)) >= 0.99:
            return np.asarray(filled / scale)
    return None


def _fineness_of(seconds: Floats) -> Fineness | None:
    seconds = np.floor(seconds[np.isfinite(seconds)])
    if not len(seconds):
        return None
    if np.mean(seconds % 60 != 0) > 0.01:
        return "seconds"
    return "minutes" if np.mean(seconds % 3600 != 0) > 0.01 else "coarse"


def _clock(array: pa.Array) -> Fineness | None:
    parts = pc.extract_regex(array, CLOCK)
    if parts.null_count == len(parts):
        return "coarse"  # dates alone
    minute, second = (pc.struct_field(parts, name) for name in ("minute", "second"))
    second = pc.if_else(pc.greater(pc.binary_length(second), 0), second, "0")
    return _fineness_of(doubles_of(minute) * 60.0 + doubles_of(second))


MOST_FITTED = 20  # numbers of a secret, of which a column may be a sum
MOST_COMPARED = 32  # of the numbers of a vector: what tells one of them tells others
FEWEST = 40  # rows below which shares say nothing
PER_GROUP = 12  # rows in a group, where groups are cut
ENOUGH = 0.1  # of the rows must be in groups, or a few double rows would speak for all
CERTAIN = 3.0  # standard deviations that a share must be above its threshold


@dataclass(frozen=True, repr=False)
class VarianceShare:
    """A share of variance, how far randomness alone would move it, and on how many rows, among how many, it rests."""

    value: float
    error: float
    rows: int
    among: int

    def above(self, threshold: float) -> bool:
        """Tell whether the share is above a threshold beyond chance, on rows enough to say so."""
        certain = self.value - CERTAIN * self.error * (1.0 - self.value) >= threshold
        return certain and self.rows >= max(FEWEST, ENOUGH * self.among)


NOTHING = VarianceShare(0.0, 0.0, 0, 0)


@dataclass(frozen=True, repr=False, eq=False)
class SecretPlaces:
    """The protected numbers of a sample, one row each."""

    values: Floats

    @cached_property
    def known(self) -> Booleans:
        return np.asarray(np.isfinite(self.values).all(axis=1))

    def is_copy(self, numbers: Floats) -> bool:
        """Tell whether a column is one of the protected ones, or one of them scaled, rounded, shifted or projected."""
        rows = self.known & np.isfinite(numbers)
        found, values = numbers[rows], self.values[rows]
        if len(found) < 3 or np.ptp(found) == 0:
            return False
        for column in (one for one in values.T if np.ptp(one) > 0):
            if any(np.mean(np.isclose(found, same, rtol=1e-9, atol=1e-12)) > 0.5 for same in (column, -column)):
                return True
        if len(found) < FEWEST or values.shape[1] > MOST_FITTED:  # a sum of hundreds of numbers fits anything
            return False
        centred = values - values.mean(axis=0)
        design = np.column_stack([np.ones(len(found)), centred / np.maximum(np.ptp(centred, axis=0), 1e-300)])
        fit, *_ = np.linalg.lstsq(design, found, rcond=None)
        rest = float(np.square(found - design @ fit).sum())
        return rest <= 0.005 * float(np.square(found - found.mean()).sum())

    def explained_by_column(self, codes: Integers, *, continuous: bool) -> VarianceShare:
        """Return how much of the place a column tells whose values have these codes (-1 where there is none)."""
        rows = _run_rows(codes, np.flatnonzero(self.known & (codes >= 0)))
        groups = _cut(codes[rows], _pieces(len(rows))) if continuous else codes[rows]
        best = NOTHING
        for column in self.values[rows].T[:MOST_COMPARED]:
            best = max(best, explained_variance(groups, _ranks(column)), key=lambda share: share.value)
        return best

    def explained_by_place(self, codes: Integers, *, numbers: Floats | None) -> VarianceShare:
        """Return how much of a column the place tells; numbers by variance, others by how often two rows agree."""
        rows = _run_rows(codes, np.flatnonzero(self.known & (codes >= 0)))
        cells = self._cells(rows)
        if numbers is not None:
            return explained_variance(cells, _ranks(numbers[rows]))
        return agreement(cells, codes[rows])

    def _cells(self, rows: Integers) -> Integers:
        """Return the cell of every row: coordinates cut where they halve the rows, so that none is crowded."""
        values = self.values[rows]
        cells = np.zeros(len(rows), dtype=np.int64)
        pieces = max(1, int(_pieces(len(rows)) ** (1.0 / values.shape[1])))
        for column in values.T:
            cells = cells * pieces + _cut(column, pieces)
        return cells


def explained_variance(groups: Integers, values: Floats) -> VarianceShare:
    """Return the share of the variance of `values` that lies between groups of two rows or more."""
    among = len(groups)
    groups, values = _repeated_groups(groups, values)
    if not _are_enough(groups):
        return NOTHING
    means = np.bincount(groups, values) / np.bincount(groups)
    within = float(np.square(values - means[groups]).sum())
    overall = float(np.square(values - values.mean()).sum())
    return NOTHING if overall <= 0.0 else _share(within, overall, groups, among)


def agreement(groups: Integers, codes: Integers) -> VarianceShare:
    """Return by how much rows of one group agree in a column beyond rows of all (Goodman and Kruskal's tau)."""
    among = len(groups)
    groups, codes = _repeated_groups(groups, codes)
    if not _are_enough(groups):
        return NOTHING
    rows, codes = len(codes), np.unique(codes, return_inverse=True)[1]
    width = int(codes.max()) + 1
    both, pairs = np.unique(groups * width + codes, return_counts=True)
    within = rows - float((np.square(pairs) / np.bincount(groups)[both // width]).sum())
    overall = rows - float(np.square(np.bincount(codes)).sum()) / rows
    # where nearly all rows hold one value, two of them agree whatever it is
    return NOTHING if overall <= 0.02 * rows else _share(within, overall, groups, among)


def _are_enough(groups: Integers) -> bool:
    """Tell whether rows of several groups say anything: two groups, and two rows more than groups."""
    kinds = int(groups.max(initial=-1)) + 1
    return kinds >= 2 and len(groups) - kinds >= 2


def _share(within: float, overall: float, groups: Integers, among: int) -> VarianceShare:
    """Return 1 - (within / (n - k)) / (overall / (n - 1)) for n rows in k groups."""
    rows, kinds = len(groups), int(groups.max()) + 1
    share = 1.0 - (within / (rows - kinds)) / (overall / (rows - 1))
    return VarianceShare(share, float(np.sqrt(2.0 * kinds)) / (rows - kinds), rows, among)


def _repeated_groups(groups: Integers, values: Any) -> tuple[Integers, Any]:
    """Return the rows of groups that have at least two, groups numbered anew."""
    if not len(groups):
        return groups, values
    _, groups = np.unique(groups, return_inverse=True)
    keep = np.bincount(groups)[groups] > 1
    if not keep.any():
        return groups[keep], values[keep]
    return np.unique(groups[keep], return_inverse=True)[1], values[keep]


def _run_rows(codes: Integers, rows: Integers) -> Integers:
    """Return one row of every run of rows with one value, unless nearly every row is a run of its own."""
    if not len(rows):
        return rows
    own = codes[rows]
    first = np.flatnonzero(np.concatenate([[True], own[1:] != own[:-1]]))
    if len(first) > 0.5 * len(rows):
        return rows
    last = np.append(first[1:], len(rows))
    return np.asarray(rows[(first + last) // 2])


def _ranks(values: Floats) -> Floats:
    """Return ranks: a few values far away would be all of a variance."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - (counts - 1) / 2.0
    return np.asarray(middle[places], dtype=np.float64)


def _pieces(rows: int) -> int:
    return int(np.clip(rows // PER_GROUP, 1, 576))


def _cut(values: Any, pieces: int) -> Integers:
    """Return in which of so many pieces, equally full, every value lies."""
    ranks = _ranks(np.asarray(values, dtype=np.float64))
    return np.asarray(np.minimum((ranks - 1) * pieces // max(1, len(ranks)), pieces - 1), dtype=np.int64)
