"""The command that protects tables."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from metricdp import messages
from metricdp.cli import terminal
from metricdp.cli.options import (
    DEFAULT_JOB,
    DEFAULT_TABLE,
    NO_DISCLOSURE,
    NO_PEOPLE,
    STANDARD,
    DisclosureOptions,
    Epsilon,
    Input,
    JobOptions,
    Output,
    PeopleOptions,
    ReadingOptions,
    TableOptions,
    Verbose,
    check_targets,
    plain_record,
    redirect_prints,
    seeded_generator,
    with_resume_hint,
)
from metricdp.errors import InvalidInput
from metricdp.rendering import plural
from metricdp.tables.options import Job

CLOSE_METRES = 5.0  # a report that lies this close names the house

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
        normalise: With --metric angular: take vectors of any length. The length is removed: the guarantee is about
            angles, and nothing about lengths is reported.
        projection: With --metric l2: a file with a matrix (.npy, or any table of numbers). It has one row for every
            dimension of the result. It must be public, never made from this table. The guarantee is about the distance
            of the vectors themselves.
    """

    normalise: bool = False
    projection: str | None = None


@dataclass(frozen=True)
class ReportOptions:
    """What to write about the table besides the table.

    Attributes:
        report: Write a page (.html) about what was released, guaranteed and left open. It needs no network.
        json: Write the same as a record for programs; its fields are documented and versioned.
        show_secrets: Show true positions in the page. Such a page is as secret as the table.
        accuracy_column: Add a column with the radius around a report that holds the truth with probability 95 %. It is
            computed from the distribution of the noise, for every row; in metres where distances are lengths. The
            distribution itself is written beside the output.
        distribution: Write the distribution of the noise beside the output, as OUTPUT.distribution.json.
        law: The old name of --distribution; it writes OUTPUT.law.json.
    """

    report: str | None = None
    json: str | None = None
    show_secrets: bool = False
    accuracy_column: str | None = None
    distribution: bool = False
    law: Annotated[bool, Parameter(show=False)] = False

    @property
    def accuracy(self) -> list[str] | None:
        """The columns to add."""
        return None if self.accuracy_column is None else [name.strip() for name in self.accuracy_column.split(",")]

    def check(self, source: str, output: str, *, overwrite: bool = False) -> None:
        """Refuse what cannot be written before any work is done."""
        if self.show_secrets and self.report is None:
            raise InvalidInput("--show-secrets belongs to a page: name it with --report page.html.")
        if self.law:
            warnings.warn(
                "`--law` is called `--distribution` now, and its file OUTPUT.distribution.json.",
                DeprecationWarning,
                stacklevel=1,
            )
        place = self.distribution_file(output)
        if output == STANDARD and place is not None:
            raise InvalidInput(
                "the distribution of the noise is written beside the output: name a file with -o instead of -."
            )
        check_targets([source], overwrite=overwrite, table=output, page=self.report, record=self.json, noise=place)

    def distribution_file(self, output: str) -> str | None:
        """Return where the distribution of the noise goes; None where nobody asked for it."""
        if not (self.law or self.distribution or self.accuracy_column is not None):
            return None
        return f"{output}.{'law' if self.law else 'distribution'}.json"

    def preview(self) -> Preview | None:
        """Return what remembers rows for the page, if there is to be one."""
        if self.report is None:
            return None
        from metricdp.tables.reporting import Preview

        return Preview(secrets=self.show_secrets)

    def check_guarantee(self, mechanism: Mechanism) -> None:
        """Refuse the page of a mechanism whose guarantee it cannot show."""
        if self.report is None:
            return
        from metricdp.mechanisms import require_pure
        from metricdp.tables.reporting import PAGE

        require_pure(mechanism.guarantee, *PAGE)

    def write(self, summary: Summary, mechanism: Mechanism, preview: Preview | None) -> list[str]:
        """Write all that was asked for and return a line about each."""
        place = self.distribution_file(summary.target)
        if place is None and self.json is None and self.report is None:
            return []
        from metricdp.rendering import command_line
        from metricdp.tables.reporting import distribution_record, page_of_table, record_of, write_record

        lines = []
        what = "the protected tables" if Path(summary.target).is_dir() else "the protected table"
        files = [(Path(summary.target).name, what)]
        noise = distribution_record(summary, mechanism) if place is not None or self.json is not None else {}
        if place is not None:
            write_record(noise, place)
            lines.append(f"Distribution of the noise: {place}.")
            files.append((Path(place).name, "the distribution of the noise, for those who model with it"))
        if self.json is not None:
            write_record(record_of(summary, noise), self.json)
            lines.append(f"Record: {self.json}.")
            files.append((Path(self.json).name, "what was done and guaranteed, for programs"))
        if self.report is not None and preview is not None:
            repeat = [command_line(sys.argv[1:])]
            page_of_table(summary, mechanism, preview, repeat=repeat, files=files).write(self.report)
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
    people: Annotated[PeopleOptions, Parameter(name="*")] = NO_PEOPLE,
    disclosure: Annotated[DisclosureOptions, Parameter(name="*")] = NO_DISCLOSURE,
    vectors: Annotated[VectorOptions, Parameter(name="*")] = NO_VECTOR_OPTIONS,
    job: Annotated[JobOptions, Parameter(name="*")] = DEFAULT_JOB,
    seed: int | None = None,
    reports: Annotated[ReportOptions, Parameter(name="*")] = NO_REPORT,
    table: Annotated[TableOptions, Parameter(name="*")] = DEFAULT_TABLE,
    verbose: Verbose = False,
) -> int:
    """Protect the points of a table of any length in a file, or of many files.

    An example: `metricdp perturb points.csv --epsilon 10/km -o out.csv`

    From one format to another: `metricdp perturb trips.db::fixes --epsilon 10/km -o protected.parquet`

    Many files: `metricdp perturb 'days/*.parquet' --epsilon 10/km -o protected --engine local`

    Args:
        source: A table, a folder, or a pattern such as 'days/*.parquet'. A table is a CSV file with a header, Parquet,
            a table of a database (trips.db::fixes) and more (`metricdp list formats`), or - for standard input.
        output: Where the protected table goes (- for standard output). Its name says the format. It appears when all
            rows are done. For many files it is a new folder.
        epsilon: How much may leak per distance, such as 10/km. Laplace noise is added to the columns lat and lon.
        protect: Instead of epsilon: 2x@200m, a factor of at most 2 between points 200 m apart.
        mechanism: A mechanism file from `metricdp design`, instead of Laplace noise.
        key: A public key file. A mechanism file that this key did not sign is refused.
        metric: The metric of the Laplace noise: haversine (haversine:mi for miles), l1, l2 or linf; angular for unit
            vectors, on their sphere.
        snap: Put values on the nearest secret up to this distance, such as 200m. The slack of this is stated.
        seed: SIMULATION ONLY: draw from a seed, so that a run can be repeated. Never release the result.
        verbose: Print everything that is known about the release.
    """
    import metricdp
    from metricdp.specs import read_metric
    from metricdp.tables import names_many

    many = names_many(source, job)
    if many and table.show_values:
        raise InvalidInput("--show-values is for one file: the workers of a job over many would write values to logs.")
    if many and reports.show_secrets:
        raise InvalidInput(
            "--show-secrets is for one file: of many, the page shows the reports that lie in the output."
        )
    reports.check(source, output, overwrite=job.overwrite)
    preview = reports.preview()
    if mechanism is None:
        wished, chosen = _noise(epsilon, protect, key, read_metric(metric), (source, table, vectors))
    else:
        if epsilon is not None or protect is not None:
            raise InvalidInput("a mechanism file has its own epsilon: remove --epsilon and --protect.")
        wished, chosen = None, metricdp.load(mechanism, trusted=key)
    reports.check_guarantee(chosen)  # before anything is read or charged
    with (
        people.open_people(chosen) as charged,
        terminal.progress_bar(f"Protecting {Path(source).name}") as progress,
    ):
        watch = preview.released if many and preview is not None else preview
        summary = (with_resume_hint(metricdp.perturb) if many else metricdp.perturb)(
            source, chosen, columns=table.names, to=output, people=charged, rng=seeded_generator(seed),
            disclosure=disclosure.disclosure(force=table.force, accuracy_column=reports.accuracy),
            reading=table.reading(snap=snap or 0.0),
            job=plain_record(Job, job, overwrite=job.overwrite and not many, progress=progress, watch=watch),
        )  # fmt: skip
    written = reports.write(summary, chosen, preview)  # before anything is printed: the reader may go away
    asked = [] if wished is None else wished.check(summary.one_row, short=not verbose)
    with redirect_prints(output):
        if not verbose:
            terminal.say(*release_lines(summary, chosen, asked, written))
            return 0
        spread = summary.spending if summary.spending is not None and summary.spending.is_spread else None
        terminal.say(*summary.lines(), *asked)
        from metricdp.cli import guarantees

        terminal.say(*guarantees.meaning_lines(chosen, summary.one_row, spending=spread))
        if summary.snap and chosen.inputs.same_ground:  # elsewhere the two distances do not add
            terminal.say(messages.snapped_loss(summary.snap, chosen.inputs.ground.unit))
        if written:
            terminal.say(*written)
    return 0


