"""What is asked: secrets, epsilon, reports, loss and prior."""

from metricdp.problems.losses import NearLoss as NearLoss
from metricdp.problems.problem import Problem as Problem
