"""The options of `mdp.perturb` as frozen records; it takes their fields one by one too."""

from __future__ import annotations

import difflib
import json
import os
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import InitVar, asdict, dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, TypeVar

from metricdp.errors import InvalidInput
from metricdp.randomness import Randomness

if TYPE_CHECKING:
    from metricdp.ledger import Ledger  # its database is imported where a ledger is used
    from metricdp.mechanisms import Mechanism

    LedgerChoice: TypeAlias = "Ledger | Charging | str | os.PathLike[str] | None"
else:
    LedgerChoice = object  # the command reads the annotations of the records

Allocation = Literal["even"]
Which = Literal["first", "random"]
Refused = Literal["fail", "report"]
OnError = Literal["fail", "drop", "null"]
Names: TypeAlias = Sequence[str] | str
Target: TypeAlias = str | os.PathLike[str] | None
Files: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
R = TypeVar("R", bound="People | Disclosure | Reading | Job")


@dataclass(frozen=True)
class Charging:
    """Which ledger a table is charged to, and what becomes of rows that a budget does not hold.

    Attributes:
        ledger: The open ledger.
        key: Who releases, as in `Ledger.release`.
        purpose: One of the purposes of the policy, where it has any.
        refused: "fail" charges all rows or none. "report" removes the last rows of every person whose budget does not
            hold them all, and says how many.
        job: The name of this release. A repetition with the same name charges nobody and draws nothing new. Without
            one every call is a release of its own.
    """

    ledger: Ledger
    key: str = "perturb"
    purpose: str | None = None
    refused: Refused = "fail"
    job: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.ledger, str | os.PathLike):
            raise InvalidInput(
                "`ledger` of a Charging must be an open ledger: Charging(Ledger.open('budget.db'), ...)."
            )
        if self.refused not in ("fail", "report"):
            raise InvalidInput(f"`refused` must be 'fail' or 'report', got {self.refused!r}.")


@dataclass(frozen=True)
class People:
    """Whose rows they are, what all rows of one person may cost together, and the ledger that is charged.

    Attributes:
        id: The column that says whose row it is. The total for the person with the most rows is stated.
        budget: What all rows of one person may cost together, such as 40/km; per unit of the metric. In Python also a
            number. For Gaussian noise it is rho per squared unit, such as 3/km2.
        allocation: even gives each row of a person min(epsilon, budget / rows of that person).
        max_rows: How many rows of every person stay in the table. They are chosen without looking at the secrets.
        which: Which rows stay with max_rows: the first of the table, or random ones.
        ledger: The ledger that charges every person for their own rows, in one transaction, before anything comes back:
            an open `Ledger`, the place of one such as "budget.db", or a `Charging`. A file that does not exist yet
            becomes a ledger with `budget` as the total of every person.
        purpose: One of the purposes of the ledger's policy, where it has any.
        key: Who releases, as in `Ledger.release`.
        refused: What becomes of rows that a budget does not hold: fail refuses the whole table; report removes the last
            rows of those persons and says how many.
    """

    id: str | None = None
    budget: float | str | None = None
    allocation: Allocation | None = None
    max_rows: int | None = None
    which: Which = "first"
    ledger: LedgerChoice = None
    purpose: str | None = None
    key: str = "perturb"
    refused: Refused = "fail"


