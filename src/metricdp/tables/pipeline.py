"""Batches through the kernel on several threads, in their order and in constant memory."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pyarrow as pa

from metricdp.randomness import Randomness, fresh_stream
from metricdp.tables.kernel import Protected, picked, protect
from metricdp.tables.task import Task

THREADS = max(1, min(4, os.cpu_count() or 1))  # the kernel spends its time in compiled code that shares the interpreter


def protected_in_order(
    batches: Iterable[pa.RecordBatch], task: Task, rng: Randomness = None
) -> Iterator[tuple[pa.RecordBatch, Protected]]:
    """Yield every batch with its reports.

    Every batch draws from a cryptographic stream of its own. Randomness that was passed in is used batch by batch.
    """
    first = 0
    if rng is not None:
        for batch in batches:
            yield batch, protect(picked(batch, task), task, rng=rng, first_row=first)
            first += batch.num_rows
        return

    def work(batch: pa.RecordBatch, row: int) -> Protected:
        return protect(picked(batch, task), task, rng=fresh_stream(), first_row=row)

    waiting: deque[tuple[pa.RecordBatch, Future[Protected]]] = deque()
    pool = ThreadPoolExecutor(THREADS, thread_name_prefix="metricdp")
    try:
        for batch in batches:
            waiting.append((batch, pool.submit(work, batch, first)))
            first += batch.num_rows
            if len(waiting) > THREADS:
                done, future = waiting.popleft()
                yield done, future.result()
        while waiting:
            done, future = waiting.popleft()
            yield done, future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
