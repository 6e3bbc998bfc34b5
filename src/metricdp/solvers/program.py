"""The linear programs the solvers understand, and what a solver gives back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike, NDArray

from metricdp import messages
from metricdp.arrays import Floats, Integers, as_floats, as_matrix, set_fields
from metricdp.errors import Infeasible, InvalidInput, SolverFailure

SparseMatrix: TypeAlias = Any


class Status(Enum):
    """How a search ended, in words."""

    OPTIMAL = "solved as well as asked"
    STALLED = "no better one was found"
    LIMIT = "the limit of time or iterations came first"
    INTERRUPTED = messages.INTERRUPTED
    MEMORY = "memory ran out"
    INFEASIBLE = "no solution exists"
    UNBOUNDED = "the objective has no least value"
    FAILED = "the solver gave no answer"

    @property
    def usable(self) -> bool:
        """Whether there is a matrix to go on with: a limit reached is no error."""
        return self not in (Status.INFEASIBLE, Status.UNBOUNDED, Status.FAILED)


class Progress(Protocol):
    """Called as the two bounds close; a lower bound of -inf or an upper one of inf means: none yet."""

    def __call__(self, lower: float, upper: float, seconds: float, iterations: int, /) -> None: ...


@dataclass(frozen=True)
class LinearProgram:
    """minimise cost.x  subject to  row_lower <= rows x <= row_upper,  lower <= x <= upper."""

    cost: Floats
    rows: SparseMatrix
    row_lower: Floats
    row_upper: Floats
    lower: Floats
    upper: Floats

    def __post_init__(self) -> None:
        height, width = self.rows.shape
        shapes = (
            self.cost.shape,
            self.lower.shape,
            self.upper.shape,
            self.row_lower.shape,
            self.row_upper.shape,
        )
        if shapes != ((width,), (width,), (width,), (height,), (height,)):
            raise InvalidInput(
                f"a linear program with {height} rows and {width} variables needs vectors of those lengths, "
                f"got cost, lower, upper, row_lower, row_upper of shapes {shapes}."
            )


@dataclass(frozen=True)
class Edges:
    """Pairs of rows and the log ratios between them."""

    pairs: Integers
    log_ratios: Floats


@dataclass(frozen=True)
class RatioProgram:
    """minimise <cost, Z> over Z >= 0 with rows summing to 1 and columns that vary slowly along edges.

    Every listed pair (i, j) with log ratio w binds in BOTH directions:
    Z[i, k] <= exp(w) Z[j, k] and Z[j, k] <= exp(w) Z[i, k] for every column k.
    """

    cost: Floats
    edges: Integers
    log_ratios: Floats

    def __post_init__(self) -> None:
        cost = np.ascontiguousarray(as_matrix(self.cost, "cost"))
        edges = np.asarray(self.edges, dtype=np.int64).reshape(-1, 2)
        log_ratios = np.ascontiguousarray(as_floats(self.log_ratios, "log_ratios"))
        if cost.size == 0:
            raise InvalidInput(f"`cost` must have at least one row and one column, got shape {cost.shape}.")
        if log_ratios.shape != (len(edges),) or np.any(log_ratios < 0):
            raise InvalidInput(
                f"`log_ratios` must be {len(edges)} non-negative numbers, one for each edge, "
                f"got shape {log_ratios.shape}."
            )
        if edges.size and (edges.min() < 0 or edges.max() >= cost.shape[0] or np.any(edges[:, 0] == edges[:, 1])):
            raise InvalidInput(f"`edges` must join different rows from 0 to {cost.shape[0] - 1}.")
        set_fields(self, cost=cost, edges=edges, log_ratios=log_ratios)

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows (secrets) and columns (reports) the matrix has."""
        return self.cost.shape[0], self.cost.shape[1]

    def directed(self) -> tuple[Integers, Integers, Floats]:
        """Return tail, head and log ratio of all directed constraints Z[tail] <= exp(w) Z[head].

        First all edges as listed, then all of them reversed.
        """
        first, second = self.edges[:, 0], self.edges[:, 1]
        tail = np.concatenate([first, second])
        head = np.concatenate([second, first])
        return tail, head, np.concatenate([self.log_ratios, self.log_ratios])

    def to_linear(self) -> LinearProgram:
        """Return the same program over x = Z.ravel(), ratio rows scaled by 1/sqrt(1 + exp(2 w)).

        Row order: the row sums, then for every column all directed constraints.
        """
        n, m = self.shape
        tail, head, weight = self.directed()
        small, large = row_scaling(weight)
        count = len(tail)
        index = np.arange(count)
        one_column = sparse.csr_array(
            (np.concatenate([small, -large]), (np.concatenate([index, index]), np.concatenate([tail, head]))),
            shape=(count, n),
        )
        # x[i * m + k]: the ratio rows of column k use the variables k, m + k, 2 m + k, ...
        entries = one_column.tocoo()
        columns = np.arange(m)[:, None]
        ratio_rows = sparse.csr_array(
            (
                np.tile(entries.data, m),
                ((columns * count + entries.row).ravel(), (entries.col * m + columns).ravel()),
            ),
            shape=(count * m, n * m),
        )
        sums = sparse.kron(sparse.eye_array(n), np.ones((1, m)), format="csr")
        return LinearProgram(
            cost=self.cost.ravel(),
            rows=sparse.vstack([sums, ratio_rows], format="csr"),
            row_lower=np.concatenate([np.ones(n), np.full(count * m, -np.inf)]),
            row_upper=np.concatenate([np.ones(n), np.zeros(count * m)]),
            lower=np.zeros(n * m),
            upper=np.full(n * m, np.inf),
        )


