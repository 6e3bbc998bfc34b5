"""Figures with a history: one JSON line for every measurement, with the machine it was made on.

    record("tables", "10 million rows, Parquet to Parquet", asked="2 million rows/s", measured="3.4 million rows/s")

appends to `benchmarks/results/tables.jsonl`; `python benchmarks/figures.py` writes the tables of `docs/figures.md`
from the newest line of every `what`. Further values go along by name. Scripts record only when they are asked to:

    chosen = arguments(__doc__).parse_args()     # knows --record
    keep = recorder(chosen.record)               # record, or what leaves nothing behind

Long runs over many seeds keep each outcome as it comes (`gone_through`), so that one that is stopped goes on.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import metricdp

RESULTS = Path(__file__).parent / "results"
PROGRESS = Path(__file__).resolve().parents[1] / ".benchmarks"  # what git ignores: outcomes of runs under way
Recorder = Callable[..., None]  # called as `record` is


def machine() -> dict[str, Any]:
    """Return what a figure depends on: cores, memory, how busy they were, versions."""
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(pages * size / 2**30, 1),
        "load": round(os.getloadavg()[0], 2),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def record(group: str, what: str, *, measured: str, asked: str = "", **values: Any) -> None:
    """Append one measurement: in words for the page, and as plain values for whoever computes with it."""
    line = _line(what, measured=measured, asked=asked, values=values)
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / f"{group}.jsonl").open("a", encoding="utf-8") as file:
        file.write(line)


def recorder(keep: bool) -> Recorder:
    """Return `record`; where nothing is to be kept, what takes the same but only sees that it could be written."""
    return record if keep else _tried


def arguments(about: str | None) -> argparse.ArgumentParser:
    """Return a parser that knows `--record` and shows the script's own text as it is written."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="append the figures to benchmarks/results")
    return parser


def gone_through(path: Path, count: int, judge: Callable[[int], dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the outcomes of the seeds up to `count`, judging those that a file of earlier outcomes does not hold."""
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else []
    done, started = {one["seed"] for one in kept}, time.perf_counter()
    with path.open("a", encoding="utf-8") as file:
        for seed in sorted(set(range(count)) - done):
            kept.append({"seed": seed, **judge(seed)})
            file.write(json.dumps(kept[-1]) + "\n")
            file.flush()
            if len(kept) % 100 == 0:
                print(f"{path.stem}: {len(kept):,} in {time.perf_counter() - started:.0f} s", flush=True)
    return [one for one in kept if one["seed"] < count]


def _tried(group: str, what: str, *, measured: str, asked: str = "", **values: Any) -> None:
    _line(what, measured=measured, asked=asked, values=values)


def _line(what: str, *, measured: str, asked: str, values: dict[str, Any]) -> str:
    line = {
        "what": what,
        "asked": asked,
        "measured": measured,
        # JSON has no infinity: what came out infinite is said in words only
        "values": {name: value for name, value in values.items() if not _endless(value)},
        "date": datetime.date.today().isoformat(),
        "version": metricdp.__version__,
        "machine": machine(),
    }
    return json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n"


def _endless(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
