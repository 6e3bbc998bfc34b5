"""Tables in files as streams of record batches; each format is one file with one declaration."""

from lazy_loader import attach_stub

from metricdp.tables.formats import arrow, csv, duckdb, json, lines, matrices, parquet, sqlite
from metricdp.tables.formats.base import FORMATS

for _format in (  # shared endings belong to the first
    csv.FORMAT,
    parquet.PARQUET,
    arrow.FORMAT,
    json.JSONL,
    json.GEOJSON,
    parquet.GEOPARQUET,
    sqlite.FORMAT,
    duckdb.FORMAT,
    lines.FORMAT,
    matrices.NPY,
    matrices.NPZ,
    matrices.SAFETENSORS,
):
    FORMATS.declare(_format)

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
