"""Rows of a study: what they are about first, then the published number and ours, then what it took.

A row is flat: texts, numbers and None. Columns that nobody knows here say what the row is about and come first.
`measure` names what is measured; `published` is the paper's number, `as_published` ours with the method exactly as
published, `corrected` ours with what keeps the guarantee, `bound` what none with
that guarantee and these reports can beat.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from metricdp.errors import InvalidInput
from metricdp.files import replace_file

Row = dict[str, Any]
VALUES = ("published", "as_published", "corrected", "bound")
ALWAYS = ("measure", *VALUES)
SOMETIMES = ("spread", "as_published_spread", "repetitions")
LAST = (*ALWAYS, *SOMETIMES, "seconds", "note")
MOST_NOTES = 3  # of a row; of more than that the first speaks for all
REPETITION = "repetition"  # rows that differ in this column alone are one row of the table: their mean


def row(
    about: Row, measure: str, as_published: Any = None, corrected: Any = None, *, note: Any = "", **values: Any
) -> Row:
    """Return a row: what it is about, what is measured, ours as published and corrected where they are, and more."""
    ours = {"as_published": as_published, "corrected": corrected}
    known = {name: value for name, value in ours.items() if value is not None}
    return {**about, "measure": measure, **known, **values, "note": note}


class RowList(list[Row]):
    """Rows about one thing; the number of each goes into one column, `as_published` or `corrected`."""

    def __init__(self, about: Row, column: str) -> None:
        super().__init__()
        self.about, self.column = about, column

    def add(self, measure: str, value: Any, **more: Any) -> None:
        """Add the row of a measure."""
        self.append(row(self.about, measure, **{self.column: value}, **more))


def is_number(value: Any) -> bool:
    """Tell whether a cell is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_rows(rows: Iterable[Mapping[str, Any]], key: str) -> list[Row]:
    """Return the rows of a piece with plain values; whatever is not flat is refused."""
    found = []
    for row in rows:
        if "measure" not in row:
            raise InvalidInput(f"a row of the piece {key!r} has no `measure`: {dict(row)!r}.")
        found.append({str(name): _plain(value, name, key) for name, value in row.items()})
    return found


def _plain(value: Any, name: str, key: str) -> Any:
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        value = value.item()  # a number of numpy
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):  # JSON has no infinity and nobody computes with what is not a number
        return value if math.isfinite(value) else None if math.isnan(value) else str(value)
    raise InvalidInput(f"`{name}` in the piece {key!r} must be a text, a number or None, got {type(value).__name__}.")


def columns(rows: Sequence[Row]) -> list[str]:
    """Return the columns of a table: what rows are about in the order of appearance, then the known ones."""
    seen = dict.fromkeys(name for row in rows for name in row)
    kept = [name for name in LAST if name not in SOMETIMES or any(row.get(name) is not None for row in rows)]
    return [name for name in seen if name not in LAST] + kept


def average_repetitions(rows: Sequence[Row]) -> list[Row]:
    """Return rows with repetitions as one: means, `spread` and the number of `repetitions`.

    `spread` is half the width of the 95 % interval of the mean by Student's t: of `corrected`, or of `as_published`
    where that stands alone; where both are measured `as_published_spread` is the other. Rows without a repetition stay.
    """
    groups: dict[tuple[tuple[str, Any], ...], list[Row]] = {}
    for row in rows:
        about = tuple((name, value) for name, value in row.items() if name not in (*LAST[1:], REPETITION))
        groups.setdefault(about, []).append(row)
    found: list[Row] = []
    for members in groups.values():
        if not any(REPETITION in row for row in members):
            found += members
            continue
        found.append(_mean(members))
    return found


def _mean(members: Sequence[Row]) -> Row:
    merged = {name: value for name, value in members[0].items() if name != REPETITION}
    spreads: dict[str, float] = {}
    for name in ("as_published", "corrected", "bound", "seconds"):
        known = [float(row[name]) for row in members if isinstance(row.get(name), int | float)]
        told = [row[name] for row in members if isinstance(row.get(name), str)]  # "inf": no mean of the others is one
        merged[name] = told[0] if told else math.fsum(known) / len(known) if known else None
        if name in VALUES and len(known) > 1 and not told:
            spreads[name] = _half_width(known)
    both = "as_published" in spreads and "corrected" in spreads
    if "corrected" in spreads or "as_published" in spreads:
        merged["spread"] = spreads.get("corrected", spreads.get("as_published"))
    if both:
        merged["as_published_spread"] = spreads["as_published"]
    merged["repetitions"] = len(members)
    notes = list(dict.fromkeys(str(row["note"]) for row in members if row.get("note")))
    many = len(notes) > MOST_NOTES
    merged["note"] = f"{notes[0]} (one of {len(members)} repetitions)" if many else "; ".join(notes)
    return merged


def _half_width(values: Sequence[float]) -> float:
    from scipy.special import stdtrit

    count, mean = len(values), math.fsum(values) / len(values)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1))
    return float(stdtrit(count - 1, 0.975)) * deviation / math.sqrt(count)


def write_csv(rows: Sequence[Row], path: Path, *, about: Sequence[str] = ()) -> Path:
    """Write a table whole or not at all; lines `about` it come first and begin with a hash."""
    with replace_file(path) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        file.writelines(f"# {' '.join(line.split())}\n" for line in about)
        writer = csv.DictWriter(file, fieldnames=columns(rows), restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return path


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return " ".join(value.split())  # one line a row, so that what stands above the table is told apart
    return "" if value is None else f"{value:.10g}" if isinstance(value, float) else value


def read_csv(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    """Return what stands about a table before it, and its rows as texts."""
    lines = path.read_text(encoding="utf-8").splitlines()
    count = next((at for at, line in enumerate(lines) if not line.startswith("#")), len(lines))
    return [line[1:].strip() for line in lines[:count]], list(csv.DictReader(lines[count:]))
