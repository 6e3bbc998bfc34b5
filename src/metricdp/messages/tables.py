"""Sentences about a table: the guarantee of a row, the total of a person's rows, the columns that stay."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from metricdp.messages.guarantees import (
    ConcentratedGuaranteeLike,
    GuaranteeLike,
    PureGuaranteeLike,
    digits_of,
    distance,
    epsilon,
    guarantee_text,
    guarantee_text_in_parts,
    part_by_part,
    parts_of,
    rho,
    say,
    slack_factor,
    slack_words,
    things,
    together,
)
from metricdp.messages.texts import text_counts
from metricdp.rendering import number, plural


def row_guarantee(guarantee: GuaranteeLike) -> str:
    """Return the guarantee of one row of a table."""
    return say("rows", "promise", promise=guarantee_text_in_parts(guarantee))


def uncounted_rows() -> str:
    """Return that rows of one person add up, for a table whose persons were not counted."""
    return say("rows", "unknown")


def rows_without_person(count: int, column: str) -> str:
    """Return how many rows name no person."""
    return say("rows", "without", rows=f"{count:,}", column=column)


def unprotected_columns(columns: Sequence[str]) -> str:
    """Return which columns are unchanged."""
    return say("rows", "kept", columns=", ".join(columns))


def dropped_metadata(what: Sequence[str]) -> str:
    """Return which metadata of a table were not copied."""
    return say("rows", "not_carried_over", what=", ".join(what))


def simulated() -> str:
    """Return the warning on reports that were drawn from a seed."""
    return say("rows", "simulated")


class SnappingLike(Protocol):
    """The fields read from snapping: how far, in which unit, and the slack of epsilon * apart that it costs."""

    @property
    def snap(self) -> float: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def apart(self) -> float: ...
    @property
    def slack(self) -> float: ...
    @property
    def same_ground(self) -> bool: ...
    @property
    def unit(self) -> str: ...


def snapping_cost(snapping: SnappingLike, guarantee: PureGuaranteeLike) -> str:
    """Return the slack that moving values to the nearest secret cost, and what distances are between."""
    moved = snapping.snap if snapping.same_ground else snapping.apart
    return say(
        "rows",
        "snap" if snapping.same_ground else "detour",
        snap=distance(snapping.snap, snapping.unit, "up"),
        epsilon=number(snapping.epsilon, digits_of("epsilon"), "up"),
        value=number(moved, digits_of("epsilon"), "up"),
        apart=distance(snapping.apart, guarantee.unit, "up"),
        slack=number(snapping.slack, digits_of("slack"), "up"),
    )


def history(guarantee: GuaranteeLike, count: int, column: str, most: int) -> str:
    """Return the total of the rows of one person, slack included."""
    words = {"count": f"{count:,}", "column": column, "rows": f"{most:,}"}
    if isinstance(guarantee, ConcentratedGuaranteeLike):
        return say("concentrated", "person", together=together(guarantee, most), **words)
    return say("rows", "person", **words, **_added(guarantee, most))


def second_release(guarantee: GuaranteeLike) -> str:
    """Return the total of two releases of the same rows, slack included."""
    if isinstance(guarantee, ConcentratedGuaranteeLike):
        return say("concentrated", "twice", together=together(guarantee, 2))
    return say("rows", "twice", **_added(guarantee, 2))


def _added(guarantee: PureGuaranteeLike, times: int) -> dict[str, str]:
    return {
        "epsilon": _each(guarantee),
        "total": _total(guarantee, times),
        "slack": slack_words(times * guarantee.slack),
    }


def _each(guarantee: PureGuaranteeLike) -> str:
    parts = parts_of(guarantee)
    return f"({part_by_part(parts)})" if parts else number(guarantee.epsilon, digits_of("epsilon"), "up")


def _total(guarantee: PureGuaranteeLike, rows: int) -> str:
    parts = parts_of(guarantee)
    return part_by_part(parts, rows) if parts else epsilon(rows * guarantee.epsilon, guarantee.unit)


def whole_history(guarantee: PureGuaranteeLike, near: float, whose: str, slack: float = 0.0) -> str:
    """Return what the guarantee of all rows of a person means; `near` is the result of `reach_together`.

    `slack` is that of all rows together.
    """
    if near <= 0.0:
        most = slack_factor(slack)
        return f"{whose}: the slack alone allows a factor of {most}, however close places are: little protection."
    called = things(guarantee.unit)
    return (
        f"{whose}: take two histories whose {called} lie up to {short_distance(near, guarantee.unit)} apart"
        f"{guarantee.along} in every row. The odds between them shift by at most a factor of two; farther apart by "
        "more."
    )


def reach_together(guarantee: PureGuaranteeLike, total: float, slack: float) -> float:
    """Return the distance in every row up to which all rows together differ by at most a factor of two.

    `total` is the epsilon of all rows: two histories whose places lie d apart in every row differ by at most a factor
    of exp(total * d + slack).
    """
    near = max(0.0, math.log(2.0) - slack) / total if total > 0.0 else math.inf
    return near if guarantee.radius is None else min(near, guarantee.radius)


def short_distance(value: float, unit: str) -> str:
    """Return a distance as text, rounded down, in centimetres below a metre."""
    if unit == "km" and 0.0 < value < 1e-3:
        return f"{number(1e5 * value, 2, 'down')} cm"
    return distance(value, unit, "down")


class AllocationRequestLike(Protocol):
    """The fields read from the limits of a person's rows."""

    @property
    def id(self) -> str: ...
    @property
    def budget(self) -> float | None: ...
    @property
    def allocation(self) -> str | None: ...
    @property
    def max_rows(self) -> int | None: ...
    @property
    def which(self) -> str: ...


