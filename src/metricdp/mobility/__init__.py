"""Mobility: traces, trips and streams, how they are released, and what releasing them over time costs.

`release_trips` releases the trips of a table. What tables need is loaded when it is first used.
"""

from typing import TYPE_CHECKING

from metricdp.auditing.composition import TraceAccount, account, allocate, trajectory_epsilon
from metricdp.mobility.blankets import (
    Discovery,
    Features,
    GroupBlankets,
    IndependenceTest,
    adjusted,
    blanket_classes,
    conditional_independence,
    discover,
    discover_groups,
    features_of,
)
from metricdp.mobility.budgets import Absorption, Care, Distribution, FixedRate, FixedUtility, windows_spent
from metricdp.mobility.cloaking import CloakedTraces, cloaked
from metricdp.mobility.evaluation import TraceLoss, audit_runs, step_loss, trace_loss
from metricdp.mobility.hidden_walks import (
    HiddenWalk,
    TrajectoryRisk,
    augmented_steps,
    release_adversary,
    smooth,
    trajectory_adversary,
)
from metricdp.mobility.home_zones import (
    StayPoints,
    Visit,
    Zones,
    cut_out,
    found_centre,
    home_of,
    stay_points,
    trip_ends,
    zones,
)
from metricdp.mobility.models import Mobility, Spent, estimate, histories_of, reachable
from metricdp.mobility.prediction import PredictiveMechanism, predictive
from metricdp.mobility.predictor import (
    BlanketPredictor,
    Scores,
    evaluate,
    examples_of,
    expanded,
    load_predictor,
    train_predictor,
)
from metricdp.mobility.runs import PREDICTIONS, Run, Step, linear, parrot
from metricdp.mobility.traces import (
    KMH_PER_MPH,
    Traces,
    Walks,
    clean,
    resample,
    snap,
    snap_distances,
    split_trips,
)
from metricdp.mobility.trajectories import Trajectories, public_model, spacing_km, trajectory_problem
from metricdp.registry import named_later

if TYPE_CHECKING:
    from metricdp.mobility.fixes import load_traces, read_trips, trip_numbers
    from metricdp.mobility.release_methods import Cloaked, Contextual, Predictive, Zoned
    from metricdp.mobility.streams import Stream
    from metricdp.mobility.trips import TripSummary, release_trips

__all__ = [
    "KMH_PER_MPH",
    "PREDICTIONS",
    "Absorption",
    "BlanketPredictor",
    "Care",
    "Cloaked",
    "CloakedTraces",
    "Contextual",
    "Discovery",
    "Distribution",
    "Features",
    "FixedRate",
    "FixedUtility",
    "GroupBlankets",
    "HiddenWalk",
    "IndependenceTest",
    "Mobility",
    "Predictive",
    "PredictiveMechanism",
    "Run",
    "Scores",
    "Spent",
    "StayPoints",
    "Step",
    "Stream",
    "TraceAccount",
    "TraceLoss",
    "Traces",
    "Trajectories",
    "TrajectoryRisk",
    "TripSummary",
    "Visit",
    "Walks",
    "Zoned",
    "Zones",
    "account",
    "adjusted",
    "allocate",
    "audit_runs",
    "augmented_steps",
    "blanket_classes",
    "clean",
    "cloaked",
    "conditional_independence",
    "cut_out",
    "discover",
    "discover_groups",
    "estimate",
    "evaluate",
    "examples_of",
    "expanded",
    "features_of",
    "found_centre",
    "histories_of",
    "home_of",
    "linear",
    "load_predictor",
    "load_traces",
    "parrot",
    "predictive",
    "public_model",
    "reachable",
    "read_trips",
    "release_adversary",
    "release_trips",
    "resample",
    "smooth",
    "snap",
    "snap_distances",
    "spacing_km",
    "split_trips",
    "stay_points",
    "step_loss",
    "trace_loss",
    "train_predictor",
    "trajectory_adversary",
    "trajectory_epsilon",
    "trajectory_problem",
    "trip_ends",
    "trip_numbers",
    "windows_spent",
    "zones",
]

__getattr__ = named_later(
    __name__,
    {
        "fixes": ["load_traces", "read_trips", "trip_numbers"],
        "streams": ["Stream"],
        "trips": ["TripSummary", "release_trips"],
        "ways": ["Cloaked", "Contextual", "Predictive", "Zoned"],
    },
)
