"""Options that several commands share, in groups; each group gives the records that the library takes.

Nothing heavy is imported here before a command runs: help needs the groups alone.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, dataclass_transform, get_type_hints

from cyclopts import Parameter

from metricdp.errors import InvalidInput
from metricdp.tables.options import Allocation, Charging, Disclosure, Job, OnError, People, Reading, Which

if TYPE_CHECKING:
    import numpy as np

    from metricdp.mechanisms import Mechanism
    from metricdp.metrics import Metric

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
Fields = TypeVar("Fields", People, Disclosure, Reading, Job)


@dataclass_transform(frozen_default=True)
def option_group(made: type[T]) -> type[T]:
    """Make a frozen group of options of a record; the types of the record stay readable in other modules."""
    group: Any = dataclass(frozen=True)(made)
    group.__init__.__annotations__ |= get_type_hints(group, include_extras=True)
    return made


def plain_record(record: type[Fields], options: Fields, **changes: Any) -> Fields:
    """Return a record of the library with the values of its options, and changes."""
    return record(**{one.name: getattr(options, one.name) for one in fields(record)} | changes)


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
        return quoted_names(self.columns, "columns", "columns", "lat,lon")

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


@dataclass(frozen=True)
class BuilderOptions:
    """What only some builders take; None where it was not given.

    Attributes:
        prior: A public table that says how likely every place is. It holds shares or counts: one row a place in their
            order, or with the columns of the places (lat and lon), where rows count for the nearest one.
        sensitivity: A table of regions that need more protection: lat, lon, radius (in km) and scale, or tiles south,
            west, north, east and scale, or one scale a place. With scale 0.2 distances there count a fifth, so that
            epsilon does; the loss stays in the places' own distances. It must be public. Or a scale for every category,
            with --categories.
        categories: With sensitivity by category: the category of every place, column:kind of the points, or a table
            with the column category, one row a place in their order, or with lat and lon, where rows count for the
            nearest place; of several the most sensitive counts.
        reach: With sensitivity on more than 4,096 places without streets: the longest single step between two, such as
            250m; ways of such steps count in between.
        error: How far every best guess of a place has to be wrong, for every report, such as 100m, or a file with one
            such number a place. Places are divided into public protection sets (PIVE made sound), and epsilon is per
            diameter of a set, such as 1/diameter. It is a bound for people who follow the prior.
        prior_column: Which column of the prior holds the numbers, where there are several.
        prior_within: How far a row of the prior may lie from its place, such as 300m; rows beyond are left out. As far
            as places lie apart unless given.
        loss: What a report costs: distance, squared, ground, time, or a file with a matrix. distance is the default,
            squared its square, ground the distance on the map (where --policy counts hops), time that to drive there
            (with --roads). A matrix has one row per place and one column per report.
        speed: With --loss time: km/h on streets that do not say how fast they are.
        gap: How far the loss may be from the proven optimum, as a share; for builders that search. The default is 0.05
            on windows and with --anchors refine (see there), elsewhere 0.001.
        seconds: When to stop searching. The best result so far is written, with the gap that it reached.
        objective: expected (the default of optimal and spanner) or worst (that of constopt); for these three.
        solver: auto, interior, first_order or gpu, among others; on windows first_order or gpu; for optimal.
        window: How far from every report rows are stored, such as 2.2km; for optimal, which solves on windows above
            4,096 points or where one is given, and chooses it so that what lies beyond hardly costs.
        reports: finer, for candidate reports between the places as well, on a grid at half its steps: they cost time
            and no privacy, and may lower the loss; for optimal, dictionary and spanner.
        stretch: How much longer paths may be than the distance; for spanner. The published one is --stretch 3
            --objective worst.
        nearest: How many nearest reports are free; for constopt; 10 is the default.
        weights: A CSV file with a header and one positive number a point; for weighted_exponential.
        base: What is remapped: the name of another builder (exponential by default), or a mechanism file.
        parts: The mechanism files of a product, with commas between.
        matrix: A file with one's own matrix, one row per place and one column per report; for from_matrix.
        dimension: How many coordinates noise is added to; for laplace on l1, l2, linf, angular and hyperbolic.
        anchors: Cells along each axis, such as 7,7, or refine, which adds some until the gap is reached; on roads
            pieces of every street, or their longest length such as 200m; for interpolated, like the next four.
        rule: exact, direction or log (as published).
        split: How axes share the budget: even, grid, or one number per axis; searched unless given.
        budget: half (as published) or certified; for --rule log.
        box: The corners of the box, such as 0,0,10,10; the one around all points unless given.
        blocks: Into how many blocks the points are cut; for decomposed, like all that follows.
        partition: How they are cut: balanced, distances, records, neighbours or spectral.
        neighbours: The distance up to which pairs are constrained directly, such as 2km; its detours are charged.
        start: Where it begins: engine or kernels.
        executor: Who solves the blocks: threads, processes, ray, or ray:address.
        checkpoint: A file for the state of a long run.
        resume: Continue from the checkpoint, where there is one.
        set: name=value for an option that only this builder has, such as one of a plugin; may be repeated.
    """

    prior: str | None = None
    sensitivity: str | None = None
    categories: str | None = None
    reach: str | None = None
    error: str | None = None
    prior_column: str | None = None
    prior_within: str | None = None
    loss: str | None = None
    speed: float | None = None
    gap: float | None = None
    seconds: float | None = None
    objective: Literal["expected", "worst"] | None = None
    solver: str | None = None
    window: str | None = None
    reports: Literal["finer"] | None = None
    stretch: float | None = None
    nearest: int | None = None
    weights: str | None = None
    base: str | None = None
    parts: str | None = None
    matrix: str | None = None
    dimension: int | None = None
    anchors: str | None = None
    rule: str | None = None
    split: str | None = None
    budget: str | None = None
    box: Corners | None = None
    blocks: int | None = None
    partition: str | None = None
    neighbours: str | None = None
    start: str | None = None
    executor: str | None = None
    checkpoint: str | None = None
    resume: bool = False
    set: tuple[str, ...] = ()

    def given(self) -> dict[str, Any]:
        """Return the options that were given."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: value for name, value in values.items() if value is not None and value is not False and value != ()
        }


