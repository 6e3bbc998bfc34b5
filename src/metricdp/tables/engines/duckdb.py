"""DuckDB: a table made once from a query, and a function for queries of one's own."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import Parameter, Signature
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metricdp import messages
from metricdp.errors import InvalidInput, MetricdpError, OutputProblem, import_extra
from metricdp.mechanisms import Mechanism
from metricdp.tables.batch import ALL, Portion, protect, report_fields, report_type
from metricdp.tables.charging import charge_ready, grant, is_released_elsewhere, open_request
from metricdp.tables.disclosure.checks import check_first_rows, inspect_table, log_findings
from metricdp.tables.disclosure.findings import SAMPLED, inspected_rows
from metricdp.tables.disclosure.trim import coarsen_column
from metricdp.tables.engines.base import Engine, refuse_rng
from metricdp.tables.formats.base import quote_name
from metricdp.tables.jobs.errors import reword_error
from metricdp.tables.options import Call, CoarseningStep, Disclosure, OnError, Trim
from metricdp.tables.people import Allotment, PeopleCounter, Spending, spending_in
from metricdp.tables.plan import PersonLimits, TableRequest, TableTask, task_for, usual_names
from metricdp.tables.values import is_list, is_text, whole


def register(
    engine: Any,
    connection: Any,
    name: str,
    task: TableTask,
    kinds: Sequence[pa.DataType],
    errors: list[MetricdpError] | None = None,
    *,
    tasks: Sequence[TableTask] = (),
) -> None:
    """Register `protect` as a function; with `errors` it always gives a struct, and errors of ours are kept there.

    With `tasks` its last argument says by which of them a row is reported.
    """
    struct = errors is not None or len(task.reports) > 1

    def draw(*arrays: Any) -> Any:
        try:
            columns = [whole(array) for array in arrays[: len(kinds)]]
            portion = Portion(None, np.asarray(whole(arrays[-1])), tuple(tasks)) if tasks else ALL
            done = protect(columns, task, portion=portion)
        except MetricdpError as error:
            found = reword_error(error, f"in a batch of {len(arrays[0])} rows of the query, {error}")
            if errors is not None:
                errors.append(found)
            raise found from error
        if not struct:
            return done.columns[0]
        mask = None if not done.bad.size else pc.invert(done.kept(len(arrays[0])))
        return pa.StructArray.from_arrays(done.columns, names=list(task.reports), mask=mask)

    # DuckDB counts the arguments of what it is given.
    places = [Parameter(f"secret_{place}", Parameter.POSITIONAL_ONLY) for place in range(len(kinds) + bool(tasks))]
    draw.__signature__ = Signature(places)  # type: ignore[attr-defined]
    text, number = engine.sqltype("VARCHAR"), engine.sqltype("DOUBLE")
    reports = [text if group.mechanism.outputs.is_text else number for group in task.groups for _ in group.reports]
    if task.groups[0].packed:
        reports = [_list_type(engine, report_type(kinds[0], task.groups[0]))]
    result = engine.struct_type(dict(zip(task.reports, reports, strict=True))) if struct else reports[0]

    def sql_type(kind: pa.DataType) -> Any:
        if is_list(kind):
            return _list_type(engine, kind)
        return text if is_text(getattr(kind, "value_type", kind)) else number  # enumerations are text

    arguments = [*map(sql_type, kinds), *[engine.sqltype("BIGINT")] * bool(tasks)]
    # With side effects a constant argument is not folded into one draw for all rows.
    connection.create_function(name, draw, arguments, result, type="arrow", null_handling="special", side_effects=True)


def _list_type(engine: Any, kind: pa.DataType) -> Any:
    """Return DuckDB's type for lists of numbers."""
    item = engine.sqltype("FLOAT" if pa.types.is_float32(kind.value_type) else "DOUBLE")
    return engine.array_type(item, kind.list_size) if pa.types.is_fixed_size_list(kind) else engine.list_type(item)


