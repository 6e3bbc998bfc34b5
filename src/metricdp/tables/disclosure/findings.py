"""Which columns that stay give the secret away, by their names, and by their values on a sample of the rows.

What is found depends on the secrets: it is for the owner of the table. It names columns and kinds, never values.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metricdp.arrays import Floats, Integers
from metricdp.errors import InvalidInput
from metricdp.tables.disclosure.shapes import (
    FEWEST,
    Leaf,
    SecretPlaces,
    agreement,
    bytes_kind,
    fineness,
    leaves,
    text_kind,
)
from metricdp.tables.disclosure.trim import coarsen_column
from metricdp.tables.options import CoarseningStep
from metricdp.tables.values import codes_of, decode, is_binary, take_rows, whole

SAMPLED = 20_000  # rows, in blocks
BLOCKS = 16
NUMBERS_INSPECTED = 2_000_000  # of rows that are wider than a hundred numbers fewer are looked at
FEWEST_ROWS = 1_000
BLOCK_BYTES = 4 << 20  # of a block of long rows fewer are kept


def rows_sampled(width: int) -> int:
    """Return how many rows are looked at, where a secret has `width` numbers."""
    return min(SAMPLED, max(FEWEST_ROWS, NUMBERS_INSPECTED // width))


def sample_rows(rows: int, most: int = SAMPLED) -> Integers:
    """Return which rows of a table are looked at."""
    if rows <= most:
        return np.arange(rows)
    size = most // BLOCKS
    starts = np.linspace(0, rows - size, BLOCKS).astype(np.int64)
    return np.asarray((starts[:, None] + np.arange(size)).ravel())


def sample_of(table: Any, most: int = SAMPLED) -> Any:
    """Return the rows of a table that are looked at."""
    if table.num_rows <= most:
        return table
    size = most // BLOCKS
    whole = table if isinstance(table, pa.Table) else pa.Table.from_batches([table])
    return pa.concat_tables([whole.slice(int(start), size) for start in sample_rows(table.num_rows, most)[::size]])


class Sample:
    """The rows that are looked at of a table that comes in batches, whose length is known at its end.

    It keeps every second block of those it had whenever there are too many: memory does not grow with the table.
    """

    def __init__(self, most: int = SAMPLED) -> None:
        self._size = most // BLOCKS
        self._blocks: dict[int, list[pa.RecordBatch]] = {}
        self._stride = 1
        self.rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Take in the next rows."""
        start, end = self.rows, self.rows + batch.num_rows
        self.rows = end
        for block in range(start // self._size, -(-end // self._size)):
            if block % self._stride == 0:
                low, high = max(start, block * self._size), min(end, (block + 1) * self._size)
                self._blocks.setdefault(block, []).append(_copy_rows(batch.slice(low - start, high - low)))
        while len(self._blocks) > 2 * BLOCKS:
            self._stride *= 2
            self._blocks = {block: held for block, held in self._blocks.items() if block % self._stride == 0}

    def table(self, schema: pa.Schema) -> pa.Table:
        """Return the rows that are looked at."""
        blocks = list(self._blocks.values())
        chosen = np.unique(np.linspace(0, len(blocks) - 1, min(BLOCKS, len(blocks))).astype(int))
        return pa.Table.from_batches([part for number in chosen for part in blocks[number]], schema)


def _copy_rows(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows that keep no others in memory; few of them where they are long."""
    fitting = max(1, int(BLOCK_BYTES * rows.num_rows / max(1, rows.nbytes)))
    is_copy: pa.RecordBatch = take_rows(rows, pa.array(np.arange(min(fitting, rows.num_rows))))
    return is_copy


ColumnKind = Literal["place", "time", "person", "motion"]

LONG = 6  # words of so many letters are also found inside longer ones: `startlatitude`, `homeaddress`


def kind_by_name(name: str) -> ColumnKind | None:
    """Return what a column is about by its name, or None where the name says nothing."""
    words = words_of(name)
    if not words or words[-1] in column_words("counts"):
        return None
    known = _kinds_by_word()
    joined = ["".join(pair) for pair in pairwise(words)] + ["".join(words)]
    if {*words, *joined} & (column_words("births") | column_words("trip_ids")) or set(words) <= column_words("row_ids"):
        return "person"
    found = {known[word] for word in (*words, *joined) if word in known}
    found |= {kind for word in words if len(word) > LONG for long, kind in _long_words() if long in word}
    if "time" in found and "place" in found and known.get(words[-1]) == "time":
        return "time"
    return next((kind for kind in ("place", "time", "person", "motion") if kind in found), None)


def words_of(name: str) -> list[str]:
    """Cut a name into words of small letters without accents; numbers at the end go, unless they belong (h3, ipv4)."""
    folded = name.replace("ß", "ss").replace("ä", "ae").replace("ö", "oe").replace("ü", "ue")
    folded = folded.replace("Ä", "Ae").replace("Ö", "Oe").replace("Ü", "Ue").replace("ł", "l").replace("ø", "o")
    plain = "".join(c for c in unicodedata.normalize("NFKD", folded) if not unicodedata.combining(c))
    parted = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", plain)
    parted = re.sub(r"([A-Z])([A-Z][a-z])", r"\1 \2", parted)
    words = re.findall(r"\w+", parted.replace("_", " ").lower())
    return [known for word in words for known in _without_number(word) if known]


def _without_number(word: str) -> list[str]:
    if word in _kinds_by_word() or word.isdigit():
        return [word] if not word.isdigit() else []
    return re.findall(r"[^\W\d]+|(?<=[a-z])\d(?=[a-z]\w*)", word) if re.search(r"\d", word) else [word]


@cache
def column_words(group: str) -> frozenset[str]:
    """Return words that the names of columns consist of, in many languages; `row_ids` name a person only alone."""
    lists = json.loads(files(__package__).joinpath("column_words.json").read_text(encoding="utf-8"))
    return frozenset(" ".join(lists[group]).split())


@cache
def _kinds_by_word() -> dict[str, ColumnKind]:
    kinds: tuple[ColumnKind, ...] = ("motion", "person", "time", "place")
    return {word: kind for kind in kinds for word in column_words(kind)}


@cache
def _long_words() -> tuple[tuple[str, ColumnKind], ...]:
    unclear = column_words("unclear")
    return tuple((word, kind) for word, kind in _kinds_by_word().items() if len(word) >= LONG and word not in unclear)


SAMPLED_FROM = 100_000  # rows at the beginning of a table, whose secrets are checked before anything is drawn
FEWEST_LINKED = 10  # different values: fewer may be the parts of anything
STANDS, NARROWS, FOLLOWS = 0.98, 0.5, 0.8  # shares of the variance, see `numbers`

HOUR = CoarseningStep.of("1h")
Evidence = Literal["value", "name"]


@dataclass(frozen=True)
class ColumnFinding:
    """A column that may give the secret away: which, in what way, and whether its values or its name say so."""

    column: str
    kind: str
    evidence: Evidence
    is_time: bool = False  # and can be coarsened to an hour: it is harmless where many others are in the same


Findings = tuple[ColumnFinding, ...]


@dataclass(frozen=True, repr=False, eq=False)
class SecretSample:
    """What is protected, as far as a look needs it: coordinates or words, one row each.

    `places` are numbers (geographic ones are latitude, longitude), `words` codes; one of the two is None.
    """

    columns: tuple[str, ...]
    places: Floats | None
    words: Integers | None
    geographic: bool


def inspected_rows(width: int) -> int:
    """Return how many rows at the beginning of a table are checked, where a secret has `width` numbers."""
    return min(SAMPLED_FROM, max(FEWEST_ROWS, NUMBERS_INSPECTED // width))


def find_disclosures(
    table: Any, secret: SecretSample, *, person: str | None = None, kept: Sequence[str] = ()
) -> Findings:
    """Return what is found in the columns of a sample that are neither protected nor looked at already (`kept`).

    Args:
        table: The rows of `sample_of`, with the columns that will leave.
        secret: The protected columns of the same rows.
        person: The column that says whose row it is.
        kept: Columns that somebody has looked at.
    """
    without = frozenset((*secret.columns, *kept, *(() if person is None else (person,))))
    people = None if person is None or person not in table.schema.names else _codes(whole(table.column(person)))
    found = [] if person in (None, *secret.columns, *kept) else _times_of_persons(table, person)
    for leaf in leaves(table, without=without):
        kind, evidence = _value_kind(leaf, secret, people), "value"
        if kind is None:
            kind, evidence = _name_kind(leaf), "name"
        if kind is not None:
            is_time = kind in ("seconds", "minutes", "time") and _becomes_hours(leaf)
            found.append(ColumnFinding(leaf.path, kind, "value" if evidence == "value" else "name", is_time))
    return tuple(found)


def _times_of_persons(table: Any, person: str | None) -> list[ColumnFinding]:
    """Return what is found in the column of persons: a time there is told as in any other column."""
    others = frozenset(name for name in table.schema.names if name != person)
    kinds = [(leaf, fineness(leaf.array)) for leaf in leaves(table, without=others) if not _is_empty(leaf)]
    return [
        ColumnFinding(leaf.path, fine, "value", _becomes_hours(leaf))
        for leaf, fine in kinds
        if fine in ("seconds", "minutes")
    ]


def _is_empty(leaf: Leaf) -> bool:
    return bool(pa.types.is_nested(leaf.array.type)) or len(leaf.array) == leaf.array.null_count


def _becomes_hours(leaf: Leaf) -> bool:
    """Tell whether a column can be coarsened to hours: `hour` may hold 0 to 23, and no name leads into a list."""
    try:
        coarsen_column(leaf.array, leaf.path, HOUR)
    except (InvalidInput, pa.ArrowException):
        return False
    return "[" not in leaf.path


def _name_kind(leaf: Leaf) -> str | None:
    kind = kind_by_name(leaf.path) or kind_by_name(leaf.path.rpartition(".")[2])
    return None if kind == "time" and fineness(leaf.array) == "coarse" else kind


def _value_kind(leaf: Leaf, secret: SecretSample, people: Integers | None) -> str | None:
    """Return what the values of a column show, the worst first; None where they show nothing."""
    array = leaf.array
    if _is_empty(leaf):
        return None
    if is_binary(array.type):
        shape = bytes_kind(array, secret.places if secret.geographic else None)
        if shape is not None:
            return shape
    numbers = leaf.numbers()
    if numbers is not None and secret.places is not None and SecretPlaces(secret.places).is_copy(numbers):
        return "copy"
    if numbers is None and leaf.is_text:
        shape = text_kind(array, secret.places if secret.geographic else None)
        if shape is not None:
            return shape
    codes = _codes(array)
    relation = _relation(codes, numbers, secret)
    fine = fineness(array)
    if relation == "narrows" and fine is not None:
        relation = None  # a table of places says where somebody was at a time: the time itself is the finding
    if relation is not None:
        return relation
    if fine in ("seconds", "minutes"):
        return fine
    return None if fine == "coarse" else _identifier_kind(codes, numbers, people)


def _relation(codes: Integers, numbers: Floats | None, secret: SecretSample) -> str | None:
    """Return how the column and the secret hang together."""
    if secret.words is not None:
        both = (codes >= 0) & (secret.words >= 0)
        forth, back = agreement(codes[both], secret.words[both]), agreement(secret.words[both], codes[both])
        return "stands" if forth.above(STANDS) else "narrows" if forth.above(NARROWS) or back.above(FOLLOWS) else None
    if secret.places is None:
        return None
    places = SecretPlaces(secret.places)
    share = places.explained_by_column(codes, continuous=False)
    if share.above(STANDS):
        return "stands"
    if share.above(NARROWS):
        return "narrows"
    if numbers is not None and not _counts_the_rows(numbers):
        filled = np.where(np.isfinite(numbers), codes, -1)
        if places.explained_by_column(filled, continuous=True).above(NARROWS):
            return "narrows"
    return "follows" if places.explained_by_place(codes, numbers=numbers).above(FOLLOWS) else None


def _counts_the_rows(numbers: Floats) -> bool:
    """Tell whether a column holds the numbers of the rows: then it tells no more than their order does."""
    steps = np.diff(numbers[np.isfinite(numbers)])
    return bool(len(steps) and (np.mean(steps == 1.0) > 0.9 or np.mean(steps == -1.0) > 0.9))


def _identifier_kind(codes: Integers, numbers: Floats | None, people: Integers | None) -> str | None:
    """Return whether values name a person or a row."""
    filled = codes >= 0
    rows, different = int(filled.sum()), int(codes.max(initial=-1)) + 1
    if people is not None and different > 1:
        both = filled & (people >= 0)
        pairs = len(np.unique(np.column_stack([codes[both], people[both]]), axis=0))
        if pairs == len(np.unique(people[both])) == len(np.unique(codes[both])) and pairs > 1:
            return "same_person"
    whole = np.zeros(1) if numbers is None else numbers[filled]
    if not np.array_equal(whole, np.rint(whole)):  # measured numbers hardly repeat, and name nobody
        return None
    if people is None and _links(codes[filled], different):
        return "links"
    if rows < FEWEST or different < 0.98 * rows:
        return None
    return None if numbers is not None and _counts_the_rows(whole) else "unique"


def _links(codes: Integers, different: int) -> bool:
    """Tell whether rows of one value stand together, once: as those of a person or a trip do."""
    runs = int(np.count_nonzero(np.diff(codes))) + 1
    return different >= FEWEST_LINKED and runs <= 1.05 * different + BLOCKS and len(codes) >= 3 * different


def _codes(array: pa.Array) -> Integers:
    """Return a number for every value, equal for equal ones and in their order for numbers; -1 where there is none."""
    array = decode(array)
    if pa.types.is_boolean(array.type) or not pa.types.is_primitive(array.type):
        kind = array.type
        if not (pa.types.is_boolean(kind) or pa.types.is_null(kind) or pa.types.is_decimal(kind)):
            array = pc.if_else(pc.greater(pc.binary_length(array), 0), array, pa.scalar(None, array.type))
        return codes_of(array.dictionary_encode())
    filled = array.is_valid().to_numpy(zero_copy_only=False)
    values = np.asarray(array.drop_null().to_numpy(zero_copy_only=False))
    codes = np.full(len(array), -1, dtype=np.int64)
    codes[filled] = np.unique(values, return_inverse=True)[1]
    return codes


ROWS_INSPECTED, LONGEST = 1_000, 20_000  # rows, and characters of a text
PROSE, SENTENCE, MOST_PROSE = re.compile(r"[^\W\d_]{2,}"), 4, 0.5  # cells of so many words, in so many rows, are texts
WORD = re.compile(r"\w{3,}")
MOST, MORE = 0.3, 0.2  # the share of rows whose words stand in the text, and how much above that of other rows' texts


def inspect_texts(table: Any, texts: Sequence[str], *, person: str | None = None, kept: Sequence[str] = ()) -> Findings:
    """Return what is found in the columns of a sample beside protected texts.

    Args:
        table: Rows of a table with the columns that will leave, and the texts as they were read.
        texts: The columns of the texts.
        person: The column that says whose row it is.
        kept: Columns that somebody has looked at.
    """
    secret = SecretSample(tuple(texts), None, None, geographic=False)
    usual = {one.column: one for one in find_disclosures(table, secret, person=person, kept=kept)}
    rows = np.unique(np.linspace(0, table.num_rows - 1, min(ROWS_INSPECTED, table.num_rows)).astype(int))
    some = table.take(pa.array(rows))
    true = [[str(cell) for cell in Leaf(name, name, whole(some.column(name))).array.to_pylist()] for name in texts]
    joined = [" ".join(text[:LONGEST] for text in row).lower() for row in zip(*true, strict=True)]
    row_words, codes = [set(WORD.findall(text)) for text in joined], _text_codes(joined)
    found = [usual[person]] if person in usual else []
    for leaf in leaves(some, without=frozenset((*texts, *kept, *(() if person is None else (person,))))):
        kind = _repeats(leaf, row_words, codes)
        if kind is not None:
            found.append(ColumnFinding(leaf.path, kind, "value"))
        elif leaf.path in usual:
            found.append(usual[leaf.path])
    return tuple(found)


def _repeats(leaf: Leaf, row_words: Sequence[set[str]], texts: Integers) -> str | None:
    if pa.types.is_nested(leaf.array.type) or pa.types.is_binary(leaf.array.type):
        return None
    cells = ["" if cell is None else str(cell)[:LONGEST].lower() for cell in leaf.array.to_pylist()]
    words = [set(WORD.findall(cell)) for cell in cells]
    filled = [row for row, held in enumerate(words) if held]
    if len(filled) >= FEWEST:
        same = np.mean([words[row] <= row_words[row] for row in filled])
        other = np.mean([words[row] <= row_words[filled[number - 1]] for number, row in enumerate(filled)])
        if same >= MOST and same - other >= MORE:
            return "repeats"
    long = [len(PROSE.findall(cell)) >= SENTENCE for cell in cells if cell.strip()]
    if long and np.mean(long) >= MOST_PROSE:
        return "prose"
    return "text" if agreement(_text_codes(cells), texts).above(STANDS) else None


def _text_codes(cells: Sequence[str]) -> Integers:
    place: dict[str, int] = {}
    return np.array([place.setdefault(cell, len(place)) for cell in cells], dtype=np.int64)
