"""Sentences about a table: what each row promises, what a person's add up to, which columns stay."""

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
    slack_words,
    things,
    together,
)
from metricdp.messages.texts import text_counts
from metricdp.rendering import number


def row_guarantee(guarantee: GuaranteeLike) -> str:
    """Return the promise for one row of a table."""
    return _row_values("promise", promise=guarantee_text_in_parts(guarantee))


def uncounted_rows() -> str:
    """Return that rows of one person add up, where nobody was counted."""
    return _row_values("unknown")


def rows_without_person(count: int, column: str) -> str:
    """Return how many rows belong to nobody who was counted."""
    return _row_values("without", rows=f"{count:,}", column=column)


def unprotected_columns(columns: Sequence[str]) -> str:
    """Return which columns stay unprotected."""
    return _row_values("kept", columns=", ".join(columns))


def dropped_metadata(what: Sequence[str]) -> str:
    """Return which metadata of a table were left behind."""
    return _row_values("not_carried_over", what=", ".join(what))


def simulated() -> str:
    """Return the mark of what was drawn from a seed."""
    return _row_values("simulated")


class SnappingLike(Protocol):
    """What is read of snapping: how far, in which unit, and the slack of epsilon * apart that it costs."""

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
    """Return what putting values on the nearest secret cost, and between what distances are meant."""
    moved = snapping.snap if snapping.same_ground else snapping.apart
    return _row_values(
        "snap" if snapping.same_ground else "detour",
        snap=distance(snapping.snap, snapping.unit, "up"),
        epsilon=number(snapping.epsilon, digits_of("epsilon"), "up"),
        value=number(moved, digits_of("epsilon"), "up"),
        apart=distance(snapping.apart, guarantee.unit, "up"),
        slack=number(snapping.slack, digits_of("slack"), "up"),
    )


def history(guarantee: GuaranteeLike, count: int, column: str, most: int) -> str:
    """Return what the rows of one person add up to, slack included."""
    words = {"count": f"{count:,}", "column": column, "rows": f"{most:,}"}
    if isinstance(guarantee, ConcentratedGuaranteeLike):
        return say("concentrated", "person", together=together(guarantee, most), **words)
    return _row_values("person", **words, **_added(guarantee, most))


def second_release(guarantee: GuaranteeLike) -> str:
    """Return what a second release of the same rows adds up to, slack included."""
    if isinstance(guarantee, ConcentratedGuaranteeLike):
        return say("concentrated", "twice", together=together(guarantee, 2))
    return _row_values("twice", **_added(guarantee, 2))


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


def whole_history(guarantee: PureGuaranteeLike, near: float, whose: str) -> str:
    """Return what all rows of a person together are worth; `near` is what `reach_together` returns."""
    if near <= 0.0:
        return f"{whose}: the slack of all rows together is beyond a factor of two, however near their places are."
    called = things(guarantee.unit)
    return (
        f"{whose}: the odds between two histories whose {called} lie up to {short_distance(near, guarantee.unit)} apart"
        f"{guarantee.along} in every row shift by at most a factor of two; farther apart by more."
    )


def reach_together(guarantee: PureGuaranteeLike, total: float, slack: float) -> float:
    """Return how far apart places may lie in every row for all rows together to keep a factor of two.

    `total` is the epsilon of all rows: histories whose places lie d apart in every row differ by a factor of
    exp(total * d + slack) at most.
    """
    near = max(0.0, math.log(2.0) - slack) / total if total > 0.0 else math.inf
    return near if guarantee.radius is None else min(near, guarantee.radius)


def short_distance(value: float, unit: str) -> str:
    """Return a distance as people say it, rounded down, in centimetres below a metre."""
    if unit == "km" and 0.0 < value < 1e-3:
        return f"{number(1e5 * value, 2, 'down')} cm"
    return distance(value, unit, "down")


def _row_values(kind: str, **values: str) -> str:
    return say("rows", kind, **values)


class AllocationRequestLike(Protocol):
    """What is read of a wish for everybody's rows."""

    @property
    def column(self) -> str: ...
    @property
    def budget(self) -> float | None: ...
    @property
    def spread(self) -> str | None: ...
    @property
    def at_most(self) -> int | None: ...
    @property
    def which(self) -> str: ...


class AllocationLevelLike(Protocol):
    """What is read of a level: persons with so many rows, what each row costs, the mean distance of its report."""

    @property
    def rows(self) -> int: ...
    @property
    def persons(self) -> int: ...
    @property
    def amount(self) -> float: ...
    @property
    def loss(self) -> float: ...


class SpendingLike(Protocol):
    """What is read of what everybody spends."""

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
    """Return the promise of rows that share a budget: at most this for each."""
    return f"Promise per row: at most {guarantee_text(guarantee)}; less where a person has many rows."