def release_lines(
    summary: Summary, mechanism: Mechanism, asked: Sequence[str], written: Sequence[str] = ()
) -> list[str]:
    """Return what was released; `asked` is the guarantee in the words of a wish."""
    from metricdp.mechanisms import require_pure

    history, one = summary.whole_history(), " ".join(asked)
    if history:
        numbers = messages.headline_numbers(summary.one_row)
        guaranteed = f"{history[0]} One row alone: {one or numbers + '.'}"
    else:
        guaranteed = f"one row: {one}" if one else messages.headline(summary.one_row)
    _, *rest = summary.lines()
    first = f"{summary.target}, {plural(summary.written, 'row')}; {summary.protected_names()}"
    first += f"{_moved_text(summary, mechanism)}."
    bad = rest[:1] if summary.bad else []
    watch = [messages.simulated()] if summary.simulated else []
    if summary.snapping is not None:
        watch.append(messages.snapping_cost(summary.snapping, require_pure(summary.guarantee, "snapping")))
    watch += _hardly_hidden(summary, mechanism)
    watch += bad + messages.found_columns(summary.findings) + summary.composition() + list(summary.notes)
    return terminal.three_lines(" ".join([first, *written]), guaranteed, watch)


def _moved_text(summary: Summary, mechanism: Mechanism) -> str:
    """Return how far noise moves the secrets, by its distribution; of tables of probabilities no more than a word."""
    from metricdp.auditing.accuracy import radii_of
    from metricdp.auditing.loss import counts_distance

    if mechanism.inputs.size is not None or not counts_distance(mechanism) or summary.snapping is not None:
        return " protected"
    spending, certificate, unit = summary.spending, mechanism.certificate, mechanism.guarantee.unit
    made = [mechanism] if spending is None else [level.task.mechanism for level in spending.released]
    mean = certificate.loss if spending is None else spending.loss
    if not made or certificate.objective != "expected" or not 0.0 < mean < math.inf:
        return " protected"
    widest = max((radii_of(one, [0.95])[0] for one in made), key=lambda radius: radius.value)
    at_most = "at most " if certificate.at_most else ""
    return (
        f" moved by {at_most}{messages.rounded_distance(mean, unit)} on average, 95 % within "
        f"{messages.rounded_distance(widest.value, widest.unit)}"
    )


def _hardly_hidden(summary: Summary, mechanism: Mechanism) -> list[str]:
    """Return a sentence if reports lie so close to the truth on average that they show it."""
    from metricdp.auditing.distributions import convert_to_metres
    from metricdp.auditing.loss import counts_distance

    certificate, unit = mechanism.certificate, mechanism.guarantee.unit
    if certificate.objective != "expected" or not counts_distance(mechanism):
        return []
    spread = summary.spending if summary.spending is not None and summary.spending.is_spread else None
    away = certificate.loss if spread is None else spread.loss
    metres = convert_to_metres(away, unit)
    return [messages.hardly_hidden(away, unit)] if metres is not None and metres < CLOSE_METRES else []


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
    level.check(noise.guarantee)  # raises before anything is read
    return level, noise
