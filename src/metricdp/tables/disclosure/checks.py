"""A first look at a table before anything is drawn: what would give the secret away, and what looks wrong.

Exchanged columns, (0, 0), constants, radians, scaled numbers, places far from all. Some mistakes show in the names of
the columns and some in the first rows; the others need every row, so what batches show is gathered while they are
protected, in constant memory, and examined before the output appears. All of them are refusals, and `force` takes them
back; what is said are rows, columns and reasons, never values.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metricdp import messages
from metricdp.arrays import Booleans, Floats, Integers
from metricdp.errors import InvalidInput, NotPrivate
from metricdp.metrics import Haversine, Lp, exponent_of
from metricdp.tables.batch import rows_in, secret_columns, secrets_of
from metricdp.tables.disclosure.findings import (
    ColumnFinding,
    Findings,
    SecretSample,
    column_words,
    find_disclosures,
    inspect_texts,
    kind_by_name,
    rows_sampled,
    sample_of,
    words_of,
)
from metricdp.tables.disclosure.shapes import names_place, text_kind
from metricdp.tables.disclosure.trim import trim_table
from metricdp.tables.plan import ColumnGroup, TableTask, available_columns, is_geographic
from metricdp.tables.values import codes_of, decode, drop_views, row_names, whole

PROJECTED = "place of "  # how a group reads places of a named coordinate system
FORCE_HINT = "If it is right, say so with force=True (--force)."
ENOUGH = 100  # rows from which a constant, or a place far away, is odd
BULK = 0.99  # of the rows lie together, where a few others are far away
FAR = 3.0  # times as far away as the others lie apart, and so many degrees
TAIL, WIDE = 0.005, 20.0  # in other metrics: beyond the inner 99 %, by twenty times their width
NAMED_ROWS = 10
FEW = 3  # rows that fit exchanged: one or two may be anything
RADIANS = np.array([np.pi / 2, np.pi])
NO_ROWS: Integers = np.empty(0, dtype=np.int64)
COLUMNS_OF_CELLS, ROWS_OF_CELLS = 720, 180  # one degree each; longitudes go round once in either direction


@dataclass(frozen=True, repr=False, eq=False)
class BatchStatistics:
    """What one batch shows of a group: how many numbers, which cells, and rows that are odd by themselves."""

    rows: int
    known: int
    low: Floats
    high: Floats
    equal: bool
    cells: Integers
    counts: Integers
    firsts: Integers
    zero_rows: Integers  # rows at (0, 0)
    exchanged: Integers  # rows that would be legal with the two columns exchanged
    small: int  # rows within the range of radians


@dataclass(repr=False, eq=False)
class SanityCheck:
    """What all batches so far show of one group."""

    group: ColumnGroup
    limits: tuple[Floats, Floats] | None = None  # in metrics other than those of the Earth: beyond them is far away
    rows: int = 0
    known: int = 0
    small: int = 0
    equal: bool = True
    beyond: int = 0
    exchanged: list[int] = field(default_factory=list)
    low: Floats = field(default_factory=lambda: np.array([]))
    high: Floats = field(default_factory=lambda: np.array([]))
    cells: dict[int, tuple[int, int]] = field(default_factory=dict)  # rows there, and the first of them

    def batch_statistics(self, values: Floats, bad: Integers) -> BatchStatistics:
        """Return what is seen of a batch's numbers; called where batches are protected, so it changes nothing.

        Rows without a legal secret (`bad`) are not in the output: all that is asked is whether they look exchanged.
        Most batches are ruled out by their smallest and largest numbers: a city is never near (0, 0).
        """
        exchanged = NO_ROWS
        if bad.size:
            size = np.abs(values[bad])
            if self.on_earth:
                exchanged = bad[(size[:, 0] > 90.0) & (size[:, 0] <= 180.0) & (size[:, 1] <= 90.0)]
            values = values.copy()
            values[bad] = np.nan
        seen, at = values, np.arange(len(values))
        low, high = _column_ranges(values)
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            at = np.flatnonzero(np.isfinite(values).all(axis=1))
            seen = values[at]
            low, high = _column_ranges(seen)
        equal = values.shape[1] == 2 and low[0] == low[1] and bool(np.array_equal(seen[:, 0], seen[:, 1]))
        zero_rows = cells = counts = firsts = NO_ROWS
        small = 0
        if self.on_earth and len(seen):
            if (low <= 0.0).all() and (high >= 0.0).all():
                zero_rows = at[(seen == 0.0).all(axis=1)]
            if (low <= RADIANS).all() and (high >= -RADIANS).all():
                small = int((np.abs(seen) <= RADIANS).all(axis=1).sum())
            cells, counts, first = _cells(seen, low, high)
            firsts = at[first]
        elif self.limits is not None and ((low < self.limits[0]) | (high > self.limits[1])).any():
            outside = at[((seen < self.limits[0]) | (seen > self.limits[1])).any(axis=1)]  # as a cell of their own
            cells, counts, firsts = np.array([0]), np.array([len(outside)]), outside[:1]
        return BatchStatistics(
            len(values), len(seen), low, high, equal, cells, counts, firsts, zero_rows, exchanged, small
        )

    @property
    def names(self) -> str:
        """The columns, as messages name them."""
        return ", ".join(self.group.columns)

    @property
    def on_earth(self) -> bool:
        """Whether the numbers are latitudes and longitudes."""
        return is_geographic(self.group.mechanism.inputs) and len(self.group.columns) == 2

    def add(self, seen: BatchStatistics, first_row: int) -> None:
        """Take in the next batch, and refuse rows that are odd by themselves."""
        if len(seen.zero_rows):
            raise InvalidInput(
                f"{self.names} are 0 and 0 in {_row_list(seen.zero_rows + first_row)}: a place in the sea that stands "
                f"for a missing one. Leave such rows out or empty them. {FORCE_HINT}"
            )
        self.exchanged += [int(row) + first_row for row in seen.exchanged[: NAMED_ROWS - len(self.exchanged)]]
        self.beyond += len(seen.exchanged)
        if seen.known:
            self.low = seen.low if not self.known else np.minimum(self.low, seen.low)
            self.high = seen.high if not self.known else np.maximum(self.high, seen.high)
            self.equal &= seen.equal
        for cell, count, first in zip(seen.cells.tolist(), seen.counts.tolist(), seen.firsts.tolist(), strict=True):
            before = self.cells.get(cell, (0, first + first_row))
            self.cells[cell] = before[0] + count, before[1]
        self.rows, self.known, self.small = self.rows + seen.rows, self.known + seen.known, self.small + seen.small

    def check_all(self, *, constants: bool = True) -> None:
        """Refuse what all rows together show to be odd; without `constants` a column of one number is only logged."""
        if self.beyond >= max(FEW, (1.0 - BULK) * self.rows):
            raise InvalidInput(
                f"in {self.beyond:,} of {self.rows:,} rows {self.group.columns[0]} lies beyond 90 degrees and would "
                f"fit a longitude, such as {_row_list(np.array(self.exchanged))}: are {self.names} exchanged? "
                f"--columns takes the latitude first. {FORCE_HINT}"
            )
        if self.known < ENOUGH:
            return
        few = self.group.mechanism.inputs.size is not None and not self.on_earth  # cells: many rows may share one
        odd = "" if few else self._constant_text()
        if odd and constants:
            raise InvalidInput(odd)
        if odd:
            logging.getLogger("metricdp").warning("%s", odd)
        if self.on_earth and self.small >= BULK * self.known:
            raise InvalidInput(
                f"{self.names} look like radians, or like degrees of a place in the open sea: multiply them by "
                f"180 / pi, 57.29577951308232 (--scale). {FORCE_HINT}"
            )
        far = self._outlying_cells()
        if far:
            count, rows = sum(count for count, _ in far), np.array(sorted(first for _, first in far))
            raise InvalidInput(
                f"{count:,} of {self.known:,} rows lie far from all others, such as {_row_list(rows)}: their "
                f"{self.names} may have lost a digit or a sign. Repair them or leave them out. {FORCE_HINT}"
            )

    def _constant_text(self) -> str:
        """Say which column holds one number only, or that two hold the same ones."""
        for name, low, high in zip(self.group.columns, self.low, self.high, strict=True):
            if low == high:
                return (
                    f"{name} holds one and the same number in all {self.known:,} rows: is it a column that was never "
                    f"filled in? {FORCE_HINT}"
                )
        if self.equal and len(self.group.columns) == 2:
            return f"{self.names} hold the same numbers in every row: is one a copy of the other? {FORCE_HINT}"
        return ""

    def _outlying_cells(self) -> list[tuple[int, int]]:
        """Return the cells far from the others (rows there, the first of them), where nearly all rows lie together."""
        if not self.on_earth:
            outside = list(self.cells.values())
            return outside if sum(count for count, _ in outside) <= (1.0 - BULK) * self.known else []
        groups = _connected_cells(list(self.cells))
        if len(groups) < 2:
            return []
        sizes = [sum(self.cells[cell][0] for cell in group) for group in groups]
        most = groups[int(np.argmax(sizes))]
        if max(sizes) < BULK * self.known:
            return []
        rows, columns = np.divmod(np.array(most), COLUMNS_OF_CELLS)
        apart = max(FAR, FAR * float(max(np.ptp(rows), np.ptp(columns)) + 1))
        far = []
        for group in groups:
            if group is not most:
                north, east = np.divmod(np.array(group), COLUMNS_OF_CELLS)
                away_north = np.maximum(np.maximum(rows.min() - north, north - rows.max()), 0)
                away_east = np.maximum(np.maximum(columns.min() - east, east - columns.max()), 0)
                away_east = np.minimum(away_east, np.abs(360 - away_east))
                if (np.maximum(away_north, away_east) > apart).all():
                    far += [self.cells[cell] for cell in group]
        return far


def sanity_checks(task: TableTask, first: Sequence[Floats | None]) -> list[SanityCheck | None]:
    """Return who gathers what batches show, one for every group; None where nothing is.

    Args:
        task: What is done; nothing is checked where somebody insists.
        first: The numbers of every group in the first rows; None for words.
    """
    if task.care.force:
        return [None] * len(task.groups)
    made: list[SanityCheck | None] = []
    for group, values in zip(task.groups, first, strict=True):
        if values is None or (group.packed and not is_geographic(group.mechanism.inputs)):  # neither are places
            made.append(None)
            continue
        refuse_names(group)
        one = SanityCheck(group)
        if one.on_earth:
            _refuse_scaled(group, values)
        elif exponent_of(group.mechanism.inputs.metric) is not None:
            one.limits = _limits(values)
        made.append(one)
    return made


def refuse_names(group: ColumnGroup) -> None:
    """Refuse columns whose names say that they are exchanged; tell where degrees are taken for lengths."""
    if len(group.columns) != 2:
        return
    first, second = (set(words_of(name)) for name in group.columns)
    latitudes, longitudes = column_words("latitudes"), column_words("longitudes")
    names = ", ".join(group.columns)
    if is_geographic(group.mechanism.inputs):
        if group.reads.startswith(PROJECTED):  # of a named system east comes first
            return
        if (first & longitudes and second & latitudes) and not (first & latitudes or second & longitudes):
            raise InvalidInput(
                f"the columns {names} look exchanged by their names: the latitude comes first, --columns "
                f"{group.columns[1]},{group.columns[0]}. {FORCE_HINT}"
            )
        return
    degrees = (first & latitudes and second & longitudes) or (first & longitudes and second & latitudes)
    if degrees and exponent_of(group.mechanism.inputs.metric) is not None and group.mechanism.inputs.size is None:
        logging.getLogger("metricdp").warning(
            f"the columns {names} are degrees by their names, and the metric {group.mechanism.inputs.metric!r} takes "
            "them for lengths: --metric haversine (mdp.Haversine()) measures places on the Earth."
        )


def _refuse_scaled(group: ColumnGroup, values: Floats) -> None:
    """Refuse numbers that are no degrees, but would be if they were divided."""
    seen = values[np.isfinite(values).all(axis=1)]
    if len(seen) < 10 or np.mean(_are_degrees(seen)) > 0.5 or np.mean(_are_degrees(seen[:, ::-1])) > 0.5:
        return
    names, whole = ", ".join(group.columns), bool(np.array_equal(seen, np.rint(seen)))
    for power in (5, 6, 7):
        if whole and np.mean(_are_degrees(seen / 10.0**power)) > BULK:
            raise InvalidInput(
                f"{names} hold whole numbers that are no degrees; divided by 1e{power} they would be: read them with "
                f"--scale 1e-{power}, or with the power of ten that they were written with. {FORCE_HINT}"
            )
    if np.mean(np.abs(seen) < 3e7) > BULK:
        raise InvalidInput(
            f"{names} hold numbers that are no degrees and may be metres of a map projection: say which with --crs, "
            f"such as --crs EPSG:32632, or use --metric l2. {FORCE_HINT}"
        )


def _are_degrees(values: Floats) -> Booleans:
    return np.asarray((np.abs(values[:, 0]) <= 90.0) & (np.abs(values[:, 1]) <= 360.0))


def _limits(values: Floats) -> tuple[Floats, Floats] | None:
    seen = values[np.isfinite(values).all(axis=1)]
    if len(seen) < ENOUGH:
        return None
    low, high = np.quantile(seen, [TAIL, 1.0 - TAIL], axis=0)
    width = WIDE * np.maximum(high - low, np.finfo(float).tiny)
    return (low - width, high + width) if (high > low).all() else None


def _column_ranges(values: Floats) -> tuple[Floats, Floats]:
    """Return the smallest and the largest number of every column; NaN where one is missing."""
    if not len(values):
        none = np.full(values.shape[1], np.nan)
        return none, none
    columns = [values[:, number] for number in range(values.shape[1])]
    return np.array([column.min() for column in columns]), np.array([column.max() for column in columns])


def _cells(seen: Floats, low: Floats, high: Floats) -> tuple[Integers, Integers, Integers]:
    """Return the cells of one degree that rows lie in, how many rows each has, and the first row of each."""
    start, end = (np.floor(corner) + np.array([90.0, 360.0]) for corner in (low, high))
    if (start == end).all() and 0 <= start[0] < ROWS_OF_CELLS and 0 <= start[1] < COLUMNS_OF_CELLS:  # one for all
        return np.array([int(start[0] * COLUMNS_OF_CELLS + start[1])]), np.array([len(seen)]), np.array([0])
    north = np.clip(seen[:, 0] + 90.0, 0, ROWS_OF_CELLS - 1).astype(np.int32)
    east = np.clip(seen[:, 1] + 360.0, 0, COLUMNS_OF_CELLS - 1).astype(np.int32)
    codes = north * np.int32(COLUMNS_OF_CELLS) + east
    counts = np.bincount(codes)
    cells = np.flatnonzero(counts)
    if len(cells) > 30:
        cells, first = np.unique(codes, return_index=True)
    else:
        first = np.array([int(np.argmax(codes == cell)) for cell in cells], dtype=np.int64)
    return cells, counts[cells], first


def _connected_cells(cells: list[int]) -> list[list[int]]:
    """Return groups of cells that touch each other, across corners and across the end of the longitudes too."""
    left, groups = set(cells), []
    while left:
        start = left.pop()
        group, waiting = [start], [start]
        while waiting:
            north, east = divmod(waiting.pop(), COLUMNS_OF_CELLS)
            for step in (-1, 0, 1):
                for other in (-1, 0, 1):
                    cell = (north + step) * COLUMNS_OF_CELLS + (east + other) % COLUMNS_OF_CELLS
                    if cell in left:
                        left.remove(cell)
                        group.append(cell)
                        waiting.append(cell)
        groups.append(group)
    return groups


def _row_list(rows: Integers) -> str:
    return f"row{'s' if len(rows) > 1 else ''} {row_names(rows)} (the first is row 0)"


def inspect_table(
    first: Any, task: TableTask, *, person: str | None = None, rows: Any = None
) -> tuple[Findings, list[SanityCheck | None]]:
    """Look at a table: what gives the secret away, and what checks the secrets from now on.

    Refuses what is wrong by its names or in the first rows, and with `strict` what gives the secret away. `rows` is the
    table to find that in, or enough of it; the first rows unless there are more at hand.
    """
    sanity = sanity_checks(task, group_numbers(first, task))
    if task.texts is not None:
        rows = None  # texts are looked at in the first rows alone
        if not task.care.force:
            _refuse_wordless(first, task)
    return findings_in(first if rows is None else rows, task, person=person), sanity


def check_first_rows(first: Any, task: TableTask, sanity: Sequence[SanityCheck | None]) -> None:
    """Judge the first rows alone, where nobody sees all of them."""
    if task.texts is not None:
        return
    bad = np.zeros(first.num_rows, dtype=bool)
    for group in task.groups:
        bad |= ~secrets_of(secret_columns(first, group), group).good
    check_sanity(sanity, group_numbers(first, task), np.flatnonzero(bad))


def group_numbers(table: Any, task: TableTask) -> list[Floats | None]:
    """Return the numbers that the secrets of every group are read from; None for words."""
    return [
        None if group.mechanism.inputs.is_text else rows_in(secret_columns(table, group), group)
        for group in task.groups
    ]


def findings_in(table: Any, task: TableTask, *, person: str | None = None) -> Findings:
    """Return which columns that leave give the secret away, by rows spread over a table; refuse them if strict.

    Args:
        table: The rows, as they were read.
        task: What is done to them.
        person: The column that says whose row it is.
    """
    sample = drop_views(sample_of(table, rows_sampled(task.width)))
    leaving = trim_table(sample, task.care.trim) if task.care.trim else sample
    if task.texts is None:
        found = find_disclosures(leaving, _secret(sample, task), person=person, kept=task.care.kept)
    else:
        found = inspect_texts(leaving, task.columns, person=person, kept=task.care.kept)
    if found and task.care.strict:
        raise NotPrivate(messages.refused_columns(found))
    return found


def _refuse_wordless(table: Any, task: TableTask) -> None:
    """Refuse a column without a single word in its first rows: it is hardly the one that is meant."""
    rows = drop_views(table)
    for name in task.columns:
        texts = decode(whole(rows.column(name)))
        filled = pc.sum(pc.greater(pc.binary_length(texts), 0)).as_py() or 0
        worded = pc.sum(pc.match_substring_regex(texts, r"[\pL\p{So}]")).as_py() or 0
        if filled and not worded:
            raise InvalidInput(
                f"the column {name!r} holds no words in its first {rows.num_rows:,} rows: is it the one meant? "
                f"{available_columns(rows.schema.names, shown=task.shown)}"
            )


def inspect_names(names: Sequence[str], task: TableTask, engine: str) -> None:
    """Look at the names alone, where an engine has the rows: log what they say, or refuse it if strict."""
    gone = (*task.columns, *task.reports, *task.care.trim.touched, *task.care.kept)
    kinds = [(name, kind_by_name(name)) for name in names if name not in gone]
    found = tuple(ColumnFinding(name, kind, "name") for name, kind in kinds if kind is not None)
    if found and task.care.strict:
        raise NotPrivate(messages.refused_columns(found))
    log_findings(found, messages.inspected_names(engine))
    if not task.care.force:
        for group in task.groups:
            refuse_names(group)


def refuse_names_of_files(names: Sequence[Sequence[str]], rows: pa.Table, task: TableTask, person: str | None) -> None:
    """Refuse names of files and folders that look like places or persons.

    Args:
        names: Names that leave as they are, the same number for every row.
        rows: Rows of the files, one for each of `names`.
        task: What is done to them.
        person: The column that says whose row it is.
    """
    secret = _secret(drop_views(rows), task)
    who = None if person is None or person not in rows.schema.names else whole(rows.column(person)).to_pylist()
    near = secret.places if secret.geographic else None
    joined = ["/".join(unquote(name) for name in own) for own in names]  # a place may be cut into folders
    for level in (joined, *zip(*([unquote(name) for name in own] for own in names), strict=True)):
        kind = text_kind(pa.array(level, pa.string()), near)
        if kind is None and near is not None and names_place(level, near):
            kind = "coordinates"
        if who is not None and sum(str(one) == name for one, name in zip(who, level, strict=True)) >= 0.8 * len(who):
            kind = "person"
        if kind is not None:
            raise NotPrivate(messages.refused_names(kind))


def check_sanity(sanity: Sequence[SanityCheck | None], contents: Sequence[Any], bad: Integers = NO_ROWS) -> None:
    """Refuse the secrets of a whole table in memory where they look wrong; rows that are all alike are only logged.

    A program may well hand over the rows of one person at one place.
    """
    for check, rows in zip(sanity, contents, strict=True):
        if check is not None:
            check.add(check.batch_statistics(rows, bad), 0)
            check.check_all(constants=False)


def refuse_odd_points(points: Floats, columns: Sequence[str], *, geographic: bool) -> None:
    """Refuse points that look wrong, such as the places of a design: exchanged, (0, 0), constant, far from all others.

    They are checked as the secrets of a table are that get noise: on the Earth, or as lengths along axes.
    """
    from metricdp.design.laplace import laplace  # imported where something is built

    noise = laplace(Haversine(), 1.0) if geographic else laplace(Lp(2), 1.0, dimension=len(columns))
    group = ColumnGroup(noise, tuple(columns), tuple(columns), 0.0)
    (check,) = sanity_checks(TableTask(noise, (group,), "fail"), [points])
    assert check is not None
    check.add(check.batch_statistics(points, NO_ROWS), 0)
    check.check_all()


def log_findings(found: Sequence[ColumnFinding], looked_at: str = "") -> None:
    """Log what was found: columns and kinds, no values; and `looked_at`, what was looked at at all."""
    logger = logging.getLogger("metricdp")
    for line in messages.found_columns(found):
        logger.warning("%s", line)
    if looked_at:
        logger.log(logging.WARNING if found else logging.INFO, "%s", looked_at)


def _secret(sample: Any, task: TableTask) -> SecretSample:
    """Return what is protected, as far as a look needs it; of a product its first part of numbers."""
    if task.texts is not None:
        return SecretSample(task.columns, None, None, geographic=False)
    columns = tuple(dict.fromkeys((*task.columns, *task.reports)))
    contents = [secrets_of(secret_columns(sample, group), group).content for group in task.groups]
    for group, content in zip(task.groups, contents, strict=True):
        if isinstance(content, np.ndarray):
            return SecretSample(columns, content, None, is_geographic(group.mechanism.inputs))
    codes = codes_of(contents[0].dictionary_encode())
    return SecretSample(columns, None, codes, geographic=False)
