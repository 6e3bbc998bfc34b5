"""Sentences about how far reports lie from the truth, by the law of the noise."""

from __future__ import annotations

from metricdp.numerals import number


def length(value: float, unit: str) -> str:
    """Return a radius as people say it, rounded up: metres below a kilometre."""
    if unit == "m" and value >= 1000:
        return f"{number(value / 1000, 4, 'up')} km"
    if unit == "km" and value < 1:
        return f"{number(1000 * value, 4, 'up')} m"
    return f"{number(value, 4, 'up')} {unit}".rstrip()


def per_cent(level: float) -> str:
    """Return a chance in per cent."""
    return f"{100 * level:g} %"


def accuracy(column: str, radius: float, unit: str, level: float, *, least: float | None = None) -> str:
    """Return what a column of accuracies says: over the noise, for every secret, rows of different laws apart."""
    if least is not None and least < radius:
        return (
            f"Column {column}: with a chance of at least {per_cent(level)} the truth lies within so much of its "
            f"report, from {length(least, unit)} to {length(radius, unit)} by how many rows a person has, "
            "whatever the truth is; by the law of the noise."
        )
    return (
        f"Column {column}: with a chance of at least {per_cent(level)} the truth lies within {length(radius, unit)} of "
        "its report, whatever the truth is; by the law of the noise, so the number is the same in every row."
    )


def within(radius: float, unit: str, level: float) -> str:
    """Return how far reports lie from the truth at most, as half a sentence."""
    return f"within {length(radius, unit)} of the truth with a chance of at least {per_cent(level)}"
