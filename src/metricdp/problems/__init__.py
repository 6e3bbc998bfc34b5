"""What is asked: secrets, epsilon, reports, loss and prior."""

from metricdp.problems.loss_spec import BY_DISTANCE, LossSpec
from metricdp.problems.losses import NearLoss
from metricdp.problems.problem import Problem

__all__ = ["BY_DISTANCE", "LossSpec", "NearLoss", "Problem"]
