"""Nothing of rows that are gone, and nothing under nulls, is in the bytes of an output, however it is nested."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import metricdp as mdp
from metricdp.tables import perturb
from metricdp.tables.disclosure.hidden_values import compact
from metricdp.tables.values import filter_rows

NOISE = mdp.laplace(mdp.Haversine(), 10.0)
ROWS = 12
SHOWN = [row % 3 == 1 for row in range(ROWS)]
EMPTY = [row % 6 == 4 for row in range(ROWS)]  # shown rows that are null
CANARY = re.compile(rb"canary-\d\d|\xca\xfe[\x00-\x0b]\xba\xbe|[\x00-\x0b]\xba\xbe")


def words() -> pa.Array:
    return pa.array([f"shown-{row:02}" if SHOWN[row] and not EMPTY[row] else f"canary-{row:02}" for row in range(ROWS)])


def under(array: pa.Array) -> pa.Array:
    """Return an array whose empty rows are null and whose buffers still hold what stood there."""
    bits = np.packbits(~np.array(EMPTY), bitorder="little").tobytes()
    _, *buffers = array.buffers()
    kind = array.type
    if pa.types.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(under(array.indices), array.dictionary)
    own = buffers[: len(buffers) - sum(len(child.buffers()) for child in children(array))]
    return pa.Array.from_buffers(kind, len(array), [pa.py_buffer(bits), *own], children=children(array))


def children(array: pa.Array) -> list[pa.Array]:
    if pa.types.is_struct(array.type):
        return [array.field(number) for number in range(array.type.num_fields)]
    return [array.values] if pa.types.is_nested(array.type) else []


def one_each(items: pa.Array, make: Any) -> pa.Array:
    offsets = np.arange(len(items) + 1, dtype=np.int64 if make is pa.LargeListArray else np.int32)
    return make.from_arrays(pa.array(offsets), items)


def mapped(items: pa.Array) -> pa.Array:
    return pa.MapArray.from_arrays(pa.array(np.arange(len(items) + 1, dtype=np.int32)), words(), items)


def list_view(items: pa.Array) -> pa.Array:
    return pa.ListViewArray.from_arrays(
        pa.array(np.arange(len(items) - 1, -1, -1, dtype=np.int32)), pa.array(np.ones(len(items), np.int32)),
        pa.concat_arrays([items.slice(row, 1) for row in range(len(items) - 1, -1, -1)]),
    )  # fmt: skip


WRAPS: dict[str, Callable[[pa.Array], pa.Array]] = {
    "plain": lambda items: items,
    "struct": lambda items: pa.StructArray.from_arrays([items, pa.array(range(len(items)))], ["a", "b"]),
    "list": lambda items: one_each(items, pa.ListArray),
    "large list": lambda items: one_each(items, pa.LargeListArray),
    "pair": lambda items: pa.FixedSizeListArray.from_arrays(pa.concat_arrays([items.slice(0, 0), items]), 1),
    "list view": list_view,
    "map": mapped,
}
LEAVES: dict[str, Callable[[], pa.Array]] = {
    "text": words,
    "large text": lambda: words().cast(pa.large_string()),
    "bytes": lambda: words().cast(pa.binary()),
    "fixed bytes": lambda: pa.array([item.as_py().ljust(9).encode()[:9] for item in words()], pa.binary(9)),
    "view": lambda: pc.binary_join_element_wise(words(), "beyond twelve letters", "-").cast(pa.string_view()),
    "dictionary": lambda: words().dictionary_encode(),
}


def shown_of(array: pa.Array) -> pa.Array:
    """Return the rows that are shown, as tables pick them."""
    return filter_rows(pa.table({"it": array}), pa.array(SHOWN)).column("it").combine_chunks()


def nested() -> Iterator[tuple[str, pa.Array]]:
    for leaf, make in LEAVES.items():
        for outer, wrap in WRAPS.items():
            yield f"{outer} of {leaf}", wrap(make())
            for inner in ("struct", "list", "pair", "map"):
                if outer != "plain":
                    yield f"{outer} of {inner} of {leaf}", wrap(WRAPS[inner](make()))


def buffers_of(array: Any) -> bytes:
    """Return all bytes behind an array, also those no value is read from."""
    if isinstance(array, pa.ChunkedArray):
        return b"".join(buffers_of(chunk) for chunk in array.chunks)
    held = b"".join(buffer.to_pybytes() for buffer in array.buffers() if buffer is not None)
    return held + dictionaries_of(array)


def dictionaries_of(array: Any) -> bytes:
    if isinstance(array, pa.ExtensionArray):
        return dictionaries_of(array.storage)
    if pa.types.is_dictionary(array.type):
        return buffers_of(array.dictionary)
    if pa.types.is_union(array.type):
        return b"".join(dictionaries_of(array.field(number)) for number in range(array.type.num_fields))
    return b"".join(dictionaries_of(child) for child in children(array))


def test_every_nesting_keeps_its_values_and_nothing_else() -> None:
    tried = 0
    for name, array in nested():
        for given in (array, *([under(array)] if "view" not in name and not name.startswith("list view") else [])):
            for kept in (shown_of(given), *(given.slice(row, 1) for row in range(ROWS) if SHOWN[row])):
                wanted = kept.to_pylist()
                hidden = any(mark and shown for mark, shown in zip(EMPTY, SHOWN, strict=True)) and given is array
                made = compact(kept)
                made.validate(full=True)
                assert made.type == kept.type, name
                assert made.to_pylist() == wanted, name
                tried += 1
                if not hidden:  # otherwise the canaries of empty rows are values that are shown
                    assert not CANARY.search(buffers_of(made)), name
                else:
                    gone = {f"canary-{row:02}".encode() for row in range(ROWS) if not SHOWN[row]}
                    assert not [mark for mark in gone if mark in buffers_of(made)], name
    assert tried > 500


def test_numbers_of_every_width_are_zero_under_nulls() -> None:
    whole = (pa.int8(), pa.uint16(), pa.int32(), pa.int64(), pa.bool_(), pa.decimal128(9, 2))
    times = (pa.date64(), pa.time32("s"), pa.timestamp("us"), pa.duration("ns"))
    for kind in (*whole, *times, pa.float16(), pa.float32(), pa.float64()):
        raw = pa.py_buffer(b"\xff" * 16 * 12)
        given = pa.Array.from_buffers(kind, 12, [pa.py_buffer(b"\x00\x00"), raw], offset=0)
        for part in (given, given.slice(3, 5)):
            made = compact(part)
            assert made.null_count == len(part)
            assert set(buffers_of(made)) <= {0}, kind
    spare = compact(pa.array([True] * 16).slice(0, 3))
    assert buffers_of(spare) == b"\x07"


def test_unions_and_extensions_keep_their_values_and_nothing_else() -> None:
    codes = pa.array([row % 2 for row in range(ROWS)], pa.int8())
    members = [words(), words().dictionary_encode()]
    sparse = pa.UnionArray.from_sparse(codes, members, ["a", "b"])
    dense = pa.UnionArray.from_dense(codes, pa.array(range(ROWS), pa.int32()), members, ["a", "b"])
    outer = [pa.StructArray.from_arrays([given], ["u"]) for given in (sparse, dense)]
    json = pa.ExtensionArray.from_storage(pa.json_(), words())
    ran = pc.run_end_encode(words())
    gone = [f"canary-{row:02}".encode() for row in range(ROWS) if not SHOWN[row]]
    for given in (sparse, dense, *outer, json):
        for kept in (shown_of(given), given.slice(1, 1), given.slice(7, 1)):
            made = compact(kept)
            made.validate(full=True)
            assert made.type == kept.type
            assert made.to_pylist() == kept.to_pylist()
            assert not [mark for mark in gone if mark in buffers_of(made)], given.type
    made = compact(ran.slice(1, 1))
    assert made.to_pylist() == ["shown-01"]
    assert b"canary" not in buffers_of(made)
    hidden = pa.StructArray.from_arrays([dense], ["u"], mask=pa.array([not shown for shown in SHOWN]))
    made = compact(hidden)
    assert made.to_pylist() == hidden.to_pylist()
    assert not [mark for mark in gone if mark in buffers_of(made)]


def test_members_of_a_sparse_union_hold_nothing_in_rows_of_the_other_member() -> None:
    codes = pa.array(np.array([0, 1, 0, 1], np.int8))
    members = [
        pa.array(["one", "canary-01", "two", "canary-03"]),
        pa.array(["canary-00", "three", "canary-02", "four"]),
    ]
    made = compact(pa.UnionArray.from_sparse(codes, members, ["a", "b"]))
    assert made.to_pylist() == ["one", "three", "two", "four"]
    assert not CANARY.search(buffers_of(made))
    assert b"three" in buffers_of(made)


def test_empty_columns_of_every_kind_stay_empty() -> None:
    for name, array in nested():
        made = compact(array.slice(4, 0))
        assert made.type == array.type, name
        assert made.to_pylist() == []
        assert not CANARY.search(buffers_of(made)), name


def table() -> pa.Table:
    """Return a table whose rows that are not shown are bad, with canaries in every nesting."""
    lat = pa.array([41.1 if shown else 99.0 for shown in SHOWN])
    kept = {name: under(array) for name, array in nested() if "view" not in name}
    return pa.table({"lat": lat, "lon": pa.array([-8.6] * ROWS), **kept})


@pytest.mark.parametrize("suffix", [".feather", ".parquet"])
def test_files_hold_no_byte_of_dropped_rows_and_of_values_under_nulls(tmp_path: Path, suffix: str) -> None:
    import pyarrow.feather as feather

    given = table()
    if suffix == ".parquet":  # Arrow writes no dictionaries of some nestings, and no map of them
        given = given.select([name for name in given.schema.names if "fixed bytes" not in name and "pair" not in name])
    source = tmp_path / "in.arrow"
    plain = given.select([name for name in given.schema.names if "dictionary" not in name])
    dictionaries = given.select([name for name in given.schema.names if "dictionary" in name or name in ("lat", "lon")])
    for part in (plain, dictionaries):
        with pa.ipc.new_file(str(source), part.schema) as writer:
            writer.write_table(part)
        out = tmp_path / f"out{suffix}"
        perturb(source, NOISE, to=out, on_error="drop", force=True, overwrite=True)
        if suffix == ".feather":
            found = feather.read_table(str(out), memory_map=False)
            held = b"".join(buffers_of(column) for column in found.columns)
        else:
            found = pq.read_table(out)
            pq.write_table(found, tmp_path / "plain.parquet", compression="none")
            held = b"".join(buffers_of(column) for column in found.columns)
            footer = pq.read_metadata(out)
            held += str(footer.to_dict()).encode()
        assert found.num_rows == sum(SHOWN)
        assert b"shown-01" in held
        assert not CANARY.search(held)
        for name in part.schema.names[2:]:
            kept = part.column(name).filter(pa.array(SHOWN)).to_pylist()
            assert str(found.column(name).to_pylist()) == str(kept), name


def test_parquet_dictionary_pages_hold_the_words_of_their_rows_only(tmp_path: Path) -> None:
    made = pa.table({
        "lat": [41.1 if shown else 99.0 for shown in SHOWN], "lon": [-8.6] * ROWS, "word": words().dictionary_encode(),
        "deep": WRAPS["struct"](WRAPS["list"](words().dictionary_encode())),
    })  # fmt: skip
    pq.write_table(made, tmp_path / "in.parquet", compression="none", use_dictionary=True)
    for shown in SHOWN:
        assert shown in (True, False)
    perturb(tmp_path / "in.parquet", NOISE, to=tmp_path / "out.parquet", on_error="drop", force=True)
    raw = (tmp_path / "out.parquet").read_bytes()
    assert b"shown-01" in raw
    assert not [row for row in range(ROWS) if not SHOWN[row] and f"canary-{row:02}".encode() in raw]


def test_frames_that_come_back_hold_no_byte_of_dropped_rows() -> None:
    given = table()
    made = mdp.perturb(given, NOISE, on_error="drop", force=True)
    assert made.num_rows == sum(SHOWN)
    assert not CANARY.search(b"".join(buffers_of(column) for column in made.columns))
    cut = mdp.perturb(given.slice(1, 1), NOISE, force=True)
    assert not CANARY.search(b"".join(buffers_of(column) for column in cut.columns))
