"""What would have been found: one kind of leak, planted in simulated reports and bet on as the game bets.

A leak can take any form, and no number covers them all. Where pairs are learned one by one, the leak is a value that
comes back bit for bit; where all pairs are learned together, it is the true value. The simulation counts the wealth of
the one look that is made for this leak; whatever the other looks win comes on top.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from metricdp.auditing.betting.event_statistics import TruthStatistic
from metricdp.auditing.betting.game import LEARNING, Belief, Game, batch_size
from metricdp.auditing.betting.predictors import CountPredictor
from metricdp.auditing.betting.statistics import ValueStatistic
from metricdp.auditing.betting.wealth import Wealth

RARE = (0.1, 0.01)  # how much of all reports a leak makes up
RUNS = 200  # simulated audits
FOUND = 0.95  # of which so many must refute
NOTHING = "No leak in a tenth of the reports or less is sure to be found with so few draws."


def power(game: Game, confidence: float) -> str:
    """Say which planted leak these rounds would have found in at least 95 % of simulated audits."""
    together = game.setting.slots == 1 and len(game.setting.levels) > 1
    kind = TruthStatistic if together else ValueStatistic
    belief = next((belief for belief in game.beliefs if isinstance(belief.statistic, kind)), None)
    if belief is None:
        return "Which leak these draws would have found is not known."
    return _true_values(game, belief, confidence) if together else _values(game, belief, confidence)


def _values(game: Game, belief: Belief, confidence: float) -> str:
    level = int(np.argmin(game.played))  # nobody knows which pair leaks: the one asked most may be one that does not
    steps = game.wealth.candidates[game.wealth.claim + 1 :]
    parts = []
    for mass in RARE:
        low, high = 0, len(steps)  # the smallest step that is found, by halving
        while low < high:
            middle = (low + high) // 2
            if _share_found(game, belief, confidence, level, mass, float(steps[middle])) >= FOUND:
                high = middle
            else:
                low = middle + 1
        if low < len(steps):
            parts.append(f"makes up {mass:.0%} of the reports and leaks epsilon {steps[low]:.3g}")
    if not parts:
        return NOTHING
    return (
        f"At the pair that was asked least, in {game.played[level]:,.0f} rounds, at least {FOUND:.0%} of such audits "
        f"find a value that comes back bit for bit and {', or '.join(parts)} (simulated). A leak that is spread over "
        "many values, or rarer, may need more draws."
    )


def _true_values(game: Game, belief: Belief, confidence: float) -> str:
    found = [mass for mass in RARE if _share_found(game, belief, confidence, None, mass, np.inf) >= FOUND]
    if not found:
        return NOTHING
    return (
        f"At least {FOUND:.0%} of such audits find it where {found[-1]:.0%} of the reports are the true value "
        "(simulated). Other leaks may need more draws."
    )


def _share_found(
    game: Game, belief: Belief, confidence: float, level: int | None, mass: float, epsilon: float
) -> float:
    """Return the share of simulated audits that refute a leak at one level, or at all levels as they were played."""
    setting, rng = game.setting, np.random.default_rng(0)  # which audits are simulated is no secret
    played = game.played if level is None else np.where(np.arange(len(game.played)) == level, game.played, 0.0)
    wealth = Wealth(setting.epsilon, setting.slack, setting.levels, np.ones(1), alone=True)
    cells = 2 if level is None else 1  # the true value is one of two: the first secret or the second
    predictor, slots = (
        CountPredictor(RUNS, cells, belief.predictor.shrink if isinstance(belief.predictor, CountPredictor) else 1.0),
        np.arange(RUNS),
    )
    earned, refuted = np.full(RUNS, np.log(belief.share / sum(one.share for one in game.beliefs))), np.zeros(RUNS, bool)
    known = np.full(RUNS, level is None)  # a value is bet on once it was learned, the true one from the beginning
    for size, learns in _batches(game.rounds):
        levels = rng.choice(len(played), size=RUNS, p=played / played.sum())
        odds = np.exp(-epsilon * setting.levels[levels] - setting.slack)
        for cell in range(cells):
            hits = rng.binomial(size, mass * float(played.sum()) / game.rounds / cells, RUNS)
            likely = rng.binomial(hits, 1.0 / (1.0 + odds)).astype(np.float64)
            seen = (likely, hits - likely) if cell == 0 else (hits - likely, likely)
            where = np.full(RUNS, cell)
            gains = wealth.bet(0, levels, predictor.believe(slots, levels, where), seen)
            earned += np.where(known, gains, 0.0)
            predictor.add(slots, levels, where, seen)
        refuted |= earned >= -np.log1p(-confidence)
        if learns:
            known |= predictor.seen.sum(axis=(0, 2)) > 1
    return float(refuted.mean())


def _batches(rounds: int) -> Iterator[tuple[int, bool]]:
    """Return the sizes of the batches of a game, and whether looks learn anew after each."""
    drawn = 0
    while drawn < rounds:
        size = min(batch_size(drawn), rounds - drawn)
        yield size, bool(np.any((drawn < LEARNING) & (drawn + size >= LEARNING)))
        drawn += size
