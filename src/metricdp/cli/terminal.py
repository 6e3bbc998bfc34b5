"""What people see: progress, promises, tables."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from metricdp import stages, wording
from metricdp.arrays import Floats
from metricdp.auditing import AuditReport, ConcentratedReport
from metricdp.auditing.loss import counts_distance
from metricdp.mechanisms import AnyGuarantee, ConcentratedGuarantee, MatrixMechanism, Mechanism, ProductMechanism, pure
from metricdp.metrics import PolicyGraph


def note(sentence: str) -> None:
    """Say on the error stream what was done that nobody asked for."""
    print(f"note: {sentence}", file=sys.stderr)


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[float], None] | None]:
    """Show a bar on a terminal's error stream, and beside it what is being done; without a terminal, show nothing."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress, TextColumn

    columns = (*Progress.get_default_columns(), TextColumn("{task.fields[words]}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=1.0, words="")

        def hear(words: str) -> None:
            bar.update(task, words=words, completed=stages.share())  # None leaves it where it is

        with stages.listening(hear):
            yield lambda share: bar.update(task, completed=share)


@contextmanager
def steps_bar(title: str) -> Iterator[Callable[[float, str], None] | None]:
    """Show a bar with what is being done on a terminal's error stream; where that is no terminal, show nothing."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TimeElapsedColumn(),
        TextColumn("{task.fields[what]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=1.0, what="")
        yield lambda share, what: bar.update(task, completed=share, what=what)


def bounds_so_far(lower: float, upper: float, unit: str) -> str:
    """Return both bounds of a search and the gap between them in words; losses are distances."""
    proven = f"none below {wording.distance(lower, unit, 'down')}"
    if not (math.isfinite(upper) and math.isfinite(lower) and upper > 0):
        return proven if math.isfinite(lower) else "no bounds yet"
    loss = wording.distance(upper, unit, "up")
    return f"loss {loss}, {proven}, gap {wording.gap(max(0.0, (upper - lower) / upper))}"


def promise_lines(mechanism: Mechanism, *, in_distance: bool = False) -> list[str]:
    """Return what a mechanism promises, what was verified and what epsilon means, one sentence a line.

    `in_distance` says that its loss is known to be the distance between truth and report; otherwise it is found out.
    """
    promise, lines = mechanism.guarantee, [f"Promise: {mechanism.guarantee}."]
    certificate = mechanism.certificate
    known = in_distance or counts_distance(mechanism)
    lines.append(wording.certified(certificate, promise.unit, is_distance=known))
    if certificate.note:
        lines.append(f"Note: {certificate.note}")
    return [*lines, *meaning_lines(mechanism, promise, in_distance=known)]


def meaning_lines(
    mechanism: Mechanism, promise: AnyGuarantee, *, in_distance: bool = False, spending: wording.Spent | None = None
) -> list[str]:
    """Return the table that explains the epsilon (and slack) of a promise, and how far reports lie from the truth.

    `spending` says what rows cost that share a budget: their reports lie farther away.
    """
    certificate = mechanism.certificate
    if spending is not None and counts_distance(mechanism):
        return [*wording.meaning_lines(promise), wording.spread_loss(spending, promise.unit)]
    lines = wording.meaning_lines(promise)
    known = in_distance or counts_distance(mechanism)
    lines.append(
        wording.loss(
            certificate.loss, promise.unit, certificate.objective, is_distance=known, at_most=certificate.at_most
        )
        + wording.unverified(certificate, "loss")
    )
    if not known and isinstance(mechanism, MatrixMechanism) and (away := _distances(mechanism)) is not None:
        lines.append(wording.average_distance(float(away.mean()), promise.unit))
    return lines


def _distances(mechanism: MatrixMechanism) -> Floats | None:
    """Return how far the reports of every secret lie from it, on average; None where no way leads to some of them."""
    apart, metric = mechanism.inputs.distances_to(mechanism.outputs), mechanism.inputs.metric
    if isinstance(metric, PolicyGraph) and np.any(mechanism.matrix[apart >= metric.apart] > 0):
        return None
    return np.asarray((mechanism.matrix * apart).sum(axis=1) / mechanism.matrix.sum(axis=1))


def ground_unit(mechanism: Mechanism) -> str:
    """Return the unit in which table values are put on the nearest secret."""
    return mechanism.inputs.ground.unit


def in_short(mechanism: Mechanism) -> str:
    """Return the promise as one sentence without Greek."""
    if isinstance(mechanism, ProductMechanism):
        return wording.short_of_parts([pure(part.guarantee, "a product") for part in mechanism.parts])
    return wording.short(mechanism.guarantee)


def mechanism_values(mechanism: Mechanism) -> dict[str, Any]:
    """Return what a mechanism is, promises and proves as plain values."""
    promise, certificate = mechanism.guarantee, mechanism.certificate
    numbers = {name: getattr(certificate, name) for name in ("loss", "lower_bound", "gap", "epsilon", "pairs")}
    return {
        "inputs": str(mechanism.inputs),
        "outputs": str(mechanism.outputs),
        "promise": promise_values(promise),
        "certificate": {
            **{name: value if math.isfinite(value) else str(value) for name, value in numbers.items()},
            "at_most": certificate.at_most,
            "objective": certificate.objective,
            "method": certificate.method,
            "note": certificate.note,
            "interrupted": certificate.interrupted,
            "stated_not_verified": list(certificate.stated),
        },
        "in_short": in_short(mechanism),
    }


def promise_values(promise: AnyGuarantee) -> dict[str, Any]:
    """Return a promise as plain values: an epsilon and its slack, or the rho of one that is only approximate."""
    shared = {
        "unit": promise.unit,
        "radius": promise.radius,
        "basis": promise.basis,
        "metric": type(promise.metric).__name__,
    }
    if not isinstance(promise, ConcentratedGuarantee):
        return {"epsilon": promise.epsilon, "slack": promise.slack} | shared
    near, delta = wording.twice_as_likely(promise), wording.usual_delta()
    kept = {"factor": 2.0, "distance": near, "delta": delta}
    return {"kind": "concentrated, not pure", "rho": promise.rho, "form": promise.form, "example": kept} | shared


def report_json(report: AuditReport | ConcentratedReport, unit: str) -> str:
    """Return an audit report as JSON; numbers that are not finite become text."""
    values = dataclasses.asdict(report) | {"verdict": report.verdict, "reason": report.reason, "unit": unit}
    if isinstance(report, AuditReport):
        values |= {"margin": report.margin, "epsilon_is": "lower bound" if report.is_lower_bound else "upper bound"}
    else:
        values["promise"] = "concentrated, not pure"
    return json.dumps(_finite(values), indent=2, sort_keys=True, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def text_table(names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as aligned text."""
    cells = [[f"{row[n]:.6g}" if isinstance(row[n], float) else str(row[n]) for n in names] for row in rows]
    widths = [max(len(line[i]) for line in [list(names), *cells]) for i in range(len(names))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in [list(names), *cells]
    )
