"""Arrow data sets and readers of record batches: streamed to one Parquet file in constant memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from metricdp.errors import InvalidInput
from metricdp.files import check_target, holding, replacing
from metricdp.randomness import Randomness
from metricdp.tables.checks import log_findings
from metricdp.tables.engines.base import Engine, Target, refuse_persons
from metricdp.tables.formats import BATCH_ROWS, Storage
from metricdp.tables.people import Allotment, spending_in
from metricdp.tables.pump import pump
from metricdp.tables.sources import Outlet
from metricdp.tables.task import Request


def perturb_stream(source: Any, request: Request, /, *, target: Target, rng: Randomness) -> Any:
    """Write the protected batches to a Parquet file, whole or not at all; return a data set over it, or a reader."""
    from pyarrow import dataset

    once = isinstance(source, pa.RecordBatchReader)
    if not once and not isinstance(source, dataset.Dataset):
        raise InvalidInput(f"`frame` must be a table, a data set or a reader of batches, got {type(source).__name__}.")
    if target is None:
        raise InvalidInput(
            f"a {type(source).__name__} may be longer than memory: name a Parquet file for the reports, "
            'target="protected.parquet".'
        )
    if not str(target).endswith((".parquet", ".pq")):
        raise InvalidInput(f"`target` must be a Parquet file, named .parquet, got {str(target)!r}.")
    check_target(target)
    for file in getattr(source, "files", ()):
        check_target(target, source=file)
    task = request.task(source.schema.names)
    allotment = None
    if request.persons is not None and request.persons.needs_counts:
        if once:
            refuse_persons("a reader, which is read once", request)
        batches = source.to_batches(columns=[request.persons.column])
        allotment = Allotment(spending_in(batches, request.persons, source.schema.names, task), rng)
    with holding(target), replacing(target) as partial:
        stream = StreamReader(source)
        tally = pump(stream, Outlet(partial, stream.storage), task, rng, persons=allotment)
        if tally.rows == 0:
            raise InvalidInput("the data set has no rows: there is nothing to protect.")
    log_findings(tally.findings)
    if once:
        return dataset.dataset(str(target)).scanner().to_reader()
    return dataset.dataset(str(target))


class StreamReader:
    """Arrow's own data sets and readers as something the pump reads."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self.name = f"the {type(source).__name__}"
        self.schema: pa.Schema = source.schema
        self.storage = Storage("parquet", dictionaries=tuple(source.schema.names))

    def batches(self) -> Iterator[pa.RecordBatch]:
        source = self._source
        if not isinstance(source, pa.RecordBatchReader):  # a few batches ahead: memory does not grow with the data
            source = source.to_batches(batch_size=BATCH_ROWS, batch_readahead=2, fragment_readahead=1)
        for batch in source:
            if batch.num_rows:
                yield batch

    def share(self, rows: int) -> float:
        return 0.0  # nobody knows how long it is


ENGINE = Engine(
    "arrow", "Arrow data sets and readers, streamed to a Parquet file", packages=("pyarrow",), perturb=perturb_stream
)
