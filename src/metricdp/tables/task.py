"""Which columns of a table hold the secret, which get the reports, and what is done with them."""

from __future__ import annotations

import difflib
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from metricdp.errors import InvalidInput, NotPrivate
from metricdp.mechanisms import MECHANISMS, AnyGuarantee, Mechanism, pure
from metricdp.mechanisms.product import parts_of
from metricdp.metrics import Haversine, StreetPath, Weighted
from metricdp.spaces import Space
from metricdp.tables.lanes import Accuracy, Lane, Snapping, accuracy_of, snapping_of
from metricdp.tables.leaks import rows_looked_at
from metricdp.tables.options import CAREFREE, Charging, Disclosure, Names, OnError
from metricdp.tables.patterns import expanded
from metricdp.tables.persons import PerPerson
from metricdp.tables.trim import names_of
from metricdp.tables.views import plain_type

if TYPE_CHECKING:
    from metricdp.text import TextMechanism

SENTENCE = 5  # words in the name of a column from which on it reads as a text
LATITUDES = ("lat", "latitude")
LONGITUDES = ("lon", "lng", "long", "longitude")
AXES = ("x", "y", "z")
TRIED = ("text", "texts", "review", "reviews", "comment", "comments", "sentence", "message", "body", "content")
Kinds = Callable[[], pa.Schema]  # the names and types of a table, where finding them takes time


