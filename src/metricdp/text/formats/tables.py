"""Vectors in tables: Parquet, Arrow IPC and Feather, with a column of words and one of lists, or one a number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from metricdp import progress
from metricdp.text.formats.arrays import VECTORS, WORDS, to_float32
from metricdp.text.formats.base import Singles, VectorRows, VectorSource

ROWS = 16_384  # read at a time
ARROW, FEATHER, PARQUET = b"ARROW1", b"FEA1", b"PAR1"


def read_table(source: VectorSource, head: bytes) -> VectorRows:
    """Read words and vectors from a table, as many of its rows as are wanted."""
    words: list[str] = []
    parts: list[Singles] = []
    with _batches(source, head) as (schema, batches), progress.report_task("reading vectors"):
        word, numbers = _columns(schema, source)
        for batch in batches:
            if source.limit is not None:
                batch = batch.slice(0, source.limit - len(words))
            batch.validate(full=True)  # a damaged file may point anywhere
            names, array = batch.column(word), _array(batch, numbers, len(words), source)
            if names.null_count:
                source.refuse(f"has no word in row {len(words) + names.is_null().to_pylist().index(True):,}.")
            words += [str(name) for name in names.to_pylist()]
            parts.append(array)
            source.refuse_size(len(words), array.shape[1])
            if array.shape[1] != parts[0].shape[1]:
                source.refuse(f"has vectors of {parts[0].shape[1]:,} and of {array.shape[1]:,} numbers.")
            progress.report_step(f"reading vectors, {len(words):,} words")
            if source.is_enough(len(words)):
                break
    if not words:
        source.refuse("holds no words: it is empty.")
    return VectorRows(words, np.concatenate(parts))


@contextmanager
def _batches(source: VectorSource, head: bytes) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
    """Open a table: what its columns are, and its rows a few thousand at a time."""
    import pyarrow.parquet as pq
    from pyarrow import feather

    try:
        if head.startswith(PARQUET):
            with pq.ParquetFile(source.path) as file:
                yield file.schema_arrow, file.iter_batches(ROWS)
        elif head.startswith(FEATHER):
            table = feather.read_table(source.path)
            yield table.schema, iter(table.to_batches(ROWS))
        else:
            with pa.memory_map(str(source.path)) as mapped, pa.ipc.open_file(mapped) as reader:
                yield reader.schema, (reader.get_batch(number) for number in range(reader.num_record_batches))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        source.refuse(f"cannot be read: {str(error).splitlines()[0][:200]}. It is damaged or was not copied whole.")


def _columns(schema: pa.Schema, source: VectorSource) -> tuple[int, list[int]]:
    """Return the column of words, and the column of lists or those of single numbers."""
    texts = [place for place, field in enumerate(schema) if _is_text(field.type)]
    lists = [place for place, field in enumerate(schema) if _is_list(field.type)]
    numbers = [place for place, field in enumerate(schema) if pa.types.is_floating(field.type)]
    word = _usual_column(schema, texts, WORDS)
    vector = [place] if (place := _usual_column(schema, lists, VECTORS)) is not None else numbers if not lists else []
    if word is None or not vector:
        source.refuse(
            "must have a column of words and one of vectors (lists of numbers, or one column a number), got "
            f"{', '.join(f'{field.name} {field.type}' for field in list(schema)[:6])}. Name them word and vector."
        )
    return word, vector


def _usual_column(schema: pa.Schema, places: Sequence[int], usual: tuple[str, ...]) -> int | None:
    """Return the one column of a kind, or the one of several that has a usual name."""
    known = [place for place in places if schema[place].name.lower() in usual]
    found = known[:1] if len(places) > 1 else list(places)
    return found[0] if found else None


def _is_text(kind: pa.DataType) -> bool:
    held = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(held) or pa.types.is_large_string(held) or pa.types.is_string_view(held))


def _is_list(kind: pa.DataType) -> bool:
    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(is_kind(kind) for is_kind in lists) and bool(
        pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type)
    )


def _array(batch: pa.RecordBatch, columns: list[int], before: int, source: VectorSource) -> Singles:
    """Return the vectors of some rows."""
    if len(columns) > 1 or not _is_list(batch.schema[columns[0]].type):
        values = [batch.column(place).to_numpy(zero_copy_only=False) for place in columns]
        return to_float32(np.column_stack(values))
    lists: Any = batch.column(columns[0])
    if lists.null_count:
        source.refuse(f"has no vector in row {before + lists.is_null().to_pylist().index(True):,}.")
    flat = lists.flatten()
    lengths = (
        np.diff(lists.offsets.to_numpy()) if hasattr(lists, "offsets") else np.full(len(lists), lists.type.list_size)
    )
    other = np.flatnonzero(lengths != lengths[:1])
    if other.size:
        row = int(other[0])
        source.refuse(
            f"has {lengths[row]:,} numbers in row {before + row:,}, where the rows before have {lengths[0]:,}."
        )
    return to_float32(flat.to_numpy(zero_copy_only=False)).reshape(len(lists), -1)