@dataclass(frozen=True)
class Solution:
    """What a solver found: not yet feasible to the last digit, and never a proof.

    For a RatioProgram `primal` is the n x m matrix and `dual` has shape (2, edges, columns): the multipliers
    of Z[i] <= e^w Z[j] and of Z[j] <= e^w Z[i] for every listed edge (i, j); or shape (edges, columns) with a
    sign, negative for the second. `bound` is a lower bound that the solver proved itself, with rounding.
    For a LinearProgram `primal` is x and `dual` the multipliers of the rows (positive on a lower side).
    """

    status: Status
    primal: Floats
    dual: NDArray[Any]
    objective: float
    iterations: int
    seconds: float
    message: str = ""
    bound: float = -np.inf

    def raise_for_status(self) -> Solution:
        """Return itself, or raise what the status says: a limit reached is no error."""
        if self.status.usable:
            return self
        sentence = f"{self.status.value}: {self.message}." if self.message else f"{self.status.value}."
        raise (Infeasible if self.status is Status.INFEASIBLE else SolverFailure)(sentence)


def ratio_solution(program: RatioProgram, answer: Solution, progress: Progress | None) -> Solution:
    """Return the answer to `program.to_linear()` as one to the ratio program, and report it."""
    n, m = program.shape
    tail, _, weight = program.directed()
    small, _ = row_scaling(weight)
    dual = np.maximum(-answer.dual[n:], 0.0).reshape(m, len(tail)).T * small[:, None]
    if progress is not None:
        progress(-np.inf, answer.objective, answer.seconds, answer.iterations)
    primal = np.maximum(answer.primal, 0.0).reshape(n, m)
    return replace(answer, primal=primal, dual=dual.reshape(2, len(program.edges), m))


@dataclass(frozen=True)
class Warm:
    """Where a solver may begin: a matrix, and multipliers of the pairs as in `Solution.dual`."""

    matrix: Floats
    dual: NDArray[Any] | None = None


@runtime_checkable
class Solver(Protocol):
    """Solves ratio programs; its options are its fields, and one object serves any number of programs."""

    def solve(
        self, program: RatioProgram, /, *, warm: Warm | None = None, progress: Progress | None = None
    ) -> Solution: ...


def row_scaling(log_ratios: ArrayLike) -> tuple[Floats, Floats]:
    """Return a = 1/sqrt(1+g^2) and b = g/sqrt(1+g^2) for g = e^w, without overflow."""
    inverse = np.exp(-np.asarray(log_ratios, dtype=np.float64))
    large: Floats = 1.0 / np.sqrt(1.0 + inverse**2)
    return inverse * large, large


def unit_of(cost: Floats) -> float:
    """Return a power of two near the largest cost: in this unit tolerances mean the same whatever the costs are in."""
    largest = float(np.abs(cost).max(initial=0.0))
    return float(2.0 ** np.frexp(largest)[1]) if largest > 0.0 else 1.0


def least(first: float | None, second: float | None) -> float | None:
    """Return the smaller of two limits, where None means no limit."""
    return min((limit for limit in (first, second) if limit is not None), default=None)


@dataclass(frozen=True)
class RatioSolution:
    """A matrix that keeps all ratios, and how far it can be from the best one.

    `dual` are multipliers for `edges` that prove `lower_bound`. `status` says why the search ended, `note` is a
    sentence where the gap that was asked for was missed.
    """

    matrix: Floats
    objective: float
    lower_bound: float
    gap: float
    edges: Edges
    dual: NDArray[Any]
    method: str
    status: Status
    seconds: float
    iterations: int
    note: str = ""


def shortfall(asked: float, reached: float, why: str) -> str:
    """Return the sentence about a gap that was missed, nothing where it was reached."""
    return "" if reached <= asked else f"asked for a gap of {asked:.3g}, reached {reached:.3g}: {why}."
