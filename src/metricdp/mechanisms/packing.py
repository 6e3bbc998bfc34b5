"""Sparse rows as they lie in files: two bytes a report, and how many reports of every block a row has.

Reports are cut into blocks of 65,536. A row stores the numbers of its reports within their blocks, in order, and
`lengths` says how many it has of every block: one number a row up to 65,536 reports.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metricdp.arrays import Integers
from metricdp.errors import InvalidInput
from metricdp.mechanisms.base import Certificate, Stakes
from metricdp.mechanisms.local import LocalMechanism
from metricdp.mechanisms.local_rows import row_chunks
from metricdp.spaces import FiniteSpace

BLOCK = 1 << 16


def packed(mechanism: LocalMechanism) -> Mapping[str, Any]:
    """Return the fields of a mechanism as a file holds them."""
    starts, columns = mechanism.starts, mechanism.columns
    blocks = _blocks(len(mechanism.outputs))
    lengths = np.empty((len(starts) - 1, blocks), dtype=np.int64)
    for first, last in row_chunks(starts):
        rows = np.repeat(np.arange(last - first), np.diff(starts[first : last + 1]))
        cells = rows * blocks + columns[starts[first] : starts[last]] // BLOCK
        lengths[first:last] = np.bincount(cells, minlength=(last - first) * blocks).reshape(-1, blocks)
    return {
        "inputs": mechanism.inputs,
        "outputs": mechanism.outputs,
        "lengths": lengths,
        "columns": columns.astype(np.uint16),  # the number within its block: what is above is cut off
        "values": mechanism.values,
        "background": mechanism.background,
    }


def unpacked(
    *,
    inputs: FiniteSpace,
    outputs: FiniteSpace,
    lengths: Integers,
    columns: NDArray[Any],
    certificate: Certificate,
    **rest: Any,
) -> LocalMechanism:
    """Undo `packed`; a file holds neither loss nor prior, and what the background costs is only bounded."""
    n, blocks = len(inputs), _blocks(len(outputs))
    if lengths.shape != (n, blocks) or lengths.max() > BLOCK:
        raise InvalidInput(f"`lengths` must be {n} x {blocks} numbers up to {BLOCK}, of reports in every block.")
    starts = np.append(0, np.cumsum(lengths.sum(axis=1, dtype=np.int64)))
    if starts[-1] != len(columns):
        raise InvalidInput(f"`lengths` must sum to the {len(columns)} reports that are stored, got {starts[-1]}.")
    whole = columns.astype(np.int32)
    if blocks > 1:
        for first, last in row_chunks(starts):
            numbers = np.tile(np.arange(blocks, dtype=np.int32) * BLOCK, last - first)
            whole[starts[first] : starts[last]] += np.repeat(numbers, lengths[first:last].ravel().astype(np.int64))
    whole.flags.writeable = False
    return LocalMechanism(
        inputs=inputs,
        outputs=outputs,
        starts=starts,
        columns=whole,
        certificate=replace(certificate, at_most=True),
        stakes=Stakes(known=False),
        **rest,
    )


def _blocks(reports: int) -> int:
    return -(-reports // BLOCK)
