"""One batch of a table: columns in, secrets checked, reports drawn, columns out; and the streams it draws from.

Every path (data frames, files, engines) comes through `protect`: numbers are read without a copy, bad rows are found
before anything is drawn, the mechanism draws once for the whole batch, and the reports go back in the type that came.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metricdp import spaces
from metricdp.arrays import Booleans, Floats, Integers
from metricdp.errors import InvalidInput, OutOfDomain
from metricdp.mechanisms import LimitedNoise, Mechanism
from metricdp.randomness import KeyedSource, Randomness, SystemSource
from metricdp.spaces import Space, exchange_hint
from metricdp.tables.options import OnError
from metricdp.tables.plan import ColumnGroup, TableTask
from metricdp.tables.values import (
    broken_list,
    decode,
    holds_vectors,
    is_text,
    lists_of,
    numbers_of,
    plain,
    plain_type,
    report_kind,
    row_names,
    rows_of,
    texts_in,
    whole,
)

KEY_BYTES = 32


@dataclass(frozen=True)
class Draws:
    """The place of one batch in a job, from which the random stream of that batch is derived.

    Engines retry, speculate and resume. If a batch that was run twice drew twice, its secrets could be released twice;
    if two different batches drew the same stream, their difference would be released without noise. So the stream of a
    batch is ChaCha20 under a key derived (keyed BLAKE2b) from the secret job key and all of

        what is applied      the mechanism's own bytes, the columns, snapping, what becomes of bad rows
        where it is          the partition and the number of the batch in it
        what is in it        the secrets themselves, bad rows included

    The same batch, run again, gives the same reports: nothing is released twice. Anything else gets an independent
    stream: the same secrets in another place, other secrets in the same place (the input changed between two tries), or
    the same secrets under another mechanism or epsilon, where equal noise would let a reader solve for the secret. For
    a reader without the key the stream is as good as fresh randomness, since every content has one label only: the
    reports have the distribution of the mechanism, whatever the secrets are.

    `key` is secret: `repr` never shows it.
    """

    key: bytes
    partition: str
    batch: int
    applied: str
    simulated: bool = False  # the key came from a seed

    def __repr__(self) -> str:
        return f"Draws(partition {self.partition}, batch {self.batch})"

    def piece(self, number: int) -> Draws:
        """Return the place of a piece of the batch, where it is too long to be protected at once."""
        return replace(self, partition=f"{self.partition}, batch {self.batch}", batch=number)

    def source(self, content: Sequence[Any]) -> KeyedSource:
        """Return the stream for secrets with this content."""
        parts = (self.applied, self.partition, str(self.batch), *(fingerprint(part) for part in content))
        # Lengths go with the parts, so that no two lists of parts make one label.
        return KeyedSource(self.key, "".join(f"{len(part)}:{part}," for part in parts))


def is_simulated(draws: Randomness | Draws) -> bool:
    """Tell whether reports drawn so are for simulations: from a generator, or a source that is not cryptographic."""
    if isinstance(draws, Draws):
        return draws.simulated
    return not (draws is None or isinstance(draws, SystemSource | KeyedSource))


def fingerprint(content: Any) -> str:
    """Return a digest of secrets as they were read: numbers as doubles, words and texts as bytes."""
    digest = hashlib.blake2b(digest_size=32)
    if isinstance(content, np.ndarray):
        rows = np.ascontiguousarray(content, dtype=np.float64)
        digest.update(f"numbers {rows.shape}".encode())
        digest.update(memoryview(rows).cast("B"))  # type: ignore[arg-type]
    else:
        lengths = pc.fill_null(pc.binary_length(content), -1).to_numpy(zero_copy_only=False)
        plain = content.fill_null("") if content.null_count else content
        large = pa.types.is_large_string(content.type)
        kind: Any = np.int64 if large else np.int32
        offsets = np.frombuffer(plain.buffers()[1], dtype=kind)[plain.offset : plain.offset + len(plain) + 1]
        digest.update(f"{'texts' if large else 'words'} {len(content)}".encode())
        digest.update(np.ascontiguousarray(lengths, dtype=kind).tobytes())
        if len(plain) and plain.buffers()[2] is not None:
            digest.update(memoryview(plain.buffers()[2])[int(offsets[0]) : int(offsets[-1])])
    return digest.hexdigest()


SIMULATED_KEY = "metricdp.simulated"
SIMULATED_COLUMN = "metricdp_simulated"  # in CSV files and Polars frames, which have no metadata
SIMULATED = "drawn from a seeded generator: for tests and simulations, not for release"


def mark_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema with the mark."""
    return schema.with_metadata({**(schema.metadata or {}), SIMULATED_KEY.encode(): SIMULATED.encode()})


