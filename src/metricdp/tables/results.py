"""How a table gets to its place, whole or not at all, and what was done to it, in plain words."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metricdp import messages
from metricdp.errors import InvalidInput, OutputProblem
from metricdp.files import check_target, is_ledger, lock_target, refuse_ledger, replace_file, resolve_target
from metricdp.mechanisms import APPROXIMATE, AnyGuarantee, ConcentratedGuarantee, require_pure
from metricdp.rendering import card, file_name, plain_record, plural, printable
from metricdp.tables.disclosure.findings import SAMPLED, SAMPLED_FROM, Findings, rows_sampled
from metricdp.tables.formats import INPUT_FILE, OPEN_FILES, STANDARD, Location
from metricdp.tables.formats.base import choose_table, same_table
from metricdp.tables.options import DEFAULT_DISCLOSURE, Disclosure
from metricdp.tables.people import PeopleCount, Spending
from metricdp.tables.plan import AccuracyColumn, Snapping, TableTask

if TYPE_CHECKING:
    from metricdp.text import TextMechanism


@contextmanager
def open_input(source: str | os.PathLike[str]) -> Iterator[str]:
    """Yield the name of a table that is there; what comes on standard input is first put into a file.

    Formats are read from several places of a file, so it has to be one. Where the system allows it the file has no
    name, so that it is gone when we are; elsewhere only its owner can read it.
    """
    if os.fspath(source) != STANDARD:
        yield os.fspath(source)
        return
    if sys.stdin is None or sys.stdin.isatty():
        raise InvalidInput("- stands for standard input, and nothing comes from there: name a file, or pipe one in.")
    listed = Path(OPEN_FILES).is_dir()
    with tempfile.TemporaryFile() if listed else tempfile.NamedTemporaryFile(prefix=INPUT_FILE) as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
        file.flush()
        yield f"{OPEN_FILES}{file.fileno()}" if listed else str(file.name)


@contextmanager
def open_target(goal: Location, source: Location | None = None, *, overwrite: bool) -> Iterator[Path]:
    """Yield the path of a new file that becomes the table when the block ends well."""
    if goal.text == STANDARD:
        yield from _write_standard_output()
        return
    read = None if source is None else source.path
    if read is not None and is_ledger(read):
        raise InvalidInput(f"{str(read)!r} is a ledger, not a table to protect: name another source.")
    if goal.format.tables and goal.path.is_file():
        refuse_ledger(goal.path)
        if source is not None and _is_read(source, goal):
            raise OutputProblem(f"cannot write {goal.text!r}: it is the table that is read. Choose another name.")
        with lock_target(goal.path):
            yield from _write_database(goal, overwrite=overwrite)
        return
    check_target(goal.path, source=read, overwrite=overwrite)
    with lock_target(goal.path), replace_file(goal.path, source=read, overwrite=overwrite) as partial:
        yield partial


def _is_read(source: Location, goal: Location) -> bool:
    """Tell whether a table of a database is the source, or one that the source, a view, is read from."""
    made = source.format
    if not goal.table or not made.tables or not source.path.samefile(goal.path):
        return False
    name = choose_table(made.call("tables_of", source.path), source)
    return any(same_table(one, goal.table) for one in {name, *made.call("tables_behind", source.path, name)})


def _write_standard_output() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="metricdp-") as folder:
        made = Path(folder) / "reports"
        made.touch(0o600)
        yield made
        with made.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.flush()


def _write_database(goal: Location, *, overwrite: bool) -> Iterator[Path]:
    """Make the table in a file of its own, then put it into the database in one transaction."""
    place = resolve_target(goal.path)
    if not os.access(place, os.W_OK):
        raise OutputProblem(f"cannot write {goal.text!r}: you have no permission to change that file.")
    if not goal.table:
        raise InvalidInput(f"{goal.text!r} is a database: name the table to make, such as {goal.text}::protected.")
    if not overwrite and any(same_table(goal.table, one) for one in goal.format.call("tables_of", place)):
        raise OutputProblem(
            f"cannot write {goal.text!r}: there is such a table. Choose another name, or replace it with "
            "overwrite=True (--overwrite)."
        )
    with tempfile.TemporaryDirectory(prefix=".metricdp-", dir=place.parent) as folder:
        made = Path(folder) / "table"
        made.touch(0o600)
        yield made
        goal.format.call("insert", made, place, goal.table)


MOST_NAMED = 20  # columns that a summary names one by one
NAMED_ROWS = 1000  # bad rows that a summary names


@dataclass(frozen=True, kw_only=True)
class RowTally:
    """What became of the rows of a table."""

    rows: int
    written: int
    bad: int
    bad_rows: tuple[int, ...]  # the first of them
    dropped: tuple[str, ...] = ()  # metadata that was not carried over, since it may hold values
    findings: Findings = ()  # columns that stay and may give the secret away: for the owner's eyes
    empty: int = 0  # of texts: cells without one, masks in the output, rows that other columns were looked at in
    masked: int = 0
    looked: int = 0


@dataclass(frozen=True, kw_only=True)
class TablePair:
    """Which table was protected into which."""

    source: str
    target: str
    names: Sequence[str]  # the columns of the source
    simulated: bool
    notes: tuple[str, ...] = ()  # sentences on what else should be known


@dataclass(frozen=True, kw_only=True)
class Summary(TablePair, RowTally):
    """What `mdp.perturb` did to files and what it means."""

    columns: tuple[str, ...]
    kept_columns: tuple[str, ...]
    on_error: str
    guarantee: AnyGuarantee
    snapping: Snapping | None
    people: PeopleCount | None
    seconds: float
    accuracy: tuple[AccuracyColumn, ...] = ()  # columns that state how far the truth may lie
    care: Disclosure = DEFAULT_DISCLOSURE  # what was dropped, coarsened and kept on purpose
    spending: Spending | None = None  # what the rows of every person cost, where a budget or a limit was asked for
    sampled: int = rows_sampled(1)  # how many rows of a table were looked at, at most
    texts: TextMechanism | None = None  # where its secrets are texts

    @classmethod
    def of(
        cls,
        pair: TablePair,
        task: TableTask,
        tally: RowTally,
        *,
        people: PeopleCount | None,
        seconds: float,
        spending: Spending | None = None,
    ) -> Summary:
        """Put together what was asked and what was done."""
        return cls(
            **vars(pair),
            **vars(tally),
            columns=task.columns,
            kept_columns=tuple(name for name in pair.names if name not in (*task.columns, *task.care.trim.touched)),
            on_error=task.on_error,
            guarantee=task.guarantee,
            snapping=task.snapping,
            people=people,
            seconds=seconds,
            accuracy=_largest_accuracies(task, spending),
            care=task.care,
            spending=spending,
            sampled=rows_sampled(task.width),
            texts=task.texts,
        )

    @property
    def one_row(self) -> AnyGuarantee:
        """What one row is guaranteed: where rows share a budget, that of the row with the largest share."""
        return self.guarantee if self.spending is None else self.spending.one_row

    @property
    def revealing_columns(self) -> tuple[str, ...]:
        """The kept columns that may say where or when somebody was, or who, by their names or values."""
        return tuple(finding.column for finding in self.findings)

    @property
    def snap(self) -> float:
        """The distance up to which values became the nearest secret."""
        return 0.0 if self.snapping is None else self.snapping.snap

    @property
    def composed_epsilon(self) -> float | None:
        """The epsilon that holds for every person's rows together: they add up.

        None where nobody was counted, and for texts without a budget, which may have any length.
        """
        guarantee = require_pure(self.guarantee, "an epsilon for all rows of a person")
        if self.texts is not None and self.texts.rules.budget is None:
            return None
        if self.spending is not None:
            return self.spending.epsilon
        return None if self.people is None else self.people.most_rows * guarantee.epsilon

    @property
    def composed_slack(self) -> float | None:
        """The slack that holds for every person's rows together; None where nobody was counted."""
        if self.spending is not None:
            return self.spending.slack
        return None if self.people is None else self.people.most_rows * require_pure(self.guarantee, "slack").slack

    @property
    def twice(self) -> float:
        """The epsilon of every row if this file is protected and released a second time."""
        return 2.0 * self.guarantee.epsilon

    def lines(self) -> list[str]:
        """Return the summary for people, one sentence a line."""
        lines = [
            f"{plural(self.written, 'row')} written to {self.target} in {self.seconds:.1f} s; {self._protected_text()}."
        ]
        if self.bad:
            done = "left out" if self.on_error == "drop" else "emptied"
            named = ", ".join(str(row) for row in self.bad_rows[:10]) + (", ..." if self.bad > 10 else "")
            bad = f"{self.bad:,} of {plural(self.rows, 'row')} held no legal secret"
            lines.append(f"{bad} and {'was' if self.bad == 1 else 'were'} {done}: rows {named}.")
        lines.extend(self._text_lines() if self.texts is not None else self._row_lines())
        if self.snapping is not None:
            lines.append(messages.snapping_cost(self.snapping, require_pure(self.guarantee, "snapping")))
        for position, one in enumerate(self.accuracy):
            shares = () if self.spending is None else self.spending.released
            least = min((level.task.accuracy[position].radius for level in shares), default=one.radius)
            lines.append(messages.accuracy(one.column, one.radius, one.unit, one.level, least=least))
        lines.extend(self.composition())
        lines.append(self.again())
        lines.extend(self.trimmed())
        if self.kept_columns:
            lines.append(messages.unprotected_columns(self.kept_columns))
        if self.kept_columns or self.care.trim.coarsen:
            lines.extend(messages.found_columns(self.findings))
            lines.append(self._inspected_text())
        if self.dropped:
            lines.append(messages.dropped_metadata(self.dropped))
        lines.extend(self.notes)
        if self.simulated:
            lines.append(messages.simulated())
        return [printable(line) for line in lines]

    def _row_lines(self) -> list[str]:
        """Return what all rows of a person, and one, are guaranteed."""
        uneven = self.spending is not None and self.spending.is_uneven
        make = messages.allocation_guarantee if uneven else messages.row_guarantee
        return [*self.whole_history(), make(self.one_row)]

    def _text_lines(self) -> list[str]:
        """Return what texts are guaranteed, what happened to their words, and that texts of one person add up."""
        assert self.texts is not None
        rules, lines = self.texts.rules, []
        if self.empty:
            cells = "1 cell held no text: it is" if self.empty == 1 else f"{self.empty:,} cells held no text: they are"
            lines.append(f"{cells} empty in the output too, so that this is not hidden.")
        lines += [*self.texts.promise(), *rules.sentences()]
        lines += messages.unknown_words(rules.unknown, rules.mask, self.masked, self.on_error)
        return [*lines, messages.texts_of_one_person()]

    def _inspected_text(self) -> str:
        if self.texts is None:
            return messages.inspected_rows(min(self.rows, self.sampled), self.rows)
        return messages.inspected_rows(min(self.looked, SAMPLED), min(self.looked, SAMPLED_FROM), first=True)

    def whole_history(self) -> list[str]:
        """Return what all rows of the person who has the most are worth, in distances; nothing where none were counted.

        Rows of one person add up, so this comes before the guarantee of one row.
        """
        if self.people is None or self.people.most_rows < 2 or self.texts is not None:
            return []
        whose = "All rows of any one person together"
        if self.spending is None or not self.spending.is_spread:
            whose = f"All {self.people.most_rows:,} rows of the person with the most together"
        if isinstance(self.guarantee, ConcentratedGuarantee):
            all_of_them = self.guarantee.composed(times=self.people.most_rows)
            if self.spending is not None:
                all_of_them = replace(all_of_them, rho=self.spending.amount)
            return [messages.concentrated_whole_history(all_of_them, whose)]
        if (reach := self.reach_together()) is None:
            return []
        parts = messages.parts_of(self.guarantee)
        return [messages.whole_history(parts[0] if parts else self.guarantee, reach, whose, self.composed_slack or 0.0)]

    def reach_together(self) -> float | None:
        """Return how far apart places may lie in every row of a person for all rows to keep a factor of two.

        None where nobody has more than one row, or nobody was counted, and for guarantees without such a distance, as
        sums of metrics in several units.
        """
        if self.people is None or self.people.most_rows < 2 or isinstance(self.guarantee, ConcentratedGuarantee):
            return None
        if self.guarantee.basis == "none" or not self.composed_epsilon:
            return None
        parts = messages.parts_of(self.guarantee)
        if len({part.unit for part in parts}) > 1:
            return None
        # a sum of metrics: every part of a row may lie that far apart, and what the parts leak adds up
        parts_epsilon = sum(part.epsilon for part in parts) / self.guarantee.epsilon if parts else 1.0
        epsilon, slack = parts_epsilon * self.composed_epsilon, self.composed_slack or 0.0
        return messages.reach_together(self.guarantee, epsilon, slack)

    def again(self) -> str:
        """Return what protecting and releasing the table a second time costs."""
        if self.texts is not None and (self.spending is None or self.composed_epsilon is None):
            return messages.second_text_release()
        if self.spending is None:
            return messages.second_release(self.guarantee)
        return messages.second_spending(self.spending, self.guarantee)

    def trimmed(self) -> list[str]:
        """Return which columns were left out or coarsened, one sentence a line."""
        trim = self.care.trim
        lines = [messages.dropped_columns(trim.drop)] if trim.drop else []
        if trim.coarsen:
            lines.append(messages.coarsened_columns([(name, step.written) for name, step in trim.coarsen]))
        return lines

    def composition(self) -> list[str]:
        """Return what the rows of one person add up to, one sentence a line."""
        if self.people is None and self.spending is None:
            return [messages.uncounted_rows()] if self.texts is None else []
        return composition_lines(self.guarantee, self.people, self.spending, self.texts)

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as plain values for JSON; `metricdp.schema.json` describes every field.

        Source and target are file names without their folders: a record may be shown to others.
        """
        named = replace(self, source=file_name(self.source), target=file_name(self.target))
        people, trim = self.people, self.care.trim
        return plain_record(
            {
                "format": "metricdp.perturb" if self.texts is None else "metricdp.text",
                "version": 1,
                "metricdp": version("metricdp"),
                "source": named.source,
                "target": named.target,
                "counts": {
                    "read": self.rows,
                    "written": self.written,
                    "bad": self.bad,
                    "on_error": self.on_error,
                    "bad_rows": self.bad_rows,
                },
                "columns": {
                    "protected": self.columns,
                    "kept": self.kept_columns,
                    "dropped": trim.drop,
                    "coarsened": {name: step.written for name, step in trim.coarsen},
                    "revealing": [
                        {"column": one.column, "kind": one.kind, "evidence": one.evidence} for one in self.findings
                    ],
                    "accuracy": [
                        {"column": one.column, "radius": one.radius, "unit": one.unit, "level": one.level}
                        for one in self.accuracy
                    ],
                },
                "guarantee": self.guarantee.to_dict(),
                "snapping": None
                if self.snapping is None
                else {"snap": self.snapping.snap, "unit": self.snapping.unit, "slack": self.snapping.slack},
                "people": None
                if people is None
                else vars(people) | self._rate(*self._person_cost(people.most_rows)) | {"shares": self._shares()},
                "released_twice": self._rate(*self._second_cost()),
                "texts": None if self.texts is None else self._text_record(self.texts),
                "left_behind": self.dropped,
                "notes": self.notes,
                "simulated": self.simulated,
                "seconds": self.seconds,
                "sentences": named.lines(),
            }
        )

    def _text_record(self, mechanism: TextMechanism) -> dict[str, Any]:
        """Return what became of the cells, the rules and the guarantee of whole texts as plain values.

        All of the counts can be made in the output too.
        """
        rules = mechanism.rules
        told = {name: getattr(rules, name) for name in ("case", "units", "budget", "beyond")}
        return {
            "cells_without_text": self.empty,
            "masks": self.masked,
            "guarantee": mechanism.words.guarantee.to_dict(),
            "per": "distance of words, added up over a text",
            "lower": [level.guarantee.epsilon for level in mechanism.lower],
            "sentences": mechanism.promise(),
            "rules": {"unknown": rules.unknown, "kept_words": len(rules.keep), **told, "sentences": rules.sentences()},
            "vocabulary": mechanism.words.inputs.size,
        }

    def _rate(self, amount: float | None, slack: float | None = 0.0) -> dict[str, Any]:
        """Return a cost as plain values: epsilon and slack, or the rho of a guarantee that is approximate."""
        unit = self.guarantee.unit
        if isinstance(self.guarantee, ConcentratedGuarantee):
            return {"rho": amount, "kind": APPROXIMATE, "unit": unit}
        return {"epsilon": amount, "slack": slack, "unit": unit}

    def _person_cost(self, most_rows: int) -> tuple[float | None, float | None]:
        """Return what all rows of the person with the most rows cost together, and their slack."""
        if not isinstance(self.guarantee, ConcentratedGuarantee):
            return self.composed_epsilon, self.composed_slack
        if self.spending is not None:
            return self.spending.amount, 0.0
        return self.guarantee.composed(times=max(1, most_rows)).rho, 0.0

    def _second_cost(self) -> tuple[float, float]:
        """Return what every row costs if the table is protected and released a second time, and its slack."""
        if isinstance(self.guarantee, ConcentratedGuarantee):
            return self.guarantee.composed(times=2).rho, 0.0
        return self.twice, 2.0 * self.guarantee.slack

    def _shares(self) -> list[dict[str, Any]] | None:
        """Return how many persons have how many rows at which cost each, where they share a budget."""
        if self.spending is None:
            return None
        return [
            {"rows": one.rows, "persons": one.persons} | self._rate(one.amount, one.slack) | {"loss": one.loss}
            for one in self.spending.released
        ]

    def _repr_html_(self) -> str:
        return card("Protected", [("", line) for line in self.lines()])

    def _protected_text(self) -> str:
        many = len(self.columns) > MOST_NAMED
        counted = f"{len(self.columns)}, from " if many else ""
        return f"protected {'columns' if len(self.columns) > 1 else 'column'}: {counted}{self.protected_names()}"

    def protected_names(self) -> str:
        """Return the names of the protected columns; of many the first and the last."""
        if len(self.columns) > MOST_NAMED:
            return f"{self.columns[0]} to {self.columns[-1]}"
        return ", ".join(self.columns)


def composition_lines(
    guarantee: AnyGuarantee, people: PeopleCount | None, spending: Spending | None, texts: TextMechanism | None
) -> list[str]:
    """Return what the rows of one person add up to, one sentence a line; of texts without a budget only how many."""
    unknown = texts is not None and texts.rules.budget is None
    if spending is not None:
        return messages.spending_sentences(spending, None if unknown else guarantee)
    if people is None:
        return []
    counted = messages.text_counts if unknown else partial(messages.history, guarantee)
    lines = [counted(people.count, people.column, people.most_rows)]
    return [*lines, messages.rows_without_person(people.without, people.column)] if people.without else lines


def _largest_accuracies(task: TableTask, spending: Spending | None) -> tuple[AccuracyColumn, ...]:
    """Return the accuracy that holds for every row: the largest, where rows have different ones."""
    tasks = [task] if spending is None else [level.task for level in spending.released or spending.levels]
    return tuple(
        max((other.accuracy[position] for other in tasks), key=lambda one: one.radius)
        for position in range(len(task.accuracy))
    )
