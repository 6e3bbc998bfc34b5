"""Sentences about released trips: the guarantee of one report, that of a whole trip, and the loss."""

from __future__ import annotations

from metricdp.messages.guarantees import distance, epsilon, rivals
from metricdp.rendering import number, plural


def report_guarantee(rate: float, slack: float, reach: float, unit: str) -> str:
    """Return the guarantee of one report for places, and the slack for fixes that move to places."""
    return (
        f"Guarantee of one report: epsilon {epsilon(rate, unit)} for places with their history, by certificate. "
        f"{_fix_slack(slack, reach, unit)}"
    )


def _fix_slack(slack: float, reach: float, unit: str) -> str:
    return (
        f"For the fixes themselves a slack of {number(slack, 4, 'up')} is added: each fix moves to a place up to "
        f"{distance(reach, unit, 'up')} away."
    )


def trip_guarantee(one: float, all_places: float, reports: int, unit: str) -> str:
    """Return the guarantee of a whole trip if one of its places moves, and if all of them move."""
    most = f"at most {epsilon(all_places, unit)} that all of them move"
    return _whole_trip(f"{epsilon(one, unit)} that one of its places moves", most, plural(reports, "report"))


def _whole_trip(first: str, second: str, longest: str) -> str:
    return f"Guarantee of a whole trip: at most epsilon {first}, and {second} (the longest trip has {longest})."


def trip_loss(loss: float, lower_bound: float, unit: str) -> str:
    """Return the mean loss of a report, and the bound for mechanisms with the same guarantee and places."""
    return (
        f"Loss: on average a report lies {distance(loss, unit, 'up')} from the next place that the model expects; "
        f"{rivals(unit)} goes below {distance(lower_bound, unit, 'down')}."
    )


def prediction_guarantee(most: float, total: float | None, unit: str) -> str:
    """Return the guarantee of a whole trip if all of its places move: of these trips, and of any trip."""
    before = (
        f"no trip could have spent more than {epsilon(total, unit)}"
        if total is not None
        else "no total was set, so a longer or less predictable trip would have spent more"
    )
    return (
        f"Guarantee of a whole trip: at most epsilon {epsilon(most, unit)} that all of its places move, tests and "
        f"fresh noise together; {before}."
    )


def predicted_cost(spent: float, independent: float, unit: str) -> str:
    """Return what all trips spent, and what independent noise of the same accuracy would have cost."""
    share = spent / independent if independent else 1.0
    return (
        f"Spent over all trips: {epsilon(spent, unit)}; fresh noise for every report would have cost "
        f"{epsilon(independent, unit)} ({share:.0%} of it was spent)."
    )


def predicted_loss(accuracy: float, caution: float, confidence: float, unit: str) -> str:
    """Return the loss of fresh and of predicted reports."""
    return (
        f"Loss: a fresh report lies within {distance(accuracy, unit, 'up')} of its place with probability "
        f"{confidence:.0%}. A prediction that is {distance(accuracy / caution, unit, 'up')} off passes the test with "
        f"probability {1 - confidence:.0%}; one farther off passes less often."
    )


def zone_guarantee(rate: float, scale: float, slack: float, reach: float, unit: str) -> str:
    """Return the guarantee of one report outside zones, across their borders and inside them."""
    return (
        f"Guarantee of one report: epsilon {epsilon(rate, unit)} for any two places, and {epsilon(rate * scale, unit)} "
        f"for two places of one zone, by certificate. {_fix_slack(slack, reach, unit)}"
    )


def zoned_trip(rate: float, scale: float, reports: int, unit: str) -> str:
    """Return the guarantee of a whole trip, in a zone and elsewhere."""
    inside = f"{epsilon(rate * scale * reports, unit)} if they stay in one zone"
    whole = _whole_trip(
        f"{epsilon(rate * reports, unit)} that all of its places move", inside, plural(reports, "report")
    )
    return f"{whole} The slack counts once for each report."


def drawn_centres(rate: float, together: float, reports: int, unit: str, *, kept: bool) -> str:
    """Return what the centre of a home zone is, what it costs, and what all visits add to it."""
    again = (
        "The ledger keeps the centre: later tables use it again at no cost."
        if kept
        else "Another run draws another centre and costs this again; with --ledger the centre is drawn once."
    )
    return (
        "The position of a zone is public, so its centre is not the home but a report of it, at epsilon "
        f"{epsilon(rate, unit)} that the home moves. With {reports:,} visits the total is at most "
        f"{epsilon(together, unit)} that the home moves inside the zone. {again} The home is where a person's own "
        "trips stay longest. Trips that hardly differ may have homes that are far apart: then the distance between the "
        "homes counts."
    )


def given_centres(count: int) -> str:
    """Return what is public about zones with given centres."""
    return (
        f"The positions of the {count:,} zones are public: their centres were given and do not depend on the trips. A "
        "centre at a person's home reveals that home."
    )


def zoned_loss(loss: float, lower_bound: float, unit: str) -> str:
    """Return the mean loss of a report with all places equally likely, and how far above the bound it is."""
    share = loss / lower_bound - 1.0 if lower_bound > 0 else 0.0
    return (
        f"Loss: a report lies {distance(loss, unit, 'up')} from its place on average, with all places equally likely; "
        f"{rivals(unit)} goes below {distance(lower_bound, unit, 'down')} "
        f"({share:.1%} above it)."
    )


def clock_guarantee(place: float, time: float, slack: float, unit: str, minute: str) -> str:
    """Return the guarantee of one fix for its place and its time."""
    more = f", with a slack of {number(slack, 4, 'up')}, since each time moves to a time of the clock" if slack else ""
    return (
        f"Guarantee of one fix: epsilon {epsilon(place, unit)} that its place moves, and {epsilon(time, minute)} that "
        f"it is earlier or later{more}. The order of the true places is protected too: rows are in the order of the "
        "reported times."
    )


def clocked_trip(place: float, time: float, fixes: int, unit: str, minute: str) -> str:
    """Return the guarantee of a whole trip if all of its fixes move, and if all are later."""
    later = f"{epsilon(time * fixes, minute)} that all are later"
    whole = _whole_trip(f"{epsilon(place * fixes, unit)} that all of its fixes move", later, f"{fixes:,} fixes")
    return f"{whole} A slack counts once for each fix."


def clocked_loss(time: float, lower_bound: float, place: float, unit: str, minute: str) -> str:
    """Return the loss of places and times, and the bound for mechanisms with these times as reports."""
    off = f"Loss: on average a place is {distance(place, unit, 'up')} off and a time {distance(time, minute, 'up')}"
    if lower_bound <= 0:
        return f"{off}."
    share = time / lower_bound - 1.0
    return (
        f"{off}; no mechanism with this guarantee for times that reports the same times goes below "
        f"{distance(lower_bound, minute, 'down')} ({share:.1%} above it), with all times of the day equally likely."
    )
