"""Put the tables of a finished folder into papers/docs/results: python tools/results.py FOLDER [FOLDER ...]

A folder is what `metricdp reproduce NAME --folder FOLDER` left behind. Its tables become NAME_table_2.csv there, with
the command, the version, the machines and their load, and what did not run, in lines before the rows. Pages take their
tables and numbers from these files: run `python tools/pages.py` afterwards.

python tools/results.py --full runs/aipo runs/benders     # makes the tables anew from the pieces first
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from metricdp_papers import STUDIES, StudyRequest, reproduce
from metricdp_papers.common.rows import read_csv

PROJECT = Path(__file__).resolve().parents[1]
RESULTS = PROJECT / "papers" / "docs" / "results"


def record(folder: Path, results: Path = RESULTS) -> list[Path]:
    """Copy the tables of a folder and return where they are now."""
    found = []
    for path in sorted(folder.glob("*.csv")):
        about, rows = read_csv(path)
        facts = dict(line.partition(": ")[::2] for line in about)
        words = facts.get("command", "").split()
        if words[:2] != ["metricdp", "reproduce"] or len(words) < 3 or not rows:
            continue
        results.mkdir(exist_ok=True)
        found.append(Path(shutil.copyfile(path, results / f"{words[2]}_{path.name}")))
    if not found:
        raise SystemExit(f"{folder} holds no table that says which command made it.")
    return found


def main() -> int:
    """Record every folder that is named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--full", action="store_true", help="first make the tables of the published size anew from the pieces; "
        "a folder then has the name of its study",
    )  # fmt: skip
    parser.add_argument("folders", nargs="+", type=Path, help="what `metricdp reproduce NAME --folder` wrote")
    chosen = parser.parse_args()
    for folder in chosen.folders:
        if chosen.full:
            request = StudyRequest(full=True, folder=folder, minutes=0)
            reproduce(STUDIES.named(folder.resolve().name).whole(), request, say=lambda line: None)
        for path in record(folder):
            print(path.relative_to(PROJECT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
