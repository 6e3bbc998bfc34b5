"""Options that several commands share, in groups; each group gives the records that the library takes.

Nothing heavy is imported here before a command runs: help needs the groups alone.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, dataclass_transform, get_type_hints

from cyclopts import Parameter

from metricdp import specs
from metricdp.errors import InvalidInput
from metricdp.specs import PlaceSpec, parse_names
from metricdp.tables.options import Allocation, Charging, Disclosure, Job, OnError, People, Reading, Which

if TYPE_CHECKING:
    import numpy as np

    from metricdp.mechanisms import Mechanism

STANDARD = "-"  # standard input or output


def _file_name(_: object, value: object) -> None:
    """Refuse an option in the place of a file; - alone is standard input or output."""
    if isinstance(value, str) and value.startswith("-") and value != STANDARD:
        raise ValueError(f"A file is expected here, and {value} reads as an option; a file of that name is ./{value}.")


Output = Annotated[str, Parameter(name=["--output", "-o"], allow_leading_hyphen=True, validator=_file_name)]
Input = Annotated[str, Parameter(allow_leading_hyphen=True, validator=_file_name)]
Corners = Annotated[str, Parameter(allow_leading_hyphen=True)]  # such as -8.7,41.1,...
Epsilon = Annotated[str, Parameter(name="--epsilon", allow_leading_hyphen=True)]  # so that -1 gets our own answer
Verbose = Annotated[bool, Parameter(name="--verbose")]


HIDDEN = Parameter(parse=False)  # a field of a record that is no option of the command, or one of its own arguments
T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def option_group(made: type[T]) -> type[T]:
    """Make a frozen group of options of a record; the types of the record stay readable in other modules."""
    group: Any = dataclass(frozen=True)(made)
    group.__init__.__annotations__ |= get_type_hints(group, include_extras=True)
    return made


def plain_record(record: type[T], options: T, **changes: Any) -> T:
    """Return a record of the library with the values of its options, and changes."""
    plain: Any = record
    return record(**{one.name: getattr(options, one.name) for one in fields(plain)} | changes)


@option_group
class ReadingOptions(Reading):
    """How a table is read, where the file does not say it.

    Attributes:
        columns: The columns of the coordinates, such as lat,lon. pos.lat is a field of a struct, pos[0] an item of a
            list, pos a whole list, struct or geometry, lat#2 the second of two columns lat, and e_* or e_0..e_299 are
            many columns at once.
        force: Read coordinates that look exchanged, constant or far from all others: you have checked them.
    """

    format: Annotated[str | None, Parameter(name="--from")] = None
    target_format: Annotated[str | None, HIDDEN] = None
    snap: Annotated[float, HIDDEN] = 0.0
    on_error: Annotated[OnError, HIDDEN] = "fail"
    show_values: Annotated[bool, HIDDEN] = False
    block_bytes: Annotated[int, HIDDEN] = Reading.block_bytes
    columns: str | None = None
    force: bool = False

    @property
    def names(self) -> list[str] | None:
        """The columns that were named; a name with a comma in it stands in double quotes."""
        if self.columns is None:
            return None
        return parse_names(self.columns, "columns", "columns", "lat,lon")

    def spec(self, **changes: Any) -> PlaceSpec:
        """Return how points are read, as a record of the library."""
        return PlaceSpec(columns=self.names, reading=self.reading(), force=self.force, **changes)

    def reading(self, **changes: Any) -> Reading:
        """Return the record of the library, with changes."""
        separator = None if self.separator is None else self.separator.replace("\\t", "\t")
        if separator is not None and len(separator.encode()) != 1:
            raise InvalidInput(f"--separator must be one character, such as ';' or '\\t', got {self.separator!r}.")
        if not (self.scale > 0.0 and self.scale < float("inf")):
            raise InvalidInput(f"--scale must be a number above 0, such as 1e-7, got {self.scale:g}.")
        return plain_record(Reading, self, **{"separator": separator} | changes)


@option_group
class TableOptions(ReadingOptions):
    """How a table is read, and what becomes of rows that hold no legal secret."""

    target_format: Annotated[str | None, Parameter(name="--to")] = None
    on_error: OnError = "fail"
    show_values: bool = False


@option_group
class LedgerOptions(People):
    """Which ledger everybody is charged in for their rows.

    Attributes:
        ledger: A ledger, budget.db or the address of a server (`metricdp budget`). It charges every person (--id) for
            their own rows before the output appears. `metricdp budget begin` makes one; so does a command with
            --budget, which is then the total of every person.
        key_file: The key of a ledger on a server.
        head_file: The head file of a ledger on a server, on this machine. It records the last entry, so that an older
            dump is refused. A ledger in a file has its own.
    """

    id: Annotated[str | None, HIDDEN] = None
    budget: Annotated[str | None, HIDDEN] = None
    allocation: Annotated[Allocation | None, HIDDEN] = None
    max_rows: Annotated[int | None, HIDDEN] = None
    which: Annotated[Which, HIDDEN] = "first"
    ledger: str | None = None
    key: Annotated[str, HIDDEN] = "perturb"
    key_file: str | None = None
    head_file: str | None = None

    @contextmanager
    def open_people(self, mechanism: Mechanism | None = None, **changes: Any) -> Iterator[People]:
        """Open the ledger, or begin one with the budget as the total of every person, and return the record."""
        changes = {"purpose": None, "refused": "fail"} | changes  # both belong to the ledger
        if self.ledger is None:
            named = (self.purpose, self.key_file, self.head_file)
            if named != (None, None, None) or self.refused != "fail":
                raise InvalidInput(
                    "--purpose, --key-file, --head-file and --refused belong to --ledger: name the ledger."
                )
            yield plain_record(People, self, **changes)
            return
        from metricdp.tables import parse_amount
        from metricdp.tables.charging import open_ledger

        total, guarantee, dimension = None, None, None
        if self.budget is not None and mechanism is not None:
            guarantee, dimension = mechanism.guarantee, mechanism.inputs.dimension
            total = parse_amount(self.budget, guarantee)
        with open_ledger(
            self.ledger, total, guarantee, dimension, key_file=self.key_file, head_file=self.head_file
        ) as ledger:  # fmt: skip
            charging = Charging(ledger, purpose=self.purpose, refused=self.refused)
            yield plain_record(People, self, **changes | {"ledger": charging})


@option_group
class PeopleOptions(LedgerOptions):
    """Whose rows they are, what all rows of one person may cost, and the ledger that is charged."""

    id: Annotated[str | None, Parameter(name="--id")] = None
    budget: str | None = None
    allocation: Allocation | None = None
    max_rows: int | None = None
    which: Which = "first"


@option_group
class DisclosureOptions(Disclosure):
    """What leaves with a table besides the reports.

    Attributes:
        drop: Columns that are removed, with commas between, such as ip,address; position.accuracy is one in a struct.
        coarsen: A column that gets coarser, such as t=1h or age=10; several with commas between or the option again.
        keep: Columns that you have checked and that may stay, with commas between: they are not named again.
    """

    drop: tuple[str, ...] = ()
    coarsen: Any = ()
    keep: tuple[str, ...] = ()
    force: Annotated[bool, HIDDEN] = False
    accuracy_column: Annotated[str | None, HIDDEN] = None

    def __post_init__(self) -> None:
        """Leave the checks to the record that `disclosure` makes."""

    def disclosure(self, **changes: Any) -> Disclosure:
        """Return the record of the library, with changes."""
        steps: dict[str, str] = {}
        for item in _names(self.coarsen):
            name, mark, step = item.rpartition("=")
            if not mark or not name or not step:
                raise InvalidInput(f"--coarsen takes a column and a step, such as t=1h or age=10, got {item!r}.")
            if name in steps:
                raise InvalidInput(f"--coarsen names the column {name!r} twice.")
            steps[name] = step
        lists = {"drop": _names(self.drop), "coarsen": steps, "keep": _names(self.keep)}
        return plain_record(Disclosure, self, **lists | changes)


@option_group
class JobOptions(Job):
    """How the work on files is done."""

    name: Annotated[str | None, HIDDEN] = None
    workers: Annotated[int | None, HIDDEN] = None
    progress: Annotated[Any, HIDDEN] = None
    watch: Annotated[Any, HIDDEN] = None


@option_group
class PlaceOptions(PlaceSpec):
    """Where secrets are, which of them must be hidden from each other, and how far."""

    grid: Corners | None = None
    columns: Annotated[Any, HIDDEN] = None
    reading: Annotated[Any, HIDDEN] = None
    force: Annotated[bool, HIDDEN] = False
    table: Annotated[ReadingOptions, Parameter(name="*")] = ReadingOptions()

    def spec(self) -> PlaceSpec:
        """Return the record of the library."""
        table = self.table
        return plain_record(PlaceSpec, self, columns=table.names, reading=table.reading(), force=table.force)


@option_group
class BuilderOptions(specs.BuilderOptions):
    """What only some builders take; None where it was not given."""

    box: Corners | None = None


DEFAULT_READING, DEFAULT_TABLE, DEFAULT_JOB = ReadingOptions(), TableOptions(), JobOptions()
NO_PEOPLE, NO_LEDGER, NO_DISCLOSURE = PeopleOptions(), LedgerOptions(), DisclosureOptions()
NOWHERE, NO_BUILDER_OPTIONS = PlaceOptions(), BuilderOptions()


def _names(texts: tuple[str, ...]) -> list[str]:
    """Return names with commas between; a comma of a name itself is written \\,."""
    parts = (part for text in texts for part in re.split(r"(?<!\\),", text))
    return [name.replace("\\,", ",").strip() for name in parts if name.strip()]


def seeded_generator(seed: int | None) -> np.random.Generator | None:
    """Return a generator for simulations, where a seed was asked for."""
    import numpy as np

    return None if seed is None else np.random.default_rng(seed)


def with_resume_hint(work: Callable[..., Any]) -> Callable[..., Any]:
    """Make an interruption say how to continue the job."""

    def run(*arguments: Any, **options: Any) -> Any:
        try:
            return work(*arguments, **options)
        except KeyboardInterrupt:
            raise KeyboardInterrupt("interrupted: the parts that are done stay; continue with --resume") from None

    return run


def redirect_prints(output: str) -> AbstractContextManager[object]:
    """Print for people on the error stream where the table itself goes to standard output."""
    return redirect_stdout(sys.stderr) if output == STANDARD else nullcontext()


def check_targets(sources: Sequence[str], *, overwrite: bool, table: str | None = None, **others: str | None) -> None:
    """Refuse files beside a table that cannot be written, before any work; their keywords say what they hold."""
    from pathlib import Path

    from metricdp.files import check_target

    page = others.get("page")
    if page is not None and Path(page).suffix.lower() not in (".html", ".htm"):
        raise InvalidInput(f"the page {page!r} must be named .html.")
    named = [name for name in (table, *others.values()) if name not in (None, STANDARD)]
    if len({Path(str(name)).absolute() for name in named}) < len(named):
        *most, last = (f"the {what}" for what in ("table", *others))
        raise InvalidInput(f"{', '.join(most)} and {last} need names of their own.")
    for name in others.values():
        for source in sources if name is not None else ():
            check_target(str(name), source=None if source == STANDARD else source, overwrite=overwrite)
