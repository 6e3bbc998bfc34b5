"""Condensed local differential privacy (CLDP) as mechanisms of this package, and its alpha as a plain epsilon."""

import math

import numpy as np

import metricdp as mdp

ages = mdp.FiniteSpace(np.arange(100.0)[:, None], mdp.Lp(1))  # items in an order: 0 to 99 years


def confidence(distribution):
    """Return how sure somebody can be of a value after one report, all values alike before (MPC)."""
    return (distribution / distribution.sum(axis=0)).max()


# The conversion of a later study's public code (He et al. 2022): the alpha at which nobody is surer than after
# randomised response with a plain epsilon of 1.
low, high = 0.0, 1.0
for _ in range(30):
    alpha = (low + high) / 2
    distribution = mdp.exponential(ages, alpha, budget="half").matrix  # Ordinal-CLDP
    low, high = (alpha, high) if confidence(distribution) <= math.e / (math.e + 99) else (low, alpha)
ordinal = mdp.exponential(ages, low, budget="half")
print("alpha", low, ordinal.guarantee)

# As a guarantee per year it holds. As plain local privacy, all values one step apart, it is not an epsilon of 1:
plain = mdp.Precomputed(1.0 - np.eye(100))
print(mdp.audit(ordinal))
print(mdp.audit(ordinal.matrix, metric=plain, points=np.arange(100), epsilon=1.0))

# The same alpha spent better.
best = mdp.optimal(mdp.Problem(ages, low), gap=0.01).certificate
for name, made in (("as published", ordinal), ("certified budget", mdp.exponential(ages, low))):
    print(f"{name}: {made.certificate.loss / best.lower_bound - 1:.1%} above what none with these reports can beat")

# Items without an order: distances of one's own, which must be a metric.
systems = mdp.Precomputed([[0, 1, 3], [1, 0, 3], [3, 3, 0]])  # two versions of one system, and another system
print(mdp.audit(mdp.exponential(mdp.FiniteSpace(np.arange(3), systems), 1.0, budget="half")))
