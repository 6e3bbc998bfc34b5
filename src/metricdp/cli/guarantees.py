"""Guarantees, certificates and audits as the command prints them: as lines, and as plain values."""

from __future__ import annotations

from typing import Any

import numpy as np

from metricdp import messages
from metricdp.arrays import Floats
from metricdp.auditing import AuditReport, ConcentratedReport, position_guarantee
from metricdp.auditing.loss import counts_distance
from metricdp.auditing.positions import mean_in_cell
from metricdp.mechanisms import (
    AnyGuarantee,
    Guarantee,
    MatrixMechanism,
    Mechanism,
    require_pure,
)
from metricdp.mechanisms.kinds.matrix import as_table
from metricdp.mechanisms.kinds.product import parts_of
from metricdp.metrics import exponent_of, policy_of
from metricdp.rendering import add_old_fields
from metricdp.spaces import FiniteSpace, require_space
from metricdp.specs import can_snap


def guarantee_lines(mechanism: Mechanism, *, in_distance: bool = False, snap: float | None = None) -> list[str]:
    """Return what a mechanism promises, what was verified and what epsilon means, one sentence a line.

    `in_distance` says that its loss is known to be the distance between truth and report; otherwise it is found out.
    `snap` is how far positions will be put on places before anything is drawn: factors and losses count it.
    """
    guarantee, lines = mechanism.guarantee, [f"Promise: {messages.guarantee_text_in_parts(mechanism.guarantee)}."]
    certificate = mechanism.certificate
    known = in_distance or counts_distance(mechanism)
    lines.append(messages.certificate_sentence(certificate, guarantee.unit, is_distance=known))
    if certificate.note:
        lines.append(f"Note: {certificate.note.rstrip('.')}.")
    usual = meaning_lines(mechanism, guarantee, in_distance=known)
    if not isinstance(guarantee, Guarantee):
        return [*lines, *usual]
    rest = usual[len(messages.meaning_lines(guarantee)) :]  # what is said about the loss
    lines += [*factor_lines(mechanism, guarantee, snap), *rest]
    places = snapped_places(mechanism)
    if snap and places is not None and known:
        mean = mean_in_cell(places) if certificate.objective == "expected" else None
        lines.append(messages.position_loss(snap, None if mean is None else certificate.loss + mean, guarantee.unit))
    return lines


def factor_lines(mechanism: Mechanism, guarantee: Guarantee, snap: float | None) -> list[str]:
    """Return the table of factors: between positions that are put on places, or between the places as they are listed.

    The promise is that of the mechanism, without snapping.
    """
    places = snapped_places(mechanism)
    if places is None:
        other = _uses_other_distances(mechanism) and not guarantee.parts
        return messages.ground_lines(guarantee) if other else messages.meaning_lines(guarantee)
    nearest = places.nearest_pair
    if not snap:
        return [*messages.listed_lines(guarantee, nearest), messages.unlisted_positions(guarantee)]
    wider = position_guarantee(guarantee, places, snap=snap)
    exponent = exponent_of(places.metric) or 2.0
    lines = messages.position_lines(wider, snap, wider.slack, exponent=exponent)
    lines.append(messages.listed_places_sentence(guarantee, nearest))
    table = as_table(mechanism)
    kept = None if table is None else _truth_rate(table)
    return lines if kept is None else [*lines, messages.place_unchanged(kept)]


def snapped_places(mechanism: Mechanism) -> FiniteSpace | None:
    """Return the places on which positions can be put by the distances of the promise; None where there are none."""
    finite = mechanism.inputs.finite
    places = None if finite is None else require_space(finite, FiniteSpace, "places")
    return places if places is not None and can_snap(places) else None


def _uses_other_distances(mechanism: Mechanism) -> bool:
    """Tell whether positions are put on listed places by other distances than those of the promise: roads, hops."""
    finite = mechanism.inputs.finite
    return finite is not None and not finite.is_text and not finite.same_ground