def mark_table(table: Any) -> Any:
    """Return a record batch or table with the mark."""
    return table.replace_schema_metadata(mark_schema(table.schema).metadata)


def is_marked(schema: pa.Schema) -> bool:
    """Tell whether a schema carries the mark."""
    return SIMULATED_KEY.encode() in (schema.metadata or {})


SHOWN_ITEMS = 6
JOINT = "\x1f"  # between the columns of words of several columns


@dataclass(frozen=True, repr=False)
class Secrets:
    """The secrets of one batch: which rows are legal, codes or coordinates of all rows, and what was read.

    Rows that are not legal hold a placeholder in `values`. `content` is what the secrets were read from, in a form that
    does not depend on how the engine stores it: it binds keyed noise to the data (see `draws`).
    """

    space: Space
    good: Booleans
    values: Any
    content: Any

    def of(self, rows: Booleans | None) -> Any:
        """Return the secrets of the chosen rows (all of them for None), marked as checked where they are coordinates.

        Without chosen rows all must be good.
        """
        return mark_checked(self.values if rows is None else self.values[rows], self.space)


def mark_checked(values: Any, space: Space) -> Any:
    """Return secrets that a space found legal, marked so where they are coordinates."""
    return values if space.size is not None or space.is_text else spaces.mark_checked(np.asarray(values), space)


def secrets_of(arrays: Sequence[pa.Array], group: ColumnGroup, first_row: int = 0, table: str = "") -> Secrets:
    """Read the secrets of one group from its columns; where something is wrong with all of them, with table and row."""
    space = group.mechanism.inputs
    if space.is_text and space.size is None:
        content = texts_in(arrays[0], group.columns[0], first_row, table)
        return Secrets(space, *space.admit(content), content)
    if space.is_text:
        return _words(arrays, group)
    rows = rows_in(arrays, group)
    good, values = space.admit(rows, snap=group.snap)
    if isinstance(group.mechanism, LimitedNoise):  # noise has limits of its own
        good = _takes_noise(group.mechanism, good, np.asarray(values))
    return Secrets(space, good, values, rows)


def _takes_noise(noise: LimitedNoise, good: Booleans, rows: Floats) -> Booleans:
    """Return which of the good rows noise can be added to."""
    if good.all():
        return noise.holds(rows)
    left = good.copy()
    left[good] = noise.holds(rows[good])
    return left


def rows_in(arrays: Sequence[pa.Array], group: ColumnGroup) -> Floats:
    """Return the numbers of a group, one row each, NaN where there is none."""
    if group.packed:
        return rows_of(arrays[0], group.mechanism.inputs.width, group.columns[0])
    rows = np.empty((len(arrays[0]), len(arrays)))
    for column, (array, name) in enumerate(zip(arrays, group.columns, strict=True)):
        rows[:, column] = numbers_of(array, name)
    return rows


def _words(arrays: Sequence[pa.Array], group: ColumnGroup) -> Secrets:
    """Read words; every different one is looked up once."""
    text = []
    for array, name in zip(arrays, group.columns, strict=True):
        held = decode(plain(array))
        if not is_text(held.type) and not pa.types.is_null(held.type):
            raise InvalidInput(f"the column {name!r} must hold words, it holds {array.type}.")
        text.append(held.cast(pa.string()))
    joined = text[0] if len(text) == 1 else pc.binary_join_element_wise(*text, JOINT)
    different = joined.dictionary_encode()
    rows = [tuple(word.split(JOINT)) if len(text) > 1 else (word,) for word in different.dictionary.to_pylist()]
    legal, codes = group.mechanism.inputs.admit(rows)
    places = different.indices.fill_null(len(rows)).to_numpy(zero_copy_only=False)
    good = np.append(legal, False)[places]
    return Secrets(group.mechanism.inputs, good, np.append(codes, 0)[places], joined)


