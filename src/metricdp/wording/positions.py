"""Sentences about positions that are put on the nearest place before anything is drawn."""

from __future__ import annotations

import math

from metricdp.numerals import number
from metricdp.wording.promises import Promise, distance, factor, largest_factor, meaning_rows, templates, things


def position_lines(promise: Promise, snap: float, slack: float, *, exponent: float) -> list[str]:
    """Return the table that explains a promise between positions; `promise` has the slack of snapping in it.

    `exponent` is the p of the distances: half a diagonal of a square is 2^(1/p) half sides.
    """
    words = templates()["positions"]
    said = number(slack, templates()["digits"]["slack"], "up")
    lines = [str(words["head"].format(snap=distance(snap, promise.unit, "up"), slack=said)), *meaning_rows(promise)]
    if slack > math.log(2.0):
        most = math.log(2.0) / (2.0 * promise.epsilon)
        lines.append(
            str(
                words["alone"].format(
                    factor=factor(_power(slack)),
                    most=distance(most, promise.unit, "down"),
                    cell=distance(most * 2.0 ** (1.0 - 1.0 / exponent), promise.unit, "down"),
                )
            )
        )
    return lines


def listed_lines(promise: Promise, nearest: float) -> list[str]:
    """Return the table that explains a promise between listed places, none of them nearer than `nearest`."""
    words = templates()["positions"]
    head = words["listed"].format(things=things(promise.unit), nearest=distance(nearest, promise.unit, "down"))
    return [str(head), *meaning_rows(promise, nearest)]


def ground_lines(promise: Promise) -> list[str]:
    """Return the table of a promise whose distances are not those by which positions are put on places: along roads."""
    words, said = templates()["positions"], {"things": things(promise.unit), "along": promise.along}
    return [str(words["ground"].format(**said)), *meaning_rows(promise), str(words["put"].format(**said))]


def between_places(promise: Promise, nearest: float) -> str:
    """Return what holds between two of the places themselves."""
    return str(
        templates()["positions"]["places"].format(
            nearest=distance(nearest, promise.unit), factor=factor(largest_factor(promise, nearest))
        )
    )


def unlisted(promise: Promise) -> str:
    """Return what becomes of positions between the listed places, and which snap alone allows a factor of two."""
    most = math.log(2.0) / (2.0 * promise.epsilon)
    return str(templates()["positions"]["unlisted"].format(snap=distance(most, promise.unit, "up")))


def place_kept(share: float) -> str:
    """Return how often the place that a position is put on is reported itself."""
    return str(templates()["positions"]["kept"].format(share=f"{number(100 * share, 4)} %"))


def position_loss(snap: float, away: float | None, unit: str) -> str:
    """Return how far reports lie from the positions themselves, `away` at most on average, where that is known."""
    words = templates()["positions"]
    even = "" if away is None else str(words["even"].format(away=distance(away, unit, "up")))
    return str(words["loss"].format(snap=distance(snap, unit, "up"), even=even))


def _power(exponent: float) -> float:
    return math.exp(exponent) if exponent < 700 else math.inf
