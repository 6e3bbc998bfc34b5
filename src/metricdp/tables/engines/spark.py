"""Spark: `mapInArrow` written once to Parquet and read back, and jobs over files as Spark tasks.

A Spark frame is a recipe: evaluated twice, a noisy one would release two draws. So the protected frame is written to a
folder first, and what comes back reads that folder. Spark runs a task again when it fails or is slow; the stream is
bound to the partition's number, the batch's number and its content, so both runs give the same reports.
"""

from __future__ import annotations

import os
import secrets
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

import pyarrow as pa

from metricdp.errors import InvalidInput, MetricdpError, OutputProblem, import_extra
from metricdp.plugins import inherited_plugins, load_inherited
from metricdp.tables.batch import KEY_BYTES, Draws, report_fields
from metricdp.tables.charging import charge_ready, grant, is_released_elsewhere
from metricdp.tables.disclosure.checks import inspect_names
from metricdp.tables.engines.base import Engine, refuse_for_workers
from metricdp.tables.jobs.errors import (
    PackedError,
    bare_error,
    error_in,
    is_ours,
    pack_error,
    reword_error,
    unpack_error,
)
from metricdp.tables.jobs.folder import records_of, run_partition
from metricdp.tables.jobs.plan import JobPlan, spec_of
from metricdp.tables.options import Target
from metricdp.tables.people import CHANGED, PeopleCounter, spending_by
from metricdp.tables.pipeline import RowProgress, protect_batches
from metricdp.tables.plan import PersonLimits, TableRequest, TableTask

POLL_SECONDS = 1.0


def perturb_frame(frame: Any, request: TableRequest, /) -> Any:
    """Write the protected frame to a folder of Parquet files and return the frame that reads it."""
    types = import_extra("pyspark.sql.pandas.types", "spark")
    refuse_for_workers("pyspark", request)
    task = request.task(frame.columns, lambda: _arrow_schema(frame, types))
    inspect_names(frame.columns, task, "Spark")
    place, persons = _target_path(frame, request.to), request.persons
    frame_charge = None if persons is None or not persons.charging else _FrameCharge(persons, task, frame)
    return _protect_frame(frame, task, types, place, frame_charge)


def _target_path(frame: Any, target: Target) -> str:
    """Return where the reports are written, once; refuse a frame that cannot be."""
    if target is None:
        raise InvalidInput(
            f"a Spark {type(frame).__name__} is a recipe: every time it is evaluated it would draw new noise, and two "
            'draws cost twice the budget. Name a folder, to="protected", where the reports are written once.'
        )
    if type(frame).__module__.startswith("pyspark.sql.connect"):
        raise InvalidInput(
            "frames of Spark Connect are not supported: write the frame to Parquet and protect the files, "
            "metricdp perturb 'folder/*.parquet' --engine spark."
        )
    return str(target)


def _protect_frame(frame: Any, task: TableTask, types: Any, target: str, frame_charge: _FrameCharge | None) -> Any:
    """Write the protected frame, unless it is there and was paid for, and return the frame that reads it."""
    spec = spec_of(task)
    session = frame.sparkSession
    # The mechanism is public and may be large: it is broadcast. The key is small and goes with the task alone.
    file = session.sparkContext.broadcast(spec.file)
    rest = (replace(spec, file=b""), spec.applied, inherited_plugins())
    mapper = _Mapper(file, rest, secrets.token_bytes(KEY_BYTES), tuple(frame.columns))
    if frame_charge is None or not frame_charge.is_charged(session.sparkContext, target):
        noisy = frame.mapInArrow(mapper, _schema(frame, task, types))
        problem = _write_frame(noisy, session.sparkContext, target, frame_charge)
        file.destroy()
        if problem is not None:
            raise problem
    return session.read.parquet(target)


