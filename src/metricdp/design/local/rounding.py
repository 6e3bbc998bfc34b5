"""Weights of whole cities in 16-bit logarithmic codes, private as they are.

Code q stands for the float32 nearest to e^(top - h q). The nearest code moves a log weight by at most h / 2, so a log
ratio by h, the log of a row's sum by h / 2 and a slope of these by h. So the distribution is repaired first, to keep 2
h less along every edge than it may, then rounded, then audited exactly. Edges that allow less than that get equal rows.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from metricdp.arrays import Floats
from metricdp.auditing.local import audit_local
from metricdp.auditing.report import AuditReport, Claim
from metricdp.auditing.sparse import SparseDistribution
from metricdp.design._certify import cap_bound
from metricdp.design.local.build import edges_of, stored_loss
from metricdp.errors import InvalidInput, NotPrivate
from metricdp.mechanisms import LocalMechanism
from metricdp.metrics import NeighbourRows, pairwise
from metricdp.problems import Problem
from metricdp.solvers.local.repair import ROUNDED, HostClosing, LocalDistribution, repair_columns
from metricdp.solvers.local.windows import SecretWindows, loops
from metricdp.spaces import Near

BITS = 16
STEPS = (1 << BITS) - 2  # between the largest and the smallest weight; one more code stands for 0
ATTEMPTS = 12  # at keeping the guarantee for pairs that no edge joins
WIDER = 1.02  # than the weights are before the repair
SAMPLE = 24  # secrets whose farthest stored report is measured
WIDENINGS = (1.0, 1.05, 1.3, 2.0, 4.0, 16.0)  # of what the sample says, until all stored reports are found
COSTLY = 0.03  # rise of the loss from which on it is worth a word


def round_local(mechanism: LocalMechanism, bits: int | None, problem: Problem | None) -> LocalMechanism:
    """Return the mechanism with weights of at most 65,536 kinds, certified anew; see `quantised`."""
    started = time.perf_counter()
    guarantee = mechanism.guarantee
    if bits not in (None, BITS):
        raise InvalidInput(f"the weights of a LocalMechanism are rounded to `bits` = {BITS}, got {bits!r}.")
    if guarantee.slack > 0 or guarantee.radius is not None:
        raise InvalidInput(
            "a LocalMechanism with slack or a radius is not rounded: its edges do not say what it keeps."
        )
    if int(np.diff(mechanism.starts).min()) == 0:
        raise InvalidInput("a LocalMechanism is rounded where every secret has near reports of its own.")
    loops()  # or say which extra is missing before anything is computed
    near = stored_neighbours(mechanism)
    asked, own = _rounding_problem(mechanism, near, problem)
    distribution, step, found = _search_step(mechanism, near)
    if not found.holds:
        raise NotPrivate(
            f"the distribution rounded to {BITS} bits does not keep its guarantee: {found}. Nothing was returned."
        )
    before, about = mechanism.certificate, "the loss is that before rounding"
    loss, bound, stated = before.loss, before.lower_bound, before.stated
    if own:
        loss, scale, _ = stored_loss(asked, near, distribution.values, distribution.background)
        bound, stated = cap_bound(bound, loss, scale=scale), tuple(name for name in stated if name != "loss")
        about = _loss_note(loss, before.loss)
    note = f"Weights are rounded to {BITS} bits, codes {step:.2g} apart in logarithms; {about}."
    certificate = replace(
        before,
        loss=loss,
        lower_bound=bound,
        witness=None if found.witness is None else found.witness.with_places(mechanism.inputs, mechanism.outputs),
        pairs=found.pairs,
        method=f"{before.method}; {BITS} bits",
        seconds=before.seconds + time.perf_counter() - started,
        epsilon=found.epsilon,
        note=f"{before.note} {note}" if before.note else note,
        stated=stated,
    )
    return replace(mechanism, values=distribution.values, background=distribution.background, certificate=certificate)


def stored_neighbours(mechanism: LocalMechanism) -> Near:
    """Return the stored reports of every secret with their distances, without n x n."""
    inputs, outputs, starts = mechanism.inputs, mechanism.outputs, mechanism.starts
    n, m = len(inputs), len(outputs)
    farthest = 0.0
    for i in np.linspace(0, n - 1, min(SAMPLE, n)).astype(np.int64).tolist():
        own = mechanism.columns[starts[i] : starts[i + 1]]
        farthest = max(farthest, float(pairwise(inputs.metric, inputs.points[i : i + 1], outputs.points[own]).max()))
    keys = np.repeat(np.arange(n) * m, np.diff(starts)) + mechanism.columns
    for wider in WIDENINGS:
        near = inputs.near(max(farthest, 1e-300) * wider * (1.0 + 1e-9), outputs)
        found = np.repeat(np.arange(n) * m, near.counts) + near.codes
        at = np.searchsorted(found, keys)
        if len(found) and np.array_equal(found[np.minimum(at, len(found) - 1)], keys):
            return Near(starts, mechanism.columns, near.distances[at], near.radius)
    raise InvalidInput(
        "the near reports of this LocalMechanism are not near: some secret stores one far beyond others."
    )


def _rounding_problem(mechanism: LocalMechanism, near: Near, problem: Problem | None) -> tuple[Problem, bool]:
    """Return the problem, and whether the mechanism's loss is counted by it; one that is given must be of that kind."""
    inputs, outputs, epsilon = mechanism.inputs, mechanism.outputs, mechanism.guarantee.epsilon
    asked = Problem(inputs, epsilon, outputs=outputs, prior=mechanism.loss_basis.prior) if problem is None else problem
    if (len(asked.inputs), len(asked.outputs)) != (len(inputs), len(outputs)):
        raise InvalidInput(
            f"`problem` must be about {len(inputs)} secrets and {len(outputs)} reports, got {problem!r}."
        )
    if asked.epsilon != epsilon or asked.radius is not None:
        raise InvalidInput(f"`problem` must ask for the guarantee of the mechanism, epsilon {epsilon:g} for all pairs.")
    if problem is None and not mechanism.loss_basis.known:
        return asked, False
    loss = stored_loss(asked, near, mechanism.values, mechanism.background)[0]
    own = math.isclose(loss, mechanism.certificate.loss, rel_tol=1e-6)
    if mechanism.loss_basis.known:  # symmetric distributions have one loss under many priors, the bound is of one
        prior = 1.0 / len(inputs) if mechanism.loss_basis.prior is None else mechanism.loss_basis.prior
        own = own and bool(np.allclose(asked.prior, prior, rtol=1e-9, atol=0.0))
    if problem is not None and not own:
        raise InvalidInput(
            f"`problem` must be the one that the mechanism was made for: its loss there is {loss:.6g}, its certificate "
            f"says {mechanism.certificate.loss:.6g}, and the prior must be the same."
        )
    return asked, own


