"""A trip by prediction: fresh noise only where a private test says that the last report is too old."""

import matplotlib.pyplot as plt
import numpy as np

import metricdp as mdp
from metricdp.mobility import FixedUtility, clean, load_traces, predictive, resample
from metricdp.places import bundled_trips

ticks = resample(clean(load_traces(bundled_trips(trips=20))), step_seconds=10)
trace = ticks.coordinates[ticks.owner == 0]
run = predictive(mdp.Haversine(), budget=FixedUtility(1.0, total=60.0)).release(trace)
reports, fresh = np.array(run.reports), np.array(run.fresh)

figure, axes = plt.subplots(figsize=(5, 4))
axes.plot(trace[:, 1], trace[:, 0], "-", color="orangered", label="true trip (simulated)")
axes.plot(reports[fresh, 1], reports[fresh, 0], "o", color="teal", label=f"{fresh.sum()} fresh of {len(fresh)} reports")
axes.set(xticks=[], yticks=[], title=f"{run.spent:.0f} per km spent, at most 60")
axes.legend(fontsize=8)
figure.tight_layout()
figure.savefig("a_predicted_trace.png", dpi=80)