class AllocationLevelLike(Protocol):
    """The fields read from a level: its persons have so many rows, each of this cost and mean distance."""

    @property
    def rows(self) -> int: ...
    @property
    def persons(self) -> int: ...
    @property
    def amount(self) -> float: ...
    @property
    def loss(self) -> float: ...


class SpendingLike(Protocol):
    """The fields read from what every person spends."""

    @property
    def row_limits(self) -> AllocationRequestLike: ...
    @property
    def released(self) -> Sequence[AllocationLevelLike]: ...
    @property
    def amount(self) -> float: ...
    @property
    def slack(self) -> float: ...
    @property
    def written(self) -> int: ...
    @property
    def left_out(self) -> int: ...
    @property
    def loss(self) -> float: ...


def allocation_guarantee(guarantee: GuaranteeLike) -> str:
    """Return the guarantee of rows that share a budget: at most this for each row."""
    return f"Guarantee per row: at most {guarantee_text(guarantee)}; less for persons with many rows."


def spending_sentences(spending: SpendingLike, guarantee: GuaranteeLike | None) -> list[str]:
    """Return the cost of every person's rows, how it was limited, and what the table says about counts.

    Without a guarantee there is no cost: a row of text may have any length.
    """
    row_limits, levels = spending.row_limits, spending.released
    persons = sum(level.persons for level in levels)
    most = max((level.rows for level in levels), default=0)
    lines = []
    if row_limits.max_rows is not None:
        how = "the first in the table" if row_limits.which == "first" else "drawn at random"
        lines.append(
            f"At most {plural(row_limits.max_rows, 'row')} of every person stay, {how}. The choice does not depend on "
            f"the secrets. {plural(spending.left_out, 'row was', 'rows were')} left out."
        )
    if guarantee is not None and row_limits.allocation is not None and row_limits.budget is not None:
        least, largest = (choose((level.amount for level in levels), default=0.0) for choose in (min, max))
        shares = _rate(largest, guarantee)
        if least < largest:
            shares = f"from {number(least, digits_of('epsilon'), 'up')} to {shares}"
        lines.append(
            f"The budget of {_rate(row_limits.budget, guarantee)} is divided evenly: each row gets the budget divided "
            f"by the number of its person's rows, and at most {_rate(_full(guarantee), guarantee)}: {shares}."
        )
    extra = slack_words(spending.slack)
    if guarantee is None:
        lines.append(text_counts(persons, row_limits.id, most))
    else:
        lines.append(
            f"{plural(persons, 'person')} by {row_limits.id}, none with more than {plural(most, 'row')} in the output. "
            f"All rows of any person together are protected at {_rate(spending.amount, guarantee)}{extra}."
        )
    lines.append(
        f"The table shows how many rows each {row_limits.id} has: every row has one report, and nothing hides the "
        "counts."
    )
    return lines


