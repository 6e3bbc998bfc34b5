"""Many columns by one name: a pattern, or from one number to another."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence

from metricdp import shared
from metricdp.errors import InvalidInput

SPAN = re.compile(r"(?P<stem>.*?)(?P<first>\d+)\.\.(?P<again>.*?)(?P<last>\d+)", re.DOTALL)


def expanded(chosen: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Return names with patterns replaced by the columns of a table they stand for.

    `e_*` are all that begin so, in the order of the table, and `e_0..e_299` those from one number to another. A column
    that has such a name itself is that column.
    """
    found: list[str] = []
    for name in chosen:
        span = SPAN.fullmatch(name)
        if name in names:
            found.append(name)
        elif span is not None and span["stem"] == span["again"]:
            first, last = int(span["first"]), int(span["last"])
            if not 0 <= last - first < shared.LARGEST_DIMENSION:
                raise InvalidInput(f"{name!r} must name columns from a lower to a higher number, such as e_0..e_299.")
            digits = len(span["first"]) if span["first"].startswith("0") else 0
            found += [f"{span['stem']}{number:0{digits}d}" for number in range(first, last + 1)]
        elif "*" in name and (some := [one for one in names if fnmatch.fnmatchcase(one, name.replace("[", "[[]"))]):
            found += some
        else:
            found.append(name)
    return tuple(found)
