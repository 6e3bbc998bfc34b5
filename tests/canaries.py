"""Canaries: failing runs on rows with values that stand nowhere else, and a search for them in all that comes out.

A case is a table whose last row is bad, for one mechanism. A runner hands it to one way in: a frame, a file, a job, an
engine, a call. What must not come out: the values of any row, the nearest legal value, the distance to it.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import sqlite3
import struct
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from pyarrow import feather

import metricdp as mdp
from metricdp.tables import Reading, perturb, perturb_batch
from scripts import main

POINTS = [[7.318264, 3.159357], [7.846213, 3.918472], [8.273951, 3.482716]]  # legal, and nobody's business either
PLACES = [[41.157385, -8.629471], [41.163927, -8.621853], [41.171694, -8.634729]]
PUBLIC = [value for row in POINTS + PLACES for value in row]
VOCABULARY = ["quillfeather", "brontolite", "marzipanoply"]


@dataclass(frozen=True)
class Case:
    """A table with a bad last row: one list of cells per column of the secret."""

    name: str
    mechanism: str
    columns: dict[str, list[Any]]
    needles: tuple[str, ...]


@cache
def mechanisms() -> dict[str, Any]:
    cells = mdp.FiniteSpace(POINTS, mdp.Lp(2), columns=["x", "y"])
    apart = mdp.Precomputed([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
    roads = mdp.FiniteSpace(np.arange(3), apart, coordinates=PLACES, ground=mdp.Haversine(), columns=["lat", "lon"])
    words = mdp.FiniteSpace([[0.0], [1.0], [3.0]], mdp.Lp(1), coordinates=VOCABULARY, columns=["word"])
    line = mdp.FiniteSpace(np.arange(3.0)[:, None], mdp.Lp(1), columns=["x"])
    network = mdp.ShortestPath([[0, 1], [1, 2], [2, 0]], [1.0, 2.0, 1.5], 3)
    crossings = mdp.FiniteSpace(np.arange(3), network, coordinates=PLACES, ground=mdp.Haversine())
    histories = mdp.spaces.Augmented(words, [[0, 0], [1, 0], [1, 1], [2, 1], [2, 2]], [0.5])
    losses = np.abs(np.linspace(0, 2, 9)[:, None] - line.points[:, 0])
    return {
        "earth": mdp.laplace(mdp.Haversine(), 10.0),
        "cells": mdp.exponential(cells, 1.0),
        "roads": mdp.exponential(roads, 1.0),
        "words": mdp.exponential(words, 2.0),
        "box": mdp.interpolated(
            mdp.Box([0.0], [2.0], mdp.Lp(1)),
            line,
            1.0,
            loss=(np.linspace(0, 2, 9)[:, None], losses),
            prior=np.full(9, 1 / 9),
            anchors=(2,),
        ),
        "streets": mdp.interpolated(crossings, crossings, 1.0, anchors=1),
        "history": mdp.contextual(
            mdp.Problem(histories, 1.0, outputs=words, loss=words.distances[histories.histories[:, 0]])
        ),
        "product": mdp.product(mdp.exponential(cells, 1.0), mdp.exponential(words, 1.0)),
    }


def is_telling(value: float) -> bool:
    """Tell whether a number stands nowhere else: it is finite and has digits behind the point."""
    return bool(np.isfinite(value) and value % 1)


def digits(value: float) -> str:
    """Return the first seven characters of a number: what every way of printing it begins with."""
    return f"{abs(value):.9f}"[:7]


def case(name: str, mechanism: str, columns: dict[str, list[Any]], distance: float | None = None) -> Case:
    numbers = [cell for cells in columns.values() for cell in cells if isinstance(cell, float)]
    texts = [cell for cells in columns.values() for cell in cells if isinstance(cell, str)]
    needles = [digits(value) for value in [*numbers, *PUBLIC, *([distance] if distance else [])] if is_telling(value)]
    return Case(name, mechanism, columns, tuple({*needles, *VOCABULARY, *(text for text in texts if len(text) > 4)}))


def cases(seed: int) -> list[Case]:
    """Return one case of every kind, with fresh canaries."""
    rng = np.random.default_rng(seed)

    def number(low: float, high: float) -> float:
        return float(f"{rng.uniform(low, high):.7f}")

    def word() -> str:
        return "".join(rng.choice(list("bdfghjkprtvz")) + rng.choice(list("aeiou")) for _ in range(6))

    away, first = number(0.01, 0.02), VOCABULARY[0]
    (x, y), here = POINTS[0], PLACES[0]
    near = [POINTS[1][0] + away, POINTS[1][1]]
    lat, lon = number(41.0, 41.3), number(-8.7, -8.5)
    return [
        case("beyond the pole", "earth", {"lat": [lat, number(91, 99)], "lon": [lon, number(10, 80)]}),
        case("exchanged", "earth", {"lat": [lat, number(100, 179)], "lon": [lon, number(1, 89)]}),
        case("no longitude", "earth", {"lat": [lat, number(41, 42)], "lon": [lon, None]}),
        case("text for a number", "earth", {"lat": [str(lat), word()], "lon": [str(lon), str(number(1, 9))]}),
        case("two kinds", "earth", {"lat": [lat, word()], "lon": [lon, number(1, 9)]}),
        case("beside a cell", "cells", {"x": [x, near[0]], "y": [y, near[1]]}, away),
        case("far from all cells", "cells", {"x": [x, number(90, 99)], "y": [y, number(90, 99)]}),
        case("beside a crossing", "roads", {"lat": [here[0], lat], "lon": [here[1], lon]}),
        case("no such word", "words", {"word": [first, word()]}),
        case("misspelled", "words", {"word": [first, VOCABULARY[1][:-1] + "x"]}),
        case("no word", "words", {"word": [first, None]}),
        case("outside the box", "box", {"x": [number(0, 2), number(2.1, 9)]}),
        case("infinite", "box", {"x": [number(0, 2), float("inf")]}),
        case("beyond the street", "streets", {"street": [1.0, 1.0], "offset": [number(0, 2), number(2.1, 9)]}),
        case("no such street", "streets", {"street": [1.0, number(0, 2)], "offset": [number(0, 2), number(0, 1)]}),
        case("impossible step", "history", {"word": [first, first], "word_1": VOCABULARY[1::-1]}),
        case("unknown step", "history", {"word": [first, word()], "word_1": [first, first]}),
        case("half of a product", "product", {"x": [x, near[0]], "y": [y, near[1]], "word": [first, first]}, away),
        case("other half", "product", {"x": [x, x], "y": [y, y], "word": [first, word()]}),
    ]


# Runners: one way in each. They must end in an error of ours, or a status that is not zero.


def arrow(case: Case) -> pa.Table:
    """Return the table; columns of two kinds become text."""
    columns = {}
    for name, cells in case.columns.items():
        mixed = any(isinstance(cell, str) for cell in cells)
        columns[name] = [None if cell is None else str(cell) if mixed else cell for cell in cells]
    return pa.table({"row": list(range(len(next(iter(columns.values()))))), **columns})


def written(case: Case, folder: Path, suffix: str) -> Path:
    path = folder / f"in{suffix}"
    table = arrow(case)
    if suffix == ".csv":
        pacsv.write_csv(table, path)
    elif suffix == ".parquet":
        pq.write_table(table, path)
    elif suffix == ".feather":
        feather.write_feather(table, str(path))
    elif suffix == ".csv.gz":
        held = pa.BufferOutputStream()
        pacsv.write_csv(table, held)
        path.write_bytes(gzip.compress(held.getvalue().to_pybytes()))
    elif suffix == ".jsonl":
        path.write_text("".join(json.dumps(row, allow_nan=False, default=str) + "\n" for row in finite(table)))
    elif suffix == ".db":
        with contextlib.closing(sqlite3.connect(path)) as base:
            base.execute(f"CREATE TABLE it ({', '.join(table.schema.names)})")
            marks = ", ".join("?" * table.num_columns)
            base.executemany(f"INSERT INTO it VALUES ({marks})", [list(row.values()) for row in table.to_pylist()])
            base.commit()
    else:
        import duckdb

        with duckdb.connect(str(path)) as base:
            base.register("points", table)
            base.execute("CREATE TABLE it AS FROM points")
    return path


def finite(table: pa.Table) -> list[dict[str, Any]]:
    """Return rows as JSON has them, infinity as text."""
    return [
        {name: str(cell) if isinstance(cell, float) and not np.isfinite(cell) else cell for name, cell in row.items()}
        for row in table.to_pylist()
    ]


def frame_runner(kind: str) -> Callable[[Case, Path, Path], Any]:
    def run(case: Case, inputs: Path, out: Path) -> Any:
        mechanism, names = mechanisms()[case.mechanism], list(case.columns)
        table = arrow(case)
        if kind == "pandas":
            import pandas as pd

            frame: Any = pd.DataFrame({name: pd.Series(cells) for name, cells in case.columns.items()})
        elif kind == "polars":
            import polars as pl

            frame = pl.from_arrow(table)
        elif kind == "batch":
            return perturb_batch(table.to_batches()[0], mechanism, names)
        elif kind == "reader":
            return mdp.perturb(table.to_reader(), mechanism, columns=names, to=str(out / "out.parquet"))
        else:
            frame = table
        return mdp.perturb(frame, mechanism, columns=names)

    return run


def file_runner(suffix: str) -> Callable[[Case, Path, Path], Any]:
    def run(case: Case, inputs: Path, out: Path) -> Any:
        source = written(case, inputs, suffix)
        return perturb(source, mechanisms()[case.mechanism], to=out / f"out{suffix}", columns=list(case.columns))

    return run


def layout_runner(kind: str) -> Callable[[Case, Path, Path], Any]:
    """Numbers inside structs and lists, scaled, or with decimal commas."""

    def run(case: Case, inputs: Path, out: Path) -> Any:
        mechanism, names, table = mechanisms()[case.mechanism], list(case.columns), arrow(case)
        rows = [[row[name] for name in names] for row in table.to_pylist()]
        path = inputs / ("in.csv" if kind == "commas" else "in.parquet")
        target, reading, columns = out / "out.parquet", Reading(), names
        if kind == "struct":
            made = pa.table({"pos": [dict(zip(names, row, strict=True)) for row in rows]})
            columns = [f"pos.{name}" for name in names]
        elif kind == "list":
            made, columns = pa.table({"pos": rows}), ["pos"]
        elif kind == "scaled":
            made, reading = table, Reading(scale=0.5)
            for name in names:
                halves = pa.array([None if cell is None else 2.0 * cell for cell in table[name].to_pylist()])
                made = made.set_column(made.schema.get_field_index(name), name, halves)
        if kind == "commas":
            lines = [";".join("" if cell is None else f"{cell:.9f}".replace(".", ",") for cell in row) for row in rows]
            path.write_text("\n".join([";".join(names), *lines]) + "\n")
        else:
            pq.write_table(made, path)
        return perturb(path, mechanism, to=target, columns=columns, reading=reading)

    return run


def projected(case: Case, inputs: Path, out: Path) -> Any:
    """Numbers that no projection can hold."""
    names = list(case.columns)[-2:]
    rows = [
        [1e9 * (row[name] if isinstance(row[name], float) else 1.0) for name in names] for row in finite(arrow(case))
    ]
    pq.write_table(pa.table({"x": [row[0] for row in rows], "y": [row[-1] for row in rows]}), inputs / "in.parquet")
    return perturb(
        inputs / "in.parquet", mechanisms()["earth"], to=out / "out.parquet", reading=Reading(crs="EPSG:25832")
    )


def broken(suffix: str) -> Callable[[Case, Path, Path], Any]:
    """Files that end in the middle, or hold something else than their name says, where the canaries stand."""

    def run(case: Case, inputs: Path, out: Path) -> Any:
        whole = written(case, inputs, ".jsonl").read_bytes()
        path = inputs / f"broken{suffix}"
        cut = whole[: len(whole) - 9]
        path.write_bytes({".geojson": b'{"features": [' + cut, ".csv": b'n,"' + whole}.get(suffix, cut))
        return perturb(path, mechanisms()[case.mechanism], to=out / "out.csv", columns=list(case.columns))

    return run


def headless(case: Case, inputs: Path, out: Path) -> Any:
    """A table without a header, with decimal commas: its first row stands where names are shown."""
    cells = [str(cell).replace(".", ",") for column in case.columns.values() for cell in column if cell is not None]
    (inputs / "in.csv").write_text("\n".join([";".join([*cells, "1,5"])] * 3) + "\n")
    return perturb(inputs / "in.csv", mechanisms()["earth"], to=out / "out.csv")


def command_runner(suffix: str) -> Callable[[Case, Path, Path], Any]:
    def run(case: Case, inputs: Path, out: Path) -> Any:
        source, file = written(case, inputs, suffix), inputs / "it.mdp"
        mdp.save(mechanisms()[case.mechanism], file)
        names = ",".join(case.columns)
        status = main(
            ["perturb", str(source), "-o", str(out / f"out{suffix}"), "--mechanism", str(file), "--columns", names]
        )
        assert status == 2, status
        raise mdp.MetricdpError("the command said its error itself")

    return run


def job_runner(engine: str) -> Callable[[Case, Path, Path], Any]:
    def run(case: Case, inputs: Path, out: Path) -> Any:
        suffix = ".csv" if sum(map(ord, case.name)) % 2 else ".parquet"
        source = written(case, inputs, suffix)
        return perturb(
            [source],
            mechanisms()[case.mechanism],
            to=out / "made",
            columns=list(case.columns),
            engine=engine,
            workers=1,
        )

    return run


def spark_frame(case: Case, inputs: Path, out: Path) -> Any:
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    frame = session.createDataFrame(arrow(case))
    mechanism = mechanisms()[case.mechanism]
    return mdp.perturb(frame, mechanism, columns=list(case.columns), to=str(out / "made"))


def ray_data(case: Case, inputs: Path, out: Path) -> Any:
    import ray

    if not ray.is_initialized():
        ray.init(address="local", num_cpus=1, include_dashboard=False)  # with the workers' logs on our own output
    data = ray.data.from_arrow(arrow(case))
    return mdp.perturb(data, mechanisms()[case.mechanism], columns=list(case.columns))


def duckdb_table(case: Case, inputs: Path, out: Path) -> Any:
    import duckdb

    with duckdb.connect(str(out / "it.duckdb")) as connection:
        connection.register("points", arrow(case))
        return mdp.perturb(
            (connection, "FROM points"), mechanisms()[case.mechanism], to="safe", columns=list(case.columns)
        )


def duckdb_query(case: Case, inputs: Path, out: Path) -> Any:
    """A query that fails by itself: DuckDB's own words would show the text it cannot convert."""
    import duckdb

    with duckdb.connect() as connection:
        connection.register(
            "points", pa.table({name: [str(cell) for cell in cells] for name, cells in case.columns.items()})
        )
        names = ", ".join(f"CAST({name} || 'q' AS DOUBLE) AS {name}" for name in case.columns)
        return mdp.perturb(
            (connection, f"SELECT {names} FROM points"),
            mechanisms()[case.mechanism],
            to="safe",
            columns=list(case.columns),
        )