def broken_rule(arrays: Sequence[pa.Array], row: int, group: ColumnGroup) -> str:
    """Say which rule a row breaks, without its values."""
    space = group.mechanism.inputs
    if space.is_text:
        missing = [name for array, name in zip(arrays, group.columns, strict=True) if not array[row].is_valid]
        return f"{' and '.join(missing)} hold{'s' * (len(missing) == 1)} no word" if missing else space.rule()
    values = _row(arrays, row, group)
    if group.packed:
        broken = broken_list(arrays[0], row, group.mechanism.inputs.width, group.columns[0])
        return broken or f"in {group.columns[0]}, {_rule(group, values)}"
    missing = [name for value, name in zip(values, group.columns, strict=True) if not np.isfinite(value)]
    if missing:
        return f"{' and '.join(missing)} hold{'s' * (len(missing) == 1)} no {group.reads}"
    hint = exchange_hint(space.ground, values[None])
    if not hint and space.size is not None:
        hint = ". Raise the snap distance" if group.snap else ". Ask for snapping (snap=, --snap; its slack is stated)"
    return f"in {', '.join(group.columns)}, {_rule(group, values)}{hint}"


def rules_of(group: ColumnGroup) -> list[str]:
    """Return the rules that rows of a group must keep: those of the secrets, and of the noise where it has any."""
    own = [group.mechanism.limit] if isinstance(group.mechanism, LimitedNoise) and group.mechanism.limit else []
    return [group.mechanism.inputs.rule(snap=group.snap), *own]


def _rule(group: ColumnGroup, values: Floats) -> str:
    """Say which rule numbers break: that of the secrets, or that of the noise."""
    space = group.mechanism.inputs
    if isinstance(group.mechanism, LimitedNoise) and space.legal(values[None])[0]:
        return group.mechanism.limit
    return space.rule(snap=group.snap)


def row_text(arrays: Sequence[pa.Array], row: int, group: ColumnGroup) -> str:
    """Show the values of a row and what would be legal: only for a caller who asked for it."""
    space = group.mechanism.inputs
    shown = [_cell_text(array[row]) for array in arrays]
    came = ", ".join(f"{name} is {text}" for name, text in zip(group.columns, shown, strict=True))
    if space.is_text:
        words = [array[row].as_py() for array in arrays]
        return came if None in words else f"{came}; {space.why(words)}"
    values = _row(arrays, row, group)
    return came if not np.isfinite(values).all() or space.legal(values[None])[0] else f"{came}; {space.why(values)}"


def _row(arrays: Sequence[pa.Array], row: int, group: ColumnGroup) -> Floats:
    return np.asarray(rows_in([array.slice(row, 1) for array in arrays], group)[0])


def _cell_text(scalar: Any) -> str:
    value = scalar.as_py()
    if value is None or value == "":
        return "nothing"
    if isinstance(value, list):
        return f"a list of {len(value)} that begins with {', '.join(str(item) for item in value[:SHOWN_ITEMS])}"
    return repr(value) if isinstance(value, str) else f"{value:.9g}" if isinstance(value, float) else str(value)


PIECE = 4 << 20  # bytes of text that are cut into words at once


@dataclass(frozen=True, repr=False, eq=False)
class Portion:
    """Which rows of one batch are reported (None: all), and by which of the tasks (None: by the one there is)."""

    kept: Booleans | None = None
    number: Integers | None = None
    tasks: tuple[TableTask, ...] = ()

    def slice(self, start: int, stop: int) -> Portion:
        """Return the same for some of the rows."""
        kept = None if self.kept is None else self.kept[start:stop]
        return Portion(kept, None if self.number is None else self.number[start:stop], self.tasks)


ALL = Portion()


@dataclass(frozen=True)
class BatchReports:
    """The reports of one batch, one array per report column, and the numbers of the rows that were bad."""

    columns: tuple[pa.Array, ...]
    bad: Integers
    left_out: Integers | None = None  # rows that are not reported, whatever they hold
    contents: tuple[Any, ...] = ()  # what the secrets of every group were read from
    radii: tuple[Floats, ...] = ()  # the accuracy of every row, where rows have different ones
    empty: int = 0  # of texts: cells without one
    masked: int = 0  # and masks that stand in the reports

    def kept(self, rows: int) -> pa.Array:
        """Return the mask of the rows that were good."""
        return _mask_without(self.bad, rows)

    def output_mask(self, rows: int, on_error: OnError) -> pa.Array | None:
        """Return the mask of the rows that are in the output; None where all are."""
        gone = [self.bad] if on_error == "drop" and self.bad.size else []
        gone += [] if self.left_out is None else [self.left_out]
        return _mask_without(np.concatenate(gone), rows) if gone else None