def spending_sentences(spending: SpendingLike, guarantee: GuaranteeLike | None) -> list[str]:
    """Return what everybody's rows cost, how it was kept small, and what the table says about counts.

    Without a promise nothing is said of costs: rows of texts may have any length.
    """
    row_limits, levels = spending.row_limits, spending.released
    persons = sum(level.persons for level in levels)
    most = max((level.rows for level in levels), default=0)
    lines = []
    if row_limits.at_most is not None:
        how = "the first in the table" if row_limits.which == "first" else "drawn by chance"
        lines.append(
            f"At most {row_limits.at_most:,} rows of every person stay, {how}, chosen without looking at the secrets: "
            f"{spending.left_out:,} rows were left out."
        )
    if guarantee is not None and row_limits.spread is not None and row_limits.budget is not None:
        least, largest = (choose((level.amount for level in levels), default=0.0) for choose in (min, max))
        shares = _rate(largest, guarantee)
        if least < largest:
            shares = f"from {number(least, digits_of('epsilon'), 'up')} to {shares}"
        lines.append(
            f"The budget of {_rate(row_limits.budget, guarantee)} is spread evenly: each of a person's rows gets the "
            f"budget divided by how many there are, and at most {_rate(_full(guarantee), guarantee)}: {shares}."
        )
    extra = slack_words(spending.slack)
    if guarantee is None:
        lines.append(text_counts(persons, row_limits.column, most))
    else:
        lines.append(
            f"{persons:,} persons by {row_limits.column}, none with more than {most:,} rows in the output. For every "
            f"one of "
            f"them all rows together are protected at {_rate(spending.amount, guarantee)}{extra}."
        )
    lines.append(
        f"How many rows each {row_limits.column} has is published with the table: there is one report a row, and "
        "nothing hides the counts."
    )
    return lines


def second_spending(spending: SpendingLike, guarantee: GuaranteeLike) -> str:
    """Return what a second release of the same rows adds up to for every person."""
    extra = slack_words(2 * spending.slack)
    total = _rate(2 * spending.amount, guarantee)
    twice = "" if parts_of(guarantee) else f"2 x {number(spending.amount, digits_of('epsilon'), 'up')} = "
    return (
        "Protecting this table a second time and releasing both costs every person as much again: "
        f"{twice}{total}{extra} for all their rows."
    )


def allocation_loss(spending: SpendingLike, unit: str) -> str:
    """Return how far reports lie from the truth where rows have different promises."""
    best, worst = (choose((level.loss for level in spending.released), default=0.0) for choose in (min, max))
    if best == worst:
        return f"On average a report lies {distance(best, unit)} from the truth."
    return (
        f"On average a report lies {distance(best, unit)} from the truth for persons with few rows and "
        f"{distance(worst, unit)} for those with the most; {distance(spending.loss, unit)} over all rows."
    )


def _rate(value: float, guarantee: GuaranteeLike) -> str:
    """Return what something costs: an epsilon, or the rho of promises that are approximate."""
    if isinstance(guarantee, ConcentratedGuaranteeLike):
        return f"rho {rho(value, guarantee.unit)} (concentrated, not pure)"
    if parts := parts_of(guarantee):  # the amount counts the sum of metrics
        return part_by_part(parts, value / guarantee.epsilon)
    return epsilon(value, guarantee.unit)


def _full(guarantee: GuaranteeLike) -> float:
    return guarantee.rho if isinstance(guarantee, ConcentratedGuaranteeLike) else guarantee.epsilon


def length(value: float, unit: str) -> str:
    """Return a radius as people say it, rounded up: metres below a kilometre."""
    if unit == "m" and value >= 1000:
        return f"{number(value / 1000, 4, 'up')} km"
    if unit == "km" and value < 1:
        return f"{number(1000 * value, 4, 'up')} m"
    return f"{number(value, 4, 'up')} {unit}".rstrip()


def per_cent(level: float) -> str:
    """Return a chance in per cent."""
    return f"{100 * level:g} %"


def accuracy(column: str, radius: float, unit: str, level: float, *, least: float | None = None) -> str:
    """Return what a column of accuracies says: over the noise, for every secret, rows of different laws apart."""
    if least is not None and least < radius:
        return (
            f"Column {column}: with a chance of at least {per_cent(level)} the truth lies within so much of its "
            f"report, from {length(least, unit)} to {length(radius, unit)} by how many rows a person has, "
            "whatever the truth is; by the law of the noise."
        )
    return (
        f"Column {column}: with a chance of at least {per_cent(level)} the truth lies within {length(radius, unit)} of "
        "its report, whatever the truth is; by the law of the noise, so the number is the same in every row."
    )


def radius_phrase(radius: float, unit: str, level: float) -> str:
    """Return how far reports lie from the truth at most, as half a sentence."""
    return f"within {length(radius, unit)} of the truth with a chance of at least {per_cent(level)}"