def second_spending(spending: SpendingLike, guarantee: GuaranteeLike) -> str:
    """Return the total of two releases of the same rows for every person."""
    extra = slack_words(2 * spending.slack)
    total = _rate(2 * spending.amount, guarantee)
    twice = "" if parts_of(guarantee) else f"2 x {number(spending.amount, digits_of('epsilon'), 'up')} = "
    return f"A second release of this table costs every person as much again: {twice}{total}{extra} for all their rows."


def allocation_loss(spending: SpendingLike, unit: str) -> str:
    """Return how far reports lie from the truth in a table whose rows have different guarantees."""
    best, worst = (choose((level.loss for level in spending.released), default=0.0) for choose in (min, max))
    if best == worst:
        return f"On average a report lies {distance(best, unit)} from the truth."
    return (
        f"On average a report lies {distance(best, unit)} from the truth for persons with few rows and "
        f"{distance(worst, unit)} for those with the most; {distance(spending.loss, unit)} over all rows."
    )


def _rate(value: float, guarantee: GuaranteeLike) -> str:
    """Return a cost: an epsilon, or the rho of an approximate guarantee."""
    if isinstance(guarantee, ConcentratedGuaranteeLike):
        return f"rho {rho(value, guarantee.unit)} (concentrated, not pure)"
    if parts := parts_of(guarantee):  # the amount counts the sum of metrics
        return part_by_part(parts, value / guarantee.epsilon)
    return epsilon(value, guarantee.unit)


def _full(guarantee: GuaranteeLike) -> float:
    return guarantee.rho if isinstance(guarantee, ConcentratedGuaranteeLike) else guarantee.epsilon


def length(value: float, unit: str) -> str:
    """Return a radius as text, rounded up, in metres below a kilometre."""
    if unit == "m" and value >= 1000:
        return f"{number(value / 1000, 4, 'up')} km"
    if unit == "km" and value < 1:
        return f"{number(1000 * value, 4, 'up')} m"
    return f"{number(value, 4, 'up')} {unit}".rstrip()


def per_cent(level: float) -> str:
    """Return a probability in per cent."""
    return f"{100 * level:g} %"


def accuracy(column: str, radius: float, unit: str, level: float, *, least: float | None = None) -> str:
    """Return what a column of radii says: over the noise, for every secret, from `least` on where rows differ."""
    if least is not None and least < radius:
        return (
            f"Column {column}: with probability at least {per_cent(level)} the truth lies within this radius of its "
            f"report, whatever the truth is. The radius is {length(least, unit)} to {length(radius, unit)}, depending "
            "on how many rows a person has. It follows from the distribution of the noise."
        )
    return (
        f"Column {column}: with probability at least {per_cent(level)} the truth lies within {length(radius, unit)} of "
        "its report, whatever the truth is. This follows from the distribution of the noise, so every row has the same "
        "number."
    )


KINDS = {
    "copy": "{the} a copy of the protected place (equal, rounded, scaled or projected)",
    "geometry": "{hold} geometries",
    "coordinates": "{hold} coordinates",
    "cell": "{name} cells or places on the map",
    "address": "{hold} internet addresses, from which places and households can be looked up",
    "device": "{hold} addresses of devices",
    "prose": "{hold} sentences that are not protected",
    "repeats": "{hold} words of the protected text",
    "text": "{have} one value for each text: rows with equal values held equal texts",
    "stands": "{have} one value for each place: rows with equal values lie together",
    "narrows": "{tell} most of where a row lies",
    "follows": "{depend} on where a row lies",
    "person": "{name} persons",
    "same_person": "{have} one value for each person",
    "unique": "{have} a different value in every row: someone who knows the value finds the row",
    "links": "{have} one value for rows that belong together, as those of a person or a trip do",
    "seconds": "{hold} times to the second: someone who saw a person at that time finds the row",
    "minutes": "{hold} times to the minute: someone who saw a person at that time finds the row",
}
NAMED = {
    "place": "{sound} like places",
    "time": "{sound} like times",
    "person": "{sound} like persons",
    "motion": "{sound} like routes and movements, from which places can be computed",
}
PLURAL = {
    "the": "are", "hold": "hold", "name": "name", "have": "have", "tell": "show", "depend": "depend", "sound": "sound",
}  # fmt: skip
SINGULAR = {
    "the": "is", "hold": "holds", "name": "names", "have": "has", "tell": "shows", "depend": "depends",
    "sound": "sounds",
}  # fmt: skip


