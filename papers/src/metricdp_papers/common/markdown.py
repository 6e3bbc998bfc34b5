"""Tables and numbers of recorded results as Markdown, so that a page holds no figure that was typed.

A page names what it shows in one line of words:

    results aipo_table_2 city=rome epsilon=0.4,0.8 across=epsilon value=corrected
    number aipo_table_2 city=rome epsilon=0.4 method=EM value=corrected digits=3

    number aipo_table_2 city=rome method=EM value=corrected range=yes        the least and the largest of several rows

`column=a,b` keeps rows; `show=a,b` names the columns; `across=column value=a,b` puts one column for every value of a
column, and of `value=a|b` the first that a row has; `digits=3` says how many digits count. Columns that hold one thing
throughout stand above the table instead.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from metricdp.errors import InvalidInput
from metricdp_papers.common.page import TITLES, number
from metricdp_papers.common.rows import LAST, read_csv

WORDS = ("show", "across", "value", "digits", "about", "range")
Texts = Mapping[str, str]


@dataclass(frozen=True)
class Query:
    """Which rows of a recorded table are wanted, and how they are shown."""

    stem: str
    keep: Mapping[str, tuple[str, ...]]
    show: tuple[str, ...]
    across: str
    values: tuple[str, ...]
    digits: int
    about: bool
    range: bool = False

    @classmethod
    def of(cls, line: str) -> Query:
        """Read the words after `results` or `number`."""
        stem, *rest = shlex.split(line)
        pairs = dict(word.partition("=")[::2] for word in rest)
        lists = {name: tuple(text.split(",")) for name, text in pairs.items()}
        keep = {name: texts for name, texts in lists.items() if name not in WORDS}
        values = lists.get("value", ("corrected",))
        digits = int(pairs.get("digits", "4"))
        show, across, about = lists.get("show", ()), pairs.get("across", ""), pairs.get("about") != "no"
        return cls(stem, keep, show, across, values, digits, about, pairs.get("range") == "yes")


def table(folder: Path, line: str) -> str:
    """Return a table of recorded results, with where it comes from below it."""
    query = Query.of(line)
    path = folder / f"{query.stem}.csv"
    if not path.is_file():
        return f"*Not run yet at this size: `{_command(query.stem)}` runs it.*\n"
    about, rows = _matching_rows(path, query)
    if not rows:
        return f"*These rows have not run yet: `{_command(query.stem)}` runs them.*\n"
    head, lines, said = _pivot(rows, query) if query.across else _plain(rows, query)
    text = [said + "\n"] if said else []
    text += ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    text += ["| " + " | ".join(_safe(cell) for cell in cells) + " |" for cells in lines]
    return "\n".join(text) + "\n" + ("\n" + origin(path.name, about) + "\n" if query.about else "")


def value(folder: Path, line: str) -> str:
    """Return one number of recorded results; the query must leave one row, or asks for the range of several."""
    query = Query.of(line)
    path = folder / f"{query.stem}.csv"
    rows = _matching_rows(path, query)[1] if path.is_file() else []
    if not rows:
        return "(not run yet)"
    if query.range:
        numbers = sorted((told for row in rows if (told := _row_values(row, query.values[0]))), key=float)
        return " to ".join(dict.fromkeys(_number(one, query.digits) for one in (numbers[0], numbers[-1])))
    if len(rows) != 1:
        raise InvalidInput(f"`number {line}` must leave one row of {path.name}, got {len(rows)}.")
    return _number(_row_values(rows[0], query.values[0]), query.digits)


def origin(name: str, about: Sequence[str]) -> str:
    """Return one line that says which file, command, version and load stand behind a table, and what is missing."""
    facts = dict(line.partition(": ")[::2] for line in about)
    said = f"[`{name}`](results/{name}): `{facts.get('command', '')}`, version {facts.get('version', 'unknown')}"
    said += f"; {facts['machine']}" if "machine" in facts else ""
    said += f"; {facts['pieces']}" if "pieces" in facts else ""
    if "missing" in facts:
        said += f". Not run: {facts['missing'].partition(':')[0]}, which the command runs"
    failures = sum(line.startswith("failed: ") for line in about)
    return f"*{said}{f'. Failed: {failures} pieces' if failures else ''}.*"


def _matching_rows(path: Path, query: Query) -> tuple[list[str], list[dict[str, str]]]:
    about, rows = read_csv(path)
    names = set(rows[0]) if rows else set()
    for name in (*query.keep, *query.show, *((query.across,) if query.across else ())):
        if name not in names:
            raise InvalidInput(f"{path.name} has no column {name!r}: it has {', '.join(sorted(names))}.")
    kept = [row for row in rows if all(_one_of(row[name], texts) for name, texts in query.keep.items())]
    if not kept and not any(line.startswith(("missing: ", "failed: ")) for line in about):
        raise InvalidInput(f"no row of {path.name} is left by {dict(query.keep)!r}.")
    return about, kept


def _order(heads: Iterable[str]) -> list[str]:
    """Return numbers by size, anything else as it came."""
    try:
        return sorted(heads, key=float)
    except ValueError:
        return list(heads)


def _row_values(row: Texts, names: str) -> str:
    return next((row[name] for name in names.split("|") if row.get(name)), "")


def _one_of(text: str, wanted: Sequence[str]) -> bool:
    return text in wanted or any(_same_number(text, one) for one in wanted)


def _same_number(a: str, b: str) -> bool:
    try:
        return float(a) == float(b)
    except ValueError:
        return False


def _columns(rows: Sequence[Texts], query: Query, skip: Sequence[str]) -> tuple[list[str], str]:
    """Return the columns to show, and a line about those that hold one thing throughout."""
    filled = [name for name in rows[0] if name not in skip and any(row[name] for row in rows)]
    names = list(query.show) or filled
    fixed: dict[str, str] = {}
    if not query.show and (len(rows) > 1 or query.across):
        fixed = {n: rows[0][n] for n in names if n not in LAST[1:] and len({row[n] for row in rows}) == 1}
    said = "; ".join(f"{_title(name)}: {text}" for name, text in fixed.items() if text)
    return [name for name in names if name not in fixed], f"*{said}*" if said else ""


def _plain(rows: Sequence[Texts], query: Query) -> tuple[list[str], list[list[str]], str]:
    names, said = _columns(rows, query, ())
    return [*map(_title, names)], [[_number(row[name], query.digits) for name in names] for row in rows], said


def _pivot(rows: Sequence[Texts], query: Query) -> tuple[list[str], list[list[str]], str]:
    about, said = _columns(rows, query, (*LAST[1:], query.across))
    heads = _order(dict.fromkeys(row[query.across] for row in rows))
    groups: dict[tuple[str, ...], dict[tuple[str, str], str]] = {}
    for row in rows:
        cells = groups.setdefault(tuple(row[name] for name in about), {})
        for name in query.values:
            if (row[query.across], name) in cells:
                raise InvalidInput(f"{query.stem}: two rows for {dict(row)!r}; name more columns.")
            cells[row[query.across], name] = _row_values(row, name)
    several = len(query.values) > 1
    head = [*map(_title, about)]
    head += [f"{_title(query.across)} {one}{', ' + _title(name) if several else ''}" for one in heads
             for name in query.values]  # fmt: skip
    lines = [
        [*key, *(_number(cells.get((one, name), ""), query.digits) for one in heads for name in query.values)]
        for key, cells in groups.items()
    ]
    return head, lines, said


def _title(name: str) -> str:
    return TITLES.get(name, name.replace("_", " "))


def _number(text: str, digits: int) -> str:
    try:
        return number(float(text), digits) if text.strip() else ""
    except ValueError:
        return text


def _safe(cell: str) -> str:
    return cell.replace("|", "\\|")


def _command(stem: str) -> str:
    name, _, table = stem.partition("_")
    number_ = table.removeprefix("table_").replace("_", " ")
    return f"metricdp reproduce {name} --table {shlex.quote(number_)} --full"
