"""Write the parts of the pages that come from declarations: python tools/pages.py, from the top of the repository.

A part stands between `<!-- name: written by tools/pages.py -->` and `<!-- end -->`; the rest is by hand.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from metricdp.design.builders import BUILDERS
from metricdp.experiments import STUDIES
from metricdp.metrics import METRICS

PROJECT = Path(__file__).resolve().parents[1]
PART = re.compile(r"(<!-- (\w+): written by tools/pages\.py -->\n).*?(<!-- end -->)", re.DOTALL)


def builders_api() -> str:
    """The builders, as entries of the API page."""
    return "".join(f"::: {one.module}.{one.function.__name__}\n" for one in BUILDERS)


def builders_table() -> str:
    """The builders, with what the command lets one choose."""
    rows = ["| builder | what it is | at the command line |", "| --- | --- | --- |"]
    for one in BUILDERS:
        options = " ".join(f"`--{name}`" for name in one.options)
        command = f"`--builder {one.name}` {options}".strip() if one.at_command else ""
        rows.append(f"| `mdp.{one.name}` | {one.about} | {command} |")
    return "\n" + "\n".join(rows) + "\n\n"


def studies_table() -> str:
    """The studies that run by name."""
    rows = ["| study | what it shows |", "| --- | --- |"]
    rows += [f"| `metricdp reproduce {one.name}` | {one.about} |" for one in STUDIES]
    return "\n" + "\n".join(rows) + "\n\n"


def metrics_table() -> str:
    """The metrics, with the words the command knows."""
    rows = ["| metric | what it measures | at the command line |", "| --- | --- | --- |"]
    for one in METRICS:
        words = " ".join(f"`--metric {word}`" for word in one.words)
        rows.append(f"| `mdp.{one.name}` | {one.about} | {words} |")
    return "\n" + "\n".join(rows) + "\n\n"


PARTS = {
    "metrics_table": metrics_table,
    "builders_api": builders_api,
    "builders_table": builders_table,
    "studies_table": studies_table,
}


def written(page: str) -> str:
    """Return a page with its parts as the declarations have them now."""
    return PART.sub(lambda found: f"{found[1]}{PARTS[found[2]]()}{found[3]}", page)


def main() -> int:
    """Write every page whose parts have changed."""
    for path in sorted((PROJECT / "docs").rglob("*.md")):
        before = path.read_text(encoding="utf-8")
        after = written(before)
        if after != before:
            path.write_text(after, encoding="utf-8")
            print(path.relative_to(PROJECT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
