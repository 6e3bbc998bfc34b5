"""What a table engine is: it runs the partitions of a job over files, holds tables of its own, or both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from metricdp.errors import InvalidInput
from metricdp.randomness import Randomness
from metricdp.tables.jobs.plan import JobPlan
from metricdp.tables.options import Target
from metricdp.tables.pipeline import RowProgress
from metricdp.tables.plan import TableRequest

FOR_TEXTS = (
    "{word} is for rows of numbers or single words: for texts, `mdp.text.Rules` say what becomes of every word, and "
    "what a text may cost."
)


class JobRunner(Protocol):
    """How an engine runs the pending partitions of a job.

    For every pending number it calls `run_partition(job.folder, number)`: in any order, in any process that sees
    the folder, as often as it takes, since it gives the same reports every time. `on_rows` gets the rows of every
    partition that is done. It returns when all are done, and raises what no further try can mend.
    """

    def __call__(
        self, job: JobPlan, pending: Sequence[int], on_rows: RowProgress, /, *, workers: int | None = None
    ) -> None: ...


class TablePerturber(Protocol):
    """How an engine protects a table of its own: a table comes back whose reports were drawn once."""

    def __call__(self, table: Any, request: TableRequest, /) -> Any: ...


@dataclass(frozen=True)
class Engine:
    """A table engine, declared once, in its own file.

    Attributes:
        name: `mdp.perturb(files, ..., engine=name)` and `metricdp perturb --engine name`, where it runs jobs.
        about: One line for people.
        run: How it runs the partitions of a job over files; None where it does not.
        packages: The packages whose tables it takes: `mdp.perturb` hands them over.
        perturb: How it protects such a table.
        extra: The extra of metricdp that brings what it needs; empty where it needs nothing.
    """

    name: str
    about: str
    run: JobRunner | None = None
    packages: tuple[str, ...] = ()
    perturb: TablePerturber | None = None
    extra: str = ""


def refuse_target(table: Any, target: Target) -> None:
    """Refuse a place to write to for a table that comes back as it is."""
    if target is not None:
        raise InvalidInput(
            f"`to` is for files, Spark frames and Arrow data sets; a {type(table).__name__} comes back as it is, in "
            "memory."
        )


def refuse_persons(what: str, request: TableRequest) -> None:
    """Refuse a budget for all rows of a person where nobody sees them all before the first is drawn."""
    if request.persons is not None and (request.persons.budget is not None or request.persons.max_rows is not None):
        raise InvalidInput(
            f"a budget or a limit for all rows of a person cannot be kept for {what}: they are not all seen before the "
            "first is drawn. Write the table to one file and protect that, or count and share out the rows before."
        )


def refuse_parts(what: str, request: TableRequest) -> None:
    """Refuse to leave out rows that a ledger does not grant where rows have no common order."""
    if request.charging is not None and request.charging.refused != "fail":
        raise InvalidInput(
            f"{what} is charged whole or not at all: which rows of a person come first is not known before the first "
            "is drawn. Drop refused='report'."
        )


def refuse_rng(engine: str, rng: Randomness) -> None:
    """Refuse randomness of the caller's where workers draw."""
    if rng is not None:
        raise InvalidInput(f"`rng` cannot be given for {engine}: its workers draw from streams of their own.")


def refuse_for_workers(engine: str, request: TableRequest) -> None:
    """Refuse what cannot be done where workers draw the noise and write logs."""
    refuse_persons(engine, request)
    refuse_parts(f"a table of {engine}", request)
    refuse_rng(engine, request.rng)
    if request.reading.show_values:
        raise InvalidInput(f"`show_values` cannot be given for {engine}: its workers would write the values to logs.")
