"""Arrow data sets and readers of record batches: streamed to one Parquet file in constant memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from metricdp.errors import InvalidInput
from metricdp.files import check_target, lock_target, replace_file
from metricdp.tables.charging import charge_ready, grant, is_released_elsewhere
from metricdp.tables.disclosure.checks import log_findings
from metricdp.tables.engines.base import Engine, refuse_parts, refuse_persons
from metricdp.tables.formats import BATCH_ROWS, MEASURED_ROWS, Storage, batch_rows
from metricdp.tables.options import Target
from metricdp.tables.people import Allotment, PeopleCounter, spending_by, spending_in
from metricdp.tables.pipeline import run_pipeline
from metricdp.tables.plan import TableRequest
from metricdp.tables.sources import Outlet


def perturb_stream(source: Any, request: TableRequest, /) -> Any:
    """Write the protected batches to a Parquet file, whole or not at all; return a data set over it, or a reader."""
    from pyarrow import dataset

    once, target = isinstance(source, pa.RecordBatchReader), _target_path(source, request.to)
    names, persons = source.schema.names, request.persons
    task = request.task(names, lambda: source.schema)
    if once:
        _refuse_once(request)
    counter = spending = allotment = None
    if persons is not None and persons.needs_counts:
        counter = PeopleCounter(persons.id, names)
        if not once:
            spending = spending_in(source.to_batches(columns=[persons.id]), persons, names, task)
            if is_released_elsewhere(spending, target, there=Path(target).exists()):
                return dataset.dataset(target)
            spending = grant(spending)
            allotment = Allotment(spending, request.rng)
    with lock_target(target), replace_file(target) as partial:
        stream = StreamReader(source, counter if once else None)
        tally = run_pipeline(stream, Outlet(partial, stream.storage), task, request.rng, persons=allotment)
        if tally.rows == 0:
            raise InvalidInput("the data set has no rows: there is nothing to protect.")
        if once and counter is not None and persons is not None:
            spending = spending_by(counter, persons, task)
        charge_ready(spending)
    log_findings(tally.findings)
    made = dataset.dataset(target)
    return made.scanner().to_reader() if once else made


def _target_path(source: Any, target: Target) -> str:
    """Return the file that the reports go to; refuse what is no stream of batches, and a place that does not do."""
    from pyarrow import dataset

    if not isinstance(source, dataset.Dataset | pa.RecordBatchReader):
        raise InvalidInput(f"`source` must be a table, a data set or a reader of batches, got {type(source).__name__}.")
    if target is None:
        raise InvalidInput(
            f"a {type(source).__name__} may be longer than memory: name a Parquet file for the reports, "
            'to="protected.parquet".'
        )
    if not str(target).endswith((".parquet", ".pq")):
        raise InvalidInput(f"`to` must be a Parquet file, named .parquet, got {str(target)!r}.")
    check_target(target)
    for file in getattr(source, "files", ()):
        check_target(target, source=file)
    return str(target)


def _refuse_once(request: TableRequest) -> None:
    """Refuse what needs a second look at rows that can be read once."""
    what = "a reader, which is read once,"
    refuse_persons(what.rstrip(","), request)
    refuse_parts(what, request)
    if request.charging is not None and request.charging.job is not None:
        raise InvalidInput(f"{what} cannot be repeated: drop `name`.")


class StreamReader:
    """Arrow's own data sets and readers as something the run_pipeline reads."""

    def __init__(self, source: Any, counter: PeopleCounter | None = None) -> None:
        self._source, self._counter = source, counter
        self.name = f"the {type(source).__name__}"
        self.schema: pa.Schema = source.schema
        self.storage = Storage("parquet", dictionaries=tuple(source.schema.names))

    def batches(self) -> Iterator[pa.RecordBatch]:
        source = self._source
        if not isinstance(source, pa.RecordBatchReader):  # a few batches ahead: memory does not grow with the data
            source = source.to_batches(batch_size=_batch_rows(source), batch_readahead=2, fragment_readahead=1)
        for batch in source:
            if batch.num_rows:
                if self._counter is not None:
                    self._counter.add(batch)
                yield batch

    def share(self, rows: int) -> float:
        return 0.0  # its length is unknown


def _batch_rows(source: Any) -> int:
    """Return how many rows of a data set are read at once: fewer where texts or lists are long."""
    if all(kind.num_fields == 0 and _is_fixed(kind) for kind in source.schema.types):
        return BATCH_ROWS
    first = source.head(MEASURED_ROWS, batch_size=MEASURED_ROWS, batch_readahead=1, fragment_readahead=1)
    return batch_rows(first.nbytes / max(1, first.num_rows), BATCH_ROWS)


def _is_fixed(kind: pa.DataType) -> bool:
    return bool(pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind))


ENGINE = Engine(
    "arrow",
    "Arrow data sets and readers, streamed to a Parquet file",
    packages=("pyarrow",),
    perturb=perturb_stream,
)
