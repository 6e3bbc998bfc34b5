"""A metric of one's own: metres walked inside a building, where every floor costs a detour to the stairs."""

from dataclasses import dataclass

import numpy as np

import metricdp as mdp
from metricdp.errors import InvalidInput
from metricdp.metrics import METRICS, MetricKind
from metricdp.registry import Number, Text


@dataclass(frozen=True)
class Walking:
    """|a - b| on the plan of a floor, and `climb` metres for every floor between: points are (x, y, floor)."""

    climb: float = 15.0
    unit: str = "m"

    def __call__(self, a, b, /):
        a, b = np.asarray(a, float), np.asarray(b, float)
        flat = np.hypot(a[..., 0] - b[..., 0], a[..., 1] - b[..., 1])
        return flat + self.climb * np.abs(a[..., 2] - b[..., 2])

    def check(self, points, /):
        if points.shape[-1] != 3:
            raise InvalidInput(f"points must be (x, y, floor), three columns, got {points.shape[-1]}.")


METRICS.declare(
    MetricKind(
        Walking,
        "Walking",
        "metres walked inside a building; points are (x, y, floor)",
        {"climb": Number(least=0), "unit": Text()},
        words={"walking": Walking},
        distance_phrase="on foot",
        route_phrases=(" on foot", " on foot"),
    )
)

if __name__ == "__main__":
    rooms = mdp.FiniteSpace([[0, 0, 0], [8, 0, 0], [0, 0, 1]], Walking())
    print(mdp.exponential(rooms, mdp.epsilon_for(2, 10.0)).certificate.loss)
