"""Rounds with a sampler: the coins first, then the reports that they ask for.

Every report that is bet on comes from a call of its own, and calls are made in the order of the coins. Whatever the
reports of one call share (an offset, a batch number, a time) is then drawn anew for every coin, or is known from
before it, so that it tells nothing about the coin.

A call without a report is a round without a bet. To ask again would be to audit another distribution, that of the
reports that come: two secrets that keep silent unlike often may differ more there than the guarantee allows in all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from metricdp.arrays import Integers, Points
from metricdp.auditing.betting.game import Game, batch_size, shares
from metricdp.auditing.betting.health import Calls
from metricdp.auditing.betting.pairing import chosen_pairs
from metricdp.auditing.betting.rounds import UP, Draw, Rounds, RoundSetting, as_reports, flip_coins, shuffle_numbers
from metricdp.errors import InvalidInput
from metricdp.metrics import Metric
from metricdp.randomness import RandomSource

SILENT = 8  # calls without a report after which nobody asks again
PROBE = 32  # reports in a call that is compared with another one for the same secret
PROBES = 4  # calls for one secret until it is clear whether they repeat
PROBED = 2 * PROBES, PROBE  # for the two secrets of a pair: how many calls at most, and of how many reports


Answered = tuple[Integers, Points]  # the positions of those that were served, and what they were given
Take = Callable[[Integers], Answered]


@runtime_checkable
class Sequential(Protocol):
    """A sampler that answers many calls at once: one report for every secret, in their order."""

    def each(self, secrets: Sequence[Any]) -> Any:
        """Return one report for every secret."""


class Sampler:
    """The sampler that is audited: it is called, what it gives is checked, and what is odd about its calls is noted."""

    def __init__(self, draw: Draw, secrets: Sequence[Any], source: RandomSource) -> None:
        self.draw, self.secrets, self.source = draw, secrets, source
        self.calls = [Calls() for _ in secrets]
        self.like: Points = np.zeros((0, 0))  # no rows, of the width and the kind of its reports
        self.asking = 1  # reports a call: more where single ones never came, of which one at most is bet on

    def probe(self, number: int) -> None:
        """Call twice for many reports of one secret, and further where the calls look alike."""
        calls = self.calls[number]
        while calls.made < 2 or (calls.needs_more_calls and calls.made < PROBES):
            self.insist(number, PROBE)

    def insist(self, number: int, count: int) -> Points:
        """Call for reports of one secret; where none come, ask for more; return all that came, in random order."""
        for silent in range(SILENT):
            rows = self.call(number, count * 2**silent)
            if len(rows):
                return rows
        raise InvalidInput(
            f"the sampler gave no report for a secret in {SILENT} calls, so that nothing can be audited."
        )

    def call(self, number: int, count: int) -> Points:
        """Call once for reports of one secret; return what came, if anything, in random order."""
        width = self.like.shape[1] or np.asarray(self.secrets[number]).size
        rows = self._check_rows(
            as_reports(self.draw(self.secrets[number], count), width=None if width == count else width)
        )
        self.calls[number].note(count, rows)
        return rows if len(rows) < 2 else np.asarray(rows[shuffle_numbers(len(rows), self.source)])

    def one_by_one(self, asked: Integers) -> Answered:
        """Serve every secret that is asked for from a call of its own, in this order."""
        numbers = asked.tolist()
        if not isinstance(self.draw, Sequential):
            parts = [self._single(number) for number in numbers]
            came = np.flatnonzero([len(part) for part in parts])
            if not len(came):
                self.asking = min(2 * self.asking, PROBE)
            return came, np.concatenate([parts[at] for at in came] or parts)
        rows = self._check_rows(as_reports(self.draw.each([self.secrets[number] for number in numbers]), width=None))
        if len(rows) != len(numbers):
            raise InvalidInput(
                f"the sampler gave {len(rows)} reports for {len(numbers)} secrets, one was due for each."
            )
        for number in np.unique(asked).tolist():
            here = asked == number
            self.calls[number].note(int(here.sum()), rows[here], singly=True)
        return np.arange(len(rows)), rows

    def _single(self, number: int) -> Points:
        """Return the report that a call gives in one place of those that are asked for, or nothing."""
        rows = self.call(number, self.asking)
        place = 0 if self.asking == 1 else int(shuffle_numbers(self.asking, self.source)[0])
        return rows[:1] if place < len(rows) else rows[:0]

    def _check_rows(self, rows: Points) -> Points:
        if len(rows) == 0:
            return rows
        self.like = self.like if self.like.shape[1] else rows[:0]
        before, now = (
            f"{some.shape[1]} columns of {'text' if some.dtype.kind == 'U' else 'numbers'}"
            for some in (self.like, rows)
        )
        if before != now:
            raise InvalidInput(f"the sampler gave rows of {before}, then of {now}: reports must keep their shape.")
        return rows


class Pools:
    """Reports by the hundred: every secret is called once for all its rounds, and what is left over is kept for later.

    This is fair only where the reports of one call are drawn independently of each other. They are shuffled: a sampler
    that sorts them, or gives more than were asked for, could otherwise make the first ones telling.
    """

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler
        self._held: dict[int, Points] = {}

    def take(self, asked: Integers) -> Answered:
        """Serve the secrets that are asked for; where reports are missing, chance decides which rounds have none."""
        found, counts = np.unique(asked, return_counts=True)
        source, came, parts = self._sampler.source, [], []
        for place in shuffle_numbers(len(found), source).tolist():
            rows = self._reports_of(int(found[place]), int(counts[place]))
            rounds = np.flatnonzero(asked == found[place])
            came.append(rounds[shuffle_numbers(len(rounds), source)][: len(rows)])
            parts.append(rows)
        served = np.concatenate(came)
        order = np.argsort(served)
        return served[order], np.concatenate(parts)[order]

    def _reports_of(self, number: int, count: int) -> Points:
        held = self._held.get(number, self._sampler.like)
        if len(held) < count:
            more = self._sampler.call(number, count - len(held))
            held = np.concatenate([held, more]) if len(more) else held
        self._held[number] = held[count:]
        return held[:count]


# Reports that are there already, by secret: each is bet on at most once.

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
        coins = flip_coins(len(pairs), self.source)
        reports = self.take(pairs[np.arange(len(pairs)), coins])
        return Rounds(setting, pairs[:, 0], pairs[:, 1], slot, level, coins, reports)


def play_pairs(
    buffer: ReportBuffer, points: Points, metric: Metric, claim: tuple[float, float], pairs: Integers | None = None
) -> tuple[Game, int]:
    """Bet on pairs that are learned one by one, until rows are used up."""
    pairs, apart = chosen_pairs(points, metric, pairs, claim[0])
    setting = RoundSetting(points, metric, *claim, apart * UP, len(pairs))
    game = Game(setting, buffer.reports)
    while True:
        wanted = np.maximum(shares(game, batch_size(game.rounds), buffer.source), 1)
        space = buffer.left.copy()
        for number in np.argsort(-wanted, kind="stable").tolist():
            one, two = pairs[number]
            wanted[number] = min(wanted[number], space[one], space[two])
            space[one] -= wanted[number]
            space[two] -= wanted[number]
        if wanted.sum() <= game.rounds // TAIL:
            return game, len(pairs)
        slot = np.repeat(np.arange(len(pairs)), wanted)
        game.play(buffer.deal(setting, pairs[slot], slot, slot))
