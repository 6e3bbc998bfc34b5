"""Sentences about released trips: what one report promises, what a whole trip does, what it costs."""

from __future__ import annotations

from metricdp.numerals import number
from metricdp.wording.promises import distance, epsilon


def report_promise(rate: float, slack: float, reach: float, unit: str) -> str:
    """Return what one report promises for places, and what putting fixes on places adds."""
    return (
        f"Promise of one report: epsilon {epsilon(rate, unit)} for the places with their history, by certificate; for "
        f"the fixes themselves a slack of {number(slack, 4, 'up')} comes on top, since each is put on a place up to "
        f"{distance(reach, unit, 'up')} away."
    )


def trip_promise(one: float, all_places: float, reports: int, unit: str) -> str:
    """Return what all reports of a trip together leak when one of its places moves, and when all of them do."""
    return (
        f"Promise of a whole trip: at most epsilon {epsilon(one, unit)} by which one of its places moves, and "
        f"{epsilon(all_places, unit)} by which all of them move (the longest trip has {reports:,} reports)."
    )


def trip_loss(loss: float, lower_bound: float, unit: str) -> str:
    """Return what a report costs on average, and what no mechanism with the same promise goes below."""
    return (
        f"Loss: on average a report lies {distance(loss, unit, 'up')} from where the model puts the vehicle next; no "
        f"mechanism with this promise goes below {distance(lower_bound, unit, 'down')}."
    )


def predicted_promise(most: float, total: float | None, unit: str) -> str:
    """Return what all reports of a trip together leak when all of its places move, at most and before the fact."""
    before = (
        f"no trip could have spent more than {epsilon(total, unit)}"
        if total is not None
        else "no total was set, so a longer or wilder trip would have spent more"
    )
    return (
        f"Promise of a whole trip: at most epsilon {epsilon(most, unit)} by which all of its places move, tests and "
        f"fresh noise together; {before}."
    )


def predicted_cost(spent: float, independent: float, unit: str) -> str:
    """Return what all trips spent, and what independent noise of the same accuracy would have."""
    share = spent / independent if independent else 1.0
    return (
        f"Spent over all trips: {epsilon(spent, unit)}; fresh noise for every report would have cost "
        f"{epsilon(independent, unit)} ({share:.0%} of it was spent)."
    )


def predicted_loss(accuracy: float, caution: float, confidence: float, unit: str) -> str:
    """Return how far fresh and predicted reports are off."""
    return (
        f"Loss: a fresh report lies within {distance(accuracy, unit, 'up')} of its place with a chance of "
        f"{confidence:.0%}; a prediction {distance(accuracy / caution, unit, 'up')} off passes the test with a chance "
        f"of {1 - confidence:.0%}, one farther off with less."
    )