def secrets_of(case: Case) -> Any:
    rows = [list(row) for row in zip(*case.columns.values(), strict=True)]
    return [row[0] for row in rows] if len(case.columns) == 1 else rows


def direct(call: str) -> Callable[[Case, Path, Path], Any]:
    def run(case: Case, inputs: Path, out: Path) -> Any:
        mechanism, secrets = mechanisms()[case.mechanism], secrets_of(case)
        if call == "sample":
            return mechanism.sample(secrets)
        if call == "log_density":
            return mechanism.log_density(secrets, secrets)
        return mechanism.inputs.encode(secrets)

    return run


def malformed(case: Case, inputs: Path, out: Path) -> Any:
    """CSV files that are broken where the canaries stand: too many columns, no header, an open quote, no text."""
    cells = [str(cell) for column in case.columns.values() for cell in column if cell is not None]
    names = list(case.columns)
    line = ",".join(cells)
    bodies = [
        ",".join(names) + "\n" + f"{line},{line}\n",
        ",".join(["0.5", *(cell for cell in cells if not cell[-1].isalpha())]) + "\n" + line + "\n",
        ",".join(names) + f'\n"{line}\n',
        ",".join(f"column{number}" for number in range(len(cells))) + f"\n{line}\n",
    ]
    body = bodies[sum(map(ord, case.name)) % len(bodies)]
    path = inputs / "in.csv"
    path.write_text(body, encoding="utf-8")
    return perturb(path, mechanisms()["earth"], to=out / "out.csv", id="whose")


