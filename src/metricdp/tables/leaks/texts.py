"""Texts and bytes that say where or who: coordinates, geometries, cell names, addresses on a network, times.

What looks like a cell name by chance (a geohash is any short word without a, i, l, o) is decoded and compared with the
protected place; what cannot be anything else (a WKT geometry, an IP address) is found by its shape alone.
"""

from __future__ import annotations

import ipaddress
import re
import struct
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
    ("geometry", r"(?i)0[01][0-9a-f]{8}([0-9a-f]{8}){4,}"),  # WKB as hexadecimal digits
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
BASE32 = "0123456789bcdefghjkmnpqrstuvwxyz"


def text_kind(array: pa.Array, places: Floats | None) -> str | None:
    """Return what the texts of a column are, by their shape; `places` are (latitude, longitude) of the same rows."""
    rows = _spread(array)
    texts = [text.strip() for text in array.take(pa.array(rows)).to_pylist()]
    if not texts:
        return None
    for kind, shape in SHAPES:
        if _most(texts, re.compile(shape).fullmatch):
            return kind
    if _most(texts, _is_address):
        return "address"
    if places is not None:
        for decoded in (_geohash, _quadkey):
            if _near([decoded(text) for text in texts], places[rows]):
                return "cell"
    return None


def bytes_kind(array: pa.Array) -> str | None:
    """Return whether a column of bytes holds geometries (WKB)."""
    values = array.take(pa.array(_spread(array))).to_pylist()
    return "geometry" if values and _most(values, _is_wkb) else None


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
