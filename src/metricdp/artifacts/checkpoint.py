"""The state of a long decomposition in one file of plain arrays: cuts, rows, bases, the best matrix, the bounds."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from metricdp.arrays import Integers
from metricdp.errors import CorruptFile, InvalidInput
from metricdp.files import check_target, replacing
from metricdp.solvers.benders.block import State
from metricdp.solvers.benders.cuts import Cut, Multipliers
from metricdp.solvers.benders.master import MasterState
from metricdp.solvers.benders.run import Decomposition, Memory, Round

FORMAT = 3
FIELDS = ("tail", "head", "column")


@dataclass(frozen=True)
class CheckpointFile:
    """A file for what a run has learnt; the second program of a run has a file of its own beside it (`.full`)."""

    path: Path
    resume: bool

    def keeper(self, program: Decomposition, part: str) -> Callable[[Memory], None]:
        """Return a function that writes what a run has learnt, whole or not at all."""
        place, mark = self._place(part), fingerprint(program)

        def keep(memory: Memory) -> None:
            with replacing(place) as partial, open(partial, "wb") as file:
                np.savez(file, **_packed(memory, mark))

        return keep

    def recall(self, program: Decomposition, part: str) -> Memory | None:
        """Return what an earlier run of the same problem has learnt, or None where there is none."""
        place = self._place(part)
        check_target(place)
        if not place.exists():
            return None
        if not self.resume:
            raise InvalidInput(
                f"the checkpoint {str(place)!r} exists: say resume=True (--resume) to go on from it, or remove it to "
                "begin anew."
            )
        try:
            with open(place, "rb") as file, np.load(file, allow_pickle=False) as arrays:
                stored = {name: arrays[name] for name in arrays.files}
            if int(stored["format"]) != FORMAT:
                raise InvalidInput(f"the checkpoint {str(place)!r} has format {int(stored['format'])}, not {FORMAT}.")
            if str(stored["fingerprint"]) != fingerprint(program):
                raise InvalidInput(
                    f"the checkpoint {str(place)!r} belongs to another problem, or to other blocks or neighbours: "
                    "resume with the same ones, or choose another file."
                )
            memory = _unpacked(stored)
            _check(memory, program)
            return memory
        except (OSError, KeyError, ValueError, IndexError, zipfile.BadZipFile, EOFError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise CorruptFile(
                f"the checkpoint {str(place)!r} cannot be read ({error}). Remove it to begin anew."
            ) from error

    def _place(self, part: str) -> Path:
        return self.path.with_name(f"{self.path.name}.{part}") if part else self.path


def fingerprint(program: Decomposition) -> str:
    """Return a digest of costs, log ratios and blocks."""
    digest = hashlib.sha256()
    for array in (program.cost, program.weights, program.labels):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _check(memory: Memory, program: Decomposition) -> None:
    """Raise where stored arrays do not fit the program; bounds are not among them, they are computed again."""
    size, width = program.cost.shape
    if memory.best is not None and (memory.best.shape != (size, width) or not np.all(np.isfinite(memory.best))):
        raise ValueError(f"its matrix is none of {size} x {width} numbers")
    parts = [memory.proof]
    if memory.master is not None:
        parts += [cut.multipliers for cut in memory.master.cuts]
        for cut in memory.master.cuts:
            _within(cut.rows, size)
            _within(cut.columns, width)
    for part in parts:
        _within(part.tail, size)
        _within(part.head, size)
        _within(part.column, width)


def _within(codes: Integers, size: int) -> None:
    if codes.dtype.kind != "i" or codes.ndim != 1 or (codes.size and not 0 <= codes.min() <= codes.max() < size):
        raise ValueError(f"a row or column is not one of {size}")


def _packed(memory: Memory, mark: str) -> dict[str, Any]:
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
        "cut_rows": _joined([cut.rows for cut in cuts]),
        "cut_columns": _joined([cut.columns for cut in cuts]),
        "cut_slopes": np.concatenate([np.empty(0), *(cut.slope for cut in cuts)]),
        "multiplier_sizes": np.array([len(cut.multipliers) for cut in cuts], dtype=np.int64),
    }
    arrays |= _multipliers("multiplier", Multipliers.joined([cut.multipliers for cut in cuts]))
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


def _joined(parts: list[Integers]) -> Integers:
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])


def _multipliers(name: str, value: Multipliers) -> dict[str, Any]:
    return {
        f"{name}_tail": value.tail,
        f"{name}_head": value.head,
        f"{name}_column": value.column,
        f"{name}_value": value.value,
    }


def _unpacked(stored: dict[str, Any]) -> Memory:
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
            states[number] = State(
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
    return Memory(
        master=master,
        states=states,
        best=best if best.size else None,
        proof=_stored_multipliers(stored, "proof", slice(None)),
        rounds=[Round(float(a), float(b), float(c), int(d), bool(e)) for a, b, c, d, e in stored["rounds"]],
    )


def _stored_multipliers(stored: dict[str, Any], name: str, part: slice) -> Multipliers:
    return Multipliers(
        stored[f"{name}_tail"][part],
        stored[f"{name}_head"][part],
        stored[f"{name}_column"][part],
        stored[f"{name}_value"][part],
    )