def _truth_rate(mechanism: MatrixMechanism) -> float | None:
    """Return how often a place is reported itself, on average over them; None where some place is no report."""
    reports = {tuple(point): code for code, point in enumerate(mechanism.outputs.points.tolist())}
    own = [reports.get(tuple(point), -1) for point in mechanism.inputs.points.tolist()]
    if -1 in own:
        return None
    rows = mechanism.matrix
    return float((rows[np.arange(len(rows)), own] / rows.sum(axis=1)).mean())


def positions_of(mechanism: Mechanism, snap: float | None) -> dict[str, Any] | None:
    """Return as plain values what snapping adds between positions; None where nothing is snapped."""
    guarantee, places = mechanism.guarantee, snapped_places(mechanism)
    if not snap or not isinstance(guarantee, Guarantee) or places is None:
        return None
    wider = position_guarantee(guarantee, places, snap=snap)
    return {"snap": snap, "slack": wider.slack, "unit": guarantee.unit}


def snap_of(mechanism: Mechanism) -> float | None:
    """Return how far positions are put on the places of a file: half the diagonal of its cells, where it has any."""
    places = snapped_places(mechanism)
    return None if places is None else places.cell_radius


def meaning_lines(
    mechanism: Mechanism,
    guarantee: AnyGuarantee,
    *,
    in_distance: bool = False,
    spending: messages.SpendingLike | None = None,
) -> list[str]:
    """Return the table that explains the epsilon (and slack) of a promise, and how far reports lie from the truth.

    `spending` says what rows cost that share a budget: their reports lie farther away.
    """
    certificate = mechanism.certificate
    if spending is not None and counts_distance(mechanism):
        return [*messages.meaning_lines(guarantee), messages.allocation_loss(spending, guarantee.unit)]
    lines = messages.meaning_lines(guarantee)
    known = in_distance or counts_distance(mechanism)
    lines.append(
        messages.loss(
            certificate.loss, guarantee.unit, certificate.objective, is_distance=known, at_most=certificate.at_most
        )
        + messages.unverified_note(certificate, "loss")
    )
    table = as_table(mechanism)
    if not known and table is not None and (away := _distances(table)) is not None:
        lines.append(messages.average_distance(float(away.mean()), guarantee.unit))
    return lines


def _distances(mechanism: MatrixMechanism) -> Floats | None:
    """Return how far the reports of every secret lie from it, on average; None where no way leads to some of them."""
    apart, metric = mechanism.inputs.distances_to(mechanism.outputs), mechanism.inputs.metric
    policy = policy_of(metric)
    if policy is not None and np.any(mechanism.matrix[apart >= policy.apart] > 0):
        return None
    return np.asarray((mechanism.matrix * apart).sum(axis=1) / mechanism.matrix.sum(axis=1))


def guarantee_sentence(mechanism: Mechanism, *, snap: float | None = None) -> str:
    """Return the promise as one sentence without Greek, for positions where they are put on places first."""
    guarantee, places = mechanism.guarantee, snapped_places(mechanism)
    if snap and isinstance(guarantee, Guarantee) and places is not None:
        return messages.short_sentence(position_guarantee(guarantee, places, snap=snap))
    parts = parts_of(mechanism)
    if len(parts) > 1:
        return messages.short_of_parts([require_pure(part.guarantee, "a product") for part in parts])
    return messages.short_sentence(mechanism.guarantee)


def mechanism_values(mechanism: Mechanism, *, snap: float | None = None) -> dict[str, Any]:
    """Return what a mechanism is, promises and proves as plain values."""
    guarantee = mechanism.guarantee
    certificate = mechanism.certificate.to_dict(guarantee.unit)
    values = {
        "inputs": str(mechanism.inputs),
        "outputs": str(mechanism.outputs),
        "guarantee": guarantee.to_dict(),
        "certificate": add_old_fields(certificate, stated_not_verified="not_verified")
        | {"lower_bound_says": messages.bound_in_fields(guarantee.unit)},
        "in_short": guarantee_sentence(mechanism, snap=snap),
    }
    return add_old_fields(values, promise="guarantee")


def report_values(report: AuditReport | ConcentratedReport, unit: str) -> dict[str, Any]:
    """Return an audit report as plain values, with the field that told a concentrated one before."""
    values = report.to_dict(unit)
    return values if isinstance(report, AuditReport) else add_old_fields(values, promise="kind")
