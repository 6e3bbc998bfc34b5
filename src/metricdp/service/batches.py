"""Many rows at once: one charge for every person and one stored report for all of them.

Reports are stored person by person, in the order of their names and then of their rows. So rows that come again in
another order get reports of the right person.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metricdp.arrays import Integers
from metricdp.ledger import BatchReceipt
from metricdp.ledger.keys import has_one_order, in_order
from metricdp.service.refusals import Refused
from metricdp.service.served import ORDERED, ORDERED_WORDS, TAG_BYTES, WORDS, Served, Shelf

LONGEST_NAME = 200  # letters of a person, as for single releases
Draw = Callable[[Mapping[Any, int]], bytes]
Books = Callable[["Batch", Draw], BatchReceipt]


@dataclass(frozen=True, eq=False)
class Batch:
    """The rows of a batch: secrets as columns, and who each row is about by number."""

    served: Served
    request: str
    purpose: str | None
    persons: list[str]
    codes: Integers
    secrets: list[pa.Array]
    partial: bool  # rows beyond a person's budget are null; otherwise nothing is released

    @cached_property
    def counts(self) -> Integers:
        """How many rows every person has."""
        return np.bincount(self.codes, minlength=len(self.persons))

    @cached_property
    def _order(self) -> tuple[Integers, Integers]:
        """The rows person by person, and how many rows of the same person lie before each."""
        by_name = np.array(in_order(self.persons), dtype=np.int64)
        ranks = np.empty_like(by_name)
        ranks[by_name] = np.arange(len(by_name))
        order = np.argsort(ranks[self.codes], kind="stable")
        counts = self.counts[by_name]
        return order, np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)

    def stored(self, granted: Integers) -> Integers:
        """Return the rows that are released, the first of every person, in the order of storing."""
        order, before = self._order
        return np.asarray(order[before < granted[self.codes[order]]])


@dataclass(frozen=True, eq=False)
class Settled:
    """The reports of a batch in the order of its rows, and how many rows of every person were released."""

    reports: list[pa.Array]
    granted: Integers
    receipt: BatchReceipt


def coded(column: pa.ChunkedArray) -> tuple[list[str], Integers]:
    """Return the different persons of a column and the number of each row's; the order is that of first occurrence."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind)):
        raise Refused(422, "invalid", "the column of persons must hold text or whole numbers.")
    whole = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if whole.null_count or (pa.types.is_dictionary(whole.type) and whole.dictionary.null_count):
        raise Refused(422, "invalid", "every row needs a person: some have none.")
    if pa.types.is_dictionary(whole.type):  # never written out: one long name may stand for every row
        indices = whole.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        used, codes = np.unique(indices, return_inverse=True)
        names = whole.dictionary.take(pa.array(used))
    else:
        names, codes = whole, np.arange(len(whole))
    named = names.cast(pa.string()).dictionary_encode()  # a dictionary may hold a name twice
    lengths = pc.min_max(pc.utf8_length(named.dictionary)).as_py()
    if lengths["min"] == 0 or (lengths["max"] or 0) > LONGEST_NAME:
        raise Refused(422, "invalid", f"a person must be a name of 1 to {LONGEST_NAME} letters.")
    numbers = named.indices.to_numpy(zero_copy_only=False).astype(np.int64)[codes]
    found, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    order = np.argsort(first)  # by first occurrence
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order))
    return named.dictionary.take(pa.array(found[order])).to_pylist(), ranks[inverse]


def settle(batch: Batch, books: Books, shelf: Shelf) -> Settled:
    """Charge every person once, draw the reports that were granted, and put them into the order of the rows."""
    served = batch.served
    served.check(batch.secrets)

    def draw(granted: Mapping[Any, int]) -> bytes:
        chosen = pa.array(batch.stored(_numbers(batch, granted)))
        drawn = served.drawn([column.take(chosen) for column in batch.secrets])
        return served.encoded(drawn, 0, len(chosen), ordered=True)

    receipt = books(batch, draw)
    granted = _numbers(batch, receipt.granted)
    if shelf.of_report(receipt.report) is not served or np.any(granted > batch.counts):
        raise _other()
    if receipt.report[TAG_BYTES : TAG_BYTES + 1] not in (ORDERED, ORDERED_WORDS) and not has_one_order(batch.persons):
        raise _unordered()
    places = np.full(len(batch.codes), -1)
    released = batch.stored(granted)
    places[released] = np.arange(len(released))
    taken = pa.array(places, mask=places < 0)
    return Settled([part.take(taken) for part in _columns(served, receipt.report, len(released))], granted, receipt)


def _numbers(batch: Batch, granted: Mapping[Any, int]) -> Integers:
    if len(granted) == len(batch.persons):  # in their order
        return np.fromiter(granted.values(), dtype=np.int64, count=len(granted))
    return np.array([granted.get(person, 0) for person in batch.persons], dtype=np.int64)


def _columns(served: Served, report: bytes, rows: int) -> list[pa.Array]:
    """Return stored reports as columns; another number of rows than was asked for belongs to another request."""
    if report[TAG_BYTES : TAG_BYTES + 1] in (WORDS, ORDERED_WORDS):
        found = served.decoded(report)
        if len(found) != rows:
            raise _other()
        kinds = [pa.string() if text else pa.float64() for text in served.told]
        parts = zip(*found, strict=True) if found else [()] * len(kinds)
        return [pa.array(part, kind) for part, kind in zip(parts, kinds, strict=True)]
    values = served.numbers(report[TAG_BYTES + 1 :])
    if len(values) != rows:
        raise _other()
    return [pa.array(np.ascontiguousarray(values[:, column])) for column in range(values.shape[1])]


def _unordered() -> Refused:
    return Refused(
        409, "other_request", "this request was answered by version 0.1.0, which kept reports in the order of names as "
        "they were spelled, and names of this batch have another order in another spelling: nobody can tell whose "
        "report is whose. Use a new request id. Nothing was charged now.",
    )  # fmt: skip


def _other() -> Refused:
    return Refused(
        409, "other_request", "this request id was used for other rows or another mechanism before: use a new one. "
        "Nothing was charged now.",
    )  # fmt: skip
