"""Stay points: where a trace stood still for a while, and what releasing only those does not promise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metricdp.arrays import Floats, Integers, as_positive
from metricdp.metrics import Haversine
from metricdp.mobility.traces import Traces, Walks
from metricdp.spaces import FiniteSpace


@dataclass(frozen=True, eq=False)
class StayPoints:
    """Stays of many trips: the centre in degrees, when it began and ended, and how many fixes it has.

    They are as secret as the trace: release `centres` with a mechanism. Where every fix of a stay moves by at most d,
    its centre does too, so a report of epsilon promises epsilon d for two traces *with the same stays*. How many stays
    there are, and when, is not hidden by noise on their centres: a trace that lingers a little less has one report
    less, whatever the noise.
    """

    owner: Integers
    centres: Floats
    begin: Floats
    end: Floats
    fixes: Integers

    def __len__(self) -> int:
        return len(self.owner)

    @property
    def seconds(self) -> Floats:
        """How long each stay lasted."""
        return self.end - self.begin


def stay_points(traces: Traces, *, radius_km: float = 0.2, least_seconds: float = 600.0) -> StayPoints:
    """Return every stay: a longest run of fixes within `radius_km` of its first one that lasts `least_seconds`.

    Runs are taken from the front; the centre is the mean of the fixes. A trip that was cut at a gap is one trip.

    References: Li, Zheng, Xie, Chen, Liu and Ma (2008).
    """
    near, least = as_positive(radius_km, "radius_km"), as_positive(least_seconds, "least_seconds")
    measure, rows = Haversine(), []
    edges = np.concatenate([[0], np.flatnonzero(np.diff(traces.owner)) + 1, [len(traces)]])
    for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        at = first
        while at < last:
            away = measure(traces.coordinates[at:last], traces.coordinates[at])
            beyond = np.flatnonzero(away > near)
            end = at + int(beyond[0]) if beyond.size else last
            if traces.seconds[end - 1] - traces.seconds[at] >= least:
                rows.append((at, end))
                at = end
            else:
                at += 1
    spans = np.array(rows, dtype=np.int64).reshape(-1, 2)
    means = [traces.coordinates[start:end].mean(axis=0) for start, end in rows]
    return StayPoints(
        owner=traces.owner[spans[:, 0]],
        centres=np.array(means).reshape(-1, 2),
        begin=traces.seconds[spans[:, 0]],
        end=traces.seconds[spans[:, 1] - 1],
        fixes=spans[:, 1] - spans[:, 0],
    )


def home_of(stays: StayPoints, walks: Walks, places: FiniteSpace, trips: Integers) -> int:
    """Return the place at which the stays of some trips last longest; without a stay, where most of their steps are.

    It is as secret as the trips. Everybody has one, so that having one tells nothing. Two traces that are hardly apart
    may have homes that are far apart, where two places come close in time: a report of the home promises something for
    the distance between the homes, not for that between the traces.
    """
    mine = np.isin(stays.owner, trips)
    spent = np.zeros(len(places))
    if mine.any():
        np.add.at(spent, places.nearest(stays.centres[mine])[0], stays.seconds[mine])
    else:
        np.add.at(spent, walks.codes[np.isin(walks.owner, trips)], 1.0)
    return int(spent.argmax())