def _mask_without(gone: Integers, rows: int) -> pa.Array:
    """Return a mask of all rows that is false where they are gone."""
    mask = np.ones(rows, dtype=bool)
    mask[gone] = False
    return pa.array(mask)


def secret_columns(batch: Any, task: TableTask | ColumnGroup) -> list[pa.Array]:
    """Return the columns of the secret."""
    return [whole(batch.column(name)) for name in task.columns]


def report_fields(schema: pa.Schema, task: TableTask) -> list[pa.Field]:
    """Return the fields of the report columns: those of the secret where they stay, with a type that holds reports."""
    fields = []
    for group in task.groups:
        for name in group.reports:
            if name in group.columns:
                field = schema.field(name)
                nullable = field.nullable or task.on_error == "null"
                fields.append(field.with_type(report_type(field.type, group)).with_nullable(nullable))
            else:
                fields.append(pa.field(name, _own_type(group)))
    return fields


def report_type(given: pa.DataType, group: ColumnGroup) -> pa.DataType:
    """Return the type of reports for a column of the given type: the same one where it can hold them."""
    outputs = group.mechanism.outputs
    if outputs.is_text:  # texts hardly repeat: they get no dictionary
        return given.value_type if outputs.size is None and pa.types.is_dictionary(given) else given
    if group.packed:
        if not holds_vectors(given):
            return pa.list_(pa.float64())  # nothing but nulls, or it is refused when it is read
        return report_kind(given, outputs.width, _number_type(plain_type(given).value_type, outputs))
    return _number_type(given, outputs)


def _number_type(given: pa.DataType, outputs: Space) -> pa.DataType:
    """Return the type of numbers of a report."""
    if pa.types.is_float32(given) or pa.types.is_float64(given):
        return given
    if pa.types.is_integer(given) and outputs.size is not None:
        values = np.asarray(outputs.decode(np.arange(outputs.size)), dtype=np.float64)
        unsigned = pa.types.is_unsigned_integer(given)
        bits = given.bit_width - (0 if unsigned else 1)
        whole = bool(np.all(values == np.rint(values)))
        if whole and values.min() >= (0 if unsigned else -(2.0**bits)) and values.max() < 2.0**bits:
            return given
    return pa.float64()


def _own_type(group: ColumnGroup) -> pa.DataType:
    return pa.string() if group.mechanism.outputs.is_text else pa.float64()


def protect(
    arrays: Sequence[pa.Array],
    task: TableTask,
    *,
    rng: Randomness | Draws = None,
    first_row: int = 0,
    portion: Portion = ALL,
    table: str = "",
) -> BatchReports:
    """Return one report per row, or raise an error that names the bad rows.

    `rng` may be `Draws`, which derive the stream of this batch from a job key, its place and its content. `portion`
    says which rows are reported, and at which epsilon each. Long texts are protected piece by piece.
    """
    bounds = _bounds(arrays, task)
    if len(bounds) <= 2:
        return _protect(arrays, task, rng, first_row, portion, table)
    parts = []
    for number, (start, stop) in enumerate(pairwise(bounds)):
        own = rng.piece(number) if isinstance(rng, Draws) else rng
        piece = [array.slice(start, stop - start) for array in arrays]
        parts.append(_protect(piece, task, own, first_row + start, portion.slice(start, stop), table))
    left_out = None if portion.kept is None else np.flatnonzero(~portion.kept)
    return BatchReports(
        tuple(pa.concat_arrays(columns) for columns in zip(*(part.columns for part in parts), strict=True)),
        np.concatenate([start + part.bad for start, part in zip(bounds, parts, strict=False)]),
        left_out,
        parts[0].contents,
        empty=sum(part.empty for part in parts),
        masked=sum(part.masked for part in parts),
    )


def pieces(batch: Any, task: TableTask) -> Iterator[Any]:
    """Yield a batch in pieces that are protected at once: at most PIECE bytes of texts, whose words then fit in memory.

    Where the cuts are depends on the texts alone, so that a task that is run again draws from the same streams.
    """
    bounds = [] if task.texts is None else _bounds(secret_columns(batch, task), task)
    if len(bounds) <= 2:
        yield batch
    else:
        yield from (batch.slice(start, stop - start) for start, stop in pairwise(bounds))


