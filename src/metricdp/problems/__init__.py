"""What is asked: secrets, epsilon, reports, loss and prior."""

from metricdp.problems.losses import NearLoss
from metricdp.problems.problem import Problem

__all__ = ["NearLoss", "Problem"]
