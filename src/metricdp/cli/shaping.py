"""Metrics that take numbers: ellipses, Mahalanobis of a covariance in a file, bags and curves."""

from __future__ import annotations

from metricdp.arrays import Floats
from metricdp.errors import InvalidInput
from metricdp.metrics import Bags, Frechet, Lp, Mahalanobis, Metric

SHAPES = {
    "ellipse=ALONG,ACROSS,BEARING@LAT,LON": "ellipses on a map: so many km along the bearing (and across) count as one",
    "mahalanobis=COVARIANCE.csv": "sqrt((a-b)' S^-1 (a-b)) for the covariance of a file",
    "regularised=SHARE,COVARIANCE.csv": "the same for share * S + (1 - share) * I, S scaled to a mean variance of one; "
    "with @LAT,LON that of places in degrees",
    "bags=NUMBERS": "bags of vectors of so many numbers each: least total l2 distance of a pairing",
    "frechet=NUMBERS": "curves of vertices of so many numbers each, 1 for a series: discrete Fréchet distance under l2",
}


def shaped(name: str) -> Metric:
    """Return the metric of a word with numbers: see `SHAPES`."""
    word, _, rest = name.strip().partition("=")
    word = word.strip().lower()
    if word == "mahalanobis":
        return Mahalanobis(_covariance(rest))
    if word in ("bags", "frechet"):
        size = _numbers(rest, 1, name)[0]
        if size != int(size):
            raise InvalidInput(f"--metric {name} must name a whole number, such as {word}=2.")
        return Bags(Lp(2), int(size)) if word == "bags" else Frechet(Lp(2), int(size))
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
            f"--metric {name} must name {count} number{'s' * (count > 1)} in {text!r}, such as "
            "ellipse=2,0.5,30@41.9,12.5 or bags=10."
        )
    return found
