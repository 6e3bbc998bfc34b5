"""What the bets say: verdict, bound, witness, and what would have been found."""

from __future__ import annotations

import numpy as np

from metricdp.auditing.betting.belief import Game
from metricdp.auditing.betting.rounds import Rounds
from metricdp.auditing.report import AuditReport, Finding
from metricdp.mechanisms import Witness


def outcome(game: Game, confidence: float, method: str, pairs: int, findings: tuple[Finding, ...] = ()) -> AuditReport:
    """Return the report of a game that is over."""
    wealth, arena = game.wealth, game.arena
    refuted = wealth.refuted(confidence)
    return AuditReport(
        claimed=arena.epsilon,
        epsilon=wealth.bound(confidence),
        basis="samples",
        method=method,
        refuted=refuted,
        confidence=confidence,
        witness=_witness(game),
        slack=arena.slack,
        pairs=pairs,
        draws=game.rounds,
        power="",
        findings=findings,
    )


def _witness(game: Game) -> Witness | None:
    """Return the pair, and a report, on which the richest belief rests most."""
    past = game.past
    if past is None:
        return None
    look = game.beliefs[game.wealth.best].look
    keys = past.level * look.size + look.cells(past)
    found, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
    ones = np.bincount(inverse, weights=past.coins.astype(np.float64), minlength=len(found))
    zeros = counts - ones
    likely = np.maximum(zeros, ones) + 0.5
    share = np.clip(likely / (counts + 1.0), 1e-9, 1.0 - 1e-9)
    limit = game.wealth.limit[game.wealth.claim, found // look.size]
    telling = np.where(
        share > limit,
        counts * (share * np.log(share / limit) + (1.0 - share) * np.log((1.0 - share) / (1.0 - limit))),
        share - 1.0,
    )
    best = int(np.argmax(telling))
    side = int(ones[best] > zeros[best])
    rows = np.flatnonzero((inverse == best) & (past.coins == side))
    if rows.size == 0:
        return None
    return _witness_at(past, int(rows[0]), side, float(likely[best] / (counts[best] - likely[best] + 1.0)))


def _witness_at(past: Rounds, row: int, side: int, ratio: float) -> Witness:
    pair = (int(past.first[row]), int(past.second[row]))
    secret, other = pair[side], pair[1 - side]
    points = past.arena.points
    return Witness(
        secret,
        other,
        -1,
        ratio,
        secret_at=tuple(points[secret].ravel().tolist()),
        other_at=tuple(points[other].ravel().tolist()),
        report_at=tuple(past.reports[row].ravel().tolist()),
    )
