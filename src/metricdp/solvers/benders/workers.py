"""Who solves the blocks: threads here, processes, or (in `ray_workers`) actors on a cluster.

Every block lives in one worker that keeps its model warm. A worker may die, be cut off or hang: it is started again,
its blocks get back the rows and the basis they last reported, and the lost requests are sent again.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures import TimeoutError as WaitedTooLong
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any, Protocol

from metricdp import deadlines
from metricdp.arrays import Floats
from metricdp.errors import SolverFailure, TimeUp
from metricdp.solvers.benders.block import Block, BlockAnswer, ModelState, Subproblem

RESTARTS = 20  # in one round, over all workers


@dataclass(frozen=True)
class BlockRequest:
    """One block to solve for one boundary."""

    block: int
    boundary: Floats
    keep_state: bool
    seconds: float | None = None  # how long it may take: the clocks of the two processes differ


class Workers(Protocol):
    """Solves blocks for given boundaries."""

    def solve(self, boundaries: Mapping[int, Floats], *, keep_states: bool) -> dict[int, BlockAnswer]:
        """Return the answer of every block asked."""

    def close(self) -> None: ...


class BlockWorker:
    """The blocks one worker holds, each with its warm model."""

    def __init__(self, blocks: Sequence[Block], states: Mapping[int, ModelState]) -> None:
        self._blocks = {block.number: block for block in blocks}
        self._states = dict(states)
        self._models: dict[int, Subproblem] = {}

    def answer(self, request: BlockRequest) -> BlockAnswer:
        """Return the answer; `TimeUp` where that takes longer than the request allows."""
        with deadlines.time_limit(request.seconds):
            return self._answer(request)

    def _answer(self, request: BlockRequest) -> BlockAnswer:
        if request.block not in self._models:
            state = self._states.pop(request.block, None)
            self._models[request.block] = Subproblem(self._blocks[request.block], state)
        return self._models[request.block].solve(request.boundary, keep_state=request.keep_state)


class LocalWorkers:
    """Threads in this process; HiGHS runs outside the interpreter's lock."""

    def __init__(self, blocks: Sequence[Block], *, states: Mapping[int, ModelState], count: int | None = None) -> None:
        self._block_worker = BlockWorker(blocks, states)
        size = min(len(blocks), os.cpu_count() or 1) if count is None else count
        self._pool = ThreadPoolExecutor(max_workers=max(1, size))

    def solve(self, boundaries: Mapping[int, Floats], *, keep_states: bool) -> dict[int, BlockAnswer]:
        requests = [BlockRequest(b, rows, keep_states, deadlines.cap_seconds()) for b, rows in boundaries.items()]
        return {answer.block: answer for answer in self._pool.map(self._block_worker.answer, requests)}

    def close(self) -> None:
        self._pool.shutdown()


class WorkerLost(Exception):
    """A worker died or did not answer in time."""


