"""The accounts that a guarantee is charged in: which metrics share one, and what a term of a guarantee costs there.

A guarantee is a sum of terms, epsilon_i d_i on some columns each: one for most metrics, one a part for `Weighted`.
Every term belongs to the account of one metric D, with a number c such that d_i <= c D, and costs epsilon_i c there. So
a person whose terms of an account all move by at most r is distinguished by at most r times what the account was
charged.

- l_p on the same coordinates is one account, `l2`: d_p <= d_2 from p = 2 on, and d_p <= n^(1/p - 1/2) d_2 below, in n
  dimensions (Hoelder); so l1 costs sqrt(n) epsilon.
- Where the class fixes the scale the account is named by the class: haversine, angular, hamming and so on. Roads in a
  unit of length share one account: their lengths are taken as they were declared.
- Where it does not (Mahalanobis, Precomputed, Bags, ..., and every declared metric that has more than a unit) the name
  has a fingerprint of the class and all its parameters. No other metric shares it, and a policy has to name it.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, isqrt
from typing import Any, Protocol, runtime_checkable

import numpy as np

from metricdp import constants
from metricdp.errors import InvalidInput
from metricdp.metrics.base import METRICS, Metric, sum_of
from metricdp.units import METRES

DIGITS = 16  # of a fingerprint
FINE = 40  # binary digits of a stretch
EUCLID = "l2"  # the account of all l_p
SUM = "weighted"  # what a sum of metrics was charged in before its parts were
OWN = "functionmetric"  # the class of metrics made by mdp.metric, which name their accounts themselves
_LP = re.compile(r"l(inf|[0-9.]+(?:e\+?[0-9]+)?)")
_FINGERPRINT = re.compile(rf"(?!policy\.)([a-z_][a-z0-9_]*)\.[0-9a-f]{{{DIGITS}}}")


@runtime_checkable
class NamedAccount(Protocol):
    """A metric that is not declared, and names the account that it is charged in."""

    @property
    def account(self) -> str: ...


@dataclass(frozen=True)
class Term:
    """A term of a guarantee: `rate` times the distance in one metric, on that many coordinates (None: not known)."""

    metric: Metric
    rate: Fraction
    dimension: int | None


def terms_of(metric: Metric, dimension: int | None = None) -> tuple[Term, ...]:
    """Return the terms of one unit of epsilon in a metric: one, or one for every part of a `Weighted`, all the way."""
    return tuple(_terms(metric, Fraction(1), dimension))


def _terms(metric: Metric, rate: Fraction, dimension: int | None) -> Iterator[Term]:
    parts = () if METRICS.of(metric) is None else sum_of(metric)  # what inherits from one may measure anything
    for part, columns, weight in parts:
        yield from _terms(part, rate * Fraction(weight), len(columns))
    if not parts:
        yield Term(metric, rate, dimension)


def account_metric(term: Term) -> tuple[str, str, Fraction]:
    """Return the name and unit of the metric a term is counted in, and what the term's own distance is of it at most.

    Refused: an l_p below 2 whose number of coordinates is not known, and metrics of which nothing says the scale.
    """
    metric, declared = term.metric, METRICS.of(term.metric)
    name, unit = type(metric).__name__.lower(), metric.unit.strip()
    if declared is None:
        if isinstance(metric, NamedAccount):
            return metric.account, unit, Fraction(1)
        raise InvalidInput(
            f"a ledger cannot tell what a distance of 1 is in the metric {type(metric).__name__}, which is not "
            "declared: declare it with its parameters (docs/extend.md), or use mdp.metric(function, unit='steps')."
        )
    own, scale = METRICS.find_facet("account", metric), METRICS.find_facet("scale", metric)
    found: tuple[str, str, Fraction] | None = None if own is None else own(metric, term.dimension)
    if found is not None:
        return found
    if scale == "count" and unit in METRES:
        raise InvalidInput(
            f"{type(metric).__name__} does not measure lengths, so a ledger cannot count it per {unit}: leave its unit "
            "away, or say what a distance of 1 is."
        )
    has_scale = set(declared.fields) <= {"unit"} or scale == "class" or (scale == "length" and unit in METRES)
    if has_scale and not _is_taken(name, type(metric)):
        return name, unit, Fraction(1)
    return f"{name}.{fingerprint(metric)}", unit, Fraction(1)


def _is_taken(name: str, its: type) -> bool:
    """Return whether a name is that of another account: of an l_p, a sum, or an earlier class of the same name."""
    first = _find_declaration(name)
    return first is None or first.thing is not its or p_of(name) is not None or name in (SUM, OWN)


def _find_declaration(name: str) -> Any:
    """Return the first declaration of a class of that name in small letters; None where there is none."""
    return next((one for one in METRICS if one.thing.__name__.lower() == name), None)


def stretch_of(p: float, dimension: int | None) -> Fraction:
    """Return a number that l_p distances are of l_2 distances at most: n^(1/p - 1/2) below p = 2, and 1 from there."""
    if p >= 2:
        return Fraction(1)
    if dimension is None:
        raise InvalidInput(
            f"what is charged for l{p:g} depends on the number of coordinates, n^(1/p - 1/2) times epsilon in the "
            "account l2: give `dimension`."
        )
    if not isinstance(dimension, int) or dimension < 1:
        raise InvalidInput(f"`dimension` must be a whole number of at least 1, got {dimension!r}.")
    root = Fraction(isqrt((dimension << 2 * FINE) - 1) + 1, 1 << FINE)  # sqrt(n), rounded up
    if p == 1:
        return root
    return min(root, Fraction(float(dimension) ** (1.0 / p - 0.5)) * (1 + Fraction(1, 1 << FINE)))


def fingerprint(*things: Any) -> str:
    """Return what tells two metrics of a class apart: 16 digits of the SHA-256 of its class, unit and parameters."""
    digest = hashlib.sha256()
    for thing in things:
        for data in _canonical(thing):
            digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:DIGITS]


def _canonical(thing: Any) -> Iterator[bytes]:
    """Yield a value as bytes, one way only: -0.0 is 0.0, and whole numbers are doubles."""
    if thing is None:
        yield b"none"
    elif isinstance(thing, str):
        yield from (b"text", thing.encode("utf-8", "surrogatepass"))
    elif isinstance(thing, bool | int | float | np.number | np.bool_):
        yield from (b"number", struct.pack("<d", float(thing) + 0.0))
    elif isinstance(thing, np.ndarray):
        yield from (b"array", repr(thing.shape).encode())
        if thing.dtype.kind in "fiub":
            yield (np.ascontiguousarray(thing, dtype="<f8") + 0.0).tobytes()
        else:
            yield from _canonical(thing.ravel().astype(str).tolist())
    elif isinstance(thing, list | tuple):
        yield from (b"list", str(len(thing)).encode())
        for one in thing:
            yield from _canonical(one)
    elif (declared := METRICS.of(thing)) is not None and (identity := METRICS.find_facet("identity", thing)):
        yield from identity(thing)
    elif declared is not None:
        yield from (b"metric", declared.name.encode(), thing.unit.strip().encode())
        for name, value in sorted(declared.field_values(thing).items()):
            yield name.encode()
            yield from _canonical(value)
    elif isinstance(thing, NamedAccount):
        yield from (b"function", thing.account.encode())
    else:
        raise InvalidInput(
            f"a ledger cannot tell the parameters of a metric apart by a {type(thing).__name__}: declare them as "
            "numbers, texts, arrays or metrics."
        )


def has_fingerprint(name: str) -> bool:
    """Return whether an account, without its unit, is one of a metric with parameters, which a policy has to name."""
    return _FINGERPRINT.fullmatch(name) is not None


def needs_parameters(name: str) -> bool:
    """Return whether a name, without a unit, is that of a class whose accounts are named with more than the class."""
    if name in (SUM, OWN):
        return True
    one = _find_declaration(name)
    scale, account = (getattr(one, facet, None) for facet in ("scale", "account"))
    return one is not None and not (set(one.fields) <= {"unit"} or scale in ("class", "length") or account is not None)


def p_of(name: str) -> float | None:
    """Return the p of a name such as l1 or linf, None where it is another name."""
    found = _LP.fullmatch(name)
    try:
        p = None if found is None else float(found[1])
    except ValueError:
        return None
    return p if p is not None and p >= 1 else None


def is_replaced(name: str) -> bool:
    """Return whether nothing is charged any more under a name with its unit: earlier versions wrote it."""
    plain, _, unit = name.partition("/")
    if any(one.thing.__name__.lower() == plain and getattr(one, "scale", None) == "length" for one in METRICS):
        return unit not in METRES
    p = p_of(plain)
    return (p is not None and plain != EUCLID) or needs_parameters(plain)


def is_unknown(name: str) -> bool:
    """Return whether an account, without its unit, is of a class that is not declared here, and may be some day."""
    known = _find_declaration(name) is not None or name in (SUM, OWN) or name.startswith("policy.")
    return not known and p_of(name) is None and not has_fingerprint(name)


def counted(replaced: str, account: str, *, in_sum: bool) -> int | None:
    """Return how many times what was spent under a replaced name counts in an account; None where it does not.

    Both are names with their units. Under an l_p below 2 the number of coordinates was not kept, so the largest that
    there is counts. The scale of an account of a class was not kept either: its amounts count as they are, in every
    account of the class. `in_sum` says that the account is charged for a part of a `Weighted`.
    """
    old, _, old_unit = replaced.partition("/")
    name, _, unit = account.partition("/")
    p = p_of(old)
    if name == EUCLID and p is not None:
        return ceil(stretch_of(p, constants.LARGEST_DIMENSION)) if unit == old_unit else None
    found = _FINGERPRINT.fullmatch(name)
    if found is not None and found[1] == old:
        return 1
    return 1 if in_sum and old == SUM else None