def design(case: Case, inputs: Path, out: Path) -> Any:
    """Points of a design that cannot be: they may come from somebody's data too."""
    path = inputs / "points.csv"
    rows = [",".join(str(cell) for cell in row) for row in zip(*case.columns.values(), strict=True)]
    path.write_text("\n".join([",".join(case.columns), *rows, f"q{rows[-1]}"]) + "\n", encoding="utf-8")
    status = main(["design", "--points", str(path), "--metric", "l2", "--epsilon", "1.0", "-o", str(out / "it.mdp")])
    assert status == 2, status
    raise mdp.MetricdpError("the command said its error itself")


def trips(case: Case, inputs: Path, out: Path) -> Any:
    """Fixes that cannot be read as trips: bad places, bad times, no header."""
    from metricdp.mobility import load_traces

    path = inputs / "trips.csv"
    cells = [[str(cell) for cell in column] for column in case.columns.values()]
    kind = sum(map(ord, case.name)) % 3
    rows = [[str(n), f"{cells[0][n]}q" if kind == 2 else str(n), cells[0][n], cells[-1][n]] for n in range(2)]
    lines = rows if kind == 1 else [["trip", "t", "lat", "lon"], *rows]
    if kind == 0:
        lines.append([*rows[0], *rows[1]])
    path.write_text("\n".join(",".join(line) for line in lines) + "\n", encoding="utf-8")
    return load_traces(path)


