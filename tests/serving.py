"""A service for tests: a real server on a port of its own, in a thread of this process."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import uvicorn

import metricdp as mdp
from metricdp.service import (
    LedgerSettings,
    ListenOptions,
    ServedMechanism,
    ServiceLimits,
    Settings,
    application,
    configuration,
    make_key,
)

POINTS = [[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [3.0, 1.0]]
WORDS = ["quillfeather", "brontolite", "marzipanoply"]


def mechanisms() -> list[ServedMechanism]:
    """Return one of every sort: noise on the Earth, cells, words, and a product of both."""
    cells = mdp.FiniteSpace(POINTS, mdp.Lp(2), columns=["x", "y"])
    words = mdp.FiniteSpace([[0.0], [1.0], [3.0]], mdp.Lp(1), coordinates=WORDS, columns=["word"])
    return [
        ServedMechanism("earth", mdp.laplace(mdp.Haversine(), 10.0)),
        ServedMechanism("cells", mdp.exponential(cells, 1.0), snap=0.25),
        ServedMechanism("words", mdp.exponential(words, 2.0)),
        ServedMechanism("both", mdp.product(mdp.exponential(cells, 1.0), mdp.exponential(words, 1.0))),
    ]


@dataclass
class Running:
    """A service that runs: where it is, the tokens of its keys, and its folder."""

    url: str
    folder: Path
    tokens: dict[str, str]

    def client(self, scope: str | None = "all") -> httpx.Client:
        """Return a client with the key of a scope; None has no key."""
        headers = {} if scope is None else {"authorization": f"Bearer {self.tokens[scope]}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=30.0)

    def post(self, path: str, body: Any, scope: str | None = "all") -> httpx.Response:
        with self.client(scope) as client:
            return client.post(path, json=body)


@contextmanager
def service(
    folder: Path,
    *,
    policy: str,
    limits: ServiceLimits | None = None,
    place: str = "",
    served: list[ServedMechanism] | None = None,
) -> Iterator[Running]:
    """Run a service on books of its own until the block ends."""
    path = folder / "service.keys"
    tokens = {scope: make_key(path, scope, [scope]) for scope in ("release", "read", "admin")}
    tokens["all"] = make_key(path, "all", ["release", "read", "admin"])
    books = LedgerSettings(place or str(folder / "budget.db"), policy)
    settings = Settings(books, str(path), limits=limits or ServiceLimits(rate=0), jobs=str(folder / "jobs"))
    app = application(settings, served or mechanisms())
    door = ListenOptions(port=0)
    bound = door.bound_socket()
    config = configuration(app, door, settings.limits)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([bound],), daemon=True)
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    thread.start()
    for _ in range(2000):
        if server.started or not thread.is_alive():
            break
        time.sleep(0.01)
    assert server.started
    try:
        yield Running(f"http://127.0.0.1:{bound.getsockname()[1]}", folder, tokens)
    finally:
        server.should_exit = True
        thread.join(20)
        bound.close()


def uniform(count: int, seed: int = 0) -> list[dict[str, float]]:
    """Return places in a town."""
    rng = np.random.default_rng(seed)
    return [
        {"lat": float(lat), "lon": float(lon)}
        for lat, lon in zip(rng.uniform(41, 42, count), rng.uniform(12, 13, count), strict=True)
    ]
