"""Blocks as Ray actors, on this machine or on a cluster: each keeps its models warm between rounds."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from metricdp.errors import import_extra
from metricdp.solvers.benders.block import Block, BlockAnswer, ModelState
from metricdp.solvers.benders.workers import BlockRequest, BlockWorker, RemoteWorkers, WorkerLost


class RayWorkers(RemoteWorkers):
    """Ray actors. Without an address a Ray of its own is started here (and stopped at the end)."""

    def __init__(
        self,
        blocks: Sequence[Block],
        *,
        states: Mapping[int, ModelState],
        count: int | None = None,
        patience: float = 600.0,
        address: str | None = None,
    ) -> None:
        self._ray = import_extra("ray", "ray")
        self._own = not self._ray.is_initialized()
        if self._own:
            if address is None and "RAY_ADDRESS" not in os.environ:
                self._ray.init(
                    address="local",  # without it Ray would join whichever cluster last ran on this machine
                    num_cpus=max(os.cpu_count() or 1, count or 1),
                    include_dashboard=False,
                    log_to_driver=False,
                    logging_level="ERROR",
                )
            else:
                self._ray.init(address=address, log_to_driver=False, logging_level="ERROR")
        if count is None:
            count = max(1, min(len(blocks), int(self._ray.cluster_resources().get("CPU", 1))))
        # we start lost actors again ourselves, with their states: Ray alone would bring them back cold
        made = self._ray.remote(max_restarts=0, max_task_retries=0)(_Actor)
        self._actor = made.options(num_cpus=1, scheduling_strategy="SPREAD")
        super().__init__(blocks, states=states, count=count, patience=patience)
        # with a machine its processors are gone: a new worker shares those that are left
        self._actor = made.options(num_cpus=0, scheduling_strategy="SPREAD")

    def _start(self, blocks: Sequence[Block], states: Mapping[int, ModelState]) -> Any:
        return self._actor.remote(list(blocks), dict(states))

    def _submit(self, handle: Any, request: BlockRequest) -> Any:
        return handle.answer.remote(request)

    def _receive(self, ticket: Any, seconds: float) -> BlockAnswer:
        errors = self._ray.exceptions
        try:
            answer: BlockAnswer = self._ray.get(ticket, timeout=seconds)
        except errors.RayTaskError:
            raise  # the worker is well, its block is not
        except errors.RayError as error:
            # the process died, its machine or the connection is gone, or it was too slow
            raise WorkerLost((str(error) or repr(error)).splitlines()[0]) from error
        return answer

    def _stop(self, handle: Any) -> None:
        self._ray.kill(handle)

    def pids(self) -> list[int]:
        """Return the process number of every actor."""
        return [int(pid) for pid in self._ray.get([handle.pid.remote() for handle in self._handles])]

    def close(self) -> None:
        super().close()
        if self._own:
            self._ray.shutdown()


class _Actor:
    """A desk in a process of its own."""

    def __init__(self, blocks: Sequence[Block], states: Mapping[int, ModelState]) -> None:
        self._block_worker = BlockWorker(blocks, states)

    def answer(self, request: BlockRequest) -> BlockAnswer:
        return self._block_worker.answer(request)

    def pid(self) -> int:
        return os.getpid()