class RemoteWorkers:
    """What processes and actors share: who holds which block, saved states, and starting again what was lost."""

    def __init__(
        self,
        blocks: Sequence[Block],
        *,
        states: Mapping[int, ModelState],
        count: int | None = None,
        patience: float = 600.0,
    ) -> None:
        size = max(1, min(len(blocks), os.cpu_count() or 1) if count is None else count)
        self._patience = patience
        self._states: dict[int, ModelState] = dict(states)
        self.restarts = 0
        self._held: list[list[Block]] = [list(blocks[w::size]) for w in range(size)]
        self._worker_of = {block.number: w for w, held in enumerate(self._held) for block in held}
        self._handles: list[Any] = [self._start(held, self._first_states(held)) for held in self._held]

    def solve(self, boundaries: Mapping[int, Floats], *, keep_states: bool) -> dict[int, BlockAnswer]:
        """Return all answers; states are kept here in any case, for workers that die."""
        answers: dict[int, BlockAnswer] = {}
        pending = {b: self._send(b, rows) for b, rows in boundaries.items()}
        patience, restarts_left = self._patience, RESTARTS
        while pending:
            block = next(iter(pending))
            try:
                answer = self._receive(pending[block], min(patience, max(deadlines.seconds_left(), 0.01)))
            except WorkerLost as reason:
                if deadlines.seconds_left() <= 0.0:
                    raise TimeUp("the blocks were not solved before the limit.") from reason
                restarts_left -= 1
                if restarts_left < 0:
                    raise SolverFailure(
                        f"workers were lost {RESTARTS} times in one round, last: {reason}. "
                        "Check memory and the machines."
                    ) from reason
                patience *= 2.0  # what was slow may only be large
                self._restart(self._worker_of[block])
                again = [b for b in pending if self._worker_of[b] == self._worker_of[block]]
                pending.update({b: self._send(b, boundaries[b]) for b in again})
                continue
            del pending[block]
            answers[block] = answer
            if answer.state is not None:
                self._states[block] = answer.state
        return answers

    def _first_states(self, held: Sequence[Block]) -> dict[int, ModelState]:
        return {block.number: self._states[block.number] for block in held if block.number in self._states}

    def _restart(self, worker: int) -> None:
        self.restarts += 1
        self._stop(self._handles[worker])
        held = self._held[worker]
        self._handles[worker] = self._start(held, self._first_states(held))

    def _send(self, block: int, rows: Floats) -> Any:
        request = BlockRequest(block, rows, True, deadlines.cap_seconds())
        return self._submit(self._handles[self._worker_of[block]], request)

    def close(self) -> None:
        for handle in self._handles:
            self._stop(handle)

    def _start(self, blocks: Sequence[Block], states: Mapping[int, ModelState]) -> Any:
        raise NotImplementedError

    def _submit(self, handle: Any, request: BlockRequest) -> Any:
        raise NotImplementedError

    def _receive(self, ticket: Any, seconds: float) -> BlockAnswer:
        """Return the answer or raise WorkerLost."""
        raise NotImplementedError

    def _stop(self, handle: Any) -> None:
        raise NotImplementedError


_block_worker: BlockWorker | None = None  # of this process, where it is a worker


def _start_block_worker(blocks: Sequence[Block], states: Mapping[int, ModelState]) -> None:
    global _block_worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent process decides
    _block_worker = BlockWorker(blocks, states)


def _answer(request: BlockRequest) -> BlockAnswer:
    if _block_worker is None:
        raise SolverFailure("this process was not prepared as a worker.")
    return _block_worker.answer(request)


class ProcessWorkers(RemoteWorkers):
    """One process for each worker, so that a block always meets its own warm model."""

    def _start(self, blocks: Sequence[Block], states: Mapping[int, ModelState]) -> ProcessPoolExecutor:
        context = multiprocessing.get_context("spawn")  # a fork would copy the locks of running threads
        return ProcessPoolExecutor(
            max_workers=1, mp_context=context, initializer=_start_block_worker, initargs=(list(blocks), dict(states))
        )

    def _submit(self, handle: ProcessPoolExecutor, request: BlockRequest) -> Future[BlockAnswer] | BaseException:
        try:
            return handle.submit(_answer, request)
        except BrokenProcessPool as error:
            return error  # told when the answer is asked for

    def _receive(self, ticket: Future[BlockAnswer] | BaseException, seconds: float) -> BlockAnswer:
        if isinstance(ticket, BaseException):
            raise WorkerLost(str(ticket)) from ticket
        try:
            return ticket.result(timeout=seconds)
        except (BrokenProcessPool, WaitedTooLong) as error:
            raise WorkerLost(repr(error)) from error

    def _stop(self, handle: ProcessPoolExecutor) -> None:
        for process in list((handle._processes or {}).values()):
            process.kill()  # a stopped process would not hear a gentler signal
        handle.shutdown(wait=True, cancel_futures=True)

    def pids(self) -> list[int]:
        """Return the process number of every worker that runs."""
        return [int(pid) for handle in self._handles for pid in (handle._processes or {})]
