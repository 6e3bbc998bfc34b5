"""What is told about a protected table besides the lines on the terminal: a page, a record, the law, a column."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from metricdp.errors import InvalidInput
from metricdp.files import check_target
from metricdp.mechanisms import Mechanism
from metricdp.rendering import command_line

if TYPE_CHECKING:
    from metricdp.tables import Summary
    from metricdp.tables.reporting import Preview


@dataclass(frozen=True)
class Telling:
    """What to write about the table besides the table.

    Attributes:
        report: Write a page (.html) that says what was released, promised and left open; it needs no network.
        json: Write the same as a record for programs; its fields are documented and versioned.
        show_secrets: Let the page show true positions. Such a page is as secret as the table.
        accuracy_column: Add a column: the radius around a report that holds the truth with 95 %, by the law of the
            noise and for every row; in metres where distances are lengths. The law itself is written beside the output.
        law: Write the law of the noise beside the output, as OUTPUT.law.json.
    """

    report: str | None = None
    json: Annotated[str | None, Parameter(name="--json")] = None
    show_secrets: bool = False
    accuracy_column: str | None = None
    law: bool = False

    @property
    def accuracy(self) -> list[str] | None:
        """The columns to add."""
        return None if self.accuracy_column is None else [name.strip() for name in self.accuracy_column.split(",")]

    def check(self, source: str, output: str, *, overwrite: bool = False) -> None:
        """Refuse what cannot be written before any work is done."""
        if self.show_secrets and self.report is None:
            raise InvalidInput("--show-secrets belongs to a page: name it with --report page.html.")
        if self.report is not None and Path(self.report).suffix.lower() not in (".html", ".htm"):
            raise InvalidInput(f"the page {self.report!r} must be named .html.")
        if output == "-" and self.law_file(output) is not None:
            raise InvalidInput("the law of the noise is written beside the output: name a file with -o instead of -.")
        targets = [output, *(name for name in (self.report, self.json, self.law_file(output)) if name is not None)]
        if len({Path(name).absolute() for name in targets}) < len(targets):
            raise InvalidInput("the table, the page, the record and the law need names of their own.")
        for name in targets[1:]:
            check_target(name, source=source, overwrite=overwrite)

    def law_file(self, output: str) -> str | None:
        """Return where the law goes, where it was asked for."""
        return f"{output}.law.json" if self.law or self.accuracy_column is not None else None

    def sight(self) -> Preview | None:
        """Return what looks at the table while it is written, where a page was asked for."""
        from metricdp.tables.reporting import Preview

        return None if self.report is None else Preview(secrets=self.show_secrets)

    def tell(self, summary: Summary, mechanism: Mechanism, sight: Preview | None) -> list[str]:
        """Write all that was asked for and return a line about each."""
        from metricdp.pictures.release_page import write_release
        from metricdp.tables.reporting import law_told, record_of, release_of, write_record

        place, lines = self.law_file(summary.target), []
        what = "the protected tables" if Path(summary.target).is_dir() else "the protected table"
        files = [(Path(summary.target).name, what)]
        law = law_told(summary, mechanism) if place is not None or self.json is not None else {}
        if place is not None:
            write_record(law, place)
            lines.append(f"Law of the noise: {place}.")
            files.append((Path(place).name, "the law of the noise, for those who model with it"))
        if self.json is not None:
            write_record(record_of(summary, law), self.json)
            lines.append(f"Record: {self.json}.")
            files.append((Path(self.json).name, "what was done and promised, for programs"))
        if self.report is not None and sight is not None:
            release = release_of(summary, mechanism, sight, repeat=[command_line(sys.argv[1:])], files=files)
            write_release(release, self.report)
            mind = "; it shows true positions, so it is as secret as the table" if self.show_secrets else ""
            lines.append(f"Page: {self.report}{mind}.")
        return lines


NOTHING_TOLD = Telling()
