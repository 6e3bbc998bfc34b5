"""An hour of the day, hidden around the clock: reports of 23 h reach past midnight."""

import matplotlib.pyplot as plt
import numpy as np

import metricdp as mdp

hours = mdp.FiniteSpace(np.arange(24.0)[:, None], mdp.Temporal(24))
mechanism = mdp.optimal(mdp.Problem(hours, 0.6), gap=0.01)

figure, axes = plt.subplots(figsize=(4, 4), subplot_kw={"projection": "polar"})
axes.bar(np.arange(24) * 2 * np.pi / 24, mechanism.matrix[23], width=0.24, color="teal")
axes.set_theta_zero_location("N")
axes.set_theta_direction(-1)
axes.set_xticks(np.arange(0, 24, 3) * 2 * np.pi / 24, [f"{hour} h" for hour in range(0, 24, 3)])
axes.set_yticks([])
axes.set_title("reports of 23 h, epsilon 0.6 per hour", fontsize=10)
figure.savefig("hours_around_the_clock.png", dpi=80)
