"""What tests of the books share: a clock set by hand, a real PostgreSQL server, and a short way to ask."""

from __future__ import annotations

import datetime
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOON = datetime.datetime(2026, 11, 16, 12, tzinfo=datetime.UTC).timestamp()
HOUR, DAY = 3600.0, 86400.0
BINARIES = Path("/usr/lib/postgresql")


class Clock:
    """A clock that is set by hand."""

    def __init__(self, now: float = NOON) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def ask(ledger, person, request, epsilon=10.0, *, draw=lambda: b"report", **options):
    """Release in the metric of the Earth for one app."""
    options = {"key": "app", "metric": "haversine/km"} | options
    return ledger.release(person, request, epsilon=epsilon, draw=draw, **options)


def fork() -> int:
    """Fork; later Pythons warn where there are threads, and the children here only use what they open themselves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def quick_folder() -> str | None:
    """A folder in memory where there is one: tests of what is right need no disk."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def postgres() -> str | None:
    """The folder of PostgreSQL's programs, None where it is not installed."""
    found = shutil.which("initdb")
    folders = [Path(os.path.realpath(found)).parent] if found else []
    folders += sorted(BINARIES.glob("*/bin"), reverse=True)
    return next((str(folder) for folder in folders if (folder / "postgres").exists()), None)


def _as_nobody_special() -> list[str]:
    """How to run the server's programs, which refuse root."""
    if os.geteuid():
        return []
    return ["setpriv", f"--reuid={_user().pw_uid}", f"--regid={_user().pw_gid}", "--clear-groups"]


def _user() -> pwd.struct_passwd:
    names = {one.pw_name for one in pwd.getpwall()}
    return pwd.getpwnam("postgres" if "postgres" in names else "nobody")


class Server:
    """A PostgreSQL server of one's own on a free local port; it may be stopped hard and started again."""

    def __init__(self, folder: Path, *, disk: bool = False) -> None:
        self.folder, self.disk = folder, disk  # kills of processes need no disk: what they wrote is the system's
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]

    @property
    def url(self) -> str:
        return f"postgresql://tester@127.0.0.1:{self.port}/postgres"

    def run(self, *words: str) -> None:
        program = f"{postgres()}/{words[0]}"
        subprocess.run(
            [*_as_nobody_special(), program, *words[1:]], check=True, capture_output=True, cwd="/", timeout=60
        )

    def make(self) -> None:
        if not os.geteuid():
            os.chown(self.folder, _user().pw_uid, _user().pw_gid)
        self.run("initdb", "-D", str(self.folder / "data"), "-U", "tester", "-A", "trust", "--no-sync")

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c max_connections=60"
        options += "" if self.disk else " -c fsync=off -c full_page_writes=off"
        log = str(self.folder / "log")
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-o", options, "-l", log, "-w", "start")

    def stop(self, how: str = "fast") -> None:
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-m", how, "-w", "stop")

    def fresh(self, name: str) -> str:
        """Make an empty database and return its address."""
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        return f"postgresql://tester@127.0.0.1:{self.port}/{name}"


@contextmanager
def server(*, disk: bool = False) -> Iterator[Server]:
    """A running server in a folder of its own, gone afterwards; with `disk` its commits wait for the disk."""
    folder = Path(tempfile.mkdtemp(prefix="metricdp-postgres-"))
    folder.chmod(0o755)
    its = Server(folder, disk=disk)
    try:
        its.make()
        its.start()
        yield its
    finally:
        if (folder / "data" / "postmaster.pid").exists():
            its.stop("immediate")
        shutil.rmtree(folder, ignore_errors=True)
