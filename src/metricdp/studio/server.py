"""A running Studio: the service with its ledger, the panels, access checks, a socket, and a browser."""

from __future__ import annotations

import os
import signal
import socket
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from metricdp.design.laplace import laplace
from metricdp.errors import OutputProblem
from metricdp.files import is_server
from metricdp.metrics import Haversine
from metricdp.service.app import LedgerSettings, Settings, application
from metricdp.service.keys import make_key
from metricdp.service.limits import ServiceLimits
from metricdp.service.logs import set_up
from metricdp.service.served_mechanisms import ServedMechanism
from metricdp.studio.auth import StudioAuth
from metricdp.studio.budget import BudgetPanel
from metricdp.studio.design import AuditPanel, DesignPanel
from metricdp.studio.feel import FeelPanel
from metricdp.studio.protect import ProtectPanel
from metricdp.studio.sessions import GRACE, Pages, SessionFolder, remove_orphans
from metricdp.studio.web import page, panel_application
from metricdp.units import epsilon_for

POLICY = "40/km per day, 200/km ever"
NOISE = epsilon_for(2.0, 0.2)  # per km: of a release in the panel Budget where no mechanism is named
# signals that end a process unless it listens: Ctrl-\ in a terminal, limits of time, timers, other programs
ENDING = (
    "SIGQUIT", "SIGTRAP", "SIGABRT", "SIGALRM", "SIGVTALRM", "SIGPROF", "SIGUSR1", "SIGUSR2", "SIGXCPU", "SIGPWR",
    "SIGIO", "SIGSTKFLT", "SIGSYS",
)  # fmt: skip


@dataclass(frozen=True)
class StudioOptions:
    """What Studio is opened with.

    Attributes:
        port: The port on this machine; 0 takes a free one.
        ledger: The ledger; a temporary one unless given.
        policy: What a person may spend, for a new ledger.
        key: The private key that signs designs; one of this session unless given.
        mechanisms: Mechanisms that the service offers, by name.
    """

    port: int = 0
    ledger: str | None = None
    policy: str = POLICY
    key: str | None = None
    mechanisms: tuple[ServedMechanism, ...] = ()


class Studio:
    """All of Studio in one process: `app` answers on `socket`, and `address` opens it once.

    Args:
        opening: What it is opened with.
        ended: Is called when the last page was closed.
        grace: How many seconds after it went a page counts as closed.
    """

    def __init__(
        self, options: StudioOptions, *, ended: Callable[[], None] = lambda: None, grace: float = GRACE
    ) -> None:
        with ExitStack() as stack:  # what was begun ends if the rest cannot be begun
            session = SessionFolder()
            stack.callback(session.close)
            self.folder = session.path
            self.socket = _bind(options.port)
            stack.callback(self.socket.close)
            place = options.ledger or str(self.folder / "budget.db")
            fresh = not is_server(place) and not os.path.exists(place)
            token = make_key(self.folder / "studio.keys", "Studio", ["release", "read", "admin"])
            ledger_settings = LedgerSettings(place, policy=options.policy if fresh else None)
            limits = ServiceLimits(points=1_000, designs=1)
            settings = Settings(ledger_settings, str(self.folder / "studio.keys"), limits, str(self.folder / "jobs"))
            served = list(options.mechanisms) or [ServedMechanism("laplace", laplace(Haversine(), NOISE))]
            service = application(settings, served)

            def state() -> Any:
                return service.app.state.metricdp

            protect = ProtectPanel(session.part("files"))
            panels = (
                FeelPanel(), protect, DesignPanel(state, token.split("_")[1], session.part("keys"), options.key),
                AuditPanel(session.part("audits")), BudgetPanel(state, lasting=options.ledger is not None),
                Pages(protect.forget_page, ended, grace=grace),
            )  # fmt: skip
            stack.callback(protect.close)
            self.auth = StudioAuth(
                page=page(),
                panels=panel_application([route for panel in panels for route in panel.routes()]),
                service=service,
                key=token,
                port=self.socket.getsockname()[1],
            )
            self._stack = stack.pop_all()

    @property
    def address(self) -> str:
        """What to open, once."""
        return self.auth.address

    def close(self) -> None:
        """Remove all files of this session."""
        self._stack.close()