DEFAULT_READING, DEFAULT_TABLE, DEFAULT_JOB = ReadingOptions(), TableOptions(), JobOptions()
NO_PEOPLE, NO_LEDGER, NO_DISCLOSURE = PeopleOptions(), LedgerOptions(), DisclosureOptions()
NO_BUILDER_OPTIONS = BuilderOptions()


def _names(texts: tuple[str, ...]) -> list[str]:
    """Return names with commas between; a comma of a name itself is written \\,."""
    parts = (part for text in texts for part in re.split(r"(?<!\\),", text))
    return [name.replace("\\,", ",").strip() for name in parts if name.strip()]


def quoted_names(text: str, option: str, what: str, example: str) -> list[str]:
    """Return names with commas between; a name with a comma in it stands in double quotes."""
    try:
        found = [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
    except csv.Error:  # a line break outside of quotes
        found = []
    if not found or not all(found):
        raise InvalidInput(f"--{option} must name {what} with commas between, such as {example}; got {text!r}.")
    return found


def numbers(text: str, option: str, meaning: str, *, count: int | None = None) -> list[float]:
    """Return numbers with commas between, `count` of them where that is given."""
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or count not in (None, len(found)):
        raise InvalidInput(f"--{option} must be {meaning}, got {text!r}.")
    return found


def distance_in(text: str, unit: str, option: str) -> float:
    """Return a distance of the command line; where distances have a unit it has to name one."""
    from metricdp.units import parse_distance

    if unit and not text.strip()[-1:].isalpha():
        raise InvalidInput(f"--{option} {text} has no unit, and distances here are in {unit}: write {text}{unit}.")
    return parse_distance(text, unit)


def metric_of(name: str) -> Metric:
    """Return the metric a name stands for; numbers and files may stand behind a `=`."""
    from metricdp.metrics import parse_metric
    from metricdp.tables.matrices import read_matrix

    return parse_metric(name, read=read_matrix)


def mechanism_in(path: str, *, trusted: str | None) -> Mechanism:
    """Return the mechanism of a file."""
    from metricdp.artifacts import load

    return load(path, trusted=trusted)


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
