"""Audit a matrix that somebody else made: randomised response on three points of a line."""

import numpy as np

import metricdp as mdp

points = np.array([[0.0], [1.0], [2.0]])
matrix = np.array([[0.6, 0.3, 0.1], [0.25, 0.5, 0.25], [0.1, 0.3, 0.6]])

report = mdp.audit(matrix, metric=mdp.Lp(2), points=points, epsilon=0.8)
secret, other, reported = report.witness
print(report.verdict, report.epsilon)
print(f"secrets {secret} and {other} are easiest to tell apart, by report {reported}")