def run(options: StudioOptions, *, browser: bool = True) -> int:
    """Open Studio in the browser and answer until it is ended: in its terminal, by a signal, or with its last page."""
    import uvicorn

    set_up("warning")
    with _end_on_signals(), ExitStack() as stack:
        left = remove_orphans()
        if left:
            print(f"Removed what {left} {'sessions' if left > 1 else 'session'} of Studio left that had been killed.")

        def ended() -> None:
            server.should_exit = True
            with suppress(OSError):  # the terminal may be gone
                print("The page was closed: Studio ends.", flush=True)

        studio = Studio(options, ended=ended)
        stack.callback(_run_undisturbed, studio.close)
        stack.enter_context(_temporary_files_in(studio.folder))
        print(f"Studio is open at {studio.address}")
        print(
            "The address opens one page, once. Ctrl-C, a closed page or a closed terminal ends Studio and removes what "
            "was dropped into it."
        )
        print(
            f"Only kill -9, a crash or a power cut leaves it, in {str(studio.folder)!r}: the next `metricdp studio` "
            "removes it.",
            flush=True,
        )
        config = uvicorn.Config(
            studio.auth, log_config=None, access_log=False, server_header=False, lifespan="on", ws="none",
            timeout_graceful_shutdown=3,
        )  # fmt: skip
        server = uvicorn.Server(config)
        if browser:
            webbrowser.open(studio.address)
        server.run(sockets=[studio.socket])
    return 0


@contextmanager
def _end_on_signals() -> Iterator[None]:
    """Let every signal that can be heard end this process as Ctrl-C does: what has to be removed is removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: FrameType | None) -> NoReturn:
        sys.exit(128 + number)

    def pass_on(number: int, frame: FrameType | None) -> None:
        signal.raise_signal(signal.SIGTERM)  # the server hears this one, and ends its requests first

    before: dict[int, Any] = {signal.SIGTERM: signal.signal(signal.SIGTERM, end)}
    for number in _signals("SIGHUP", *ENDING):
        if signal.getsignal(number) != signal.SIG_IGN:  # ignored on purpose: SIGHUP under nohup
            before[number] = signal.signal(number, pass_on)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _run_undisturbed(work: Callable[[], None]) -> None:
    """Do the work to its end: a second Ctrl-C or signal must not stop what removes secrets."""
    if threading.current_thread() is threading.main_thread():
        for number in _signals("SIGINT", "SIGTERM", "SIGHUP", *ENDING):
            signal.signal(number, signal.SIG_IGN)
    work()


def _signals(*names: str) -> list[int]:
    """Return the signals of these names that this system has, and its real-time ones, which end a process too."""
    first, last = getattr(signal, "SIGRTMIN", 1), getattr(signal, "SIGRTMAX", 0)
    return [*(int(getattr(signal, name)) for name in names if hasattr(signal, name)), *range(first, last + 1)]


@contextmanager
def _temporary_files_in(folder: Path) -> Iterator[None]:
    """Have everything that this process and its helpers write for a while lie in the folder of the session."""
    before, named = tempfile.tempdir, os.environ.get("TMPDIR")
    tempfile.tempdir = os.environ["TMPDIR"] = str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before
        os.environ.pop("TMPDIR")
        if named is not None:
            os.environ["TMPDIR"] = named


def _bind(port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind(("127.0.0.1", port))
        made.listen()  # a browser that is quicker than the rest of Studio waits
    except OSError as error:
        made.close()
        raise OutputProblem(f"cannot listen on port {port} of this machine: {error.strerror or error}.") from error
    return made
