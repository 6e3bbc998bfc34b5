"""The game: statistics with their predictors and shares of the starting wealth, when they bet, and on which pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metricdp.arrays import Floats, Integers, Points
from metricdp.auditing.betting import statistics
from metricdp.auditing.betting.rounds import Rounds, RoundSetting, shuffle_numbers
from metricdp.auditing.betting.statistics import (
    DirectionStatistic,
    DistanceStatistic,
    LatticeStatistic,
    LowBitStatistic,
    QuantileStatistic,
    ReportStatistic,
    TruthStatistic,
    ValueStatistic,
)
from metricdp.auditing.betting.wealth import CountPredictor, Predictor, ScalePredictor, Wealth
from metricdp.randomness import RandomSource

REMEMBERED = 16_384  # rounds that statistics learn from
LEARNING = 64 * 4 ** np.arange(5)  # statistics learn anew when that many rounds are over
FIRST_BATCH = 24
GROWTH = 0.1  # a batch is this part of what went before: what is learned is soon used, and calls stay few
WIDE = 64  # beyond that many coordinates single ones are not tested


@dataclass
class Belief:
    """A statistic, its predictor, and its share of the starting wealth."""

    statistic: ReportStatistic
    predictor: Predictor
    share: float


def beliefs(setting: RoundSetting, reports: Points) -> list[Belief]:
    """Return the statistics that suit these secrets and reports, each with its share."""
    like = setting.is_comparable(reports)
    text = reports.dtype.kind == "U"
    alone = setting.slots > 1 or len(setting.levels) == 1  # pairs are learned one by one

    def counts(statistic: ReportStatistic, share: float = 1.0) -> Belief:
        slots = 1 if statistic.pooled else setting.slots
        return Belief(statistic, CountPredictor(slots, statistic.size), share)

    def scale(*, pooled: bool, share: float) -> Belief:
        reach = setting.epsilon * setting.levels
        predictor = ScalePredictor(reach, DistanceStatistic.positions, together=pooled)
        return Belief(DistanceStatistic(pooled=pooled), predictor, share)

    found: list[Belief] = []
    if like:
        pair = "the pair of distances to both secrets"
        found.append(scale(pooled=True, share=6.0))
        if alone and len(setting.levels) > 1:
            found.append(scale(pooled=False, share=2.0))
        found.append(counts(DistanceStatistic(pooled=not alone), 2.0))
        found.append(counts(QuantileStatistic(pair, statistics.distances, (4, 6), pooled=not alone)))
        found.append(counts(TruthStatistic()))
    if like and not text:
        line = "the place along the line through both secrets"
        found.append(counts(QuantileStatistic(line, statistics.line_position, (8, 3), pooled=True)))
        found.append(counts(LatticeStatistic()))
    if alone:
        found.append(counts(ValueStatistic()))
    if alone and not text:
        width = int(np.prod(reports.shape[1:]))
        if width <= 3:
            bins = {1: (32,), 2: (8, 8), 3: (4, 4, 4)}[width]
            found.append(
                counts(QuantileStatistic("the place of the report", statistics.coordinates, bins, pooled=False))
            )
        for k in range(width if 1 < width <= 8 else 0):
            one = QuantileStatistic(f"coordinate {k + 1}", statistics.coordinate(k), (16,), pooled=False)
            found.append(counts(one, 0.5))
        if 1 < width <= WIDE:
            found.append(counts(DirectionStatistic()))
        found += [counts(LowBitStatistic(k), 0.5) for k in range(min(width, 4))]
    return found


class Game:
    """Bets round by round: every statistic bets on what it has learned, then learns what happened."""

    def __init__(self, setting: RoundSetting, reports: Points) -> None:
        self.setting = setting
        self.beliefs = beliefs(setting, reports)
        self.wealth = Wealth(
            setting.epsilon, setting.slack, setting.levels, np.array([belief.share for belief in self.beliefs])
        )
        nobody = np.zeros(0, dtype=np.int64)
        self.past = Rounds(setting, nobody, nobody, nobody, nobody, nobody, reports[:0])
        self.rounds = 0
        self.earned = np.zeros((len(self.beliefs), len(setting.levels)))  # against the claim, in logarithms
        self.played = np.zeros(len(setting.levels))

    def play(self, rounds: Rounds) -> None:
        """Bet on a batch of rounds with what was known before it, and learn from it."""
        for number, belief in enumerate(self.beliefs):
            slot, level, cell, seen = _tally(rounds, belief.statistic)
            earned = self.wealth.bet(number, level, belief.predictor.believe(slot, level, cell), seen)
            np.add.at(self.earned[number], level, earned)
            belief.predictor.add(slot, level, cell, seen)
        self.wealth.settle()
        self.played += np.bincount(rounds.level, minlength=len(self.played))
        before, self.rounds = self.rounds, self.rounds + len(rounds)
        self.past = self.past.join(rounds).take(slice(-REMEMBERED, None))
        if np.any((before < LEARNING) & (self.rounds >= LEARNING)):
            self._learn(self.past)

    def _learn(self, past: Rounds) -> None:
        for belief in self.beliefs:
            with np.errstate(over="ignore", invalid="ignore"):
                changed = belief.statistic.learn(past)
            if changed:
                belief.predictor.clear()
                belief.predictor.add(*_tally(past, belief.statistic))


def _tally(rounds: Rounds, statistic: ReportStatistic) -> tuple[Integers, Integers, Integers, tuple[Floats, Floats]]:
    """Return every combination of slot, level and cell that occurs, and how often the coin was 0 and 1 in it."""
    slot = np.zeros_like(rounds.slot) if statistic.pooled else rounds.slot
    levels = len(rounds.setting.levels)
    with np.errstate(over="ignore", invalid="ignore"):  # reports may be as large as doubles get
        keys = (slot * levels + rounds.level) * statistic.size + statistic.cells(rounds)
    if int(keys.max()) <= 4 * len(keys) + 4096:
        counts = np.bincount(keys)
        found = np.flatnonzero(counts)
        counts, ones = counts[found], np.bincount(keys, weights=rounds.coins.astype(np.float64))[found]
    else:  # few of very many combinations occur
        found, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
        ones = np.bincount(inverse, weights=rounds.coins.astype(np.float64))
    zeros: Floats = counts.astype(np.float64) - ones
    pair, cell = np.divmod(found, statistic.size)
    return pair // levels, pair % levels, cell, (zeros, ones.astype(np.float64))


def batch_size(drawn: int) -> int:
    """Return how many rounds to play before what they teach is used."""
    return max(FIRST_BATCH, int(GROWTH * drawn))


def shares(game: Game, size: int, source: RandomSource) -> Integers:
    """Return how many rounds every pair gets: half for the pair that has won most a round, half for all in turn."""
    hope = game.earned.max(axis=0) / (game.played + 50.0)
    best, pairs = int(np.argmax(hope)), len(hope)
    favoured = size // 2 if hope[best] > 0 else 0
    turn = shuffle_numbers(pairs, source)[np.arange(size - favoured) % pairs]
    found = np.bincount(turn, minlength=pairs)
    found[best] += favoured
    return found
