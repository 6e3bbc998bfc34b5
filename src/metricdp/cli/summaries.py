"""What a simple command prints: what was written, what is guaranteed, what to watch; `--verbose` prints the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from metricdp import messages
from metricdp.cli.terminal import three_lines
from metricdp.rendering import plural, printable

if TYPE_CHECKING:
    from metricdp.artifacts import Inspection
    from metricdp.auditing import AuditReport, ConcentratedReport
    from metricdp.mechanisms import Mechanism
    from metricdp.mobility import TripSummary
    from metricdp.problems import LossSpec
    from metricdp.spaces import Space
    from metricdp.specs import Places
    from metricdp.tables import Summary


def design_lines(
    name: str,
    made: Mechanism,
    cost: LossSpec,
    asked: Sequence[str],
    snap: float | None = None,
) -> list[str]:
    """Return what was designed and what it costs; `asked` is the guarantee in the words of a wish."""
    certificate = made.certificate
    unit = cost.unit or made.guarantee.unit
    sentence = messages.certified_loss(certificate, unit, is_distance=cost.is_distance)
    notes = [f"{certificate.note.rstrip('.')}."] if certificate.note else []
    guaranteed = " ".join(asked) or messages.headline(made.guarantee)
    return three_lines(f"{name}{_metric_text(made)}; {sentence}", guaranteed, [*notes, *_position_lines(made, snap)])


def _metric_text(made: Mechanism) -> str:
    """Return in which distance a mechanism is private, where its name says it: , straight-line distance (l2)."""
    word = messages.metric_word(made.guarantee.metric)
    named = {"l1": "sum of the differences", "l2": "straight-line distance", "linf": "largest difference"}
    return f", {named[word]} ({word})" if word in named else ""


def _space_text(space: Space) -> str:
    """Return a space in words where it is a list: 16 points."""
    return str(space) if space.size is None else plural(space.size, "word" if space.is_text else "point")


def snap_text(places: Places) -> str:
    """Return the value of `--snap` for cells: a value lies at most half a diagonal from the middle of its cell."""
    return messages.distance(places.cell, places.space.ground.unit, "up").replace(" ", "").replace(",", "")


def inspect_lines(found: Inspection, about: str, signature: str, snap: float | None) -> list[str]:
    """Return what a mechanism file is, what it guarantees, and who vouches for it."""
    made = found.mechanism
    notes = [f"{made.certificate.note.rstrip('.')}."] if made.certificate.note else []
    watch = [*notes, *_position_lines(made, snap), signature]
    _, *rest = three_lines("", messages.headline(made.guarantee), watch)
    between = f"from {_space_text(made.inputs)} to {_space_text(made.outputs)}{_metric_text(made)}"
    return [f"{found.path}: {about}, {between}.", *rest]


def _position_lines(made: Mechanism, snap: float | None) -> list[str]:
    """Return what is guaranteed for positions that are put on places first."""
    from metricdp.cli.guarantees import guarantee_sentence, positions_of

    if positions_of(made, snap) is None:
        return []
    return [messages.snapped_positions(guarantee_sentence(made, snap=snap))]


def audit_lines(report: AuditReport | ConcentratedReport, unit: str = "") -> list[str]:
    """Return the verdict, what it rests on, and what to watch; `unit` is that of distances."""
    from metricdp.auditing import AuditReport

    if not isinstance(report, AuditReport):
        return [str(report)]
    found = f"epsilon {report.epsilon:.12g}"
    if report.is_lower_bound:
        found = f"leaks at least {found} ({100.0 * report.confidence:.6g} %)"
    per = f" per {unit}" if unit else ""
    claim = "" if report.claimed is None else f" (claimed {report.claimed:.12g}{per})"
    worst = "" if report.witness is None else f", {'seen' if report.is_lower_bound else 'worst'} at {report.witness}"
    count = f", {plural(report.pairs, 'pair')}" if report.pairs else ""
    watch = [report.reason or report.rounding, report.power, *(str(finding) for finding in report.findings)]
    lines = [f"{report.verdict}: {found}{claim}{worst}.", f"How: by {report.basis}, {report.method}{count}."]
    return [
        printable(line) for line in [*lines, *([" ".join(["To watch:", *filter(None, watch)])] if any(watch) else [])]
    ]


def text_lines(summary: Summary, written: Sequence[str]) -> list[str]:
    """Return what was released of texts."""
    assert summary.texts is not None
    guaranteed, *_ = summary.texts.promise()
    first = f"{summary.target}, {plural(summary.written, 'row')}; {summary.protected_names()} protected."
    watch = [messages.simulated()] if summary.simulated else []
    watch += [messages.visible_in_texts(), *messages.found_columns(summary.findings), messages.texts_of_one_person()]
    return three_lines(" ".join([first, *written]), guaranteed, watch)


def trip_lines(summary: TripSummary) -> list[str]:
    """Return what was released of trips."""
    written, one_report, whole_trip, *_, unprotected = summary.lines()
    return three_lines(written, f"{one_report} {whole_trip}", [unprotected])
