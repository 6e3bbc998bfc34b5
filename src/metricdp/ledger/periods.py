"""Periods after which a limit refreshes: they begin at public moments of the calendar, in UTC.

A day begins at midnight and a week on Monday, for everybody. So the moment when a budget refreshes says nothing about
anybody, and one number per period is enough. The price: a span of 24 hours across midnight
 touches two days and may hold two days' worth. Where that matters, give the longer period a limit as well.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Literal, get_args

from metricdp.errors import InvalidInput

Period = Literal["hour", "day", "week", "month", "year", "ever"]
PERIODS: tuple[Period, ...] = get_args(Period)
SECOND = 1000  # times are whole milliseconds since 1970
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = 253_370_764_800_000  # the year 9999: later times have no calendar here


def parse_period(word: str) -> Period:
    """Return the period of a word."""
    for period in PERIODS:
        if word == period:
            return period
    raise InvalidInput(f"a period must be one of {', '.join(PERIODS)}, got {word!r}.")


def begin(period: Period, now: int) -> int:
    """Return when the period that holds a moment began; 0 for ever."""
    if period == "ever":
        return 0
    at = moment(now)
    day = at.replace(hour=0, minute=0, second=0, microsecond=0)
    if period == "hour":
        start = at.replace(minute=0, second=0, microsecond=0)
    elif period == "day":
        start = day
    elif period == "week":
        start = day - timedelta(days=day.weekday())
    else:
        start = day.replace(day=1) if period == "month" else day.replace(month=1, day=1)
    return milliseconds(start)


def end(period: Period, now: int) -> int | None:
    """Return when the period that holds a moment ends and its limit refreshes; None for ever."""
    if period == "ever":
        return None
    start = moment(begin(period, now))
    if period == "hour":
        return milliseconds(start + timedelta(hours=1))
    if period == "day":
        return milliseconds(start + timedelta(days=1))
    if period == "week":
        return milliseconds(start + timedelta(days=7))
    later = start.month == 12 or period == "year"
    return milliseconds(start.replace(year=start.year + later, month=1 if later else start.month + 1))


def moment(now: int) -> datetime:
    """Return a time of the ledger as a date in UTC."""
    if not 0 <= now < LATEST:
        raise InvalidInput(f"the clock must be between 1970 and 9998, got {now} ms since 1970.")
    return EPOCH + timedelta(milliseconds=now)


def milliseconds(at: datetime) -> int:
    """Return a date as a time of the ledger."""
    return (at - EPOCH) // timedelta(milliseconds=1)


def time_text(now: int) -> str:
    """Return a time the way it is printed: `2026-11-16 04:00 UTC`, to the second where it is not a whole minute."""
    at = moment(now)
    return f"{at:%Y-%m-%d %H:%M}{f':{at:%S}' if at.second else ''} UTC"
