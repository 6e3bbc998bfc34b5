"""What a long decomposition has learnt, as plain arrays: cuts, rows, bases, the best matrix, the bounds."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

from metricdp.arrays import Integers
from metricdp.checkpoints import UNREADABLE, Arrays, Checkpoint, unreadable_error
from metricdp.errors import InvalidInput
from metricdp.solvers.benders.block import ModelState
from metricdp.solvers.benders.cuts import Cut, Multipliers
from metricdp.solvers.benders.master import MasterState
from metricdp.solvers.benders.run import BendersMemory, BendersRound, Decomposition

FORMAT = 3
FIELDS = ("tail", "head", "column")


def load_memory(place: Checkpoint, program: Decomposition) -> BendersMemory | None:
    """Return what an earlier run of the same program has learnt, or None where there is none."""
    stored = place.load()
    if stored is None:
        return None
    try:
        if int(stored["format"]) != FORMAT:
            raise InvalidInput(f"{place} has format {int(stored['format'])}, not {FORMAT}.")
        if str(stored["fingerprint"]) != fingerprint(program):
            raise InvalidInput(
                f"{place} belongs to another problem, or to other blocks or neighbours: resume with the same ones, or "
                "choose another file."
            )
        memory = _unpack(stored)
        _check(memory, program)
    except UNREADABLE as error:
        if isinstance(error, InvalidInput):
            raise
        raise unreadable_error(place, error) from error
    return memory


def memory_writer(place: Checkpoint, program: Decomposition) -> Callable[[BendersMemory], None]:
    """Return a function that keeps what a run of this program has learnt."""
    mark = fingerprint(program)
    return lambda memory: place.save(_pack(memory, mark))


def fingerprint(program: Decomposition) -> str:
    """Return a digest of costs, log ratios and blocks."""
    digest = hashlib.sha256()
    for array in (program.cost, program.log_ratios, program.labels):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _check(memory: BendersMemory, program: Decomposition) -> None:
    """Raise where stored arrays do not fit the program; bounds are not among them, they are computed again."""
    size, width = program.cost.shape
    if memory.best is not None and (memory.best.shape != (size, width) or not np.all(np.isfinite(memory.best))):
        raise ValueError(f"its matrix is none of {size} x {width} numbers")
    parts = [memory.proof]
    if memory.master is not None:
        parts += [cut.multipliers for cut in memory.master.cuts]
        for cut in memory.master.cuts:
            _check_codes(cut.rows, size)
            _check_codes(cut.columns, width)
    for part in parts:
        _check_codes(part.tail, size)
        _check_codes(part.head, size)
        _check_codes(part.column, width)


def _check_codes(codes: Integers, size: int) -> None:
    if codes.dtype.kind != "i" or codes.ndim != 1 or (codes.size and not 0 <= codes.min() <= codes.max() < size):
        raise ValueError(f"a row or column is not one of {size}")


def _pack(memory: BendersMemory, mark: str) -> dict[str, Any]:
    master = memory.master
    cuts = () if master is None else master.cuts
    arrays: dict[str, Any] = {
        "format": np.array(FORMAT),
        "fingerprint": np.array(mark),
        "best": np.empty((0, 0)) if memory.best is None else memory.best,
        "rounds": np.array([(r.lower, r.upper, r.seconds, r.cuts, r.feasible) for r in memory.rounds]).reshape(-1, 5),
        "cut_blocks": np.array([cut.block for cut in cuts], dtype=np.int64),
        "cut_shares": np.array([cut.share for cut in cuts]),
        "cut_constants": np.array([cut.constant for cut in cuts]),
        "cut_sizes": np.array([len(cut.slope) for cut in cuts], dtype=np.int64),
        "cut_rows": _join([cut.rows for cut in cuts]),
        "cut_columns": _join([cut.columns for cut in cuts]),
        "cut_slopes": np.concatenate([np.empty(0), *(cut.slope for cut in cuts)]),
        "multiplier_sizes": np.array([len(cut.multipliers) for cut in cuts], dtype=np.int64),
    }
    arrays |= _multipliers("multiplier", Multipliers.concatenate_all([cut.multipliers for cut in cuts]))
    arrays |= _multipliers("proof", memory.proof)
    if master is not None:
        arrays |= {f"ratio_{name}": array for name, array in zip(FIELDS, master.ratios, strict=True)}
        arrays |= {"master_kinds": master.kinds, "master_idle": master.idle}
        arrays["master_columns"] = master.column_status.astype(np.int8)
        arrays["master_rows"] = master.row_status.astype(np.int8)
    for number, state in memory.states.items():
        arrays |= {f"state_{number}_{name}": getattr(state, name) for name in FIELDS}
        arrays[f"state_{number}_columns"] = state.column_status.astype(np.int8)
        arrays[f"state_{number}_rows"] = state.row_status.astype(np.int8)
    return arrays


def _join(parts: list[Integers]) -> Integers:
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])


def _multipliers(name: str, value: Multipliers) -> dict[str, Any]:
    return {
        f"{name}_tail": value.tail,
        f"{name}_head": value.head,
        f"{name}_column": value.column,
        f"{name}_value": value.value,
    }


def _unpack(stored: Arrays) -> BendersMemory:
    slopes = np.concatenate([[0], np.cumsum(stored["cut_sizes"])])
    pieces = np.concatenate([[0], np.cumsum(stored["multiplier_sizes"])])
    cuts = []
    for number, block in enumerate(stored["cut_blocks"]):
        at, own = slice(*slopes[number : number + 2]), slice(*pieces[number : number + 2])
        cuts.append(
            Cut(
                int(block),
                float(stored["cut_shares"][number]),
                float(stored["cut_constants"][number]),
                stored["cut_rows"][at],
                stored["cut_columns"][at],
                stored["cut_slopes"][at],
                _stored_multipliers(stored, "multiplier", own),
            )
        )
    states = {}
    for name in stored:
        if name.startswith("state_") and name.endswith("_tail"):
            number = int(name.split("_")[1])
            tail, head, column = (stored[f"state_{number}_{field}"] for field in FIELDS)
            states[number] = ModelState(
                tail,
                head,
                column,
                stored[f"state_{number}_columns"].astype(np.int64),
                stored[f"state_{number}_rows"].astype(np.int64),
            )
    master = None
    if "master_kinds" in stored:
        master = MasterState(
            tuple(cuts),
            (stored["ratio_tail"], stored["ratio_head"], stored["ratio_column"]),
            stored["master_kinds"],
            stored["master_idle"],
            stored["master_columns"].astype(np.int64),
            stored["master_rows"].astype(np.int64),
        )
    best = stored["best"]
    return BendersMemory(
        master=master,
        states=states,
        best=best if best.size else None,
        proof=_stored_multipliers(stored, "proof", slice(None)),
        rounds=[BendersRound(float(a), float(b), float(c), int(d), bool(e)) for a, b, c, d, e in stored["rounds"]],
    )


def _stored_multipliers(stored: Arrays, name: str, part: slice) -> Multipliers:
    return Multipliers(
        stored[f"{name}_tail"][part],
        stored[f"{name}_head"][part],
        stored[f"{name}_column"][part],
        stored[f"{name}_value"][part],
    )
