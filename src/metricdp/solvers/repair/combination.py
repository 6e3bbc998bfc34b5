"""The small dense program behind recombination: min cost.w subject to rays w = 1, w >= 0."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import numpy as np

from metricdp.deadlines import clock
from metricdp.errors import import_extra


def best_combination(
    rays: Any, cost: Any, *, iterations: int = 60, arrays: ModuleType = np, seconds: float = math.inf
) -> Any:
    """Return w by a dense predictor-corrector method; `arrays` is numpy, or cupy for arrays on a GPU.

    It ends after `seconds` with what it has: the rows are then no closer to one than they have come.

    Normal equations (rays D rays^T) dy = r with D = w / s, so a step costs n^2 t operations.
    """
    n, count = rays.shape
    scale = float(abs(cost).max()) or 1.0
    price = cost / scale
    amount = arrays.full(count, 1.0 / float(rays.sum(axis=1).max()))
    dual = arrays.zeros(n)
    spread = price - price.min()
    slack = spread + 0.1 * spread.mean() + 1e-3
    diagonal_of = arrays.arange(n)
    before, longest, end = clock(), 0.0, clock() + seconds
    for _ in range(iterations):
        now = clock()
        longest, before = max(longest, now - before), now
        if now + longest > end:
            break
        residual = 1.0 - rays @ amount
        level = float(amount @ slack) / count
        objective = float(price @ amount)
        if float(abs(residual).max()) < 1e-10 and level * count < 1e-7 * max(abs(objective), 1e-9):
            break
        dual_residual = price - rays.T @ dual - slack
        weight = amount / slack
        normal = (rays * weight) @ rays.T
        solve = _factor(normal, diagonal_of, arrays)
        if solve is None:
            break
        newton = _Newton(rays, amount, slack, weight, residual, dual_residual, solve)
        move, change, slack_move = newton.direction(0.0)
        first, second = _length(amount, move), _length(slack, slack_move)
        reached = float((amount + first * move) @ (slack + second * slack_move)) / count
        centring = (max(reached, 0.0) / level) ** 3
        move, change, slack_move = newton.direction(centring * level - move * slack_move)
        first, second = 0.995 * _length(amount, move), 0.995 * _length(slack, slack_move)
        if max(first, second) < 1e-6:
            break
        amount = amount + first * move
        dual = dual + second * change
        slack = slack + second * slack_move
    return amount


class _Newton:
    """One factored step: directions for different right-hand sides."""

    def __init__(
        self, rays: Any, amount: Any, slack: Any, weight: Any, residual: Any, dual_residual: Any, solve: Any
    ) -> None:
        self.rays, self.amount, self.slack, self.weight = rays, amount, slack, weight
        self.residual, self.dual_residual, self.solve = residual, dual_residual, solve

    def direction(self, goal: Any) -> tuple[Any, Any, Any]:
        """Return the moves of w, y and s for the products w s = goal."""
        push = (goal - self.amount * self.slack) / self.slack - self.weight * self.dual_residual
        change = self.solve(self.residual - self.rays @ push)
        move = push + self.weight * (self.rays.T @ change)
        # one step of refinement keeps the row sums right
        correction = self.solve(self.residual - self.rays @ move)
        move = move + self.weight * (self.rays.T @ correction)
        slack_move = (goal - self.amount * self.slack - self.slack * move) / self.amount
        return move, change + correction, slack_move


def _factor(normal: Any, diagonal: Any, arrays: ModuleType) -> Any:
    """Return a function that solves with the symmetric matrix, lifted a little where it must be."""
    peak = float(normal[diagonal, diagonal].max())
    for lift in (0.0, 1e-14, 1e-12, 1e-10):
        if lift:
            normal[diagonal, diagonal] += lift * peak
        if arrays is np:
            from scipy.linalg import lapack

            root, failed = lapack.dpotrf(normal, lower=1)
            if not failed:
                return lambda right: lapack.dpotrs(root, right, lower=1)[0]
            continue
        solve_triangular = import_extra("cupyx.scipy.linalg", "gpu").solve_triangular

        try:
            root = arrays.linalg.cholesky(normal)
        except np.linalg.LinAlgError:
            continue
        if bool(arrays.isfinite(root).all()):
            return lambda right: solve_triangular(
                root,
                solve_triangular(root, right, lower=True),
                lower=True,
                trans=1,
            )
    return None


def _length(value: Any, move: Any) -> float:
    """Return the longest step in [0, 1] that keeps `value` non-negative."""
    return min(1.0, 1.0 / max(float((-move / value).max()), 1e-300))
