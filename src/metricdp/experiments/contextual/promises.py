"""What the context-aware promise means elsewhere: the published variant, one place alone, a trajectory, a trace."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metricdp.arrays import Integers
from metricdp.auditing import bounded_range, current_place
from metricdp.design.contextual import contextual, published
from metricdp.design.exponential import exponential
from metricdp.design.optimal import optimal
from metricdp.experiments.contextual.blankets import Study
from metricdp.experiments.contextual.methods import Setting
from metricdp.mechanisms import MatrixMechanism
from metricdp.mobility import account, blanket_classes, trajectory_epsilon

RELEASES = 100  # of a trace whose places move by one kilometre each
DELTA = 1e-5


@dataclass(frozen=True)
class Promises:
    """One city at one epsilon per kilometre; `published` is NaN where every history has the same blanket."""

    city: str
    places: int
    epsilon: float
    published: float
    place_bound: float
    place_measured: float
    trajectory: float
    aware_loss: float
    free_loss: float
    basic: float
    product: float
    concentrated: float
    bounded_range: float

    def lines(self) -> list[str]:
        """Say it, one line each."""
        if np.isnan(self.published):
            first = "every history has the same blanket here, so the published variant is the same program"
        else:
            verdict = "violated" if self.published > self.epsilon else "not violated here"
            first = (
                f"one program per blanket, chosen by the secret (as published): audited {self.published:.4g}: {verdict}"
            )
        return [
            first,
            f"current place alone: at most {self.place_bound:.4g} per km (with the history's bottleneck distance), "
            f"measured {self.place_measured:.4g}; whole trajectory: {self.trajectory:.4g} per km that one place moves",
            f"LP given that same {self.trajectory:.4g} per km: loss {self.free_loss:.4f} km; "
            f"C-mDP: {self.aware_loss:.4f} km",
            f"{RELEASES} releases, places moved by 1 km each: basic {self.basic:.4g}, product metric (l2 over time) "
            f"{self.product:.4g}, concentrated {self.concentrated:.4g}, bounded range (ExpMech) "
            f"{self.bounded_range:.4g} (delta {DELTA:g})",
        ]


def promises(setting: Setting, epsilon: float, sizes: Integers) -> Promises:
    """Measure what holds beside the promise on places with their history."""
    classes = blanket_classes(setting.augmented.histories, sizes)
    kept = contextual(setting.with_history(epsilon), classes=classes, gap=1e-2)
    place = current_place(kept, setting.augmented, setting.prior)
    total = trajectory_epsilon(epsilon, setting.augmented.weights)
    alone = setting.alone(epsilon)
    noise = exponential(alone.inputs, epsilon, prior=alone.prior, loss=alone.loss, budget="half")
    ranges = np.full(RELEASES, bounded_range(noise))
    spent = account(np.full(RELEASES, epsilon), radius=1.0, delta=DELTA, ranges=ranges)
    several = len(np.unique(sizes)) > 1
    return Promises(
        city=setting.city.name,
        places=len(setting.city.places),
        epsilon=epsilon,
        published=as_published(setting, epsilon, sizes).certificate.epsilon if several else float("nan"),
        place_bound=place.epsilon,
        place_measured=place.measured,
        trajectory=total,
        aware_loss=kept.certificate.loss,
        free_loss=optimal(setting.alone(total), gap=5e-3).certificate.loss,
        basic=spent.basic,
        product=spent.product,
        concentrated=spent.concentrated,
        bounded_range=spent.bounded_range,
    )


def as_published(setting: Setting, epsilon: float, sizes: Integers) -> MatrixMechanism:
    """Build the variant with one program per blanket size, chosen by the secret; its promise has basis "none"."""
    histories = setting.augmented.histories
    blankets = {int(size): histories[:, : int(size) + 1] for size in np.unique(sizes)}
    return published(setting.with_history(epsilon), groups=sizes, blankets=blankets, gap=1e-2)


def sizes_for(study: Study, setting: Setting) -> tuple[Integers, Integers]:
    """Return how many steps back every history may be looked at, as predicted and as discovered.

    A blanket of m places of the NEXT place holds the current one and m - 1 before it; at least one step back is
    allowed and at most the whole context. Region and speed are functions of the history itself; the hour is the
    public clock, here noon.
    """
    features = study.features(setting.augmented.histories, setting.city, hour=12.0)
    lags = setting.augmented.lags
    predicted = np.clip(study.predicted(features) - 1, 1, lags)
    discovered = np.clip(study.train.lookup(study.groups_of(features)) - 1, 1, lags)
    return predicted, discovered
