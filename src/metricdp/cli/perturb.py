"""The command that protects tables."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from metricdp.cli import terminal
from metricdp.cli.options import (
    DEFAULT_READING,
    NO_DISCLOSURE,
    NO_PEOPLE,
    STANDARD,
    UNCHARGED,
    DisclosureOptions,
    Epsilon,
    Input,
    LedgerOptions,
    Output,
    Overwrite,
    PeopleOptions,
    ReadingOptions,
    check_targets,
    mechanism_in,
    metric_of,
    redirect_prints,
    seeded_generator,
    with_resume_hint,
)
from metricdp.errors import InvalidInput

if TYPE_CHECKING:
    from metricdp.design import PrivacyLevel
    from metricdp.mechanisms import Mechanism
    from metricdp.metrics import Metric
    from metricdp.tables import Summary
    from metricdp.tables.reporting import Preview


@dataclass(frozen=True)
class VectorOptions:
    """How vectors are treated before noise.

    Attributes:
        normalise: With --metric angular: take vectors of any length. It is dropped: the promise is about angles, and
            nothing about lengths is reported.
        projection: With --metric l2: a file with a matrix (.npy, or any table of numbers), one row for every dimension
            that is left. It must be public, never one made from this table; the promise stays about the distance of the
            vectors themselves.
    """

    normalise: bool = False
    projection: str | None = None


@dataclass(frozen=True)
class ReportOptions:
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
        law = self.distribution_file(output)
        if output == STANDARD and law is not None:
            raise InvalidInput("the law of the noise is written beside the output: name a file with -o instead of -.")
        check_targets([source], overwrite=overwrite, table=output, page=self.report, record=self.json, law=law)

    def distribution_file(self, output: str) -> str | None:
        """Return where the law goes, where it was asked for."""
        return f"{output}.law.json" if self.law or self.accuracy_column is not None else None

    def write(self, summary: Summary, mechanism: Mechanism, preview: Preview | None) -> list[str]:
        """Write all that was asked for and return a line about each."""
        from metricdp.plots.release_page import write_release
        from metricdp.rendering import command_line
        from metricdp.tables.reporting import distribution_record, record_of, release_of, write_record

        place, lines = self.distribution_file(summary.target), []
        what = "the protected tables" if Path(summary.target).is_dir() else "the protected table"
        files = [(Path(summary.target).name, what)]
        law = distribution_record(summary, mechanism) if place is not None or self.json is not None else {}
        if place is not None:
            write_record(law, place)
            lines.append(f"Law of the noise: {place}.")
            files.append((Path(place).name, "the law of the noise, for those who model with it"))
        if self.json is not None:
            write_record(record_of(summary, law), self.json)
            lines.append(f"Record: {self.json}.")
            files.append((Path(self.json).name, "what was done and promised, for programs"))
        if self.report is not None and preview is not None:
            release = release_of(summary, mechanism, preview, repeat=[command_line(sys.argv[1:])], files=files)
            write_release(release, self.report)
            mind = "; it shows true positions, so it is as secret as the table" if self.show_secrets else ""
            lines.append(f"Page: {self.report}{mind}.")
        return lines


NO_VECTOR_OPTIONS, NO_REPORT = VectorOptions(), ReportOptions()


def perturb(
    source: Input,
    /,
    *,
    output: Output,
    epsilon: Epsilon | None = None,
    protect: str | None = None,
    mechanism: str | None = None,
    key: str | None = None,
    metric: str = "haversine",
    snap: str | None = None,
    on_error: Literal["fail", "drop", "null"] = "fail",
    show_values: bool = False,
    sharing: Annotated[PeopleOptions, Parameter(name="*")] = NO_PEOPLE,
    charged: Annotated[LedgerOptions, Parameter(name="*")] = UNCHARGED,
    leaving: Annotated[DisclosureOptions, Parameter(name="*")] = NO_DISCLOSURE,
    vectors: Annotated[VectorOptions, Parameter(name="*")] = NO_VECTOR_OPTIONS,
    engine: str | None = None,
    resume: bool = False,
    discard: bool = False,
    seed: int | None = None,
    report_options: Annotated[ReportOptions, Parameter(name="*")] = NO_REPORT,
    table: Annotated[ReadingOptions, Parameter(name="*")] = DEFAULT_READING,
    target_format: Annotated[str | None, Parameter(name="--to")] = None,
    overwrite: Overwrite = False,
) -> int:
    """Protect the points of a table of any length in a file, or of many files.

    An example: `metricdp perturb points.csv --epsilon 10/km -o out.csv`

    From one format to another: `metricdp perturb trips.db::fixes --epsilon 10/km -o protected.parquet`

    Many files: `metricdp perturb 'days/*.parquet' --epsilon 10/km -o protected --engine local`

    Args:
        source: The table to protect: a CSV file with a header, Parquet, a table of a database (trips.db::fixes) and
            more (`metricdp formats`); - for standard input; or a folder, or a pattern such as 'days/*.parquet'.
        output: Where the protected table goes, in the format its name says (- for standard output); it appears when
            everything went well. A new folder for many files.
        epsilon: How much may leak per distance, such as 10/km: Laplace noise on the columns lat and lon.
        protect: The same as a wish: 2x@200m makes points 200 m apart at most a factor of two apart.
        mechanism: A mechanism file from `metricdp design`, instead of Laplace noise.
        key: A public key file: the mechanism file is refused unless this key signed it.
        metric: The metric of the Laplace noise: haversine (haversine:mi for miles), l1, l2 or linf; angular for unit
            vectors, on their sphere.
        snap: Put values on the nearest secret up to this distance, such as 200m; its slack is stated.
        on_error: What becomes of rows without a legal secret: fail, drop or null.
        show_values: Let the error show what the first bad row holds; otherwise errors name rows and columns only.
        engine: For many files: local uses all cores, spark and ray run the parts as their tasks; `metricdp engines`.
        resume: Continue a job over many files that was killed or failed; nothing is released twice.
        discard: Give up such a job, its key and all it has done, and begin anew with new noise.
        seed: SIMULATION ONLY: draw from a seed, so that a run can be repeated. Never release the result.
        telling: What to write about the table besides the table.
        table: How the table is read.
        target_format: The format of the output, where its name does not say it.
        overwrite: Replace an output that is there.
    """
    import metricdp
    from metricdp import messages
    from metricdp.cli import guarantees
    from metricdp.mechanisms import require_pure
    from metricdp.tables import names_many
    from metricdp.tables.options import Job
    from metricdp.tables.reporting import Preview
    from metricdp.units import parse_distance

    names, job = table.names, Job(engine=engine, resume=resume, discard=discard)
    reading = table.reading(target_format, on_error=on_error, show_values=show_values)
    many = names_many(source, job)
    if many and show_values:
        raise InvalidInput("--show-values is for one file: the workers of a job over many would write values to logs.")
    if many and report_options.show_secrets:
        raise InvalidInput(
            "--show-secrets is for one file: of many, the page shows the reports that lie in the output."
        )
    report_options.check(source, output, overwrite=overwrite)
    preview = None if report_options.report is None else Preview(secrets=report_options.show_secrets)
    if mechanism is None:
        wished, chosen = _noise(epsilon, protect, key, metric_of(metric), (source, table, vectors))
    else:
        if epsilon is not None or protect is not None:
            raise InvalidInput("a mechanism file brings its own epsilon: leave --epsilon and --protect away.")
        wished, chosen = None, mechanism_in(mechanism, trusted=key)
    if report_options.report is not None:
        from metricdp.tables.reporting import PAGE

        require_pure(chosen.guarantee, *PAGE)  # before anything is read or charged
    unit = chosen.inputs.ground.unit
    snapping = 0.0 if snap is None else parse_distance(snap, unit)
    with (
        charged.open_charging(sharing.budget, chosen) as charging,
        terminal.progress_bar(f"Protecting {Path(source).name}") as progress,
    ):
        summary = (with_resume_hint(metricdp.perturb) if many else metricdp.perturb)(
            source, chosen, columns=names, to=output, people=sharing.people(charging), rng=seeded_generator(seed),
            disclosure=leaving.disclosure(force=table.yes_really, accuracy_column=report_options.accuracy),
            reading=replace(reading, snap=snapping),
            job=replace(
                job, overwrite=overwrite and not many, progress=progress,
                watch=preview.released if many and preview is not None else preview,
            ),
        )  # fmt: skip
    spread = summary.spending if summary.spending is not None and summary.spending.is_spread else None
    report_lines = report_options.write(
        summary, chosen, preview
    )  # before anything is printed: whoever reads may go away
    with redirect_prints(output):
        terminal.say(*summary.lines(), *([] if wished is None else wished.kept(summary.guarantee)))
        terminal.say(*guarantees.meaning_lines(chosen, summary.guarantee, spending=spread))
        if snapping and chosen.inputs.same_ground:  # elsewhere the two distances do not add
            terminal.say(messages.snapped_loss(snapping, unit))
        for line in report_lines:
            terminal.say(line)
    return 0


def engines() -> int:
    """List the engines that protect many files, with the extra that brings what each one needs.

    An example: `metricdp engines`
    """
    from metricdp.tables.engines import engines_for_files

    rows = [
        {"engine": one.name, "about": one.about, "needs": one.extra and f"metricdp[{one.extra}]"}
        for one in engines_for_files()
    ]
    terminal.say(*terminal.table_lines(["engine", "about", "needs"], rows))
    return 0


def formats() -> int:
    """List the formats of tables that can be read and written, with what each keeps as it came.

    An example: `metricdp formats`
    """
    from metricdp.tables.formats import FORMATS

    rows = [
        {
            "format": one.name,
            "files": " ".join(one.suffixes) + (" (.gz .zst)" if one.packed else "") + ("::table" if one.tables else ""),
            "about": one.about,
            "needs": one.extra and f"metricdp[{one.extra}]",
        }
        for one in FORMATS
    ]
    terminal.say(*terminal.table_lines(["format", "files", "about", "needs"], rows))
    return 0


def _noise(
    epsilon: str | None,
    protect: str | None,
    key: str | None,
    metric: Metric,
    at: tuple[str, ReadingOptions, VectorOptions],
) -> tuple[PrivacyLevel, Mechanism]:
    """Return what was asked for and Laplace noise that keeps it, as wide as the secrets of a table."""
    import metricdp
    from metricdp.design import PrivacyLevel
    from metricdp.tables.matrices import read_rows
    from metricdp.tables.sources import check_places, check_width, width_of

    if key is not None:
        raise InvalidInput("--key is for a mechanism file that was signed: name it with --mechanism.")
    source, table, vectors = at
    names, reading = table.names, table.reading()
    check_width(source, names, reading, metric)
    try:
        level = PrivacyLevel.parse(epsilon, protect, metric.unit)
    except InvalidInput:
        if epsilon is not None or protect is not None:
            check_places(source, names, reading, metric)  # km mean nothing to a table without places
        raise
    noise = metricdp.laplace(
        metric, level.epsilon(), dimension=width_of(source, names, reading, metric), normalise=vectors.normalise,
        projection=None if vectors.projection is None else read_rows(vectors.projection),
    )  # fmt: skip
    level.kept(noise.guarantee)  # raises before anything is read
    return level, noise
