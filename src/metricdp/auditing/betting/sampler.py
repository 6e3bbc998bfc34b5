"""Audit of any sampler by betting on which of two secrets a report was drawn from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from metricdp.arrays import Integers, as_points
from metricdp.auditing.betting.drawing import Pools, ReportBuffer, Sampler, Take, play_pairs
from metricdp.auditing.betting.game import Game, batch_size, shares
from metricdp.auditing.betting.health import health_findings, seed_finding
from metricdp.auditing.betting.outcome import outcome
from metricdp.auditing.betting.pairing import chosen_pairs
from metricdp.auditing.betting.rounds import UP, Draw, Rounds, RoundSetting, check_claim, flip_coins, shuffle_numbers
from metricdp.auditing.report import AuditReport
from metricdp.errors import InvalidInput
from metricdp.metrics import Metric
from metricdp.randomness import Randomness, RandomSource, fresh_stream, source_of

Progress = Callable[[float, float], None] | None


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
    independent: bool = False,
    progress: Progress = None,
    rng: Randomness = None,
) -> AuditReport:
    """Try to refute what a sampler guarantees, from its reports alone; stop as soon as it is refuted.

    `draw(secret, count)` returns reports for one secret: rows of numbers or text, any number of them, in any order.
    For a pair of secrets at distance d a fair coin decides which of the two is asked. If the guarantee

        Pr[M(x) = y] <= exp(epsilon d + slack) Pr[M(x') = y]

    holds, no report makes one side of the coin likelier than s = 1 / (1 + exp(-epsilon d - slack)). Beliefs about the
    coin, learned from rounds that are over, bet at these odds: on distances to both secrets, coordinates, values that
    repeat, the secret itself, low bits and lattices. If the guarantee holds, their wealth reaches 1 / (1 - confidence)
    with probability at most 1 - confidence, whenever one stops. Pairs that have won more are asked more often.

    Every report that is bet on comes from a call of its own, `draw(secret, 1)`, and calls are made in the order of the
    coins. So the level holds for every sampler of which one report satisfies the guarantee, given all that it said
    before: what reports of one call share, such as the offset of a lattice or a batch number, convicts nobody. A call
    without a report is a round without a bet, and where single ones never come, calls are for more. A sampler that
    answers many calls at once may have a method `each(secrets)`, one report for every secret in their order.

    With `independent` you say that the reports of one call are drawn independently of each other. Then reports are
    asked for by the hundred, which is faster, and the level rests on your statement.

    The verdict is "violated", "not refuted", or "cannot judge" where calls repeat; never "holds". `report.epsilon` is a
    lower bound of what leaks at the stated confidence, `witness` the pair and a report that give it away, `power` a
    leak that these draws would have found, `findings` what else was seen.

    Args:
        draw: The sampler. It is given the secrets as they stand in `secrets`.
        secrets: At least two, one a row; words for metrics on words.
        metric: How far secrets are apart.
        epsilon: The guarantee that is audited, in the unit of the metric.
        confidence: How sure a refutation has to be.
        draws: The largest number of reports to bet on, in all.
        slack: What the guarantee allows beside epsilon * d.
        pairs: Which secrets to compare, as positions in `secrets`; otherwise all, or the most telling ones of many.
        independent: The reports of one call are drawn independently of each other.
        progress: Called with the share of the draws made and the lower bound so far.
        rng: Randomness of the coins, cryptographic by default.

    References:
        Ville 1939; Shafer, Testing by betting, 2021; Jagielski, Ullman, Oprea, Auditing differentially private machine
        learning, 2020.
    """
    claimed, slack, confidence = check_claim(epsilon, slack, confidence)
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
    setting = RoundSetting(points, metric, claimed, slack, apart * UP, len(chosen))
    sampler = Sampler(draw, list(secrets), source)
    seeds = seed_finding(draw, secrets[int(chosen[0, 0])])
    for number in chosen[0].tolist():
        sampler.probe(number)
    repeated = any(calls.is_repeated for calls in sampler.calls)
    if repeated and not independent:
        return AuditReport(
            claimed=claimed,
            epsilon=0.0,
            basis="samples",
            method="calls compared with each other, no bets",
            confidence=confidence,
            slack=slack,
            pairs=len(chosen),
            obstacle="Calls for one secret give the same draws again, so that one report tells the next: nothing can "
            "be bet on them. Let the sampler draw afresh in every call; or, where the reports of one call are drawn "
            "independently of each other, say so (independent=True, --independent), and one call a secret is audited.",
            findings=(*seeds, *health_findings(sampler.calls)),
        )
    if repeated:
        game, manner = _single_calls(setting, chosen, sampler, int(draws)), ", one call for every secret"
    else:
        take, manner = (Pools(sampler).take, "") if independent else (sampler.one_by_one, ", one a call")
        game = _play(Game(setting, sampler.like), chosen, take, source, int(draws), confidence, progress)
    manner += ", taken to be independent in a call" if independent else ""
    method = f"bets on {game.rounds:,} reports of {len(points)} secrets{manner}"
    findings = (*seeds, *health_findings(sampler.calls))
    return outcome(game, confidence, method, len(chosen), findings, asked=True)


def _play(
    game: Game, pairs: Integers, take: Take, source: RandomSource, draws: int, confidence: float, progress: Progress
) -> Game:
    """Play until the claim is refuted or the draws are spent; a draw without a report is a round without a bet."""
    drawn = 0
    while drawn < draws and not game.wealth.is_refuted(confidence):
        wanted = shares(game, min(batch_size(game.rounds), draws - drawn), source)
        pair = np.repeat(np.arange(len(pairs)), wanted)
        pair = pair[shuffle_numbers(len(pair), source)]
        coins = flip_coins(len(pair), source)
        came, reports = take(pairs[pair, coins])
        drawn, pair = drawn + len(pair), pair[came]
        if len(pair):
            game.play(Rounds(game.setting, pairs[pair, 0], pairs[pair, 1], pair, pair, coins[came], reports))
        if game.rounds and progress is not None:
            progress(drawn / draws, game.wealth.bound(confidence))
    if not game.rounds:
        raise InvalidInput(f"the sampler gave no report in {drawn:,} calls, so that nothing can be audited.")
    return game


def _single_calls(setting: RoundSetting, pairs: Any, sampler: Sampler, draws: int) -> Game:
    """Ask once for every secret, and bet on those reports alone."""
    used = np.unique(pairs)
    parts = {int(secret): sampler.insist(int(secret), max(1, draws // len(used))) for secret in used}
    secret = np.concatenate([np.full(len(rows), one) for one, rows in parts.items()])
    rows = np.concatenate(list(parts.values()))
    buffer = ReportBuffer(rows, secret, len(setting.points), sampler.source)
    return play_pairs(buffer, setting.points, setting.metric, (setting.epsilon, setting.slack), pairs)[0]
