"""The mark on tables whose reports were drawn from a seed: in the metadata, or in a column where there are none."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

SIMULATED_KEY = "metricdp.simulated"
SIMULATED_COLUMN = "metricdp_simulated"  # in CSV files and Polars frames, which have no metadata
SIMULATED = "drawn from a seeded generator: for tests and simulations, not for release"


def marked(schema: pa.Schema) -> pa.Schema:
    """Return the schema with the mark."""
    return schema.with_metadata({**(schema.metadata or {}), SIMULATED_KEY.encode(): SIMULATED.encode()})


def marked_table(table: Any) -> Any:
    """Return a record batch or table with the mark."""
    return table.replace_schema_metadata(marked(table.schema).metadata)


def is_marked(schema: pa.Schema) -> bool:
    """Tell whether a schema carries the mark."""
    return SIMULATED_KEY.encode() in (schema.metadata or {})
