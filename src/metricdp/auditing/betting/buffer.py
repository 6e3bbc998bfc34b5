"""Reports that are there already, by secret: each is bet on at most once."""

from __future__ import annotations

import numpy as np

from metricdp.arrays import Integers, Points
from metricdp.auditing.betting.game import Game, batch_size, shares
from metricdp.auditing.betting.inputs import shuffle_numbers
from metricdp.auditing.betting.pairing import chosen_pairs
from metricdp.auditing.betting.rounds import UP, Rounds, RoundSetting
from metricdp.metrics import Metric
from metricdp.randomness import RandomSource

TAIL = 500  # what is left is not worth a batch of its own


class ReportBuffer:
    """Rows by secret, shuffled, and how many of each are left."""

    def __init__(self, reports: Points, secret: Integers, count: int, source: RandomSource) -> None:
        mixed = shuffle_numbers(len(reports), source)
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

    def deal(self, setting: RoundSetting, pairs: Integers, slot: Integers, level: Integers) -> Rounds:
        """Flip the coins of some rounds and serve them; both secrets must have rows enough whatever falls."""
        coins = (self.source.words(len(pairs)) >> np.uint64(63)).astype(np.int64)
        reports = self.take(pairs[np.arange(len(pairs)), coins])
        return Rounds(setting, pairs[:, 0], pairs[:, 1], slot, level, coins, reports)


def play_pairs(
    buffer: ReportBuffer, points: Points, metric: Metric, claim: tuple[float, float], pairs: Integers | None = None
) -> tuple[Game | None, int]:
    """Bet on pairs that are learned one by one, until rows are used up."""
    pairs, apart = chosen_pairs(points, metric, pairs, claim[0])
    setting = RoundSetting(points, metric, *claim, apart * UP, len(pairs))
    game: Game | None = None
    drawn = 0
    while True:
        wanted = np.maximum(shares(game, len(pairs), batch_size(drawn), buffer.source), 1)
        space = buffer.left.copy()
        for number in np.argsort(-wanted, kind="stable").tolist():
            one, two = pairs[number]
            wanted[number] = min(wanted[number], space[one], space[two])
            space[one] -= wanted[number]
            space[two] -= wanted[number]
        if wanted.sum() <= drawn // TAIL:
            return game, len(pairs)
        slot = np.repeat(np.arange(len(pairs)), wanted)
        rounds = buffer.deal(setting, pairs[slot], slot, slot)
        game = game or Game(setting, rounds.reports)
        game.play(rounds)
        drawn += len(rounds)
