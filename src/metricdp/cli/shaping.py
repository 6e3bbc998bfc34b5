"""Metrics that take numbers: ellipses, and Mahalanobis of a covariance in a file."""

from __future__ import annotations

from metricdp.arrays import Floats
from metricdp.errors import InvalidInput
from metricdp.metrics import Mahalanobis

SHAPES = {
    "ellipse=ALONG,ACROSS,BEARING@LAT,LON": "ellipses on a map: so many km along the bearing (and across) count as one",
    "mahalanobis=COVARIANCE.csv": "sqrt((a-b)' S^-1 (a-b)) for the covariance of a file",
    "regularised=SHARE,COVARIANCE.csv": "the same for share * S + (1 - share) * I, S scaled to a mean variance of one; "
    "with @LAT,LON that of places in degrees",
}


def shaped(name: str) -> Mahalanobis:
    """Return the metric of a word with numbers: see `SHAPES`."""
    word, _, rest = name.strip().partition("=")
    word = word.strip().lower()
    if word == "mahalanobis":
        return Mahalanobis(_covariance(rest))
    if word not in ("ellipse", "regularised"):
        raise InvalidInput(f"unknown metric {word!r}: use one of {', '.join(SHAPES)}.")
    numbers, mark, place = rest.partition("@")
    at: tuple[float, float] | None = None
    if mark:
        latitude, longitude = _numbers(place, 2, name)
        at = (latitude, longitude)
    if word == "ellipse":
        along, across, bearing = _numbers(numbers, 3, name)
        return Mahalanobis.ellipse(along, across, bearing=bearing, at=at)
    share, comma, path = numbers.partition(",")
    if not comma:
        raise InvalidInput(f"--metric {name} must be regularised=SHARE,COVARIANCE.csv, such as regularised=0.5,s.csv.")
    return Mahalanobis.regularised(_covariance(path), _numbers(share, 1, name)[0], at=at)


def _covariance(path: str) -> Floats:
    from metricdp.cli.matrices import read_matrix

    return read_matrix(path.strip())


def _numbers(text: str, count: int, name: str) -> list[float]:
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = []
    if len(found) != count:
        raise InvalidInput(
            f"--metric {name} must name {count} numbers in {text!r}, such as ellipse=2,0.5,30@41.9,12.5."
        )
    return found
