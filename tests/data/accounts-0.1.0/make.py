"""Write a ledger that holds accounts as version 0.1.0 named them; run once with that version, and never again.

PYTHONPATH=<checkout of 0.1.0>/src python tests/data/accounts-0.1.0/make.py tests/data/accounts-0.1.0/ledger.db

Every account is of a person of the same name, who spent 2 in it, and rho 3; a table charged two persons under
Mahalanobis once more, 0.5 a row. The key is of this fixture alone.
"""

from __future__ import annotations

import sys

import numpy as np

import metricdp as mdp
from metricdp.ledger import Ledger

NOW = 1_790_000_000.0  # a Monday morning in 2026
POLICY = "10 ever, 4 per day, 9 ever for maps, 1000/km ever, 3/min ever, rho 5 ever"
METRICS = {
    "mahalanobis": mdp.Mahalanobis(np.eye(2)),
    "precomputed": mdp.Precomputed([[0.0, 1.0], [1.0, 0.0]], unit="km"),
    "bags": mdp.Bags(mdp.Lp(2)),
    "wasserstein": mdp.Wasserstein([0.0, 1.0, 2.0]),
    "function": mdp.metric(lambda a, b: abs(a[0] - b[0])),
    "weighted": mdp.Weighted([(mdp.Haversine(), [0, 1], 10.0), (mdp.Haversine(), [2, 3], 10.0)]),
    "l1": mdp.Lp(1),
    "linf": mdp.Lp(np.inf),
    "l2": mdp.Lp(2),
    "minutes": mdp.Lp(1, unit="min"),
}

if __name__ == "__main__":
    how = {"key": "app", "purpose": "maps"}
    with Ledger.open(sys.argv[1], policy=POLICY, clock=lambda: NOW) as ledger:
        for name, metric in METRICS.items():
            ledger.release(name, "first", metric=metric, epsilon=2.0, draw=lambda: b"old report", **how)
        ledger.release("gauss", "first", metric=METRICS["mahalanobis"], rho=3.0, draw=lambda: b"old report", **how)
        ledger.release_batch(
            {"mahalanobis": 1, "crowd": 3}, "table", metric=METRICS["mahalanobis"], epsilon=0.5,
            draw=lambda granted: b"old table", **how,
        )  # fmt: skip
        assert ledger.verify().holds
