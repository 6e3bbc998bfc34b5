"""One mechanism on its own columns, what putting values on its secrets costs, and how far its reports lie away."""

from __future__ import annotations

import math
from dataclasses import dataclass

from metricdp import rendering
from metricdp.errors import InvalidInput
from metricdp.mechanisms import Mechanism, pure

LEVEL = 0.95  # of the accuracy that a column states, as the Geolocation API has it
LARGEST_DETOUR_SLACK = 30.0  # a factor of ten million millions


@dataclass(frozen=True)
class Lane:
    """One mechanism on its own columns: a whole task has one, a product one for every part.

    `columns` hold the secret and never stay: those that are also in `reports` are replaced, the others removed.
    `reads` says what a cell has to be, where it is a number. A `packed` lane has one column for all coordinates of the
    secret, a list of numbers in every row.
    """

    mechanism: Mechanism
    columns: tuple[str, ...]
    reports: tuple[str, ...]
    snap: float
    reads: str = "number"
    packed: bool = False


@dataclass(frozen=True)
class Snapping:
    """How far values are put on secrets, in the unit of their places, and what that costs: a slack of epsilon * apart.

    Where values are put on secrets by the distances of the promise, `apart` is twice the snap; where they are not, it
    is how far apart two secrets can be that one place may be put on, and distances are those of the secrets.
    """

    snap: float
    epsilon: float
    apart: float
    same_ground: bool
    unit: str = ""

    @property
    def slack(self) -> float:
        return self.epsilon * self.apart


@dataclass(frozen=True)
class Accuracy:
    """A column that states how far the truth lies from a report at most, with a chance of at least `level`.

    By the law of the noise alone and for every secret, so one number holds for all rows; in metres where distances are
    lengths, else in the unit of the metric; rounded up.
    """

    column: str
    radius: float
    unit: str
    level: float


def accuracy_of(lane: Lane, column: str, level: float = LEVEL) -> Accuracy:
    """Return the column that states the accuracy of a lane's reports; what snapping moved is counted."""
    from metricdp.auditing.accuracy import radii_of
    from metricdp.auditing.laws import in_metres

    found = radii_of(lane.mechanism, (level,))[0]
    value, metres = found.value + lane.snap, in_metres(found.value + lane.snap, found.unit)
    unit = found.unit if metres is None else "m"
    return Accuracy(column, float(rendering.number(value if metres is None else metres, 4, "up")), unit, level)


def snapping_of(lane: Lane) -> Snapping:
    """Return what snapping costs on the space of a lane, or refuse it where no promise would be left."""
    space, epsilon = lane.mechanism.inputs, pure(lane.mechanism.guarantee, "snapping").epsilon
    ground = space.ground.unit
    found = Snapping(lane.snap, epsilon, space.charge(lane.snap), space.same_ground, ground)
    if not found.same_ground and not found.slack <= LARGEST_DETOUR_SLACK:
        unit, snapped = (f" {one}" if one else "" for one in (space.unit, ground))
        apart = "with no way between them" if math.isinf(found.apart) else f"{found.apart:.4g}{unit} apart"
        raise InvalidInput(
            f"snapping up to {lane.snap:g}{snapped} can put one place on secrets {apart}: no promise is left of "
            f"epsilon {epsilon:g}. Snap less far, or design on secrets that lie as they are measured."
        )
    return found
