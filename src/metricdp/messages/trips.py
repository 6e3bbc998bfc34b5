"""Sentences about released trips: what one report promises, what a whole trip does, what it costs."""

from __future__ import annotations

from metricdp.messages.guarantees import distance, epsilon, rivals
from metricdp.rendering import number


def report_guarantee(rate: float, slack: float, reach: float, unit: str) -> str:
    """Return what one report promises for places, and what putting fixes on places adds."""
    return (
        f"Promise of one report: epsilon {epsilon(rate, unit)} for the places with their history, by certificate; for "
        f"the fixes themselves a slack of {number(slack, 4, 'up')} comes on top, since each is put on a place up to "
        f"{distance(reach, unit, 'up')} away."
    )


def trip_guarantee(one: float, all_places: float, reports: int, unit: str) -> str:
    """Return what all reports of a trip together leak when one of its places moves, and when all of them do."""
    return (
        f"Promise of a whole trip: at most epsilon {epsilon(one, unit)} by which one of its places moves, and "
        f"{epsilon(all_places, unit)} by which all of them move (the longest trip has {reports:,} reports)."
    )


def trip_loss(loss: float, lower_bound: float, unit: str) -> str:
    """Return what a report costs on average, and what no mechanism with this promise that reports these places does."""
    return (
        f"Loss: on average a report lies {distance(loss, unit, 'up')} from where the model puts the vehicle next; "
        f"{rivals(unit)} goes below {distance(lower_bound, unit, 'down')}."
    )


def prediction_guarantee(most: float, total: float | None, unit: str) -> str:
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


def zone_guarantee(rate: float, scale: float, slack: float, reach: float, unit: str) -> str:
    """Return what one report promises outside zones, across their borders and inside them."""
    return (
        f"Promise of one report: epsilon {epsilon(rate, unit)} for any two places, and {epsilon(rate * scale, unit)} "
        f"for two places of one zone, by certificate; for the fixes themselves a slack of {number(slack, 4, 'up')} "
        f"comes on top, since each is put on a place up to {distance(reach, unit, 'up')} away."
    )


def zoned_trip(rate: float, scale: float, reports: int, unit: str) -> str:
    """Return what all reports of a trip together leak, in a zone and elsewhere."""
    return (
        f"Promise of a whole trip: at most epsilon {epsilon(rate * reports, unit)} by which all of its places move, "
        f"and {epsilon(rate * scale * reports, unit)} where they stay in one zone (the longest trip has {reports:,} "
        "reports); the slack counts once for each report."
    )


def drawn_centres(rate: float, together: float, reports: int, unit: str, *, kept: bool) -> str:
    """Return what the centre of a home zone is, what it leaks, and what all visits add to it."""
    again = (
        "The books keep it: later tables get the same centre, for nothing."
        if kept
        else "Another run would draw another centre and cost that again; with --ledger it is drawn once."
    )
    return (
        "Where a zone lies counts as public, so its centre is no home: it is a report of the home, at epsilon "
        f"{epsilon(rate, unit)} by which the home moves. With {reports:,} visits it is at most "
        f"{epsilon(together, unit)} by which the home moves inside the zone. {again} The home is where a person's own "
        "trips stay longest: trips that are hardly apart may have homes that are far apart, and then the distance "
        "between the homes counts."
    )


def given_centres(count: int) -> str:
    """Return what is public about zones whose centres were given."""
    return (
        f"Where the {count:,} zones lie is public, whoever is inside: their centres were given and nothing was looked "
        "up in the trips. A centre that is somebody's home gives it away."
    )


def zoned_loss(loss: float, lower_bound: float, unit: str) -> str:
    """Return what a report costs on average with every place equally likely, and how far above the bound that is."""
    share = loss / lower_bound - 1.0 if lower_bound > 0 else 0.0
    return (
        f"Loss: a report lies {distance(loss, unit, 'up')} from its place on average, with every place equally likely; "
        f"{rivals(unit)} goes below {distance(lower_bound, unit, 'down')} "
        f"({share:.1%} above it)."
    )


def clock_guarantee(place: float, time: float, slack: float, unit: str, minute: str) -> str:
    """Return what one fix promises about its place and its time."""
    more = f" and a slack of {number(slack, 4, 'up')}, since each is put on a time of the clock" if slack else ""
    return (
        f"Promise of one fix: epsilon {epsilon(place, unit)} by which its place moves, and {epsilon(time, minute)} by "
        f"which it is earlier or later{more}. That one place came before another is covered: rows are in the order of "
        "the reported times."
    )


def clocked_trip(place: float, time: float, fixes: int, unit: str, minute: str) -> str:
    """Return what all fixes of a trip together leak when all of them move, and when all are later."""
    return (
        f"Promise of a whole trip: at most epsilon {epsilon(place * fixes, unit)} by which all of its fixes move, and "
        f"{epsilon(time * fixes, minute)} by which all are later (the longest trip has {fixes:,} fixes); a slack "
        "counts once for each."
    )


def clocked_loss(time: float, lower_bound: float, place: float, unit: str, minute: str) -> str:
    """Return how far places and times are off, and what none with these times as reports goes below."""
    off = f"Loss: on average a place is {distance(place, unit, 'up')} off and a time {distance(time, minute, 'up')}"
    if lower_bound <= 0:
        return f"{off}."
    share = time / lower_bound - 1.0
    return (
        f"{off}; no mechanism with this promise about times that reports the same times goes below "
        f"{distance(lower_bound, minute, 'down')} ({share:.1%} above it), with all times of the day equally likely."
    )
