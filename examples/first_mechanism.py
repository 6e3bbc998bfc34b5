"""A first mechanism: 36 places, a guarantee, a proof, three reports."""

import numpy as np

import metricdp as mdp

space = mdp.grid((6, 6), spacing=0.2)  # 36 places, 200 m apart, in kilometres
epsilon = mdp.epsilon_for(2, 0.1)  # a factor of two at most for every 100 m between two places
mechanism = mdp.exponential(space, epsilon)

report = mdp.audit(mechanism)
print(report.verdict, report.epsilon)
print(space.decode(mechanism.sample(np.array([0, 7, 14]))))
