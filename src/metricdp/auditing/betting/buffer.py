"""Reports that are there already, by secret: each is bet on at most once."""

from __future__ import annotations

import numpy as np

from metricdp.arrays import Integers, Points
from metricdp.auditing.betting.game import Game, batch_size, shares
from metricdp.auditing.betting.inputs import shuffled
from metricdp.auditing.betting.pairing import chosen_pairs
from metricdp.auditing.betting.rounds import UP, Arena, Rounds
from metricdp.metrics import Metric
from metricdp.randomness import Source

TAIL = 500  # what is left is not worth a batch of its own


class Shelf:
    """Rows by secret, shuffled, and how many of each are left."""

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


def play_pairs(
    shelf: Shelf, points: Points, metric: Metric, claim: tuple[float, float], pairs: Integers | None = None
) -> tuple[Game | None, int]:
    """Bet on pairs that are learned one by one, until rows are used up."""
    pairs, apart = chosen_pairs(points, metric, pairs, claim[0])
    arena = Arena(points, metric, *claim, apart * UP, len(pairs))
    game: Game | None = None
    drawn = 0
    while True:
        wanted = np.maximum(shares(game, len(pairs), batch_size(drawn), shelf.source), 1)
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