def _search_step(mechanism: LocalMechanism, near: Near) -> tuple[SparseDistribution, float, AuditReport]:
    """Repair, round and audit until the guarantee holds; return distribution, step of its codes and audit."""
    _, graph = edges_of(mechanism.inputs, mechanism.guarantee.epsilon, near.radius, 0.0)
    windows = SecretWindows(NeighbourRows(near.starts, near.codes, near.distances), len(mechanism.outputs))
    closing = HostClosing(windows, graph, near.distances, np.arange(windows.size))
    stored_by = np.diff(windows.column_starts)
    closing.background[:] = mechanism.background  # stays for reports that nobody stores
    mixed = (stored_by > 0) & (stored_by < len(mechanism.inputs))  # some secrets have a weight, others the background
    kept = graph.log_ratios
    step = _step(mechanism.values, mechanism.background[mixed]) * WIDER
    for _ in range(ATTEMPTS):
        distribution = repair_columns(closing, mechanism.values, windows, graph, kept, _rounding_error(step))
        needed = _step(distribution.values, distribution.background[mixed])
        if needed > step:  # the repair made the distribution wider than there are codes for
            step = needed * WIDER
            distribution = repair_columns(closing, mechanism.values, windows, graph, kept, _rounding_error(step))
        stored = SparseDistribution(near.starts, near.codes, *_round_weights(distribution, mixed, step))
        found = audit_local(mechanism.inputs, stored, Claim.of(mechanism.guarantee, None, None))
        if found.holds or not math.isfinite(found.epsilon):
            break
        # some way along edges is longer than was measured; about half of what is taken off there comes back elsewhere
        kept = kept * ((mechanism.guarantee.epsilon / found.epsilon) ** 2 * (1.0 - 1e-7))
    return stored, step, found


def _rounding_error(step: float) -> float:
    """Return what rounding may add to a log ratio: of two weights and two sums, each in float32 besides."""
    return 2.0 * step * (1.0 + 1e-6) + 2.0 * ROUNDED


def _step(values: NDArray[np.float32], background: NDArray[np.float32]) -> float:
    """Return how far codes are apart where they reach from the largest to the smallest weight above 0."""
    both = [part[part > 0] for part in (values, background)]
    most = max(float(part.max(initial=0.0)) for part in both)
    least = min(float(part.min(initial=np.inf)) for part in both)
    return max(math.log(most / least), 1e-3) / STEPS


def _round_weights(
    distribution: LocalDistribution, mixed: NDArray[np.bool_], step: float
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return values and background, each the nearest of e^(top - step q) or 0; what is not `mixed` is no neighbour."""
    background = distribution.background.copy()
    top = math.log(max(float(distribution.values.max()), float(background[mixed].max(initial=0.0))))
    table: NDArray[np.float32] = np.exp(top - step * np.arange(STEPS + 2)).astype(np.float32)
    table[-1] = 0.0

    def nearest(weights: NDArray[np.float32]) -> NDArray[np.float32]:
        with np.errstate(divide="ignore"):
            places: Floats = np.log(weights, dtype=np.float64)
        codes = np.rint((top - places) / step)
        return table[np.minimum(codes, STEPS + 1).astype(np.int64)]

    background[mixed] = nearest(background[mixed])
    return nearest(distribution.values), background


def _loss_note(loss: float, before: float) -> str:
    rise = (loss - before) / abs(before) if before else 0.0
    reason = ": secrets that allow less than two codes get equal rows" if rise > COSTLY else ""
    return f"the loss is that of the rounded distribution, {rise:+.2%}{reason}"
