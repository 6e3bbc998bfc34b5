"""The test that was used before bets: events are chosen on half of the draws and counted on the other half.

Kept to compare with (`benchmarks/betting.py`); `mdp.audit_sampler` replaced it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from metricdp.arrays import Floats, as_points, as_positive
from metricdp.auditing.report import AuditReport
from metricdp.errors import InvalidInput
from metricdp.mechanisms import Witness
from metricdp.metrics import Metric


def count_events(
    sampler: Callable[[Any, int], Any],
    pairs: Any,
    metric: Metric,
    epsilon: float,
    *,
    draws: int = 100_000,
    bins: int = 12,
    confidence: float = 0.99,
) -> AuditReport:
    """Try to refute the promise of a black box from its output alone.

    `sampler(secret, count)` returns `count` reports for one secret; `pairs` is a list of (secret, other). Half of the
    draws choose events (bins of the reports, sized by quantiles, or the report itself where few values occur), the
    other half count them. For each event, Clopper-Pearson bounds at a level shared by all events give a lower bound of
    the log-ratio that holds with the stated confidence. `epsilon` in the report is the largest such bound over
    distance: above the claim it proves a violation (at that confidence); below, nothing is proven. The witness holds
    the number of the pair, twice, and that of the event.

    What cannot be judged is refused: another number of reports than was asked for (they might be chosen ones), reports
    that are not numbers or change their shape, and pairs at distance zero or infinity.
    """
    from scipy.stats import beta

    claimed = as_positive(epsilon, "epsilon")
    if not isinstance(draws, int | np.integer) or draws < 1000:
        raise InvalidInput(f"`draws` must be a whole number of at least 1000, got {draws!r}.")
    if not isinstance(bins, int | np.integer) or bins < 2:
        raise InvalidInput(f"`bins` must be a whole number of at least 2, got {bins!r}.")
    if not 0 < confidence < 1:
        raise InvalidInput(f"`confidence` must lie between 0 and 1, got {confidence!r}.")
    half = draws // 2
    best, witness = 0.0, Witness(0, 0, 0, 1.0)
    pair_list = [(as_points(np.atleast_1d(a)[None]), as_points(np.atleast_1d(b)[None])) for a, b in pairs]
    if not pair_list:
        raise InvalidInput("`pairs` must hold at least one pair of secrets.")
    for number, (a, b) in enumerate(pair_list):
        apart = float(metric(a, b).ravel()[0])
        if not 0 < apart < np.inf:
            raise InvalidInput(
                f"pair {number} is at distance {apart:g}; give two different secrets, finitely far apart."
            )
        drawn, others = (sampler(x[0] if x.shape[1] > 1 else x[0, 0], draws) for x in (a, b))
        left, right = _rows(drawn, others, draws, number)
        edges = _event_edges(np.concatenate([left[:half], right[:half]]), bins)
        counts = [_count(rows[half:], edges) for rows in (left, right)]
        events = len(counts[0])
        tail = (1.0 - confidence) / (4.0 * events * len(pair_list))
        total = draws - half
        for one, two in (counts, counts[::-1]):
            low = np.where(one > 0, beta.ppf(tail, np.maximum(one, 1), total - one + 1), 0.0)
            high = np.where(two < total, beta.ppf(1.0 - tail, two + 1, np.maximum(total - two, 1)), 1.0)
            with np.errstate(divide="ignore"):
                values = np.log(low) - np.log(high)
            event = int(values.argmax())
            if values[event] / apart > best:
                best = float(values[event] / apart)
                witness = Witness(number, number, event, float(np.exp(values[event])))
    return AuditReport(
        claimed=claimed,
        epsilon=best,
        basis="samples",
        method=f"{draws} draws a secret",
        refuted=best > claimed,
        confidence=confidence,
        witness=witness,
        pairs=len(pair_list),
    )


def _rows(left: Any, right: Any, draws: int, number: int) -> tuple[Floats, Floats]:
    """Return both samples as rows of numbers; text becomes numbers that mean the same word in both."""
    one, two = np.asarray(left), np.asarray(right)
    if one.ndim == 0 or two.ndim == 0 or len(one) != draws or len(two) != draws:
        raise InvalidInput(
            f"pair {number}: the sampler was asked for {draws} reports a secret and gave {one.shape} and {two.shape}. "
            "Reports that are left out could be the telling ones, so nothing is judged."
        )
    if one.shape != two.shape:
        raise InvalidInput(f"pair {number}: the reports have shapes {one.shape} and {two.shape}, which must be equal.")
    if any(part.dtype.kind in "fc" and not np.all(np.isfinite(part)) for part in (one, two)):
        raise InvalidInput(f"pair {number}: a report is not a finite number, so that it cannot be counted.")
    if one.dtype.kind not in "fiu":
        both = np.concatenate([one.astype(str), two.astype(str)])
        codes = np.unique(both, return_inverse=True)[1].reshape(both.shape)
        one, two = codes[: len(one)], codes[len(one) :]
    return one.reshape(len(one), -1).astype(float), two.reshape(len(two), -1).astype(float)


def _event_edges(rows: Floats, bins: int) -> list[Floats]:
    edges = []
    for column in rows.T:
        values = np.unique(column)
        if len(values) <= 4 * bins:
            edges.append((values[1:] + values[:-1]) / 2.0)
        else:
            edges.append(np.unique(np.quantile(column, np.linspace(0, 1, bins + 1)[1:-1])))
    return edges


def _count(rows: Floats, edges: list[Floats]) -> Floats:
    code = np.zeros(len(rows), dtype=np.int64)
    size = 1
    for column, cut in zip(rows.T, edges, strict=True):
        code = code * (len(cut) + 1) + np.searchsorted(cut, column)
        size *= len(cut) + 1
        if size > 1_000_000:
            raise InvalidInput("too many events: lower `bins`, or audit fewer columns at once.")
    return np.bincount(code, minlength=size).astype(float)
