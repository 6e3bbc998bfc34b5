"""Answers as records: written by tools/service_client.py from the OpenAPI file; change the service instead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Accuracy:
    """A distance that holds the truth with probability `level`, whatever the secret is."""

    columns: tuple[str, ...]
    radius: float
    unit: str
    level: float


@dataclass(frozen=True)
class Amount:
    """What was charged or is left, exactly: millionths of epsilon per unit of the account, and of slack."""

    micro_epsilon: int
    micro_slack: int
    unit: str
    words: str


@dataclass(frozen=True)
class Guarantee:
    """`ln Pr[M(x)=y] - ln Pr[M(x')=y] <= epsilon * d(x, x') + slack`, for all x, x', y."""

    kind: Literal["pure"]
    epsilon: float
    slack: float
    parts: tuple[dict[str, Any], ...]
    unit: str
    metric: str
    p: float | Literal["infinity"] | None
    radius: float | None
    basis: Literal["theorem", "certificate", "none"]
    sentence: str


@dataclass(frozen=True)
class LimitLeft:
    """What is left under one limit of the policy."""

    limit: str
    micro_left: int
    refreshes: str | None


@dataclass(frozen=True)
class BatchPerson:
    """What one person of a batch was charged; in the order in which persons first occur."""

    rows: int
    released: int
    cost: Amount
    left: Amount
    accounts: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class ReleasedBatch:
    """One report for every row (null where the person's budget refused), and what each person was charged."""

    guarantee: Guarantee
    promise: Guarantee
    accuracy: tuple[Accuracy, ...]
    mechanism: str
    repeated: bool
    reports: tuple[dict[str, float | str] | None, ...]
    persons: tuple[BatchPerson, ...]


@dataclass(frozen=True)
class Budget:
    """What is left to a person on the accounts of a mechanism's metric."""

    mechanism: str
    account: str
    left: Amount
    cost: Amount
    accounts: tuple[dict[str, Any], ...]
    releases: int
    limits: tuple[LimitLeft, ...]


@dataclass(frozen=True)
class Job:
    """How a design stands."""

    job: str
    state: Literal["waiting", "running", "done", "failed", "cancelled"]
    message: str
    lower: float | None
    upper: float | None
    gap: float | None
    seconds: float
    certificate: dict[str, Any] | None
    guarantee: dict[str, Any] | None
    promise: dict[str, Any] | None


@dataclass(frozen=True)
class Released:
    """A report, its guarantee, its cost and what is left."""

    guarantee: Guarantee
    promise: Guarantee
    accuracy: tuple[Accuracy, ...]
    mechanism: str
    repeated: bool
    report: dict[str, float | str]
    cost: Amount
    left: Amount
    accounts: tuple[dict[str, Any], ...]