def _bounds(arrays: Sequence[pa.Array], task: TableTask) -> list[int]:
    """Return where a batch is cut: as many rows as there is room for, and one at least."""
    rows = len(arrays[0])
    if task.texts is None:
        return [0, rows]
    before, bounds = np.concatenate([[0], np.cumsum(sum(map(_lengths, arrays)))]), [0]
    while bounds[-1] < rows:
        room = before[bounds[-1]] + PIECE
        bounds.append(max(bounds[-1] + 1, int(np.searchsorted(before, room, side="right")) - 1))
    return bounds


def _lengths(texts: pa.Array) -> Any:
    """Return how many bytes every text has."""
    if pa.types.is_dictionary(texts.type):
        lengths = _lengths(texts.dictionary)
        return np.append(lengths, 0)[texts.indices.fill_null(len(lengths)).to_numpy(zero_copy_only=False)]
    return pc.fill_null(pc.binary_length(plain(texts)), 0).to_numpy(zero_copy_only=False)


def _protect(
    arrays: Sequence[pa.Array], task: TableTask, rng: Randomness | Draws, first_row: int, portion: Portion, table: str
) -> BatchReports:
    left, parts = iter(arrays), []
    for group in task.groups:
        own = list(islice(left, len(group.columns)))
        parts.append((group, own, secrets_of(own, group, first_row, table)))
    good: Booleans = np.logical_and.reduce([secrets.good for _, _, secrets in parts])
    asked = portion.kept
    bad = np.flatnonzero(~good if asked is None else ~good & asked)
    if bad.size and task.on_error == "fail":
        if task.texts is not None:
            wrong = next((group, secrets) for group, _, secrets in parts if not secrets.good[bad].all())
            raise _text_refusal(*wrong, bad, first_row)
        row = int(bad[0])
        group, own = next((group, own) for group, own, secrets in parts if not secrets.good[row])
        shown = row_text(own, row, group) if task.show_values else ""
        raise _refusal(bad + first_row, broken_rule(own, row, group), shown)
    source = rng.source([secrets.content for _, _, secrets in parts]) if isinstance(rng, Draws) else rng
    wanted = good if asked is None else good & asked
    number = None if portion.number is None else portion.number[wanted]
    columns: list[pa.Array] = []
    for position, (group, own, secrets) in enumerate(parts):
        row_mechanisms = [other.groups[position].mechanism for other in portion.tasks] or [group.mechanism]
        sampler = partial(_sample, row_mechanisms, number, source)
        columns += _reports(group, own, secrets, None if wanted.all() else wanted, sampler)
    contents = tuple(secrets.content for _, _, secrets in parts)
    left_out = None if asked is None else np.flatnonzero(~asked)
    counts = (0, 0)
    if task.texts is not None:
        held = contents if asked is None else [content.filter(pa.array(asked)) for content in contents]
        counts = _counts(held, columns, task.texts.rules.mask)
    return BatchReports(tuple(columns), bad, left_out, contents, _radii(task, portion), *counts)


def _counts(texts: Sequence[pa.Array], reports: Sequence[pa.Array], mask: str) -> tuple[int, int]:
    """Return how many cells hold no text, and how many masks stand in the reports."""
    empty = sum(one.null_count + int(pc.sum(pc.equal(pc.binary_length(one), 0)).as_py() or 0) for one in texts)
    masked = sum(int(pc.sum(pc.count_substring(plain(one), mask)).as_py() or 0) for one in reports)
    return empty, masked


def _radii(task: TableTask, portion: Portion) -> tuple[Floats, ...]:
    """Return the accuracy of every row, where rows are drawn at different epsilons; of rows left out any."""
    if portion.number is None or not task.accuracy:
        return ()
    numbers = np.clip(portion.number, 0, len(portion.tasks) - 1)
    return tuple(
        np.array([other.accuracy[position].radius for other in portion.tasks])[numbers]
        for position in range(len(task.accuracy))
    )


def _sample(mechanisms: Sequence[Mechanism], number: Integers | None, rng: Randomness, values: Any) -> Any:
    """Return a report for every secret, from the only mechanism or from that of its number."""
    if number is None or len(mechanisms) == 1:
        return mechanisms[0].sample(values, rng=rng)
    order = np.argsort(number, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(number[order])) + 1)
    result: Any = None
    for rows in parts:
        own = mark_checked(values[rows], mechanisms[0].inputs)
        drawn = np.asarray(mechanisms[int(number[rows[0]])].sample(own, rng=rng))
        result = np.empty((len(values), *drawn.shape[1:]), drawn.dtype) if result is None else result
        result[rows] = drawn
    return result


