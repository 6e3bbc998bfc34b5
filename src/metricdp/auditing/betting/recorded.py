"""Audit of recorded reports: rows of (secret, report), each bet on at most once."""

from __future__ import annotations

from typing import Any

import numpy as np

from metricdp.arrays import Integers, Points, as_points
from metricdp.auditing.betting.belief import Game
from metricdp.auditing.betting.outcome import outcome
from metricdp.auditing.betting.pairing import chosen_pairs, distance_levels, matched
from metricdp.auditing.betting.received import as_reports, shuffled
from metricdp.auditing.betting.rounds import UP, Arena, Rounds
from metricdp.auditing.betting.sampler import batch_size, checked_claim, shares
from metricdp.auditing.report import AuditReport
from metricdp.errors import InvalidInput
from metricdp.metrics import Metric
from metricdp.randomness import Randomness, Source, fresh_stream, source_of

FEW = 200  # up to so many secrets, with OFTEN reports each, pairs are learned one by one
OFTEN = 50
TAIL = 500  # what is left is not worth a batch of its own


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
    """Try to refute a promise from recorded reports: one row of `secrets` and one of `reports` for every draw.

    Rows may stand in any order, and secrets may occur any number of times: rows are shuffled, a fair coin decides from
    which of two secrets the next unused row is taken, and a pair ends where one of its secrets has no row left. Secrets
    that occur once are matched with their neighbours, half of them with secrets about 2 / epsilon away, where claims
    are easiest to refute. The bets are those of `audit_sampler`, and so is the report; a row is used at most once.

    Args:
        secrets: The true values, one a row.
        reports: What was reported for them, one a row: numbers or text.
        metric: How far secrets are apart.
        epsilon: The promise that is judged, in the unit of the metric.
        confidence: How sure a refutation has to be.
        slack: What the promise allows beside epsilon * d.
        rng: Randomness of the coins, cryptographic by default.
    """
    if callable(secrets) or callable(reports):
        raise InvalidInput("a function that draws reports is judged by mdp.audit_sampler(draw, secrets=...).")
    claimed, slack, confidence = checked_claim(epsilon, slack, confidence)
    points = as_points(secrets, "secrets")
    given = as_reports(reports, width=None)
    if len(points) != len(given):
        raise InvalidInput(f"`reports` must have one row per secret, {len(points)}, got {len(given)}.")
    metric.check(points)
    source = fresh_stream() if rng is None else source_of(rng)
    distinct, inverse = np.unique(points.reshape(len(points), -1), axis=0, return_inverse=True)
    if len(distinct) < 2:
        raise InvalidInput("`secrets` must hold at least two different secrets.")
    shelf = _Shelf(given, inverse.ravel(), len(distinct), source)
    if len(distinct) <= FEW and len(points) >= OFTEN * len(distinct):
        game, pairs = _few(shelf, distinct, metric, (claimed, slack))
    else:
        game, pairs = _many(shelf, distinct, metric, (claimed, slack))
    if game is None:
        raise InvalidInput("no two secrets are finitely far apart, so that nothing can be compared.")
    method = f"bets on {game.rounds:,} of {len(points):,} recorded reports of {len(distinct):,} secrets"
    return outcome(game, confidence, method, pairs)


class _Shelf:
    """The recorded rows by secret, shuffled, and how many of each are left."""

    def __init__(self, reports: Points, secret: Integers, count: int, source: Source) -> None:
        mixed = shuffled(len(reports), source)
        rows = mixed[np.argsort(secret[mixed], kind="stable")]
        self.reports, self.source = reports[rows], source
        self.left = np.bincount(secret, minlength=count)
        self._next = np.concatenate([[0], np.cumsum(self.left)[:-1]])

    def take(self, asked: Integers) -> Points:
        """Return the next unused report of every secret that is asked for."""
        order = np.argsort(asked, kind="stable")
        found, starts, counts = np.unique(asked[order], return_index=True, return_counts=True)
        rank = np.empty(len(asked), dtype=np.int64)
        rank[order] = np.arange(len(asked)) - np.repeat(starts, counts)
        rows = self._next[asked] + rank
        self._next[found] += counts
        self.left[found] -= counts
        return np.asarray(self.reports[rows])

    def deal(self, arena: Arena, pairs: Integers, slot: Integers, level: Integers) -> Rounds:
        """Flip the coins of some rounds and serve them; both secrets must have rows enough whatever falls."""
        coins = (self.source.words(len(pairs)) >> np.uint64(63)).astype(np.int64)
        reports = self.take(pairs[np.arange(len(pairs)), coins])
        return Rounds(arena, pairs[:, 0], pairs[:, 1], slot, level, coins, reports)


def _few(shelf: _Shelf, points: Points, metric: Metric, claim: tuple[float, float]) -> tuple[Game | None, int]:
    """Bet on pairs that are learned one by one."""
    pairs, apart = chosen_pairs(points, metric, None, claim[0])
    arena = Arena(points, metric, *claim, apart * UP, len(pairs))
    game: Game | None = None
    drawn = 0
    while True:
        wanted = shares(game, len(pairs), batch_size(drawn), shelf.source)
        wanted = np.maximum(wanted, 1)
        room = shelf.left.copy()
        for number in np.argsort(-wanted, kind="stable").tolist():
            one, two = pairs[number]
            wanted[number] = min(wanted[number], room[one], room[two])
            room[one] -= wanted[number]
            room[two] -= wanted[number]
        if wanted.sum() <= drawn // TAIL:
            return game, len(pairs)
        slot = np.repeat(np.arange(len(pairs)), wanted)
        rounds = shelf.deal(arena, pairs[slot], slot, slot)
        game = game or Game(arena, rounds.reports)
        game.play(rounds)
        drawn += len(rounds)


def _many(shelf: _Shelf, points: Points, metric: Metric, claim: tuple[float, float]) -> tuple[Game | None, int]:
    """Bet on matchings: every secret that has rows left meets one other, again and again; all are learned together."""
    levels = distance_levels(points, metric, claim[0])
    arena = Arena(points, metric, *claim, levels * UP, 1)
    game: Game | None = None
    drawn = met = 0
    while True:
        left = np.flatnonzero(shelf.left)
        one, two, apart = matched(points, metric, claim[0], left, shelf.source)
        if one.size <= drawn // TAIL:
            return game, met
        met += len(one)
        times = np.minimum(shelf.left[one], shelf.left[two])
        pairs = np.repeat(np.stack([one, two], axis=1), times, axis=0)
        level = np.repeat(np.minimum(np.searchsorted(levels, apart), len(levels) - 1), times)
        order = shuffled(len(pairs), shelf.source)
        pairs, level = pairs[order], level[order]
        start = 0
        while start < len(pairs):
            here = slice(start, start + batch_size(drawn))
            rounds = shelf.deal(arena, pairs[here], np.zeros(len(pairs[here]), dtype=np.int64), level[here])
            game = game or Game(arena, rounds.reports)
            game.play(rounds)
            drawn, start = drawn + len(rounds), start + len(rounds)
