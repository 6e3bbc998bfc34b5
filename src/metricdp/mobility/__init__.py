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
    adjust_p_values,
    blanket_classes,
    conditional_independence,
    discover,
    discover_groups,
    path_features,
)
from metricdp.mobility.budgets import Absorption, Distribution, FixedRate, FixedUtility, PredictionTuning, window_costs
from metricdp.mobility.cloaking import CloakedTraces, cloak_traces
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
    home_of,
    locate_centre,
    stay_points,
    trip_ends,
    zones,
)
from metricdp.mobility.models import Mobility, ModelCost, estimate, histories_of, reachable_steps
from metricdp.mobility.prediction import PredictiveMechanism, predictive
from metricdp.mobility.predictor import (
    BlanketPredictor,
    Scores,
    evaluate,
    examples_of,
    expand_features,
    load_predictor,
    train_predictor,
)
from metricdp.mobility.runs import PREDICTIONS, StepCost, TraceRun, linear, parrot
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
from metricdp.registry import lazy_names

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
    "ModelCost",
    "PredictionTuning",
    "Predictive",
    "PredictiveMechanism",
    "Scores",
    "StayPoints",
    "StepCost",
    "Stream",
    "TraceAccount",
    "TraceLoss",
    "TraceRun",
    "Traces",
    "Trajectories",
    "TrajectoryRisk",
    "TripSummary",
    "Visit",
    "Walks",
    "Zoned",
    "Zones",
    "account",
    "adjust_p_values",
    "allocate",
    "audit_runs",
    "augmented_steps",
    "blanket_classes",
    "clean",
    "cloak_traces",
    "conditional_independence",
    "cut_out",
    "discover",
    "discover_groups",
    "estimate",
    "evaluate",
    "examples_of",
    "expand_features",
    "histories_of",
    "home_of",
    "linear",
    "load_predictor",
    "load_traces",
    "locate_centre",
    "parrot",
    "path_features",
    "predictive",
    "public_model",
    "reachable_steps",
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
    "window_costs",
    "zones",
]

__getattr__ = lazy_names(
    __name__,
    {
        "fixes": ["load_traces", "read_trips", "trip_numbers"],
        "streams": ["Stream"],
        "trips": ["TripSummary", "release_trips"],
        "ways": ["Cloaked", "Contextual", "Predictive", "Zoned"],
    },
)