def _reports(
    group: ColumnGroup,
    arrays: Sequence[pa.Array],
    secrets: Secrets,
    good: Booleans | None,
    sample: Callable[[Any], Any],
) -> list[pa.Array]:
    """Return the report columns of one group; rows that are not good are null."""
    outputs, values = group.mechanism.outputs, secrets.of(good)
    given = dict(zip(group.columns, (array.type for array in arrays), strict=True))
    kinds = [report_type(given[name], group) if name in given else _own_type(group) for name in group.reports]
    if not len(values):
        return [pa.nulls(len(secrets.good), kind) for kind in kinds]
    drawn = sample(values)
    if group.packed and not outputs.is_text:
        return [lists_of(np.asarray(outputs.decode(drawn), dtype=np.float64), kinds[0], good)]
    made = (_scatter(column, good) for column in _decode_reports(outputs, drawn))
    return [_cast_array(column, kind) for kind, column in zip(kinds, made, strict=True)]


def _decode_reports(outputs: Space, drawn: Any) -> list[pa.Array]:
    """Return the columns behind reports; of a vocabulary only the codes are gone through."""
    if outputs.is_text and outputs.size is not None:
        words, codes = outputs.decode(np.arange(outputs.size)), pa.array(drawn)
        return [pa.array(words[:, column].tolist(), pa.string()).take(codes) for column in range(outputs.width)]
    if outputs.is_text:
        return [pa.array(drawn, pa.large_string())]
    rows = np.asarray(outputs.decode(drawn), dtype=np.float64)
    return [pa.array(np.ascontiguousarray(rows[:, column])) for column in range(outputs.width)]


def _scatter(column: pa.Array, good: Booleans | None) -> pa.Array:
    """Return reports of the good rows in their places, null elsewhere."""
    if good is None:
        return column
    places = np.cumsum(good) - 1
    return column.take(pa.array(places, mask=~good))


def _cast_array(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(wanted):
        return array.dictionary_encode().cast(wanted)
    return array if array.type == wanted else array.cast(wanted, safe=False)


def _sentence(text: str) -> str:
    return text if text.endswith("?") else f"{text.rstrip('.')}."


def _text_refusal(group: ColumnGroup, secrets: Secrets, bad: Integers, first_row: int) -> OutOfDomain:
    """Return the error that names the rows of texts with unknown words, or with too many, and nothing in them."""
    space: Any = secrets.space
    unknown, costly = space.violations(secrets.values)
    rows = bad[unknown[bad] if unknown[bad].any() else costly[bad]] + first_row
    where = f"row {rows[0]}" if rows.size == 1 else f"{rows.size:,} rows so far: {row_names(rows)}"
    kept, column = tuple(int(row) for row in rows[:1000]), group.columns[0]
    if not unknown[bad].any():
        return OutOfDomain(
            f"texts in the column {column!r} cost more than the budget of {space.rules.budget:g}, in {where} (the "
            "first is row 0). Raise the budget, take a smaller epsilon (--lower for long texts alone), or say what "
            "becomes of words that it does not pay for with --beyond mask or drop.",
            rows=kept,
        )
    return OutOfDomain(
        f"words in the column {column!r} are not in the vocabulary of {len(space.codes):,} words, in {where} (the "
        "first is row 0). They are never passed through. Take a larger vocabulary, or say what becomes of them with "
        'Rules(unknown="drop"), "mask" or "spelling" (--unknown on the command line).',
        rows=kept,
    )


def _refusal(rows: Integers, rule: str, shown: str) -> OutOfDomain:
    """Return the error that names bad rows: the rule they break, and what they hold only where that was asked for."""
    more = f" {rows.size} rows are bad so far: {row_names(rows)}." if rows.size > 1 else ""
    return OutOfDomain(
        f"row {rows[0]} (the first is row 0) holds no secret of this mechanism: {_sentence(rule)}{more} "
        + (f"It holds: {_sentence(shown)} " if shown else "")
        + 'Repair them, or leave them out with on_error="drop" or "null" (--on-error on the command line).'
        + ("" if shown else " show_values=True (--show-values) shows the first."),
        rows=tuple(int(row) for row in rows[:1000]),
    )