RUNNERS: dict[str, Callable[[Case, Path, Path], Any]] = {
    **{kind: frame_runner(kind) for kind in ("pandas", "polars", "arrow", "batch", "reader")},
    **{
        end.strip("."): file_runner(end)
        for end in (".csv", ".parquet", ".csv.gz", ".feather", ".jsonl", ".db", ".duckdb")
    },
    **{kind: layout_runner(kind) for kind in ("struct", "list", "scaled", "commas")},
    **{f"broken{end}": broken(end) for end in (".csv", ".jsonl", ".geojson", ".parquet", ".feather", ".db", ".csv.gz")},
    "projected": projected,
    "headless": headless,
    "command csv": command_runner(".csv"),
    "command parquet": command_runner(".parquet"),
    "duckdb table": duckdb_table,
    "duckdb query": duckdb_query,
    "sample": direct("sample"),
    "log_density": direct("log_density"),
    "encode": direct("encode"),
    "malformed csv": malformed,
    "design": design,
    "trips": trips,
    "local": job_runner("local"),
    "spark": job_runner("spark"),
    "ray": job_runner("ray"),
    "spark frame": spark_frame,
    "ray data": ray_data,
}


def fits(runner: str, case: Case) -> bool:
    """Tell whether a case can be handed to a runner."""
    if runner in ("sample", "log_density", "encode") and case.mechanism == "product":
        return runner == "encode"
    if runner in ("db", "duckdb"):
        return case.mechanism in ("earth", "words")
    if runner in ("struct", "list", "scaled", "commas"):
        cells = [cell for column in case.columns.values() for cell in column]
        return all(cell is None or isinstance(cell, float) for cell in cells) and not (
            runner == "commas" and np.inf in cells
        )
    return True