NUMBERS = pa.float64()
ENUM = re.compile(r"ENUM\((?:'(?:[^']|'')*'(?:,\s*)?)*\)")  # a type that lists the values that it may have
FIRST_TEXTS = 2_000  # rows with texts that are looked at before anything is drawn
T = TypeVar("T")


def table_from(source: tuple[Any, Any], call: Call) -> Any:
    """Create the table `to` from a query, with the columns of the secret replaced by reports; return its relation.

    The query runs once, inside DuckDB: every other column stays in the database untouched, rows keep the order of the
    query, and after an error there is no table. This is the way to protect tables in DuckDB; a view over
    `duckdb_function` would draw again whenever it is read.
    """
    engine = import_extra("duckdb", "duckdb")
    connection, query = source
    if not isinstance(call.to, str):
        raise InvalidInput(
            "a DuckDB relation is a recipe: every time it is evaluated it would draw new noise. Name the table that is "
            'made of it: mdp.perturb((connection, "FROM points"), mechanism, to="protected").'
        )
    refuse_rng("DuckDB", call.rng)
    with _open_query(connection, query) as text, open_request(call) as request:
        return _make_table(engine, connection, text, call.to, request)


def pair_of(source: Any) -> tuple[Any, Any] | None:
    """Return the connection and the query or relation that a source names; None where it is nothing of DuckDB's."""
    if _is_of_duckdb(source):
        return import_extra("duckdb", "duckdb").default_connection(), source
    pair = isinstance(source, tuple) and len(source) == 2 and _is_of_duckdb(source[0])
    return source if pair else None


def _is_of_duckdb(thing: Any) -> bool:
    return type(thing).__module__.partition(".")[0] in ENGINE.packages


@contextmanager
def _open_query(connection: Any, query: Any) -> Iterator[str]:
    """Return the query of a relation, which is a view of its connection as long as it is needed."""
    if isinstance(query, str):
        yield query
        return
    if not hasattr(query, "create_view"):
        raise InvalidInput(f"DuckDB protects a relation or a query, got {type(query).__name__}.")
    name = f"metricdp_{secrets.token_hex(6)}"
    query.create_view(name)
    try:
        if not connection.execute("SELECT 1 FROM duckdb_views() WHERE view_name = ?", [name]).fetchall():
            raise InvalidInput(
                "this relation is of another connection: name it too, "
                'mdp.perturb((connection, relation), mechanism, to="protected").'
            )
        yield f"FROM {name}"
    finally:
        query.query(name, f"DROP VIEW {name}")


