"""Loss and lower bound of a loaded mechanism: verified if the file holds what is needed, else marked as stated.

A file holds neither prior nor loss matrix, since a prior may tell more than any report does, and no multipliers that
would prove a bound. So the loss is computed again as the distance, all secrets equally likely, and by the formulas of
noise and products; every other figure stays as the file states it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from metricdp.artifacts.limits import LoadBudget
from metricdp.auditing.loss import figures_of
from metricdp.errors import CorruptFile
from metricdp.mechanisms import Certificate
from metricdp.mechanisms.kind import LossFigures
from metricdp.mechanisms.kinds.product import parts_of

SAME = 1e-6  # relative: two ways to compute one number
UNVERIFIED = ("loss", "lower_bound")


def verify_figures(mechanism: Any, budget: LoadBudget, *, verify: bool = True) -> Any:
    """Return the mechanism with a certificate that says which of its figures are only stated by the file."""
    certificate: Certificate = mechanism.certificate
    if not verify or mechanism.guarantee.basis == "none":
        return replace(mechanism, certificate=replace(certificate, stated=UNVERIFIED))
    parts = tuple(verify_figures(part, budget) for part in parts_of(mechanism) if part is not mechanism)
    if parts:
        stated = _product(certificate, parts)
        return replace(mechanism, parts=parts, certificate=replace(certificate, stated=stated))
    stated = _stated_figures(certificate, figures_of(mechanism, budget.spend))
    return replace(mechanism, certificate=replace(certificate, stated=stated))


def _stated_figures(stated: Certificate, found: LossFigures | None) -> tuple[str, ...]:
    """Return which figures of a certificate are not those that were found, and refuse a loss that cannot be."""
    if found is None:
        return UNVERIFIED
    if not _same(stated.loss, found.loss):
        if found.formula:
            raise CorruptFile("the loss it states is not that of its noise")
        return UNVERIFIED
    return () if stated.lower_bound <= found.lower_bound * (1.0 + SAME) else ("lower_bound",)


def _product(certificate: Certificate, parts: tuple[Any, ...]) -> tuple[str, ...]:
    """Losses and bounds of the parts add up, each times its epsilon."""
    stated = []
    for name in UNVERIFIED:
        total = float(np.sum([part.guarantee.epsilon * getattr(part.certificate, name) for part in parts]))
        value = getattr(certificate, name)
        fits = _same(value, total) if name == "loss" else value <= total * (1.0 + SAME)
        if not fits:
            raise CorruptFile("the loss or the bound it states is not the sum of those of its parts")
        if any(name in part.certificate.stated for part in parts):
            stated.append(name)
    return tuple(stated)


def _same(stated: float, found: float) -> bool:
    return math.isclose(stated, found, rel_tol=SAME, abs_tol=1e-300)