class FindingLike(Protocol):
    """The fields read from a finding: the column, the kind, values or name as evidence, and whether it is a time."""

    @property
    def column(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def evidence(self) -> str: ...
    @property
    def is_time(self) -> bool: ...


def found_columns(found: Sequence[FindingLike]) -> list[str]:
    """Return the findings, a line for each kind, by values before names; the last line says what to do."""
    lines = []
    for evidence, words in (("value", KINDS), ("name", NAMED)):
        for kind, phrase in words.items():
            names = [item.column for item in found if (item.evidence, item.kind) == (evidence, kind)]
            if names:
                verbs = SINGULAR if len(names) == 1 else PLURAL
                lines.append(
                    f"Check {', '.join(names)}: {'it' if len(names) == 1 else 'they'} {phrase.format(**verbs)}."
                )
    return [*lines, f"Drop or coarsen what is not needed: {remedies(found)}."] if lines else []


def remedies(found: Sequence[FindingLike]) -> str:
    """Return the options that help."""
    dropped = list(dict.fromkeys(_top(item.column) for item in found if not item.is_time))
    options = [_option("--drop", ",".join(map(_plain, dropped)))] if dropped else []
    options += [_option("--coarsen", f"{_plain(item.column)}=1h") for item in found if item.is_time]
    return f"{' '.join(options)} (or --keep with the names of the columns that may stay)"


def refused_columns(found: Sequence[FindingLike]) -> str:
    """Return why --strict refuses a table: its columns may reveal the secret."""
    return f"columns that stay may reveal the secret, and --strict refuses that. {' '.join(found_columns(found))}"


FILES_STAY = "The names of files, and of folders that are not keys, do not change: check that they reveal nothing."


def refused_names(kind: str) -> str:
    """Return why --strict refuses files: their names, or those of their folders, may reveal the secret."""
    shown = KINDS.get(kind, NAMED.get(kind, "{tell} something")).format(**PLURAL)
    return (
        f"names of files or folders do not change and may reveal the secret: they {shown}. --strict refuses that. "
        "Rename them."
    )


def inspected_rows(rows: int, among: int, *, first: bool = False) -> str:
    """Return on how many rows columns were checked, among how many: the first ones, or rows spread over all."""
    of = f"the first {plural(rows, 'row')}" if first else plural(rows, "row")
    if rows < among:
        of = f"{rows:,} of the first {among:,} rows" if first else f"{plural(rows, 'row')} spread over all {among:,}"
    return (
        f"Columns were checked by their names, and by their values on {of}. This does not prove that the others are "
        "safe."
    )


def inspected_names(engine: str) -> str:
    """Return that values were not checked, because an engine holds the rows."""
    return (
        f"Columns were checked by their names alone, and secrets were not checked for errors: {engine} holds the "
        "rows. First protect a small part of them as a data frame, which checks values."
    )


def dropped_columns(names: Sequence[str]) -> str:
    """Return which columns were dropped."""
    return f"Dropped, as requested: {', '.join(names)}."


def coarsened_columns(steps: Sequence[tuple[str, str]]) -> str:
    """Return which columns were coarsened."""
    return f"Coarsened, as requested: {', '.join(f'{name} to {step}' for name, step in steps)}."


def _top(column: str) -> str:
    return column.partition("[")[0]


def _plain(column: str) -> str:
    """Return a name with its commas escaped: a comma separates names."""
    return column.replace(",", "\\,")


def _option(name: str, value: str) -> str:
    return f"{name}={_quoted(value)}" if value.startswith("-") else f"{name} {_quoted(value)}"


def _quoted(text: str) -> str:
    """Return a word for a shell."""
    return text if all(c.isalnum() or c in "_.,=-/" for c in text) else "'" + text.replace("'", "'\\''") + "'"
