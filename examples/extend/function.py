"""A metric of one's own from a plain function: minutes on foot, with a hill that takes time."""

import numpy as np

import metricdp as mdp


def minutes(a, b):
    """Walk at 80 metres a minute, and climb or descend at 10 metres of height a minute."""
    return float(np.hypot(a[0] - b[0], a[1] - b[1])) / 80.0 + abs(a[2] - b[2]) / 10.0


places = np.array([[0.0, 0.0, 10.0], [160.0, 0.0, 10.0], [0.0, 240.0, 60.0], [320.0, 240.0, 35.0]])
space = mdp.FiniteSpace(places, mdp.metric(minutes, unit="min"))

if __name__ == "__main__":
    mechanism = mdp.optimal(mdp.Problem(space, 0.5))
    print(mechanism.guarantee)
    print(mechanism.certificate.note)
