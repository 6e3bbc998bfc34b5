"""Audit of any sampler by betting on which of two secrets a report was drawn from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from metricdp.arrays import as_points
from metricdp.auditing.betting.dealing import Dealer, Pool
from metricdp.auditing.betting.game import Game, batch_size, shares
from metricdp.auditing.betting.health import DOUBT, doubtful, health_findings, seed_finding
from metricdp.auditing.betting.outcome import outcome
from metricdp.auditing.betting.pairing import chosen_pairs
from metricdp.auditing.betting.received import Draw, checked_claim
from metricdp.auditing.betting.rounds import UP, Arena
from metricdp.auditing.betting.shelf import Shelf, play_pairs
from metricdp.auditing.report import AuditReport
from metricdp.errors import InvalidInput
from metricdp.metrics import Metric
from metricdp.randomness import Randomness, fresh_stream, source_of

BATCHES = 0.9  # the share of the level that rounds in batches get
Progress = Callable[[float, float], None]


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
    progress: Progress | None = None,
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
    have found, `findings` what else was seen. Where reports of one call hang together or a state drifts, they are asked
    for one at a time; where calls repeat, one call a secret is judged.

    Args:
        draw: The sampler. It is given the secrets as they stand in `secrets`.
        secrets: At least two, one a row; words for metrics on words.
        metric: How far secrets are apart.
        epsilon: The promise that is judged, in the unit of the metric.
        confidence: How sure a refutation has to be.
        draws: The largest number of reports to bet on, in all.
        slack: What the promise allows beside epsilon * d.
        pairs: Which secrets to compare, as positions in `secrets`; otherwise all, or the most telling ones of many.
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
    dealer = Dealer(arena, chosen, [Pool(draw, secret, source) for secret in secrets], source)
    seeds = seed_finding(draw, secrets[int(chosen[0, 0])])
    table = _Table(dealer, int(draws), confidence, progress)
    game, judged = table.play()
    findings = (*seeds, *health_findings(dealer.calls))
    method = f"bets on {game.rounds:,} reports of {len(points)} secrets"
    return outcome(game, (confidence, judged), f"{method}{table.manner}", len(chosen), findings)


class _Table:
    """Plays until the claim is refuted or the draws are spent, in a manner that suits the sampler.

    The level alpha = 1 - confidence is shared out: 0.9 alpha for rounds in batches. Where calls repeat, or reports of
    a call hang together, whatever the batches have won is thrown away, and 0.1 alpha is left for a new game: on a
    single call for every secret, or on reports that are asked for one at a time.
    """

    def __init__(self, dealer: Dealer, draws: int, confidence: float, progress: Progress | None) -> None:
        self.dealer, self.draws, self.progress = dealer, draws, progress
        self.alpha = 1.0 - confidence
        self.manner = ""

    def play(self) -> tuple[Game, float]:
        """Return the game that counts, and the confidence it is judged at."""
        game, fit = self._rounds(1.0 - BATCHES * self.alpha)
        if fit:
            return game, 1.0 - BATCHES * self.alpha
        if any(calls.coincidence < -DOUBT for calls in self.dealer.calls):
            return self._single_calls(), 1.0 - (1.0 - BATCHES) * self.alpha
        self.dealer.singly = True
        self.manner = ", asked for one at a time"
        return self._rounds(1.0 - (1.0 - BATCHES) * self.alpha)[0], 1.0 - (1.0 - BATCHES) * self.alpha

    def _rounds(self, confidence: float) -> tuple[Game, bool]:
        """Play a new game; tell whether its rounds were fit for it."""
        dealer, game = self.dealer, None
        if dealer.drawn >= self.draws and dealer.last is not None:  # nothing is left to ask with
            return Game(dealer.arena, dealer.last), True
        while True:
            size = min(batch_size(game.rounds if game else 0), self.draws - dealer.drawn)
            rounds = dealer.deal(shares(game, len(dealer.pairs), size, dealer.source))
            if not dealer.singly and any(calls.repeats for calls in dealer.calls):
                return game or Game(dealer.arena, rounds.reports), False
            game = game or Game(dealer.arena, rounds.reports)
            game.play(rounds)
            if self.progress is not None:
                self.progress(dealer.drawn / self.draws, game.wealth.bound(confidence))
            if game.wealth.refuted(confidence):
                dealer.call_again()
                return game, dealer.singly or not doubtful(dealer.calls)
            if dealer.drawn >= self.draws:
                return game, True

    def _single_calls(self) -> Game:
        """Ask once for every secret, and bet on those reports alone."""
        dealer, arena = self.dealer, self.dealer.arena
        self.manner = ", one call for every secret"
        used = np.unique(dealer.pairs)
        count = max(1, (self.draws - dealer.drawn) // len(used))
        parts = {int(secret): dealer.pools[secret].ask(count, dealer.like) for secret in used}
        secret = np.concatenate([np.full(len(rows), one) for one, rows in parts.items()])
        rows = np.concatenate(list(parts.values()))
        shelf = Shelf(rows, secret, len(arena.points), dealer.source)
        game, _ = play_pairs(shelf, arena.points, arena.metric, (arena.epsilon, arena.slack), dealer.pairs)
        return game or Game(arena, rows)
