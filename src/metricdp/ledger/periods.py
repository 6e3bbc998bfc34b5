"""Periods after which a limit refreshes: they begin at public moments of the calendar, in UTC.

A day begins at midnight and a week on Monday, for everybody. So the moment when a budget refreshes says nothing about
anybody, and one number per period is enough. The price: a span of 24 hours across midnight
touches two days and may hold two days' worth. Where that matters, give the longer period a limit as well.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Literal, get_args

from metricdp.errors import InvalidInput

Period = Literal["hour", "day", "week", "month", "year", "ever"]
PERIODS: tuple[Period, ...] = get_args(Period)
SECOND = 1000  # times are whole milliseconds since 1970
FIRST: dict[Period, Any] = {  # what a period begins with, minutes and seconds aside
    "hour": {}, "day": {"hour": 0}, "week": {"hour": 0}, "month": {"hour": 0, "day": 1},
    "year": {"hour": 0, "day": 1, "month": 1},
}  # fmt: skip
DAY = timedelta(days=1)
LONGEST = {"hour": DAY / 24, "day": DAY, "week": 7 * DAY, "month": 31 * DAY, "year": 366 * DAY}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = 253_370_764_800_000  # the year 9999: later times have no calendar here


def begin(period: Period, now: int) -> int:
    """Return when the period that holds a moment began; 0 for ever."""
    return 0 if period == "ever" else _begin(period, moment(now))


def end(period: Period, now: int) -> int | None:
    """Return when the period that holds a moment ends and its limit refreshes; None for ever."""
    if period == "ever":
        return None
    return _begin(period, EPOCH + timedelta(milliseconds=begin(period, now)) + LONGEST[period])


def _begin(period: Period, at: datetime) -> int:
    start = at.replace(minute=0, second=0, microsecond=0, **FIRST[period])
    monday = start - timedelta(days=start.weekday() if period == "week" else 0)
    return (monday - EPOCH) // timedelta(milliseconds=1)


def moment(now: int) -> datetime:
    """Return a time of the ledger as a date in UTC."""
    if not 0 <= now < LATEST:
        raise InvalidInput(f"the clock must be between 1970 and 9998, got {now} ms since 1970.")
    return EPOCH + timedelta(milliseconds=now)


def time_text(now: int) -> str:
    """Return a time the way it is printed: `2026-11-16 04:00 UTC`, to the second where it is not a whole minute."""
    at = moment(now)
    return f"{at:%Y-%m-%d %H:%M}{f':{at:%S}' if at.second else ''} UTC"