class _FrameCharge:
    """What everybody is charged for a frame, by how many rows of theirs it has.

    Rows are counted before anything is drawn, from the column of persons alone. A frame is a recipe, and may give other
    rows the second time: so those that were written are counted too, and nobody may have more of them.
    """

    def __init__(self, persons: PersonLimits, task: TableTask, frame: Any) -> None:
        self._session, self._column = frame.sparkSession, persons.id
        if persons.id in (*task.columns, *task.care.trim.touched):
            raise InvalidInput(
                f"{persons.id!r} says whose rows they are and has to stay as it is until everybody is charged: "
                "drop or coarsen it afterwards."
            )
        PeopleCounter(persons.id, frame.columns)  # refuses a column that is not there
        self._spending = spending_by(self._count_people(frame), persons, task)

    def _count_people(self, frame: Any) -> PeopleCounter:
        counter = PeopleCounter(self._column, [self._column])
        try:
            counted = frame.groupBy(frame[f"`{self._column}`"]).count().toArrow()
        except Exception as error:  # its words may show values
            raise OutputProblem(f"cannot count the rows of every person: Spark stopped with {_why(error)}.") from None
        counter.add(pa.table({self._column: counted.column(0)}), counted.column(1))
        return counter

    def is_charged(self, context: Any, target: str) -> bool:
        """Tell whether the same job was charged before and lies in its place; otherwise see that all rows fit."""
        hadoop = context._jvm.org.apache.hadoop.fs
        place = hadoop.Path(target)
        there = place.getFileSystem(context._jsc.hadoopConfiguration()).exists(place)
        if is_released_elsewhere(self._spending, target, there=there):
            return True
        grant(self._spending)
        return False

    def charge(self, written: str) -> None:
        """Charge everybody for what was written, out of preview."""
        found = self._count_people(self._session.read.parquet(written)).rows
        if any(count > self._spending.counts.get(person, 0) for person, count in found.items()):
            raise InvalidInput(CHANGED)
        charge_ready(self._spending)


def _write_frame(noisy: Any, context: Any, target: str, frame_charge: _FrameCharge | None = None) -> Exception | None:
    """Write a frame out of preview and put it in its place, or return what went wrong.

    Spark writes before it knows whether all goes well, so it writes to a hidden folder beside the target that only its
    owner can read; what it leaves there is deleted. Its own words may show values and go no further.
    """
    try:
        hadoop = context._jvm.org.apache.hadoop.fs
        place = hadoop.Path(target)
        system = place.getFileSystem(context._jsc.hadoopConfiguration())
        place = system.makeQualified(place)
        if system.exists(place):
            return OutputProblem(f"cannot write {target!r}: it exists already. Choose a new folder for the output.")
        home = hadoop.Path(place.getParent(), f".{place.getName()}.metricdp-{secrets.token_hex(4)}")
        try:
            system.mkdirs(home)
            system.setPermission(home, hadoop.permission.FsPermission("700"))
            ready = hadoop.Path(home, "ready")
            noisy.write.mode("errorifexists").parquet(ready.toString())
            if frame_charge is not None:
                frame_charge.charge(ready.toString())
            if system.exists(place) or not system.rename(ready, place):
                return OutputProblem(f"cannot write {target!r}: something is there by now. Choose another folder.")
        finally:
            system.delete(home, True)
    except MetricdpError as error:  # of the ledger
        return error
    except Exception as error:  # Spark wraps what a worker raised in an error of its own
        found = error_in(str(error))
        if found is not None:
            return reword_error(found, f"in one of the partitions, {found}")
        return OutputProblem(f"cannot write {target!r}: Spark stopped with {_why(error)}; its log says where.")
    return None


def _why(error: Exception) -> str:
    """Return what Spark calls an error, and nothing that it says about it."""
    return str(getattr(error, "getCondition", lambda: None)() or type(error).__name__)


