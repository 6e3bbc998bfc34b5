"""Rounds with a sampler: coins first, then as many reports of every secret as they ask for."""

from __future__ import annotations

from typing import Any

import numpy as np

from metricdp.arrays import Integers, Points
from metricdp.auditing.betting.health import Calls
from metricdp.auditing.betting.received import Draw, as_reports, shuffled
from metricdp.auditing.betting.rounds import Arena, Rounds
from metricdp.errors import InvalidInput
from metricdp.randomness import Source

SILENT = 8  # calls without a report after which nobody asks again


class Pool:
    """Reports of one secret that nobody has bet on yet, in random order.

    Whoever sorts reports, or gives more than were asked for, could otherwise make the first ones telling. The coin
    says how many are taken, so that it stays fair however many came.
    """

    def __init__(self, draw: Draw, secret: Any, source: Source) -> None:
        self._draw, self._secret, self._source = draw, secret, source
        self._held: Points | None = None
        self.calls = Calls()

    def take(self, count: int, like: tuple[int, str] | None) -> Points:
        """Return `count` reports, asking for more where too few are left; `like` is the width and kind of others."""
        silent = 0
        while self._held is None or len(self._held) < count:
            missing = max(count - (0 if self._held is None else len(self._held)), 1)
            rows = self.ask(missing * 2**silent, like)
            silent = 0 if len(rows) else silent + 1
            if silent == SILENT:
                raise InvalidInput(
                    f"the sampler gave no report for a secret in {SILENT} calls, so that nothing can be judged."
                )
            if len(rows):
                self._held = rows if self._held is None else np.concatenate([self._held, rows])
        taken, self._held = self._held[:count], self._held[count:]
        return taken

    def ask(self, count: int, like: tuple[int, str] | None) -> Points:
        """Call the sampler once and return what came, in random order."""
        width = like[0] if like else np.asarray(self._secret).size
        rows = as_reports(self._draw(self._secret, count), width=None if width == count else width)
        if like and len(rows) and (rows.shape[1], rows.dtype.kind) != like:
            words = {"U": "text", "f": "numbers"}
            raise InvalidInput(
                f"the sampler gave rows of {like[0]} columns of {words[like[1]]}, then of {rows.shape[1]} columns of "
                f"{words[rows.dtype.kind]}: reports must keep their shape."
            )
        mixed = rows[shuffled(len(rows), self._source)]
        self.calls.note(count, rows, mixed)
        return mixed


class Dealer:
    """Deals rounds: which pairs, which way the coins fell, what the sampler reported.

    In batches, every secret is called once for all its rounds, in random order of the secrets. One at a time, the
    sampler is asked in the order of the coins for a single report, which is right for samplers with a memory too.
    """

    def __init__(self, arena: Arena, pairs: Integers, pools: list[Pool], source: Source) -> None:
        self.arena, self.pairs, self.pools, self.source = arena, pairs, pools, source
        self.like: tuple[int, str] | None = None
        self.drawn = 0
        self.singly = False
        self.last: Points | None = None

    @property
    def calls(self) -> list[Calls]:
        """What is known of the calls for every secret."""
        return [pool.calls for pool in self.pools]

    def deal(self, shares: Integers) -> Rounds:
        """Return so many rounds of every pair."""
        pair = np.repeat(np.arange(len(shares)), shares)
        if self.singly:
            pair = pair[shuffled(len(pair), self.source)]
        coins = (self.source.words(len(pair)) >> np.uint64(63)).astype(np.int64)
        asked = self.pairs[pair, coins]
        reports = self._singles(asked) if self.singly else self._batches(asked)
        self.drawn, self.last = self.drawn + len(pair), reports
        return Rounds(self.arena, self.pairs[pair, 0], self.pairs[pair, 1], pair, pair, coins, reports)

    def call_again(self) -> None:
        """See to it that every secret that was asked about was asked twice, so that calls can be compared."""
        for pool in self.pools:
            if pool.calls.made == 1:
                pool.ask(max(8, min(pool.calls.asked, 1000)), self.like)

    def _batches(self, asked: Integers) -> Points:
        places, parts = [], []
        secrets = np.unique(asked)
        for secret in secrets[shuffled(len(secrets), self.source)].tolist():
            at = np.flatnonzero(asked == secret)
            parts.append(self._known(self.pools[secret].take(len(at), self.like)))
            places.append(at)
        together = np.concatenate(parts)
        reports = np.empty_like(together)
        reports[np.concatenate(places)] = together
        return reports

    def _singles(self, asked: Integers) -> Points:
        return np.concatenate([self._known(self.pools[secret].take(1, self.like)) for secret in asked.tolist()])

    def _known(self, rows: Points) -> Points:
        self.like = self.like or (rows.shape[1], rows.dtype.kind)
        return rows
