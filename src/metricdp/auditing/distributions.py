"""The distribution of the noise as plain values, for models of protected data.

It is the content of `out.csv.distribution.json`.
Everything here is public: it follows from the mechanism, never from a table.
"""

from __future__ import annotations

from typing import Any

from metricdp.auditing.accuracy import Radius, radii_of
from metricdp.errors import InvalidInput
from metricdp.mechanisms import APPROXIMATE, MECHANISMS, ConcentratedGuarantee, Mechanism
from metricdp.mechanisms.kind import Distribution
from metricdp.mechanisms.kinds.product import parts_of
from metricdp.metrics import Metric, exponent_of
from metricdp.rendering import plain_values
from metricdp.units import METRES

FORMAT, VERSION = "metricdp.law", 1
LEVELS = (0.5, 0.75, 0.9, 0.95, 0.99)
STATEMENT = (
    "For every secret, the report lies within `radius` of it with a probability of at least `level`. The probability "
    "is over the noise alone: it holds whatever the secrets are, and is not the probability given a report, which "
    "would take a prior."
)


def describe_distribution(mechanism: Mechanism, *, snap: float = 0.0) -> dict[str, Any]:
    """Return the distribution of a mechanism's noise as plain values that JSON holds: kind, density, lattice, radii.

    `snap` is the distance (in the unit of what tables hold) up to which values were put on a secret: radii are larger
    by it.
    """
    guarantee, kind = mechanism.guarantee, MECHANISMS.kind(mechanism)
    if kind is None:
        raise InvalidInput(f"the distribution of {type(mechanism).__name__} has no description.")
    distribution: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "kind": kind.name.replace("-", "_"),  # as files of version 1 spell it
        **(
            {"rho": guarantee.rho, "promise": APPROXIMATE}  # `promise`: the old field
            if isinstance(guarantee, ConcentratedGuarantee)
            else {"epsilon": guarantee.epsilon, "slack": guarantee.slack}
        ),
        "metric": metric_words(guarantee.metric),
        "basis": guarantee.basis,
        "guarantee": guarantee.to_dict(),
    }
    parts = parts_of(mechanism)
    if parts != (mechanism,):
        return distribution | {
            "parts": [describe_distribution(part, snap=snap if _snap_slack(part) else 0.0) for part in parts]
        }
    found = distribution_of(mechanism)
    radii = radii_of(mechanism, LEVELS)
    distribution |= {
        "density": dict(found.density),
        "snap": snap,
        "loss": {
            "value": mechanism.certificate.loss,
            "objective": mechanism.certificate.objective,
            "at_most": mechanism.certificate.at_most,
        },
        "measured_in": metric_words(radii[0].metric),
        "radii": [{"level": one.level, "tight": one.tight and not snap} | _sizes(one, snap) for one in radii],
        "statement": STATEMENT,
    }
    if found.lattice is not None:
        distribution["lattice"] = dict(found.lattice)
    return distribution


def metric_words(metric: Metric) -> dict[str, Any]:
    """Return a metric as its name, its unit and its exponent where it has one."""
    words: dict[str, Any] = {"name": type(metric).__name__, "unit": metric.unit}
    exponent = exponent_of(metric)
    if exponent is not None:
        words["p"] = plain_values(exponent)
    return words


def convert_to_metres(value: float, unit: str) -> float | None:
    """Return a length in metres, rounded as doubles are; None where the unit is no length."""
    return value * float(METRES[unit]) if unit in METRES else None


def _sizes(radius: Radius, snap: float) -> dict[str, Any]:
    value = radius.value + snap
    return {"radius": value, "unit": radius.unit, "metres": convert_to_metres(value, radius.unit)}


def _snap_slack(part: Mechanism) -> bool:
    return part.inputs.size is not None and not part.inputs.is_text


def distribution_of(mechanism: Mechanism) -> Distribution:
    """Return the formula of a distribution, its constants where it has a closed form, and the lattice of reports."""
    found: Distribution = MECHANISMS.facet("distribution", mechanism)(mechanism)
    return found
