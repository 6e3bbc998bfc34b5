"""Pieces in processes of their own: as many at a time as asked for, and one that dies takes nothing with it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager

from metricdp import plugins
from metricdp.errors import MetricdpError
from metricdp_papers.common.pieces import PieceRecord, piece_record
from metricdp_papers.common.shapes import Piece

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS")


def run_piece(piece: Piece) -> PieceRecord:
    """Run a piece here; whatever goes wrong in it is its record."""
    started = time.perf_counter()
    try:
        return piece_record(piece, started, piece.function(*piece.arguments))
    except MetricdpError as error:
        failure = str(error)
    except MemoryError:
        failure = "it needs more memory than there is."
    except Exception as error:  # a mistake in one piece must not cost the hours of the others
        where = traceback.extract_tb(error.__traceback__)[-1]
        failure = f"{type(error).__name__}: {error} ({os.path.basename(where.filename)}, line {where.lineno})"
    return piece_record(piece, started, failure=failure)


def results(pieces: Sequence[Piece], jobs: int, *, until: float | None = None) -> Iterator[tuple[Piece, PieceRecord]]:
    """Yield every piece as it ends; after the moment `until` (of time.monotonic) no other is begun."""
    waiting = list(reversed(pieces))

    def next_piece() -> Piece | None:
        return waiting.pop() if waiting and (until is None or time.monotonic() < until) else None

    if jobs <= 1:
        while piece := next_piece():
            yield piece, run_piece(piece)
        return
    with _workers(min(jobs, len(pieces))) as workers:
        running: dict[Future[PieceRecord], tuple[int, Piece, float]] = {}
        free = list(range(len(workers)))
        while True:
            while free and (piece := next_piece()):
                number = free.pop()
                running[workers[number].submit(run_piece, piece)] = number, piece, time.perf_counter()
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                number, piece, started = running.pop(future)
                if isinstance(future.exception(), BrokenProcessPool):
                    _stop(workers[number])
                    workers[number] = _start()
                free.append(number)
                yield piece, _answer(piece, future, started)


def _answer(piece: Piece, future: Future[PieceRecord], started: float) -> PieceRecord:
    """Return what a worker sent back; where it could not, the record says why."""
    error = future.exception()
    if error is None:
        return future.result()
    if isinstance(error, BrokenProcessPool):
        return piece_record(piece, started, failure="the process that ran it was killed, perhaps for want of memory.")
    return piece_record(piece, started, failure=f"it cannot be sent to another process: {error}.")


def _start() -> ProcessPoolExecutor:
    """Start one process: a death breaks its executor alone. A fork would copy the locks of running threads."""
    names = plugins.inherited_plugins()
    return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), initializer=_prepare, initargs=(names,))


def _prepare(names: Sequence[str]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that gives the work answers an interruption
    plugins.load_inherited(names)


def _stop(worker: ProcessPoolExecutor) -> None:
    for process in list((worker._processes or {}).values()):
        process.kill()  # nothing is lost: a piece is kept when it is whole
    worker.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _workers(count: int) -> Iterator[list[ProcessPoolExecutor]]:
    """Start workers that share the cores, and end them whatever happens."""
    before = {name: os.environ[name] for name in THREADS if name in os.environ}
    os.environ.update(dict.fromkeys(THREADS, str(max(1, (os.cpu_count() or 1) // max(1, count)))))
    workers = [_start() for _ in range(count)]
    try:
        yield workers
    finally:
        for name in THREADS:
            os.environ.pop(name, None)
        os.environ.update(before)
        for worker in workers:
            _stop(worker)
