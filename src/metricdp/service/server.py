"""Running the service: the socket, TLS, one process or several, and a stop that finishes what was charged."""

from __future__ import annotations

import ipaddress
import signal
import socket
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from metricdp.errors import InvalidInput, OutputProblem, import_extra
from metricdp.files import existing_file
from metricdp.service import logs
from metricdp.service.limits import LARGEST_HEAD, ServiceLimits

# How long one thread may keep the interpreter while another waits. Every answer that is sent lets go of it for a
# moment; with Python's 5 ms the thread that commits would keep it each time, and answers would leave one in 5 ms.
SWITCH = 0.0002
GRACE = 30  # seconds that requests at work have to end
KEEPALIVE_SECONDS = 15  # seconds that a connection without a request stays open


@dataclass(frozen=True)
class MechanismSpec:
    """One mechanism to serve: a file, or Laplace noise at an epsilon under a metric.

    `snap` is a number in the unit of the mechanism's distances, or a text with its unit, such as `200m`.
    """

    name: str
    path: str | None = None
    trusted: str | None = None
    epsilon: float = 0.0
    metric: Any = None
    snap: float | str = 0.0

    def load(self) -> Any:
        """Load it, verified."""
        from metricdp.service.served_mechanisms import ServedMechanism

        if self.path is None:
            from metricdp.design.laplace import laplace
            from metricdp.metrics import points_are

            dimension = None if points_are(self.metric, "degrees") else 2
            return ServedMechanism(self.name, laplace(self.metric, self.epsilon, dimension=dimension))
        from metricdp.artifacts import inspect
        from metricdp.mechanisms.kinds.product import parts_of
        from metricdp.units import parse_distance

        found = inspect(self.path, trusted=self.trusted)
        made = found.mechanism
        finite = any(part.inputs.size is not None and not part.inputs.is_text for part in parts_of(made))
        snap = 0.0 if not finite else self.snap
        if isinstance(snap, str):
            snap = parse_distance(snap, made.inputs.ground.unit, option="snap")
        return ServedMechanism(self.name, made, snap=snap, sha256=found.sha256)


@dataclass(frozen=True)
class ListenOptions:
    """Where the service is reached, and how.

    Attributes:
        host: The address it is bound to; other machines reach the service only if this names one of them.
        port: The port; 0 takes a free one.
        certificate: A PEM file with the certificate chain, for TLS.
        private_key: The PEM file of its key.
        behind_proxy: A proxy in front speaks TLS: other addresses than this machine's are allowed without it.
        processes: How many processes; more than one needs PostgreSQL.
    """

    host: str = "127.0.0.1"
    port: int = 8484
    certificate: str | None = None
    private_key: str | None = None
    behind_proxy: bool = False
    processes: int = 1

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.private_key is None):
            raise InvalidInput("--certificate and --private-key belong together.")
        for path in (self.certificate, self.private_key):
            if path is not None:
                existing_file(path, "PEM file")
        if not 0 <= self.port <= 65_535:
            raise InvalidInput(f"--port must lie between 0 and 65535, got {self.port}.")
        if not 1 <= self.processes <= 256:
            raise InvalidInput(f"--processes must lie between 1 and 256, got {self.processes}.")
        if not (_is_local(self.host) or self.certificate or self.behind_proxy):
            raise InvalidInput(
                f"{self.host!r} can be reached by other machines, and without TLS everybody on the way could read "
                "secrets and keys: name --certificate and --private-key, or say --behind-proxy if one speaks TLS."
            )

    def bound_socket(self) -> socket.socket:
        """Return a socket that is bound, so that an address in use is said before anything is loaded."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        # Named as TCP: only then asyncio sends what is written at once; else the end of every answer waits 40 ms.
        made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((self.host, self.port))
        except OSError as error:
            made.close()
            raise OutputProblem(f"cannot listen on {self.host} port {self.port}: {error.strerror or error}.") from error
        made.set_inheritable(True)
        return made

    def address(self, bound_socket: socket.socket) -> str:
        """Return what to type."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'s' if self.certificate else ''}://{host}:{bound_socket.getsockname()[1]}"


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@dataclass(frozen=True)
class ApplicationFactory:
    """Makes the application inside each process; it travels there."""

    settings: Any
    offers: tuple[MechanismSpec, ...]
    processes: int = 1
    counters: str = ""
    level: str = "info"

    def __call__(self) -> Any:
        logs.set_up(self.level)
        sys.setswitchinterval(SWITCH)
        if self.counters:
            from metricdp.service.counters import share_folder

            share_folder(self.counters)
        from metricdp.service.app import application

        settings = replace(self.settings, limits=self.settings.limits.per_process(self.processes))
        return application(settings, [offer.load() for offer in self.offers])


def configuration(app: Any, listen: ListenOptions, limits: ServiceLimits, *, processes: int = 1) -> Any:
    """Return how uvicorn runs an application or a factory: it logs nothing and names itself in no answer."""
    uvicorn = import_extra("uvicorn", "service")
    return uvicorn.Config(
        app,
        factory=isinstance(app, ApplicationFactory),
        interface="asgi3",
        http="metricdp.service.protocol:PatientProtocol",
        ws="none",
        loop="asyncio",
        lifespan="on",
        workers=processes,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=limits.connections,
        timeout_keep_alive=KEEPALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE,
        h11_max_incomplete_event_size=LARGEST_HEAD,
        ssl_certfile=listen.certificate,
        ssl_keyfile=listen.private_key,
    )


def serve(factory: ApplicationFactory, listen: ListenOptions, bound_socket: socket.socket) -> int:
    """Serve until a signal comes; requests that are at work are finished first."""
    uvicorn = import_extra("uvicorn", "service")
    limits: ServiceLimits = factory.settings.limits.per_process(factory.processes)
    if factory.processes == 1:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)  # uvicorn hears them, and raises them again when all is answered
        uvicorn.Server(configuration(factory, listen, limits)).run(sockets=[bound_socket])
        return 0
    from uvicorn.supervisors import Multiprocess

    logs.set_up(factory.level)
    with tempfile.TemporaryDirectory(prefix="metricdp-service-") as folder:
        Path(folder, "counters").mkdir()
        # One folder of designs for all processes: whichever is asked finds them.
        settings = replace(factory.settings, jobs=factory.settings.jobs or f"{folder}/jobs")
        shared = replace(factory, settings=settings, counters=f"{folder}/counters")
        Multiprocess(configuration(shared, listen, limits, processes=factory.processes), sockets=[bound_socket]).run()
    return 0
