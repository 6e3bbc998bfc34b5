"""What is asked to be done to a table, which columns hold the secret and get the reports: from request to task."""

from __future__ import annotations

import difflib
import fnmatch
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from metricdp import constants, rendering
from metricdp.errors import InvalidInput, NotPrivate
from metricdp.mechanisms import MECHANISMS, AnyGuarantee, ConcentratedGuarantee, Guarantee, Mechanism, require_pure
from metricdp.mechanisms.kinds.product import parts_of
from metricdp.metrics import points_are, sum_of
from metricdp.spaces import Space
from metricdp.tables.options import (
    DEFAULT_DISCLOSURE,
    Call,
    Charging,
    Disclosure,
    Names,
    OnError,
    People,
    Reading,
    names_of,
)
from metricdp.tables.values import holds_text
from metricdp.units import parse_distance, parse_epsilon, parse_rho, round_down

if TYPE_CHECKING:
    from metricdp.text import TextMechanism


SPAN = re.compile(r"(?P<stem>.*?)(?P<first>\d+)\.\.(?P<again>.*?)(?P<last>\d+)", re.DOTALL)


def expand_names(chosen: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Return names with patterns replaced by the columns of a table they stand for.

    `e_*` are all that begin so, in the order of the table, and `e_0..e_299` those from one number to another. A column
    that has such a name itself is that column.
    """
    found: list[str] = []
    for name in chosen:
        span = SPAN.fullmatch(name)
        if name in names:
            found.append(name)
        elif span is not None and span["stem"] == span["again"]:
            first, last = int(span["first"]), int(span["last"])
            if not 0 <= last - first < constants.LARGEST_DIMENSION:
                raise InvalidInput(f"{name!r} must name columns from a lower to a higher number, such as e_0..e_299.")
            digits = len(span["first"]) if span["first"].startswith("0") else 0
            found += [f"{span['stem']}{number:0{digits}d}" for number in range(first, last + 1)]
        elif "*" in name and (some := [one for one in names if fnmatch.fnmatchcase(one, name.replace("[", "[[]"))]):
            found += some
        else:
            found.append(name)
    return tuple(found)


LEVEL = 0.95  # of the accuracy that a column states, as the Geolocation API has it
LARGEST_DETOUR_SLACK = 30.0  # a factor of ten million millions


@dataclass(frozen=True)
class ColumnGroup:
    """One mechanism on its own columns: a whole task has one, a product one for every part.

    `columns` hold the secret and never stay: those that are also in `reports` are replaced, the others removed.
    `reads` says what a cell has to be, where it is a number. A `packed` group has one column for all coordinates of the
    secret, a list of numbers in every row.
    """

    mechanism: Mechanism
    columns: tuple[str, ...]
    reports: tuple[str, ...]
    snap: float
    reads: str = "number"
    packed: bool = False


@dataclass(frozen=True)
class Snapping:
    """How far values are put on secrets, in the unit of their places, and what that costs: a slack of epsilon * apart.

    Where values are put on secrets by the distances of the guarantee, `apart` is twice the snap; where they are not, it
    is how far apart two secrets can be that one place may be put on, and distances are those of the secrets.
    """

    snap: float
    epsilon: float
    apart: float
    same_ground: bool
    unit: str = ""

    @property
    def slack(self) -> float:
        return self.epsilon * self.apart


@dataclass(frozen=True)
class AccuracyColumn:
    """A column that states how far the truth lies from a report at most, with a probability of at least `level`.

    It follows from the distribution of the noise and holds for every secret, so for all rows; in metres where distances
    are lengths, else in the unit of the metric; rounded up.
    """

    column: str
    radius: float
    unit: str
    level: float


def accuracy_of(group: ColumnGroup, column: str, level: float = LEVEL) -> AccuracyColumn:
    """Return the column that states the accuracy of a group's reports; what snapping moved is counted."""
    from metricdp.auditing.accuracy import radii_of
    from metricdp.auditing.distributions import convert_to_metres

    found = radii_of(group.mechanism, (level,))[0]
    value, metres = found.value + group.snap, convert_to_metres(found.value + group.snap, found.unit)
    unit = found.unit if metres is None else "m"
    return AccuracyColumn(column, float(rendering.number(value if metres is None else metres, 4, "up")), unit, level)


def snapping_of(group: ColumnGroup) -> Snapping:
    """Return what snapping costs on the space of a group, or refuse it where no guarantee would be left."""
    space, epsilon = group.mechanism.inputs, require_pure(group.mechanism.guarantee, "snapping").epsilon
    ground = space.ground.unit
    found = Snapping(group.snap, epsilon, space.charge(group.snap), space.same_ground, ground)
    if not found.same_ground and not found.slack <= LARGEST_DETOUR_SLACK:
        unit, snapped = (f" {one}" if one else "" for one in (space.unit, ground))
        apart = "with no way between them" if math.isinf(found.apart) else f"{found.apart:.4g}{unit} apart"
        raise InvalidInput(
            f"snapping up to {group.snap:g}{snapped} can put one place on secrets {apart}: no guarantee is left of "
            f"epsilon {epsilon:g}. Snap less far, or design on secrets that lie as they are measured."
        )
    return found


@dataclass(frozen=True)
class PersonLimits(People):
    """What is asked about the rows of one person: the budget is a number, and the ledger that is charged is open."""

    id: str = ""
    budget: float | None = None
    charging: Charging | None = None

    def __post_init__(self) -> None:
        if self.allocation not in (None, "even"):
            raise InvalidInput(f"`allocation` must be 'even', got {self.allocation!r}.")
        if self.which not in ("first", "random"):
            raise InvalidInput(f"`which` must be 'first' or 'random', got {self.which!r}.")
        if self.allocation and self.budget is None:
            raise InvalidInput("`allocation` shares a budget among the rows of a person: name it, as --budget 40/km.")
        if self.budget is not None and not 0 < self.budget < float("inf"):
            raise InvalidInput(f"`budget` must be a finite number above 0, got {self.budget!r}.")
        if self.max_rows is not None and (self.max_rows != int(self.max_rows) or self.max_rows < 1):
            raise InvalidInput(f"`max_rows` must be a whole number of at least 1, got {self.max_rows!r}.")

    @property
    def needs_counts(self) -> bool:
        """Whether rows must be counted before anything is drawn."""
        return self.budget is not None or self.max_rows is not None or self.charging is not None


def person_limits(people: People, guarantee: AnyGuarantee | None) -> PersonLimits | None:
    """Return what is asked about the rows of one person; a budget may be written 40/km, or 3/km2 where it is rho."""
    budget = people.budget
    if people.id is None:
        if budget is not None or people.allocation is not None or people.max_rows is not None:
            raise InvalidInput("a budget is for all rows of a person: name the column of persons with --id.")
        return None
    return PersonLimits(**{**vars(people), "budget": None if budget is None else parse_amount(budget, guarantee)})


def parse_amount(budget: float | str, guarantee: AnyGuarantee | None) -> float:
    """Return a budget in the unit of a guarantee: 40/km, or 3/km2 where it is rho.

    One for the parts of a product, all of one unit, becomes one for their sum.
    """
    parts = guarantee.parts if isinstance(guarantee, Guarantee) and not guarantee.unit else ()
    units = list(dict.fromkeys(part.unit for part in parts))
    if len(units) > 1:
        shown = ", ".join(f"per {unit}" if unit else "without a unit" for unit in units)
        raise InvalidInput(
            f"a budget is in one unit, and the parts of this product are {shown}: charge a ledger whose policy has a "
            "limit for each of them (--ledger), or keep fewer rows of every person (--max-rows)."
        )
    if isinstance(budget, str):
        unit = units[0] if units else "" if guarantee is None else guarantee.unit
        concentrated = isinstance(guarantee, ConcentratedGuarantee)
        budget = parse_rho(budget, unit) if concentrated else parse_epsilon(budget, unit, option="--budget")
    if not isinstance(guarantee, Guarantee) or not parts:
        return budget
    total = sum(Fraction(part.epsilon) for part in parts)
    return round_down(Fraction(budget) / total * Fraction(guarantee.epsilon))


SENTENCE = 5  # words in the name of a column from which on it reads as a text
LATITUDES = ("lat", "latitude")
LONGITUDES = ("lon", "lng", "long", "longitude")
AXES = ("x", "y", "z")
TEXT_COLUMNS = ("text", "texts", "review", "reviews", "comment", "comments", "sentence", "message", "body", "content")
Kinds = Callable[[], pa.Schema]  # the names and types of a table, where finding them takes time


@dataclass(frozen=True)
class TableTask:
    """What is done to every batch: which mechanism, on which columns, and what becomes of bad rows.

    Errors name rows, not what is in them, unless `show_values` was asked for.
    """

    mechanism: Mechanism
    groups: tuple[ColumnGroup, ...]
    on_error: OnError
    show_values: bool = False
    care: Disclosure = DEFAULT_DISCLOSURE
    accuracy: tuple[AccuracyColumn, ...] = ()  # columns that are added, one a group
    shown: bool = True  # whether errors name columns

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that hold the secret."""
        return tuple(name for group in self.groups for name in group.columns)

    @property
    def reports(self) -> tuple[str, ...]:
        """The columns that hold the report."""
        return tuple(name for group in self.groups for name in group.reports)

    @property
    def width(self) -> int:
        """How many numbers a secret has."""
        return sum(group.mechanism.inputs.width for group in self.groups)

    @property
    def snap(self) -> float:
        """The distance up to which values become the nearest secret."""
        return max(group.snap for group in self.groups)

    @property
    def snapping(self) -> Snapping | None:
        """What snapping does to the guarantee; None where nothing is snapped."""
        return next((snapping_of(group) for group in self.groups if group.snap), None)

    @property
    def texts(self) -> TextMechanism | None:
        """The mechanism of a task on texts; None for any other task."""
        return texts_of(self.mechanism)

    @property
    def guarantee(self) -> AnyGuarantee:
        """The guarantee for the rows of a table with the slack of snapping; of texts with a budget for a whole row."""
        if self.texts is not None and self.texts.rules.budget is not None:
            of_one, columns = self.texts.row_guarantee, len(self.groups)
            return replace(of_one, epsilon=columns * of_one.epsilon, slack=columns * of_one.slack)
        snapping = self.snapping
        guarantee = self.mechanism.guarantee
        return require_pure(guarantee, "snapping").with_slack(snapping.slack) if snapping else guarantee


@dataclass(frozen=True)
class TableRequest(Call):
    """What a caller asks to be done to a table, before its columns are known."""

    persons: PersonLimits | None = None
    reads: str = "number"
    shown: bool = True  # whether errors name columns: the first line of standard input may be a text

    @property
    def charging(self) -> Charging | None:
        """The ledger that everybody in `persons` is charged to."""
        return None if self.persons is None else self.persons.charging

    def task(self, names: Sequence[str], kinds: Kinds | None = None, stored: Sequence[str] | None = None) -> TableTask:
        """Check what was asked for against the columns there are.

        For texts the types of the columns are asked for; `stored` are the columns of a file that has others.
        """
        stored = names if stored is None else stored
        mechanism, snap, on_error = self.mechanism, self.reading.snap, self.reading.on_error
        if not isinstance(mechanism, Mechanism):
            raise InvalidInput(
                f"`mechanism` must be a mechanism such as mdp.laplace(...), got {type(mechanism).__name__}."
            )
        if mechanism.guarantee.basis == "none":
            raise NotPrivate(
                "this mechanism was built for comparison and has no guarantee: it must not protect a table."
            )
        if on_error not in ("fail", "drop", "null"):
            raise InvalidInput(f"`on_error` must be 'fail', 'drop' or 'null', got {on_error!r}.")
        parts = parts_of(mechanism)
        if texts_of(mechanism) is not None:
            chosen = _columns_of_texts(names, self.columns, kinds, stored, shown=self.shown)
            parts = parts * len(chosen)
        elif any(texts_of(part) is not None for part in parts):
            raise InvalidInput("texts are protected by themselves: their mechanism is no part of a product.")
        else:
            chosen = _choose_columns(names, parts, self.columns)
        snapping = [number for number, part in enumerate(parts) if _has_nearest(part.inputs)]
        far = _read_snap(snap, [parts[number] for number in snapping])
        groups, start = [], 0
        packed = len(chosen) < sum(part.inputs.width for part in parts)
        for number, part in enumerate(parts):
            own = chosen if packed else chosen[start : start + part.inputs.width]
            start += len(own)
            near = far if number in snapping else 0.0
            groups.append(ColumnGroup(part, own, own if packed else _report_names(part, own), near, self.reads, packed))
        shows, care = self.reading.show_values, self.disclosure
        task = TableTask(mechanism, tuple(groups), on_error, shows, care, shown=self.shown)
        _check_names(names, task)
        _check_disclosure(names, task.columns, task.reports, task.care, shown=self.shown)
        if added := names_of(care.accuracy_column):
            task = replace(task, accuracy=_accuracies(names, task, added))
        _ = task.snapping  # refused before any row is read
        return task


def texts_of(mechanism: Mechanism) -> TextMechanism | None:
    """Return a mechanism whose secrets are texts of any length; None for any other."""
    space = mechanism.inputs
    return cast("TextMechanism", mechanism) if space.is_text and space.size is None and space.width == 1 else None


def task_for(
    names: Sequence[str],
    mechanism: Mechanism,
    *,
    columns: Names | None = None,
    snap: float | str = 0.0,
    on_error: OnError = "fail",
    disclosure: Disclosure = DEFAULT_DISCLOSURE,
) -> TableTask:
    """Return what is done to the batches of a table with these columns."""
    reading = Reading(snap=snap, on_error=on_error)
    return TableRequest(mechanism, columns, disclosure=disclosure, reading=reading).task(names)


def _read_snap(snap: float | str, parts: Sequence[Mechanism]) -> float:
    """Return how far values are put on points, in the unit of the distances of the part that has points."""
    if not snap:
        return 0.0
    if not isinstance(snap, str) and not (math.isfinite(snap) and snap >= 0):
        raise InvalidInput(f"`snap` must be a distance of at least 0, got {snap:g}.")
    if not parts:
        raise InvalidInput("`snap` is for mechanisms on finitely many points; this one takes every value as it is.")
    if len(parts) > 1:
        raise InvalidInput("`snap` would mean several parts of this product: put the values on the points first.")
    return parse_distance(snap, parts[0].inputs.ground.unit, option="snap") if isinstance(snap, str) else float(snap)


def _has_nearest(space: Space) -> bool:
    return space.size is not None and not space.is_text


def _choose_columns(names: Sequence[str], parts: Sequence[Mechanism], columns: Names | None) -> tuple[str, ...]:
    size = sum(part.inputs.width for part in parts)
    if columns is None:
        return tuple(name for part in parts for name in default_columns(names, part.inputs))
    chosen = expand_names((columns,) if isinstance(columns, str) else tuple(columns), names)
    check_present(names, chosen)
    if len(chosen) == len(parts) == 1 and not parts[0].inputs.is_text:
        return chosen  # a list in every row; reading it says where it is none
    if len(chosen) != size:
        raise InvalidInput(
            f"this mechanism needs {size} column{'s' if size > 1 else ''}, got {len(chosen)}: "
            f"{', '.join(chosen[:10])}{', ...' if len(chosen) > 10 else ''}."
        )
    return chosen


def _check_names(names: Sequence[str], task: TableTask) -> None:
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


def _accuracies(names: Sequence[str], task: TableTask, columns: Sequence[str]) -> tuple[AccuracyColumn, ...]:
    groups = len(task.groups)
    if len(columns) != groups or len(set(columns)) < groups or not all(columns):
        raise InvalidInput(
            f"`accuracy_column` must name {groups} new column{'s, one for every part' if groups > 1 else ''}, got "
            f"{', '.join(columns)}."
        )
    taken = {*names, *task.reports} - (set(task.columns) - set(task.reports))
    for column in columns:
        if column in taken:
            raise InvalidInput(f"the table has a column {column!r} already: choose another name for the accuracy.")
    return tuple(accuracy_of(group, column) for group, column in zip(task.groups, columns, strict=True))


def _check_disclosure(
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
    _check_disclosure(schema.names, chosen, chosen, care)


def _columns_of_texts(
    names: Sequence[str], columns: Names | None, kinds: Kinds | None, stored: Sequence[str], *, shown: bool = True
) -> tuple[str, ...]:
    """Return the columns of texts: those that were named, the only one of text, or the one that is called so."""
    schema = None if kinds is None else kinds()
    chosen = expand_names(names_of(columns), names)
    if not chosen:
        found = [field.name for field in schema or () if holds_text(field.type)]
        chosen = tuple(found if len(found) == 1 else [name for name in found if name.strip().lower() in TEXT_COLUMNS])
        if len(chosen) != 1:
            there = available_columns(names, shown=shown)
            raise InvalidInput(f"say which column holds the texts, such as --column text. {there}")
    check_present(names, chosen, shown=shown)
    lists = [name for name in chosen if name not in stored and name.endswith("]")]
    if lists:
        column = lists[0].rpartition("[")[0]
        raise InvalidInput(f"the column {column!r} holds lists: join the items of a row to one text first.")
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


def _report_names(mechanism: Mechanism, columns: tuple[str, ...]) -> tuple[str, ...]:
    """Return where the reports go: in the columns of the secret where they fit, else in columns of their own.

    Of a secret with a history (a sum of metrics whose first group is the current place) the current place is reported.
    """
    inputs, outputs = mechanism.inputs, mechanism.outputs
    size, ground = outputs.width, inputs.ground
    if MECHANISMS.has("report_names", mechanism):
        named: tuple[str, ...] = MECHANISMS.facet("report_names", mechanism)(mechanism)
        return named
    own = points_are(ground, "streets")  # a place on a street does not read like the columns that it comes from
    alike = inputs.is_text == outputs.is_text
    if alike and size == len(columns) and not own:
        return columns
    if alike and any(group == tuple(range(size)) for _, group, _ in sum_of(ground)[:1]):
        return columns[:size]
    if outputs.columns:
        return outputs.columns
    if is_geographic(outputs):
        return LATITUDES[0], LONGITUDES[0]
    return ("report",) if size == 1 else tuple(f"report_{number}" for number in range(1, size + 1))


def is_geographic(space: Space) -> bool:
    """Tell whether tables hold (latitude, longitude) for this space."""
    return points_are(space.ground, "degrees")


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
        f"(--columns {','.join(example)} on the command line). {available_columns(names)}"
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


def find_pair(names: Sequence[str], first: Sequence[str], second: Sequence[str]) -> tuple[str, str] | None:
    """Return the two columns that are called by one of either words, in any case; None unless there is one of each."""
    found = [[name for name in names if name.strip().lower() in words] for words in (first, second)]
    return (found[0][0], found[1][0]) if [len(part) for part in found] == [1, 1] else None


def _one_of(names: Sequence[str], wanted: Sequence[str], what: str) -> str:
    found = [name for name in names if re.sub(r"#\d+$", "", name).strip().lower() in wanted]
    if not found:
        raise InvalidInput(
            f"no {what} column: expected one named {' or '.join(wanted)}. {available_columns(names)} "
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
                f"no column {name!r}. {available_columns(names, shown=shown)}"
                + (f" Did you mean {close[0]!r}?" if close else "")
            )


def available_columns(names: Sequence[str], *, shown: bool = True) -> str:
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
