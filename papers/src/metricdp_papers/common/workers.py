"""Pieces in processes of their own: as many at a time as asked for, and one that dies takes nothing with it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pickle import PicklingError
from typing import Any

from metricdp import plugins
from metricdp.errors import MetricdpError
from metricdp_papers.common.pieces import PieceRecord, failure_record, success_record
from metricdp_papers.common.shapes import Piece

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS")


def run_piece(piece: Piece) -> PieceRecord:
    """Run a piece here; whatever goes wrong in it is its record."""
    started = time.perf_counter()
    try:
        rows = piece.function(*piece.arguments)
        return success_record(piece, rows, time.perf_counter() - started)
    except MetricdpError as error:
        return failure_record(piece, str(error), time.perf_counter() - started)
    except MemoryError:
        return failure_record(piece, "it needs more memory than there is.", time.perf_counter() - started)
    except Exception as error:  # a mistake in one piece must not cost the hours of the others
        where = traceback.extract_tb(error.__traceback__)[-1]
        at = f"{os.path.basename(where.filename)}, line {where.lineno}"
        return failure_record(piece, f"{type(error).__name__}: {error} ({at})", time.perf_counter() - started)


def results(pieces: Sequence[Piece], jobs: int, *, until: float | None = None) -> Iterator[tuple[Piece, PieceRecord]]:
    """Yield every piece as it ends; after the moment `until` (of time.monotonic) no other is begun."""
    if not pieces or (until is not None and time.monotonic() >= until):
        return
    if jobs <= 1:
        for piece in pieces:
            if until is not None and time.monotonic() >= until:
                return
            yield piece, run_piece(piece)
        return
    with _worker_pool(min(jobs, len(pieces))) as crew:
        waiting = list(reversed(pieces))
        while True:
            for worker in crew:
                while worker.piece is None and waiting and (until is None or time.monotonic() < until):
                    piece = waiting.pop()
                    if refused := worker.begin(piece):
                        yield piece, failure_record(piece, f"it cannot be sent to another process: {refused}.", 0.0)
            busy = {worker.pipe: worker for worker in crew if worker.piece is not None}
            if not busy:
                return
            for pipe in wait(list(busy)):
                yield busy[pipe].end()  # type: ignore[index]


@dataclass
class _Worker:
    """A process that runs one piece after the other."""

    process: SpawnProcess
    pipe: Connection
    piece: Piece | None = None
    began: float = 0.0

    def begin(self, piece: Piece) -> str:
        """Hand over a piece; return why that is impossible, where its function or arguments have no name to go by."""
        self.piece, self.began = piece, time.perf_counter()
        try:
            with suppress(BrokenPipeError):  # it died between two pieces; `end` says so
                self.pipe.send(piece)
        except (AttributeError, TypeError, PicklingError) as error:
            self.piece = None
            return str(error)
        return ""

    def end(self) -> tuple[Piece, PieceRecord]:
        """Return the piece and what became of it; a process that is gone is replaced."""
        piece, seconds = self.piece, time.perf_counter() - self.began
        assert piece is not None
        self.piece = None
        try:
            found: Any = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join(5)
            code = self.process.exitcode
            self.pipe.close()
            self.process, self.pipe = _start_worker()
            why = "killed, perhaps for want of memory" if code == -signal.SIGKILL else f"ended with {code}"
            return piece, failure_record(piece, f"the process that ran it was {why}.", seconds)
        assert isinstance(found, PieceRecord)
        return piece, found

    def stop(self) -> None:
        with suppress(OSError):
            self.pipe.close()
        if self.piece is not None:  # nothing is lost: a piece is kept when it is whole
            self.process.terminate()
        self.process.join(5)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def _start_worker() -> tuple[SpawnProcess, Connection]:
    context = multiprocessing.get_context("spawn")  # a fork would copy the locks of running threads
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, plugins.inherited_plugins()), daemon=False)
    process.start()
    theirs.close()
    return process, ours


def _serve(pipe: Connection, names: Sequence[str]) -> None:
    """Run what comes down the pipe until nobody is at its other end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # anyone who gives the work answers an interruption
    with suppress(EOFError, OSError):
        plugins.load_inherited(names)
        while True:
            pipe.send(run_piece(pipe.recv()))


@contextmanager
def _worker_pool(count: int) -> Iterator[list[_Worker]]:
    """Start workers that share the cores, and end them whatever happens."""
    share = str(max(1, (os.cpu_count() or 1) // count))
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, share))
    crew: list[_Worker] = []
    try:
        crew.extend(_Worker(*_start_worker()) for _ in range(count))
        yield crew
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        for worker in crew:
            worker.stop()
