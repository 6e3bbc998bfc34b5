"""What databases share: names of tables, and which one is meant."""

from __future__ import annotations

import difflib
import string
from collections.abc import Sequence

from metricdp.errors import InvalidInput
from metricdp.tables.formats.base import Location


def quoted(name: str) -> str:
    """Return a name as SQL writes it, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


FOLDED = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def same_table(one: str, other: str) -> bool:
    """Tell whether two names are those of one table: SQLite and DuckDB do not tell A to Z from a to z."""
    return one.translate(FOLDED) == other.translate(FOLDED)


def chosen_table(names: Sequence[str], location: Location) -> str:
    """Return the table that was named, as the database spells it, or the only one; else say which there are."""
    for name in names:
        if location.table and same_table(name, location.table):
            return name
    there = (
        f"Its tables are {', '.join(names[:30])}{' and more' if len(names) > 30 else ''}." if names else "It has none."
    )
    if location.table:
        near = difflib.get_close_matches(location.table, names, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise InvalidInput(f"{str(location.path)!r} has no table {location.table!r}. {there}{hint}")
    if len(names) != 1:
        example = f", such as {location.path}::{names[0]}" if names else ""
        raise InvalidInput(f"{str(location.path)!r} is a database: name one of its tables{example}. {there}")
    return names[0]
