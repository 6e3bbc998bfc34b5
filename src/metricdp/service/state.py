"""What one process of the service has at hand, and where the endpoints find it."""

from __future__ import annotations

import asyncio
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, cast

from starlette.requests import Request

from metricdp.ledger import Ledger
from metricdp.service.auth import KEY
from metricdp.service.commits import CommitQueue
from metricdp.service.counters import Counters
from metricdp.service.jobs import DesignJobs
from metricdp.service.limits import ServiceLimits
from metricdp.service.served_mechanisms import MechanismRegistry
from metricdp.service.workers import WorkerPool


@dataclass
class ServiceState:
    """The mechanisms, the ledger and those who work for one process."""

    registry: MechanismRegistry
    ledger: Ledger
    limits: ServiceLimits
    counters: Counters
    commits: CommitQueue
    jobs: DesignJobs
    auditing: WorkerPool  # where audits run
    reading: WorkerPool  # where large bodies are parsed
    threads: ThreadPoolExecutor
    batches: int = 0  # at work
    checked_at: tuple[float, bool] = (-math.inf, False)  # when the ledger was last checked, and whether it answered
    stopping: asyncio.Event = field(default_factory=asyncio.Event)

    def ask_ledger(self) -> None:
        """Read from the ledger, or raise: the account of somebody who cannot be a person, since names are not empty."""
        first = next(iter(self.registry))
        self.ledger.budget(b"\0", metric=first.guarantee.metric, dimension=first.dimension)


def state_of(request: Request) -> ServiceState:
    """Return what the process has at hand."""
    return cast(ServiceState, cast(Any, request.app).state.metricdp)


def key_of(request: Request) -> str:
    """Return the client that asks, by the id of its first key, which `auth` has looked at."""
    return str(request.scope[KEY])
