"""What Python and JavaScript must agree on, from one file: `constants.json`, which `js/build.js` reads too."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

_READ: dict[str, Any] = json.loads(files("metricdp").joinpath("constants.json").read_text(encoding="utf-8"))

# The mechanism file
FORMAT: str = _READ["format"]
VERSION: int = _READ["version"]
SIGNATURE_PURPOSE: str = _READ["signature_purpose"]
WEAK_KEYS: tuple[str, ...] = tuple(
    _READ["weak_keys"]
)  # points of small order, sign bit cleared: they fit any signature
STORAGES: tuple[str, ...] = tuple(_READ["storages"])
FEWEST_BITS: int = _READ["fewest_bits"]
MOST_BITS: int = _READ["most_bits"]

# Limits: what is larger is refused before anything is made of it
HEADER_LIMIT: int = _READ["header_limit"]
LICENCE_LIMIT: int = _READ["licence_limit"]
LARGEST_MATRIX: int = _READ["largest_matrix"]  # entries
LARGEST_COUNT: int = _READ["largest_count"]  # metrics, spaces
LARGEST_PARTS: int = _READ["largest_parts"]  # of a product
LARGEST_METRIC_TERMS: int = _READ["largest_metric_terms"]  # of weighted metrics within each other
DEEPEST_METRIC: int = _READ["deepest_metric"]  # a metric of metrics of metrics
LARGEST_DIMENSION: int = _READ["largest_dimension"]
LARGEST_NODES: int = _READ["largest_nodes"]
LARGEST_COORDINATE: float = _READ["largest_coordinate"]
LARGEST_RATE: float = _READ["largest_rate"]  # of noise, pitches and weights; the smallest is one over it
LARGEST_RATIO: float = _READ["largest_ratio"]  # log-ratio between anchors
SMALLEST_RATIO: float = _READ["smallest_ratio"]  # half of a smaller one is no ordinary double: the curve would jump

# Numbers
EARTH_RADIUS_KM: float = _READ["earth_radius_km"]
METRES: dict[str, str] = _READ["metres"]  # in one unit of length, as text: exact decimals
ROUNDING: float = _READ[
    "rounding"
]  # a value this close (relative to the largest coordinate) to a secret is that secret
LARGEST_CELL: float = float(_READ["largest_cell"])  # whole numbers up to twice this are exact, with room for the noise
LARGEST_DRAWING_ERROR: float = _READ["largest_drawing_error"]  # the share of draws that doubles may leave undecided
