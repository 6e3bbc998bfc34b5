"""Arrow data sets and readers of record batches: streamed to one Parquet file in constant memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from metricdp.errors import InvalidInput
from metricdp.files import check_target, holding, replacing
from metricdp.mechanisms import Mechanism
from metricdp.randomness import Randomness
from metricdp.tables.formats import PARQUET_BATCH_ROWS, SUFFIXES
from metricdp.tables.kernel import replace, report_schema
from metricdp.tables.marks import marked
from metricdp.tables.pipeline import protected_in_order
from metricdp.tables.task import task_for


def perturb_stream(
    source: Any, mechanism: Mechanism, target: str | os.PathLike[str] | None, rng: Randomness, **options: Any
) -> Any:
    """Write the protected batches to a Parquet file, whole or not at all; return a data set over it, or a reader."""
    from pyarrow import dataset, parquet

    reader = isinstance(source, pa.RecordBatchReader)
    if not reader and not isinstance(source, dataset.Dataset):
        raise InvalidInput(f"`frame` must be a table, a data set or a reader of batches, got {type(source).__name__}.")
    if target is None:
        raise InvalidInput(
            f"a {type(source).__name__} may be longer than memory: name a Parquet file for the reports, "
            'target="protected.parquet".'
        )
    if SUFFIXES.get(Path(target).suffix.lower()) != "Parquet":
        raise InvalidInput(f"`target` must be a Parquet file, named .parquet, got {str(target)!r}.")
    check_target(target)
    for file in getattr(source, "files", ()):
        check_target(target, source=file)
    task = task_for(source.schema.names, mechanism, **options)
    schema = report_schema(source.schema, task)
    if isinstance(rng, np.random.Generator):
        schema = marked(schema)
    kept = [name for name in schema.names if name not in task.reports]
    rows = 0
    with holding(target), replacing(target) as partial:
        with parquet.ParquetWriter(partial, schema, use_dictionary=kept or False) as writer:
            for batch, done in protected_in_order(_batches(source), task, rng):
                writer.write_batch(replace(batch, task, done).cast(schema))
                rows += batch.num_rows
        if rows == 0:
            raise InvalidInput("the data set has no rows: there is nothing to protect.")
    if reader:
        return dataset.dataset(str(target)).scanner().to_reader()
    return dataset.dataset(str(target))


def _batches(source: Any) -> Iterator[pa.RecordBatch]:
    if isinstance(source, pa.RecordBatchReader):
        batches: Any = source
    else:  # a few batches ahead, so that memory does not grow with the data
        batches = source.to_batches(batch_size=PARQUET_BATCH_ROWS, batch_readahead=2, fragment_readahead=1)
    for batch in batches:
        if batch.num_rows:
            yield batch