def _make_table(engine: Any, connection: Any, query: str, target: str, request: TableRequest) -> Any:
    """Make the table of a request."""
    care, persons = request.disclosure, request.persons
    source = f"({query.strip().rstrip(';')})"
    problem = "DuckDB cannot run the query"
    empty = _call_duckdb(engine, lambda: connection.sql(f"FROM {source} LIMIT 0"), problem)
    kinds = dict(zip(empty.columns, (str(kind) for kind in empty.types), strict=True))
    schema = empty.to_arrow_table().schema
    task = request.task(schema.names, lambda: schema)
    _refuse_inside(schema.names, care)
    limit = inspected_rows(task.width) if task.texts is None else FIRST_TEXTS
    first = _call_duckdb(engine, lambda: connection.sql(f"FROM {source} LIMIT {limit}").to_arrow_table(), problem)
    if first.num_rows:
        _inspect_first(first, task)
    name = f"metricdp_{secrets.token_hex(6)}"
    allotted: tuple[TableTask, ...] = ()
    spending = None
    if persons is not None and persons.needs_counts:
        there = _exists(engine, connection, target)
        allotted, spending = _allot_rows(connection, name, source, persons, task, target, there=there)
        if spending is None:
            return connection.table(quote_name(target))  # the job was charged before
        source = f"{name}_rows POSITIONAL JOIN {name}_portion"
    errors: list[MetricdpError] = []
    kind_of = [schema.field(c).type for c in task.columns]
    register(engine, connection, name, task, kind_of, errors, tasks=allotted)
    steps = _register_steps(connection, name, care.trim, kinds)
    drawn = ", ".join(quote_name(column) for column in task.columns) + (f", {name}_number" if allotted else "")
    made = dict(zip(task.reports, report_fields(schema, task), strict=True))
    outputs = []
    for column in schema.names:
        if column in made:
            same = made[column].type == schema.field(column).type and not kinds[column].startswith("ENUM")
            value = f"q.{quote_name(column)}"
            outputs.append(f"{f'CAST({value} AS {kinds[column]})' if same else value} AS {quote_name(column)}")
        elif column in steps:
            outputs.append(f"{name}_{steps[column]}({quote_name(column)}) AS {quote_name(column)}")
        elif column not in task.columns and column not in care.trim.drop:
            outputs.append(_plain_column(column, kinds[column]))
    new = [quote_name(column) for column in task.reports if column not in schema.names]
    outputs += [f"q.{column} AS {column}" for column in new]
    kept = " WHERE q IS NOT NULL" if task.on_error == "drop" else ""
    source += f" WHERE {name}_kept" if allotted else ""
    hidden = request.charging is not None  # until everybody is charged
    goal = f"TEMP TABLE {name}_made" if hidden else f"TABLE {quote_name(target)}"
    rows = f"(SELECT *, {name}({drawn}) AS q FROM {source})"
    statement = f"CREATE {goal} AS SELECT {', '.join(outputs)} FROM {rows}{kept}"
    try:
        problem = f"DuckDB could not make the table {target!r}"
        _call_duckdb(engine, lambda: connection.execute(statement), problem, errors)
        if hidden:
            charge_ready(spending)
            statement = f"CREATE TABLE {quote_name(target)} AS FROM {name}_made"
            _call_duckdb(engine, lambda: connection.execute(statement), problem)
    finally:
        for made_here in (name, *(f"{name}_{number}" for number in steps.values())):
            connection.remove_function(made_here)
        if allotted:
            connection.unregister(f"{name}_portion")
            connection.execute(f"DROP TABLE {name}_rows")
            connection.execute(f"DROP TABLE IF EXISTS {name}_made")
    return connection.table(quote_name(target))


def _plain_column(column: str, kind: str) -> str:
    """Return a column that stays; an enumeration becomes text: its type names values of rows that do not leave too."""
    plain = ENUM.sub("VARCHAR", kind)
    return quote_name(column) if plain == kind else f"CAST({quote_name(column)} AS {plain}) AS {quote_name(column)}"


def _inspect_first(first: pa.Table, task: TableTask) -> None:
    """Look at the first rows: what gives the secret away, and what looks wrong."""
    found, sanity = inspect_table(first, task)
    log_findings(found, messages.inspected_rows(min(first.num_rows, SAMPLED), first.num_rows, first=True))
    check_first_rows(first, task, sanity)


def _exists(engine: Any, connection: Any, target: str) -> bool:
    try:
        connection.table(quote_name(target))
    except engine.CatalogException:
        return False
    return True