def said(error: BaseException) -> Iterator[str]:
    """Yield all that an error and those behind it say."""
    yield "".join(traceback.format_exception(error))
    seen: set[int] = set()
    left: list[BaseException | None] = [error]
    while left:
        one = left.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield from (str(one), repr(one), repr(one.args), repr(getattr(one, "__notes__", "")), repr(vars(one)))
        left += [one.__cause__, one.__context__]


def run(runner: str, case: Case, inputs: Path, out: Path) -> str:
    """Run one case and return all that its error says; a run without an error is a fault of the case."""
    for folder in (inputs, out):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        RUNNERS[runner](case, inputs, out)
    except mdp.MetricdpError as error:
        return "\n".join(said(error))
    raise AssertionError(f"{runner} took {case.name}")


def found(text: str | bytes, needles: Iterable[str]) -> list[str]:
    """Return the canaries that sit in a text, or in bytes as text or as doubles."""
    if isinstance(text, str):
        return [needle for needle in needles if needle in text]
    return [needle for needle in needles if needle.encode() in text]


def doubles(case: Case) -> list[bytes]:
    """Return the canaries of the bad row as they lie in memory."""
    last = [cells[-1] for cells in case.columns.values()]
    telling = [cell for cell in last if isinstance(cell, float) and is_telling(cell) and cell not in PUBLIC]
    return [struct.pack("<d", cell) for cell in telling]


def in_files(folder: Path, case: Case) -> list[str]:
    """Return the canaries in all files of a folder, names of files included."""
    hits = []
    for path in folder.rglob("*"):
        hits += found(str(path.relative_to(folder)), case.needles)
        if path.is_file():
            data = path.read_bytes()
            if path.suffix != ".mdp":  # a mechanism holds its own public words
                hits += found(data, case.needles)
            hits += [f"{path.name}: a double" for value in doubles(case) if value in data]
    return hits


@contextlib.contextmanager
def temporary_files_in(folder: Path) -> Iterator[None]:
    """Have all temporary files made in a folder."""
    import tempfile

    folder.mkdir(parents=True, exist_ok=True)
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    old = os.environ.get("TMPDIR")
    os.environ["TMPDIR"] = str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before
        if old is None:
            del os.environ["TMPDIR"]
        else:
            os.environ["TMPDIR"] = old
