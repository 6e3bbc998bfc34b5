"""Golden rows: what a study found once, written down, so that a change that moves a number is seen.

`papers/tests/golden/NAME_table_2.csv` holds rows of a table, and in lines before them the study and the pieces of
its short version that give them:

    # study: aipo
    # pieces: porto_l2_1_EM porto_l2_1_TEM
    city,method,epsilon,measure,as_published,corrected
    porto,EM,1,loss,0.8123,
    porto,TEM,1,loss,,0.71..0.75

A number must agree to a relative 1e-6, `low..high` must hold it, a text must be the same; an empty cell says nothing.
`python papers/tests/golden.py NAME TABLE KEY [KEY ...]` prints such a file, to be looked at before it is kept.
"""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from metricdp_papers import STUDIES
from metricdp_papers.common.rows import Row, average_repetitions, columns, read_csv
from metricdp_papers.common.shapes import Study, rows_of

FOLDER = Path(__file__).parent / "golden"
TOLERANCE = 1e-6
MEASURED = ("published", "as_published", "corrected", "bound", "spread", "as_published_spread")
UNSTEADY = ("seconds", "note")


def study_named(name: str) -> Study:
    return STUDIES.named(name).whole()


def table_rows(study: Study, number: str, keys: Sequence[str]) -> list[Row]:
    """Run pieces of the short version here and return their rows of a table."""
    pieces = {piece.key: piece for piece in study.work(False, study.tables)}
    rows: list[Row] = []
    for key in keys:
        rows += rows_of(pieces[key], pieces[key].function(*pieces[key].arguments)).get(number, [])
    return average_repetitions(rows)


def differences(golden: Sequence[dict[str, str]], rows: Sequence[Row]) -> list[str]:
    """Return a sentence for every golden row that is not there or holds another number."""
    found = []
    for wanted in golden:
        about = {name: text for name, text in wanted.items() if name not in (*MEASURED, *UNSTEADY) and text}
        matches = [row for row in rows if all(_holds(text, row.get(name)) for name, text in about.items())]
        if len(matches) != 1:
            found.append(f"{len(matches)} rows are about {about}")
            continue
        for name in MEASURED:
            if wanted.get(name) and not _holds(wanted[name], matches[0].get(name)):
                found.append(f"{name} of {about} is {matches[0].get(name)!r}, and was {wanted[name]}")
    return found


def _holds(text: str, value: Any) -> bool:
    if value is None:
        return False
    if not isinstance(value, int | float) or isinstance(value, bool):
        return text == str(value)
    low, dots, high = text.partition("..")
    try:
        if dots:
            return float(low) <= value <= float(high)
        wanted = float(text)
        if not math.isfinite(wanted):
            return wanted == value
        return abs(wanted - value) <= TOLERANCE * max(1e-9, abs(wanted))
    except ValueError:
        return False


def check(path: Path) -> list[str]:
    """Run what a golden file names and return what differs."""
    about, golden = read_csv(path)
    facts = dict(line.partition(": ")[::2] for line in about)
    study = study_named(facts["study"])
    stem = path.stem.removeprefix(f"{study.name}_")
    (table,) = (one for one in study.tables if one.stem == stem)
    return differences(golden, table_rows(study, table.number, facts["pieces"].split()))


if __name__ == "__main__":
    name, number, *keys = sys.argv[1:]
    rows = table_rows(study_named(name), number, keys)
    print(f"# study: {name}\n# pieces: {' '.join(keys)}")
    names = [one for one in columns(rows) if one not in UNSTEADY]
    writer = csv.DictWriter(sys.stdout, names, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows({n: f"{v:.10g}" if isinstance(v, float) else v for n, v in row.items()} for row in rows)