def _schema(frame: Any, task: TableTask, types: Any) -> Any:
    """Return the Spark schema of the protected frame: kept columns as they are, reports as `protect` gives them."""
    arrow = _arrow_schema(frame, types)
    kept = [field for field in frame.schema if field.name not in (*task.columns, *task.care.trim.drop)]
    made = dict(zip(task.reports, report_fields(arrow, task), strict=True))
    fields = []
    for field in frame.schema:
        if field.name in made:
            report = made.pop(field.name)
            same = report.type == arrow.field(field.name).type
            kind = field.dataType if same else types.from_arrow_type(report.type)
            fields.append(type(field)(field.name, kind, report.nullable))
        elif field in kept:
            fields.append(_drop_metadata(field))
    new = type(frame.schema.fields[0])
    fields += [new(name, types.from_arrow_type(report.type), True) for name, report in made.items()]
    return type(frame.schema)(fields)


def _arrow_schema(frame: Any, types: Any) -> pa.Schema:
    """Return the Arrow schema of a frame; Spark 4 asks for the time zone that its times are handed over in."""
    if "timezone" not in signature(types.to_arrow_schema).parameters:
        return types.to_arrow_schema(frame.schema)
    return types.to_arrow_schema(frame.schema, timezone=frame.sparkSession.conf.get("spark.sql.session.timeZone"))


def _drop_metadata(field: Any) -> Any:
    """Return a field of a Spark schema without metadata, which may hold values."""

    def plain(entry: Any) -> Any:
        if isinstance(entry, dict):
            return {key: {} if key == "metadata" else plain(value) for key, value in entry.items()}
        return [plain(item) for item in entry] if isinstance(entry, list) else entry

    return type(field).fromJson(plain(field.jsonValue()))


@dataclass(frozen=True, repr=False)
class _Mapper:
    """What a Spark worker applies to the batches of one partition."""

    file: Any
    rest: Any
    key: bytes
    names: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        spec, applied, plugins = self.rest
        context: Any = TaskContext.get()
        draws = Draws(self.key, f"partition {context.partitionId()}", 0, applied)
        try:
            load_inherited(plugins)
            task = replace(spec, file=self.file.value).task(self.names)
            yield from (step.result for step in protect_batches(batches, task, draws))
        except Exception as error:  # Spark logs what is raised, with all it came from
            raise bare_error(error) from None


def run(job: JobPlan, pending: Sequence[int], on_rows: RowProgress, /, *, workers: int | None = None) -> None:
    """Protect the pending partitions of a job over files as Spark tasks; all workers must see the job's folder."""
    context = _session().sparkContext
    before = set(records_of(job))
    over = threading.Event()

    def watch() -> None:
        seen = set(before)
        while not over.wait(POLL_SECONDS):
            for number, record in records_of(job).items():
                if number not in seen:
                    seen.add(number)
                    on_rows(record.rows)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        partition = _Partition(job.folder, inherited_plugins())
        answers = context.parallelize(list(pending), len(pending)).map(partition).collect()
    except Exception as error:  # py4j's errors share no base with ours
        raise error_in(str(error)) or OutputProblem(f"Spark gave up: {type(error).__name__}.") from None
    finally:
        over.set()
        watcher.join()
    for failed in answers:
        if failed is not None:
            raise unpack_error(failed)


def _session() -> Any:
    pyspark = import_extra("pyspark", "spark")
    sql = import_extra("pyspark.sql", "spark")
    master = pyspark.SparkConf().get("spark.master") or "local[*,4]"  # four tries a task, as on a cluster
    if master.startswith("local"):  # workers on this machine run the Python that runs us, activated or not
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return sql.SparkSession.builder.master(master).appName("metricdp").getOrCreate()


@dataclass(frozen=True)
class _Partition:
    folder: str
    plugins: Sequence[str]

    def __call__(self, number: int) -> PackedError | None:
        try:
            load_inherited(self.plugins)
            run_partition(self.folder, number)
        except Exception as error:
            if not is_ours(pack_error(error)):  # Spark tries again what fails
                raise bare_error(error) from None
            return pack_error(error)
        return None


ENGINE = Engine(
    "spark",
    "tasks on Spark, whose workers must see the files; Spark frames",
    run,
    packages=("pyspark",),
    perturb=perturb_frame,
    extra="spark",
)
