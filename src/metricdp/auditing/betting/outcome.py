"""What the bets say: verdict, bound, witness, what convicts, and what would have been found."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from metricdp.auditing.betting.game import LEARNING, Belief, Game, batch_size
from metricdp.auditing.betting.rounds import Rounds
from metricdp.auditing.betting.statistics import TruthStatistic, ValueStatistic
from metricdp.auditing.betting.wealth import CountPredictor, Wealth
from metricdp.auditing.report import AuditReport, Finding
from metricdp.mechanisms import Witness


def outcome(
    game: Game, confidence: float, method: str, pairs: int, findings: tuple[Finding, ...] = (), *, asked: bool = False
) -> AuditReport:
    """Return the report of a game that is over; a sampler that was `asked` is asked no further once it is refuted.

    Only a refutation has a witness: where nothing is refuted, the pair that looks worst is worst by chance.
    """
    wealth, setting = game.wealth, game.setting
    refuted = wealth.is_refuted(confidence)
    witness = _strongest_place(game, game.beliefs[wealth.best]).witness if refuted else None
    return AuditReport(
        claimed=setting.epsilon,
        epsilon=wealth.bound(confidence),
        basis="samples",
        method=f"{method}; asking stopped there" if refuted and asked else method,
        refuted=refuted,
        confidence=confidence,
        witness=witness,
        slack=setting.slack,
        pairs=pairs,
        draws=game.rounds,
        power="" if refuted else power(game, confidence),
        findings=(*(_convictions(game, confidence) if refuted else ()), *findings),
    )


@dataclass(frozen=True)
class _Place:
    """The pair and the cell in which a statistic wins most."""

    cell: int
    counts: tuple[int, int]  # from the secret that is betrayed, and from the other
    witness: Witness


def _convictions(game: Game, confidence: float) -> tuple[Finding, ...]:
    """Say which statistics convict: all that multiplied their share by 1/alpha, exact events first, then by wealth."""
    wealth = game.wealth
    own = wealth.log_shares + wealth.logs[:, wealth.claim]
    enough = np.flatnonzero(wealth.logs[:, wealth.claim] >= -np.log1p(-confidence))
    order = enough[np.argsort(-own[enough])] if enough.size else np.array([wealth.best])
    found: dict[str, Finding] = {}
    for number in order.tolist():
        belief = game.beliefs[number]
        place = _strongest_place(game, belief)
        kind = belief.statistic.kind_of(place.cell)
        sentence = _sentence(belief.statistic.says(place.cell), place, together=game.setting.is_together)
        found.setdefault(kind, Finding(kind, sentence, convicts=True))
    return tuple(sorted(found.values(), key=lambda finding: finding.kind == "law"))


def _sentence(what: str, place: _Place, *, together: bool) -> str:
    (one, two), witness = place.counts, place.witness
    secret, other, report = (_show_place(at) for at in (witness.secret_at, witness.other_at, witness.report_at))
    seen = f"{secret} and {two:,} from {other}, such as {report}"
    if together:  # pairs of about the same distance
        seen = f"one secret of a pair and {two:,} from the other, such as {report} from {secret} and not from {other}"
    return f"{what[0].upper()}{what[1:]}: of the reports looked back on, {one:,} came so from {seen}."


def _show_place(place: tuple[float | str, ...] | None) -> str:
    place = place or ()
    texts = [part if isinstance(part, str) else f"{part:.12g}" for part in place[:4]]
    return texts[0] if len(place) == 1 else f"({', '.join(texts)}{', ...' if len(place) > 4 else ''})"


def _strongest_place(game: Game, belief: Belief) -> _Place:
    """Return where a statistic wins most: the pair and the cell of the remembered rounds."""
    past, statistic = game.past, belief.statistic
    keys = past.level * statistic.size + statistic.cells(past)
    found, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
    ones = np.bincount(inverse, weights=past.coins.astype(np.float64), minlength=len(found))
    zeros = counts - ones
    likely = np.maximum(zeros, ones) + 0.5
    share = likely / (counts + 1.0)
    share = np.clip(share - np.sqrt(share * (1.0 - share) / (counts + 1.0)), 0.5, 1.0 - 1e-9)  # less what is not known
    at = game.wealth.claim, found // statistic.size
    limit = game.wealth.limit[at]  # 1 - limit may be too small for a double, its logarithm is not
    gain = share * (np.log(share) + game.wealth.log_hit[at]) + (1.0 - share) * (
        np.log1p(-share) + game.wealth.log_miss[at]
    )
    gain[found % statistic.size == statistic.rest] *= 1e-3  # what is special says more to a reader
    best = int(np.argmax(np.where(share > limit, counts * gain, share - 1.0)))
    side = int(ones[best] > zeros[best])
    row = int(np.flatnonzero((inverse == best) & (past.coins == side))[0])
    seen = int(max(zeros[best], ones[best])), int(min(zeros[best], ones[best]))
    return _Place(int(found[best] % statistic.size), seen, _witness(past, row, side))


def _witness(past: Rounds, row: int, side: int) -> Witness:
    """Return the pair and the report of a round; its ratio is not known, since it was chosen by what was seen."""
    pair = (int(past.first[row]), int(past.second[row]))
    secret, other = pair[side], pair[1 - side]
    points = past.setting.points
    return Witness(
        secret,
        other,
        -1,
        math.nan,
        secret_at=tuple(points[secret].ravel().tolist()),
        other_at=tuple(points[other].ravel().tolist()),
        report_at=tuple(past.reports[row].ravel().tolist()),
    )


# What would have been found: one kind of leak, planted in simulated reports and bet on as the game bets.
#
# A leak can take any form, and no number covers them all. Where pairs are learned one by one, the leak is a value that
# comes back bit for bit; where all pairs are learned together, it is the true value. The simulation counts the wealth
# of the one statistic that is made for this leak; what the other ones win comes on top.

RARE = (0.1, 0.01)  # how much of all reports a leak makes up
RUNS = 200  # simulated audits
FOUND = 0.95  # of which that many must refute
NOTHING = "No leak in a tenth of the reports or less is sure to be found with so few draws."


def power(game: Game, confidence: float) -> str:
    """Say which planted leak these rounds would have found in at least 95 % of simulated audits."""
    together = game.setting.is_together
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
        share = partial(_share_found, game, belief, confidence, level, mass)
        least = bisect_left(steps, FOUND, key=share)  # the smallest step that is found
        if least < len(steps):
            parts.append(f"makes up {mass:.0%} of the reports and leaks epsilon {steps[least]:.3g}")
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
    predictor, slots = CountPredictor(RUNS, cells), np.arange(RUNS)
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
    """Return the sizes of the batches of a game, and whether statistics learn anew after each."""
    drawn = 0
    while drawn < rounds:
        size = min(batch_size(drawn), rounds - drawn)
        yield size, bool(np.any((drawn < LEARNING) & (drawn + size >= LEARNING)))
        drawn += size
