"""Ray: data sets in its object store, block by block, and jobs over files as Ray tasks.

A block is protected by a task of its own, named by its number in the data set. Ray runs a task again when its worker
dies or its result is lost; the stream is bound to the block's number and content, so the block's reports are the same.
(`map_batches` gives no name to a batch that would stay the same when it is run again.)
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import pyarrow as pa

from metricdp.errors import InvalidInput, import_extra
from metricdp.plugins import inherited_plugins, load_inherited
from metricdp.tables.batch import KEY_BYTES, Draws
from metricdp.tables.charging import charge_ready, grant, is_released_elsewhere
from metricdp.tables.disclosure.checks import inspect_names
from metricdp.tables.engines.base import Engine, refuse_for_workers, refuse_target
from metricdp.tables.jobs.errors import PackedError, is_ours, pack_error, reword_error, unpack_error
from metricdp.tables.jobs.folder import run_partition
from metricdp.tables.jobs.plan import JobPlan, TaskSpec, spec_of
from metricdp.tables.people import PeopleCounter, Spending, spending_by
from metricdp.tables.pipeline import RowProgress, protect_table
from metricdp.tables.plan import PersonLimits, TableRequest, TableTask

RETRIES = 3


def start_ray() -> Any:
    """Return Ray, started on this machine unless an address or a running one says otherwise."""
    ray = import_extra("ray", "ray")
    if not ray.is_initialized():
        if "RAY_ADDRESS" in os.environ:
            ray.init(log_to_driver=False, logging_level="ERROR")
        else:
            ray.init(include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    return ray


def perturb_dataset(dataset: Any, request: TableRequest, /) -> Any:
    """Return a materialised Ray data set with the secrets replaced by reports; blocks and rows keep their order."""
    refuse_for_workers("ray", request)
    refuse_target(dataset, request.to)
    ray = start_ray()
    names = dataset.schema().names
    made_once = cache(partial(_blocks, dataset))
    task = request.task(names, lambda: _kinds(ray, dataset, made_once))
    inspect_names(names, task, "Ray")
    blocks = made_once()
    persons = request.persons
    spending = None if persons is None or not persons.charging else _grant_blocks(ray, blocks, persons, task, names)
    made = _protect_blocks(ray, blocks, spec_of(task))
    charge_ready(spending)
    return ray.data.from_arrow_refs(made)


def _kinds(ray: Any, dataset: Any, blocks: Callable[[], list[Any]]) -> pa.Schema:
    """Return names and types of a data set; blocks of pandas have types of their own."""
    schema = dataset.schema().base_schema
    return schema if isinstance(schema, pa.Schema) else ray.get(ray.remote(_schema).remote(blocks()[0]))


def _schema(table: Any) -> Any:
    return table.schema


def _blocks(dataset: Any) -> list[Any]:
    blocks: list[Any] = dataset.to_arrow_refs()
    if not blocks:
        raise InvalidInput("the data set is empty: there is no row to protect.")
    return blocks


def _protect_blocks(ray: Any, blocks: Sequence[Any], spec: TaskSpec) -> list[Any]:
    """Have every block protected by a task of its own, and return what they made when all are done."""
    key = secrets.token_bytes(KEY_BYTES)
    shared = ray.put(spec.file)
    rest = (replace(spec, file=b""), spec.applied, inherited_plugins())
    work = ray.remote(num_returns=2, max_retries=RETRIES, retry_exceptions=False)(_protect_block)
    made = [work.remote(block, number, shared, rest, key) for number, block in enumerate(blocks)]
    _wait_for_blocks(ray, made)
    return [block for block, _ in made]


def _wait_for_blocks(ray: Any, made: Sequence[tuple[Any, Any]]) -> None:
    """Wait for all blocks; what went wrong with one is raised, and the others are called off."""
    for number, (_, answer) in enumerate(made):
        failed = _answer(ray, answer, ray.exceptions.RayError)
        if failed is not None:
            for _, other in made[number + 1 :]:
                ray.cancel(other)
            error = unpack_error(failed)
            raise reword_error(error, f"block {number} of the data set: {error}")


def _grant_blocks(ray: Any, blocks: list[Any], persons: PersonLimits, task: TableTask, names: list[str]) -> Spending:
    """Count the rows of everybody by block, and check that the ledger grants them all, before anything is drawn."""
    counter = PeopleCounter(persons.id, names)
    work = ray.remote(num_returns=2, max_retries=RETRIES, retry_exceptions=False)(_count_people)
    made = [work.remote(block, persons.id, inherited_plugins()) for block in blocks]
    _wait_for_blocks(ray, made)
    for counts, _ in made:
        found = ray.get(counts)
        counter.add(found, found.column("count_all"))
    spending = spending_by(counter, persons, task)
    # Blocks of an earlier run are gone with the program that drew them.
    is_released_elsewhere(spending, "a data set of Ray", there=False)
    return grant(spending)


def _count_people(table: Any, column: str, names: Sequence[str]) -> tuple[Any, PackedError | None]:
    """Count whose the rows of one block are, in a worker."""
    try:
        load_inherited(names)
        if not table.schema.names:  # a block without rows
            table = pa.table({column: pa.nulls(0, pa.string())})
        return table.select([column]).group_by(column).aggregate([([], "count_all")]), None
    except Exception as error:
        return None, pack_error(error)


def _protect_block(table: Any, number: int, file: bytes, rest: Any, key: bytes) -> tuple[Any, PackedError | None]:
    """Protect one block in a worker; an error comes back as plain values, so that none is logged with its data."""
    spec, applied, names = rest
    try:
        load_inherited(names)
        if not table.schema.names:  # what a filter leaves of a block that it took all rows of
            return table, None
        # A block may have other types than the first.
        task = replace(spec, file=file).task(table.schema.names, lambda: table.schema)
        return protect_table(table, task, Draws(key, f"block {number}", 0, applied)), None
    except Exception as error:
        return None, pack_error(error)


def _answer(ray: Any, ticket: Any, lost: type[Exception]) -> Any:
    """Return what a task gave back; of one that Ray lost only the kind of its loss, since its words may show data."""
    try:
        return ray.get(ticket)
    except lost as error:
        return pack_error(error)


def run(job: JobPlan, pending: Sequence[int], on_rows: RowProgress, /, *, workers: int | None = None) -> None:
    """Protect the pending partitions of a job over files as Ray tasks; the job's folder must be seen by all workers."""
    ray = start_ray()
    work = ray.remote(max_retries=RETRIES, retry_exceptions=False)(_protect_partition)
    tries = dict.fromkeys(pending, 1)
    names = inherited_plugins()
    left = {work.remote(job.folder, number, names): number for number in pending}
    while left:
        ready, _ = ray.wait(list(left), timeout=1.0)
        for ticket in ready:
            number = left.pop(ticket)
            answer = _answer(ray, ticket, ray.exceptions.RayError)
            if isinstance(answer, int):
                on_rows(answer)
            elif not is_ours(answer) and tries[number] < RETRIES:
                tries[number] += 1
                left[work.remote(job.folder, number, names)] = number
            else:
                for other in left:
                    ray.cancel(other)
                raise unpack_error(answer)


def _protect_partition(folder: str, number: int, names: Sequence[str]) -> int | PackedError:
    try:
        load_inherited(names)
        return run_partition(folder, number).rows
    except Exception as error:
        return pack_error(error)


ENGINE = Engine(
    "ray",
    "tasks on Ray, whose workers must see the files; Ray data sets",
    run,
    packages=("ray",),
    perturb=perturb_dataset,
    extra="ray",
)
