"""What ties the columns of a ratio program together: the row sums, and for the worst row its losses.

With X_k = H_k^-1 the inverse of column k, a step of the columns is dz_k = X_k (B_k u + h_k) for the common
unknowns u: u = dy for the average loss, u = (dy, dp) with B_k u = dy - c_k dp for the worst row.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.linalg import lapack

from metricdp.arrays import Floats
from metricdp.solvers.backends.chains import Chain, ChainFactor


class Point(Protocol):
    """Slacks, multipliers and their moves: of a chunk of columns, or of the coupling itself."""

    slack: Floats
    dual: Floats
    target: Floats | float
    slack_move: Floats
    dual_move: Floats


class Coupling(Protocol):
    """The part of a Newton step that all columns share."""

    slack: Floats
    dual: Floats
    target: Floats | float
    slack_move: Floats
    dual_move: Floats

    def weigh(self, cost: Floats) -> Floats:
        """Return the costs as the columns see them."""

    def push(self, cost: Floats) -> Floats:
        """Return y - weighed costs."""

    def matrix(self, factor: ChainFactor, cost: Floats) -> Floats:
        """Return sum_k B_k^T X_k B_k over some columns."""

    def prepare(self, total: Floats, sums: Floats) -> bool:
        """Factor the common system, given the current row sums; False where that fails."""

    def collect(self, move: Floats, cost: Floats) -> Floats:
        """Return sum_k B_k^T move_k."""

    def settle(self, collected: Floats) -> None:
        """Solve for the common unknowns, given `collected` of X_k h_k."""

    def spread(self, cost: Floats) -> Floats:
        """Return B_k u for every column."""

    def absorb(self, losses: Floats) -> None:
        """Finish the move, given sum_k c_k dz_k."""

    def advance(self, primal_step: float, dual_step: float, losses: Floats) -> None:
        """Take the step; `losses` are the losses of the rows after it."""

    def objective(self, losses: Floats) -> float:
        """Return what is minimised."""

    def normaliser(self) -> float:
        """Return what multipliers are divided by to give a bound."""


class AverageCoupling:
    """sum_i loss_i: only the row sums couple."""

    def __init__(self, cost: Floats, chain: Chain) -> None:
        self.prices = cost.min(axis=1)
        self.chain = chain
        self.slack = self.dual = self.slack_move = self.dual_move = np.empty(0)
        self.target: Floats | float = 0.0

    def weigh(self, cost: Floats) -> Floats:
        return cost

    def push(self, cost: Floats) -> Floats:
        return np.asarray(self.prices[:, None] - cost)

    def matrix(self, factor: ChainFactor, cost: Floats) -> Floats:
        total = np.zeros((len(self.prices), len(self.prices)))
        factor.add_inverses(total)
        return total

    def prepare(self, total: Floats, sums: Floats) -> bool:
        self.missing = 1.0 - sums
        # the upper triangle, in the chain's order
        self.root, failed = lapack.dpotrf(np.triu(total).T.copy(order="F"), lower=1, clean=0, overwrite_a=1)
        return not failed

    def collect(self, move: Floats, cost: Floats) -> Floats:
        return np.asarray(move.sum(axis=1))

    def settle(self, collected: Floats) -> None:
        order = self.chain.order
        self.change = np.empty(len(self.prices))
        self.change[order] = lapack.dpotrs(self.root, (self.missing - collected)[order], lower=1)[0]

    def spread(self, cost: Floats) -> Floats:
        return np.broadcast_to(self.change[:, None], cost.shape)

    def absorb(self, losses: Floats) -> None:
        pass

    def advance(self, primal_step: float, dual_step: float, losses: Floats) -> None:
        self.prices = self.prices + dual_step * self.change

    def objective(self, losses: Floats) -> float:
        return float(losses.sum())

    def normaliser(self) -> float:
        return 1.0


class WorstCoupling:
    """max_i loss_i = min t with s = t - losses >= 0, multipliers p >= 0 of these rows, sum p = 1.

    H_k dz_k = dy - c_k dp + h_k, ds = dt - sum_k c_k dz_k, p ds + s dp = target - p s, sum dp = 1 - sum p
    give M (dy, dp) + (0, 1) dt = right with M = sum_k (I, -C_k)^T X_k (I, -C_k) + diag(0, s / p).
    """

    def __init__(self, cost: Floats, losses: Floats) -> None:
        n = len(cost)
        self.level = float(losses.max()) + 0.1 * (float(np.ptp(losses)) + float(np.abs(losses).max())) + 1e-3
        self.slack = self.level - losses
        self.dual = np.full(n, 1.0 / n)
        self.prices = (cost / n).min(axis=1)
        self.slack_move = self.dual_move = np.zeros(n)
        self.target: Floats | float = 0.0

    def weigh(self, cost: Floats) -> Floats:
        return np.asarray(self.dual[:, None] * cost)

    def push(self, cost: Floats) -> Floats:
        return np.asarray(self.prices[:, None] - self.dual[:, None] * cost)

    def matrix(self, factor: ChainFactor, cost: Floats) -> Floats:
        n = len(self.prices)
        total = np.zeros((2 * n, 2 * n))
        for k, inverse in enumerate(factor.full_inverses()):
            scaled = inverse * cost[:, k]
            total[:n, :n] += inverse
            total[:n, n:] -= scaled
            total[n:, n:] += scaled * cost[:, k, None]
        return total

    def prepare(self, total: Floats, sums: Floats) -> bool:
        n = len(self.prices)
        self.missing = 1.0 - sums
        total[n:, :n] = total[:n, n:].T
        total[np.arange(n, 2 * n), np.arange(n, 2 * n)] += self.slack / self.dual
        self.root, failed = lapack.dpotrf(total, lower=1, clean=0)
        if failed:
            return False
        border = np.concatenate([np.zeros(n), np.ones(n)])
        self.border = lapack.dpotrs(self.root, border, lower=1)[0]
        return True

    def collect(self, move: Floats, cost: Floats) -> Floats:
        return np.concatenate([move.sum(axis=1), -(cost * move).sum(axis=1)])

    def settle(self, collected: Floats) -> None:
        n = len(self.prices)
        right = np.concatenate([self.missing, self.target / self.dual - self.slack]) - collected
        plain = lapack.dpotrs(self.root, right, lower=1)[0]
        # sum dp = 1 - sum p fixes dt
        wanted = 1.0 - float(self.dual.sum())
        self.level_move = (float(plain[n:].sum()) - wanted) / float(self.border[n:].sum())
        both = plain - self.level_move * self.border
        self.change, self.dual_move = both[:n], both[n:]

    def spread(self, cost: Floats) -> Floats:
        return np.asarray(self.change[:, None] - cost * self.dual_move[:, None])

    def absorb(self, losses: Floats) -> None:
        self.slack_move = self.level_move - losses

    def advance(self, primal_step: float, dual_step: float, losses: Floats) -> None:
        self.level += primal_step * self.level_move
        self.slack = self.level - losses
        self.dual = self.dual + dual_step * self.dual_move
        self.prices = self.prices + dual_step * self.change

    def objective(self, losses: Floats) -> float:
        return float(losses.max())

    def normaliser(self) -> float:
        return float(self.dual.sum())
