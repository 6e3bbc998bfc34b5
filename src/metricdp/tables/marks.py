"""The mark on tables whose reports were drawn from a seed."""

from __future__ import annotations

import pyarrow as pa

SIMULATED_KEY = "metricdp.simulated"
SIMULATED = "drawn from a seeded generator: for tests and simulations, not for release"


def marked(schema: pa.Schema) -> pa.Schema:
    """Return the schema with the mark."""
    return schema.with_metadata({**(schema.metadata or {}), SIMULATED_KEY.encode(): SIMULATED.encode()})
