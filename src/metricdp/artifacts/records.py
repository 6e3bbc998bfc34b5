"""Promises and certificates as they lie in files.

A certificate keeps the names that version 1 of the format gave its values, so that older readers understand it:
`worst_pair` holds the codes of the witness and `verified_pairs` the number of pairs. `objective` is written only where
the loss is the worst one, which an older reader would call the expected one: it refuses the word instead.

The kind of a mechanism says which kind of promise its file holds: one with an epsilon, or a concentrated one, which has
a rho and no epsilon, so that no reader can take it for the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from metricdp import constants
from metricdp.errors import CorruptFile
from metricdp.mechanisms import AnyGuarantee, Certificate, ConcentratedGuarantee, Guarantee
from metricdp.mechanisms.base import BASES, OBJECTIVES
from metricdp.mechanisms.concentrated import FORMS
from metricdp.registry import Field, Many, Maybe, Number, Part, Text, Whole

GUARANTEE_FIELDS: Mapping[str, Field] = {
    "epsilon": Number(least=1 / constants.LARGEST_RATE, most=constants.LARGEST_RATE),
    "slack": Number(least=0),
    "radius": Maybe(Number(above=0)),
    "unit": Text(longest=100),
    "basis": Text(BASES),
    "metric": Part("metric"),
}
CONCENTRATED_FIELDS: Mapping[str, Field] = {
    "rho": Number(least=1 / constants.LARGEST_RATE, most=constants.LARGEST_RATE),
    "form": Text(FORMS),
    "radius": Maybe(Number(above=0)),
    "unit": Text(longest=100),
    "basis": Text(("theorem", "certificate")),
    "metric": Part("metric"),
}
GUARANTEE_KINDS = {"pure": (GUARANTEE_FIELDS, Guarantee), "concentrated": (CONCENTRATED_FIELDS, ConcentratedGuarantee)}
CERTIFICATE: Mapping[str, Field] = {
    "loss": Number(),
    "lower_bound": Number(),
    "worst_pair": Many(Whole(), most=3),
    "verified_pairs": Whole(),
    "method": Text(),
    "seconds": Number(least=0),
    "epsilon": Number(least=0, infinite=True),
    "note": Text(),
    "objective": Text(OBJECTIVES),
}
LATER = {"radius": None, "note": "", "objective": None}  # what the first files did not say yet


def certificate_values(certificate: Certificate) -> dict[str, Any]:
    """Return a certificate under the names it has in files."""
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
    return values | ({"objective": "worst"} if certificate.objective == "worst" else {})


def certificate_from(values: dict[str, Any], guarantee: AnyGuarantee) -> tuple[Certificate, tuple[int, ...]]:
    """Undo `certificate_values`: the certificate without its witness, and the codes of the witness."""
    values = dict(values)
    codes = values.pop("worst_pair")
    if len(codes) not in (0, 3):
        raise CorruptFile("the worst pair of its certificate is not one")
    if values["objective"] is None:  # files from before say it by the method alone
        worst = values["method"].startswith(("constopt", "optimal (worst"))
        values["objective"] = "worst" if worst else "expected"
    if guarantee.basis == "none":  # where nothing is promised, the bounds of private mechanisms do not bind
        values["lower_bound"] = min(values["lower_bound"], values["loss"])
    return Certificate(pairs=values.pop("verified_pairs"), **values), codes
