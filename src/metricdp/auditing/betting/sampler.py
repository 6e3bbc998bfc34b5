"""Audit of any sampler by betting on which of two secrets a report was drawn from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from metricdp.arrays import Integers, as_points, as_positive
from metricdp.auditing.betting.belief import Game
from metricdp.auditing.betting.outcome import outcome
from metricdp.auditing.betting.pairing import chosen_pairs
from metricdp.auditing.betting.received import Draw, Pool
from metricdp.auditing.betting.rounds import UP, Arena, Rounds
from metricdp.auditing.report import AuditReport
from metricdp.errors import InvalidInput
from metricdp.metrics import Metric
from metricdp.randomness import Randomness, Source, fresh_stream, source_of

FIRST_BATCH = 24
GROWTH = 0.1  # a batch is this part of what went before: what is learned is soon used, and calls stay few


def audit_sampler(
    draw: Draw,
    /,
    *,
    secrets: Any,
    metric: Metric,
    epsilon: float,
    confidence: float = 0.99,
    draws: int = 100_000,
    slack: float = 0.0,
    pairs: Sequence[tuple[int, int]] | None = None,
    progress: Callable[[float, float], None] | None = None,
    rng: Randomness = None,
) -> AuditReport:
    """Try to refute what a sampler promises, from its reports alone; stop as soon as it is refuted.

    `draw(secret, count)` returns reports for one secret: rows of numbers or text, any number of them, in any order.
    For a pair of secrets at distance d a fair coin decides which of the two is asked. If the promise

        Pr[M(x) = y] <= exp(epsilon d + slack) Pr[M(x') = y]

    holds, no report makes one side of the coin likelier than s = 1 / (1 + exp(-epsilon d - slack)). Beliefs about the
    coin, learned from rounds that are over, bet at these odds: on distances to both secrets, coordinates, values that
    repeat, the secret itself, low bits and lattices. If the promise holds, their wealth reaches 1 / (1 - confidence)
    with probability at most 1 - confidence, whenever one stops. Pairs that have won more are asked more often.

    The verdict is "violated" or "not refuted", never "holds". `report.epsilon` is a lower bound of what leaks at the
    stated confidence, `witness` the pair and a report that give it away, `power` the leak that these draws would
    have found, `findings` what else was seen. Reports of one call are taken to be independent.

    Args:
        draw: The sampler. It is given the secrets as they stand in `secrets`.
        secrets: At least two, one a row; words for metrics on words.
        metric: How far secrets are apart.
        epsilon: The promise that is judged, in the unit of the metric.
        confidence: How sure a refutation has to be.
        draws: The largest number of reports to bet on, in all.
        slack: What the promise allows beside epsilon * d.
        pairs: Which secrets to compare, as positions in `secrets`; otherwise all of them, or 64 near ones.
        progress: Called with the share of the draws made and the lower bound so far.
        rng: Randomness of the coins, cryptographic by default.

    References:
        Ville 1939; Shafer, Testing by betting, 2021; Jagielski, Ullman, Oprea, Auditing differentially private machine
        learning, 2020.
    """
    claimed, slack, confidence = checked_claim(epsilon, slack, confidence)
    if not callable(draw):
        raise InvalidInput(
            "`draw` must be a function of a secret and a count; recorded reports go to mdp.audit_samples."
        )
    if isinstance(draws, bool) or not isinstance(draws, int | np.integer) or draws < 1:
        raise InvalidInput(f"`draws` must be a whole number of at least 1, got {draws!r}.")
    points = as_points(list(secrets), "secrets")
    metric.check(points)
    chosen, apart = chosen_pairs(points, metric, pairs, claimed)
    source = fresh_stream() if rng is None else source_of(rng)
    arena = Arena(points, metric, claimed, slack, apart * UP, len(chosen))
    table = _Table(arena, chosen, [Pool(draw, secret, source) for secret in secrets], source)
    game: Game | None = None
    while table.drawn < draws:
        size = min(batch_size(table.drawn), int(draws) - table.drawn)
        rounds = table.deal(shares(game, len(chosen), size, source))
        game = game or Game(arena, rounds.reports)
        game.play(rounds)
        if progress is not None:
            progress(table.drawn / draws, game.wealth.bound(confidence))
        if game.wealth.refuted(confidence):
            break
    assert game is not None
    return outcome(game, confidence, f"bets on {table.drawn:,} reports of {len(points)} secrets", len(chosen))


def checked_claim(epsilon: Any, slack: Any, confidence: Any) -> tuple[float, float, float]:
    """Return the numbers of a claim, or say what is wrong with them."""
    claimed = as_positive(epsilon, "epsilon")
    if not (isinstance(slack, int | float | np.number) and 0 <= float(slack) < np.inf):
        raise InvalidInput(f"`slack` must be a finite number of at least 0, got {slack!r}.")
    if not (isinstance(confidence, int | float | np.number) and 0 < float(confidence) < 1):
        raise InvalidInput(f"`confidence` must lie between 0 and 1, got {confidence!r}.")
    return claimed, float(slack), float(confidence)


def batch_size(drawn: int) -> int:
    """Return how many rounds to play before what they teach is used."""
    return max(FIRST_BATCH, int(GROWTH * drawn))


def shares(game: Game | None, pairs: int, size: int, source: Source) -> Integers:
    """Return how many rounds every pair gets: half for the pair that has won most a round, half for all in turn."""
    some = np.bincount(np.argsort(source.words(pairs), kind="stable")[np.arange(size) % pairs], minlength=pairs)
    if game is None or pairs == 1:
        return some
    hope = game.earned.max(axis=0) / np.maximum(game.played, 1.0)
    best = int(np.argmax(hope))
    if hope[best] > 0:
        some //= 2
        some[best] += size - some.sum()
    return some


class _Table:
    """Where rounds are dealt: coins, and the pools of reports they are served from."""

    def __init__(self, arena: Arena, pairs: Integers, pools: list[Pool], source: Source) -> None:
        self.arena, self.pairs, self.pools, self.source = arena, pairs, pools, source
        self.like: tuple[int, str] | None = None
        self.drawn = 0

    def deal(self, shares: Integers) -> Rounds:
        """Return rounds of every pair: first the coins, then as many reports of every secret as they ask for."""
        pair = np.repeat(np.arange(len(shares)), shares)
        coins = (self.source.words(len(pair)) >> np.uint64(63)).astype(np.int64)
        asked = self.pairs[pair, coins]
        order = np.argsort(asked, kind="stable")
        parts = []
        for secret, count in zip(*np.unique(asked, return_counts=True), strict=True):
            part = self.pools[secret].take(int(count), self.like)
            self.like = self.like or (part.shape[1], part.dtype.kind)
            parts.append(part)
        together = np.concatenate(parts)
        reports = np.empty_like(together)
        reports[order] = together
        self.drawn += len(pair)
        return Rounds(self.arena, self.pairs[pair, 0], self.pairs[pair, 1], pair, pair, coins, reports)
