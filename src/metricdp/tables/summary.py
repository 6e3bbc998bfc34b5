"""What was done to a file, what it promises and what it does not, in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from metricdp import wording
from metricdp.cards import card
from metricdp.mechanisms import AnyGuarantee, ConcentratedGuarantee, pure
from metricdp.rendering import printable
from metricdp.tables.lanes import Accuracy, Snapping
from metricdp.tables.leaks import SAMPLED, SAMPLED_FROM, Finding, rows_sampled
from metricdp.tables.options import CAREFREE, Disclosure
from metricdp.tables.spending import Spending
from metricdp.tables.task import Task

if TYPE_CHECKING:
    from metricdp.text import TextMechanism

MOST_NAMED = 20  # columns that a summary names one by one
NAMED_ROWS = 1000  # bad rows that a summary names


@dataclass(frozen=True)
class PeopleCount:
    """How often one person occurs: rows of one person add up."""

    column: str
    count: int
    most_rows: int
    without: int  # rows whose identifier is empty


@dataclass(frozen=True)
class Tally:
    """What became of the rows of a table."""

    rows: int
    bad: int
    bad_rows: tuple[int, ...]  # the first of them
    dropped: tuple[str, ...] = ()  # metadata that was not carried over
    findings: tuple[Finding, ...] = ()  # columns that may give the secret away
    written: int | None = None  # rows in the output, where some were left out on purpose
    empty: int = 0  # of texts: cells without one, masks in the output, rows that other columns were looked at in
    masked: int = 0
    looked: int = 0


@dataclass(frozen=True)
class Passage:
    """Which table was protected into which."""

    source: str
    target: str
    names: Sequence[str]  # the columns of the source
    simulated: bool
    notes: tuple[str, ...] = ()  # sentences on what else should be known


@dataclass(frozen=True)
class TextCounts:
    """What became of the cells of a table of texts; all of it can be counted in the output too."""

    mechanism: TextMechanism
    empty: int  # cells without a text
    masked: int  # masks that stand in the output
    looked: int  # rows at the beginning that other columns were looked at in


@dataclass(frozen=True)
class Summary:
    """What `mdp.perturb` did to files and what it means."""

    source: str
    target: str
    columns: tuple[str, ...]
    kept_columns: tuple[str, ...]
    rows: int
    written: int
    bad: int
    on_error: str
    bad_rows: tuple[int, ...]  # the first of them
    guarantee: AnyGuarantee
    snapping: Snapping | None
    people: PeopleCount | None
    simulated: bool
    seconds: float
    notes: tuple[str, ...] = ()  # sentences on what else should be known
    dropped: tuple[str, ...] = ()  # metadata that was not carried over, since it may hold values
    accuracy: tuple[Accuracy, ...] = ()  # columns that state how far the truth may lie
    findings: tuple[Finding, ...] = ()  # columns that stay and may give the secret away: for the owner's eyes
    care: Disclosure = CAREFREE  # what was dropped, coarsened and kept on purpose
    spending: Spending | None = None  # what the rows of every person cost, where a budget or a limit was asked for
    sampled: int = rows_sampled(1)  # how many rows of a table were looked at, at most
    texts: TextCounts | None = None  # where its secrets are texts

    @classmethod
    def of(
        cls,
        passage: Passage,
        task: Task,
        tally: Tally,
        *,
        people: PeopleCount | None,
        seconds: float,
        spending: Spending | None = None,
    ) -> Summary:
        """Put together what was asked and what was done."""
        return cls(
            source=passage.source,
            target=passage.target,
            columns=task.columns,
            kept_columns=tuple(name for name in passage.names if name not in (*task.columns, *task.care.trim.touched)),
            rows=tally.rows,
            written=tally.rows - (tally.bad if task.on_error == "drop" else 0)
            if tally.written is None
            else tally.written,
            bad=tally.bad,
            on_error=task.on_error,
            bad_rows=tally.bad_rows,
            guarantee=task.guarantee,
            snapping=task.snapping,
            people=people,
            simulated=passage.simulated,
            seconds=seconds,
            notes=passage.notes,
            dropped=tally.dropped,
            accuracy=_largest(task, spending),
            findings=tally.findings,
            care=task.care,
            spending=spending,
            sampled=rows_sampled(task.width),
            texts=None if task.texts is None else TextCounts(task.texts, tally.empty, tally.masked, tally.looked),
        )

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
        promise = pure(self.guarantee, "an epsilon for all rows of a person")
        if self.texts is not None and self.texts.mechanism.rules.budget is None:
            return None
        if self.spending is not None:
            return self.spending.epsilon
        return None if self.people is None else self.people.most_rows * promise.epsilon

    @property
    def composed_slack(self) -> float | None:
        """The slack that holds for every person's rows together; None where nobody was counted."""
        if self.spending is not None:
            return self.spending.slack
        return None if self.people is None else self.people.most_rows * pure(self.guarantee, "slack").slack

    @property
    def twice(self) -> float:
        """The epsilon of every row if this file is protected and released a second time."""
        return 2.0 * self.guarantee.epsilon

    def lines(self) -> list[str]:
        """Return the summary for people, one sentence a line."""
        lines = [f"{self.written:,} rows written to {self.target} in {self.seconds:.1f} s; {self._protected()}."]
        if self.bad:
            done = "left out" if self.on_error == "drop" else "emptied"
            named = ", ".join(str(row) for row in self.bad_rows[:10]) + (", ..." if self.bad > 10 else "")
            lines.append(f"{self.bad:,} of {self.rows:,} rows held no legal secret and were {done}: rows {named}.")
        lines.extend(self._of_texts() if self.texts is not None else self._of_rows())
        if self.snapping is not None:
            lines.append(wording.snapped(self.snapping, pure(self.guarantee, "snapping")))
        for position, one in enumerate(self.accuracy):
            shares = () if self.spending is None else self.spending.released
            least = min((level.task.accuracy[position].radius for level in shares), default=one.radius)
            lines.append(wording.accuracy(one.column, one.radius, one.unit, one.level, least=least))
        lines.extend(self.composition())
        lines.append(self.again())
        lines.extend(self.trimmed())
        if self.kept_columns:
            lines.append(wording.kept(self.kept_columns))
        if self.kept_columns or self.care.trim.coarsen:
            lines.extend(wording.found_columns(self.findings))
            lines.append(self._looked_at())
        if self.dropped:
            lines.append(wording.not_carried_over(self.dropped))
        lines.extend(self.notes)
        if self.simulated:
            lines.append(wording.simulated())
        return [printable(line) for line in lines]

    def _of_rows(self) -> list[str]:
        """Return what all rows of a person, and one, are promised."""
        spread = self.spending is not None and self.spending.is_spread
        one = wording.spread_promise(self.guarantee) if spread else wording.row_promise(self.guarantee)
        return [*self.whole_history(), one]

    def _of_texts(self) -> list[str]:
        """Return what texts are promised, what happened to their words, and that texts of one person add up."""
        assert self.texts is not None
        mechanism, empty = self.texts.mechanism, self.texts.empty
        rules, lines = mechanism.rules, []
        if empty:
            cells = "1 cell held no text: it is" if empty == 1 else f"{empty:,} cells held no text: they are"
            lines.append(f"{cells} empty in the output too, so that this is not hidden.")
        lines += [*mechanism.promise(), *rules.sentences()]
        lines += wording.unknown_words(rules.unknown, rules.mask, self.texts.masked, self.on_error)
        return [*lines, wording.texts_of_one_person()]

    def _looked_at(self) -> str:
        if self.texts is None:
            return wording.looked_at(min(self.rows, self.sampled), self.rows)
        looked = self.texts.looked
        return wording.looked_at(min(looked, SAMPLED), min(looked, SAMPLED_FROM), first=True)

    def whole_history(self) -> list[str]:
        """Return what all rows of the person who has the most are worth, in distances; nothing where none were counted.

        Rows of one person add up, so this comes before the promise of one row.
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
            return [wording.concentrated_whole_history(all_of_them, whose)]
        if (reach := self.reach_together()) is None:
            return []
        parts = wording.parts_of(self.guarantee)
        return [wording.whole_history(parts[0] if parts else self.guarantee, reach, whose)]

    def reach_together(self) -> float | None:
        """Return how far apart places may lie in every row of a person for all rows to keep a factor of two.

        None where nobody has more than one row, or nobody was counted, and for guarantees without such a distance, as
        sums of metrics in several units.
        """
        if self.people is None or self.people.most_rows < 2 or isinstance(self.guarantee, ConcentratedGuarantee):
            return None
        if self.guarantee.basis == "none" or not self.composed_epsilon:
            return None
        parts = wording.parts_of(self.guarantee)
        if len({part.unit for part in parts}) > 1:
            return None
        # a sum of metrics: every part of a row may lie that far apart, and what the parts leak adds up
        parts_epsilon = sum(part.epsilon for part in parts) / self.guarantee.epsilon if parts else 1.0
        return wording.reach_together(self.guarantee, parts_epsilon * self.composed_epsilon, self.composed_slack or 0.0)

    def again(self) -> str:
        """Return what protecting and releasing the table a second time costs."""
        if self.texts is not None and (self.spending is None or self.composed_epsilon is None):
            return wording.texts_again()
        if self.spending is None:
            return wording.released_again(self.guarantee)
        return wording.spent_again(self.spending, self.guarantee)

    def trimmed(self) -> list[str]:
        """Return which columns were left out or coarsened, one sentence a line."""
        trim = self.care.trim
        lines = [wording.dropped_columns(trim.drop)] if trim.drop else []
        if trim.coarsen:
            lines.append(wording.coarsened_columns([(name, step.written) for name, step in trim.coarsen]))
        return lines

    def composition(self) -> list[str]:
        """Return what the rows of one person add up to, one sentence a line."""
        if self.people is None and self.spending is None:
            return [wording.uncounted()] if self.texts is None else []
        texts = None if self.texts is None else self.texts.mechanism
        return composed(self.guarantee, self.people, self.spending, texts)

    def _repr_html_(self) -> str:
        return card("Protected", [("", line) for line in self.lines()])

    def _protected(self) -> str:
        plural = "columns" if len(self.columns) > 1 else "column"
        if len(self.columns) > MOST_NAMED:
            return f"protected {plural}: {len(self.columns)}, from {self.columns[0]} to {self.columns[-1]}"
        return f"protected {plural}: {', '.join(self.columns)}"


def composed(
    promise: AnyGuarantee, people: PeopleCount | None, spending: Spending | None, texts: TextMechanism | None
) -> list[str]:
    """Return what the rows of one person add up to, one sentence a line; of texts without a budget only how many."""
    unknown = texts is not None and texts.rules.budget is None
    if spending is not None:
        return wording.spent(spending, None if unknown else promise)
    if people is None:
        return []
    counted = wording.texts_counted if unknown else partial(wording.history, promise)
    lines = [counted(people.count, people.column, people.most_rows)]
    return [*lines, wording.without_person(people.without, people.column)] if people.without else lines


def _largest(task: Task, spending: Spending | None) -> tuple[Accuracy, ...]:
    """Return the accuracy that holds for every row: the largest, where rows have different ones."""
    tasks = [task] if spending is None else [level.task for level in spending.released or spending.levels]
    return tuple(
        max((other.accuracy[position] for other in tasks), key=lambda one: one.radius)
        for position in range(len(task.accuracy))
    )