@dataclass(frozen=True)
class Task:
    """What is done to every batch: which mechanism, on which columns, and what becomes of bad rows.

    Errors name rows, not what is in them, unless `show_values` was asked for.
    """

    mechanism: Mechanism
    lanes: tuple[Lane, ...]
    on_error: OnError
    show_values: bool = False
    care: Disclosure = CAREFREE
    accuracy: tuple[Accuracy, ...] = ()  # columns that are added, one a lane
    shown: bool = True  # whether errors name columns

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that hold the secret."""
        return tuple(name for lane in self.lanes for name in lane.columns)

    @property
    def reports(self) -> tuple[str, ...]:
        """The columns that hold the report."""
        return tuple(name for lane in self.lanes for name in lane.reports)

    @property
    def first_rows(self) -> int:
        """How many rows are doubted before anything is drawn."""
        return rows_looked_at(self.width)

    @property
    def width(self) -> int:
        """How many numbers a secret has."""
        return sum(lane.mechanism.inputs.width for lane in self.lanes)

    @property
    def snap(self) -> float:
        """The distance up to which values become the nearest secret."""
        return max(lane.snap for lane in self.lanes)

    @property
    def snapping(self) -> Snapping | None:
        """What snapping does to the promise; None where nothing is snapped."""
        return next((snapping_of(lane) for lane in self.lanes if lane.snap), None)

    @property
    def texts(self) -> TextMechanism | None:
        """The mechanism of a task on texts; None for any other task."""
        return texts_of(self.mechanism)

    @property
    def guarantee(self) -> AnyGuarantee:
        """The promise for the rows of a table, the slack of snapping included; of texts with a budget for all of it."""
        if self.texts is not None and self.texts.rules.budget is not None:
            of_one, columns = self.texts.row_guarantee, len(self.lanes)
            return replace(of_one, epsilon=columns * of_one.epsilon, slack=columns * of_one.slack)
        snapping = self.snapping
        promise = self.mechanism.guarantee
        return pure(promise, "snapping").with_slack(snapping.slack) if snapping else promise


@dataclass(frozen=True)
class Request:
    """What a caller asks to be done to a table, before its columns are known."""

    mechanism: Mechanism
    columns: Sequence[str] | str | None = None
    snap: float = 0.0
    on_error: OnError = "fail"
    show_values: bool = False
    care: Disclosure = CAREFREE
    persons: PerPerson | None = None
    reads: str = "number"
    charging: Charging | None = None  # of whoever is in `persons`
    shown: bool = True  # whether errors name columns: the first line of standard input may be a text

    def task(self, names: Sequence[str], kinds: Kinds | None = None, stored: Sequence[str] | None = None) -> Task:
        """Check what was asked for against the columns there are.

        For texts the types of the columns are asked for; `stored` are the columns of a file that has others.
        """
        return _checked(names, self, kinds, names if stored is None else stored)


def texts_of(mechanism: Mechanism) -> TextMechanism | None:
    """Return a mechanism whose secrets are texts of any length; None for any other."""
    space = mechanism.inputs
    return cast("TextMechanism", mechanism) if space.is_text and space.size is None and space.width == 1 else None


def task_for(
    names: Sequence[str],
    mechanism: Mechanism,
    *,
    columns: Sequence[str] | str | None = None,
    snap: float = 0.0,
    on_error: OnError = "fail",
) -> Task:
    """Return what is done to the batches of a table with these columns."""
    return Request(mechanism, columns, snap, on_error).task(names)


def _checked(names: Sequence[str], request: Request, kinds: Kinds | None, stored: Sequence[str]) -> Task:
    mechanism, snap, on_error = request.mechanism, request.snap, request.on_error
    if not isinstance(mechanism, Mechanism):
        raise InvalidInput(f"`mechanism` must be a mechanism such as mdp.laplace(...), got {type(mechanism).__name__}.")
    if mechanism.guarantee.basis == "none":
        raise NotPrivate("this mechanism was built for comparison and keeps no promise: it must not protect a table.")
    if on_error not in ("fail", "drop", "null"):
        raise InvalidInput(f"`on_error` must be 'fail', 'drop' or 'null', got {on_error!r}.")
    if not (math.isfinite(snap) and snap >= 0):
        raise InvalidInput(f"`snap` must be a distance of at least 0, got {snap:g}.")
    parts = parts_of(mechanism)
    if texts_of(mechanism) is not None:
        chosen = _columns_of_texts(names, request.columns, kinds, stored, shown=request.shown)
        parts = parts * len(chosen)
    elif any(texts_of(part) is not None for part in parts):
        raise InvalidInput("texts are protected by themselves: their mechanism is no part of a product.")
    else:
        chosen = _chosen(names, parts, request.columns)
    snapping = [number for number, part in enumerate(parts) if _has_nearest(part.inputs)]
    if snap and not snapping:
        raise InvalidInput("`snap` is for mechanisms on finitely many points; this one takes every value as it is.")
    if snap and len(snapping) > 1:
        raise InvalidInput("`snap` would mean several parts of this product: put the values on the points first.")
    lanes, start = [], 0
    packed = len(chosen) < sum(part.inputs.width for part in parts)
    for number, part in enumerate(parts):
        own = chosen if packed else chosen[start : start + part.inputs.width]
        start += len(own)
        far = float(snap) if number in snapping else 0.0
        lanes.append(Lane(part, own, own if packed else _report_names(part, own), far, request.reads, packed))
    task = Task(mechanism, tuple(lanes), on_error, request.show_values, request.care, shown=request.shown)
    _check_names(names, task)
    _check_care(names, task.columns, task.reports, task.care, shown=request.shown)
    if added := names_of(request.care.accuracy_column):
        task = replace(task, accuracy=_accuracies(names, task, added))
    _ = task.snapping  # refused before any row is read
    return task


def _has_nearest(space: Space) -> bool:
    return space.size is not None and not space.is_text


def _chosen(names: Sequence[str], parts: Sequence[Mechanism], columns: Sequence[str] | str | None) -> tuple[str, ...]:
    size = sum(part.inputs.width for part in parts)
    if columns is None:
        return tuple(name for part in parts for name in default_columns(names, part.inputs))
    chosen = expanded((columns,) if isinstance(columns, str) else tuple(columns), names)
    check_present(names, chosen)
    if len(chosen) == len(parts) == 1 and not parts[0].inputs.is_text:
        return chosen  # a list in every row; whoever reads it says where it is none
    if len(chosen) != size:
        raise InvalidInput(
            f"this mechanism needs {size} column{'s' if size > 1 else ''}, got {len(chosen)}: "
            f"{', '.join(chosen[:10])}{', ...' if len(chosen) > 10 else ''}."
        )
    return chosen


def _check_names(names: Sequence[str], task: Task) -> None:
    if len(set(task.columns)) < len(task.columns):
        raise InvalidInput(f"`columns` must name different columns, got {', '.join(task.columns)}.")
    repeated = [name for name, count in Counter(names).items() if count > 1 and name in task.columns]
    if repeated:
        raise InvalidInput(f"the table has more than one column {repeated[0]!r}: rename one of them.")
    kept = set(names) - set(task.columns)
    clash = [name for name in task.reports if name in kept]
    if clash or len(set(task.reports)) < len(task.reports):
        raise InvalidInput(
            f"the reports need the columns {', '.join(task.reports)}, and there is another {clash[0]!r}: rename it."
            if clash
            else f"two parts of this product would report in the same columns: {', '.join(task.reports)}."
        )


def _accuracies(names: Sequence[str], task: Task, columns: Sequence[str]) -> tuple[Accuracy, ...]:
    lanes = len(task.lanes)
    if len(columns) != lanes or len(set(columns)) < lanes or not all(columns):
        raise InvalidInput(
            f"`accuracy_column` must name {lanes} new column{'s, one for every part' if lanes > 1 else ''}, got "
            f"{', '.join(columns)}."
        )
    taken = {*names, *task.reports} - (set(task.columns) - set(task.reports))
    for column in columns:
        if column in taken:
            raise InvalidInput(f"the table has a column {column!r} already: choose another name for the accuracy.")
    return tuple(accuracy_of(lane, column) for lane, column in zip(task.lanes, columns, strict=True))


def _check_care(
    names: Sequence[str], columns: Sequence[str], reports: Sequence[str], care: Disclosure, *, shown: bool = True
) -> None:
    """Refuse to drop, coarsen or keep what is not there, or what is protected."""
    for name in (*care.trim.touched, *care.kept):
        if name in columns or (name in reports and name not in names):
            raise InvalidInput(f"{name!r} is protected: it holds reports, and is neither dropped, coarsened nor kept.")
        if not any(name == other or name.startswith((f"{other}.", f"{other}[")) for other in names):
            check_present(names, [name], shown=shown)


def check_texts(schema: pa.Schema, columns: Names | None, care: Disclosure, stored: Sequence[str]) -> None:
    """Refuse a table of texts whose columns do not fit; the mechanism may be built later."""
    chosen = _columns_of_texts(schema.names, columns, lambda: schema, stored)
    _check_care(schema.names, chosen, chosen, care)


def _columns_of_texts(
    names: Sequence[str], columns: Names | None, kinds: Kinds | None, stored: Sequence[str], *, shown: bool = True
) -> tuple[str, ...]:
    """Return the columns of texts: those that were named, the only one of text, or the one that is called so."""
    schema = None if kinds is None else kinds()
    chosen = expanded(names_of(columns), names)
    if not chosen:
        found = [field.name for field in schema or () if holds_text(field.type)]
        chosen = tuple(found if len(found) == 1 else [name for name in found if name.strip().lower() in TRIED])
        if len(chosen) != 1:
            there = there_are(names, shown=shown)
            raise InvalidInput(f"say which column holds the texts, such as --column text. {there}")
    check_present(names, chosen, shown=shown)
    lists = [name for name in chosen if name not in stored and name.endswith("]")]
    if lists:
        raise InvalidInput(
            f"the column {lists[0].rpartition('[')[0]!r} holds lists: join the items of a row to one text first."
        )
    if len(set(chosen)) < len(chosen):
        raise InvalidInput(f"the columns of texts must be different ones, got {', '.join(chosen)}.")
    for name in chosen:
        if list(names).count(name) > 1:
            raise InvalidInput(
                f"the table has more than one column {name!r}: rename one of them, or name it as {name}#1 or {name}#2 "
                "where the table is a file."
            )
        if schema is not None and not holds_text(schema.field(name).type):
            raise InvalidInput(f"the column {name!r} must hold text, it holds {schema.field(name).type}.")
    return chosen


def holds_text(kind: pa.DataType) -> bool:
    """Tell whether a column holds texts, be it by way of a dictionary."""
    kind = plain_type(kind)
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _report_names(mechanism: Mechanism, columns: tuple[str, ...]) -> tuple[str, ...]:
    """Return where the reports go: in the columns of the secret where they fit, else in columns of their own.

    Of a secret with a history (a sum of metrics whose first group is the current place) the current place is reported.
    """
    inputs, outputs = mechanism.inputs, mechanism.outputs
    size, ground = outputs.width, inputs.ground
    if MECHANISMS.has("reports", mechanism):
        named: tuple[str, ...] = MECHANISMS.facet("reports", mechanism)(mechanism)
        return named
    own = isinstance(ground, StreetPath)  # a place on a street does not read like the columns that it comes from
    alike = inputs.is_text == outputs.is_text
    if alike and size == len(columns) and not own:
        return columns
    if alike and isinstance(ground, Weighted) and ground.parts[0][1] == tuple(range(size)):
        return columns[:size]
    if outputs.columns:
        return outputs.columns
    if is_geographic(outputs):
        return LATITUDES[0], LONGITUDES[0]
    return ("report",) if size == 1 else tuple(f"report_{number}" for number in range(1, size + 1))


def is_geographic(space: Space) -> bool:
    """Tell whether tables hold (latitude, longitude) for this space."""
    return isinstance(space.ground, Haversine)


def default_columns(names: Sequence[str], space: Space) -> tuple[str, ...]:
    """Return the columns that hold rows of a space by their names, or say that they have to be named."""
    size = space.width
    if not names:
        raise InvalidInput("the table has no columns.")
    if space.columns and set(space.columns) <= set(names):
        return space.columns
    if is_geographic(space):
        return _one_of(names, LATITUDES, "latitude"), _one_of(names, LONGITUDES, "longitude")
    if set(AXES[:size]) <= set(names) and size <= len(AXES):
        return AXES[:size]
    if len(names) == size or (len(names) == 1 and not space.is_text):  # a single column may hold vectors
        return tuple(names)
    what = "the word" if space.is_text else f"the {size} coordinates" if size > 1 else "the secret"
    example = [name for name in names if not reads_as_number(name)][:size]
    raise InvalidInput(
        f"say which column{'s hold' if size > 1 else ' holds'} {what}: columns={example!r} for instance "
        f"(--columns {','.join(example)} on the command line). {there_are(names)}"
    )


def usual_names(mechanism: Mechanism) -> tuple[str, ...]:
    """Return names for the columns of a mechanism's secret, where no table gives any."""
    parts = parts_of(mechanism)
    names: list[str] = []
    for part in parts:
        space, size = part.inputs, part.inputs.width
        if space.columns:
            names += space.columns
        elif is_geographic(space):
            names += (LATITUDES[0], LONGITUDES[0])
        elif space.is_text:
            one = "text" if space.size is None else "word"
            names += [one] if size == 1 else [f"{one}_{number}" for number in range(1, size + 1)]
        else:
            names += AXES[:size] if size <= len(AXES) else [f"x{number}" for number in range(1, size + 1)]
    return tuple(name if names.count(name) == 1 else f"{name}_{number}" for number, name in enumerate(names))