KINDS = {
    "copy": "{the} the protected place once more (equal, rounded, scaled or projected)",
    "geometry": "{hold} geometries",
    "coordinates": "{hold} coordinates",
    "cell": "{name} cells or places on the map",
    "address": "{hold} internet addresses, which are looked up as places and households",
    "device": "{hold} addresses of devices",
    "prose": "{hold} sentences that are not protected",
    "repeats": "{hold} words of the protected text",
    "text": "{have} one value for one text: rows with equal values held equal texts",
    "stands": "{have} one value for one place: rows with equal values lie together",
    "narrows": "{tell} most of where a row lies",
    "follows": "{are} decided by where a row lies",
    "person": "{name} persons",
    "same_person": "{have} one value a person",
    "unique": "{have} another value in every row: whoever knows it elsewhere finds the row",
    "links": "{have} one value for rows that stand together, as a person or a trip has",
    "seconds": "{hold} times to the second: whoever saw somebody then finds the row",
    "minutes": "{hold} times to the minute: whoever saw somebody then finds the row",
}
NAMED = {
    "place": "{sound} like places",
    "time": "{sound} like times",
    "person": "{sound} like persons",
    "motion": "{sound} like ways and movements, from which places are reckoned",
}
PLURAL = {
    "the": "are", "hold": "hold", "name": "name", "have": "have", "tell": "tell", "are": "are", "sound": "sound",
}  # fmt: skip
SINGULAR = {
    "the": "is", "hold": "holds", "name": "names", "have": "has", "tell": "tells", "are": "is", "sound": "sounds",
}  # fmt: skip


class FindingLike(Protocol):
    """What is read of a finding: which column, in what way, by its values or by its name, and whether it is a time."""

    @property
    def column(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def evidence(self) -> str: ...
    @property
    def is_time(self) -> bool: ...


def found_columns(found: Sequence[FindingLike]) -> list[str]:
    """Return what was found, one kind a line, by values before names, and at the end what to do."""
    lines = []
    for evidence, words in (("value", KINDS), ("name", NAMED)):
        for kind, phrase in words.items():
            names = [item.column for item in found if (item.evidence, item.kind) == (evidence, kind)]
            if names:
                verbs = SINGULAR if len(names) == 1 else PLURAL
                lines.append(
                    f"Look at {', '.join(names)}: {'it' if len(names) == 1 else 'they'} {phrase.format(**verbs)}."
                )
    return [*lines, f"To leave out or coarsen what is not needed: {remedies(found)}."] if lines else []


def remedies(found: Sequence[FindingLike]) -> str:
    """Return the options that help."""
    dropped = list(dict.fromkeys(_top(item.column) for item in found if not item.is_time))
    options = [_option("--drop", ",".join(map(_plain, dropped)))] if dropped else []
    options += [_option("--coarsen", f"{_plain(item.column)}=1h") for item in found if item.is_time]
    return f"{' '.join(options)} (or --keep and the names of those that may stay)"


def refused_columns(found: Sequence[FindingLike]) -> str:
    """Return why a table is refused whose columns give the secret away."""
    return f"columns that stay may give the secret away, and --strict was asked for. {' '.join(found_columns(found))}"


FILES_STAY = "The names of files, and of folders that are no keys, leave as they are: see that they tell nothing."


def refused_names(kind: str) -> str:
    """Return why files are refused whose names, or those of their folders, give the secret away."""
    shown = KINDS.get(kind, NAMED.get(kind, "{tell} something")).format(**PLURAL)
    return (
        f"names of files or folders leave as they are and may give the secret away: they {shown}; --strict was asked "
        "for. Give them other names."
    )


def inspected_rows(rows: int, among: int, *, first: bool = False) -> str:
    """Return on how many rows columns were looked at, among how many; among the first ones, or spread over all."""
    of = f"the first {rows:,} rows" if first else f"{rows:,} rows"
    if rows < among:
        of = f"{rows:,} of the first {among:,} rows" if first else f"{rows:,} rows spread over all {among:,}"
    return (
        f"Columns were looked at by their names, and by their values on {of}: what was found is no proof that nothing "
        "else is there."
    )


def inspected_names(engine: str) -> str:
    """Return that values were not looked at, where an engine keeps the rows."""
    return (
        f"Columns were looked at by their names alone, and secrets were not doubted: the rows are {engine}'s. "
        "Protect a small part of them as a data frame first, which looks at values."
    )


def dropped_columns(names: Sequence[str]) -> str:
    """Return which columns were left out."""
    return f"Left out, as asked: {', '.join(names)}."


def coarsened_columns(steps: Sequence[tuple[str, str]]) -> str:
    """Return which columns were coarsened."""
    return f"Coarsened, as asked: {', '.join(f'{name} to {step}' for name, step in steps)}."


def _top(column: str) -> str:
    return column.partition("[")[0]


def _plain(column: str) -> str:
    """Return a name with its commas marked: between names they part."""
    return column.replace(",", "\\,")


def _option(name: str, value: str) -> str:
    return f"{name}={_quoted(value)}" if value.startswith("-") else f"{name} {_quoted(value)}"


def _quoted(text: str) -> str:
    """Return a word for a shell."""
    return text if all(c.isalnum() or c in "_.,=-/" for c in text) else "'" + text.replace("'", "'\\''") + "'"
