"""Options about trips: zones in which places are coarse, and times that are hidden."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from metricdp.errors import InvalidInput
from metricdp.units import parse_distance, parse_duration, parse_epsilon, parse_time_epsilon

if TYPE_CHECKING:
    from metricdp.tables.zoned import HomeZones

HOME = "home"


@dataclass(frozen=True)
class Zoning:
    """Zones in which places are coarse.

    Attributes:
        zones: Report coarsely in zones and precisely elsewhere, over --places: `home` puts a zone around a report of
            everybody's home, which is where their own trips stay longest; a file with lat and lon names public centres,
            of districts say.
        zone_radius: How far a zone reaches.
        zone_scale: How much distances count inside a zone, above 0 and at most 1.
        centre_epsilon: With --zones home: how much the report of the home may leak that its zone lies around, such as
            1/km; it is spent once.
        stay: How long somebody must be within 200 m for a stay.
    """

    zones: str | None = None
    zone_radius: str = "1km"
    zone_scale: float = 0.2
    centre_epsilon: str | None = None
    stay: str = "10min"

    def chosen(self, *, yes_really: bool) -> HomeZones | None:
        """Return what was asked for."""
        if self.zones is None:
            if (self.centre_epsilon, self.zone_radius, self.zone_scale, self.stay) != (None, "1km", 0.2, "10min"):
                raise InvalidInput(
                    "--zone-radius, --zone-scale, --centre-epsilon and --stay belong to --zones: give --zones home."
                )
            return None
        from metricdp.tables.zoned import HomeZones

        radius = parse_distance(self.zone_radius, "km")
        if not 0 < self.zone_scale <= 1:
            raise InvalidInput(f"--zone-scale must lie above 0 and at most 1, got {self.zone_scale:g}.")
        if self.zones == HOME:
            if self.centre_epsilon is None:
                raise InvalidInput(
                    "a home zone lies around a report of the home, never around the home itself: say how much that "
                    "report may leak with --centre-epsilon, such as 1/km. It is spent once."
                )
            rate = parse_epsilon(self.centre_epsilon, "km")
            return HomeZones(radius, self.zone_scale, centre_epsilon=rate, stay_seconds=parse_duration(self.stay))
        if self.centre_epsilon is not None or self.stay != "10min":
            raise InvalidInput("--centre-epsilon and --stay belong to --zones home: given centres are public already.")
        from metricdp.cli.reading import read_points

        found = read_points(self.zones, yes_really=yes_really)
        if not found.geographic:
            raise InvalidInput(f"{self.zones!r} must have the columns lat and lon: they are the centres of the zones.")
        return HomeZones(radius, self.zone_scale, centres=found.points)


@dataclass(frozen=True)
class Hiding:
    """Times that are hidden.

    Attributes:
        times: Hide the times of fixes as well as the places: how much a fix may leak about its time, such as 0.1/min;
            --epsilon is then for places with Laplace noise. Every fix gets one row, sorted by the reported times.
        clock: With --times: report times of the day on a clock, such as 15min, drawn around it by the optimum; the day
            stays public.
    """

    times: str | None = None
    clock: str | None = None

    def chosen(self) -> tuple[float, float | None] | None:
        """Return epsilon per minute, and the minutes of the clock."""
        if self.times is None:
            if self.clock is not None:
                raise InvalidInput("--clock belongs to --times: say how much a time may leak, such as --times 0.1/min.")
            return None
        minutes = None if self.clock is None else parse_duration(self.clock) / 60.0
        return parse_time_epsilon(self.times), minutes


NO_ZONES = Zoning()
NOT_HIDDEN = Hiding()
