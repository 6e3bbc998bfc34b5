"""Texts and bytes that say where or who: coordinates, geometries, cell names, addresses on a network, times.

What looks like a cell name by chance (a geohash is any short word without a, i, l, o) is decoded and compared with the
protected place; what cannot be anything else (a WKT geometry, an IP address) is found by its shape alone.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import itertools
import re
import struct
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metricdp.arrays import Floats

LOOKED_AT = 400  # texts of a column, spread over the sample
MOST = 0.8  # the share of them that must be of one kind
NUMBER = r"[+-]?\d{1,3}[.,]\d{2,}"
SHAPES: tuple[tuple[str, str], ...] = (
    ("geometry", r"(?i)(srid=\d+;)?\s*(multi)?(point|linestring|polygon)\s*z?m?\s*\(.*"),
    ("geometry", r"(?i)(srid=\d+;)?\s*geometrycollection\s*\(.*"),
    ("geometry", r"(?i)(\\x|0x)?0[01][0-9a-f]{8}([0-9a-f]{8}){4,}"),  # WKB as hexadecimal digits
    ("geometry", r'(?s)\s*\{.*"coordinates"\s*:.*'),
    ("coordinates", r'(?si)\s*\{.*"(lat|latitude|lng|lon|longitude)"\s*:.*'),
    ("coordinates", rf"(?i)(geo:|point\s*)?[\(\[]?\s*{NUMBER}\s*[,; ]\s*{NUMBER}\s*([,;]\s*[\d.]+\s*)?[\)\]]?"),
    ("coordinates", r"(?i).*[@=/]-?\d{1,3}\.\d{3,},-?\d{1,3}\.\d{3,}.*"),  # an address of a map on the web
    ("coordinates", r"(?i)\s*\d{1,3}\s*°.*[nsew]\b.*"),
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
POLYLINE = re.compile(r"[?-~]{4,}")  # the letters that Google's encoding of lines uses: no digits among them
PACKED = (b"\x1f\x8b", b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
UNPACKED_BYTES = 4096  # of a packed value are looked at
FARTHEST = 0.02  # degrees between a row's place and one that its text holds: two kilometres
BASE32 = "0123456789bcdefghjkmnpqrstuvwxyz"


def text_kind(array: pa.Array, places: Floats | None) -> str | None:
    """Return what the texts of a column are, by their shape; `places` are (latitude, longitude) of the same rows."""
    rows = _spread(array)
    texts = [text.strip() for text in array.take(pa.array(rows)).to_pylist()]
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
            if _near([decoded(text) for text in texts], near):
                return "cell"
    for shape, unpacked in ((HEX, _unpacked_hex), (BASE64, _unpacked)):
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
    rows = _spread(array)
    return _kind_of_bytes(array.take(pa.array(rows)).to_pylist(), None if places is None else places[rows])


def _kind_of_bytes(values: Sequence[bytes], places: Floats | None) -> str | None:
    if not values:
        return None
    values = [_inflated(value) for value in values]
    if _most(values, _is_wkb):
        return "geometry"
    if places is not None:
        for form in ("<2d", ">2d", "<2f", ">2f"):
            if _hold([_two_numbers(value, form) for value in values], places):
                return "coordinates"
    texts = [_read(value) for value in values]
    return _kind_of([text for text in texts if text is not None], places) if None not in texts else None


def _inflated(value: bytes) -> bytes:
    """Return how bytes that are packed with gzip or zlib begin; others as they are."""
    if value[:2] not in PACKED:
        return value
    try:
        return zlib.decompressobj(wbits=47).decompress(value, UNPACKED_BYTES)
    except zlib.error:
        return value


def _two_numbers(value: bytes, form: str) -> list[tuple[float, float]]:
    """Return the numbers that bytes begin with, as latitude and longitude in either order."""
    if len(value) < struct.calcsize(form):
        return []
    one, other = struct.unpack_from(form, value)
    return [(one, other), (other, one)] if abs(one) <= 360 and abs(other) <= 360 else []


def _read(value: bytes) -> str | None:
    """Return bytes as the text that they are; None where they are none."""
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return text if text.isprintable() or "\n" in text else None


def _unpacked_hex(text: str) -> bytes:
    """Return what is written in hexadecimal digits, also as databases mark them (`\\x`, `0x`)."""
    digits = HEX.fullmatch(text)
    return b"" if digits is None else bytes.fromhex(digits[1])


def _unpacked(text: str) -> bytes:
    """Return what is written in base 64, in either alphabet, with or without its padding."""
    plain = text.rstrip("=").translate(str.maketrans("-_", "+/"))
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        return b""


def _pairs(text: str) -> list[tuple[float, float]]:
    """Return numbers with decimals that follow each other in a text, as latitude and longitude in either order."""
    numbers = [float(number) for number in DECIMAL.findall(text[:2000])]
    return [pair for one, other in itertools.pairwise(numbers) for pair in ((one, other), (other, one))]


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


def is_dated(array: pa.Array) -> bool:
    """Tell whether a column of text holds dates or times."""
    texts = [text.strip() for text in array.take(pa.array(_spread(array))).to_pylist()]
    return bool(texts) and _most(texts, re.compile(DATED).fullmatch)


def _spread(array: pa.Array) -> Any:
    """Return the numbers of some rows that hold something, spread over all."""
    length = pc.binary_length(array).fill_null(0).to_numpy(zero_copy_only=False)
    filled = np.flatnonzero(length)
    return filled[:: max(1, len(filled) // LOOKED_AT)][:LOOKED_AT]


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


def _near(found: Sequence[tuple[float, float, float] | None], places: Floats) -> bool:
    """Tell whether most texts decode to a cell (latitude, longitude, size in degrees) that the row's place lies in."""
    hits = 0
    for cell, place in zip(found, places, strict=True):
        if cell is not None:
            hits += bool(np.all(np.abs(place - np.array(cell[:2])) <= 1.01 * cell[2]))
    return len(found) >= 3 and hits >= MOST * len(found)


def _geohash(text: str) -> tuple[float, float, float] | None:
    if not 3 <= len(text) <= 12 or any(letter not in BASE32 for letter in text.lower()):
        return None
    low, high = [-180.0, -90.0], [180.0, 90.0]
    axis = 0
    for letter in text.lower():
        for bit in (16, 8, 4, 2, 1):
            middle = (low[axis] + high[axis]) / 2
            (low if BASE32.index(letter) & bit else high)[axis] = middle
            axis = 1 - axis
    return (low[1] + high[1]) / 2, (low[0] + high[0]) / 2, max(high[0] - low[0], high[1] - low[1]) / 2


def _quadkey(text: str) -> tuple[float, float, float] | None:
    if not 8 <= len(text) <= 23 or any(letter not in "0123" for letter in text):
        return None
    column = int("".join(str(int(letter) & 1) for letter in text), 2)
    row = int("".join(str(int(letter) >> 1) for letter in text), 2)
    size = 2.0 ** -len(text)
    north = np.degrees(np.arctan(np.sinh(np.pi * (1 - 2 * (row + 0.5) * size))))
    return float(north), (column + 0.5) * size * 360.0 - 180.0, 180.0 * size
