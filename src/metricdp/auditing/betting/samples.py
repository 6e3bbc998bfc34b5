"""Audit of recorded reports: rows of (secret, report), each bet on at most once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from metricdp.arrays import Points, as_points
from metricdp.auditing.betting.drawing import TAIL, ReportBuffer, play_pairs
from metricdp.auditing.betting.game import Game, batch_size
from metricdp.auditing.betting.outcome import outcome
from metricdp.auditing.betting.pairing import distance_levels, match_secrets
from metricdp.auditing.betting.rounds import UP, RoundSetting, as_reports, check_claim, shuffle_numbers
from metricdp.auditing.report import AuditReport
from metricdp.errors import InvalidInput
from metricdp.metrics import Metric
from metricdp.randomness import Randomness, fresh_stream, source_of

FEW = 200  # up to that many secrets, with OFTEN reports each, pairs are learned one by one
OFTEN = 50


def audit_samples(
    secrets: Any,
    reports: Any = None,
    /,
    *,
    metric: Metric,
    epsilon: float,
    confidence: float = 0.99,
    slack: float = 0.0,
    rng: Randomness = None,
) -> AuditReport:
    """Try to refute a guarantee from recorded reports: one row of `secrets` and one of `reports` for every draw.

    Rows may stand in any order, and secrets may occur any number of times: rows are shuffled, a fair coin decides from
    which of two secrets the next unused row is taken, and a pair ends where one of its secrets has no row left. Secrets
    that occur once are matched with their neighbours, half of them with secrets about 2 / epsilon away, where claims
    are easiest to refute. The bets are those of `audit_sampler`, and so is the report; a row is used at most once. The
    witness names rows of `secrets`.

    The level rests on rows that were drawn independently of each other: rows of one call that share an offset or a
    batch number can convict a sampler that satisfies its guarantee. Where the sampler can be called, `audit_sampler`
    assumes less.

    Args:
        secrets: The true values, one a row.
        reports: What was reported for them, one a row: numbers or text.
        metric: How far secrets are apart.
        epsilon: The guarantee that is audited, in the unit of the metric.
        confidence: How sure a refutation has to be.
        slack: What the guarantee allows beside epsilon * d.
        rng: Randomness of the coins, cryptographic by default.
    """
    if callable(secrets) or callable(reports):
        raise InvalidInput("a function that draws reports is audited by mdp.audit_sampler(draw, secrets=...).")
    claimed, slack, confidence = check_claim(epsilon, slack, confidence)
    points = as_points(secrets, "secrets")
    given = as_reports(reports, width=None)
    if len(points) != len(given):
        raise InvalidInput(f"`reports` must have one row per secret, {len(points)}, got {len(given)}.")
    metric.check(points)
    source = fresh_stream() if rng is None else source_of(rng)
    distinct, rows, inverse = np.unique(points.reshape(len(points), -1), axis=0, return_index=True, return_inverse=True)
    if len(distinct) < 2:
        raise InvalidInput("`secrets` must hold at least two different secrets.")
    buffer = ReportBuffer(given, inverse.ravel(), len(distinct), source)
    if len(distinct) <= FEW and len(points) >= OFTEN * len(distinct):
        game, pairs = play_pairs(buffer, distinct, metric, (claimed, slack))
    else:
        game, pairs = _play_matchings(buffer, distinct, metric, (claimed, slack))
    if not game.rounds:
        raise InvalidInput("no two secrets are finitely far apart, so that nothing can be compared.")
    method = f"bets on {game.rounds:,} of {len(points):,} recorded reports of {len(distinct):,} secrets"
    report = outcome(game, confidence, f"{method}, taken to be drawn independently", pairs)
    if report.witness is None:
        return report
    one, two = (int(rows[code]) for code in (report.witness.secret, report.witness.other))
    return replace(report, witness=replace(report.witness, secret=one, other=two))


def _play_matchings(
    buffer: ReportBuffer, points: Points, metric: Metric, claim: tuple[float, float]
) -> tuple[Game, int]:
    """Bet on matchings: every secret that has rows left meets one other, again and again; all are learned together."""
    levels = distance_levels(points, metric, claim[0])
    setting = RoundSetting(points, metric, *claim, levels * UP, 1)
    game, met = Game(setting, buffer.reports), 0
    while True:
        left = np.flatnonzero(buffer.left)
        one, two, apart = match_secrets(points, metric, claim[0], left, buffer.source)
        fit = apart <= levels[-1]  # always, where no detour is shorter
        one, two, apart = one[fit], two[fit], apart[fit]
        if one.size <= game.rounds // TAIL:
            return game, met
        met += len(one)
        times = np.minimum(buffer.left[one], buffer.left[two])
        pairs = np.repeat(np.stack([one, two], axis=1), times, axis=0)
        level = np.repeat(np.minimum(np.searchsorted(levels, apart), len(levels) - 1), times)
        order = shuffle_numbers(len(pairs), buffer.source)
        pairs, level = pairs[order], level[order]
        start = 0
        while start < len(pairs):
            here = slice(start, start + batch_size(game.rounds))
            game.play(buffer.deal(setting, pairs[here], np.zeros_like(level[here]), level[here]))
            start = here.stop
