"""Studio, running: the service with its books, the rooms, the door, a socket on this machine, and a browser."""

from __future__ import annotations

import os
import socket
import tempfile
import webbrowser
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from metricdp.design.laplace import laplace
from metricdp.errors import OutputProblem
from metricdp.metrics import Haversine
from metricdp.service.app import Books, Settings, application
from metricdp.service.keys import make_key
from metricdp.service.limits import Limits
from metricdp.service.logs import set_up
from metricdp.service.served import Served
from metricdp.studio.app import Room, house
from metricdp.studio.auditing import AuditRoom
from metricdp.studio.budgeting import BudgetRoom
from metricdp.studio.designing import DesignRoom
from metricdp.studio.door import Door
from metricdp.studio.feeling import FeelRoom
from metricdp.studio.protecting import ProtectRoom
from metricdp.units import epsilon_for

POLICY = "40/km per day, 200/km ever"
NOISE = epsilon_for(2.0, 0.2)  # per km: what a release in the room Budget promises where no mechanism is named


@dataclass(frozen=True)
class Opening:
    """What Studio is opened with.

    Attributes:
        port: The port on this machine; 0 takes a free one.
        ledger: The books; a temporary one unless given.
        policy: What a person may spend, where books begin.
        key: The private key that signs designs; one of this session unless given.
        mechanisms: Mechanisms that the service offers, by name.
    """

    port: int = 0
    ledger: str | None = None
    policy: str = POLICY
    key: str | None = None
    mechanisms: tuple[Served, ...] = ()


class Studio:
    """All of Studio in one process: `app` answers on `socket`, and `address` opens it once."""

    def __init__(self, opening: Opening) -> None:
        self._stack = ExitStack()
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="metricdp-studio-")))
        self.socket = _bound(opening.port)
        self._stack.callback(self.socket.close)
        place = opening.ledger or str(folder / "budget.db")
        fresh = "://" not in place and not os.path.exists(place)
        token = make_key(folder / "studio.keys", "Studio", ["release", "read", "admin"])
        books = Books(place, policy=opening.policy if fresh else None)
        settings = Settings(books, str(folder / "studio.keys"), Limits(points=1_000, designs=1))
        served = list(opening.mechanisms) or [Served("laplace", laplace(Haversine(), NOISE))]
        service = application(settings, served)

        def state() -> Any:
            return service.app.state.metricdp

        rooms: list[Room] = [
            FeelRoom(), protect := ProtectRoom(), design := DesignRoom(state, token.split("_")[1], opening.key),
            AuditRoom(), BudgetRoom(state, lasting=opening.ledger is not None),
        ]  # fmt: skip
        self._stack.callback(protect.close)
        self._stack.callback(design.close)
        self.app = Door(house(rooms), service=service, key=token, port=self.socket.getsockname()[1])

    @property
    def address(self) -> str:
        """What to open, once."""
        return self.app.address

    def close(self) -> None:
        """Remove all that was kept for this session."""
        self._stack.close()


def run(opening: Opening, *, browser: bool = True) -> int:
    """Open Studio in the browser and answer until Ctrl-C."""
    import uvicorn

    set_up("warning")
    studio = Studio(opening)
    try:
        print(f"Studio is open at {studio.address}")
        print("The address works once. Ctrl-C closes Studio and removes what was dropped into it.", flush=True)
        if browser:
            webbrowser.open(studio.address)
        config = uvicorn.Config(
            studio.app, log_config=None, access_log=False, server_header=False, lifespan="on", ws="none",
            timeout_graceful_shutdown=3,
        )  # fmt: skip
        uvicorn.Server(config).run(sockets=[studio.socket])
    finally:
        studio.close()
    return 0


def _bound(port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind(("127.0.0.1", port))
    except OSError as error:
        made.close()
        raise OutputProblem(f"cannot listen on port {port} of this machine: {error.strerror or error}.") from error
    return made