def _one_of(names: Sequence[str], wanted: Sequence[str], what: str) -> str:
    found = [name for name in names if re.sub(r"#\d+$", "", name).strip().lower() in wanted]
    if not found:
        raise InvalidInput(
            f"no {what} column: expected one named {' or '.join(wanted)}. {there_are(names)} "
            "Name the two with columns=[latitude, longitude] (--columns on the command line)."
        )
    if len(found) > 1:
        raise InvalidInput(
            f"more than one {what} column: {', '.join(found)}. Choose with columns=[latitude, longitude] "
            "(--columns on the command line)."
        )
    return found[0]


def check_present(names: Sequence[str], chosen: Sequence[str], *, shown: bool = True) -> None:
    """Refuse columns that are not there, with those that are."""
    for name in chosen:
        if name not in names:
            hidden = not shown or any(map(_is_value, names))
            close = [] if hidden else difflib.get_close_matches(str(name), names, n=1)
            raise InvalidInput(
                f"no column {name!r}. {there_are(names, shown=shown)}"
                + (f" Did you mean {close[0]!r}?" if close else "")
            )


def there_are(names: Sequence[str], *, shown: bool = True) -> str:
    """Say which columns a table has; names that look like a row of values are not shown."""
    if not shown:
        return "The names of the columns are not shown: they may be the first line of a text."
    if any(_is_value(name) for name in names):
        return (
            f"There are {len(names)} columns, and some of their names are numbers or sentences, as if the table had no "
            "header and its first row stood there: they are not shown."
        )
    first = ", ".join(repr(name) for name in list(names)[:30])
    return f"The columns are {first}{' and more' if len(names) > 30 else ''}." if names else "There are no columns."


def _is_value(name: str) -> bool:
    """Tell whether a name reads as a number that nobody numbers columns by, or as a text: a first row may be so."""
    numbered = name.strip().isdigit() and len(name.strip()) <= 4
    number = (reads_as_number(name) and not numbered) or bool(re.search(r"\d[.,]\d{3}", name))
    return number or len(name.split()) >= SENTENCE or "@" in name or "://" in name


def reads_as_number(name: str) -> bool:
    """Tell whether a column's name is a number, with a decimal point or comma."""
    try:
        float(name.replace(",", ".", 1))
    except ValueError:
        return False
    return True
