"""What is asked: secrets, epsilon, reports, loss and prior."""

from metricdp.problems.loss_spec import BY_DISTANCE as BY_DISTANCE
from metricdp.problems.loss_spec import LossSpec as LossSpec
from metricdp.problems.losses import NearLoss as NearLoss
from metricdp.problems.problem import Problem as Problem