def _allot_rows(
    connection: Any,
    name: str,
    source: str,
    persons: PersonLimits,
    task: TableTask,
    target: str,
    *,
    there: bool,
) -> tuple[tuple[TableTask, ...], Spending | None]:
    """Put the rows of a query aside, count whose they are, and note beside them which are reported at which epsilon.

    Returns no spending where the same job was charged before and its table is there.
    """
    connection.execute(f"CREATE TEMP TABLE {name}_rows AS SELECT * FROM {source}")
    try:
        names = connection.table(f"{name}_rows").columns
        PeopleCounter(persons.id, names)  # refuses a column that is not there
        ids = connection.sql(f"SELECT {quote_name(persons.id)} FROM {name}_rows ORDER BY rowid").to_arrow_table()
        spending = spending_in([ids], persons, names, task)
        if is_released_elsewhere(spending, target, there=there):
            connection.execute(f"DROP TABLE {name}_rows")
            return (), None
        if persons.charging is not None and there:
            raise OutputProblem(f"DuckDB could not make the table {target!r}: it is there already.")
        spending = grant(spending)
        portion = Allotment(spending).portion(ids)
    except MetricdpError:
        connection.execute(f"DROP TABLE {name}_rows")
        raise
    kept = np.ones(ids.num_rows, dtype=bool) if portion.kept is None else portion.kept
    connection.register(f"{name}_portion", pa.table({f"{name}_kept": kept, f"{name}_number": portion.number}))
    return portion.tasks, spending


def _refuse_inside(names: Sequence[str], care: Disclosure) -> None:
    inside = [name for name in care.trim.touched if name not in names]
    if inside:
        raise InvalidInput(f"in DuckDB whole columns are dropped and coarsened; take {inside[0]!r} out in the query.")


def _register_steps(connection: Any, name: str, trim: Trim, kinds: Mapping[str, str]) -> dict[str, int]:
    """Register a function for every column that is coarsened, and return their numbers."""
    for number, (column, step) in enumerate(trim.coarsen):

        def change(values: Any, /, column: str = column, step: CoarseningStep = step) -> Any:
            return coarsen_column(whole(values), column, step)

        change.__signature__ = Signature([Parameter("values", Parameter.POSITIONAL_ONLY)])  # type: ignore[attr-defined]
        kind = kinds[column]
        connection.create_function(f"{name}_{number}", change, [kind], kind, type="arrow", null_handling="special")
    return {column: number for number, (column, _) in enumerate(trim.coarsen)}


def _call_duckdb(engine: Any, call: Callable[[], T], what: str, errors: Sequence[MetricdpError] = ()) -> T:
    """Call DuckDB; of what it says only what is about names and syntax goes on, the rest may show values."""
    try:
        return call()
    except engine.Error as error:
        plain = (engine.CatalogException, engine.BinderException, engine.ParserException, engine.SyntaxException)
        reason = f"it stopped with {type(error).__name__}"
        if isinstance(error, plain):  # the name of an enumeration's type lists its values
            reason = re.sub(r"ENUM\(.*?\)", "ENUM", str(error), flags=re.DOTALL)
    raise errors[0] if errors else OutputProblem(f"{what}: {reason}")


def duckdb_function(
    connection: Any,
    name: str,
    mechanism: Mechanism,
    *,
    snap: float = 0.0,
    on_error: OnError = "fail",
) -> None:
    """Register a function for SQL that reports a secret: `SELECT protect(lat, lon) FROM points`.

    It takes one argument per coordinate (DOUBLE, or VARCHAR for words) and gives a STRUCT with the names of the report
    columns, or a plain value where there is one. It is marked as having side effects, so that DuckDB draws for every
    row even where the arguments are constants. NULL is refused, or gives NULL with on_error="null". With a
    `mdp.text.TextMechanism` it takes one text and gives it protected, and NULL for NULL.

    Every evaluation draws anew and spends the epsilon again: write its result to a table once (`mdp.perturb`
    does), never a view.
    """
    engine = import_extra("duckdb", "duckdb")
    if on_error == "drop":
        raise InvalidInput('a function cannot drop rows: on_error="null", and leave out the rows that are NULL.')
    names = usual_names(mechanism)
    task = task_for(names, mechanism, columns=names, snap=snap, on_error=on_error)
    kinds = [pa.string() if group.mechanism.inputs.is_text else NUMBERS for group in task.groups for _ in group.columns]
    register(engine, connection, name, task, kinds)


ENGINE = Engine(
    "duckdb",
    "tables in DuckDB, made once from a query or a relation",
    packages=("duckdb", "_duckdb"),
    extra="duckdb",
)
