"""Sentences about columns that stay in a table: which may give people away, in what way, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

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


class Found(Protocol):
    """What is read of a finding: which column, in what way, by its values or by its name, and whether it is a time."""

    @property
    def column(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def evidence(self) -> str: ...
    @property
    def is_time(self) -> bool: ...


def found_columns(found: Sequence[Found]) -> list[str]:
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


def remedies(found: Sequence[Found]) -> str:
    """Return the options that help."""
    dropped = list(dict.fromkeys(_top(item.column) for item in found if not item.is_time))
    options = [_option("--drop", ",".join(map(_plain, dropped)))] if dropped else []
    options += [_option("--coarsen", f"{_plain(item.column)}=1h") for item in found if item.is_time]
    return f"{' '.join(options)} (or --keep and the names of those that may stay)"


def refused_columns(found: Sequence[Found]) -> str:
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


def looked_at(rows: int, among: int, *, first: bool = False) -> str:
    """Return on how many rows columns were looked at, among how many; among the first ones, or spread over all."""
    of = f"the first {rows:,} rows" if first else f"{rows:,} rows"
    if rows < among:
        of = f"{rows:,} of the first {among:,} rows" if first else f"{rows:,} rows spread over all {among:,}"
    return (
        f"Columns were looked at by their names, and by their values on {of}: what was found is no proof that nothing "
        "else is there."
    )


def looked_at_names(engine: str) -> str:
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
