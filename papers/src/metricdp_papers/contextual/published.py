"""The numbers of the paper, typed once: "Context-Aware Metric Differential Privacy for Vehicle Trajectory Data" (2026).

Figures whose values stand in no sentence of the paper have no numbers here; what its text says about them has.
"""

from __future__ import annotations

FEATURES = ("speed", "longitude", "latitude", "hour")

# Table 1: how p-values go with speed, longitude, latitude and time.
CORRELATIONS: dict[str, dict[str, tuple[float, float, float, float]]] = {
    "rome": {
        "Pearson": (-0.4886, -0.0081, -0.0028, 0.0410),
        "Spearman": (-0.7122, -0.0734, 0.0124, 0.0620),
        "Kendall": (-0.5430, -0.0539, 0.0102, 0.0420),
        "Type I error of CCIT": (1.14e-30, 0.0974, 0.3977, 0.2871),
    },
    "porto": {
        "Pearson": (-0.1848, -0.0913, 0.0905, -0.0189),
        "Spearman": (-0.1283, -0.2405, 0.1144, -0.0296),
        "Kendall": (-0.1075, -0.1804, 0.0912, -0.0202),
        "Type I error of CCIT": (9.55e-10, 3.72e-14, 0.2447, 0.0152),
    },
}

# Table 2: the network that predicts "reject" or "fail to reject"; positive means "fail to reject".
SCORES = (
    "BCE loss", "accuracy", "precision", "recall", "F1", "negative precision", "negative recall", "negative F1",
)  # fmt: skip
PREDICTION = {
    city: dict(zip(SCORES, values, strict=True))
    for city, values in {
        "rome": (0.1211, 0.9512, 0.9580, 0.9868, 0.9722, 0.8972, 0.7273, 0.8033),
        "porto": (0.1321, 0.9413, 0.9710, 0.9630, 0.9670, 0.7123, 0.7610, 0.7358),
    }.items()
}

# Figure 8 and Section 5.2.1: one prediction takes so many milliseconds on average; over 98 % finish within 2 ms.
PREDICTION_MS = {"rome": 0.1557, "porto": 0.1588}
PREDICTION_WITHIN_2_MS = "over 98"

# Appendix E.1: how long training took, in seconds, on an NVIDIA GeForce RTX 4090.
TRAINING_SECONDS = {"rome": 492.4, "porto": 2730.0}
LEARNING_RATE = 1e-5
BATCH = 128
PATIENCE = 400  # epochs without a better validation loss

# Figure 9: the share of predicted blankets of at most two places, per cent.
AT_MOST_TWO = {"rome": 99.8, "porto": 100.0}

# Section 5.3.3 on Figure 10: C-mDP below the others, per cent, "across all evaluated epsilon values".
BELOW = {
    "LP": "13 to 17",
    "ConstOPT": "25 to 36",
    "ExpMech": "25 to 50",
    "LP+Markov1": "about 3 to 8",  # the paper counts the other way: "LP+Markov incurs about 3%-8% higher utility loss"
    "LP+TrueMB": "within 1 to 2",  # "performs very close to LP+TrueMB, typically within 1%-2%"
}
# Section 1.1, the whole of the benchmarks: at least so many per cent below.
AT_LEAST_BELOW = {"rome": 15.6, "porto": 4.9}
RADIUS_KM = 5.0  # eta
EPSILONS = (0.25, 0.3, 0.35, 0.4, 0.45, 0.5)  # "from 0.5 km^-1 to 0.25 km^-1"; the steps are ours

# Figure 11: seconds to solve on average and in all settings, milliseconds to draw a record on average and at most.
SOLVE_SECONDS = {"rome": 10.24, "porto": 9.34}
SOLVE_RANGE = "8.07 to 11.53"
DRAW_MS = 1.01
DRAW_MOST_MS = 1.10

# Figure 13: per cent of points with at least so many neighbours within 100 metres.
NEIGHBOURS: dict[str, dict[int, float]] = {
    "rome": {100: 97.8, 500: 91.6, 1000: 85.8},
    "porto": {100: 95.7, 500: 89.1, 1000: 84.0},
}
# Figure 14: per cent of points whose 50 nearest neighbours are at most so many metres away on average.
NEAREST_50: dict[str, dict[int, float]] = {
    "rome": {100: 99.5, 50: 98.6},
    "porto": {100: 98.1, 50: 96.8},
}
# Figure 12: the density of the distance to a neighbour is "approaching zero around 20 meters".
NEIGHBOUR_VANISHES_M = 20.0

# Section 4.2.1. The paper prints cells of 12' and 8'; they are 0.12 and 0.08 degrees. It prints 8.49 to 8.73 degrees
# EAST for Porto, which lies west of Greenwich: the signs are put right here.
BOXES: dict[str, tuple[tuple[float, float], tuple[float, float]]] = {
    "rome": ((41.64, 12.23), (42.12, 12.83)),
    "porto": ((41.03, -8.73), (41.27, -8.49)),
}
REGIONS = {"rome": (4, 5), "porto": (3, 3)}
SPEED_MPH = 5.0
MOST_MPH = 120.0
HOURS = 1.0
LEAST_SAMPLES = 200
MOST_M = 5  # places kept, |B| = 1 to 5
LEVEL = 0.05
