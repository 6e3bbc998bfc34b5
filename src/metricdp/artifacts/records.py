"""Promises and certificates as manifest entries.

A certificate keeps the names that version 1 of the format gave its values, so that older readers understand it:
`worst_pair` holds the codes of the witness and `verified_pairs` the number of pairs. `objective` is written only where
the loss is the worst one, which an older reader would call the expected one: it refuses the word instead.
"""

from __future__ import annotations

from typing import Any

from metricdp.artifacts.codecs import Decoder, Encoder, Entry, from_plain, plain
from metricdp.errors import CorruptFile
from metricdp.mechanisms import Certificate, Guarantee

PROMISE = {"epsilon", "unit", "slack", "basis", "radius"}
CERTIFICATE = {"loss", "lower_bound", "worst_pair", "verified_pairs", "method", "seconds", "epsilon", "note"}
LATER = {"radius": None, "note": "", "objective": None}  # what the first files did not say yet


def promise_entry(promise: Guarantee, encoder: Encoder) -> Entry:
    """Return a promise as plain values, its metric by number."""
    return {name: plain(getattr(promise, name)) for name in PROMISE} | {"metric": encoder.metric(promise.metric)}


def promise_from(entry: Entry, decoder: Decoder) -> Guarantee:
    """Undo `promise_entry`, refusing what is no promise."""
    values = _values(entry, PROMISE | {"metric"})
    metric, unit = decoder.metric(values.pop("metric")), values.pop("unit")
    if unit != metric.unit:
        raise CorruptFile(f"its promise is per {unit!r} and its metric measures in {metric.unit!r}")
    return Guarantee(metric=metric, **values)


def certificate_entry(certificate: Certificate) -> Entry:
    """Return a certificate as plain values."""
    values = {
        "loss": certificate.loss,
        "lower_bound": certificate.lower_bound,
        "worst_pair": () if certificate.witness is None else tuple(certificate.witness),
        "verified_pairs": certificate.pairs,
        "method": certificate.method,
        "seconds": certificate.seconds,
        "epsilon": certificate.epsilon,
        "note": certificate.note,
    }
    worst = {"objective": "worst"} if certificate.objective == "worst" else {}
    return {name: plain(value) for name, value in (values | worst).items()}


def certificate_from(entry: Entry, promise: Guarantee) -> tuple[Certificate, tuple[int, ...]]:
    """Undo `certificate_entry`: the certificate without its witness, and the codes of the witness."""
    values = _values(entry, CERTIFICATE | {"objective"})
    codes = values.pop("worst_pair")
    if not isinstance(codes, tuple) or len(codes) not in (0, 3) or any(type(code) is not int for code in codes):
        raise CorruptFile(f"its worst pair is {codes!r}")
    method = values["method"]
    if not isinstance(method, str) or not isinstance(values["note"], str):
        raise CorruptFile("the method or the note of its certificate is not a text")
    if values["objective"] is None:  # files from before say it by the method alone
        values["objective"] = "worst" if method.startswith(("constopt", "optimal (worst")) else "expected"
    if promise.basis == "none":  # where nothing is promised, the bounds of private mechanisms do not bind
        values["lower_bound"] = min(values["lower_bound"], values["loss"])
    return Certificate(pairs=values.pop("verified_pairs"), **values), codes


def _values(entry: Entry, known: set[str]) -> dict[str, Any]:
    """Return the values of an entry that says what is `known`, all of it and nothing else."""
    strange, missing = sorted(set(entry) - known), sorted(known - set(entry) - set(LATER))
    if strange:
        raise CorruptFile(f"it says {strange[0]!r}, which this metricdp does not know")
    if missing:
        raise CorruptFile(f"it does not say {missing[0]!r}")
    later = {name: value for name, value in LATER.items() if name in known}
    return later | {name: from_plain(value) for name, value in entry.items()}