SECONDS = {"s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "hour": 3600, "d": 86400, "day": 86400, "w": 604800}
DAY = 86400


@dataclass(frozen=True)
class CoarseningStep:
    """The step to which a column is rounded down: a number, or a time in seconds."""

    size: Fraction
    is_time: bool
    written: str

    @classmethod
    def of(cls, value: Any) -> CoarseningStep:
        """Read a step such as 1h, 15min, 10 or 0.5."""
        found = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([a-z]*)\s*", str(value), re.ASCII)
        unit = "" if found is None else found[2].rstrip("s") or found[2]
        if found is None or (unit and unit not in SECONDS) or Fraction(found[1]) <= 0:
            raise InvalidInput(
                f"a column is coarsened to a step such as 1h, 15min, 1d for times or 10 for numbers, got {value!r}."
            )
        size = Fraction(found[1]) * (SECONDS[unit] if unit else 1)
        if unit and (size.denominator != 1 or (size < DAY and DAY % size) or (size > DAY and size % DAY)):
            raise InvalidInput(f"a time is coarsened to whole seconds that divide a day, or to days; got {value!r}.")
        return cls(size, bool(unit), str(value).strip())


def names_of(columns: Sequence[str] | str | None) -> tuple[str, ...]:
    """Return names of columns as a tuple: none, one or several."""
    if columns is None or isinstance(columns, str):
        return () if columns is None else (columns,)
    found = tuple(columns) if isinstance(columns, Iterable) else (columns,)
    for name in found:
        if not isinstance(name, str):
            raise InvalidInput(f"columns are named by text, such as {str(name)!r}, got {type(name).__name__}.")
    return found


@dataclass(frozen=True)
class Trim:
    """The columns that are dropped, and the columns that are coarsened.

    A name may be a path into a struct, such as `position.accuracy`.
    """

    drop: tuple[str, ...] = ()
    coarsen: tuple[tuple[str, CoarseningStep], ...] = ()

    @classmethod
    def of(cls, drop: Sequence[str] | str = (), coarsen: Mapping[str, Any] | None = None) -> Trim:
        """Read what was asked for."""
        names, steps = (
            names_of(drop),
            tuple((name, CoarseningStep.of(value)) for name, value in (coarsen or {}).items()),
        )
        names_of(tuple(coarsen or ()))  # refused where they are no texts
        both = [name for name, _ in steps if name in names]
        if both:
            raise InvalidInput(f"{both[0]!r} is both dropped and coarsened: ask for one of the two.")
        return cls(tuple(dict.fromkeys(names)), steps)

    def __bool__(self) -> bool:
        return bool(self.drop or self.coarsen)

    @property
    def touched(self) -> tuple[str, ...]:
        """All names that were asked for."""
        return (*self.drop, *(name for name, _ in self.coarsen))


@dataclass(frozen=True)
class Disclosure:
    """Which columns besides the reports leave with a table.

    Attributes:
        drop: Columns that are removed, such as ["ip"]; "position.accuracy" is a field inside a struct.
        coarsen: Columns that get coarser, such as {"t": "1h", "age": 10}. Times and numbers are rounded down to a step.
        keep: Columns that you have checked and that may stay. They are not named again, and not refused.
        strict: Refuse a table with columns that stay and may give the secret away. Otherwise they are named: in the
            summary of files, and by the logger "metricdp" for tables in memory.
        force: Read coordinates that look exchanged, constant or far from all others: you have checked them.
        accuracy_column: For files: the name of a column to add, with the radius around a report that holds the truth
            with probability 95 % (`mdp.accuracy_radius`). It follows from the distribution of the noise, for every
            secret; in metres where distances are lengths. One name for every part of a product.
    """

    drop: Names = ()
    coarsen: Mapping[str, Any] | None = None
    keep: Names = ()
    strict: bool = False
    force: bool = False
    accuracy_column: Names | None = None

    def __post_init__(self) -> None:
        both = [name for name in self.kept if name in self.trim.drop]
        if both:
            raise InvalidInput(f"{both[0]!r} is both dropped and kept: ask for one of the two.")

    @cached_property
    def trim(self) -> Trim:
        """The columns that are dropped or coarsened."""
        return Trim.of(self.drop, self.coarsen)

    @property
    def kept(self) -> tuple[str, ...]:
        """The columns that somebody has checked."""
        return names_of(self.keep)

    def text(self) -> str:
        """Return the options as text for the file of a job; empty where all are the defaults."""
        steps = {name: step.written for name, step in self.trim.coarsen}
        asked = [list(self.trim.drop), steps, list(self.kept), self.strict, self.force]
        return json.dumps(asked) if any(asked) else ""


@dataclass(frozen=True)
class Reading:
    """How a table is read, where the file does not say it.

    Attributes:
        format: The format of the file, where its name does not say it; `metricdp list formats` lists them.
        target_format: The format of the output, where its name does not say it.
        separator: The character between the cells of a CSV file; found out unless given.
        decimal: point or comma: how a CSV file writes its numbers; found out unless given.
        crs: The projected coordinates in the two columns, east first, such as EPSG:25832. Reports have the same. The
            guarantee stays about kilometres on the Earth.
        scale: What numbers are multiplied with, such as 1e-7 for degrees stored as whole numbers. Reports are stored
            the same way.
        snap: For mechanisms on finitely many points: values up to this distance from a point become that point: a
            number in the unit of the metric, or a text with its unit, such as 200m. It adds a slack to the guarantee:
            2 * epsilon * snap. On roads it adds epsilon times the largest distance by road between two points that one
            place can reach (`FiniteSpace.charge`).
        on_error: What becomes of rows that hold no legal secret: fail raises an error that names them, drop removes
            them, null empties their columns. The summary says how many there were. Rows are counted from 0 in a file.
        show_values: Show in the error what the first bad row holds. Otherwise errors name rows and columns only, since
            they end in logs. Workers never show values: they write logs of their own.
        block_bytes: How much of a CSV file is read at once; a row has to fit into it.
    """

    format: str | None = None
    target_format: str | None = None
    separator: str | None = None
    decimal: Literal["point", "comma"] | None = None
    crs: str | None = None
    scale: float = 1.0
    snap: float | str = 0.0
    on_error: OnError = "fail"
    show_values: bool = False
    block_bytes: int = 4 << 20
    source_format: InitVar[str | None] = None

    def __post_init__(self, source_format: str | None) -> None:
        if source_format is not None:  # its old name
            warnings.warn("`source_format` is called `format` now.", DeprecationWarning, stacklevel=3)
            object.__setattr__(self, "format", source_format)

    def entry(self) -> dict[str, Any]:
        """Return the fields that the file of a job holds, under the names of 0.1 and in their order."""
        held = asdict(self)
        old = ("scale", "crs", "separator", "decimal", "source_format", "target_format", "block_bytes")
        return {name: held[OLD_WORDS.get(name, name)] for name in old}


@dataclass(frozen=True)
class Job:
    """How the work on files is done, and the name of a release that may be repeated.

    Attributes:
        engine: For many files: local uses worker processes on this machine; spark and ray run parts as their tasks
            (`metricdp list engines`). They need a file system that all workers see. A single file is divided into parts
            too where an engine is named.
        name: For a table in memory and a ledger: the name of this release. A repetition with the same name costs
            nothing and returns the same reports.
        resume: Continue a job over many files that was killed or failed; nothing is released twice. Files that changed
            since are done again. The mechanism, columns and snap must be the same; the rules for texts may be others.
        discard: Give up such a job: its key and its results are destroyed, and a new one begins with new noise. Nothing
            of it was released, so nothing is released twice. If the job had finished and its output is gone, the same
            rows are protected, and paid for, once more.
        workers: How many processes the local engine starts; one for each core unless given.
        overwrite: Replace an output that is there.
        progress: Called with the finished share, from 0 to 1.
        watch: Called with every batch of a file as it was read and as it is written, such as
            `tables.reporting.Preview`. For many files it is called with every batch of reports in the finished output,
            such as `tables.reporting.Preview.released`.
    """

    engine: str | None = None
    name: str | None = None
    resume: bool = False
    discard: bool = False
    workers: int | None = None
    overwrite: bool = False
    progress: Callable[[float], None] | None = None
    watch: Callable[[Any, Any], None] | None = None


class PerturbOptions(TypedDict, total=False):
    """The fields of the four records, as `mdp.perturb` takes them one by one; the last six are old names."""

    id: str | None
    budget: float | str | None
    allocation: Allocation | None
    max_rows: int | None
    which: Which
    ledger: LedgerChoice
    purpose: str | None
    key: str
    refused: Refused
    drop: Names
    coarsen: Mapping[str, Any] | None
    keep: Names
    strict: bool
    force: bool
    accuracy_column: Names | None
    format: str | None
    target_format: str | None
    separator: str | None
    decimal: Literal["point", "comma"] | None
    crs: str | None
    scale: float
    snap: float | str
    on_error: OnError
    show_values: bool
    block_bytes: int
    engine: str | None
    name: str | None
    resume: bool
    discard: bool
    workers: int | None
    overwrite: bool
    progress: Callable[[float], None] | None
    watch: Callable[[Any, Any], None] | None
    id_column: str | None
    spread: Allocation | None
    at_most: int | None
    yes_really: bool
    source_format: str | None
    target: Target


OLD_WORDS = {
    "id_column": "id", "spread": "allocation", "at_most": "max_rows", "yes_really": "force", "source_format": "format",
    "target": "to",
}  # fmt: skip
RECORDS: dict[str, type[People | Disclosure | Reading | Job]] = {
    "people": People, "disclosure": Disclosure, "reading": Reading, "job": Job,
}  # fmt: skip
WORDS = {word.name: record for record, kind in RECORDS.items() for word in fields(kind)}
DEFAULT_READING = Reading()
DEFAULT_DISCLOSURE = Disclosure()


@dataclass(frozen=True)
class Call:
    """One call of `mdp.perturb`, without its table."""

    mechanism: Mechanism
    columns: Names | None = None
    to: Target = None
    people: People = People()
    disclosure: Disclosure = DEFAULT_DISCLOSURE
    reading: Reading = DEFAULT_READING
    job: Job = Job()
    rng: Randomness = None

    @property
    def given(self) -> frozenset[str]:
        """The fields of the records that differ from their defaults."""
        return frozenset(word for word, record in WORDS.items() if _is_given(getattr(self, record), word))

    def refuse(self, words: Iterable[str], sentence: str) -> None:
        """Refuse options that have no meaning here; `{word}` in the sentence becomes the first of them."""
        for word in words:
            if word in self.given:
                raise InvalidInput(sentence.format(word=f"`{word}`"))


def call_of(
    mechanism: Mechanism,
    columns: Names | None,
    to: Target,
    rng: Randomness,
    records: Mapping[str, Any],
    options: Mapping[str, Any],
) -> Call:
    """Return the call for records and for fields given one by one; unknown and repeated fields are refused."""
    words: dict[str, Any] = {} if to is None else {"to": to}
    for given, value in options.items():
        word = OLD_WORDS.get(given, given)
        if word != given:
            warnings.warn(f"`{given}` is called `{word}` now.", DeprecationWarning, stacklevel=3)
        if word not in WORDS and word != "to":
            raise InvalidInput(_unknown_text(given))
        if word in words:
            raise _twice_error(word)
        if value is not None:  # which says nothing, whatever the word
            words[word] = value
    target = words.pop("to", None)
    made: dict[str, Any] = {name: _record(name, kind, records[name], words) for name, kind in RECORDS.items()}
    return Call(mechanism, columns, target, rng=rng, **made)


def _record(name: str, kind: type[R], record: Any, words: Mapping[str, Any]) -> R:
    """Return a record with the fields that were given one by one."""
    record = kind() if record is None else record
    if not isinstance(record, kind):
        raise InvalidInput(f"`{name}` must be `mdp.{kind.__name__}(...)`, got {type(record).__name__}.")
    own = {word: value for word, value in words.items() if WORDS[word] == name}
    for word in own:
        if _is_given(record, word):
            raise _twice_error(word)
    return replace(record, **own)


def _is_given(record: Any, word: str) -> bool:
    value, usual = getattr(record, word), getattr(type(record)(), word)
    if isinstance(usual, tuple):  # names of columns, which may be an index of pandas
        return len(names_of(value)) > 0
    if isinstance(value, Mapping):
        return len(value) > 0
    return bool(value is not usual and value != usual)


def _twice_error(word: str) -> InvalidInput:
    place = f"in `{WORDS[word]}` and beside it" if word in WORDS else "as `to` and as `target`"
    return InvalidInput(f"`{word}` is given twice, such as {place}: give it once.")


def _unknown_text(word: str) -> str:
    known = [*WORDS, "columns", "to", "rng", *RECORDS]
    near = difflib.get_close_matches(word, [*known, *OLD_WORDS], n=1, cutoff=0.5)
    meant = f" Did you mean `{OLD_WORDS.get(near[0], near[0])}`?" if near else f" The options are {', '.join(known)}."
    return f"`mdp.perturb` has no option `{word}`.{meant}"


def disclosure_from(text: str) -> Disclosure:
    """Return what `Disclosure.text` wrote."""
    if not text:
        return DEFAULT_DISCLOSURE
    drop, coarsen, keep, strict, force = json.loads(text)
    return Disclosure(drop, coarsen, keep, strict, force)


def reading_from(entry: Mapping[str, Any]) -> Reading:
    """Return what `Reading.entry` held."""
    return Reading(**{OLD_WORDS.get(name, name): value for name, value in entry.items()})
