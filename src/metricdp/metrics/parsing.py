"""Metrics by the names that people type: `l2`, `haversine:mi` with a unit, `bags=10` with numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import is_dataclass, replace
from typing import Any

from metricdp.arrays import Floats
from metricdp.errors import InvalidInput
from metricdp.metrics.base import METRICS, Metric
from metricdp.metrics.transport import Bags, Frechet
from metricdp.metrics.vectors import Lp, Mahalanobis

SHAPES = {
    "ellipse=ALONG,ACROSS,BEARING@LAT,LON": "ellipses on a map: so many km along the bearing (and across) count as one",
    "mahalanobis=COVARIANCE.csv": "sqrt((a-b)' S^-1 (a-b)) for the covariance of a file",
    "regularised=SHARE,COVARIANCE.csv": "the same for share * S + (1 - share) * I, S scaled to a mean variance of one; "
    "with @LAT,LON that of places in degrees",
    "bags=NUMBERS": "bags of vectors of so many numbers each: least total l2 distance of a pairing",
    "frechet=NUMBERS": "curves of vertices of so many numbers each, 1 for a series: discrete Fréchet distance under l2",
}


def parse_metric(name: str, *, read: Callable[[str], Floats] | None = None) -> Metric:
    """Return the metric a name stands for; `haversine:mi` and `l2:m` name the unit of its distances too.

    `read` returns the matrix of a file. With it a name may have numbers and files behind a `=`, see `SHAPES`. Names
    that strangers send are read without it.
    """
    if "=" in name and read is not None:
        return _parse_shaped(name, read)
    word, colon, unit = name.strip().partition(":")
    words = METRICS.words()
    found = words.get(word.strip().lower())
    if found is None:
        known = [*words, *(SHAPES if read is not None else ())]
        raise InvalidInput(f"unknown metric {word!r}: use one of {', '.join(known)}.")
    metric: Any = found()
    if colon and (not unit.strip() or not is_dataclass(metric)):
        raise InvalidInput(
            f"the metric {name} names no unit that {word} can take; write haversine:mi, or {word} alone."
        )
    chosen: Metric = replace(metric, unit=unit.strip()) if colon else metric
    return chosen


def _parse_shaped(name: str, read: Callable[[str], Floats]) -> Metric:
    """Return the metric of a word with numbers."""
    word, _, rest = name.strip().partition("=")
    word = word.strip().lower()
    if word == "mahalanobis":
        return Mahalanobis(read(rest.strip()))
    if word in ("bags", "frechet"):
        size = _numbers(rest, 1, name)[0]
        if size != int(size):
            raise InvalidInput(f"the metric {name} must name a whole number, such as {word}=2.")
        return Bags(Lp(2), int(size)) if word == "bags" else Frechet(Lp(2), int(size))
    if word not in ("ellipse", "regularised"):
        raise InvalidInput(f"unknown metric {word!r}: use one of {', '.join(SHAPES)}.")
    numbers, mark, place = rest.partition("@")
    at: Any = tuple(_numbers(place, 2, name)) if mark else None
    if word == "ellipse":
        along, across, bearing = _numbers(numbers, 3, name)
        return Mahalanobis.ellipse(along, across, bearing=bearing, at=at)
    share, comma, path = numbers.partition(",")
    if not comma:
        raise InvalidInput(
            f"the metric {name} must be regularised=SHARE,COVARIANCE.csv, such as regularised=0.5,s.csv."
        )
    return Mahalanobis.regularised(read(path.strip()), _numbers(share, 1, name)[0], at=at)


def _numbers(text: str, count: int, name: str) -> list[float]:
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = []
    if len(found) != count:
        raise InvalidInput(
            f"the metric {name} must name {count} number{'s' * (count > 1)} in {text!r}, such as "
            "ellipse=2,0.5,30@41.9,12.5 or bags=10."
        )
    return found
