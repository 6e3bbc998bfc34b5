"""Promises and certificates as manifest entries."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

import numpy as np

from metricdp.artifacts.codecs import Decoder, Encoder, Entry, from_plain, plain
from metricdp.errors import CorruptFile
from metricdp.mechanisms import Certificate, Guarantee


def promise_entry(promise: Guarantee, encoder: Encoder) -> Entry:
    """Return a promise as plain values, its metric by number."""
    return record(promise, skip="metric") | {"metric": encoder.metric(promise.metric)}


def promise_from(entry: Entry, decoder: Decoder) -> Guarantee:
    """Undo `promise_entry`, refusing what is no promise."""
    values = dict(entry)
    metric = decoder.metric(values.pop("metric"))
    promise: Guarantee = restore(Guarantee, values, metric=metric)
    if promise.basis not in ("theorem", "certificate", "none"):
        raise CorruptFile(f"its promise rests on {promise.basis!r}")
    return promise


def record(value: Guarantee | Certificate, skip: str = "") -> Entry:
    """Return a promise or a certificate as plain values, without the field `skip`."""
    return {item.name: plain(getattr(value, item.name)) for item in fields(value) if item.name != skip}


def restore(kind: Any, entry: Entry, **given: Any) -> Any:
    """Rebuild a record; fields that came later than the file take their defaults."""
    known = {item.name for item in fields(kind)}
    if set(entry) - known:
        raise CorruptFile(f"it says {sorted(set(entry) - known)[0]!r}, which this metricdp does not know")
    values = {name: from_plain(value) for name, value in entry.items()} | given
    missing = [item.name for item in fields(kind) if item.name not in values and item.default is MISSING]
    if missing:
        raise CorruptFile(f"it does not say {missing[0]!r}")
    made = kind(**values)
    for name in ("epsilon", "slack"):
        number = getattr(made, name, 0.0)
        if not isinstance(number, int | float) or not np.isfinite(number) or number < 0:
            raise CorruptFile(f"its {name} is {number!r}")
    return made
