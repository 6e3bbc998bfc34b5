"""Mobility: how traces become contexts, priors and blankets, and what releasing them over time costs."""

from metricdp.mobility.blankets import (
    Discovery,
    Features,
    GroupBlankets,
    adjusted,
    blanket_classes,
    discover,
    discover_groups,
    features_of,
)
from metricdp.mobility.budgets import Care, FixedRate, FixedUtility
from metricdp.mobility.cloaking import Cloaked, cloaked
from metricdp.mobility.composition import TraceAccount, account, allocate, trajectory_epsilon
from metricdp.mobility.cutting import cut_out, found_centre, trip_ends
from metricdp.mobility.exhaustive import audit_runs
from metricdp.mobility.hidden import HiddenWalk, TrajectoryRisk, release_adversary, trajectory_adversary
from metricdp.mobility.independence import IndependenceTest, conditional_independence
from metricdp.mobility.journey import Trajectories, public_model, spacing_km, trajectory_problem
from metricdp.mobility.models import Mobility, Spent, estimate, histories_of, reachable
from metricdp.mobility.prediction import (
    BlanketPredictor,
    Scores,
    evaluate,
    examples_of,
    expanded,
    load_predictor,
    train_predictor,
)
from metricdp.mobility.predictive import PredictiveMechanism, predictive
from metricdp.mobility.runs import PREDICTIONS, Run, Step, linear, parrot
from metricdp.mobility.shares import TraceLoss, step_loss, trace_loss
from metricdp.mobility.smoothing import augmented_steps, smooth
from metricdp.mobility.stays import StayPoints, home_of, stay_points
from metricdp.mobility.streams import Absorption, Distribution, windows_spent
from metricdp.mobility.traces import (
    KMH_PER_MPH,
    Traces,
    Walks,
    clean,
    load_traces,
    read_trips,
    resample,
    snap,
    snap_distances,
    split_trips,
    trip_numbers,
)
from metricdp.mobility.zones import Visit, Zones, zones

__all__ = [
    "KMH_PER_MPH",
    "PREDICTIONS",
    "Absorption",
    "BlanketPredictor",
    "Care",
    "Cloaked",
    "Discovery",
    "Distribution",
    "Features",
    "FixedRate",
    "FixedUtility",
    "GroupBlankets",
    "HiddenWalk",
    "IndependenceTest",
    "Mobility",
    "PredictiveMechanism",
    "Run",
    "Scores",
    "Spent",
    "StayPoints",
    "Step",
    "TraceAccount",
    "TraceLoss",
    "Traces",
    "Trajectories",
    "TrajectoryRisk",
    "Visit",
    "Walks",
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
