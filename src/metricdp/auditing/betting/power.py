"""What would have been found: the leak that these rounds would have refuted."""

from __future__ import annotations

import numpy as np

from metricdp.auditing.betting.game import Game

RARE = (0.1, 0.01)


def power(game: Game, confidence: float) -> str:
    """Say which leak would have been found with these rounds, in reports that are not too rare.

    A set of reports of mass m, averaged over both secrets, that betrays the pair with log-odds e d multiplies the
    wealth by about exp(n m KL(q || s)), q = 1 / (1 + exp(-e d - slack)), less what learning q costs.
    """
    found = [(mass, _least(game, confidence, mass)) for mass in RARE]
    parts = [
        f"epsilon {least:.3g} in reports that make up {mass:.0%} of all" for mass, least in found if np.isfinite(least)
    ]
    if not parts:
        return f"So few draws find no leak in reports that make up less than {RARE[0]:.0%} of all."
    return f"These draws would have found a leak of {', or of '.join(parts)}, and of less in more frequent ones."


def _least(game: Game, confidence: float, mass: float) -> float:
    """Return the smallest epsilon of a leak of this mass that is found at some pair."""
    wealth, arena = game.wealth, game.arena
    share = 1.0 / sum(belief.share for belief in game.beliefs)
    rounds = np.maximum(game.played, 1e-9)
    if arena.slots == 1:  # pairs are learned together: rounds of similar distances count together
        rounds = np.full(len(rounds), rounds.sum() / 4.0)
    seen = rounds * mass
    needed = -np.log1p(-confidence) - np.log(share) + 0.5 * np.log(np.maximum(seen, 1.0)) + 3.0
    steps = np.concatenate([wealth.candidates[wealth.claim + 1 :], arena.epsilon * np.geomspace(100.0, 1e4, 30)])
    q = np.minimum(1.0 / (1.0 + np.exp(-steps[:, None] * arena.levels - arena.slack)), 0.9999)
    s = wealth.limit[wealth.claim]
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.where(q > s, q * np.log(q / s) + (1.0 - q) * np.log((1.0 - q) / (1.0 - s)), 0.0)
    enough = np.any((seen * rate >= needed) & (game.played > 0), axis=1)
    return float(steps[int(np.argmax(enough))]) if enough.any() else float("inf")
