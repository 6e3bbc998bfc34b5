"""PIVE as published before the audit, and protection sets that keep both halves of its guarantee."""

import math

import numpy as np

import metricdp as mdp

street = np.array([0.0, 0.3, 0.6, 0.9, 1.2, 1.5, 6.5])  # kilometres along one street: a village, then a farm
places = mdp.FiniteSpace(street[:, None], mdp.Lp(1, unit="km"))
apart, prior = places.distances, np.full(len(places), 1 / len(places))
epsilon, error = 1.0, 0.1  # in each set ratios up to e, and a best guess that errs by 100 m


def published_set(place):
    """Return the run of places around one, of least diameter, whose best guess errs by e^epsilon * error."""
    runs = [range(a, b) for a in range(place + 1) for b in range(place + 1, len(places) + 1)]
    wide = [
        run for run in runs if (prior[run] @ apart[run][:, run]).min() / prior[run].sum() >= math.e**epsilon * error
    ]
    return min(wide, key=lambda run: street[run[-1]] - street[run[0]])


sets = [published_set(place) for place in range(len(places))]
diameters = np.array([street[run[-1]] - street[run[0]] for run in sets])
probabilities = np.exp(-epsilon * apart / (2 * diameters[:, None]))
probabilities /= probabilities.sum(axis=1, keepdims=True)
pairs = [(place, other) for place, run in enumerate(sets) for other in run if other != place]
claim = mdp.ShortestPath(pairs, np.ones(len(pairs)), len(places), unit="set")  # members of one set: one step apart

print("as published:", mdp.audit(probabilities, metric=claim, points=np.arange(len(places)), epsilon=epsilon))

sound = mdp.places.protection_sets(places, epsilon, error=error, prior=prior)
best = mdp.optimal(mdp.Problem(sound.space, epsilon, loss=apart, prior=prior))
print(sound)
print(best.certificate)
print("adversary's error:", mdp.adversary_error(best, prior=prior, loss=apart), "km")
